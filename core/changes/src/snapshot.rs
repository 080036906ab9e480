//! A machine at one point in time.

use std::collections::{BTreeMap, BTreeSet};

use hopmap_model::{Measurements, NodeKind, NodeState, SystemGraph};

/// A machine at one point in time, borrowed.
#[derive(Debug, Clone, Copy)]
pub struct Snapshot<'a> {
    /// Its hosts, links and costs.
    pub system: &'a SystemGraph,
    /// The measurements of a probe, if there was one.
    pub measurements: Option<&'a Measurements>,
}

/// A machine at one point in time.
#[derive(Debug, Clone, PartialEq)]
pub struct Machine {
    /// Its hosts, links and costs.
    pub system: SystemGraph,
    /// The measurements of a probe, if there was one.
    pub measurements: Option<Measurements>,
}

impl Machine {
    /// Borrows the machine.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot<'_> {
        Snapshot { system: &self.system, measurements: self.measurements.as_ref() }
    }
}

impl Snapshot<'_> {
    /// Names of the hosts that are up, and of those that are down, each in alphabetical order.
    #[must_use]
    pub fn hosts(&self) -> (Vec<&str>, Vec<&str>) {
        let (up, down): (Vec<_>, Vec<_>) = hosts(self).into_iter().partition(|(_, host)| host.up);
        let names = |hosts: Vec<(_, _)>| hosts.into_iter().map(|(name, _)| name).collect();
        (names(up), names(down))
    }
}

/// Data of a host in a snapshot.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Host {
    /// Whether it answered.
    pub(crate) up: bool,
    /// Its slots.
    pub(crate) slots: std::ops::Range<u32>,
}

impl Host {
    /// Whether only its name and state are known.
    pub(crate) fn is_bare(&self) -> bool {
        !self.up && self.slots.is_empty()
    }
}

/// All hosts by name: those of the system and those that the measurements queried.
pub(crate) fn hosts<'a>(snapshot: &Snapshot<'a>) -> BTreeMap<&'a str, Host> {
    let system = snapshot.system;
    let host = |node: &'a hopmap_model::Node| {
        (node.name.as_str(), Host { up: node.state == NodeState::Up, slots: 0..0 })
    };
    let nodes = system.nodes.iter().filter(|node| node.kind == NodeKind::Host);
    let mut hosts: BTreeMap<&str, Host> = nodes.map(host).collect();
    for (node, first, count) in system.hosts() {
        if let Some(host) = hosts.get_mut(system.nodes[node as usize].name.as_str()) {
            host.slots = first..first + count;
        }
    }
    for endpoint in snapshot.measurements.iter().flat_map(|measured| &measured.endpoints) {
        let host = hosts.entry(&endpoint.host).or_insert(Host { up: true, slots: 0..0 });
        host.up &= endpoint.state == NodeState::Up;
    }
    hosts
}

/// Level in a generated name of a switch, such as `level-2-0` or `switch-1-3`.
pub(crate) fn made_up(name: &str) -> Option<u32> {
    let rest = name.strip_prefix("level-").or_else(|| name.strip_prefix("switch-"))?;
    let (level, index) = rest.split_once('-')?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    (is_number(level) && is_number(index)).then(|| level.parse().ok())?
}

/// The neighbours of every node, in either direction.
pub(crate) fn neighbours(system: &SystemGraph) -> Vec<BTreeSet<u32>> {
    let mut neighbours = vec![BTreeSet::new(); system.nodes.len()];
    for link in system.links.iter().filter(|link| link.source != link.destination) {
        neighbours[link.source as usize].insert(link.destination);
        neighbours[link.destination as usize].insert(link.source);
    }
    neighbours
}

/// Number of links to the nearest host; `u32::MAX` if there is none.
pub(crate) fn tiers(system: &SystemGraph, neighbours: &[BTreeSet<u32>]) -> Vec<u32> {
    let is_host = |node: &hopmap_model::Node| node.kind == NodeKind::Host;
    let mut tiers: Vec<u32> =
        system.nodes.iter().map(|node| if is_host(node) { 0 } else { u32::MAX }).collect();
    let mut reached: Vec<u32> =
        (0..).zip(&system.nodes).filter(|(_, node)| is_host(node)).map(|(id, _)| id).collect();
    let mut tier = 0;
    while !reached.is_empty() {
        tier += 1;
        let mut next = Vec::new();
        for &other in reached.iter().flat_map(|&id| &neighbours[id as usize]) {
            if tiers[other as usize] == u32::MAX {
                tiers[other as usize] = tier;
                next.push(other);
            }
        }
        reached = next;
    }
    tiers
}

