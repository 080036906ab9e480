//! Cables as CSV, one per row, as exported by `NetBox`, LLDP collectors and spreadsheets.

use std::collections::HashMap;

use csv::StringRecord;
use hopmap_model::{Link, to_u32};
use hopmap_text::shown;

use super::finish::imported;
use super::format::{Sample, malformed};
use super::graph::{Cores, Graph, GraphLink, GraphNode, Unused, link_state, node_state};
use super::units::unit_of_name;
use super::{ImportParams, Imported, Result, csv_text};

const HELP: &str = "the first line names the columns: `source,destination` or `device_a,interface_a,device_b,interface_b`, and \
                    `source_type`, `destination_type` (`host` or `switch`), `bandwidth`, `latency`, `state` if known";

/// The first line has columns for both ends of links.
pub(super) fn recognises(sample: &Sample) -> bool {
    sample.text().and_then(csv_text::names).is_some_and(|names| is_header(&names))
}

fn is_header(names: &[&str]) -> bool {
    let names: Vec<String> = names.iter().map(|name| normal(name)).collect();
    let has = |known| names.iter().any(|name| is_one_of(known, name));
    // An empty corner is that of a matrix, whose hosts may be called `node-a` and `node-b`.
    !names[0].is_empty() && has(SOURCE) && has(DESTINATION)
}

/// The lines that are no rows.
pub(super) fn others(text: &str) -> Result<Vec<usize>> {
    let of_names = |names: &[&str]| {
        let is_name = |at: &usize| matches!(Column::of(&normal(names[*at])), Column::Name(_));
        (0..names.len()).filter(is_name).collect()
    };
    csv_text::others(text, |_| None, of_names, is_header)
}

const SOURCE: &str = "source src from device_a a_device side_a_device local_host local_device node_a \
                      host_a source_host source_device";
const DESTINATION: &str = "destination dst to target device_b b_device side_b_device remote_host \
                           remote_device node_b host_b destination_host destination_device peer_host \
                           neighbor neighbour";
const SOURCE_PORT: &str = "source_port src_port interface_a a_interface side_a_name local_port \
                           local_interface port_a a_port source_interface";
const DESTINATION_PORT: &str = "destination_port dst_port target_port interface_b b_interface \
    side_b_name remote_port remote_interface port_b b_port destination_interface peer_port";

fn is_one_of(names: &str, name: &str) -> bool {
    names.split(' ').any(|known| known == name)
}

/// The meaning of a column.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Column {
    Name(usize),
    Port(usize),
    Kind(usize),
    NodeState(usize),
    Address(usize),
    Slots(usize),
    Bandwidth(Option<f64>),
    Latency(Option<f64>),
    State,
    Both,
    /// What a cable is: `aoc`, `dac-passive`, `power`.
    Cable,
    Other,
}

impl Column {
    fn of(name: &str) -> Self {
        for (end, prefixes) in
            [["source_", "a_", "side_a_", "local_"], ["destination_", "b_", "side_b_", "remote_"]]
                .iter()
                .enumerate()
        {
            for rest in prefixes.iter().filter_map(|prefix| name.strip_prefix(prefix)) {
                match rest {
                    "kind" | "type" | "role" => return Self::Kind(end),
                    "state" => return Self::NodeState(end),
                    "address" | "guid" => return Self::Address(end),
                    "slots" | "cores" => return Self::Slots(end),
                    _ => {}
                }
            }
        }
        let sets = [
            (SOURCE, Self::Name(0)),
            (DESTINATION, Self::Name(1)),
            (SOURCE_PORT, Self::Port(0)),
            (DESTINATION_PORT, Self::Port(1)),
        ];
        if let Some((_, column)) = sets.iter().find(|(names, _)| is_one_of(names, name)) {
            return *column;
        }
        let (base, scale) = unit_of_name(name);
        match base {
            "bandwidth" | "speed" | "rate" | "link_speed" | "link_rate" => Self::Bandwidth(scale),
            "latency" => Self::Latency(scale),
            _ => match name {
                "state" | "status" => Self::State,
                "both" | "both_ways" => Self::Both,
                "type" | "cable_type" | "medium" => Self::Cable,
                _ => Self::Other,
            },
        }
    }
}

