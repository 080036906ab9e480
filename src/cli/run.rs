//! `hopmap run`: run what has to run. `hopmap report`: the HTML report of what is in the store, and the timeline of its last run.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use hopmap_command::{Exit, Failure, Mistake, all_cores, shown};
use hopmap_durable::replace_file;
use miette::Report;

use super::gates::GateArguments;
use super::lock::LockArguments;
use super::open::{
    PipelineArguments, StoreArguments, WaitArguments, duration, on_interrupt, place_or, working_directory,
};
use super::output::Output;
use super::progress::Progress;
use super::{gates, summary};
use crate::engine::{Limits, RunReport, Store, StoreError};
use crate::lock::Request;
use crate::pipeline::{Pipeline, bytes};
use crate::{engine, report};

/// Arguments of `run`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hopmap run place -p trace=lu/traces.otf2 -p shape=tree:2x16x40
  hopmap run sweep.toml -j 8 --deadline 10m
  hopmap run batch.toml --quiet --wait 30m --keep-runs 100      # from cron
  hopmap run place.toml --lock      # and write place.lock
  hopmap run place.toml --locked    # only if nothing differs from place.lock, and end with 3 if a result does")]
pub(crate) struct Arguments {
    #[command(flatten)]
    pipeline: PipelineArguments,
    #[command(flatten)]
    store: StoreArguments,
    #[command(flatten)]
    gates: GateArguments,
    /// Cores to use in all [default: all of this machine].
    #[arg(short, long, value_name = "CORES", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// Memory to use in all, such as 8GB [default: all of this machine].
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    memory: Option<u64>,
    /// Time for the whole run; stages that search deliver the best they have by then.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    deadline: Option<Duration>,
    /// Where to write the HTML report [default: reports/NAME.html in the store].
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Write no HTML report.
    #[arg(long, conflicts_with = "report")]
    no_report: bool,
    /// Go on with what does not need a failed stage (the default).
    #[arg(long, overrides_with = "fail_fast")]
    keep_going: bool,
    /// Start nothing more once a stage has failed.
    #[arg(long)]
    fail_fast: bool,
    /// Remove what is kept of older runs than this many (journals and logs; results stay).
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    keep_runs: Option<u32>,
    #[command(flatten)]
    wait: WaitArguments,
    #[command(flatten)]
    lock: LockArguments,
}

pub(crate) fn main(arguments: &Arguments, output: Output) -> Result<Exit, Failure> {
    let request = arguments.pipeline.request()?;
    let mut pipeline = request.open()?;
    let root = arguments.store.root(&arguments.pipeline)?;
    let mut locked = arguments.lock.before_run(&request, &pipeline, &root, output)?;
    let mut writer = arguments.wait.writer(&root, &format!("run {}", pipeline.name))?;
    if arguments.wait.waits() {
        // Files may have come or changed meanwhile.
        pipeline = request.open()?;
        locked = arguments.lock.before_run(&request, &pipeline, &root, output)?;
    }
    let mut store = Store::load(&root)?;
    summary::damaged_lines(&store, output);
    summary::deprecated(&pipeline, output);
    summary::namesakes(&pipeline, &store, output);
    let accepted = arguments.gates.prepare(&mut pipeline, &store)?;
    engine::check_saves(&pipeline, &mut store)?;
    let limits = Limits {
        jobs: arguments.jobs.map_or_else(all_cores, usize::from),
        memory: arguments.memory.or_else(engine::memory),
        deadline: arguments.deadline,
        fail_fast: arguments.fail_fast && !arguments.keep_going,
    };
    engine::check_memory(&pipeline, &mut store, limits.memory).map_err(Failure::usage)?;
    let cancelled = on_interrupt()?;
    let progress = Progress::new(output, &pipeline, limits.jobs);
    let mut report = engine::run(&pipeline, &mut store, &mut writer, limits, &cancelled, &progress)?;
    progress.finish();
    let before = report.exit_code();
    let unjudged = gates::judge(&pipeline, &mut report, &accepted);
    let is_held = pipeline.holds_saves() && !(unjudged.is_none() && report.may_save());
    match is_held {
        true => engine::hold_back(&pipeline, &mut store, &mut report),
        false if pipeline.holds_saves() => engine::save_all(&pipeline, &mut store, &mut writer, &mut report)?,
        false => {}
    }
    summary::print_errors(&report, output);
    if let Some(folder) = report.folder.as_deref().filter(|_| report.exit_code() != before) {
        engine::ended_otherwise(folder, report.seconds, report.exit_code())?;
    }
    if let Some(folder) = &report.folder {
        Request { jobs: Some(limits.jobs), ..request.clone() }.write(folder).map_err(StoreError::from)?;
    }
    if let Some(count) = arguments.keep_runs {
        engine::keep_runs(&store, &writer, count as usize)?;
    }
    let unanswered = summary::ask(&pipeline, &mut store, Some(&mut writer).filter(|_| !is_held), &mut report);
    let place = write_report(arguments, &pipeline, &store, &report)?;
    if output.is_json() {
        output.json(&summary::as_json(&pipeline, &store, &report));
    }
    summary::print(&pipeline, &store, &report, output);
    if let Some(place) = place {
        output.line(format!("  {:<12} {}", "report", shown(&place)));
    }
    summary::print_asked(&report, output);
    gates::print(&pipeline, &report, output);
    summary::print_held(&report, output);
    let exit = match unanswered {
        // Where a stage failed, the tables of its artifacts may be missing, and that is no fault of the question.
        Some(problems) if report.is_success() => return Err(problems.into()),
        _ if matches!(report.exit_code(), 0 | 3) => gates::exit(unjudged, &report)?,
        _ => Exit::of_code(report.exit_code()),
    };
    match exit {
        Exit::Done => arguments.lock.after_run(locked.as_ref(), &request, &pipeline, &mut store, output),
        exit => Ok(exit),
    }
}

