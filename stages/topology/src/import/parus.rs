//! To be written.

use super::reader::{Reader, one_file};
use super::{Format, ImportError};

pub(super) static READER: Reader = Reader {
    format: Format::Parus,
    recognises: |_| false,
    files: one_file,
    read: |path, _| Err(ImportError::Unknown { path: path.to_owned() }),
};
