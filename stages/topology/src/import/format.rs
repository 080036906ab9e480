//! What every format shares: the parameters of an import, the names of the formats, what a file is recognised by, the machine that was read,
//! and what can be wrong.

use std::fmt::Display;
use std::io::Read;
use std::path::{Path, PathBuf};

use hopmap_model::{InputPath, SystemGraph, SystemGraphError, open_input};
use hopmap_process::RunError;
use hopmap_text::FileError;
use miette::Diagnostic;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::CostMetric;

/// A machine out of a file or a folder.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ImportParams {
    /// The file or folder. Without it `topology/hwloc` looks at this machine, as `lstopo --of xml` describes it.
    pub path: Option<InputPath>,
    /// What is in the file; without it what it looks like.
    pub format: Option<Format>,
    /// What a message between two hosts costs: `hops` (default), the `latency` of the links in microseconds, or the `time` of a message
    /// of `bytes` bytes. Only of machines with links; matrices and trees with costs have costs of their own.
    pub cost: Option<CostMetric>,
    /// Bytes of the message whose `time` is the cost.
    pub bytes: Option<u64>,
    /// Seconds that a link takes of which the file does not say it.
    pub link_latency_s: Option<f64>,
    /// Slots of every host of which nothing else says how many cores it has; 1 if not given.
    #[schemars(range(min = 1))]
    pub slots: Option<u32>,
    /// A folder with what `lstopo` says of hosts, `HOST.xml` or `HOST.diff.xml`: their cores become slots.
    pub hwloc: Option<InputPath>,
    /// Whether the slots of hosts that hwloc describes are hardware threads instead of cores.
    pub hardware_threads: bool,
    /// Costs between two slots of one host that first meet on a level inside it, innermost first. Without it they rise
    /// in equal steps to below what hosts cost at least. Of several hosts without a network between them one more may be
    /// given: what it costs from host to host.
    pub intra_node_costs: Vec<f64>,
    /// The costs of a hierarchy whose file has none, innermost first: KaHIP's `D`.
    pub costs: Vec<f64>,
}

impl ImportParams {
    /// The parameters of a file and nothing else.
    #[must_use]
    pub fn of(path: impl Into<PathBuf>) -> Self {
        Self { path: Some(InputPath::new(path)), ..Self::default() }
    }

    /// Refuses the first of some parameters that is given though it means nothing, and says why.
    pub(super) fn refuse(&self, names: &[&'static str], why: &str, help: &str) -> Result<()> {
        let given = [
            ("cost", self.cost.is_some()),
            ("link_latency_s", self.link_latency_s.is_some()),
            ("slots", self.slots.is_some()),
            ("hwloc", self.hwloc.is_some()),
            ("hardware_threads", self.hardware_threads),
            ("intra_node_costs", !self.intra_node_costs.is_empty()),
            ("costs", !self.costs.is_empty()),
        ];
        match names.iter().find(|name| given.contains(&(**name, true))) {
            None => Ok(()),
            Some(name) => {
                let problem = format!("means nothing here: {why}");
                Err(ImportError::Parameter { name, problem, help: help.to_owned() })
            }
        }
    }
}

macro_rules! formats {
    ($($(#[$doc:meta])* $format:ident = $name:literal,)*) => {
        /// What is in a file or a folder.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        pub enum Format {
            $($(#[$doc])* #[serde(rename = $name)] $format,)*
        }

        impl Format {
            /// All formats.
            pub const ALL: &[Self] = &[$(Self::$format),*];

            /// Its name in a pipeline file.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$format => $name,)*
                }
            }
        }
    };
}

formats! {
    /// `IB-*-nodes.txt` of netloc 2.
    Netloc = "netloc",
    /// The folder of `.ndat` files of netloc 0.5, or its file of nodes.
    NetlocDat = "netloc-dat",
    /// The folder that `netloc_ib_gather_raw` fills.
    NetlocRaw = "netloc-raw",
    /// What `ibnetdiscover` prints, with or without `-p`; a folder may hold `ibroute` tables beside it.
    Ibnetdiscover = "ibnetdiscover",
    /// Tables of `opareport` or the `opaextract` scripts of Omni-Path.
    Omnipath = "omnipath",
    /// XML of hwloc, version 1 or 2, or a folder of such files.
    Hwloc = "hwloc",
    /// `topology.conf` of Slurm, tree or block.
    SlurmConf = "slurm-conf",
    /// `topology.yaml` of Slurm.
    SlurmYaml = "slurm-yaml",
    /// A platform file of SimGrid.
    Simgrid = "simgrid",
    /// A target architecture of Scotch (`.tgt`).
    Scotch = "scotch",
    /// A hierarchy of KaHIP: `4:16:64`, in a second line its distances `1:10:100`.
    Kahip = "kahip",
    /// A topology of TopoMatch or TreeMatch.
    Topomatch = "topomatch",
    /// A network file of PARUS, as text.
    Parus = "parus",
    /// A network file of PARUS, as netCDF.
    ParusNetcdf = "parus-netcdf",
    /// What mpiGraph prints.
    Mpigraph = "mpigraph",
    /// Latencies between cores as `core-to-core-latency` writes them.
    CoreToCore = "core-to-core",
    /// A dense matrix of costs as CSV.
    Matrix = "matrix",
    /// Hosts and links as CSV, a link a row.
    GraphCsv = "graph-csv",
    /// Hosts and links as JSON.
    GraphJson = "graph-json",
}

/// A machine, and what people should know of how it was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Imported {
    /// The machine.
    pub system: SystemGraph,
    /// One line each: what was recomputed, left out or assumed.
    pub notes: Vec<String>,
}

/// A machine that cannot be imported.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum ImportError {
    /// Something is wrong with a file or folder.
    #[error(transparent)]
    #[diagnostic(transparent)]
    File(#[from] FileError),
    /// Nothing here knows what is in the file.
    #[error("{}: this is no description of a machine that is known here", .0.display())]
    #[diagnostic(help("say what it is with `format`; `hopmap stages topology/import` lists the formats"))]
    Unknown(PathBuf),
    /// The file holds something else than what the stage reads.
    #[error("{}: this is {}, which this stage does not read", .0.display(), .1)]
    #[diagnostic(help("topology/import reads all formats"))]
    OtherFormat(PathBuf, &'static str),
    /// The machine contradicts itself.
    #[error("{}: the machine contradicts itself", path.display())]
    Machine {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        #[source]
        source: SystemGraphError,
    },
    /// A parameter is wrong or missing.
    #[error("`{name}` {problem}")]
    #[diagnostic(help("{help}"))]
    Parameter {
        /// The parameter.
        name: &'static str,
        /// What is wrong with it.
        problem: String,
        /// What it may be.
        help: String,
    },
    /// hwloc is not installed.
    #[error("`lstopo` is not there")]
    #[diagnostic(help(
        "hwloc says what this machine is like inside; on Debian and Ubuntu: `apt install hwloc-nox`"
    ))]
    NoHwloc,
    /// A program that describes this machine did not.
    #[error(transparent)]
    #[diagnostic(help("try it by hand; `path` takes a file that it has written"))]
    Command(RunError),
}

