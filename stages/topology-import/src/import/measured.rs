//! Machines defined by one number per pair of endpoints, and two programs that measure such numbers: mpiGraph
//! between processes, `core-to-core-latency` between cores.

use std::collections::HashMap;
use std::str::Lines;

use hopmap_model::{CostModel, Matrix, Node, Routing, Slot, SystemGraph, to_u32};

use super::format::{Sample, malformed};
use super::{ImportError, ImportParams, Imported, Result};
use hopmap_machines::params::CostMetric;

/// Largest number of rows of a matrix.
pub(super) const MOST_ROWS: usize = 1 << 14;

/// A cost for every ordered pair of endpoints.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Measured {
    /// The host of every endpoint, and its core if known.
    pub(super) endpoints: Vec<(String, Option<u32>)>,
    /// From endpoint `a` to endpoint `b` of `n` at `a * n + b`.
    pub(super) costs: Vec<f64>,
}

impl Measured {
    /// Endpoints without known cores.
    pub(super) fn new(hosts: impl IntoIterator<Item = String>, costs: Vec<f64>) -> Self {
        Self { endpoints: hosts.into_iter().map(|host| (host, None)).collect(), costs }
    }

    /// The machine: hosts in order of first occurrence, the endpoints of a host consecutive. Unknown cores
    /// are numbered per host. If endpoints are reordered, so are the rows and columns of the matrix.
    pub(super) fn machine(self, notes: &mut Vec<String>) -> Result<SystemGraph> {
        let count = self.endpoints.len();
        let mut hosts: HashMap<&str, u32> = HashMap::new();
        let mut known: Vec<Node> = Vec::new();
        let host_of: Vec<u32> = self
            .endpoints
            .iter()
            .map(|(host, _)| {
                *hosts.entry(host).or_insert_with(|| {
                    known.push(Node::host(host.clone()));
                    to_u32(known.len()) - 1
                })
            })
            .collect();
        let mut order: Vec<usize> = (0..count).collect();
        order.sort_by_key(|&endpoint| host_of[endpoint]);
        let is_in_order = order.windows(2).all(|pair| pair[0] < pair[1]);
        if !is_in_order {
            notes.push("endpoints of one host are not consecutive: slots are reordered by host".into());
        }
        let mut next = vec![0; known.len()];
        let slots = order
            .iter()
            .map(|&endpoint| {
                let host = host_of[endpoint];
                let counted = next[host as usize];
                next[host as usize] += 1;
                Slot { host, core: self.endpoints[endpoint].1.unwrap_or(counted) }
            })
            .collect();
        let costs = match is_in_order {
            true => self.costs,
            false => {
                let row = |&a: &usize| self.costs.get(a * count..(a + 1) * count).unwrap_or_default();
                order.iter().flat_map(|a| order.iter().filter_map(move |&b| row(a).get(b).copied())).collect()
            }
        };
        let cost = CostModel::Matrix(Matrix { costs });
        let system = SystemGraph {
            nodes: known,
            links: Vec::new(),
            slots,
            cost,
            routing: Routing::default(),
            calibration: Vec::new(),
        };
        system.check().map_err(ImportError::machine)?;
        Ok(system)
    }
}

/// Rejects parameters that have no effect because the file defines the cost of every pair.
pub(super) fn refuse(params: &ImportParams, meaningful: &[&str]) -> Result<()> {
    let mut names =
        vec!["cost", "link_latency_s", "slots", "hwloc", "hardware_threads", "intra_node_costs", "costs"];
    names.retain(|name| !meaningful.contains(name));
    params.refuse(&names, "the file defines the costs of all pairs", "omit it")
}

/// Whether a host can have this name: non-empty, no blanks or control characters, limited length.
pub(super) fn is_host_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= 255 && !name.contains(|c: char| c.is_whitespace() || c.is_control())
}

/// Bytes of mpiGraph's megabyte.
const MEGABYTE: f64 = 1024.0 * 1024.0;
const HELP: &str =
    "mpiGraph writes tables `Send` and `Recv`: names in the first line, then a row for every process";

