//! Parameters of parallel simulated annealing.

use hopmap_model::WeightChoice;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Cooling, Goal, Pin, Preset, first_seed, four_islands};

/// Parallel simulated annealing (GraphHunter's PSA).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "each is a parameter of its own")]
pub struct AnnealingParams {
    /// Whose choices the defaults are: hopmap's or those of the papers. What is given goes before both.
    #[serde(default)]
    pub preset: Preset,
    /// Another seed gives another search.
    #[serde(default = "first_seed")]
    pub seed: u64,
    /// How many candidates every island evaluates at most. Without `iterations`, a search that ends before this begins again from
    /// another random placement, so a larger budget continues a smaller one. Without it and `seconds`: one run of `iterations`.
    #[serde(default)]
    pub evaluations: Option<u64>,
    /// How long the search may take, in seconds; without `iterations` it begins again until then. The result cannot be made again
    /// bit for bit.
    #[serde(default)]
    pub seconds: Option<f64>,
    /// Number of islands, the processes of the paper. They run on as many threads and processes as there are, and their number
    /// never depends on it.
    #[serde(default = "four_islands")]
    pub islands: u32,
    /// Solvers of every island; each anneals the island's placement by itself until the next exchange. By default one for every
    /// rank up to 100 ranks and 125 up to 1024 (the papers); for n ranks beyond, 128,000 / n.
    #[serde(default)]
    pub solvers: Option<u32>,
    /// Iterations of every solver in all: exchanges × `successive`. By default 50,000 up to 256 ranks and 100,000 beyond (the
    /// papers, up to 1024). With proportional cooling the final temperature ends it before, after 1604 temperatures.
    #[serde(default)]
    pub iterations: Option<u64>,
    /// What an iteration is: a temperature or a candidate. The papers leave it open.
    #[serde(default)]
    pub iteration: Iteration,
    /// Iterations of every solver before the best placement of all islands becomes everybody's. By default 1000 (the papers, which
    /// found 100 better for tai343e01).
    #[serde(default)]
    pub successive: Option<u64>,
    /// Candidates that are examined at one temperature, in `neighbours_unit`. By default 50 (the papers); for n ranks beyond 1024,
    /// n / 20.
    #[serde(default)]
    pub max_neighbours: Option<u32>,
    /// Whether `max_neighbours` counts candidates or candidates for every rank. The papers print 50; the code of their library
    /// multiplies by n.
    #[serde(default)]
    pub neighbours_unit: NeighboursUnit,
    /// Candidates that are accepted at one temperature, after which it falls at once. By default a tenth of the examined ones (the
    /// library of the papers), at least 1.
    #[serde(default)]
    pub accepted: Option<u32>,
    /// How the temperature falls.
    #[serde(default)]
    pub cooling: Cooling,
    /// q of proportional cooling, between 0 and 1, 0.99 by default (the library of the papers); or β of Cauchy cooling, above 0 and
    /// in 1 / unit of F, by default (T0 − T1) / (C · T0 · T1) with the first and last temperature and C coolings (the papers
    /// print the numerator the other way round): `iterations`, or where they are candidates `iterations` / `max_neighbours`.
    #[serde(default)]
    pub factor: Option<f64>,
    /// First temperature in the unit of F. By default 0.3 · F(start) / −ln 0.3 (the library of the papers).
    #[serde(default)]
    pub initial_temperature: Option<f64>,
    /// A solver whose temperature falls below this one ends; in the unit of F. By default a ten-millionth of the first one, which
    /// for the instances of the papers is about the 0.01 of their library.
    #[serde(default)]
    pub final_temperature: Option<f64>,
    /// Whether the temperature goes on or restarts after an exchange. The papers leave it open.
    #[serde(default)]
    pub after_exchange: Reheat,
    /// A solver ends after so many iterations without a new best of its own. By default none does.
    #[serde(default)]
    pub patience: Option<u64>,
    /// Whether a solver ends at a temperature that accepts nothing, as in the library of the papers.
    #[serde(default)]
    pub frozen: bool,
    /// Whether islands breed while they are hot, as in the method RGO (ПОГ), and then anneal without exchanges: the placement of an
    /// island is crossed with that of the island before it in the ring, the child mutated, and taken if annealing accepts it.
    #[serde(default)]
    pub genetic: bool,
    /// How often islands breed, after every five temperatures; 20 times by default. For `genetic` only.
    #[serde(default)]
    pub generations: Option<u64>,
    /// Which exchanges are candidates. By default `towards` on a tree where a rank has few neighbours, else `random`.
    #[serde(default)]
    pub neighbours: Option<Neighbourhood>,
    /// Whether the best placement descends at the end to one that no exchange improves. The papers do not; it costs little.
    #[serde(default = "yes")]
    pub descent: bool,
    /// Whether rank order is the result where the search finds nothing better. The papers know no such rule.
    #[serde(default = "yes")]
    pub rank_order_fallback: bool,
    /// What an edge of the task graph weighs.
    #[serde(default)]
    pub weight: WeightChoice,
    /// What is minimised: `F`, `T`, `hop-bytes` or `max-link-load`, or their weighted sum, as in `{ F = 1.0, T = 0.5 }`.
    #[serde(default)]
    pub objective: Goal,
    /// Ranks that have to be on a slot or a host.
    #[serde(default)]
    pub pinned: Vec<Pin>,
    /// Names of hosts that no rank may be on.
    #[serde(default)]
    pub forbidden: Vec<String>,
}

/// What an iteration of annealing is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Iteration {
    /// All candidates of one temperature.
    #[default]
    Temperature,
    /// One candidate, as in the code of the papers' library.
    Candidate,
}

/// What neighbours are counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NeighboursUnit {
    /// In candidates.
    #[default]
    Candidates,
    /// In candidates for every rank.
    PerRank,
}

/// What an exchange between islands does to the temperature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Reheat {
    /// It goes on falling.
    #[default]
    Continue,
    /// It begins again, from the F of the placement that was handed out, as in the code of the papers' library.
    Restart,
}

/// Which exchanges of ranks are candidates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Neighbourhood {
    /// Any rank with what is on any other slot (the papers).
    Random,
    /// A rank with what is on a slot close to one of its neighbours.
    Towards,
}

impl Default for AnnealingParams {
    fn default() -> Self {
        Self {
            preset: Preset::Default,
            seed: first_seed(),
            evaluations: None,
            seconds: None,
            islands: four_islands(),
            solvers: None,
            iterations: None,
            iteration: Iteration::default(),
            successive: None,
            max_neighbours: None,
            neighbours_unit: NeighboursUnit::default(),
            accepted: None,
            cooling: Cooling::default(),
            factor: None,
            initial_temperature: None,
            final_temperature: None,
            after_exchange: Reheat::default(),
            patience: None,
            frozen: false,
            genetic: false,
            generations: None,
            neighbours: None,
            descent: true,
            rank_order_fallback: true,
            weight: WeightChoice::default(),
            objective: Goal::default(),
            pinned: Vec::new(),
            forbidden: Vec::new(),
        }
    }
}

impl AnnealingParams {
    /// The choices of the papers, where they print them or the code of their library has them.
    #[must_use]
    pub fn paper() -> Self {
        Self {
            preset: Preset::Paper,
            iteration: Iteration::Candidate,
            successive: Some(1000),
            max_neighbours: Some(50),
            cooling: Cooling::Cauchy,
            neighbours: Some(Neighbourhood::Random),
            descent: false,
            rank_order_fallback: false,
            ..Self::default()
        }
    }
}

pub(super) fn yes() -> bool {
    true
}