/// Whether a port or a cable carries no data: inventories list power and consoles as well, in the words of `NetBox`. Whole words,
/// as hosts may be of a kind such as `POWER9`.
fn is_of_no_network(kind: &str) -> bool {
    let kind = kind.to_ascii_lowercase();
    let kind = kind.strip_prefix("dcim.").unwrap_or(&kind);
    ["power", "console", "powerport", "poweroutlet", "powerfeed", "consoleport", "consoleserverport"]
        .contains(&kind)
}

/// The normalized name of a column: lower case, words joined by `_`.
fn normal(name: &str) -> String {
    name.trim()
        .trim_matches('"')
        .trim_start_matches('\u{feff}')
        .to_ascii_lowercase()
        .replace([' ', '-', '.', '/'], "_")
}

pub(super) fn read(text: &str, params: &ImportParams) -> Result<Imported> {
    let (header, rows) = csv_text::read(text, HELP)?;
    let columns: Vec<Column> = header.iter().map(|name| Column::of(&normal(name))).collect();
    check_columns(&header, &columns)?;
    let mut table = Table {
        columns: &columns,
        graph: Graph::default(),
        place: HashMap::new(),
        unused: Unused::default(),
    };
    for (line, record) in &rows {
        table.row(*line, record)?;
    }
    let Table { graph, unused, .. } = table;
    let mut notes = unused.notes();
    let others = header
        .iter()
        .zip(&columns)
        .filter(|(_, column)| **column == Column::Other)
        .map(|(name, _)| format!("`{name}`"));
    let others: Vec<String> = others.collect();
    if !others.is_empty() {
        notes.push(format!("unknown columns: {}", others.join(", ")));
    }
    let parts = graph.parts(&params.leave_out, &mut notes)?;
    imported(parts, params, notes)
}

fn check_columns(header: &StringRecord, columns: &[Column]) -> Result<()> {
    for wanted in [Column::Name(0), Column::Name(1)] {
        if !columns.contains(&wanted) {
            let which = if wanted == Column::Name(0) { "source" } else { "destination" };
            return Err(malformed(1, format!("no column for the {which} of links"), HELP));
        }
    }
    let may_be_repeated = |column: &Column| [Column::Other, Column::Cable].contains(column);
    let is_repeated =
        |index: &usize| !may_be_repeated(&columns[*index]) && columns[..*index].contains(&columns[*index]);
    match (0..columns.len()).find(is_repeated) {
        Some(index) => {
            let name = header.get(index).unwrap_or("");
            Err(malformed(1, format!("the column `{name}` duplicates another one"), "remove one of them"))
        }
        None => Ok(()),
    }
}

/// The graph while rows are read.
struct Table<'a> {
    columns: &'a [Column],
    graph: Graph,
    place: HashMap<String, usize>,
    unused: Unused,
}

