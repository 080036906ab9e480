//! Pairs of hosts whose message times have changed.

use std::collections::BTreeMap;

use hopmap_model::{CostModel, Measurements, Sample, SystemGraph};
use hopmap_statistics::lower_median;

use crate::change::{Change, Quantity};
use crate::pair::{Both, Side};
use crate::snapshot::{Snapshot, Thresholds};

/// Uses latencies if both machines were measured, otherwise cost matrices.
pub(crate) fn changes(both: &Both<'_>, thresholds: &Thresholds) -> Vec<Change> {
    match (both.before.snapshot.measurements, both.after.snapshot.measurements) {
        (Some(before), Some(after)) => latencies(both, before, after, thresholds),
        _ => costs(both, thresholds),
    }
}

/// The one-way minimum time of the smallest message between two hosts, and the first decile minus the
/// minimum.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Latency {
    bytes: u64,
    pub(crate) seconds: f64,
    pub(crate) spread_s: f64,
}

/// Latencies of pairs of different hosts, each pair in alphabetical order.
pub(crate) fn of_hosts(measured: &Measurements) -> BTreeMap<(&str, &str), Latency> {
    let mut found: BTreeMap<(&str, &str), Latency> = BTreeMap::new();
    for sample in &measured.samples {
        let host = |endpoint: u32| measured.endpoints[endpoint as usize].host.as_str();
        let (a, b) = (host(sample.source), host(sample.destination));
        if a == b {
            continue;
        }
        let latency = Latency {
            bytes: sample.bytes,
            seconds: sample.minimum_s / 2.0,
            spread_s: (sample.first_decile_s - sample.minimum_s) / 2.0,
        };
        let best = found.entry((a.min(b), a.max(b))).or_insert(latency);
        let key = |latency: &Latency| (latency.bytes, latency.seconds.to_bits(), latency.spread_s.to_bits());
        if key(&latency) < key(best) {
            *best = latency;
        }
    }
    found
}

/// Messages from this size on, in bytes, show the data rate.
const LARGE: u64 = 1 << 16;

/// Median over all pairs of hosts of median time / minimum time of large messages; 1 if there are none.
pub(crate) fn spread_of_large(measured: &Measurements) -> f64 {
    let host = |endpoint: u32| &measured.endpoints[endpoint as usize].host;
    let is_large = |sample: &&Sample| {
        sample.bytes >= LARGE && sample.minimum_s > 0.0 && host(sample.source) != host(sample.destination)
    };
    let spread = |sample: &Sample| sample.median_s / sample.minimum_s;
    lower_median(measured.samples.iter().filter(is_large).map(spread).collect()).unwrap_or(1.0)
}

impl Snapshot<'_> {
    /// The largest factor by which the latency of two hosts changed, up or down; 1 if it was not measured
    /// both times.
    #[must_use]
    pub fn largest_ratio(&self, before: &Snapshot<'_>) -> f64 {
        let (Some(old), Some(new)) = (before.measurements, self.measurements) else { return 1.0 };
        let old = of_hosts(old);
        let ratio = |(pair, new): (_, Latency)| {
            let old = old.get(&pair)?;
            let (least, most) = (old.seconds.min(new.seconds), old.seconds.max(new.seconds));
            (least > 0.0).then_some(most / least)
        };
        of_hosts(new).into_iter().filter_map(ratio).fold(1.0, f64::max)
    }
}

/// Restores the old times of pairs of hosts if both machines have them: for drift that was not confirmed.
pub fn keep_times(before: &Measurements, after: &mut Measurements, is_kept: impl Fn(&str, &str) -> bool) {
    let ends = |measured: &Measurements, sample: &Sample| {
        [sample.source, sample.destination].map(|id| {
            let endpoint = &measured.endpoints[id as usize];
            (endpoint.host.clone(), endpoint.core)
        })
    };
    let key = |sample: &Sample| (sample.phase, sample.bytes);
    let old: BTreeMap<_, &Sample> =
        before.samples.iter().map(|sample| ((ends(before, sample), key(sample)), sample)).collect();
    let mut samples = std::mem::take(&mut after.samples);
    for sample in &mut samples {
        let ends = ends(after, sample);
        if is_kept(&ends[0].0, &ends[1].0)
            && let Some(&&was) = old.get(&(ends, key(sample)))
        {
            *sample = Sample { source: sample.source, destination: sample.destination, ..was };
        }
    }
    after.samples = samples;
}

