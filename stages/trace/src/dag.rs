//! Builds the task DAG of a program from the recorded moments of its processes.
//!
//! A task is an interval of computation between two moments at which a process depends on others: it waits
//! for its inputs, computes, then sends. The tasks of a process form a chain in program order. A message
//! connects the task before the send to the task after the receive. An operation in which every process
//! waits for every other is a join: a separate task without work. An operation with a root becomes edges
//! to or from the root.
//!
//! The method is that of the time-independent traces of SMPI (Desprez, Markomanolis, Quinson, Suter,
//! "Assessing the performance of MPI applications through time-independent trace replay", PSTI 2011) and of
//! `schedgen` (Hoefler, Schneider, Lumsdaine, "`LogGOPSim`", HPDC 2010), except that collective operations
//! are not expanded.

use hopmap_collectives::{Convention, Operation, exchanged};
use hopmap_model::{Context, Dependency, Task, TaskDag, to_u32};

use crate::error::TraceError;
use crate::matching::{At, Matched, Meeting, Members, Moment, Unmatched, match_collectives, match_messages};

/// A dependency of one moment on another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Link {
    before: At,
    after: At,
    bytes: u64,
}

/// A task that waits for all processes of a group and then releases them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Join {
    /// The rank it is assigned to.
    rank: u32,
    before: Vec<(At, u64)>,
    after: Vec<(At, u64)>,
}

/// Parameters of the conversion from moments to tasks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    /// Ticks per second.
    pub(crate) ticks_per_second: f64,
    /// Computation of at most this many ticks does not start a new task.
    pub(crate) tiny: u64,
    /// Minimum bytes of rendezvous messages, whose sends wait for the receive.
    pub(crate) rendezvous: Option<u64>,
}

/// Tasks and dependencies from the moments of every rank, in order, and the ranks of every group and
/// communicator.
pub(crate) fn build(
    ranks: &[Vec<Moment>],
    groups: &[Vec<u32>],
    members: &Members,
    convention: Convention,
    rules: Rules,
    cx: &Context<'_>,
) -> Result<(TaskDag, Unmatched), TraceError> {
    let mut unmatched = Unmatched::default();
    let mut links = Vec::new();
    for message in match_messages(ranks, members, &mut unmatched, cx)? {
        link(message, rules.rendezvous, &mut links);
    }
    let mut joins = Vec::new();
    match_collectives(ranks, groups, &mut unmatched, cx, |meeting| {
        connect(meeting, convention, &mut links, &mut joins);
    })?;
    let segments = cut(ranks, &marks(ranks, &links, &joins), rules);
    Ok((assemble(segments, &links, joins), unmatched))
}

/// Adds the dependency of a message, and one back if it uses rendezvous.
fn link(message: Matched, rendezvous: Option<u64>, links: &mut Vec<Link>) {
    let Matched { source, sent, posted, destination, bytes } = message;
    links.push(Link { before: source, after: destination, bytes });
    if let Some(sent) = sent.filter(|_| rendezvous.is_some_and(|least| bytes >= least)) {
        let (before, after) = (At { moment: posted, ..destination }, At { moment: sent, ..source });
        links.push(Link { before, after, bytes: 0 });
    }
}

