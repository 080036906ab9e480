//! The commands of the registry: parsing, threads, progress, printing.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::{ArgMatches, FromArgMatches, Subcommand};
use hopmap_command::{CommandEntry, Exit, Failure, ParsedCommand};
use hopmap_model::{Context, Observer};
use indicatif::{ProgressBar, ProgressStyle};

use super::interrupt::on_interrupt;
use super::output::{Output, unbuffered};
use crate::registry::COMMANDS;

/// A command of the registry, with its arguments.
pub(crate) struct Registered(Box<dyn ParsedCommand>);

impl Subcommand for Registered {
    fn augment_subcommands(command: clap::Command) -> clap::Command {
        command.subcommands(COMMANDS.iter().map(CommandEntry::definition))
    }

    fn augment_subcommands_for_update(command: clap::Command) -> clap::Command {
        Self::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        COMMANDS.iter().any(|entry| entry.name == name)
    }
}

impl FromArgMatches for Registered {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Self::from_arg_matches_mut(&mut matches.clone())
    }

    fn from_arg_matches_mut(matches: &mut ArgMatches) -> Result<Self, clap::Error> {
        CommandEntry::parse(COMMANDS, matches).map(Self)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

pub(crate) fn main(Registered(command): &Registered, output: Output) -> Result<Exit, Failure> {
    let cancelled = command.is_stoppable().then(on_interrupt).transpose()?;
    let bar = match output.is_interactive() {
        true => ProgressBar::new(0).with_style(style()),
        false => ProgressBar::hidden(),
    };
    let observer = Bar { shown: bar, output, cancelled };
    let threads = command.threads();
    let mut out = unbuffered();
    let run =
        |out: &mut (dyn Write + Send)| command.run(&Context::new(threads.unwrap_or(1), None, &observer), out);
    let done = match threads {
        Some(threads) => {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
            let pool = pool.map_err(|error| miette::miette!("cannot start {threads} threads: {error}"))?;
            pool.install(|| run(&mut out))
        }
        None => run(&mut out),
    };
    observer.shown.finish_and_clear();
    let answer = done?;
    output.answer(&answer);
    Ok(answer.exit)
}

fn style() -> ProgressStyle {
    ProgressStyle::with_template("  {bytes}/{total_bytes} {wide_bar} {bytes_per_sec} {eta}")
        .unwrap_or_else(|_| ProgressStyle::default_bar())
}

struct Bar {
    shown: ProgressBar,
    output: Output,
    cancelled: Option<Arc<AtomicBool>>,
}

impl Observer for Bar {
    fn progress(&self, done: u64, total: u64) {
        self.shown.set_length(total.max(done));
        self.shown.set_position(done);
    }

    fn log(&self, line: &str) {
        self.shown.suspend(|| self.output.note(line));
    }

    fn cancelled(&self) -> bool {
        self.cancelled.as_ref().is_some_and(|cancelled| cancelled.load(Ordering::Relaxed))
    }
}
