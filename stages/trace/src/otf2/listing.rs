//! The messages of a location one by one.

use std::borrow::Cow;
use std::collections::HashMap;

use super::constants::OTF2_UNDEFINED_UINT64;

use super::communicators::{Communicators, NoReceiver, is_nobody};
use super::open_regions::OpenRegions;
use super::visitor::{Access, BadEvent, Event, Message, Visitor};
use crate::call_stack::{CallStack, RegionKind};
use crate::messages::{NONE, Row, Rows};
use crate::numbering::Numbering;
use crate::selection::Selection;

/// What all locations are listed with.
#[derive(Clone, Copy)]
pub(super) struct Listed<'a> {
    pub(super) regions: &'a HashMap<u32, RegionKind>,
    pub(super) communicators: &'a Communicators,
    pub(super) selection: Option<&'a Selection>,
    /// Whether processes are ranks that can send.
    pub(super) ranked: bool,
}

/// Lists the messages of a location, and gives full batches away.
pub(super) struct Listing<'a, F> {
    listed: Listed<'a>,
    /// Rank of its process, if it belongs to one.
    rank: Option<u32>,
    /// Tells the selection where the location is.
    stack: CallStack<'a>,
    /// Id of the region of every place, and whether it communicates.
    regions: Vec<(u32, bool)>,
    /// The regions it is in: for each the call that the location is in then, and the function that called it.
    open: OpenRegions<(u32, u32)>,
    peers: Numbering<(u32, u32)>,
    /// Rank of every peer.
    ranks: Vec<u32>,
    rows: Rows,
    give: F,
    /// Why reading on makes no sense.
    bad_event: Option<BadEvent>,
    pub(super) skipped: Skipped,
}

/// What is not listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Skipped {
    /// Messages to `MPI_PROC_NULL`.
    pub(super) to_nobody: u64,
    /// Accesses to memory within a process.
    pub(super) within_process: u64,
    /// Messages and accesses of locations that belong to no process.
    pub(super) without_process: u64,
    /// Collective operations.
    pub(super) collectives: u64,
}

impl Skipped {
    /// Adds what another location skipped.
    pub(super) fn add(&mut self, other: Self) {
        self.to_nobody += other.to_nobody;
        self.within_process += other.within_process;
        self.without_process += other.without_process;
        self.collectives += other.collectives;
    }
}

impl<'a, F: FnMut(&mut Rows) -> bool> Listing<'a, F> {
    /// A listing that gives batches to `give`, which tells whether to go on.
    pub(super) fn new(listed: Listed<'a>, rank: Option<u32>, give: F) -> Self {
        Self {
            listed,
            rank,
            stack: CallStack::new(listed.regions, listed.selection),
            regions: Vec::new(),
            open: OpenRegions::new(),
            peers: Numbering::new(),
            ranks: Vec::new(),
            rows: Rows::default(),
            give,
            bad_event: None,
            skipped: Skipped::default(),
        }
    }

    /// Gives the last batch away.
    pub(super) fn finish(&mut self) {
        (self.give)(&mut self.rows);
    }

    fn bad(&mut self, event: u64, what: impl Into<Cow<'static, str>>) {
        self.bad_event.get_or_insert(BadEvent { event, what: what.into() });
    }

    /// The call that the location is in, and the function that called it.
    fn place_in_code(&self) -> (u32, u32) {
        self.open.innermost().copied().unwrap_or((NONE, NONE))
    }

    /// Rank of the other end.
    fn peer(&mut self, rank: u32, communicator: u32, peer: u32) -> Result<u32, NoReceiver> {
        let place = self.peers.of((communicator, peer)) as usize;
        if place >= self.ranks.len() {
            self.ranks.push(self.listed.communicators.receiver(communicator, rank, peer)?);
        }
        Ok(self.ranks[place])
    }

    fn counts(&self, communicator: u32, bytes: u64, time: u64) -> bool {
        self.listed.selection.is_none_or(|selection| {
            selection.counts_communicator(communicator)
                && selection.counts_length(bytes)
                && selection.class(self.stack.inside(), || time).is_some()
        })
    }

    fn list(&mut self, number: u64, message: Message, outwards: bool, tag: Option<u32>, time: u64) {
        let Message { communicator, bytes, .. } = message;
        if bytes == OTF2_UNDEFINED_UINT64 {
            return self.bad(number, "it moves an unknown number of bytes");
        }
        if !self.listed.ranked {
            return self.bad(number, "it sends, but the archive defines no MPI ranks");
        }
        let Some(rank) = self.rank else {
            self.skipped.without_process += 1;
            return;
        };
        let peer = match self.peer(rank, communicator, message.peer) {
            Ok(peer) => peer,
            Err(reason) => return self.bad(number, reason.to_string()),
        };
        if !self.counts(communicator, bytes, time) {
            return;
        }
        let (source, destination) = if outwards { (rank, peer) } else { (peer, rank) };
        let (operation, region) = self.place_in_code();
        self.rows.push(Row { time, source, destination, tag, bytes, communicator, operation, region });
        if self.rows.is_full() && !(self.give)(&mut self.rows) {
            self.bad(number, "nobody takes its message");
        }
    }

    fn access(&mut self, number: u64, access: Access, time: u64) {
        let communicator = match self.listed.communicators.of_window(access.window) {
            Ok(Some(communicator)) => communicator,
            Ok(None) => {
                self.skipped.within_process += 1;
                return;
            }
            Err(reason) => return self.bad(number, reason.to_string()),
        };
        for (bytes, outwards) in [(access.put, true), (access.got, false)] {
            if let Some(bytes) = bytes {
                let message = Message { peer: access.remote, communicator, tag: 0, bytes, request: None };
                self.list(number, message, outwards, None, time);
            }
        }
    }
}

impl<F: FnMut(&mut Rows) -> bool> Visitor for Listing<'_, F> {
    const BOTH_ENDS: bool = false;

    fn place(&mut self, region: u32) -> u32 {
        let place = self.stack.place(region);
        if place as usize == self.regions.len() {
            let communication = self.listed.regions.get(&region).is_some_and(|kind| kind.communication);
            self.regions.push((region, communication));
        }
        place
    }

    fn enter(&mut self, place: u32, time: impl Fn() -> u64) {
        let code = match self.regions[place as usize] {
            (call, true) => (call, self.place_in_code().1),
            (function, false) => (NONE, function),
        };
        self.open.enter(place, code);
        if self.listed.selection.is_some() {
            self.stack.enter_at(place, time);
        }
    }

    fn leave(&mut self, place: u32, time: impl Fn() -> u64) {
        self.open.leave(place, |_| ());
        if self.listed.selection.is_some() {
            self.stack.leave_at(place, time);
        }
    }

    fn send(&mut self, number: u64, message: Message, time: impl Fn() -> u64) {
        if is_nobody(message.peer) {
            self.skipped.to_nobody += 1;
        } else {
            self.list(number, message, true, Some(message.tag), time());
        }
    }

    fn event(&mut self, number: u64, event: Event, time: impl Fn() -> u64) {
        match event {
            Event::Access(access) => self.access(number, access, time()),
            Event::Collective(..) => self.skipped.collectives += 1,
            _ => {}
        }
    }

    fn bad_event(&self) -> Option<&BadEvent> {
        self.bad_event.as_ref()
    }
}
