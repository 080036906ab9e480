//! The moments of a location at which its process depends on others.

use std::borrow::Cow;
use std::collections::HashMap;

use super::constants::OTF2_UNDEFINED_UINT64;

use super::communicators::{Communicators, is_nobody};
use super::expansion::operation;
use super::open_regions::OpenRegions;
use super::visitor::{BadEvent, Collective, Event, Message, Through, Visitor};
use crate::call_stack::{Call, RegionKind};
use crate::dag::{Envelope, Joint, Moment, What};

/// Stands for the request of the receive in `MPI_Sendrecv`; none has this number (`OTF2_UNDEFINED_UINT64`).
const EXCHANGE: u64 = u64::MAX;

/// What all locations are followed with.
#[derive(Clone, Copy)]
pub(super) struct Followed<'a> {
    pub(super) regions: &'a HashMap<u32, RegionKind>,
    pub(super) communicators: &'a Communicators,
    /// Numbers of the groups of processes that take part in collective operations.
    pub(super) groups: &'a HashMap<Through, u32>,
    /// Whether processes are ranks that can send.
    pub(super) ranked: bool,
}

/// What is not followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Untold {
    /// Messages to `MPI_PROC_NULL`.
    pub(super) to_nobody: u64,
    /// Accesses to remote memory.
    pub(super) accesses: u64,
    /// Collective operations between two groups, within a process, of devices or of unknown size.
    pub(super) elsewhere: u64,
    /// Messages and operations of locations that belong to no process.
    pub(super) without_process: u64,
}

/// The calls of MPI that a location is in, and how long it has been.
#[derive(Debug, Default)]
struct Calls {
    /// How many of the open regions communicate, and since when the first of them does.
    communicating: u32,
    since: u64,
    /// How many of them are `MPI_Sendrecv` or one of its kin.
    exchanging: u32,
    /// Ticks in communication that are over.
    over: u64,
}

impl Calls {
    fn enter(&mut self, kind: RegionKind, time: impl Fn() -> u64) {
        self.exchanging += u32::from(kind.call == Call::SendReceive);
        if kind.communication {
            if self.communicating == 0 {
                self.since = time();
            }
            self.communicating += 1;
        }
    }

    fn leave(&mut self, kind: RegionKind, time: impl Fn() -> u64) {
        self.exchanging -= u32::from(kind.call == Call::SendReceive);
        if kind.communication {
            if self.communicating == 1 {
                self.over = self.communicated(time());
            }
            self.communicating -= 1;
        }
    }

    /// Ticks in communication up to some time.
    fn communicated(&self, time: u64) -> u64 {
        let open = if self.communicating > 0 { time.saturating_sub(self.since) } else { 0 };
        self.over.saturating_add(open)
    }
}

/// Follows a location.
pub(super) struct Moments<'a> {
    followed: Followed<'a>,
    /// Rank of its process, if it belongs to one.
    rank: Option<u32>,
    /// Regions by place.
    regions: Vec<RegionKind>,
    places: HashMap<u32, u32>,
    /// The regions it is in.
    open: OpenRegions<RegionKind>,
    calls: Calls,
    /// Moments with the ticks in communication up to then in place of those that it computed.
    told: Vec<Moment>,
    bad_event: Option<BadEvent>,
    pub(super) untold: Untold,
}

impl<'a> Moments<'a> {
    pub(super) fn new(followed: Followed<'a>, rank: Option<u32>) -> Self {
        Self {
            followed,
            rank,
            regions: Vec::new(),
            places: HashMap::new(),
            open: OpenRegions::new(),
            calls: Calls::default(),
            told: Vec::new(),
            bad_event: None,
            untold: Untold::default(),
        }
    }

    /// The moments of a location whose first and last event were at these times. Only the main thread computes.
    pub(super) fn finish(mut self, (first, last): (u64, u64), main: bool) -> Vec<Moment> {
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
        self.told.push(Moment { time, compute: self.calls.communicated(time), what });
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
        self.calls.enter(kind, &time);
        if kind.call == Call::SendReceive {
            // It asks for a message before it sends one.
            self.add(What::Post { request: EXCHANGE }, time());
        }
    }

    fn leave(&mut self, place: u32, time: impl Fn() -> u64) {
        let calls = &mut self.calls;
        self.open.leave(place, |kind| calls.leave(kind, &time));
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
                    let exchange = (self.calls.exchanging > 0).then_some(EXCHANGE);
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
