//! Agglomerative clustering by average linkage of logarithms (Sokal and Michener, University of Kansas Science Bulletin 38, 1958),
//! by the nearest-neighbour chain (Müllner, arXiv:1109.2378) of the crate `kodama`, which is sequential: ties go by index.

use kodama::{Method, linkage};

use hopmap_statistics::lower_median;

use super::machine::{Known, Machine};
use super::pairs::Pairs;
use super::repair;

/// Repaired pairs that are named in the log.
const MOST_NAMED: usize = 5;

/// Two clusters that become one.
#[derive(Debug, Clone)]
pub(super) struct Join {
    /// A slot of each.
    pub(super) slots: (u32, u32),
    /// Logarithm of what pairs of the two take: their lower median, as noise only adds; no less than of either cluster.
    pub(super) height: f64,
    /// Logarithms of all pairs of the two.
    pub(super) values: Vec<f64>,
    /// Whether the two are hosts, or clusters of hosts.
    pub(super) is_of_hosts: bool,
    /// Whether the longer direction of the only pair of the two agrees with the shorter one; `None` if there are more pairs.
    pub(super) agrees: Option<bool>,
}

/// All joins of a machine, those inside every host and those between hosts, clusters after what they are made of.
pub(super) fn machine(machine: &Machine, gap: f64, notes: &mut Vec<String>) -> Vec<Join> {
    let floor = floor(machine);
    let mut joins = Vec::new();
    let mut first_slots = Vec::with_capacity(machine.up.len());
    let mut heights = Vec::with_capacity(machine.up.len());
    let mut slot = 0;
    for &index in &machine.up {
        let host = &machine.hosts[index];
        let name = |slot: usize| format!("core {} of {}", host.cores[slot], host.name);
        let inside = clustered(&host.inside, floor, gap, &name, notes);
        heights.push(inside.last().map_or(f64::NEG_INFINITY, |join| join.height));
        joins.extend(
            inside.into_iter().map(|join| Join { slots: (join.slots.0 + slot, join.slots.1 + slot), ..join }),
        );
        first_slots.push(slot);
        slot += host.cores.len() as u32;
    }
    let name = |place: usize| machine.hosts[machine.up[place]].name.clone();
    let between = clustered(&machine.between, floor, gap, &name, notes);
    joins.extend(raised(between, &heights, &first_slots));
    joins
}

/// Latencies below this are taken for it: a logarithm of zero would outweigh everything else.
fn floor(machine: &Machine) -> f64 {
    let known = machine.hosts.iter().map(|host| &host.inside).chain([&machine.between]);
    let positive = known.flat_map(|known| known.latency.values()).copied().filter(|value| *value > 0.0);
    let smallest = positive.fold(f64::INFINITY, f64::min);
    if smallest.is_finite() { smallest * 1e-3 } else { 1.0 }
}

/// Joins of hosts with slots in the place of hosts, none lower than the hosts that it joins.
fn raised(between: Vec<Join>, heights: &[f64], first_slots: &[u32]) -> Vec<Join> {
    let mut group: Vec<usize> = (0..heights.len()).collect();
    let mut height_of_group = heights.to_vec();
    let raise = |join: Join| {
        let [a, b] = [join.slots.0, join.slots.1].map(|host| root(&mut group, host as usize));
        let height = join.height.max(height_of_group[a]).max(height_of_group[b]);
        group[b] = a;
        height_of_group[a] = height;
        let slots = (first_slots[join.slots.0 as usize], first_slots[join.slots.1 as usize]);
        Join { slots, height, is_of_hosts: true, ..join }
    };
    between.into_iter().map(raise).collect()
}

/// The representative of a group, ways to it halved.
pub(super) fn root(group: &mut [usize], mut member: usize) -> usize {
    while group[member] != member {
        group[member] = group[group[member]];
        member = group[member];
    }
    member
}

/// The joins of some things, with their indexes in the place of slots.
fn clustered(
    known: &Known,
    floor: f64,
    gap: f64,
    name: &dyn Fn(usize) -> String,
    notes: &mut Vec<String>,
) -> Vec<Join> {
    let logarithms = logarithms(&known.latency, floor);
    let longer = known.longer.as_ref().map(|longer| self::logarithms(longer, floor));
    let found = joins(&logarithms, longer.as_ref(), gap);
    let repairs = repair::repairs(&logarithms, longer.as_ref(), &found, gap);
    if repairs.is_empty() {
        return found;
    }
    for repair in repairs.iter().take(MOST_NAMED) {
        notes.push(format!(
            "not believed: {:.3} between {} and {}, where all others speak for {:.3}",
            libm::exp(logarithms.get(repair.a, repair.b)),
            name(repair.a),
            name(repair.b),
            libm::exp(repair.value)
        ));
    }
    if repairs.len() > MOST_NAMED {
        notes.push(format!("not believed: {} more pairs", repairs.len() - MOST_NAMED));
    }
    let mut repaired = logarithms;
    repairs.iter().for_each(|repair| repaired.set(repair.a, repair.b, repair.value));
    joins(&repaired, longer.as_ref(), gap)
}

fn logarithms(pairs: &Pairs, floor: f64) -> Pairs {
    let mut logarithms = Pairs::unknown(pairs.count());
    for (a, b, value) in pairs.iter().filter(|(.., value)| !value.is_nan()) {
        logarithms.set(a, b, libm::log(value.max(floor)));
    }
    logarithms
}

fn joins(logarithms: &Pairs, longer: Option<&Pairs>, gap: f64) -> Vec<Join> {
    let count = logarithms.count();
    if count < 2 {
        return Vec::new();
    }
    let dendrogram = linkage(&mut logarithms.values().to_vec(), count, Method::Average);
    let mut members: Vec<Vec<u32>> = (0..count as u32).map(|thing| vec![thing]).collect();
    let mut heights = vec![f64::NEG_INFINITY; count];
    let mut joins = Vec::with_capacity(count - 1);
    for step in dendrogram.steps() {
        let mut one = std::mem::take(&mut members[step.cluster1]);
        let other = std::mem::take(&mut members[step.cluster2]);
        let pairs = one.iter().flat_map(|&a| other.iter().map(move |&b| (a as usize, b as usize)));
        let values: Vec<f64> = pairs.map(|(a, b)| logarithms.get(a, b)).collect();
        let middle = lower_median(values.clone()).unwrap_or(f64::NAN);
        let height = middle.max(heights[step.cluster1]).max(heights[step.cluster2]);
        let slots = (one[0], other[0]);
        let agrees = (values.len() == 1).then(|| {
            let longer = longer.map_or(f64::NAN, |longer| longer.get(slots.0 as usize, slots.1 as usize));
            longer - values[0] < gap
        });
        joins.push(Join { slots, height, values, is_of_hosts: false, agrees });
        one.extend(other);
        members.push(one);
        heights.push(height);
    }
    joins
}
