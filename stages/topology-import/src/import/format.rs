//! Shared by all formats: the import parameters, format names, samples for detection, results and errors.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use hopmap_formats::slots::Slots;
use hopmap_model::{InputPath, SystemGraph, SystemGraphError, numbers, numbers_schema};
use hopmap_process::RunError;
use hopmap_text::{FileError, Foreign, without_foreign};
use miette::Diagnostic;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use hopmap_machines::params::CostMetric;

/// Import of a machine topology from a file or folder.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ImportParams {
    /// File or folder to import. Without it `topology/hwloc` runs `lstopo --of xml` on this machine.
    pub path: Option<InputPath>,
    /// Format of the file; detected by default.
    pub format: Option<Format>,
    /// Name of the topology to read if a file of Slurm has several: its name in `topology.yaml`; `tree`, `block` or `ring` in
    /// `topology.conf`. By default the one that is marked as default.
    pub topology: Option<String>,
    /// Cost of a message between two hosts: `hops`, the `latency` of the links in microseconds, or the `time`
    /// of a message of `bytes` bytes. Applies to machines with links only; matrices and trees contain their
    /// own costs.
    pub cost: Option<CostMetric>,
    /// Message size in bytes for `cost = "time"`.
    pub bytes: Option<u64>,
    /// Latency in seconds of links whose latency is not in the file.
    pub link_latency_s: Option<f64>,
    /// Bandwidth in bytes per second of links whose bandwidth is not in the file: one for all, or a list by
    /// level, first that of the links of hosts; the last one holds for all levels above.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "numbers")]
    #[schemars(schema_with = "numbers_schema")]
    pub link_bandwidth_bytes_per_s: Vec<f64>,
    /// Slots per host where the number of cores is unknown, 1 by default; or a list with the most slots of each host, in the
    /// order of the machine topology.
    pub slots: Slots,
    /// Folder with the `lstopo` output of hosts, `HOST.xml` or `HOST.diff.xml`; their cores become slots.
    pub hwloc: Option<InputPath>,
    /// File that describes one host, such as the output of `nvidia-smi topo -m` or `lstopo`: all hosts are like it inside.
    pub every_host: Option<InputPath>,
    /// Whether the slots of hosts that hwloc describes are hardware threads rather than cores.
    pub hardware_threads: bool,
    /// Costs between slots of one host by the level on which they first meet, innermost first. By default
    /// they increase in equal steps and stay below the minimum cost between hosts. For several hosts
    /// without a network, an additional value sets the cost between hosts.
    pub intra_node_costs: Vec<f64>,
    /// Costs of a hierarchy without costs in its file, innermost first: KaHIP's `D`.
    pub costs: Vec<f64>,
    /// The networks that are kept, by patterns (`*`, `?`): those with a switch that matches, and single adapters that
    /// match by host, device, description or GUID (also `0x…`, `S-…`). By default all, without the adapters that are
    /// slower than others of their hosts; `["*"]` keeps these, too.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub networks: Vec<String>,
    /// Switches, hosts and adapters that are left out, by the same patterns: `["storage-*", "mlx5_2"]`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub leave_out: Vec<String>,
    /// Whether a fabric whose listing is cut off, or limited to a part, is imported as far as it is listed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub allow_truncated: bool,
}

impl ImportParams {
    /// Default parameters for a file.
    #[must_use]
    pub fn of(path: impl Into<PathBuf>) -> Self {
        Self { path: Some(InputPath::new(path)), ..Self::default() }
    }

    /// The slots of hosts that have the most, if they are given.
    pub(super) fn slots(&self) -> Option<u32> {
        Some(self.slots.most()).filter(|slots| *slots > 0)
    }

