//! The moments of the processes of an archive: operations that others may depend on, and computation
//! between them.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use hopmap_collectives::Convention;
use hopmap_model::{Context, to_u32};

use super::archive_reader::{ArchiveReader, Overview, Visited, read_by, warn};
use super::collectives::operation;
use super::communicators::{Communicators, is_proc_null};
use super::record_schema::OTF2_UNDEFINED_UINT64;
use super::visitor::{BadEvent, Collective, Event, Message, Through, Visitor};
use crate::call_stack::{Nested, OpenRegions};
use crate::error::TraceError;
use crate::matching::{EXCHANGE, Envelope, Joint, Members, Moment, Unmatched, What};
use crate::params::{Reader, Select};
use crate::selection::{Call, Marks, RegionKind, Request};

/// What an archive is read for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Purpose {
    pub(super) reader: Reader,
    /// Whether truncated events are used.
    pub(super) allow_truncated: bool,
    /// Fraction of the sent bytes that may lack a receive event.
    pub(super) allow_loss: f64,
    /// What the moments become, for messages.
    pub(super) into: &'static str,
    /// Whether the calls of the threads of a process must be one after the other.
    pub(super) in_turns: bool,
}

/// The moments of all processes.
#[derive(Debug)]
pub(super) struct Recorded {
    /// By rank, in order.
    pub(super) ranks: Vec<Vec<Moment>>,
    /// The ranks of the groups of processes that can take part in collective operations.
    pub(super) groups: Vec<Vec<u32>>,
    /// Numbers of the groups that are communicators.
    pub(super) communicators: BTreeMap<u32, u32>,
    /// The ranks of every communicator.
    pub(super) members: Members,
    /// Meaning of the sizes of collective operations.
    pub(super) convention: Convention,
    pub(super) ticks_per_second: f64,
    /// Time of the last event of the trace.
    pub(super) end: u64,
    /// Seconds of the longest location, from its first to its last event. Clocks of processes may differ.
    pub(super) longest_s: f64,
    /// Time of the last event before the damage of each rank whose events are truncated.
    pub(super) cut: BTreeMap<u32, u64>,
    /// Whether communication is left out.
    pub(super) leaves_out: bool,
}

/// The moments of a location, begin and end of its calls of MPI with moments, and the counters of skipped events.
type Followings = (Visited, Vec<Moment>, Vec<(u64, u64)>, Skipped);

impl Recorded {
    /// Reads the moments of an archive, and logs what is ignored.
    pub(super) fn read(path: &Path, purpose: Purpose, cx: &Context<'_>) -> Result<Self, TraceError> {
        let archive = ArchiveReader::open(path, !purpose.allow_truncated, cx)?;
        let Some(ticks_per_second) = archive.ticks_per_second else {
            let problem = "does not define its clock resolution, so times of computation are unknown";
            let help = "record the trace again with a tool that writes clock properties, such as Score-P";
            return Err(TraceError::of(path, problem, help));
        };
        let everything = Select::default();
        let request = Request { select: &everything, phases: None, sizes: false };
        let regions = archive.definitions.region_kinds(&mut Marks::new(&request));
        let (numbers, groups) = groups(&archive);
        let followed = Followed {
            regions: &regions,
            communicators: &archive.communicators,
            groups: &numbers,
            ranked: archive.processes.ranked,
            in_turns: purpose.in_turns && archive.processes.have_threads(),
        };
        let followings = read_by(purpose.reader, cx, |event_reader| {
            let visitor = |location| Moments::new(followed, archive.processes.rank(location));
            archive.visit(event_reader, cx, visitor, |visited, mut moments| {
                let main = archive.processes.is_main(visited.location);
                moments.finish(visited.span.unwrap_or_default(), main);
                Ok((visited, moments.recorded, moments.calls, moments.skipped))
            })
        })?;
        report(&archive, &followings, purpose.into, ticks_per_second, cx);
        let spans = || followings.iter().filter_map(|(visited, ..)| visited.span);
        let longest = spans().map(|(first, last)| last.saturating_sub(first)).max().unwrap_or(0);
        let ends = || followings.iter().filter_map(|(visited, ..)| Some((visited, visited.span?.1)));
        let rank = |visited: &Visited| archive.processes.rank(visited.location);
        let communicator = |(through, number)| match through {
            Through::Communicator(id) => Some((id, number)),
            Through::Window(_) => None,
        };
        Ok(Self {
            longest_s: longest as f64 / ticks_per_second,
            leaves_out: followings.iter().any(|(.., skipped)| skipped.has_communication()),
            end: ends().map(|(_, end)| end).max().unwrap_or(0),
            cut: ends()
                .filter(|(visited, _)| visited.is_cut())
                .filter_map(|(visited, end)| Some((rank(visited)?, end)))
                .collect(),
            ranks: by_rank(&archive, followings).map_err(|rank| {
                let problem = format!("has calls of several threads of rank {rank} at the same time: their order cannot be known");
                let help = "only programs whose threads call MPI one after the other can be predicted; search with objectives that need no program, such as F, and measure with `hopmap trial`";
                TraceError::of(path, problem, help)
            })?,
            groups,
            communicators: numbers.into_iter().filter_map(communicator).collect(),
            members: members(&archive),
            convention: Convention::of_creator(&archive.anchor.creator),
            ticks_per_second,
        })
    }
}