impl Table<'_> {
    fn row(&mut self, number: usize, record: &StringRecord) -> Result<()> {
        if record.len() > self.columns.len() {
            let problem = format!("{} cells, but there are {} columns", record.len(), self.columns.len());
            return Err(malformed(number, problem, "quote cells that contain the separator"));
        }
        let cell = |column| {
            let index = self.columns.iter().position(|other| *other == column);
            index.and_then(|index| record.get(index)).unwrap_or("")
        };
        let names = [cell(Column::Name(0)), cell(Column::Name(1))];
        let ends = [0, 1].map(|end| {
            [
                cell(Column::Kind(end)),
                cell(Column::NodeState(end)),
                cell(Column::Address(end)),
                cell(Column::Slots(end)),
            ]
            .map(str::to_owned)
        });
        if names[0].is_empty() {
            let help = "give both ends of the link, or remove the row";
            return Err(malformed(number, "a row without a source", help));
        }
        let is_alone = record.iter().filter(|cell| !cell.is_empty()).count() == 1;
        let is_short = names[1].is_empty() && ends[0][0].is_empty() && record.len() < self.columns.len();
        if is_alone || is_short {
            let problem = format!("`{}` is alone, without the other end of a link", shown(names[0]));
            let help = "give both ends, or the `source_type` of a node without links, or remove the row";
            return Err(malformed(number, problem, help));
        }
        let kinds = [&ends[0][0], &ends[1][0], cell(Column::Cable)];
        if kinds.iter().any(|kind| is_of_no_network(kind)) {
            let (count, first) = self.unused.other_cables;
            self.unused.other_cables = (count + 1, if count == 0 { number } else { first });
            return Ok(());
        }
        let source = self.node(number, names[0], &ends[0])?;
        // A row with a source only is a node without links.
        if names[1].is_empty() {
            return Ok(());
        }
        let destination = self.node(number, names[1], &ends[1])?;
        let mut link = Link::new(to_u32(source), to_u32(destination));
        let mut both = None;
        for (column, text) in self.columns.iter().zip(record) {
            match column {
                Column::Port(end) => {
                    let (node, port) = match end {
                        0 => (source, &mut link.source_port),
                        _ => (destination, &mut link.destination_port),
                    };
                    self.graph.nodes[node].ports.port(text);
                    *port = self.unused.port(text);
                }
                Column::Bandwidth(scale) => {
                    link.bandwidth_bytes_per_s =
                        self.unused.bandwidth(text, *scale).or(link.bandwidth_bytes_per_s);
                }
                Column::Latency(scale) => {
                    link.latency_s = self.unused.latency(text, *scale).or(link.latency_s);
                }
                Column::State => link.state = link_state(self.unused.is_up(text)),
                Column::Both if !text.is_empty() => both = Some(self.unused.is_up(text)),
                _ => {}
            }
        }
        self.graph.links.push(GraphLink { link, both });
        Ok(())
    }

    /// The node with a name; all rows must agree on its attributes.
    fn node(
        &mut self,
        line: usize,
        name: &str,
        [kind, state, address, slots]: &[String; 4],
    ) -> Result<usize> {
        let nodes = &mut self.graph.nodes;
        let index = *self.place.entry(name.to_owned()).or_insert_with(|| {
            nodes.push(GraphNode { name: name.to_owned(), ..GraphNode::default() });
            nodes.len() - 1
        });
        let kind = self.unused.kind(kind);
        let node = &mut nodes[index];
        if node.kind.is_some() && kind.is_some() && node.kind != kind {
            let problem = format!("`{name}` is a host on one line and a switch on another");
            return Err(malformed(line, problem, "use the same kind on all lines"));
        }
        node.kind = node.kind.or(kind);
        if !self.unused.is_up(state) {
            node.state = node_state(false);
        }
        if !address.is_empty() {
            node.address = Some(address.clone());
        }
        if !slots.is_empty() {
            let Some(count) = slots.parse().ok().filter(|&count: &u32| (1..=1 << 24).contains(&count)) else {
                return Err(malformed(
                    line,
                    format!("`{slots}` is not a valid number of slots"),
                    "such as 64",
                ));
            };
            node.cores = Some(Cores::Count(count));
        }
        Ok(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::samples::{fault, import};
    use hopmap_model::{LinkState, NodeKind};

    #[test]
    fn cables_of_an_inventory_are_read() {
        let text = "# cables\nDevice A;Interface A;Device B;Interface B;Rate;Status;Colour\n\
                    n1;1;leaf;7;25G;connected;red\nn2;eth0;leaf;8;25G;offline;red\nleaf;9;spine;1;4xHDR;;\n";
        let Imported { system, notes } = import(text).unwrap();
        let names: Vec<_> = system.nodes.iter().map(|node| (node.name.as_str(), node.kind)).collect();
        let (host, switch) = (NodeKind::Host, NodeKind::Switch);
        assert_eq!(names, [("n1", host), ("leaf", switch), ("n2", host), ("spine", switch)]);
        assert_eq!(
            (system.links.len(), system.links[0].source_port, system.links[1].source_port),
            (6, Some(1), Some(7))
        );
        assert_eq!(system.links[2].state, LinkState::Down);
        assert_eq!(
            [0, 4].map(|link: usize| system.links[link].bandwidth_bytes_per_s),
            [Some(25e9 / 8.0), Some(25e9)]
        );
        assert!(notes.len() == 4 && notes[3].contains("no path joins"), "{notes:?}");
    }

    /// As `NetBox` exports them: a power strip was a switch, and a cable that is planned a link.
    #[test]
    fn cables_of_power_and_consoles_are_left_out() {
        let text = "side_a_device,side_a_type,side_a_name,side_b_device,side_b_type,side_b_name,type,status\n\
                    leaf1,dcim.interface,1,spine1,dcim.interface,1,aoc,connected\n\
                    leaf2,dcim.interface,1,spine1,dcim.interface,2,aoc,connected\n\
                    gpu-a,dcim.interface,mlx5_0,leaf1,dcim.interface,2,dac-passive,connected\n\
                    gpu-b,dcim.interface,mlx5_0,leaf2,dcim.interface,2,dac-passive,connected\n\
                    gpu-b,dcim.interface,mlx5_1,leaf1,dcim.interface,3,dac-passive,planned\n\
                    pdu1,dcim.poweroutlet,1,gpu-a,dcim.powerport,PSU1,power,connected\n\
                    cs01,dcim.consoleserverport,1,leaf1,dcim.consoleport,C,cat5e,connected\n\
                    pdu1,,2,leaf1,,PSU1,power,connected\n";
        let Imported { system, notes } = import(text).unwrap();
        let names: Vec<&str> = system.nodes.iter().map(|node| node.name.as_str()).collect();
        assert_eq!(names, ["leaf1", "spine1", "leaf2", "gpu-a", "gpu-b"]);
        let up = |state| system.links.iter().filter(|link| link.state == state).count();
        assert_eq!((up(LinkState::Up), up(LinkState::Down)), (8, 2));
        assert!(
            notes.contains(&"power and console cables left out: 3, the first in line 7".to_owned()),
            "{notes:?}"
        );
    }

    /// Every cable of such hosts was left out.
    #[test]
    fn kinds_of_hosts_may_begin_with_power() {
        let text =
            "source,destination,source_type,destination_type\nn1,s1,POWER9,switch\nn2,s1,power-node,switch\n";
        assert_eq!(import(text).unwrap().system.nodes.len(), 3);
    }

    /// The kind of a device was asked for before it was left out.
    #[test]
    fn what_is_left_out_needs_no_kind() {
        let text = "source,destination\ngpu-a,leaf1\ngpu-b,leaf2\nleaf1,spine1\nleaf2,spine1\nleaf1,spine2\n\
                    leaf2,spine2\ncs01,leaf1\ncs01,leaf2\n";
        assert!(fault(text).contains("may be hosts or switches"), "{}", fault(text));
        let leave_out = vec!["cs*".to_owned()];
        let imported = read(text, &ImportParams { leave_out, ..ImportParams::default() }).unwrap();
        assert_eq!(imported.system.nodes.len(), 6);
    }

    #[test]
    fn listed_reverse_directions_are_not_duplicated() {
        let text =
            "source,source_port,destination,destination_port,latency_us\na,1,s,1,2\ns,1,a,1,3\na,2,s,2,1\n";
        let Imported { system, .. } = import(text).unwrap();
        let latencies: Vec<_> = system.links.iter().map(|link| link.latency_s.unwrap()).collect();
        assert_eq!(latencies, [2.0 * 1e-6, 3.0 * 1e-6, 1e-6, 1e-6]);
    }

    #[test]
    fn errors_have_lines() {
        assert_eq!(fault("source,destination\na,b\n,b\n"), "3: a row without a source");
        let half = "source,source_port,destination\na1,1,s\nb1,1\n";
        assert_eq!(fault(half), "3: `b1` is alone, without the other end of a link");
        assert_eq!(fault("source,destination\na,b,c\n"), "2: 3 cells, but there are 2 columns");
        assert!(fault("source,from,destination\na,b,c\n").starts_with("1: the column `from`"));
        assert!(
            fault("source,source_kind,destination\na,host,b\na,switch,b\n").starts_with("3: `a` is a host")
        );
        assert!(
            fault("source,source_slots,destination\na,x,b\n").starts_with("2: `x` is not a valid number")
        );
    }
}
