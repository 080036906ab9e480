//! Creation of the files of a replay.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Creates a file, fills it and flushes it to disk.
pub(super) fn create(
    path: &Path,
    contents: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> io::Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    contents(&mut file)?;
    file.flush()
}
