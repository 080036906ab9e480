//! `hopmap run`: run all out-of-date stages. `hopmap report`: the HTML report of what is in the store, and the timeline of its last run.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use clap::Args;
use hopmap_command::{Exit, Failure, all_cores, refuse, shown};
use hopmap_durable::replace_file;
use hopmap_launchers::shell_word;
use hopmap_model::BOUND_PORT;
use hopmap_text::counted;
use miette::Report;
use serde_json::json;

use super::fault::SystemError;
use super::gates::{self, GateArguments};
use super::lock::LockArguments;
use super::named::Written;
use super::open::{
    PipelineArguments, StoreArguments, WaitArguments, duration, on_interrupt, working_directory,
};
use super::output::{Output, Result};
use super::progress::Progress;
use super::words::{Parameter, is_option, of_pipeline};
use super::{consent, locate, summary};
use crate::archive::ImportedProject;
use crate::engine::{
    self, Limits, RunReport, Settled, State, Store, StoreError, Writer, check_saves, missing_programs,
};
use crate::lock::{self, Lock};
use crate::pipeline::{Cell, Pipeline, bytes};
use crate::pipeline_text::StageOptions;
use crate::report;
use crate::source::Problems;

/// Arguments of `run`.
#[derive(Debug, Default, Args)]
#[command(after_help = "\
Examples:
  hopmap run place --trace lu/traces.otf2 --shape tree:2x16x40
  hopmap run place --help           # also lists the parameters of place
  hopmap run sweep.toml -j 8 --deadline 10m
  hopmap run batch.toml --quiet --wait 30m --keep-runs 100      # from cron
  hopmap run place.toml --lock      # and write place.lock
  hopmap run place.toml --locked    # compare with place.lock")]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of the command line")]
pub(crate) struct Arguments {
    #[command(flatten)]
    pipeline: PipelineArguments,
    #[command(flatten)]
    store: StoreArguments,
    #[command(flatten)]
    gates: GateArguments,
    /// Number of cores to use [default: all].
    #[arg(short, long, value_name = "CORES", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// Memory limit of the run, such as 8GB [default: all of this machine].
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    memory: Option<u64>,
    /// Time limit of the whole run: searches then return their best solution so far.
    #[arg(long, value_name = "TIME", value_parser = some_time)]
    deadline: Option<Duration>,
    /// The deadline of the command that wrote the pipeline.
    #[arg(skip)]
    end: Option<Instant>,
    /// Search no placement that cannot gain this much of the run time, such as 2%, as a stage predict/bound knows it.
    #[arg(long, value_name = "GAIN", value_parser = gain, allow_hyphen_values = true)]
    worth: Option<f64>,
    /// Write the HTML report to this file [default: reports/NAME.html in the store].
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Do not write an HTML report.
    #[arg(long, conflicts_with = "report")]
    no_report: bool,
    /// Continue with stages that do not depend on a failed one: the default, which overrides an earlier --fail-fast.
    #[arg(long, overrides_with = "fail_fast")]
    keep_going: bool,
    /// Start no further stage after one has failed.
    #[arg(long)]
    fail_fast: bool,
    /// Keep journals and logs of the newest COUNT runs only; results are kept.
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    keep_runs: Option<u32>,
    /// Let the pipeline of an imported archive start its commands and save outside of its project, in this run and later ones.
    #[arg(long)]
    allow_programs: bool,
    /// Options that stages are from, where hopmap wrote the pipeline for this call: the user has typed its commands.
    #[arg(skip)]
    own: Option<StageOptions>,
    #[command(flatten)]
    wait: WaitArguments,
    #[command(flatten)]
    lock: LockArguments,
}

/// A time in which something can run.
pub(super) fn some_time(text: &str) -> Result<Duration, String> {
    let time = duration(text)?;
    if time.is_zero() { Err("must be longer than 0 s".to_owned()) } else { Ok(time) }
}

