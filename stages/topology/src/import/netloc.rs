//! `IB-SUBNET-nodes.txt` of netloc 2.0 to 2.9, as `netloc_ib_extract_dats` writes it: nodes, edges and the path of every ordered pair of hosts.
//!
//! Line by line: version, subnet, folder of hwloc, number of nodes; a line for every node, a line for every node with its edges, a line with
//! partitions, and paths until the end. Fields are separated by commas, and descriptions may hold some themselves. A folder
//! with the file of one subnet is read like that file.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use hopmap_model::{InputPath, NodeKind, NodeState};
use hopmap_text::{Line, Lines};

use super::cables::{Cables, End};
use super::fabric::{Fabric, FabricForward, FabricNode};
use super::format::{Sample, malformed, one_file};
use super::ibnetdiscover::entries;
use super::{ImportError, ImportParams, Imported, finish, units};

pub(super) fn files(path: &Path) -> Result<Vec<InputPath>, ImportError> {
    one_file(&file(path)?)
}

/// Whether a file has such a name: `IB-fe80:0000:0000:0000-nodes.txt`.
fn is_of_nodes(name: &str) -> bool {
    name.strip_prefix("IB-").is_some_and(|rest| rest.ends_with("-nodes.txt"))
}

/// The file itself, or the only one of a folder.
fn file(path: &Path) -> Result<PathBuf, ImportError> {
    if !path.is_dir() {
        return Ok(path.to_owned());
    }
    let mut found = entries(path)?;
    found.retain(|(name, _)| is_of_nodes(name));
    match found.as_slice() {
        [(_, file)] => Ok(file.clone()),
        [] => Err(malformed(path, None, "no subnet is here", "netloc writes `IB-SUBNET-nodes.txt`")),
        many => {
            let names: Vec<&str> = many.iter().map(|(name, _)| name.as_str()).collect();
            let problem = format!("there are several subnets: {}", names.join(", "));
            Err(malformed(path, None, problem, "a machine has one: name the file of one"))
        }
    }
}

/// A version, a subnet, anything, a number of nodes, and a node; or a folder with such a file.
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

pub(super) fn read(path: &Path, params: &ImportParams) -> Result<Imported, ImportError> {
    let path = &file(path)?;
    let mut lines = Lines::open(path, "")?;
    let mut notes = Vec::new();
    let mut records = Records::read(path, &mut lines, &mut notes)?;
    let adapters = records.adapters();
    let place = records.cables.join_ports(&mut notes);
    let cables = std::mem::take(&mut records.cables);
    if cables.ends.is_empty() {
        let help = "netloc_ib_extract_dats writes a line of edges for every node behind the lines of nodes";
        return Err(malformed(path, None, "no link is listed", help));
    }
    let (mut fabric, link_of) = cables.fabric(path, &mut notes)?;
    fabric.forwarding =
        Paths::new(path, &records, &place, &link_of, &fabric).read(&mut lines, adapters, &mut notes)?;
    let (parts, more) = fabric.parts();
    notes.extend(more);
    Ok(Imported { system: finish::machine(parts, params, path)?, notes })
}

/// The version of the format that all releases with this file write.
const VERSION: &str = "1";
const NODE: &str = "such as `0002:c903:0002:da23,142,0,0,'host HCA-1',host`";
const EDGES: &str = "a GUID, then for every neighbour `GUID,gbits,partitions,number of links` and nine fields for each of its links";

/// Nodes and the links between them.
struct Records {
    cables: Cables,
    /// Nodes by GUID, as they are listed.
    nodes: HashMap<u64, usize>,
    /// Ends of cables by the number of their link.
    ends: HashMap<u32, usize>,
}

/// What is counted for people.
#[derive(Default)]
struct Counts {
    /// Links whose bandwidth is another one than the file says.
    wrong: usize,
    /// Hosts whose name netloc cut off.
    cut: usize,
    unknown: usize,
}

impl Records {
    fn read(path: &Path, lines: &mut Lines<'_>, notes: &mut Vec<String>) -> Result<Self, ImportError> {
        let count = heading(path, lines, notes)?;
        let mut records = Self { cables: Cables::default(), nodes: HashMap::new(), ends: HashMap::new() };
        let mut counts = Counts::default();
        let mut texts = Vec::new();
        for _ in 0..count {
            let (number, line) = expect(lines, "a node", NODE)?;
            texts.push(records.node(path, (number, line), &mut counts)?);
        }
        for _ in 0..count {
            let (number, line) = expect(lines, "the edges of a node", EDGES)?;
            records.edges(path, (number, &line), &texts, &mut counts)?;
        }
        expect(lines, "the partitions", "their names, separated by commas, or an empty line")?;
        counts.notes(records.ends.len(), notes);
        Ok(records)
    }

