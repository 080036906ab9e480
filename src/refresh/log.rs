//! The log of all refreshes, and the state of refreshing for the textfile collector of Prometheus' node exporter.

use std::collections::BTreeMap;

use hopmap_durable::AppendLog;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Publication, RefreshError};

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
    /// Something else went wrong.
    #[default]
    Failed,
}

impl Outcome {
    /// Whether all is as it should be.
    #[must_use]
    pub fn is_success(self) -> bool {
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
    /// What is published now.
    pub entry: Option<String>,
    /// What was different, for people.
    pub changes: Vec<String>,
    /// Median latency in seconds of pairs of hosts by the level on which they meet; empty where nothing was measured.
    #[serde(default)]
    pub medians_s: BTreeMap<usize, f64>,
    /// The largest ratio between the latency of two hosts and that of the baseline; 1 where nothing was measured, 0 where nothing was
    /// seen.
    #[serde(default)]
    pub largest_ratio: f64,
    /// Hosts in all.
    pub hosts: usize,
    /// Names of those that are down.
    pub down: Vec<String>,
    /// The part of the hosts of the baseline that are up.
    pub coverage: f64,
    /// How often the machine was looked at once more to confirm changes.
    #[serde(default)]
    pub confirmations: u32,
    /// Seconds it took.
    pub seconds: f64,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl Record {
    /// When it ended, in seconds since 1970.
    #[must_use]
    pub fn ended_s(&self) -> Option<i64> {
        self.time.parse::<Timestamp>().ok().map(Timestamp::as_second)
    }
}

/// Now, as records say it.
pub(super) fn now() -> String {
    Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Appends a line and puts it on disk. The caller holds the lock.
pub(super) fn append(publication: &Publication, record: &Record) -> Result<(), RefreshError> {
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
pub fn last_success(publication: &Publication) -> Result<Option<Record>, RefreshError> {
    let mut records = read_records(publication)?;
    records.retain(|record| record.outcome.is_success());
    Ok(records.pop())
}

/// What names of metrics begin with.
const PRODUCT: &str = "hopmap";

/// Metrics of the last refresh. `last_success_s` is when one last succeeded, in seconds since 1970.
#[must_use]
pub fn exposition(record: &Record, last_success_s: Option<i64>) -> String {
    let ended = record.ended_s().unwrap_or_default() as f64;
    let succeeded = u8::from(record.outcome.is_success());
    let rows = [
        ("last_run_timestamp_seconds", "When the last refresh ended.", ended),
        (
            "last_success_timestamp_seconds",
            "When a refresh last succeeded; 0 if none has.",
            last_success_s.unwrap_or_default() as f64,
        ),
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