/// A fraction of a run time: `2%` or `0.02`.
pub(super) fn gain(text: &str) -> Result<f64, String> {
    let (number, unit) =
        text.trim().strip_suffix('%').map_or((text.trim(), 1.0), |text| (text.trim_end(), 0.01));
    let gain = number.parse::<f64>().map(|number| number * unit);
    gain.ok().filter(|gain| (0.0..=1.0).contains(gain)).ok_or_else(|| "give 2% or 0.02".to_owned())
}

/// How another command runs the pipeline that it wrote.
#[derive(Debug, Default)]
pub(super) struct Request {
    /// When the run has to end.
    pub(super) end: Option<Instant>,
    /// Gain below which no placement is searched.
    pub(super) worth: Option<f64>,
    /// Whether there is no HTML report.
    pub(super) no_report: bool,
}

/// Runs a pipeline that hopmap wrote for this call.
pub(super) fn own(
    pipeline: PipelineArguments,
    store: StoreArguments,
    options: &StageOptions,
    &Request { end, worth, no_report }: &Request,
    output: Output,
) -> Result {
    let own = Some(options.clone());
    let arguments = Arguments { pipeline, store, end, worth, no_report, own, ..Default::default() };
    main(&arguments, output)
}

pub(crate) fn main(arguments: &Arguments, output: Output) -> Result {
    let request = arguments.pipeline.request()?;
    let mut pipeline = request.open()?;
    if arguments.worth.is_some() && !has_bound(&pipeline) {
        let message = format!("`{}` has no bound that `--worth` could judge by", pipeline.name);
        return refuse(message, "add a stage predict/bound, and connect it to `bound` of the mapper");
    }
    let root = arguments.store.root(&arguments.pipeline)?;
    check_report(arguments, &pipeline, &root)?;
    let mut locked = arguments.lock.before_run(&request, &pipeline, &root, output)?;
    let mut writer = match arguments.wait.writer(&root, &format!("run {}", pipeline.name)) {
        Ok(writer) => writer,
        Err(failure) => {
            let asked = Asked { arguments, request, pipeline, locked };
            return up_to_date(asked, &root, output)
                .unwrap_or_else(|missing| Err(with_hint(failure, &missing)));
        }
    };
    if arguments.wait.waits() {
        // Files may have come or changed meanwhile.
        pipeline = request.open()?;
        locked = arguments.lock.before_run(&request, &pipeline, &root, output)?;
    }
    let mut store = Store::load(&root)?;
    summary::warn(&pipeline, &store, output);
    let accepted = arguments.gates.prepare(&mut pipeline, &store)?;
    engine::check_saves(&pipeline, &mut store)?;
    let limits = Limits {
        jobs: arguments.jobs.map_or_else(all_cores, usize::from),
        memory: arguments.memory.or_else(engine::memory),
        deadline: arguments.end.or_else(|| Instant::now().checked_add(arguments.deadline?)),
        fail_fast: arguments.fail_fast && !arguments.keep_going,
        worth: arguments.worth,
    };
    engine::check_memory(&pipeline, &mut store, limits.memory).map_err(Failure::usage)?;
    match ImportedProject::of(&request.folder).filter(|_| arguments.own.is_none()) {
        Some(project) if arguments.allow_programs => project.allow().map_err(StoreError::from)?,
        Some(_) => consent::ask(&request.folder, &pipeline, &mut store).map_err(Failure::usage)?,
        None => {}
    }
    request.remember(&root).map_err(StoreError::from)?;
    let cancelled = on_interrupt()?;
    let progress = Progress::new(output, &pipeline, limits.jobs);
    let mut report = engine::run(&pipeline, &mut store, &mut writer, limits, &cancelled, &progress)?;
    progress.finish();
    let before = report.exit_code();
    let unjudged = gates::judge(&pipeline, &mut report, &accepted);
    let is_held = pipeline.holds_saves() && !(unjudged.is_none() && report.may_save());
    if is_held {
        engine::hold_back(&pipeline, &mut store, &mut report);
    } else if pipeline.holds_saves() {
        engine::save_all(&pipeline, &mut store, &mut writer, &mut report)?;
    }
    summary::print_errors(&pipeline, &report, arguments.own.as_ref(), output);
    if let Some(folder) = report.folder.as_deref().filter(|_| report.exit_code() != before) {
        engine::ended_otherwise(folder, report.seconds, report.exit_code())?;
    }
    if let Some(folder) = &report.folder {
        lock::Request { jobs: Some(limits.jobs), ..request.clone() }
            .write(folder)
            .map_err(StoreError::from)?;
    }
    if let Some(count) = arguments.keep_runs {
        engine::keep_runs(&store, &writer, count as usize)?;
    }
    let asked = Asked { arguments, request, pipeline, locked };
    conclude(&asked, &mut store, Some((&mut writer, is_held)), (report, unjudged), output)
}

