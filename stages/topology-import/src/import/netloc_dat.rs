//! The `.ndat` files of netloc 0.5: `NETWORK-nodes.ndat` with nodes and directed edges, and in the same
//! folder `NETWORK-phy-paths.ndat` with the edges between all pairs of hosts.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fmt;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use hopmap_model::{Forward, InputPath, LinkState, NodeKind, NodeState};
use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, MapAccess, Visitor};
use serde_json::Value;

use super::cables::{Cables, End};
use super::fabric::{Fabric, FabricLink, FabricNode, PathFault, PathTables};
use super::format::{Sample, malformed, note, read_text};
use super::ibnetdiscover::entries;
use super::{ImportParams, Imported, Result, units};

/// Suffix of the file of nodes.
const NODES: &str = "-nodes.ndat";
/// Suffix of the file of paths.
const PATHS: &str = "-phy-paths.ndat";
const ETHERNET: u32 = 1;
const INFINIBAND: u32 = 2;

pub(super) fn files(path: &Path) -> Result<Vec<InputPath>> {
    Ok(Files::new(path)?.list())
}

pub(super) fn recognises(sample: &Sample) -> bool {
    if let Some(names) = &sample.entries {
        return names.iter().any(|name| name.ends_with(NODES));
    }
    let Some(inside) = sample.text().and_then(|text| text.trim_start().strip_prefix('{')) else {
        return false;
    };
    let begins = ["\"network_info\"", "\"node_info\"", "\"edge_info\""];
    let has = |names: [&str; 2]| names.iter().all(|name| inside.contains(name));
    begins.iter().any(|name| inside.trim_start().starts_with(name))
        && (has(["\"phy_id\"", "\"node_type\""]) || has(["\"euid\"", "\"src_node_id\""]))
}

/// The files of a network.
struct Files {
    nodes: PathBuf,
    paths: Option<PathBuf>,
}

impl Files {
    fn new(path: &Path) -> Result<Self> {
        let nodes = if path.is_dir() { only(path)? } else { path.to_owned() };
        let name = nodes.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let paths = name.strip_suffix(NODES).map(|network| nodes.with_file_name(format!("{network}{PATHS}")));
        Ok(Self { nodes, paths: paths.filter(|file| file.is_file()) })
    }

    fn list(self) -> Vec<InputPath> {
        let paths = self.paths.map(|file| InputPath::named(file, "paths"));
        std::iter::once(InputPath::named(self.nodes, "machine")).chain(paths).collect()
    }
}

/// The file of nodes in a folder.
fn only(path: &Path) -> Result<PathBuf> {
    let mut found: Vec<_> = entries(path)?;
    found.retain(|(name, file)| name.ends_with(NODES) && file.is_file());
    match found.as_slice() {
        [(_, file)] => Ok(file.clone()),
        [] => {
            let help = "netloc 0.5 writes `NETWORK-nodes.ndat`";
            Err(malformed(None, "the folder contains no file of nodes", help))
        }
        many => {
            let names: Vec<_> =
                many.iter().map(|(name, _)| name.strip_suffix(NODES).unwrap_or(name)).collect();
            let problem = format!("there are several networks: {}", names.join(", "));
            Err(malformed(None, problem, "give the file `NETWORK-nodes.ndat` of one of them"))
        }
    }
}

pub(super) fn read(path: &Path, params: &ImportParams) -> Result<Imported> {
    let files = &Files::new(path)?;
    import(files, params).map_err(|error| error.in_file(&files.nodes))
}

fn import(files: &Files, params: &ImportParams) -> Result<Imported> {
    let file: NodesFile = parse(&files.nodes)?;
    let mut notes = Vec::new();
    let network = Network::new(file)?;
    let (mut fabric, place, link_of) = network.fabric(&mut notes)?;
    match &files.paths {
        Some(paths) => {
            let found = network.forwarding(paths, &fabric, &place, &link_of, &mut notes);
            fabric.forwarding = found.map_err(|error| error.in_file(paths))?;
        }
        None => notes.push(format!("no file `…{PATHS}` in the same folder: messages take the fewest links")),
    }
    fabric.imported(params, notes)
}

/// Nodes, and edges by index.
struct Network {
    is_ethernet: bool,
    nodes: Vec<FabricNode>,
    node_of: HashMap<String, usize>,
    edges: Vec<FabricLink>,
    edge_of: HashMap<u64, usize>,
}

