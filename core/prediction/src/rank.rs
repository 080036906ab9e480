//! The state of a rank.

use std::rc::Rc;

use crate::collective::Schedule;
use crate::message::{End, Path};

const NONE: u32 = u32::MAX;

/// A rank between two operations, or in one that waits.
#[derive(Debug, Default)]
pub(crate) struct Rank {
    /// Index of the next operation of the program, and of the end.
    pub(crate) next: usize,
    pub(crate) end: usize,
    pub(crate) time: f64,
    pub(crate) path: Path,
    pub(crate) requests: Vec<Request>,
    /// Requests that are active and not known to be complete.
    pub(crate) active: Vec<u32>,
    /// What it waits for, and how many of these have no known end.
    pub(crate) awaited: Vec<End>,
    pub(crate) pending: u32,
    /// Sends that no receive matches yet.
    pub(crate) unmatched: u32,
    pub(crate) collective: Option<Round>,
    /// Collective operations called, by communicator.
    calls: Vec<usize>,
    pub(crate) computing_s: f64,
    pub(crate) sending_s: f64,
    pub(crate) waiting_s: f64,
}

/// A request, and its place among the active ones.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Request {
    pub(crate) end: Option<End>,
    place: u32,
}

/// The next message of a collective operation.
#[derive(Debug)]
pub(crate) struct Round {
    pub(crate) schedule: Rc<Schedule>,
    pub(crate) communicator: u32,
    pub(crate) member: u32,
    pub(crate) next: usize,
}

impl Rank {
    pub(crate) fn new(operations: std::ops::Range<usize>) -> Self {
        Self { next: operations.start, end: operations.end, ..Self::default() }
    }

    /// Whether it has nothing left to do.
    pub(crate) fn is_finished(&self) -> bool {
        self.next == self.end && self.collective.is_none() && self.awaited.is_empty()
    }

    /// Makes a request active, unless it is complete from the start.
    pub(crate) fn activate(&mut self, request: u32, end: Option<End>) {
        let index = request as usize;
        if index >= self.requests.len() {
            self.requests.resize(index + 1, Request { end: None, place: NONE });
        }
        self.requests[index] = Request { end, place: self.active.len() as u32 };
        if end.is_some() {
            self.active.push(request);
        }
    }

    /// What a request waits for, unless it is complete; it is complete afterwards.
    pub(crate) fn complete(&mut self, request: u32) -> Option<End> {
        let Request { end, place } = *self.requests.get(request as usize)?;
        let end = end?;
        self.active.swap_remove(place as usize);
        if let Some(&moved) = self.active.get(place as usize) {
            self.requests[moved as usize].place = place;
        }
        self.requests[request as usize].end = None;
        Some(end)
    }

    /// The number of the next collective operation in a communicator.
    pub(crate) fn next_call(&mut self, communicator: u32) -> usize {
        let index = communicator as usize;
        if index >= self.calls.len() {
            self.calls.resize(index + 1, 0);
        }
        self.calls[index] += 1;
        self.calls[index] - 1
    }
}