/// Refuses a report that could not be written in the end.
fn check_report(arguments: &Arguments, pipeline: &Pipeline, root: &Path) -> Result<()> {
    let Some(path) = &arguments.report else { return Ok(()) };
    let place = working_directory()?.join(path);
    Written::Report.check_place(&place)?;
    only_of_these_parameters(&place, pipeline, &Store::load(root)?, "--report")
}

/// Refuses to replace a report of other parameters.
fn only_of_these_parameters(place: &Path, pipeline: &Pipeline, store: &Store, option: &str) -> Result<()> {
    if !report::is_of_others(place, pipeline, store) {
        return Ok(());
    }
    let message = format!("{} is a report of other parameters or another pipeline", shown(place));
    refuse(message, format!("name another file with {option}, or remove this one"))
}

/// Whether a search of the pipeline depends on a bound.
fn has_bound(pipeline: &Pipeline) -> bool {
    pipeline.cells.iter().flat_map(|cell| &cell.needs).any(|need| need.port.name == BOUND_PORT)
}

/// What a run was asked for.
struct Asked<'a> {
    arguments: &'a Arguments,
    request: lock::Request,
    pipeline: Pipeline,
    locked: Option<Lock>,
}

/// A run with nothing to do only reads: it needs no lock, and a store that cannot be written will do. If there is something to do,
/// gives the saved files that are missing, if that is all.
fn up_to_date(mut asked: Asked<'_>, root: &Path, output: Output) -> Result<Result, Vec<PathBuf>> {
    if on_interrupt().map_err(|_| Vec::new())?.load(Ordering::Relaxed) {
        return Err(Vec::new());
    }
    let mut store = Store::load(root).map_err(|_| Vec::new())?;
    let pipeline = &mut asked.pipeline;
    let accepted = asked.arguments.gates.prepare(pipeline, &store).map_err(|_| Vec::new())?;
    engine::check_saves(pipeline, &mut store).map_err(|_| Vec::new())?;
    let mut report = engine::plan(pipeline, &mut store);
    let unjudged = gates::judge(pipeline, &mut report, &accepted);
    if pipeline.holds_saves() && !report.may_save() {
        engine::hold_back(pipeline, &mut store, &mut report);
    }
    if unjudged.is_some() || report.cells.iter().any(|settled| settled.state != State::Cached) {
        return Err(Vec::new());
    }
    let saved = report.cells.iter().flat_map(|settled| &settled.saved);
    let missing: Vec<PathBuf> = saved.filter(|saved| saved.written).map(|saved| saved.path.clone()).collect();
    if !missing.is_empty() {
        return Err(missing);
    }
    summary::warn(pipeline, &store, output);
    Ok(conclude(&asked, &mut store, None, (report, unjudged), output))
}

/// Says why a run needs a store that cannot be written, if all that is to do is saving files again.
fn with_hint(mut failure: Failure, missing: &[PathBuf]) -> Failure {
    if missing.is_empty() || failure.exit != Exit::Failed || failure.reports.is_empty() {
        return failure;
    }
    let (first, more) = summary::first_of(missing.iter(), summary::MOST_SHOWN);
    let mut files = first.into_iter().map(|path| shown(path)).collect::<Vec<_>>().join(", ");
    if more > 0 {
        files.push_str(&format!(" and {more} more"));
    }
    let source = failure.reports.remove(0).into();
    failure.reports.insert(0, SystemError::ReadOnlyStore { files, source }.into());
    failure
}

