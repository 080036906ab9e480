//! Import of machine topologies from the files of other tools; formats are detected by content.
//!
//! # From a file to a machine topology
//!
//! `READERS` has one entry per format: whether a file looks like it, which files are behind a path, and how
//! they are read; the module of the format contains these functions, and `format.rs` its name. A reader
//! produces `Parts` (nodes, links, routing, shapes of hosts); `networks.rs` leaves out networks, and only
//! `finish.rs` adds slots and costs. Fabric dumps pass through `fabric.rs`, which groups adapters into hosts and
//! sorts everything into canonical order.
//!
//! Routes belong to the machine (`Routing` in `model/src/system_graph.rs`), not to its costs: `Paths`
//! (`model/src/paths.rs`) follows forwarding tables if there are any, otherwise the fewest links with the
//! tie-breaking rule of `Ties`. Metrics, loads and `CostModel::Routes` all use it. A table entry contains the
//! *last link* of a route, which identifies the host and its port. `SystemGraph::explicit` converts such
//! costs: to levels if they form a tree, found among classes of hosts attached to the same switch, otherwise
//! to a matrix of bounded size. Searches keep a cost for every pair of hosts and a tree inside each
//! (`objective/src/forms.rs`), so memory does not grow with the number of cores.

mod cables;
mod csv_text;
mod fabric;
mod finish;
mod foreign;
mod format;
mod graph;
mod graph_csv;
mod graph_json;
mod hwloc;
mod iblinkinfo;
mod ibnetdiscover;
mod json_text;
mod mappers;
mod matrix_csv;
mod measured;
mod nccl_topology;
mod netloc;
mod netloc_dat;
mod networks;
mod nvidia_smi;
mod omnipath;
mod parus;
mod placed;
mod rocm_smi;
#[cfg(test)]
mod samples;
mod scotch;
mod simgrid;
mod slurm_conf;
mod slurm_ring;
mod slurm_torus;
mod slurm_tree;
mod slurm_yaml;
mod table_lines;
mod units;
mod xml;
mod yaml;

pub use format::{Format, ImportError, ImportParams, Imported};

use std::path::Path;

use hopmap_model::{Context, Error, InputPath, Inputs, Outcome, Outputs, Port, Stage, SystemGraph};
use hopmap_text::{FileError, Foreign, encoded, without_foreign};

use format::{MOST_BYTES, Result, Sample, one_file, read_text};
pub use hwloc::PROGRAMS as HWLOC_PROGRAMS;
use hwloc::this_machine;

/// How a format is read: its identifier; its detection, which accepts a file for at most one format; and the
/// reader.
type Reader = (Format, fn(&Sample) -> bool, Source);

/// Input of a reader: the text of the only file; or a path, with a function that lists all files behind it
/// under location-independent names. Errors need not contain the file name.
enum Source {
    Text(Read<str>),
    /// The first function finds the lines that are not of the file by their shape, and are skipped. It gets the text with messages.
    Lines(fn(&str) -> Result<Vec<usize>>, Read<str>),
    Path(fn(&Path) -> Result<Vec<InputPath>>, Read<Path>),
}

type Read<F> = fn(&F, &ImportParams) -> Result<Imported>;

/// All formats, those with the most reliable detection first.
static READERS: &[Reader] = &[
    (Format::Netloc, netloc::recognises, Source::Path(netloc::files, netloc::read)),
    (Format::NetlocDat, netloc_dat::recognises, Source::Path(netloc_dat::files, netloc_dat::read)),
    (
        Format::NetlocRaw,
        ibnetdiscover::is_gathered,
        Source::Path(ibnetdiscover::files_of_gathered, ibnetdiscover::read_gathered),
    ),
    (
        Format::Ibnetdiscover,
        ibnetdiscover::recognises,
        Source::Path(ibnetdiscover::files, ibnetdiscover::read),
    ),
    (Format::Iblinkinfo, iblinkinfo::recognises, Source::Text(iblinkinfo::read)),
    (Format::Omnipath, omnipath::recognises, Source::Text(omnipath::read)),
    (Format::Hwloc, hwloc::recognises, Source::Path(hwloc::files, hwloc::read)),
    (Format::Simgrid, simgrid::recognises, Source::Text(simgrid::read)),
    (Format::ParusNetcdf, parus::recognises_netcdf, Source::Path(parus::files, parus::read_netcdf)),
    (Format::Parus, parus::recognises, Source::Path(one_file, parus::read)),
    (Format::Mpigraph, measured::recognises_mpigraph, Source::Text(measured::read_mpigraph)),
    (Format::Scotch, scotch::recognises, Source::Path(one_file, scotch::read)),
    // Files in the common subset are detected as Scotch's.
    (Format::Topomatch, |_| false, Source::Text(mappers::read_topomatch)),
    (Format::SlurmYaml, slurm_yaml::recognises, Source::Text(slurm_yaml::read)),
    (Format::SlurmConf, slurm_conf::recognises, Source::Text(slurm_conf::read)),
    (Format::GraphJson, graph_json::recognises, Source::Lines(json_text::others, graph_json::read)),
    (
        Format::Topograph,
        placed::recognises_topograph,
        Source::Lines(json_text::others, placed::read_topograph),
    ),
    (Format::SwitchMap, placed::recognises_map, Source::Lines(json_text::others, placed::read_map)),
    (Format::KubectlNodes, placed::recognises_table, Source::Lines(placed::others, placed::read_table)),
    (Format::NcclTopology, nccl_topology::recognises, Source::Text(nccl_topology::read)),
    (Format::NvidiaSmi, nvidia_smi::recognises, Source::Text(nvidia_smi::read)),
    (Format::RocmSmi, rocm_smi::recognises, Source::Text(rocm_smi::read)),
    (Format::Kahip, mappers::recognises_kahip, Source::Text(mappers::read_kahip)),
    (Format::GraphCsv, graph_csv::recognises, Source::Lines(graph_csv::others, graph_csv::read)),
    (Format::LabelList, placed::recognises_list, Source::Lines(placed::others_of_list, placed::read_list)),
    (Format::CoreToCore, measured::recognises_core_to_core, Source::Text(measured::read_core_to_core)),
    (Format::Matrix, matrix_csv::recognises, Source::Lines(matrix_csv::others, matrix_csv::read)),
];

