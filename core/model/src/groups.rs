//! Groups of ranks that communicate, and areas of hosts below common switches.

use std::collections::{BTreeMap, BTreeSet};

use crate::system_graph::{Link, Node, NodeKind, SystemGraph};
use crate::task_graph::Phase;
use hopmap_graph::{DisjointSets, distances};

impl Phase {
    /// The groups of ranks that the messages of the phase connect, of two ranks or more each: ascending ranks, by the
    /// first one. A phase of one kind of collective operation has the groups of these.
    #[must_use]
    pub fn groups(&self) -> Vec<Vec<u32>> {
        let ranks = self.edges.iter().map(|edge| edge.source.max(edge.destination) as usize + 1).max();
        let pairs = self.edges.iter().map(|edge| (edge.source, edge.destination));
        let number = components(ranks.unwrap_or(0), pairs, |_| true);
        let mut groups: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        number.iter().zip(0..).for_each(|(&number, rank)| groups.entry(number).or_default().push(rank));
        groups.into_values().filter(|group| group.len() > 1).collect()
    }
}

impl SystemGraph {
    /// The area of every node, by level of switches: 1 for those linked to hosts, 2 for those above, and so on. An area
    /// is what is connected by switches up to a level. Levels on which all hosts are in one area are left out, and so
    /// are all of a machine without switches.
    #[must_use]
    pub fn areas(&self) -> Vec<Vec<u32>> {
        let pairs = self.links.iter().map(|link| (link.source, link.destination));
        let distances = distances_from_hosts(&self.nodes, &self.links);
        let highest = distances.iter().copied().filter(|&distance| distance < u32::MAX).max().unwrap_or(0);
        let mut levels = Vec::new();
        for level in 1..=highest {
            let areas = components(self.nodes.len(), pairs.clone(), |node| distances[node as usize] <= level);
            let of_hosts: BTreeSet<u32> = self.hosts().map(|(host, ..)| areas[host as usize]).collect();
            if of_hosts.len() < 2 {
                break;
            }
            levels.push(areas);
        }
        levels
    }

    /// A name for each level of switches, from 1: its number and its first switch in the order of nodes, such as
    /// `level 1 (leaf0, …)`. What a level is depends on the machine: leaf switches, accelerator domains, blocks.
    #[must_use]
    pub fn level_names(&self) -> Vec<String> {
        let distances = distances_from_hosts(&self.nodes, &self.links);
        let mut switches: BTreeMap<u32, Vec<&str>> = BTreeMap::new();
        let of_nodes =
            distances.iter().zip(&self.nodes).filter(|(distance, _)| (1..u32::MAX).contains(*distance));
        of_nodes.for_each(|(&distance, node)| switches.entry(distance).or_default().push(&node.name));
        let name = |(level, switches): (&u32, &Vec<&str>)| {
            let more = if switches.len() > 1 { ", …" } else { "" };
            format!("level {level} ({}{more})", switches[0])
        };
        switches.iter().map(name).collect()
    }
}

/// Number of links between each node and the nearest host; `u32::MAX` if there is no path.
#[must_use]
pub fn distances_from_hosts(nodes: &[Node], links: &[Link]) -> Vec<u32> {
    let neighbours = neighbours(nodes.len(), links.iter().map(|link| (link.source, link.destination)));
    let hosts = (0..nodes.len()).filter(|&node| nodes[node].kind == NodeKind::Host);
    distances(nodes.len(), hosts, |node| neighbours[node].iter().map(|&other| other as usize))
}

/// Sets unknown latencies of links, and unknown bandwidths by the distance of a link from the nearest host: the first one
/// is that of the links of hosts, and the last one holds for all levels above.
pub fn fill_rates(nodes: &[Node], links: &mut [Link], latency_s: Option<f64>, bandwidths: &[f64]) {
    links.iter_mut().for_each(|link| link.latency_s = link.latency_s.or(latency_s));
    let Some(&last) = bandwidths.last() else { return };
    let distances = distances_from_hosts(nodes, links);
    for link in links {
        let level = distances[link.source as usize].min(distances[link.destination as usize]);
        let rate = bandwidths.get(level as usize).copied().unwrap_or(last);
        link.bandwidth_bytes_per_s = link.bandwidth_bytes_per_s.or(Some(rate));
    }
}

/// The nodes at the other ends of the links of each node.
fn neighbours(count: usize, pairs: impl Iterator<Item = (u32, u32)>) -> Vec<Vec<u32>> {
    let mut neighbours = vec![Vec::new(); count];
    for (a, b) in pairs {
        neighbours[a as usize].push(b);
        neighbours[b as usize].push(a);
    }
    neighbours
}

/// The number of what every node is connected with over some of the nodes.
fn components(
    count: usize,
    pairs: impl Iterator<Item = (u32, u32)>,
    includes: impl Fn(u32) -> bool,
) -> Vec<u32> {
    let mut sets = DisjointSets::new(count);
    for (a, b) in pairs.filter(|&(a, b)| includes(a) && includes(b)) {
        sets.join(a as usize, b as usize);
    }
    sets.numbers()
}

#[cfg(test)]
mod tests {
    use crate::system_graph::{CostModel, Levels, Link, Node, Slot, SystemGraph};
    use crate::task_graph::{Edge, Phase};

    #[test]
    fn messages_connect_groups() {
        let edge = |(source, destination)| Edge { source, destination, messages: 1, bytes: 1 };
        let of = |pairs: &[(u32, u32)]| {
            Phase { edges: pairs.iter().copied().map(edge).collect(), ..Phase::default() }.groups()
        };
        assert_eq!(of(&[(0, 4), (1, 3), (4, 0), (4, 7), (6, 6)]), [vec![0, 4, 7], vec![1, 3]]);
        assert_eq!(of(&[]), Vec::<Vec<u32>>::new());
    }

    #[test]
    fn areas_are_what_switches_up_to_a_level_connect() {
        // Two hosts below each of three leaves, the first two of them below a spine, and a core switch.
        let mut nodes: Vec<Node> = (0..6).map(|host| Node::host(format!("n{host}"))).collect();
        nodes.extend((0..5).map(|switch| Node::switch(format!("s{switch}"))));
        let ends = [(0, 6), (1, 6), (2, 7), (3, 7), (4, 8), (5, 8), (6, 9), (7, 9), (9, 10), (8, 10)];
        let machine = |ends: &[(u32, u32)]| SystemGraph {
            nodes: nodes.clone(),
            links: ends.iter().map(|&(a, b)| Link::new(a, b)).collect(),
            slots: (0..6).map(|host| Slot { host, core: 0 }).collect(),
            cost: CostModel::Levels(Levels { costs: vec![1.0], groups: vec![vec![0; 6]] }),
            routing: crate::system_graph::Routing::default(),
            calibration: Vec::new(),
        };
        let areas = machine(&ends).areas();
        let of_hosts: Vec<&[u32]> = areas.iter().map(|level| &level[..6]).collect();
        assert_eq!(of_hosts, [[0, 0, 1, 1, 2, 2]]);
        assert_eq!(machine(&ends).level_names(), ["level 1 (s0, …)", "level 2 (s3, …)"]);
        let deeper = machine(&[&ends[..9], &[(8, 10)]].concat()).areas();
        assert_eq!(deeper, areas);
        // Hosts that are linked directly are one area.
        assert!(machine(&[(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)]).areas().is_empty());
    }
}