    /// Rejects parameters that have no effect, with a reason.
    pub(super) fn refuse(&self, names: &[&'static str], why: &str, help: &str) -> Result<()> {
        let given = [
            ("topology", self.topology.is_some()),
            ("cost", self.cost.is_some()),
            ("link_latency_s", self.link_latency_s.is_some()),
            ("link_bandwidth_bytes_per_s", !self.link_bandwidth_bytes_per_s.is_empty()),
            ("slots", !self.slots.is_empty()),
            ("hwloc", self.hwloc.is_some()),
            ("every_host", self.every_host.is_some()),
            ("hardware_threads", self.hardware_threads),
            ("intra_node_costs", !self.intra_node_costs.is_empty()),
            ("costs", !self.costs.is_empty()),
            ("networks", !self.networks.is_empty()),
            ("leave_out", !self.leave_out.is_empty()),
            ("allow_truncated", self.allow_truncated),
        ];
        match names.iter().find(|name| given.contains(&(**name, true))) {
            None => Ok(()),
            Some(name) => {
                let problem = format!("has no effect: {why}");
                Err(ImportError::Parameter { name, problem, help: help.to_owned() })
            }
        }
    }
}

impl Format {
    /// Whether files of the format list adapters and switches.
    pub(super) fn is_fabric(self) -> bool {
        use Format::{Iblinkinfo, Ibnetdiscover, Netloc, NetlocDat, NetlocRaw, Omnipath};
        matches!(self, Iblinkinfo | Ibnetdiscover | Netloc | NetlocDat | NetlocRaw | Omnipath)
    }

    /// Whether files of the format list hosts and switches, which may be those of several networks.
    pub(super) fn has_networks(self) -> bool {
        use Format::{
            GraphCsv, GraphJson, KubectlNodes, LabelList, SlurmConf, SlurmYaml, SwitchMap, Topograph,
        };
        let is_tree =
            matches!(self, KubectlNodes | LabelList | SlurmConf | SlurmYaml | SwitchMap | Topograph);
        self.is_fabric() || is_tree || matches!(self, GraphCsv | GraphJson)
    }
}

macro_rules! formats {
    ($($(#[$doc:meta])* $format:ident = $name:literal,)*) => {
        /// Formats of files and folders.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        pub enum Format {
            $($(#[$doc])* #[serde(rename = $name)] $format,)*
        }

        impl Format {
            /// All formats.
            pub const ALL: &[Self] = &[$(Self::$format),*];

            /// Its name in pipelines.
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
    /// Folder of `.ndat` files of netloc 0.5, or its file of nodes.
    NetlocDat = "netloc-dat",
    /// Folder written by `netloc_ib_gather_raw`.
    NetlocRaw = "netloc-raw",
    /// Output of `ibnetdiscover`, with or without `-p`; a folder may also contain `ibroute` tables.
    Ibnetdiscover = "ibnetdiscover",
    /// Output of `iblinkinfo`, with or without `-l`.
    Iblinkinfo = "iblinkinfo",
    /// Tables of `opareport` or the `opaextract` scripts of Omni-Path.
    Omnipath = "omnipath",
    /// XML of hwloc, version 1 or 2, or a folder of such files.
    Hwloc = "hwloc",
    /// `topology.conf` of Slurm: tree, block or ring.
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
    /// Output of mpiGraph.
    Mpigraph = "mpigraph",
    /// Latencies between cores in the format of `core-to-core-latency`.
    CoreToCore = "core-to-core",
    /// Dense cost matrix as CSV.
    Matrix = "matrix",
    /// Hosts and links as CSV, one link per row.
    GraphCsv = "graph-csv",
    /// Hosts and links as JSON.
    GraphJson = "graph-json",
    /// JSON of topograph's graph engine: the switches and the accelerator domain of every host.
    Topograph = "topograph",
    /// A JSON map from hosts to switches.
    SwitchMap = "switch-map",
    /// Labels of hosts as CSV: `host,accelerator,leaf,spine`.
    LabelList = "label-list",
    /// Table of `kubectl get nodes -L LABEL,…` with the labels of the switches above every host.
    KubectlNodes = "kubectl-nodes",
    /// Output of `nvidia-smi topo -m`.
    NvidiaSmi = "nvidia-smi",
    /// Output of `rocm-smi --showtopo` or `amd-smi topology`.
    RocmSmi = "rocm-smi",
    /// XML of NCCL: the file that `NCCL_TOPO_DUMP_FILE` names.
    NcclTopology = "nccl-topology",
}

/// A machine topology and notes on its import.
#[derive(Debug, Clone, PartialEq)]
pub struct Imported {
    /// The machine topology.
    pub system: SystemGraph,
    /// One line for each property that was recomputed, ignored or assumed.
    pub notes: Vec<String>,
}

/// Errors of imports.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum ImportError {
    /// An error in a file or folder.
    #[error(transparent)]
    #[diagnostic(transparent)]
    File(#[from] FileError),
    /// The format of the file was not detected.
    #[error("{}: unknown machine topology format{}", .0.display(), nearest(.1.as_ref()))]
    #[diagnostic(
        code(topology::unknown),
        help("set `format`; `hopmap stages topology/import` lists the supported formats")
    )]
    Unknown(PathBuf, Option<(Format, usize)>),
    /// The stage does not read the format of the file.
    #[error("{}: this stage does not read the format {}", .0.display(), .1)]
    #[diagnostic(code(topology::other_format), help("topology/import reads all formats"))]
    OtherFormat(PathBuf, &'static str),
    /// The machine topology is inconsistent.
    #[error("{}: the machine topology is inconsistent", path.display())]
    #[diagnostic(
        code(topology::machine),
        help("correct the file, or write it again with the program that wrote it")
    )]
    Machine {
        /// The file.
        path: PathBuf,
        /// The inconsistency.
        #[source]
        source: SystemGraphError,
    },
    /// A parameter is wrong or missing.
    #[error("`{name}` {problem}")]
    #[diagnostic(code(topology::parameter), help("{help}"))]
    Parameter {
        /// The parameter.
        name: &'static str,
        /// What is wrong.
        problem: String,
        /// Valid values.
        help: String,
    },
    /// hwloc is not installed.
    #[error("`lstopo` was not found")]
    #[diagnostic(
        code(topology::no_hwloc),
        help(
            "install hwloc, which describes the cores and caches of this machine; on Debian and Ubuntu: `apt install hwloc-nox`"
        )
    )]
    NoHwloc,
    /// The program that describes this machine failed.
    #[error(transparent)]
    #[diagnostic(help("try it by hand; `path` accepts its output file"))]
    Command(RunError),
}

/// What a file of unknown format is nearest to.
fn nearest(found: Option<&(Format, usize)>) -> String {
    let Some((format, line)) = found else { return String::new() };
    format!("; it is nearest to `{}`, whose files do not have a line such as line {line}", format.name())
}

impl ImportError {
    /// An inconsistent machine topology.
    pub(super) fn machine(source: SystemGraphError) -> Self {
        Self::Machine { path: PathBuf::new(), source }
    }