/// Detects the format of a file or folder.
pub fn recognise(path: &Path) -> Result<Format> {
    Ok(reader(path, None)?.0)
}

/// The format that would be detected without some of the first lines, and the first of these.
fn nearest(sample: &Sample) -> Option<(Format, usize)> {
    sample.without_lines().find_map(|(line, sample)| Some((told(&sample, false)?, line)))
}

/// The format of a sample, unless any lines of numbers may be of that, and it may be one of these.
fn told(sample: &Sample, of_numbers: bool) -> Option<Format> {
    let is_told =
        |format: Format| of_numbers || ![Format::Kahip, Format::Matrix, Format::Scotch].contains(&format);
    READERS.iter().find(|(format, recognises, _)| is_told(*format) && recognises(sample)).map(|found| found.0)
}

/// All files behind a path.
pub fn files(path: &Path, format: Option<Format>) -> Result<Vec<InputPath>> {
    match &reader(path, format)?.2 {
        Source::Text(_) | Source::Lines(..) => one_file(path),
        Source::Path(files, _) => files(path).map_err(|error| error.in_file(path)),
    }
}

/// Reads a machine topology from the path in the parameters.
pub fn read(path: &Path, params: &ImportParams) -> Result<Imported> {
    let Some(inside) = &params.every_host else { return read_alone(path, params) };
    params.refuse(&["slots", "hwloc"], "`every_host` defines the slots", "omit it, or `every_host`")?;
    let host = read_alone(inside.path(), &ImportParams::default())?.system;
    let costs = &params.intra_node_costs;
    let slots = u32::try_from(host.slots.len()).unwrap_or(u32::MAX).into();
    let plain = ImportParams { every_host: None, slots, intra_node_costs: Vec::new(), ..params.clone() };
    let mut imported = read_alone(path, &plain).map_err(|error| match error {
        // These formats describe hosts, and so do not take a number of slots.
        ImportError::Parameter { name: "slots", problem, help } => {
            ImportError::Parameter { name: "every_host", problem, help }
        }
        other => other,
    })?;
    finish::like_one(&mut imported.system, &host, costs)?;
    Ok(imported)
}

/// Parameters of formats that list hosts and switches; the last one of those that list adapters.
const OF_NETWORKS: &[&str] = &["networks", "leave_out", "allow_truncated"];

fn read_alone(path: &Path, params: &ImportParams) -> Result<Imported> {
    let (format, _, source) = reader(path, params.format)?;
    if !format.is_fabric() {
        params.refuse(&OF_NETWORKS[2..], "the file is not a listing of a fabric", "omit it")?;
    }
    if !format.has_networks() {
        params.refuse(OF_NETWORKS, "the file is not a list of hosts and switches", "omit it")?;
    }
    if !matches!(format, Format::SlurmConf | Format::SlurmYaml) {
        params.refuse(&["topology"], "only files of Slurm have several topologies", "omit it")?;
    }
    let files = files(path, Some(*format))?;
    foreign::refuse_prefixed_lines(&files)?;
    let mut others = None;
    let imported = match source {
        Source::Text(read) => read(&read_text(path)?, params),
        Source::Lines(lines, read) => {
            let text = hopmap_text::read_text(path, MOST_BYTES)?;
            let skipped = lines(&text).map_err(|error| error.in_file(path))?;
            let own = without_foreign(&text);
            let (own, skipped) = Foreign::of_lines(&own, &skipped);
            others = skipped;
            read(&own, params)
        }
        Source::Path(_, read) => read(path, params),
    };
    let mut imported = imported
        .map_err(|error| foreign::or_prefixed(error, path).with_skipped(others.as_ref()).in_file(path))?;
    finish::limit(&mut imported, params)?;
    imported.notes.extend(foreign::notes(path, &files, others)?);
    imported.notes.extend(finish::notes_of_hosts(&imported.system, params)?);
    Ok(imported)
}

