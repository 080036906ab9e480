//! Machines as other tools describe them, recognised by what is in their files.
//!
//! # From a description to a machine
//!
//! `READERS` has a line for every format: whether a file looks like it, which files are behind a path, and how they are read; the module
//! of the format has these functions, and `format.rs` its name. What a module finds becomes `Parts` (nodes, links, routing, the inside of
//! hosts), and `finish.rs` alone adds slots and costs. Dumps of fabrics go through `fabric.rs`, which joins adapters to hosts and puts
//! everything into canonical order.
//!
//! Routes belong to the machine (`model/src/routing.rs`), not to its costs: `Paths` follows forwarding tables where there are any, else the
//! fewest links with ties as `Ties` says, and metrics, loads and `CostModel::Routes` all ask it. A table's entry names the *last link* of
//! a way, which tells the host and its port. `SystemGraph::explicit` writes such costs down: as levels where they are those of a tree,
//! found among classes of hosts that hang on the same switch, else as a matrix of a bounded size. Searches keep a cost for every pair of
//! hosts and a tree inside each (`objective/src/forms.rs`), so that cores cost no memory.

mod cables;
mod fabric;
mod finish;
mod format;
mod graph;
mod graph_csv;
mod graph_json;
mod hwloc;
mod ibnetdiscover;
mod mappers;
mod matrix_csv;
mod measured;
mod netloc;
mod netloc_dat;
mod omnipath;
mod parus;
mod scotch;
mod simgrid;
mod slurm_conf;
mod slurm_tree;
mod slurm_yaml;
mod units;
mod xml;
mod yaml;

pub use format::{Format, ImportError, ImportParams, Imported};

use std::marker::PhantomData;
use std::path::Path;

use hopmap_model::{Context, Error, InputPath, Inputs, Outcome, Outputs, Port, Stage, SystemGraph};

use format::{Sample, one_file};
use hwloc::this_machine;

/// How a format is read: what it is; whether something looks like it, which at most one of all formats says of one file; every file
/// behind a path, under names that do not tell where they lie; and the machine.
type Reader = (
    Format,
    fn(&Sample) -> bool,
    fn(&Path) -> Result<Vec<InputPath>, ImportError>,
    fn(&Path, &ImportParams) -> Result<Imported, ImportError>,
);

/// All formats, those that are told apart most surely first.
static READERS: &[Reader] = &[
    (Format::Netloc, netloc::recognises, netloc::files, netloc::read),
    (Format::NetlocDat, netloc_dat::recognises, netloc_dat::files, netloc_dat::read),
    (
        Format::NetlocRaw,
        ibnetdiscover::is_gathered,
        ibnetdiscover::files_of_gathered,
        ibnetdiscover::read_gathered,
    ),
    (Format::Ibnetdiscover, ibnetdiscover::recognises, ibnetdiscover::files, ibnetdiscover::read),
    (Format::Omnipath, omnipath::recognises, one_file, omnipath::read),
    (Format::Hwloc, hwloc::recognises, hwloc::files, hwloc::read),
    (Format::Simgrid, simgrid::recognises, one_file, simgrid::read),
    (Format::ParusNetcdf, parus::recognises_netcdf, parus::files, parus::read_netcdf),
    (Format::Parus, parus::recognises, one_file, parus::read),
    (Format::Mpigraph, measured::recognises_mpigraph, one_file, measured::read_mpigraph),
    (Format::Scotch, scotch::recognises, one_file, scotch::read),
    // What both read alike is recognised as Scotch's.
    (Format::Topomatch, |_| false, one_file, mappers::read_topomatch),
    (Format::SlurmYaml, slurm_yaml::recognises, one_file, slurm_yaml::read),
    (Format::SlurmConf, slurm_conf::recognises, one_file, slurm_conf::read),
    (Format::GraphJson, graph_json::recognises, one_file, graph_json::read),
    (Format::Kahip, mappers::recognises_kahip, one_file, mappers::read_kahip),
    (Format::GraphCsv, graph_csv::recognises, one_file, graph_csv::read),
    (Format::CoreToCore, measured::recognises_core_to_core, one_file, measured::read_core_to_core),
    (Format::Matrix, matrix_csv::recognises, one_file, matrix_csv::read),
];

/// What is in a file or a folder.
pub fn recognise(path: &Path) -> Result<Format, ImportError> {
    let sample = Sample::new(path)?;
    let found = READERS.iter().find(|(_, recognises, ..)| recognises(&sample));
    found.map(|(format, ..)| *format).ok_or_else(|| ImportError::Unknown { path: path.to_owned() })
}

/// Every file behind a path.
pub fn files(path: &Path, format: Option<Format>) -> Result<Vec<InputPath>, ImportError> {
    let (_, _, files, _) = reader(path, format)?;
    files(path)
}

/// Reads a machine. The path is that of the parameters.
pub fn read(path: &Path, params: &ImportParams) -> Result<Imported, ImportError> {
    let (_, _, _, read) = reader(path, params.format)?;
    let mut imported = read(path, params)?;
    imported.notes.extend(finish::notes_of_hosts(&imported.system, params)?);
    Ok(imported)
}

fn reader(path: &Path, format: Option<Format>) -> Result<&'static Reader, ImportError> {
    let format = format.map_or_else(|| recognise(path), Ok)?;
    let found = READERS.iter().find(|(known, ..)| *known == format);
    found.ok_or_else(|| ImportError::Unknown { path: path.to_owned() })
}

