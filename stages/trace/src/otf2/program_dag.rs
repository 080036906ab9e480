//! From an archive to tasks that wait for each other.

use std::collections::{BTreeMap, HashMap};

use hopmap_model::{Context, Error, TaskDag};

use super::moments::{Followed, Moments, Untold};
use super::program::{Overview, Program, Visited, read_by, warn};
use super::visitor::Through;
use crate::dag::{self, Members, Moment, Rules, Unmatched};
use crate::error::DagError;
use crate::selection::{Marks, Request};
use crate::{DagParams, Select};
use hopmap_collectives::Convention;

/// The moments of a location, and what it did beside them.
type Followings = (Visited, Vec<Moment>, Untold);

/// Reads an archive into a graph of tasks.
pub(crate) fn program_dag(params: &DagParams, cx: &Context<'_>) -> Result<TaskDag, Error> {
    let path = params.archive.path();
    let program = Program::open(path, !params.allow_truncated, cx)?;
    let Some(ticks_per_second) = program.ticks_per_second else {
        return Err(DagError::NoClock { path: path.to_owned() }.into());
    };
    let everything = Select::default();
    let request = Request { select: &everything, phases: None, sizes: false };
    let regions = program.definitions.region_kinds(&mut Marks::new(&request));
    let (numbers, groups) = groups(&program);
    let followed = Followed {
        regions: &regions,
        communicators: &program.communicators,
        groups: &numbers,
        ranked: program.processes.ranked,
    };
    let followings = read_by(params.reader, cx, |way| {
        let visitor = |location| Moments::new(followed, program.processes.rank(location));
        program.visit(way, cx, visitor, |visited, moments| {
            let untold = moments.untold;
            let main = program.processes.is_main(visited.location);
            let moments = moments.finish(visited.span.unwrap_or_default(), main);
            Ok((visited, moments, untold))
        })
    })?;
    report(&program, &followings, cx);
    let ranks = by_rank(&program, followings);
    let tiny = (params.tiny_s * ticks_per_second) as u64;
    let rules = Rules { ticks_per_second, tiny, rendezvous: params.rendezvous_bytes };
    let convention = Convention::of_creator(&program.anchor.creator);
    let (dag, unmatched) = dag::build(&ranks, &groups, &members(&program), convention, rules);
    drop(ranks);
    report_unmatched(unmatched, cx);
    let Unmatched { sent, sent_bytes, of_bytes, .. } = unmatched;
    // A trace that is cut off lacks receives wherever it was cut.
    if !params.allow_truncated && sent_bytes as f64 > params.allow_loss * of_bytes as f64 {
        return Err(
            DagError::Loss { path: path.to_owned(), messages: sent, bytes: sent_bytes, of_bytes }.into()
        );
    }
    if let Err(task) = dag.order() {
        let rank = dag.tasks[task as usize].rank.unwrap_or_default();
        return Err(match params.rendezvous_bytes {
            Some(bytes) => DagError::Deadlock { path: path.to_owned(), rank, bytes },
            None => DagError::Contradiction { path: path.to_owned(), rank },
        }
        .into());
    }
    Ok(dag)
}

/// The groups of processes that can take part in collective operations: the number of each by what it goes through,
/// and its ranks.
fn groups(program: &Program) -> (HashMap<Through, u32>, Vec<Vec<u32>>) {
    let definitions = &program.definitions;
    let communicators = definitions.communicators.keys().map(|id| Through::Communicator(*id));
    let windows = definitions.windows.keys().map(|id| Through::Window(*id));
    let (mut numbers, mut groups) = (HashMap::new(), Vec::new());
    for through in communicators.chain(windows) {
        if let Some(members) = program.communicators.members(through) {
            numbers.insert(through, groups.len() as u32);
            groups.push(members.to_vec());
        }
    }
    (numbers, groups)
}

fn members(program: &Program) -> Members {
    let ids = program.definitions.communicators.keys();
    let of = |&id: &u32| Some((id, program.communicators.members(Through::Communicator(id))?.to_vec()));
    ids.filter_map(of).collect()
}

/// The moments of every rank in the order in which they came, whichever of its locations they are of.
fn by_rank(program: &Program, followings: Vec<Followings>) -> Vec<Vec<Moment>> {
    let mut locations: BTreeMap<u32, Vec<Vec<Moment>>> = BTreeMap::new();
    for (visited, moments, _) in followings {
        if let Some(rank) = program.processes.rank(visited.location).filter(|_| !moments.is_empty()) {
            locations.entry(rank).or_default().push(moments);
        }
    }
    let of_rank = |rank| merge(locations.remove(&rank).unwrap_or_default());
    (0..program.processes.list.len() as u32).map(of_rank).collect()
}

/// Merges the moments of locations by time; those of one location keep their order, even if its clock goes back.
fn merge(mut locations: Vec<Vec<Moment>>) -> Vec<Moment> {
    if locations.len() < 2 {
        return locations.pop().unwrap_or_default();
    }
    let mut all: Vec<(u64, Moment)> = Vec::new();
    for moments in locations {
        let mut latest = 0;
        all.extend(moments.into_iter().map(|moment| {
            latest = moment.time.max(latest);
            (latest, moment)
        }));
    }
    all.sort_by_key(|(time, _)| *time);
    all.into_iter().map(|(_, moment)| moment).collect()
}

/// Tells what was read and what does not matter.
fn report(program: &Program, followings: &[Followings], cx: &Context<'_>) {
    let mut overview = Overview::default();
    followings.iter().for_each(|(visited, ..)| overview.add(visited));
    let (processes, locations, events) = (program.processes.list.len(), overview.locations, overview.events);
    cx.log(format_args!("{processes} processes, {locations} locations, {events} events"));
    let sum = |of: fn(&Untold) -> u64| followings.iter().map(|(.., untold)| of(untold)).sum::<u64>();
    let warn = |what, count| warn(cx, what, count);
    warn("accesses to remote memory, for which nobody waits here", sum(|untold| untold.accesses));
    warn("messages to or from MPI_PROC_NULL, which do not count", sum(|untold| untold.to_nobody));
    warn(
        "collective operations between two groups, within a process or of unknown size, for which nobody waits here",
        sum(|untold| untold.elsewhere),
    );
    warn(
        "messages of locations that belong to no MPI rank, or to several, for which nobody waits here",
        sum(|untold| untold.without_process),
    );
    overview.warn(cx);
}

fn report_unmatched(unmatched: Unmatched, cx: &Context<'_>) {
    warn(
        cx,
        "messages of which the trace does not say when they were received, for which nobody waits here (EZTrace leaves out many of those that do not block)",
        unmatched.sent,
    );
    warn(
        cx,
        "messages of which the trace does not say when they were sent, for which nobody waits here",
        unmatched.received,
    );
    warn(
        cx,
        "messages whose receive names another communicator than their send, paired by ranks, tag and order",
        unmatched.communicators,
    );
    warn(
        cx,
        "messages whose ends tell different lengths, so that they may be mistaken for each other",
        unmatched.lengths,
    );
    warn(
        cx,
        "collective operations that not all of their processes recorded alike, for which nobody waits here",
        unmatched.joints,
    );
}
