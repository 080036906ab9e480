//! Networks as PARUS measured them: text of `network_test`. The costs of both kinds of files are made here.

mod times;

#[cfg(test)]
mod tests;

use std::path::Path;

use hopmap_formats::parus::NetworkFile;
use hopmap_text::FileError;

use super::measured::{MOST_ROWS, Measured, is_host_name, refuse};
use super::reader::{MOST_BYTES, Reader, Sample, malformed, one_file};
use super::{Format, ImportError, ImportParams, Imported};
use crate::CostMetric;
use times::Times;

pub(super) static READER: Reader = Reader { format: Format::Parus, recognises, files: one_file, read };

fn recognises(sample: &Sample) -> bool {
    let Some(text) = sample.text() else { return false };
    let mut words = text.split_whitespace();
    let begins =
        words.next() == Some("processors") && words.next().is_some_and(|word| word.parse::<u32>().is_ok());
    begins && text.contains("begin message length") && text.contains("test type")
}

fn read(path: &Path, params: &ImportParams) -> Result<Imported, ImportError> {
    refuse(params, &["cost"])?;
    machine(path, network(path)?, params)
}

/// A network file as it is.
pub(super) fn network(path: &Path) -> Result<NetworkFile, FileError> {
    NetworkFile::read(&hopmap_text::read(path, MOST_BYTES)?).map_err(|error| error.in_file(path))
}

/// The machine: a slot for every process.
pub(super) fn machine(
    path: &Path,
    file: NetworkFile,
    params: &ImportParams,
) -> Result<Imported, ImportError> {
    let mut notes = Vec::new();
    let count = file.processes;
    if count > MOST_ROWS {
        let problem = format!("there are more than {MOST_ROWS} processes");
        return Err(malformed(path, None, problem, "measure fewer processes of a host"));
    }
    if let Some(host) = file.hosts.iter().find(|host| !is_host_name(host)) {
        return Err(malformed(
            path,
            None,
            format!("`{host}` is no name of a host"),
            "a host has a name without blanks",
        ));
    }
    let bytes = bytes(params)?;
    let times = Times::new(path, &file, &mut notes)?;
    let costs = times.costs(bytes);
    if count > 1 && costs.iter().all(|cost| *cost == 0.0) {
        notes.push(
            "all costs are zero: say `cost = \"time\"` and `bytes` for those of longer messages".into(),
        );
    }
    notes.push(match bytes {
        None => format!("costs are microseconds one way, of messages of {} bytes", file.lengths[0]),
        Some(bytes) => format!("costs are microseconds one way, of messages of {bytes} bytes"),
    });
    let missing = file.expected_lengths.saturating_sub(file.lengths.len() as u64);
    if missing > 0 {
        notes.push(format!("the test was broken off: {missing} lengths of messages are missing"));
    }
    let hosts = match file.hosts.is_empty() {
        false => file.hosts,
        true => {
            notes.push("the file does not say which hosts these are: every process is one".into());
            (0..count).map(|rank| format!("host-{rank}")).collect()
        }
    };
    let system = Measured::new(hosts, costs).machine(path, &mut notes)?;
    Ok(Imported { system, notes })
}

/// Bytes of the message that counts; `None` for the shortest one.
fn bytes(params: &ImportParams) -> Result<Option<u64>, ImportError> {
    match params.cost {
        None | Some(CostMetric::Latency) => Ok(None),
        Some(CostMetric::Time) => Ok(params.bytes),
        Some(CostMetric::Hops) => Err(ImportError::Parameter {
            name: "cost",
            problem: "cannot be `hops`: the file does not know links".into(),
            help: "`latency`, which it is anyway, or `time` with `bytes = 65536`".into(),
        }),
    }
}
