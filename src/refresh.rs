//! Keeps the topology of a machine up to date: observe it, compare by meaning, publish changes, run a consumer, and then accept the
//! new topology.
//!
//! A publish folder:
//!
//! ```text
//! DIR/
//!   current         a symbolic link to the published entry of the history
//!   accepted.json   the entry that the consumer has processed, in the format of `hopmap accept`
//!   history/TIME-DIGEST/   system/, measurements/ if it was measured, changes.json, changes.txt
//!   state/          lock, refreshes.jsonl (every refresh), pending (the consumer has to run), told (what it knows, where that is
//!                   not what is accepted), consumer.log, report.html, store/
//! ```
//!
//! An entry is complete and on disk before `current` points to it. `accepted.json` changes after the consumer has succeeded. So a kill
//! at any moment leaves either the old or the new state, and the folder shows what remains to be done.
//!
//! # Decisions
//!
//! `src/refresh` does not run pipelines: a function that observes the machine does (`src/cli/topology/refresh.rs`). `compare` repeats
//! observations until changes are confirmed, `refresh` decides, runs the consumer and writes the log, and `publication` writes the
//! publish folder.
//!
//! | observed machine | action |
//! |---|---|
//! | equal to the published one, which is accepted | a line in the log, nothing else |
//! | equal to the published one, and the consumer has yet to run (`pending`, or `current` is not `accepted`) | run the consumer, then accept; without `--consumer` it stays pending |
//! | equal to the accepted one, but another one is published | set `current` back, run the consumer |
//! | different | new entry, `current`, consumer, `accepted.json`, in this order |
//!
//! `core/changes` compares two snapshots by names; switches with generated names, and groups of a level, correspond if they have most
//! hosts in common. Data that a source lacks for a host that is down come from the published machine (`keep_down`).
//!
//! A consumer ends with a refresh that is killed; the next refresh runs it again. What it has left behind goes on.

mod compare;
mod publication;

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hopmap_changes::{Change, Finding, Machine, health};
use hopmap_durable::{AppendLog, DurableError, crash_point};
use hopmap_process::Group;
use jiff::Timestamp;
use miette::Report;
use serde::{Deserialize, Serialize};

use crate::accepted::now;
use compare::Seen;
pub(crate) use compare::{Look, LookSettings};
pub(crate) use publication::Retention;
use publication::{CHANGES, Published};
pub use publication::{Entry, Publication, RefreshError, read_machine};

/// How to refresh.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    /// How to observe the machine.
    pub(crate) look: LookSettings,
    /// The program that processes a new topology.
    pub(crate) consumer: Option<Consumer>,
    /// How much of the history is kept.
    pub(crate) retention: Retention,
    /// Whether the current machine is accepted without a comparison.
    pub(crate) baseline: bool,
}

/// What a refresh did.
#[derive(Debug)]
pub(crate) struct Updated {
    /// The line of the log.
    pub(crate) record: Record,
    /// The changes.
    pub(crate) changes: Vec<Change>,
    /// Why it failed, if it did.
    pub(crate) error: Option<Report>,
}

/// The result of an observation without a refresh.
#[derive(Debug)]
pub(crate) struct Checked {
    /// The machine.
    pub(crate) machine: Machine,
    /// Changes since the published machine.
    pub(crate) changes: Vec<Change>,
    /// Problems of the machine itself.
    pub(crate) findings: Vec<Finding>,
    /// The part of the hosts of the baseline that are up.
    pub(crate) coverage: f64,
    /// Whether enough are up for a refresh to publish the machine.
    pub(crate) is_covered: bool,
}

/// Refreshes the published machine. Errors are those before the start; later ones are in the log and in the result.
pub(crate) fn refresh(
    publication: &Publication,
    settings: &Settings,
    holder: &str,
    cancelled: &AtomicBool,
    look: &mut Look<'_>,
) -> Result<Updated, RefreshError> {
    let _lock = publication.lock(holder)?;
    publication.tidy()?;
    let begin = Instant::now();
    let mut attempt =
        Attempt { publication, settings, cancelled, changes: Vec::new(), record: Record::default() };
    let ended = attempt.run(look);
    let Attempt { mut record, changes, .. } = attempt;
    record.entry = publication.current().ok().flatten().map(|entry| entry.0);
    record.changes = changes.iter().map(ToString::to_string).collect();
    record.seconds = begin.elapsed().as_secs_f64();
    record.time = now();
    let error = match ended {
        Ok(outcome) => {
            record.outcome = outcome;
            append(publication, &record).err().map(Report::new)
        }
        Err(error) => {
            record.fail(&error);
            // The first error is the one to report.
            let _ = append(publication, &record);
            Some(error)
        }
    };
    Ok(Updated { record, changes, error })
}

