//! What can be wrong with a machine or a program.

use miette::Diagnostic;

/// Processors that make no machine.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum MachineError {
    /// A number of processors that makes no sense.
    #[error("processors is {processors}")]
    #[diagnostic(help("it is at least 1 and at most 65536"))]
    Processors {
        /// The number.
        processors: u32,
    },
    /// More processors are asked for than there are.
    #[error("{wanted} processors are asked for, and there are {there}")]
    #[diagnostic(help(
        "lower `processors`; with `coordinator = true` the first process of the files runs no task"
    ))]
    TooFew {
        /// Processors asked for.
        wanted: usize,
        /// Processors there.
        there: usize,
    },
    /// A machine that is too large.
    #[error("the machine has {slots} slots, and at most {most} are processors of a schedule")]
    #[diagnostic(help(
        "choose some with `select/nodes` or `select/hosts`, or only the first so many with `processors`"
    ))]
    TooManySlots {
        /// Number of slots.
        slots: usize,
        /// Most of them.
        most: u32,
    },
    /// A machine whose hosts have too many pairs.
    #[error("the machine has {hosts} hosts, and distances between at most {most} can be kept")]
    #[diagnostic(help(
        "choose some with `select/nodes` or `select/hosts`, or use a machine that is a tree, with `distance = \"costs\"`"
    ))]
    TooManyHosts {
        /// Number of hosts.
        hosts: usize,
        /// Most of them.
        most: usize,
    },
    /// A machine that is no tree whose slots have too many pairs.
    #[error("the machine is no tree and has {slots} slots, and distances between at most {most} can be kept")]
    #[diagnostic(help(
        "choose some with `select/nodes` or `select/hosts`, or only the first so many with `processors`"
    ))]
    TooManyPairs {
        /// Number of slots.
        slots: usize,
        /// Most of them.
        most: usize,
    },
    /// A list that is not as long as there are processors.
    #[error("{name} has {values} values for {processors} processors")]
    #[diagnostic(help("give one for every processor"))]
    Count {
        /// The parameter.
        name: &'static str,
        /// Its length.
        values: usize,
        /// Number of processors.
        processors: usize,
    },
    /// A value out of range.
    #[error("{name} is {value}")]
    #[diagnostic(help("speeds and bandwidth are above 0; latency and times are 0 or more"))]
    Value {
        /// The parameter.
        name: &'static str,
        /// The value.
        value: f64,
    },
    /// Messages cannot get from one host to another.
    #[error("no message gets from host `{from}` to host `{to}`")]
    #[diagnostic(help("choose hosts that reach each other with `select/hosts`"))]
    NoRoute {
        /// Name of the host that sends.
        from: String,
        /// Name of the host that is not reached.
        to: String,
    },
    /// Links are asked for, and there are none.
    #[error("the machine has no links to take the times of messages from")]
    #[diagnostic(help("use `distance = \"costs\"` with `latency` and `bandwidth`"))]
    NoLinks,
}

/// A program that cannot be placed on a machine.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum ProblemError {
    /// There is nothing to do.
    #[error("there are no tasks")]
    Empty,
    /// Too many tasks or times.
    #[error("the times of all tasks and messages add up to {total}, which is too much to count in ticks")]
    #[diagnostic(help("are the units right? Work is scaled by `speeds`, bytes by `bandwidth`"))]
    TooLong {
        /// The sum.
        total: f64,
    },
    /// Some tasks belong to ranks and some do not.
    #[error("task {task} belongs to no rank, while others do")]
    #[diagnostic(help(
        "a placement needs the rank of every task; `schedule/…` with `ranks = \"free\"` lets every task run where it likes"
    ))]
    NoRank {
        /// The task.
        task: u32,
    },
    /// Not enough slots.
    #[error("there are {ranks} ranks and only {slots} processors: every rank needs one of its own")]
    #[diagnostic(help(
        "connect a larger machine; `schedule/…` with `ranks = \"free\"` lets every task run where it likes"
    ))]
    TooFewSlots {
        /// Number of ranks.
        ranks: u32,
        /// Number of processors.
        slots: usize,
    },
    /// Too many nodes on slots of too many speeds.
    #[error("{tasks} tasks on processors of {speeds} different speeds are too many times to keep")]
    #[diagnostic(help("give fewer different `speeds`"))]
    TooManySpeeds {
        /// Number of tasks.
        tasks: usize,
        /// Number of speeds.
        speeds: usize,
    },
    /// The mapping to begin with is of another program.
    #[error("the mapping places {found} ranks, and the program has {ranks}")]
    #[diagnostic(help("connect a mapping of this program, or none"))]
    OtherProgram {
        /// Ranks of the mapping.
        found: usize,
        /// Ranks of the program.
        ranks: usize,
    },
    /// The mapping to begin with is on another machine.
    #[error("the mapping puts rank {rank} on slot {slot}, which is none of the {slots} processors")]
    #[diagnostic(help("connect a mapping onto this machine, or none"))]
    OtherMachine {
        /// The rank.
        rank: usize,
        /// Its slot.
        slot: u32,
        /// Number of processors.
        slots: usize,
    },
}

/// A graph of tasks that no process can replay.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum StepsError {
    /// Nobody says which process does a task.
    #[error("task {task} belongs to no rank, so no process can replay it")]
    #[diagnostic(help("`trace/dag` gives tasks with ranks"))]
    NoRank {
        /// The task.
        task: usize,
    },
    /// Work is no seconds, and messages are no bytes.
    #[error("the tasks have weights of a model, not seconds and bytes, so nobody knows what to replay")]
    #[diagnostic(help(
        "`trace/dag` gives tasks of a program that ran; `schedule/…` works with graphs that have weights only"
    ))]
    NoSeconds,
    /// Tasks wait for each other.
    #[error("task {task} waits for itself")]
    #[diagnostic(help("the graph was not made by `trace/dag`, which refuses such traces: make it again"))]
    Cycle {
        /// One of the tasks.
        task: u32,
    },
}
