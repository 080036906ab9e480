//! What is in the place of a copy for people, and whether a copy may replace it: only what an earlier `save` of the same pipeline
//! wrote. Everything else is somebody's.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use hopmap_artifact::{DESCRIPTION, Folder, PROVENANCE};
use hopmap_durable::is_leftover;
use miette::Diagnostic;
use rustix::fs::{XattrFlags, getxattr, setxattr};
use rustix::io::Errno;

use super::identity::PipelineId;
use super::record::OutputRecord;
use super::store::Store;

/// Of the names in the way, so many are told.
const MOST_NAMED: usize = 3;

/// The extended attribute by which a copy is known, whatever has become of the store that it was made from.
const MARK: &str = "user.hopmap.saved";

/// Whether something may be written in a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// There is nothing.
    Free,
    /// The copy is there.
    Same,
    /// What is there is an older copy, or a damaged one.
    Ours,
    /// The file may be the copy: that can be told when its stage has run.
    Unclear,
}

/// What stands in the way of a copy.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum InTheWay {
    /// A folder where a file should be.
    #[error("{} is a folder, and `save` would put a file there", path.display())]
    #[diagnostic(help("give the file a name of its own, or remove the folder"))]
    Folder {
        /// The place.
        path: PathBuf,
    },
    /// A symbolic link.
    #[error("{} is a symbolic link, and `save` would put something in its place", path.display())]
    #[diagnostic(help("name what it leads to, or remove it"))]
    Link {
        /// The place.
        path: PathBuf,
    },
    /// A file of somebody else.
    #[error("{} was not written by a `save` of this pipeline", path.display())]
    #[diagnostic(help(
        "move it away if it is yours, or give the copy another path; a copy that was edited counts as yours"
    ))]
    Foreign {
        /// The place.
        path: PathBuf,
    },
    /// A folder that is no artifact.
    #[error("{} holds something else, and `save` would put an artifact there", path.display())]
    #[diagnostic(help("a copy replaces only an earlier one; give it a folder of its own"))]
    Something {
        /// The place.
        path: PathBuf,
    },
    /// A folder with an artifact and more.
    #[error("{} also holds {names}, which `save` would remove", path.display())]
    #[diagnostic(help("move that away, or give the artifact a folder of its own"))]
    More {
        /// The place.
        path: PathBuf,
        /// What is in it.
        names: String,
    },
    /// An artifact that nobody knows and that was changed.
    #[error("{} has other bytes than its {DESCRIPTION} says, and no `save` of this pipeline wrote it", path.display())]
    #[diagnostic(help("remove the folder if nobody needs it, or give the artifact another one"))]
    Changed {
        /// The file.
        path: PathBuf,
    },
}

/// Looks at the place of a file whose bytes should have this BLAKE3, if that is known already.
pub(super) fn look_at_file(
    path: &Path,
    wanted: Option<&str>,
    pipeline: &PipelineId,
    store: &mut Store,
) -> Result<Standing, InTheWay> {
    let Ok(metadata) = fs::symlink_metadata(path) else { return Ok(Standing::Free) };
    let foreign = || InTheWay::Foreign { path: path.into() };
    match metadata.file_type() {
        kind if kind.is_symlink() => return Err(InTheWay::Link { path: path.into() }),
        kind if kind.is_dir() => return Err(InTheWay::Folder { path: path.into() }),
        kind if !kind.is_file() => return Err(foreign()),
        _ => {}
    }
    let found = store.hashes.blake3_of(path).map_err(|_| foreign())?;
    if wanted == Some(&found) {
        return Ok(Standing::Same);
    }
    match is_marked(path, path, (pipeline, store.root()), &found) {
        _ if store.has_saved(pipeline, path, &found) => Ok(Standing::Ours),
        Some(true) => Ok(Standing::Ours),
        // What an earlier copy has become is known; of a place that the store does not know it is not.
        None if wanted.is_none() && !store.knows_place(pipeline, path) => Ok(Standing::Unclear),
        _ => Err(foreign()),
    }
}

