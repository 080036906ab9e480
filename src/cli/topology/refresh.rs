//! `hopmap topology refresh`: run a pipeline for the machine that it gives, compare, publish, accept.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use hopmap_artifact::{Codec, Folder};
use hopmap_changes::{Change, Machine, Missing, Thresholds};
use hopmap_command::{Exit, Failure, all_cores, holder, refuse, shown};
use hopmap_durable::{Staging, replace_file};
use hopmap_model::{Artifact, InternalError, Measurements, SystemGraph};
use hopmap_text::counted;
use jiff::Timestamp;
use miette::Report;
use serde_json::json;

use crate::cli::consent;
use crate::cli::named::{Written, is_in_store};
use crate::cli::open::{PipelineArguments, duration, on_interrupt, working_directory};
use crate::cli::output::{Output, Result};
use crate::cli::progress::Progress;
use crate::engine::{self, Limits, Policy, RunReport, State, Store, StoreError, Writer};
use crate::pipeline::{Cell, Pipeline};
use crate::refresh::{
    Consumer, Look, LookSettings, Outcome, Publication, Record, RefreshError, Retention, Settings, Updated,
    check, exposition, last_success, read_machine, read_records, refresh,
};
use crate::report;

/// Arguments of `topology refresh`.
#[derive(Debug, Args)]
#[command(after_help = "\
DIR/current is a link to the published snapshot, replaced when a new one is complete and on disk. If the machine is unchanged, \
nothing is published and no consumer runs. A host that does not answer keeps its data and is marked as down.

Examples:
  hopmap topology refresh --hosts 'node[01-16]' --publish /var/lib/hopmap --quiet   # from cron
  hopmap topology refresh fabric.toml --publish topology --consumer 'sh /etc/slurm/new-topology'
  hopmap topology refresh --hosts 'node[01-16]' --publish topology --dry-run --exit-code
  hopmap topology refresh --hosts 'node[01-16]' --health")]
#[expect(clippy::struct_excessive_bools, reason = "one for each flag of the command")]
pub(crate) struct Arguments {
    /// Pipeline file, or the name of a bundled pipeline.
    #[arg(default_value = "topology-refresh")]
    pipeline: String,
    /// Set a parameter of the pipeline; paths are relative to the working directory.
    #[arg(short = 'p', long = "param", value_name = "NAME=VALUE")]
    parameters: Vec<String>,
    #[command(flatten)]
    publishing: PublishArguments,
    /// Publish the system graph of this stage [default: the last stage that has one].
    #[arg(long, value_name = "NAME")]
    stage: Option<String>,
    /// Accept and publish the current machine without a comparison.
    #[arg(long, conflicts_with_all = ["dry_run", "health"])]
    baseline: bool,
    /// Show differences from the published topology, and write nothing.
    #[arg(short = 'n', long, conflicts_with = "health")]
    dry_run: bool,
    /// Show faults of the machine, independent of what is published, and write nothing.
    #[arg(long)]
    health: bool,
    /// Exit with code 3 if something differs or, with --health, is faulty.
    #[arg(long)]
    exit_code: bool,
    #[command(flatten)]
    comparison: CompareArguments,
    #[command(flatten)]
    consumer: ConsumerArguments,
    /// Keep the newest COUNT entries of the history.
    #[arg(long, value_name = "COUNT", default_value_t = 100)]
    keep_entries: usize,
    /// Keep entries of the history for TIME, such as 90d [default: no limit].
    #[arg(long, value_name = "TIME", value_parser = duration)]
    keep_for: Option<Duration>,
    /// Do nothing if the last successful refresh is younger than TIME.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    max_age: Option<Duration>,
    /// Write metrics to this file, for the textfile collector of Prometheus' node exporter.
    #[arg(long, value_name = "FILE.prom")]
    metrics: Option<PathBuf>,
    /// Number of cores to use [default: all].
    #[arg(short, long, value_name = "CORES", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// Time limit of the whole pipeline.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    deadline: Option<Duration>,
}

/// Folders of published topologies and of results.
#[derive(Debug, Args)]
struct PublishArguments {
    /// Folder of published topologies.
    #[arg(long, value_name = "DIR", required_unless_present = "health")]
    publish: Option<PathBuf>,
    /// Folder of the store [default: state/store in the publish folder; none with --dry-run and --health].
    #[arg(long, value_name = "DIR")]
    store: Option<PathBuf>,
}

