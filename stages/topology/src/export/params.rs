//! Parameters of `topology/export`.

use hopmap_model::CostsError;
use miette::Diagnostic;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A machine as text that other programs read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExportParams {
    /// Which text.
    pub to: ExportFormat,
}

/// A text that a machine is written as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ExportFormat {
    /// `topology.conf` of Slurm.
    SlurmConf,
    /// `topology.yaml` of Slurm.
    SlurmYaml,
    /// A platform of SimGrid.
    Simgrid,
    /// A target architecture of Scotch.
    Scotch,
    /// KaHIP's hierarchy and distances, a line each.
    Kahip,
    /// The costs between all slots as CSV, as hwloc prints distances.
    Distances,
    /// A graph for Graphviz.
    Dot,
    /// A picture.
    Svg,
    /// Hosts and links as CSV.
    GraphCsv,
    /// Hosts and links as JSON: nothing is lost.
    GraphJson,
}

/// A machine that a format has no words for.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum ExportError {
    /// The format cannot say what the machine is.
    #[error("{format} cannot hold this machine: {problem}")]
    #[diagnostic(help("{help}"))]
    Impossible {
        /// The format.
        format: &'static str,
        /// What it cannot hold.
        problem: String,
        /// What to do instead.
        help: String,
    },
    /// The costs of the machine cannot be written down.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Costs(#[from] CostsError),
}
