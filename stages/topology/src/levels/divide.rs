//! Joins are divided into levels.
//!
//! 1. Heights that are near to each other become one level, nearest first, until every level is a gap above the one before.
//! 2. A level of pairs that stand alone is none, unless there are several of them, or a tenth of all, or both directions agree on a
//!    pair and no level of its kind is below it: they go to the nearest level.
//! 3. Levels that overlap become one: nine tenths of the pairs of a level are faster than nine tenths of those of the next, and of
//!    the next a tenth as many at most are faster than these.

use super::cluster::Join;

/// Of the pairs of single hosts or slots that there can be, and of all pairs, so much is enough for a level of them.
const ENOUGH: f64 = 0.1;
/// Steps between the lowest height and the highest one that are told apart.
const MOST_STEPS: f64 = 4096.0;

/// The level of every join, from the innermost one on.
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
            "{} of {time:.3} stands alone and makes no level of its own",
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

/// Makes a level one with the next.
fn merge(levels: &mut Vec<Vec<usize>>, lower: usize) {
    let upper = levels.remove(lower + 1);
    levels[lower].extend(upper);
}

/// Levels of joins, each a gap above the one before by its mean over pairs.
fn by_height(joins: &[Join], gap: f64) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..joins.len()).collect();
    order.sort_by(|&a, &b| joins[a].height.total_cmp(&joins[b].height).then(a.cmp(&b)));
    // What is nearer than a hundredth of a gap, or than a part of the whole range, is never apart.
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

/// How many pairs there can be of hosts and of slots: in all, and such that each stands in one.
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

/// A level of pairs that stand alone, and the nearest other one.
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

/// Pairs of hosts that stand alone on a level that there is for what is inside hosts go to the next one.
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

/// Whether joins of hosts, or those inside hosts, are reason enough for a level; `None` if there are none.
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

/// Whether two neighbours overlap.
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
