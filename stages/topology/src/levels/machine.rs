//! Known values of a machine: between hosts, and between the slots of each host.

use std::borrow::Cow;

use hopmap_model::{CostModel, CostsError, Fit, Measurements, NodeKind, NodeState, Sample, SystemGraph};

use super::{LevelCost, LevelsError, LevelsParams};
use crate::fit::fits;
use hopmap_machines::params::MachineError;

const MICROSECONDS: f64 = 1e6;
/// Largest number of slots of a machine whose routes are examined pair by pair.
const MOST_ROUTED: usize = 8192;

/// Hosts with their slots, and the values between them.
#[derive(Debug)]
pub(super) struct Machine {
    pub(super) hosts: Vec<Host>,
    /// Indexes of the hosts with slots.
    pub(super) up: Vec<usize>,
    /// Values between hosts with slots.
    pub(super) between: Known,
    /// Whether latencies are in microseconds; otherwise their unit is unknown.
    pub(super) is_measured: bool,
}

/// A host.
#[derive(Debug)]
pub(super) struct Host {
    pub(super) name: String,
    /// The cores of its slots.
    pub(super) cores: Vec<u32>,
    /// Values between its slots.
    pub(super) inside: Known,
}

/// Known values of pairs.
#[derive(Debug)]
pub(super) struct Known {
    /// The clustering distance: the shorter direction.
    pub(super) latency: Pairs,
    /// The longer direction, if both were measured separately.
    pub(super) longer: Option<Pairs>,
    /// The cost, if it is not the latency.
    pub(super) cost: Option<Pairs>,
    /// Bytes per second of the slower direction.
    pub(super) bandwidth: Option<Pairs>,
    /// Whether a latency is an estimate; empty if all were measured.
    estimated: Vec<bool>,
}

impl Known {
    fn unknown(count: usize, with_cost: bool) -> Self {
        let unknown = || Pairs::unknown(count);
        Self {
            latency: unknown(),
            longer: Some(unknown()),
            cost: with_cost.then(unknown),
            bandwidth: Some(unknown()),
            estimated: Vec::new(),
        }
    }

    fn matrix(latency: Pairs) -> Self {
        Self { latency, longer: None, cost: None, bandwidth: None, estimated: Vec::new() }
    }

    /// The cost of pairs.
    pub(super) fn cost(&self) -> &Pairs {
        self.cost.as_ref().unwrap_or(&self.latency)
    }

    /// Whether the latency at an index of the upper triangle is an estimate.
    pub(super) fn is_estimated(&self, place: usize) -> bool {
        self.estimated.get(place).copied().unwrap_or(false)
    }

    fn complete(&mut self) -> Result<usize, (usize, usize)> {
        let estimated: Vec<bool> = self.latency.values().iter().map(|value| value.is_nan()).collect();
        let count = self.latency.complete()?;
        if count > 0 {
            self.estimated = estimated;
        }
        Ok(count)
    }
}

impl Machine {
    /// The endpoints that answered, grouped by host. Between two hosts, the first measured pair of endpoints
    /// is used.
    pub(super) fn measured(measured: &Measurements, params: &LevelsParams) -> Result<Self, LevelsError> {
        let mut slots = Slots::default();
        let mut hosts = Vec::new();
        for (name, first, count) in measured.hosts() {
            let endpoints = first..first + count;
            let is_up = |endpoint: &u32| measured.endpoints[*endpoint as usize].state == NodeState::Up;
            let up: Vec<u32> = endpoints.clone().filter(is_up).collect();
            slots.add(hosts.len(), endpoints.len(), &up, first);
            let cores = up.iter().map(|&endpoint| measured.endpoints[endpoint as usize].core).collect();
            let inside = Known::unknown(up.len(), params.cost == LevelCost::Time);
            hosts.push(Host { name: name.to_owned(), cores, inside });
        }
        let up: Vec<usize> = (0..hosts.len()).filter(|&host| !hosts[host].cores.is_empty()).collect();
        if up.is_empty() {
            return Err(nobody_up(hosts.len()));
        }
        let between = Known::unknown(up.len(), params.cost == LevelCost::Time);
        let mut machine = Self { hosts, up, between, is_measured: true };
        machine.read_latencies(measured, &slots);
        machine.read_fits(measured, &slots, params);
        Ok(machine)
    }

