//! Data shared by all islands: the problem and its temperatures.

use std::time::Instant;

use hopmap_islands::{Meter, Progress};
use hopmap_model::{Context, seed_stream};
use hopmap_objective::{Assignment, ObjectiveError, Problem};
use hopmap_random::{Pcg64, SeedableRng};

use crate::moves::{Acceptance, Incumbent, mean_change, movable, sweep};
use crate::params::kind;

/// Fraction of proposals that are accepted and change the cost at the start of a population.
const HOT_ACCEPTANCE: f64 = 0.25;
/// Start temperature of the search for it, in units of the mean change of cost, and the cooling factor.
const HOTTEST: f64 = 2.0;
const FALL: f64 = 1.2;
/// Lowest temperature of that search, in units of the mean change of cost.
const COLDEST: f64 = 1e-4;
/// Minimum proposals of that search at every temperature.
const PROBE_PROPOSALS: usize = 512;
/// Maximum ranks that make them if the objective is not a sum: maxima are slow, and so are their norms.
const MOST_PROBED: usize = 4096;
/// Proposals between two looks at the clock if the time for this is limited.
const PART: usize = 16;
/// The same fraction for a population that starts near a good mapping.
const WARM_ACCEPTANCE: f64 = 0.05;
/// Maximum number of ranks for tabu search, which stores the deltas of all exchanges.
const MOST_EXPLORED: usize = 256;
/// Memory for the populations of the islands of a process, and the number of islands that a process has at
/// most. What a search finds must not depend on how many it really has.
const MEMORY: u64 = 1 << 30;
const MOST_TOGETHER: u32 = 16;
/// One of this many islands ignores coarse starts, which may be bad, with few ranks and with many. From random
/// mappings, populations of 45 ranks find better assignments of the clusters, those of 125 ranks worse ones.
const UNSEEDED_ISLAND: [u32; 2] = [2, 4];
const MANY_RANKS: usize = 100;
/// Start and end of the search for it, in multiples of the start temperature of populations.
const COOL: f64 = 1.0 / 256.0;
const WARMEST: f64 = 0.5;

/// The problem and its temperatures.
pub(super) struct SearchContext<'p> {
    pub(super) problem: &'p Problem,
    /// Movable ranks whose slot affects the cost.
    pub(super) movable: Vec<u32>,
    /// The linear or the greedy mapping, whichever costs less.
    pub(super) start: Vec<u32>,
    /// Mean change of cost of random moves in random mappings.
    pub(super) mean_change: f64,
    /// Start temperature of a population.
    pub(super) hot: f64,
    pub(super) acceptance: Acceptance,
    /// Whether tabu search continues from a frozen population.
    pub(super) explores: bool,
    /// The same problem with norms in place of maxima, in the order of their use; empty without maxima.
    pub(super) norms: Vec<Self>,
    /// Whether islands also walk by tabu search. A saved walk keeps no order of free slots.
    pub(super) walks: bool,
    /// Maximum number of members of a population.
    pub(super) most_members: u64,
    /// Start mappings from an easier problem.
    pub(super) given_starts: Option<GivenStarts>,
    /// When the search for temperatures must end.
    end: Option<Instant>,
}

/// Start mappings, and a temperature that preserves them.
pub(super) struct GivenStarts {
    pub(super) starts: Vec<Vec<u32>>,
    pub(super) warm: f64,
    /// Whether the starts differ enough for all populations, not only the first one.
    pub(super) differ: bool,
}

impl GivenStarts {
    /// The starts, over and over, from the first one of an island.
    pub(super) fn of(&self, island: u32) -> impl Iterator<Item = &Vec<u32>> {
        self.starts.iter().cycle().skip(island as usize % self.starts.len())
    }
}

impl<'p> SearchContext<'p> {
    /// From a start that takes long; `None` if all mappings cost the same. The temperatures are too high if they are
    /// not found until `end`.
    pub(super) fn new(
        problem: &'p Problem,
        islands: u32,
        end: Option<Instant>,
        start: impl FnOnce() -> Vec<u32>,
    ) -> Result<Option<Self>, ObjectiveError> {
        let movable = movable(problem);
        if movable.is_empty() || problem.distance().levels() < 2 {
            return Ok(None);
        }
        let progress = Progress::new(None);
        let mut meter = probes(end, &progress);
        let mean_change = mean_change(problem, &movable, || meter.take())?;
        let explores = movable.len() <= MOST_EXPLORED && problem.is_compact() && problem.is_quadratic();
        let mut context = Self {
            problem,
            movable,
            start: start(),
            mean_change,
            hot: mean_change,
            acceptance: Acceptance::new(),
            explores,
            norms: Vec::new(),
            walks: explores && problem.movable().len() == problem.slots(),
            most_members: most_members(problem, islands),
            given_starts: None,
            end,
        };
        context.hot = context.find_hot()?;
        Ok(Some(context))
    }

    /// Whether there was not enough time to find temperatures.
    pub(super) fn has_no_temperatures(&self) -> bool {
        self.end.is_some_and(|end| Instant::now() >= end)
    }

    /// Whether a mapping costs less than the start.
    pub(super) fn is_better(&self, slots: &[u32]) -> bool {
        self.problem.cost(slots) < self.problem.cost(&self.start)
    }

    /// Starts from mappings, unless none is better than the start so far.
    pub(super) fn give_starts(&mut self, starts: Vec<Vec<u32>>, differ: bool) -> Result<(), ObjectiveError> {
        let Some(best) = starts.iter().min_by_key(|start| self.problem.cost(start)) else { return Ok(()) };
        if self.is_better(best) {
            let warm = self.find_warm(best)?;
            self.given_starts = Some(GivenStarts { starts, warm, differ });
        }
        Ok(())
    }