/// Whether a line is the first of mpiGraph; launchers may print others before it.
pub(super) fn recognises_mpigraph(sample: &Sample) -> bool {
    sample.text().is_some_and(|text| text.lines().take(200).any(|line| line.starts_with("START mpiGraph")))
}

/// Output of mpiGraph (LLNL): bandwidths between all processes of an MPI job, measured by senders and by
/// receivers.
///
/// Endpoints are `host:rank`. Values are in units of 1024 × 1024 bytes per second. The slower end determines
/// the time of a message.
pub(super) fn read_mpigraph(text: &str, params: &ImportParams) -> Result<Imported> {
    refuse(params, &["cost"])?;
    let bytes = bytes(params)?;
    let found = Tables::read(text)?;
    let mut notes = Vec::new();
    if !text.lines().any(|line| line.starts_with("END mpiGraph")) {
        notes.push("the end of the output is missing".into());
    }
    let (Some(table), count) = (found.send, found.endpoints.len()) else {
        let line = text.lines().count();
        return Err(malformed(line, "the table of sent messages is missing", HELP));
    };
    let receive = found.receive;
    if receive.is_empty() {
        notes.push("the table of received messages is missing: using the bandwidths of the senders".into());
    }
    let mut costs = vec![0.0; count * count];
    for from in 0..count {
        for to in (0..count).filter(|&to| to != from) {
            let sent = table[from * count + to];
            let slower = receive.get(to * count + from).map_or(sent, |received| received.min(sent));
            if slower <= 0.0 {
                let [from, to] = [from, to].map(|end| &found.endpoints[end]);
                let problem = format!("there is no bandwidth from {from} to {to}");
                return Err(malformed(None, problem, "check that the output is complete, or measure again"));
            }
            costs[from * count + to] = bytes / (slower * MEGABYTE) * 1e6;
        }
    }
    notes.push(format!("costs are microseconds for {bytes} bytes at the bandwidth of the slower end"));
    let hosts = found.endpoints.iter().map(|endpoint| host_of(endpoint).to_owned());
    let measured = Measured::new(hosts, costs);
    Ok(Imported { system: measured.machine(&mut notes)?, notes })
}