/// The reader of the given format, or else of the detected one. Files of no format that are known to be something else
/// are refused as that.
fn reader(path: &Path, format: Option<Format>) -> Result<&'static Reader> {
    let sample = Sample::new(path)?;
    foreign::refuse_prefix(&sample, told).map_err(|error| error.in_file(path))?;
    foreign::refuse_failure(&sample).map_err(|error| error.in_file(path))?;
    let detected = READERS.iter().find(|(_, recognises, ..)| recognises(&sample));
    if detected.is_none() {
        foreign::refuse(&sample).map_err(|error| error.in_file(path))?;
    }
    let given = format.and_then(|format| READERS.iter().find(|(known, ..)| *known == format));
    if given.or(detected).is_none() && sample.text().is_some_and(|text| text.trim().is_empty()) {
        let error = FileError::new("it is empty", "give a file with the hosts and switches of a machine");
        return Err(error.in_file(path).into());
    }
    if let Some(error) = encoded(&sample.head).filter(|_| detected.is_none()) {
        return Err(error.in_file(path).into());
    }
    if given.or(detected).is_none() && !path.is_dir() {
        foreign::refuse_prefixed_lines(&one_file(path)?)?;
    }
    given.or(detected).ok_or_else(|| match (nearest(&sample), sample.text().and_then(matrix_csv::doubt)) {
        (None, Some(doubt)) => foreign::or_prefixed(doubt.into(), path).in_file(path),
        (nearest, _) => ImportError::Unknown(path.to_owned(), nearest),
    })
}

/// A stage that imports machine topologies: of any format, or hosts described by hwloc, by default this
/// machine.
#[derive(Debug)]
pub struct ImportStage<const OF_HWLOC: bool>;

/// `topology/import`: imports a machine topology from a file or folder in any supported format.
pub type Import = ImportStage<false>;
/// `topology/hwloc`: imports one host, this machine or several hosts described by hwloc.
pub type Hwloc = ImportStage<true>;

impl<const OF_HWLOC: bool> Stage for ImportStage<OF_HWLOC> {
    type Params = ImportParams;
    const KIND: &'static str = if OF_HWLOC { "topology/hwloc" } else { "topology/import" };
    const SUMMARY: &'static str = match OF_HWLOC {
        true => "Import the cores and caches of hosts from hwloc; by default of this machine",
        false => "Import a machine topology from a file or folder; the format is detected",
    };
    const REVISION: u32 = 9;
    const PORTS: &'static [Port] = &[Port::output::<SystemGraph>("system-graph")];

    fn check(params: &Self::Params) -> Result<(), Error> {
        if params.path.is_none() && !OF_HWLOC {
            let help = "give the file or folder that describes the machine";
            return Err(ImportError::parameter("path", "is missing", help).into());
        }
        if OF_HWLOC {
            params.refuse(OF_NETWORKS, "hwloc describes hosts", "omit it")?;
        }
        Ok(finish::check(params)?)
    }

    fn observes(params: &Self::Params) -> bool {
        params.path.is_none()
    }

    fn reads(params: &Self::Params) -> Result<Vec<InputPath>, Error> {
        let mut files = match &params.path {
            Some(path) => files(path.path(), Some(format(path.path(), params.format, OF_HWLOC)?))?,
            None => Vec::new(),
        };
        if let Some(inside) = &params.every_host {
            let named =
                |file: InputPath| InputPath::named(file.path(), format!("every_host/{}", file.name()));
            files.extend(self::files(inside.path(), None)?.into_iter().map(named));
        }
        if let Some(folder) = &params.hwloc {
            files.extend(hwloc::folder::files_of_hosts(folder.path())?);
        }
        Ok(files)
    }

    fn run(params: Self::Params, _: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        let has_slots = params.slots().is_some() || params.every_host.is_some();
        let imported = match params.path.clone() {
            None => this_machine(&params)?,
            Some(path) => {
                let format = format(path.path(), params.format, OF_HWLOC)?;
                if params.format.is_none() {
                    cx.log(format_args!("format: {}", format.name()));
                }
                read(path.path(), &ImportParams { format: Some(format), ..params })?
            }
        };
        imported.notes.iter().for_each(|note| cx.log(note));
        if !has_slots && imported.system.hosts().all(|(_, _, slots)| slots == 1) {
            cx.log("every host has one slot: `slots` gives it more");
        }
        Ok(Outcome::Done(Outputs::new().with("system-graph", imported.system)))
    }
}

/// The format of the file, which must be hwloc's if the stage reads only that.
fn format(path: &Path, given: Option<Format>, of_hwloc: bool) -> Result<Format> {
    let format = given.map_or_else(|| recognise(path), Ok)?;
    match of_hwloc && format != Format::Hwloc {
        true => Err(ImportError::OtherFormat(path.to_owned(), format.name())),
        false => Ok(format),
    }
}

/// Links between two nodes by their names, for the tests of formats.
#[cfg(test)]
fn hops(system: &hopmap_model::SystemGraph, a: &str, b: &str) -> Option<u32> {
    let node = |name| system.nodes.iter().position(|node| node.name == name).unwrap() as u32;
    hopmap_model::Paths::new(system).unwrap().hops(node(a), node(b))
}
