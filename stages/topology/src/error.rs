//! What can be wrong with a synthetic machine.

use miette::Diagnostic;

use crate::synthetic::{MAX_LEVELS, MAX_SLOTS};

/// Parameters of `topology/synthetic` that describe no machine.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum SyntheticError {
    /// The shape is of no known kind.
    #[error("shape `{shape}` is of no known kind")]
    #[diagnostic(help(
        "write `tree:2x4x2` (or `kahip:2:4:2`), `fat-tree:4x4/1x2`, `torus:4x4x4`, `mesh:8x8`, `ring:12` or `dragonfly:4x8x4`"
    ))]
    Unknown {
        /// The shape.
        shape: String,
    },
    /// A size of the shape is no number.
    #[error("number {level} of shape `{shape}` is `{size}`, which is not a whole number above zero")]
    #[diagnostic(help(
        "write whole numbers with `x` between them: `torus:4x4x4`; the lists of a fat tree are parted by `/`: `fat-tree:4x4/1x2/1x1`"
    ))]
    Size {
        /// The shape.
        shape: String,
        /// Which number, from zero.
        level: usize,
        /// What stands there.
        size: String,
    },
    /// The numbers of the shape do not go together.
    #[error("the numbers of shape `{shape}` do not go together")]
    #[diagnostic(help(
        "a fat tree has children, parents and cables of as many levels, `fat-tree:4x4/1x2/1x1`; a dragonfly hosts of a router, routers \
         of a group, global cables of a router and at most as many groups as these join, `dragonfly:4x8x4x33`"
    ))]
    Lists {
        /// The shape.
        shape: String,
    },
    /// A parameter does not go with the shape.
    #[error("`{parameter}` of shape `{shape}` {problem}")]
    #[diagnostic(help("`hopmap stages topology/synthetic` says what each parameter is"))]
    Parameter {
        /// The parameter.
        parameter: &'static str,
        /// The shape.
        shape: String,
        /// What is wrong with it.
        problem: String,
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
    #[diagnostic(help(
        "give one cost for every level of the shape, innermost first, or none for 1, 10, 100, and so on"
    ))]
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
    #[error("{names} names of hosts are given, but shape `{shape}` has {hosts} hosts")]
    #[diagnostic(help("name every host once in slot order, or leave `hosts` out"))]
    HostCount {
        /// Number of names.
        names: usize,
        /// The shape.
        shape: String,
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

/// A machine that cannot be measured.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum ProbeError {
    /// A parameter is out of its range.
    #[error("`{name}` is {value}")]
    #[diagnostic(help("{help}"))]
    Parameter {
        /// The parameter.
        name: &'static str,
        /// Its value.
        value: String,
        /// What it may be.
        help: &'static str,
    },
    /// The command that starts agents is none.
    #[error("`start` is `{start}`, which is no command")]
    #[diagnostic(help(
        "write a command such as \"ssh {{host}} hopmap agent\"; quotes that are opened have to be closed"
    ))]
    Start {
        /// The command.
        start: String,
    },
    /// The host list cannot be read.
    #[error("`hosts` is not a host list: {problem}")]
    #[diagnostic(help("write names with ranges in brackets: node[001-128,200],login1"))]
    Hosts {
        /// What is wrong with it.
        problem: String,
    },
    /// A host stands in the list twice.
    #[error("host `{name}` is named twice")]
    #[diagnostic(help("name every host once; processes on one host are told apart by themselves"))]
    Twice {
        /// The host.
        name: String,
    },
    /// Nobody said which hosts to measure.
    #[error("no hosts are given, and SLURM_JOB_NODELIST is not set")]
    #[diagnostic(help(
        "give `hosts`, run inside a Slurm job, or give the stage a `launcher` such as \"mpirun -n 8\""
    ))]
    NoHosts,
    /// There is nobody to measure with.
    #[error("`{name}` is alone: there are no two hosts or cores to measure")]
    #[diagnostic(help("name at least two hosts, or start at least two processes"))]
    Alone {
        /// The only host.
        name: String,
    },
    /// No agent answered.
    #[error("none of the {hosts} hosts answered; {name}: {problem}")]
    #[diagnostic(help(
        "`start` has to run `hopmap agent` on a host and pass its standard input on: try it by hand, for example \
         `ssh {name} hopmap agent --version`"
    ))]
    NobodyAnswered {
        /// Number of hosts.
        hosts: usize,
        /// One of them.
        name: String,
        /// Why it did not answer.
        problem: String,
    },
    /// The operating system gives no random bytes.
    #[error("there is no secret for the agents: {problem}")]
    NoToken {
        /// Why.
        problem: String,
    },
    /// Fewer than two endpoints could be measured.
    #[error("nothing could be measured between the hosts that answered")]
    #[diagnostic(help(
        "agents listen on one address each: see to it that hosts reach each other there, and `hopmap agent --bind`"
    ))]
    NothingMeasured,
    /// A process sent what it should not.
    #[error("process {process} sent something else than what it measured")]
    #[diagnostic(help("build or install hopmap-ranks from the same sources on every host"))]
    Nonsense {
        /// The process.
        process: u32,
    },
}
