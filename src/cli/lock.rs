//! `hopmap lock`, and `run --lock` and `run --locked`: what results were made of, as a file for people and git.

use std::path::{Path, PathBuf};

use clap::Args;
use hopmap_command::{Exit, Failure, Mistake, shown};
use serde_json::json;

use super::open::{PipelineArguments, StoreArguments, place_or};
use super::output::Output;
use crate::engine::Store;
use crate::lock::{self, Differences, Lock, LockError, OutputDifference, Request, Unfinished};
use crate::pipeline::Pipeline;

/// Differences that are told one by one.
const MOST_FOUND: usize = 50;

/// Arguments of `lock`.
#[derive(Debug, Args)]
#[command(after_help = "\
The file is TOML, sorted, with a line for every cell of a sweep: stages with their revisions, parameters, input files and
digests of the outputs. It says nothing of times, folders or threads, and one that says the same already stays untouched.

Examples:
  hopmap lock place.toml              # writes place.lock beside it
  git diff place.lock
  hopmap run place.toml --locked      # holds a run against it")]
pub(crate) struct Arguments {
    #[command(flatten)]
    pipeline: PipelineArguments,
    #[command(flatten)]
    store: StoreArguments,
    /// File to write [default: the pipeline file with the ending `.lock`].
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
}

pub(crate) fn main(arguments: &Arguments, output: Output) -> Result<Exit, Failure> {
    let request = arguments.pipeline.request()?;
    let pipeline = request.open()?;
    let mut store = Store::load(&arguments.store.root(&arguments.pipeline)?)?;
    let place = place_or(arguments.out.as_ref(), || request.lock_file())?;
    let (written, lock) = write(&request, &pipeline, &mut store, &place)?;
    if output.is_json() {
        output.json(&json!({ "file": place, "written": written, "cells": lock.cells.len() }));
    }
    said(written, &lock, &place, output);
    Ok(Exit::Done)
}

fn write(
    request: &Request,
    pipeline: &Pipeline,
    store: &mut Store,
    place: &Path,
) -> Result<(bool, Lock), Failure> {
    let lock = of_results(request, pipeline, store)?;
    Ok((lock.write(place)?, lock))
}

/// The lock of the results that are in the store.
pub(super) fn of_results(request: &Request, pipeline: &Pipeline, store: &mut Store) -> Result<Lock, Failure> {
    lock::lock(request, pipeline, store).map_err(|error| match error.is::<Unfinished>() {
        true => Failure::usage(error),
        false => Failure::failed(error),
    })
}

fn said(written: bool, lock: &Lock, place: &Path, output: Output) {
    let verb = if written { "locked" } else { "locked already" };
    output.line(format!("{verb}: {} cells of {} in {}", lock.cells.len(), lock.pipeline, shown(place)));
}

/// What `run` does with a lock file.
#[derive(Debug, Args)]
#[expect(clippy::option_option, reason = "given or not, with a file or without")]
pub(crate) struct LockArguments {
    /// Write the lock file when everything is done [default of FILE: beside the pipeline file].
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, conflicts_with = "locked")]
    lock: Option<Option<PathBuf>>,
    /// Run nothing if anything differs from the lock file (exit code 2), and end with 3 if a result does.
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    locked: Option<Option<PathBuf>>,
    /// With --locked, hold also what looks at the world, or has a budget in seconds, against its digest.
    #[arg(long, requires = "locked")]
    strict: bool,
}

impl LockArguments {
    /// Holds everything that can be known before a run against the lock file.
    pub(crate) fn before_run(
        &self,
        request: &Request,
        pipeline: &Pipeline,
        root: &Path,
        output: Output,
    ) -> Result<Option<Lock>, Failure> {
        let Some(file) = &self.locked else { return Ok(None) };
        let place = place_or(file.as_ref(), || request.lock_file())?;
        let lock = read(&place, pipeline)?;
        let differences = differences(&lock, request, pipeline, &mut Store::load(root)?);
        match differences.found.is_empty() {
            true => {
                differences.notes.iter().for_each(|note| output.note(format!("note: {note}")));
                Ok(Some(lock))
            }
            false => Err(refused(&place, &differences).into()),
        }
    }

