//! Annealing parameters, resolved for a problem.

use hopmap_model::{Error, require, require_above_zero};
use hopmap_objective::{Assignment, Problem};
use hopmap_random::{Pcg64, Rng};

use crate::error::MapError;
use crate::moves::{below, movable, propose};
use crate::params::{AfterExchange, AnnealingParams, Cooling, Iteration, MoveType, MovesUnit, Preset};

/// Factor q of proportional cooling: each temperature is q times the previous one.
const FACTOR: f64 = 0.99;
/// The initial temperature, μ · F / −ln φ for a start with cost F, accepts a rise of μ · F with probability
/// φ.
const MU: f64 = 0.3;
const PHI: f64 = 0.3;
/// The final temperature as a fraction of the initial one. The papers do not specify it, and a value in the
/// unit of F fits only one program.
const FINAL_SHARE: f64 = 1e-7;
/// Candidates at one temperature, per rank depending on `moves_unit`. Beyond 1024 ranks the number grows with
/// the ranks, because 50 candidates reach almost no rank of a large program.
const MOVES: u64 = 50;
const RANKS_PER_MOVE: u64 = 20;
/// Iterations between two exchanges, which broadcast the best mapping to all islands.
const EXCHANGE_INTERVAL: u64 = 1000;
/// The papers' for tai343e01, their only instance with as many ranks.
const EXCHANGE_INTERVAL_343: u64 = 100;
/// Generations at the start, and temperatures of each. Together they are the first tenth of the temperatures
/// that accept anything; later children are never accepted (measured on tai27e01 to tai125e01).
const GENERATIONS: u64 = 20;
const TEMPERATURES: u64 = 5;
/// Solvers times ranks beyond 1024 ranks. The papers end at 1024 ranks with 125 solvers, and their work grows
/// with the square of the ranks.
const SOLVERS_TIMES_RANKS: u64 = 125 * 1024;
/// Ranks move towards neighbours on a tree if fewer than one in this many pairs of ranks are neighbours:
/// random exchanges of thousands of ranks are almost never accepted.
const FEW_NEIGHBOURS: usize = 4;

/// Annealing parameters resolved for a problem.
#[derive(Debug, Clone)]
pub(crate) struct Rules {
    pub(crate) params: AnnealingParams,
    pub(crate) solvers: u32,
    pub(crate) iterations: u64,
    pub(crate) exchange_interval: u64,
    /// Breeding epochs at the start, and iterations of each.
    pub(crate) generations: u64,
    generation: u64,
    /// Examined and accepted candidates of one temperature.
    pub(crate) examined: u64,
    pub(crate) accepted: u64,
    pub(crate) patience: u64,
    /// Whether the temperature restarts after every exchange.
    pub(crate) reheats: bool,
    /// One unit of F.
    scale: f64,
    /// Cooling steps between two restarts of the temperature.
    coolings: f64,
    move_type: MoveType,
    /// Ranks from which candidates are drawn.
    movable: Vec<u32>,
}

/// Initial and final temperature in units of the integer cost, and the cooling factor.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Range {
    pub(crate) first: f64,
    pub(crate) last: f64,
    pub(crate) factor: f64,
}

/// Checks parameters without a problem.
pub(crate) fn check(params: &AnnealingParams) -> Result<(), Error> {
    let positive = require_above_zero;
    positive("solvers", params.solvers.map(u64::from))?;
    positive("iterations", params.iterations)?;
    positive("exchange_interval", params.exchange_interval)?;
    positive("moves_per_temperature", params.moves_per_temperature.map(u64::from))?;
    positive("max_accepted_per_temperature", params.max_accepted_per_temperature.map(u64::from))?;
    positive("patience", params.patience)?;
    for (name, value) in
        [("initial_temperature", params.initial_temperature), ("final_temperature", params.final_temperature)]
    {
        let value = value.unwrap_or(1.0);
        require(value > 0.0 && value.is_finite(), name, value, "above 0, in the unit of F")?;
    }
    if let (Some(first), Some(last)) = (params.initial_temperature, params.final_temperature)
        && last >= first
    {
        return Err(MapError::temperatures(first, last).into());
    }
    let factor = params.cooling_rate.unwrap_or(FACTOR);
    let (is_right, allowed) = match params.cooling {
        Cooling::Proportional => (factor < 1.0, "above 0 and below 1"),
        Cooling::Cauchy => (factor.is_finite(), "above 0"),
    };
    Ok(require(factor > 0.0 && is_right, "cooling_rate", factor, allowed)?)
}

