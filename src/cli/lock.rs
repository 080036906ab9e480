//! `hopmap lock`, `run --lock` and `run --locked`: pins inputs and results in a file for version control. `hopmap export`.

use std::path::{Path, PathBuf};

use clap::Args;
use hopmap_command::{Exit, Failure, Mistake, refuse, shown};
use hopmap_launchers::shell_word;
use hopmap_text::counted;
use serde_json::json;

use super::named::Written;
use super::open::{PipelineArguments, StoreArguments, existing, place_or, working_directory};
use super::output::{Output, Result};
use super::summary::first_of;
use crate::archive::{self, ArchiveError, Export};
use crate::engine::{self, PipelineId, RunSummary, Store};
use crate::lock::{self, Differences, Lock, LockError, OutputDifference, Request, Unfinished};
use crate::pipeline::{EMBEDDED, Pipeline};

/// Differences that are listed.
const MOST_FOUND: usize = 50;

/// Arguments of `lock`.
#[derive(Debug, Args)]
#[command(after_help = "\
The file is sorted TOML with one line per cell of a sweep: stages with their revisions, parameters, input files and digests of \
the outputs. It does not depend on times, folders or threads. A file with equal content is not rewritten.

Examples:
  hopmap lock place.toml              # writes place.lock next to it
  git diff place.lock
  hopmap run place.toml --locked      # compares a run with it")]
pub(crate) struct Arguments {
    #[command(flatten)]
    pipeline: PipelineArguments,
    #[command(flatten)]
    store: StoreArguments,
    /// Write this file [default: the pipeline file with the extension `.lock`].
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
}

pub(crate) fn main(arguments: &Arguments, output: Output) -> Result {
    let request = arguments.pipeline.request()?;
    let pipeline = request.open()?;
    let mut store = Store::load(&arguments.store.root(&arguments.pipeline)?)?;
    let place = place_or(arguments.out.as_ref(), || request.lock_file())?;
    Written::Lock.check_place(&place)?;
    let (written, lock) = write(&request, &pipeline, &mut store, &place)?;
    output.json(&json!({ "file": place, "written": written, "cells": lock.cells.len() }));
    said(written, &lock, &place, output);
    Ok(Exit::Done)
}

fn write(request: &Request, pipeline: &Pipeline, store: &mut Store, place: &Path) -> Result<(bool, Lock)> {
    let lock = of_results(request, pipeline, store)?;
    Written::Lock.check_place(place)?;
    Ok((lock.write(place)?, lock))
}

/// The lock of the results that are in the store.
pub(super) fn of_results(request: &Request, pipeline: &Pipeline, store: &mut Store) -> Result<Lock> {
    lock::lock(request, pipeline, store).map_err(|error| match error.is::<Unfinished>() {
        true => Failure::usage(error),
        false => Failure::failed(error),
    })
}

fn said(written: bool, lock: &Lock, place: &Path, output: Output) {
    let verb = if written { "locked" } else { "locked already" };
    let cells = counted(lock.cells.len(), "cell");
    output.line(format!("{verb}: {cells} of {} in {}", lock.pipeline, shown(place)));
}

/// What `run` does with a lock file.
#[derive(Debug, Default, Args)]
#[expect(clippy::option_option, reason = "given or not, with a file or without")]
pub(crate) struct LockArguments {
    /// Write the lock file after a complete run [default of FILE: next to the pipeline file].
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, conflicts_with = "locked")]
    lock: Option<Option<PathBuf>>,
    /// Run nothing if an input differs from the lock file (exit code 2); exit with code 3 if a result differs.
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    locked: Option<Option<PathBuf>>,
    /// With --locked, also compare results of live stages and of searches with a time limit.
    #[arg(long, requires = "locked")]
    strict: bool,
}

