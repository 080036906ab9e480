//! OTF2 archives.
//!
//! An archive is an anchor file `X.otf2`, the definitions `X.def`, and a folder `X` with the events `N.evt` and the
//! definitions `N.def` of every location `N`. Format: the OTF2 manual and the sources of libotf2 3.0.

use std::path::Path;

use hopmap_model::InputPath;

use crate::Otf2Error;

mod anchor;
mod archive_files;
mod assemble;
mod clock;
mod collectives;
mod communicators;
mod constants;
mod definitions;
mod expansion;
mod global_definitions;
mod kept;
mod layouts;
#[cfg(feature = "libotf2")]
mod library;
mod list;
mod listing;
mod local_definitions;
mod moments;
mod native;
mod open_regions;
mod processes;
mod program;
mod program_dag;
mod read;
mod record;
mod region_kinds;
mod structure;
mod tally;
#[cfg_attr(not(feature = "libotf2"), path = "otf2/no_library.rs")]
mod through_library;
mod visitor;
mod writer;

pub(crate) use list::list;
pub(crate) use program_dag::program_dag;
pub(crate) use read::{Options, read};
pub(crate) use writer::{ArchiveWriter, DefinitionWriter, EventWriter, Transfer};

/// Every file of an archive that matters, named independent of what the archive is called.
pub(crate) fn files(path: &Path) -> Result<Vec<InputPath>, Otf2Error> {
    archive_files::ArchiveFiles::find(path)?.list()
}
