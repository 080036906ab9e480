//! Hosts that do not answer keep their last known data.

mod system;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use hopmap_model::{
    CallTime, Endpoint, Fit, Measurements, NodeKind, NodeState, Sample, StreamRate, SystemGraph,
};

use crate::snapshot::{Host, Machine, Snapshot, Thresholds, hosts};

/// The state of a host that the source no longer lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// It is down.
    Down,
    /// It is gone.
    Gone,
}

/// The machine after, in which hosts that are down keep their last data: slots, links, costs, samples and
/// fits.
///
/// A host is down if its node or one of its endpoints is. `missing` is the state of a host that is not
/// listed; in a measured machine it is gone, because measurements list every host that was queried. Hosts
/// keep their position, so only the states of these hosts differ.
#[must_use]
pub fn keep_down(before: &Snapshot<'_>, after: &Snapshot<'_>, missing: Missing) -> Machine {
    let (old, new) = (hosts(before), hosts(after));
    let missing = if after.measurements.is_some() { Missing::Gone } else { missing };
    let is_restored = |(name, was): &(&&str, &Host)| match new.get(**name) {
        Some(host) => host.is_bare() && !was.slots.is_empty(),
        None => missing == Missing::Down && (was.up || !was.slots.is_empty()),
    };
    let restored: BTreeSet<&str> = old.iter().filter(is_restored).map(|(name, _)| *name).collect();
    let mut system = match restored.is_empty() {
        true => after.system.clone(),
        false if is_unchanged(before, after, &restored) => before.system.clone(),
        false => system::restore(before, after, &restored),
    };
    let measurements = match (before.measurements, after.measurements) {
        (Some(before), Some(after)) => Some(restore(before, after)),
        (_, after) => after.cloned(),
    };
    for node in system.nodes.iter_mut().filter(|node| node.kind == NodeKind::Host) {
        let is_down =
            new.get(node.name.as_str()).map_or(restored.contains(node.name.as_str()), |host| !host.up);
        node.state = if is_down { NodeState::Down } else { NodeState::Up };
    }
    Machine { system, measurements }
}

/// Whether the old machine still describes the hosts that answer: apart from hosts that are down, the same
/// hosts, slots and costs. Then only states have changed, even if a different tree was derived without the
/// hosts that are down.
fn is_unchanged(before: &Snapshot<'_>, after: &Snapshot<'_>, down: &BTreeSet<&str>) -> bool {
    if before.measurements.is_none() || after.measurements.is_none() {
        return false;
    }
    let (old, new) = (slots_by_host(before.system), slots_by_host(after.system));
    let is_known = |(name, slots): &(&&str, &Vec<(u32, u32)>)| {
        let cores = |slots: &Vec<(u32, u32)>| slots.iter().map(|slot| slot.1).collect::<Vec<_>>();
        old.get(**name).is_some_and(|was| cores(was) == cores(slots))
    };
    let left = old.keys().filter(|name| !down.contains(**name)).count();
    left == new.len() && new.iter().all(|host| is_known(&host)) && cost_the_same(before, after, &old, &new)
}

/// Slots with their cores by the name of their host.
fn slots_by_host(system: &SystemGraph) -> HashMap<&str, Vec<(u32, u32)>> {
    let mut hosts: HashMap<&str, Vec<(u32, u32)>> = HashMap::new();
    for (index, slot) in (0..).zip(&system.slots) {
        hosts.entry(system.nodes[slot.host as usize].name.as_str()).or_default().push((index, slot.core));
    }
    hosts
}

/// Whether the first slots of all hosts, and the slots within each host, have the same costs as before.
fn cost_the_same(
    before: &Snapshot<'_>,
    after: &Snapshot<'_>,
    old: &HashMap<&str, Vec<(u32, u32)>>,
    new: &HashMap<&str, Vec<(u32, u32)>>,
) -> bool {
    let thresholds = Thresholds::default();
    let (old_costs, new_costs) = (before.system.costs(), after.system.costs());
    let same = |was: (u32, u32), is: (u32, u32)| {
        let (was, is) = (old_costs.between(was.0, was.1), new_costs.between(is.0, is.1));
        !thresholds.differ(was, is)
    };
    let names: Vec<&str> = new.keys().copied().collect();
    let among_hosts = |(index, one): (usize, &&str)| {
        names[index + 1..].iter().all(|other| {
            let first = |hosts: &HashMap<&str, Vec<(u32, u32)>>| (hosts[*one][0].0, hosts[*other][0].0);
            same(first(old), first(new))
        })
    };
    let inside = |name: &&str| {
        let (was, is) = (&old[*name], &new[*name]);
        (0..is.len()).all(|a| (0..a).all(|b| same((was[a].0, was[b].0), (is[a].0, is[b].0))))
    };
    names.iter().enumerate().all(among_hosts) && names.iter().all(inside)
}

