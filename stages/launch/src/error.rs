//! Why a mapping has no launch file.

use hopmap_model::MappingError;
use miette::Diagnostic;

/// Why a mapping cannot be written as a launch file.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum LaunchError {
    /// The mapping contradicts itself.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Mapping(#[from] MappingError),
    /// There is nothing to start.
    #[error("the mapping has no ranks, so there is nothing to start")]
    NoRanks,
    /// Launchers would not read the name as one word.
    #[error("launchers cannot read the host name `{}`", .host.escape_debug())]
    #[diagnostic(help(
        "a host name has letters, digits, `-`, `_` and `.`, and begins with a letter or a digit"
    ))]
    HostName {
        /// The name.
        host: String,
    },
    /// Two hosts have one name.
    #[error("two hosts of the mapping are called `{host}`")]
    RepeatedHost {
        /// The name.
        host: String,
    },
    /// Open MPI's sequential mapper does not take the name for this machine.
    #[error("Open MPI's sequential mapper does not know `{host}`")]
    #[diagnostic(help("call the host by its own name, or use launch/rankfile"))]
    Loopback {
        /// The name.
        host: String,
    },
    /// Open MPI cuts names at the first dot.
    #[error("Open MPI takes `{first}` and `{second}` for one host")]
    #[diagnostic(help("it cuts names at the first dot; use names that differ before it, or launch/slurm"))]
    SameShortName {
        /// A host.
        first: String,
        /// Another host.
        second: String,
    },
    /// A rank file binds every rank to a core.
    #[error("the mapping does not say on which core of `{host}` rank {rank} runs")]
    #[diagnostic(help("a rank file names a core for every rank; launch/hostfile needs hosts only"))]
    NoCore {
        /// The rank.
        rank: usize,
        /// Its host.
        host: String,
    },
    /// A free slot lies before a used one.
    #[error("slot {slot} of `{host}` is free, but slots behind it are not")]
    #[diagnostic(help(
        "Cray's MPI fills hosts from their first slot on; leave only last slots free, or use launch/slurm"
    ))]
    Gap {
        /// The host.
        host: String,
        /// The free slot.
        slot: u32,
    },
    /// Hosts have different numbers of ranks.
    #[error("the mapping puts {ranks} ranks on `{host}`, but every host in use has to have {share}")]
    #[diagnostic(help(
        "Cray's MPI starts equal numbers of ranks on the first hosts of the mapping; fill hosts evenly, or use launch/slurm"
    ))]
    Uneven {
        /// The host.
        host: String,
        /// Ranks that the mapping puts there.
        ranks: usize,
        /// Ranks that every host would have.
        share: usize,
    },
}