impl Rules {
    /// Resolves valid parameters for a problem.
    pub(crate) fn new(params: &AnnealingParams, problem: &Problem) -> Self {
        let ranks = problem.ranks() as u64;
        let examined = match (params.moves_unit, params.moves_per_temperature.map(u64::from)) {
            (MovesUnit::Candidates, moves) => moves.unwrap_or_else(|| default_moves(ranks)),
            (MovesUnit::PerRank, moves) => moves.unwrap_or(MOVES) * ranks,
        };
        let iterations = params.iterations.unwrap_or_else(|| default_iterations(ranks));
        let exchange_interval =
            params.exchange_interval.unwrap_or_else(|| default_exchange_interval(params.preset, ranks));
        let exchange_interval = exchange_interval.min(iterations);
        let generation = match params.iteration {
            Iteration::Candidate => TEMPERATURES * examined,
            Iteration::Temperature => TEMPERATURES,
        };
        let generations =
            if params.crossover_on_exchange { params.generations.unwrap_or(GENERATIONS) } else { 0 };
        let reheats = params.temperature_after_exchange == AfterExchange::Restart;
        let between_restarts = if reheats { exchange_interval } else { iterations };
        let coolings = match params.iteration {
            Iteration::Candidate => between_restarts as f64 / examined as f64,
            Iteration::Temperature => between_restarts as f64,
        };
        let move_type = params.move_type.unwrap_or_else(|| default_move_type(problem));
        Self {
            params: params.clone(),
            solvers: params.solvers.unwrap_or_else(|| default_solvers(ranks)),
            iterations,
            exchange_interval,
            generations: generations.min(iterations / generation),
            generation,
            examined,
            accepted: params.max_accepted_per_temperature.map_or(examined / 10, u64::from).max(1),
            patience: params.patience.unwrap_or(u64::MAX),
            reheats,
            scale: problem.scale(),
            coolings: coolings.max(1.0),
            move_type,
            movable: movable(problem),
        }
    }

    /// Epochs of one annealing run.
    pub(crate) fn epochs(&self) -> u64 {
        let others = self.iterations - self.generations * self.generation;
        self.generations + others.div_ceil(self.exchange_interval).max(u64::from(self.generations == 0))
    }

    /// Iterations of an epoch.
    pub(crate) fn iterations_of(&self, epoch: u64) -> u64 {
        if epoch < self.generations { self.generation } else { self.exchange_interval }
    }

    /// Maximum candidates of one solver.
    pub(crate) fn candidates(&self) -> u64 {
        match self.params.iteration {
            Iteration::Candidate => self.iterations,
            Iteration::Temperature => self.temperatures().saturating_mul(self.examined),
        }
    }

    /// Maximum temperatures of one solver.
    fn temperatures(&self) -> u64 {
        let AnnealingParams { cooling, initial_temperature, final_temperature, .. } = self.params;
        match (cooling, initial_temperature, final_temperature, self.reheats) {
            (Cooling::Proportional, None, None, false) => {
                let factor = self.params.cooling_rate.unwrap_or(FACTOR);
                let coolings = (libm::log(FINAL_SHARE) / libm::log(factor)).ceil() as u64;
                self.iterations.min(coolings.saturating_add(2))
            }
            _ => self.iterations,
        }
    }

    /// The temperatures for a start cost; `None` for cost zero, which cannot improve.
    pub(crate) fn range(&self, start: i64) -> Result<Option<Range>, MapError> {
        if start <= 0 {
            return Ok(None);
        }
        let AnnealingParams { initial_temperature, final_temperature, .. } = self.params;
        let first =
            initial_temperature.map_or(MU * start as f64 / -libm::log(PHI), |first| first * self.scale);
        let last = final_temperature.map_or(FINAL_SHARE * first, |last| last * self.scale);
        if last >= first {
            return Err(MapError::temperatures(first / self.scale, last / self.scale));
        }
        let factor = match (self.params.cooling, self.params.cooling_rate) {
            (Cooling::Proportional, factor) => factor.unwrap_or(FACTOR),
            (Cooling::Cauchy, Some(beta)) => beta / self.scale,
            (Cooling::Cauchy, None) => (first - last) / (self.coolings * first * last),
        };
        Ok(Some(Range { first, last, factor }))
    }

