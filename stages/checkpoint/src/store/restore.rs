//! Restores a checkpoint.
//!
//! A folder is written under a temporary name and renamed when everything is verified: every chunk by its
//! hash, every file by its digest.
//!
//! Several workers process portions of files: each takes the next portion, decodes it, and writes it to its
//! file. Streams, digests, and the ends of files need file order and use turns. So there are no rounds that
//! wait for the slowest worker, and workers are at most one portion ahead.

mod target;

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use hopmap_durable::{DurableError, Staging, crash_point, sync_folder, sync_tree};
use hopmap_model::Context;

use super::blocks::{Blocks, lock};
use super::manifest::{Manifest, Recipe, Run};
use super::{ReadLock, Store};
use crate::chunk::Digest;
use crate::error::CheckpointError;
use crate::tree::{self, EntryKind};

use target::{FileTarget, Portion, StreamTarget, Target};

/// Options of `restore`.
#[derive(Debug, Clone, Copy, Default)]
pub struct RestoreOptions {
    /// Whether to skip syncing the files.
    pub unsynced: bool,
}

/// The result of `restore`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    /// Number of the checkpoint.
    pub number: u32,
    /// Number of files.
    pub files: usize,
    /// Total size of the files.
    pub bytes: u64,
}

impl Store {
    /// Restores a checkpoint to a folder that is missing or empty.
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
        // A file that appeared there meanwhile must not be removed.
        fs::rename(staging.path(), to).map_err(|error| match error.kind() {
            ErrorKind::DirectoryNotEmpty | ErrorKind::AlreadyExists | ErrorKind::NotADirectory => {
                CheckpointError::NotEmpty(to.to_owned())
            }
            _ => DurableError::io("write", to)(error).into(),
        })?;
        crash_point("checkpoint.restore-renamed", to);
        sync_folder(parent)?;
        Ok(Restored { number, files: manifest.recipes.len(), bytes })
    }

    /// Writes one file of a checkpoint to a stream: the selected one, or the only one.
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

/// The file with this path, or the only one.
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
        _ => Err(CheckpointError::NotEmpty(to.to_owned())),
    }
}

/// Fails early if the checkpoint does not fit the disk.
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

/// Size of the cache of decoded blocks, in bytes.
const BLOCK_CACHE_BYTES: usize = 24 << 20;

/// Maximum number of workers: each needs memory for a portion, and two or three are as fast as most disks.
const MOST_WORKERS: usize = 8;

/// A file that is being restored.
struct Output<'r> {
    path: &'r Path,
    recipe: &'r Recipe,
    target: Box<dyn Target + 'r>,
}

/// The files that are being restored.
struct Restoring<'r, F> {
    store: &'r Store,
    blocks: Blocks<'r>,
    cx: &'r Context<'r>,
    tasks: Mutex<Tasks<'r, F>>,
    progress: Mutex<Progress>,
    /// Notified when a turn ends.
    turned: Condvar,
}

/// The remaining work.
struct Tasks<'r, F> {
    files: F,
    /// The current file, its next runs and their offset.
    current: Option<(Arc<Output<'r>>, &'r [Run], u64)>,
    turn: u64,
}

/// A portion of a file.
struct Task<'r> {
    turn: u64,
    output: Arc<Output<'r>>,
    runs: &'r [Run],
    offset: u64,
    is_last: bool,
}

/// Progress of the turns.
#[derive(Default)]
struct Progress {
    /// The current turn.
    turn: u64,
    /// State of the file of the current turn.
    digest: Digest,
    failed: Option<CheckpointError>,
}

impl<'r, F: Iterator<Item = Result<Output<'r>, CheckpointError>> + Send> Restoring<'r, F> {
    fn new(store: &'r Store, files: F, cx: &'r Context<'r>) -> Self {
        Self {
            store,
            blocks: Blocks::new(store, BLOCK_CACHE_BYTES).with_open_files(),
            cx,
            tasks: Mutex::new(Tasks { files, current: None, turn: 0 }),
            progress: Mutex::default(),
            turned: Condvar::new(),
        }
    }

    fn run(self) -> Result<(), CheckpointError> {
        let workers = rayon::current_num_threads().min(MOST_WORKERS);
        rayon::scope(|scope| (0..workers).for_each(|_| scope.spawn(|_| self.work())));
        let progress = self.progress.into_inner().unwrap_or_else(PoisonError::into_inner);
        progress.failed.map_or(Ok(()), Err)
    }

    fn work(&self) {
        while let Some(task) = self.next() {
            // The turn also ends on a panic, so that no worker waits forever.
            let turn = Turn { of: self, number: task.turn };
            let read = self.read(&task);
            let mut progress = turn.wait();
            if progress.failed.is_none() {
                let finished = read.and_then(|portion| self.finish(&task, portion, &mut progress.digest));
                progress.failed = finished.err();
            }
        }
    }

    /// The next portion; `None` at the end, or after an error.
    fn next(&self) -> Option<Task<'r>> {
        let mut tasks = lock(&self.tasks);
        if lock(&self.progress).failed.is_some() {
            return None;
        }
        let (output, runs, offset) = match tasks.current.take() {
            Some(current) => current,
            None => match tasks.files.next()? {
                Ok(output) => {
                    let runs = output.recipe.runs.as_slice();
                    (Arc::new(output), runs, 0)
                }
                Err(error) => {
                    lock(&self.progress).failed.get_or_insert(error);
                    return None;
                }
            },
        };
        let (runs, rest) = target::split(self.store, runs);
        let is_last = rest.is_empty();
        if !is_last {
            let end = runs.iter().fold(offset, |sum, run| sum.saturating_add(run.bytes()));
            tasks.current = Some((Arc::clone(&output), rest, end));
        }
        tasks.turn += 1;
        Some(Task { turn: tasks.turn - 1, output, runs, offset, is_last })
    }

    fn read(&self, task: &Task<'_>) -> Result<Portion, CheckpointError> {
        if self.cx.should_stop() {
            return Err(CheckpointError::Interrupted);
        }
        let portion = Portion::read(self.store, &self.blocks, task.runs)?;
        task.output.target.put_at(task.offset, &portion)?;
        Ok(portion)
    }

    fn finish(&self, task: &Task<'_>, portion: Portion, digest: &mut Digest) -> Result<(), CheckpointError> {
        let Output { path, recipe, target } = &*task.output;
        target.put_next(&portion)?;
        portion.digest(task.runs, digest);
        portion.give_back(&self.blocks);
        if !task.is_last {
            return Ok(());
        }
        if std::mem::take(digest).finish() != recipe.digest {
            return Err(CheckpointError::WrongContents(path.to_path_buf()));
        }
        target.finish()
    }
}

/// A turn: it follows those of all earlier portions, and ends on drop.
struct Turn<'a, 'r, F> {
    of: &'a Restoring<'r, F>,
    number: u64,
}

impl<F> Turn<'_, '_, F> {
    fn wait(&self) -> MutexGuard<'_, Progress> {
        let progress = lock(&self.of.progress);
        let waited = self.of.turned.wait_while(progress, |progress| progress.turn < self.number);
        waited.unwrap_or_else(PoisonError::into_inner)
    }
}

impl<F> Drop for Turn<'_, '_, F> {
    fn drop(&mut self) {
        self.wait().turn += 1;
        self.of.turned.notify_all();
    }
}
