//! A sample archive with one file replaced.

use std::fs;
use std::path::{Path, PathBuf};

/// A copy of a sample archive.
pub struct Archive {
    folder: tempfile::TempDir,
    files: Vec<(PathBuf, Vec<u8>)>,
}

impl Archive {
    /// A copy of a folder below `sample-traces`.
    pub fn of(sample: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../sample-traces").join(sample);
        let mut files = Vec::new();
        copy(&from, folder.path(), &mut files);
        files.sort();
        Self { folder, files }
    }

    /// Runs a function on the archive with one file replaced; the first byte selects the file, the rest is
    /// its contents.
    pub fn with(&self, data: &[u8], body: impl FnOnce(&Path)) {
        let Some((which, bytes)) = data.split_first() else { return };
        let (path, original) = &self.files[usize::from(*which) % self.files.len()];
        fs::write(path, bytes).unwrap();
        body(self.folder.path());
        fs::write(path, original).unwrap();
    }
}

fn copy(from: &Path, to: &Path, files: &mut Vec<(PathBuf, Vec<u8>)>) {
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            fs::create_dir(&target).unwrap();
            copy(&entry.path(), &target, files);
        } else {
            let bytes = fs::read(entry.path()).unwrap();
            fs::write(&target, &bytes).unwrap();
            files.push((target, bytes));
        }
    }
}