/// The new measurements, with the old ones of hosts that did not answer.
fn restore(before: &Measurements, after: &Measurements) -> Measurements {
    let lost = lost_hosts(before, after);
    let mut endpoints: Vec<Endpoint> = Vec::new();
    let (mut of_old, mut of_new) = (BTreeMap::new(), BTreeMap::new());
    let known: BTreeMap<&str, (u32, u32)> =
        before.hosts().map(|(host, first, count)| (host, (first, count))).collect();
    for (host, first, count) in after.hosts() {
        let (from, side, ids, range) = match known.get(host) {
            Some(&(first, count)) if lost.contains(host) => (before, true, &mut of_old, first..first + count),
            _ => (after, false, &mut of_new, first..first + count),
        };
        for id in range {
            ids.insert(id, endpoints.len() as u32);
            let endpoint = from.endpoints[id as usize].clone();
            endpoints.push(if side { Endpoint { state: NodeState::Down, ..endpoint } } else { endpoint });
        }
    }
    let place: BTreeMap<(&str, u32), u32> = endpoints
        .iter()
        .zip(0..)
        .map(|(endpoint, id)| ((endpoint.host.as_str(), endpoint.core), id))
        .collect();
    for (id, endpoint) in (0..).zip(&before.endpoints) {
        if let Some(&new) = place.get(&(endpoint.host.as_str(), endpoint.core)) {
            of_old.entry(id).or_insert(new);
        }
    }
    let is_lost = |id: u32| lost.contains(before.endpoints[id as usize].host.as_str());
    let old = |source: u32, destination: u32| {
        let ends = of_old.get(&source).copied().zip(of_old.get(&destination).copied());
        ends.filter(|_| is_lost(source) || is_lost(destination))
    };
    let new =
        |source: u32, destination: u32| of_new.get(&source).copied().zip(of_new.get(&destination).copied());
    let moved_sample = |sample: &Sample, ends: Option<(u32, u32)>| {
        ends.map(|(source, destination)| Sample { source, destination, ..*sample })
    };
    let moved_fit = |fit: &Fit, ends: Option<(u32, u32)>| {
        ends.map(|(source, destination)| Fit { source, destination, ..*fit })
    };
    let of_before = before.samples.iter().filter_map(|s| moved_sample(s, old(s.source, s.destination)));
    let of_after = after.samples.iter().filter_map(|s| moved_sample(s, new(s.source, s.destination)));
    let mut samples: Vec<Sample> = of_before.chain(of_after).collect();
    samples.sort_by_key(|sample| (sample.source, sample.destination, sample.phase, sample.bytes));
    let of_before = before.fits.iter().filter_map(|f| moved_fit(f, old(f.source, f.destination)));
    let of_after = after.fits.iter().filter_map(|f| moved_fit(f, new(f.source, f.destination)));
    let mut fits: Vec<Fit> = of_before.chain(of_after).collect();
    fits.sort_by_key(|fit| (fit.source, fit.destination, fit.from_bytes));
    let moved_call = |call: &CallTime, ends: Option<(u32, u32)>| {
        ends.map(|(source, destination)| CallTime { source, destination, ..*call })
    };
    let of_before = before.calls.iter().filter_map(|c| moved_call(c, old(c.source, c.destination)));
    let of_after = after.calls.iter().filter_map(|c| moved_call(c, new(c.source, c.destination)));
    let mut calls: Vec<CallTime> = of_before.chain(of_after).collect();
    calls.sort_by_key(|call| (call.source, call.destination, call.call, call.bytes));
    // Those of a step belong together: streams of before would be added to others.
    let moved_stream = |stream: &StreamRate| {
        let (source, destination) = new(stream.source, stream.destination)?;
        Some(StreamRate { source, destination, ..*stream })
    };
    let mut streams: Vec<StreamRate> = after.streams.iter().filter_map(moved_stream).collect();
    streams.sort_by_key(|stream| (stream.step, stream.source));
    Measurements { endpoints, samples, fits, calls, streams, eager_limit: after.eager_limit }
}

/// Hosts that were queried, did not answer and have no samples now, but had some before.
fn lost_hosts<'a>(before: &'a Measurements, after: &'a Measurements) -> BTreeSet<&'a str> {
    let host = |id: u32| after.endpoints[id as usize].host.as_str();
    let measured: BTreeSet<&str> =
        after.samples.iter().flat_map(|sample| [host(sample.source), host(sample.destination)]).collect();
    let known: BTreeSet<&str> = before.endpoints.iter().map(|endpoint| endpoint.host.as_str()).collect();
    let is_down = |first: u32| after.endpoints[first as usize].state == NodeState::Down;
    let lost = after.hosts().filter(|(host, first, _)| is_down(*first) && !measured.contains(host));
    lost.map(|(host, ..)| host).filter(|host| known.contains(host)).collect()
}
