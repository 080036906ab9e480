//! What can be wrong with a machine whose levels are looked for.

use hopmap_model::{MeasurementsError, SystemGraphError};
use miette::Diagnostic;

use super::params::LEAST_GAP;

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
