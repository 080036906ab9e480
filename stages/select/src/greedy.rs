//! Greedy choices: the iterative min-cut partitioning of the method RGO (first stage), greedy growth with
//! pairwise exchanges, and incremental costs of changes.

use hopmap_model::seed_stream;
use hopmap_random::{Draw, Pcg64, SeedableRng};
use rayon::prelude::*;

use crate::space::{Goal, Space};

/// With more classes than this, starts are the largest classes: ranking by the sum of distances would take
/// too long.
const MAX_RANKED: usize = 1 << 13;
/// Consecutive perturbations without improvement after which a start ends.
const PATIENCE: usize = 6;

/// The best choice from `starts` starting classes (iterated local search).
///
/// The first starts are the classes with the nearest neighbours, each outside of what grew from earlier ones;
/// the rest are random. A choice descends to a local optimum of pairwise exchanges and is then perturbed at
/// random, until perturbation no longer helps. Starts are independent, so the number of threads does not
/// change the result; ties go to the first start.
pub(crate) fn greedy(
    space: &Space,
    goal: &Goal,
    count: usize,
    (seed, starts): (u64, u32),
    stop: &(dyn Fn() -> bool + Sync),
) -> Vec<i64> {
    // The cut is grown in two ways: by distance, for a cluster, and by price, for a weakly connected corner.
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

/// The random number stream of a start.
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

/// The sum of distances from a host of a class to its nearest hosts, plus the prices of these.
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

/// Perturbs a local optimum and descends again while that helps; returns value and choice.
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

/// Bisects the free hosts into the hosts of the job and the rest, minimizing the cut between them.
///
/// Source: GraphHunter (Baranov et al. 2022, introduction), which mentions a modified form of the iterative
/// partitioning of a graph into K subgraphs by Feshchenko and Matyushkov (1976) and describes neither the
/// original nor the modification. This implementation:
///
/// 1. The vertices of the graph are the free hosts. The weight of an edge is the largest distance between
///    free hosts minus the distance of its ends, so near hosts are strongly connected.
/// 2. A first part of the requested size grows from the vertex with the largest total edge weight, each time
///    by the vertex with the largest edge weight to the part.
/// 3. Of all pairs of a vertex inside and one outside, exchange the one that reduces the cut most, until no
///    exchange reduces it.
///
/// Differences from a partitioning into K subgraphs: there are two parts, one of the size of the job; only
/// that part is grown; and on a tree, hosts under one switch are exchanged together, which replaces a series
/// of single exchanges.
pub(crate) fn min_cut(space: &Space, count: usize, stop: &dyn Fn() -> bool) -> Vec<i64> {
    let goal = Goal::cut(space, count);
    let mut state = State::new(space, &goal);
    state.grow(goal.heaviest(), count, true);
    while !stop() && state.exchange_best() {}
    state.chosen
}

/// A choice of hosts by class.
pub(crate) struct State<'s> {
    space: &'s Space,
    goal: &'s Goal,
    /// Number of chosen hosts of each class.
    pub(crate) chosen: Vec<i64>,
    /// Cost of one more host of each class.
    price: Vec<i64>,
}

impl<'s> State<'s> {
    /// The empty choice.
    pub(crate) fn new(space: &'s Space, goal: &'s Goal) -> Self {
        Self { space, goal, chosen: vec![0; space.classes()], price: goal.single.clone() }
    }

    fn room(&self, class: usize) -> i64 {
        self.space.size(class) - self.chosen[class]
    }

    /// Adds `count` hosts of a class; removes them if `count` is negative.
    pub(crate) fn take(&mut self, class: usize, count: i64) {
        self.chosen[class] += count;
        let factor = self.goal.pairs * count;
        self.space.for_row(class, |other, distance| self.price[other] += factor * distance);
    }

    /// Restores an earlier choice.
    pub(crate) fn restore(&mut self, chosen: &[i64]) {
        for (class, &wanted) in chosen.iter().enumerate() {
            let change = wanted - self.chosen[class];
            if change != 0 {
                self.take(class, change);
            }
        }
    }