    fn read_latencies(&mut self, measured: &Measurements, slots: &Slots) {
        let mut place_of_host = vec![usize::MAX; self.hosts.len()];
        self.up.iter().enumerate().for_each(|(place, &host)| place_of_host[host] = place);
        // Sorted by endpoints: the first pair of two hosts precedes all their other pairs.
        let directions = directions(measured);
        for direction in &directions {
            let back = directions
                .binary_search_by_key(&(direction.destination, direction.source), Direction::pair)
                .map(|index| &directions[index]);
            if back.is_ok() && direction.source > direction.destination {
                continue;
            }
            let ends = (direction.source, direction.destination);
            let Some((known, one, other)) = self.known(slots, ends, &place_of_host) else { continue };
            if !known.latency.get(one, other).is_nan() {
                continue;
            }
            let (shorter, longer) = direction.with(back.ok());
            known.latency.set(one, other, microseconds(shorter));
            if let (Some(longer), Some(pairs)) = (longer, &mut known.longer) {
                pairs.set(one, other, microseconds(longer));
            }
        }
    }

    /// Values of the pairs to which two slots belong.
    fn known(
        &mut self,
        slots: &Slots,
        (a, b): (u32, u32),
        place_of_host: &[usize],
    ) -> Option<(&mut Known, usize, usize)> {
        let ((host_a, slot_a), (host_b, slot_b)) = (slots.of(a)?, slots.of(b)?);
        Some(match host_a == host_b {
            true => (&mut self.hosts[host_a].inside, slot_a, slot_b),
            false => (&mut self.between, place_of_host[host_a], place_of_host[host_b]),
        })
    }

    fn read_fits(&mut self, measured: &Measurements, slots: &Slots, params: &LevelsParams) {
        let own = if measured.fits.is_empty() { fits(&measured.samples) } else { Vec::new() };
        let all = if measured.fits.is_empty() { &own } else { &measured.fits };
        let mut place_of_host = vec![usize::MAX; self.hosts.len()];
        self.up.iter().enumerate().for_each(|(place, &host)| place_of_host[host] = place);
        for of_pair in all.chunk_by(|a, b| (a.source, a.destination) == (b.source, b.destination)) {
            let ends = (of_pair[0].source, of_pair[0].destination);
            let Some((known, one, other)) = self.known(slots, ends, &place_of_host) else { continue };
            let smaller = |pairs: &mut Pairs, value: f64| {
                // The smaller value of both directions; `min` prefers any number to NaN.
                pairs.set(one, other, value.min(pairs.get(one, other)));
            };
            if let (Some(cost), Some(bytes)) = (&mut known.cost, params.bytes) {
                smaller(cost, microseconds(time(of_pair, bytes)));
            }
            let bandwidth = of_pair.iter().rev().find_map(|fit| fit.bandwidth_bytes_per_s);
            if let (Some(pairs), Some(bandwidth)) = (&mut known.bandwidth, bandwidth) {
                smaller(pairs, bandwidth);
            }
        }
    }

