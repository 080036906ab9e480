//! Networks measured by PARUS: output of `network_test` as text and netCDF.

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use hopmap_formats::parus::{Kind, NetworkFile, hosts_of_netcdf};
use hopmap_model::InputPath;
use hopmap_text::FileError;

use super::format::{MOST_BYTES, Sample, malformed, read_text};
use super::measured::{MOST_ROWS, Measured, is_host_name, refuse};
use super::{ImportError, ImportParams, Imported, Result};
use hopmap_machines::params::CostMetric;

pub(super) fn recognises(sample: &Sample) -> bool {
    let Some(text) = sample.text() else { return false };
    let mut words = text.split_whitespace();
    let begins =
        words.next() == Some("processors") && words.next().is_some_and(|word| word.parse::<u32>().is_ok());
    begins && text.contains("begin message length") && text.contains("test type")
}

pub(super) fn read(path: &Path, params: &ImportParams) -> Result<Imported> {
    refuse(params, &["cost"])?;
    let file = NetworkFile::read(read_text(path)?.as_bytes()).map_err(|error| error.in_file(path))?;
    machine(file, params)
}

/// Reads a network file.
pub(super) fn network(path: &Path) -> Result<NetworkFile, FileError> {
    NetworkFile::read(&hopmap_text::read(path, MOST_BYTES)?).map_err(|error| error.in_file(path))
}

/// The machine with one slot per process.
pub(super) fn machine(file: NetworkFile, params: &ImportParams) -> Result<Imported> {
    let mut notes = Vec::new();
    let count = file.processes;
    if count > MOST_ROWS {
        let problem = format!("there are more than {MOST_ROWS} processes");
        return Err(malformed(None, problem, "measure fewer processes per host"));
    }
    if let Some(host) = file.hosts.iter().find(|host| !is_host_name(host)) {
        let help = "host names must not contain blanks";
        return Err(malformed(None, format!("`{host}` is not a valid host name"), help));
    }
    let bytes = bytes(params)?;
    let times = Times::new(&file, &mut notes)?;
    let costs = times.costs(bytes);
    if count > 1 && costs.iter().all(|cost| *cost == 0.0) {
        notes.push("all costs are zero: set `cost = \"time\"` and `bytes` for longer messages".into());
    }
    notes.push(match bytes {
        None => format!("costs are one-way times in microseconds of messages of {} bytes", file.lengths[0]),
        Some(bytes) => format!("costs are one-way times in microseconds of messages of {bytes} bytes"),
    });
    let missing = file.expected_lengths.saturating_sub(file.lengths.len() as u64);
    if missing > 0 {
        notes.push(format!("the test was aborted: {missing} message lengths are missing"));
    }
    let hosts = match file.hosts.is_empty() {
        false => file.hosts,
        true => {
            notes.push("the file contains no host names: treating every process as a host".into());
            (0..count).map(|rank| format!("host-{rank}")).collect()
        }
    };
    let system = Measured::new(hosts, costs).machine(&mut notes)?;
    Ok(Imported { system, notes })
}

/// Message size in bytes; `None` for the shortest one.
fn bytes(params: &ImportParams) -> Result<Option<u64>> {
    match params.cost {
        None | Some(CostMetric::Latency) => Ok(None),
        Some(CostMetric::Time) => Ok(params.bytes),
        Some(CostMetric::Hops) => {
            let help = "use `latency` (the default), or `time` with `bytes = 65536`";
            Err(ImportError::parameter("cost", "cannot be `hops`: the file contains no links", help))
        }
    }
}

/// Times above this, in seconds, are invalid.
const ABSURD: f64 = 1e5;

/// Part of the communication included in a time.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Included {
    /// The message and a short reply: `one_to_one` waits for the reply to its reply.
    AndAnswer,
    /// A full round trip.
    Twice,
    /// One way, or unknown.
    Once,
}

/// Times between all pairs of processes in seconds, for several message lengths.
struct Times<'a> {
    file: &'a NetworkFile,
    included: Included,
}

