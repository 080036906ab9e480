//! Whether nodes and edges say the same.

use hopmap_text::FileError;
use std::collections::HashMap;

use super::{Grf, GrfEdge, GrfNode};

/// The line with the number of every node and every edge.
#[derive(Debug, Default)]
pub(super) struct Lines {
    pub(super) nodes: Vec<usize>,
    pub(super) edges: Vec<usize>,
}

/// The two ends of an edge.
struct End {
    of: fn(&GrfEdge) -> u64,
    listed: fn(&GrfNode) -> &[u64],
    /// What the list of it is called.
    list: &'static str,
    /// What the edge does there.
    does: &'static str,
}

const ENDS: [End; 2] = [
    End { of: |edge| edge.sender, listed: |node| &node.output_edges, list: "output edges", does: "begins" },
    End { of: |edge| edge.receiver, listed: |node| &node.input_edges, list: "input edges", does: "ends" },
];

const HELP: &str =
    "nodes list the edges that begin and end there, and edges the nodes that they join: both have to agree";

/// Checks that numbers are unique, that edges join nodes that exist, and that nodes list the edges that join them.
pub(super) fn check(graph: &Grf, lines: &Lines) -> Result<(), FileError> {
    let node_of = unique("node", graph.nodes.iter().map(|node| node.number).zip(&lines.nodes))?;
    let edge_of = unique("edge", graph.edges.iter().map(|edge| edge.number).zip(&lines.edges))?;
    for end in ENDS {
        for (edge, &line) in graph.edges.iter().zip(&lines.edges) {
            let node = (end.of)(edge);
            if !node_of.contains_key(&node) {
                let problem = format!("edge {} {} at node {node}, which is not there", edge.number, end.does);
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
                        "edge {number} is among the {} of node {}, but no edge of that number {} there",
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
                "edge {} {} at node {}, which does not list it among its {}",
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

/// Where every number stands, each once.
fn unique<'a>(
    what: &str,
    numbers: impl Iterator<Item = (u64, &'a usize)>,
) -> Result<HashMap<u64, usize>, FileError> {
    let mut places = HashMap::new();
    for (index, (number, &line)) in numbers.enumerate() {
        if places.insert(number, index).is_some() {
            return Err(FileError::at(line, format!("there are two {what}s {number}"), HELP));
        }
    }
    Ok(places)
}
