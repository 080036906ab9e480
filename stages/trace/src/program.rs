//! The operations of a program from the matched moments of its processes, or from its task DAG.
//!
//! A message keeps both ends at their places: a nonblocking receive is posted where the trace says so, and
//! completed where it was received. What has no counterpart is left out at both ends. A nonblocking
//! collective operation blocks where it completes, or where a later one of its communicator completes if that
//! is earlier, so that all members keep the order in which MPI requires them to start; [`order`](crate::order) moves it if
//! its members would wait for each other there.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use hopmap_model::{Collective, Context, Envelope, Program, ProgramBuilder, ProgramError, TaskDag, to_u32};
use hopmap_replay::{Step, steps};
use hopmap_text::check_stop;

use crate::archive::log_count;
use crate::error::TraceError;
use crate::matching::{
    At, Joint, Matched, Meeting, Members, Moment, Part, Unmatched, What, match_collectives, match_messages,
};
use crate::order::{Event, Events, Meetings, Needs, ordered};

/// The records of all processes.
pub(crate) struct Records<'a> {
    /// The moments of every rank, in order.
    pub(crate) ranks: &'a [Vec<Moment>],
    /// The ranks of every group that takes part in collective operations.
    pub(crate) groups: &'a [Vec<u32>],
    /// The group of each communicator.
    pub(crate) communicators: &'a BTreeMap<u32, u32>,
    /// The ranks of every communicator.
    pub(crate) members: &'a Members,
    /// Bytes of the block of each member in a collective operation; `None` if its sizes are contradictory.
    pub(crate) blocks: &'a dyn Fn(&Meeting<'_>) -> Option<Vec<u64>>,
    pub(crate) ticks_per_second: f64,
    /// Whether threads call MPI at the same time.
    pub(crate) are_overlapping: bool,
}

/// What a program lacks.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lacking {
    pub(crate) unmatched: Unmatched,
    /// Collective operations whose sizes contradict each other.
    pub(crate) contradictory: u64,
    /// Nonblocking collective operations, which block where they complete or before.
    pub(crate) nonblocking: u64,
    /// Time of the first operation of each rank that is left out.
    pub(crate) since: BTreeMap<u32, u64>,
}

impl Lacking {
    /// Logs what a program lacks. Gives how much time that touches, as [`Program::left_out`]. `cut` has the time of the last event of each
    /// rank whose events end too early, and `end` that of the last event of all.
    pub(crate) fn log(
        &self,
        records: &Records<'_>,
        (end, cut): (u64, &BTreeMap<u32, u64>),
        cx: &Context<'_>,
    ) -> Duration {
        let contradictory =
            "warning: collective operations with contradictory sizes, which are not in the program";
        log_count(cx, contradictory, self.contradictory);
        let nonblocking = "warning: nonblocking collective operations, which block where they complete, or earlier if ranks would wait for each other";
        log_count(cx, nonblocking, self.nonblocking);
        let mut since = self.since.clone();
        for (rank, cut) in cut {
            let first = since.entry(*rank).or_insert(*cut);
            *first = (*first).min(*cut);
        }
        if since.is_empty() {
            return Duration::ZERO;
        }
        let end_of = |rank: u32| match cut.contains_key(&rank) {
            true => end,
            false => records.ranks[rank as usize].last().map_or(0, |moment| moment.time),
        };
        let touched = since.iter().map(|(&rank, &since)| u128::from(end_of(rank).saturating_sub(since)));
        let seconds = touched.sum::<u128>() as f64 / records.ticks_per_second;
        let ranks = since.len();
        cx.log(format_args!(
            "warning: operations of {ranks} ranks are left out; from the first of each rank to its end, that touches {seconds:.6} s together"
        ));
        // At least a nanosecond: a program whose last operation is missing lacks something.
        Duration::try_from_secs_f64(seconds).unwrap_or_default().max(Duration::from_nanos(1))
    }
}

