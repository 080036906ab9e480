//! DOT of Graphviz: a directed graph with weights of nodes and edges, such as those of the University of Auckland with proven optima.
//!
//! The language is that of <https://graphviz.org/doc/info/lang.html>. The weights are the given attributes, or the first of
//! [`WEIGHTS`] that any node, or any edge, has. If no edge has one, messages are empty; every node needs one.

mod lexer;
mod parser;
#[cfg(test)]
mod tests;

use hopmap_model::{Dependency, TaskDag, WorkUnit};
use hopmap_text::{FileError, shown, utf8};

use self::parser::{Attribute, Graph, Table};
use super::common::{bytes_of_weight, finish, work_of_weight};

/// Default weight attributes: of the graphs of Auckland, of others, and of those for `SimGrid`.
pub const WEIGHTS: [&str; 4] = ["Weight", "weight", "cost", "size"];

/// How a DOT file is interpreted.
#[derive(Debug, Clone, PartialEq)]
pub struct DotOptions {
    /// The node attribute that contains the work.
    pub node_weight: Option<String>,
    /// The edge attribute that contains the message size.
    pub edge_weight: Option<String>,
    /// Factor for edge weights.
    pub scale: f64,
}

/// A graph of tasks from DOT.
#[derive(Debug, Clone, PartialEq)]
pub struct Dot {
    /// The tasks, named after the nodes, in order of appearance.
    pub dag: TaskDag,
    /// The node attribute that contains the work.
    pub node_weight: String,
    /// The edge attribute that contains the message size, if edges have one.
    pub edge_weight: Option<String>,
}

/// Whether a text is a line of a file: the begin of a graph, an edge, or a node with attributes.
pub(super) fn is_line(text: &str) -> bool {
    let words: Vec<&str> = text.split_whitespace().take(2).collect();
    let is_node =
        || words[1].starts_with('[') && text.contains('=') && text.trim_end_matches(';').ends_with(']');
    match words[..] {
        ["strict" | "digraph" | "graph", _] => text.contains('{'),
        [_, "->"] => true,
        [_, _] => is_node(),
        _ => false,
    }
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

/// The node attribute that contains the work, and the work of every node.
fn works(graph: &Graph) -> Result<(String, Vec<f64>), FileError> {
    if graph.names.is_empty() {
        return Err(FileError::new("the graph has no nodes", "nodes are tasks, and edges are dependencies"));
    }
    let what = |node: usize| format!("node `{}`", shown(&graph.names[node]));
    let work = |value| work_of_weight(value).map_err(|problem| (problem, WEIGHT_HELP.to_owned()));
    weights(&graph.of_nodes, &graph.lines, what, ("node", 1), work)?.ok_or_else(|| {
        let problem = format!("no node has an attribute `{}`", graph.of_nodes.names.join("`, `"));
        FileError::new(problem, "set `node_weight` to the attribute that contains the work of a node; `node [weight = 1]` before all nodes gives them the same")
    })
}

const WEIGHT_HELP: &str = "weights must be numbers from 0 to 2^53";

/// The edge attribute that contains the message size, if there is one, and the edges.
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
        let help = "omit `edge_weight` if messages are empty";
        return Err(FileError::new(format!("no edge has an attribute `{wanted}`"), help));
    }
    let edges = graph.edges.iter().zip(bytes);
    let edge = |(&(source, destination, _), bytes): (&_, u64)| Dependency { source, destination, bytes };
    Ok((name, edges.map(edge).collect()))
}

/// The weight attribute and its value for every element, set explicitly or by default; none if no element has one.
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
            let help = format!("set a default with `{kind} [{name} = {default}]` before all {kind}s");
            let problem = format!("{} has no `{name}`, but others have one", what(element));
            return Err(FileError::at(lines[element], problem, help));
        };
        let wrong = |shown: &str, problem: String, help: String| {
            let problem = format!("`{name}` of {} is `{shown}`, which {problem}", what(element));
            FileError::at(line, problem, help)
        };
        let value = value.map_err(|shown| wrong(&shown, "is not a number".into(), WEIGHT_HELP.into()))?;
        convert(value).map_err(|(problem, help)| wrong(&value.to_string(), problem, help))
    };
    let values = weights.into_iter().enumerate().map(weight).collect::<Result<_, _>>()?;
    Ok(Some((name.to_owned(), values)))
}
