//! Building blocks of searches: proposals of exchanges, temperatures, acceptance, the best mapping, and
//! descent to a local optimum.

use hopmap_islands::{Candidate, Meter};
use hopmap_model::seed_stream;
use hopmap_objective::{Assignment, Distance, ObjectiveError, Problem};
pub(crate) use hopmap_random::index_below as below;
use hopmap_random::{Pcg64, Rng};
use serde::{Deserialize, Serialize};

use crate::params::kind;

/// Neighbours that a rank draws before it makes a random proposal.
const DRAWS: usize = 3;

/// Ranks whose slot affects the cost and is not fixed by a constraint.
pub(crate) fn movable(problem: &Problem) -> Vec<u32> {
    problem.movable().iter().copied().filter(|&rank| !problem.is_fixed(rank)).collect()
}

/// Proposes a slot for a rank: towards a neighbour, otherwise anywhere outside its innermost group.
///
/// In a tree the rank draws a neighbour and proposes a random slot of the largest group that contains the
/// neighbour but not the rank. If it is already as close as possible to three drawn neighbours, it proposes a
/// random slot outside its own innermost group, and so does every second rank if the objective is not about
/// closeness alone. Exchanges inside such a group have no effect and are never proposed. On other machines a
/// sparse program proposes slots near the neighbours, or near its own (`propose_near`). `bits` are random.
#[inline]
pub(crate) fn propose(assignment: &Assignment<'_>, rank: u32, bits: u32, random: &mut Pcg64) -> u32 {
    let problem = assignment.problem();
    let distance = problem.distance();
    if bits.is_multiple_of(2) || problem.is_about_closeness() {
        let near = if distance.is_tree() { towards_neighbour } else { propose_near };
        if let Some(slot) = near(assignment, rank, random) {
            return slot;
        }
    }
    let own = distance.group(0, assignment.slot_of(rank));
    let index = below(bits, distance.order().len() - own.len());
    distance.order()[if index < own.start { index } else { index + own.len() }]
}

/// A slot towards a neighbour; if there is none, half of the time one near the own slot, which repairs details
/// along the links.
fn propose_near(assignment: &Assignment<'_>, rank: u32, random: &mut Pcg64) -> Option<u32> {
    let here = assignment.slot_of(rank);
    let near = assignment.problem().distance().near(here);
    if assignment.problem().neighbours(rank).is_empty() || near.is_empty() {
        return None;
    }
    towards_neighbour(assignment, rank, random).or_else(|| {
        let draw = random.next_u64();
        let slot = near[below((draw >> 32) as u32, near.len())];
        (slot != here && draw.is_multiple_of(2)).then_some(slot)
    })
}

fn towards_neighbour(assignment: &Assignment<'_>, rank: u32, random: &mut Pcg64) -> Option<u32> {
    let distance = assignment.problem().distance();
    let here = assignment.slot_of(rank);
    let neighbours = assignment.problem().neighbours(rank);
    let draws = if neighbours.is_empty() { 0 } else { DRAWS };
    (0..draws).find_map(|_| {
        let draw = random.next_u64();
        let there = assignment.slot_of(neighbours[below(draw as u32, neighbours.len())].rank);
        draw_closer(distance, here, there, (draw >> 32) as u32)
    })
}

/// Draws a slot closer to another one than a given slot: in a tree from the largest group that contains the
/// other one but not the slot, otherwise from those near the other one. `bits` are random.
#[inline]
pub(crate) fn draw_closer(distance: &Distance, here: u32, there: u32, bits: u32) -> Option<u32> {
    if distance.is_tree() {
        let level = distance.meeting_level(here, there).checked_sub(1)?;
        let group = distance.group(level, there);
        let slot = distance.order()[group.start + below(bits, group.len())];
        return (slot != there).then_some(slot);
    }
    let near = distance.near(there);
    let slot = *near.get(below(bits, near.len().max(1)))?;
    (slot != there && distance.cost(slot, there) < distance.cost(here, there)).then_some(slot)
}

