//! `IB-SUBNET-nodes.txt` of netloc 2.0 to 2.9, written by `netloc_ib_extract_dats`: nodes, edges and the path
//! of every ordered pair of hosts.
//!
//! Lines: version, subnet, folder of hwloc, number of nodes; one line per node, one line per node with its
//! edges, one line with partitions, then paths until the end. Fields are separated by commas, which
//! descriptions may also contain. A folder with the file of one subnet is read like that file.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use hopmap_model::{Forward, InputPath, NodeKind, NodeState};
use hopmap_text::{Line, Lines};

use super::cables::{Cables, End};
use super::fabric::{Fabric, FabricNode, PathFault, PathTables};
use super::format::{Sample, malformed, note, one_file};
use super::ibnetdiscover::entries;
use super::{ImportError, ImportParams, Imported, Result, units};

pub(super) fn files(path: &Path) -> Result<Vec<InputPath>> {
    one_file(&file(path)?)
}

/// Whether a file has such a name: `IB-fe80:0000:0000:0000-nodes.txt`.
fn is_of_nodes(name: &str) -> bool {
    name.strip_prefix("IB-").is_some_and(|rest| rest.ends_with("-nodes.txt"))
}

/// The file itself, or the only one of a folder.
fn file(path: &Path) -> Result<PathBuf> {
    if !path.is_dir() {
        return Ok(path.to_owned());
    }
    let mut found = entries(path)?;
    found.retain(|(name, _)| is_of_nodes(name));
    match found.as_slice() {
        [(_, file)] => Ok(file.clone()),
        [] => Err(malformed(None, "the folder contains no subnet", "netloc writes `IB-SUBNET-nodes.txt`")),
        many => {
            let names: Vec<&str> = many.iter().map(|(name, _)| name.as_str()).collect();
            let problem = format!("there are several subnets: {}", names.join(", "));
            Err(malformed(None, problem, "a machine has one subnet: give its file"))
        }
    }
}

/// A version, a subnet, any line, a number of nodes, and a node; or a folder with such a file.
pub(super) fn recognises(sample: &Sample) -> bool {
    if let Some(names) = &sample.entries {
        return names.iter().any(|name| is_of_nodes(name));
    }
    let Some(text) = sample.text() else { return false };
    let mut lines = text.lines().map(str::trim_end);
    let mut next = || lines.next().unwrap_or("");
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (version, subnet, _, count, node) = (next(), next(), next(), next(), next());
    let is_node = || {
        let mut fields = node.split(',');
        fields.next().and_then(units::grouped_guid).is_some() && fields.next().is_some_and(is_number)
    };
    is_number(version) && units::grouped_guid(subnet).is_some() && is_number(count) && is_node()
}

pub(super) fn read(path: &Path, params: &ImportParams) -> Result<Imported> {
    let path = &file(path)?;
    import(path, params).map_err(|error| error.in_file(path))
}

fn import(path: &Path, params: &ImportParams) -> Result<Imported> {
    let mut lines = Lines::open(path, "")?.without_foreign();
    let mut notes = Vec::new();
    let mut records = Records::read(&mut lines, &mut notes)?;
    let adapters = records.adapters();
    let place = records.cables.join_ports(&mut notes);
    let cables = std::mem::take(&mut records.cables);
    if cables.ends.is_empty() {
        let help = "netloc_ib_extract_dats writes a line of edges per node after the lines of nodes";
        return Err(malformed(None, "no links are listed", help));
    }
    let (mut fabric, link_of) = cables.fabric(&mut notes)?;
    fabric.forwarding =
        Paths::new(&records, &place, &link_of, &fabric).read(&mut lines, adapters, &mut notes)?;
    fabric.imported(params, notes)
}

/// The format version, which all releases with this file write.
const VERSION: &str = "1";
const NODE: &str = "such as `0002:c903:0002:da23,142,0,0,'host HCA-1',host`";
const EDGES: &str = "a GUID, then for every neighbour `GUID,gbits,partitions,number of links` and nine fields for each of its links";

/// Nodes and the links between them.
struct Records {
    cables: Cables,
    /// Nodes by GUID, in file order.
    nodes: HashMap<u64, usize>,
    /// Ends of cables by link number.
    ends: HashMap<u32, usize>,
}

/// Counts for notes.
#[derive(Default)]
struct Counts {
    /// Links whose bandwidth differs from that in the file.
    wrong: usize,
    /// Hosts whose name netloc truncated.
    cut: usize,
    unknown: usize,
}

