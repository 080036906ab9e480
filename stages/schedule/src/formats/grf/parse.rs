//! From words to a graph.

use super::check::{Lines, check};
use super::{Grf, GrfChunk, GrfEdge, GrfNode};
use crate::formats::ReadError;
use crate::formats::words::Words;

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

pub(super) fn parse(bytes: &[u8]) -> Result<Grf, ReadError> {
    let text = String::from_utf8_lossy(bytes);
    let help =
        "a graph of PARUS has a header, nodes between `<NODES_BEGIN>` and `<NODES_END>`, and edges likewise";
    let mut words = Words::new(&text, 99, help);
    if words.is_at_end()? {
        return Err(words.wrong("the file is empty"));
    }
    words.expect("<GRAPH_BEGIN>")?;
    let [header, root, tail] = [words.text("header")?, words.text("root")?, words.text("tail")?];
    let count: u64 = words.value("num_nodes")?;
    if count == 0 {
        return Err(words.wrong("the graph has no nodes"));
    }
    let mut lines = Lines::default();
    words.expect("<NODES_BEGIN>")?;
    let mut nodes = Vec::new();
    for _ in 0..count {
        nodes.push(node(&mut words, &mut lines)?);
    }
    words.expect("<NODES_END>")?;
    let count: u64 = words.value("num_edges")?;
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

fn node(words: &mut Words<'_>, lines: &mut Lines) -> Result<GrfNode, ReadError> {
    words.expect("<NODE_BEGIN>")?;
    let number = words.value("number")?;
    lines.nodes.push(words.line());
    let kind = words.value("type")?;
    let weight = words.value("weight")?;
    let layer = words.value("layer")?;
    let inputs = words.value("num_input_edges")?;
    let input_edges = words.list("edges", ("num_input_edges", inputs))?;
    let outputs = words.value("num_output_edges")?;
    let output_edges = words.list("edges", ("num_output_edges", outputs))?;
    let [head, body, tail] = [words.text("head")?, words.text("body")?, words.text("tail")?];
    words.expect("<NODE_END>")?;
    Ok(GrfNode { number, kind, weight, layer, input_edges, output_edges, head, body, tail })
}

fn edge(words: &mut Words<'_>, lines: &mut Lines) -> Result<GrfEdge, ReadError> {
    words.expect("<EDGE_BEGIN>")?;
    let number = words.value("number")?;
    lines.edges.push(words.line());
    let weight = words.value("weight")?;
    let kind = data_type(words)?;
    let variables: u64 = words.value("num_var")?;
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
fn one_node(words: &mut Words<'_>, count_key: &'static str, list_key: &str) -> Result<u64, ReadError> {
    let count = words.value(count_key)?;
    let nodes = words.list(list_key, (count_key, count))?;
    match nodes[..] {
        [node] => Ok(node),
        _ => Err(words.wrong(format!("`{count_key}` is {count}: an edge joins one node to one other"))),
    }
}

fn data_type(words: &mut Words<'_>) -> Result<String, ReadError> {
    words.expect("type")?;
    let word = words.word()?;
    match TYPES.contains(&word) {
        true => Ok(word.to_owned()),
        false => {
            let problem = format!("there is no type `{}`", crate::formats::shown(word));
            Err(ReadError::at(words.line(), problem, format!("the types: {}", TYPES.join(", "))))
        }
    }
}

fn chunks(words: &mut Words<'_>, count: u64, [begin, end]: [&str; 2]) -> Result<Vec<GrfChunk>, ReadError> {
    words.expect(begin)?;
    let mut chunks = Vec::new();
    for _ in 0..count {
        words.expect("<CHUNK_BEGIN>")?;
        let name = words.text("name")?;
        let kind = data_type(words)?;
        let [left_offset, right_offset] = [words.text("left_offset")?, words.text("right_offset")?];
        if left_offset.is_empty() || right_offset.is_empty() {
            return Err(words.wrong("the offsets of a chunk are not empty"));
        }
        words.expect("<CHUNK_END>")?;
        chunks.push(GrfChunk { name, kind, left_offset, right_offset });
    }
    words.expect(end)?;
    Ok(chunks)
}
