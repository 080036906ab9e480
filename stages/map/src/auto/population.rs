//! Population annealing: a population of mappings, and its share of the budget.

use hopmap_islands::{Meter, Resumable, Save};
use hopmap_objective::{Assignment, Deltas, ObjectiveError};
use hopmap_random::{Pcg64, Rng, SeedableRng};
use serde::{Deserialize, Serialize};

use super::context::SearchContext;
use crate::moves::{Incumbent, descend, sweep_within};
use crate::plan::{EXPLORATION, POPULATION};
use crate::tabu::SearchState;

/// Minimum effective fraction of the population after a step, which limits the step.
const EFFECTIVE: f64 = 0.95;
/// Bounds of the relative rise of 1 / T in a step.
const LONGEST_STEP: f64 = 0.15;
const SHORTEST_STEP: f64 = 0.002;
/// A population is frozen when a smaller fraction of its proposals changes the cost.
const FROZEN: f64 = 0.002;
/// Lowest temperature, in units of the smallest possible change.
const COLDEST: f64 = 0.1;
/// Bisection steps for the length of a step.
const HALVINGS: usize = 30;

/// A population during cooling.
#[derive(Clone, Serialize, Deserialize)]
#[serde(bound = "")]
pub(super) struct Population<'p> {
    members: Resumable<Members<'p>>,
    sweeps: u64,
    temperature: f64,
    /// Temperature steps, including the initial one.
    steps: u64,
    /// Sweeps of this step so far, summed over all members.
    cursor: u64,
    /// Exchanges of this step that changed the cost.
    changes: u64,
}

/// The mappings; in stored form they take a hundredth of the memory.
struct Members<'p>(Vec<Assignment<'p>>);

impl Save for Members<'_> {
    type Saved = Vec<Vec<u32>>;

    fn save(&self) -> Vec<Vec<u32>> {
        self.0.iter().map(|member| member.slots().to_vec()).collect()
    }
}

/// How a part of the work of an island ended.
pub(super) enum StepOutcome {
    /// The work goes on later.
    Unfinished,
    /// The work is done: a population is frozen, a cycle or a walk at its end.
    Finished,
    /// Stopped by the meter.
    Stopped,
}

impl<'p> Population<'p> {
    /// Given mappings at a temperature.
    pub(super) fn of_starts<'s>(
        starts: impl Iterator<Item = &'s Vec<u32>>,
        temperature: f64,
        size: Size,
    ) -> Self {
        Self::of(starts.take(size.members as usize).cloned().collect(), temperature, size)
    }

    /// Random mappings at the start temperature.
    pub(super) fn new(context: &SearchContext<'p>, size: Size, random: &mut Pcg64) -> Self {
        let member = |_| {
            let mut stream = [0; 32];
            random.fill_bytes(&mut stream);
            context.problem.random(stream)
        };
        Self::of((0..size.members).map(member).collect(), context.hot, size)
    }

    fn of(members: Vec<Vec<u32>>, temperature: f64, Size { sweeps, .. }: Size) -> Self {
        Self { members: Resumable::Saved(members), sweeps, temperature, steps: 1, cursor: 0, changes: 0 }
    }

    /// Restores mappings from their stored form.
    pub(super) fn restore(&mut self, context: &SearchContext<'p>) -> Result<(), ObjectiveError> {
        self.members.restore(|saved| {
            let placed = saved.iter().map(|slots| Assignment::new(context.problem, slots));
            placed.collect::<Result<_, _>>().map(Members)
        })
    }

    /// Lowest cost of a member.
    pub(super) fn least(&mut self) -> Option<i64> {
        self.placed().iter().map(Assignment::cost).min()
    }

    /// Number of steps so far.
    pub(super) fn steps(&self) -> u64 {
        self.steps
    }

    /// Local search from the members, lowest cost first, within the evaluations of one step.
    pub(super) fn descend_all(&mut self, meter: &mut Meter<'_>, incumbent: &mut Incumbent) {
        let sweeps = self.sweeps;
        let members = self.placed();
        members.sort_by_key(Assignment::cost);
        let ranks = members.first().map_or(0, |member| member.slots().len() as u64);
        let end = meter.spent().saturating_add(sweeps * members.len() as u64 * ranks);
        for member in members {
            if meter.spent() >= end || meter.is_out() {
                break;
            }
            descend(member, || meter.take());
            incumbent.replace(member);
            meter.record(incumbent.best.cost);
        }
    }

    /// Continues from the best member with robust tabu search for a fraction of the evaluations of annealing.
    pub(super) fn explore(
        &mut self,
        context: &SearchContext<'p>,
        random: &mut Pcg64,
        meter: &mut Meter<'_>,
        incumbent: &mut Incumbent,
    ) {
        let ranks = context.movable.len() as u64;
        if !context.explores {
            return;
        }
        let annealed = self.steps * self.sweeps * ranks * self.placed().len() as u64;
        let end = meter.spent().saturating_add(EXPLORATION.of(annealed));
        let Some(best) = self.placed().iter().min_by_key(|member| member.cost()).cloned() else { return };
        let mut seed = [0; 32];
        random.fill_bytes(&mut seed);
        let Some(deltas) = Deltas::new(best, |evaluations| meter.take_all(evaluations)) else { return };
        let mut search = SearchState::new(deltas, Pcg64::from_seed(seed));
        let pairs = Deltas::pairs(context.problem);
        while meter.spent() < end && meter.take_all(pairs) {
            search.step(incumbent.best.cost);
            incumbent.replace(search.assignment());
            meter.record(incumbent.best.cost);
        }
    }

    /// The mappings; empty before [`restore`](Self::restore).
    fn placed(&mut self) -> &mut [Assignment<'p>] {
        match self.members.live() {
            Some(Members(members)) => members,
            None => &mut [],
        }
    }

    /// Sweeps all members at this temperature and moves to the next one.
    pub(super) fn step(
        &mut self,
        context: &SearchContext<'p>,
        random: &mut Pcg64,
        meter: &mut Meter<'_>,
        incumbent: &mut Incumbent,
    ) -> StepOutcome {
        let ranks = &context.movable;
        let (sweeps, temperature) = (self.sweeps, self.temperature);
        let (mut cursor, mut changes) = (self.cursor, self.changes);
        let members = self.placed();
        let total = sweeps * members.len() as u64;
        while cursor < total {
            let member = &mut members[(cursor / sweeps) as usize];
            let acceptance = &context.acceptance;
            let swept = sweep_within(meter, member, ranks, temperature, acceptance, random, incumbent);
            meter.record(incumbent.best.cost);
            let Some(more) = swept else { break };
            changes += more;
            cursor += 1;
        }
        (self.cursor, self.changes) = (cursor, changes);
        if cursor < total {
            return StepOutcome::Stopped;
        }
        (self.cursor, self.changes) = (0, 0);
        if (changes as f64) < FROZEN * (total * ranks.len() as u64) as f64 || temperature < COLDEST {
            return StepOutcome::Finished;
        }
        self.cool(random);
        StepOutcome::Unfinished
    }

    /// Resamples the members for the next temperature.
    fn cool(&mut self, random: &mut Pcg64) {
        let members = self.placed();
        let least = members.iter().map(Assignment::cost).min().unwrap_or_default();
        let rises: Vec<f64> = members.iter().map(|member| (member.cost() - least) as f64).collect();
        let beta = 1.0 / self.temperature;
        let step = step_length(&rises, LONGEST_STEP * beta).max(SHORTEST_STEP * beta);
        let copies = draw(&weights(&rises, step), random);
        replace(self.placed(), &copies);
        self.temperature = 1.0 / (beta + step);
        self.steps += 1;
    }
}

