//! Files for other programs: communication matrices as text, and replay programs for simulators.

mod create;
mod goal;
mod simgrid;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::path::Path;

use hopmap_model::{Context, Edge, Program, TaskDag, TaskGraph, TextFile, TraceArchive, Weight, to_u32};
use hopmap_views::matrix;

use crate::error::TraceError;
use crate::import::matrix_market::MESSAGES;
use crate::params::{ExportFormat, ReplayParams, Simulator};
use crate::program;

/// Message counts per comment: Matrix Market limits lines to 1024 characters.
const NUMBERS_PER_LINE: usize = 40;

/// Writes the number of ranks, and messages and bytes per pair. Logs what the file omits.
pub(crate) fn export(graph: &TaskGraph, to: ExportFormat, cx: &Context<'_>) -> TextFile {
    let left = left_out(graph);
    // Nobody expects more of a picture.
    if !left.is_empty() && !matches!(to, ExportFormat::Svg) {
        cx.log(format_args!("warning: the file does not contain {}", left.join(", ")));
    }
    let (name, text) = match to {
        ExportFormat::Csv => ("matrix.csv", csv(graph)),
        ExportFormat::MatrixMarket => ("matrix.mtx", matrix_market(graph)),
        ExportFormat::Svg => ("matrix.svg", matrix(graph, Weight::Bytes, "Communication matrix", None)),
    };
    TextFile { name: name.to_owned(), text }
}

/// Parts of the graph that a matrix cannot represent.
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
    // The number of ranks in a CSV file is its highest rank + 1, so a silent highest rank needs a line.
    let highest = graph.edges.iter().map(|edge| edge.source.max(edge.destination)).max();
    if let Some(last) = graph.ranks().checked_sub(1).filter(|last| highest != Some(to_u32(*last))) {
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

/// What is written for a simulator.
pub(crate) enum Replayed<'a> {
    Program(&'a Program),
    TaskDag(&'a TaskDag),
}

/// Writes the files of a program into a temporary folder, which is removed with the last of them.
pub(crate) fn write(
    replayed: &Replayed<'_>,
    params: &ReplayParams,
    cx: &Context<'_>,
) -> Result<TraceArchive, TraceError> {
    match (params.format, replayed) {
        (Simulator::Simgrid, Replayed::Program(program)) => {
            simgrid::check(program)?;
            in_folder(cx, |folder| simgrid::write(program, params.flops_per_s, folder, cx))
        }
        (Simulator::Simgrid, Replayed::TaskDag(dag)) => {
            let program = program::of_dag(dag, cx)?;
            in_folder(cx, |folder| simgrid::write(&program, params.flops_per_s, folder, cx))
        }
        (Simulator::Goal, Replayed::TaskDag(dag)) => {
            let ranks = program::steps_of(dag, cx)?;
            in_folder(cx, |folder| goal::write(&ranks, folder))
        }
        (Simulator::Goal, Replayed::Program(_)) => {
            let help = "connect the `task-dag` of `trace/dag`";
            Err(TraceError::refused("`format = \"goal\"` needs a task DAG", help))
        }
    }
}

fn in_folder(
    cx: &Context<'_>,
    write: impl FnOnce(&Path) -> io::Result<Vec<String>>,
) -> Result<TraceArchive, TraceError> {
    let scratch = cx.scratch();
    let unwritable = |source| TraceError::Write {
        path: scratch.clone(),
        source,
        help: "set TMPDIR to use another folder",
    };
    let folder = tempfile::Builder::new().prefix(".hopmap-replay-").tempdir_in(&scratch);
    let folder = folder.map_err(unwritable)?;
    let names = write(folder.path()).map_err(unwritable)?;
    let files: BTreeMap<_, _> =
        names.into_iter().map(|name| (name.clone(), folder.path().join(name))).collect();
    Ok(TraceArchive::new(files).kept_by(folder))
}
