//! Nodes and links as JSON: the lossless format of `topology/export`, the node-link format of `NetworkX`,
//! input of D3 and Cytoscape, and graphs of NVIDIA `NetQ`.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};

use hopmap_model::{
    CostModel, Forward, Levels, Link, LinkState, Matrix, Node, NodeKind, NodeState, NodeTraits, RouteCosts,
    RouteMetric, Routing, Slot, SwitchType, SystemGraph, Ties, fill_rates, to_u32,
};
use serde_json::{Map, Value};

use super::finish::imported;
use super::format::{Sample, malformed};
use super::graph::{Clues, Cores, Graph, GraphLink, GraphNode, Unused, link_state, node_state};
use super::units::unit_of_name;
use super::{ImportError, ImportParams, Imported, Result, json_text};

const HELP: &str = "an object with `nodes` and `links`: {\"nodes\": [{\"name\": \"n1\"}, …], \"links\": [{\"source\": \"n1\", …}]}";

/// A JSON object, or a list of objects, whose top-level keys include nodes or links.
pub(super) fn recognises(sample: &Sample) -> bool {
    let Some(text) = sample.text().map(json_text::own) else { return false };
    let text = text.trim_start_matches('\u{feff}').trim_start();
    let depth = match text.strip_prefix('[').map(str::trim_start) {
        Some(inner) if inner.starts_with('{') => 2,
        None if text.starts_with('{') => 1,
        _ => return false,
    };
    keys(text, depth).iter().any(|key| ["nodes", "vertices", "links", "edges", "elements"].contains(key))
}

/// The keys of the first object at a depth.
fn keys(text: &str, wanted: usize) -> Vec<&str> {
    let (mut depth, mut keys, mut start) = (0_usize, Vec::new(), None);
    let mut last = "";
    let mut is_escaped = false;
    for (place, c) in text.char_indices() {
        match (start, c) {
            (Some(_), _) if is_escaped => is_escaped = false,
            (Some(_), '\\') => is_escaped = true,
            (Some(begin), '"') => {
                last = text.get(begin..place).unwrap_or("");
                start = None;
            }
            (None, '"') => start = Some(place + 1),
            (None, ':') if depth == wanted => keys.push(last),
            (None, '{' | '[') => depth += 1,
            (None, '}' | ']') => {
                depth = depth.saturating_sub(1);
                if depth < wanted {
                    break;
                }
            }
            _ => {}
        }
    }
    keys
}

pub(super) fn read(text: &str, params: &ImportParams) -> Result<Imported> {
    let value: Value = serde_json::from_str(text.trim_start_matches('\u{feff}')).map_err(|error| {
        let line = Some(error.line()).filter(|&line| line > 0);
        malformed(line, error.to_string(), "check that the file is complete and valid JSON")
    })?;
    let root = match &value {
        Value::Object(root) => root,
        Value::Array(roots) => match roots.as_slice() {
            [Value::Object(root)] => root,
            _ => {
                let help = "a file must contain one graph";
                return Err(malformed(None, format!("a list of {} graphs", roots.len()), help));
            }
        },
        _ => return Err(malformed(None, "neither an object nor a list", HELP)),
    };
    let root = root.get("elements").and_then(Value::as_object).unwrap_or(root);
    if root.contains_key("cost") && root.contains_key("slots") {
        return read_lossless(root, params);
    }
    let mut reading =
        Reading { graph: Graph::default(), place: HashMap::new(), by_index: true, unused: Unused::default() };
    let node_count = reading.nodes(root)?;
    reading.links(root, node_count)?;
    let Reading { graph, unused, .. } = reading;
    let mut notes = unused.notes();
    let parts = graph.parts(&params.leave_out, &mut notes)?;
    imported(parts, params, notes)
}

/// The graph while it is read.
struct Reading {
    graph: Graph,
    place: HashMap<String, usize>,
    /// Whether numbers in links are indexes into the list of nodes rather than node ids.
    by_index: bool,
    unused: Unused,
}

/// The value of the first present key.
fn any<'a>(object: &'a Map<String, Value>, keys: &[&str]) -> Option<&'a Value> {
    keys.iter().find_map(|key| object.get(*key)).filter(|value| !value.is_null())
}

/// A string, number or boolean as text.
fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(is_true) => Some(is_true.to_string()),
        _ => None,
    }
}

/// The items of a list of nodes or links, unwrapped from `data` (Cytoscape) or flattened (`NetQ`).
fn items<'a>(list: &'a [Value], compound: &str) -> Vec<&'a Value> {
    let unpacked = |value: &'a Value| match value.get(compound).and_then(Value::as_array) {
        Some(inner) => inner.iter().collect(),
        None => vec![value.get("data").filter(|data| data.is_object()).unwrap_or(value)],
    };
    list.iter().flat_map(unpacked).collect()
}

