//! The steps of every rank of a program, for replay by simulators.
//!
//! Every rank runs its tasks in a topological order. A dependency between two ranks is a message with its
//! own tag, so messages cannot be mismatched; one within a rank is program order. Where both ends post their
//! messages in order, the few channels identify them as well, and a program needs no envelope for each message.

use std::collections::BTreeMap;

use hopmap_model::{TaskDag, WorkUnit};

use crate::error::Refusal;

/// A message to or from another rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Message {
    /// The peer.
    pub peer: u32,
    /// Number of the message among those between sender and receiver.
    pub tag: u32,
    /// The messages of a channel between sender and receiver have the same order at both ends. Most pairs need one.
    pub channel: u32,
    /// Its size in bytes.
    pub bytes: u64,
}

/// A task of a rank and its messages.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Step {
    /// The task.
    pub task: u32,
    /// Work in seconds.
    pub work: f64,
    /// Messages that it waits for.
    pub received: Vec<Message>,
    /// Messages sent after it.
    pub sent: Vec<Message>,
    /// Tasks of the same rank that it waits for.
    pub after: Vec<u32>,
}

/// The steps of every rank, in order.
pub fn steps(dag: &TaskDag) -> Result<Vec<Vec<Step>>, Refusal> {
    if dag.unit == WorkUnit::Time {
        let problem =
            "the tasks have abstract weights instead of seconds and bytes, so they cannot be replayed";
        let help = "use the tasks of a recorded program (`trace/dag`); `schedule/…` also accepts graphs with weights only";
        return Err(Refusal::new(problem, help));
    }
    let ranks: Option<Vec<u32>> = dag.tasks.iter().map(|task| task.rank).collect();
    let rank_of = ranks.ok_or_else(|| {
        let task = dag.tasks.iter().position(|task| task.rank.is_none()).unwrap_or_default();
        let problem = format!("task {task} does not belong to a rank, so it cannot be replayed");
        Refusal::new(problem, "use a task DAG of `trace/dag`, which has ranks")
    })?;
    let order = dag.order().map_err(|task| {
        let help = "the graph was not written by `trace/dag`, which rejects such traces: recompute it";
        Refusal::new(format!("task {task} depends on itself"), help)
    })?;
    let mut steps = vec![Vec::new(); dag.ranks() as usize];
    let mut places = vec![0; dag.tasks.len()];
    for task in order {
        let of_rank = &mut steps[rank_of[task as usize] as usize];
        places[task as usize] = of_rank.len();
        of_rank.push(Step { task, work: dag.tasks[task as usize].work, ..Step::default() });
    }
    let mut tags: BTreeMap<(u32, u32), u32> = BTreeMap::new();
    let channels = channels(dag, &rank_of, &places);
    for (edge, channel) in dag.dependencies.iter().zip(channels) {
        let (source, destination) = (rank_of[edge.source as usize], rank_of[edge.destination as usize]);
        if source == destination {
            steps[destination as usize][places[edge.destination as usize]].after.push(edge.source);
            continue;
        }
        let next = tags.entry((source, destination)).or_default();
        let (tag, bytes) = (*next, edge.bytes);
        *next += 1;
        let message = |peer| Message { peer, tag, channel, bytes };
        steps[source as usize][places[edge.source as usize]].sent.push(message(destination));
        steps[destination as usize][places[edge.destination as usize]].received.push(message(source));
    }
    Ok(steps)
}

/// The channel of every dependency: the first in which it is later at the receiver than those sent before it.
fn channels(dag: &TaskDag, rank_of: &[u32], places: &[usize]) -> Vec<u32> {
    let edges = &dag.dependencies;
    let pair =
        |index: usize| [edges[index].source, edges[index].destination].map(|task| rank_of[task as usize]);
    let mut sent: Vec<usize> = (0..edges.len()).collect();
    sent.sort_unstable_by_key(|&index| (pair(index), places[edges[index].source as usize], index));
    let mut channels = vec![0; edges.len()];
    let mut lasts = Vec::new();
    for of_pair in sent.chunk_by(|a, b| pair(*a) == pair(*b)) {
        lasts.clear();
        for &index in of_pair {
            let received = (places[edges[index].destination as usize], index);
            let channel = lasts.iter().position(|last| *last < received).unwrap_or(lasts.len());
            match lasts.get_mut(channel) {
                Some(last) => *last = received,
                None => lasts.push(received),
            }
            channels[index] = channel as u32;
        }
    }
    channels
}