impl Purpose {
    /// Logs what has no counterpart. Too many bytes without a receive are an error, except in truncated
    /// traces, which lack receives wherever they are truncated.
    pub(super) fn check(self, path: &Path, unmatched: Unmatched, cx: &Context<'_>) -> Result<(), TraceError> {
        report_unmatched(unmatched, self.into, cx);
        let Unmatched { sent, sent_bytes, of_bytes, .. } = unmatched;
        if self.allow_truncated || sent_bytes as f64 <= self.allow_loss * of_bytes as f64 {
            return Ok(());
        }
        let problem =
            format!("lacks the receive events of {sent} messages ({sent_bytes} of {of_bytes} bytes)");
        let help = "EZTrace omits nonblocking receives: record with Score-P, or set `allow_loss` to the fraction of bytes that may be missing (1: any)";
        Err(TraceError::of(path, problem, help))
    }
}

/// The groups of processes that can take part in collective operations: the number of each by its
/// communicator or window, and its ranks.
fn groups(archive: &ArchiveReader) -> (HashMap<Through, u32>, Vec<Vec<u32>>) {
    let definitions = &archive.definitions;
    let communicators = definitions.communicators.keys().map(|id| Through::Communicator(*id));
    let windows = definitions.windows.keys().map(|id| Through::Window(*id));
    let (mut numbers, mut groups) = (HashMap::new(), Vec::new());
    for through in communicators.chain(windows) {
        if let Some(members) = archive.communicators.members(through) {
            numbers.insert(through, to_u32(groups.len()));
            groups.push(members.to_vec());
        }
    }
    (numbers, groups)
}

fn members(archive: &ArchiveReader) -> Members {
    let ids = archive.definitions.communicators.keys();
    let of = |&id: &u32| Some((id, archive.communicators.members(Through::Communicator(id))?.to_vec()));
    ids.filter_map(of).collect()
}

/// The moments of every rank in order, merged over its locations. Fails with a rank whose calls overlap.
fn by_rank(archive: &ArchiveReader, followings: Vec<Followings>) -> Result<Vec<Vec<Moment>>, u32> {
    let mut locations: BTreeMap<u32, Vec<Vec<Moment>>> = BTreeMap::new();
    let mut calls: BTreeMap<u32, Vec<Vec<(u64, u64)>>> = BTreeMap::new();
    for (visited, moments, of_location, _) in followings {
        if let Some(rank) = archive.processes.rank(visited.location).filter(|_| !moments.is_empty()) {
            locations.entry(rank).or_default().push(moments);
            calls.entry(rank).or_default().push(of_location);
        }
    }
    if let Some((rank, _)) = calls.into_iter().find(|(_, calls)| overlap(calls)) {
        return Err(rank);
    }
    let of_rank = |rank| merge(locations.remove(&rank).unwrap_or_default());
    Ok((0..to_u32(archive.processes.list.len())).map(of_rank).collect())
}

