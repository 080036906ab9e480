//! Files for other programs: communication matrices as text, and replay programs for simulators.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use hopmap_model::{Context, Edge, TaskDag, TaskGraph, TextFile, TraceArchive};
use hopmap_replay::{Step, steps};

use crate::error::TraceError;
use crate::import::matrix_market::MESSAGES;
use crate::{ExportFormat, ReplayParams, Simulator};

/// Message counts per comment: Matrix Market limits lines to 1024 characters.
const NUMBERS_PER_LINE: usize = 40;

/// Writes the number of ranks, and messages and bytes per pair. Logs what the file omits.
pub(crate) fn export(graph: &TaskGraph, to: ExportFormat, cx: &Context<'_>) -> TextFile {
    let left = left_out(graph);
    if !left.is_empty() {
        cx.log(format_args!("warning: the file does not contain {}", left.join(", ")));
    }
    let (name, text) = match to {
        ExportFormat::Csv => ("matrix.csv", csv(graph)),
        ExportFormat::MatrixMarket => ("matrix.mtx", matrix_market(graph)),
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

/// Name of the GOAL schedule.
const GOAL_FILE: &str = "program.goal";
/// Datatype number of `MPI_BYTE`.
const BYTE: u32 = 6;
/// The index file that starts a replay.
const LIST: &str = "ti.txt";

/// Writes the files of a program into a temporary folder, which is removed with the last of them.
pub(crate) fn write(
    dag: &TaskDag,
    params: &ReplayParams,
    cx: &Context<'_>,
) -> Result<TraceArchive, TraceError> {
    let ranks = steps(dag)?;
    if ranks.len() > 1 && ranks.iter().flatten().all(|step| step.sent.is_empty()) {
        cx.log("warning: no task depends on a task of another rank, so the program does not send messages");
    }
    let scratch = cx.scratch();
    let unwritable = |source| TraceError::Write {
        path: scratch.clone(),
        source,
        help: "set TMPDIR to use another folder",
    };
    let folder = tempfile::Builder::new().prefix(".hopmap-replay-").tempdir_in(&scratch);
    let folder = folder.map_err(unwritable)?;
    let names = match params.format {
        Simulator::Simgrid => write_simgrid(&ranks, params.flops_per_s, folder.path()),
        Simulator::Goal => write_goal(&ranks, folder.path()),
    };
    let names = names.map_err(unwritable)?;
    let files: BTreeMap<_, _> =
        names.into_iter().map(|name| (name.clone(), folder.path().join(name))).collect();
    Ok(TraceArchive::new(files).kept_by(folder))
}

/// Creates a file, fills it and flushes it to disk.
fn create(path: &Path, contents: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> io::Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    contents(&mut file)?;
    file.flush()
}

/// Writes a GOAL schedule, which `txt2bin` converts for `LogGOPSim`: per rank, calculations in nanoseconds,
/// sends and receives with labels, and their dependencies. Returns the file name.
fn write_goal(ranks: &[Vec<Step>], folder: &Path) -> io::Result<Vec<String>> {
    create(&folder.join(GOAL_FILE), |file| {
        writeln!(file, "num_ranks {}", ranks.len())?;
        ranks.iter().enumerate().try_for_each(|(rank, steps)| write_goal_rank(rank, steps, file))
    })?;
    Ok(vec![GOAL_FILE.into()])
}

fn write_goal_rank(rank: usize, steps: &[Step], file: &mut impl Write) -> io::Result<()> {
    writeln!(file, "rank {rank} {{")?;
    // Labels of the calculations of tasks.
    let mut labels = HashMap::with_capacity(steps.len());
    let mut last = 0u64;
    let mut label = || {
        last += 1;
        last
    };
    for step in steps {
        let calculation = label();
        labels.insert(step.task, calculation);
        writeln!(file, "l{calculation}: calc {:.0}", step.work * 1e9)?;
        for before in step.after.iter().filter_map(|task| labels.get(task)) {
            writeln!(file, "l{calculation} requires l{before}")?;
        }
        for message in &step.received {
            let receive = label();
            let (peer, tag, bytes) = (message.peer, message.tag, message.bytes);
            writeln!(file, "l{receive}: recv {bytes}b from {peer} tag {tag}")?;
            writeln!(file, "l{calculation} requires l{receive}")?;
        }
        for message in &step.sent {
            let send = label();
            let (peer, tag, bytes) = (message.peer, message.tag, message.bytes);
            writeln!(file, "l{send}: send {bytes}b to {peer} tag {tag}")?;
            writeln!(file, "l{send} requires l{calculation}")?;
        }
    }
    writeln!(file, "}}")
}

/// Writes time-independent traces for `smpirun -replay` of `SimGrid`: a file of actions per rank, and an
/// index of them (`SimGrid` 3.32, `src/smpi/internals/smpi_replay.cpp`). Returns the file names.
fn write_simgrid(ranks: &[Vec<Step>], flops_per_s: f64, folder: &Path) -> io::Result<Vec<String>> {
    let mut names: Vec<String> = (0..ranks.len()).map(|rank| format!("rank-{rank}.ti")).collect();
    for ((rank, steps), name) in ranks.iter().enumerate().zip(&names) {
        create(&folder.join(name), |file| write_actions(rank, steps, flops_per_s, file))?;
    }
    create(&folder.join(LIST), |file| names.iter().try_for_each(|name| writeln!(file, "{name}")))?;
    names.push(LIST.into());
    Ok(names)
}

fn write_actions(rank: usize, steps: &[Step], flops_per_s: f64, file: &mut impl Write) -> io::Result<()> {
    writeln!(file, "{rank} init")?;
    for step in steps {
        for message in &step.received {
            writeln!(file, "{rank} recv {} {} {} {BYTE}", message.peer, message.tag, message.bytes)?;
        }
        if step.work > 0.0 {
            writeln!(file, "{rank} compute {:.0}", step.work * flops_per_s)?;
        }
        for message in &step.sent {
            writeln!(file, "{rank} isend {} {} {} {BYTE}", message.peer, message.tag, message.bytes)?;
        }
    }
    writeln!(file, "{rank} finalize")
}
