//! What was measured of hosts that are down.

use std::collections::{BTreeMap, BTreeSet};

use hopmap_model::{Endpoint, Fit, Measurements, NodeState, Sample};

/// The measurements after, and those of hosts that did not answer from before.
pub(super) fn restore(before: &Measurements, after: &Measurements) -> Measurements {
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
    Measurements { endpoints, samples, fits }
}

/// Hosts that were asked, did not answer and have no samples, but had before.
fn lost_hosts<'a>(before: &'a Measurements, after: &'a Measurements) -> BTreeSet<&'a str> {
    let host = |id: u32| after.endpoints[id as usize].host.as_str();
    let measured: BTreeSet<&str> =
        after.samples.iter().flat_map(|sample| [host(sample.source), host(sample.destination)]).collect();
    let known: BTreeSet<&str> = before.endpoints.iter().map(|endpoint| endpoint.host.as_str()).collect();
    let is_down = |first: u32| after.endpoints[first as usize].state == NodeState::Down;
    let lost = after.hosts().filter(|(host, first, _)| is_down(*first) && !measured.contains(host));
    lost.map(|(host, ..)| host).filter(|host| known.contains(host)).collect()
}
