//! `hopmap verify`: recomputes a pipeline and compares it byte by byte, or checks an archive.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use clap::Args;
use hopmap_command::{Exit, Failure, all_cores, refuse, shown};
use hopmap_text::counted;
use miette::Report;
use serde_json::json;

use super::locate;
use super::open::{PipelineArguments, StoreArguments, on_interrupt, place_or, working_directory};
use super::output::{Output, Result};
use super::progress::Progress;
use crate::archive::{self, Archive, ArchiveError, Checked, ImportedProject};
use crate::engine::{self, Limits, PipelineId, Store, StoreError, short};
use crate::lock::{Again, Lock, Remade, RemadeArtifact, Request, SecondStore, Verdict};
use crate::pipeline::Pipeline;

/// Arguments of `verify`.
#[derive(Debug, Args)]
#[command(after_help = "\
Recomputes a pipeline in an empty store, with another number of threads than last time, and compares every artifact with the \
one in the store. Results of live stages and of searches with a time limit are not reproducible: they are taken from the \
store, and results that depend on them are compared. No command of the user is started. For an archive of `hopmap export`, checks every byte.

Exit codes: 0 if all compared results are identical, 3 if one differs, 1 if a stage failed.

Examples:
  hopmap verify place.toml
  hopmap verify sweep.toml --stage placement -j 4
  hopmap verify place.toml --lock=place.lock     # compare with a lock file, without a store
  hopmap verify lu.crate.zip --rerun")]
#[expect(clippy::option_option, reason = "given or not, with a file or without")]
pub(crate) struct Arguments {
    #[command(flatten)]
    pipeline: PipelineArguments,
    #[command(flatten)]
    store: StoreArguments,
    /// Recompute only this stage or cell, with its inputs from the store.
    #[arg(long, value_name = "NAME")]
    stage: Vec<String>,
    /// Compare with the digests of a lock file [default of FILE: next to the pipeline file].
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    lock: Option<Option<PathBuf>>,
    /// Number of cores to use [default: another number than last time].
    #[arg(short, long, value_name = "CORES", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// Keep the second store, and print its path.
    #[arg(long)]
    keep: bool,
    /// Recompute an archive from the inputs in it.
    #[arg(long)]
    rerun: bool,
}

pub(crate) fn main(arguments: &Arguments, output: Output) -> Result {
    match archive::looks_like_one(Path::new(&arguments.pipeline.pipeline)) {
        true => verify_archive(arguments, output),
        false => verify_pipeline(arguments, output),
    }
}

fn verify_pipeline(arguments: &Arguments, output: Output) -> Result {
    if arguments.rerun {
        let help = "a pipeline is always recomputed; an archive is a file that `hopmap export` wrote";
        return refuse("--rerun is for archives", help);
    }
    let request = arguments.pipeline.request()?;
    let mut pipeline = request.open()?;
    let root = arguments.store.root(&arguments.pipeline)?;
    let lock = match &arguments.lock {
        None if !root.is_dir() => return Err(StoreError::Missing(root).into()),
        None => None,
        Some(file) => {
            let place = place_or(file.as_ref(), || request.lock_file())?;
            Some(super::lock::read(&place, &pipeline)?)
        }
    };
    if ImportedProject::of(&request.folder).is_some() {
        without_launchers(&mut pipeline);
    }
    let only = selected(&pipeline, &arguments.stage)?;
    let mut store = Store::load(&root)?;
    if let Some(lock) = &lock {
        super::lock::note_differences(lock, &request, &pipeline, &mut store, output);
    }
    let remade = again(arguments, &only, pipeline, store, lock.as_ref(), output)?;
    Ok(report(&remade, output))
}

/// Recomputes all stages in this process: launchers do not change results, and those of an archive are commands of somebody else.
fn without_launchers(pipeline: &mut Pipeline) {
    pipeline.cells.iter_mut().for_each(|cell| cell.launcher = None);
}