fn wrong_item(what: &str, index: usize, problem: &str) -> ImportError {
    malformed(None, format!("{what}[{index}] {problem}"), HELP)
}

impl Reading {
    /// Reads the nodes; returns their number.
    fn nodes(&mut self, root: &Map<String, Value>) -> Result<usize> {
        let Some(list) = any(root, &["nodes", "vertices"]) else { return Ok(0) };
        let Some(list) = list.as_array() else {
            return Err(malformed(None, "`nodes` is not a list", HELP));
        };
        for (index, value) in items(list, "compounded_nodes").into_iter().enumerate() {
            let (node, id) = match value {
                Value::Object(object) => self.node(index, object)?,
                _ => {
                    let name = scalar(value)
                        .ok_or_else(|| wrong_item("nodes", index, "is neither an object nor a name"))?;
                    (GraphNode { name, ..GraphNode::default() }, None)
                }
            };
            self.by_index &= id.is_none();
            let place = self.graph.nodes.len();
            if let Some(id) = id.filter(|id| *id != node.name)
                && self.place.insert(id.clone(), place).is_some()
            {
                return Err(wrong_item("nodes", index, &format!("duplicates the name `{id}`")));
            }
            if self.place.insert(node.name.clone(), place).is_some() {
                return Err(wrong_item("nodes", index, &format!("duplicates the name `{}`", node.name)));
            }
            self.graph.nodes.push(node);
        }
        Ok(self.graph.nodes.len())
    }

    fn node(&mut self, index: usize, object: &Map<String, Value>) -> Result<(GraphNode, Option<String>)> {
        let id = object.get("id").and_then(scalar);
        let name = any(object, &["name", "label", "hostname"]).and_then(scalar).or_else(|| id.clone());
        let text = |keys: &[&str]| any(object, keys).and_then(scalar);
        let kind = text(&["kind", "device_type", "role", "type"]).and_then(|kind| match kind.as_str() {
            // The type that NetQ gives to any LLDP neighbour.
            "discovered_via_lldp" => None,
            kind => self.unused.kind(kind),
        });
        let is_up = text(&["state", "status"]).is_none_or(|state| self.unused.is_up(&state));
        let cores = match any(object, &["slots", "cores"]) {
            None => None,
            Some(Value::Array(cores)) => Some(Cores::List(
                cores
                    .iter()
                    .map(|core| core.as_u64().and_then(|core| u32::try_from(core).ok()))
                    .collect::<Option<_>>()
                    .ok_or_else(|| wrong_item("nodes", index, "has cores that are not numbers"))?,
            )),
            Some(count) => {
                let count =
                    count.as_u64().and_then(|count| u32::try_from(count).ok()).filter(|&count| count > 0);
                Some(Cores::Count(
                    count.ok_or_else(|| wrong_item("nodes", index, "has an invalid number of slots"))?,
                ))
            }
        };
        let ports = if name.is_some() { Clues::default() } else { Clues::NONE };
        let node = GraphNode {
            name: name.unwrap_or_else(|| format!("node-{index}")),
            kind,
            state: node_state(is_up),
            address: text(&["address", "guid"]),
            cores,
            ports,
        };
        Ok((node, id))
    }

    fn links(&mut self, root: &Map<String, Value>, nodes: usize) -> Result<()> {
        let directed = root.get("directed").and_then(Value::as_bool);
        let list = any(root, &["links", "edges"]).map(Value::as_array);
        let Some(list) = list.unwrap_or(Some(const { &Vec::new() })) else {
            return Err(malformed(None, "`links` is not a list", HELP));
        };
        for (index, value) in items(list, "compounded_links").into_iter().enumerate() {
            let Some(object) = value.as_object() else {
                return Err(wrong_item("links", index, "is not an object"));
            };
            let (source, destination) = self.ends(index, object, nodes)?;
            let mut link = Link::new(to_u32(source), to_u32(destination));
            let source_port = ["source_port", "src_port", "sourcePort"];
            link.source_port = self.port(object, &source_port, source);
            let destination_port = ["destination_port", "target_port", "dst_port", "targetPort"];
            link.destination_port = self.port(object, &destination_port, destination);
            let interfaces = object.get("interfaces").and_then(Value::as_array).into_iter().flatten();
            for (end, node) in interfaces.zip([source, destination]) {
                let name = end.get("interface").and_then(Value::as_str);
                name.into_iter().for_each(|name| self.graph.nodes[node].ports.port(name));
            }
            for (key, value) in object.iter().filter(|(_, value)| !value.is_null()) {
                let (base, scale) = unit_of_name(key);
                let text = || scalar(value).unwrap_or_default();
                match base {
                    "bandwidth" | "speed" | "rate" => {
                        link.bandwidth_bytes_per_s =
                            self.unused.bandwidth(&text(), scale).or(link.bandwidth_bytes_per_s);
                    }
                    "latency" => link.latency_s = self.unused.latency(&text(), scale).or(link.latency_s),
                    "state" | "status" => link.state = link_state(self.unused.is_up(&text())),
                    _ => {}
                }
            }
            let both = object.get("both").and_then(Value::as_bool).or(directed.map(|directed| !directed));
            self.graph.links.push(GraphLink { link, both });
        }
        Ok(())
    }