impl Records {
    fn read(lines: &mut Lines<'_>, notes: &mut Vec<String>) -> Result<Self> {
        let count = heading(lines, notes)?;
        let mut records = Self { cables: Cables::default(), nodes: HashMap::new(), ends: HashMap::new() };
        let mut counts = Counts::default();
        let mut texts = Vec::new();
        for _ in 0..count {
            let (number, line) = expect(lines, "a node", NODE)?;
            texts.push(records.node((number, line), &mut counts)?);
        }
        for _ in 0..count {
            let (number, line) = expect(lines, "the edges of a node", EDGES)?;
            records.edges((number, &line), &texts, &mut counts)?;
        }
        expect(lines, "the partitions", "their names, separated by commas, or an empty line")?;
        counts.notes(records.ends.len(), notes);
        Ok(records)
    }

    fn adapters(&self) -> u64 {
        self.cables.nodes.iter().filter(|node| node.kind == NodeKind::Host).count() as u64
    }

    /// Adds the node of a line; returns its literal description.
    fn node(&mut self, (number, line): (usize, String), counts: &mut Counts) -> Result<String> {
        let wrong = |problem: String| malformed(number, problem, NODE);
        let mut fields = line.splitn(5, ',');
        let mut next = || fields.next().unwrap_or("");
        let (id, lid, kind, _, rest) = (next(), next(), next(), next(), next());
        let guid = units::grouped_guid(id).ok_or_else(|| wrong(format!("`{id}` is not a GUID")))?;
        lid.parse::<u32>().map_err(|_| wrong(format!("`{lid}` is not a LID")))?;
        // Commas in the description look like field separators, but host names contain none.
        let (text, host) = rest.rsplit_once(',').ok_or_else(|| wrong("the host is missing".into()))?;
        let kind = match kind {
            "0" => NodeKind::Host,
            "1" => NodeKind::Switch,
            "2" => {
                counts.unknown += 1;
                NodeKind::Switch
            }
            _ => return Err(wrong(format!("`{kind}` is not a node type: hosts have 0, switches 1"))),
        };
        let description = description(text);
        let is_cut = kind == NodeKind::Host && is_cut(description, host);
        counts.cut += usize::from(is_cut);
        let node = FabricNode {
            kind,
            address: units::guid_address(guid),
            description: description.to_owned(),
            host: (!is_cut && !host.is_empty()).then(|| host.to_owned()),
            image: None,
            state: NodeState::Up,
        };
        if self.nodes.insert(guid, self.cables.nodes.len()).is_some() {
            return Err(malformed(number, format!("node {id} is listed twice"), "list every GUID once"));
        }
        self.cables.nodes.push(node);
        Ok(text.to_owned())
    }

    fn edges(&mut self, (number, line): (usize, &str), texts: &[String], counts: &mut Counts) -> Result<()> {
        let mut fields = Fields { number, rest: Some(line) };
        let node = fields.node(&self.nodes)?;
        while fields.rest.is_some() {
            let peer = fields.node(&self.nodes)?;
            fields.next("the sum of bandwidths")?;
            fields.next("partitions")?;
            let links: u32 = fields.number("a number of links")?;
            for _ in 0..links {
                let id = fields.number("the number of a link")?;
                let (port, peer_port) = (fields.number("a port")?, fields.number("a port")?);
                let (width, rate) = (fields.next("a width such as 4x")?, fields.next("a speed such as QDR")?);
                let gbits: f64 = fields.number("a bandwidth")?;
                fields.description(&texts[node], &texts[peer])?;
                fields.next("the number of the link back")?;
                fields.next("partitions")?;
                let bandwidth_bytes_per_s = units::lanes_bandwidth(width, rate);
                let is_right = |bytes: f64| (bytes * 8e-9 - gbits).abs() < 0.01;
                counts.wrong += usize::from(bandwidth_bytes_per_s.is_some_and(|bytes| !is_right(bytes)));
                if self.ends.insert(id, self.cables.ends.len()).is_some() {
                    let problem = format!("two links have number {id}");
                    let help = "every direction of every cable must have a unique number";
                    return Err(malformed(number, problem, help));
                }
                self.cables.ends.push(End {
                    node,
                    port,
                    peer,
                    peer_port,
                    bandwidth_bytes_per_s,
                    line: number,
                });
            }
        }
        Ok(())
    }
}