impl Record {
    fn fail(&mut self, error: &Report) {
        self.outcome = match error.downcast_ref::<RefreshError>() {
            Some(RefreshError::Consumer { .. }) => Outcome::ConsumerFailed,
            Some(RefreshError::Coverage { up, hosts, .. }) => {
                self.hosts = *hosts;
                self.coverage = *up as f64 / *hosts as f64;
                Outcome::Coverage
            }
            _ => Outcome::Failed,
        };
        self.error = Some(error.chain().map(ToString::to_string).collect::<Vec<_>>().join(": "));
    }
}

/// Looks at the machine and writes nothing. Without a publication there is nothing to compare with.
pub(crate) fn check(
    publication: Option<&Publication>,
    settings: &Settings,
    look: &mut Look<'_>,
) -> Result<Checked, Report> {
    let current = publication.map_or(Ok(None), Publication::read_current)?;
    let published = current.map(|published| published.machine);
    let seen = match &published {
        Some(machine) => {
            LookSettings { min_coverage: 0.0, ..settings.look }.look(Some(machine), None, look)?
        }
        None => Seen { machine: look()?, changes: Vec::new(), confirmations: 0 },
    };
    let baseline = published.as_ref().unwrap_or(&seen.machine);
    let coverage = coverage(baseline, &seen.machine);
    let is_covered = settings.look.check_coverage(baseline, &seen.machine).is_ok();
    let findings = health(&seen.machine.snapshot(), &settings.look.thresholds);
    Ok(Checked { changes: seen.changes, findings, coverage, is_covered, machine: seen.machine })
}

/// The part of the hosts of a machine that are up in another one.
fn coverage(baseline: &Machine, machine: &Machine) -> f64 {
    let known = baseline.snapshot();
    let (mut hosts, down) = known.hosts();
    hosts.extend(down);
    machine.snapshot().coverage_of(&hosts)
}

struct Attempt<'a> {
    publication: &'a Publication,
    settings: &'a Settings,
    cancelled: &'a AtomicBool,
    changes: Vec<Change>,
    record: Record,
}

