//! Omni-Path fabrics in the output of `opareport` and the `opaextract` scripts of `FastFabric`.
//!
//! Supported are `opareport -o links` and `opareport -o topology`, as text and as XML (`-x`), topology files
//! in XML, and tables with semicolons: those of `opaextractsellinks`, which have no heading, and any table
//! whose heading has `Port.NodeDesc` and `Port.PortNum` twice, such as those of `opaextractlink` and
//! `opaextractstat`.

#[cfg(test)]
mod tests;

use std::collections::HashMap;

use hopmap_model::{NodeKind, NodeState};

use super::cables::{Cables, End};
use super::fabric::FabricNode;
use super::format::{Sample, malformed, note, unless_allowed};
use super::units::{self, word};
use super::xml::{Element, Xml};
use super::{ImportError, ImportParams, Imported, Result};

pub(super) fn recognises(sample: &Sample) -> bool {
    sample.text().is_some_and(|text| form(text).is_some())
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Form {
    Text,
    Tables,
    Xml,
}

fn form(text: &str) -> Option<Form> {
    if is_report(text) {
        return Some(Form::Xml);
    }
    if is_table(text) {
        return Some(Form::Tables);
    }
    is_report_text(text).then_some(Form::Text)
}

/// A cable between two ports.
#[derive(Debug, Clone, PartialEq)]
struct Link<'a> {
    line: usize,
    /// Such as `100g`; empty if unknown.
    rate: &'a str,
    ports: [Port; 2],
}

/// One end of a cable.
#[derive(Debug, Clone, PartialEq, Default)]
struct Port {
    guid: Option<u64>,
    number: u32,
    kind: Option<NodeKind>,
    description: String,
}

pub(super) fn read(text: &str, params: &ImportParams) -> Result<Imported> {
    let mut fabric = Listed { cables: Cables::default(), nodes: HashMap::new(), kinds: Vec::new() };
    let mut add = |link: Link| fabric.add(&link);
    let mut stated = Stated::default();
    let mut notes = Vec::new();
    match form(text) {
        Some(Form::Xml) => read_xml(text, &mut stated, &mut add)?,
        Some(Form::Tables) => read_tables(text, &mut add)?,
        Some(Form::Text) => {
            let end = read_report(text, &mut stated, &mut add)?;
            unless_allowed(end.map_or(Ok(()), |line| Err(lonely(line))), params, &mut notes)?;
        }
        None => {
            let help = "use `opareport -o links`, with or without -x, or `opaextractsellinks`";
            return Err(malformed(None, "the file contains no Omni-Path links", help));
        }
    }
    unless_allowed(stated.check(fabric.cables.ends.len() / 2, &mut notes), params, &mut notes)?;
    let cables = fabric.cables(&mut notes);
    if cables.ends.is_empty() {
        let help = "check that the fabric is up and that the report is not restricted to some links";
        return Err(malformed(None, "no links are listed", help));
    }
    let (fabric, _) = cables.fabric(&mut notes)?;
    fabric.imported(params, notes)
}

/// The number of links that a report states.
#[derive(Default)]
struct Stated(Option<(usize, usize)>);

impl Stated {
    /// Adds the number of one list, and the line that states it.
    fn add(&mut self, links: &str, line: usize) {
        if let Ok(links) = links.trim().parse::<usize>() {
            let (before, first) = self.0.unwrap_or((0, line));
            self.0 = Some((before.saturating_add(links), first));
        }
    }

    fn check(&self, listed: usize, notes: &mut Vec<String>) -> Result<()> {
        match self.0 {
            Some((stated, line)) if stated < listed => {
                notes.push(format!(
                    "line {line} states {stated} links, but {listed} are listed: all of them are read"
                ));
                Ok(())
            }
            Some((stated, line)) if stated > listed => {
                let problem = format!(
                    "the report states {stated} links, but {listed} are listed: it is cut off, or limited to a part"
                );
                Err(malformed(line, problem, "run `opareport -o links` again, without `-F`"))
            }
            _ => Ok(()),
        }
    }
}

