//! The output of mpiGraph (LLNL): bandwidths between all processes of an MPI job, as senders and as receivers see them.
//!
//! Endpoints are `host:rank`. Figures are in units of 1024 × 1024 bytes per second. What a message takes is decided by the slower end.

use std::path::Path;
use std::str::Lines;

use super::measured::{MOST_ROWS, Measured, is_host_name, refuse};
use super::reader::{Reader, Sample, malformed, one_file, read_text};
use super::{Format, ImportError, ImportParams, Imported};
use crate::CostMetric;

pub(super) static READER: Reader = Reader { format: Format::Mpigraph, recognises, files: one_file, read };

/// Bytes of what mpiGraph calls a megabyte.
const MEGABYTE: f64 = 1024.0 * 1024.0;
const HELP: &str =
    "mpiGraph writes tables `Send` and `Recv`: names in the first line, then a row for every process";

/// Whether there is a line with which mpiGraph begins; launchers may write before it.
fn recognises(sample: &Sample) -> bool {
    sample.text().is_some_and(|text| text.lines().take(200).any(|line| line.starts_with("START mpiGraph")))
}

fn read(path: &Path, params: &ImportParams) -> Result<Imported, ImportError> {
    refuse(params, &["cost"])?;
    let bytes = bytes(params)?;
    let text = read_text(path)?;
    let found = Tables::read(path, &text)?;
    let mut notes = Vec::new();
    if !text.lines().any(|line| line.starts_with("END mpiGraph")) {
        notes.push("the end of the output is missing".into());
    }
    let (Some(table), count) = (found.send, found.endpoints.len()) else {
        let line = text.lines().count();
        return Err(malformed(path, line, "there is no table of what was sent", HELP));
    };
    let receive = found.receive;
    if receive.is_empty() {
        notes.push("there is no table of what was received: bandwidths are those of the senders".into());
    }
    let mut costs = vec![0.0; count * count];
    for from in 0..count {
        for to in (0..count).filter(|&to| to != from) {
            let sent = table[from * count + to];
            let slower = receive.get(to * count + from).map_or(sent, |received| received.min(sent));
            if slower <= 0.0 {
                let [from, to] = [from, to].map(|end| &found.endpoints[end]);
                let problem = format!("there is no bandwidth from {from} to {to}");
                return Err(malformed(path, None, problem, "is the output whole? Measure again"));
            }
            costs[from * count + to] = bytes / (slower * MEGABYTE) * 1e6;
        }
    }
    notes.push(format!("costs are microseconds for {bytes} bytes at the bandwidth of the slower end"));
    let hosts = found.endpoints.iter().map(|endpoint| host_of(endpoint).to_owned());
    let measured = Measured::new(hosts, costs);
    Ok(Imported { system: measured.machine(path, &mut notes)?, notes })
}

/// Bytes of the message whose time is the cost: a megabyte if nothing is said.
fn bytes(params: &ImportParams) -> Result<f64, ImportError> {
    match (params.cost, params.bytes) {
        (None, _) => Ok(MEGABYTE),
        (Some(CostMetric::Time), Some(bytes)) => Ok(bytes as f64),
        _ => Err(ImportError::Parameter {
            name: "cost",
            problem: "cannot be known: mpiGraph measures bandwidths only".into(),
            help: "leave it out for microseconds per megabyte, or say `cost = \"time\"` and `bytes = 65536`"
                .into(),
        }),
    }
}

/// The host of `host:rank`.
fn host_of(endpoint: &str) -> &str {
    endpoint.rsplit_once(':').map_or(endpoint, |(host, _)| host)
}

#[derive(Default)]
struct Tables {
    endpoints: Vec<String>,
    send: Option<Vec<f64>>,
    receive: Vec<f64>,
}

impl Tables {
    fn read(path: &Path, text: &str) -> Result<Self, ImportError> {
        let mut found = Self::default();
        let mut lines = text.lines().enumerate();
        while let Some((index, line)) = lines.next() {
            let Some((word, names)) = line.split_once('\t') else { continue };
            // `Send max` and `Send avg` are others.
            if word != "Send" && word != "Recv" {
                continue;
            }
            let endpoints = names_of(path, names, index + 1)?;
            let is_first = found.endpoints.is_empty();
            if !is_first && found.endpoints != endpoints {
                return Err(malformed(path, index + 1, "the tables have other endpoints", HELP));
            }
            found.endpoints = endpoints;
            let is_known = if word == "Send" { found.send.is_some() } else { !found.receive.is_empty() };
            if is_known {
                let problem = format!("there is a second table `{word}`");
                return Err(malformed(path, index + 1, problem, "give one output of mpiGraph"));
            }
            let table = table(path, &mut lines, &found.endpoints, index + 1)?;
            match word {
                "Send" => found.send = Some(table),
                _ => found.receive = table,
            }
        }
        Ok(found)
    }
}

fn names_of(path: &Path, names: &str, line: usize) -> Result<Vec<String>, ImportError> {
    let endpoints: Vec<String> =
        names.split('\t').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect();
    if let Some(name) = endpoints.iter().find(|name| !is_host_name(host_of(name))) {
        return Err(malformed(path, line, format!("`{name}` is no endpoint"), "endpoints are `host:rank`"));
    }
    let mut sorted: Vec<&String> = endpoints.iter().collect();
    sorted.sort_unstable();
    let is_repeated = sorted.windows(2).any(|pair| pair[0] == pair[1]);
    match endpoints.is_empty() || endpoints.len() > MOST_ROWS || is_repeated {
        false => Ok(endpoints),
        true => {
            let problem = format!("the table has no endpoints, one twice, or more than {MOST_ROWS}");
            Err(malformed(path, line, problem, HELP))
        }
    }
}

