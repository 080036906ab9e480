//! `hopmap topology refresh`: run a pipeline for the machine that it gives, compare, publish, accept.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use clap::{Args, ValueEnum};
use hopmap_artifact::{Codec, Folder};
use hopmap_changes::{Change, Machine, Missing, Thresholds};
use hopmap_command::{Exit, Failure, all_cores, holder, refuse, shown};
use hopmap_durable::{Staging, replace_file};
use hopmap_model::{Artifact, Measurements, SystemGraph};
use jiff::Timestamp;
use miette::Report;
use serde_json::json;

use crate::cli::open::{PipelineArguments, duration, on_interrupt, working_directory};
use crate::cli::output::{Output, Result};
use crate::cli::progress::Progress;
use crate::engine::{Limits, Policy, RunReport, State, Store, StoreError, Writer};
use crate::pipeline::{Cell, Pipeline};
use crate::refresh::{
    Consumer, Look, LookSettings, Outcome, Publication, Record, RefreshError, Retention, Settings, Updated,
    check, exposition, last_success, read_machine, read_records, refresh,
};
use crate::{engine, report};

/// Arguments of `topology refresh`.
#[derive(Debug, Args)]
#[command(after_help = "\
DIR/current is what is published, a link that is swapped when the new snapshot is complete and on disk. An unchanged machine changes
nothing there, and no consumer runs. A host that does not answer keeps its data and is marked as down.

Examples:
  hopmap topology refresh -p hosts='node[01-16]' --publish /var/lib/hopmap --quiet   # from cron
  hopmap topology refresh fabric.toml --publish topology --consumer 'sh /etc/slurm/new-topology'
  hopmap topology refresh -p hosts='node[01-16]' --publish topology --check --exit-code
  hopmap topology refresh -p hosts='node[01-16]' --health")]
#[expect(clippy::struct_excessive_bools, reason = "one for each flag of the command")]
pub(crate) struct Arguments {
    /// Pipeline file, or the name of a pipeline that comes with hopmap.
    #[arg(default_value = "topology-refresh")]
    pipeline: String,
    /// Value of a parameter of the pipeline; paths are relative to the working directory.
    #[arg(short = 'p', long = "param", value_name = "NAME=VALUE")]
    parameters: Vec<String>,
    #[command(flatten)]
    publishing: PublishArguments,
    /// Stage whose system graph is the machine [default: the last one that gives a system graph].
    #[arg(long, value_name = "NAME")]
    stage: Option<String>,
    /// Accept the machine as it is, without a comparison.
    #[arg(long, conflicts_with_all = ["check", "health"])]
    baseline: bool,
    /// Only say what is different; write nothing.
    #[arg(long, conflicts_with = "health")]
    check: bool,
    /// Only say what is wrong with the machine itself, whatever it was before; write nothing.
    #[arg(long)]
    health: bool,
    /// End with 3 if something has changed, or is not healthy.
    #[arg(long)]
    exit_code: bool,
    #[command(flatten)]
    comparison: CompareArguments,
    #[command(flatten)]
    consumer: ConsumerArguments,
    /// Entries of the history that are kept.
    #[arg(long, value_name = "COUNT", default_value_t = 100)]
    keep: usize,
    /// Days for which entries of the history are kept [default: for ever].
    #[arg(long, value_name = "DAYS")]
    keep_days: Option<u32>,
    /// Do nothing if the last success is younger than this.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    max_age: Option<Duration>,
    /// File to write metrics to, for the textfile collector of Prometheus' node exporter.
    #[arg(long, value_name = "FILE.prom")]
    metrics: Option<PathBuf>,
    /// Cores to use in all [default: all of this machine].
    #[arg(short, long, value_name = "CORES", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// Time for the pipeline.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    deadline: Option<Duration>,
}

/// Where the topology is published, and where results are kept meanwhile.
#[derive(Debug, Args)]
struct PublishArguments {
    /// Folder in which the topology is published.
    #[arg(long, value_name = "DIR", required_unless_present = "health")]
    publish: Option<PathBuf>,
    /// Folder of the store of results [default: state/store in the publish folder; --check and --health keep none].
    #[arg(long, value_name = "DIR")]
    store: Option<PathBuf>,
}

