//! Parameters of `topology/probe`, and why a machine cannot be measured.

use miette::Diagnostic;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A machine that is measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ProbeParams {
    /// Hosts to measure, as a host list: `node[001-136]`. Without it those of the variable `SLURM_JOB_NODELIST` of the job in
    /// which the stage runs. With a `launcher` the hosts are those of its processes.
    pub hosts: Option<String>,
    /// The command that starts `hopmap agent` on a host, `{host}` being its name. One without `{host}` is run once and starts the
    /// agents of all hosts, such as `srun -N 4 hopmap agent`. The command gets a secret on its standard input and must pass it on
    /// to the agent.
    pub start: String,
    /// Whether the cores of a host are measured among each other too. Without it a host is one slot.
    pub inside: bool,
    /// Bytes of messages. Latencies come from the smallest size. Sizes up to 65536 are measured by all pairs of a round at once, larger
    /// ones as `bandwidth` says.
    pub sizes: Vec<u64>,
    /// How messages of more than 65536 bytes are measured: `isolated` (default) by `parallel` pairs at once, `loaded` by every host with
    /// one partner at the same time, `both`, or `none`.
    pub bandwidth: BandwidthPhase,
    /// Pairs that send large messages at once in `isolated`.
    #[schemars(range(min = 1))]
    pub parallel: u32,
    /// Most messages of one size between two endpoints in one direction. Fewer are sent where the shortest time does not get
    /// shorter any more.
    #[schemars(range(min = 1))]
    pub messages: u32,
    /// A batch that shortens the shortest time by less than this part is calm; after three of them a size is done.
    pub tolerance: f64,
    /// Seconds after which a size is done however it stands.
    pub seconds: f64,
    /// Seconds that all agents have to start. Once half of them are ready the others have as long again as these took, and 5 seconds
    /// at least: a host that is down does not keep the others waiting.
    pub timeout: f64,
    /// How many times as long as inside a level messages take on the next one, at least.
    pub gap: Option<f64>,
}

impl Default for ProbeParams {
    fn default() -> Self {
        Self {
            hosts: None,
            start: "ssh {host} hopmap agent".to_owned(),
            inside: true,
            sizes: vec![1, 64, 1 << 10, 1 << 13, 1 << 16, 1 << 18, 1 << 20, 1 << 22],
            bandwidth: BandwidthPhase::Isolated,
            parallel: 4,
            messages: 1000,
            tolerance: 0.02,
            seconds: 0.1,
            timeout: 60.0,
            gap: None,
        }
    }
}

/// How large messages are measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BandwidthPhase {
    /// By few pairs at once.
    #[default]
    Isolated,
    /// By every host with one partner at the same time.
    Loaded,
    /// In both ways, one after the other.
    Both,
    /// Not at all.
    None,
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