/// The rows of a table: `host:rank to` or `host:rank from`, then a figure for every endpoint.
fn table(
    path: &Path,
    lines: &mut std::iter::Enumerate<Lines<'_>>,
    endpoints: &[String],
    first: usize,
) -> Result<Vec<f64>, ImportError> {
    let mut table = Vec::new();
    for (place, endpoint) in endpoints.iter().enumerate() {
        let line = first + 1 + place;
        let row = lines.next().map_or("", |(_, row)| row);
        let mut cells = row.split('\t').map(str::trim);
        let name = cells.next().unwrap_or_default();
        let is_row = name.strip_suffix(" to").or(name.strip_suffix(" from")) == Some(endpoint);
        if !is_row {
            return Err(malformed(path, line, format!("the row of {endpoint} is missing"), HELP));
        }
        let before = table.len();
        for cell in cells.filter(|cell| !cell.is_empty()) {
            let number: Option<f64> = cell.parse().ok();
            match number.filter(|number| number.is_finite() && *number >= 0.0) {
                Some(number) if table.len() < before + endpoints.len() => table.push(number),
                Some(_) => {
                    return Err(malformed(path, line, "the row has more figures than endpoints", HELP));
                }
                None => return Err(malformed(path, line, format!("`{cell}` is no bandwidth"), HELP)),
            }
        }
        if table.len() < before + endpoints.len() {
            let problem =
                format!("the row has {} figures for {} endpoints", table.len() - before, endpoints.len());
            return Err(malformed(path, line, problem, HELP));
        }
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two processes on `a` and one on `b`, `b` between them.
    fn output(version: &str) -> String {
        format!(
            "Warning of a launcher\nSTART mpiGraph {version}\nMsgSize\t1024\nTimes\t1\nWindow\t1\nProcs\t3\n\n1 of 3 (33.3%)\n\
             2 of 3 (66.7%)\nGathering results\n\nSend max\t9.0\nSend avg\t1.0\n\n\
             Send\ta:0\tb:1\ta:2\t\na:0 to\t0.000\t2.000\t4.000\t\nb:1 to\t5.000\t0.000\t8.000\t\na:2 to\t1.000\t10.000\t0.000\t\n\
             \nRecv max\t9.0\nRecv avg\t1.0\n\n\
             Recv\ta:0\tb:1\ta:2\t\na:0 from\t0.000\t2.000\t9.000\t\nb:1 from\t9.000\t0.000\t9.000\t\na:2 from\t3.000\t16.000\t0.000\t\n\
             END mpiGraph\n"
        )
    }

    fn import(text: &str, params: &ImportParams) -> Result<Imported, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        assert!(recognises(&Sample::new(file.path()).unwrap()));
        read(file.path(), params).map_err(|error| error.to_string())
    }

    #[test]
    fn costs_are_the_time_of_a_megabyte_at_the_slower_end() {
        for version in ["v1.5", "v1.6", "v1.4"] {
            let Imported { system, notes } = import(&output(version), &ImportParams::default()).unwrap();
            let names: Vec<_> = system.nodes.iter().map(|node| node.name.as_str()).collect();
            assert_eq!(names, ["a", "b"]);
            // a:0, a:2, b:1
            let expected = [[0.0, 3.0, 2.0], [1.0, 0.0, 9.0], [2.0, 8.0, 0.0]];
            let costs = expected.as_flattened().iter().map(|&rate| if rate > 0.0 { 1e6 / rate } else { 0.0 });
            let found = system.costs().block(&[0, 1, 2]);
            for (found, expected) in found.iter().zip(costs) {
                assert!((found - expected).abs() < 1e-9, "{found} {expected}");
            }
            assert_eq!(notes.len(), 2);
        }
        let params =
            ImportParams { cost: Some(CostMetric::Time), bytes: Some(1 << 19), ..ImportParams::default() };
        let system = import(&output("v1.5"), &params).unwrap().system;
        assert!((system.costs().between(1, 0) - 5e5).abs() < 1e-6);
        let params = ImportParams { cost: Some(CostMetric::Latency), ..ImportParams::default() };
        assert!(import(&output("v1.5"), &params).unwrap_err().contains("bandwidths only"));
    }

    #[test]
    fn senders_alone_will_do_and_what_is_missing_is_named() {
        let text = output("v1.5");
        let sent = text.split("\nRecv max").next().unwrap();
        let Imported { system, notes } = import(sent, &ImportParams::default()).unwrap();
        assert!((system.costs().between(0, 1) - 1e6 / 4.0).abs() < 1e-6);
        assert_eq!(notes.len(), 4);
        let problem = |from: &str, to: &str| {
            let text = output("v1.5");
            assert!(text.contains(from));
            import(&text.replace(from, to), &ImportParams::default()).unwrap_err()
        };
        assert!(problem("b:1 to\t5.000\t0.000\t8.000\t\n", "").contains(":17: the row of b:1 is missing"));
        assert!(
            problem("a:2 to\t1.000\t10.000", "a:2 to\t1.000").contains(":18: the row has 2 figures for 3")
        );
        assert!(problem("\t10.000", "\tinf").contains("`inf` is no bandwidth"));
        assert!(problem("\t10.000", "\t0.000").contains("no bandwidth from a:2 to b:1"));
        assert!(problem("Recv\ta:0", "Recv\ta:7").contains("other endpoints"));
        assert!(problem("Recv\ta:0", "Send\ta:0").contains("second table"));
        assert!(problem("\nSend\t", "\nSent\t").contains("no table of what was sent"));
    }
}
