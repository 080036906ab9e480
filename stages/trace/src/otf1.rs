//! OTF 1 archives, as VampirTrace and Open MPI's `vt` wrappers write them.
//!
//! An archive is a master file `X.otf`, the definitions `X.0.def` and the events `X.N.events` of every stream `N`,
//! all of them lines of text, perhaps compressed. Format: the sources of libotf (Open Trace Format) 1.12.5; what
//! VampirTrace makes of it: the sources of VampirTrace 5.14.

use std::path::Path;

use hopmap_model::InputPath;

use crate::OtfError;

mod archive_files;
mod definitions;
mod fields;
mod inflate;
mod processes;
mod read;
mod stream;

pub(crate) use read::read;

/// Every file of an archive that matters, named independent of what the archive is called.
pub(crate) fn files(path: &Path) -> Result<Vec<InputPath>, OtfError> {
    archive_files::ArchiveFiles::find(path)?.list()
}
