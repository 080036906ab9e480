//! The program of a recording with the events of every rank (`hopmap record --events`).
//!
//! Computation is the time that the thread that communicates spends outside MPI. If several do, it is the time
//! in which none of them communicates: what the others compute meanwhile is taken to be hidden.
//!
//! A rank has one sequence of operations. If threads call MPI at the same time, calls of all ranks begin where they began and
//! complete where they ended, as nonblocking ones do, and no send waits for its receive: a rank then waits only for what others
//! had sent or begun before in the recorded run, so that no threads wait for each other because they are in one sequence.
//!
//! Ranks have clocks of their own, of which only differences matter. The recorder names the message that every receive received, so messages are matched
//! exactly, in the order in which their sends and receives were posted.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::path::{Path, PathBuf};

use hopmap_collectives::Operation;
use hopmap_model::{Context, Error, InputPath, Program, to_u32};
use hopmap_recording::{
    Call, CollectiveCall, Description, Event, EventCommunicator, EventFile, Message, OtherCall, event_files,
};

use crate::archive::log_count;
use crate::error::TraceError;
use crate::matching::{EXCHANGE, Envelope, Joint, Meeting, Members, Moment, What};
use crate::params::ProgramParams;
use crate::program::{self, Records};

/// Times are counted in picoseconds: rounding must not add up over billions of calls.
const TICKS_PER_SECOND: f64 = 1e12;

/// Events between two checks whether to stop: some milliseconds.
const EVENTS: usize = 1 << 16;

/// The files that the program of a recording is read from.
pub(crate) fn files(folder: &Path) -> Result<Vec<InputPath>, TraceError> {
    let description = InputPath::named(folder.join("record.json"), "record.json");
    let events = event_files(folder)?.into_iter();
    let named = events.map(|(rank, path)| InputPath::named(path, format!("events-{rank}.bin")));
    Ok([description].into_iter().chain(named).collect())
}

/// Reads a recording.
pub(crate) fn program(folder: &Path, params: &ProgramParams, cx: &Context<'_>) -> Result<Program, Error> {
    let mut reading = Reading::default();
    let mut ranks = Vec::new();
    let paths = event_paths(folder)?;
    while let Some(path) = paths.get(ranks.len()) {
        let rank = to_u32(ranks.len());
        cx.progress(u64::from(rank), paths.len() as u64);
        match reading.rank(path, (rank, to_u32(paths.len())), params.allow_truncated, cx)? {
            Some(moments) => ranks.push(moments),
            None => {
                cx.log("threads call MPI at the same time: sends wait for nothing, and what threads compute while others communicate is hidden");
                reading = Reading { are_overlapping: true, ..Reading::default() };
                ranks.clear();
            }
        }
    }
    let groups = reading.groups;
    let numbers = || (0..to_u32(groups.len())).map(|number| (number, number));
    let records = Records {
        ranks: &ranks,
        groups: &groups,
        communicators: &numbers().collect(),
        members: &Members::new(),
        blocks: &blocks,
        ticks_per_second: TICKS_PER_SECOND,
        are_overlapping: reading.are_overlapping,
    };
    let (mut program, lacking) = program::build(&records, cx, |error| {
        let problem = format!("the events in `{}` are inconsistent: {error}", folder.display());
        TraceError::refused(problem, "the recording is incomplete: record the program again")
    })?;
    reading.left_out.log(cx);
    let unmatched = lacking.unmatched;
    let warn = |what: &str, count| log_count(cx, &format!("warning: {what}"), count);
    warn("messages without a receive event, which are not in the program", unmatched.sent);
    warn("messages without a send event, which are not in the program", unmatched.received);
    warn("messages whose send and receive have different lengths", unmatched.lengths);
    warn(
        "collective operations that some ranks did not record, which are not in the program",
        unmatched.joints,
    );
    if !params.allow_truncated && unmatched.sent_bytes as f64 > params.allow_loss * unmatched.of_bytes as f64
    {
        let problem = format!(
            "lacks the receive events of {} messages ({} of {} bytes)",
            unmatched.sent, unmatched.sent_bytes, unmatched.of_bytes
        );
        let help = "the program was ended before they were received: set `allow_loss` to the fraction of bytes that may be missing (1: any)";
        return Err(TraceError::of(folder, problem, help).into());
    }
    program.left_out = lacking.log(&records, (reading.end, &reading.cut), cx);
    program.is_approximate = reading.are_overlapping || reading.left_out.has_communication();
    Ok(program)
}

