//! Series of checkpoints in a folder or from a stage.

pub mod dmtcp;

pub(crate) mod generate;

use std::path::{Path, PathBuf};

use hopmap_durable::DurableError;
use hopmap_formats::natural_key;
use hopmap_model::{CheckpointSeries, Input};
use miette::Diagnostic;

/// A checkpoint of a series.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// Its name in the folder of the series.
    pub name: String,
    /// Its files in the order of their paths; at least one.
    pub files: Vec<CheckpointFile>,
}

impl Checkpoint {
    /// Total size of all files, S(K).
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }
}

/// A file of a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct CheckpointFile {
    /// Its path in the folder of the checkpoint, which identifies it in other checkpoints. Empty if the
    /// checkpoint is a file.
    pub place: PathBuf,
    /// Its path on disk.
    pub path: PathBuf,
    /// Its length when the series was listed.
    pub bytes: u64,
}

/// Finds the checkpoints of a series: the subfolders of a folder or, if there are none, its files, in natural
/// order of their names. Names that begin with a dot and symbolic links are ignored; links and devices inside
/// checkpoints are skipped.
///
/// There are at least two.
pub fn find(series: &Path) -> Result<Vec<Checkpoint>, SeriesError> {
    let mut found = all(series)?;
    match (found.len(), found.pop()) {
        (1, Some(only)) => Err(SeriesError::One { path: series.into(), name: only.name }),
        (_, last) => Ok(found.into_iter().chain(last).collect()),
    }
}

/// As [`find`], but one checkpoint suffices.
pub fn all(series: &Path) -> Result<Vec<Checkpoint>, SeriesError> {
    let mut folders = Vec::new();
    let mut files = Vec::new();
    for entry in list(series)?.into_iter().filter(|entry| !entry.name.starts_with('.')) {
        if entry.kind.is_dir() {
            folders.push(entry);
        } else if entry.kind.is_file() {
            files.push(entry);
        }
    }
    let (mut entries, are_folders) = if folders.is_empty() { (files, false) } else { (folders, true) };
    entries.sort_by_cached_key(|entry| (natural_key(&entry.name), entry.name.clone()));
    let checkpoint = |entry: FolderEntry| {
        let files = if are_folders { below(&entry.path)? } else { vec![alone(&entry.path)?] };
        match files.is_empty() {
            true => Err(SeriesError::Empty(entry.path)),
            false => Ok(Checkpoint { name: entry.name, files }),
        }
    };
    let found: Vec<Checkpoint> = entries.into_iter().map(checkpoint).collect::<Result<_, _>>()?;
    if found.is_empty() { Err(SeriesError::None(series.into())) } else { Ok(found) }
}

/// The checkpoints of a folder or of a stage; exactly one must be given.
pub fn given(
    folder: Option<&Path>,
    connected: Option<&Input<CheckpointSeries>>,
) -> Result<Vec<Checkpoint>, SeriesError> {
    match (folder, connected) {
        (Some(folder), None) => all(folder),
        (None, Some(connected)) => of_stage(&connected.value),
        (Some(_), Some(_)) => Err(SeriesError::Both),
        (None, None) => Err(SeriesError::Neither),
    }
}

fn of_stage(series: &CheckpointSeries) -> Result<Vec<Checkpoint>, SeriesError> {
    let file = |(place, path): (&str, &Path)| -> Result<CheckpointFile, SeriesError> {
        Ok(CheckpointFile { place: place.into(), path: path.into(), bytes: length(path)? })
    };
    let checkpoint = |name: &str| -> Result<Checkpoint, SeriesError> {
        let files = series.files_of(name).map(file).collect::<Result<_, _>>()?;
        Ok(Checkpoint { name: name.to_owned(), files })
    };
    series.checkpoints().into_iter().map(checkpoint).collect()
}

/// An entry of a folder.
struct FolderEntry {
    name: String,
    path: PathBuf,
    kind: std::fs::FileType,
}

fn list(folder: &Path) -> Result<Vec<FolderEntry>, DurableError> {
    let read = |error| DurableError::io("read", folder)(error);
    let entries = std::fs::read_dir(folder).map_err(read)?;
    let listed = |entry: std::io::Result<std::fs::DirEntry>| {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        Ok(FolderEntry { name, path: entry.path(), kind: entry.file_type()? })
    };
    entries.map(listed).collect::<std::io::Result<_>>().map_err(read)
}

