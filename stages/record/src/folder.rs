//! The folder of a recording.

use std::path::{Path, PathBuf};
use std::{fs, io};

use hopmap_mpi_environment::Rank;
use hopmap_recording::{DESCRIPTION, Method, is_of_recording, profile_name, profile_prefix, rank_file_name};

use crate::error::RecordError;

/// Makes a new folder; its absolute path.
pub(crate) fn make_folder(path: &Path, method: Method) -> Result<PathBuf, RecordError> {
    match make(path)? {
        true => prepared(path, method),
        false => Err(RecordError::Exists { path: path.to_owned() }),
    }
}

/// Makes the folder, or takes the one that another rank of this program has made: it has no file of this rank, and
/// none that the recorder does not write. Its absolute path.
pub(crate) fn claim_folder(path: &Path, method: Method, rank: Option<Rank>) -> Result<PathBuf, RecordError> {
    if !make(path)? {
        let exists = || RecordError::Exists { path: path.to_owned() };
        if !path.is_dir() {
            return Err(exists());
        }
        let entries = fs::read_dir(path).map_err(RecordError::io("read", path))?.flatten();
        let mut names: Vec<String> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort_unstable();
        if let Some(file) = names.into_iter().find(|name| !is_of_recording(name)) {
            return Err(RecordError::NotEmpty { path: path.to_owned(), file });
        }
        let number = rank.map_or(0, |rank| rank.rank);
        let mut own = vec![rank_file_name(number), profile_name(number)];
        // Written by rank 0 alone.
        own.extend((number == 0).then(|| DESCRIPTION.to_owned()));
        if own.iter().any(|name| path.join(name).exists()) {
            return Err(exists());
        }
    }
    prepared(path, method)
}

/// Whether the folder is new.
fn make(path: &Path) -> Result<bool, RecordError> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(RecordError::io("create", parent))?;
    }
    match fs::create_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        made => made.map(|()| true).map_err(RecordError::io("create", path)),
    }
}

fn prepared(path: &Path, method: Method) -> Result<PathBuf, RecordError> {
    let prefix = profile_prefix(path);
    if let (Method::Openmpi, Some(monitoring)) = (method, prefix.parent()) {
        fs::create_dir_all(monitoring).map_err(RecordError::io("create", monitoring))?;
    }
    fs::canonicalize(path).map_err(RecordError::io("read", path))
}

/// Removes a folder in which nothing was recorded, so that its name is free again. Files that somebody has put there
/// stay.
pub(crate) fn discard_folder(folder: &Path) {
    if let Some(monitoring) = profile_prefix(folder).parent() {
        let _ = fs::remove_dir(monitoring);
    }
    let _ = fs::remove_dir(folder);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_share_a_folder_and_programs_do_not() {
        let folder = tempfile::tempdir().unwrap();
        let to = folder.path().join("a/to");
        let claim = |rank| claim_folder(&to, Method::Preload, Some(Rank { rank, size: Some(2) }));
        let refused = |rank| claim(rank).unwrap_err().to_string();
        assert_eq!(claim(1).unwrap(), to.canonicalize().unwrap());
        claim(0).unwrap();
        fs::write(to.join(DESCRIPTION), "").unwrap();
        fs::write(to.join("rank-1.bin.part"), "").unwrap();
        claim(1).unwrap();
        assert!(refused(0).ends_with("to exists already"));
        fs::write(to.join(rank_file_name(1)), "").unwrap();
        assert!(refused(1).ends_with("to exists already"));
        claim(2).unwrap();
        fs::write(to.join("notes.txt"), "").unwrap();
        assert!(refused(2).ends_with("to has `notes.txt`, which is not of a recording"), "{}", refused(2));
        assert!(make_folder(&to, Method::Preload).is_err());
    }

    #[test]
    fn only_an_empty_folder_is_discarded() {
        let folder = tempfile::tempdir().unwrap();
        let to = make_folder(&folder.path().join("to"), Method::Openmpi).unwrap();
        fs::write(to.join("notes.txt"), "").unwrap();
        discard_folder(&to);
        assert_eq!(fs::read_dir(&to).unwrap().count(), 1);
        fs::remove_file(to.join("notes.txt")).unwrap();
        discard_folder(&to);
        assert!(!to.exists());
    }
}
