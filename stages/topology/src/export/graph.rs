//! Nodes and links of a machine topology in tables and objects: links as CSV, everything as JSON, and the
//! costs between all slots as CSV.

use std::fmt::Write;

use csv::{QuoteStyle, WriterBuilder};
use hopmap_model::{
    CostModel, CostsError, Levels, Link, LinkState, Node, NodeKind, NodeState, NodeTraits, RouteMetric,
    SystemGraph, Ties,
};
use serde_json::{Map, Value, json};

use super::ExportError;
use crate::params::Written;

const HEADER: &str = "source source_kind source_state source_address source_slots source_port \
                      destination destination_kind destination_state destination_address \
                      destination_port latency_s bandwidth_bytes_per_s state both";

const IN_JSON: &str = "use JSON (`format = \"graph-json\"`)";

pub(super) fn write(system: &SystemGraph) -> Written {
    if system.links.is_empty() {
        let help = "use a machine topology with links, or format `distances` or `graph-json`";
        return Err(ExportError::impossible("CSV", "it has no links", help));
    }
    let name =
        |node: &Node| node.name.is_empty() || node.name.trim() != node.name || node.name.starts_with('#');
    if let Some(node) = system.nodes.iter().find(|node| name(node)) {
        let problem = format!("the node name `{}` would be read back differently", node.name);
        return Err(ExportError::impossible("CSV", problem, IN_JSON));
    }
    let mut slots = vec![0_u32; system.nodes.len()];
    system.slots.iter().for_each(|slot| slots[slot.host as usize] += 1);
    let mut rows: Vec<Vec<String>> = vec![HEADER.split(' ').map(str::to_owned).collect()];
    // First one row per node, to preserve the order and attributes of nodes.
    for (node, slots) in system.nodes.iter().zip(&slots) {
        let mut row = end(node).to_vec();
        row.push(if *slots == 0 { String::new() } else { slots.to_string() });
        row.resize(rows[0].len(), String::new());
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
    // Text behind a name that is not in quotes is refused by the import.
    let has_blanks = system.nodes.iter().any(|node| node.name.contains(char::is_whitespace));
    let style = if has_blanks { QuoteStyle::NonNumeric } else { QuoteStyle::Necessary };
    let mut writer = WriterBuilder::new().quote_style(style).from_writer(Vec::new());
    let written = rows.iter().try_for_each(|row| writer.write_record(row)).ok();
    let text =
        written.and_then(|()| writer.into_inner().ok()).and_then(|bytes| String::from_utf8(bytes).ok());
    let impossible = || ExportError::impossible("CSV", "it could not be written", IN_JSON);
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
        lost.push("the choice among shortest paths".to_owned());
    }
    match &system.cost {
        CostModel::Routes(routes) if routes.metric == RouteMetric::Hops => {}
        _ => lost.push("message costs".to_owned()),
    }
    if system
        .slots
        .chunk_by(|a, b| a.host == b.host)
        .any(|slots| slots.iter().zip(0..).any(|(slot, core)| slot.core != core))
    {
        lost.push("core numbers".to_owned());
    }
    lost
}

pub(super) fn write_json(system: &SystemGraph) -> Written {
    let number = |value: Option<f64>| value.is_none_or(f64::is_finite);
    if !system.links.iter().all(|link| number(link.latency_s) && number(link.bandwidth_bytes_per_s)) {
        let problem = "the latency or bandwidth of a link is infinite";
        return Err(ExportError::impossible("JSON", problem, "omit it if unknown"));
    }
    let mut text = "{\n\"directed\": true,\n".to_owned();
    list(&mut text, "nodes", system.nodes.iter().map(node));
    list(&mut text, "links", system.links.iter().map(link));
    list(&mut text, "slots", system.slots.iter().map(|slot| json!([slot.host, slot.core])));
    let forwarding =
        system.routing.forwarding.iter().map(|entry| json!([entry.node, entry.last, entry.link]));
    let ties = match system.routing.ties {
        Ties::Spread => "spread",
        Ties::First => "first",
    };
    let routing = json!({ "ties": ties, "forwarding": forwarding.collect::<Vec<Value>>() });
    text.push_str(&format!("\"routing\": {routing},\n\"cost\": {}\n}}\n", cost(&system.cost)));
    Ok((text, Vec::new()))
}

