//! Parameters of the stage: the keys of `with` in a pipeline file.

use hopmap_formats::slots::Slots;
use hopmap_model::{InputPath, numbers, numbers_schema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

hopmap_model::parameters! {
    /// Parameters of `select/nodes`.
    pub struct NodesParams {
        /// Free hosts, as a host list: `node[001-128,200-210]`, or with the slots of each: `a:8,b:4`. Without it, or with `all`, every
        /// host of the machine.
        pub free: Option<String>,
        /// File with the free hosts: names, host lists, host files of launchers and batch systems, or the output of
        /// `sinfo -N -h -o '%N %T'` or plain `sinfo`. The format is detected.
        pub free_file: Option<InputPath>,
        /// Source of the free hosts: `list` is `free` or `free_file`. `slurm-nodelist` is the variable
        /// `SLURM_JOB_NODELIST` of the job in which the stage runs; it is read in every run; `auto` is
        /// `list` if one is given, and otherwise the job of Slurm, LSF, Grid Engine or PBS.
        pub from: Source,
        /// Number of slots that ranks use on every host, the first ones, or a list with the number of each host in the order of their
        /// list: `8,4,4`. A Slurm job limits them to what it starts. 0: as many as the host file says, or the job, or all.
        pub slots_per_host: Slots,
        /// Latency in seconds of links whose latency is unknown.
        pub link_latency_s: Option<f64>,
        /// Bandwidth in bytes per second of links whose bandwidth is unknown: one for all, or a list by level, first that of
        /// the links of hosts; the last one holds for all levels above.
        #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "numbers")]
        #[schemars(schema_with = "numbers_schema")]
        pub link_bandwidth_bytes_per_s: Vec<f64>,
        /// Whether hosts in the `sinfo` state `mixed`, which are partly in use, count as free.
        pub mixed: bool,
        /// Hosts to exclude, as a host list.
        pub exclude: String,
        /// Number of hosts to choose. Without it and without `slots`, all free hosts.
        pub count: Option<u32>,
        /// Number of slots that the chosen hosts need together. The stage chooses the smallest sufficient
        /// number of hosts that it finds.
        pub slots: Option<u32>,
        /// Selection criterion: `total-distance`, `cut`, `bottleneck-bandwidth` or `switches`.
        pub criterion: Criterion,
        /// Search method: `auto`, `exact`, `greedy` or `min-cut`.
        pub method: Method,
        /// Random seed of the starts.
        pub seed: u64 = 1,
        /// Number of hosts from which `greedy` starts.
        pub starts: u32 = 8,
    }
}

/// Source of the free hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// In `free` or `free_file`.
    #[default]
    List,
    /// In the variable `SLURM_JOB_NODELIST`.
    SlurmNodelist,
    /// In a list or a file if one is given, otherwise in the variables of the job of a batch system.
    Auto,
}

impl Source {
    /// Resolves `auto`: the list or file if one is given.
    pub(crate) fn resolved(self, list: Option<&str>, file: Option<&InputPath>) -> Self {
        match self {
            Self::Auto if file.is_some() || list.is_some_and(|list| !list.trim().is_empty()) => Self::List,
            other => other,
        }
    }
}

/// Selection criteria.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Criterion {
    /// Sum over pairs of chosen hosts of the mean cost between their slots, in both directions. Lower is
    /// better.
    #[default]
    TotalDistance,
    /// Sum over pairs of a chosen and a remaining free host of their closeness: the largest distance between
    /// free hosts minus their distance. Lower is better: the remaining hosts stay together too.
    Cut,
    /// Bandwidth of the narrowest link on the widest path between two chosen hosts, in bytes per second.
    /// Higher is better; ties are broken by total distance.
    BottleneckBandwidth,
    /// Number of switches that messages between chosen hosts pass. Fewer is better.
    Switches,
}

/// Search methods.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// `exact` where it is fast: on trees and among few hosts. Otherwise `greedy`.
    #[default]
    Auto,
    /// The optimum: dynamic programming on a tree of any size, branch and bound on a cost matrix.
    Exact,
    /// Greedy growth from several hosts, each followed by pairwise exchanges.
    Greedy,
    /// Iterative min-cut partitioning of the two-stage method RGO.
    MinCut,
}