/// The names of the stages and cells that are asked for; none if it is all.
fn selected(pipeline: &Pipeline, names: &[String]) -> Result<Vec<String>> {
    let mut selected = Vec::new();
    for name in names {
        match locate::in_pipeline(name, pipeline)?.as_slice() {
            [] => return Err(locate::unknown_stage(&format!("`{}`", pipeline.name), pipeline, name).into()),
            [cell] => selected.push(pipeline.cells[*cell].id.clone()),
            _ => selected.push(name.clone()),
        }
    }
    Ok(selected)
}

/// Recomputes a pipeline, or named stages and cells, in a second store.
fn again(
    arguments: &Arguments,
    only: &[String],
    pipeline: Pipeline,
    mut store: Store,
    lock: Option<&Lock>,
    output: Output,
) -> Result<Remade> {
    let jobs = jobs(arguments.jobs, last_jobs(&store, &pipeline), output);
    let had_store = store.root().is_dir();
    let root = store.root().to_owned();
    let second = SecondStore::new(&root, arguments.keep).map_err(StoreError::from)?;
    let cancelled = on_interrupt()?;
    let limits = Limits { jobs, memory: engine::memory(), deadline: None, fail_fast: false, worth: None };
    let again = Again::new(pipeline, &mut store, lock, only);
    let progress = Progress::new(output, &again.pipeline, jobs);
    let remade = again.run(&store, second.path(), limits, &cancelled, &progress);
    progress.finish();
    let remade = remade?;
    if arguments.keep {
        output.note(format!("the second store is in {}", shown(second.path())));
    }
    drop(second);
    if !had_store && !arguments.keep {
        // It was made for the second one; if something else is in it by now it stays.
        let _ = std::fs::remove_dir(&root);
    }
    remade
        .report
        .cells
        .iter()
        .filter_map(|settled| settled.error.as_ref())
        .for_each(|error| output.error(error));
    Ok(remade)
}

/// The cores that the newest run of a pipeline had.
fn last_jobs(store: &Store, pipeline: &Pipeline) -> Option<usize> {
    let runs = engine::read_runs(store).ok()?;
    let id = PipelineId::of(pipeline, store.root());
    let mut of_pipeline = runs.iter().rev().filter(|run| run.is_of(&id));
    of_pipeline.find_map(|run| Request::read(&store.runs().join(&run.run))?.jobs)
}

/// Another number of cores than last time, if there are any.
fn jobs(wanted: Option<u16>, last: Option<usize>, output: Output) -> usize {
    let all = all_cores();
    let jobs = match (wanted, last) {
        (Some(wanted), _) => usize::from(wanted),
        (None, Some(last)) if last != all => all,
        (None, _) => (all / 2).max(1),
    };
    let before = last.map_or_else(String::new, |last| format!(", {last} last time"));
    output.note(format!("-j{jobs}{before}"));
    jobs
}

/// Says how everything came out.
fn report(remade: &Remade, output: Output) -> Exit {
    let seconds = remade.report.seconds;
    output.json(&json!({
        "pipeline": remade.pipeline.name,
        "artifacts": remade.artifacts,
        "seconds": seconds,
        "interrupted": remade.report.interrupted,
    }));
    let count = |wanted: fn(&Verdict) -> bool| {
        remade.artifacts.iter().filter(|artifact| wanted(&artifact.verdict)).count()
    };
    let same = count(|verdict| *verdict == Verdict::Same);
    let different = count(|verdict| matches!(verdict, Verdict::Different { .. }));
    let open = count(|verdict| matches!(verdict, Verdict::NotComparable { .. }));
    let failed = count(|verdict| matches!(verdict, Verdict::Failed { .. }));
    print(&remade.artifacts, output);
    let counts = [(same, "the same"), (different, "different"), (open, "not comparable"), (failed, "failed")];
    let counts = counts.iter().filter(|(count, _)| *count > 0);
    let counts: Vec<String> = counts.map(|(count, word)| format!("{count} {word}")).collect();
    let counts = if counts.is_empty() { "nothing to compare".to_owned() } else { counts.join(", ") };
    let line = format!("{}: {counts} in {seconds:.2} s", remade.pipeline.name);
    if different + failed > 0 {
        output.fault(line);
    } else {
        output.line(line);
    }
    match (different, failed) {
        _ if remade.report.interrupted => Exit::Interrupted,
        (1.., _) => Exit::Different,
        (0, 1..) => Exit::Failed,
        (0, 0) => Exit::Done,
    }
}

