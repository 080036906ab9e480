//! Traces of programs whose messages are known.

mod archive;
mod pattern;
mod schedule;

use hopmap_model::{Context, Edge, Process, TaskGraph, TraceArchive};

use crate::{GenerateError, GenerateParams};
use schedule::Schedule;

/// Most ranks there can be: each is a file.
pub(crate) const MOST_RANKS: u32 = 1 << 16;

/// Ranks on a host.
const RANKS_PER_HOST: u32 = 16;

/// Checks that there is a program of so many ranks and events.
pub(crate) fn check(params: &GenerateParams) -> Result<(), GenerateError> {
    Schedule::new(params).map(drop)
}

/// The trace, and the task graph it must give.
pub(crate) fn generate(
    params: &GenerateParams,
    cx: &Context<'_>,
) -> Result<(TraceArchive, TaskGraph), GenerateError> {
    let schedule = Schedule::new(params)?;
    let archive = archive::write(&schedule, cx)?;
    cx.log(format_args!("{} ranks, {} rounds, {} events", params.ranks, schedule.rounds, schedule.events()));
    Ok((archive, task_graph(&schedule)))
}

/// The task graph, from the pattern and the schedule as a whole; no event is looked at.
fn task_graph(schedule: &Schedule) -> TaskGraph {
    let program = &schedule.program;
    let processes = (0..program.ranks)
        .map(|rank| {
            let (compute, duration) = (schedule.compute(rank), schedule.duration(rank));
            Process {
                host: Some(host(rank)),
                compute_s: Some(seconds(compute)),
                communication_s: Some(seconds(duration - compute)),
                collective_s: Some(0.0),
            }
        })
        .collect();
    let mut edges: Vec<Edge> = (0..program.ranks).flat_map(|rank| edges_of(schedule, rank)).collect();
    edges.sort_unstable_by_key(Edge::pair);
    edges.dedup_by(|next, kept| {
        let same = next.pair() == kept.pair();
        if same {
            kept.messages += next.messages;
            kept.bytes += next.bytes;
        }
        same
    });
    let duration = (0..program.ranks).map(|rank| schedule.duration(rank)).max().unwrap_or(0);
    TaskGraph { processes, edges, duration_s: Some(seconds(duration)), ..TaskGraph::default() }
}

fn edges_of(schedule: &Schedule, source: u32) -> Vec<Edge> {
    let program = &schedule.program;
    let mut edges = Vec::new();
    for phase in 0..program.phases() {
        let messages = schedule.rounds_of(phase);
        for destination in program.destinations(source, phase).into_iter().filter(|_| messages > 0) {
            let bytes = messages * program.bytes(source, destination);
            edges.push(Edge { source, destination, messages, bytes });
        }
    }
    edges
}

fn host(rank: u32) -> String {
    format!("node{:04}", rank / RANKS_PER_HOST)
}

fn seconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e9
}
