//! What can be wrong with a choice of hosts.

use std::path::PathBuf;

use hopmap_formats::host_list::HostListError;
use hopmap_formats::sinfo::SinfoError;
use miette::Diagnostic;

/// Hosts that cannot be chosen.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum SelectError {
    /// A number that is asked for is zero.
    #[error("{parameter} is 0")]
    #[diagnostic(help("ask for one or more, or leave `{parameter}` out"))]
    Zero {
        /// The parameter.
        parameter: &'static str,
    },
    /// Two parameters say the same thing.
    #[error("`{first}` and `{second}` are both given")]
    #[diagnostic(help("give one of them"))]
    Both {
        /// A parameter.
        first: &'static str,
        /// Another one.
        second: &'static str,
    },
    /// The time of a message of no size is asked for, or the size of one whose time does not count.
    #[error("`bytes` {problem}")]
    #[diagnostic(help("`cost = \"time\"` is that of a message of `bytes` bytes"))]
    Bytes {
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A parameter is out of its range.
    #[error("`{parameter}` is {value}")]
    #[diagnostic(help("{help}"))]
    Range {
        /// The parameter.
        parameter: &'static str,
        /// Its value.
        value: f64,
        /// What it may be.
        help: &'static str,
    },
    /// Costs of routes are asked for where there are none.
    #[error("the machine has no links, and so no routes that could cost something")]
    #[diagnostic(help("leave `cost` out: the costs stay as they are"))]
    NoRoutes,
    /// A link does not say what counts.
    #[error("the link from `{from}` to `{to}` does not say its {what}")]
    #[diagnostic(help("{help}"))]
    SilentLink {
        /// Where the link begins.
        from: String,
        /// Where it ends.
        to: String,
        /// Latency or bandwidth.
        what: &'static str,
        /// What to do.
        help: &'static str,
    },
    /// The costs are those of no tree.
    #[error("the costs between these hosts are those of no tree")]
    #[diagnostic(help("`form = \"matrix\"` writes down any costs"))]
    NoTree,
    /// The costs cannot be written down.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Costs(#[from] hopmap_model::CostsError),
    /// The machine contradicts itself.
    #[error(transparent)]
    #[diagnostic(transparent)]
    System(#[from] hopmap_model::SystemGraphError),
    /// A method does not know a criterion.
    #[error("method `{method}` cannot count switches")]
    #[diagnostic(help("leave `method` out: the fewest switches are found exactly on machines of any size"))]
    Method {
        /// The method.
        method: &'static str,
    },
    /// A list of hosts cannot be read.
    #[error("`{parameter}`: {list}")]
    #[diagnostic(forward(list))]
    HostList {
        /// Where the list stands.
        parameter: String,
        /// What is wrong with it.
        list: Box<HostListError>,
    },
    /// A file with free hosts is no output of sinfo after all.
    #[error("`{}`: {sinfo}", path.display())]
    #[diagnostic(forward(sinfo))]
    Sinfo {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        sinfo: Box<SinfoError>,
    },
    /// A file cannot be read.
    #[error("cannot read `{}`", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// A file is no list of hosts.
    #[error("`{}` is no list of hosts: {what}", path.display())]
    #[diagnostic(help(
        "give names, a host list such as node[001-128], or the output of `sinfo -N -h -o '%N %T'`"
    ))]
    NoList {
        /// The file.
        path: PathBuf,
        /// Why not.
        what: &'static str,
    },
    /// There is no job.
    #[error("the variable SLURM_JOB_NODELIST is not set")]
    #[diagnostic(help(
        "run inside a job (sbatch, salloc), or give the hosts with `free` and `from = \"list\"`"
    ))]
    NoJob,
    /// A list has no names.
    #[error("{place} names no host of the machine")]
    #[diagnostic(help(
        "name the hosts that are free, such as node[001-128]; `all` is every host of the machine"
    ))]
    NoHosts {
        /// Where the list stands.
        place: String,
    },
    /// A name is of no host.
    #[error("{place} names `{name}`, which is no host with slots of the machine")]
    UnknownHost {
        /// Where the list stands.
        place: String,
        /// The name.
        name: String,
        /// The name of a host that is most like it.
        #[help]
        hint: String,
    },
    /// A name stands twice.
    #[error("{place} names `{name}` twice")]
    #[diagnostic(help("name every host once: each can be chosen once"))]
    Repeated {
        /// Where the list stands.
        place: String,
        /// The name.
        name: String,
    },
    /// There are fewer free hosts than asked for.
    #[error("{wanted} {what} are asked for, but the {hosts} free hosts have {free}")]
    #[diagnostic(help("ask for fewer, wait until more are free, or leave fewer out with `exclude`"))]
    TooFew {
        /// How many are asked for.
        wanted: u64,
        /// `hosts` or `slots`.
        what: &'static str,
        /// Free hosts.
        hosts: usize,
        /// How many there are.
        free: u64,
    },
    /// The machine has no links.
    #[error("criterion `{criterion}` needs links, and this machine has none")]
    #[diagnostic(help("choose by `total-distance` or `cut`, which need costs only"))]
    NoLinks {
        /// The criterion.
        criterion: &'static str,
    },
    /// The links form no tree.
    #[error(
        "criterion `switches` needs links that form a tree: the {links} links of {nodes} nodes do not form a tree with one link each way"
    )]
    #[diagnostic(help("choose by `total-distance` or `cut`, which need costs only"))]
    NotATree {
        /// Number of nodes.
        nodes: usize,
        /// Number of directed links.
        links: usize,
    },
    /// A link has no bandwidth.
    #[error(
        "criterion `bottleneck-bandwidth` needs bandwidths, and the link from `{from}` to `{to}` has none"
    )]
    #[diagnostic(help("give every link a bandwidth, or choose by `total-distance` or `switches`"))]
    NoBandwidth {
        /// Where the link begins.
        from: String,
        /// Where it ends.
        to: String,
    },
    /// The network is in pieces.
    #[error("no {wanted} free hosts are joined by links")]
    #[diagnostic(help("ask for fewer hosts, or choose by `total-distance`"))]
    InPieces {
        /// How many are asked for.
        wanted: usize,
    },
    /// The exact method would take too long.
    #[error("the best {wanted} of {free} hosts cannot be found exactly in reasonable time")]
    #[diagnostic(help("use method `greedy`, or leave `method` out"))]
    TooHard {
        /// How many are asked for.
        wanted: usize,
        /// How many are free.
        free: usize,
    },
    /// A matrix of distances would not fit into memory.
    #[error("{free} free hosts whose distances follow no tree are more than {most}")]
    #[diagnostic(help("name fewer free hosts: those of a partition, or a part of the machine"))]
    TooMany {
        /// How many are free.
        free: usize,
        /// Most of them.
        most: usize,
    },
    /// Distances are too large.
    #[error("distances of up to {largest} among {free} hosts exceed 64 bits in all")]
    #[diagnostic(help("divide all costs of the machine by a common factor"))]
    Overflow {
        /// The largest distance.
        largest: f64,
        /// How many hosts are free.
        free: usize,
    },
}