impl Attempt<'_> {
    fn run(&mut self, look: &mut Look<'_>) -> Result<Outcome, Report> {
        let outcome = if self.settings.baseline { self.baseline(look)? } else { self.update(look)? };
        self.settings.retention.apply(self.publication)?;
        Ok(outcome)
    }

    /// The current machine becomes the accepted one.
    fn baseline(&mut self, look: &mut Look<'_>) -> Result<Outcome, Report> {
        let machine = look()?;
        self.remember(&machine, &machine);
        if machine.snapshot().hosts().0.is_empty() {
            return Err(RefreshError::NoHosts.into());
        }
        // Whatever is wrong with what is published, it is replaced.
        let current = self.publication.read_current().ok().flatten();
        let entry = match current {
            Some(published) if published.machine == machine => published.entry,
            _ => {
                let entry = self.publication.add(&machine, None, &[])?;
                self.keep_told()?;
                self.publication.point_to(&entry)?;
                entry
            }
        };
        self.keep_told()?;
        self.publication.set_accepted(&entry)?;
        Ok(Outcome::Baseline)
    }

    /// A consumer that has yet to hear of changes hears of all since what it knows.
    fn keep_told(&self) -> Result<(), RefreshError> {
        if self.publication.pending().is_some() { self.publication.keep_told() } else { Ok(()) }
    }

    fn update(&mut self, look: &mut Look<'_>) -> Result<Outcome, Report> {
        let current = self.publication.read_current()?;
        let accepted = self.publication.read_accepted()?;
        // Where the link was lost, what was accepted is what was published.
        let published = current.as_ref().or(accepted.as_ref()).map(|found| &found.machine);
        let baseline = accepted.as_ref().or(current.as_ref()).map(|found| &found.machine);
        let settings = self.settings.look;
        let seen = settings.look(published, baseline, look)?;
        self.record.confirmations = seen.confirmations;
        self.remember(baseline.unwrap_or(&seen.machine), &seen.machine);
        if let Some(current) = current.as_ref().filter(|_| seen.changes.is_empty()) {
            return self.unchanged(current);
        }
        // Changes since the published machine are confirmed; those since an older one that the consumer knows are reported without.
        let entry = current.as_ref().map(|found| &found.entry);
        let told = self.publication.read_told()?;
        self.changes = match &told {
            Some(told) if Some(&told.entry) != entry => settings.changes(&told.machine, &seen.machine),
            _ => seen.changes,
        };
        if let Some(told) = told.as_ref().filter(|_| self.changes.is_empty()) {
            return self.go_back(told, current.as_ref());
        }
        // Where nothing was told yet, everything is news.
        let before = told.as_ref().map(|told| &told.entry);
        let news = before.map_or(&[][..], |_| &self.changes);
        let entry = self.publication.add(&seen.machine, before, news)?;
        let changes = self.publication.folder(&entry).join(CHANGES);
        self.publish(&entry, &changes)?;
        Ok(if published.is_some() { Outcome::Published } else { Outcome::First })
    }

    /// The machine equals the published one; the consumer may still have to run.
    fn unchanged(&self, current: &Published) -> Result<Outcome, Report> {
        let publication = self.publication;
        if !publication.is_pending() || (self.settings.consumer.is_none() && publication.pending().is_some())
        {
            return Ok(Outcome::Unchanged);
        }
        let changes = self.news(current)?;
        self.hand_over(&current.entry, &changes)?;
        let is_told = self.settings.consumer.is_some();
        Ok(if is_told { Outcome::Consumed } else { Outcome::Unchanged })
    }

    /// The changes from what the consumer knows to what is published.
    fn news(&self, current: &Published) -> Result<PathBuf, RefreshError> {
        let publication = self.publication;
        let place = publication.state();
        let (own, later) = (publication.folder(&current.entry).join(CHANGES), place.join(CHANGES));
        let told = publication.read_told()?;
        // Pending changes that a killed refresh never published are dropped: the list is empty if the consumer knows this entry.
        let is_known = told.as_ref().is_some_and(|told| told.entry == current.entry);
        let begun = publication.pending().filter(|changes| *changes == own || *changes == later);
        if let Some(changes) = begun.filter(|changes| is_known && changes.is_file()) {
            return Ok(changes);
        }
        let changes = told.as_ref().map(|told| self.settings.look.changes(&told.machine, &current.machine));
        let before = told.as_ref().map(|told| &told.entry);
        publication::write_changes(&place, before, &changes.unwrap_or_default())?;
        Ok(later)
    }

    /// The machine is the one that the consumer was told of last, and something else is published.
    fn go_back(&mut self, accepted: &Published, current: Option<&Published>) -> Result<Outcome, Report> {
        if let Some(current) = current {
            self.changes = self.settings.look.changes(&current.machine, &accepted.machine);
        }
        // The entry itself does not change; later changes are in a separate file.
        let place = self.publication.state();
        publication::write_changes(&place, current.map(|found| &found.entry), &self.changes)?;
        self.publish(&accepted.entry, &place.join(CHANGES))?;
        Ok(Outcome::Reverted)
    }

    /// Publishes an entry and hands it over.
    fn publish(&self, entry: &Entry, changes: &Path) -> Result<(), RefreshError> {
        if self.settings.consumer.is_some() || self.publication.pending().is_some() {
            self.publication.set_pending(changes)?;
        }
        self.publication.point_to(entry)?;
        self.hand_over(entry, changes)
    }

    /// Runs the consumer and accepts the entry. Without a consumer, it is accepted unless one has yet to hear of it: that of an earlier
    /// refresh.
    fn hand_over(&self, entry: &Entry, changes: &Path) -> Result<(), RefreshError> {
        if self.settings.consumer.is_none() && self.publication.pending().is_some() {
            return Ok(());
        }
        if let Some(consumer) = &self.settings.consumer {
            let log: PathBuf = self.publication.state().join("consumer.log");
            let topology = self.publication.current_link();
            let failed = consumer.run(&topology, changes, &log, self.cancelled)?;
            if let Some(how) = failed {
                let (entry, said) = (entry.0.clone(), end_of(&log));
                return Err(RefreshError::Consumer { how, said, entry });
            }
            crash_point("refresh.consumer-done", &log);
        }
        self.publication.accept(entry)
    }

    fn remember(&mut self, baseline: &Machine, machine: &Machine) {
        let snapshot = machine.snapshot();
        let (up, down) = snapshot.hosts();
        self.record.hosts = up.len() + down.len();
        self.record.down = down.into_iter().map(str::to_owned).collect();
        self.record.medians_s = snapshot.medians();
        self.record.largest_ratio = snapshot.largest_ratio(&baseline.snapshot());
        self.record.coverage = coverage(baseline, machine);
    }
}

