//! The operations of a rank.
//!
//! A rank runs ahead of the clock until it waits for the end of a transfer that is not known yet: messages match
//! by their keys, so it does not matter in which order ranks post them. Only flows, tests and ranks that share a
//! core keep to the clock.

use std::rc::Rc;

use hopmap_model::{Action, Activity, Collective, Envelope};

use crate::error::ReplayError;
use crate::message::{COLLECTIVE_TAG, End, Key, Protocol, Send};
use crate::rank::{Rank, Round};
use crate::replay::{Event, Replay};

/// Sends without a receive that a rank may post ahead of the clock. It bounds the memory of a rank that produces
/// messages faster than others consume them.
const MOST_AHEAD: u32 = 1024;
const NONE: u32 = u32::MAX;

impl Replay<'_> {
    /// Continues a rank until it waits or ends.
    pub(crate) fn run(&mut self, rank: u32) -> Result<(), ReplayError> {
        self.finish_wait(rank);
        while self.step(rank)? {
            if self.should_stop() {
                break;
            }
        }
        Ok(())
    }

    /// Executes the next operation; `false` if the rank cannot go on.
    fn step(&mut self, rank: u32) -> Result<bool, ReplayError> {
        let state = &mut self.ranks[rank as usize];
        if state.collective.is_some() {
            return self.next_round(rank);
        }
        if state.next == state.end {
            return Ok(false);
        }
        let action = self.program.operations[state.next].action();
        state.next += 1;
        match action {
            Action::Compute { seconds } => Ok(self.compute(rank, seconds)),
            Action::Send { envelope, bytes } => self.send(rank, envelope, bytes, None),
            Action::Isend { envelope, bytes, request } => self.send(rank, envelope, bytes, Some(request)),
            Action::Recv { envelope, .. } => {
                let end = self.post_receive(rank, self.incoming(rank, envelope))?;
                Ok(self.wait(rank, [end]))
            }
            Action::Irecv { envelope, request, .. } => {
                let end = self.post_receive(rank, self.incoming(rank, envelope))?;
                self.ranks[rank as usize].activate(request, Some(end));
                Ok(true)
            }
            Action::Wait { request } => {
                let end = state.complete(request);
                Ok(self.wait(rank, end))
            }
            Action::Waitall => {
                let requests = std::mem::take(&mut state.active);
                let ends: Vec<End> = requests
                    .iter()
                    .filter_map(|request| state.requests[*request as usize].end.take())
                    .collect();
                Ok(self.wait(rank, ends))
            }
            Action::Test { request } => {
                let event = Event::Test { rank, request };
                self.at(self.ranks[rank as usize].time, event);
                Ok(false)
            }
            Action::Collective { collective, .. } => {
                self.begin_collective(rank, collective)?;
                Ok(true)
            }
        }
    }

    fn compute(&mut self, rank: u32, seconds: f64) -> bool {
        let seconds = seconds * self.pace[rank as usize];
        let state = &mut self.ranks[rank as usize];
        if self.cores[rank as usize] != NONE && seconds > 0.0 {
            let event = Event::Compute { rank, seconds: seconds.to_bits() };
            self.at(self.ranks[rank as usize].time, event);
            return false;
        }
        let start = state.time;
        state.time += seconds;
        state.computing_s += seconds;
        state.path.computation += seconds;
        self.intervals.add(rank, Activity::Computing, start, self.ranks[rank as usize].time, None);
        true
    }

    /// Ends computation on a core that ranks share.
    pub(crate) fn end_compute(&mut self, rank: u32, now: f64, seconds: f64) {
        let state = &mut self.ranks[rank as usize];
        state.path.computation += seconds;
        state.computing_s += now - state.time;
        let start = std::mem::replace(&mut state.time, now);
        self.intervals.add(rank, Activity::Computing, start, now, None);
    }

    fn overhead(&mut self, rank: u32, seconds: f64, peer: Option<u32>) {
        if seconds > 0.0 {
            let state = &mut self.ranks[rank as usize];
            let start = state.time;
            state.time += seconds;
            state.sending_s += seconds;
            state.path.overhead += seconds;
            self.intervals.add(rank, Activity::Sending, start, self.ranks[rank as usize].time, peer);
        }
    }

    fn incoming(&self, rank: u32, envelope: u32) -> Key {
        let Envelope { peer, tag, communicator } = self.program.envelopes[envelope as usize];
        Key { source: peer, destination: rank, tag, communicator }
    }

    /// Sends: nonblocking with a request, or else blocking.
    fn send(
        &mut self,
        rank: u32,
        envelope: u32,
        bytes: u64,
        request: Option<u32>,
    ) -> Result<bool, ReplayError> {
        let Envelope { peer, tag, communicator } = self.program.envelopes[envelope as usize];
        let key = Key { source: rank, destination: peer, tag, communicator };
        let end = self.post_send(rank, key, bytes, request.is_none())?;
        let Some(request) = request else { return Ok(self.wait(rank, end) && !self.is_too_far(rank)) };
        self.ranks[rank as usize].activate(request, end);
        Ok(!self.is_too_far(rank))
    }

    /// Whether a rank has to let the clock catch up with it.
    fn is_too_far(&mut self, rank: u32) -> bool {
        let Rank { unmatched, time, .. } = self.ranks[rank as usize];
        let is_too_far = unmatched > MOST_AHEAD && time > self.clock;
        if is_too_far {
            self.at(time, Event::Resume { rank });
        }
        is_too_far
    }

    /// Posts a send; gives its end if the sender has to wait for it.
    fn post_send(
        &mut self,
        rank: u32,
        key: Key,
        bytes: u64,
        is_blocking: bool,
    ) -> Result<Option<End>, ReplayError> {
        let costs = &self.options.costs;
        let protocol = match bytes {
            _ if bytes < costs.eager_limit => Protocol::Eager,
            _ if bytes < costs.detached_limit => Protocol::Detached,
            _ => Protocol::Rendezvous,
        };
        let overhead = match is_blocking {
            true if protocol == Protocol::Rendezvous => 0.0,
            true => costs.send.of(bytes),
            false => costs.isend.of(bytes),
        };
        self.overhead(rank, overhead, Some(key.destination));
        let state = &mut self.ranks[rank as usize];
        let posted = self.messages.post(key, Some(Send { bytes, protocol }), state.time, &state.path);
        if !posted.is_matched {
            state.unmatched += 1;
        }
        if posted.is_matched || protocol == Protocol::Eager {
            self.start_transfer(posted.message)?;
        }
        Ok((protocol == Protocol::Rendezvous).then_some(End::of_send(posted.message)))
    }

    fn post_receive(&mut self, rank: u32, key: Key) -> Result<End, ReplayError> {
        let state = &self.ranks[rank as usize];
        let posted = self.messages.post(key, None, state.time, &state.path);
        if posted.is_matched {
            self.ranks[key.source as usize].unmatched -= 1;
            if self.messages.get(posted.message).protocol != Protocol::Eager {
                self.start_transfer(posted.message)?;
            }
        }
        Ok(End::of_receive(posted.message))
    }

    /// Waits for the ends of messages; `false` if one of them is not known yet.
    fn wait(&mut self, rank: u32, ends: impl IntoIterator<Item = End>) -> bool {
        let mut awaited = std::mem::take(&mut self.ranks[rank as usize].awaited);
        awaited.extend(ends);
        let mut pending = 0;
        for end in &awaited {
            let message = self.messages.get_mut(end.message());
            if message.end.is_nan() {
                pending += 1;
                let is_blocked = match end.is_receive() {
                    true => &mut message.is_receiver_blocked,
                    false => &mut message.is_sender_blocked,
                };
                *is_blocked = true;
            }
        }
        let state = &mut self.ranks[rank as usize];
        (state.awaited, state.pending) = (awaited, pending);
        if pending == 0 {
            self.finish_wait(rank);
        }
        pending == 0
    }

    /// Takes what a rank waited for in the order of arrival.
    fn finish_wait(&mut self, rank: u32) {
        let mut awaited = std::mem::take(&mut self.ranks[rank as usize].awaited);
        if awaited.len() > 1 {
            awaited.sort_unstable_by_key(|end| (self.messages.get(end.message()).end.to_bits(), *end));
        }
        for end in awaited.drain(..) {
            self.take(rank, end);
        }
        self.ranks[rank as usize].awaited = awaited;
    }

    /// Takes a message that has arrived, or will at a known time.
    fn take(&mut self, rank: u32, end: End) {
        let message = *self.messages.get(end.message());
        let state = &mut self.ranks[rank as usize];
        let peer = if end.is_receive() { message.source } else { message.destination };
        let start = state.time;
        if message.end > start {
            (state.time, state.path) = (message.end, message.path);
            let (blocked, activity) = match end.is_receive() {
                true => (&mut state.waiting_s, Activity::Waiting),
                false => (&mut state.sending_s, Activity::Sending),
            };
            *blocked += message.end - start;
            self.intervals.add(rank, activity, start, message.end, Some(peer));
        }
        self.messages.release(end.message());
        if end.is_receive() && message.protocol != Protocol::Rendezvous {
            self.overhead(rank, self.options.costs.recv.of(message.bytes), Some(peer));
        }
    }

    /// Begins a test: the time that it takes depends on the tests of all ranks until now.
    pub(crate) fn begin_test(&mut self, rank: u32, request: u32) {
        let seconds = self.options.costs.test_s * f64::from(self.tests);
        self.overhead(rank, seconds, None);
        self.at(self.ranks[rank as usize].time, Event::EndTest { rank, request });
    }

    /// Ends a test: takes a message that has arrived.
    pub(crate) fn end_test(&mut self, rank: u32, request: u32) {
        let state = &mut self.ranks[rank as usize];
        let end = state.requests.get(request as usize).and_then(|request| request.end);
        match end {
            Some(end) if self.messages.get(end.message()).end <= state.time => {
                state.complete(request);
                self.take(rank, end);
            }
            Some(_) => {
                self.tests += u32::from(self.options.costs.test_grows);
                return;
            }
            None => {}
        }
        self.tests = 1;
    }

    fn begin_collective(&mut self, rank: u32, collective: u32) -> Result<(), ReplayError> {
        let Collective { communicator, .. } = self.program.collectives[collective as usize];
        let call = self.ranks[rank as usize].next_call(communicator);
        let schedule = self.collectives.schedule(collective, call)?;
        let members = &self.program.communicators[communicator as usize];
        let member = match communicator {
            0 => rank,
            _ => members.iter().position(|member| *member == rank).unwrap_or_default() as u32,
        };
        let round = Round { schedule, communicator, member, next: 0 };
        self.ranks[rank as usize].collective = Some(round);
        Ok(())
    }

    /// Exchanges the messages of the next round of a collective operation.
    fn next_round(&mut self, rank: u32) -> Result<bool, ReplayError> {
        let Some(round) = &mut self.ranks[rank as usize].collective else { return Ok(true) };
        let (schedule, communicator) = (Rc::clone(&round.schedule), round.communicator);
        let steps = &schedule.of_member(round.member)[round.next..];
        let Some(first) = steps.first() else {
            self.ranks[rank as usize].collective = None;
            return Ok(true);
        };
        let steps = &steps[..steps.partition_point(|step| step.round == first.round)];
        round.next += steps.len();
        let mut ends = Vec::with_capacity(steps.len());
        for step in steps {
            let key = |source, destination| Key { source, destination, tag: COLLECTIVE_TAG, communicator };
            match step.is_send {
                true => ends.extend(self.post_send(rank, key(rank, step.peer), step.bytes, false)?),
                false => ends.push(self.post_receive(rank, key(step.peer, rank))?),
            }
        }
        Ok(self.wait(rank, ends))
    }
}
