//! `hopmap worker`: the other end of a launcher, for stages that are one process. Hidden: hopmap itself starts it.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::Args;
use hopmap_command::{Exit, Failure};

use super::interrupt::on_interrupt;
use crate::ranks;

/// Time between two looks at whether a signal came.
const INTERVAL: Duration = Duration::from_millis(50);

/// Arguments of `worker`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  srun -n 1 hopmap worker .hopmap/work/KEY")]
pub(crate) struct Arguments {
    /// Folder with the task.
    folder: PathBuf,
}

pub(crate) fn main(arguments: &Arguments) -> Result<Exit, Failure> {
    let folder = &arguments.folder;
    let interrupted = on_interrupt()?;
    let ended = AtomicBool::new(false);
    let result = std::thread::scope(|scope| {
        scope.spawn(|| stop_when_interrupted(folder, &interrupted, &ended));
        ranks::stop_with_the_engine(folder);
        let _ended = Ended(&ended);
        ranks::run(folder, None, &|line| {
            // An engine that does not listen any more is gone.
            let _ = std::io::stdout().lock().write_all(format!("{line}\n").as_bytes());
        })
    });
    result.map(|()| Exit::Done).map_err(|error| {
        ranks::blame(folder, 0, &error);
        Failure::failed(error)
    })
}

/// Says that the stage has ended, also where it panicked.
struct Ended<'a>(&'a AtomicBool);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Batch systems send a signal before they end a job: time to deliver what there is.
fn stop_when_interrupted(folder: &Path, interrupted: &AtomicBool, ended: &AtomicBool) {
    while !ended.load(Ordering::Relaxed) {
        if interrupted.load(Ordering::Relaxed) {
            // If this fails the folder is gone, which stops the stage as well.
            let _ = ranks::stop(folder);
            return;
        }
        std::thread::sleep(INTERVAL);
    }
}
