//! Parameters of the stages that import machines.

use hopmap_model::InputPath;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::CostMetric;

/// A machine out of a file or a folder.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ImportParams {
    /// The file or folder. Without it `topology/hwloc` looks at this machine, as `lstopo --of xml` describes it.
    #[serde(default)]
    pub path: Option<InputPath>,
    /// What is in the file; without it what it looks like.
    #[serde(default)]
    pub format: Option<Format>,
    /// What a message between two hosts costs: `hops` (default), the `latency` of the links in microseconds, or the `time` of a message
    /// of `bytes` bytes. Only of machines with links; matrices and trees with costs have costs of their own.
    #[serde(default)]
    pub cost: Option<CostMetric>,
    /// Bytes of the message whose `time` is the cost.
    #[serde(default)]
    pub bytes: Option<u64>,
    /// Seconds that a link takes of which the file does not say it.
    #[serde(default)]
    pub link_latency: Option<f64>,
    /// Slots of every host of which nothing else says how many cores it has; 1 if not given.
    #[serde(default)]
    #[schemars(range(min = 1))]
    pub slots: Option<u32>,
    /// A folder with what `lstopo` says of hosts, `HOST.xml` or `HOST.diff.xml`: their cores become slots.
    #[serde(default)]
    pub hwloc: Option<InputPath>,
    /// Whether the slots of hosts that hwloc describes are hardware threads instead of cores.
    #[serde(default)]
    pub threads: bool,
    /// Costs between two slots of one host that first meet on a level inside it, innermost first. Without it they rise
    /// in equal steps to below what hosts cost at least. Of several hosts without a network between them one more may be
    /// given: what it costs from host to host.
    #[serde(default)]
    pub inside: Vec<f64>,
    /// The costs of a hierarchy whose file has none, innermost first: KaHIP's `D`.
    #[serde(default)]
    pub costs: Vec<f64>,
}

/// What is in a file or a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// `IB-*-nodes.txt` of netloc 2.
    Netloc,
    /// The folder of `.ndat` files of netloc 0.5, or its file of nodes.
    NetlocDat,
    /// The folder that `netloc_ib_gather_raw` fills.
    NetlocRaw,
    /// What `ibnetdiscover` prints, with or without `-p`; a folder may hold `ibroute` tables beside it.
    Ibnetdiscover,
    /// Tables of `opareport` or the `opaextract` scripts of Omni-Path.
    Omnipath,
    /// XML of hwloc, version 1 or 2, or a folder of such files.
    Hwloc,
    /// `topology.conf` of Slurm, tree or block.
    SlurmConf,
    /// `topology.yaml` of Slurm.
    SlurmYaml,
    /// A platform file of SimGrid.
    Simgrid,
    /// A target architecture of Scotch (`.tgt`).
    Scotch,
    /// A hierarchy of KaHIP: `4:16:64`, in a second line its distances `1:10:100`.
    Kahip,
    /// A topology of TopoMatch or TreeMatch.
    Topomatch,
    /// A network file of PARUS, as text.
    Parus,
    /// A network file of PARUS, as netCDF.
    ParusNetcdf,
    /// What mpiGraph prints.
    Mpigraph,
    /// Latencies between cores as `core-to-core-latency` writes them.
    CoreToCore,
    /// A dense matrix of costs as CSV.
    Matrix,
    /// Hosts and links as CSV, a link a row.
    GraphCsv,
    /// Hosts and links as JSON.
    GraphJson,
}

impl Format {
    /// All formats.
    pub const ALL: &[Self] = &[
        Self::Netloc,
        Self::NetlocDat,
        Self::NetlocRaw,
        Self::Ibnetdiscover,
        Self::Omnipath,
        Self::Hwloc,
        Self::SlurmConf,
        Self::SlurmYaml,
        Self::Simgrid,
        Self::Scotch,
        Self::Kahip,
        Self::Topomatch,
        Self::Parus,
        Self::ParusNetcdf,
        Self::Mpigraph,
        Self::CoreToCore,
        Self::Matrix,
        Self::GraphCsv,
        Self::GraphJson,
    ];

    /// Its name in a pipeline file.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Netloc => "netloc",
            Self::NetlocDat => "netloc-dat",
            Self::NetlocRaw => "netloc-raw",
            Self::Ibnetdiscover => "ibnetdiscover",
            Self::Omnipath => "omnipath",
            Self::Hwloc => "hwloc",
            Self::SlurmConf => "slurm-conf",
            Self::SlurmYaml => "slurm-yaml",
            Self::Simgrid => "simgrid",
            Self::Scotch => "scotch",
            Self::Kahip => "kahip",
            Self::Topomatch => "topomatch",
            Self::Parus => "parus",
            Self::ParusNetcdf => "parus-netcdf",
            Self::Mpigraph => "mpigraph",
            Self::CoreToCore => "core-to-core",
            Self::Matrix => "matrix",
            Self::GraphCsv => "graph-csv",
            Self::GraphJson => "graph-json",
        }
    }
}

impl ImportParams {
    /// The parameters of a file and nothing else.
    #[must_use]
    pub fn of(path: impl Into<std::path::PathBuf>) -> Self {
        Self { path: Some(InputPath::new(path)), ..Self::default() }
    }
}
