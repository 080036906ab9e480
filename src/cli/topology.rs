//! `hopmap topology`: refreshes, compares and inspects published topologies. Here are `diff` and `status`.

mod refresh;

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Subcommand};
use hopmap_artifact::{DESCRIPTION, Folder};
use hopmap_changes::{Change, Machine, Thresholds, changes, host_list};
use hopmap_command::{Exit, Failure, Mistake, refuse, shown};
use hopmap_model::{Artifact, CostModel, Levels, Measurements, Node, NodeState, SystemGraph};
use jiff::Timestamp;
use serde_json::json;

use super::open::{duration, working_directory};
use super::output::{Output, Result};
use crate::refresh::{Entry, Publication, Record, RefreshError, last_success, read_machine, read_records};
use refresh::{PENDING, drift};

/// Arguments of `topology`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Measure or import the machine, publish changes, and notify a consumer.
    Refresh(Box<refresh::Arguments>),
    /// List the differences between two topologies.
    Diff(DiffArguments),
    /// Show the published topology, its age and its history.
    Status(StatusArguments),
}

pub(crate) fn main(arguments: &Arguments, output: Output) -> Result {
    match &arguments.command {
        Command::Refresh(arguments) => refresh::main(arguments, output),
        Command::Diff(arguments) => diff(arguments, output),
        Command::Status(arguments) => status(arguments, output),
    }
}

/// Arguments of `topology diff`.
#[derive(Debug, Args)]
#[command(after_help = "\
Hosts and switches are compared by name, switches with generated names (level-1-0, switch-1-0) by the hosts below them; order \
and numbers do not matter.

Examples:
  hopmap topology diff machine machine.new
  hopmap topology diff topology/history/2026-11-20T03-00-04Z-5bd6a1c2e4f0 topology
  hopmap topology diff --exit-code yesterday today   # exit code 3 if they differ")]
pub(crate) struct DiffArguments {
    /// Folder of a system graph, of measurements, of an entry of a history, or of published topologies.
    before: PathBuf,
    /// Folder to compare with it, of the same kind.
    after: PathBuf,
    /// Exit with code 3 if something differs.
    #[arg(long)]
    exit_code: bool,
    /// Ignore relative changes of a latency, bandwidth or cost up to this (0.3 is 30 %).
    #[arg(long, value_name = "FRACTION", default_value = "0.3", value_parser = drift)]
    drift: f64,
}

pub(crate) fn diff(arguments: &DiffArguments, output: Output) -> Result {
    let working = working_directory()?;
    let read = |path: &Path| read(&working.join(path));
    let ((before, before_kind), (after, after_kind)) = (read(&arguments.before)?, read(&arguments.after)?);
    if before_kind != after_kind {
        let (before, after) = (shown(&arguments.before), shown(&arguments.after));
        let message = format!("{before} is {}, but {after} is {}", before_kind.words(), after_kind.words());
        return refuse(message, "compare two of the same kind");
    }
    let thresholds = Thresholds { drift: arguments.drift, ..Thresholds::default() };
    let found = changes(&before.snapshot(), &after.snapshot(), &thresholds);
    output.json(&json!({ "changes": found.iter().map(Change::as_json).collect::<Vec<_>>() }));
    found.iter().for_each(|change| output.line(change));
    if found.is_empty() {
        output.line("no changes");
    }
    Ok(if found.is_empty() || !arguments.exit_code { Exit::Done } else { Exit::Different })
}

/// What was found in a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    System,
    Measurements,
}

impl Found {
    fn words(self) -> &'static str {
        match self {
            Self::System => "a system graph",
            Self::Measurements => "measurements alone",
        }
    }
}

fn read(folder: &Path) -> Result<(Machine, Found)> {
    for entry in [folder.join("current"), folder.to_owned()] {
        if entry.join("system").is_dir() {
            return Ok((read_machine(&entry)?, Found::System));
        }
    }
    let help = "name a system graph, measurements, a publish folder or an entry of its history";
    let nothing = |message: String| Failure::from(Mistake::new(message, help));
    if !folder.join(DESCRIPTION).is_file() {
        return Err(nothing(format!("{} contains no topology", shown(folder))));
    }
    let kind = Folder::open(folder).map_err(Failure::usage)?.description().kind.clone();
    match kind.as_str() {
        SystemGraph::KIND => {
            let system = Folder::read(folder).map_err(Failure::usage)?;
            Ok((Machine { system, measurements: None }, Found::System))
        }
        Measurements::KIND => {
            let measured: Measurements = Folder::read(folder).map_err(Failure::usage)?;
            let system = hosts_of(&measured);
            Ok((Machine { system, measurements: Some(measured) }, Found::Measurements))
        }
        other => Err(nothing(format!("{} is a {other}", shown(folder)))),
    }
}