/// What counts as a change, and which changes are published.
#[derive(Debug, Args)]
struct CompareArguments {
    /// By which part a latency, a bandwidth or a cost may change without being another one.
    #[arg(long, value_name = "PART", default_value = "0.3", value_parser = drift)]
    drift: f64,
    /// How often a machine that was measured is measured again at once to confirm what has changed.
    #[arg(long, value_name = "TIMES", default_value_t = 2, value_parser = clap::value_parser!(u32).range(..=100))]
    confirm: u32,
    /// What a host is that the source does not name any more; measurements name all that were asked, others are gone.
    #[arg(long, value_enum, default_value_t = MissingHosts::Down)]
    missing: MissingHosts,
    /// Publish nothing when all that changed is that hosts went down or came back.
    #[arg(long)]
    ignore_down: bool,
    /// Which part of the hosts that were up has to be up for anything to be published; one may always be lost, unless this is 1.
    #[arg(long, value_name = "PART", default_value = "0.95", value_parser = part)]
    min_coverage: f64,
}

/// Who takes what is published.
#[derive(Debug, Args)]
struct ConsumerArguments {
    /// Command that takes a new topology, run by `sh -c` with `HOPMAP_TOPOLOGY` and `HOPMAP_CHANGES`.
    #[arg(long, value_name = "COMMAND")]
    consumer: Option<String>,
    /// Time for the consumer.
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = duration)]
    consumer_timeout: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum MissingHosts {
    /// It is down and keeps its data.
    Down,
    /// It is gone.
    Gone,
}