    /// The hosts and slots of a machine with a cost matrix or route costs; both directions and the slots of
    /// two hosts are averaged.
    pub(super) fn of_matrix(system: &SystemGraph) -> Result<Self, LevelsError> {
        system.check().map_err(LevelsError::Machine)?;
        let matrix = match &system.cost {
            CostModel::Levels(_) => {
                let help =
                    "use the machine topology directly; topology/levels needs a cost matrix or route costs";
                return Err(
                    MachineError::new("the costs of this machine topology are already levels", help).into()
                );
            }
            CostModel::Matrix(matrix) => Cow::Borrowed(matrix),
            CostModel::Routes(_) if system.slots.len() > MOST_ROUTED => {
                let (slots, most) = (system.slots.len(), MOST_ROUTED);
                return Err(LevelsError::Costs(CostsError::TooMany { slots, most }));
            }
            CostModel::Routes(_) => Cow::Owned(system.matrix().map_err(LevelsError::Costs)?),
        };
        let mut hosts = Vec::new();
        let mut slots: Vec<usize> = vec![0; system.nodes.len()];
        let mut host_of_node = vec![usize::MAX; system.nodes.len()];
        for (node, is_host) in system.nodes.iter().enumerate().filter(|(_, node)| node.kind == NodeKind::Host)
        {
            host_of_node[node] = hosts.len();
            hosts.push(Host {
                name: is_host.name.clone(),
                cores: Vec::new(),
                inside: Known::matrix(Pairs::unknown(0)),
            });
        }
        let mut first = vec![0; hosts.len()];
        for (slot, place) in system.slots.iter().enumerate() {
            let host = host_of_node[place.host as usize];
            if hosts[host].cores.is_empty() {
                first[host] = slot;
            }
            hosts[host].cores.push(place.core);
            slots[place.host as usize] += 1;
        }
        let up: Vec<usize> = (0..hosts.len()).filter(|&host| !hosts[host].cores.is_empty()).collect();
        if up.is_empty() {
            return Err(nobody_up(hosts.len()));
        }
        let side = system.slots.len();
        let both = |a: usize, b: usize| f64::midpoint(matrix.costs[a * side + b], matrix.costs[b * side + a]);
        for (host, &first) in hosts.iter_mut().zip(&first) {
            host.inside = Known::matrix(filled(host.cores.len(), |a, b| both(first + a, first + b)));
        }
        let mean = |a: usize, b: usize| {
            let [(first_a, a), (first_b, b)] =
                [up[a], up[b]].map(|host| (first[host], hosts[host].cores.len()));
            let rows = (0..a).flat_map(|x| (0..b).map(move |y| (x, y)));
            rows.map(|(x, y)| both(first_a + x, first_b + y)).sum::<f64>().min(f64::MAX) / (a * b) as f64
        };
        let between = Known::matrix(filled(up.len(), mean));
        Ok(Self { hosts, up, between, is_measured: false })
    }

    /// The ninth decile of the ratio between the two directions of a pair; one if unknown.
    pub(super) fn noise(&self) -> f64 {
        let known = self.hosts.iter().map(|host| &host.inside).chain([&self.between]);
        let mut ratios: Vec<f64> = known
            .filter_map(|known| Some((&known.latency, known.longer.as_ref()?)))
            .flat_map(|(shorter, longer)| shorter.values().iter().zip(longer.values()))
            .filter(|(shorter, longer)| **shorter > 0.0 && !longer.is_nan())
            .map(|(shorter, longer)| longer / shorter)
            .collect();
        if ratios.len() < 10 {
            return 1.0;
        }
        let place = ratios.len() * 9 / 10;
        *ratios.select_nth_unstable_by(place, f64::total_cmp).1
    }

    /// Estimates unmeasured pairs; returns their number and that of all pairs.
    pub(super) fn complete(&mut self) -> Result<(usize, usize), LevelsError> {
        let named = |one: String, other: String| {
            let problem = format!("no measurements connect {one} and {other}, directly or indirectly");
            MachineError::new(problem, "measure again with more pairs, or exclude these endpoints")
        };
        let pairs = |count: usize| count * count.saturating_sub(1) / 2;
        let mut estimated = self.between.complete().map_err(|(a, b)| {
            let [one, other] = [a, b].map(|place| format!("host `{}`", self.hosts[self.up[place]].name));
            named(one, other)
        })?;
        let mut all = pairs(self.up.len());
        for host in &mut self.hosts {
            all += pairs(host.cores.len());
            estimated += host.inside.complete().map_err(|(a, b)| {
                let [one, other] =
                    [a, b].map(|slot| format!("core {} of host `{}`", host.cores[slot], host.name));
                named(one, other)
            })?;
        }
        Ok((estimated, all))
    }

