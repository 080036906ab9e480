//! Artifacts that are files in foreign formats and remain unchanged: traces, series of checkpoints,
//! checkpoint stores, and texts.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::stage::Artifact;

/// Files by their names within an artifact, with `/` between folders. They may be large, so they remain on
/// disk.
#[derive(Debug, Clone, Default)]
pub struct FileSet {
    files: BTreeMap<String, PathBuf>,
    /// Held for its destructor.
    keeper: Option<Arc<dyn Keeper>>,
}

/// A guard that keeps files on disk while it exists, such as a temporary folder.
pub trait Keeper: Any + Send + Sync + std::fmt::Debug {}

impl<T: Any + Send + Sync + std::fmt::Debug> Keeper for T {}

impl FileSet {
    /// External files by their names.
    #[must_use]
    pub fn new(files: BTreeMap<String, PathBuf>) -> Self {
        Self { files, keeper: None }
    }

    /// Ties the lifetime of a guard to the files.
    #[must_use]
    pub fn kept_by(self, keeper: impl Keeper) -> Self {
        Self { keeper: Some(Arc::new(keeper)), ..self }
    }

    /// The paths of the files by name.
    #[must_use]
    pub fn files(&self) -> &BTreeMap<String, PathBuf> {
        &self.files
    }

    /// Whether the artifact owns the files, so that nothing else changes them.
    #[must_use]
    pub fn is_kept(&self) -> bool {
        self.keeper.is_some()
    }
}

/// Methods of all artifacts that have a set of files.
macro_rules! has_files {
    ($artifact:ident) => {
        impl $artifact {
            /// Ties the lifetime of a guard to the artifact.
            #[must_use]
            pub fn kept_by(mut self, keeper: impl Keeper) -> Self {
                self.files = self.files.kept_by(keeper);
                self
            }

            /// The files and their ownership.
            #[must_use]
            pub fn file_set(&self) -> &FileSet {
                &self.files
            }

            /// The paths of the files by their names within the artifact.
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
    /// An archive of external files by their names within it.
    #[must_use]
    pub fn new(files: BTreeMap<String, PathBuf>) -> Self {
        Self { files: FileSet::new(files) }
    }

    /// The path of a file.
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
/// Files are named `CHECKPOINT/PATH`. Checkpoints are ordered by name; all names have the same number of
/// digits.
#[derive(Debug, Clone, Default)]
pub struct CheckpointSeries {
    files: FileSet,
}

has_files!(CheckpointSeries);

impl CheckpointSeries {
    /// A series of external files by their names within it.
    #[must_use]
    pub fn new(files: BTreeMap<String, PathBuf>) -> Self {
        Self { files: FileSet::new(files) }
    }

    /// The names of the checkpoints, in order.
    #[must_use]
    pub fn checkpoints(&self) -> BTreeSet<&str> {
        let names = self.files().keys().filter_map(|name| name.split_once('/'));
        names.map(|(checkpoint, _)| checkpoint).collect()
    }

    /// The files of a checkpoint: names within it and paths.
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

/// A store of the checkpoints of a series: its files and statistics per checkpoint.
#[derive(Debug, Clone, Default)]
pub struct CheckpointStore {
    /// The checkpoints by number, from 1.
    pub checkpoints: Vec<StoredCheckpoint>,
    files: FileSet,
}

/// Storage statistics of a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StoredCheckpoint {
    /// Its number, from 1.
    pub checkpoint: u32,
    /// Its name in the series.
    pub name: String,
    /// Number of files.
    pub files: u32,
    /// Bytes of all files.
    pub bytes: u64,
    /// Bytes that are zero.
    pub zero_bytes: u64,
    /// Bytes equal to those at the same position in the previous checkpoint.
    pub unchanged_bytes: u64,
    /// Bytes that duplicate data stored elsewhere.
    pub known_bytes: u64,
    /// New bytes.
    pub new_bytes: u64,
    /// Bytes on disk, including the index data.
    pub stored_bytes: u64,
}

has_files!(CheckpointStore);

impl CheckpointStore {
    /// A store of external files by their names within it.
    #[must_use]
    pub fn new(checkpoints: Vec<StoredCheckpoint>, files: BTreeMap<String, PathBuf>) -> Self {
        Self { checkpoints, files: FileSet::new(files) }
    }
}

impl Artifact for CheckpointStore {
    const KIND: &'static str = "checkpoint-store";
}

/// A text file in a foreign format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextFile {
    /// File name, such as `matrix.csv`.
    pub name: String,
    /// The content.
    pub text: String,
}

impl Artifact for TextFile {
    const KIND: &'static str = "text-file";
}

/// A launch file, which starts the ranks as a mapping specifies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaunchFile {
    /// File name, such as `rankfile`.
    pub name: String,
    /// The content.
    pub text: String,
    /// The command that uses it, with the placeholders `{file}` for the path of the file and `{program}` for
    /// the program and its arguments.
    pub command: String,
}

impl Artifact for LaunchFile {
    const KIND: &'static str = "launch-file";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_part_of_a_name_is_the_checkpoint() {
        let names = ["02/a", "01/b/c", "01/a", "10/a"];
        let files = names.map(|name| (name.to_owned(), Path::new("/somewhere").join(name)));
        let series = CheckpointSeries::new(files.into());
        assert_eq!(series.checkpoints().into_iter().collect::<Vec<_>>(), ["01", "02", "10"]);
        let first: Vec<_> = series.files_of("01").collect();
        assert_eq!(first, [("a", Path::new("/somewhere/01/a")), ("b/c", Path::new("/somewhere/01/b/c"))]);
        assert_eq!(series.files_of("03").count(), 0);
    }
}
