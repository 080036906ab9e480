//! Precomputed data of the tree search, and interchangeable classes of hosts and processes.

use std::collections::BTreeMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use crate::search::model::Model;

/// Data that does not change during a search.
pub(super) struct Tables {
    /// Processes that are interchangeable with each process.
    pub(super) alike: Vec<Vec<usize>>,
    pub(super) neighbours: Vec<Vec<Neighbour>>,
    /// Classes by distance from each class, in the shorter direction.
    pub(super) around: Vec<Vec<(u16, usize)>>,
    /// Processes that receive from several others, and their incoming streams.
    pub(super) joins: Vec<Option<Vec<usize>>>,
    /// For streams of each kind, from each class and to it, the classes within each distance.
    pub(super) within: [Vec<Vec<Vec<u128>>>; 2],
    /// Fraction of the entries of a destination that is its own, because it may share its host.
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
    /// Destinations of these streams that receive from no other process: their entries number one less than the hops.
    pub(super) alone: f64,
}

/// For streams of each kind, from each class or to it, the classes within each distance.
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

/// The incoming streams of a process if they come from several others.
fn joins(model: &Model<'_>, process: usize) -> Option<Vec<usize>> {
    let edges = &model.receives[process];
    let first = edges.first().map(|&edge| model.edges[edge].source);
    edges.iter().any(|&edge| Some(model.edges[edge].source) != first).then(|| edges.clone())
}

/// The partners of a process.
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

/// Maximum number of classes and switches for which symmetries are sought.
const MOST_VERTICES: usize = 300;
/// Step limit of one search for a symmetry.
const MOST_STEPS: u32 = 200;

/// The network with alike hosts merged: classes first, then switches.
pub(super) struct Symmetry {
    classes: usize,
    colours: Vec<u64>,
    /// Neighbours of every vertex with the capacities in both directions.
    joined: Vec<BTreeMap<usize, [Vec<u64>; 2]>>,
}

impl Symmetry {
    /// The symmetries of a machine.
    pub(super) fn new(model: &Model<'_>) -> Self {
        let problem = model.problem;
        let classes = model.classes.len();
        let mut vertex = model.class_of.clone();
        let mut colours = Vec::with_capacity(classes);
        let mut is_first = vec![true; vertex.len()];
        for (class, members) in model.classes.iter().enumerate() {
            let host = members.hosts[0];
            members.hosts[1..].iter().for_each(|&host| is_first[host as usize] = false);
            let may: Vec<bool> = model.may.iter().map(|may| may[class]).collect();
            let home: Vec<f64> = (0..model.processes).map(|process| model.move_cost(process, host)).collect();
            let bits = |values: &[f64]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
            colours.push(hashed(&(members.hosts.len(), may, bits(&home), bits(&model.has[host as usize]))));
        }
        for switch in problem.switches() {
            vertex[switch as usize] = colours.len();
            colours.push(hashed(&problem.is_type_two(switch)));
        }
        let mut joined: Vec<BTreeMap<usize, [Vec<u64>; 2]>> = vec![BTreeMap::new(); colours.len()];
        for (link, capacity) in problem.system.links.iter().zip(&problem.capacity) {
            let ends = [link.source as usize, link.destination as usize];
            if *capacity > 0.0 && ends.iter().all(|&end| is_first[end]) {
                let [from, to] = ends.map(|end| vertex[end]);
                joined[from].entry(to).or_default()[0].push(capacity.to_bits());
                joined[to].entry(from).or_default()[1].push(capacity.to_bits());
            }
        }
        joined.iter_mut().flat_map(BTreeMap::values_mut).flatten().for_each(|all| all.sort_unstable());
        Self { classes, colours, joined }
    }