fn assemble(segments: Segments, links: &[Link], joins: Vec<Join>) -> TaskDag {
    let mut dag = TaskDag::default();
    let edge = |source, destination, bytes| Dependency { source, destination, bytes };
    let links =
        links.iter().map(|link| edge(segments.before(link.before), segments.after(link.after), link.bytes));
    dag.dependencies.extend(links);
    let mut ranks = Vec::with_capacity(joins.len());
    for (next, join) in (to_u32(segments.tasks.len())..).zip(joins) {
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

/// Operations with a root become dependencies. In the others every process waits for every other: a join.
fn connect(meeting: &Meeting<'_>, convention: Convention, links: &mut Vec<Link>, joins: &mut Vec<Join>) {
    let &Meeting { members, parts: all, .. } = meeting;
    if all.len() == 1 {
        return;
    }
    let first = all[0].joint;
    // Bytes that each process sends to and receives from the others.
    let (given, got) = exchanged(&meeting.collective(convention));
    let places = || 0..all.len();
    let begun = |place: usize| At { rank: members[place], moment: all[place].begun };
    let complete = |place: usize| At { rank: members[place], moment: all[place].complete };
    if !first.operation.has_root() {
        let before = places().map(|place| (begun(place), given[place])).collect();
        let after = places().map(|place| (complete(place), got[place])).collect();
        return joins.push(Join { rank: members[0], before, after });
    }
    let root = first.root as usize;
    let from_root =
        matches!(first.operation, Operation::Broadcast | Operation::Scatter | Operation::ScatterV);
    links.extend(places().filter(|place| *place != root).map(|place| match from_root {
        true => Link { before: begun(root), after: complete(place), bytes: got[place] },
        false => Link { before: begun(place), after: complete(root), bytes: given[place] },
    }));
}

/// Another moment depends on it.
const AWAITED: u8 = 1;
/// It depends on another moment.
const WAITS: u8 = 2;

/// Marks of every moment, by rank.
fn marks(ranks: &[Vec<Moment>], links: &[Link], joins: &[Join]) -> Vec<Vec<u8>> {
    let mut marks: Vec<Vec<u8>> = ranks.iter().map(|moments| vec![0; moments.len()]).collect();
    let mut add = |at: At, mark: u8| marks[at.rank as usize][at.moment as usize] |= mark;
    for link in links {
        add(link.before, AWAITED);
        add(link.after, WAITS);
    }
    for join in joins {
        join.before.iter().for_each(|(at, _)| add(*at, AWAITED));
        join.after.iter().for_each(|(at, _)| add(*at, WAITS));
    }
    marks
}

/// The tasks of all ranks, grouped by rank.
struct Segments {
    tasks: Vec<Task>,
    /// The task before and the task after every moment, by rank.
    places: Vec<Vec<(u32, u32)>>,
    /// First task of every rank.
    first: Vec<u32>,
}

impl Segments {
    /// The task that ends before the moment.
    fn before(&self, at: At) -> u32 {
        self.places[at.rank as usize][at.moment as usize].0
    }

    /// The task that starts after the moment.
    fn after(&self, at: At) -> u32 {
        self.places[at.rank as usize][at.moment as usize].1
    }

    /// Each task of a rank with its successor.
    fn order(&self) -> impl Iterator<Item = (u32, u32)> {
        let ends = self.first.iter().skip(1).copied().chain([to_u32(self.tasks.len())]);
        self.first.iter().zip(ends).flat_map(|(first, end)| (*first + 1..end).map(|task| (task - 1, task)))
    }
}

/// A task under construction.
#[derive(Debug, Clone, Copy, Default)]
struct Open {
    work: u64,
    /// Ticks of computation since another task depends on it.
    since: Option<u64>,
}

/// Cuts the time of every rank into tasks: a task waits, computes, and then others depend on it.
///
/// If others depend on a task and it then computes only a tiny interval, the task continues, and the others
/// start slightly later. If a task has just started and waits again, it waits from its start. Neither
/// creates a cycle: a task that continues does not wait for anything new, and nothing depends yet on a task
/// that waits again.
fn cut(ranks: &[Vec<Moment>], marks: &[Vec<u8>], rules: Rules) -> Segments {
    let mut segments = Segments { tasks: Vec::new(), places: Vec::new(), first: Vec::new() };
    for ((rank, moments), marks) in (0..).zip(ranks).zip(marks) {
        segments.first.push(to_u32(segments.tasks.len()));
        let mut open = Open::default();
        let mut close = |open: &mut Open| {
            let work = open.work as f64 / rules.ticks_per_second;
            segments.tasks.push(Task { rank: Some(rank), work });
            *open = Open::default();
            to_u32(segments.tasks.len())
        };
        let mut number = segments.first[rank as usize];
        let mut places = Vec::with_capacity(moments.len());
        for (moment, mark) in moments.iter().zip(marks) {
            let compute = moment.compute;
            if open.since.is_some_and(|since| since.saturating_add(compute) > rules.tiny) {
                number = close(&mut open);
            }
            open.work = open.work.saturating_add(compute);
            open.since = open.since.map(|since| since.saturating_add(compute));
            let before = number;
            if mark & AWAITED != 0 {
                open.since.get_or_insert(0);
            }
            if mark & WAITS != 0 && (open.since.is_some() || open.work > rules.tiny) {
                number = close(&mut open);
            }
            places.push((before, number));
        }
        close(&mut open);
        segments.places.push(places);
    }
    segments
}