    /// The next temperature.
    pub(crate) fn cooled(&self, temperature: f64, factor: f64) -> f64 {
        match self.params.cooling {
            Cooling::Proportional => factor * temperature,
            Cooling::Cauchy => temperature / (1.0 + factor * temperature),
        }
    }

    /// Draws a candidate: a rank and its new slot.
    pub(crate) fn draw(&self, assignment: &Assignment<'_>, random: &mut Pcg64) -> (u32, u32) {
        let draw = random.next_u64();
        let rank = self.movable[below(draw as u32, self.movable.len())];
        match self.move_type {
            MoveType::Towards => (rank, propose(assignment, rank, random.next_u32(), random)),
            MoveType::Random => {
                let slot = below((draw >> 32) as u32, assignment.problem().slots() - 1) as u32;
                (rank, slot + u32::from(slot >= assignment.slot_of(rank)))
            }
        }
    }
}

fn default_solvers(ranks: u64) -> u32 {
    match ranks {
        ..=100 => ranks as u32,
        101..=1024 => 125,
        _ => (SOLVERS_TIMES_RANKS / ranks).max(1) as u32,
    }
}

/// Default iterations for a number of ranks.
fn default_iterations(ranks: u64) -> u64 {
    match ranks {
        ..=256 => 50_000,
        _ => 100_000,
    }
}

fn default_exchange_interval(preset: Preset, ranks: u64) -> u64 {
    match (preset, ranks) {
        (Preset::Paper, 343) => EXCHANGE_INTERVAL_343,
        _ => EXCHANGE_INTERVAL,
    }
}

fn default_moves(ranks: u64) -> u64 {
    if ranks <= 1024 { MOVES } else { ranks / RANKS_PER_MOVE }
}

fn default_move_type(problem: &Problem) -> MoveType {
    let ranks = problem.ranks();
    let neighbours: usize = (0..ranks as u32).map(|rank| problem.neighbours(rank).len()).sum();
    match problem.distance().is_tree() && neighbours * FEW_NEIGHBOURS < ranks * ranks {
        true => MoveType::Towards,
        false => MoveType::Random,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_those_of_the_papers_and_bounded_beyond() {
        assert_eq!(
            [16, 100, 101, 1024, 2048, 65_536, 1 << 20].map(default_solvers),
            [16, 100, 125, 125, 62, 1, 1]
        );
        assert_eq!([16, 256, 257, 65_536].map(default_iterations), [50_000, 50_000, 100_000, 100_000]);
        assert_eq!([16, 1024, 65_536].map(default_moves), [50, 50, 3276]);
    }

    #[test]
    fn parameters_out_of_range_are_refused() {
        let message = |params: AnnealingParams| check(&params).unwrap_err().to_string();
        let params = AnnealingParams::default;
        assert_eq!(
            message(AnnealingParams { solvers: Some(0), ..params() }),
            "`solvers` = 0 is out of range"
        );
        assert_eq!(
            message(AnnealingParams { iterations: Some(0), ..params() }),
            "`iterations` = 0 is out of range"
        );
        assert_eq!(
            message(AnnealingParams { exchange_interval: Some(0), ..params() }),
            "`exchange_interval` = 0 is out of range"
        );
        assert_eq!(
            message(AnnealingParams { moves_per_temperature: Some(0), ..params() }),
            "`moves_per_temperature` = 0 is out of range"
        );
        assert_eq!(
            message(AnnealingParams { max_accepted_per_temperature: Some(0), ..params() }),
            "`max_accepted_per_temperature` = 0 is out of range"
        );
        assert_eq!(
            message(AnnealingParams { patience: Some(0), ..params() }),
            "`patience` = 0 is out of range"
        );
        assert_eq!(
            message(AnnealingParams { cooling_rate: Some(1.5), ..params() }),
            "`cooling_rate` = 1.5 is out of range"
        );
        let cauchy = AnnealingParams { cooling: Cooling::Cauchy, cooling_rate: Some(-1.0), ..params() };
        assert_eq!(message(cauchy), "`cooling_rate` = -1 is out of range");
        let cold = AnnealingParams { initial_temperature: Some(f64::NAN), ..params() };
        assert_eq!(message(cold), "`initial_temperature` = NaN is out of range");
        let upside_down =
            AnnealingParams { initial_temperature: Some(1.0), final_temperature: Some(5.0), ..params() };
        assert_eq!(message(upside_down), "the final temperature 5 is not below the initial temperature 1");
    }
}
