//! Agglomerative clustering by average linkage of logarithms (Sokal and Michener, University of Kansas
//! Science Bulletin 38, 1958), by the nearest-neighbour chain (Müllner, arXiv:1109.2378) of the crate
//! `kodama`, which is sequential: ties are broken by index. Pairs that contradict all others are repaired
//! first, and all joins are divided into levels afterwards.

use hopmap_graph::DisjointSets;
use hopmap_statistics::lower_median;
use kodama::{Method, linkage};

use super::machine::{Known, Machine, Pairs};

/// Number of repaired pairs that the log names.
const MOST_NAMED: usize = 5;

/// Two clusters that are merged.
#[derive(Debug, Clone)]
pub(super) struct Join {
    /// One slot of each cluster.
    pub(super) slots: (u32, u32),
    /// Logarithmic distance of the two clusters: the lower median of their pairs, since noise is one-sided;
    /// at least the height of either cluster.
    pub(super) height: f64,
    /// Logarithms of all pairs between the two.
    pub(super) values: Vec<f64>,
    /// Whether the two are hosts or clusters of hosts.
    pub(super) is_of_hosts: bool,
    /// Whether both directions of a single pair agree; `None` if there are more pairs.
    pub(super) agrees: Option<bool>,
}

/// All joins of a machine, inside hosts and between hosts; clusters follow their parts.
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

/// Lower limit of latencies: the logarithm of a value near zero would dominate everything else.
fn floor(machine: &Machine) -> f64 {
    let known = machine.hosts.iter().map(|host| &host.inside).chain([&machine.between]);
    let positive = known.flat_map(|known| known.latency.values()).copied().filter(|value| *value > 0.0);
    let smallest = positive.fold(f64::INFINITY, f64::min);
    if smallest.is_finite() { smallest * 1e-3 } else { 1.0 }
}

/// Joins of hosts, with host indexes replaced by slots, none lower than the joins inside its hosts.
fn raised(between: Vec<Join>, heights: &[f64], first_slots: &[u32]) -> Vec<Join> {
    let mut groups = DisjointSets::new(heights.len());
    let mut height_of_group = heights.to_vec();
    let raise = |join: Join| {
        let [a, b] = [join.slots.0, join.slots.1].map(|host| groups.root(host as usize));
        let height = join.height.max(height_of_group[a]).max(height_of_group[b]);
        groups.join(a, b);
        height_of_group[a] = height;
        let slots = (first_slots[join.slots.0 as usize], first_slots[join.slots.1 as usize]);
        Join { slots, height, is_of_hosts: true, ..join }
    };
    between.into_iter().map(raise).collect()
}

