//! DOT of Graphviz: a directed graph with weights of nodes and edges, such as those of the University of Auckland with proven optima.
//!
//! The language is that of <https://graphviz.org/doc/info/lang.html>. Which attributes are the weights is said, or it is the first of
//! [`WEIGHTS`] that any node, or any edge, has. If no edge has one, messages are empty; every node needs one.

mod lexer;
mod parser;
#[cfg(test)]
mod tests;

use hopmap_model::{Dependency, TaskDag, WorkUnit};
use hopmap_text::{FileError, shown, utf8};

use self::parser::{Attribute, Graph, Table};
use super::common::{bytes_of_weight, finish, work_of_weight};

/// Attributes that are weights where nobody says it: of the graphs of Auckland, of others, and of those for `SimGrid`.
pub const WEIGHTS: [&str; 4] = ["Weight", "weight", "cost", "size"];

/// What a DOT file is read as.
#[derive(Debug, Clone, PartialEq)]
pub struct DotOptions {
    /// The attribute of nodes that is their work.
    pub node_weight: Option<String>,
    /// The attribute of edges that is what they send.
    pub edge_weight: Option<String>,
    /// What weights of edges are multiplied by.
    pub scale: f64,
}

/// A graph of tasks from DOT.
#[derive(Debug, Clone, PartialEq)]
pub struct Dot {
    /// The tasks, named as the nodes are, in the order in which they come up.
    pub dag: TaskDag,
    /// The attribute that is the work of a node.
    pub node_weight: String,
    /// The attribute that is what an edge sends, if edges have one.
    pub edge_weight: Option<String>,
}

impl Dot {
    /// Reads a DOT file.
    pub fn read(bytes: &[u8], options: &DotOptions) -> Result<Self, FileError> {
        let table = |name: &Option<String>| match name {
            Some(name) => Table::new(vec![name.clone()]),
            None => Table::new(WEIGHTS.map(str::to_owned).to_vec()),
        };
        let graph = parser::parse(utf8(bytes)?, table(&options.node_weight), table(&options.edge_weight))?;
        let (node_weight, work) = works(&graph)?;
        let (edge_weight, dependencies) = dependencies(&graph, options)?;
        let dag = finish(work, dependencies, graph.names, WorkUnit::Time)?;
        Ok(Self { dag, node_weight, edge_weight })
    }
}

/// The attribute that is the work of nodes, and the work of every node.
fn works(graph: &Graph) -> Result<(String, Vec<f64>), FileError> {
    if graph.names.is_empty() {
        return Err(FileError::new(
            "the graph has no nodes",
            "nodes are tasks, and edges what they wait for",
        ));
    }
    let what = |node: usize| format!("node `{}`", shown(&graph.names[node]));
    let work = |value| work_of_weight(value).map_err(|problem| (problem, WEIGHT_HELP.to_owned()));
    weights(&graph.of_nodes, &graph.lines, what, ("node", 1), work)?.ok_or_else(|| {
        let problem = format!("no node has an attribute `{}`", graph.of_nodes.names.join("`, `"));
        FileError::new(problem, "say with `node_weight` which attribute is the work of a node")
    })
}

const WEIGHT_HELP: &str = "weights are numbers from 0 to 2^53";

/// The attribute that is what edges send, if there is one, and the edges.
fn dependencies(graph: &Graph, options: &DotOptions) -> Result<(Option<String>, Vec<Dependency>), FileError> {
    let name_of = |node: u32| shown(&graph.names[node as usize]);
    let what = |edge: usize| {
        let (source, destination, _) = graph.edges[edge];
        format!("edge `{}` -> `{}`", name_of(source), name_of(destination))
    };
    let lines: Vec<usize> = graph.edges.iter().map(|edge| edge.2).collect();
    let bytes = |value| bytes_of_weight(value, options.scale);
    let (name, bytes) = match weights(&graph.of_edges, &lines, what, ("edge", 0), bytes)? {
        Some((name, bytes)) => (Some(name), bytes),
        None => (None, vec![0; graph.edges.len()]),
    };
    if let (None, Some(wanted), false) = (&name, &options.edge_weight, graph.edges.is_empty()) {
        let help = "leave `edge_weight` out if messages are empty";
        return Err(FileError::new(format!("no edge has an attribute `{wanted}`"), help));
    }
    let edges = graph.edges.iter().zip(bytes);
    let edge = |(&(source, destination, _), bytes): (&_, u64)| Dependency { source, destination, bytes };
    Ok((name, edges.map(edge).collect()))
}

/// The attribute that counts and its value for every element, which is said in some line or is a default; nothing if no element has one.
fn weights<T>(
    table: &Table,
    lines: &[usize],
    what: impl Fn(usize) -> String,
    (kind, default): (&str, u32),
    convert: impl Fn(f64) -> Result<T, (String, String)>,
) -> Result<Option<(String, Vec<T>)>, FileError> {
    let Some((name, weights)) = table.weights(lines.len(), &what)? else { return Ok(None) };
    let weight = |(element, given): (usize, Option<Attribute>)| {
        let Some(Attribute { value, line }) = given else {
            let help = format!("`{kind} [{name} = {default}]` before all {kind}s is a default");
            let problem = format!("{} has no `{name}`, while others have", what(element));
            return Err(FileError::at(lines[element], problem, help));
        };
        let wrong = |shown: &str, problem: String, help: String| {
            let problem = format!("`{name}` of {} is `{shown}`, which {problem}", what(element));
            FileError::at(line, problem, help)
        };
        let value = value.map_err(|shown| wrong(&shown, "is no number".into(), WEIGHT_HELP.into()))?;
        convert(value).map_err(|(problem, help)| wrong(&value.to_string(), problem, help))
    };
    let values = weights.into_iter().enumerate().map(weight).collect::<Result<_, _>>()?;
    Ok(Some((name.to_owned(), values)))
}