/// exp(−step · rise) of every member.
fn weights(rises: &[f64], step: f64) -> Vec<f64> {
    rises.iter().map(|rise| libm::exp(-step * rise)).collect()
}

/// The longest step that keeps the effective population size: (Σw)² / Σw² ≥ 0.95 · R.
fn step_length(rises: &[f64], longest: f64) -> f64 {
    let is_effective = |step| {
        let weights = weights(rises, step);
        let (sum, squares) = weights.iter().fold((0.0, 0.0), |(s, q), w| (s + w, q + w * w));
        sum * sum >= EFFECTIVE * rises.len() as f64 * squares
    };
    if is_effective(longest) {
        return longest;
    }
    let (mut low, mut high) = (0.0, longest);
    for _ in 0..HALVINGS {
        let middle = 0.5 * (low + high);
        if is_effective(middle) { low = middle } else { high = middle }
    }
    low
}

/// Copies of each member in the next population, by systematic resampling.
fn draw(weights: &[f64], random: &mut Pcg64) -> Vec<usize> {
    let sum: f64 = weights.iter().sum();
    let size = weights.len();
    let offset = (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
    let (mut passed, mut drawn) = (0.0, 0);
    let mut copies: Vec<usize> = weights
        .iter()
        .map(|weight| {
            passed += weight / sum * size as f64;
            let before = drawn;
            while drawn < size && drawn as f64 + offset < passed {
                drawn += 1;
            }
            drawn - before
        })
        .collect();
    if let Some(last) = copies.last_mut() {
        // Rounding may have dropped one.
        *last += size - drawn;
    }
    copies
}

/// Replaces members without copies by copies of others.
fn replace(members: &mut [Assignment<'_>], copies: &[usize]) {
    let mut lost = (0..copies.len()).filter(|&member| copies[member] == 0);
    for (member, &count) in copies.iter().enumerate() {
        for _ in 1..count {
            if let Some(place) = lost.next() {
                members[place] = members[member].clone();
            }
        }
    }
}

/// Default budget in sweeps over all ranks, limited by a number of evaluations.
const DEFAULT_SWEEPS: u64 = 1 << 15;
const DEFAULT_EVALUATIONS: u64 = 1 << 24;

/// Sweeps of all members at one temperature: of the first population, and the minimum that is useful.
const FIRST_WORK: u64 = 64;
/// Sweeps of one member at one temperature, in multiples of the population size.
const SWEEPS_PER_MEMBER: u64 = 4;
/// Expected number of temperatures for a hundred ranks before the first population has been annealed. The
/// fluctuation of the cost, which limits the steps, grows with the square root of the number of ranks.
const EXPECTED_STEPS: f64 = 80.0;
const EXPECTED_RANKS: f64 = 100.0;
/// Work of a population in multiples of the previous one, and of the last one at most. An interrupted search
/// has the result of the previous population; a larger population is better than several small ones.
const GROWTH: u64 = 8;

/// Evaluations of an island without limits.
pub(super) fn default_evaluations(movable: u64) -> u64 {
    DEFAULT_EVALUATIONS.min(DEFAULT_SWEEPS * movable)
}

/// Parameters of a population.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size {
    /// Population size.
    pub(super) members: u64,
    /// Sweeps of each member at one temperature.
    pub(super) sweeps: u64,
}

/// Statistics of the populations of an island.
#[derive(Debug, Clone, Copy, serde::Serialize, serde::Deserialize)]
pub(super) struct Plan {
    /// Sweeps of all members of the next population at one temperature.
    work: u64,
    /// Temperatures of the last population.
    steps: u64,
    /// Maximum number of members.
    most: u64,
}

impl Plan {
    pub(super) fn new(ranks: u64, most: u64) -> Self {
        let steps = EXPECTED_STEPS * (ranks as f64 / EXPECTED_RANKS).sqrt().max(1.0);
        Self { work: FIRST_WORK, steps: steps as u64, most }
    }

    /// Plans the next population for the remaining evaluations; `None` if they are too few.
    pub(super) fn next(&mut self, ranks: u64, left: u64) -> Option<Size> {
        let affordable = (left as f64 * POPULATION.share / (ranks * self.steps) as f64) as u64;
        if affordable < FIRST_WORK / 2 {
            return None;
        }
        let last = if self.work > FIRST_WORK { GROWTH * self.work } else { 2 * self.work };
        let work = if affordable > last { self.work } else { affordable };
        self.work = GROWTH * work;
        Some(Size::of_work(work, self.most))
    }

    /// Records the number of temperatures of a population.
    pub(super) fn note(&mut self, steps: u64) {
        self.steps = steps.max(1);
    }
}

impl Size {
    /// Distributes sweeps at one temperature.
    fn of_work(work: u64, most: u64) -> Self {
        let members = (work / SWEEPS_PER_MEMBER).isqrt().clamp(2, most);
        Self { members, sweeps: (work / members).max(1) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn resampling_keeps_the_population_size(
            mut rises in prop::collection::vec(0.0_f64..1e9, 1..60),
            step in 1e-12_f64..1.0,
            seed: [u8; 32],
        ) {
            rises[0] = 0.0;
            let weights = weights(&rises, step);
            let copies = draw(&weights, &mut Pcg64::from_seed(seed));
            prop_assert_eq!(copies.iter().sum::<usize>(), rises.len());
            let sum: f64 = weights.iter().sum();
            for (copies, weight) in copies.iter().zip(&weights).take(rises.len() - 1) {
                prop_assert!((*copies as f64 - weight / sum * rises.len() as f64).abs() < 1.0 + 1e-6);
            }
        }

        #[test]
        fn a_step_keeps_the_population_effective(mut rises in prop::collection::vec(0.0_f64..1e6, 2..60)) {
            rises[0] = 0.0;
            let step = step_length(&rises, 1.0);
            let weights = weights(&rises, step);
            let (sum, squares) = weights.iter().fold((0.0, 0.0), |(s, q), w| (s + w, q + w * w));
            prop_assert!(sum * sum / squares >= 0.94 * rises.len() as f64);
        }
    }

    #[test]
    fn populations_grow_until_the_last_takes_the_rest() {
        let mut plan = Plan::new(50, 1000);
        let mut left = 100_000_000;
        let mut sizes = Vec::new();
        while let Some(size) = plan.next(50, left) {
            left -= size.members * size.sweeps * 50 * 80;
            sizes.push((size.members, size.sweeps));
        }
        assert_eq!(sizes, [(4, 16), (11, 46), (74, 297), (23, 95), (7, 34)]);
        assert!(left < 100_000_000 / 50);
    }

    #[test]
    fn a_small_budget_has_no_population() {
        assert_eq!(Plan::new(1000, 1000).next(1000, 1000), None);
    }

    /// Once a first population of 729 ranks was cooled for a second in which it could not freeze.
    #[test]
    fn a_population_of_many_ranks_is_expected_to_take_more_steps() {
        assert_eq!(Plan::new(50, 1000).steps, 80);
        assert_eq!(Plan::new(400, 1000).steps, 160);
    }

    /// Once a search of 2,048 ranks for a day had 5 GB of members on every island.
    #[test]
    fn the_memory_of_populations_is_limited() {
        let day = Size::of_work(3_000_000 * 86_400 / (80 * 2048), 60);
        assert_eq!(day.members, 60);
        assert_eq!(day.sweeps, 3_000_000 * 86_400 / (80 * 2048) / 60);
    }
}