/// The joins of some items, with item indexes instead of slots.
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
    let repairs = repairs(&logarithms, longer.as_ref(), &found, gap);
    if repairs.is_empty() {
        return found;
    }
    for repair in repairs.iter().take(MOST_NAMED) {
        notes.push(format!(
            "rejected {:.3} between {} and {}: all other pairs indicate {:.3}",
            libm::exp(logarithms.get(repair.a, repair.b)),
            name(repair.a),
            name(repair.b),
            libm::exp(repair.value)
        ));
    }
    if repairs.len() > MOST_NAMED {
        notes.push(format!("rejected {} more pairs", repairs.len() - MOST_NAMED));
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

/// Fraction of the possible single pairs, and of all pairs, that justifies a level of them.
const ENOUGH: f64 = 0.1;
/// Number of distinguished steps between the lowest and the highest height.
const MOST_STEPS: f64 = 4096.0;

/// The level of each join, from the innermost one on.
///
/// Rules for dividing joins into levels:
///
/// 1. Heights near each other are merged, nearest first, until every level is a gap above the previous one.
/// 2. A level of isolated pairs is merged into the nearest level, unless there are several of them or a tenth
///    of all, or both directions agree on a pair and no level of its kind is below it.
/// 3. Overlapping levels are merged: nine tenths of the pairs of a level must be faster than nine tenths of
///    those of the next level, and at most a tenth as many pairs of the next level faster than these.
pub(super) fn levels(
    joins: &[Join],
    hosts: usize,
    slots: &[usize],
    gap: f64,
    notes: &mut Vec<String>,
) -> Vec<usize> {
    let mut levels = by_height(joins, gap);
    let possible = Possible::new(hosts, slots);
    while let Some((lone, nearest)) = lone_level(joins, &levels, &possible) {
        let time = libm::exp(joins[levels[lone][0]].height);
        notes.push(format!(
            "{} of {time:.3} is isolated and does not form a level",
            if levels[lone].len() == 1 {
                "a pair".to_owned()
            } else {
                format!("{} pairs", levels[lone].len())
            }
        ));
        merge(&mut levels, lone.min(nearest));
    }
    lift_lone_hosts(joins, &mut levels, &possible);
    let mut lower = 0;
    while lower + 1 < levels.len() {
        match overlap(joins, &levels[lower], &levels[lower + 1]) {
            false => lower += 1,
            true => {
                merge(&mut levels, lower);
                lower = lower.saturating_sub(1);
            }
        }
    }
    let mut level_of_join = vec![0; joins.len()];
    for (level, members) in levels.iter().enumerate() {
        members.iter().for_each(|&join| level_of_join[join] = level);
    }
    level_of_join
}

/// Merges a level with the next one.
fn merge(levels: &mut Vec<Vec<usize>>, lower: usize) {
    let upper = levels.remove(lower + 1);
    levels[lower].extend(upper);
}

/// Levels of joins, each a gap above the previous one by its mean over pairs.
fn by_height(joins: &[Join], gap: f64) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..joins.len()).collect();
    order.sort_by(|&a, &b| joins[a].height.total_cmp(&joins[b].height).then(a.cmp(&b)));
    // Heights closer than a hundredth of a gap, or than a fraction of the range, are always merged.
    let ends = order.first().zip(order.last()).map(|(&low, &high)| joins[high].height - joins[low].height);
    let near = (gap / 100.0).max(ends.unwrap_or(0.0) / MOST_STEPS);
    let mut levels: Vec<(f64, f64, Vec<usize>)> = Vec::new();
    let mut begin = f64::NEG_INFINITY;
    for join in order {
        let (height, pairs) = (joins[join].height, joins[join].values.len() as f64);
        match levels.last_mut().filter(|_| height - begin <= near) {
            Some((sum, weight, members)) => {
                *sum += height * pairs;
                *weight += pairs;
                members.push(join);
            }
            None => {
                begin = height;
                levels.push((height * pairs, pairs, vec![join]));
            }
        }
    }
    let mean = |level: &(f64, f64, Vec<usize>)| level.0 / level.1;
    loop {
        let steps = levels.windows(2).map(|pair| mean(&pair[1]) - mean(&pair[0])).enumerate();
        let nearest = steps.min_by(|a, b| a.1.total_cmp(&b.1).then(a.0.cmp(&b.0)));
        let Some((lower, _)) = nearest.filter(|(_, step)| *step < gap) else { break };
        let (sum, weight, members) = levels.remove(lower + 1);
        levels[lower].0 += sum;
        levels[lower].1 += weight;
        levels[lower].2.extend(members);
    }
    levels.into_iter().map(|level| level.2).collect()
}

/// Numbers of possible pairs of hosts and of slots: all, and disjoint ones.
struct Possible {
    all: [f64; 2],
    apart: [f64; 2],
}

impl Possible {
    fn new(hosts: usize, slots: &[usize]) -> Self {
        let all = |count: usize| (count * count.saturating_sub(1) / 2) as f64;
        let inside = |pairs: &dyn Fn(usize) -> f64| slots.iter().map(|&count| pairs(count)).sum::<f64>();
        Self {
            all: [inside(&all), all(hosts)],
            apart: [inside(&|count| (count / 2) as f64), (hosts / 2) as f64],
        }
    }
}