impl Network {
    fn new(file: NodesFile) -> Result<Self> {
        let wrong = |problem: String| {
            malformed(None, problem, "check that the file is complete and written by netloc 0.5")
        };
        let is_ethernet = match file.network.kind {
            ETHERNET => true,
            INFINIBAND => false,
            other => {
                return Err(wrong(format!("unknown network_type {other}: Ethernet is 1, InfiniBand 2")));
            }
        };
        let mut network = Self {
            is_ethernet,
            nodes: Vec::new(),
            node_of: HashMap::new(),
            edges: Vec::new(),
            edge_of: HashMap::new(),
        };
        for (id, node) in file.nodes.0 {
            let node = network.node(&id, &node).map_err(wrong)?;
            if network.node_of.insert(id.clone(), network.nodes.len()).is_some() {
                return Err(wrong(format!("node {id} is listed twice")));
            }
            network.nodes.push(node);
        }
        for (id, edge) in file.edges.0 {
            let number: u64 = id.parse().map_err(|_| wrong(format!("`{id}` is not an edge number")))?;
            let edge = network.edge(&edge).map_err(|problem| wrong(format!("edge {id}: {problem}")))?;
            if network.edge_of.insert(number, network.edges.len()).is_some() {
                return Err(wrong(format!("edge {id} is listed twice")));
            }
            network.edges.push(edge);
        }
        if network.edges.is_empty() {
            return Err(wrong("no edges are listed".into()));
        }
        Ok(network)
    }

    fn node(&self, id: &str, node: &Node) -> Result<FabricNode, String> {
        let kind = match node.kind {
            1 => NodeKind::Switch,
            2 => NodeKind::Host,
            other => return Err(format!("node {id} has type {other}: switches have 1, hosts 2")),
        };
        let address = match self.is_ethernet {
            true => id.to_ascii_lowercase(),
            false => units::grouped_guid(id)
                .map(units::guid_address)
                .ok_or_else(|| format!("`{id}` is not a GUID"))?,
        };
        let description = node.desc.0.trim();
        let unquoted = description.strip_prefix('\'').and_then(|text| text.strip_suffix('\''));
        let description = unquoted.unwrap_or(description).to_owned();
        // Ethernet hosts are identified by their logical address.
        let logical = node.log_id.0.trim();
        let host =
            (self.is_ethernet && kind == NodeKind::Host && description.is_empty() && !logical.is_empty())
                .then(|| logical.to_owned());
        Ok(FabricNode { kind, address, description, host, image: None, state: NodeState::Up })
    }

    fn edge(&self, edge: &Edge) -> Result<FabricLink, String> {
        let node = |id: &Text| {
            self.node_of.get(&id.0).copied().ok_or_else(|| format!("node {} is not listed", id.0))
        };
        let bandwidth_bytes_per_s = match self.is_ethernet {
            true => bits(edge),
            false => units::lanes_bandwidth(&edge.width.0, &edge.speed.0),
        };
        Ok(FabricLink {
            source: node(&edge.src_node_id)?,
            source_port: edge.src_port_id.0.parse().ok(),
            destination: node(&edge.dest_node_id)?,
            destination_port: edge.dest_port_id.0.parse().ok(),
            bandwidth_bytes_per_s,
            state: LinkState::Up,
        })
    }

    /// The fabric; the node for each listed one, and the link for each edge.
    fn fabric(&self, notes: &mut Vec<String>) -> Result<(Fabric, Vec<usize>, Vec<usize>)> {
        let end = |edge: &FabricLink| {
            Some(End {
                node: edge.source,
                port: edge.source_port?,
                peer: edge.destination,
                peer_port: edge.destination_port?,
                bandwidth_bytes_per_s: edge.bandwidth_bytes_per_s,
                line: 1,
            })
        };
        let ends: Option<Vec<End>> = self.edges.iter().map(end).collect();
        if let Some(ends) = ends.filter(|_| !self.is_ethernet) {
            let mut cables = Cables { nodes: self.nodes.clone(), ends };
            let place = cables.join_ports(notes);
            let (fabric, link_of) = cables.fabric(notes)?;
            return Ok((fabric, place, link_of));
        }
        let unknown = self.edges.iter().filter(|link| link.bandwidth_bytes_per_s.is_none()).count();
        note(notes, "links of unknown speed, kept without a bandwidth", unknown);
        let fabric = Fabric { nodes: self.nodes.clone(), links: self.edges.clone(), forwarding: Vec::new() };
        Ok((fabric, (0..self.nodes.len()).collect(), (0..self.edges.len()).collect()))
    }