/// What counts as a change, and which changes are published.
#[derive(Debug, Args)]
struct CompareArguments {
    /// Ignore relative changes of a latency, bandwidth or cost up to this (0.3 is 30 %).
    #[arg(long, value_name = "FRACTION", default_value = "0.3", value_parser = drift)]
    drift: f64,
    /// Repeat a measurement up to COUNT times to confirm a change.
    #[arg(long, value_name = "COUNT", default_value_t = 2, value_parser = clap::value_parser!(u32).range(..=100))]
    confirm: u32,
    /// State of hosts that an imported source no longer lists. After a measurement, hosts that were not requested are always gone.
    #[arg(long, value_enum, default_value_t = MissingHosts::Down)]
    missing: MissingHosts,
    /// Do not publish if hosts went down or came back and nothing else changed.
    #[arg(long)]
    ignore_down: bool,
    /// Publish only if this fraction of the hosts that were up is still up; unless it is 1, one host may always be down.
    #[arg(long, value_name = "FRACTION", default_value = "0.95", value_parser = part)]
    min_coverage: f64,
}

/// Who takes what is published.
#[derive(Debug, Args)]
struct ConsumerArguments {
    /// Run this command with `sh -c` for a new topology, with `HOPMAP_TOPOLOGY` and `HOPMAP_CHANGES` set.
    #[arg(long, value_name = "COMMAND")]
    consumer: Option<String>,
    /// Time limit of the consumer.
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = duration)]
    consumer_timeout: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum MissingHosts {
    /// Down: the host keeps its data.
    Down,
    /// Gone: the host is removed.
    Gone,
}

impl Arguments {
    fn settings(&self) -> Settings {
        Settings {
            look: self.comparison.settings(),
            consumer: self.consumer.consumer(),
            retention: Retention { entries: self.keep_entries, age: self.keep_for },
            baseline: self.baseline,
        }
    }
}

impl CompareArguments {
    fn settings(&self) -> LookSettings {
        LookSettings {
            thresholds: Thresholds { drift: self.drift, ..Thresholds::default() },
            missing: match self.missing {
                MissingHosts::Down => Missing::Down,
                MissingHosts::Gone => Missing::Gone,
            },
            ignore_down: self.ignore_down,
            confirm: self.confirm,
            min_coverage: self.min_coverage,
        }
    }
}

impl ConsumerArguments {
    fn consumer(&self) -> Option<Consumer> {
        let command = self.consumer.clone()?;
        Some(Consumer { command, limit: self.consumer_timeout })
    }
}

pub(crate) fn main(arguments: &Arguments, output: Output) -> Result {
    let working = working_directory()?;
    let publication =
        arguments.publishing.publish.as_ref().map(|folder| Publication::at(working.join(folder)));
    let published = publication.as_ref().map(Publication::root);
    if let Some(root) = published.filter(|root| is_in_store(&root.join("current"))) {
        return refuse(format!("{} is in a store", shown(root)), "publish to a folder of its own");
    }
    if let Some(file) = &arguments.metrics {
        check_metrics(&working.join(file), published)?;
    }
    let given = PipelineArguments::new(arguments.pipeline.clone(), arguments.parameters.clone());
    let request = given.request()?;
    let pipeline = request.open()?;
    let limits = Limits {
        jobs: arguments.jobs.map_or_else(all_cores, usize::from),
        memory: crate::engine::memory(),
        deadline: arguments.deadline.and_then(|time| Instant::now().checked_add(time)),
        fail_fast: true,
        worth: None,
    };
    let cancelled = on_interrupt()?;
    // Cron mails whatever is printed: what stages do is shown on a terminal, and is in the log of the store.
    let shown = if output.is_interactive() { output } else { Output::new(false, true) };
    let source =
        Source::new(&request.folder, &pipeline, arguments.stage.as_deref(), limits, &cancelled, shown)?;
    let (store, is_ours) = match (&arguments.publishing.store, &publication) {
        (Some(store), _) => (StoreFolder::Kept(working.join(store)), false),
        (None, Some(publication)) if !arguments.dry_run && !arguments.health => {
            (StoreFolder::Kept(publication.state().join("store")), true)
        }
        (None, _) => (StoreFolder::Passing(Staging::new(&std::env::temp_dir()).map_err(Report::new)?), false),
    };
    let mut look = || source.look(store.path(), is_ours);
    match &publication {
        Some(publication) if !arguments.dry_run && !arguments.health => {
            if let Some(record) = still_fresh(publication, arguments.max_age)? {
                return Ok(say_fresh(&record, output));
            }
            let holder = holder(&format!("topology refresh {}", pipeline.name));
            let updated = refresh(publication, &arguments.settings(), &holder, &cancelled, &mut look)?;
            finish(arguments, publication, updated, output)
        }
        _ => say_checked(arguments, publication.as_ref(), &mut look, output),
    }
}

