//! The mark of a project that was imported from an archive: somebody else chose the commands of its pipeline.
//!
//! It is beside the store and not in it: people remove stores to compute everything again.

use std::path::{Path, PathBuf};

use hopmap_durable::{DurableError, replace_file};

const NAME: &str = ".hopmap-imported";
const ASK: &str = "ask before commands run\n";
const ALLOWED: &str = "commands may run\n";

/// Marks a folder as imported.
pub(super) fn mark(folder: &Path) -> Result<(), DurableError> {
    replace_file(&folder.join(NAME), ASK.as_bytes())
}

/// An imported project whose commands have not been allowed yet.
#[derive(Debug)]
pub struct ImportedProject {
    mark: PathBuf,
}

impl ImportedProject {
    /// The project of a folder, if it is one.
    #[must_use]
    pub fn of(folder: &Path) -> Option<Self> {
        let folder = folder.canonicalize().ok()?;
        let mark = folder
            .ancestors()
            .map(|folder| folder.join(NAME))
            .find(|mark| mark.symlink_metadata().is_ok())?;
        let is_allowed = hopmap_model::open_input(&mark)
            .and_then(std::io::read_to_string)
            .is_ok_and(|text| text == ALLOWED);
        (!is_allowed).then_some(Self { mark })
    }

    /// Allows its commands from now on.
    pub fn allow(&self) -> Result<(), DurableError> {
        replace_file(&self.mark, ALLOWED.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marked_folder_asks_until_it_is_allowed_and_so_do_folders_in_it() {
        let folder = tempfile::tempdir().unwrap();
        let inside = folder.path().join("a/b");
        std::fs::create_dir_all(&inside).unwrap();
        assert!(ImportedProject::of(&inside).is_none());
        mark(folder.path()).unwrap();
        assert!(ImportedProject::of(folder.path()).is_some());
        ImportedProject::of(&inside).unwrap().allow().unwrap();
        assert!(ImportedProject::of(&inside).is_none());
    }
}
