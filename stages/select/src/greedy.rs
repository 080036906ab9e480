//! Choices that grow from several hosts and are improved by exchanges.

use hopmap_model::seed_stream;
use hopmap_random::{Draw, Pcg64, SeedableRng};
use rayon::prelude::*;

use crate::goal::Goal;
use crate::space::Space;
use crate::state::State;

/// Above this many classes the starts are the largest classes, for the sum of distances would take too long.
const MAX_RANKED: usize = 1 << 13;
/// Shakes in a row without a better choice after which a start is over.
const PATIENCE: usize = 6;

/// The best choice that is found from `starts` classes.
///
/// First those whose nearest hosts are nearest, each outside of what has grown from the ones before; then random ones. Every choice
/// goes down to a local optimum of exchanges, is shaken at random, and goes down again, until shaking no longer helps.
/// Starts share nothing, so the number of threads changes nothing; of equal choices the one of the first start counts.
pub(crate) fn greedy(
    space: &Space,
    goal: &Goal,
    count: usize,
    (seed, starts): (u64, u32),
    stop: &(dyn Fn() -> bool + Sync),
) -> Vec<i64> {
    // The cut is grown both ways: by distance for a cluster, by price for a corner that little leads to.
    let ways: &[bool] = if goal.is_cut { &[true, false] } else { &[true] };
    let improve = |(index, (class, by_distance)): (usize, (usize, bool))| {
        let mut state = State::new(space, goal);
        state.grow(class, count, by_distance);
        if index > 0 && stop() {
            return (state.value(), index, state.chosen);
        }
        state.descend(stop);
        let (value, chosen) = shake(space, state, &mut stream(seed, 1 + index as u64), stop);
        (value, index, chosen)
    };
    let places = places(space, goal, count, &mut stream(seed, 0), starts as usize);
    let mut starts: Vec<_> =
        places.iter().flat_map(|&class| ways.iter().map(move |&way| (class, way))).collect();
    if goal.is_cut {
        starts.push((goal.heaviest(), true));
    }
    let best = starts.into_par_iter().enumerate().map(improve).min();
    best.map(|(_, _, chosen)| chosen).unwrap_or_default()
}

/// The random numbers of a start.
pub(crate) fn stream(seed: u64, number: u64) -> Pcg64 {
    Pcg64::from_seed(seed_stream("select/nodes", seed, number))
}

/// Classes to grow from.
fn places(space: &Space, goal: &Goal, count: usize, random: &mut Pcg64, starts: usize) -> Vec<usize> {
    let mut ranked: Vec<(i64, usize)> = match space.classes() <= MAX_RANKED {
        true => (0..space.classes())
            .into_par_iter()
            .map(|class| (spread(space, goal, class, count), class))
            .collect(),
        false => (0..space.classes()).map(|class| (-space.size(class), class)).collect(),
    };
    ranked.sort_unstable();
    let mut covered = vec![false; space.classes()];
    let mut places = Vec::new();
    for (_, class) in ranked {
        if places.len() == starts {
            break;
        }
        if covered[class] {
            continue;
        }
        places.push(class);
        let mut state = State::new(space, goal);
        state.grow(class, count, true);
        covered.iter_mut().zip(&state.chosen).for_each(|(covered, &chosen)| *covered |= chosen > 0);
    }
    let limit = starts.min(space.classes());
    while places.len() < limit {
        places.push(random.below(space.classes()));
    }
    places
}

/// The sum of distances from a host of a class to the hosts nearest to it, with what these cost themselves.
fn spread(space: &Space, goal: &Goal, class: usize, count: usize) -> i64 {
    let hosts = count as i64 - 1;
    if let Some(row) = space.row(class) {
        let near = row.iter().zip(&goal.single).map(|(distance, single)| goal.pairs * distance + single);
        let mut near: Vec<i64> = near.collect();
        near.swap_remove(class);
        if hosts > 0 {
            near.select_nth_unstable(count - 2);
        }
        return goal.single[class] + near[..count - 1].iter().sum::<i64>();
    }
    let price = |other| goal.pairs * space.distance(class, other) + goal.single[other];
    let size = |other| space.size(other) - i64::from(other == class);
    let mut near: Vec<(i64, i64)> = (0..space.classes()).map(|other| (price(other), size(other))).collect();
    near.sort_unstable();
    let mut missing = hosts;
    let mut sum = goal.single[class];
    for (price, size) in near {
        let amount = size.min(missing);
        sum += amount * price;
        missing -= amount;
    }
    sum
}

/// Shakes a local optimum and goes down again, as long as that helps: value and choice.
fn shake(
    space: &Space,
    mut state: State<'_>,
    random: &mut Pcg64,
    stop: &dyn Fn() -> bool,
) -> (i64, Vec<i64>) {
    let mut best = (state.value(), state.chosen.clone());
    let mut failures = 0;
    while failures < PATIENCE && !stop() {
        scatter(space, &mut state, random);
        state.descend(stop);
        let value = state.value();
        if value < best.0 {
            best = (value, state.chosen.clone());
            failures = 0;
        } else {
            failures += 1;
            state.restore(&best.1);
        }
    }
    best
}

/// Exchanges a tenth of the chosen classes for random ones.
fn scatter(space: &Space, state: &mut State<'_>, random: &mut Pcg64) {
    let used: Vec<usize> = (0..space.classes()).filter(|&class| state.chosen[class] > 0).collect();
    for _ in 0..used.len().div_ceil(10) {
        let (a, b) = (used[random.below(used.len())], random.below(space.classes()));
        let amount = state.chosen[a].min(space.size(b) - state.chosen[b]);
        if a != b && amount > 0 {
            state.take(a, -amount);
            state.take(b, amount);
        }
    }
}