/// A level of isolated pairs, and the nearest other level.
fn lone_level(joins: &[Join], levels: &[Vec<usize>], possible: &Possible) -> Option<(usize, usize)> {
    let height = |level: usize| {
        let heights = levels[level].iter().map(|&join| joins[join].height);
        heights.sum::<f64>() / levels[level].len() as f64
    };
    let lone = (0..levels.len()).find(|&level| !has_support(joins, levels, level, possible))?;
    let below = lone.checked_sub(1).map(|below| (height(lone) - height(below), below));
    let above = (lone + 1 < levels.len()).then(|| (height(lone + 1) - height(lone), lone + 1));
    match (below, above) {
        (Some(below), Some(above)) => Some((lone, if below.0 < above.0 { below.1 } else { above.1 })),
        (Some(only), None) | (None, Some(only)) => Some((lone, only.1)),
        (None, None) => None,
    }
}

/// Moves isolated pairs of hosts on a level that exists for pairs inside hosts to the next one.
fn lift_lone_hosts(joins: &[Join], levels: &mut [Vec<usize>], possible: &Possible) {
    for level in 0..levels.len().saturating_sub(1) {
        if supports(joins, levels, level, possible, true) == Some(false) {
            let (hosts, rest) = levels[level].iter().partition(|&&join| joins[join].is_of_hosts);
            levels[level] = rest;
            levels[level + 1].extend::<Vec<usize>>(hosts);
        }
    }
}

fn has_support(joins: &[Join], levels: &[Vec<usize>], level: usize, possible: &Possible) -> bool {
    [false, true].into_iter().any(|of_hosts| supports(joins, levels, level, possible, of_hosts) == Some(true))
}

/// Whether the joins of hosts, or those inside hosts, justify a level; `None` if there are none.
fn supports(
    joins: &[Join],
    levels: &[Vec<usize>],
    level: usize,
    possible: &Possible,
    of_hosts: bool,
) -> Option<bool> {
    let of_kind = |level: usize| {
        levels[level].iter().map(|&join| &joins[join]).filter(move |join| join.is_of_hosts == of_hosts)
    };
    let count = of_kind(level).count() as f64;
    let kind = usize::from(of_hosts);
    let is_enough =
        count >= ENOUGH * possible.all[kind] || (count > 1.0 && count >= ENOUGH * possible.apart[kind]);
    let is_joined = of_kind(level).any(|join| join.agrees.is_none());
    let is_innermost = || (0..level).all(|below| of_kind(below).next().is_none());
    let is_certain = || of_kind(level).any(|join| join.agrees == Some(true)) && is_innermost();
    (count > 0.0).then(|| is_joined || is_enough || is_certain())
}

/// Whether two adjacent levels overlap.
fn overlap(joins: &[Join], inner: &[usize], outer: &[usize]) -> bool {
    let values = |level: &[usize]| -> Vec<f64> {
        level.iter().flat_map(|&join| joins[join].values.iter().copied()).collect()
    };
    let (mut inner, mut outer) = (values(inner), values(outer));
    let (slow, fast) = (decile(&mut inner, 9), decile(&mut outer, 1));
    let faster = outer.iter().filter(|&&value| value < slow).count();
    slow >= fast || faster > 1.max(inner.len() / 10)
}

fn decile(values: &mut [f64], tenths: usize) -> f64 {
    let place = (values.len() - 1) * tenths / 10;
    *values.select_nth_unstable_by(place, f64::total_cmp).1
}

/// Number of outliers examined per item.
const MOST_PER_THING: usize = 4;

/// A rejected pair and the value that the others indicate.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Repair {
    a: usize,
    b: usize,
    value: f64,
}