    /// Number of slots of each host with slots.
    pub(super) fn slot_counts(&self) -> Vec<usize> {
        self.up.iter().map(|&host| self.hosts[host].cores.len()).collect()
    }

    /// Number of hosts with slots.
    pub(super) fn host_count(&self) -> usize {
        self.up.len()
    }
}

fn nobody_up(hosts: usize) -> LevelsError {
    let help = "check the log of topology/probe";
    MachineError::new(format!("none of the endpoints of {hosts} hosts answered"), help).into()
}

fn filled(count: usize, value: impl Fn(usize, usize) -> f64) -> Pairs {
    let mut pairs = Pairs::unknown(count);
    for a in 0..count {
        for b in a + 1..count {
            pairs.set(a, b, value(a, b));
        }
    }
    pairs
}

/// Seconds as finite microseconds.
fn microseconds(seconds: f64) -> f64 {
    (seconds * MICROSECONDS).min(f64::MAX)
}

/// Message time for a size, by the fits of its pair.
fn time(fits: &[Fit], bytes: u64) -> f64 {
    let fit = fits.iter().rev().find(|fit| fit.from_bytes <= bytes).unwrap_or(&fits[0]);
    fit.latency_s.max(0.0) + fit.bandwidth_bytes_per_s.map_or(0.0, |bandwidth| bytes as f64 / bandwidth)
}

/// The smallest message from one endpoint to another.
#[derive(Debug, Clone, Copy)]
struct Direction {
    source: u32,
    destination: u32,
    bytes: u64,
    /// Half of the shortest round trip.
    latency_s: f64,
}

impl Direction {
    fn pair(&self) -> (u32, u32) {
        (self.source, self.destination)
    }

    /// The shorter time of both directions, and the longer one if both used the same message size; otherwise
    /// the smaller message gives the latency, as in [`Measurements::latencies`].
    fn with(&self, back: Option<&Self>) -> (f64, Option<f64>) {
        match back {
            Some(back) if back.bytes == self.bytes => {
                (self.latency_s.min(back.latency_s), Some(self.latency_s.max(back.latency_s)))
            }
            Some(back) if back.bytes < self.bytes => (back.latency_s, None),
            _ => (self.latency_s, None),
        }
    }
}

/// All measured directions, sorted.
fn directions(measured: &Measurements) -> Vec<Direction> {
    let pairs = measured.samples.chunk_by(|a, b| (a.source, a.destination) == (b.source, b.destination));
    let direction = |samples: &[Sample]| {
        let bytes = samples.iter().map(|sample| sample.bytes).min().unwrap_or(0);
        let smallest = samples.iter().filter(|sample| sample.bytes == bytes);
        let shortest = smallest.map(|sample| sample.minimum_s).fold(f64::INFINITY, f64::min);
        let Sample { source, destination, .. } = samples[0];
        Direction { source, destination, bytes, latency_s: shortest / 2.0 }
    };
    pairs.map(direction).collect()
}

/// Host and slot of each endpoint that answered.
#[derive(Debug, Default)]
struct Slots(Vec<Option<(usize, usize)>>);

impl Slots {
    fn add(&mut self, host: usize, endpoints: usize, up: &[u32], first: u32) {
        let begin = self.0.len();
        self.0.resize(begin + endpoints, None);
        up.iter().enumerate().for_each(|(slot, &endpoint)| {
            self.0[begin + (endpoint - first) as usize] = Some((host, slot));
        });
    }