/// One line for all artifacts that are the same, and one for the other cells of a stage that came out alike.
fn print(artifacts: &[RemadeArtifact], output: Output) {
    let mut alike: BTreeMap<(Option<usize>, String, String), Vec<&RemadeArtifact>> = BTreeMap::new();
    let mut stages: Vec<&str> = Vec::new();
    for artifact in artifacts {
        let place = stages.iter().position(|stage| *stage == artifact.stage).unwrap_or_else(|| {
            stages.push(&artifact.stage);
            stages.len() - 1
        });
        let place = Some(place).filter(|_| artifact.verdict != Verdict::Same);
        let (word, rest) = said(&artifact.verdict);
        alike.entry((place, word.to_owned(), rest.join("\n"))).or_default().push(artifact);
    }
    for ((_, word, rest), artifacts) in alike {
        let (first, count) = (artifacts[0], artifacts.len());
        let stages: BTreeSet<&str> = artifacts.iter().map(|artifact| artifact.stage.as_str()).collect();
        let name = match stages.len() {
            1 if artifacts.iter().all(|artifact| artifact.cell == first.cell) => first.name.clone(),
            1 => format!("{} ({count} artifacts)", first.stage),
            several => format!("{count} artifacts of {several} stages"),
        };
        let artifact = match artifacts.as_slice() {
            [RemadeArtifact { output: Some(output), digest: Some(digest), .. }] => {
                format!("{output} {}", short(digest))
            }
            _ => String::new(),
        };
        let is_wrong = artifacts.iter().any(|artifact| artifact.verdict.is_wrong());
        let say = |line: &str| if is_wrong { output.fault(line) } else { output.line(line) };
        let mut lines = rest.lines();
        let first = lines.next().unwrap_or_default();
        say(format!("  {word:<14} {name:<24} {artifact}  {first}").trim_end());
        lines.for_each(|line| say(&format!("  {:<14} {line}", "")));
    }
}

fn said(verdict: &Verdict) -> (&'static str, Vec<String>) {
    match verdict {
        Verdict::Same => ("same", Vec::new()),
        Verdict::Different { what } => ("different", what.clone()),
        Verdict::NotComparable { why } => ("not comparable", vec![why.clone()]),
        Verdict::Failed { why } => ("failed", vec![why.clone()]),
    }
}

/// An archive that cannot be unpacked.
pub(super) fn refused(error: Report) -> Failure {
    error.downcast::<ArchiveError>().map_or_else(Failure::failed, Failure::from)
}

fn verify_archive(arguments: &Arguments, output: Output) -> Result {
    let path = working_directory()?.join(&arguments.pipeline.pipeline);
    let mut archive = Archive::open(&path)?;
    let checked = archive.check()?;
    if output.is_json() && !arguments.rerun {
        output.json(&checked);
    }
    checked.notes.iter().for_each(|note| output.note(format!("note: {note}")));
    checked.findings.iter().for_each(|finding| output.fault(format!("  {finding}")));
    if !checked.findings.is_empty() {
        output.fault(format!("{}: {}", shown(&path), counted(checked.findings.len(), "fault")));
        return Ok(Exit::Different);
    }
    let Checked { files, artifacts, bytes, .. } = checked;
    let (files, artifacts) = (counted(files, "file"), counted(artifacts, "artifact"));
    output.line(format!("{}: {files} and {artifacts} are intact, {bytes} bytes", shown(&path)));
    if !arguments.rerun {
        return Ok(Exit::Done);
    }
    let unpacked = archive.unpack().map_err(refused)?;
    let mut pipeline = unpacked.request.open()?;
    without_launchers(&mut pipeline);
    let only = selected(&pipeline, &arguments.stage)?;
    let remade = again(arguments, &only, pipeline, unpacked.store()?, None, output)?;
    if arguments.keep {
        output.note(format!("everything is in {}", unpacked.keep().display()));
    }
    Ok(report(&remade, output))
}