/// The links listed so far.
struct Listed {
    cables: Cables,
    nodes: HashMap<Name, usize>,
    /// For each node its kind and the line that defines it.
    kinds: Vec<(Option<NodeKind>, usize)>,
}

/// Identity of a node: its GUID, or its description if GUIDs are not listed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Name {
    Guid(u64),
    Description(String),
}

impl Listed {
    fn add(&mut self, link: &Link) -> Result<()> {
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

    fn node(&mut self, line: usize, port: &Port) -> Result<usize> {
        let description = port.description.trim();
        let name = match port.guid {
            Some(guid) => Name::Guid(guid),
            None if description.is_empty() => {
                let problem = "a node has neither a GUID nor a name";
                return Err(malformed(line, problem, "every port of a link must identify its node"));
            }
            None => Name::Description(description.to_owned()),
        };
        if let Some(&node) = self.nodes.get(&name) {
            let (kind, first) = self.kinds[node];
            if kind.is_some() && port.kind.is_some() && kind != port.kind {
                let problem =
                    format!("`{description}` is both a host and a switch, by this line and line {first}");
                return Err(malformed(line, problem, "the type of a node must be FI or SW"));
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
            address: port.guid.map(units::guid_address).unwrap_or_default(),
            description: description.to_owned(),
            host: None,
            image: None,
            state: NodeState::Up,
        });
        Ok(node)
    }

    /// All cables, with nodes classified as hosts or switches. A node of unknown type is a host if its
    /// description is that of an adapter, or if it has a cable in port 1 only: Omni-Path adapters have one
    /// port.
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
        let what = "nodes of unknown type, treated as hosts if only port 1 has a cable";
        note(notes, what, guessed);
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

const ALL_LINKS: &str = "LinkSummary";

/// Whether this is a report in XML or a topology file.
fn is_report(text: &str) -> bool {
    let text = text.trim_start_matches('\u{feff}').trim_start();
    let is_xml = text.starts_with("<?xml") || text.starts_with("<Report") || text.starts_with("<Topology");
    let has = |name: &str| text.contains(name);
    is_xml && (has("<Report ") || has("<Topology")) && (has("LinkSummary>") || has("<FIs>") || has("<Nodes>"))
}

/// Reports in XML, written by `opareport -x -o links` and `-o topology`, and topology files of
/// `opaxlattopology` and `opagentopology`.
///
/// Reads the elements `Link` of a `LinkSummary`: `Rate`, and in each of two elements `Port` `NodeGUID`,
/// `PortNum`, `NodeType` and `NodeDesc`.
fn read_xml(
    text: &str,
    stated: &mut Stated,
    add: &mut impl for<'a> FnMut(Link<'a>) -> Result<()>,
) -> Result<()> {
    let xml = Xml::parse(text)?;
    for element in xml.root().descendants() {
        match element.name() {
            ALL_LINKS => {
                element.all("LinkCount").for_each(|count| stated.add(&count.text(), count.line()));
                for element in element.all("Link") {
                    let rate = last(element, "Rate");
                    add(Link { line: element.line(), rate: &rate, ports: ports(element)? })?;
                }
            }
            name if name.ends_with(ALL_LINKS) => {
                let problem = format!("`{name}` lists only some of the links");
                let help = "`opareport -x -o links` lists all of them";
                return Err(element.wrong(problem, help));
            }
            _ => {}
        }
    }
    Ok(())
}

/// The text of the last element with a name.
fn last(element: Element<'_>, name: &str) -> String {
    element.all(name).last().map(|element| element.text().trim().to_owned()).unwrap_or_default()
}

/// Both ports of a link.
fn ports(link: Element<'_>) -> Result<[Port; 2]> {
    let ports = link.all("Port").map(|element| port(element)).collect::<Result<Vec<_>, _>>()?;
    let ports = <[Port; 2]>::try_from(ports).map_err(|ports| {
        let problem = format!("this link has {} ports", ports.len());
        link.wrong(problem, "it must have two elements `Port`")
    })?;
    match ports.iter().all(|port| port.number > 0) {
        true => Ok(ports),
        false => Err(link.wrong("a port of this link has no number", "add `PortNum`")),
    }
}

fn port(element: Element<'_>) -> Result<Port> {
    let mut port = Port { description: last(element, "NodeDesc"), ..Port::default() };
    for element in element.children() {
        let text = element.text();
        let value = text.trim();
        let wrong = |what: &str| {
            element.wrong(format!("`{value}` is not a {what}"), "check whether the file is damaged")
        };
        match element.name() {
            "NodeGUID" => port.guid = Some(units::prefixed_guid(value).ok_or_else(|| wrong("GUID"))?),
            "PortNum" => port.number = value.parse().map_err(|_| wrong("port number"))?,
            "NodeType" => {
                let what = "node type: adapters have FI, switches SW";
                port.kind = Some(kind(value).ok_or_else(|| wrong(what))?);
            }
            _ => {}
        }
    }
    Ok(port)
}

const TITLE: &str = "Link Summary";
const COUNT: &str = "Links in Fabric";

/// Whether a report of links begins here.
fn is_report_text(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim);
    lines.any(|line| line.ends_with(TITLE)) && lines.any(|line| line.contains(COUNT))
}