/// Writes the report, unless the one that is there says the same.
fn write_report(
    arguments: &Arguments,
    pipeline: &Pipeline,
    store: &Store,
    report: &RunReport,
) -> Result<Option<PathBuf>, Failure> {
    if arguments.no_report {
        return Ok(None);
    }
    let place = place_or(arguments.report.as_ref(), || crate::report::place(store, pipeline))?;
    if report.folder.is_some() || !crate::report::is_current(&place, pipeline, store, report) {
        crate::report::write(&place, pipeline, store, report, &shown)?;
    }
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
    /// File to write [default: reports/NAME.html in the store].
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Write when the cells of the last run ran, for ui.perfetto.dev, instead of the report; with --out both.
    #[arg(long, value_name = "FILE")]
    timeline: Option<PathBuf>,
}

pub(crate) fn report(arguments: &ReportArguments, output: Output) -> Result<Exit, Failure> {
    let mut pipeline = arguments.pipeline.open()?;
    let mut store = Store::load(&arguments.store.root(&arguments.pipeline)?)?;
    let accepted = arguments.gates.prepare(&mut pipeline, &store)?;
    let timeline = write_timeline(arguments, &pipeline, &store)?;
    if let (Some(timeline), None) = (&timeline, &arguments.out) {
        if output.is_json() {
            output.json(&serde_json::json!({ "timeline": timeline }));
        }
        output.line(shown(timeline));
        return Ok(Exit::Done);
    }
    let mut planned = engine::plan(&pipeline, &mut store);
    if let Some(problems) = gates::judge(&pipeline, &mut planned, &accepted) {
        return Err(problems.into());
    }
    let problems = summary::ask(&pipeline, &mut store, None, &mut planned);
    let place = place_or(arguments.out.as_ref(), || report::place(&store, &pipeline))?;
    report::write(&place, &pipeline, &store, &planned, &shown)?;
    if output.is_json() {
        output.json(&serde_json::json!({ "report": place, "timeline": timeline }));
    }
    if let Some(timeline) = &timeline {
        output.line(shown(timeline));
    }
    output.line(shown(&place));
    match problems {
        Some(problems) if planned.is_success() => Err(problems.into()),
        _ => Ok(Exit::Done),
    }
}

/// Writes the last run of the pipeline as trace events, if that was asked for.
fn write_timeline(
    arguments: &ReportArguments,
    pipeline: &Pipeline,
    store: &Store,
) -> Result<Option<PathBuf>, Failure> {
    let Some(path) = &arguments.timeline else { return Ok(None) };
    let place = working_directory()?.join(path);
    let Some(run) = report::latest_run(store, pipeline) else {
        let message = format!("no run of `{}` is in {}", pipeline.name, shown(store.root()));
        return Err(Mistake::new(message, "run it first: hopmap run PIPELINE").into());
    };
    let text = report::chrome_trace(&run).to_string() + "\n";
    replace_file(&place, text.as_bytes()).map_err(Report::from)?;
    Ok(Some(place))
}
