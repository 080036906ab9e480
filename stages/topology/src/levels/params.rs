//! Parameters of `topology/levels`, and why levels cannot be found.

use hopmap_model::{MeasurementsError, SystemGraphError};
use miette::Diagnostic;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Levels that are closer than this are never told apart.
pub(super) const LEAST_GAP: f64 = 1.01;

/// The levels of a machine that was measured or has a cost for every pair of slots.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LevelsParams {
    /// What two slots cost: the latency between them, or the time of a message of `bytes` bytes, in microseconds. A matrix
    /// keeps its unit.
    pub cost: LevelCost,
    /// Bytes of the message whose `time` is the cost.
    pub bytes: Option<u64>,
    /// A level costs at least so many times as much as the one further in; what is closer is one level. Where the two directions
    /// of pairs differ by more, it is that.
    pub gap: f64,
}

/// What two slots cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LevelCost {
    /// The latency between them.
    #[default]
    Latency,
    /// The time of a message.
    Time,
}

impl Default for LevelsParams {
    fn default() -> Self {
        // Above the noise of shortest times, below what a switch adds.
        Self { cost: LevelCost::Latency, bytes: None, gap: 1.15 }
    }
}

impl LevelsParams {
    /// Checks what the types cannot say.
    pub(crate) fn check(&self) -> Result<(), LevelsError> {
        if !(self.gap.is_finite() && self.gap >= LEAST_GAP) {
            return Err(LevelsError::Gap { gap: self.gap });
        }
        match (self.cost, self.bytes) {
            (LevelCost::Time, None) => Err(LevelsError::NoBytes),
            (LevelCost::Latency, Some(bytes)) => Err(LevelsError::BytesOfLatency { bytes }),
            _ => Ok(()),
        }
    }
}

/// A machine whose levels cannot be found.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum LevelsError {
    /// Both inputs are connected, or none.
    #[error("{} connected", if *.both { "`measurements` and `system-graph` are both" } else { "neither `measurements` nor `system-graph` is" })]
    #[diagnostic(help(
        "connect one of them: what probing measured, or a machine with a cost for every pair of slots"
    ))]
    OneInput {
        /// Whether both are.
        both: bool,
    },
    /// The gap is no factor above one.
    #[error("gap is {gap}, less than {LEAST_GAP}")]
    #[diagnostic(help("give a factor such as 1.15: levels that are closer become one"))]
    Gap {
        /// The parameter.
        gap: f64,
    },
    /// The time of a message of unknown size is asked for.
    #[error("cost is \"time\", but `bytes` is not given")]
    #[diagnostic(help("say of how many bytes the message is: bytes = 65536"))]
    NoBytes,
    /// A size is given that nobody asks for.
    #[error("bytes is {bytes}, but cost is \"latency\", which has no size")]
    #[diagnostic(help("leave `bytes` out, or set cost = \"time\""))]
    BytesOfLatency {
        /// The parameter.
        bytes: u64,
    },
    /// A matrix has no times of messages.
    #[error("cost is \"time\", but a machine with a cost matrix says nothing of sizes")]
    #[diagnostic(help("leave `cost` and `bytes` out, or connect `measurements`"))]
    TimeOfMatrix,
    /// The machine has levels already.
    #[error("the costs of this machine are levels already")]
    #[diagnostic(help(
        "use the machine as it is; levels are found in a machine with a cost for every pair of slots"
    ))]
    NoMatrix,
    /// The costs of its routes cannot be written down.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Costs {
        /// Why not.
        source: hopmap_model::CostsError,
    },
    /// There is nobody to group.
    #[error("no endpoint of {hosts} hosts answered")]
    #[diagnostic(help("look at the log of the probe; a machine without slots cannot run anything"))]
    NobodyUp {
        /// Number of hosts.
        hosts: usize,
    },
    /// Some pairs cannot be estimated.
    #[error("nothing was measured that joins {one} to {other}, directly or over others")]
    #[diagnostic(help("measure again with more pairs, or leave these endpoints out"))]
    Unconnected {
        /// A host, or an endpoint.
        one: String,
        /// Another one.
        other: String,
    },
    /// The measurements contradict themselves.
    #[error("the measurements are damaged: {source}")]
    Measurements {
        /// How.
        #[source]
        source: MeasurementsError,
    },
    /// The machine contradicts itself.
    #[error("the machine is damaged: {source}")]
    Machine {
        /// How.
        #[source]
        source: SystemGraphError,
    },
}
