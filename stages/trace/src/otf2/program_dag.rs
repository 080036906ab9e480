//! From an archive to tasks that wait for each other, by the moments of a location at which its process depends on others.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use hopmap_collectives::Convention;
use hopmap_model::{Context, Error, TaskDag};

use super::collectives::operation;
use super::communicators::{Communicators, is_nobody};
use super::program::{Overview, Program, Visited, read_by, warn};
use super::record_schema::OTF2_UNDEFINED_UINT64;
use super::visitor::{BadEvent, Collective, Event, Message, Through, Visitor};
use crate::call_stack::{Nested, OpenRegions};
use crate::dag::{Envelope, Joint, Members, Moment, Rules, Unmatched, What};
use crate::selection::{Call, Marks, RegionKind, Request};
use crate::{DagParams, Select, TraceError, dag};

/// The moments of a location, and what it did beside them.
type Followings = (Visited, Vec<Moment>, Untold);

/// Reads an archive into a graph of tasks.
pub(crate) fn program_dag(params: &DagParams, cx: &Context<'_>) -> Result<TaskDag, Error> {
    let path = params.path.path();
    let program = Program::open(path, !params.allow_truncated, cx)?;
    let Some(ticks_per_second) = program.ticks_per_second else {
        let problem = "does not say how long a tick of its clock is, so nobody knows how long a task takes";
        let help =
            "record the trace again with a tool that writes the properties of its clock, such as Score-P";
        return Err(TraceError::of(path, problem, help).into());
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
        let problem = format!(
            "does not say when {sent} messages were received: {sent_bytes} of {of_bytes} bytes are lost"
        );
        let help = "EZTrace leaves out receives that do not block: record with Score-P; or set `allow_loss` to the share of bytes that may be missing, 1 for any";
        return Err(TraceError::of(path, problem, help).into());
    }
    if let Err(task) = dag.order() {
        let rank = dag.tasks[task as usize].rank.unwrap_or_default();
        let (path, ends) = (path.display(), format!("what rank {rank} does waits for itself"));
        let (problem, help) = match params.rendezvous_bytes {
            Some(bytes) => (
                format!(
                    "the program in `{path}` hangs if messages of at least {bytes} bytes wait until they are asked for: {ends}"
                ),
                "the program ran, so its MPI sent longer messages at once: raise `rendezvous_bytes`, or leave it out",
            ),
            None => (
                format!("the messages in `{path}` contradict each other: {ends}"),
                "messages of some ranks are missing in the middle, so that others stand in their place: record the trace again",
            ),
        };
        return Err(TraceError::refused(problem, help).into());
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
    let warn = |what, count| warn(cx, what, count);
    let told = "messages of which the trace does not say when they were received, for which nobody waits here (EZTrace leaves out many of those that do not block)";
    warn(told, unmatched.sent);
    let told = "messages of which the trace does not say when they were sent, for which nobody waits here";
    warn(told, unmatched.received);
    let told =
        "messages whose receive names another communicator than their send, paired by ranks, tag and order";
    warn(told, unmatched.communicators);
    let told = "messages whose ends tell different lengths, so that they may be mistaken for each other";
    warn(told, unmatched.lengths);
    let told =
        "collective operations that not all of their processes recorded alike, for which nobody waits here";
    warn(told, unmatched.joints);
}

/// Stands for the request of the receive in `MPI_Sendrecv`; none has this number (`OTF2_UNDEFINED_UINT64`).
const EXCHANGE: u64 = u64::MAX;

/// What all locations are followed with.
#[derive(Clone, Copy)]
struct Followed<'a> {
    regions: &'a HashMap<u32, RegionKind>,
    communicators: &'a Communicators,
    /// Numbers of the groups of processes that take part in collective operations.
    groups: &'a HashMap<Through, u32>,
    /// Whether processes are ranks that can send.
    ranked: bool,
}

/// What is not followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Untold {
    /// Messages to `MPI_PROC_NULL`.
    to_nobody: u64,
    /// Accesses to remote memory.
    accesses: u64,
    /// Collective operations between two groups, within a process, of devices or of unknown size.
    elsewhere: u64,
    /// Messages and operations of locations that belong to no process.
    without_process: u64,
}

/// Follows a location.
struct Moments<'a> {
    followed: Followed<'a>,
    /// Rank of its process, if it belongs to one.
    rank: Option<u32>,
    /// Regions by place.
    regions: Vec<RegionKind>,
    places: HashMap<u32, u32>,
    /// The regions it is in.
    open: OpenRegions<RegionKind>,
    /// How long it has been in calls of MPI.
    communicating: Nested,
    /// How many open regions are `MPI_Sendrecv` or one of its kin.
    exchanging: u32,
    /// Moments with the ticks in communication up to then in place of those that it computed.
    told: Vec<Moment>,
    bad_event: Option<BadEvent>,
    untold: Untold,
}