/// Most bytes of what it said that are shown.
const SAID: usize = 2000;

/// A command that takes a new topology.
#[derive(Debug, Clone)]
pub(crate) struct Consumer {
    /// Run by `sh -c`.
    pub(crate) command: String,
    /// It is ended when it takes longer.
    pub(crate) limit: Duration,
}

impl Consumer {
    /// Runs it in its own process group and returns how it failed, if it did. Its output goes to `log`, a file, so that processes it
    /// leaves behind do not block the refresh.
    fn run(
        &self,
        topology: &Path,
        changes: &Path,
        log: &Path,
        cancelled: &AtomicBool,
    ) -> Result<Option<String>, RefreshError> {
        let output = File::create(log).map_err(DurableError::io("create", log))?;
        let errors = output.try_clone().map_err(DurableError::io("create", log))?;
        let mut command = Command::new("sh");
        command.args(["-c", &self.command]);
        command.env("HOPMAP_TOPOLOGY", topology).env("HOPMAP_CHANGES", changes);
        command.stdin(Stdio::null()).stdout(output).stderr(errors);
        let mut group = Group::start(&mut command).map_err(DurableError::io("start", Path::new("sh")))?;
        let begin = Instant::now();
        let reason = group.wait(|| match cancelled.load(Ordering::Relaxed) {
            true => Some(Unfinished::Interrupted),
            false => (begin.elapsed() >= self.limit).then_some(Unfinished::TooLong),
        });
        let ended = reason.and_then(|reason| {
            // One that has ended by itself may have started a service.
            let status = if reason.is_some() { group.stop() } else { group.leave() };
            Ok((reason, status?))
        });
        match ended.map_err(DurableError::io("wait for", Path::new("sh")))? {
            (Some(Unfinished::Interrupted), _) => Err(RefreshError::Interrupted),
            (Some(Unfinished::TooLong), _) => {
                Ok(Some(format!("took longer than {}", humantime::format_duration(self.limit))))
            }
            (None, status) => Ok((!status.success()).then(|| format!("ended with {status}"))),
        }
    }
}

/// Why it did not end by itself.
enum Unfinished {
    TooLong,
    Interrupted,
}

/// The end of what it said.
fn end_of(log: &Path) -> String {
    let bytes = std::fs::read(log).unwrap_or_default();
    let begin = bytes.len().saturating_sub(SAID);
    let text = String::from_utf8_lossy(&bytes[begin..]).trim_end().to_owned();
    if text.is_empty() { "nothing".to_owned() } else { text }
}

/// How a refresh ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The machine was published for the first time.
    First,
    /// The machine has changed and was published.
    Published,
    /// The machine is as it was.
    Unchanged,
    /// The machine is as it was, and the consumer that had not succeeded did now.
    Consumed,
    /// The machine is again as it was when it was last accepted.
    Reverted,
    /// The machine was accepted without a comparison.
    Baseline,
    /// The consumer did not succeed.
    ConsumerFailed,
    /// Too few hosts are up.
    Coverage,
    /// Any other error.
    #[default]
    Failed,
}

impl Outcome {
    /// Whether the refresh succeeded.
    pub(crate) fn is_success(self) -> bool {
        !matches!(self, Self::ConsumerFailed | Self::Coverage | Self::Failed)
    }
}

