//! From words to a graph.

use hopmap_text::{FileError, Words};

use super::check::{Lines, check};
use super::{Grf, GrfChunk, GrfEdge, GrfNode};
use crate::formats::words::{list, text, value, words};

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

pub(super) fn parse(bytes: &[u8]) -> Result<Grf, FileError> {
    let help =
        "a graph of PARUS has a header, nodes between `<NODES_BEGIN>` and `<NODES_END>`, and edges likewise";
    let mut words = words(bytes, 99, help)?;
    words.expect("<GRAPH_BEGIN>")?;
    let [header, root, tail] =
        [text(&mut words, "header")?, text(&mut words, "root")?, text(&mut words, "tail")?];
    let count: u64 = value(&mut words, "num_nodes")?;
    if count == 0 {
        return Err(words.error("the graph has no nodes"));
    }
    let mut lines = Lines::default();
    words.expect("<NODES_BEGIN>")?;
    let mut nodes = Vec::new();
    for _ in 0..count {
        nodes.push(node(&mut words, &mut lines)?);
    }
    words.expect("<NODES_END>")?;
    let count: u64 = value(&mut words, "num_edges")?;
    words.expect("<EDGES_BEGIN>")?;
    let mut edges = Vec::new();
    for _ in 0..count {
        edges.push(edge(&mut words, &mut lines)?);
    }
    words.expect("<EDGES_END>")?;
    words.expect("<GRAPH_END>")?;
    words.end()?;
    let graph = Grf { header, root, tail, nodes, edges };
    check(&graph, &lines)?;
    Ok(graph)
}

fn node(words: &mut Words<'_>, lines: &mut Lines) -> Result<GrfNode, FileError> {
    words.expect("<NODE_BEGIN>")?;
    let number = value(words, "number")?;
    lines.nodes.push(words.line());
    let kind = value(words, "type")?;
    let weight = value(words, "weight")?;
    let layer = value(words, "layer")?;
    let inputs = value(words, "num_input_edges")?;
    let input_edges = list(words, "edges", ("num_input_edges", inputs))?;
    let outputs = value(words, "num_output_edges")?;
    let output_edges = list(words, "edges", ("num_output_edges", outputs))?;
    let [head, body, tail] = [text(words, "head")?, text(words, "body")?, text(words, "tail")?];
    words.expect("<NODE_END>")?;
    Ok(GrfNode { number, kind, weight, layer, input_edges, output_edges, head, body, tail })
}

fn edge(words: &mut Words<'_>, lines: &mut Lines) -> Result<GrfEdge, FileError> {
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

/// A list of nodes that PARUS allows one of.
fn one_node(words: &mut Words<'_>, count_key: &'static str, list_key: &str) -> Result<u64, FileError> {
    let count = value(words, count_key)?;
    let nodes = list(words, list_key, (count_key, count))?;
    match nodes[..] {
        [node] => Ok(node),
        _ => Err(words.error(format!("`{count_key}` is {count}: an edge joins one node to one other"))),
    }
}

fn data_type(words: &mut Words<'_>) -> Result<String, FileError> {
    words.expect("type")?;
    let word = words.word()?.to_owned();
    match TYPES.contains(&word.as_str()) {
        true => Ok(word),
        false => {
            let problem = format!("there is no type `{}`", words.shown());
            Err(words.error(problem).with_help(format!("the types: {}", TYPES.join(", "))))
        }
    }
}

fn chunks(words: &mut Words<'_>, count: u64, [begin, end]: [&str; 2]) -> Result<Vec<GrfChunk>, FileError> {
    words.expect(begin)?;
    let mut chunks = Vec::new();
    for _ in 0..count {
        words.expect("<CHUNK_BEGIN>")?;
        let name = text(words, "name")?;
        let kind = data_type(words)?;
        let [left_offset, right_offset] = [text(words, "left_offset")?, text(words, "right_offset")?];
        if left_offset.is_empty() || right_offset.is_empty() {
            return Err(words.error("the offsets of a chunk are not empty"));
        }
        words.expect("<CHUNK_END>")?;
        chunks.push(GrfChunk { name, kind, left_offset, right_offset });
    }
    words.expect(end)?;
    Ok(chunks)
}
