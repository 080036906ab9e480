//! Artifacts that are files of other programs, which stay as they are: traces, series of checkpoints, stores of checkpoints, and texts.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::Artifact;

/// Files by their names within an artifact, with `/` between folders. They may be large, so they stay on disk.
#[derive(Debug, Clone, Default)]
pub struct FileSet {
    files: BTreeMap<String, PathBuf>,
    /// Held for what it does when it goes.
    keeper: Option<Arc<dyn Keeper>>,
}

/// Something that keeps files on disk while it lives, such as a temporary folder.
pub trait Keeper: Any + Send + Sync + std::fmt::Debug {}

impl<T: Any + Send + Sync + std::fmt::Debug> Keeper for T {}

impl FileSet {
    /// Where the files are, by their names.
    #[must_use]
    pub fn files(&self) -> &BTreeMap<String, PathBuf> {
        &self.files
    }

    /// Whether the files were made for this artifact, so that nobody else changes them.
    #[must_use]
    pub fn is_kept(&self) -> bool {
        self.keeper.is_some()
    }
}

/// What all artifacts that have a set of files can do.
macro_rules! has_files {
    ($artifact:ident) => {
        impl $artifact {
            /// Lets something live as long as the artifact does.
            #[must_use]
            pub fn kept_by(mut self, keeper: impl Keeper) -> Self {
                self.files.keeper = Some(Arc::new(keeper));
                self
            }

            /// The files, and whether they were made for this artifact.
            #[must_use]
            pub fn file_set(&self) -> &FileSet {
                &self.files
            }

            /// Where the files are, by their names within the artifact.
            #[must_use]
            pub fn files(&self) -> &BTreeMap<String, PathBuf> {
                self.files.files()
            }
        }
    };
}

/// The files of a trace.
#[derive(Debug, Clone, Default)]
pub struct TraceArchive {
    files: FileSet,
}

has_files!(TraceArchive);

impl TraceArchive {
    /// An archive of files, by their names within it, that others keep.
    #[must_use]
    pub fn new(files: BTreeMap<String, PathBuf>) -> Self {
        Self { files: FileSet { files, keeper: None } }
    }

    /// Where a file is.
    #[must_use]
    pub fn file(&self, name: &str) -> Option<&Path> {
        self.files().get(name).map(PathBuf::as_path)
    }
}

impl Artifact for TraceArchive {
    const KIND: &'static str = "trace";
}

/// The files of a series of checkpoints of one program.
///
/// A file is named `CHECKPOINT/PATH`. The checkpoints are in the order of their names, which have the same number of digits.
#[derive(Debug, Clone, Default)]
pub struct CheckpointSeries {
    files: FileSet,
}

has_files!(CheckpointSeries);

impl CheckpointSeries {
    /// A series of files, by their names within it, that others keep.
    #[must_use]
    pub fn new(files: BTreeMap<String, PathBuf>) -> Self {
        Self { files: FileSet { files, keeper: None } }
    }

    /// The names of the checkpoints, in their order.
    #[must_use]
    pub fn checkpoints(&self) -> BTreeSet<&str> {
        let names = self.files().keys().filter_map(|name| name.split_once('/'));
        names.map(|(checkpoint, _)| checkpoint).collect()
    }

    /// The files of a checkpoint, by their names within it, and where they are.
    pub fn files_of(&self, checkpoint: &str) -> impl Iterator<Item = (&str, &Path)> {
        self.files().iter().filter_map(move |(name, path)| {
            let (of, name) = name.split_once('/')?;
            (of == checkpoint).then_some((name, path.as_path()))
        })
    }
}

impl Artifact for CheckpointSeries {
    const KIND: &'static str = "checkpoints";
}

/// A store of the checkpoints of a series: its files, and what each checkpoint took.
#[derive(Debug, Clone, Default)]
pub struct CheckpointStore {
    /// The checkpoints by their numbers, from 1.
    pub checkpoints: Vec<StoredCheckpoint>,
    files: FileSet,
}

/// What a checkpoint took.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StoredCheckpoint {
    /// Its number, from 1.
    pub checkpoint: u32,
    /// Its name in the series.
    pub name: String,
    /// How many files it has.
    pub files: u32,
    /// Bytes of all files.
    pub bytes: u64,
    /// Of these, zeros.
    pub zero_bytes: u64,
    /// Of these, as in the checkpoint before at the same places.
    pub unchanged_bytes: u64,
    /// Of these, known from elsewhere.
    pub known_bytes: u64,
    /// Of these, new.
    pub new_bytes: u64,
    /// Bytes it took on disk, with everything that is needed to find them.
    pub stored_bytes: u64,
}

has_files!(CheckpointStore);

impl CheckpointStore {
    /// A store of files, by their names within it, that others keep.
    #[must_use]
    pub fn new(checkpoints: Vec<StoredCheckpoint>, files: BTreeMap<String, PathBuf>) -> Self {
        Self { checkpoints, files: FileSet { files, keeper: None } }
    }
}

impl Artifact for CheckpointStore {
    const KIND: &'static str = "checkpoint-store";
}

/// A text file in a format of other programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextFile {
    /// File name, such as `matrix.csv`.
    pub name: String,
    /// The whole text.
    pub text: String,
}

impl Artifact for TextFile {
    const KIND: &'static str = "text-file";
}

/// A text file that starts the ranks where a mapping puts them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaunchFile {
    /// File name, such as `rankfile`.
    pub name: String,
    /// The whole text.
    pub text: String,
    /// The command that uses it. `{file}` stands for the path of the file, `{program}` for the program and its arguments.
    pub command: String,
}

impl Artifact for LaunchFile {
    const KIND: &'static str = "launch-file";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_belong_to_the_checkpoint_that_their_name_begins_with() {
        let names = ["02/a", "01/b/c", "01/a", "10/a"];
        let files = names.map(|name| (name.to_owned(), Path::new("/somewhere").join(name)));
        let series = CheckpointSeries::new(files.into());
        assert_eq!(series.checkpoints().into_iter().collect::<Vec<_>>(), ["01", "02", "10"]);
        let first: Vec<_> = series.files_of("01").collect();
        assert_eq!(first, [("a", Path::new("/somewhere/01/a")), ("b/c", Path::new("/somewhere/01/b/c"))]);
        assert_eq!(series.files_of("03").count(), 0);
    }
}