    /// Sets the file, unless the error already has one.
    pub(super) fn in_file(mut self, file: &Path) -> Self {
        if let Self::File(FileError { path, .. }) | Self::Machine { path, .. } = &mut self
            && path.as_os_str().is_empty()
        {
            file.clone_into(path);
        }
        self
    }

    /// Adds the lines that were skipped to an error of an entire file, which may lack them.
    pub(super) fn with_skipped(mut self, skipped: Option<&Foreign>) -> Self {
        if let (Self::File(FileError { line: None, problem, .. }), Some(skipped)) = (&mut self, skipped) {
            *problem = format!("{problem}; {skipped}");
        }
        self
    }

    /// A wrong or missing parameter, with its valid values.
    pub(super) fn parameter(name: &'static str, problem: impl Into<String>, help: impl Into<String>) -> Self {
        Self::Parameter { name, problem: problem.into(), help: help.into() }
    }
}

/// Result of a reader.
pub(super) type Result<T, E = ImportError> = std::result::Result<T, E>;

/// Bytes by which a format is detected.
const HEAD: u64 = 64 << 10;
/// Largest size of a file that is read at once.
pub(super) const MOST_BYTES: u64 = 1 << 32;
/// Largest number of folder entries used for detection.
const MOST_ENTRIES: usize = 100_000;

/// Input of format detection.
pub(super) struct Sample {
    pub(super) path: PathBuf,
    /// The sorted names in a folder; `None` for a file.
    pub(super) entries: Option<Vec<String>>,
    /// The first bytes of a file.
    pub(super) head: Vec<u8>,
    /// These as text, if it is a text file: up to the last complete line if truncated, without foreign lines.
    pub(super) text: Option<String>,
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
            return Ok(Self { path: path.to_owned(), entries: Some(entries), head: Vec::new(), text: None });
        }
        Ok(Self::of(path, head(path, HEAD)?))
    }

    /// A file with such a beginning.
    pub(super) fn of(path: &Path, head: Vec<u8>) -> Self {
        let text = whole_lines(&head, HEAD).filter(|text| !text.contains('\0'));
        let text = text.map(|text| without_foreign(text.trim_start_matches(BYTE_ORDER_MARK)).into_owned());
        Self { path: path.to_owned(), entries: None, head, text }
    }

    /// Whether the sample is the complete file.
    pub(super) fn is_whole(&self) -> bool {
        (self.head.len() as u64) < HEAD
    }

    pub(super) fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }

    /// The same file without some of the first lines: without one of them, or without all before one. With the
    /// first line that is missing.
    pub(super) fn without_lines(&self) -> impl Iterator<Item = (usize, Self)> {
        let lines: Vec<&str> = self.text().unwrap_or("").split_inclusive('\n').collect();
        let lines: Vec<&str> = lines[..lines.len().min(LINES_TRIED * 4)].to_vec();
        let count = lines.len().min(LINES_TRIED);
        let cuts = (0..count).map(|line| (line, line + 1)).chain((2..count).map(|end| (0, end)));
        let texts: Vec<_> =
            cuts.map(|(from, to)| (from + 1, [&lines[..from], &lines[to..]].concat().concat())).collect();
        texts.into_iter().map(|(line, text)| {
            (
                line,
                Self { path: self.path.clone(), entries: None, head: text.clone().into(), text: Some(text) },
            )
        })
    }
}

