//! Task graphs as text that other programs read.

use std::fmt::Write;

use hopmap_model::{Context, Edge, TaskGraph, TextFile};

use crate::ExportFormat;
use crate::import::matrix_market::MESSAGES;

/// Numbers of messages in one comment: Matrix Market allows lines of up to 1024 characters.
const NUMBERS_PER_LINE: usize = 40;

/// Writes the number of ranks, and messages and bytes per pair. Says what the file does not hold.
pub(crate) fn export(graph: &TaskGraph, to: ExportFormat, cx: &Context<'_>) -> TextFile {
    let left = left_out(graph);
    if !left.is_empty() {
        cx.log(format_args!("warning: the file does not hold {}", left.join(", ")));
    }
    let (name, text) = match to {
        ExportFormat::Csv => ("matrix.csv", csv(graph)),
        ExportFormat::MatrixMarket => ("matrix.mtx", matrix_market(graph)),
    };
    TextFile { name: name.to_owned(), text }
}

/// What of the graph has no place in a matrix.
fn left_out(graph: &TaskGraph) -> Vec<&'static str> {
    let processes = &graph.processes;
    [
        (processes.iter().any(|process| process.host.is_some()), "hosts"),
        (processes.iter().any(|process| process.compute_s.is_some()), "computing times"),
        (processes.iter().any(|process| process.communication_s.is_some()), "times in communication"),
        (graph.duration_s.is_some(), "the duration"),
        (!graph.sizes.is_empty(), "the lengths of messages"),
        (!graph.phases.is_empty(), "phases"),
        (!graph.collectives.is_empty(), "collective operations"),
    ]
    .into_iter()
    .filter_map(|(is_there, what)| is_there.then_some(what))
    .collect()
}

fn csv(graph: &TaskGraph) -> String {
    let mut text = "source,destination,messages,bytes\n".to_owned();
    for Edge { source, destination, messages, bytes } in &graph.edges {
        let _ = writeln!(text, "{source},{destination},{messages},{bytes}");
    }
    // A file has as many ranks as its highest rank says, also where that one is silent.
    let highest = graph.edges.iter().map(|edge| edge.source.max(edge.destination)).max();
    if let Some(last) = graph.ranks().checked_sub(1).filter(|last| highest != Some(*last as u32)) {
        let _ = writeln!(text, "{last},{last},0,0");
    }
    text
}

fn matrix_market(graph: &TaskGraph) -> String {
    let mut text = "%%MatrixMarket matrix coordinate integer general\n".to_owned();
    text.push_str("% row: sender, column: receiver, both counted from one; value: bytes\n");
    let is_plain = |edge: &Edge| edge.messages == u64::from(edge.bytes > 0);
    if !graph.edges.iter().all(is_plain) {
        for edges in graph.edges.chunks(NUMBERS_PER_LINE) {
            text.push_str(MESSAGES);
            for edge in edges {
                let _ = write!(text, " {}", edge.messages);
            }
            text.push('\n');
        }
    }
    let ranks = graph.ranks();
    let _ = writeln!(text, "{ranks} {ranks} {}", graph.edges.len());
    for edge in &graph.edges {
        let _ = writeln!(text, "{} {} {}", edge.source + 1, edge.destination + 1, edge.bytes);
    }
    text
}
