//! `.grf` of PARUS: a graph of tasks and what they send to each other.
//!
//! Reading is strict where PARUS is not: counts have to agree, numbers are unique, every edge joins two nodes that exist, and the
//! lists of edges at the nodes say the same as the edges.

mod check;
mod parse;
#[cfg(test)]
mod tests;
mod write;

use std::collections::HashMap;

use hopmap_model::{Dependency, TaskDag, WorkUnit};
use hopmap_text::FileError;

use super::graph;

/// A task graph of PARUS.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Grf {
    /// The file with C code that stands before everything; these and other names of files may be empty.
    pub header: String,
    /// The file with C code that runs first.
    pub root: String,
    /// The file with C code that runs last.
    pub tail: String,
    /// The tasks.
    pub nodes: Vec<GrfNode>,
    /// What goes from task to task.
    pub edges: Vec<GrfEdge>,
}

/// A task.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GrfNode {
    /// Its number, which is its name: numbers come in any order and with gaps.
    pub number: u64,
    /// Its type, 1 for most.
    pub kind: i64,
    /// How much there is to do.
    pub weight: u64,
    /// The layer of a drawing that it stands in.
    pub layer: i64,
    /// Numbers of the edges that end here.
    pub input_edges: Vec<u64>,
    /// Numbers of the edges that begin here.
    pub output_edges: Vec<u64>,
    /// The file with C code before the body.
    pub head: String,
    /// The file with the C code of the task.
    pub body: String,
    /// The file with C code behind the body.
    pub tail: String,
}

/// What goes from one task to another.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GrfEdge {
    /// Its number, which is its name.
    pub number: u64,
    /// How many bytes it is.
    pub weight: u64,
    /// The type of its data, such as `GRAPH_DOUBLE`.
    pub kind: String,
    /// Number of the node that sends.
    pub sender: u64,
    /// Number of the node that receives.
    pub receiver: u64,
    /// Where the data lie at the node that sends.
    pub sent: Vec<GrfChunk>,
    /// Where the data lie at the node that receives: as many chunks as are sent.
    pub received: Vec<GrfChunk>,
}

/// A part of the data of an edge.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GrfChunk {
    /// The C variable.
    pub name: String,
    /// Its type, such as `GRAPH_DOUBLE`.
    pub kind: String,
    /// Where it begins, as a C expression.
    pub left_offset: String,
    /// Where it ends, as a C expression.
    pub right_offset: String,
}

impl Grf {
    /// Reads a `.grf` file.
    pub fn read(bytes: &[u8]) -> Result<Self, FileError> {
        parse::parse(bytes)
    }

    /// The file as PARUS writes it.
    #[must_use]
    pub fn write(&self) -> String {
        write::write(self)
    }

    /// The graph of tasks, in the order of the file, with their numbers as names; weights of edges are multiplied by `scale`.
    pub fn task_dag(&self, scale: f64) -> Result<TaskDag, FileError> {
        let index: HashMap<u64, u32> =
            (0..).zip(&self.nodes).map(|(index, node)| (node.number, index)).collect();
        let wrong = |what: &str, number: u64, weight: u64, problem: &str, help: &str| {
            FileError::new(format!("the weight of {what} {number} is {weight}, which {problem}"), help)
        };
        let work = self.nodes.iter().map(|node| {
            graph::work(node.weight as f64).map_err(|problem| {
                wrong("node", node.number, node.weight, &problem, "weights are at most 2^53")
            })
        });
        let work = work.collect::<Result<_, _>>()?;
        let end = |edge: &GrfEdge, node: u64| {
            let problem = || format!("edge {} joins node {node}, which is not there", edge.number);
            index.get(&node).copied().ok_or_else(|| FileError::new(problem(), "is a node missing?"))
        };
        let dependency = |edge: &GrfEdge| {
            let bytes = graph::bytes(edge.weight as f64, scale)
                .map_err(|(problem, help)| wrong("edge", edge.number, edge.weight, &problem, &help))?;
            let (source, destination) = (end(edge, edge.sender)?, end(edge, edge.receiver)?);
            Ok(Dependency { source, destination, bytes })
        };
        let dependencies = self.edges.iter().map(dependency).collect::<Result<_, _>>()?;
        let names = self.nodes.iter().map(|node| node.number.to_string()).collect();
        graph::finish(work, dependencies, names, WorkUnit::Time)
    }
}