/// Lines at the beginning of a file of unknown format that may be the reason for that.
const LINES_TRIED: usize = 24;

pub(super) use hopmap_text::head;

/// The first bytes of a file as text: up to the last complete line if there are `most` of them.
pub(super) fn whole_lines(head: &[u8], most: u64) -> Option<&str> {
    let last = head.iter().rposition(|&byte| byte == b'\n').filter(|_| head.len() as u64 == most);
    std::str::from_utf8(&head[..last.map_or(head.len(), |end| end + 1)]).ok()
}

/// Adds a note with a count, unless it is zero.
pub(super) fn note<N: Copy + Display + Default + PartialEq>(notes: &mut Vec<String>, what: &str, count: N) {
    if count != N::default() {
        notes.push(format!("{what}: {count}"));
    }
}

/// The first names.
pub(super) fn listed<S: AsRef<str>>(names: &[S]) -> String {
    const MOST_SHOWN: usize = 5;
    let shown: Vec<String> =
        names.iter().take(MOST_SHOWN).map(|name| format!("`{}`", name.as_ref())).collect();
    format!("{}{}", shown.join(", "), if names.len() > MOST_SHOWN { ", …" } else { "" })
}

/// A count with the first names.
pub(super) fn some<S: AsRef<str>>(names: &[S]) -> String {
    format!("{} ({})", names.len(), listed(names))
}

/// The only file behind a path, under a constant name, so that renaming it does not change the key.
#[expect(clippy::unnecessary_wraps, reason = "readers return files or an error")]
pub(super) fn one_file(path: &Path) -> Result<Vec<InputPath>> {
    Ok(vec![InputPath::named(path, "machine")])
}

const BYTE_ORDER_MARK: char = '\u{feff}';

/// Reads a text file, without the byte order mark that editors on Windows add, and without foreign lines.
pub(super) fn read_text(path: &Path) -> Result<String, FileError> {
    read_text_within(path, MOST_BYTES)
}

/// The same for a file of at most `most` bytes.
pub(super) fn read_text_within(path: &Path, most: u64) -> Result<String, FileError> {
    let text = hopmap_text::read_text(path, most)?;
    Ok(without_foreign(text.trim_start_matches(BYTE_ORDER_MARK)).into_owned())
}

/// Passes on that a listing is truncated, unless the parameters allow that; then it is a note.
pub(super) fn unless_allowed(
    result: Result<()>,
    params: &ImportParams,
    notes: &mut Vec<String>,
) -> Result<()> {
    match result {
        Err(error) if params.allow_truncated => notes.push(format!("{error}, as `allow_truncated` permits")),
        Err(ImportError::File(error)) => {
            let help = format!("{}; `allow_truncated = true` imports what is listed", error.help_text());
            return Err(error.with_help(help).into());
        }
        other => return other,
    }
    Ok(())
}

/// An error at a line of the current file, or of the entire file.
pub(super) fn malformed(
    line: impl Into<Option<usize>>,
    problem: impl Into<String>,
    help: impl Into<String>,
) -> ImportError {
    FileError { line: line.into(), ..FileError::new(problem, help) }.into()
}
