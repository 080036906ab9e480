//! Parameters of the stage: the keys of `with` in a pipeline file.

use hopmap_model::InputPath;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of `select/nodes`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct NodesParams {
    /// The hosts that are free, as a host list: `node[001-128,200-210]`. `all`, or nothing at all, is every host of the machine.
    pub free: Option<String>,
    /// A file that says which hosts are free: names, host lists, or what `sinfo -N -h -o '%N %T'` or plain `sinfo` prints,
    /// recognised by what is in it.
    pub free_file: Option<InputPath>,
    /// Where the free hosts are said: `list` is `free` or `free_file`; `slurm-nodelist` is the variable `SLURM_JOB_NODELIST` of
    /// the job in which the stage runs, which is looked at each time.
    pub from: Source,
    /// Whether hosts of which `sinfo` says that a part is in use (`mixed`) are free.
    pub mixed: bool,
    /// Hosts that must not be chosen, as a host list.
    pub exclude: String,
    /// How many hosts to choose. Without it and without `slots` all that are free.
    pub count: Option<u32>,
    /// How many slots the chosen hosts have to have together: as few hosts are taken as are found to have them.
    pub slots: Option<u32>,
    /// What makes a choice good: `total-distance` (default), `cut`, `bottleneck-bandwidth` or `switches`.
    pub criterion: Criterion,
    /// How to search: `auto` (default), `exact`, `greedy` or `min-cut`.
    pub method: Method,
    /// Another seed gives other random starts.
    pub seed: u64,
    /// From how many hosts `greedy` starts.
    pub starts: u32,
}

impl Default for NodesParams {
    fn default() -> Self {
        Self {
            free: None,
            free_file: None,
            from: Source::default(),
            mixed: false,
            exclude: String::new(),
            count: None,
            slots: None,
            criterion: Criterion::default(),
            method: Method::default(),
            seed: 1,
            starts: 8,
        }
    }
}

/// Where the free hosts are said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// In `free` or `free_file`.
    #[default]
    List,
    /// In the variable `SLURM_JOB_NODELIST`.
    SlurmNodelist,
}

/// What makes a choice of hosts good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Criterion {
    /// The sum over pairs of chosen hosts of the mean cost between their slots, both ways. The less the better.
    #[default]
    TotalDistance,
    /// The sum over pairs of a chosen host and a free one that is left of how close they are: the largest distance between
    /// free hosts less their own. The less the better: what is left stays together too.
    Cut,
    /// The narrowest link on the widest path between two chosen hosts, in bytes per second. The more the better; among equals
    /// the total distance counts.
    BottleneckBandwidth,
    /// The switches that messages between chosen hosts pass. The fewer the better.
    Switches,
}

/// How to search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// `exact` where that is quick: on trees, and among few hosts. `greedy` elsewhere.
    #[default]
    Auto,
    /// The best there is: dynamic programming over the tree of a machine of any size, branch and bound over a matrix of costs.
    Exact,
    /// Grown from several hosts, each then improved by exchanges.
    Greedy,
    /// The iterative min-cut partitioning of the two-stage method RGO.
    MinCut,
}
