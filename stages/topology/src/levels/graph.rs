//! Builds the machine from levels: groups, costs, switches and links.

use hopmap_graph::DisjointSets;
use hopmap_model::{
    CostModel, Levels, Link, Node, NodeState, Routing, Slot, SystemGraph, is_bandwidth, is_time,
};
use hopmap_statistics::lower_median;

use super::cluster::Join;
use super::machine::{Known, Machine, Pairs};

const SECONDS: f64 = 1e-6;

/// The machine for joins with given levels.
pub(super) fn system(machine: &Machine, joins: &[Join], level_of_join: &[usize]) -> SystemGraph {
    let groups = groups(machine, joins, level_of_join);
    let level_count = groups.len();
    let medians =
        |number: &dyn Fn(&Known, usize, usize, usize) -> f64| medians(machine, &groups, level_count, number);
    let is_known =
        |known: &Known, place: usize, value: f64| if known.is_estimated(place) { f64::NAN } else { value };
    let costs = medians(&|known, place, a, b| is_known(known, place, known.cost().get(a, b)));
    let latencies = medians(&|known, place, a, b| is_known(known, place, known.latency.get(a, b)));
    let bandwidth = |pairs: &Option<Pairs>, a, b| pairs.as_ref().map_or(f64::NAN, |pairs| pairs.get(a, b));
    let bandwidths = medians(&|known, _, a, b| bandwidth(&known.bandwidth, a, b));

    let mut nodes = Vec::with_capacity(machine.hosts.len());
    let mut slots = Vec::new();
    for (index, host) in machine.hosts.iter().enumerate() {
        let state = if host.cores.is_empty() { NodeState::Down } else { NodeState::Up };
        nodes.push(Node { state, ..Node::host(host.name.clone()) });
        slots.extend(host.cores.iter().map(|&core| Slot { host: index as u32, core }));
    }
    let costs = rising(costs).into_iter().map(three_digits).collect();
    let network = Network {
        latencies: if machine.is_measured { rising(latencies) } else { vec![f64::NAN; level_count] },
        bandwidths,
    };
    let links = network.links(machine, &groups, &mut nodes);
    SystemGraph {
        nodes,
        links,
        slots,
        cost: CostModel::Levels(Levels { costs, groups }),
        routing: Routing::default(),
        calibration: Vec::new(),
    }
}

/// The group of each slot on each level, numbered by first slots. A single slot is its own group.
fn groups(machine: &Machine, joins: &[Join], level_of_join: &[usize]) -> Vec<Vec<u32>> {
    let slots: usize = machine.slot_counts().iter().sum();
    let levels = level_of_join.iter().map(|level| level + 1).max().unwrap_or(1);
    let mut order: Vec<usize> = (0..joins.len()).collect();
    order.sort_by_key(|&join| level_of_join[join]);
    let mut joins = order.into_iter().map(|join| (level_of_join[join], joins[join].slots)).peekable();
    let mut sets = DisjointSets::new(slots);
    let mut groups = Vec::with_capacity(levels);
    for level in 0..levels {
        while let Some((_, (a, b))) = joins.next_if(|join| join.0 == level) {
            sets.join(a as usize, b as usize);
        }
        groups.push(sets.numbers());
    }
    groups
}

/// The median over the pairs that meet on each level; `NaN` if unknown.
fn medians(
    machine: &Machine,
    groups: &[Vec<u32>],
    level_count: usize,
    number: &dyn Fn(&Known, usize, usize, usize) -> f64,
) -> Vec<f64> {
    let mut values: Vec<Vec<f64>> = vec![Vec::new(); level_count];
    let mut collect = |known: &Known, slots: &[usize]| {
        for (place, (a, b, _)) in known.latency.iter().enumerate() {
            let value = number(known, place, a, b);
            let meeting = groups.iter().position(|groups| groups[slots[a]] == groups[slots[b]]);
            if let Some(values) = meeting.filter(|_| !value.is_nan()).map(|level| &mut values[level]) {
                values.push(value);
            }
        }
    };
    let mut first_slots = Vec::with_capacity(machine.up.len());
    let mut first = 0;
    for (&host, slots) in machine.up.iter().zip(machine.slot_counts()) {
        collect(&machine.hosts[host].inside, &(first..first + slots).collect::<Vec<_>>());
        first_slots.push(first);
        first += slots;
    }
    collect(&machine.between, &first_slots);
    values.into_iter().map(|values| lower_median(values).unwrap_or(f64::NAN)).collect()
}