/// The formats of a stage.
pub trait Family {
    /// Room and name of the stage.
    const KIND: &'static str;
    /// What it does, in one line.
    const SUMMARY: &'static str;
    /// What it reads; everything if empty.
    const FORMATS: &'static [Format];
    /// Whether it looks at this machine when no path is given.
    const LOOKS_HERE: bool = false;
}

/// A stage that imports machines.
#[derive(Debug)]
pub struct Fabric<F>(PhantomData<F>);

macro_rules! families {
    ($($(#[$doc:meta])* $name:ident($family:ident): $kind:literal, $summary:literal, [$($format:ident),*] $(, $here:literal)?;)*) => {$(
        #[doc(hidden)]
        #[derive(Debug)]
        pub struct $family;

        impl Family for $family {
            const KIND: &'static str = $kind;
            const SUMMARY: &'static str = $summary;
            const FORMATS: &'static [Format] = &[$(Format::$format),*];
            $(const LOOKS_HERE: bool = $here;)?
        }

        $(#[$doc])*
        pub type $name = Fabric<$family>;
    )*};
}

families! {
    /// `topology/import`: a machine out of a file or folder, whatever its format.
    Import(AnyFamily): "topology/import", "A machine out of a file or folder, recognised by what is in it", [];
    /// `topology/netloc`: a fabric as netloc describes it.
    Netloc(NetlocFamily): "topology/netloc", "A fabric as netloc describes it, raw or extracted", [Netloc, NetlocDat, NetlocRaw];
    /// `topology/ibnetdiscover`: an InfiniBand fabric as its own tools describe it.
    Ibnetdiscover(IbnetdiscoverFamily): "topology/ibnetdiscover", "An InfiniBand fabric as ibnetdiscover and ibroute print it", [Ibnetdiscover];
    /// `topology/omnipath`: an Omni-Path fabric as its own tools describe it.
    Omnipath(OmnipathFamily): "topology/omnipath", "An Omni-Path fabric as opareport and opaextract print it", [Omnipath];
    /// `topology/hwloc`: a host, this machine or several as hwloc describes them.
    Hwloc(HwlocFamily): "topology/hwloc", "The inside of hosts as hwloc describes it; this machine without a path", [Hwloc], true;
    /// `topology/slurm`: the switches or blocks of Slurm's topology plugins.
    Slurm(SlurmFamily): "topology/slurm", "Switches or blocks as Slurm's topology.conf and topology.yaml name them", [SlurmConf, SlurmYaml];
    /// `topology/simgrid`: a platform of SimGrid.
    Simgrid(SimgridFamily): "topology/simgrid", "A platform file of SimGrid", [Simgrid];
    /// `topology/scotch`: target architectures and hierarchies of mappers.
    Scotch(ScotchFamily): "topology/scotch", "A target of Scotch, a hierarchy of KaHIP or a topology of TopoMatch", [Scotch, Kahip, Topomatch];
    /// `topology/parus`: a network as PARUS measured it.
    Parus(ParusFamily): "topology/parus", "A network as PARUS measured it, text or netCDF", [Parus, ParusNetcdf];
    /// `topology/matrix`: measured or computed numbers for all pairs.
    Matrices(MatrixFamily): "topology/matrix", "A matrix of costs, core-to-core latencies or the output of mpiGraph", [Matrix, CoreToCore, Mpigraph];
}

impl<F: Family> Stage for Fabric<F> {
    type Params = ImportParams;
    const KIND: &'static str = F::KIND;
    const SUMMARY: &'static str = F::SUMMARY;
    const REVISION: u32 = 4;

    fn ports() -> &'static [Port] {
        const { &[Port::output::<SystemGraph>("system-graph")] }
    }

    fn check(params: &Self::Params) -> Result<(), Error> {
        if params.path.is_none() && !F::LOOKS_HERE {
            return Err(ImportError::Parameter {
                name: "path",
                problem: "is missing".into(),
                help: "name the file or folder that describes the machine".into(),
            }
            .into());
        }
        Ok(finish::check(params)?)
    }

    fn observes(params: &Self::Params) -> bool {
        params.path.is_none()
    }

    fn reads(params: &Self::Params) -> Result<Vec<InputPath>, Error> {
        let mut files = match &params.path {
            Some(path) => files(path.path(), format::<F>(params)?)?,
            None => Vec::new(),
        };
        if let Some(folder) = &params.hwloc {
            files.extend(hwloc::folder::files_of_hosts(folder.path())?);
        }
        Ok(files)
    }

    fn run(params: Self::Params, _: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        let imported = match &params.path {
            None => this_machine(&params)?,
            Some(path) => {
                let format = format::<F>(&params)?;
                if params.format.is_none()
                    && let Some(format) = format
                {
                    cx.log(format_args!("format: {}", format.name()));
                }
                let path = path.path().to_owned();
                read(&path, &ImportParams { format, ..params })?
            }
        };
        imported.notes.iter().for_each(|note| cx.log(note));
        Ok(Outcome::Done(Outputs::new().with("system-graph", imported.system)))
    }
}

/// The format of the file, which has to be one of the family.
fn format<F: Family>(params: &ImportParams) -> Result<Option<Format>, ImportError> {
    let Some(path) = &params.path else { return Ok(None) };
    let format = params.format.map_or_else(|| recognise(path.path()), Ok)?;
    match F::FORMATS.is_empty() || F::FORMATS.contains(&format) {
        true => Ok(Some(format)),
        false => Err(ImportError::OtherFormat { path: path.path().to_owned(), found: format.name() }),
    }
}