/// The lines before the nodes; returns the number of nodes.
fn heading(lines: &mut Lines<'_>, notes: &mut Vec<String>) -> Result<usize> {
    let (number, version) = expect(lines, "a version", VERSION)?;
    if version.trim() != VERSION {
        let problem = format!("unknown format version {}", version.trim());
        return Err(malformed(number, problem, "netloc 2.0 to 2.9 write version 1"));
    }
    expect(lines, "a subnet", "such as `fe80:0000:0000:0000`")?;
    let (_, folder) = expect(lines, "the folder of hwloc", "it may be empty")?;
    if !folder.trim().is_empty() {
        notes.push(format!(
            "ignoring the hwloc folder `{}` in the file; set the parameter `hwloc` instead",
            folder.trim()
        ));
    }
    let (number, count) = expect(lines, "the number of nodes", "such as `306`")?;
    let wrong = || malformed(number, format!("`{}` is not a number of nodes", count.trim()), "such as `306`");
    count.trim().parse().map_err(|_| wrong())
}

fn expect(lines: &mut Lines<'_>, what: &str, help: &str) -> Result<(usize, String)> {
    let line = lines.next_or(|| format!("the file ends where {what} should be"));
    let line = line.map_err(|error| error.with_help(help))?;
    Ok((line.number, line.text.to_owned()))
}

/// The description of a node. netloc splits the descriptions of a cable at the last ` - `, which may be
/// inside the second one.
fn description(text: &str) -> &str {
    let text = text.trim();
    let inside = text.strip_prefix('\'').unwrap_or(text);
    let inside = inside.split_once("' - '").map_or(inside, |(own, _)| own);
    inside.strip_suffix('\'').unwrap_or(inside)
}

/// Whether netloc truncated a host name: it stops at the first character other than a lower-case letter,
/// digit or hyphen.
fn is_cut(description: &str, host: &str) -> bool {
    let word = description.split_whitespace().next().unwrap_or("");
    let goes_on = |rest: &str| rest.starts_with(|c: char| c.is_alphanumeric() || "_.".contains(c));
    word.strip_prefix(host).is_some_and(goes_on)
}

/// Fields of a line, consumed from its beginning.
struct Fields<'a> {
    number: usize,
    /// `None` after the last one.
    rest: Option<&'a str>,
}

impl<'a> Fields<'a> {
    fn wrong(&self, problem: impl Into<String>) -> ImportError {
        malformed(self.number, problem, EDGES)
    }

    fn next(&mut self, what: &str) -> Result<&'a str> {
        let rest = self.rest.ok_or_else(|| self.wrong(format!("the line ends where {what} should be")))?;
        let (field, rest) = match rest.split_once(',') {
            Some((field, rest)) => (field, Some(rest)),
            None => (rest, None),
        };
        self.rest = rest;
        Ok(field)
    }

    fn number<T: std::str::FromStr>(&mut self, what: &str) -> Result<T> {
        let field = self.next(what)?;
        field.trim().parse().map_err(|_| self.wrong(format!("`{field}` is not {what}")))
    }

    fn node(&mut self, nodes: &HashMap<u64, usize>) -> Result<usize> {
        let field = self.next("a GUID")?;
        let guid =
            units::grouped_guid(field).ok_or_else(|| self.wrong(format!("`{field}` is not a GUID")))?;
        nodes.get(&guid).copied().ok_or_else(|| self.wrong(format!("node {field} is not listed")))
    }

    /// Skips the description of a link, which consists of those of its ends and may contain commas.
    fn description(&mut self, own: &str, peer: &str) -> Result<()> {
        let rest = self.rest.unwrap_or("");
        let known = || {
            let rest = rest.strip_prefix(own.trim())?.strip_prefix(" - ")?.strip_prefix(peer.trim())?;
            rest.trim_start().strip_prefix(',')
        };
        let behind = known().or_else(|| {
            let ends = rest.match_indices("' ,").chain(rest.match_indices("',"));
            let behind = ends.map(|(place, end)| &rest[place + end.len()..]);
            behind.filter(|behind| is_link_back(behind)).max_by_key(|behind| behind.len())
        });
        match behind {
            Some(behind) => self.rest = Some(behind),
            None => drop(self.next("a description")?),
        }
        Ok(())
    }
}

/// Whether a number comes first, as it does after the description of a link.
fn is_link_back(text: &str) -> bool {
    let field = text.split(',').next().unwrap_or("");
    field.parse::<i64>().is_ok() && field.len() < text.len()
}

impl Counts {
    fn notes(&self, links: usize, notes: &mut Vec<String>) {
        let Self { wrong, cut, unknown } = *self;
        if wrong > 0 {
            notes.push(format!(
                "bandwidths computed incorrectly by netloc, recomputed from width and speed: {wrong} of {links} links"
            ));
        }
        for (count, what) in [
            (cut, "host names truncated by netloc, taken from descriptions"),
            (unknown, "nodes of unknown type, treated as switches"),
        ] {
            note(notes, what, count);
        }
    }
}

