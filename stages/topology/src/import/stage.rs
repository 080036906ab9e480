//! The stages that import machines.

use std::marker::PhantomData;

use hopmap_model::{Context, Error, InputPath, Inputs, Outcome, Outputs, Port, Stage, SystemGraph};

use super::hwloc::this_machine;
use super::{Format, ImportError, ImportParams, finish, hwloc, reader};

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
            Some(path) => reader::files(path.path(), format::<F>(params)?)?,
            None => Vec::new(),
        };
        if let Some(folder) = &params.hwloc {
            files.extend(hwloc::files_of_hosts(folder.path())?);
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
                reader::read(&path, &ImportParams { format, ..params })?
            }
        };
        imported.notes.iter().for_each(|note| cx.log(note));
        Ok(Outcome::Done(Outputs::new().with("system-graph", imported.system)))
    }
}

/// The format of the file, which has to be one of the family.
fn format<F: Family>(params: &ImportParams) -> Result<Option<Format>, ImportError> {
    let Some(path) = &params.path else { return Ok(None) };
    let format = params.format.map_or_else(|| reader::recognise(path.path()), Ok)?;
    match F::FORMATS.is_empty() || F::FORMATS.contains(&format) {
        true => Ok(Some(format)),
        false => Err(ImportError::OtherFormat { path: path.path().to_owned(), found: format.name() }),
    }
}