/// Whether calls of different locations are at the same time.
fn overlap(calls: &[Vec<(u64, u64)>]) -> bool {
    let of_location = |(location, calls): (usize, &Vec<(u64, u64)>)| -> Vec<(u64, u64, usize)> {
        calls.iter().map(|(begin, end)| (*begin, *end, location)).collect()
    };
    let mut all: Vec<_> = calls.iter().enumerate().flat_map(of_location).collect();
    all.sort_unstable();
    let mut last = (0, 0);
    all.into_iter().any(|(begin, end, location)| {
        let overlaps = location != last.1 && begin < last.0;
        last = last.max((end, location));
        overlaps
    })
}

/// Merges the moments of locations by time; those of one location keep their order, even if its clock runs
/// backwards.
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

/// Logs what was read and what is ignored.
fn report(
    archive: &ArchiveReader,
    followings: &[Followings],
    into: &str,
    ticks_per_second: f64,
    cx: &Context<'_>,
) {
    let mut overview = Overview::default();
    followings.iter().for_each(|(visited, ..)| overview.add(visited));
    let (processes, locations, events) = (archive.processes.list.len(), overview.locations, overview.events);
    cx.log(format_args!("{processes} processes, {locations} locations, {events} events"));
    let sum = |of: fn(&Skipped) -> u64| followings.iter().map(|(.., skipped)| of(skipped)).sum::<u64>();
    let left_out = |what: &str, count| warn(cx, &format!("{what}, which are not in {into}"), count);
    left_out("remote memory accesses", sum(|skipped| skipped.accesses));
    warn(cx, "messages to or from MPI_PROC_NULL, which are not counted", sum(|skipped| skipped.to_proc_null));
    let elsewhere = "collective operations on intercommunicators, within a process or of unknown size";
    left_out(elsewhere, sum(|skipped| skipped.elsewhere));
    let nowhere = "messages of locations that do not belong to exactly one MPI rank";
    left_out(nowhere, sum(|skipped| skipped.without_process));
    let (steps, ticks) = (sum(|skipped| skipped.backwards), sum(|skipped| skipped.backwards_ticks));
    if steps > 0 {
        let seconds = ticks as f64 / ticks_per_second;
        cx.log(format_args!(
"warning: clocks run backwards at {steps} operations, by {seconds:.6} s together; no time passes there"
        ));
    }
    overview.warn(cx);
}

fn report_unmatched(unmatched: Unmatched, into: &str, cx: &Context<'_>) {
    let left_out = format!("which are not in {into}");
    let warn = |what: &str, count| warn(cx, what, count);
    let message =
        format!("messages without a receive event, {left_out} (EZTrace omits many nonblocking receives)");
    warn(&message, unmatched.sent);
    warn(&format!("messages without a send event, {left_out}"), unmatched.received);
    let message =
        "messages whose send and receive have different communicators, matched by ranks, tag and order";
    warn(message, unmatched.communicators);
    let message = "messages whose send and receive have different lengths, so they may be mismatched";
    warn(message, unmatched.lengths);
    let message = format!("collective operations with different records in their processes, {left_out}");
    warn(&message, unmatched.joints);
}

/// Shared input of all locations.
#[derive(Clone, Copy)]
struct Followed<'a> {
    regions: &'a HashMap<u32, RegionKind>,
    communicators: &'a Communicators,
    /// Numbers of the groups of processes that take part in collective operations.
    groups: &'a HashMap<Through, u32>,
    /// Whether processes are ranks that can send.
    ranked: bool,
    /// Whether begin and end of calls are needed.
    in_turns: bool,
}

