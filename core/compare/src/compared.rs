//! One of two artifacts that are compared, and where what it was made from is found.

use std::path::PathBuf;

use hopmap_artifact::Folder;

/// One of two artifacts.
pub struct Compared<'a> {
    /// The artifact.
    pub folder: &'a Folder,
    /// Finds the first artifact of a kind that it was made from, if that is still there.
    pub input: &'a dyn Fn(&str) -> Option<PathBuf>,
}