/// Size in bytes of the message whose time is the cost; a megabyte by default.
fn bytes(params: &ImportParams) -> Result<f64> {
    match (params.cost, params.bytes) {
        (None, _) => Ok(MEGABYTE),
        (Some(CostMetric::Time), Some(bytes)) => Ok(bytes as f64),
        _ => {
            let problem = "is not available: mpiGraph measures bandwidths only";
            let help = "omit it for microseconds per megabyte, or set `cost = \"time\"` and `bytes = 65536`";
            Err(ImportError::parameter("cost", problem, help))
        }
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
    fn read(text: &str) -> Result<Self> {
        let mut found = Self::default();
        let mut lines = text.lines().enumerate();
        while let Some((index, line)) = lines.next() {
            let Some((word, names)) = line.split_once('\t') else { continue };
            // `Send max` and `Send avg` are other lines.
            if word != "Send" && word != "Recv" {
                continue;
            }
            let endpoints = names_of(names, index + 1)?;
            let is_first = found.endpoints.is_empty();
            if !is_first && found.endpoints != endpoints {
                return Err(malformed(index + 1, "the tables have different endpoints", HELP));
            }
            found.endpoints = endpoints;
            let is_known = if word == "Send" { found.send.is_some() } else { !found.receive.is_empty() };
            if is_known {
                let problem = format!("there is a second table `{word}`");
                return Err(malformed(index + 1, problem, "give the output of a single run of mpiGraph"));
            }
            let table = table(&mut lines, &found.endpoints, index + 1)?;
            match word {
                "Send" => found.send = Some(table),
                _ => found.receive = table,
            }
        }
        Ok(found)
    }
}

fn names_of(names: &str, line: usize) -> Result<Vec<String>> {
    let endpoints: Vec<String> =
        names.split('\t').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect();
    if let Some(name) = endpoints.iter().find(|name| !is_host_name(host_of(name))) {
        return Err(malformed(
            line,
            format!("`{name}` is not an endpoint"),
            "endpoints have the form `host:rank`",
        ));
    }
    let mut sorted: Vec<&String> = endpoints.iter().collect();
    sorted.sort_unstable();
    let is_repeated = sorted.windows(2).any(|pair| pair[0] == pair[1]);
    match endpoints.is_empty() || endpoints.len() > MOST_ROWS || is_repeated {
        false => Ok(endpoints),
        true => {
            let problem = format!("the table has no endpoints, duplicate ones, or more than {MOST_ROWS}");
            Err(malformed(line, problem, HELP))
        }
    }
}

/// The rows of a table: `host:rank to` or `host:rank from`, then one value per endpoint.
fn table(
    lines: &mut std::iter::Enumerate<Lines<'_>>,
    endpoints: &[String],
    first: usize,
) -> Result<Vec<f64>> {
    let mut table = Vec::new();
    for (place, endpoint) in endpoints.iter().enumerate() {
        let row = lines.find(|(_, row)| !row.trim().is_empty());
        let (line, row) = row.map_or((first + 1 + place, ""), |(index, row)| (index + 1, row));
        let mut cells = row.split('\t').map(str::trim);
        let name = cells.next().unwrap_or_default();
        let is_row = name.strip_suffix(" to").or(name.strip_suffix(" from")) == Some(endpoint);
        if !is_row {
            return Err(malformed(line, format!("the row of {endpoint} is missing"), HELP));
        }
        let before = table.len();
        for cell in cells.filter(|cell| !cell.is_empty()) {
            let number: Option<f64> = cell.parse().ok();
            match number.filter(|number| number.is_finite() && *number >= 0.0) {
                Some(number) if table.len() < before + endpoints.len() => table.push(number),
                Some(_) => {
                    return Err(malformed(line, "the row has more values than endpoints", HELP));
                }
                None => return Err(malformed(line, format!("`{cell}` is not a valid bandwidth"), HELP)),
            }
        }
        if table.len() < before + endpoints.len() {
            let problem =
                format!("the row has {} values for {} endpoints", table.len() - before, endpoints.len());
            return Err(malformed(line, problem, HELP));
        }
    }
    Ok(table)
}

/// Name of the host, which is not in the file.
const HOST: &str = "localhost";

pub(super) fn recognises_core_to_core(sample: &Sample) -> bool {
    let Some(text) = sample.text() else { return false };
    let mut columns = None;
    let mut rows = 0;
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let count = line.split(',').count();
        if *columns.get_or_insert(count) != count || row(line, rows).is_err() {
            return false;
        }
        rows += 1;
    }
    columns.is_some_and(|columns| columns >= 2 && rows >= 2 && (!sample.is_whole() || rows == columns))
}

/// The numbers of a row; their number is the index of the row.
fn row(line: &str, index: usize) -> Result<Vec<f64>, (usize, String)> {
    let mut numbers = Vec::new();
    for (column, cell) in line.split(',').map(str::trim).enumerate() {
        match (column < index, cell.is_empty()) {
            (true, true) => return Err((column, "is empty".into())),
            (false, false) => return Err((column, "is not empty, on or above the diagonal".into())),
            (false, true) => {}
            (true, false) => {
                let number = cell.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0);
                numbers.push(number.ok_or_else(|| (column, "is not a valid latency".to_owned()))?);
            }
        }
    }
    Ok(numbers)
}

