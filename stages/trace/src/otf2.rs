//! OTF2 archives.
//!
//! An archive is an anchor file `X.otf2`, the definitions `X.def`, and a folder `X` with the events `N.evt` and the
//! definitions `N.def` of every location `N`. Format: the OTF2 manual and the sources of libotf2 3.0.

use std::path::Path;

use hopmap_model::InputPath;

use crate::error::TraceError;

mod accumulator;
mod archive_files;
mod archive_reader;
mod cancelled;
mod collectives;
mod communicators;
mod definitions;
#[cfg(feature = "libotf2")]
mod library;
mod list;
mod local_definitions;
mod moments;
mod native;
mod processes;
mod program_dag;
mod read;
mod record;
mod record_schema;
mod structure;
mod visitor;
#[expect(clippy::cast_possible_truncation, reason = "lengths of records that are written here")]
mod writer;

pub(crate) use list::list;
pub(crate) use program_dag::{program, program_dag};
pub(crate) use read::{Options, read};
pub(crate) use structure::{ENTER, LEAVE, MPI_RECV, MPI_SEND};
pub(crate) use writer::{ArchiveWriter, DefinitionWriter, EventWriter, Transfer};

/// Whether a folder has archives in it or below it, whatever is wrong with them.
pub(crate) fn is_archive(folder: &Path) -> bool {
    archive_files::anchors(folder).is_ok_and(|anchors| !anchors.is_empty())
}

/// All files of an archive that are read, under names that do not depend on the name of the archive.
pub(crate) fn files(path: &Path) -> Result<Vec<InputPath>, TraceError> {
    archive_files::ArchiveFiles::find(path)?.list()
}