    fn port(&mut self, object: &Map<String, Value>, keys: &[&str], node: usize) -> Option<u32> {
        let port = any(object, keys).and_then(scalar)?;
        self.graph.nodes[node].ports.port(&port);
        self.unused.port(&port)
    }

    fn ends(&mut self, index: usize, object: &Map<String, Value>, nodes: usize) -> Result<(usize, usize)> {
        let interfaces = object.get("interfaces").and_then(Value::as_array).map(Vec::as_slice);
        let (source, destination) = match interfaces {
            Some([a, b]) => (a.get("node"), b.get("node")),
            _ => (
                any(object, &["source", "src", "from"]),
                any(object, &["destination", "target", "dst", "to"]),
            ),
        };
        let missing = |what: &str| wrong_item("links", index, &format!("has no {what}"));
        let source = source.ok_or_else(|| missing("source"))?;
        let destination = destination.ok_or_else(|| missing("destination"))?;
        Ok((self.end(index, source, nodes)?, self.end(index, destination, nodes)?))
    }

    /// The node at an end of a link; created if the file has no list of nodes.
    fn end(&mut self, index: usize, value: &Value, nodes: usize) -> Result<usize> {
        if let Some(number) = value.as_u64().filter(|_| self.by_index && nodes > 0) {
            return usize::try_from(number)
                .ok()
                .filter(|&number| number < nodes)
                .ok_or_else(|| wrong_item("links", index, &format!("refers to node {number} of {nodes}")));
        }
        let name = scalar(value)
            .ok_or_else(|| wrong_item("links", index, "has an end that is neither a name nor a number"))?;
        if let Some(&place) = self.place.get(&name) {
            return Ok(place);
        }
        if nodes > 0 {
            return Err(wrong_item("links", index, &format!("refers to `{name}`, which is not a node")));
        }
        self.place.insert(name.clone(), self.graph.nodes.len());
        self.graph.nodes.push(GraphNode { name, ..GraphNode::default() });
        Ok(self.graph.nodes.len() - 1)
    }
}

fn read_lossless(root: &Map<String, Value>, params: &ImportParams) -> Result<Imported> {
    let help = "omit it, or remove `cost` and `slots` from the file";
    let refused = ["cost", "hwloc", "intra_node_costs", "networks", "leave_out"];
    params.refuse(&refused, "the file defines slots and costs", help)?;
    let notes = (params.slots.of_all() > 0)
        .then(|| "the file defines the slots of hosts: `slots` has no effect".to_owned());
    let mut system = SystemGraph {
        nodes: list(root, "nodes", node)?,
        links: list(root, "links", link)?,
        slots: list(root, "slots", |slot| {
            let [host, core] = numbers(slot)?;
            Some(Slot { host, core })
        })?,
        cost: cost(root)?,
        routing: routing(root)?,
        calibration: Vec::new(),
    };
    system.check().map_err(ImportError::machine)?;
    fill_rates(&system.nodes, &mut system.links, params.link_latency_s, &params.link_bandwidth_bytes_per_s);
    Ok(Imported { system, notes: notes.into_iter().collect() })
}

fn wrong(problem: impl Into<String>) -> ImportError {
    malformed(None, problem, "topology/export writes this format with `format = \"graph-json\"`")
}

fn list<T>(object: &Map<String, Value>, key: &str, item: impl Fn(&Value) -> Option<T>) -> Result<Vec<T>> {
    let list = object.get(key).and_then(Value::as_array);
    let list = list.ok_or_else(|| wrong(format!("no list `{key}`")))?;
    let read =
        |(index, value)| item(value).ok_or_else(|| wrong(format!("{key}[{index}] is incomplete or wrong")));
    list.iter().enumerate().map(read).collect()
}