/// Latencies between the cores of one host in the format of `core-to-core-latency`: CSV without names,
/// nanoseconds below the diagonal, empty elsewhere.
pub(super) fn read_core_to_core(text: &str, params: &ImportParams) -> Result<Imported> {
    refuse(params, &[])?;
    let help = "the file has one line per core, each with one cell per core: latencies in nanoseconds to the previous cores, \
                the rest empty";
    let mut lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()).peekable();
    let first = lines.peek().map_or(0, |(_, line)| line.split(',').count());
    let mut rows = Vec::new();
    for (index, (number, line)) in lines.enumerate() {
        let cells = line.split(',').count();
        if cells != first || index >= first {
            let problem = match index >= first {
                true => format!("there are more rows than the {first} columns"),
                false => format!("the row has {cells} cells, the first one {first}"),
            };
            return Err(malformed(number, problem, help));
        }
        if first > MOST_ROWS {
            let problem = format!("there are more than {MOST_ROWS} columns");
            return Err(malformed(number, problem, help));
        }
        let numbers = row(line, index)
            .map_err(|(column, problem)| malformed(number, format!("cell {} {problem}", column + 1), help))?;
        rows.push(numbers);
    }
    let count = rows.len();
    if count != first {
        let problem = format!("there are {count} rows of {first} columns");
        return Err(malformed(count, problem, help));
    }
    let mut costs = vec![0.0; count * count];
    for (a, row) in rows.iter().enumerate() {
        for (b, &cost) in row.iter().enumerate() {
            costs[a * count + b] = cost;
            costs[b * count + a] = cost;
        }
    }
    let mut notes = vec![
        "costs are nanoseconds; core numbers are row numbers, as numbered by the operating system".to_owned(),
        format!("the file contains no host name: using `{HOST}`"),
    ];
    let measured = Measured::new(vec![HOST.to_owned(); count], costs);
    Ok(Imported { system: measured.machine(&mut notes)?, notes })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::Format;
    use crate::import::samples::import_known;

    #[test]
    fn endpoints_of_a_host_are_grouped() {
        let hosts = ["a", "b", "a", "b"].map(str::to_owned);
        let measured = Measured::new(hosts, (0..16).map(f64::from).collect());
        let mut notes = Vec::new();
        let system = measured.machine(&mut notes).unwrap();
        let slots: Vec<_> = system.slots.iter().map(|slot| (slot.host, slot.core)).collect();
        assert_eq!(slots, [(0, 0), (0, 1), (1, 0), (1, 1)]);
        assert_eq!(system.costs().block(&[0, 1, 2, 3])[..8], [0.0, 2.0, 1.0, 3.0, 8.0, 10.0, 9.0, 11.0]);
        assert_eq!(notes.len(), 1);
    }

    /// Two processes on `a` and one on `b`, with `b` between them.
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
        import_known(Format::Mpigraph, text, params)
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
    fn senders_alone_suffice_and_missing_data_are_reported() {
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
            problem("a:2 to\t1.000\t10.000", "a:2 to\t1.000").contains(":18: the row has 2 values for 3")
        );
        assert!(problem("\t10.000", "\tinf").contains("`inf` is not a valid bandwidth"));
        assert!(problem("\t10.000", "\t0.000").contains("no bandwidth from a:2 to b:1"));
        assert!(problem("Recv\ta:0", "Recv\ta:7").contains("different endpoints"));
        assert!(problem("Recv\ta:0", "Send\ta:0").contains("second table"));
        assert!(problem("\nSend\t", "\nSent\t").contains("the table of sent messages is missing"));
    }

    fn import_latencies(text: &str) -> Result<Imported, String> {
        import_known(Format::CoreToCore, text, &ImportParams::default())
    }

    #[test]
    fn the_triangle_is_mirrored() {
        let system = import_latencies(",,\n1.5,,\n2,3,\n").unwrap().system;
        let block = system.costs().block(&[0, 1, 2]);
        assert_eq!(block, [0.0, 1.5, 2.0, 1.5, 0.0, 3.0, 2.0, 3.0, 0.0]);
        assert_eq!((system.nodes.len(), system.slots[2].core), (1, 2));
        assert_eq!(import_latencies(",\n7,").unwrap().system.slots.len(), 2);
    }

    #[test]
    fn other_shapes_are_rejected() {
        assert!(import_latencies(",,\n1,,\n").unwrap_err().contains("2 rows of 3"));
        assert!(import_latencies(",,\n1,,\n2,3,\n4,5,6\n").unwrap_err().contains(":4: there are more rows"));
        assert!(import_latencies(",,\n1,\n2,3,\n").unwrap_err().contains(":2: the row has 2 cells"));
        assert!(import_latencies(",,\n1,4,\n2,3,\n").unwrap_err().contains(":2: cell 2 is not empty"));
        assert!(import_latencies(",,\n1,,\n,3,\n").unwrap_err().contains(":3: cell 1 is empty"));
        assert!(
            import_latencies(",,\nx,,\n2,-3,\n").unwrap_err().contains(":2: cell 1 is not a valid latency")
        );
        assert!(import_latencies("0,1\n1,0\n").unwrap_err().contains(":1: cell 1 is not empty"));
    }
}