/// A line of the log.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Record {
    /// When it ended, in UTC.
    pub time: String,
    /// How it ended.
    pub outcome: Outcome,
    /// The entry that is published now.
    pub entry: Option<String>,
    /// The changes as text.
    pub changes: Vec<String>,
    /// Median latency in seconds of pairs of hosts by the level on which they meet; empty where nothing was measured.
    #[serde(default)]
    pub medians_s: BTreeMap<usize, f64>,
    /// The largest ratio between the latency of two hosts and that of the baseline; 1 without measurements, 0 without an observation.
    #[serde(default)]
    pub largest_ratio: f64,
    /// Number of hosts.
    pub hosts: usize,
    /// Names of those that are down.
    pub down: Vec<String>,
    /// The fraction of the hosts of the baseline that are up.
    pub coverage: f64,
    /// Number of further observations to confirm changes.
    #[serde(default)]
    pub confirmations: u32,
    /// Seconds it took.
    pub(crate) seconds: f64,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl Record {
    /// When it ended, in seconds since 1970.
    pub(crate) fn ended_s(&self) -> Option<i64> {
        self.time.parse::<Timestamp>().ok().map(Timestamp::as_second)
    }
}

/// Appends a line and puts it on disk. The caller holds the lock.
fn append(publication: &Publication, record: &Record) -> Result<(), RefreshError> {
    let mut log = AppendLog::open(&publication.state().join("refreshes.jsonl"))?;
    log.append(&serde_json::to_string(record).unwrap_or_default())?;
    Ok(log.sync()?)
}

/// All refreshes, the oldest first. Lines that cannot be read are left out.
pub fn read_records(publication: &Publication) -> Result<Vec<Record>, RefreshError> {
    let text = AppendLog::read(&publication.state().join("refreshes.jsonl"))?;
    Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
}

/// The last refresh that succeeded.
pub(crate) fn last_success(publication: &Publication) -> Result<Option<Record>, RefreshError> {
    let mut records = read_records(publication)?;
    records.retain(|record| record.outcome.is_success());
    Ok(records.pop())
}

/// Prefix of the names of metrics.
const PRODUCT: &str = "hopmap";
/// How metrics begin.
pub(crate) const METRICS_MARK: &str = "# HELP hopmap_topology_";

/// Metrics of the last refresh. `last_success_s` is when one last succeeded, in seconds since 1970.
pub(crate) fn exposition(record: &Record, last_success_s: Option<i64>) -> String {
    let [ended, success] = [record.ended_s(), last_success_s].map(|time| time.unwrap_or_default() as f64);
    let succeeded = u8::from(record.outcome.is_success());
    let rows = [
        ("last_run_timestamp_seconds", "When the last refresh ended.", ended),
        ("last_success_timestamp_seconds", "When a refresh last succeeded; 0 if none has.", success),
        ("result", "1 if the last refresh succeeded, 0 if not.", f64::from(succeeded)),
        ("changes", "Changes that the last refresh found.", record.changes.len() as f64),
        ("hosts", "Hosts of the machine.", record.hosts as f64),
        ("hosts_down", "Hosts that are down.", record.down.len() as f64),
        ("coverage", "Part of the hosts of the baseline that are up.", record.coverage),
        ("duration_seconds", "How long the last refresh took.", record.seconds),
    ];
    let metric = |(name, help, value): &(&str, &str, f64)| {
        let name = format!("{PRODUCT}_topology_{name}");
        format!("# HELP {name} {help}\n# TYPE {name} gauge\n{name} {value}\n")
    };
    rows.iter().map(metric).collect()
}

#[cfg(test)]
mod tests {
    use super::compare::tests::machine;
    use super::*;
    use hopmap_changes::{Missing, Thresholds};

    fn refreshed(publication: &Publication, looks: &[[f64; 2]], consumer: Option<&str>) -> Record {
        updated(publication, looks, consumer, false)
    }

    fn updated(
        publication: &Publication,
        looks: &[[f64; 2]],
        consumer: Option<&str>,
        baseline: bool,
    ) -> Record {
        let consumer = consumer.map(|command| Consumer {
            command: command.to_owned(),
            limit: std::time::Duration::from_mins(1),
        });
        let settings = Settings {
            look: LookSettings {
                thresholds: Thresholds::default(),
                missing: Missing::Down,
                ignore_down: false,
                confirm: 2,
                min_coverage: 0.5,
            },
            consumer,
            retention: Retention { entries: 9, age: None },
            baseline,
        };
        let mut looks = looks.iter();
        let mut look = || Ok(machine(*looks.next().unwrap()));
        let cancelled = AtomicBool::new(false);
        refresh(publication, &settings, "a test", &cancelled, &mut look).unwrap().record
    }

