//! `hopmap topology status`: what is published.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use hopmap_changes::{Machine, host_list};
use hopmap_command::{Exit, Failure, shown};
use jiff::Timestamp;
use serde_json::json;

use crate::cli::open::working_directory;
use crate::cli::output::Output;
use crate::cli::values::duration;
use crate::refresh::{Entry, Publication, Record, RefreshError, last_success, read_machine, read_records};

/// Entries of the history that are listed.
const ENTRIES: usize = 10;

/// Arguments of `topology status`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hopmap topology status --publish /var/lib/hopmap
  hopmap topology status --publish /var/lib/hopmap --max-age 3h --quiet   # 3 if no refresh has succeeded for three hours")]
pub(crate) struct Arguments {
    /// Folder in which the topology is published.
    #[arg(long, value_name = "DIR")]
    publish: PathBuf,
    /// End with 3 if the last success is older than this.
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

pub(crate) fn main(arguments: &Arguments, output: Output) -> Result<Exit, Failure> {
    let publication = Publication::at(working_directory()?.join(&arguments.publish));
    let status = read(&publication, arguments.max_age)?;
    match output.is_json() {
        true => as_json(&status, output),
        false => print(&status, &publication, output),
    }
    Ok(if status.is_old { Exit::Different } else { Exit::Done })
}

fn read(publication: &Publication, max_age: Option<Duration>) -> Result<Status, Failure> {
    let Some(entry) = publication.current()? else {
        return Err(RefreshError::Nothing { path: publication.root().to_owned() }.into());
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
    row(
        "hosts",
        match down.is_empty() {
            true => format!("{}, all up", up.len()),
            false => format!("{}, down: {}", up.len() + down.len(), host_list(&down)),
        },
    );
    let success = status.last_success.as_ref().map_or("never", |record| record.time.as_str());
    let old = if status.is_old { ", which is too long ago" } else { "" };
    row("last success", format!("{success}{old}"));
    if let Some(last) = status.last.as_ref().filter(|last| !last.outcome.is_success()) {
        row("last refresh", format!("{}: {}", last.time, last.error.as_deref().unwrap_or("failed")));
    }
    if status.is_pending {
        row("consumer", "has not taken it yet: the next refresh runs it again".to_owned());
    }
    for entry in status.history.iter().rev().take(ENTRIES) {
        row("history", entry.0.clone());
    }
    if status.history.len() > ENTRIES {
        row("", format!("… and {} more", status.history.len() - ENTRIES));
    }
}
