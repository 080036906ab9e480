//! The machine as a graph: nodes of slots that are close to each other, and links between the closest nodes.

use hopmap_objective::{Distance, Problem};

use super::lattice::Graph;

/// Maximum number of distinct costs of links.
const MOST_KINDS: usize = 6;

/// Groups of slots, and the pairs of groups with a direct link.
pub(crate) struct Machine {
    /// The slots of every node.
    pub(crate) nodes: Vec<Vec<u32>>,
    pub(crate) links: Graph,
}

impl Machine {
    /// Finds nodes and links from the costs alone: a link is a pair that costs less than any way over other
    /// links. Slots of a host are a node, and so are hosts at the least cost from each other if these are
    /// complete groups, such as those of a switch.
    pub(crate) fn new(problem: &Problem) -> Self {
        let distance = problem.distance();
        let mut nodes = distance.hosts();
        loop {
            let (links, groups) = links(distance, &nodes);
            let are_complete = groups.iter().all(|group| {
                group.len() > 1 && group.iter().all(|&node| links[node as usize].len() + 1 == group.len())
            });
            if groups.len() > 1 && are_complete {
                let slots = |&node: &u32| nodes[node as usize].iter().copied();
                nodes = groups.iter().map(|group| group.iter().flat_map(slots).collect()).collect();
                continue;
            }
            let links = if groups.len() > 1 { with_further(distance, &nodes, links) } else { links };
            return Self { nodes, links };
        }
    }
}

fn cost(distance: &Distance, nodes: &[Vec<u32>], one: usize, other: usize) -> i64 {
    distance.cost(nodes[one][0], nodes[other][0])
}

/// The pairs of nodes with the least cost, and the connected components of the graph of these pairs.
fn links(distance: &Distance, nodes: &[Vec<u32>]) -> (Graph, Vec<Vec<u32>>) {
    let pairs = || (0..nodes.len()).flat_map(|one| (0..one).map(move |other| (one, other)));
    let least = pairs().map(|(one, other)| cost(distance, nodes, one, other)).min().unwrap_or(0);
    let mut links = vec![Vec::new(); nodes.len()];
    for (one, other) in pairs().filter(|&(one, other)| cost(distance, nodes, one, other) == least) {
        links[one].push(other as u32);
        links[other].push(one as u32);
    }
    links.iter_mut().for_each(|links| links.sort_unstable());
    let groups = components(&links);
    (links, groups)
}

/// Adds links of higher costs until all nodes are connected.
fn with_further(distance: &Distance, nodes: &[Vec<u32>], mut links: Graph) -> Graph {
    let count = nodes.len();
    let mut last = links
        .iter()
        .enumerate()
        .find_map(|(one, others)| Some(cost(distance, nodes, one, *others.first()? as usize)));
    for _ in 1..MOST_KINDS {
        if components(&links).len() < 2 {
            break;
        }
        let costs = (0..count).flat_map(|one| (0..one).map(move |other| cost(distance, nodes, one, other)));
        let Some(next) = costs.filter(|cost| last.is_none_or(|last| *cost > last)).min() else { break };
        let mut added = Vec::new();
        for (one, known) in links.iter().enumerate() {
            let is_over = |middle: u32, other: usize| {
                let ends = [one, other].map(|end| cost(distance, nodes, end, middle as usize));
                ends[0] + ends[1] <= next
            };
            let is_link = |&other: &usize| {
                cost(distance, nodes, one, other) == next
                    && !known.iter().any(|&middle| is_over(middle, other))
            };
            added.extend((0..one).filter(is_link).map(|other| (one, other)));
        }
        for (one, other) in added {
            links[one].push(other as u32);
            links[other].push(one as u32);
        }
        links.iter_mut().for_each(|links| links.sort_unstable());
        last = Some(next);
    }
    links
}

/// The vertices of every connected component.
fn components(graph: &Graph) -> Vec<Vec<u32>> {
    let mut is_seen = vec![false; graph.len()];
    let mut components = Vec::new();
    for begin in 0..graph.len() {
        if std::mem::replace(&mut is_seen[begin], true) {
            continue;
        }
        let mut component = vec![begin as u32];
        let mut at = 0;
        while let Some(&vertex) = component.get(at) {
            at += 1;
            for &other in &graph[vertex as usize] {
                if !std::mem::replace(&mut is_seen[other as usize], true) {
                    component.push(other);
                }
            }
        }
        components.push(component);
    }
    components
}