    /// Starts of an island.
    pub(super) fn given_starts(&self, island: u32) -> Option<&GivenStarts> {
        let each = UNSEEDED_ISLAND[usize::from(self.movable.len() >= MANY_RANKS)];
        self.given_starts.as_ref().filter(|given| !given.differ || island % each != each - 1)
    }

    /// Finds the temperature at which about a quarter of all proposals are accepted and change the cost by
    /// cooling a random mapping.
    fn find_hot(&self) -> Result<f64, ObjectiveError> {
        let start = self.problem.random(seed_stream(kind::AUTO, 0, u64::MAX - 1));
        let mut temperature = HOTTEST * self.mean_change;
        let mut probe = Probe::new(self, start)?;
        let is_hot = |acceptance: Option<f64>| acceptance.is_some_and(|share| share >= HOT_ACCEPTANCE);
        while temperature > COLDEST * self.mean_change && is_hot(probe.acceptance(self, temperature)) {
            temperature /= FALL;
        }
        Ok(temperature)
    }

    /// Finds the temperature at which a few proposals are accepted by heating a good mapping.
    pub(super) fn find_warm(&self, start: &[u32]) -> Result<f64, ObjectiveError> {
        let mut temperature = COOL * self.hot;
        let mut probe = Probe::new(self, start.to_vec())?;
        let is_cold = |acceptance: Option<f64>| acceptance.is_some_and(|share| share < WARM_ACCEPTANCE);
        while temperature < WARMEST * self.hot && is_cold(probe.acceptance(self, temperature)) {
            temperature *= FALL;
        }
        Ok(temperature)
    }
}

/// Maximum number of members of a population; more work goes into sweeps.
fn most_members(problem: &Problem, islands: u32) -> u64 {
    let memory = MEMORY / u64::from(islands.clamp(1, MOST_TOGETHER));
    (memory / problem.mapping_bytes().max(1)).max(2)
}

/// The proposals that find temperatures: as many as there is time for.
fn probes(end: Option<Instant>, progress: &Progress) -> Meter<'_> {
    Meter::new(u64::MAX, [end; 2], Context::detached(), progress)
}

/// A mapping that is heated or cooled to find temperatures.
struct Probe<'p> {
    assignment: Assignment<'p>,
    incumbent: Incumbent,
    random: Pcg64,
}

impl<'p> Probe<'p> {
    fn new(context: &SearchContext<'p>, start: Vec<u32>) -> Result<Self, ObjectiveError> {
        let assignment = Assignment::new(context.problem, &start)?;
        let random = Pcg64::from_seed(seed_stream(kind::AUTO, 0, u64::MAX));
        Ok(Self { incumbent: Incumbent::new(assignment.cost(), start), assignment, random })
    }

    /// Fraction of proposals that are accepted and change the cost; `None` if there is no time for them.
    fn acceptance(&mut self, context: &SearchContext<'_>, temperature: f64) -> Option<f64> {
        let Self { assignment, incumbent, random } = self;
        let most = if context.problem.is_quadratic() { usize::MAX } else { MOST_PROBED };
        let ranks = &context.movable[..context.movable.len().min(most)];
        let sweeps = PROBE_PROPOSALS.div_ceil(ranks.len());
        let progress = Progress::new(None);
        let mut meter = probes(context.end, &progress);
        let part = if context.end.is_some() { PART } else { ranks.len() };
        let mut changes = 0;
        for part in std::iter::repeat_n(ranks, sweeps).flat_map(|ranks| ranks.chunks(part)) {
            if !meter.take_all(part.len() as u64) {
                return None;
            }
            changes += sweep(assignment, part, temperature, &context.acceptance, random, incumbent);
        }
        Some(changes as f64 / (sweeps * ranks.len()) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_problems::dense;

    /// Once an island had a start from groups of ranks even if it cost more than the linear mapping.
    #[test]
    fn starts_that_are_no_better_than_the_plain_one_are_ignored() {
        let size = 12;
        let problem = dense(size, |a, b| u64::from(a.abs_diff(b) == 1), |a, b| a.abs_diff(b) as f64);
        let mut context = SearchContext::new(&problem, 4, None, || problem.linear()).unwrap().unwrap();
        let worse = problem.random([7; 32]);
        context.give_starts(vec![worse.clone()], true).unwrap();
        assert!(context.given_starts(0).is_none());
        context.start = problem.random([8; 32]);
        let linear = problem.linear();
        context.give_starts(vec![worse, linear.clone()], true).unwrap();
        assert_eq!(context.given_starts(2).unwrap().of(1).next(), Some(&linear));
        assert!(context.given_starts(3).is_none());
    }
    /// Once a maximum with many links took minutes, whatever the time limit.
    #[test]
    fn temperatures_are_found_only_while_there_is_time() {
        let problem = dense(12, |a, b| (a * b % 7) as u64, |a, b| a.abs_diff(b) as f64);
        let context = |end| SearchContext::new(&problem, 1, end, || problem.linear()).unwrap().unwrap();
        let (late, patient) = (context(Some(Instant::now())), context(None));
        assert!((late.hot - HOTTEST * late.mean_change).abs() < f64::EPSILON && late.has_no_temperatures());
        assert!(patient.hot < HOTTEST * patient.mean_change && !patient.has_no_temperatures());
    }
}