    /// For every class the first one that it is interchangeable with if the `fixed` classes are fixed; none if all are distinct.
    pub(super) fn orbits(&self, fixed: u128) -> Option<Vec<usize>> {
        if self.colours.len() > MOST_VERTICES {
            return None;
        }
        let mut colours = self.colours.clone();
        for class in (0..self.classes.min(128)).filter(|class| fixed >> class & 1 == 1) {
            colours[class] = hashed(&("fixed", class));
        }
        self.refine(&mut colours);
        let mut orbits: Vec<usize> = (0..self.classes).collect();
        for class in 1..self.classes {
            let mut steps = MOST_STEPS;
            let earlier = (0..class).filter(|&other| orbits[other] == other);
            let same = earlier
                .filter(|&other| colours[other] == colours[class])
                .find(|&other| self.is_image([colours.clone(), colours.clone()], (other, class), &mut steps));
            orbits[class] = same.unwrap_or(class);
        }
        orbits.iter().enumerate().any(|(class, first)| class != *first).then_some(orbits)
    }

    /// Whether an automorphism maps one vertex to another, given colours on both sides.
    fn is_image(&self, [mut left, mut right]: [Vec<u64>; 2], pair: (usize, usize), steps: &mut u32) -> bool {
        if *steps == 0 {
            return false;
        }
        *steps -= 1;
        left[pair.0] = hashed(&("chosen", *steps));
        right[pair.1] = left[pair.0];
        self.refine(&mut left);
        self.refine(&mut right);
        let mut cells: BTreeMap<u64, (Vec<usize>, Vec<usize>)> = BTreeMap::new();
        for vertex in 0..left.len() {
            cells.entry(left[vertex]).or_default().0.push(vertex);
            cells.entry(right[vertex]).or_default().1.push(vertex);
        }
        if cells.values().any(|(left, right)| left.len() != right.len()) {
            return false;
        }
        match cells.values().find(|(left, _)| left.len() > 1) {
            Some((first, images)) => images
                .iter()
                .any(|&image| self.is_image([left.clone(), right.clone()], (first[0], image), steps)),
            None => {
                let image: BTreeMap<usize, usize> = cells.values().map(|(a, b)| (a[0], b[0])).collect();
                self.joined.iter().enumerate().all(|(vertex, joined)| {
                    let other = &self.joined[image[&vertex]];
                    self.colours[vertex] == self.colours[image[&vertex]]
                        && joined.len() == other.len()
                        && joined.iter().all(|(next, by)| other.get(&image[next]) == Some(by))
                })
            }
        }
    }

    /// Colour refinement: distinguishes vertices by their neighbours until nothing changes.
    fn refine(&self, colours: &mut Vec<u64>) {
        let count = |colours: &[u64]| colours.iter().collect::<std::collections::BTreeSet<_>>().len();
        let mut before = count(colours);
        loop {
            let next = self.joined.iter().zip(colours.iter()).map(|(joined, colour)| {
                let mut around: Vec<_> = joined.iter().map(|(next, by)| (colours[*next], by)).collect();
                around.sort_unstable();
                hashed(&(colour, around))
            });
            *colours = next.collect();
            let now = count(colours);
            if now == before {
                return;
            }
            before = now;
        }
    }
}

fn hashed(what: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}

/// For every process its interchangeable processes: same demands, and the same streams with the same partners.
pub(super) fn alike(model: &Model<'_>) -> Vec<Vec<usize>> {
    let mut groups: BTreeMap<_, Vec<usize>> = BTreeMap::new();
    for process in 0..model.processes {
        let streams = |edges: &[usize], is_source: bool| {
            let other = |edge: &usize| {
                let edge = &model.edges[*edge];
                (if is_source { edge.destination } else { edge.source }, edge.bandwidth.to_bits())
            };
            let mut streams: Vec<(usize, u64)> = edges.iter().map(other).collect();
            streams.sort_unstable();
            streams
        };
        let needs: Vec<u64> = model.needs[process].iter().map(|need| need.to_bits()).collect();
        let allowed = &model.problem.allowed[process];
        let home = model.problem.home.as_ref().map(|home| home.hosts[process]);
        let key = (streams(&model.sends[process], true), streams(&model.receives[process], false), needs);
        groups.entry((key, allowed, home)).or_default().push(process);
    }
    let mut alike = vec![Vec::new(); model.processes];
    for group in groups.into_values().filter(|group| group.len() > 1) {
        for &process in &group {
            alike[process] = group.iter().copied().filter(|&other| other != process).collect();
        }
    }
    alike
}