    fn of(&self, endpoint: u32) -> Option<(usize, usize)> {
        self.0[endpoint as usize]
    }
}

/// A value for each unordered pair; `NaN` if unknown.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Pairs {
    count: usize,
    /// Upper triangle, row by row.
    values: Vec<f64>,
}

impl Pairs {
    /// All values unknown.
    pub(super) fn unknown(count: usize) -> Self {
        Self { count, values: vec![f64::NAN; count * count.saturating_sub(1) / 2] }
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }

    pub(super) fn values(&self) -> &[f64] {
        &self.values
    }

    fn index(&self, a: usize, b: usize) -> usize {
        let (a, b) = if a < b { (a, b) } else { (b, a) };
        a * (2 * self.count - a - 1) / 2 + b - a - 1
    }

    /// The value of two distinct items.
    pub(super) fn get(&self, a: usize, b: usize) -> f64 {
        self.values[self.index(a, b)]
    }

    /// Sets the value of two distinct items.
    pub(super) fn set(&mut self, a: usize, b: usize, value: f64) {
        let index = self.index(a, b);
        self.values[index] = value;
    }

    /// All pairs (smaller index first) with their values.
    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, usize, f64)> + '_ {
        let pairs = (0..self.count).flat_map(|a| (a + 1..self.count).map(move |b| (a, b)));
        pairs.zip(&self.values).map(|((a, b), &value)| (a, b, value))
    }

    /// Estimates unknown values: the smallest bottleneck of a path over known pairs, which is the height at
    /// which the two would join in a tree. Returns their number, or two unconnected items.
    pub(super) fn complete(&mut self) -> Result<usize, (usize, usize)> {
        let unknown = self.values.iter().filter(|value| value.is_nan()).count();
        if unknown == 0 {
            return Ok(0);
        }
        let mut known: Vec<(usize, usize, f64)> = self.iter().filter(|(.., value)| !value.is_nan()).collect();
        known.sort_by(|a, b| a.2.total_cmp(&b.2));
        let mut group: Vec<usize> = (0..self.count).collect();
        let mut members: Vec<Vec<usize>> = (0..self.count).map(|thing| vec![thing]).collect();
        for (a, b, value) in known {
            let (a, b) = (group[a], group[b]);
            if a == b {
                continue;
            }
            let (large, small) = if members[a].len() >= members[b].len() { (a, b) } else { (b, a) };
            let joining = std::mem::take(&mut members[small]);
            for &one in &joining {
                group[one] = large;
                for &other in &members[large] {
                    let index = self.index(one, other);
                    if self.values[index].is_nan() {
                        self.values[index] = value;
                    }
                }
            }
            members[large].extend(joining);
        }
        match (1..self.count).find(|&thing| group[thing] != group[0]) {
            Some(other) => Err((0, other)),
            None => Ok(unknown),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_pairs_have_the_bottleneck_of_the_best_path() {
        let mut pairs = Pairs::unknown(4);
        for (a, b, value) in [(0, 1, 1.0), (2, 3, 2.0), (1, 2, 5.0), (0, 3, 7.0)] {
            pairs.set(b, a, value);
        }
        assert_eq!(pairs.complete(), Ok(2));
        let all: Vec<_> = pairs.iter().map(|(a, b, value)| (a, b, value as u32)).collect();
        assert_eq!(all, [(0, 1, 1), (0, 2, 5), (0, 3, 7), (1, 2, 5), (1, 3, 5), (2, 3, 2)]);
    }

    #[test]
    fn unconnected_pairs_are_named() {
        let mut pairs = Pairs::unknown(3);
        pairs.set(0, 1, 1.0);
        assert_eq!(pairs.complete(), Err((0, 2)));
        assert_eq!(Pairs::unknown(0).complete(), Ok(0));
        assert_eq!(Pairs::unknown(1).complete(), Ok(0));
    }
}