/// Answers the questions of the pipeline, writes the report, and says how the run ended. Without a writer the store is not changed.
fn conclude(
    asked: &Asked<'_>,
    store: &mut Store,
    writer: Option<(&mut Writer, bool)>,
    (mut report, unjudged): (RunReport, Option<Problems>),
    output: Output,
) -> Result {
    let Asked { arguments, request, pipeline, locked } = asked;
    let may_write = writer.is_some();
    let writer = writer.filter(|(_, is_held)| !is_held).map(|(writer, _)| writer);
    let unanswered = summary::ask(pipeline, store, writer, &mut report);
    let written = report_of(arguments, pipeline, store, &report, may_write);
    if output.is_json() {
        output.json(&summary::as_json(pipeline, store, &report));
    }
    summary::print(pipeline, store, &report, output);
    if let Ok(Some(place)) = &written {
        output.line(format!("  {:<12} {}", "report", shown(place)));
    }
    summary::print_asked(&report, output);
    if unanswered.is_none() {
        summary::warn_of_file(pipeline, output);
    }
    gates::print(pipeline, &report, output);
    summary::print_held(pipeline, &report, output);
    written?;
    let exit = match unanswered {
        // Where a stage failed, the tables of its artifacts may be missing, which is not an error of the query.
        Some(problems) if report.is_success() => return Err(problems.into()),
        _ if matches!(report.exit_code(), 0 | 3) => gates::exit(unjudged, &report)?,
        _ => Exit::of_code(report.exit_code()),
    };
    match exit {
        Exit::Done => arguments.lock.after_run(locked.as_ref(), request, pipeline, store, output),
        exit => Ok(exit),
    }
}

/// The HTML report of these results: written, unless the one in its place is of the same results. None if there is none.
fn report_of(
    arguments: &Arguments,
    pipeline: &Pipeline,
    store: &Store,
    report: &RunReport,
    may_write: bool,
) -> Result<Option<PathBuf>> {
    if arguments.no_report {
        return Ok(None);
    }
    let place = match &arguments.report {
        Some(path) => working_directory()?.join(path),
        None => report::place(store, pipeline),
    };
    if report.folder.is_none() && report::is_current(&place, pipeline, store, report) {
        return Ok(Some(place));
    }
    if !may_write && arguments.report.is_none() {
        return Ok(None);
    }
    // Another run may have written there meanwhile.
    check_report(arguments, pipeline, store.root())?;
    if arguments.report.is_none() {
        report::keep_of_others(&place, pipeline).map_err(Report::from)?;
    }
    report::write(&place, pipeline, store, report, &shown)?;
    Written::mark(&place);
    Ok(Some(place))
}

/// Arguments of `report`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hopmap report pipelines/place.toml --out place.html
  hopmap report sweep.toml --timeline sweep.json        # open it in https://ui.perfetto.dev")]
pub(crate) struct ReportArguments {
    #[command(flatten)]
    pipeline: PipelineArguments,
    #[command(flatten)]
    store: StoreArguments,
    #[command(flatten)]
    gates: GateArguments,
    /// Write the report to this file [default: reports/NAME.html in the store].
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Write the timeline of the last run for ui.perfetto.dev instead of the report, or with --out in addition to it.
    #[arg(long, value_name = "FILE")]
    timeline: Option<PathBuf>,
}

pub(crate) fn report(arguments: &ReportArguments, output: Output) -> Result {
    let (mut pipeline, mut store) = opened(&arguments.pipeline, &arguments.store, output)?;
    let accepted = arguments.gates.prepare(&mut pipeline, &store)?;
    let timeline = arguments.timeline.as_ref();
    let timeline = timeline.map(|path| write_timeline(path, &pipeline, &store)).transpose()?;
    if let (Some(timeline), None) = (&timeline, &arguments.out) {
        output.json(&json!({ "timeline": timeline }));
        output.line(shown(timeline));
        return Ok(Exit::Done);
    }
    let mut planned = engine::plan(&pipeline, &mut store);
    if let Some(problems) = gates::judge(&pipeline, &mut planned, &accepted) {
        return Err(problems.into());
    }
    let problems = summary::ask(&pipeline, &mut store, None, &mut planned);
    if problems.is_none() {
        summary::warn_of_file(&pipeline, output);
    }
    let place = match &arguments.out {
        Some(out) => working_directory()?.join(out),
        None => report::place_of_parameters(&store, &pipeline),
    };
    if arguments.out.is_some() {
        Written::Report.check_place(&place)?;
    }
    only_of_these_parameters(&place, &pipeline, &store, "--out")?;
    report::write(&place, &pipeline, &store, &planned, &shown)?;
    Written::mark(&place);
    output.json(&json!({ "report": place, "timeline": timeline }));
    if let Some(timeline) = &timeline {
        output.line(shown(timeline));
    }
    output.line(shown(&place));
    match problems {
        Some(problems) if planned.is_success() => Err(problems.into()),
        _ => Ok(Exit::Done),
    }
}