fn cost(root: &Map<String, Value>) -> Result<CostModel> {
    let cost = root.get("cost").and_then(Value::as_object).ok_or_else(|| wrong("`cost` is not an object"))?;
    if let Some(found) = cost.get("levels") {
        return Ok(CostModel::Levels(levels(found)?));
    }
    if cost.contains_key("matrix") {
        return Ok(CostModel::Matrix(Matrix { costs: list(cost, "matrix", Value::as_f64)? }));
    }
    let metric = match cost.get("metric").and_then(Value::as_str) {
        Some("hops") => RouteMetric::Hops,
        Some("latency") => RouteMetric::Latency,
        Some("time") => {
            let bytes = cost.get("bytes").and_then(Value::as_u64);
            RouteMetric::Time { bytes: bytes.ok_or_else(|| wrong("`cost` has no `bytes`"))? }
        }
        _ => {
            return Err(wrong("`cost` has neither `levels` nor `matrix` nor a known `metric`"));
        }
    };
    let inside = cost.get("inside").ok_or_else(|| wrong("`cost` has no `inside`"))?;
    Ok(CostModel::Routes(RouteCosts { metric, inside: levels(inside)? }))
}

fn levels(levels: &Value) -> Result<Levels> {
    let object = levels.as_object().ok_or_else(|| wrong("levels are not an object"))?;
    let group = |groups: &Value| groups.as_array()?.iter().map(number).collect::<Option<Vec<u32>>>();
    Ok(Levels { costs: list(object, "costs", Value::as_f64)?, groups: list(object, "groups", group)? })
}

fn routing(root: &Map<String, Value>) -> Result<Routing> {
    let Some(routing) = root.get("routing") else { return Ok(Routing::default()) };
    let object = routing.as_object().ok_or_else(|| wrong("`routing` is not an object"))?;
    let ties = match object.get("ties").map(Value::as_str) {
        None | Some(Some("spread")) => Ties::Spread,
        Some(Some("first")) => Ties::First,
        Some(_) => return Err(wrong("`ties` is neither `spread` nor `first`")),
    };
    let forwarding = match object.contains_key("forwarding") {
        true => list(object, "forwarding", |entry| {
            let [node, last, link] = numbers(entry)?;
            Some(Forward { node, last, link })
        })?,
        false => Vec::new(),
    };
    Ok(Routing { forwarding, ties })
}

fn node(node: &Value) -> Option<Node> {
    let kind = match node.get("kind")?.as_str()? {
        "host" => NodeKind::Host,
        "switch" => NodeKind::Switch,
        _ => return None,
    };
    let state = match node.get("state").map(Value::as_str) {
        None | Some(Some("up")) => NodeState::Up,
        Some(Some("down")) => NodeState::Down,
        Some(_) => return None,
    };
    let address = optional(node, "address", text)?;
    Some(Node { state, address, traits: traits(node)?, ..Node::new(node.get("name")?.as_str()?, kind) })
}

fn traits(node: &Value) -> Option<NodeTraits> {
    let mut devices = BTreeMap::new();
    for (name, count) in node.get("devices").map(Value::as_object).unwrap_or_default().into_iter().flatten() {
        devices.insert(name.clone(), number(count)?);
    }
    let names = |names: &Value| names.as_array()?.iter().map(text).collect::<Option<_>>();
    Some(NodeTraits {
        performance: optional(node, "performance", Value::as_f64)?,
        switch_type: optional(node, "switch_type", |kind| SwitchType::of_number(number(kind)?))?,
        capabilities: optional(node, "capabilities", names)?.unwrap_or_default(),
        devices,
    })
}

fn link(link: &Value) -> Option<Link> {
    let state = match link.get("state").map(Value::as_str) {
        None | Some(Some("up")) => LinkState::Up,
        Some(Some("down")) => LinkState::Down,
        Some(_) => return None,
    };
    Some(Link {
        source: number(link.get("source")?)?,
        destination: number(link.get("destination")?)?,
        latency_s: optional(link, "latency_s", Value::as_f64)?,
        bandwidth_bytes_per_s: optional(link, "bandwidth_bytes_per_s", Value::as_f64)?,
        source_port: optional(link, "source_port", number)?,
        destination_port: optional(link, "destination_port", number)?,
        state,
    })
}

/// The value of an optional key; `None` if it is present but invalid.
#[expect(clippy::option_option, reason = "missing, or invalid")]
fn optional<T>(object: &Value, key: &str, read: impl Fn(&Value) -> Option<T>) -> Option<Option<T>> {
    object.get(key).map_or(Some(None), |value| read(value).map(Some))
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn number(value: &Value) -> Option<u32> {
    u32::try_from(value.as_u64()?).ok()
}

fn numbers<const N: usize>(value: &Value) -> Option<[u32; N]> {
    let numbers = value.as_array()?.iter().map(number).collect::<Option<Vec<u32>>>()?;
    numbers.try_into().ok()
}