/// The few pairs that contradict all others. If there are many, the values do not form a tree and nothing is
/// repaired.
///
/// A pair is too slow if two others connect its ends faster, by two gaps. It is too fast if its directions
/// differ by a gap, and most items near one end are farther from the other end than the pair indicates.
fn repairs(logarithms: &Pairs, longer: Option<&Pairs>, joins: &[Join], gap: f64) -> Vec<Repair> {
    let count = logarithms.count();
    if count < 4 {
        return Vec::new();
    }
    let lone: Vec<(usize, usize)> = joins
        .iter()
        .filter(|join| join.agrees.is_some())
        .map(|join| (join.slots.0 as usize, join.slots.1 as usize))
        .collect();
    let differs = |&&(a, b): &&(usize, usize)| {
        longer.is_some_and(|longer| longer.get(a, b) >= logarithms.get(a, b) + gap)
    };
    let fast = lone.iter().filter(differs).filter_map(|&(a, b)| too_fast(logarithms, a, b, gap));
    let fast: Vec<Repair> = fast.collect();
    let outstanding = outstanding(logarithms, joins, gap);
    if fast.len() > 1.max(lone.len() / 4) || outstanding.len() > MOST_PER_THING * count {
        return Vec::new();
    }
    let slow: Vec<Repair> =
        outstanding.into_iter().filter_map(|(a, b)| too_slow(logarithms, a, b, gap)).collect();
    if slow.len() > 1.max(count * (count - 1) / 200) {
        return Vec::new();
    }
    let mut repairs = fast;
    repairs.extend(slow);
    repairs.sort_by_key(|repair| (repair.a, repair.b));
    repairs.dedup_by_key(|repair| (repair.a, repair.b));
    repairs
}

/// The pairs that are slower than the join at which they meet.
fn outstanding(logarithms: &Pairs, joins: &[Join], gap: f64) -> Vec<(usize, usize)> {
    let mut members: Vec<Vec<usize>> = (0..logarithms.count()).map(|thing| vec![thing]).collect();
    let mut group: Vec<usize> = (0..logarithms.count()).collect();
    let mut found = Vec::new();
    for join in joins {
        let [one, other] = [join.slots.0, join.slots.1].map(|thing| group[thing as usize]);
        let joining = std::mem::take(&mut members[other]);
        if join.values.iter().any(|&value| value > join.height + gap) {
            let pairs = joining.iter().flat_map(|&b| members[one].iter().map(move |&a| (a.min(b), a.max(b))));
            found.extend(pairs.filter(|&(a, b)| logarithms.get(a, b) > join.height + gap));
        }
        joining.iter().for_each(|&thing| group[thing] = one);
        members[one].extend(joining);
    }
    found
}

fn others(count: usize, a: usize, b: usize) -> impl Iterator<Item = usize> {
    (0..count).filter(move |&other| other != a && other != b)
}

fn too_slow(logarithms: &Pairs, a: usize, b: usize, gap: f64) -> Option<Repair> {
    let mut fastest = [f64::INFINITY; 2];
    for other in others(logarithms.count(), a, b) {
        let over = logarithms.get(a, other).max(logarithms.get(b, other));
        if over < fastest[0] {
            fastest = [over, fastest[0]];
        } else if over < fastest[1] {
            fastest[1] = over;
        }
    }
    (logarithms.get(a, b) > fastest[1] + 2.0 * gap).then_some(Repair { a, b, value: fastest[1] })
}

fn too_fast(logarithms: &Pairs, a: usize, b: usize, gap: f64) -> Option<Repair> {
    let (a, b) = (a.min(b), a.max(b));
    let own = logarithms.get(a, b);
    let distances = |other: usize| (logarithms.get(a, other), logarithms.get(b, other));
    let contradicts = |&(to_a, to_b): &(f64, f64)| (to_a - to_b).abs() > gap && to_a.max(to_b) > own + gap;
    let all = || others(logarithms.count(), a, b).map(distances);
    let mut spoken: Vec<f64> = all().filter(contradicts).map(|(to_a, to_b)| to_a.max(to_b)).collect();
    if spoken.len() < 2 {
        return None;
    }
    let middle = spoken.len() / 2;
    let value = *spoken.select_nth_unstable_by(middle, f64::total_cmp).1;
    let near = all().filter(|(to_a, to_b)| to_a.min(*to_b) < value - gap).count();
    (2 * spoken.len() > near).then_some(Repair { a, b, value })
}