    /// Writes the lock file, or holds the results against it.
    pub(crate) fn after_run(
        &self,
        locked: Option<&Lock>,
        request: &Request,
        pipeline: &Pipeline,
        store: &mut Store,
        output: Output,
    ) -> Result<Exit, Failure> {
        if let Some(file) = &self.lock {
            let place = place_or(file.as_ref(), || request.lock_file())?;
            let (written, lock) = write(request, pipeline, store, &place)?;
            said(written, &lock, &place, output);
        }
        let Some(locked) = locked else { return Ok(Exit::Done) };
        let found = lock::lock(request, pipeline, store)?;
        let differences = lock::outputs(locked, &found, pipeline, self.strict);
        report(&differences, output)
    }
}

/// What goes in now and did not go in when it was locked.
fn differences(lock: &Lock, request: &Request, pipeline: &Pipeline, store: &mut Store) -> Differences {
    let planned = lock::expect(pipeline, store);
    let expected = lock::describe(pipeline, store, &planned);
    lock::before_a_run(lock, request, &expected)
}

/// Says what goes in now and did not go in when it was locked: results may be the same all the same.
pub(super) fn note_differences(
    lock: &Lock,
    request: &Request,
    pipeline: &Pipeline,
    store: &mut Store,
    output: Output,
) {
    let Differences { found, notes } = differences(lock, request, pipeline, store);
    for found in found.iter().take(MOST_FOUND) {
        output.note(format!("note: not as it is locked: {found}"));
    }
    if found.len() > MOST_FOUND {
        output.note(format!("note: … and {} more are not as they are locked", found.len() - MOST_FOUND));
    }
    notes.iter().for_each(|note| output.note(format!("note: {note}")));
}

/// Reads the lock file of a pipeline.
pub(super) fn read(place: &Path, pipeline: &Pipeline) -> Result<Lock, Failure> {
    let lock = Lock::read(place)?;
    match lock.pipeline == pipeline.name {
        true => Ok(lock),
        false => Err(LockError::Foreign {
            path: place.into(),
            found: lock.pipeline,
            wanted: pipeline.name.clone(),
        }
        .into()),
    }
}

fn report(differences: &[OutputDifference], output: Output) -> Result<Exit, Failure> {
    const MOST: usize = 20;
    let (excused, faults): (Vec<_>, Vec<_>) = differences.iter().partition(|found| found.excuse.is_some());
    for found in &excused {
        let excuse = found.excuse.as_deref().unwrap_or_default();
        output.note(format!("note: {}: {excuse}: {}", found.cell, found.what.join(", ")));
    }
    if faults.is_empty() {
        output.line("every result is as it is locked");
        return Ok(Exit::Done);
    }
    let mut lines = Vec::new();
    for fault in faults.iter().take(MOST) {
        lines.push(format!("  {}: {}", fault.cell, fault.what.join(", ")));
        if !fault.inputs.is_empty() {
            lines.push(format!("    went in: {}", fault.inputs.join(", ")));
        }
    }
    if faults.len() > MOST {
        lines.push(format!("  … and {} more", faults.len() - MOST));
    }
    let count = match faults.len() {
        1 => "a result is not as it is locked".to_owned(),
        several => format!("{several} results are not as they are locked"),
    };
    let message = format!("{count}\n{}", lines.join("\n"));
    let help = "`hopmap verify` makes everything again and says where bytes differ; `hopmap lock` takes the new \
                results as the right ones";
    Err(Failure::new(Exit::Different, [Mistake::new(message, help).into()]))
}

/// A pipeline that is not what its lock file says.
fn refused(place: &Path, differences: &Differences) -> Mistake {
    let mut lines: Vec<String> =
        differences.found.iter().take(MOST_FOUND).map(|found| format!("  {found}")).collect();
    if differences.found.len() > MOST_FOUND {
        lines.push(format!("  … and {} more", differences.found.len() - MOST_FOUND));
    }
    lines.extend(differences.notes.iter().map(|note| format!("  note: {note}")));
    let message = format!("nothing ran, for not all is as {} says\n{}", shown(place), lines.join("\n"));
    Mistake::new(
        message,
        "undo the change; or run without --locked, look at the results, and `hopmap lock` them",
    )
}

impl From<LockError> for Failure {
    fn from(error: LockError) -> Self {
        match error {
            LockError::Durable(_) => Self::failed(error),
            error => Self::usage(error),
        }
    }
}