/// A pipeline with the parameters that are given, else with those of its last run; and its store.
fn opened(pipeline: &PipelineArguments, store: &StoreArguments, output: Output) -> Result<(Pipeline, Store)> {
    let root = store.root(pipeline)?;
    Ok((pipeline.as_last_run(&root, output)?.open()?, Store::load(&root)?))
}

/// Writes the last run of the pipeline as trace events.
fn write_timeline(path: &Path, pipeline: &Pipeline, store: &Store) -> Result<PathBuf> {
    let place = working_directory()?.join(path);
    Written::Timeline.check_place(&place)?;
    let Some(run) = report::latest_run(store, pipeline) else {
        let message = format!("no run of `{}` is in {}", pipeline.name, shown(store.root()));
        return refuse(message, "run it first: hopmap run PIPELINE");
    };
    let text = report::chrome_trace(&run).to_string() + "\n";
    replace_file(&place, text.as_bytes()).map_err(Report::from)?;
    Written::mark(&place);
    Ok(place)
}

/// Arguments of `plan`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  hopmap plan pipelines/place.toml --shape tree:2x16x40")]
pub(crate) struct PlanArguments {
    #[command(flatten)]
    pipeline: PipelineArguments,
    #[command(flatten)]
    store: StoreArguments,
    /// List every cell of stages with many cells.
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    gates: GateArguments,
    /// Memory limit of the run, such as 8GB [default: all of this machine].
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    memory: Option<u64>,
}

pub(crate) fn plan(arguments: &PlanArguments, output: Output) -> Result {
    let (mut pipeline, mut store) = opened(&arguments.pipeline, &arguments.store, output)?;
    summary::warn(&pipeline, &store, output);
    summary::warn_of_file(&pipeline, output);
    let accepted = arguments.gates.prepare(&mut pipeline, &store)?;
    engine::check_saves(&pipeline, &mut store)?;
    let memory = arguments.memory.or_else(engine::memory);
    engine::check_memory(&pipeline, &mut store, memory).map_err(Failure::usage)?;
    let mut report = engine::plan(&pipeline, &mut store);
    let problems = gates::judge(&pipeline, &mut report, &accepted);
    if pipeline.holds_saves() && !report.may_save() {
        engine::hold_back(&pipeline, &mut store, &mut report);
    }
    if output.is_json() {
        output.json(&summary::as_json(&pipeline, &store, &report));
    }
    for stage in summary::stages(&pipeline, &report) {
        match stage.cells.len() > summary::MOST_LISTED && !arguments.all {
            true => stage.print_counts(output),
            false => stage.cells.iter().for_each(|(cell, settled)| list(&pipeline, cell, settled, output)),
        }
    }
    summary::print_errors(&pipeline, &report, None, output);
    let (name, all) = (&pipeline.name, pipeline.cells.len());
    output.line(match (report.count(State::WouldRun), report.count(State::Waits)) {
        (0, 0) if report.is_success() => format!("{name}: nothing to do"),
        (run, 0) => format!("{name}: {run} of {all} would run"),
        (run, waits) => format!("{name}: {run} of {all} would run, {waits} depend on their results"),
    });
    gates::print(&pipeline, &report, output);
    summary::print_held(&pipeline, &report, output);
    let failed =
        report.cells.iter().any(|settled| matches!(settled.state, State::Failed | State::Infeasible));
    if failed { Ok(Exit::Failed) } else { gates::exit(problems, &report) }
}

