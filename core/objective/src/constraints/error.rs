//! What can be wrong with constraints.

use miette::Diagnostic;

/// Constraints that no placement keeps.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Diagnostic)]
pub enum ConstraintError {
    /// A rank that the program does not have.
    #[error("rank {rank} is pinned, but the program has {ranks} ranks")]
    #[diagnostic(help("ranks are numbered from 0"))]
    NoSuchRank {
        /// The rank.
        rank: u32,
        /// Number of ranks.
        ranks: usize,
    },
    /// A slot that the machine does not have.
    #[error("rank {rank} is pinned to slot {slot}, but the machine has {slots} slots")]
    #[diagnostic(help("slots are numbered from 0, host by host"))]
    NoSuchSlot {
        /// The rank.
        rank: u32,
        /// The slot.
        slot: u32,
        /// Number of slots.
        slots: usize,
    },
    /// A host that the machine does not have.
    #[error("the machine has no host `{name}` with slots")]
    #[diagnostic(help("its first host is called `{first}`"))]
    NoSuchHost {
        /// The name.
        name: String,
        /// Name of the first host.
        first: String,
    },
    /// A rank with two places.
    #[error("rank {rank} is pinned twice")]
    #[diagnostic(help("give every rank at most one place in `pinned`"))]
    PinnedTwice {
        /// The rank.
        rank: u32,
    },
    /// A place on a host without ranks.
    #[error("rank {rank} is pinned to host `{name}`, which is forbidden")]
    #[diagnostic(help("take the host out of `forbidden` or the rank out of `pinned`"))]
    Forbidden {
        /// The rank.
        rank: u32,
        /// Name of the host.
        name: String,
    },
    /// Two ranks with one place.
    #[error("ranks {first} and {second} are both pinned to slot {slot}")]
    #[diagnostic(help("every slot takes one rank"))]
    SharedSlot {
        /// The slot.
        slot: u32,
        /// A rank.
        first: u32,
        /// Another rank.
        second: u32,
    },
    /// More ranks on a host than it has room for.
    #[error("{ranks} ranks are pinned to host `{name}`, which has {slots} slots")]
    #[diagnostic(help("pin fewer ranks to it"))]
    CrowdedHost {
        /// Name of the host.
        name: String,
        /// Ranks pinned to it or its slots.
        ranks: u32,
        /// Its slots.
        slots: u32,
    },
    /// Fewer slots than ranks.
    #[error("{ranks} ranks do not fit on the {left} slots that are not forbidden")]
    #[diagnostic(help("forbid fewer hosts, or use a larger machine"))]
    TooFewSlots {
        /// Number of ranks.
        ranks: usize,
        /// Slots that are not forbidden.
        left: usize,
    },
}