    fn adapters(&self) -> u64 {
        self.cables.nodes.iter().filter(|node| node.kind == NodeKind::Host).count() as u64
    }

    /// Adds the node of a line, and gives its description as it stands there.
    fn node(
        &mut self,
        path: &Path,
        (number, line): (usize, String),
        counts: &mut Counts,
    ) -> Result<String, ImportError> {
        let wrong = |problem: String| malformed(path, number, problem, NODE);
        let mut fields = line.splitn(5, ',');
        let mut next = || fields.next().unwrap_or("");
        let (id, lid, kind, _, rest) = (next(), next(), next(), next(), next());
        let guid = units::grouped_guid(id).ok_or_else(|| wrong(format!("`{id}` is no GUID")))?;
        lid.parse::<u32>().map_err(|_| wrong(format!("`{lid}` is no LID")))?;
        // Commas in the description are not told from those between fields, but names of hosts have none.
        let (text, host) = rest.rsplit_once(',').ok_or_else(|| wrong("the host is missing".into()))?;
        let kind = match kind {
            "0" => NodeKind::Host,
            "1" => NodeKind::Switch,
            "2" => {
                counts.unknown += 1;
                NodeKind::Switch
            }
            _ => return Err(wrong(format!("`{kind}` is no type: hosts have 0, switches 1"))),
        };
        let description = description(text);
        let is_cut = kind == NodeKind::Host && is_cut(description, host);
        counts.cut += usize::from(is_cut);
        let node = FabricNode {
            kind,
            address: units::guid_address(guid),
            description: description.to_owned(),
            host: (!is_cut && !host.is_empty()).then(|| host.to_owned()),
            state: NodeState::Up,
        };
        if self.nodes.insert(guid, self.cables.nodes.len()).is_some() {
            return Err(malformed(
                path,
                number,
                format!("node {id} is listed twice"),
                "every GUID has one line",
            ));
        }
        self.cables.nodes.push(node);
        Ok(text.to_owned())
    }

    fn edges(
        &mut self,
        path: &Path,
        (number, line): (usize, &str),
        texts: &[String],
        counts: &mut Counts,
    ) -> Result<(), ImportError> {
        let mut fields = Fields { path, number, rest: Some(line) };
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
                    return Err(malformed(
                        path,
                        number,
                        problem,
                        "every direction of every cable has a number of its own",
                    ));
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

/// The lines before the nodes, of which there are so many.
fn heading(path: &Path, lines: &mut Lines<'_>, notes: &mut Vec<String>) -> Result<usize, ImportError> {
    let (number, version) = expect(lines, "a version", VERSION)?;
    if version.trim() != VERSION {
        let problem = format!("version {} of the format is not known", version.trim());
        return Err(malformed(path, number, problem, "netloc 2.0 to 2.9 write version 1"));
    }
    expect(lines, "a subnet", "such as `fe80:0000:0000:0000`")?;
    let (_, folder) = expect(lines, "the folder of hwloc", "it may be empty")?;
    if !folder.trim().is_empty() {
        notes.push(format!(
            "the file names `{}` as folder of hwloc; only the parameter `hwloc` is looked at",
            folder.trim()
        ));
    }
    let (number, count) = expect(lines, "the number of nodes", "such as `306`")?;
    let wrong =
        || malformed(path, number, format!("`{}` is no number of nodes", count.trim()), "such as `306`");
    count.trim().parse().map_err(|_| wrong())
}

fn expect(lines: &mut Lines<'_>, what: &str, help: &str) -> Result<(usize, String), ImportError> {
    let line = lines.next_or(|| format!("the file ends where {what} should be"));
    let line = line.map_err(|error| error.with_help(help))?;
    Ok((line.number, line.text.to_owned()))
}

/// What a node calls itself. netloc separates both descriptions of a cable at the last ` - `, which may be one inside the second.
fn description(text: &str) -> &str {
    let text = text.trim();
    let inside = text.strip_prefix('\'').unwrap_or(text);
    let inside = inside.split_once("' - '").map_or(inside, |(own, _)| own);
    inside.strip_suffix('\'').unwrap_or(inside)
}

/// Whether netloc ended the name of a host early: at the first character that is no lower-case letter, digit or hyphen.
fn is_cut(description: &str, host: &str) -> bool {
    let word = description.split_whitespace().next().unwrap_or("");
    let goes_on = |rest: &str| rest.starts_with(|c: char| c.is_alphanumeric() || "_.".contains(c));
    word.strip_prefix(host).is_some_and(goes_on)
}

/// Fields of a line, taken from its beginning.
struct Fields<'a> {
    path: &'a Path,
    number: usize,
    /// `None` behind the last one.
    rest: Option<&'a str>,
}

impl<'a> Fields<'a> {
    fn wrong(&self, problem: impl Into<String>) -> ImportError {
        malformed(self.path, self.number, problem, EDGES)
    }

