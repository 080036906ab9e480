//! All files of a checkpoint, portion by portion, several at once.
//!
//! Every worker takes the next portion, decodes it, and puts it into its file. What has to happen in the order of the files happens
//! in turns: streams, digests, and the end of a file. So nobody waits for the slowest of a round, and no worker is ahead of the
//! others by more than a portion.

use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use hopmap_model::Context;

use super::portion::{self, Portion};
use super::target::Target;
use crate::CheckpointError;
use crate::store::Store;
use crate::store::blocks::Blocks;
use crate::store::digest::Digest;
use crate::store::manifest::{Recipe, Run};

/// Bytes of decoded blocks that are kept, because other blocks are told by them or they are needed again.
const KEPT: usize = 24 << 20;

/// Most workers: each needs memory for a portion, and two or three of them are as fast as most disks.
const MOST_WORKERS: usize = 8;

/// A file that is given back.
pub(super) struct Output<'r> {
    pub(super) path: &'r Path,
    pub(super) recipe: &'r Recipe,
    pub(super) target: Box<dyn Target + 'r>,
}

/// Files that are being given back.
pub(super) struct Restoring<'r, F> {
    store: &'r Store,
    blocks: Blocks<'r>,
    cx: &'r Context<'r>,
    tasks: Mutex<Tasks<'r, F>>,
    progress: Mutex<Progress>,
    /// Told whenever a turn ends.
    turned: Condvar,
}

/// What is still to be done.
struct Tasks<'r, F> {
    files: F,
    /// The file whose next runs these are, and where they begin.
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

/// How far it is.
#[derive(Default)]
struct Progress {
    /// Whose turn it is.
    turn: u64,
    /// Of the file whose turn it is.
    digest: Digest,
    failed: Option<CheckpointError>,
}

impl<'r, F: Iterator<Item = Result<Output<'r>, CheckpointError>> + Send> Restoring<'r, F> {
    pub(super) fn new(store: &'r Store, files: F, cx: &'r Context<'r>) -> Self {
        Self {
            store,
            blocks: Blocks::new(store, KEPT).with_open_files(),
            cx,
            tasks: Mutex::new(Tasks { files, current: None, turn: 0 }),
            progress: Mutex::default(),
            turned: Condvar::new(),
        }
    }

    pub(super) fn run(self) -> Result<(), CheckpointError> {
        let workers = rayon::current_num_threads().min(MOST_WORKERS);
        rayon::scope(|scope| (0..workers).for_each(|_| scope.spawn(|_| self.work())));
        let progress = self.progress.into_inner().unwrap_or_else(PoisonError::into_inner);
        progress.failed.map_or(Ok(()), Err)
    }

    fn work(&self) {
        while let Some(task) = self.next() {
            // Its turn ends also when this panics: nobody waits for ever.
            let turn = Turn { of: self, number: task.turn };
            let read = self.read(&task);
            let mut progress = turn.wait();
            if progress.failed.is_none() {
                let finished = read.and_then(|portion| self.finish(&task, portion, &mut progress.digest));
                progress.failed = finished.err();
            }
        }
    }

    /// The next portion; none when there is none, or something failed.
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
        let (runs, rest) = portion::split(self.store, runs);
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
            return Err(CheckpointError::WrongContents { path: path.to_path_buf() });
        }
        target.finish()
    }
}

/// A turn: it comes after those of all portions before, and ends when this is dropped.
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
