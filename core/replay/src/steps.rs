//! The steps of every rank of a program: what a simulator replays.
//!
//! Every rank does its tasks in an order in which none comes before one that it waits for. A dependency between two ranks is a message,
//! with a tag of its own, so that messages never stand in for each other; one within a rank is order.

use std::collections::BTreeMap;

use hopmap_model::{TaskDag, WorkUnit};

use crate::error::Refusal;

/// A message to or from another rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Message {
    /// The other rank.
    pub peer: u32,
    /// Number of the message among those of its sender and receiver.
    pub tag: u32,
    /// Its size.
    pub bytes: u64,
}

/// A task of a rank and what it exchanges with other ranks.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Step {
    /// The task.
    pub task: u32,
    /// Work in seconds.
    pub work: f64,
    /// Messages that it waits for.
    pub received: Vec<Message>,
    /// Messages that are sent when it is done.
    pub sent: Vec<Message>,
    /// Tasks of the same rank that it waits for.
    pub after: Vec<u32>,
}

/// The steps of every rank in their order.
pub fn steps(dag: &TaskDag) -> Result<Vec<Vec<Step>>, Refusal> {
    if dag.unit == WorkUnit::Time {
        let problem =
            "the tasks have weights of a model, not seconds and bytes, so nobody knows what to replay";
        let help = "`trace/dag` gives tasks of a program that ran; `schedule/…` works with graphs that have weights only";
        return Err(Refusal::new(problem, help));
    }
    let ranks: Option<Vec<u32>> = dag.tasks.iter().map(|task| task.rank).collect();
    let rank_of = ranks.ok_or_else(|| {
        let task = dag.tasks.iter().position(|task| task.rank.is_none()).unwrap_or_default();
        let problem = format!("task {task} belongs to no rank, so no process can replay it");
        Refusal::new(problem, "`trace/dag` gives tasks with ranks")
    })?;
    let order = dag.order().map_err(|task| {
        let help = "the graph was not made by `trace/dag`, which refuses such traces: make it again";
        Refusal::new(format!("task {task} waits for itself"), help)
    })?;
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
        let message = |peer| Message { peer, tag, bytes };
        steps[source as usize][places[edge.source as usize]].sent.push(message(destination));
        steps[destination as usize][places[edge.destination as usize]].received.push(message(source));
    }
    Ok(steps)
}
