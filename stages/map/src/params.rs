//! Parameters of the stages.

/// Declares the parameters of a mapper and what they are by default, and beside its own those of the problem that every mapper solves.
/// Serde can flatten a struct into another only where it lets unknown keys pass.
macro_rules! params {
    ($(#[$meta:meta])* pub struct $name:ident { $($own:tt)* }) => {
        params! {
            $(#[$meta])* pub struct $name { $($own)* }
            /// What is minimised: `F`, `T`, `hop-bytes` or `max-link-load`, or their weighted sum, as in `{ F = 1.0, T = 0.5 }`.
            objective
        }
    };
    (
        $(#[$meta:meta])*
        pub struct $name:ident { $($(#[$of_field:meta])* pub $field:ident: $type:ty $(= $default:expr)?,)* }
        $(#[$of_objective:meta])+ objective
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields, default)]
        pub struct $name {
            $($(#[$of_field])* pub $field: $type,)*
            /// What an edge of the task graph weighs.
            pub weight: WeightChoice,
            $(#[$of_objective])+
            pub objective: Goal,
            /// Ranks that have to be on a slot or a host.
            pub pinned: Vec<Pin>,
            /// Names of hosts that no rank may be on.
            pub forbidden: Vec<String>,
        }

        impl Default for $name {
            fn default() -> Self {
                Self {
                    $($field: or_default!($type $(, $default)?),)*
                    weight: WeightChoice::default(),
                    objective: Goal::default(),
                    pinned: Vec::new(),
                    forbidden: Vec::new(),
                }
            }
        }

        problem_params!($name);
    };
}

macro_rules! or_default {
    ($type:ty) => {
        <$type>::default()
    };
    ($type:ty, $default:expr) => {
        $default
    };
}

/// Takes what every mapper is told of its problem out of the parameters of a stage.
macro_rules! problem_params {
    ($params:ty) => {
        impl<'a> From<&'a $params> for ProblemParams<'a> {
            fn from(params: &'a $params) -> Self {
                Self {
                    weight: params.weight,
                    objective: params.objective.0,
                    pinned: &params.pinned,
                    forbidden: &params.forbidden,
                }
            }
        }
    };
}

mod external;
mod graphhunter;
mod hierarchical;
mod problem;

use hopmap_model::{InputPath, WeightChoice};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use external::{ExternalCommand, ExternalParams, Numbering};
pub use graphhunter::{
    AnnealingParams, CompositeParams, Cooling, Crossover, GeneticParams, Iteration, Master, Neighbourhood,
    NeighboursUnit, Reheat, Scheme,
};
pub use hierarchical::{HierarchicalParams, LevelChoice, OtherLevels, Partitioner};
pub(crate) use problem::ProblemParams;
pub use problem::{Goal, Pin};

params! {
    /// Rank `i` on slot `i`, or on the host of its turn.
    pub struct LinearParams {}
    /// What searches beside this one minimise. It changes nothing here.
    objective
}

params! {
    /// Ranks on slots drawn at random from all slots of the machine.
    pub struct RandomParams {
        /// Another seed gives another placement.
        pub seed: u64 = 1,
    }
    /// What searches beside this one minimise. It changes nothing here.
    objective
}

params! {
    /// The search that suits the problem.
    pub struct AutoParams {
        /// Another seed gives another search.
        pub seed: u64 = 1,
        /// How many exchanges every island evaluates.
        pub evaluations: Option<u64>,
        /// How long the search may take, in seconds. The result cannot be made again bit for bit.
        pub seconds: Option<f64>,
        /// Number of searches side by side, 2 by default; their number never depends on that of the threads. In a budget of seconds
        /// few islands with large populations find more than many with small ones: no more than there are cores.
        pub islands: u32 = 2,
    }
}

params! {
    /// Robust tabu search.
    pub struct TabuParams {
        /// Another seed gives another search.
        pub seed: u64 = 1,
        /// How many exchanges every island evaluates before its final descent: all pairs at every step. A larger budget continues
        /// the search of a smaller one. Without it, and without `seconds`: 33,554,432, but at least four steps for every rank.
        pub evaluations: Option<u64>,
        /// How long the search may take, in seconds; where there are fewer threads than islands, the islands share it. The result
        /// cannot be made again bit for bit.
        pub seconds: Option<f64>,
        /// Number of independent searches; the best one wins. They run side by side on as many threads as the stage has, and their
        /// number never depends on it.
        pub islands: u32 = 4,
    }
}

params! {
    /// Branch and bound.
    pub struct ExactParams {
        /// Another seed gives another placement to begin with.
        pub seed: u64 = 1,
        /// How many nodes may be bounded. Without it, and without `seconds`: until the optimum is proven, however long that takes.
        pub nodes: Option<u64>,
        /// How long the search may take, in seconds. The result cannot be made again bit for bit.
        pub seconds: Option<f64>,
    }
}

// Searches draw their seeds by the kind of their stage.
impl RandomParams {
    pub(crate) const KIND: &'static str = "map/random";
}

impl AutoParams {
    pub(crate) const KIND: &'static str = "map/auto";
}

impl TabuParams {
    pub(crate) const KIND: &'static str = "map/tabu";
}

/// A placement that another tool computed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ImportParams {
    /// The file. PE i of `KaHIP`, `VieM`, `SharedMap` and Scotch is slot i of the machine.
    pub file: InputPath,
    /// What the file is: `kahip` (also `VieM` and `SharedMap`: one PE a line), `scotch` (a count, then vertex and PE), `rankfile`
    /// (Open MPI), `machinefile` (one host a line, `host:4` or `host slots=4`), or `auto`, by what is in it.
    #[serde(default)]
    pub format: PlacementFormat,
    /// What an edge of the task graph weighs.
    #[serde(default)]
    pub weight: WeightChoice,
}

/// Formats of placements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PlacementFormat {
    /// Whichever it is, by what is in the file.
    #[default]
    Auto,
    /// One PE a line.
    Kahip,
    /// The number of vertices, then vertices and their PEs.
    Scotch,
    /// Open MPI's rank file.
    Rankfile,
    /// Hosts in the order of ranks.
    Machinefile,
}

impl PlacementFormat {
    /// What a file of this format is.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "placement",
            Self::Kahip => "partition as of KaHIP",
            Self::Scotch => "map of Scotch",
            Self::Rankfile => "rank file",
            Self::Machinefile => "machine file",
        }
    }
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