/// Where the results of the pipeline are kept.
enum StoreFolder {
    Kept(PathBuf),
    /// Removed with the command: a dry run leaves nothing behind.
    Passing(Staging),
}

impl StoreFolder {
    fn path(&self) -> &Path {
        match self {
            Self::Kept(folder) => folder,
            Self::Passing(folder) => folder.path(),
        }
    }
}

/// The last success, if it is younger than `max_age` and not from the future, and its consumer has heard of it.
fn still_fresh(publication: &Publication, max_age: Option<Duration>) -> Result<Option<Record>> {
    let is_known = !publication.is_pending() && publication.current().is_ok_and(|entry| entry.is_some());
    let Some(max_age) = max_age.filter(|_| is_known) else { return Ok(None) };
    let record = last_success(publication)?;
    let age = |record: &Record| record.ended_s().map(|ended| Timestamp::now().as_second() - ended);
    let is_young = |age: i64| u64::try_from(age).is_ok_and(|age| age < max_age.as_secs());
    Ok(record.filter(|record| age(record).is_some_and(is_young)))
}

fn say_fresh(record: &Record, output: Output) -> Exit {
    output.json(&json!({ "outcome": "fresh", "last_success": record.time }));
    output.line(format!("nothing to do: the last refresh succeeded at {}", record.time));
    Exit::Done
}

fn say_checked(
    arguments: &Arguments,
    publication: Option<&Publication>,
    look: &mut Look<'_>,
    output: Output,
) -> Result {
    if let Some(publication) = publication.filter(|_| arguments.dry_run)
        && publication.current()?.is_none()
    {
        return Err(RefreshError::Nothing(publication.root().to_owned()).into());
    }
    let checked = check(publication, &arguments.settings(), look).map_err(failure)?;
    let (lines, values): (Vec<String>, Vec<_>) = match arguments.health {
        true => {
            let text = |finding: &hopmap_changes::Finding| (finding.to_string(), json!(finding));
            checked.findings.iter().map(text).unzip()
        }
        false => checked.changes.iter().map(|change| (change.to_string(), change.as_json())).unzip(),
    };
    let is_good = lines.is_empty() && (checked.is_covered || !arguments.health);
    let what = if arguments.health { "findings" } else { "changes" };
    output.json(&json!({ what: values, "coverage": checked.coverage }));
    lines.iter().for_each(|line| output.line(line));
    let (up, down) = {
        let snapshot = checked.machine.snapshot();
        let (up, down) = snapshot.hosts();
        (up.len(), down.len())
    };
    output.line(match (is_good, arguments.health) {
        (true, false) => "no changes".to_owned(),
        (true, true) => format!("healthy: {up} hosts are up"),
        (false, false) => counted(lines.len(), "change"),
        (false, true) => format!("{}, {up} hosts are up, {down} are down", counted(lines.len(), "finding")),
    });
    Ok(if is_good || !arguments.exit_code { Exit::Done } else { Exit::Different })
}

/// Prints the outcome, and writes the metrics even after a failure.
fn finish(arguments: &Arguments, publication: &Publication, updated: Updated, output: Output) -> Result {
    let Updated { record, changes, error } = updated;
    let written = match &arguments.metrics {
        Some(file) => write_metrics(&working_directory()?.join(file), publication, &record),
        None => Ok(()),
    };
    if let Err(problem) = write_report(publication) {
        output.note(format!("cannot write the report: {problem}"));
    }
    if let Some(error) = error {
        return Err(failure(error));
    }
    written?;
    let is_pending = publication.is_pending();
    output.json(&json!({
        "outcome": record.outcome,
        "entry": record.entry,
        "changes": changes.iter().map(Change::as_json).collect::<Vec<_>>(),
        "hosts": record.hosts,
        "down": record.down,
        "coverage": record.coverage,
        "pending": is_pending,
        "confirmations": record.confirmations,
        "seconds": record.seconds,
    }));
    output.line(headline(&record, publication));
    if is_pending {
        output.line(PENDING);
    }
    let has_changed = !matches!(record.outcome, Outcome::Unchanged | Outcome::Consumed | Outcome::Baseline);
    Ok(if has_changed && arguments.exit_code { Exit::Different } else { Exit::Done })
}

