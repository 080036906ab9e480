//! What a simulator replays, from tasks that wait for each other.
//!
//! Every rank does its tasks in an order in which none comes before one that it waits for. A dependency between two
//! ranks is a message, with a tag of its own, so that messages never stand in for each other; one within a rank is
//! order.

mod goal;
mod simgrid;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use hopmap_model::{Context, TaskDag, TraceArchive, WorkUnit};

use crate::error::ReplayError;
use crate::{ReplayParams, Simulator};

/// A message to or from another rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Message {
    peer: u32,
    tag: u32,
    bytes: u64,
}

/// A task of a rank and what it exchanges with other ranks.
#[derive(Debug, Clone, PartialEq, Default)]
struct Step {
    task: u32,
    /// In seconds.
    work: f64,
    received: Vec<Message>,
    sent: Vec<Message>,
    /// Tasks of the same rank that it waits for.
    after: Vec<u32>,
}

/// Writes the files of a program into a temporary folder, which goes when they do.
pub(crate) fn write(
    dag: &TaskDag,
    params: &ReplayParams,
    cx: &Context<'_>,
) -> Result<TraceArchive, ReplayError> {
    let ranks = steps(dag)?;
    if ranks.len() > 1 && ranks.iter().flatten().all(|step| step.sent.is_empty()) {
        cx.log("warning: no task waits for one of another rank, so nothing is sent in this program");
    }
    let scratch = cx.scratch();
    let unwritable = |source| ReplayError::Folder { path: scratch.clone(), source };
    let folder = tempfile::Builder::new().prefix(".hopmap-replay-").tempdir_in(&scratch);
    let folder = folder.map_err(unwritable)?;
    let names = match params.to {
        Simulator::Simgrid => simgrid::write(&ranks, params.flops_per_s, folder.path()),
        Simulator::Goal => goal::write(&ranks, folder.path()),
    };
    let names = names.map_err(unwritable)?;
    let files: BTreeMap<_, _> =
        names.into_iter().map(|name| (name.clone(), folder.path().join(name))).collect();
    Ok(TraceArchive::new(files).kept_by(folder))
}

/// The steps of every rank in their order.
fn steps(dag: &TaskDag) -> Result<Vec<Vec<Step>>, ReplayError> {
    if dag.unit == WorkUnit::Time {
        return Err(ReplayError::NoSeconds);
    }
    let ranks: Option<Vec<u32>> = dag.tasks.iter().map(|task| task.rank).collect();
    let free = || dag.tasks.iter().position(|task| task.rank.is_none()).unwrap_or_default();
    let rank_of = ranks.ok_or_else(|| ReplayError::NoRank { task: free() })?;
    let order = dag.order().map_err(|task| ReplayError::Cycle { task })?;
    let mut steps = vec![Vec::new(); dag.ranks() as usize];
    let mut places = vec![0; dag.tasks.len()];
    for task in order {
        let of_rank = &mut steps[rank_of[task as usize] as usize];
        places[task as usize] = of_rank.len();
        of_rank.push(Step { task, work: dag.tasks[task as usize].work, ..Step::default() });
    }
    let mut tags: BTreeMap<(u32, u32), u32> = BTreeMap::new();
    for edge in &dag.dependencies {
        let (source, destination) = (rank_of[edge.source as usize], rank_of[edge.destination as usize]);
        if source == destination {
            steps[destination as usize][places[edge.destination as usize]].after.push(edge.source);
            continue;
        }
        let next = tags.entry((source, destination)).or_default();
        let (tag, bytes) = (*next, edge.bytes);
        *next += 1;
        steps[source as usize][places[edge.source as usize]].sent.push(Message {
            peer: destination,
            tag,
            bytes,
        });
        steps[destination as usize][places[edge.destination as usize]].received.push(Message {
            peer: source,
            tag,
            bytes,
        });
    }
    Ok(steps)
}

/// Creates a file, fills it and makes sure that it is written.
fn create(path: &Path, contents: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> io::Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    contents(&mut file)?;
    file.flush()
}
