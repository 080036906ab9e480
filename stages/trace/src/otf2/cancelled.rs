//! Sends that were cancelled, which reach nobody.
//!
//! An archive says so only behind the send. Hardly a program cancels any, so that nothing is remembered while events are
//! counted: a location with a cancellation is read once more for them.

use std::collections::{HashMap, HashSet};

use hopmap_model::Context;

use super::archive_reader::ArchiveReader;
use super::visitor::{BadEvent, Event, Message, Visitor};
use crate::archive::on_threads;
use crate::error::TraceError;

impl ArchiveReader {
    /// The events of a location that are cancelled sends; none if only libotf2 may know all of its events. `None` if
    /// interrupted.
    fn cancelled(
        &self,
        location: u64,
        buffer: &mut Vec<u8>,
        cx: &Context<'_>,
    ) -> Result<Option<HashSet<u64>>, TraceError> {
        let mut finder = Finder::default();
        match self.visit_natively(location, &mut finder, buffer, cx) {
            Err(TraceError::Unknown { .. }) => Ok(Some(HashSet::new())),
            visited => Ok(visited?.map(|_| finder.found)),
        }
    }

    /// The same of all locations that have any.
    pub(super) fn all_cancelled(&self, cx: &Context<'_>) -> Result<HashMap<u64, HashSet<u64>>, TraceError> {
        let ids: Vec<u64> = self.locations.iter().copied().collect();
        let found = on_threads((ids.len(), "locations"), cx, |index, buffer| {
            let events = self.cancelled(ids[index], buffer, cx)?;
            Ok(events.map(|events| (ids[index], events)))
        })?;
        Ok(found.into_iter().filter(|(_, events)| !events.is_empty()).collect())
    }

    /// Reports only the cancelled sends of a location to a visitor.
    pub(super) fn visit_cancelled<V: Visitor>(
        &self,
        location: u64,
        visitor: V,
        cx: &Context<'_>,
    ) -> Result<V, TraceError> {
        let stopped = || TraceError::refused("stopped before all cancelled sends were found", "");
        let mut buffer = Vec::new();
        let events = self.cancelled(location, &mut buffer, cx)?.ok_or_else(stopped)?;
        let mut only = Only { events, visitor };
        self.visit_natively(location, &mut only, &mut buffer, cx)?.ok_or_else(stopped)?;
        Ok(only.visitor)
    }
}

/// Finds the sends that are cancelled.
#[derive(Default)]
struct Finder {
    /// The events of incomplete sends by request.
    open: HashMap<u64, u64>,
    found: HashSet<u64>,
}

impl Visitor for Finder {
    const BOTH_ENDS: bool = true;

    fn place(&mut self, region: u32) -> u32 {
        region
    }

    fn enter(&mut self, _: u32, _: impl Fn() -> u64) {}

    fn leave(&mut self, _: u32, _: impl Fn() -> u64) {}

    fn send(&mut self, number: u64, message: Message, _: impl Fn() -> u64) {
        if let Some(request) = message.request {
            self.open.insert(request, number);
        }
    }

    fn event(&mut self, _: u64, event: Event, _: impl Fn() -> u64) {
        match event {
            Event::SendCompleted(request) | Event::ReceivePosted(request) => {
                self.open.remove(&request);
            }
            Event::Cancelled(request) => self.found.extend(self.open.remove(&request)),
            _ => {}
        }
    }

    fn bad_event(&self) -> Option<&BadEvent> {
        None
    }
}

/// Passes on regions, and the sends of some events.
struct Only<V> {
    events: HashSet<u64>,
    visitor: V,
}

impl<V: Visitor> Visitor for Only<V> {
    const BOTH_ENDS: bool = false;

    fn place(&mut self, region: u32) -> u32 {
        self.visitor.place(region)
    }

    fn enter(&mut self, place: u32, time: impl Fn() -> u64) {
        self.visitor.enter(place, time);
    }

    fn leave(&mut self, place: u32, time: impl Fn() -> u64) {
        self.visitor.leave(place, time);
    }

    fn send(&mut self, number: u64, message: Message, time: impl Fn() -> u64) {
        if self.events.contains(&number) {
            self.visitor.send(number, message, time);
        }
    }

    fn event(&mut self, _: u64, _: Event, _: impl Fn() -> u64) {}

    fn bad_event(&self) -> Option<&BadEvent> {
        self.visitor.bad_event()
    }
}