/// `opareport -o links` as text.
///
/// In the format of `ShowLinksReport` in `FastFabric`: a rate with one port, `<->` with the other, and
/// details between them:
///
/// ```text
/// Link Summary
/// 1 Links in Fabric:
/// Rate NodeGUID          Port Type Name
/// 100g 0x0011750101670001   1 FI   node1 hfi1_0
/// <->  0x0011750102000001   7 SW   leaf 1
/// ```
///
/// Returns the line of a last link whose second port is missing.
fn read_report<'a>(
    text: &'a str,
    stated: &mut Stated,
    add: &mut impl FnMut(Link<'a>) -> Result<()>,
) -> Result<Option<usize>> {
    let mut first: Option<(&str, Port, usize)> = None;
    for (line, number) in text.lines().zip(1..) {
        let trimmed = line.trim();
        if trimmed.ends_with(TITLE) && trimmed != TITLE {
            let problem = format!("`{trimmed}` lists only some of the links");
            return Err(malformed(number, problem, "`opareport -o links` lists all of them"));
        }
        if let Some((links, _)) = trimmed.split_once(COUNT) {
            stated.add(links, number);
        }
        let Some((rate, port)) = row(trimmed) else { continue };
        match (rate, first.take()) {
            ("<->", Some((rate, other, line))) => add(Link { line, rate, ports: [other, port] })?,
            ("<->", None) => {
                let help = "the previous line must contain the rate and the other port";
                return Err(malformed(number, "the first port of this link is missing", help));
            }
            (_, Some((_, _, line))) => return Err(lonely(line)),
            (rate, None) => first = Some((rate, port, number)),
        }
    }
    Ok(first.map(|(_, _, line)| line))
}

fn lonely(line: usize) -> ImportError {
    malformed(line, "the second port of this link is missing", "it must be in a line that begins with `<->`")
}

/// A port, preceded by the rate or `<->`. All other lines are titles and details of cables.
fn row(line: &str) -> Option<(&str, Port)> {
    let mut rest = line;
    let (rate, id, number, node_type) = (word(&mut rest), word(&mut rest), word(&mut rest), word(&mut rest));
    let guid = units::prefixed_guid(id).filter(|_| id.len() == 18);
    let port = Port {
        guid: Some(guid?),
        number: number.parse().ok()?,
        kind: Some(kind(node_type)?),
        description: rest.trim().to_owned(),
    };
    Some((rate, port))
}

/// Whether the first line is one of such a table.
fn is_table(text: &str) -> bool {
    let first = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("");
    Columns::of(first).is_some() || plain(first).is_some()
}