fn change((from, to): (&str, &str), both: bool, quantity: Quantity, numbers: (f64, f64)) -> Change {
    let (from, to, (before, after)) = (from.to_owned(), to.to_owned(), numbers);
    Change::Pair { from, to, both, quantity, before, after }
}

fn latencies(
    both: &Both<'_>,
    before: &Measurements,
    after: &Measurements,
    thresholds: &Thresholds,
) -> Vec<Change> {
    let old = of_hosts(before);
    let mut changes = Vec::new();
    for ((a, b), new) in of_hosts(after) {
        let Some(old) = old.get(&(a, b)) else { continue };
        let spread = old.spread_s.max(new.spread_s);
        let known = both.comparable.contains(a) && both.comparable.contains(b);
        if known && thresholds.latencies_differ(old.seconds, new.seconds, spread) {
            changes.push(change((a, b), true, Quantity::Latency, (old.seconds, new.seconds)));
        }
    }
    changes
}

fn costs(both: &Both<'_>, thresholds: &Thresholds) -> Vec<Change> {
    let is_matrix = |side: &Side<'_>| matches!(side.snapshot.system.cost, CostModel::Matrix(_));
    if !is_matrix(&both.before) || !is_matrix(&both.after) {
        return Vec::new();
    }
    let mut found: BTreeMap<(&str, &str), (f64, f64)> = BTreeMap::new();
    let slots: BTreeMap<&str, Vec<(u32, u32)>> =
        both.comparable.iter().map(|&host| (host, common_slots(both, host))).collect();
    for (&a, from) in &slots {
        for (&b, to) in &slots {
            found.extend(worst(both, from, to, thresholds).map(|costs| ((a, b), costs)));
        }
    }
    let mut changes = Vec::new();
    for (&(a, b), &(before, after)) in &found {
        let same_back = a != b && found.get(&(b, a)) == Some(&(before, after));
        if !same_back || a < b {
            changes.push(change((a, b), same_back, Quantity::Cost, (before, after)));
        }
    }
    changes
}

/// Slots of a host before and after, by cores that both have.
fn common_slots(both: &Both<'_>, host: &str) -> Vec<(u32, u32)> {
    let cores = |system: &SystemGraph, side: &Side<'_>| -> BTreeMap<u32, u32> {
        let slots = side.hosts.get(host).map(|host| host.slots.clone()).unwrap_or_default();
        slots.map(|slot| (system.slots[slot as usize].core, slot)).collect()
    };
    let after = cores(both.after.snapshot.system, &both.after);
    let before = cores(both.before.snapshot.system, &both.before);
    before.iter().filter_map(|(core, &slot)| Some((slot, *after.get(core)?))).collect()
}

/// The costs of the two slots that have drifted most, if any.
fn worst(
    both: &Both<'_>,
    from: &[(u32, u32)],
    to: &[(u32, u32)],
    thresholds: &Thresholds,
) -> Option<(f64, f64)> {
    let (before, after) = (both.before.snapshot.system, both.after.snapshot.system);
    let pairs = from.iter().flat_map(|a| to.iter().map(move |b| (a, b)));
    let (before, after) = (before.costs(), after.costs());
    let costs = pairs.map(|(a, b)| (before.between(a.0, b.0), after.between(a.1, b.1)));
    let drift = |&(old, new): &(f64, f64)| old.max(new) / old.min(new);
    costs
        .filter(|&(old, new)| thresholds.differ(old, new))
        .max_by(|x, y| drift(x).total_cmp(&drift(y)).then(x.0.total_cmp(&y.0)).then(x.1.total_cmp(&y.1)))
}