impl<'a> Times<'a> {
    /// Checks that the values are times.
    fn new(file: &'a NetworkFile, notes: &mut Vec<String>) -> Result<Self> {
        match &file.kind {
            Kind::Average | Kind::Median => {}
            Kind::Minimum => notes.push(
                "these are minima, which may include messages that arrived before the receive was posted: medians or averages are better"
                    .into(),
            ),
            Kind::Deviation => return Err(no_times("standard deviations")),
            Kind::Other(other) => return Err(no_times(&format!("of kind `{other}`"))),
        }
        let included = match file.test.as_str() {
            "one_to_one" => Included::AndAnswer,
            "send_recv_and_recv_send" | "send_recv_end_recv_send" => Included::Twice,
            other => {
                notes.push(format!("times of the test `{other}` are used unchanged"));
                Included::Once
            }
        };
        let count = file.processes;
        for (length, seconds) in file.lengths.iter().zip(&file.seconds) {
            let is_time =
                |(pair, time): (usize, &f64)| pair / count == pair % count || (0.0..ABSURD).contains(time);
            if let Some(pair) = seconds.iter().enumerate().position(|(pair, time)| !is_time((pair, time))) {
                let [receiver, sender] =
                    [pair / count, pair % count].map(|rank| match file.hosts.get(rank) {
                        Some(host) => format!("{rank} ({host})"),
                        None => rank.to_string(),
                    });
                let problem = format!(
                    "the time of messages of {length} bytes from process {sender} to process {receiver} is {} seconds",
                    seconds[pair]
                );
                return Err(malformed(None, problem, "the value is invalid: run the test again"));
            }
        }
        Ok(Self { file, included })
    }

    /// Times between all pairs of processes in microseconds for a message size, by default the shortest one.
    fn costs(&self, bytes: Option<u64>) -> Vec<f64> {
        let count = self.file.processes;
        let cost = |pair: usize| {
            let (sender, receiver) = (pair / count, pair % count);
            match sender == receiver {
                // Not measured.
                true => 0.0,
                false => self.one_way(receiver * count + sender, bytes) * 1e6,
            }
        };
        (0..count * count).map(cost).collect()
    }

    /// Time of a message in seconds: linear interpolation between two lengths, extrapolation beyond the last.
    fn one_way(&self, pair: usize, bytes: Option<u64>) -> f64 {
        let lengths = &self.file.lengths;
        let Some(bytes) = bytes.filter(|bytes| *bytes > lengths[0]) else { return self.at(pair, 0) };
        let upper = lengths.partition_point(|length| *length < bytes).min(lengths.len() - 1);
        let Some(lower) = upper.checked_sub(1) else { return self.at(pair, 0) };
        let (before, after) = (self.at(pair, lower), self.at(pair, upper));
        let part = (bytes - lengths[lower]) as f64 / (lengths[upper] - lengths[lower]) as f64;
        let time = before + (after - before) * part;
        // Times do not decrease with size, regardless of noise.
        if part > 1.0 { time.max(after) } else { time }
    }

    /// Time of a message of one of the lengths in seconds.
    fn at(&self, pair: usize, length: usize) -> f64 {
        let time = self.file.seconds[length][pair];
        match self.included {
            Included::Once => time,
            Included::Twice => time / 2.0,
            // The reply has the length of the shortest message.
            Included::AndAnswer => (time - self.file.seconds[0][pair] / 2.0).max(time / 2.0),
        }
    }
}

fn no_times(what: &str) -> ImportError {
    malformed(
        None,
        format!("the values are {what} instead of times"),
        "use the file of medians or averages of the same run",
    )
}

/// The header contains the names of variables.
pub(super) fn recognises_netcdf(sample: &Sample) -> bool {
    let has = |name: &str| sample.head.windows(name.len()).any(|bytes| bytes == name.as_bytes());
    sample.head.starts_with(b"CDF") && has("proc_num") && has("begin_mes_length")
}

#[expect(clippy::unnecessary_wraps, reason = "it can fail for other formats")]
pub(super) fn files(path: &Path) -> Result<Vec<InputPath>> {
    let hosts = hosts(path).map(|hosts| InputPath::named(hosts, "hosts"));
    Ok(std::iter::once(InputPath::named(path, "machine")).chain(hosts).collect())
}

/// The file of hosts for a network file, if it exists.
fn hosts(path: &Path) -> Option<PathBuf> {
    let name = hosts_of_netcdf(path.file_name()?.to_str()?)?;
    Some(path.with_file_name(name)).filter(|hosts| hosts.is_file())
}

pub(super) fn read_netcdf(path: &Path, params: &ImportParams) -> Result<Imported> {
    refuse(params, &["cost"])?;
    let mut file = network(path)?;
    if let Some(hosts) = hosts(path) {
        file.set_hosts(&read_text(&hosts)?).map_err(|error| error.in_file(&hosts))?;
    }
    machine(file, params)
}