/// Makes values non-decreasing; unknown values repeat the previous one.
fn rising(values: Vec<f64>) -> Vec<f64> {
    let mut largest = 0.0;
    let next = |value: f64| {
        largest = value.max(largest);
        largest
    };
    values.into_iter().map(next).collect()
}

fn three_digits(value: f64) -> f64 {
    format!("{value:.2e}").parse().ok().filter(|rounded: &f64| rounded.is_finite()).unwrap_or(value)
}

/// Switches and their links.
struct Network {
    /// Latency in microseconds between hosts that meet on a level; `NaN` if the unit is unknown.
    latencies: Vec<f64>,
    /// Bytes per second; `NaN` if unknown.
    bandwidths: Vec<f64>,
}

impl Network {
    /// Adds a switch for every group of at least two hosts that is not a group further in, the outermost one
    /// last, and links it to its parts. Hosts that are down are attached to the last switch, so that the
    /// links form a tree.
    fn links(&self, machine: &Machine, groups: &[Vec<u32>], nodes: &mut Vec<Node>) -> Vec<Link> {
        let mut links = Vec::new();
        let prefix = prefix(nodes);
        let mut first_slots = Vec::with_capacity(machine.up.len());
        let mut first = 0;
        for slots in machine.slot_counts() {
            first_slots.push(first);
            first += slots;
        }
        // The top node above each host so far, and its latency.
        let mut tops: Vec<(u32, f64)> = machine.up.iter().map(|&host| (host as u32, 0.0)).collect();
        for (level, groups) in groups.iter().enumerate() {
            let mut members: Vec<Vec<usize>> = vec![Vec::new(); groups.len()];
            for (place, &slot) in first_slots.iter().enumerate() {
                members[groups[slot] as usize].push(place);
            }
            for (group, members) in members.iter().enumerate() {
                let mut children: Vec<(u32, f64)> = members.iter().map(|&place| tops[place]).collect();
                children.dedup_by_key(|child| child.0);
                children.sort_by_key(|child| child.0);
                children.dedup_by_key(|child| child.0);
                if children.len() < 2 {
                    continue;
                }
                let switch = nodes.len() as u32;
                nodes.push(Node::switch(format!("{prefix}-{}-{group}", level + 1)));
                children
                    .iter()
                    .for_each(|&(child, inner)| self.join(child, switch, level, inner, &mut links));
                members.iter().for_each(|&place| tops[place] = (switch, self.latencies[level]));
            }
        }
        let last = nodes.len() as u32 - 1;
        if !links.is_empty() {
            let down = (0..machine.hosts.len()).filter(|&host| machine.hosts[host].cores.is_empty());
            down.for_each(|host| self.join(host as u32, last, groups.len() - 1, 0.0, &mut links));
        }
        links
    }

    /// Adds links in both directions, with half of the difference between the level and the part.
    fn join(&self, child: u32, switch: u32, level: usize, inner: f64, links: &mut Vec<Link>) {
        let latency = (self.latencies[level] - inner) / 2.0 * SECONDS;
        // Unknown if there is no number, or none that a link can have.
        let latency_s = Some(latency).filter(|latency| !latency.is_nan()).map(|latency| latency.max(0.0));
        let latency_s = latency_s.filter(|latency| is_time(*latency));
        let bandwidth_bytes_per_s = Some(self.bandwidths[level]).filter(|rate| is_bandwidth(*rate));
        let link = |(source, destination)| Link {
            latency_s,
            bandwidth_bytes_per_s,
            ..Link::new(source, destination)
        };
        links.extend([(child, switch), (switch, child)].map(link));
    }
}

/// A prefix of switch names that is not a prefix of a host name.
fn prefix(nodes: &[Node]) -> String {
    let mut prefix = "level".to_owned();
    while nodes.iter().any(|node| node.name.starts_with(&format!("{prefix}-"))) {
        prefix.push('_');
    }
    prefix
}
