//! What can be wrong with a synthetic machine.

use miette::Diagnostic;

use crate::shape::{MAX_LEVELS, MAX_SLOTS};

/// Parameters of `topology/synthetic` that describe no machine.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum SyntheticError {
    /// The shape is not a tree.
    #[error("shape `{shape}` begins neither with `tree:` nor with `kahip:`")]
    #[diagnostic(help("write the branches of every level, innermost first: `tree:2x4x2`, or `kahip:2:4:2`"))]
    NotATree {
        /// The shape.
        shape: String,
    },
    /// A level of the shape is not a number of branches.
    #[error("level {level} of shape `{shape}` is `{branches}`, which is not a whole number above zero")]
    #[diagnostic(help("write the branches of every level, innermost first: `tree:2x4x2`"))]
    Branches {
        /// The shape.
        shape: String,
        /// The level, from zero.
        level: usize,
        /// What stands there.
        branches: String,
    },
    /// The shape has too many levels.
    #[error("shape `{shape}` has {levels} levels, more than {MAX_LEVELS}")]
    #[diagnostic(help("leave out levels with one branch"))]
    TooManyLevels {
        /// The shape.
        shape: String,
        /// Number of its levels.
        levels: usize,
    },
    /// The shape has too many slots.
    #[error("shape `{shape}` has more than {MAX_SLOTS} slots")]
    #[diagnostic(help(
        "the number of slots is the product of the branches of all levels: make some of them smaller"
    ))]
    TooManySlots {
        /// The shape.
        shape: String,
    },
    /// There is not one cost for every level.
    #[error("shape `{shape}` has {levels} levels, but costs are {costs:?}")]
    #[diagnostic(help("give one cost for every level of the shape, innermost first"))]
    CostCount {
        /// The shape.
        shape: String,
        /// Number of its levels.
        levels: usize,
        /// The costs.
        costs: Vec<f64>,
    },
    /// A cost is negative or not a number.
    #[error("the cost of level {level} is {cost}")]
    #[diagnostic(help("costs are finite numbers, zero or more"))]
    Cost {
        /// The level, from zero.
        level: usize,
        /// The cost.
        cost: f64,
    },
    /// The costs fall from one level to the next.
    #[error("the cost of level {level} is {cost}, less than {inner} one level further in")]
    #[diagnostic(help("costs never fall from one level to the next outer one: give them innermost first"))]
    FallingCost {
        /// The level, from zero.
        level: usize,
        /// Its cost.
        cost: f64,
        /// The cost of the next inner level.
        inner: f64,
    },
    /// More levels lie inside a host than there are.
    #[error("host_level is {host_level}, but shape `{shape}` has {levels} levels")]
    #[diagnostic(help(
        "host_level is how many of the innermost levels lie inside a host, from 0 to {levels}"
    ))]
    HostLevel {
        /// The parameter.
        host_level: u32,
        /// The shape.
        shape: String,
        /// Number of its levels.
        levels: usize,
    },
    /// There is not one name for every host.
    #[error(
        "{names} names of hosts are given, but shape `{shape}` with host_level {host_level} has {hosts} hosts"
    )]
    #[diagnostic(help("name every host once in slot order, or leave `hosts` out"))]
    HostCount {
        /// Number of names.
        names: usize,
        /// The shape.
        shape: String,
        /// Levels inside a host.
        host_level: u32,
        /// Number of hosts.
        hosts: usize,
    },
    /// A name is no name.
    #[error("host {index} is called `{name}`")]
    #[diagnostic(help("names are not empty and hold neither spaces nor control characters"))]
    HostName {
        /// Index of the host.
        index: usize,
        /// Its name.
        name: String,
    },
    /// Two nodes have one name.
    #[error("two nodes are called `{name}`")]
    #[diagnostic(help("give every host a name of its own; switches are called `switch-1-0` and so on"))]
    RepeatedName {
        /// The name.
        name: String,
    },
}