/// One sweep: every rank proposes an exchange, which is applied if accepted at the temperature. Returns the
/// number of exchanges that changed the cost.
pub(crate) fn sweep(
    assignment: &mut Assignment<'_>,
    ranks: &[u32],
    temperature: f64,
    acceptance: &Acceptance,
    random: &mut Pcg64,
    incumbent: &mut Incumbent,
) -> u64 {
    let mut changes = 0;
    for &rank in ranks {
        // The upper half is for the proposal, the lower half for acceptance.
        let draw = random.next_u64();
        let slot = propose(assignment, rank, (draw >> 32) as u32, random);
        let delta = assignment.delta(rank, slot);
        if delta == Assignment::NEVER {
            continue;
        }
        if delta <= 0 || delta as f64 <= temperature * acceptance.threshold(draw as u32) {
            incumbent.record(assignment, rank, slot, delta);
            assignment.exchange(rank, slot, delta);
            changes += u64::from(delta != 0);
        }
    }
    incumbent.settle(assignment);
    changes
}

/// Proposals between two looks at the clock if the objective has a maximum.
const PART: usize = 16;

/// A sweep within the budget of a meter; `None` if this ends before. A proposal takes milliseconds if the objective has a
/// maximum and ranks have many partners, so the sweep then looks at the clock.
pub(crate) fn sweep_within(
    meter: &mut Meter<'_>,
    assignment: &mut Assignment<'_>,
    ranks: &[u32],
    temperature: f64,
    acceptance: &Acceptance,
    random: &mut Pcg64,
    incumbent: &mut Incumbent,
) -> Option<u64> {
    if !meter.take_all(ranks.len() as u64) {
        return None;
    }
    let part = if assignment.problem().is_quadratic() { ranks.len().max(1) } else { PART };
    let mut changes = 0;
    for (index, ranks) in ranks.chunks(part).enumerate() {
        if index > 0 {
            meter.look();
            if meter.was_stopped() {
                return None;
            }
        }
        changes += sweep(assignment, ranks, temperature, acceptance, random, incumbent);
    }
    Some(changes)
}

/// Moves in the sample of the mean change of cost.
const SAMPLES: usize = 1024;
/// Number of distinct random thresholds of acceptance; a power of two.
const THRESHOLDS: usize = 1024;

/// Mean absolute change of cost if a rank moves from its slot in one random mapping to its slot in another.
///
/// Moves that violate constraints do not count. Never zero; equal for all seeds and islands. Ends early if `more`
/// returns false.
pub(crate) fn mean_change(
    problem: &Problem,
    movable: &[u32],
    mut more: impl FnMut() -> bool,
) -> Result<f64, ObjectiveError> {
    let placement = |number| problem.random(seed_stream(kind::AUTO, 0, u64::MAX - number as u64));
    let mut sum = 0.0;
    let (mut moves, mut admitted) = (0, 0usize);
    let mut number = 0;
    'samples: while moves < SAMPLES {
        let assignment = Assignment::new(problem, &placement(number))?;
        let slots = placement(number + 1);
        for &rank in movable.iter().take(SAMPLES - moves) {
            if admitted > 0 && !more() {
                break 'samples;
            }
            let delta = assignment.delta(rank, slots[rank as usize]);
            if delta != Assignment::NEVER {
                sum += delta.abs() as f64;
                admitted += 1;
            }
            moves += 1;
        }
        number += 2;
    }
    Ok((sum / admitted.max(1) as f64).max(f64::MIN_POSITIVE))
}

/// Temperatures of one cycle, one per sweep, falling by a constant factor.
///
/// The factor is (cold / hot)^(1 / M) for M = sweeps − 1; the last temperature is `cold`.
pub(crate) fn temperatures(hot: f64, cold: f64, sweeps: u64) -> impl Iterator<Item = f64> {
    let coolings = sweeps.saturating_sub(1).max(1) as f64;
    let factor = libm::pow(cold / hot, 1.0 / coolings);
    std::iter::successors(Some(hot), move |temperature| Some(factor * temperature)).take(sweeps as usize)
}

/// Accepts a rise of cost Δ at temperature T with probability exp(−Δ / T) (Metropolis): if Δ ≤ T · −ln u for a random u.
///
/// The values of −ln u come from a table, which avoids a logarithm per decision.
pub(crate) struct Acceptance {
    thresholds: Vec<f64>,
}

