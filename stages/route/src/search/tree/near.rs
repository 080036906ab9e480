//! Which processes talk to each other, and which classes are near each other.

use std::collections::BTreeMap;

use crate::search::model::Model;

/// A process at the other end of streams.
#[derive(Debug, Clone)]
pub(super) struct Neighbour {
    pub(super) process: usize,
    pub(super) edges: Vec<usize>,
    /// Ends of these streams that receive from nobody else: their entries are as many as the links, less one.
    pub(super) alone: f64,
}

/// For streams of each kind, from each class or to it, the classes within each number of links.
pub(super) fn within(model: &Model<'_>, from: bool) -> Vec<Vec<Vec<u128>>> {
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
pub(super) fn joins(model: &Model<'_>, process: usize) -> Option<Vec<usize>> {
    let edges = &model.receives[process];
    let first = edges.first().map(|&edge| model.edges[edge].source);
    edges.iter().any(|&edge| Some(model.edges[edge].source) != first).then(|| edges.clone())
}

/// The processes that a process has streams with.
pub(super) fn neighbours(model: &Model<'_>, process: usize, joins: &[Option<Vec<usize>>]) -> Vec<Neighbour> {
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