impl ImportError {
    /// A machine that contradicts itself.
    pub(super) fn machine(source: SystemGraphError) -> Self {
        Self::Machine { path: PathBuf::new(), source }
    }

    /// The same error of a file, unless it says of which one it is.
    pub(super) fn in_file(mut self, file: &Path) -> Self {
        if let Self::File(FileError { path, .. }) | Self::Machine { path, .. } = &mut self
            && path.as_os_str().is_empty()
        {
            file.clone_into(path);
        }
        self
    }

    /// A parameter that is wrong or missing, and what it may be.
    pub(super) fn parameter(name: &'static str, problem: impl Into<String>, help: impl Into<String>) -> Self {
        Self::Parameter { name, problem: problem.into(), help: help.into() }
    }
}

/// What a reader of machines finds.
pub(super) type Result<T, E = ImportError> = std::result::Result<T, E>;

/// Bytes by which a format is recognised.
const HEAD: u64 = 64 << 10;
/// Bytes of a file that is read as a whole.
pub(super) const MOST_BYTES: u64 = 1 << 32;
/// Files of a folder by which a format is recognised.
const MOST_ENTRIES: usize = 100_000;

/// What a format is recognised by.
pub(super) struct Sample {
    pub(super) path: PathBuf,
    /// The names in a folder, sorted; `None` of a file.
    pub(super) entries: Option<Vec<String>>,
    /// The first bytes of a file.
    pub(super) head: Vec<u8>,
}

impl Sample {
    pub(super) fn new(path: &Path) -> Result<Self> {
        let failed = |error| FileError::unreadable(path, &error);
        if path.is_dir() {
            let mut entries = Vec::new();
            for entry in std::fs::read_dir(path).map_err(failed)?.take(MOST_ENTRIES) {
                entries.push(entry.map_err(failed)?.file_name().to_string_lossy().into_owned());
            }
            entries.sort_unstable();
            return Ok(Self { path: path.to_owned(), entries: Some(entries), head: Vec::new() });
        }
        Ok(Self { path: path.to_owned(), entries: None, head: head(path, HEAD)? })
    }

    /// Whether the first bytes are all.
    pub(super) fn is_whole(&self) -> bool {
        (self.head.len() as u64) < HEAD
    }

    /// The first bytes as text, if this is a file of text: up to the last whole line if there are more.
    pub(super) fn text(&self) -> Option<&str> {
        let text = if self.entries.is_none() { whole_lines(&self.head, HEAD) } else { None };
        text.filter(|text| !text.contains('\0'))
    }
}

/// The first bytes of a file, so many at the most.
pub(super) fn head(path: &Path, most: u64) -> Result<Vec<u8>, FileError> {
    let failed = |error| FileError::unreadable(path, &error);
    let mut head = Vec::new();
    open_input(path).map_err(failed)?.take(most).read_to_end(&mut head).map_err(failed)?;
    Ok(head)
}

/// The first bytes of a file as text: up to the last whole line if there are `most` of them.
pub(super) fn whole_lines(head: &[u8], most: u64) -> Option<&str> {
    let last = head.iter().rposition(|&byte| byte == b'\n').filter(|_| head.len() as u64 == most);
    std::str::from_utf8(&head[..last.map_or(head.len(), |end| end + 1)]).ok()
}

/// Notes how many there are of something, if there are any.
pub(super) fn note<N: Copy + Display + Default + PartialEq>(notes: &mut Vec<String>, what: &str, count: N) {
    if count != N::default() {
        notes.push(format!("{what}: {count}"));
    }
}

/// The only file behind a path, always under one name, so that renaming it changes no key.
#[expect(clippy::unnecessary_wraps, reason = "a reader gives files or an error")]
pub(super) fn one_file(path: &Path) -> Result<Vec<InputPath>> {
    Ok(vec![InputPath::named(path, "machine")])
}

/// Reads a whole file of text.
pub(super) fn read_text(path: &Path) -> Result<String, FileError> {
    hopmap_text::read_text(path, MOST_BYTES)
}

/// An error at a line of the file that is read, or of all of it.
pub(super) fn malformed(
    line: impl Into<Option<usize>>,
    problem: impl Into<String>,
    help: impl Into<String>,
) -> ImportError {
    FileError { line: line.into(), ..FileError::new(problem, help) }.into()
}