/// Semicolon-separated tables without quoting.
///
/// `opaextractsellinks` writes `GUID;port;type;name;GUID;port;type;name` without a heading; `opaextractlink`,
/// `opaextractstat` and `opaextractstat2` have a heading, and the columns `Rate`, `Port.NodeDesc` and
/// `Port.PortNum` are used.
fn read_tables<'a>(text: &'a str, add: &mut impl FnMut(Link<'a>) -> Result<()>) -> Result<()> {
    let mut columns: Option<Columns> = None;
    for (line, number) in text.lines().zip(1..) {
        let line = line.trim();
        // Concatenated tables repeat the heading.
        if let Some(heading) = Columns::of(line) {
            columns = Some(heading);
            continue;
        }
        // The scripts print an empty line before the first link.
        if line.is_empty() {
            continue;
        }
        let (rate, ports) = match &columns {
            Some(columns) => columns.ports(line).map_err(|problem| {
                malformed(
                    number,
                    problem,
                    "fields must not contain semicolons; `opareport -o links` has no such limitation",
                )
            })?,
            None => (
                "",
                plain(line).ok_or_else(|| {
                    let help =
                        "such as `0x0011750101670001;1;FI;node1 hfi1_0;0x0011750102000001;7;SW;leaf 1`";
                    malformed(number, "this is not a link", help)
                })?,
            ),
        };
        add(Link { line: number, rate, ports })?;
    }
    Ok(())
}

/// Positions of the used columns of a table with a heading.
#[derive(Debug, PartialEq)]
struct Columns {
    count: usize,
    rate: Option<usize>,
    names: [usize; 2],
    numbers: [usize; 2],
}

impl Columns {
    fn of(line: &str) -> Option<Self> {
        let fields: Vec<&str> = line.split(';').map(str::trim).collect();
        let places = |name: &str| -> Vec<usize> {
            let is_it = |field: &str| field.rsplit('.').next() == Some(name);
            (0..fields.len()).filter(|&place| is_it(fields[place])).collect()
        };
        Some(Self {
            count: fields.len(),
            rate: places("Rate").first().copied(),
            names: places("NodeDesc").try_into().ok()?,
            numbers: places("PortNum").try_into().ok()?,
        })
    }

    fn ports<'a>(&self, line: &'a str) -> Result<(&'a str, [Port; 2]), String> {
        let fields: Vec<&str> = line.split(';').collect();
        if fields.len() != self.count {
            return Err(format!("there are {} fields, but {} columns", fields.len(), self.count));
        }
        let port = |end: usize| {
            let number = fields[self.numbers[end]].trim();
            let number = number.parse().map_err(|_| format!("`{number}` is not a port number"))?;
            Ok::<_, String>(Port {
                number,
                description: fields[self.names[end]].to_owned(),
                ..Port::default()
            })
        };
        Ok((self.rate.map_or("", |rate| fields[rate]), [port(0)?, port(1)?]))
    }
}

/// Both ports of a line without a heading. Names may contain semicolons: the second port begins at its GUID.
fn plain(line: &str) -> Option<[Port; 2]> {
    let fields: Vec<&str> = line.split(';').collect();
    let second =
        (4..fields.len()).find(|&place| port_of(&fields, place, place + 3..fields.len()).is_some())?;
    Some([port_of(&fields, 0, 3..second)?, port_of(&fields, second, second + 3..fields.len())?])
}

fn port_of(fields: &[&str], place: usize, name: std::ops::Range<usize>) -> Option<Port> {
    let id = fields.get(place)?.trim();
    Some(Port {
        guid: Some(units::prefixed_guid(id).filter(|_| id.len() == 18)?),
        number: fields.get(place + 1)?.trim().parse().ok()?,
        kind: Some(kind(fields.get(place + 2)?)?),
        description: fields.get(name).filter(|words| !words.is_empty())?.join(";"),
    })
}