impl<'a> Moments<'a> {
    fn new(followed: Followed<'a>, rank: Option<u32>) -> Self {
        Self {
            followed,
            rank,
            regions: Vec::new(),
            places: HashMap::new(),
            open: OpenRegions::new(),
            communicating: Nested::default(),
            exchanging: 0,
            told: Vec::new(),
            bad_event: None,
            untold: Untold::default(),
        }
    }

    /// The moments of a location whose first and last event were at these times. Only the main thread computes.
    fn finish(mut self, (first, last): (u64, u64), main: bool) -> Vec<Moment> {
        if main {
            self.add(What::End, last);
        }
        let mut before = (first, 0);
        for moment in &mut self.told {
            let now = (moment.time, moment.compute);
            let passed = now.0.saturating_sub(before.0);
            moment.compute = if main { passed.saturating_sub(now.1.saturating_sub(before.1)) } else { 0 };
            before = now;
        }
        self.told
    }

    fn add(&mut self, what: What, time: u64) {
        self.told.push(Moment { time, compute: self.communicating.until(time), what });
    }

    fn bad(&mut self, event: u64, what: impl Into<Cow<'static, str>>) {
        self.bad_event.get_or_insert(BadEvent { event, what: what.into() });
    }

    /// What tells a message apart from others, if it has two ends that matter.
    fn envelope(&mut self, number: u64, message: &Message) -> Option<Envelope> {
        if is_nobody(message.peer) {
            self.untold.to_nobody += 1;
            return None;
        }
        if message.bytes == OTF2_UNDEFINED_UINT64 {
            self.bad(number, "it moves an unknown number of bytes");
            return None;
        }
        if !self.followed.ranked {
            self.bad(number, "it sends, but the archive defines no MPI ranks");
            return None;
        }
        let Some(rank) = self.rank else {
            self.untold.without_process += 1;
            return None;
        };
        match self.followed.communicators.receiver(message.communicator, rank, message.peer) {
            Ok(peer) => Some(Envelope { peer, communicator: message.communicator, tag: message.tag }),
            Err(reason) => {
                self.bad(number, reason.to_string());
                None
            }
        }
    }

    fn collective(&mut self, collective: Collective, request: Option<u64>, time: u64) {
        let Some(operation) = operation(collective.operation) else { return };
        let Collective { root, sent, received, .. } = collective;
        let group = self.followed.groups.get(&collective.through).copied();
        let known = ![sent, received].contains(&OTF2_UNDEFINED_UINT64);
        match group.filter(|_| known && self.rank.is_some()) {
            Some(group) => {
                let joint = Joint { group, operation, root, sent, received };
                self.add(What::Complete { joint, request }, time);
            }
            None => self.untold.elsewhere += 1,
        }
    }
}

impl Visitor for Moments<'_> {
    const BOTH_ENDS: bool = true;

    fn place(&mut self, region: u32) -> u32 {
        let next = self.regions.len() as u32;
        let place = *self.places.entry(region).or_insert(next);
        if place == next {
            self.regions.push(self.followed.regions.get(&region).copied().unwrap_or_default());
        }
        place
    }

    fn enter(&mut self, place: u32, time: impl Fn() -> u64) {
        let kind = self.regions[place as usize];
        self.open.enter(place, kind);
        if kind.communication {
            self.communicating.turn(true, &time);
        }
        if kind.call == Call::SendReceive {
            self.exchanging += 1;
            // It asks for a message before it sends one.
            self.add(What::Post { request: EXCHANGE }, time());
        }
    }

    fn leave(&mut self, place: u32, time: impl Fn() -> u64) {
        let Self { communicating, exchanging, .. } = self;
        self.open.leave(place, |kind| {
            *exchanging -= u32::from(kind.call == Call::SendReceive);
            if kind.communication {
                communicating.turn(false, &time);
            }
        });
    }

    fn send(&mut self, number: u64, message: Message, time: impl Fn() -> u64) {
        if let Some(envelope) = self.envelope(number, &message) {
            let Message { bytes, request, .. } = message;
            self.add(What::Send { envelope, bytes, request }, time());
        }
    }

    fn event(&mut self, number: u64, event: Event, time: impl Fn() -> u64) {
        match event {
            Event::Received(message) => {
                if let Some(envelope) = self.envelope(number, &message) {
                    let exchange = (self.exchanging > 0).then_some(EXCHANGE);
                    let (bytes, request) = (message.bytes, message.request.or(exchange));
                    self.add(What::Receive { envelope, bytes, request }, time());
                }
            }
            Event::Cancelled(request) => self.add(What::Cancel { request }, time()),
            Event::SendCompleted(request) => self.add(What::Sent { request }, time()),
            Event::ReceivePosted(request) => self.add(What::Post { request }, time()),
            Event::CollectivePosted(request) => self.add(What::Begin { request }, time()),
            Event::Collective(collective, request) => self.collective(collective, request, time()),
            Event::Access(_) => self.untold.accesses += 1,
        }
    }

    fn bad_event(&self) -> Option<&BadEvent> {
        self.bad_event.as_ref()
    }
}