    /// Forwarding entries derived from the paths.
    fn forwarding(
        &self,
        path: &Path,
        fabric: &Fabric,
        place: &[usize],
        link_of: &[usize],
        notes: &mut Vec<String>,
    ) -> Result<Vec<Forward>> {
        let file: PathsFile = parse(path)?;
        let help = "a path is the list of the edges from one host to another";
        let is_host = |node: usize| fabric.nodes[node].kind == NodeKind::Host;
        let hosts = self.nodes.iter().filter(|node| node.kind == NodeKind::Host).count() as u64;
        let mut tables = PathTables::new(fabric);
        for (from, paths) in &file.path_info.0 {
            for (to, edges) in &paths.0 {
                let wrong = |problem: &str| malformed(None, format!("from {from} to {to}: {problem}"), help);
                let ends = (self.node_of.get(from), self.node_of.get(to));
                let (Some(&source), Some(&destination)) = ends else {
                    return Err(wrong("a node is not listed"));
                };
                let ends = (place[source], place[destination]);
                if !is_host(ends.0) || !is_host(ends.1) || edges.is_empty() {
                    continue;
                }
                let links = edges.iter().map(|id| {
                    let edge = self.edge_of.get(id).ok_or_else(|| format!("there is no edge {id}"))?;
                    Ok((*id, link_of[*edge]))
                });
                tables.add(0, ends, "edge", links).map_err(|fault| match fault {
                    PathFault::Broken(problem) => wrong(&problem),
                    PathFault::Contradicts { switch, .. } => {
                        let name = &fabric.nodes[switch].address;
                        wrong(&format!(
                            "switch {name} forwards to the same adapter over another link on other paths"
                        ))
                    }
                })?;
            }
        }
        Ok(tables.forwarding(hosts, notes))
    }
}

/// Bytes per second of an Ethernet link; the controller reports bits per second, or 1 if unknown.
fn bits(edge: &Edge) -> Option<f64> {
    let number = |text: &Text| text.0.trim().parse::<f64>().ok().filter(|number| number.is_finite());
    let bits = number(&edge.speed)? * number(&edge.width)?;
    (bits >= 1000.0).then_some(bits / 8.0)
}

/// `NETWORK-nodes.ndat`.
#[derive(Debug, Deserialize)]
struct NodesFile {
    #[serde(rename = "network_info")]
    network: NetworkInfo,
    #[serde(rename = "node_info")]
    nodes: Pairs<Node>,
    #[serde(rename = "edge_info")]
    edges: Pairs<Edge>,
}

#[derive(Debug, Deserialize)]
struct NetworkInfo {
    #[serde(rename = "network_type")]
    kind: u32,
}

#[derive(Debug, Deserialize)]
struct Node {
    #[serde(rename = "node_type")]
    kind: u32,
    #[serde(default)]
    log_id: Text,
    #[serde(default)]
    desc: Text,
}

#[derive(Debug, Deserialize)]
struct Edge {
    src_node_id: Text,
    src_port_id: Text,
    dest_node_id: Text,
    dest_port_id: Text,
    #[serde(default)]
    speed: Text,
    #[serde(default)]
    width: Text,
}

/// `NETWORK-phy-paths.ndat`.
#[derive(Debug, Deserialize)]
struct PathsFile {
    path_info: Pairs<Pairs<Vec<u64>>>,
}

fn parse<T: DeserializeOwned>(path: &Path) -> Result<T> {
    let text = read_text(path)?;
    serde_json::from_str(&text).map_err(|error| {
        let line = Some(error.line()).filter(|&line| line > 0);
        let help = "netloc 0.5 writes `network_info`, `node_info` and `edge_info`, and for paths `path_info`";
        malformed(line, format!("{error}"), help)
    })
}

/// The members of an object in file order, including duplicates.
#[derive(Debug)]
struct Pairs<T>(Vec<(String, T)>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Pairs<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Members<T> {
            type Value = Pairs<T>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Pairs(pairs))
            }
        }

        deserializer.deserialize_map(Members(PhantomData))
    }
}

/// A string, or a number as text: readers of netloc differ.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Value")]
struct Text(String);

impl TryFrom<Value> for Text {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        match value {
            Value::String(text) => Ok(Self(text)),
            Value::Number(number) if !number.is_f64() => Ok(Self(number.to_string())),
            other => Err(format!("{other} is neither a string nor an integer")),
        }
    }
}