impl LockArguments {
    /// Compares everything that is known before a run with the lock file.
    pub(crate) fn before_run(
        &self,
        request: &Request,
        pipeline: &Pipeline,
        root: &Path,
        output: Output,
    ) -> Result<Option<Lock>> {
        if let Some(file) = &self.lock {
            Written::Lock.check_place(&place_or(file.as_ref(), || request.lock_file())?)?;
        }
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

    /// Writes the lock file, or compares the results with it.
    pub(crate) fn after_run(
        &self,
        locked: Option<&Lock>,
        request: &Request,
        pipeline: &Pipeline,
        store: &mut Store,
        output: Output,
    ) -> Result {
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

/// Inputs that differ from the lock file.
fn differences(lock: &Lock, request: &Request, pipeline: &Pipeline, store: &mut Store) -> Differences {
    let planned = lock::expect(pipeline, store);
    let expected = lock::describe(pipeline, store, &planned);
    lock::before_a_run(lock, request, &expected)
}

/// Prints inputs that differ from the lock file as notes: results may still be equal.
pub(super) fn note_differences(
    lock: &Lock,
    request: &Request,
    pipeline: &Pipeline,
    store: &mut Store,
    output: Output,
) {
    let Differences { found, notes } = differences(lock, request, pipeline, store);
    let (first, more) = first_of(found.iter(), MOST_FOUND);
    first.iter().for_each(|found| output.note(format!("note: differs from the lock file: {found}")));
    if more > 0 {
        output.note(format!("note: … and {more} more differ from the lock file"));
    }
    notes.iter().for_each(|note| output.note(format!("note: {note}")));
}

/// Reads the lock file of a pipeline.
pub(super) fn read(place: &Path, pipeline: &Pipeline) -> Result<Lock> {
    let lock = Lock::read(place)?;
    if lock.pipeline == pipeline.name {
        return Ok(lock);
    }
    let (path, wanted) = (place.into(), pipeline.name.clone());
    Err(LockError::Foreign { path, found: lock.pipeline, wanted }.into())
}

fn report(differences: &[OutputDifference], output: Output) -> Result {
    const MOST: usize = 20;
    let (excused, faults): (Vec<_>, Vec<_>) = differences.iter().partition(|found| found.excuse.is_some());
    for found in &excused {
        let excuse = found.excuse.as_deref().unwrap_or_default();
        output.note(format!("note: {}: {excuse}: {}", found.cell, found.what.join(", ")));
    }
    if faults.is_empty() {
        output.line("all results match the lock file");
        return Ok(Exit::Done);
    }
    let mut lines = Vec::new();
    let (first, more) = first_of(faults.iter(), MOST);
    for fault in first {
        lines.push(format!("  {}: {}", fault.cell, fault.what.join(", ")));
        if !fault.inputs.is_empty() {
            lines.push(format!("    inputs: {}", fault.inputs.join(", ")));
        }
    }
    if more > 0 {
        lines.push(format!("  … and {more} more"));
    }
    let count = match faults.len() {
        1 => "a result differs from the lock file".to_owned(),
        several => format!("{several} results differ from the lock file"),
    };
    let message = format!("{count}\n{}", lines.join("\n"));
    let help = "`hopmap verify` recomputes everything and shows where bytes differ; `hopmap lock` pins the new \
                results";
    Err(Failure::new(Exit::Different, [Mistake::new(message, help).into()]))
}

/// A pipeline that differs from its lock file.
fn refused(place: &Path, differences: &Differences) -> Mistake {
    let (first, more) = first_of(differences.found.iter(), MOST_FOUND);
    let mut lines: Vec<String> = first.into_iter().map(|found| format!("  {found}")).collect();
    if more > 0 {
        lines.push(format!("  … and {more} more"));
    }
    lines.extend(differences.notes.iter().map(|note| format!("  note: {note}")));
    let message = format!("nothing ran: the pipeline differs from {}\n{}", shown(place), lines.join("\n"));
    let help = "undo the change, or run without --locked, check the results, and pin them with `hopmap lock`";
    Mistake::new(message, help)
}

impl From<LockError> for Failure {
    fn from(error: LockError) -> Self {
        match error {
            LockError::Durable(_) => Self::failed(error),
            error => Self::usage(error),
        }
    }
}

/// Arguments of `export`.
#[derive(Debug, Args)]
#[command(after_help = "\
The archive is an RO-Crate in a zip file: the pipeline, its lock file, the input files, every artifact, the journal and the \
report, each with size and BLAKE3. Equal runs give equal bytes. `hopmap verify FILE` checks every byte.

Examples:
  hopmap export place.toml -o place.crate.zip
  hopmap export -o newest.crate.zip                            # the newest run of the store
  hopmap export 2026-11-22T18-46-50 -o run.crate.zip --no-inputs")]
pub(crate) struct ArchiveArguments {
    /// Pipeline, or the name of a run from `hopmap runs` [default: the newest run].
    run: Option<String>,
    /// Set a parameter of the pipeline; paths are relative to the working directory [default: those of its last run].
    #[arg(short = 'p', long = "param", value_name = "NAME=VALUE")]
    parameters: Vec<String>,
    /// Write the archive to this file.
    #[arg(short, long, value_name = "FILE")]
    out: PathBuf,
    /// Include hashes of the input files, but not the files.
    #[arg(long)]
    no_inputs: bool,
    /// Licence of the data, such as `https://spdx.org/licenses/CC-BY-4.0` [default: none stated].
    #[arg(long, value_name = "URL")]
    license: Option<String>,
    #[command(flatten)]
    store: StoreArguments,
}

pub(crate) fn export(arguments: &ArchiveArguments, output: Output) -> Result {
    let place = working_directory()?.join(&arguments.out);
    Written::Archive.check_place(&place)?;
    let (request, root, wanted) = request(arguments, output)?;
    let pipeline = request.open()?;
    let mut store = Store::load(&existing(root)?)?;
    let runs = engine::read_runs(&store)?;
    let id = PipelineId::of(&pipeline, store.root());
    let newest = runs.iter().rev().find(|run| run.is_of(&id));
    let run = match &wanted {
        Some(name) => runs.iter().find(|run| run.run == *name),
        None => newest,
    };
    let report = lock::expect(&pipeline, &mut store);
    let lock = of_results(&request, &pipeline, &mut store)?;
    if let (Some(run), Some(_)) = (run, &wanted) {
        still_there(&pipeline, run, &report)?;
    }
    let has_report = run.map(|run| &run.run) == newest.map(|run| &run.run);
    let export = Export {
        request: &request,
        pipeline: &pipeline,
        report: &report,
        lock: &lock,
        run,
        has_report,
        inputs: !arguments.no_inputs,
        license: arguments.license.as_deref(),
    };
    let exported = archive::export(&place, &export, &mut store)?;
    output.json(&json!({ "archive": place, "exported": exported }));
    exported.notes.iter().for_each(|note| output.note(format!("note: {note}")));
    if arguments.license.is_none() {
        output.note("note: no licence is stated; with --license, the archive is a Workflow Run RO-Crate");
    }
    let files = counted(exported.files, "file");
    output.line(format!("{}: {files}, {} bytes", shown(&place), exported.bytes));
    output.line(format!("  {:<12} hopmap verify {}", "check it", shell_word(&shown(&place))));
    Ok(Exit::Done)
}

/// The request to pack, the store, and the name of the run, if one was given.
fn request(arguments: &ArchiveArguments, output: Output) -> Result<(Request, PathBuf, Option<String>)> {
    if let Some(name) = &arguments.run
        && (Path::new(name).is_file() || EMBEDDED.iter().any(|embedded| embedded.name == *name))
    {
        let pipeline = PipelineArguments::new(name.clone(), arguments.parameters.clone());
        let root = arguments.store.root(&pipeline)?;
        return Ok((pipeline.as_last_run(&root, output)?, root, None));
    }
    let root = existing(arguments.store.root_here()?)?;
    if !arguments.parameters.is_empty() {
        let help = "name the pipeline to set other parameters: `hopmap export PIPELINE -p …`";
        return refuse("parameters of a past run cannot be changed", help);
    }
    let store = Store::load(&root)?;
    let runs = engine::read_runs(&store)?;
    let run = match &arguments.run {
        Some(name) => runs.iter().find(|run| run.run == *name).ok_or_else(|| unknown(name, &runs)),
        None => runs.last().ok_or_else(|| {
            Mistake::new("the store has no run", "`hopmap run` creates one; --store names another store")
        }),
    };
    let name = &run?.run;
    let Some(request) = Request::read(&store.runs().join(name)) else {
        let why = "it was killed, or run by an older hopmap";
        let message = format!("the request of run {name} was not recorded: {why}");
        return refuse(message, "name the pipeline: `hopmap export PIPELINE -o FILE`");
    };
    Ok((request, root, Some(name.clone())))
}

fn unknown(name: &str, runs: &[RunSummary]) -> Mistake {
    let newest: Vec<&str> = runs.iter().rev().take(5).map(|run| run.run.as_str()).collect();
    let help = match newest.is_empty() {
        true => "the store has no runs; name a pipeline file".to_owned(),
        false => format!("the newest runs: {}", newest.join(", ")),
    };
    Mistake::new(format!("`{name}` is neither a pipeline nor a run"), help)
}

/// Rejects a run whose results are no longer those of its pipeline.
fn still_there(pipeline: &Pipeline, run: &RunSummary, report: &engine::RunReport) -> Result<()> {
    let cells = pipeline.cells.iter().zip(&report.cells);
    let other = cells.filter(|(cell, settled)| {
        let then = run.stages.iter().find(|stage| stage.cell == cell.id);
        then.is_none_or(|then| then.key.is_some() && then.key != settled.key)
    });
    let names: Vec<&str> = other.map(|(cell, _)| cell.id.as_str()).take(3).collect();
    if names.is_empty() {
        return Ok(());
    }
    let (run, names) = (&run.run, names.join(", "));
    let message = format!("the run {run} cannot be packed: its inputs have changed since, for {names}");
    refuse(message, "restore them, or pack the current results: `hopmap export PIPELINE`")
}

impl From<ArchiveError> for Failure {
    fn from(error: ArchiveError) -> Self {
        match error {
            ArchiveError::Durable(_) | ArchiveError::DamagedArtifact { .. } | ArchiveError::Changed(_) => {
                Self::failed(error)
            }
            error => Self::usage(error),
        }
    }
}
