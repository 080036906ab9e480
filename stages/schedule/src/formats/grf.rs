//! `.grf` of PARUS: a graph of tasks and messages.
//!
//! Reading is stricter than in PARUS: counts must match, numbers are unique, every edge connects two existing nodes, and the
//! lists of edges at the nodes match the edges.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fmt::{self, Write};

use hopmap_model::{Dependency, TaskDag, WorkUnit};
use hopmap_text::{FileError, Words};

use super::common::{bytes_of_weight, finish, list, text, value, words, work_of_weight};

/// A task graph of PARUS.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Grf {
    /// The file with C code that precedes everything; this and other file names may be empty.
    pub header: String,
    /// The file with C code that runs first.
    pub root: String,
    /// The file with C code that runs last.
    pub tail: String,
    /// The tasks.
    pub nodes: Vec<GrfNode>,
    /// The messages between tasks.
    pub edges: Vec<GrfEdge>,
}

/// A task.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GrfNode {
    /// Its number, which is its name: numbers are in any order, with gaps.
    pub number: u64,
    /// Its type, usually 1.
    pub kind: i64,
    /// Its work.
    pub weight: u64,
    /// Its layer in a drawing.
    pub layer: i64,
    /// Numbers of incoming edges.
    pub input_edges: Vec<u64>,
    /// Numbers of outgoing edges.
    pub output_edges: Vec<u64>,
    /// The file with C code before the body.
    pub head: String,
    /// The file with the C code of the task.
    pub body: String,
    /// The file with C code after the body.
    pub tail: String,
}

/// A message between two tasks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GrfEdge {
    /// Its number, which is its name.
    pub number: u64,
    /// Its size in bytes.
    pub weight: u64,
    /// The type of its data, such as `GRAPH_DOUBLE`.
    pub kind: String,
    /// Number of the sending node.
    pub sender: u64,
    /// Number of the receiving node.
    pub receiver: u64,
    /// Location of the data at the sender.
    pub sent: Vec<GrfChunk>,
    /// Location of the data at the receiver: as many chunks as are sent.
    pub received: Vec<GrfChunk>,
}

/// A part of the data of an edge.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GrfChunk {
    /// The C variable.
    pub name: String,
    /// Its type, such as `GRAPH_DOUBLE`.
    pub kind: String,
    /// Its start offset, as a C expression.
    pub left_offset: String,
    /// Its end offset, as a C expression.
    pub right_offset: String,
}

const TYPES: [&str; 16] = [
    "GRAPH_INT",
    "GRAPH_UNSIGNED_INT",
    "GRAPH_LONG_INT",
    "GRAPH_UNSIGNED_LONG_INT",
    "GRAPH_LONG_LONG_INT",
    "GRAPH_UNSIGNED_LONG_LONG_INT",
    "GRAPH_FLOAT",
    "GRAPH_DOUBLE",
    "GRAPH_CHAR",
    "GRAPH_UNSIGNED_CHAR",
    "GRAPH_LONG",
    "GRAPH_UNSIGNED_LONG",
    "GRAPH_SHORT",
    "GRAPH_UNSIGNED_SHORT",
    "GRAPH_PLUS",
    "GRAPH_MINUS",
];

impl Grf {
    /// Reads a `.grf` file.
    pub fn read(bytes: &[u8]) -> Result<Self, FileError> {
        let help = "a graph of PARUS has a header, nodes between `<NODES_BEGIN>` and `<NODES_END>`, and edges likewise";
        let mut words = words(bytes, 99, help)?;
        let words = &mut words;
        words.expect("<GRAPH_BEGIN>")?;
        let [header, root, tail] = [text(words, "header")?, text(words, "root")?, text(words, "tail")?];
        let count: u64 = value(words, "num_nodes")?;
        if count == 0 {
            return Err(words.error("the graph has no nodes"));
        }
        let mut lines = Lines::default();
        words.expect("<NODES_BEGIN>")?;
        let nodes = (0..count).map(|_| read_node(words, &mut lines)).collect::<Result<_, _>>()?;
        words.expect("<NODES_END>")?;
        let count: u64 = value(words, "num_edges")?;
        words.expect("<EDGES_BEGIN>")?;
        let edges = (0..count).map(|_| read_edge(words, &mut lines)).collect::<Result<_, _>>()?;
        words.expect("<EDGES_END>")?;
        words.expect("<GRAPH_END>")?;
        words.end()?;
        let graph = Self { header, root, tail, nodes, edges };
        check(&graph, &lines)?;
        Ok(graph)
    }

    /// The file in the layout of PARUS.
    #[must_use]
    pub fn write(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = self.write_to(&mut text);
        text
    }

