//! A machine as JSON, one node or link a line; nothing is lost.

use hopmap_model::{
    CostModel, Levels, Link, LinkState, Node, NodeKind, NodeState, NodeTraits, RouteMetric, SystemGraph, Ties,
};
use serde_json::{Map, Value, json};

use super::{ExportError, ExportParams};

pub(super) fn write(system: &SystemGraph, _: &ExportParams) -> Result<(String, Vec<String>), ExportError> {
    let number = |value: Option<f64>| value.is_none_or(f64::is_finite);
    if !system.links.iter().all(|link| number(link.latency_s) && number(link.bandwidth_bytes_per_s)) {
        return Err(ExportError::Impossible {
            format: "JSON",
            problem: "the latency or bandwidth of a link is infinite".into(),
            help: "leave it out where it is not known".into(),
        });
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
