//! OTF2 archives.
//!
//! An archive is an anchor file `X.otf2`, the definitions `X.def`, and a folder `X` with the events `N.evt` and the
//! definitions `N.def` of every location `N`. Format: the OTF2 manual and the sources of libotf2 3.0.

use std::path::Path;

use hopmap_model::InputPath;

use crate::Otf2Error;

mod archive_files;

#[cfg(feature = "libotf2")]
mod anchor;
#[cfg(feature = "libotf2")]
mod assemble;
#[cfg(feature = "libotf2")]
mod clock;
#[cfg(feature = "libotf2")]
mod collectives;
#[cfg(feature = "libotf2")]
mod communicators;
#[cfg(feature = "libotf2")]
mod definitions;
#[cfg(feature = "libotf2")]
mod expansion;
#[cfg(feature = "libotf2")]
mod kept;
#[cfg(feature = "libotf2")]
mod layouts;
#[cfg(feature = "libotf2")]
mod library;
#[cfg(feature = "libotf2")]
mod list;
#[cfg(feature = "libotf2")]
mod listing;
#[cfg(feature = "libotf2")]
mod local_definitions;
#[cfg(feature = "libotf2")]
mod moments;
#[cfg(feature = "libotf2")]
mod native;
#[cfg(feature = "libotf2")]
mod open_regions;
#[cfg(feature = "libotf2")]
mod processes;
#[cfg(feature = "libotf2")]
mod program;
#[cfg(feature = "libotf2")]
mod program_dag;
#[cfg(feature = "libotf2")]
mod read;
#[cfg(feature = "libotf2")]
mod record;
#[cfg(feature = "libotf2")]
mod region_kinds;
#[cfg(feature = "libotf2")]
mod structure;
#[cfg(feature = "libotf2")]
mod tally;
#[cfg(feature = "libotf2")]
mod visitor;

#[cfg(feature = "libotf2")]
pub(crate) use anchor::set_identifier;
#[cfg(feature = "libotf2")]
pub(crate) use library::{ArchiveWriter, DefinitionWriter, EventWriter, Transfer};
#[cfg(feature = "libotf2")]
pub(crate) use list::list;
#[cfg(feature = "libotf2")]
pub(crate) use program_dag::program_dag;
#[cfg(feature = "libotf2")]
pub(crate) use read::{Options, read};

/// Every file of an archive that matters, named independent of what the archive is called.
pub(crate) fn files(path: &Path) -> Result<Vec<InputPath>, Otf2Error> {
    archive_files::ArchiveFiles::find(path)?.list()
}