/// The program, and what is left out of it. `inconsistent` gives the error of operations that contradict each other.
pub(crate) fn build(
    records: &Records<'_>,
    cx: &Context<'_>,
    inconsistent: impl FnOnce(ProgramError) -> TraceError,
) -> Result<(Program, Lacking), TraceError> {
    let mut lacking = Lacking::default();
    let messages = match_messages(records.ranks, records.members, &mut lacking.unmatched, cx)?;
    let mut events: Vec<Events> = vec![Events::new(); records.ranks.len()];
    for (number, message) in (0..).zip(&messages) {
        check_stop(number as usize, cx)?;
        let Matched { source, sent, posted, destination, .. } = *message;
        let mut add = |at: At, event| events[at.rank as usize].push((at.moment, event));
        add(source, Event::Send(number));
        if let Some(moment) = sent.filter(|sent| *sent != source.moment) {
            add(At { moment, ..source }, Event::Sent(number));
        }
        if posted != destination.moment {
            add(At { moment: posted, ..destination }, Event::Post(number));
        }
        add(destination, Event::Receive(number));
    }
    let mut builder = Builder::new(records, &messages);
    let mut called: Vec<Vec<(Part, u32)>> = vec![Vec::new(); records.ranks.len()];
    match_collectives(records.ranks, records.groups, &mut lacking.unmatched, cx, |meeting| {
        builder.meet(meeting, &mut called, &mut lacking.contradictory);
    })?;
    for (events, called) in events.iter_mut().zip(called) {
        check_stop(0, cx)?;
        lacking.nonblocking += add_collectives(&called, events);
        events.sort_by_key(|(moment, _)| *moment);
    }
    if lacking.nonblocking > 0 {
        let found =
            ordered(events, &messages, &builder.meetings, records.groups, records.are_overlapping, cx)?;
        events = found.ok_or_else(|| {
            let problem = match records.are_overlapping {
                true => {
                    "threads call MPI at the same time, and no order is found in which they do not wait for each other"
                }
                false => "ranks wait for each other wherever the nonblocking collective operations block",
            };
            TraceError::refused(
                problem,
                "the trace lacks calls, or has them in another order than the program",
            )
        })?;
    }
    for (rank, events) in (0..).zip(events) {
        if let Some(time) = builder.rank(rank, &events, cx)? {
            lacking.since.insert(rank, time);
        }
    }
    Ok((builder.program.finish().map_err(inconsistent)?, lacking))
}

/// Adds the collective operations of a rank to its events. Gives the number of nonblocking ones.
fn add_collectives(called: &[(Part, u32)], events: &mut Events) -> u64 {
    let mut nonblocking = 0;
    for (part, call) in called {
        if part.begun != part.complete {
            nonblocking += 1;
            events.push((part.begun, Event::Begin(*call)));
        }
        events.push((part.complete, Event::Collective(*call)));
    }
    nonblocking
}

/// Appends the operations of all ranks.
struct Builder<'a> {
    records: &'a Records<'a>,
    messages: &'a [Matched],
    program: ProgramBuilder,
    /// Communicators of the program by group, or by id where they have no group.
    communicators: HashMap<Through, u32>,
    /// Communicators of the program by id, source and destination of messages.
    of_messages: HashMap<(u32, u32, u32), u32>,
    /// Collective operations of single ranks, with their bytes.
    calls: Vec<(Collective, u64)>,
    meetings: Meetings,
}

/// Identifies a communicator of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Through {
    Group(u32),
    /// A communicator whose two ends are not in one group.
    Id(u32),
}

impl<'a> Builder<'a> {
    fn new(records: &'a Records<'a>, messages: &'a [Matched]) -> Self {
        let ranks = to_u32(records.ranks.len());
        let is_world = |members: &Vec<u32>| members.iter().copied().eq(0..ranks);
        let world = (0..).zip(records.groups).find(|(_, members)| is_world(members));
        Self {
            records,
            messages,
            program: ProgramBuilder::new(ranks),
            communicators: world.map(|(group, _)| (Through::Group(group), 0)).into_iter().collect(),
            of_messages: HashMap::new(),
            calls: Vec::new(),
            meetings: Meetings::default(),
        }
    }

    fn group(&mut self, group: u32) -> u32 {
        let Self { records, program, communicators, .. } = self;
        *communicators
            .entry(Through::Group(group))
            .or_insert_with(|| program.communicator(records.groups[group as usize].clone()))
    }

    /// The communicator of a message between two ranks.
    fn communicator(&mut self, id: u32, ends: [u32; 2]) -> u32 {
        let group = self.records.communicators.get(&id).copied();
        let has_both = |group: &u32| {
            let members = &self.records.groups[*group as usize];
            members.len() == self.records.ranks.len() || ends.iter().all(|rank| members.contains(rank))
        };
        if let Some(group) = group.filter(has_both) {
            return self.group(group);
        }
        let Self { program, communicators, .. } = self;
        let ranks = program.ranks();
        *communicators.entry(Through::Id(id)).or_insert_with(|| program.communicator((0..ranks).collect()))
    }

    /// Adds a collective operation to the calls of its members.
    fn meet(&mut self, meeting: &Meeting<'_>, called: &mut [Vec<(Part, u32)>], contradictory: &mut u64) {
        let Joint { group, operation, root, .. } = meeting.parts[0].joint;
        let Some(blocks) = (self.records.blocks)(meeting) else {
            *contradictory += 1;
            return;
        };
        let communicator = self.group(group);
        let collective = Collective { communicator, operation, root: operation.has_root().then_some(root) };
        let number = to_u32(self.meetings.list.len());
        self.meetings.list.push((to_u32(self.calls.len()), group));
        self.meetings.needs.push(Needs::of(operation, root));
        for ((rank, part), bytes) in meeting.members.iter().zip(meeting.parts).zip(blocks) {
            called[*rank as usize].push((*part, to_u32(self.calls.len())));
            self.calls.push((collective, bytes));
            self.meetings.of_call.push(number);
        }
    }