    fn next(&mut self, what: &str) -> Result<&'a str, ImportError> {
        let rest = self.rest.ok_or_else(|| self.wrong(format!("the line ends where {what} should be")))?;
        let (field, rest) = match rest.split_once(',') {
            Some((field, rest)) => (field, Some(rest)),
            None => (rest, None),
        };
        self.rest = rest;
        Ok(field)
    }

    fn number<T: std::str::FromStr>(&mut self, what: &str) -> Result<T, ImportError> {
        let field = self.next(what)?;
        field.trim().parse().map_err(|_| self.wrong(format!("`{field}` is not {what}")))
    }

    fn node(&mut self, nodes: &HashMap<u64, usize>) -> Result<usize, ImportError> {
        let field = self.next("a GUID")?;
        let guid = units::grouped_guid(field).ok_or_else(|| self.wrong(format!("`{field}` is no GUID")))?;
        nodes.get(&guid).copied().ok_or_else(|| self.wrong(format!("node {field} is not listed")))
    }

    /// Goes past the description of a link, which is made of those of its ends and may hold commas.
    fn description(&mut self, own: &str, peer: &str) -> Result<(), ImportError> {
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

/// Whether a number is first, as behind the description of a link.
fn is_link_back(text: &str) -> bool {
    let field = text.split(',').next().unwrap_or("");
    field.parse::<i64>().is_ok() && field.len() < text.len()
}

impl Counts {
    fn notes(&self, links: usize, notes: &mut Vec<String>) {
        let Self { wrong, cut, unknown } = *self;
        if wrong > 0 {
            notes.push(format!(
                "bandwidths that netloc computed wrong, here from width and speed: {wrong} of {links} links"
            ));
        }
        for (count, what) in [
            (cut, "names of hosts that netloc cut off, here from their descriptions"),
            (unknown, "nodes of an unknown type, taken for switches"),
        ] {
            if count > 0 {
                notes.push(format!("{what}: {count}"));
            }
        }
    }
}

const HELP: &str = "a path has the GUIDs of two hosts and the numbers of the links from one to the other";

/// A direction of a cable.
#[derive(Clone, Copy)]
struct Step {
    link: u32,
    source: u32,
    destination: u32,
    leaves_switch: bool,
}

/// What paths are made of.
struct Paths<'a> {
    path: &'a Path,
    /// Directions of cables by their numbers.
    steps: HashMap<u32, Step>,
    /// By GUID, the node of the file and that of the fabric.
    nodes: HashMap<u64, Node>,
    /// By switch and last link, where it sends and the line that says so.
    entries: HashMap<(u32, u32), (u32, usize)>,
    /// By node of the file, the line of the path to it that was read last.
    seen: Vec<usize>,
}

#[derive(Clone, Copy)]
struct Node {
    listed: usize,
    fabric: u32,
    is_host: bool,
}

impl<'a> Paths<'a> {
    /// `place` says which node of the fabric every listed one is, `link_of` which link every end of a cable is.
    fn new(path: &'a Path, records: &Records, place: &[usize], link_of: &[usize], fabric: &Fabric) -> Self {
        let is_host = |node: usize| fabric.nodes[node].kind == NodeKind::Host;
        let step = |(&id, &end): (&u32, &usize)| {
            let link = link_of[end];
            let (source, destination) = (fabric.links[link].source, fabric.links[link].destination);
            let leaves_switch = !is_host(source);
            (
                id,
                Step {
                    link: link as u32,
                    source: source as u32,
                    destination: destination as u32,
                    leaves_switch,
                },
            )
        };
        let node = |(&guid, &listed): (&u64, &usize)| {
            (guid, Node { listed, fabric: place[listed] as u32, is_host: is_host(place[listed]) })
        };
        Self {
            path,
            steps: records.ends.iter().map(step).collect(),
            nodes: records.nodes.iter().map(node).collect(),
            entries: HashMap::new(),
            seen: vec![0; place.len()],
        }
    }

