//! From a graph to the text that PARUS writes of it.

use std::fmt::{self, Write};

use super::{Grf, GrfChunk, GrfEdge, GrfNode};

pub(super) fn write(graph: &Grf) -> String {
    let mut text = String::new();
    // A text takes all that is written to it.
    let _ = all(graph, &mut text);
    text
}

fn all(graph: &Grf, to: &mut String) -> fmt::Result {
    let Grf { header, root, tail, nodes, edges } = graph;
    write!(to, "<GRAPH_BEGIN>\n header \"{header}\"\n root \"{root}\"\n tail \"{tail}\"\n")?;
    write!(to, " num_nodes {}\n\n<NODES_BEGIN>\n", nodes.len())?;
    nodes.iter().try_for_each(|one| node(one, to))?;
    write!(to, "<NODES_END>\n\n num_edges {}\n<EDGES_BEGIN>\n\n", edges.len())?;
    edges.iter().try_for_each(|one| edge(one, to))?;
    to.write_str("<EDGES_END>\n\n<GRAPH_END>\n")
}

fn node(node: &GrfNode, to: &mut String) -> fmt::Result {
    let GrfNode { number, kind, weight, layer, input_edges, output_edges, head, body, tail } = node;
    write!(to, " <NODE_BEGIN>\n  number {number}\n  type {kind}\n  weight {weight}\n  layer {layer}\n")?;
    write!(to, "  num_input_edges {}\n  edges ", input_edges.len())?;
    list(input_edges, to)?;
    write!(to, "  num_output_edges {}\n  edges ", output_edges.len())?;
    list(output_edges, to)?;
    write!(to, "  head \"{head}\"\n  body \"{body}\"\n  tail \"{tail}\"\n <NODE_END>\n\n")
}

fn edge(edge: &GrfEdge, to: &mut String) -> fmt::Result {
    let GrfEdge { number, weight, kind, sender, receiver, sent, received } = edge;
    write!(
        to,
        " <EDGE_BEGIN>\n  number {number}\n  weight {weight}\n  type {kind}\n  num_var {}\n",
        sent.len()
    )?;
    write!(
        to,
        "  num_send_nodes 1\n  send_nodes ( {sender} )\n  num_recv_nodes 1\n  recv_nodes ( {receiver} )\n"
    )?;
    to.write_str("  <SEND_BEGIN>\n\n")?;
    sent.iter().try_for_each(|one| chunk(one, to))?;
    to.write_str("  <SEND_END>\n  <RECIEVE_BEGIN>\n\n")?;
    received.iter().try_for_each(|one| chunk(one, to))?;
    to.write_str("  <RECIEVE_END>\n <EDGE_END>\n\n")
}

fn chunk(chunk: &GrfChunk, to: &mut String) -> fmt::Result {
    let GrfChunk { name, kind, left_offset, right_offset } = chunk;
    write!(
        to,
        "   <CHUNK_BEGIN>\n     name \"{name}\"\n     type {kind}\n     left_offset \"{left_offset}\"\n"
    )?;
    write!(to, "     right_offset \"{right_offset}\"\n   <CHUNK_END>\n\n")
}

fn list(numbers: &[u64], to: &mut String) -> fmt::Result {
    to.write_str("( ")?;
    numbers.iter().try_for_each(|number| write!(to, "{number} "))?;
    to.write_str(")\n")
}