/// Counters of what is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Skipped {
    /// Messages to `MPI_PROC_NULL`.
    to_proc_null: u64,
    /// Remote memory accesses.
    accesses: u64,
    /// Collective operations on intercommunicators, within a process, of devices or of unknown size.
    elsewhere: u64,
    /// Messages and operations of locations without a process.
    without_process: u64,
    /// Events with an earlier time than the event before, and by how many ticks together.
    backwards: u64,
    backwards_ticks: u64,
}

impl Skipped {
    fn has_communication(self) -> bool {
        self.accesses + self.elsewhere + self.without_process > 0
    }
}

/// Collects the moments of a location.
struct Moments<'a> {
    followed: Followed<'a>,
    /// Rank of its process, if any.
    rank: Option<u32>,
    /// Regions by index.
    regions: Vec<RegionKind>,
    places: HashMap<u32, u32>,
    /// The open regions.
    open: OpenRegions<RegionKind>,
    /// Time in MPI calls.
    communicating: Nested,
    /// Number of open regions that are `MPI_Sendrecv` or a variant.
    exchanging: u32,
    /// Moments, with the ticks in communication so far in place of the computation.
    recorded: Vec<Moment>,
    /// Begin and end of calls with moments, if needed.
    calls: Vec<(u64, u64)>,
    /// Whether the open call has moments.
    is_call: bool,
    bad_event: Option<BadEvent>,
    skipped: Skipped,
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
            recorded: Vec::new(),
            calls: Vec::new(),
            is_call: false,
            bad_event: None,
            skipped: Skipped::default(),
        }
    }

    /// Computation of a location with this first and last event. Only the main thread computes.
    fn finish(&mut self, (first, last): (u64, u64), main: bool) {
        if main {
            self.add(What::End, last);
        }
        let mut before = (first, 0);
        for moment in &mut self.recorded {
            let now = (moment.time, moment.compute);
            let passed = now.0.saturating_sub(before.0);
            let skipped = &mut self.skipped;
            skipped.backwards += u64::from(now.0 < before.0);
            skipped.backwards_ticks = skipped.backwards_ticks.saturating_add(before.0.saturating_sub(now.0));
            moment.compute = if main { passed.saturating_sub(now.1.saturating_sub(before.1)) } else { 0 };
            before = now;
        }
    }

    fn add(&mut self, what: What, time: u64) {
        self.is_call |= self.followed.in_turns && what != What::End;
        self.recorded.push(Moment { time, compute: self.communicating.until(time), what });
    }

    fn bad(&mut self, event: u64, what: impl Into<Cow<'static, str>>) {
        self.bad_event.get_or_insert(BadEvent { event, what: what.into() });
    }

    /// The matching key of a message, if both of its ends are relevant.
    fn envelope(&mut self, number: u64, message: &Message) -> Option<Envelope> {
        if is_proc_null(message.peer) {
            self.skipped.to_proc_null += 1;
            return None;
        }
        if message.bytes == OTF2_UNDEFINED_UINT64 {
            self.bad(number, "the number of bytes is unknown");
            return None;
        }
        if !self.followed.ranked {
            self.bad(number, "it sends, but the archive does not define MPI ranks");
            return None;
        }
        let Some(rank) = self.rank else {
            self.skipped.without_process += 1;
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
            None => self.skipped.elsewhere += 1,
        }
    }
}

impl Visitor for Moments<'_> {
    const BOTH_ENDS: bool = true;

    fn place(&mut self, region: u32) -> u32 {
        let next = to_u32(self.regions.len());
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
            // The receive is posted before the send.
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
        if self.is_call
            && let Some(since) = self.communicating.closed_since()
        {
            self.calls.push((since, time()));
            self.is_call = false;
        }
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
            Event::Access(_) => self.skipped.accesses += 1,
        }
    }

    fn bad_event(&self) -> Option<&BadEvent> {
        self.bad_event.as_ref()
    }
}
