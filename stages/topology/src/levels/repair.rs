//! Pairs that contradict all others: in a tree two of three things that are farther apart are equally far apart.

use super::cluster::Join;
use super::pairs::Pairs;

/// Pairs that stand out are looked at, up to so many for every thing.
const MOST_PER_THING: usize = 4;

/// A pair whose number is not believed, and what the others speak for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Repair {
    pub(super) a: usize,
    pub(super) b: usize,
    pub(super) value: f64,
}

/// The few pairs that contradict all others. Where many do, the numbers are those of no tree, and all are left alone.
///
/// A pair is too slow if two others join its ends faster, by two gaps. It is too fast if its directions differ by a gap, and most of
/// those that are near to one end are farther from the other one than the pair says.
pub(super) fn repairs(logarithms: &Pairs, longer: Option<&Pairs>, joins: &[Join], gap: f64) -> Vec<Repair> {
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
