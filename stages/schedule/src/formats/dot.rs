//! DOT of Graphviz: a directed graph with weights of nodes and edges, such as those of the University of Auckland with proven optima.
//!
//! The language is that of <https://graphviz.org/doc/info/lang.html>. Which attributes are the weights is said, or it is the first of
//! [`WEIGHTS`] that any node, or any edge, has. If no edge has one, messages are empty; every node needs one.

mod graph;
mod lexer;
mod parser;
#[cfg(test)]
mod tests;

use hopmap_model::{Dependency, TaskDag, WorkUnit};
use hopmap_text::{FileError, shown, utf8};

use self::graph::{Given, Graph, Table, Weights};

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
        let dag = super::graph::finish(work, dependencies, graph.names, WorkUnit::Time)?;
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
    let Some(Weights { name, of: weights }) = graph.of_nodes.weights(graph.names.len(), what)? else {
        let problem = format!("no node has an attribute `{}`", graph.of_nodes.names.join("`, `"));
        return Err(FileError::new(problem, "say with `node_weight` which attribute is the work of a node"));
    };
    let work = weights.into_iter().enumerate().map(|(node, given)| {
        let missing = || {
            let problem = format!("{} has no `{name}`, while others have", what(node));
            FileError::at(
                graph.lines[node],
                problem,
                format!("`node [{name} = 1]` before all nodes is a default"),
            )
        };
        let Given { value, line } = given.ok_or_else(missing)?;
        let wrong = |shown: String, problem: String| {
            FileError::at(
                line,
                format!("`{name}` of {} is `{shown}`, which {problem}", what(node)),
                WEIGHT_HELP,
            )
        };
        let value = value.map_err(|shown| wrong(shown, "is no number".into()))?;
        super::graph::work(value).map_err(|problem| wrong(value.to_string(), problem))
    });
    Ok((name.to_owned(), work.collect::<Result<_, _>>()?))
}

const WEIGHT_HELP: &str = "weights are numbers from 0 to 2^53";

/// The attribute that is what edges send, if there is one, and the edges.
fn dependencies(graph: &Graph, options: &DotOptions) -> Result<(Option<String>, Vec<Dependency>), FileError> {
    let name_of = |node: u32| shown(&graph.names[node as usize]);
    let what = |edge: usize| {
        let (source, destination, _) = graph.edges[edge];
        format!("edge `{}` -> `{}`", name_of(source), name_of(destination))
    };
    let Some(Weights { name, of: weights }) = graph.of_edges.weights(graph.edges.len(), what)? else {
        if let (Some(name), false) = (&options.edge_weight, graph.edges.is_empty()) {
            let help = "leave `edge_weight` out if messages are empty";
            return Err(FileError::new(format!("no edge has an attribute `{name}`"), help));
        }
        let empty = |&(source, destination, _): &_| Dependency { source, destination, bytes: 0 };
        return Ok((None, graph.edges.iter().map(empty).collect()));
    };
    let edges = graph.edges.iter().zip(weights).enumerate();
    let edges = edges.map(|(edge, (&(source, destination, line), given))| {
        let missing = || {
            let problem = format!("{} has no `{name}`, while others have", what(edge));
            FileError::at(line, problem, format!("`edge [{name} = 0]` before all edges is a default"))
        };
        let Given { value, line } = given.ok_or_else(missing)?;
        let wrong = |shown: String, problem: String, help: String| {
            FileError::at(line, format!("`{name}` of {} is `{shown}`, which {problem}", what(edge)), help)
        };
        let value = value.map_err(|shown| wrong(shown, "is no number".into(), WEIGHT_HELP.into()))?;
        let bytes = super::graph::bytes(value, options.scale)
            .map_err(|(problem, help)| wrong(value.to_string(), problem, help))?;
        Ok(Dependency { source, destination, bytes })
    });
    Ok((Some(name.to_owned()), edges.collect::<Result<_, _>>()?))
}
