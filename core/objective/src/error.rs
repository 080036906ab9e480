//! What can be wrong with a mapping problem or a placement.

use hopmap_model::{CostsError, SystemGraphError, TaskGraphError};
use miette::Diagnostic;

/// A mapping problem or a placement that cannot be measured.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum ObjectiveError {
    /// There is nothing to place.
    #[error("the task graph has no processes")]
    #[diagnostic(help("check that the trace was read completely and holds at least one process"))]
    NoRanks,
    /// The machine is too small.
    #[error("{ranks} ranks do not fit on {slots} slots")]
    #[diagnostic(help(
        "every rank takes one slot: use a machine with at least {ranks} slots, or a smaller program"
    ))]
    TooManyRanks {
        /// Number of ranks.
        ranks: usize,
        /// Number of slots.
        slots: usize,
    },
    /// Hosts that are down have slots.
    #[error("host `{host}` {}", if *more == 0 { "is down and has slots".to_owned() } else { format!("and {more} more are down and have slots") })]
    #[diagnostic(help("leave out what is down: put `select/nodes` between the machine and the mapper"))]
    Down {
        /// The first of them.
        host: String,
        /// How many more there are.
        more: usize,
    },
    /// A placement is of another program.
    #[error("the placement has {placed} ranks, but the task graph has {ranks}")]
    #[diagnostic(help("measure a placement with the task graph it was made for"))]
    WrongLength {
        /// Ranks of the placement.
        placed: usize,
        /// Ranks of the task graph.
        ranks: usize,
    },
    /// A placement is of another machine.
    #[error("rank {rank} is on slot {slot}, but the machine has {slots} slots")]
    #[diagnostic(help("measure a placement on the machine it was made for"))]
    NoSuchSlot {
        /// The rank.
        rank: usize,
        /// Its slot.
        slot: u32,
        /// Number of slots.
        slots: usize,
    },
    /// Two ranks are on one slot.
    #[error("ranks {first} and {second} are both on slot {slot}")]
    SharedSlot {
        /// The slot.
        slot: u32,
        /// A rank on it.
        first: u32,
        /// Another rank on it.
        second: u32,
    },
    /// A parameter of the weight makes no sense.
    #[error("`{parameter}` of the weight is {value}")]
    #[diagnostic(help(
        "latency_s is zero or more, bandwidth_bytes_per_s is more than zero, and both are finite"
    ))]
    Weight {
        /// Name of the parameter.
        parameter: &'static str,
        /// Its value.
        value: f64,
    },
    /// The largest possible cost does not fit 64-bit integers.
    #[error(
        "a total weight of {weight:e} at a largest cost of {cost:e} does not fit the 64-bit integers of the search"
    )]
    #[diagnostic(help("give the costs of the machine in a larger unit"))]
    Overflow {
        /// Sum of all weights.
        weight: f64,
        /// Cost of the outermost level.
        cost: f64,
    },
    /// Values do not fill a square.
    #[error("{values} values are no matrix of {size} × {size}")]
    NotSquare {
        /// Number of values.
        values: usize,
        /// Rows and columns that were meant.
        size: usize,
    },
    /// An entry of a sparse matrix lies outside it.
    #[error("row {row}, column {column} lies outside a matrix of {size} × {size}")]
    NoSuchEntry {
        /// The row.
        row: u32,
        /// The column.
        column: u32,
        /// Rows and columns of the matrix.
        size: usize,
    },
    /// An entry of a sparse matrix is given twice.
    #[error("row {row}, column {column} is given twice")]
    EntryTwice {
        /// The row.
        row: u32,
        /// The column.
        column: u32,
    },
    /// A value of a matrix is infinite or none.
    #[error("the value in row {row}, column {column} is not a finite number")]
    NotANumber {
        /// The row.
        row: usize,
        /// The column.
        column: usize,
    },
    /// The largest possible cost of matrices does not fit the numbers it is summed in.
    #[error("the largest possible cost does not fit the numbers it is summed in")]
    #[diagnostic(help("give weights or costs in a larger unit"))]
    TooLarge,
    /// All exchanges are too many to keep.
    #[error("{deltas} exchanges of ranks and slots are more than the {most} that tabu search keeps")]
    #[diagnostic(help("use `map/annealing`, or a smaller machine"))]
    TooManyDeltas {
        /// Ranks that send or receive, times slots.
        deltas: u64,
        /// How many are kept.
        most: u64,
    },
    /// The tree of the machine is too deep.
    #[error("the place of a slot in the tree of the machine takes {bits} bits, more than 63")]
    #[diagnostic(help("join levels of similar cost"))]
    TooDeep {
        /// Bits it takes.
        bits: u32,
    },
    /// A weight of an objective makes no sense.
    #[error("a weight of the objective is {weight}")]
    #[diagnostic(help("weights are finite and zero or more"))]
    ObjectiveWeight {
        /// The weight.
        weight: f64,
    },
    /// Nothing is to be minimised.
    #[error("no metric of the objective has a weight above zero")]
    #[diagnostic(help("give at least one of F, T, hop-bytes and max-link-load a weight"))]
    NoObjective,
    /// The weights of an objective are too far apart, or its metrics too large.
    #[error(
        "the metrics of the objective do not fit the 64-bit integers of the search with three digits of each weight"
    )]
    #[diagnostic(help(
        "leave out what hardly counts, bring the weights closer to each other, or give costs in a larger unit"
    ))]
    ObjectiveRange,
    /// Hops and link loads need links.
    #[error("the machine has no links, so there are neither hops nor link loads")]
    #[diagnostic(help("use a machine with links, or the objective F or T"))]
    NoLinks,
    /// The costs between hosts are too many to keep.
    #[error(
        "the costs between {hosts} hosts follow from routes and are no tree, and those of all pairs are stored for up to {most}"
    )]
    #[diagnostic(help("choose the hosts of the job with select/hosts or select/nodes first"))]
    TooManyHosts {
        /// Number of hosts.
        hosts: usize,
        /// How many there may be.
        most: usize,
    },
    /// The ways between hosts are too many to keep.
    #[error(
        "the links are no tree: the ways between all pairs of {hosts} hosts are stored for up to {most} hosts"
    )]
    #[diagnostic(help("use another objective, or choose the hosts of the job with select/hosts first"))]
    TooManyWays {
        /// Number of hosts.
        hosts: usize,
        /// How many there may be.
        most: usize,
    },
    /// The costs of the machine follow from routes and cannot be written down.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Costs(#[from] CostsError),
    /// A placement breaks a constraint.
    #[error("rank {rank} is on slot {slot}, where its constraints do not let it be")]
    NotAdmitted {
        /// The rank.
        rank: u32,
        /// Its slot.
        slot: u32,
    },
    /// The constraints contradict themselves.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Constraint(#[from] ConstraintError),
    /// The task graph contradicts itself.
    #[error(transparent)]
    #[diagnostic(transparent)]
    TaskGraph(#[from] TaskGraphError),
    /// The machine contradicts itself.
    #[error(transparent)]
    #[diagnostic(transparent)]
    SystemGraph(#[from] SystemGraphError),
}

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
