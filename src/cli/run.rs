//! `hopmap run`: run all out-of-date stages.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use clap::Args;
use hopmap_command::{Exit, Failure, all_cores, refuse, shown};
use hopmap_model::BOUND_PORT;
use miette::Report;

use super::fault::SystemError;
use super::gates::{self, GateArguments};
use super::lock::LockArguments;
use super::named::Written;
use super::open::{
    PipelineArguments, StoreArguments, WaitArguments, duration, on_interrupt, working_directory,
};
use super::output::{Output, Result};
use super::progress::Progress;
use super::report::only_of_these_parameters;
use super::{consent, summary};
use crate::archive::ImportedProject;
use crate::engine::{self, Limits, RunReport, State, Store, StoreError, Writer};
use crate::lock::{self, Lock};
use crate::pipeline::{Pipeline, bytes};
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