/// The files of all ranks.
fn event_paths(folder: &Path) -> Result<Vec<PathBuf>, TraceError> {
    let description = folder.join("record.json");
    let described = description.is_file().then(|| Description::read(&description)).transpose()?;
    let files = event_files(folder)?;
    let ranks = described.map_or(to_u32(files.len()), |description| description.ranks);
    if files.is_empty() {
        let problem = "has no events of calls";
        return Err(TraceError::of(
            folder,
            problem,
            "record the program again with `hopmap record --events`",
        ));
    }
    let mut files: BTreeMap<u32, PathBuf> = files.into_iter().collect();
    let file = |rank: u32| {
        let missing = || TraceError::of(folder, format!("has no events of rank {rank} of {ranks}"), "");
        files.remove(&rank).ok_or_else(missing)
    };
    (0..ranks).map(file).collect()
}

/// Bytes of the block of each rank from those that it sent: what the recorder counts.
fn blocks(meeting: &Meeting<'_>) -> Option<Vec<u64>> {
    use Operation::{
        AllToAll, AllToAllV, AllToAllW, Barrier, Broadcast, ReduceScatter, ReduceScatterBlock, Scatter,
        ScatterV,
    };
    let Joint { operation, root, .. } = meeting.parts[0].joint;
    let (sent, ranks) = (meeting.sent(), meeting.members.len());
    let of_root = || sent.get(root as usize).copied();
    Some(match operation {
        Barrier => vec![0; ranks],
        Broadcast => vec![of_root()?; ranks],
        Scatter | ScatterV => vec![of_root()?.div_ceil(ranks as u64); ranks],
        AllToAll | AllToAllV | AllToAllW | ReduceScatter | ReduceScatterBlock => {
            sent.iter().map(|bytes| bytes.div_ceil(ranks as u64)).collect()
        }
        _ => sent.to_vec(),
    })
}

/// Counters of what is left out or changed.
#[derive(Debug, Default)]
struct LeftOut {
    one_sided: (u64, f64),
    partitioned: (u64, f64),
    neighbourhood: u64,
    between_groups: u64,
    freed: u64,
    /// Seconds between calls that asked in vain.
    polling: f64,
}

/// State over all ranks.
#[derive(Debug, Default)]
struct Reading {
    /// Whether threads call MPI at the same time.
    are_overlapping: bool,
    /// Numbers of communicators by id and members.
    numbers: HashMap<(u64, Vec<u32>), u32>,
    groups: Vec<Vec<u32>>,
    left_out: LeftOut,
    /// Time of the last event of all ranks, in ticks.
    end: u64,
    /// Time of the last event of ranks whose events end too early.
    cut: BTreeMap<u32, u64>,
}

/// Whether other ranks may depend on the order of this call among those of its rank.
fn is_part(call: &Call) -> bool {
    !matches!(call, Call::Other(_) | Call::Polls { .. } | Call::Wait | Call::Test | Call::Freed { .. })
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the conversion saturates, and negative times are zero"
)]
fn ticks(seconds: f64) -> u64 {
    (seconds * TICKS_PER_SECOND) as u64
}