impl Arguments {
    fn settings(&self) -> Settings {
        Settings {
            look: self.comparison.settings(),
            consumer: self.consumer.consumer(),
            retention: Retention { entries: self.keep, days: self.keep_days },
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
    let given = PipelineArguments::new(arguments.pipeline.clone(), arguments.parameters.clone());
    let pipeline = given.open()?;
    let limits = Limits {
        jobs: arguments.jobs.map_or_else(all_cores, usize::from),
        memory: crate::engine::memory(),
        deadline: arguments.deadline,
        fail_fast: true,
    };
    let cancelled = on_interrupt()?;
    // Cron mails whatever is printed: what stages do is shown on a terminal, and is in the log of the store.
    let shown = if output.is_interactive() { output } else { Output::new(false, true) };
    let source = Source::new(&pipeline, arguments.stage.as_deref(), limits, &cancelled, shown)?;
    let (store, is_ours) = match (&arguments.publishing.store, &publication) {
        (Some(store), _) => (Place::Kept(working.join(store)), false),
        (None, Some(publication)) if !arguments.check && !arguments.health => {
            (Place::Kept(publication.state().join("store")), true)
        }
        (None, _) => (Place::Passing(Staging::new(&std::env::temp_dir()).map_err(Report::new)?), false),
    };
    let mut look = || source.look(store.path(), is_ours);
    match &publication {
        Some(publication) if !arguments.check && !arguments.health => {
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
enum Place {
    Kept(PathBuf),
    /// Gone with the command: looking leaves nothing behind.
    Passing(Staging),
}

impl Place {
    fn path(&self) -> &Path {
        match self {
            Self::Kept(folder) => folder,
            Self::Passing(folder) => folder.path(),
        }
    }
}

/// The last success, if it is younger than asked for. One from the future is no reason to do nothing.
fn still_fresh(publication: &Publication, max_age: Option<Duration>) -> Result<Option<Record>> {
    let Some(max_age) = max_age else { return Ok(None) };
    let record = last_success(publication)?;
    let age = |record: &Record| record.ended_s().map(|ended| Timestamp::now().as_second() - ended);
    let is_young = |age: i64| u64::try_from(age).is_ok_and(|age| age < max_age.as_secs());
    Ok(record.filter(|record| age(record).is_some_and(is_young)))
}

fn say_fresh(record: &Record, output: Output) -> Exit {
    output.json(&json!({ "outcome": "fresh", "last_success": record.time }));
    output.line(format!("nothing to do: the last success is of {}", record.time));
    Exit::Done
}

fn say_checked(
    arguments: &Arguments,
    publication: Option<&Publication>,
    look: &mut Look<'_>,
    output: Output,
) -> Result {
    if let Some(publication) = publication.filter(|_| arguments.check)
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

/// Says what was done, and writes the metrics whether it succeeded or not.
fn finish(arguments: &Arguments, publication: &Publication, updated: Updated, output: Output) -> Result {
    let Updated { record, changes, error } = updated;
    let written = match &arguments.metrics {
        Some(file) => write_metrics(&working_directory()?.join(file), publication, &record),
        None => Ok(()),
    };
    if let Err(problem) = write_report(publication) {
        output.note(format!("the report is not written: {problem}"));
    }
    if let Some(error) = error {
        return Err(failure(error));
    }
    written?;
    output.json(&json!({
        "outcome": record.outcome,
        "entry": record.entry,
        "changes": changes.iter().map(Change::as_json).collect::<Vec<_>>(),
        "hosts": record.hosts,
        "down": record.down,
        "coverage": record.coverage,
        "confirmations": record.confirmations,
        "seconds": record.seconds,
    }));
    output.line(headline(&record, publication));
    let has_changed = !matches!(record.outcome, Outcome::Unchanged | Outcome::Consumed | Outcome::Baseline);
    Ok(if has_changed && arguments.exit_code { Exit::Different } else { Exit::Done })
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

fn headline(record: &Record, publication: &Publication) -> String {
    let place = shown(&publication.current_link());
    let hosts = match record.down.len() {
        0 => format!("{} hosts", record.hosts),
        down => format!("{} hosts, {down} down", record.hosts),
    };
    let what = match record.changes.as_slice() {
        [] => String::new(),
        [one] => format!(": {one}"),
        [first, more @ ..] => format!(": {first}, and {} more", more.len()),
    };
    match record.outcome {
        Outcome::First => format!("published {place}: {hosts}"),
        Outcome::Published => format!("published {place}{what} ({hosts})"),
        Outcome::Reverted => format!("published {place} as it was accepted before{what} ({hosts})"),
        Outcome::Consumed => format!("unchanged, and the consumer has taken it now: {hosts}"),
        Outcome::Baseline => format!("accepted {place} as it is: {hosts}"),
        _ => format!("unchanged: {hosts}"),
    }
}

/// The report beside what is published: the machine, and how it has changed.
fn write_report(publication: &Publication) -> Result<(), Report> {
    let entry = publication.current()?;
    let machine = entry.map(|entry| read_machine(&publication.folder(&entry))).transpose()?;
    let records = read_records(publication)?;
    report::write_published(&publication.state().join("report.html"), machine.as_ref(), &records)
}

fn write_metrics(file: &Path, publication: &Publication, record: &Record) -> Result<()> {
    let last = last_success(publication)?.and_then(|record| record.ended_s());
    replace_file(file, exposition(record, last).as_bytes()).map_err(Report::new)?;
    Ok(())
}

/// A pipeline and which of its outputs are the machine.
pub(super) struct Source<'a> {
    pub(super) pipeline: &'a Pipeline,
    pub(super) system: (usize, &'static str),
    pub(super) measurements: Option<(usize, &'static str)>,
    pub(super) limits: Limits,
    pub(super) cancelled: &'a AtomicBool,
    pub(super) output: Output,
}

impl<'a> Source<'a> {
    /// The machine is the system graph of the last cell that gives one, or of a stage that is named; beside it are the
    /// measurements of the last cell that gives some.
    pub(super) fn new(
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
                Some(stage) => format!("`{name}` has no stage `{stage}` that gives a system graph"),
                None => format!("no stage of `{name}` gives a system graph"),
            };
            let help = format!("its stages are: {}", pipeline.stages().join(", "));
            return refuse(message, help);
        };
        let measurements = last(Measurements::KIND, None);
        Ok(Self { pipeline, system, measurements, limits, cancelled, output })
    }

    /// Runs what has to run, in a store that nobody else writes to meanwhile.
    pub(super) fn look(&self, root: &Path, is_ours: bool) -> Result<Machine, Report> {
        let mut writer = Writer::open(root, &holder("topology refresh")).map_err(Report::new)?;
        let mut store = Store::load(root).map_err(Report::new)?;
        let progress = Progress::new(self.output, self.pipeline, self.limits.jobs);
        let mut report =
            engine::run(self.pipeline, &mut store, &mut writer, self.limits, self.cancelled, &progress)?;
        progress.finish();
        if self.pipeline.holds_saves() {
            // Nobody judges gates here.
            engine::save_all(self.pipeline, &mut store, &mut writer, &mut report).map_err(Report::new)?;
        }
        let report = self.succeeded(report)?;
        let machine = Machine {
            system: read::<SystemGraph>(&store, &report, self.system)?,
            measurements: self.measurements.map(|place| read(&store, &report, place)).transpose()?,
        };
        if is_ours {
            // Nobody looks at what earlier refreshes saw.
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
            Some(index) => Err(miette::miette!(
                help = "nothing is published from a pipeline that did not end; give it more time with --deadline",
                "stage `{}` was not done",
                self.pipeline.cells[index].id
            )),
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
    let record = record.ok_or_else(|| miette::miette!("the stage gave no `{port}`"))?;
    Ok(Folder::read::<C>(&store.artifact(&record.digest))?)
}

/// An error of a refresh, by what it means to the caller.
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
        _ => Err("it is a number from 0 to 1, such as 0.95".to_owned()),
    }
}

/// A drift: a part that may be more than one.
pub(super) fn drift(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() && value >= 0.0 => Ok(value),
        _ => Err("it is a number of zero or more, such as 0.3 for 30 %".to_owned()),
    }
}
