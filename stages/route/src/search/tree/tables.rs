//! What the tree search knows of a model before it begins.

use std::collections::BTreeMap;

use crate::search::model::Model;
use crate::search::symmetry::alike;

/// What does not change during a search.
pub(super) struct Tables {
    /// Processes that can stand for each process.
    pub(super) alike: Vec<Vec<usize>>,
    pub(super) neighbours: Vec<Vec<Neighbour>>,
    /// Classes by distance from each class, in the direction in which it is less.
    pub(super) around: Vec<Vec<(u16, usize)>>,
    /// Processes that receive from several others, and the streams that each receives.
    pub(super) joins: Vec<Option<Vec<usize>>>,
    /// For streams of each kind, from each class and to it, the classes within each number of links.
    pub(super) within: [Vec<Vec<Vec<u128>>>; 2],
    /// Part of the entries of a destination that is its own: others may be on its host.
    pub(super) share: f64,
    /// Whether no two processes fit on a host.
    pub(super) is_single: bool,
}

impl Tables {
    pub(super) fn new(model: &Model<'_>) -> Self {
        let classes = model.classes.len();
        let most = model.classes.iter().map(|class| class.most).max().unwrap_or(1).max(1);
        let joins: Vec<Option<Vec<usize>>> =
            (0..model.processes).map(|process| joins(model, process)).collect();
        let around = |class: usize| {
            let distance =
                |other: usize| model.distance(0, class, other).min(model.distance(0, other, class));
            let mut around: Vec<(u16, usize)> = (0..classes).map(|other| (distance(other), other)).collect();
            around.sort_unstable();
            around
        };
        Self {
            alike: alike(model),
            neighbours: (0..model.processes).map(|process| neighbours(model, process, &joins)).collect(),
            around: (0..classes).map(around).collect(),
            within: [within(model, true), within(model, false)],
            share: 1.0 / most as f64,
            is_single: most == 1,
            joins,
        }
    }
}

/// A process at the other end of streams.
#[derive(Debug, Clone)]
pub(super) struct Neighbour {
    pub(super) process: usize,
    pub(super) edges: Vec<usize>,
    /// Ends of these streams that receive from nobody else: their entries are as many as the links, less one.
    pub(super) alone: f64,
}

/// For streams of each kind, from each class or to it, the classes within each number of links.
fn within(model: &Model<'_>, from: bool) -> Vec<Vec<Vec<u128>>> {
    let classes = model.classes.len();
    let kinds = model.edges.iter().map(|edge| edge.kind + 1).max().unwrap_or_default();
    let near = |kind: usize, class: usize, links: u16| {
        let is_near = |&other: &usize| {
            let (a, b) = if from { (class, other) } else { (other, class) };
            model.distance(kind, a, b) <= links
        };
        (0..classes).filter(is_near).fold(0, |set, other| set | 1 << other)
    };
    let of_class =
        |kind: usize, class: usize| (0..=model.farthest()).map(|links| near(kind, class, links)).collect();
    (0..kinds).map(|kind| (0..classes).map(|class| of_class(kind, class)).collect()).collect()
}

/// The streams that a process receives if they come from several others.
fn joins(model: &Model<'_>, process: usize) -> Option<Vec<usize>> {
    let edges = &model.receives[process];
    let first = edges.first().map(|&edge| model.edges[edge].source);
    edges.iter().any(|&edge| Some(model.edges[edge].source) != first).then(|| edges.clone())
}

/// The processes that a process has streams with.
fn neighbours(model: &Model<'_>, process: usize, joins: &[Option<Vec<usize>>]) -> Vec<Neighbour> {
    let mut neighbours: BTreeMap<usize, Neighbour> = BTreeMap::new();
    for (edge, other) in model.neighbours(process) {
        let new = Neighbour { process: other, edges: Vec::new(), alone: 0.0 };
        neighbours.entry(other).or_insert(new).edges.push(edge);
    }
    for neighbour in neighbours.values_mut() {
        let receives = |end: usize| neighbour.edges.iter().any(|&edge| model.edges[edge].destination == end);
        let ends = [process, neighbour.process];
        neighbour.alone = ends.iter().filter(|&&end| receives(end) && joins[end].is_none()).count() as f64;
    }
    neighbours.into_values().collect()
}

/// The classes of a set.
pub(super) fn bits(mut set: u128) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let next = (set != 0).then(|| set.trailing_zeros() as usize);
        set &= set.wrapping_sub(1);
        next
    })
}