    fn write_to(&self, to: &mut String) -> fmt::Result {
        let Self { header, root, tail, nodes, edges } = self;
        write!(to, "<GRAPH_BEGIN>\n header \"{header}\"\n root \"{root}\"\n tail \"{tail}\"\n")?;
        write!(to, " num_nodes {}\n\n<NODES_BEGIN>\n", nodes.len())?;
        for node in nodes {
            let GrfNode { number, kind, weight, layer, input_edges, output_edges, head, body, tail } = node;
            write!(
                to,
                " <NODE_BEGIN>\n  number {number}\n  type {kind}\n  weight {weight}\n  layer {layer}\n"
            )?;
            for (direction, edges) in [("input", input_edges), ("output", output_edges)] {
                write!(to, "  num_{direction}_edges {}\n  edges ( ", edges.len())?;
                edges.iter().try_for_each(|number| write!(to, "{number} "))?;
                to.write_str(")\n")?;
            }
            write!(to, "  head \"{head}\"\n  body \"{body}\"\n  tail \"{tail}\"\n <NODE_END>\n\n")?;
        }
        write!(to, "<NODES_END>\n\n num_edges {}\n<EDGES_BEGIN>\n\n", edges.len())?;
        for edge in edges {
            let GrfEdge { number, weight, kind, sender, receiver, sent, received } = edge;
            write!(to, " <EDGE_BEGIN>\n  number {number}\n  weight {weight}\n  type {kind}\n")?;
            write!(to, "  num_var {}\n  num_send_nodes 1\n  send_nodes ( {sender} )\n", sent.len())?;
            write!(to, "  num_recv_nodes 1\n  recv_nodes ( {receiver} )\n")?;
            for (end, chunks) in [("SEND", sent), ("RECIEVE", received)] {
                write!(to, "  <{end}_BEGIN>\n\n")?;
                for GrfChunk { name, kind, left_offset, right_offset } in chunks {
                    write!(to, "   <CHUNK_BEGIN>\n     name \"{name}\"\n     type {kind}\n")?;
                    write!(to, "     left_offset \"{left_offset}\"\n     right_offset \"{right_offset}\"\n")?;
                    to.write_str("   <CHUNK_END>\n\n")?;
                }
                writeln!(to, "  <{end}_END>")?;
            }
            to.write_str(" <EDGE_END>\n\n")?;
        }
        to.write_str("<EDGES_END>\n\n<GRAPH_END>\n")
    }

    /// The graph of tasks, in the order of the file, with their numbers as names; edge weights are multiplied by `scale`.
    pub fn task_dag(&self, scale: f64) -> Result<TaskDag, FileError> {
        let index: HashMap<u64, u32> =
            (0..).zip(&self.nodes).map(|(index, node)| (node.number, index)).collect();
        let wrong = |what: &str, number: u64, weight: u64, problem: &str, help: &str| {
            FileError::new(format!("the weight of {what} {number} is {weight}, which {problem}"), help)
        };
        let work = self.nodes.iter().map(|node| {
            work_of_weight(node.weight as f64).map_err(|problem| {
                wrong("node", node.number, node.weight, &problem, "weights must be at most 2^53")
            })
        });
        let work = work.collect::<Result<_, _>>()?;
        let end = |edge: &GrfEdge, node: u64| {
            let problem = || format!("edge {} connects to node {node}, which does not exist", edge.number);
            index.get(&node).copied().ok_or_else(|| FileError::new(problem(), "a node may be missing"))
        };
        let dependency = |edge: &GrfEdge| {
            let bytes = bytes_of_weight(edge.weight as f64, scale)
                .map_err(|(problem, help)| wrong("edge", edge.number, edge.weight, &problem, &help))?;
            let (source, destination) = (end(edge, edge.sender)?, end(edge, edge.receiver)?);
            Ok(Dependency { source, destination, bytes })
        };
        let dependencies = self.edges.iter().map(dependency).collect::<Result<_, _>>()?;
        let names = self.nodes.iter().map(|node| node.number.to_string()).collect();
        finish(work, dependencies, names, WorkUnit::Time)
    }
}

fn read_node(words: &mut Words<'_>, lines: &mut Lines) -> Result<GrfNode, FileError> {
    words.expect("<NODE_BEGIN>")?;
    let number = value(words, "number")?;
    lines.nodes.push(words.line());
    let kind = value(words, "type")?;
    let weight = value(words, "weight")?;
    let layer = value(words, "layer")?;
    let input_edges = list(words, "num_input_edges", "edges")?;
    let output_edges = list(words, "num_output_edges", "edges")?;
    let [head, body, tail] = [text(words, "head")?, text(words, "body")?, text(words, "tail")?];
    words.expect("<NODE_END>")?;
    Ok(GrfNode { number, kind, weight, layer, input_edges, output_edges, head, body, tail })
}

fn read_edge(words: &mut Words<'_>, lines: &mut Lines) -> Result<GrfEdge, FileError> {
    words.expect("<EDGE_BEGIN>")?;
    let number = value(words, "number")?;
    lines.edges.push(words.line());
    let weight = value(words, "weight")?;
    let kind = data_type(words)?;
    let variables: u64 = value(words, "num_var")?;
    let sender = one_node(words, "num_send_nodes", "send_nodes")?;
    let receiver = one_node(words, "num_recv_nodes", "recv_nodes")?;
    let edge = GrfEdge {
        number,
        weight,
        kind,
        sender,
        receiver,
        sent: chunks(words, variables, ["<SEND_BEGIN>", "<SEND_END>"])?,
        received: chunks(words, variables, ["<RECIEVE_BEGIN>", "<RECIEVE_END>"])?,
    };
    words.expect("<EDGE_END>")?;
    Ok(edge)
}