    /// Grows to `count` hosts starting from `class`, each time by the class whose hosts add the least cost;
    /// ties go to the first. With `by_distance` only distances count. All hosts of a class are added
    /// together: by distance, a class that has become the nearest remains so.
    pub(crate) fn grow(&mut self, class: usize, count: usize, by_distance: bool) {
        let mut missing = count as i64;
        let mut next = Some(class);
        while let Some(class) = next.filter(|_| missing > 0) {
            let amount = self.room(class).min(missing);
            self.take(class, amount);
            missing -= amount;
            let cost = |class: &usize| match by_distance {
                true => self.price[*class] - self.goal.single[*class],
                false => self.price[*class],
            };
            next = (0..self.chosen.len()).filter(|&class| self.room(class) > 0).min_by_key(cost);
        }
    }

    /// The cost change of exchanging as many hosts of class `a` as possible for hosts of class `b`, and their
    /// number.
    ///
    /// The change is a concave function of the number and zero at zero, so if any number improves the choice,
    /// the maximum is best.
    fn exchange(&self, a: usize, b: usize) -> (i64, i64) {
        let amount = self.chosen[a].min(self.room(b));
        let inside = |class| self.space.distance(class, class);
        let mut pairs = -amount * amount * self.space.distance(a, b) + inside(a) * amount * (amount + 1) / 2;
        if amount > 1 {
            pairs += inside(b) * amount * (amount - 1) / 2;
        }
        (amount * (self.price[b] - self.price[a]) + self.goal.pairs * pairs, amount)
    }

    /// The best class to exchange hosts of `a` for: change, class, number. Ties go to the first.
    fn best_for(&self, a: usize) -> Option<(i64, usize, i64)> {
        if let Some(row) = self.space.row(a) {
            return self.best_host_for(a, row);
        }
        let others = (0..self.chosen.len()).filter(|&b| b != a && self.room(b) > 0);
        let exchange = |b| {
            let (change, amount) = self.exchange(a, b);
            (change, b, amount)
        };
        others.map(exchange).min()
    }

    /// The same if every class is one host, in one pass over its distances. The change is the price of the
    /// new host minus its distance to the old one, which leaves.
    fn best_host_for(&self, a: usize, row: &[i64]) -> Option<(i64, usize, i64)> {
        let mut best = (i64::MAX, a);
        for (b, ((&price, &distance), &chosen)) in self.price.iter().zip(row).zip(&self.chosen).enumerate() {
            let change = if chosen == 0 { price - self.goal.pairs * distance } else { i64::MAX };
            if change < best.0 {
                best = (change, b);
            }
        }
        let (change, b) = best;
        (b != a).then(|| (change - self.price[a], b, 1))
    }

    /// Exchanges hosts until no exchange improves the choice: class by class, each for its best partner.
    /// Polls `stop` after each pass.
    pub(crate) fn descend(&mut self, stop: &dyn Fn() -> bool) {
        loop {
            let mut changed = false;
            for a in 0..self.chosen.len() {
                if self.chosen[a] == 0 {
                    continue;
                }
                if let Some((change, b, amount)) = self.best_for(a)
                    && change < 0
                {
                    self.take(a, -amount);
                    self.take(b, amount);
                    changed = true;
                }
            }
            if !changed || stop() {
                return;
            }
        }
    }

    /// Makes the exchange with the largest gain; `false` if none improves. Ties go to the first.
    pub(crate) fn exchange_best(&mut self) -> bool {
        let chosen = (0..self.chosen.len()).filter(|&a| self.chosen[a] > 0);
        let best =
            chosen.filter_map(|a| self.best_for(a).map(|(change, b, amount)| (change, a, b, amount))).min();
        match best {
            Some((change, a, b, amount)) if change < 0 => {
                self.take(a, -amount);
                self.take(b, amount);
                true
            }
            _ => false,
        }
    }

    /// The value of the objective.
    pub(crate) fn value(&self) -> i64 {
        self.goal.value(self.space, &self.chosen)
    }
}