fn alone(path: &Path) -> Result<CheckpointFile, DurableError> {
    Ok(CheckpointFile { place: PathBuf::new(), path: path.into(), bytes: length(path)? })
}

/// All files below a folder.
pub(crate) fn below(folder: &Path) -> Result<Vec<CheckpointFile>, DurableError> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(next) = open.pop() {
        for entry in list(&next)? {
            if entry.kind.is_dir() {
                open.push(entry.path);
            } else if entry.kind.is_file() {
                let place = entry.path.strip_prefix(folder).unwrap_or(&entry.path).to_owned();
                found.push(CheckpointFile { place, bytes: length(&entry.path)?, path: entry.path });
            }
        }
    }
    found.sort();
    Ok(found)
}

fn length(path: &Path) -> Result<u64, DurableError> {
    std::fs::symlink_metadata(path).map(|metadata| metadata.len()).map_err(DurableError::io("read", path))
}

/// Why a folder is not a series.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum SeriesError {
    /// An I/O error.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Durable(#[from] DurableError),
    /// No checkpoints.
    #[error("no checkpoints found in {}", .0.display())]
    #[diagnostic(
        code(checkpoint::none),
        help(
            "a series is a folder in which every checkpoint is a subfolder, or a file; names that begin with a dot are ignored"
        )
    )]
    None(PathBuf),
    /// Only one checkpoint.
    #[error("only one checkpoint found in {}: {name}", path.display())]
    #[diagnostic(
        code(checkpoint::one),
        help("a series needs at least two checkpoints: give the folder that contains them all")
    )]
    One {
        /// The folder.
        path: PathBuf,
        /// Its only checkpoint.
        name: String,
    },
    /// No series given.
    #[error("no series of checkpoints is given")]
    #[diagnostic(
        code(checkpoint::neither),
        help("set `path` to its folder, or connect `checkpoints` to a stage")
    )]
    Neither,
    /// Two series given.
    #[error("two series are given: `path`, and the input `checkpoints`")]
    #[diagnostic(code(checkpoint::both), help("remove one of them"))]
    Both,
    /// A checkpoint without files.
    #[error("the checkpoint {} has no files", .0.display())]
    #[diagnostic(
        code(checkpoint::empty),
        help(
            "the program was killed while it wrote it, or it is not a checkpoint: remove it from the series"
        )
    )]
    Empty(PathBuf),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(series: &Path) -> Vec<String> {
        find(series).unwrap().into_iter().map(|checkpoint| checkpoint.name).collect()
    }

    #[test]
    fn folders_are_checkpoints_in_natural_order() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["10", "9", "2", ".tmp"] {
            std::fs::create_dir_all(folder.path().join(name).join("side")).unwrap();
            std::fs::write(folder.path().join(name).join("image"), name).unwrap();
            std::fs::write(folder.path().join(name).join("side/file"), "").unwrap();
        }
        std::fs::write(folder.path().join("README"), "what this is").unwrap();
        std::os::unix::fs::symlink("10", folder.path().join("latest")).unwrap();
        std::os::unix::fs::symlink("image", folder.path().join("2/link")).unwrap();
        assert_eq!(names(folder.path()), ["2", "9", "10"]);
        let places: Vec<PathBuf> =
            find(folder.path()).unwrap()[0].files.iter().map(|f| f.place.clone()).collect();
        assert_eq!(places, [PathBuf::from("image"), PathBuf::from("side/file")]);
    }

    #[test]
    fn files_are_checkpoints_if_there_are_no_folders() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["restart.100", "restart.20", ".done"] {
            std::fs::write(folder.path().join(name), name).unwrap();
        }
        assert_eq!(names(folder.path()), ["restart.20", "restart.100"]);
        assert_eq!(find(folder.path()).unwrap()[0].files[0].place, PathBuf::new());
    }

    #[test]
    fn too_few_checkpoints_are_reported() {
        let folder = tempfile::tempdir().unwrap();
        assert!(matches!(find(folder.path()), Err(SeriesError::None(..))));
        std::fs::write(folder.path().join("1"), "").unwrap();
        assert!(matches!(find(folder.path()), Err(SeriesError::One { .. })));
        std::fs::create_dir(folder.path().join("2")).unwrap();
        assert!(matches!(find(folder.path()), Err(SeriesError::Empty(..))));
        assert!(matches!(find(&folder.path().join("1")), Err(SeriesError::Durable(_))));
    }
}