impl Reading {
    /// The moments of a rank; `None` if its threads turn out to call MPI at the same time.
    fn rank(
        &mut self,
        path: &Path,
        (rank, ranks): (u32, u32),
        allow_truncated: bool,
        cx: &Context<'_>,
    ) -> Result<Option<Vec<Moment>>, TraceError> {
        let file = EventFile::open(path, rank, ranks)?;
        if file.truncated && !allow_truncated {
            let help = "the program was killed, or the file was not copied completely: record it again, or use the part before with `allow_truncated = true`";
            return Err(TraceError::of(path, "is truncated", help));
        }
        if let Some(reason) = file.incomplete() {
            cx.log(format_args!("warning: the events of rank {rank} are incomplete: {reason}"));
            self.cut.insert(rank, 0);
        }
        let mut moments = RankMoments {
            communicators: file.communicators().iter().map(|known| self.communicator(known)).collect(),
            left_out: &mut self.left_out,
            recorded: Vec::new(),
            collectives: HashMap::new(),
            overlapping: self.are_overlapping.then(Overlapping::default),
            outside: HashMap::new(),
            last: (0, 0.0),
            compute: 0,
            time: 0,
        };
        for (number, event) in file.events().enumerate() {
            if number.is_multiple_of(EVENTS) && cx.should_stop() {
                let problem = format!("stopped after {rank} of {ranks} ranks");
                return Err(TraceError::refused(problem, ""));
            }
            match event {
                Ok(event) if !self.are_overlapping && moments.overlaps(&event) => return Ok(None),
                Ok(event) => moments.event(&event),
                Err(damage) if allow_truncated => {
                    cx.log(format_args!("warning: only the events before the damage count: {damage}"));
                    self.cut.insert(rank, 0);
                    break;
                }
                Err(damage) => return Err(damage.into()),
            }
        }
        moments.end();
        let (recorded, time) = (moments.recorded, moments.time);
        self.end = self.end.max(time);
        if let Some(cut) = self.cut.get_mut(&rank) {
            *cut = time;
        }
        Ok(Some(recorded))
    }

    /// The number of a communicator, and whether it has two groups.
    fn communicator(&mut self, known: &EventCommunicator) -> (u32, bool) {
        let next = to_u32(self.groups.len());
        let number = *self.numbers.entry((known.id, known.members.clone())).or_insert(next);
        if number == next {
            self.groups.push(known.members.clone());
        }
        (number, known.has_two_groups())
    }
}

/// Collects the moments of a rank.
struct RankMoments<'a> {
    /// Number of each communicator of the file, and whether it has two groups.
    communicators: Vec<(u32, bool)>,
    left_out: &'a mut LeftOut,
    recorded: Vec<Moment>,
    /// Active nonblocking collective operations by request; `None` for those that are left out.
    collectives: HashMap<u32, Option<Joint>>,
    /// What goes on, if threads call MPI at the same time.
    overlapping: Option<Overlapping>,
    /// Ticks of computation of every thread since it communicated.
    outside: HashMap<u32, u64>,
    /// The thread whose call ended last, and when in seconds; first, the one that the recording begins with.
    last: (u32, f64),
    /// Ticks of computation since the last moment.
    compute: u64,
    time: u64,
}

/// What goes on at a rank whose threads call MPI at the same time. The place of a moment is the number of its request: those of the
/// recorder are used again before the call has ended that completes them.
#[derive(Debug, Default)]
struct Overlapping {
    /// Posted receives by request.
    receives: HashMap<u32, u64>,
    /// Active nonblocking collective operations by request; `None` for those that are left out.
    collectives: HashMap<u32, Option<(Joint, u64)>>,
    /// Requests of active sends.
    sends: HashSet<u32>,
    /// Requests that completed in a call that began before they did: MPI gives the requests of all operations that complete at once one
    /// handle, and a thread waits for that of another one.
    early: HashSet<u32>,
    /// What completes when the calls end that have begun, in the order of their ends in seconds.
    open: VecDeque<(f64, Completion)>,
}

/// What the end of a call completes, with its request.
#[derive(Debug, Clone, Copy)]
enum Completion {
    Receive(Message, u64),
    Collective(Joint, u64),
    Cancel(u64),
}

impl Completion {
    fn of((joint, begun): (Joint, u64)) -> Self {
        Self::Collective(joint, begun)
    }
}

impl Overlapping {
    /// The first end up to a time.
    fn end_before(&mut self, until: f64) -> Option<(f64, Completion)> {
        let is_over = self.open.front().is_some_and(|(leave, _)| *leave <= until);
        is_over.then(|| self.open.pop_front()).flatten()
    }
}

