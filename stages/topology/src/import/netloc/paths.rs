//! The paths of a node file, which become the tables of its switches.

use std::collections::HashMap;
use std::path::Path;

use hopmap_model::NodeKind;
use hopmap_text::{Line, Lines};

use super::super::ImportError;
use super::super::fabric::{Fabric, FabricForward};
use super::super::guid;
use super::super::reader::malformed;
use super::records::Records;

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
pub(super) struct Paths<'a> {
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
    pub(super) fn new(
        path: &'a Path,
        records: &Records,
        place: &[usize],
        link_of: &[usize],
        fabric: &Fabric,
    ) -> Self {
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
    pub(super) fn read(
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
        let guid = guid::grouped(text).ok_or_else(|| wrong(format!("`{text}` is no GUID")))?;
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