/// Names of the hosts below a switch: those reached over nodes of decreasing distance to hosts.
pub(crate) fn below<'a>(
    system: &'a SystemGraph,
    neighbours: &[BTreeSet<u32>],
    height: &[u32],
    switch: u32,
) -> BTreeSet<&'a str> {
    let (mut open, mut seen) = (vec![switch], BTreeSet::from([switch]));
    let mut hosts = BTreeSet::new();
    while let Some(node) = open.pop() {
        if system.nodes[node as usize].kind == NodeKind::Host {
            hosts.insert(system.nodes[node as usize].name.as_str());
        }
        let lower =
            neighbours[node as usize].iter().filter(|&&other| height[other as usize] < height[node as usize]);
        open.extend(lower.filter(|&&other| seen.insert(other)));
    }
    hosts
}

/// Minimum differences that count as a change.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Thresholds {
    /// Minimum relative change of a time, bandwidth or cost, as a fraction of the smaller value.
    pub drift: f64,
    /// Minimum change of a measured latency in seconds, which clocks and schedulers can resolve.
    pub least_s: f64,
    /// A latency also has to change by more than its spread (first decile minus minimum), up to this many
    /// seconds.
    pub noisiest_s: f64,
    /// A measured rate has to change by a larger factor than the spread of large messages, up to this factor.
    pub noisiest_rate: f64,
}

impl Default for Thresholds {
    /// 30 %, and between 0.2 and 20 µs. Minimum times of unchanged pairs vary by up to 5 % between runs on
    /// busy hosts, and by at most 20 µs if a switch is a process. Rates there vary by a factor of 1.4 between
    /// runs.
    fn default() -> Self {
        Self { drift: 0.3, least_s: 2e-7, noisiest_s: 20e-6, noisiest_rate: 2.0 }
    }
}

impl Thresholds {
    /// Whether two numbers differ by more than the threshold, symmetric in time.
    pub(crate) fn differ(&self, before: f64, after: f64) -> bool {
        before.max(after) > before.min(after) * (1.0 + self.drift)
    }

    /// Whether two rates differ, for large messages that take `spread` times their minimum time.
    pub(crate) fn rates_differ(&self, before: f64, after: f64, spread: f64) -> bool {
        self.differ(before, after) && before.max(after) > before.min(after) * spread.min(self.noisiest_rate)
    }

    /// Whether two latencies differ that have a spread of `spread_s`.
    pub(crate) fn latencies_differ(&self, before: f64, after: f64, spread_s: f64) -> bool {
        let floor = spread_s.min(self.noisiest_s).max(self.least_s);
        (before - after).abs() > floor && self.differ(before, after)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_names_are_recognized() {
        assert_eq!(made_up("level-2-0"), Some(2));
        assert_eq!(made_up("switch-1-13"), Some(1));
        for name in ["level-2", "level-a-0", "switch-1-", "leaf-1-2", "level--1", "level-99999999999-1"] {
            assert_eq!(made_up(name), None, "{name}");
        }
    }

    #[test]
    fn drift_is_the_same_in_both_directions_and_needs_more_than_noise() {
        let thresholds = Thresholds::default();
        for (before, after, spread, differs) in [
            (305e-6, 412e-6, 0.0, true),
            (300e-6, 380e-6, 0.0, false),
            (0.3e-6, 0.45e-6, 0.0, false),
            (1.2e-6, 1.8e-6, 1e-6, false),
            (1.2e-6, 1.8e-6, 0.0, true),
            (40e-6, 55e-6, 18e-6, false),
            (40e-6, 65e-6, 1.0, true),
            (0.0, 3e-6, 0.0, true),
        ] {
            assert_eq!(thresholds.latencies_differ(before, after, spread), differs, "{before} {after}");
            assert_eq!(thresholds.latencies_differ(after, before, spread), differs, "{after} {before}");
        }
        assert!(!thresholds.differ(0.0, 0.0));
        for (before, after, spread, differs) in
            [(6e8, 8e8, 1.0, true), (6e8, 8e8, 1.5, false), (6e8, 13e8, 9.0, true), (6e8, 7e8, 1.0, false)]
        {
            assert_eq!(thresholds.rates_differ(before, after, spread), differs, "{before} {after}");
            assert_eq!(thresholds.rates_differ(after, before, spread), differs, "{after} {before}");
        }
    }
}