/// What is to be said as long as nobody has taken what is published.
pub(super) const PENDING: &str =
    "the consumer has not succeeded yet: the next refresh with --consumer runs it";

fn headline(record: &Record, publication: &Publication) -> String {
    let place = shown(&publication.current_link());
    let hosts = match record.down.len() {
        0 => counted(record.hosts, "host"),
        down => format!("{}, {down} down", counted(record.hosts, "host")),
    };
    let what = match record.changes.as_slice() {
        [] => String::new(),
        [one] => format!(": {one}"),
        [first, more @ ..] => format!(": {first}, and {} more", more.len()),
    };
    match record.outcome {
        Outcome::First => format!("published {place}: {hosts}"),
        Outcome::Published => format!("published {place}{what} ({hosts})"),
        Outcome::Reverted => {
            format!("published {place}, again equal to the accepted topology{what} ({hosts})")
        }
        Outcome::Consumed => format!("unchanged; the consumer has now succeeded: {hosts}"),
        Outcome::Baseline => format!("accepted {place}: {hosts}"),
        _ => format!("unchanged: {hosts}"),
    }
}

/// Writes the report next to the published topology: the machine and its changes.
fn write_report(publication: &Publication) -> Result<(), Report> {
    let entry = publication.current()?;
    let machine = entry.map(|entry| read_machine(&publication.folder(&entry))).transpose()?;
    let records = read_records(publication)?;
    report::write_published(&publication.state().join("report.html"), machine.as_ref(), &records)
}

/// Refuses a place of metrics that has something else, or is in the published folder.
fn check_metrics(file: &Path, published: Option<&Path>) -> Result<()> {
    let folder = file.parent().and_then(|folder| folder.canonicalize().ok());
    let root = published.map(|root| root.canonicalize().unwrap_or_else(|_| root.to_owned()));
    if folder.zip(root).is_some_and(|(folder, root)| folder.starts_with(root))
        || published.is_some_and(|root| file.starts_with(root))
    {
        return refuse(format!("{} is in the published folder", shown(file)), "write metrics elsewhere");
    }
    Written::Metrics.check_place(file)
}

fn write_metrics(file: &Path, publication: &Publication, record: &Record) -> Result<()> {
    // Something may have come there meanwhile.
    check_metrics(file, Some(publication.root()))?;
    let last = last_success(publication)?.and_then(|record| record.ended_s());
    replace_file(file, exposition(record, last).as_bytes()).map_err(Report::new)?;
    Written::mark(file);
    Ok(())
}