impl Acceptance {
    pub(crate) fn new() -> Self {
        let threshold = |index| -libm::log((f64::from(index) + 0.5) / THRESHOLDS as f64);
        Self { thresholds: (0..THRESHOLDS as u32).map(threshold).collect() }
    }

    /// The accepted rise of cost, in units of the temperature, for these random bits.
    #[inline]
    pub(crate) fn threshold(&self, bits: u32) -> f64 {
        self.thresholds[bits as usize % THRESHOLDS]
    }
}

/// The best mapping of a search, and the exchanges since it was last stored.
///
/// Storing a mapping takes a step per rank. Within a sweep only exchanges are recorded; afterwards the search
/// is rewound to its best point. Only the stored mapping is serialised.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Incumbent {
    pub(crate) best: Candidate<Vec<u32>>,
    #[serde(skip)]
    exchanges: Vec<Exchange>,
    /// Number of exchanges to the best point and its cost, if it is better than the stored mapping.
    #[serde(skip)]
    pending: Option<(usize, i64)>,
}

#[derive(Clone, Copy)]
struct Exchange {
    rank: u32,
    from: u32,
    to: u32,
    delta: i64,
}

impl Incumbent {
    pub(crate) fn new(cost: i64, slots: Vec<u32>) -> Self {
        Self { best: Candidate { cost, solution: slots }, exchanges: Vec::new(), pending: None }
    }

    /// Records the next exchange.
    #[inline]
    pub(crate) fn record(&mut self, assignment: &Assignment<'_>, rank: u32, to: u32, delta: i64) {
        self.exchanges.push(Exchange { rank, from: assignment.slot_of(rank), to, delta });
        let cost = assignment.cost() + delta;
        if cost < self.pending.map_or(self.best.cost, |(_, cost)| cost) {
            self.pending = Some((self.exchanges.len(), cost));
        }
    }

    /// Stores the best point since the last call. The assignment is unchanged afterwards.
    pub(crate) fn settle(&mut self, assignment: &mut Assignment<'_>) {
        let mut exchanges = std::mem::take(&mut self.exchanges);
        if let Some((count, _)) = self.pending.take() {
            let later = &exchanges[count..];
            for exchange in later.iter().rev() {
                assignment.exchange(exchange.rank, exchange.from, -exchange.delta);
            }
            self.replace(assignment);
            for exchange in later {
                assignment.exchange(exchange.rank, exchange.to, exchange.delta);
            }
        }
        exchanges.clear();
        self.exchanges = exchanges;
    }

    /// Stores a mapping that another problem led to, if it is better here.
    pub(crate) fn offer(&mut self, problem: &Problem, slots: &[u32]) {
        let cost = problem.cost(slots);
        if cost < self.best.cost {
            self.best = Candidate { cost, solution: slots.to_vec() };
        }
    }

    /// Stores a mapping if it is better; returns whether it was.
    pub(crate) fn replace(&mut self, assignment: &Assignment<'_>) -> bool {
        let is_better = assignment.cost() < self.best.cost;
        if is_better {
            self.best.cost = assignment.cost();
            self.best.solution.copy_from_slice(assignment.slots());
        }
        is_better
    }
}

/// Descends to a local optimum by exchanges that lower the cost.
///
/// Ends if no exchange of two ranks or move to a free slot lowers the cost, or when `more`, called before
/// every evaluation, returns false. An exchange that lowers the cost moves one of its ranks closer to a
/// neighbour, so only such slots are tried, or all if the machine is not a tree or the objective counts
/// links. In the latter case a first descent tries only slots near neighbours.
pub fn descend(assignment: &mut Assignment<'_>, mut more: impl FnMut() -> bool) {
    if descend_near(assignment, &mut more) {
        settle(assignment, &mut more, closer);
    }
}

/// Descends by exchanges with slots near neighbours, or near the own slot, as long as these lower the cost;
/// `false` if `more` returned false.
pub(crate) fn descend_near(assignment: &mut Assignment<'_>, more: &mut impl FnMut() -> bool) -> bool {
    settle(assignment, more, |assignment, rank| {
        let problem = assignment.problem();
        let neighbours = problem.neighbours(rank).iter().map(|near| near.rank);
        std::iter::once(rank)
            .chain(neighbours)
            .map(|rank| problem.distance().near(assignment.slot_of(rank)))
            .collect()
    })
}

