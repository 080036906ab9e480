//! The links of a machine as CSV, a direction a row.

use csv::Writer;
use hopmap_model::{CostModel, LinkState, Node, NodeKind, NodeState, RouteMetric, SystemGraph, Ties};

use super::{ExportError, ExportParams};

const HEADER: [&str; 15] = [
    "source",
    "source_kind",
    "source_state",
    "source_address",
    "source_slots",
    "source_port",
    "destination",
    "destination_kind",
    "destination_state",
    "destination_address",
    "destination_port",
    "latency_s",
    "bandwidth_bytes_per_s",
    "state",
    "both",
];

pub(super) fn write(system: &SystemGraph, _: &ExportParams) -> Result<(String, Vec<String>), ExportError> {
    if system.links.is_empty() {
        return Err(ExportError::Impossible {
            format: "CSV",
            problem: "it has no links".into(),
            help: "name a machine with links, or write `distances` or `graph-json`".into(),
        });
    }
    let name =
        |node: &Node| node.name.is_empty() || node.name.trim() != node.name || node.name.starts_with('#');
    if let Some(node) = system.nodes.iter().find(|node| name(node)) {
        return Err(ExportError::Impossible {
            format: "CSV",
            problem: format!("the name `{}` of a node would be read as another one", node.name),
            help: "write JSON (`to = \"graph-json\"`)".into(),
        });
    }
    let mut slots = vec![0_u32; system.nodes.len()];
    system.slots.iter().for_each(|slot| slots[slot.host as usize] += 1);
    let mut rows: Vec<Vec<String>> = vec![HEADER.map(str::to_owned).to_vec()];
    // A row for every node first, so that the order of nodes and what is known of them stays.
    for (node, slots) in system.nodes.iter().zip(&slots) {
        let mut row = end(node).to_vec();
        row.push(if *slots == 0 { String::new() } else { slots.to_string() });
        row.resize(HEADER.len(), String::new());
        rows.push(row);
    }
    let port = |port: Option<u32>| port.map(|port| port.to_string()).unwrap_or_default();
    let rate = |rate: Option<f64>| rate.map(|rate| rate.to_string()).unwrap_or_default();
    for link in &system.links {
        let [source, destination] =
            [link.source, link.destination].map(|node| end(&system.nodes[node as usize]));
        let mut row = source.to_vec();
        row.extend([String::new(), port(link.source_port)]);
        row.extend(destination);
        row.extend([port(link.destination_port), rate(link.latency_s), rate(link.bandwidth_bytes_per_s)]);
        let state = if link.state == LinkState::Up { "up" } else { "down" };
        row.extend([state.to_owned(), "no".to_owned()]);
        rows.push(row);
    }
    let mut writer = Writer::from_writer(Vec::new());
    let written = rows.iter().try_for_each(|row| writer.write_record(row)).ok();
    let text =
        written.and_then(|()| writer.into_inner().ok()).and_then(|bytes| String::from_utf8(bytes).ok());
    let impossible = || ExportError::Impossible {
        format: "CSV",
        problem: "it could not be written".into(),
        help: "write JSON (`to = \"graph-json\"`)".into(),
    };
    Ok((text.ok_or_else(impossible)?, lost(system)))
}

fn end(node: &Node) -> [String; 4] {
    let kind = if node.kind == NodeKind::Host { "host" } else { "switch" };
    let state = if node.state == NodeState::Up { "up" } else { "down" };
    [node.name.clone(), kind.to_owned(), state.to_owned(), node.address.clone().unwrap_or_default()]
}

fn lost(system: &SystemGraph) -> Vec<String> {
    let mut lost = Vec::new();
    if !system.routing.forwarding.is_empty() {
        lost.push("forwarding tables".to_owned());
    }
    if system.routing.ties != Ties::default() {
        lost.push("which of equally short ways messages take".to_owned());
    }
    match &system.cost {
        CostModel::Routes(routes) if routes.metric == RouteMetric::Hops => {}
        _ => lost.push("what messages cost".to_owned()),
    }
    if system
        .slots
        .chunk_by(|a, b| a.host == b.host)
        .any(|slots| slots.iter().zip(0..).any(|(slot, core)| slot.core != core))
    {
        lost.push("the numbers of cores".to_owned());
    }
    lost
}