/// A pipeline and which of its outputs are the machine.
pub(super) struct Source<'a> {
    /// The folder of the pipeline file.
    pub(super) folder: &'a Path,
    pub(super) pipeline: &'a Pipeline,
    pub(super) system: (usize, &'static str),
    pub(super) measurements: Option<(usize, &'static str)>,
    pub(super) limits: Limits,
    pub(super) cancelled: &'a AtomicBool,
    pub(super) output: Output,
}

impl<'a> Source<'a> {
    /// The machine is the system graph of the last cell that has one, or of the given stage; measurements are those of the last
    /// cell that has some.
    pub(super) fn new(
        folder: &'a Path,
        pipeline: &'a Pipeline,
        stage: Option<&str>,
        limits: Limits,
        cancelled: &'a AtomicBool,
        output: Output,
    ) -> Result<Self> {
        let last = |kind: &str, wanted: Option<&str>| {
            let is_wanted = |cell: &Cell| wanted.is_none_or(|name| cell.stage == name || cell.id == name);
            let mut cells = pipeline.cells.iter().enumerate().rev().filter(|(_, cell)| is_wanted(cell));
            cells.find_map(|(index, cell)| Some((index, port(cell, kind)?)))
        };
        let Some(system) = last(SystemGraph::KIND, stage) else {
            let name = &pipeline.name;
            let message = match stage {
                Some(stage) => format!("`{name}` has no stage `{stage}` with a system graph"),
                None => format!("no stage of `{name}` has a system graph"),
            };
            let help = format!("its stages are: {}", pipeline.stages().join(", "));
            return refuse(message, help);
        };
        let measurements = last(Measurements::KIND, None);
        Ok(Self { folder, pipeline, system, measurements, limits, cancelled, output })
    }

    /// Runs out-of-date stages in a store that is locked meanwhile.
    pub(super) fn look(&self, root: &Path, is_ours: bool) -> Result<Machine, Report> {
        let mut writer = Writer::open(root, &holder("topology refresh")).map_err(Report::new)?;
        let mut store = Store::load(root).map_err(Report::new)?;
        consent::ask(self.folder, self.pipeline, &mut store)?;
        let progress = Progress::new(self.output, self.pipeline, self.limits.jobs);
        let mut report =
            engine::run(self.pipeline, &mut store, &mut writer, self.limits, self.cancelled, &progress)?;
        progress.finish();
        if self.pipeline.holds_saves() {
            // No gates are evaluated here.
            engine::save_all(self.pipeline, &mut store, &mut writer, &mut report).map_err(Report::new)?;
        }
        let report = self.succeeded(report)?;
        let machine = Machine {
            system: read::<SystemGraph>(&store, &report, self.system)?,
            measurements: self.measurements.map(|place| read(&store, &report, place)).transpose()?,
        };
        if is_ours {
            // Results of earlier refreshes are not read again.
            let policy = Policy { keep: std::time::Duration::ZERO, runs: 20, gone: false };
            let garbage = engine::find_garbage(&store, policy).map_err(Report::new)?;
            if !garbage.is_empty() {
                engine::collect(&mut store, &mut writer, &garbage).map_err(Report::new)?;
            }
        }
        Ok(machine)
    }

    fn succeeded(&self, mut report: RunReport) -> Result<RunReport, Report> {
        if report.interrupted {
            return Err(RefreshError::Interrupted.into());
        }
        if let Some(error) = report.cells.iter_mut().find_map(|settled| settled.error.take()) {
            return Err(error);
        }
        let whole = |state| matches!(state, State::Cached | State::Ran);
        match report.cells.iter().position(|settled| !whole(settled.state)) {
            Some(index) => Err(RefreshError::Unfinished(self.pipeline.cells[index].name.clone()).into()),
            None => Ok(report),
        }
    }
}

fn port(cell: &Cell, kind: &str) -> Option<&'static str> {
    let mut ports = cell.entry.ports(hopmap_model::Direction::Out).filter(|port| port.kind == kind);
    ports.next().map(|port| port.name)
}

fn read<C: Codec>(store: &Store, report: &RunReport, (cell, port): (usize, &str)) -> Result<C, Report> {
    let record = report.cells[cell].outputs.get(port);
    let record = record.ok_or_else(|| InternalError::new(format!("the stage wrote no `{port}`")))?;
    Ok(Folder::read::<C>(&store.artifact(&record.digest))?)
}

/// The exit code of an error of a refresh.
pub(super) fn failure(report: Report) -> Failure {
    match report.downcast::<RefreshError>() {
        Ok(error) => error.into(),
        Err(report) => match report.downcast::<StoreError>() {
            Ok(error) => error.into(),
            Err(report) => Failure::failed(report),
        },
    }
}

impl From<RefreshError> for Failure {
    fn from(error: RefreshError) -> Self {
        match error {
            RefreshError::Busy { .. } => Self::new(Exit::Locked, [Report::new(error)]),
            RefreshError::Foreign(_) | RefreshError::Nothing(_) => Self::usage(error),
            RefreshError::Interrupted => Self::new(Exit::Interrupted, [Report::new(error)]),
            error => Self::failed(error),
        }
    }
}

/// A part of one, from 0 to 1.
pub(super) fn part(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if (0.0..=1.0).contains(&value) => Ok(value),
        _ => Err("expected a number from 0 to 1, such as 0.95".to_owned()),
    }
}

/// A drift: a part that may be more than one.
pub(super) fn drift(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() && value >= 0.0 => Ok(value),
        _ => Err("expected a number of zero or more, such as 0.3 for 30 %".to_owned()),
    }
}