fn list(pipeline: &Pipeline, cell: &Cell, settled: &Settled, output: Output) {
    output.line(summary::cell_line(pipeline, cell, settled));
    for saved in settled.saved.iter().filter(|saved| saved.written) {
        output.line(format!("  restores   {}", shown(&saved.path)));
    }
}

/// Arguments of `why`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hopmap why placement pipelines/place.toml
  hopmap why 'placement[seed=3]' sweep.toml")]
pub(crate) struct WhyArguments {
    /// Stage, or a cell such as `placement[seed=3]`, with enough keys to identify it.
    stage: String,
    #[command(flatten)]
    pipeline: PipelineArguments,
    #[command(flatten)]
    store: StoreArguments,
}

pub(crate) fn why(arguments: &WhyArguments, output: Output) -> Result {
    let (pipeline, mut store) = opened(&arguments.pipeline, &arguments.store, output)?;
    let cells = locate::in_pipeline(&arguments.stage, &pipeline)?;
    if cells.is_empty() {
        let file = shown(pipeline.source.name().as_ref());
        return Err(locate::unknown_stage(&file, &pipeline, &arguments.stage).into());
    }
    let report = engine::plan(&pipeline, &mut store);
    let as_json = |&index: &usize| as_json(&pipeline.cells[index], &report.cells[index]);
    output.json(&cells.iter().map(as_json).collect::<Vec<_>>());
    if cells.len() > summary::MOST_LISTED {
        for stage in summary::stages(&pipeline, &report).iter().filter(|stage| stage.name == arguments.stage)
        {
            stage.print_counts(output);
        }
        let would_run = cells.iter().find(|&&index| report.cells[index].state != State::Cached);
        let example = &pipeline.cells[*would_run.unwrap_or(&cells[0])].name;
        let [cell, file] = [example, &arguments.pipeline.pipeline].map(|word| shell_word(word));
        output.line(format!("one cell: hopmap why {cell} {file}"));
        let errors = cells.iter().filter_map(|&index| report.cells[index].error.as_ref());
        errors.take(summary::MOST_SHOWN).for_each(|error| output.error(error));
    } else {
        for &index in &cells {
            explain(&pipeline, &pipeline.cells[index], &report.cells[index], output);
        }
    }
    let has_failed = cells.iter().any(|&index| report.cells[index].state == State::Failed);
    Ok(if has_failed { Exit::Failed } else { Exit::Done })
}

fn explain(pipeline: &Pipeline, cell: &Cell, settled: &Settled, output: Output) {
    let other = settled.because_of.map_or("", |index| pipeline.cells[index].name.as_str());
    let verdict = match settled.state {
        State::WouldRun => "would run:".to_owned(),
        State::Waits => format!("depends on the result of `{other}`"),
        State::Blocked => format!("cannot run: `{other}` failed or is infeasible"),
        State::Infeasible => "is infeasible; the proof is in the store".to_owned(),
        // Its error is printed below.
        State::Failed => "cannot run".to_owned(),
        _ => "up to date: nothing it depends on has changed".to_owned(),
    };
    output.line(format!("{} ({}) {verdict}", cell.name, cell.entry.kind));
    settled.reasons.iter().for_each(|reason| output.line(format!("  {reason}")));
    if let Some(key) = &settled.key {
        output.line(format!("  key {}", engine::short(key)));
    }
    for (port, record) in settled.outputs.iter() {
        output.line(format!("  output {port} {}", engine::short(&record.digest)));
    }
    if let Some(error) = &settled.error {
        output.error(error);
    }
}

fn as_json(cell: &Cell, settled: &Settled) -> serde_json::Value {
    json!({
        "cell": cell.id,
        "kind": cell.entry.kind,
        "state": settled.state,
        "reasons": settled.reasons,
        "key": settled.key,
        "error": settled.error.as_ref().map(super::output::message),
        "code": settled.error.as_ref().and_then(super::output::code),
    })
}

