//! An Omni-Path fabric as `opareport` and the `opaextract` scripts of `FastFabric` list its links.
//!
//! Read are `opareport -o links` and `opareport -o topology`, as text and as XML (`-x`), topology files in XML, and tables with semicolons:
//! those of `opaextractsellinks`, which have no heading, and every one whose heading has `Port.NodeDesc` and `Port.PortNum` twice, such as
//! those of `opaextractlink` and `opaextractstat`.

mod tables;
#[cfg(test)]
mod tests;
mod text;
mod xml;

use std::collections::HashMap;
use std::path::Path;

use hopmap_model::{NodeKind, NodeState};

use super::cables::{Cables, End};
use super::fabric::FabricNode;
use super::reader::{Reader, malformed, one_file, read_text};
use super::{Format, ImportError, ImportParams, Imported, finish, guid};

pub(super) static READER: Reader = Reader {
    format: Format::Omnipath,
    recognises: |sample| sample.text().is_some_and(|text| form(text).is_some()),
    files: one_file,
    read: |path, params| read(path, params),
};

#[derive(Debug, Clone, Copy, PartialEq)]
enum Form {
    Text,
    Tables,
    Xml,
}

fn form(text: &str) -> Option<Form> {
    if xml::is_report(text) {
        return Some(Form::Xml);
    }
    if tables::is_table(text) {
        return Some(Form::Tables);
    }
    text::is_report(text).then_some(Form::Text)
}

/// A cable between two ports.
#[derive(Debug, Clone, PartialEq)]
struct Link<'a> {
    line: usize,
    /// Such as `100g`; empty if it is not said.
    rate: &'a str,
    ports: [Port; 2],
}

/// One end of it.
#[derive(Debug, Clone, PartialEq, Default)]
struct Port {
    guid: Option<u64>,
    number: u32,
    kind: Option<NodeKind>,
    description: String,
}

fn read(path: &Path, params: &ImportParams) -> Result<Imported, ImportError> {
    let text = read_text(path)?;
    let mut fabric = Listed { path, cables: Cables::default(), nodes: HashMap::new(), kinds: Vec::new() };
    let mut add = |link: Link| fabric.add(&link);
    match form(&text) {
        Some(Form::Xml) => xml::read(path, &text, &mut add)?,
        Some(Form::Tables) => tables::read(path, &text, &mut add)?,
        Some(Form::Text) => text::read(path, &text, &mut add)?,
        None => {
            let help = "`opareport -o links` prints what is needed, with or without -x, and so does `opaextractsellinks`";
            return Err(malformed(path, None, "this lists no links of Omni-Path", help));
        }
    }
    let mut notes = Vec::new();
    let cables = fabric.cables(&mut notes);
    if cables.ends.is_empty() {
        let help = "is the fabric up, and nothing but links of one kind asked for?";
        return Err(malformed(path, None, "no link is listed", help));
    }
    let (fabric, _) = cables.fabric(path, &mut notes)?;
    let (parts, more) = fabric.parts();
    notes.extend(more);
    Ok(Imported { system: finish::machine(parts, params, path)?, notes })
}

/// What was listed so far.
struct Listed<'a> {
    path: &'a Path,
    cables: Cables,
    nodes: HashMap<Name, usize>,
    /// By node, what it is and the line that says so.
    kinds: Vec<(Option<NodeKind>, usize)>,
}

/// What tells nodes apart: GUIDs, or what they call themselves where these are not listed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Name {
    Guid(u64),
    Description(String),
}

impl Listed<'_> {
    fn add(&mut self, link: &Link) -> Result<(), ImportError> {
        let [a, b] = &link.ports;
        let (node, peer) = (self.node(link.line, a)?, self.node(link.line, b)?);
        let bandwidth_bytes_per_s = bandwidth(link.rate);
        let end = |(node, port), (peer, peer_port)| End {
            node,
            port,
            peer,
            peer_port,
            bandwidth_bytes_per_s,
            line: link.line,
        };
        self.cables.ends.push(end((node, a.number), (peer, b.number)));
        self.cables.ends.push(end((peer, b.number), (node, a.number)));
        Ok(())
    }

    fn node(&mut self, line: usize, port: &Port) -> Result<usize, ImportError> {
        let description = port.description.trim();
        let name = match port.guid {
            Some(guid) => Name::Guid(guid),
            None if description.is_empty() => {
                let problem = "a node has neither a GUID nor a name";
                return Err(malformed(self.path, line, problem, "every port of a link names its node"));
            }
            None => Name::Description(description.to_owned()),
        };
        if let Some(&node) = self.nodes.get(&name) {
            let (kind, first) = self.kinds[node];
            if kind.is_some() && port.kind.is_some() && kind != port.kind {
                let problem =
                    format!("`{description}` is both a host and a switch, by this line and line {first}");
                return Err(malformed(self.path, line, problem, "the type of a node is FI or SW"));
            }
            if kind.is_none() {
                self.kinds[node] = (port.kind, line);
            }
            return Ok(node);
        }
        let node = self.cables.nodes.len();
        self.nodes.insert(name, node);
        self.kinds.push((port.kind, line));
        self.cables.nodes.push(FabricNode {
            kind: NodeKind::Switch,
            address: port.guid.map(guid::address).unwrap_or_default(),
            description: description.to_owned(),
            host: None,
            state: NodeState::Up,
        });
        Ok(node)
    }

    /// All cables, of nodes that are hosts or switches. Where that is not said, hosts are what calls itself an adapter, or has a cable
    /// in port 1 and no other: adapters of Omni-Path have one port.
    fn cables(mut self, notes: &mut Vec<String>) -> Cables {
        let mut one_port = vec![true; self.kinds.len()];
        for end in &self.cables.ends {
            one_port[end.node] &= end.port == 1;
        }
        let mut guessed = 0;
        for ((node, &(kind, _)), one_port) in self.cables.nodes.iter_mut().zip(&self.kinds).zip(one_port) {
            let is_adapter = one_port || node.description.contains(" hfi1_");
            guessed += usize::from(kind.is_none());
            node.kind = kind.unwrap_or(if is_adapter { NodeKind::Host } else { NodeKind::Switch });
        }
        if guessed > 0 {
            notes.push(format!(
                "nodes of which it is not said what they are, hosts if port 1 has a cable and no other: {guessed}"
            ));
        }
        self.cables
    }
}

/// `FI` is an adapter, `SW` a switch.
fn kind(text: &str) -> Option<NodeKind> {
    match text.trim() {
        "FI" => Some(NodeKind::Host),
        "SW" => Some(NodeKind::Switch),
        _ => None,
    }
}

/// Bytes per second of a rate such as `100g`.
fn bandwidth(rate: &str) -> Option<f64> {
    let gigabits: f64 = rate.trim().strip_suffix(['g', 'G'])?.parse().ok()?;
    (gigabits.is_finite() && gigabits > 0.0).then_some(gigabits * 1e9 / 8.0)
}