const HELP: &str = "a path consists of the GUIDs of two hosts and the numbers of the links between them";

/// State for reading paths.
struct Paths<'a> {
    /// Links by number.
    links: HashMap<u32, usize>,
    /// By GUID, the node of the file and that of the fabric.
    nodes: HashMap<u64, Node>,
    tables: PathTables<'a>,
    /// By node of the file, the line of the last path to it.
    seen: Vec<usize>,
}

#[derive(Clone, Copy)]
struct Node {
    listed: usize,
    fabric: usize,
    is_host: bool,
}

impl<'a> Paths<'a> {
    /// `place` maps listed nodes to nodes of the fabric, `link_of` ends of cables to links.
    fn new(records: &Records, place: &[usize], link_of: &[usize], fabric: &'a Fabric) -> Self {
        let node = |(&guid, &listed): (&u64, &usize)| {
            let is_host = fabric.nodes[place[listed]].kind == NodeKind::Host;
            (guid, Node { listed, fabric: place[listed], is_host })
        };
        Self {
            links: records.ends.iter().map(|(&number, &end)| (number, link_of[end])).collect(),
            nodes: records.nodes.iter().map(node).collect(),
            tables: PathTables::new(fabric),
            seen: vec![0; place.len()],
        }
    }

    /// Reads all paths. `adapters` is the number of adapters between which paths are expected.
    fn read(mut self, lines: &mut Lines<'_>, adapters: u64, notes: &mut Vec<String>) -> Result<Vec<Forward>> {
        let mut source: Option<Source> = None;
        while let Some(Line { number, text: line, .. }) = lines.next()? {
            let Some((first, rest)) = line.split_once(',') else {
                match line.trim().is_empty() {
                    true => continue,
                    false => return Err(malformed(number, "this is not a path", HELP)),
                }
            };
            // The paths of a host are consecutive.
            let own = match &source {
                Some(known) if known.text == first => known.node,
                _ => {
                    let node = self.host(number, first)?;
                    source = Some(Source { text: first.to_owned(), node, line: number });
                    node
                }
            };
            let begin = source.as_ref().map_or(number, |source| source.line);
            self.path(number, (own, begin), rest)?;
        }
        Ok(self.tables.forwarding(adapters, notes))
    }

    fn host(&self, line: usize, text: &str) -> Result<Node> {
        let wrong = |problem: String| malformed(line, problem, HELP);
        let guid = units::grouped_guid(text).ok_or_else(|| wrong(format!("`{text}` is not a GUID")))?;
        match self.nodes.get(&guid) {
            Some(node) if node.is_host => Ok(*node),
            Some(_) => Err(wrong(format!("{text} is a switch, but paths begin and end at hosts"))),
            None => Err(wrong(format!("node {text} is not listed"))),
        }
    }

    /// Reads the rest of a path after its source: destination and links. The paths of the source start at
    /// line `begin`.
    fn path(&mut self, line: usize, (source, begin): (Node, usize), text: &str) -> Result<()> {
        let mut fields = text.split(',').map(str::trim).filter(|field| !field.is_empty());
        let destination = self.host(line, fields.next().unwrap_or(""))?;
        if self.seen[destination.listed] >= begin {
            let problem = format!("line {} has a path between the same hosts", self.seen[destination.listed]);
            return Err(malformed(line, problem, "give one path per ordered pair of hosts"));
        }
        self.seen[destination.listed] = line;
        let links = fields.map(|field| {
            let number: u32 = field.parse().map_err(|_| format!("`{field}` is not a link number"))?;
            let known = self.links.get(&number).ok_or_else(|| format!("there is no link {number}"))?;
            Ok((number.into(), *known))
        });
        let ends = (source.fabric, destination.fabric);
        self.tables.add(line, ends, "link", links).map_err(|fault| match fault {
            PathFault::Broken(problem) => malformed(line, problem, HELP),
            PathFault::Contradicts { line: before, .. } => malformed(
                line,
                format!(
                    "this path and the one in line {before} leave a switch over different links to the same adapter"
                ),
                "switches forward by destination; the paths are from different dumps, or one of them is damaged",
            ),
        })
    }
}

/// The host whose paths are being read.
struct Source {
    text: String,
    node: Node,
    /// The first of its lines.
    line: usize,
}