/// Makes every exchange of a rank with one of its candidates that lowers the cost, until none does; `false` if
/// `more` returned false.
fn settle<'p>(
    assignment: &mut Assignment<'p>,
    more: &mut impl FnMut() -> bool,
    candidates: impl Fn(&Assignment<'p>, u32) -> Vec<&'p [u32]>,
) -> bool {
    loop {
        let before = assignment.cost();
        for rank in 0..assignment.slots().len() as u32 {
            for &slot in candidates(assignment, rank).into_iter().flatten() {
                if !more() {
                    return false;
                }
                let delta = assignment.delta(rank, slot);
                if delta < 0 {
                    assignment.exchange(rank, slot, delta);
                }
            }
        }
        if assignment.cost() == before {
            return true;
        }
    }
}

/// The slots closer to some neighbour than the current slot.
fn closer<'p>(assignment: &Assignment<'p>, rank: u32) -> Vec<&'p [u32]> {
    let problem = assignment.problem();
    let distance = problem.distance();
    if !problem.is_about_closeness() {
        // Any slot may be closer to some neighbour.
        return vec![distance.order()];
    }
    let here = assignment.slot_of(rank);
    let closer_to = |there| {
        let level = distance.meeting_level(here, there).checked_sub(1)?;
        Some(distance.group(level, there))
    };
    let neighbours = problem.neighbours(rank).iter();
    let mut runs: Vec<_> =
        neighbours.filter_map(|neighbour| closer_to(assignment.slot_of(neighbour.rank))).collect();
    runs.sort_unstable_by_key(|run| (run.start, std::cmp::Reverse(run.end)));
    // Groups of a tree are nested or disjoint.
    runs.dedup_by(|inner, outer| inner.end <= outer.end);
    runs.into_iter().map(|run| &distance.order()[run]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_problems::dense_with;
    use hopmap_islands::Progress;
    use hopmap_model::Context;
    use hopmap_objective::Objective;
    use hopmap_random::SeedableRng;
    use hopmap_test_support::Impatient;

    /// Once a sweep of thousands of ranks by link loads took seconds after the deadline.
    #[test]
    fn a_sweep_of_a_maximum_can_be_stopped() {
        let swept = |objective| {
            let problem = dense_with(objective, 64, |a, b| (a * b % 7) as u64, |a, b| a.abs_diff(b) as f64);
            let mut assignment = Assignment::new(&problem, &problem.linear()).expect("a mapping");
            let mut incumbent = Incumbent::new(assignment.cost(), problem.linear());
            let (observer, progress) = (Impatient::new(2), Progress::new(None));
            let cx = Context::new(1, None, &observer);
            let mut meter = Meter::new(u64::MAX, [None; 2], cx, &progress);
            let (acceptance, mut random) = (Acceptance::new(), Pcg64::from_seed([1; 32]));
            let (ranks, incumbent) = (movable(&problem), &mut incumbent);
            sweep_within(&mut meter, &mut assignment, &ranks, 1.0, &acceptance, &mut random, incumbent)
        };
        assert!(swept(&Objective::F).is_some());
        assert_eq!(swept(&Objective::T), None);
    }

    #[test]
    fn temperatures_fall_from_hot_to_cold() {
        let temperatures: Vec<_> = temperatures(200.0, 2.0, 64).collect();
        assert_eq!(temperatures.len(), 64);
        assert!((temperatures[0] - 200.0).abs() < 1e-9 && (temperatures[63] - 2.0).abs() < 1e-9);
        assert!(temperatures.windows(2).all(|pair| pair[0] > pair[1]));
        assert_eq!(super::temperatures(2.0, 1.0, 1).count(), 1);
    }

    #[test]
    fn a_rise_of_one_temperature_is_accepted_with_probability_one_over_e() {
        let acceptance = Acceptance::new();
        let mut random = Pcg64::from_seed([1; 32]);
        let accepted = (0..100_000).filter(|_| acceptance.threshold(random.next_u32()) >= 1.0).count();
        assert!((accepted as f64 / 100_000.0 - 0.3679).abs() < 0.005, "{accepted}");
    }
}
