//! What can be wrong with a machine, a program or the parameters of a scheduler.

use std::path::PathBuf;

use hopmap_islands::SearchError;
use hopmap_text::FileError;
use miette::Diagnostic;

/// Processors that make no machine.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum MachineError {
    /// Nobody says what the processors are.
    #[error("nothing says how many processors there are")]
    #[diagnostic(help(
        "give `processors = 4`, connect a `system`, or name the files of PARUS in `procs` and `network`"
    ))]
    NoProcessors,
    /// A machine and files that describe another one.
    #[error("there is a `system`, and `procs` or `network` beside it")]
    #[diagnostic(help("leave one of them out: both say what the processors are"))]
    TwoMachines,
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
    /// Something is wrong with a file.
    #[error(transparent)]
    #[diagnostic(transparent)]
    File(#[from] FileError),
    /// A network file that was broken off.
    #[error(
        "`{file}` has times for {lengths} of the {expected} lengths of messages that its header promises"
    )]
    #[diagnostic(help(
        "the network test was broken off: run it again, or correct `end message length` in the header"
    ))]
    Incomplete {
        /// The file.
        file: String,
        /// Lengths in it.
        lengths: u64,
        /// Lengths that there should be.
        expected: u64,
    },
    /// A network file of something else than times.
    #[error("`{file}` says how far times scatter, not how long messages take")]
    #[diagnostic(help("give the file of averages, medians or minima of the same test"))]
    Deviations {
        /// The file.
        file: String,
    },
    /// What messages take is said twice.
    #[error("there is a `network` of times that were measured, and `{name}` beside it")]
    #[diagnostic(help("leave one of them out: both say what messages take"))]
    BesideNetwork {
        /// The parameter.
        name: &'static str,
    },
    /// A measurement that failed.
    #[error(
        "`{file}` says that a message of {length} bytes from process {sender} to {receiver} took {time} s"
    )]
    #[diagnostic(help("the network test failed there: run it again, or leave the process out"))]
    Failed {
        /// The file.
        file: String,
        /// Length of the message.
        length: u64,
        /// Process that sends.
        sender: usize,
        /// Process that receives.
        receiver: usize,
        /// What was measured.
        time: f64,
    },
    /// Two files of two machines.
    #[error("`procs` is of {procs} processes and `network` of {network}")]
    #[diagnostic(help("both have to be measured by the same number of processes"))]
    Disagree {
        /// Processes of the one.
        procs: usize,
        /// Processes of the other.
        network: usize,
    },
}

/// A file that holds no task graph.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum ImportError {
    /// Something is wrong with a file.
    #[error(transparent)]
    #[diagnostic(transparent)]
    File(#[from] FileError),
    /// A file of another format.
    #[error("`{}` is no task graph of a format that is known here{}", path.display(), found.map(|found| format!(": {found}")).unwrap_or_default())]
    #[diagnostic(help(
        "a graph of PARUS begins with `<GRAPH_BEGIN>`, DOT with `digraph`, a file of the STG set with a number, and WfFormat is JSON"
    ))]
    Unknown {
        /// The file.
        path: PathBuf,
        /// What it looks like.
        found: Option<&'static str>,
    },
    /// A factor that makes no weights.
    #[error("`scale` is {scale}")]
    #[diagnostic(help("it is a number above 0, such as 1000"))]
    Scale {
        /// The parameter.
        scale: f64,
    },
    /// Attributes are named of a file that has none.
    #[error("`{parameter}` names an attribute, but {format} has none")]
    #[diagnostic(help("leave it out: only DOT has attributes"))]
    NoAttributes {
        /// The parameter.
        parameter: &'static str,
        /// The format.
        format: &'static str,
    },
}

/// A program that no scheduler takes.
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
    #[diagnostic(help("use `ranks = \"free\"` to let every task run where it likes"))]
    NoRank {
        /// The task.
        task: u32,
    },
    /// Not enough slots.
    #[error("there are {ranks} ranks and only {slots} processors: every rank needs one of its own")]
    #[diagnostic(help(
        "connect a larger machine, or use `ranks = \"free\"` to let every task run where it likes"
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

/// A parameter of a scheduler that makes no search.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum ParameterError {
    /// Something is wrong with the budget.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Budget(#[from] SearchError),
    /// A value that is out of range.
    #[error("{name} is {value}")]
    #[diagnostic(help("{help}"))]
    Value {
        /// The parameter.
        name: &'static str,
        /// Its value.
        value: String,
        /// What it should be.
        help: String,
    },
    /// Something is wrong with a file.
    #[error(transparent)]
    #[diagnostic(transparent)]
    File(#[from] FileError),
}
