//! Parameters of `map/import`.

use hopmap_model::{InputPath, WeightChoice};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
