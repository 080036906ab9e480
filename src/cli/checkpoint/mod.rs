//! `hopmap checkpoint`: checkpoints of programs, kept in few bytes.

mod add;
mod amounts;
mod explain;
mod init;
mod list;
mod prune;
mod restore;
mod stats;
mod verify;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::{Args, Subcommand};
use hopmap_durable::DurableError;
use hopmap_model::{Context, Observer};
use indicatif::{ProgressBar, ProgressStyle};
use miette::Report;

use super::exit::Exit;
use super::failure::{Failure, Mistake};
use super::interrupt::on_interrupt;
use super::output::Output;
use super::values::all_cores;
use super::wait::holder;
use crate::registry::checkpoint::store::{ReadLock, Store, WriteLock};
use crate::registry::checkpoint::{CheckpointError, StoreRule};

/// Arguments of `checkpoint`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Make an empty store.
    Init(init::Arguments),
    /// Add a checkpoint: a folder, or a stream.
    Add(add::Arguments),
    /// List the checkpoints of a store.
    List(list::Arguments),
    /// Give a checkpoint back, compared with what was added.
    Restore(restore::Arguments),
    /// Say whether checkpoints can be given back, and which damage touches which.
    Verify(verify::Arguments),
    /// Remove checkpoints, and what no other needs of them.
    Prune(prune::Arguments),
    /// Say what a store takes.
    Stats(stats::Arguments),
    /// Say why a checkpoint takes what it takes.
    Explain(explain::Arguments),
}

pub(crate) fn main(arguments: &Arguments, output: Output) -> Result<Exit, Failure> {
    match &arguments.command {
        Command::Init(arguments) => init::main(arguments, output),
        Command::Add(arguments) => add::main(arguments, output),
        Command::List(arguments) => list::main(arguments, output),
        Command::Restore(arguments) => restore::main(arguments, output),
        Command::Verify(arguments) => verify::main(arguments, output),
        Command::Prune(arguments) => prune::main(arguments, output),
        Command::Stats(arguments) => stats::main(arguments, output),
        Command::Explain(arguments) => explain::main(arguments, output),
    }
}

impl From<CheckpointError> for Failure {
    fn from(error: CheckpointError) -> Self {
        match error {
            CheckpointError::Busy { .. } => Self::Locked(Report::new(error)),
            CheckpointError::Interrupted => Self::Interrupted(Report::new(error)),
            CheckpointError::NoStore { .. }
            | CheckpointError::IsStore { .. }
            | CheckpointError::NotEmpty { .. }
            | CheckpointError::NoCheckpoint { .. }
            | CheckpointError::SeveralFiles { .. }
            | CheckpointError::NoFile { .. }
            | CheckpointError::Pinned { .. }
            | CheckpointError::NothingKept
            | CheckpointError::IsBase { .. }
            | CheckpointError::OtherRule { .. }
            | CheckpointError::ReadTwice
            | CheckpointError::Setting { .. } => Self::usage(error),
            error => Self::Failed(Report::new(error)),
        }
    }
}

impl From<DurableError> for Failure {
    fn from(error: DurableError) -> Self {
        Self::Failed(Report::new(error))
    }
}

/// How many cores, and how long to wait for others.
#[derive(Debug, Args)]
struct Work {
    /// Cores to use [default: all].
    #[arg(short, long, value_name = "CORES", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// How long to wait while another process has the store, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    wait: u32,
}

impl Work {
    fn wait(&self) -> Duration {
        Duration::from_secs(self.wait.into())
    }

    /// Keeps other writers away; Ctrl-C ends the waiting for them.
    fn lock(&self, store: &Store, command: &str) -> Result<WriteLock, Failure> {
        let cancelled = on_interrupt()?;
        Ok(store.lock_unless(&|| cancelled.load(Ordering::Relaxed), &holder(command), self.wait())?)
    }

    /// Keeps what is there from being taken away; Ctrl-C ends the waiting.
    fn read_lock(&self, store: &Store) -> Result<ReadLock, Failure> {
        let cancelled = on_interrupt()?;
        Ok(store.read_lock_unless(&|| cancelled.load(Ordering::Relaxed), self.wait())?)
    }

    /// Does something with so many threads; Ctrl-C stops it, and a bar shows how far it is.
    fn run<R: Send>(
        &self,
        output: Output,
        task: impl FnOnce(&Context<'_>) -> Result<R, CheckpointError> + Send,
    ) -> Result<R, Failure> {
        let jobs = self.jobs.map_or_else(all_cores, usize::from);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(jobs).build();
        let pool = pool.map_err(|error| miette::miette!("cannot start {jobs} threads: {error}"))?;
        let cancelled = on_interrupt()?;
        let bar = match output.is_interactive() {
            true => ProgressBar::new(0).with_style(style()),
            false => ProgressBar::hidden(),
        };
        let observer = Bar { shown: bar, output, cancelled: &cancelled };
        let done = pool.install(|| task(&Context::new(jobs, None, &observer)));
        observer.shown.finish_and_clear();
        // What was being read or written then ends with an error of its own.
        let stopped = |error| if observer.cancelled() { CheckpointError::Interrupted } else { error };
        Ok(done.map_err(stopped)?)
    }
}

fn style() -> ProgressStyle {
    ProgressStyle::with_template("  {bytes}/{total_bytes} {wide_bar} {bytes_per_sec} {eta}")
        .unwrap_or_else(|_| ProgressStyle::default_bar())
}

struct Bar<'a> {
    shown: ProgressBar,
    output: Output,
    cancelled: &'a AtomicBool,
}

impl Observer for Bar<'_> {
    fn progress(&self, done: u64, total: u64) {
        self.shown.set_length(total.max(done));
        self.shown.set_position(done);
    }

    fn log(&self, line: &str) {
        self.shown.suspend(|| self.output.note(line));
    }

    fn cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }
}

/// The number of a checkpoint: `latest`, or digits.
fn number(store: &Store, text: &str, name: Option<&str>) -> Result<u32, Failure> {
    if text == "latest" {
        let latest = match name {
            Some(name) => store.latest_named(name)?,
            None => store.latest()?,
        };
        return latest.ok_or_else(|| {
            let what = name.map(|name| format!(" called `{name}`")).unwrap_or_default();
            let help = "add one with `hopmap checkpoint add`";
            Mistake::new(format!("the store has no checkpoints{what}"), help).into()
        });
    }
    text.parse().map_err(|_| {
        let help = "`hopmap checkpoint list` shows the numbers";
        Mistake::new(format!("`{text}` is neither the number of a checkpoint nor `latest`"), help).into()
    })
}

/// The rule of a name.
fn rule(text: &str) -> Result<StoreRule, String> {
    let named = StoreRule::ALL.into_iter().find(|rule| rule.name() == text);
    named.ok_or_else(|| format!("there are {}", StoreRule::ALL.map(StoreRule::name).join(", ")))
}

fn open(folder: &Path) -> Result<Store, Failure> {
    Ok(Store::open(folder)?)
}
