//! Giving a checkpoint back.
//!
//! A folder is written beside its place and renamed when everything in it was compared with what was added: every chunk with its hash,
//! every file with its digest.

mod portion;
mod run;
mod target;

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Component, Path, PathBuf};

use hopmap_durable::{DurableError, Staging, crash_point, sync_folder, sync_tree};
use hopmap_model::Context;

use self::run::{Output, Restoring};
use self::target::{FileTarget, StreamTarget};
use super::manifest::{Manifest, Recipe};
use super::{ReadLock, Store};
use crate::CheckpointError;
use crate::tree::{self, EntryKind};

/// How a checkpoint is given back.
#[derive(Debug, Clone, Copy, Default)]
pub struct RestoreOptions {
    /// Whether to leave it to the system when the files are put on disk.
    pub unsynced: bool,
}

/// What was given back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    /// Number of the checkpoint.
    pub number: u32,
    /// How many files.
    pub files: usize,
    /// Their bytes.
    pub bytes: u64,
}

impl Store {
    /// Writes a checkpoint to a folder that is missing or empty.
    pub fn restore(
        &self,
        _lock: &ReadLock,
        number: u32,
        to: &Path,
        options: RestoreOptions,
        cx: &Context<'_>,
    ) -> Result<Restored, CheckpointError> {
        let manifest = self.manifest(number)?;
        refuse_what_is_there(to)?;
        self.refuse_other_packs(&manifest, None).map_err(|error| self.in_chain(&manifest, error))?;
        let parent = match to.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let bytes = manifest.bytes();
        let staging = Staging::beside(to)?;
        refuse_too_much(staging.path(), &manifest)?;
        tree::plant(staging.path(), &manifest.entries)?;
        let files = manifest.recipes.iter().filter_map(|(&entry, recipe)| {
            let entry = manifest.entries.get(entry as usize)?;
            let EntryKind::File { holes, .. } = &entry.kind else { return None };
            let path = staging.path().join(&entry.path);
            let target = FileTarget::open(path, holes, !options.unsynced);
            Some(target.map(|target| Output { path: &entry.path, recipe, target: Box::new(target) }))
        });
        Restoring::new(self, files, cx).run().map_err(|error| self.in_chain(&manifest, error))?;
        tree::finish(staging.path(), &manifest.entries)?;
        if !options.unsynced {
            sync_tree(staging.path())?;
        }
        crash_point("checkpoint.restore-filled", to);
        // Whatever came to that place meanwhile is not ours to remove.
        fs::rename(staging.path(), to).map_err(|error| match error.kind() {
            ErrorKind::DirectoryNotEmpty | ErrorKind::AlreadyExists | ErrorKind::NotADirectory => {
                CheckpointError::NotEmpty { path: to.to_owned() }
            }
            _ => DurableError::io("write", to)(error).into(),
        })?;
        crash_point("checkpoint.restore-renamed", to);
        sync_folder(parent)?;
        Ok(Restored { number, files: manifest.recipes.len(), bytes })
    }

    /// Writes one file of a checkpoint to a stream: the one that is named, or the only one.
    pub fn restore_file(
        &self,
        _lock: &ReadLock,
        number: u32,
        path: Option<&Path>,
        out: &mut (dyn Write + Send),
        cx: &Context<'_>,
    ) -> Result<Restored, CheckpointError> {
        let manifest = self.manifest(number)?;
        let (entry, recipe) = one_file(&manifest, path)?;
        self.refuse_other_packs(&manifest, Some(recipe)).map_err(|error| self.in_chain(&manifest, error))?;
        let target = Box::new(StreamTarget::new(out));
        let files = std::iter::once(Ok(Output { path: &entry, recipe, target }));
        Restoring::new(self, files, cx).run().map_err(|error| self.in_chain(&manifest, error))?;
        Ok(Restored { number, files: 1, bytes: recipe.bytes() })
    }
}

/// The file of this path, or the only one.
fn one_file<'a>(
    manifest: &'a Manifest,
    path: Option<&Path>,
) -> Result<(PathBuf, &'a Recipe), CheckpointError> {
    let found = match path {
        Some(path) => {
            let path: PathBuf = path.components().filter(|part| *part != Component::CurDir).collect();
            manifest.entry(&path).map(|(number, entry)| match entry.kind {
                EntryKind::HardLink(first) => first,
                _ => number,
            })
        }
        None if manifest.recipes.len() == 1 => manifest.recipes.keys().next().copied(),
        None => {
            let (number, files) = (manifest.number, manifest.recipes.len());
            return Err(CheckpointError::SeveralFiles { number, files });
        }
    };
    let entry = found
        .and_then(|number| Some((manifest.entries.get(number as usize)?, manifest.recipes.get(&number)?)));
    let (entry, recipe) = entry.ok_or_else(|| CheckpointError::NoFile {
        number: manifest.number,
        path: path.unwrap_or(Path::new("")).to_owned(),
    })?;
    Ok((entry.path.clone(), recipe))
}

fn refuse_what_is_there(to: &Path) -> Result<(), CheckpointError> {
    match fs::read_dir(to).map(|mut entries| entries.next().is_none()) {
        Ok(true) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) if error.kind() != std::io::ErrorKind::NotADirectory => {
            Err(DurableError::io("read", to)(error).into())
        }
        _ => Err(CheckpointError::NotEmpty { path: to.to_owned() }),
    }
}

/// A disk that cannot hold it is left alone.
fn refuse_too_much(folder: &Path, manifest: &Manifest) -> Result<(), CheckpointError> {
    let holes = |kind: &EntryKind| match kind {
        EntryKind::File { holes, .. } => {
            holes.iter().fold(0u64, |sum, (_, bytes)| sum.saturating_add(*bytes))
        }
        _ => 0,
    };
    let needed = manifest
        .entries
        .iter()
        .fold(0u64, |sum, entry| sum.saturating_add(entry.length().saturating_sub(holes(&entry.kind))));
    let there =
        rustix::fs::statvfs(folder).map_err(|error| DurableError::io("read", folder)(error.into()))?;
    let free = there.f_bavail.saturating_mul(there.f_frsize);
    if needed > free {
        Err(CheckpointError::TooLarge { number: manifest.number, needed, free })
    } else {
        Ok(())
    }
}
