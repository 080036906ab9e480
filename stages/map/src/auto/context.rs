//! What all islands share.

use hopmap_model::seed_stream;
use hopmap_objective::{Assignment, ObjectiveError, Problem};
use hopmap_random::{Pcg64, SeedableRng};

use crate::baseline::linear_or_greedy;
use crate::moves::{Acceptance, Incumbent, mean_change, movable, sweep};
use crate::params::kind;

/// Part of all proposals that is accepted and changes the cost where a population begins.
const HOT_ACCEPTANCE: f64 = 0.25;
/// The temperature at which the search for that begins, in mean changes of cost, and what it falls by.
const HOTTEST: f64 = 2.0;
const FALL: f64 = 1.2;
/// Where that search ends at the latest, in mean changes of cost.
const COLDEST: f64 = 1e-4;
/// Proposals of that search at every temperature, at least.
const PROBE_PROPOSALS: usize = 512;
/// The same for a placement that is known to be good, from whose neighbourhood a population sets out.
const WARM_ACCEPTANCE: f64 = 0.05;
/// Most ranks whose exchanges tabu search knows all of.
const MOST_EXPLORED: usize = 256;
/// Where the search for that begins and ends, in multiples of the temperature where populations begin.
const COOL: f64 = 1.0 / 256.0;
const WARMEST: f64 = 0.5;

/// The problem and what is known of its temperatures.
pub(super) struct SearchContext<'p> {
    pub(super) problem: &'p Problem,
    /// Ranks that may move and for which it makes a difference where they are.
    pub(super) movable: Vec<u32>,
    /// The linear or a greedy placement, whichever costs less.
    pub(super) start: Vec<u32>,
    /// Mean change of cost of random moves in random placements.
    pub(super) mean_change: f64,
    /// Where a population begins.
    pub(super) hot: f64,
    pub(super) acceptance: Acceptance,
    /// Whether tabu search goes on where a population is frozen.
    pub(super) explores: bool,
    /// Placements in which groups of ranks are where they may belong, and a temperature at which these do not lose that.
    pub(super) grouped: Option<(Vec<Vec<u32>>, f64)>,
}

impl<'p> SearchContext<'p> {
    /// `None` if all placements cost the same.
    pub(super) fn new(problem: &'p Problem) -> Result<Option<Self>, ObjectiveError> {
        let movable = movable(problem);
        if movable.is_empty() || problem.distance().levels() < 2 {
            return Ok(None);
        }
        let mean_change = mean_change(problem, &movable)?;
        let explores = movable.len() <= MOST_EXPLORED && problem.is_compact() && problem.is_quadratic();
        let mut context = Self {
            problem,
            movable,
            start: linear_or_greedy(problem),
            mean_change,
            hot: mean_change,
            acceptance: Acceptance::new(),
            explores,
            grouped: None,
        };
        context.hot = context.find_hot()?;
        Ok(Some(context))
    }

    /// Sets out from placements in which groups of ranks are where they may belong.
    pub(super) fn set_grouped(&mut self, starts: Vec<Vec<u32>>) -> Result<(), ObjectiveError> {
        let Some(best) = starts.iter().min_by_key(|start| self.problem.cost(start)) else { return Ok(()) };
        let warm = self.find_warm(best)?;
        self.grouped = Some((starts, warm));
        Ok(())
    }

    /// Where an island sets out, and at which temperature.
    pub(super) fn grouped(&self, island: u32) -> Option<(&[u32], f64)> {
        let (starts, warm) = self.grouped.as_ref()?;
        Some((&starts[island as usize % starts.len()], *warm))
    }

    /// The temperature at which about a quarter of all proposals is accepted and changes the cost, found by cooling a random
    /// placement.
    fn find_hot(&self) -> Result<f64, ObjectiveError> {
        let start = self.problem.random(seed_stream(kind::AUTO, 0, u64::MAX - 1));
        let mut temperature = HOTTEST * self.mean_change;
        let mut probe = Probe::new(self, start)?;
        while temperature > COLDEST * self.mean_change
            && probe.acceptance(self, temperature) >= HOT_ACCEPTANCE
        {
            temperature /= FALL;
        }
        Ok(temperature)
    }

    /// The temperature at which a few proposals of a good placement are accepted, found by heating it.
    fn find_warm(&self, start: &[u32]) -> Result<f64, ObjectiveError> {
        let mut temperature = COOL * self.hot;
        let mut probe = Probe::new(self, start.to_vec())?;
        while temperature < WARMEST * self.hot && probe.acceptance(self, temperature) < WARM_ACCEPTANCE {
            temperature *= FALL;
        }
        Ok(temperature)
    }
}

/// A placement that is heated or cooled to find temperatures.
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

    /// Part of the proposals that is accepted and changes the cost.
    fn acceptance(&mut self, context: &SearchContext<'_>, temperature: f64) -> f64 {
        let Self { assignment, incumbent, random } = self;
        let sweeps = PROBE_PROPOSALS.div_ceil(context.movable.len());
        let mut changes = 0;
        for _ in 0..sweeps {
            changes +=
                sweep(assignment, &context.movable, temperature, &context.acceptance, random, incumbent);
        }
        changes as f64 / (sweeps * context.movable.len()) as f64
    }
}
