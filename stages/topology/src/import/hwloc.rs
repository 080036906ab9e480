//! To be written.

use super::reader::{Reader, one_file};
use super::{Format, ImportError};

pub(super) static READER: Reader = Reader {
    format: Format::Hwloc,
    recognises: |_| false,
    files: one_file,
    read: |path, _| Err(ImportError::Unknown { path: path.to_owned() }),
};

/// Every file of a folder that says what the hosts of a fabric are like inside.
pub(super) fn files_of_hosts(folder: &std::path::Path) -> Result<Vec<hopmap_model::InputPath>, ImportError> {
    Err(ImportError::Unknown { path: folder.to_owned() })
}

/// What the hosts of a fabric are like inside, by their names.
pub(super) fn hosts(
    folder: &std::path::Path,
) -> Result<std::collections::BTreeMap<String, super::finish::HostShape>, ImportError> {
    Err(ImportError::Unknown { path: folder.to_owned() })
}

/// This machine.
pub(super) fn this_machine(_: &super::ImportParams) -> Result<super::Imported, ImportError> {
    Err(ImportError::Unknown { path: "/".into() })
}