impl RankMoments<'_> {
    fn add(&mut self, what: What) {
        let compute = std::mem::take(&mut self.compute);
        self.recorded.push(Moment { time: self.time, compute, what });
    }

    /// Whether another thread communicates at the same time.
    fn overlaps(&self, event: &Event) -> bool {
        let (thread, until) = self.last;
        is_part(&event.call) && thread != event.thread && event.enter < until
    }

    /// Counts the computation before an event.
    fn count(&mut self, event: &Event) {
        let outside = self.outside.entry(event.thread).or_default();
        *outside = outside.saturating_add(ticks(event.outside));
        if let Call::Polls { outside: between, .. } = event.call {
            *outside = outside.saturating_add(ticks(between));
            self.left_out.polling += if event.thread == self.last.0 { between } else { 0.0 };
        }
        if is_part(&event.call) {
            let own = std::mem::take(outside);
            let (thread, until) = self.last;
            let since = if thread == event.thread { own } else { ticks(event.enter - until) };
            self.compute = self.compute.saturating_add(since);
            if event.leave > until {
                self.last = (event.thread, event.leave);
            }
        }
    }

    fn end(&mut self) {
        self.complete_until(f64::INFINITY);
        let outside = self.outside.remove(&self.last.0).unwrap_or(0);
        self.compute = self.compute.saturating_add(outside);
        self.add(What::End);
    }

    fn event(&mut self, event: &Event) {
        self.complete_until(event.enter);
        self.time = self.time.max(ticks(event.enter));
        self.count(event);
        if self.overlapping.is_some() && is_part(&event.call) {
            return self.begin(event);
        }
        let request = |request: u32| u64::from(request);
        match event.call {
            Call::Other(call) => self.other(call, event.leave - event.enter),
            Call::Polls { .. } | Call::Wait | Call::Test | Call::Finalize => {}
            Call::Send { message, .. } => self.send(message, None),
            Call::Isend { message, request: sent, .. } => self.send(message, Some(request(sent))),
            Call::Recv { message } => self.receive(message, None),
            Call::Irecv { request: posted, .. } => self.add(What::Post { request: request(posted) }),
            Call::Sendrecv { sent, received } => {
                self.add(What::Post { request: EXCHANGE });
                self.send(sent, None);
                self.receive(received, Some(EXCHANGE));
            }
            Call::Collective(call) => {
                if let Some(joint) = self.joint(call) {
                    self.add(What::Complete { joint, request: None });
                }
            }
            Call::Icollective { operation, request: begun } => {
                let joint = self.joint(operation);
                self.collectives.insert(begun, joint);
                self.add(What::Begin { request: request(begun) });
            }
            Call::Sent { request: sent } => match self.collectives.remove(&sent) {
                Some(Some(joint)) => self.add(What::Complete { joint, request: Some(request(sent)) }),
                Some(None) => {}
                None => self.add(What::Sent { request: request(sent) }),
            },
            Call::Received { request: posted, message } => self.receive(message, Some(request(posted))),
            Call::Cancelled { request: cancelled } => self.add(What::Cancel { request: request(cancelled) }),
            Call::Freed { .. } => self.left_out.freed += 1,
        }
        self.time = self.time.max(ticks(event.leave));
    }

    /// Records the begin of a call that others may overlap; its end follows when everything before it has.
    fn begin(&mut self, event: &Event) {
        let next = self.recorded.len() as u64;
        let completion = match event.call {
            Call::Send { message, .. } => {
                self.send(message, Some(next));
                None
            }
            Call::Isend { message, request, .. } => {
                self.send(message, Some(next));
                if !self.has_ended(request) {
                    self.overlapping.as_mut().map(|all| all.sends.insert(request));
                }
                None
            }
            Call::Recv { message } => {
                self.add(What::Post { request: next });
                Some(Completion::Receive(message, next))
            }
            Call::Irecv { request, .. } => {
                self.add(What::Post { request: next });
                self.overlapping.as_mut().and_then(|overlapping| overlapping.receives.insert(request, next));
                None
            }
            Call::Sendrecv { sent, received } => {
                self.add(What::Post { request: next });
                self.send(sent, Some(next + 1));
                Some(Completion::Receive(received, next))
            }
            Call::Collective(call) => self.joint(call).map(|joint| {
                self.add(What::Begin { request: next });
                Completion::Collective(joint, next)
            }),
            Call::Icollective { operation, request } => {
                let joint = self.joint(operation);
                self.add(What::Begin { request: next });
                let begun = joint.map(|joint| (joint, next));
                if self.has_ended(request) {
                    begun.map(Completion::of)
                } else {
                    self.overlapping.as_mut().map(|all| all.collectives.insert(request, begun));
                    None
                }
            }
            Call::Sent { request } => self.overlapping.as_mut().and_then(|all| {
                let begun = all.collectives.remove(&request);
                if begun.is_none() && !all.sends.remove(&request) {
                    all.early.insert(request);
                }
                begun.flatten().map(Completion::of)
            }),
            Call::Received { request, message } => {
                self.posted(request).map(|posted| Completion::Receive(message, posted))
            }
            Call::Cancelled { request } => self.posted(request).map(Completion::Cancel),
            _ => None,
        };
        if let Some((completion, overlapping)) = completion.zip(self.overlapping.as_mut()) {
            let place = overlapping.open.partition_point(|(leave, _)| *leave <= event.leave);
            overlapping.open.insert(place, (event.leave, completion));
        }
    }

    /// Whether a request that begins has completed before.
    fn has_ended(&mut self, request: u32) -> bool {
        self.overlapping.as_mut().is_some_and(|all| all.early.remove(&request))
    }

    /// The place at which the receive of a request was posted.
    fn posted(&mut self, request: u32) -> Option<u64> {
        self.overlapping.as_mut()?.receives.remove(&request)
    }

    /// Records the ends of calls up to a time, in seconds.
    fn complete_until(&mut self, until: f64) {
        while let Some((leave, completion)) = self.overlapping.as_mut().and_then(|all| all.end_before(until))
        {
            self.time = self.time.max(ticks(leave));
            match completion {
                Completion::Receive(message, posted) => self.receive(message, Some(posted)),
                Completion::Collective(joint, begun) => {
                    self.add(What::Complete { joint, request: Some(begun) });
                }
                Completion::Cancel(posted) => self.add(What::Cancel { request: posted }),
            }
        }
    }

    fn other(&mut self, call: OtherCall, seconds: f64) {
        let count = match call {
            OtherCall::OneSided => &mut self.left_out.one_sided,
            OtherCall::Partitioned => &mut self.left_out.partitioned,
            OtherCall::Local | OtherCall::Probe | OtherCall::Communicator => return,
        };
        *count = (count.0 + 1, count.1 + seconds);
    }

    fn envelope(&self, message: Message) -> Option<Envelope> {
        let (communicator, _) = *self.communicators.get(message.communicator as usize)?;
        Some(Envelope { peer: message.peer, communicator, tag: message.tag })
    }

    fn send(&mut self, message: Message, request: Option<u64>) {
        if let Some(envelope) = self.envelope(message) {
            self.add(What::Send { envelope, bytes: message.bytes, request });
        }
    }

    fn receive(&mut self, message: Message, request: Option<u64>) {
        if let Some(envelope) = self.envelope(message) {
            self.add(What::Receive { envelope, bytes: message.bytes, request });
        }
    }

    /// The operation of a call, if it can be a part of a program.
    fn joint(&mut self, call: CollectiveCall) -> Option<Joint> {
        let Some(operation) = call.kind.operation() else {
            self.left_out.neighbourhood += 1;
            return None;
        };
        let (group, has_two_groups) = *self.communicators.get(call.communicator as usize)?;
        if has_two_groups || (operation.has_root() && call.root.is_none()) {
            self.left_out.between_groups += 1;
            return None;
        }
        let root = call.root.unwrap_or(0);
        Some(Joint { group, operation, root, sent: call.bytes, received: 0 })
    }
}

impl LeftOut {
    fn has_communication(&self) -> bool {
        [self.one_sided.0, self.partitioned.0, self.neighbourhood, self.between_groups] != [0; 4]
    }

    fn log(&self, cx: &Context<'_>) {
        let kinds = [("one-sided", self.one_sided), ("partitioned", self.partitioned)];
        for (kind, (calls, seconds)) in kinds.into_iter().filter(|(_, (calls, _))| *calls > 0) {
            cx.log(format_args!(
                "warning: calls of {kind} communication, which are not in the program: {calls} ({seconds:.6} s in them)"
            ));
        }
        let warn = |what: &str, count| log_count(cx, &format!("warning: {what}"), count);
        warn("calls of neighbourhood collectives, which are not in the program", self.neighbourhood);
        warn(
            "calls of collective operations between two groups, which are not in the program",
            self.between_groups,
        );
        warn("active requests that were freed, for which the program never waits", self.freed);
        if self.polling > 0.0 {
            cx.log(format_args!(
                "{:.6} s between calls that asked in vain (MPI_Test, MPI_Iprobe) count as computation",
                self.polling
            ));
        }
    }
}