/// Arguments of `check`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  hopmap check pipelines/place.toml")]
pub(crate) struct CheckArguments {
    #[command(flatten)]
    pipeline: PipelineArguments,
    #[command(flatten)]
    store: StoreArguments,
}

pub(crate) fn check(arguments: &CheckArguments, output: Output) -> Result {
    let pipeline = arguments.pipeline.open()?;
    summary::warn_of_file(&pipeline, output);
    let options = Arguments::augment_args(clap::Command::new("run"));
    let parameters = of_pipeline(&arguments.pipeline.pipeline).unwrap_or_default();
    for Parameter { name, .. } in parameters.iter().filter(|parameter| is_option(&parameter.name, &options)) {
        output.note(format!(
            "warning: the parameter `{name}` has the name of an option: only `-p {name}=VALUE` sets it"
        ));
    }
    check_saves(&pipeline, &mut Store::load(&arguments.store.root(&arguments.pipeline)?)?)?;
    let missing = missing_programs(&pipeline);
    if !missing.is_empty() {
        return Err(Failure::new(Exit::Failed, missing));
    }
    let (stages, cells, gates) = (pipeline.stages().len(), pipeline.cells.len(), pipeline.gates.len());
    output.json(&json!({ "pipeline": pipeline.name, "stages": stages, "cells": cells, "gates": gates }));
    let cells = if cells == stages { String::new() } else { format!(", {}", counted(cells, "cell")) };
    let gates = if gates == 0 { String::new() } else { format!(", {}", counted(gates, "gate")) };
    let stages = counted(stages, "stage");
    output.line(format!("{} is valid: {stages}{cells}{gates}", pipeline.source.name()));
    Ok(Exit::Done)
}

/// Arguments of `graph`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  hopmap graph pipelines/place.toml | dot -Tsvg > place.svg")]
pub(crate) struct GraphArguments {
    #[command(flatten)]
    pipeline: PipelineArguments,
    #[command(flatten)]
    store: StoreArguments,
}

pub(crate) fn graph(arguments: &GraphArguments, output: Output) -> Result {
    let root = arguments.store.root(&arguments.pipeline)?;
    let pipeline = arguments.pipeline.as_last_run(&root, output)?.open()?;
    if output.is_json() {
        let edge = |(from, to, port)| json!({ "from": from, "to": to, "port": port });
        let edges: Vec<_> = edges(&pipeline).into_iter().map(edge).collect();
        let cell = |cell: &Cell| json!({ "cell": cell.id, "kind": cell.entry.kind });
        let cells: Vec<_> = pipeline.cells.iter().map(cell).collect();
        output.json(&json!({ "pipeline": pipeline.name, "cells": cells, "edges": edges }));
    } else {
        output.raw(dot(&pipeline).as_bytes());
    }
    Ok(Exit::Done)
}

/// Cells that give, cells that take, and the port.
fn edges(pipeline: &Pipeline) -> Vec<(&str, &str, &str)> {
    let mut edges = Vec::new();
    for cell in &pipeline.cells {
        for need in &cell.needs {
            for origin in &need.origins {
                let from = origin.cells().iter().map(|&index| pipeline.cells[index].id.as_str());
                edges.extend(from.map(|from| (from, cell.id.as_str(), need.port.name)));
            }
        }
        let named = cell.named_artifacts().map(|(index, _)| pipeline.cells[index].id.as_str());
        edges.extend(named.map(|from| (from, cell.id.as_str(), "path")));
    }
    edges
}

fn dot(pipeline: &Pipeline) -> String {
    let quote = |text: &str| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
    let name = quote(&pipeline.name);
    let mut text = format!("digraph {name} {{\n  rankdir=LR\n  node [shape=box, fontname=\"sans-serif\"]\n");
    for cell in &pipeline.cells {
        let label = quote(&format!("{}\n{}", cell.name, cell.entry.kind)).replace('\n', "\\n");
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {} [label={label}]", quote(&cell.id));
    }
    for (from, to, port) in edges(pipeline) {
        let _ = writeln!(text, "  {} -> {} [label={}]", quote(from), quote(to), quote(port));
    }
    text.push_str("}\n");
    text
}
