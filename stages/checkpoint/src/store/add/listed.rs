//! Entries of files of which nothing but name and contents is kept.

use std::collections::BTreeSet;
use std::path::PathBuf;

use hopmap_durable::DurableError;

use crate::CheckpointError;
use crate::cut::PageMap;
use crate::tree::{Entry, EntryKind, Time};

/// A folder as it is made by default.
pub(super) fn folder(path: PathBuf, modified: Time) -> Entry {
    Entry { path, kind: EntryKind::Folder, mode: 0o755, owner: 0, group: 0, modified }
}

/// A file as it is made by default.
pub(super) fn file(path: PathBuf, kind: EntryKind, modified: Time) -> Entry {
    Entry { path, kind, mode: 0o644, owner: 0, group: 0, modified }
}

/// Entry number, where the file is, and no map of its pages.
type Listed = (u32, PathBuf, Option<PageMap>);

/// The entries of files, with the folders above them, and where each file is.
pub(super) fn entries(files: Vec<(PathBuf, PathBuf)>) -> Result<(Vec<Entry>, Vec<Listed>), CheckpointError> {
    let above = |(place, _): &(PathBuf, PathBuf)| -> Vec<PathBuf> {
        place.ancestors().skip(1).map(PathBuf::from).collect()
    };
    let mut folders: BTreeSet<PathBuf> = files.iter().flat_map(above).collect();
    folders.insert(PathBuf::new());
    let mut entries: Vec<Entry> = folders.into_iter().map(|path| folder(path, Time::default())).collect();
    let mut listed = Vec::new();
    for (place, path) in files {
        let length = std::fs::metadata(&path).map_err(DurableError::io("read", &path))?.len();
        listed.push((entries.len() as u32, path, None));
        entries.push(file(place, EntryKind::File { length, holes: Vec::new() }, Time::default()));
    }
    Ok((entries, listed))
}