fn list(text: &mut String, name: &str, values: impl Iterator<Item = Value>) {
    text.push_str(&format!("\"{name}\": ["));
    for (index, value) in values.enumerate() {
        text.push_str(if index == 0 { "\n" } else { ",\n" });
        text.push_str(&value.to_string());
    }
    text.push_str("\n],\n");
}

fn node(node: &Node) -> Value {
    let kind = match node.kind {
        NodeKind::Host => "host",
        NodeKind::Switch => "switch",
    };
    let mut object =
        Map::from_iter([("name".to_owned(), json!(node.name)), ("kind".to_owned(), json!(kind))]);
    if node.state == NodeState::Down {
        object.insert("state".into(), json!("down"));
    }
    if let Some(address) = &node.address {
        object.insert("address".into(), json!(address));
    }
    let NodeTraits { performance, switch_type, capabilities, devices } = &node.traits;
    let known = [
        ("performance", performance.map(|performance| json!(performance))),
        ("switch_type", switch_type.map(|switch_type| json!(switch_type.number()))),
        ("capabilities", (!capabilities.is_empty()).then(|| json!(capabilities))),
        ("devices", (!devices.is_empty()).then(|| json!(devices))),
    ];
    object.extend(known.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))));
    Value::Object(object)
}

fn link(link: &Link) -> Value {
    let known = [
        ("source", Some(json!(link.source))),
        ("source_port", link.source_port.map(|port| json!(port))),
        ("destination", Some(json!(link.destination))),
        ("destination_port", link.destination_port.map(|port| json!(port))),
        ("latency_s", link.latency_s.map(|latency| json!(latency))),
        ("bandwidth_bytes_per_s", link.bandwidth_bytes_per_s.map(|bandwidth| json!(bandwidth))),
        ("state", (link.state == LinkState::Down).then(|| json!("down"))),
    ];
    known.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
}

fn cost(cost: &CostModel) -> Value {
    match cost {
        CostModel::Levels(found) => json!({ "levels": levels(found) }),
        CostModel::Matrix(matrix) => json!({ "matrix": matrix.costs }),
        CostModel::Routes(routes) => match routes.metric {
            RouteMetric::Time { bytes } => {
                json!({ "metric": "time", "bytes": bytes, "inside": levels(&routes.inside) })
            }
            metric => json!({ "metric": metric.name(), "inside": levels(&routes.inside) }),
        },
    }
}

fn levels(levels: &Levels) -> Value {
    json!({ "costs": levels.costs, "groups": levels.groups })
}

/// Largest number of slots that are written.
const MOST: usize = 4096;

/// One row per slot with the costs to all slots. The first row and column contain the slot names,
/// `host:core`, or `host` if every host has one slot.
pub(super) fn write_distances(system: &SystemGraph) -> Written {
    let count = system.slots.len();
    if count > MOST {
        return Err(CostsError::TooMany { slots: count, most: MOST }.into());
    }
    let costs = system.matrix()?.costs;
    let names = names(system);
    let mut text = String::new();
    for name in &names {
        text.push(',');
        text.push_str(name);
    }
    text.push('\n');
    for (name, row) in names.iter().zip(costs.chunks(count.max(1))) {
        text.push_str(name);
        for cost in row {
            // Writing to a string does not fail.
            let _ = write!(text, ",{cost}");
        }
        text.push('\n');
    }
    let mut lost = Vec::new();
    if !system.links.is_empty() {
        lost.push("switches, links and routes: only costs between slots are written".to_owned());
    }
    Ok((text, lost))
}

fn names(system: &SystemGraph) -> Vec<String> {
    let is_alone = system.hosts().all(|(_, _, slots)| slots == 1);
    let name = |slot: &hopmap_model::Slot| {
        let host = system.nodes.get(slot.host as usize).map_or("", |node| node.name.as_str());
        let name = if is_alone { host.to_owned() } else { format!("{host}:{}", slot.core) };
        quoted(&name)
    };
    system.slots.iter().map(name).collect()
}

/// A cell of a CSV file (RFC 4180).
fn quoted(name: &str) -> String {
    match name.contains([',', '"', '\n', '\r', ';', '\t', ' ', '#']) {
        true => format!("\"{}\"", name.replace('"', "\"\"")),
        false => name.to_owned(),
    }
}