/// Looks at the place of an artifact, if it is known already which one.
pub(super) fn look_at_folder(
    path: &Path,
    wanted: Option<&OutputRecord>,
    pipeline: &PipelineId,
    store: &mut Store,
) -> Result<Standing, InTheWay> {
    let Ok(metadata) = fs::symlink_metadata(path) else { return Ok(Standing::Free) };
    match metadata.file_type() {
        kind if kind.is_symlink() => return Err(InTheWay::Link { path: path.into() }),
        kind if !kind.is_dir() => return Err(InTheWay::Something { path: path.into() }),
        _ => {}
    }
    if path.read_dir().is_ok_and(|mut entries| entries.next().is_none()) {
        return Ok(Standing::Free);
    }
    let Ok(folder) = Folder::open(path) else { return Err(InTheWay::Something { path: path.into() }) };
    only_an_artifact(&folder)?;
    let mut is_whole =
        |(path, blake3): &(PathBuf, &str)| store.hashes.blake3_of(path).is_ok_and(|found| found == *blake3);
    let changed = folder.hashes().find(|file| !is_whole(file)).map(|(path, _)| path);
    if changed.is_none() && wanted.is_some_and(|wanted| wanted.digest == folder.digest()) {
        return Ok(Standing::Same);
    }
    let description = path.join(DESCRIPTION);
    match (is_marked(&description, path, (pipeline, store.root()), folder.digest()), changed) {
        _ if store.has_saved(pipeline, path, folder.digest()) => Ok(Standing::Ours),
        (Some(true), _) => Ok(Standing::Ours),
        (_, Some(path)) => Err(InTheWay::Changed { path }),
        (None, None) if wanted.is_none() && !store.knows_place(pipeline, path) => Ok(Standing::Unclear),
        _ => Err(InTheWay::Foreign { path: path.into() }),
    }
}

/// Refuses a folder in which there is more than an artifact.
pub(crate) fn only_an_artifact(folder: &Folder) -> Result<(), InTheWay> {
    let own = [DESCRIPTION, PROVENANCE].map(|name| folder.path().join(name));
    let own: HashSet<PathBuf> = folder.hashes().map(|(path, _)| path).chain(own).collect();
    let mut others = Vec::new();
    collect(folder.path(), &own, &mut others);
    if others.is_empty() {
        return Ok(());
    }
    others.sort();
    let name = |path: &PathBuf| path.strip_prefix(folder.path()).unwrap_or(path).display().to_string();
    let mut names: Vec<String> = others.iter().take(MOST_NAMED).map(name).collect();
    if others.len() > MOST_NAMED {
        names.push(format!("{} more", others.len() - MOST_NAMED));
    }
    Err(InTheWay::More { path: folder.path().into(), names: names.join(", ") })
}

/// Everything below a folder but what is known and what a process left that was killed. A folder of nothing known is one thing.
fn collect(folder: &Path, own: &HashSet<PathBuf>, others: &mut Vec<PathBuf>) {
    for entry in folder.read_dir().into_iter().flatten().flatten() {
        let path = entry.path();
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        let leads_to_own = || own.iter().any(|own| own.starts_with(&path));
        match is_folder {
            true if leads_to_own() => collect(&path, own, others),
            false if own.contains(&path) && entry.file_type().is_ok_and(|kind| kind.is_file()) => {}
            _ if is_leftover(&entry.file_name().to_string_lossy()) => {}
            _ => others.push(path),
        }
    }
}

/// Marks a file as the copy in a place, or as the description of the artifact there. Where the file system takes no marks, the store
/// alone knows it.
pub(super) fn mark(file: &Path, place: &Path, pipeline: (&PipelineId, &Path), blake3: &str) {
    let _ = setxattr(file, MARK, value(place, pipeline, blake3).as_bytes(), XattrFlags::empty());
}

/// Whether a file has the mark of a copy and still its bytes; none if the file system takes no marks.
fn is_marked(
    file: &Path,
    place: &Path,
    (pipeline, root): (&PipelineId, &Path),
    blake3: &str,
) -> Option<bool> {
    let mut found = [0; 64];
    match getxattr(file, MARK, &mut found[..]) {
        Ok(length) => {
            let is_of = |id: &PipelineId| found[..length] == *value(place, (id, root), blake3).as_bytes();
            Some(pipeline.and_embedded().iter().any(is_of))
        }
        Err(Errno::NODATA | Errno::RANGE) => Some(false),
        Err(_) => None,
    }
}

/// Of these bytes and this pipeline, so that neither an edited copy counts as ours nor that of another pipeline.
fn value(place: &Path, (pipeline, root): (&PipelineId, &Path), blake3: &str) -> String {
    let pipeline = pipeline.beside_copy(place, root);
    blake3::hash(format!("{blake3}\n{pipeline}").as_bytes()).to_hex().to_string()
}