    /// Appends the operations of a rank. Gives the time of the first one that is left out.
    fn rank(
        &mut self,
        rank: u32,
        events: &[(u32, Event)],
        cx: &Context<'_>,
    ) -> Result<Option<u64>, TraceError> {
        let mut requests = HashMap::new();
        let mut events = events.iter().peekable();
        let mut ticks = 0u64;
        let mut lost = None;
        for (place, moment) in (0..).zip(&self.records.ranks[rank as usize]) {
            check_stop(place as usize, cx)?;
            ticks = ticks.saturating_add(moment.compute);
            let mut is_there = false;
            while let Some((_, event)) = events.next_if(|(at, _)| *at == place) {
                let seconds = std::mem::take(&mut ticks) as f64 / self.records.ticks_per_second;
                self.program.compute(rank, seconds);
                self.event(rank, *event, &mut requests);
                is_there = true;
            }
            let is_part =
                matches!(moment.what, What::Send { .. } | What::Receive { .. } | What::Complete { .. });
            // A collective operation may have moved to an earlier moment.
            let is_lost =
                is_part && !is_there && !matches!(moment.what, What::Complete { request: Some(_), .. });
            lost = lost.or(is_lost.then_some(moment.time));
        }
        self.program.compute(rank, ticks as f64 / self.records.ticks_per_second);
        Ok(lost)
    }

    /// Appends an operation. `requests` are the active ones by message, of sends and of receives.
    fn event(&mut self, rank: u32, event: Event, requests: &mut HashMap<(u32, bool), u32>) {
        let (number, is_send) = match event {
            Event::Send(number) | Event::Sent(number) => (number, true),
            Event::Post(number) | Event::Receive(number) => (number, false),
            Event::Collective(number) => {
                let (collective, bytes) = self.calls[number as usize];
                return self.program.collective(rank, collective, bytes);
            }
            Event::Begin(_) => return,
        };
        let key = (number, is_send);
        if let Event::Sent(_) | Event::Receive(_) = event
            && let Some(request) = requests.remove(&key)
        {
            return self.program.wait(rank, request);
        }
        let message = self.messages[number as usize];
        let Some(envelope) = self.envelope(message, is_send) else { return };
        let (program, bytes) = (&mut self.program, message.bytes);
        match event {
            Event::Send(_) if message.sent == Some(message.source.moment) => {
                program.send(rank, envelope, bytes);
            }
            Event::Send(_) => drop(requests.insert(key, program.isend(rank, envelope, bytes))),
            Event::Post(_) => drop(requests.insert(key, program.irecv(rank, envelope, bytes))),
            Event::Receive(_) => program.recv(rank, envelope, bytes),
            Event::Sent(_) | Event::Begin(_) | Event::Collective(_) => {}
        }
    }

    /// The envelope of a message at one of its ends: that of the send.
    fn envelope(&mut self, message: Matched, is_send: bool) -> Option<Envelope> {
        let (source, destination) = (message.source.rank, message.destination.rank);
        let sent = self.records.ranks[source as usize][message.source.moment as usize].what;
        let What::Send { envelope, .. } = sent else { return None };
        let key = (envelope.communicator, source, destination);
        let communicator = match self.of_messages.get(&key) {
            Some(communicator) => *communicator,
            None => {
                let communicator = self.communicator(envelope.communicator, [source, destination]);
                self.of_messages.insert(key, communicator);
                communicator
            }
        };
        let peer = if is_send { destination } else { source };
        Some(Envelope { peer, tag: envelope.tag, communicator })
    }
}

/// The steps of every rank of a task DAG. Warns if no rank sends.
pub(crate) fn steps_of(dag: &TaskDag, cx: &Context<'_>) -> Result<Vec<Vec<Step>>, TraceError> {
    let ranks = steps(dag)?;
    if ranks.len() > 1 && ranks.iter().flatten().all(|step| step.sent.is_empty()) {
        cx.log("warning: no task depends on a task of another rank, so the program does not send messages");
    }
    Ok(ranks)
}

/// A task DAG as a program of eager messages: every rank runs its tasks in a topological order, receives
/// what a task waits for before it, and sends after it without ever waiting for the send.
pub(crate) fn of_dag(dag: &TaskDag, cx: &Context<'_>) -> Result<Program, TraceError> {
    let ranks = steps_of(dag, cx)?;
    let mut program = ProgramBuilder::new(to_u32(ranks.len()));
    for (rank, steps) in (0..).zip(ranks) {
        for Step { work, received, sent, .. } in steps {
            for message in received {
                let envelope = Envelope { peer: message.peer, tag: message.tag, communicator: 0 };
                program.recv(rank, envelope, message.bytes);
            }
            program.compute(rank, work);
            for message in sent {
                let envelope = Envelope { peer: message.peer, tag: message.tag, communicator: 0 };
                program.isend(rank, envelope, message.bytes);
            }
        }
    }
    program
        .finish()
        .map_err(|error| TraceError::refused(format!("the tasks cannot be replayed: {error}"), ""))
}