/// A list of nodes in which PARUS allows only one.
fn one_node(words: &mut Words<'_>, count_key: &str, list_key: &str) -> Result<u64, FileError> {
    match list(words, count_key, list_key)?[..] {
        [node] => Ok(node),
        ref nodes => {
            let count = nodes.len();
            Err(words.error(format!("`{count_key}` is {count}, but an edge connects exactly two nodes")))
        }
    }
}

fn data_type(words: &mut Words<'_>) -> Result<String, FileError> {
    words.expect("type")?;
    let word = words.word()?.to_owned();
    match TYPES.contains(&word.as_str()) {
        true => Ok(word),
        false => {
            let problem = format!("unknown type `{}`", words.shown());
            Err(words.error(problem).with_help(format!("types: {}", TYPES.join(", "))))
        }
    }
}

fn chunks(words: &mut Words<'_>, count: u64, [begin, end]: [&str; 2]) -> Result<Vec<GrfChunk>, FileError> {
    words.expect(begin)?;
    let chunk = |_| {
        words.expect("<CHUNK_BEGIN>")?;
        let name = text(words, "name")?;
        let kind = data_type(words)?;
        let [left_offset, right_offset] = [text(words, "left_offset")?, text(words, "right_offset")?];
        if left_offset.is_empty() || right_offset.is_empty() {
            return Err(words.error("the offsets of a chunk must not be empty"));
        }
        words.expect("<CHUNK_END>")?;
        Ok(GrfChunk { name, kind, left_offset, right_offset })
    };
    let chunks = (0..count).map(chunk).collect::<Result<_, _>>()?;
    words.expect(end)?;
    Ok(chunks)
}

/// The line with the number of every node and every edge.
#[derive(Debug, Default)]
struct Lines {
    nodes: Vec<usize>,
    edges: Vec<usize>,
}

/// The two ends of an edge.
struct End {
    of: fn(&GrfEdge) -> u64,
    listed: fn(&GrfNode) -> &[u64],
    /// The name of its list.
    list: &'static str,
    /// The verb for messages.
    does: &'static str,
}

const ENDS: [End; 2] = [
    End { of: |edge| edge.sender, listed: |node| &node.output_edges, list: "output edges", does: "starts" },
    End { of: |edge| edge.receiver, listed: |node| &node.input_edges, list: "input edges", does: "ends" },
];

const HELP: &str = "the lists of edges at the nodes must match the nodes of the edges";

/// Checks that numbers are unique, that edges connect existing nodes, and that nodes list their edges.
fn check(graph: &Grf, lines: &Lines) -> Result<(), FileError> {
    let node_of = unique("node", graph.nodes.iter().map(|node| node.number).zip(&lines.nodes))?;
    let edge_of = unique("edge", graph.edges.iter().map(|edge| edge.number).zip(&lines.edges))?;
    for end in ENDS {
        for (edge, &line) in graph.edges.iter().zip(&lines.edges) {
            let node = (end.of)(edge);
            if !node_of.contains_key(&node) {
                let problem =
                    format!("edge {} {} at node {node}, which does not exist", edge.number, end.does);
                return Err(FileError::at(line, problem, HELP));
            }
        }
        let mut is_listed = vec![false; graph.edges.len()];
        for (node, &line) in graph.nodes.iter().zip(&lines.nodes) {
            for number in (end.listed)(node) {
                let index = edge_of.get(number).copied();
                let edge = index.and_then(|index| graph.edges.get(index));
                if edge.is_none_or(|edge| (end.of)(edge) != node.number) {
                    let problem = format!(
                        "edge {number} is among the {} of node {}, but no such edge {} there",
                        end.list, node.number, end.does
                    );
                    return Err(FileError::at(line, problem, HELP));
                }
                if let Some(listed) = index.and_then(|index| is_listed.get_mut(index))
                    && std::mem::replace(listed, true)
                {
                    let problem = format!("node {} lists edge {number} twice", node.number);
                    return Err(FileError::at(line, problem, HELP));
                }
            }
        }
        if let Some(index) = is_listed.iter().position(|listed| !listed) {
            let edge = &graph.edges[index];
            let problem = format!(
                "edge {} {} at node {}, which does not list it in its {}",
                edge.number,
                end.does,
                (end.of)(edge),
                end.list
            );
            return Err(FileError::at(lines.edges[index], problem, HELP));
        }
    }
    Ok(())
}

/// The index of every number; rejects duplicates.
fn unique<'a>(
    what: &str,
    numbers: impl Iterator<Item = (u64, &'a usize)>,
) -> Result<HashMap<u64, usize>, FileError> {
    let mut places = HashMap::new();
    for (index, (number, &line)) in numbers.enumerate() {
        if places.insert(number, index).is_some() {
            return Err(FileError::at(line, format!("duplicate {what} {number}"), HELP));
        }
    }
    Ok(places)
}
