//! Parameters of the stages.

mod annealing;
mod composite;
mod exact;
mod external;
mod genetic;
mod goal;
mod hierarchical;
mod import;
mod wishes;

use hopmap_model::WeightChoice;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use annealing::{AnnealingParams, Iteration, Neighbourhood, NeighboursUnit, Reheat};
pub use composite::CompositeParams;
pub use exact::ExactParams;
pub use external::{ExternalCommand, ExternalParams, Numbering};
pub use genetic::{Crossover, GeneticParams, Master, Scheme};
pub use goal::Goal;
pub use hierarchical::{HierarchicalParams, LevelChoice, OtherLevels, Partitioner};
pub use import::{ImportParams, PlacementFormat};
pub use wishes::Pin;
pub(crate) use wishes::Wishes;

/// Rank `i` on slot `i`, or on the host of its turn.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinearParams {
    /// What an edge of the task graph weighs.
    #[serde(default)]
    pub weight: WeightChoice,
    /// What searches beside this one minimise. It changes nothing here.
    #[serde(default)]
    pub objective: Goal,
    /// Ranks that have to be on a slot or a host.
    #[serde(default)]
    pub pinned: Vec<Pin>,
    /// Names of hosts that no rank may be on.
    #[serde(default)]
    pub forbidden: Vec<String>,
}

/// Ranks on slots drawn at random from all slots of the machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RandomParams {
    /// Another seed gives another placement.
    #[serde(default = "first_seed")]
    pub seed: u64,
    /// What an edge of the task graph weighs.
    #[serde(default)]
    pub weight: WeightChoice,
    /// What searches beside this one minimise. It changes nothing here.
    #[serde(default)]
    pub objective: Goal,
    /// Ranks that have to be on a slot or a host.
    #[serde(default)]
    pub pinned: Vec<Pin>,
    /// Names of hosts that no rank may be on.
    #[serde(default)]
    pub forbidden: Vec<String>,
}

/// The search that suits the problem.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AutoParams {
    /// Another seed gives another search.
    #[serde(default = "first_seed")]
    pub seed: u64,
    /// How many exchanges every island evaluates.
    #[serde(default)]
    pub evaluations: Option<u64>,
    /// How long the search may take, in seconds. The result cannot be made again bit for bit.
    #[serde(default)]
    pub seconds: Option<f64>,
    /// Number of searches side by side, 2 by default; their number never depends on that of the threads. In a budget of seconds
    /// few islands with large populations find more than many with small ones: no more than there are cores.
    #[serde(default = "two_islands")]
    pub islands: u32,
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

/// Robust tabu search.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TabuParams {
    /// Another seed gives another search.
    #[serde(default = "first_seed")]
    pub seed: u64,
    /// How many exchanges every island evaluates before its final descent: all pairs at every step. A larger budget continues
    /// the search of a smaller one. Without it, and without `seconds`: 33,554,432, but at least four steps for every rank.
    #[serde(default)]
    pub evaluations: Option<u64>,
    /// How long the search may take, in seconds; where there are fewer threads than islands, the islands share it. The result
    /// cannot be made again bit for bit.
    #[serde(default)]
    pub seconds: Option<f64>,
    /// Number of independent searches; the best one wins. They run side by side on as many threads as the stage has, and their
    /// number never depends on it.
    #[serde(default = "four_islands")]
    pub islands: u32,
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

/// Whose choices the defaults of a search are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
    /// Those that hopmap has measured to be good.
    #[default]
    Default,
    /// Those of the papers.
    Paper,
}

/// How the temperature T falls from one step to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Cooling {
    /// T becomes q · T.
    #[default]
    Proportional,
    /// T becomes T / (1 + β · T).
    Cauchy,
}

impl Default for RandomParams {
    fn default() -> Self {
        Self {
            seed: first_seed(),
            weight: WeightChoice::default(),
            objective: Goal::default(),
            pinned: Vec::new(),
            forbidden: Vec::new(),
        }
    }
}

impl Default for AutoParams {
    fn default() -> Self {
        Self {
            seed: first_seed(),
            evaluations: None,
            seconds: None,
            islands: two_islands(),
            weight: WeightChoice::default(),
            objective: Goal::default(),
            pinned: Vec::new(),
            forbidden: Vec::new(),
        }
    }
}

impl Default for TabuParams {
    fn default() -> Self {
        Self {
            seed: first_seed(),
            evaluations: None,
            seconds: None,
            islands: four_islands(),
            weight: WeightChoice::default(),
            objective: Goal::default(),
            pinned: Vec::new(),
            forbidden: Vec::new(),
        }
    }
}

fn first_seed() -> u64 {
    1
}

fn two_islands() -> u32 {
    2
}

fn four_islands() -> u32 {
    4
}