/// A machine of which only the measured hosts are known.
fn hosts_of(measured: &Measurements) -> SystemGraph {
    let node = |(name, first, _): (&str, u32, u32)| Node {
        state: measured.endpoints.get(first as usize).map_or(NodeState::Down, |endpoint| endpoint.state),
        ..Node::host(name)
    };
    SystemGraph {
        routing: hopmap_model::Routing::default(),
        nodes: measured.hosts().map(node).collect(),
        links: Vec::new(),
        slots: Vec::new(),
        cost: CostModel::Levels(Levels::default()),
        calibration: Vec::new(),
    }
}

/// Entries of the history that are listed.
const ENTRIES: usize = 10;

/// Arguments of `topology status`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hopmap topology status --publish /var/lib/hopmap
  hopmap topology status --publish /var/lib/hopmap --max-age 3h --quiet   # exit code 3 if older")]
pub(crate) struct StatusArguments {
    /// Folder of published topologies.
    #[arg(long, value_name = "DIR")]
    publish: PathBuf,
    /// Exit with code 3 if the last successful refresh is older than TIME.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    max_age: Option<Duration>,
}

struct Status {
    entry: Entry,
    machine: Machine,
    history: Vec<Entry>,
    last_success: Option<Record>,
    last: Option<Record>,
    is_pending: bool,
    is_old: bool,
}

pub(crate) fn status(arguments: &StatusArguments, output: Output) -> Result {
    let publication = Publication::at(working_directory()?.join(&arguments.publish));
    let status = read_status(&publication, arguments.max_age)?;
    as_json(&status, output);
    print(&status, &publication, output);
    Ok(if status.is_old { Exit::Different } else { Exit::Done })
}

fn read_status(publication: &Publication, max_age: Option<Duration>) -> Result<Status> {
    let Some(entry) = publication.current()? else {
        return Err(RefreshError::Nothing(publication.root().to_owned()).into());
    };
    let last_success = last_success(publication)?;
    let age =
        last_success.as_ref().and_then(Record::ended_s).map(|ended| Timestamp::now().as_second() - ended);
    let is_older =
        |limit: Duration| age.is_none_or(|age| u64::try_from(age).is_ok_and(|age| age > limit.as_secs()));
    Ok(Status {
        machine: read_machine(&publication.folder(&entry))?,
        history: publication.entries()?,
        last: read_records(publication)?.pop(),
        is_pending: publication.is_pending(),
        is_old: max_age.is_some_and(is_older),
        last_success,
        entry,
    })
}

fn as_json(status: &Status, output: Output) {
    let snapshot = status.machine.snapshot();
    let (up, down) = snapshot.hosts();
    output.json(&json!({
        "published": status.entry.0,
        "hosts": up.len() + down.len(),
        "down": down,
        "last_success": status.last_success.as_ref().map(|record| &record.time),
        "last": status.last,
        "pending": status.is_pending,
        "old": status.is_old,
        "history": status.history.iter().map(|entry| &entry.0).collect::<Vec<_>>(),
    }));
}

fn print(status: &Status, publication: &Publication, output: Output) {
    let row = |name: &str, text: String| output.line(format!("{name:<13} {text}"));
    let snapshot = status.machine.snapshot();
    let (up, down) = snapshot.hosts();
    row("published", shown(&publication.folder(&status.entry)));
    let down_hosts = format!("{}, down: {}", up.len() + down.len(), host_list(&down));
    row("hosts", if down.is_empty() { format!("{}, all up", up.len()) } else { down_hosts });
    let success = status.last_success.as_ref().map_or("never", |record| record.time.as_str());
    let old = if status.is_old { ", older than --max-age" } else { "" };
    row("last success", format!("{success}{old}"));
    if let Some(last) = status.last.as_ref().filter(|last| !last.outcome.is_success()) {
        row("last refresh", format!("{}: {}", last.time, last.error.as_deref().unwrap_or("failed")));
    }
    if status.is_pending {
        row("pending", PENDING.to_owned());
    }
    status.history.iter().rev().take(ENTRIES).for_each(|entry| row("history", entry.0.clone()));
    if status.history.len() > ENTRIES {
        row("", format!("… and {} more", status.history.len() - ENTRIES));
    }
}