    /// Reads all paths. `adapters` is the number of those between which there may be one.
    fn read(
        mut self,
        lines: &mut Lines<'_>,
        adapters: u64,
        notes: &mut Vec<String>,
    ) -> Result<Vec<FabricForward>, ImportError> {
        let mut way = Vec::new();
        let mut source: Option<Source> = None;
        let mut paths = 0u64;
        while let Some(Line { number, text: line, .. }) = lines.next()? {
            let Some((first, rest)) = line.split_once(',') else {
                match line.trim().is_empty() {
                    true => continue,
                    false => return Err(malformed(self.path, number, "this is no path", HELP)),
                }
            };
            // The paths of a host stand one behind the other.
            let own = match &source {
                Some(known) if known.text == first => known.node,
                _ => {
                    let node = self.host(number, first)?;
                    source = Some(Source { text: first.to_owned(), node, line: number });
                    node
                }
            };
            let begin = source.as_ref().map_or(number, |source| source.line);
            self.path(number, (own, begin), rest, &mut way)?;
            paths += 1;
        }
        let missing = (adapters.saturating_mul(adapters.saturating_sub(1))).saturating_sub(paths);
        if missing > 0 {
            notes.push(format!("ordered pairs of adapters without a path in the file: {missing}"));
        }
        let entries = self.entries.into_iter();
        Ok(entries.map(|((node, last), (link, _))| FabricForward { node, last, link }).collect())
    }

    fn host(&self, line: usize, text: &str) -> Result<Node, ImportError> {
        let wrong = |problem: String| malformed(self.path, line, problem, HELP);
        let guid = units::grouped_guid(text).ok_or_else(|| wrong(format!("`{text}` is no GUID")))?;
        match self.nodes.get(&guid) {
            Some(node) if node.is_host => Ok(*node),
            Some(_) => Err(wrong(format!("{text} is a switch, which no path begins or ends at"))),
            None => Err(wrong(format!("node {text} is not listed"))),
        }
    }

    /// Reads what stands behind the source of a path: the destination and the links. The source has paths from line `begin` on.
    fn path(
        &mut self,
        line: usize,
        (source, begin): (Node, usize),
        text: &str,
        way: &mut Vec<Step>,
    ) -> Result<(), ImportError> {
        let wrong = |problem: String| malformed(self.path, line, problem, HELP);
        let mut fields = text.split(',').map(str::trim).filter(|field| !field.is_empty());
        let destination = self.host(line, fields.next().unwrap_or(""))?;
        if self.seen[destination.listed] >= begin {
            let problem = format!("line {} has a path between the same hosts", self.seen[destination.listed]);
            return Err(malformed(self.path, line, problem, "every ordered pair of hosts has one path"));
        }
        self.seen[destination.listed] = line;
        way.clear();
        let mut at = source.fabric;
        for field in fields {
            let id: u32 = field.parse().map_err(|_| wrong(format!("`{field}` is no number of a link")))?;
            let step = *self.steps.get(&id).ok_or_else(|| wrong(format!("there is no link {id}")))?;
            if step.source != at {
                return Err(wrong(format!("link {id} does not go on where the path has come to")));
            }
            if !way.is_empty() && !step.leaves_switch {
                return Err(wrong(format!("before link {id} the path goes through a host")));
            }
            at = step.destination;
            way.push(step);
        }
        if at != destination.fabric || way.is_empty() {
            return Err(wrong("the path does not end at its destination".into()));
        }
        self.forward(line, way)
    }

    /// What a path says of the tables of the switches on it.
    fn forward(&mut self, number: usize, way: &[Step]) -> Result<(), ImportError> {
        let Some(&Step { link: last, .. }) = way.last() else { return Ok(()) };
        for step in way.iter().filter(|step| step.leaves_switch) {
            let (link, before) = *self.entries.entry((step.source, last)).or_insert((step.link, number));
            if link != step.link {
                return Err(malformed(
                    self.path,
                    number,
                    format!(
                        "this path and the one in line {before} leave a switch differently to the same adapter"
                    ),
                    "switches send by destination: the paths are of two days, or one of them is damaged",
                ));
            }
        }
        Ok(())
    }
}

/// The host whose paths are read.
struct Source {
    text: String,
    node: Node,
    /// The first line of them.
    line: usize,
}
