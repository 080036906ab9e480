//! The state of refreshing for the textfile collector of Prometheus' node exporter.

use super::Record;

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