    #[test]
    fn only_what_is_confirmed_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let publication = Publication::at(folder.path().join("pub"));
        assert_eq!(refreshed(&publication, &[[100.0, 100.0]], None).outcome, Outcome::First);
        let passing = [[100.0, 300.0], [100.0, 100.0]];
        assert_eq!(refreshed(&publication, &passing, None).outcome, Outcome::Unchanged);
        let lasting = [[200.0, 300.0], [200.0, 100.0], [200.0, 300.0]];
        let record = refreshed(&publication, &lasting, None);
        assert_eq!(record.outcome, Outcome::Published);
        assert_eq!(record.changes, ["h0 – h1: 200 µs, was 100 µs (+100 %)"]);
        assert_eq!(record.confirmations, 2);
        // A temporary drift was not published, or it would drift back.
        assert_eq!(refreshed(&publication, &[[200.0, 100.0]], None).outcome, Outcome::Unchanged);
    }

    #[test]
    fn what_a_consumer_has_not_taken_is_told_with_what_came_after() {
        let folder = tempfile::tempdir().unwrap();
        let publication = Publication::at(folder.path().join("pub"));
        refreshed(&publication, &[[100.0, 100.0]], None);
        let record = refreshed(&publication, &[[200.0, 100.0]; 3], Some("false"));
        assert_eq!(record.outcome, Outcome::ConsumerFailed);
        let record = refreshed(&publication, &[[200.0, 400.0]; 3], Some("true"));
        assert_eq!(record.outcome, Outcome::Published);
        assert_eq!(record.changes.len(), 2, "{:?}", record.changes);
        assert!(!publication.is_pending());
    }

    /// The new baseline dropped the notification, and the consumer never ran.
    #[test]
    fn a_new_baseline_leaves_what_a_consumer_has_yet_to_hear_of() {
        let folder = tempfile::tempdir().unwrap();
        let publication = Publication::at(folder.path().join("pub"));
        refreshed(&publication, &[[100.0, 100.0]], None);
        refreshed(&publication, &[[200.0, 100.0]; 3], Some("false"));
        let record = updated(&publication, &[[300.0, 100.0]; 3], None, true);
        assert_eq!(record.outcome, Outcome::Baseline);
        assert!(publication.is_pending());
        let told = format!("cat \"$HOPMAP_CHANGES\" > {}", folder.path().join("told").display());
        assert_eq!(refreshed(&publication, &[[300.0, 100.0]; 3], Some(&told)).outcome, Outcome::Consumed);
        // From the machine of which the consumer knows, not from that of the failed notification.
        let told = std::fs::read_to_string(folder.path().join("told")).unwrap();
        assert!(told.contains("0.0003") && !told.contains("0.0002"), "{told}");
        assert!(!publication.is_pending());
    }

    /// A refresh without a consumer said that the consumer had succeeded, and accepted what nobody had heard of.
    #[test]
    fn a_refresh_without_a_consumer_leaves_what_a_consumer_has_yet_to_hear_of() {
        let folder = tempfile::tempdir().unwrap();
        let publication = Publication::at(folder.path().join("pub"));
        let accepted = || publication.accepted().unwrap();
        refreshed(&publication, &[[100.0, 100.0]], None);
        let first = accepted();
        assert!(first.is_some() && !publication.is_pending());
        refreshed(&publication, &[[200.0, 100.0]; 3], Some("false"));
        for (look, outcome) in [
            ([200.0, 100.0], Outcome::Unchanged),
            // Further changes join those that are pending, and so does their end.
            ([200.0, 400.0], Outcome::Published),
            ([100.0, 100.0], Outcome::Reverted),
        ] {
            assert_eq!(refreshed(&publication, &[look; 3], None).outcome, outcome);
            assert!(publication.is_pending() && accepted() == first, "{outcome:?}");
        }
        let told = format!("cat \"$HOPMAP_CHANGES\" > {}", folder.path().join("told").display());
        assert_eq!(refreshed(&publication, &[[100.0, 100.0]; 3], Some(&told)).outcome, Outcome::Consumed);
        assert!(folder.path().join("told").is_file() && !publication.is_pending());
    }
}
