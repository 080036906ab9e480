//! From what the processes of a program did, moment by moment, to tasks that wait for each other.
//!
//! A task is the time that a process computes between two moments at which it depends on others. Until then it waits
//! for what comes in, and when it is done it sends; what a process does follows in the order in which it did it. A
//! message leads from the task before it was sent to the task after it was received. An operation in which everybody
//! waits for everybody is a task of its own without work, a join; one with a root leads straight to or from the root.
//!
//! The recipe is that of the time-independent traces of SMPI (Desprez, Markomanolis, Quinson, Suter, "Assessing the
//! performance of MPI applications through time-independent trace replay", PSTI 2011) and of `schedgen` (Hoefler,
//! Schneider, Lumsdaine, "`LogGOPSim`", HPDC 2010), but for collective operations, which stay whole.

mod channels;
mod joins;
mod segments;

use std::collections::BTreeMap;

use hopmap_model::{Dependency, TaskDag};

use hopmap_collectives::{Convention, Operation};

pub(crate) use channels::Members;

/// Something a process does that others may wait for, or that waits for others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Moment {
    /// When, by the common clock.
    pub(crate) time: u64,
    /// Ticks that the process computed since the moment before.
    pub(crate) compute: u64,
    /// What it is.
    pub(crate) what: What,
}

/// What a process does at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    /// It sends a message; the request if it does not block.
    Send { envelope: Envelope, bytes: u64, request: Option<u64> },
    /// A send that does not block is complete.
    Sent { request: u64 },
    /// It asks for a message and does not wait.
    Post { request: u64 },
    /// It has received a message.
    Receive { envelope: Envelope, bytes: u64, request: Option<u64> },
    /// A send or receive that does not block will not take place.
    Cancel { request: u64 },
    /// It takes part in a collective operation and does not wait.
    Begin { request: u64 },
    /// A collective operation is complete.
    Complete { joint: Joint, request: Option<u64> },
    /// It ends.
    End,
}

/// What tells messages between two processes apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Envelope {
    /// Rank of the other end.
    pub(crate) peer: u32,
    /// Id of the communicator.
    pub(crate) communicator: u32,
    /// The tag.
    pub(crate) tag: u32,
}

/// A collective operation as one process sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Joint {
    /// Number of the group of processes.
    pub(crate) group: u32,
    /// What it does.
    pub(crate) operation: Operation,
    /// Place of the root in the group, if it has one.
    pub(crate) root: u32,
    /// Bytes that the process sent.
    pub(crate) sent: u64,
    /// Bytes that the process received.
    pub(crate) received: u64,
}

/// A moment of a process: its rank, and which of its moments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct At {
    rank: u32,
    moment: u32,
}

/// What happens after the one moment waits for what happened before the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Link {
    before: At,
    after: At,
    bytes: u64,
}

/// A task that waits for all processes of a group, and lets all of them go on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Join {
    /// The rank at which it is done.
    rank: u32,
    before: Vec<(At, u64)>,
    after: Vec<(At, u64)>,
}

/// How tasks are made of moments.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    /// Ticks per second.
    pub(crate) ticks_per_second: f64,
    /// Computing for no more than these ticks makes no task of its own.
    pub(crate) tiny: u64,
    /// Messages of at least so many bytes wait until they are asked for.
    pub(crate) rendezvous: Option<u64>,
}

/// What has no counterpart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Unmatched {
    /// Messages that nobody received.
    pub(crate) sent: u64,
    /// Their bytes.
    pub(crate) sent_bytes: u128,
    /// Bytes of all messages that were sent.
    pub(crate) of_bytes: u128,
    /// Messages that nobody sent.
    pub(crate) received: u64,
    /// Messages whose ends tell different communicators.
    pub(crate) communicators: u64,
    /// Messages whose ends tell different lengths.
    pub(crate) lengths: u64,
    /// Collective operations that not all processes of their group recorded alike.
    pub(crate) joints: u64,
}

/// Tasks and what they wait for, from the moments of every rank in their order and the ranks of every group and communicator.
pub(crate) fn build(
    ranks: &[Vec<Moment>],
    groups: &[Vec<u32>],
    members: &Members,
    convention: Convention,
    rules: Rules,
) -> (TaskDag, Unmatched) {
    let mut unmatched = Unmatched::default();
    let mut links = channels::links(ranks, rules.rendezvous, members, &mut unmatched);
    let joins = joins::joins(ranks, (groups, convention), &mut links, &mut unmatched);
    let segments = segments::cut(ranks, &segments::marks(ranks, &links, &joins), rules);
    (assemble(segments, &links, joins), unmatched)
}

fn assemble(segments: segments::Segments, links: &[Link], joins: Vec<Join>) -> TaskDag {
    let mut dag = TaskDag::default();
    let edge = |source, destination, bytes| Dependency { source, destination, bytes };
    let links =
        links.iter().map(|link| edge(segments.before(link.before), segments.after(link.after), link.bytes));
    dag.dependencies.extend(links);
    let mut ranks = Vec::with_capacity(joins.len());
    for (next, join) in (segments.tasks.len() as u32..).zip(joins) {
        dag.dependencies
            .extend(join.before.iter().map(|&(at, bytes)| edge(segments.before(at), next, bytes)));
        dag.dependencies.extend(join.after.iter().map(|&(at, bytes)| edge(next, segments.after(at), bytes)));
        ranks.push(join.rank);
    }
    dag.dependencies.extend(segments.order().map(|(source, destination)| edge(source, destination, 0)));
    dag.dependencies.sort_unstable();
    dag.tasks = segments.tasks;
    dag.tasks.extend(ranks.into_iter().map(|rank| hopmap_model::Task { rank: Some(rank), work: 0.0 }));
    dag
}

/// Moments of requests that have begun and are not complete.
type Begun = BTreeMap<u64, u32>;
