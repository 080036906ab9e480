//! A program with its messages matched, and an order of all steps in which every message is sent before it is
//! received.

use std::cell::Cell;
use std::collections::HashMap;

use foldhash::fast::RandomState;
use hopmap_model::{Action, Program};

use super::error::BoundError;
use crate::replay::Options;

/// A step of a rank; the numbers are indices into the tables of [`Steps`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Computes.
    Compute(u32),
    /// Sends a message, and goes on.
    Send(u32),
    /// Is ready for a rendezvous message, and goes on.
    Post(u32),
    /// Waits until a message has arrived.
    Receive(u32),
    /// Waits until a rendezvous message that it sent has arrived.
    Finish(u32),
}

/// A message: indices of its length and of its ordered pair of ranks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Message {
    pub(super) length: u32,
    pub(super) pair: u32,
}

/// What a message of some length costs at least.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Length {
    /// Bytes that links carry.
    pub(super) bytes: f64,
    /// Multiplies the latency.
    pub(super) latency_factor: f64,
    /// Multiplies the latency that messages on the same link pay in addition to their bytes, whichever of them
    /// is first and whichever is last.
    pub(super) shared_latency_factor: f64,
    /// Whether links serve it as a packet; `None` if it has no bytes on them.
    is_packet: Option<bool>,
    /// Seconds at the sender, before the message leaves.
    pub(super) send_s: f64,
    /// Seconds at the receiver, after its arrival.
    pub(super) receive_s: f64,
    /// Whether its transfer starts with the receive, if that is later.
    pub(super) needs_receive: bool,
    /// Whether the sender waits for its end.
    pub(super) is_rendezvous: bool,
}

impl Length {
    /// The least costs of messages by length.
    fn new(bytes: u64, options: &Options) -> Self {
        let costs = &options.costs;
        let in_network = bytes.saturating_add(costs.envelope_bytes);
        let is_rendezvous = bytes >= costs.eager_limit && bytes >= costs.detached_limit;
        let unless_rendezvous = |seconds: f64| if is_rendezvous { 0.0 } else { seconds };
        Self {
            bytes: in_network as f64 / costs.bandwidth_factor.of(in_network),
            latency_factor: costs.latency_factor.of(in_network),
            shared_latency_factor: costs.latency_factor.of(in_network),
            is_packet: (in_network > 0).then_some(in_network <= options.packet_bytes),
            send_s: unless_rendezvous(costs.send.of(bytes).min(costs.isend.of(bytes))),
            receive_s: unless_rendezvous(costs.recv.of(bytes)),
            needs_receive: bytes >= costs.eager_limit,
            is_rendezvous,
        }
    }
}

/// The steps of all ranks.
pub(super) struct Steps<'a> {
    stop: &'a dyn Fn() -> bool,
    is_stopped: Cell<bool>,
    /// Offsets of the steps of each rank, and the end.
    pub(super) starts: Vec<usize>,
    pub(super) list: Vec<Step>,
    pub(super) seconds: Vec<f64>,
    pub(super) messages: Vec<Message>,
    /// Different lengths of messages.
    pub(super) lengths: Vec<Length>,
    /// Source and destination of each pair with messages.
    pub(super) pairs: Vec<(u32, u32)>,
    /// Ranks, and the ends of their runs of steps, in an order without waiting.
    pub(super) order: Vec<(u32, usize)>,
}

const NONE: u32 = u32::MAX;
/// Runs of steps between two questions whether to stop.
const RUNS_PER_CHECK: usize = 1 << 12;

impl<'a> Steps<'a> {
    fn empty(stop: &'a dyn Fn() -> bool) -> Self {
        Self {
            stop,
            is_stopped: Cell::new(false),
            starts: vec![0],
            list: Vec::new(),
            seconds: Vec::new(),
            messages: Vec::new(),
            lengths: Vec::new(),
            pairs: Vec::new(),
            order: Vec::new(),
        }
    }

    /// Whether to stop. Once stopped, it stays so: results are incomplete.
    pub(super) fn is_stopped(&self) -> bool {
        self.is_stopped.set(self.is_stopped.get() || (self.stop)());
        self.is_stopped.get()
    }

    /// Fails if stopped.
    pub(super) fn check_stop(&self) -> Result<(), BoundError> {
        if self.is_stopped() { Err(BoundError::Stopped) } else { Ok(()) }
    }

    /// Number of ranks.
    pub(super) fn ranks(&self) -> usize {
        self.starts.len() - 1
    }

    /// Source and destination of a message.
    pub(super) fn ends(&self, message: u32) -> (u32, u32) {
        self.pairs[self.messages[message as usize].pair as usize]
    }

    /// What a message costs.
    pub(super) fn length(&self, message: u32) -> &Length {
        &self.lengths[self.messages[message as usize].length as usize]
    }

    /// The least factor of the latency that any messages on the same link pay in addition to their bytes.
    pub(super) fn least_latency_factor(&self) -> f64 {
        self.lengths.iter().map(|length| length.shared_latency_factor).fold(1.0, f64::min)
    }

    /// Flows are on all of their links after their whole latency. A packet is on its first link at once, and
    /// pays latency after each link. Packets alone pay it before or after a link, but if a packet is first and
    /// a flow is last, neither latency need add to their bytes: the flow pays its own while the packet passes.
    /// A packet that meets flows, from whatever rank, becomes one, so a single flow in the program suffices.
    fn let_flows_follow_packets(&mut self) {
        let has = |is_packet| self.lengths.iter().any(|length| length.is_packet == Some(is_packet));
        if has(true) && has(false) {
            let packets = self.lengths.iter_mut().filter(|length| length.is_packet == Some(true));
            packets.for_each(|length| length.shared_latency_factor = 0.0);
        }
    }

    /// The steps of a rank.
    pub(super) fn of_rank(&self, rank: u32) -> &[Step] {
        &self.list[self.starts[rank as usize]..self.starts[rank as usize + 1]]
    }

    /// Visits all steps in an order in which no rank waits: rank, index and step. Ends early if stopped.
    pub(super) fn visit(&self, mut step: impl FnMut(u32, usize, Step)) {
        let mut next = self.starts.clone();
        for (run, &(rank, end)) in self.order.iter().enumerate() {
            if run % RUNS_PER_CHECK == 0 && self.is_stopped() {
                return;
            }
            for index in next[rank as usize]..end {
                step(rank, index, self.list[index]);
            }
            next[rank as usize] = end;
        }
    }

    /// Visits all steps in the opposite order. Ends early if stopped.
    pub(super) fn visit_backwards(&self, mut step: impl FnMut(u32, usize, Step)) {
        let mut next: Vec<usize> = self.starts[1..].to_vec();
        let mut begins = Vec::with_capacity(self.order.len());
        let mut begin = self.starts.clone();
        for &(rank, end) in &self.order {
            begins.push(begin[rank as usize]);
            begin[rank as usize] = end;
        }
        for (run, (&(rank, _), &begin)) in self.order.iter().zip(&begins).enumerate().rev() {
            if run % RUNS_PER_CHECK == 0 && self.is_stopped() {
                return;
            }
            for index in (begin..next[rank as usize]).rev() {
                step(rank, index, self.list[index]);
            }
            next[rank as usize] = begin;
        }
    }

    /// Matches the messages of a program without collective operations, and orders its steps. Fails if ranks
    /// wait for each other.
    pub(super) fn new(
        program: &Program,
        options: &'a Options,
        stop: &'a dyn Fn() -> bool,
    ) -> Result<Self, BoundError> {
        let mut matching = Matching::new(options, stop);
        for rank in 0..program.ranks() {
            matching.steps.check_stop()?;
            matching.count_sends(program, rank);
        }
        let mut sent = 0;
        for rank in 0..program.ranks() {
            matching.steps.check_stop()?;
            matching.add_rank(program, rank, &mut sent)?;
        }
        let mut steps = matching.steps;
        steps.let_flows_follow_packets();
        steps.order = order(&steps)?;
        Ok(steps)
    }
}

/// Source, destination, tag and communicator.
type Channel = (u32, u32, u32, u32);

/// Matches the k-th send of a channel with its k-th receive.
struct Matching<'a> {
    steps: Steps<'a>,
    options: &'a Options,
    lengths: HashMap<u64, u32, RandomState>,
    channels: HashMap<Channel, u32, RandomState>,
    pairs: HashMap<(u32, u32), u32, RandomState>,
    /// The messages of each channel, and how many have been received.
    queues: Vec<(Vec<u32>, usize)>,
    /// What waiting for each request of a rank means.
    requests: Vec<Option<Step>>,
}

impl<'a> Matching<'a> {
    fn new(options: &'a Options, stop: &'a dyn Fn() -> bool) -> Self {
        Self {
            steps: Steps::empty(stop),
            options,
            lengths: HashMap::default(),
            channels: HashMap::default(),
            pairs: HashMap::default(),
            queues: Vec::new(),
            requests: Vec::new(),
        }
    }

    fn count_sends(&mut self, program: &Program, rank: u32) {
        let mut known: HashMap<u32, (u32, u32), RandomState> = HashMap::default();
        for operation in program.of_rank(rank) {
            let (Action::Send { envelope, bytes } | Action::Isend { envelope, bytes, .. }) =
                operation.action()
            else {
                continue;
            };
            let (channel, pair) =
                *known.entry(envelope).or_insert_with(|| self.channel(program, rank, envelope));
            self.queues[channel as usize].0.push(self.steps.messages.len() as u32);
            let lengths = &mut self.steps.lengths;
            let length = *self.lengths.entry(bytes).or_insert_with(|| {
                lengths.push(Length::new(bytes, self.options));
                lengths.len() as u32 - 1
            });
            self.steps.messages.push(Message { length, pair });
        }
    }

    /// The channel and the pair of a sender's envelope.
    fn channel(&mut self, program: &Program, rank: u32, envelope: u32) -> (u32, u32) {
        let envelope = program.envelopes[envelope as usize];
        let key = (rank, envelope.peer, envelope.tag, envelope.communicator);
        let queues = &mut self.queues;
        let channel = *self.channels.entry(key).or_insert_with(|| {
            queues.push((Vec::new(), 0));
            queues.len() as u32 - 1
        });
        let pairs = &mut self.steps.pairs;
        let pair = *self.pairs.entry((rank, envelope.peer)).or_insert_with(|| {
            pairs.push((rank, envelope.peer));
            pairs.len() as u32 - 1
        });
        (channel, pair)
    }

    fn add_rank(&mut self, program: &Program, rank: u32, sent: &mut u32) -> Result<(), BoundError> {
        let mut known: HashMap<u32, u32, RandomState> = HashMap::default();
        self.requests.clear();
        for operation in program.of_rank(rank) {
            match operation.action() {
                Action::Compute { seconds } => {
                    self.steps.list.push(Step::Compute(self.steps.seconds.len() as u32));
                    self.steps.seconds.push(seconds);
                }
                Action::Send { .. } => {
                    let finish = self.send(sent);
                    self.steps.list.extend(finish);
                }
                Action::Isend { request, .. } => {
                    let finish = self.send(sent);
                    self.activate(request, finish);
                }
                Action::Recv { envelope, .. } => {
                    let receive = self.receive(program, rank, envelope, &mut known)?;
                    self.steps.list.push(receive);
                }
                Action::Irecv { envelope, request, .. } => {
                    let receive = self.receive(program, rank, envelope, &mut known)?;
                    self.activate(request, Some(receive));
                }
                Action::Wait { request } => self.wait(request),
                Action::Waitall => (0..self.requests.len() as u32).for_each(|request| self.wait(request)),
                Action::Test { .. } | Action::Collective { .. } => {}
            }
        }
        self.steps.starts.push(self.steps.list.len());
        Ok(())
    }

    /// Starts a send; gives the step that waits for its end, if there is one.
    fn send(&mut self, sent: &mut u32) -> Option<Step> {
        let message = *sent;
        *sent += 1;
        self.steps.list.push(Step::Send(message));
        self.steps.length(message).is_rendezvous.then_some(Step::Finish(message))
    }

    /// Posts a receive; gives the step that waits for its end.
    fn receive(
        &mut self,
        program: &Program,
        rank: u32,
        envelope: u32,
        known: &mut HashMap<u32, u32, RandomState>,
    ) -> Result<Step, BoundError> {
        let channel = *known.entry(envelope).or_insert_with(|| {
            let envelope = program.envelopes[envelope as usize];
            let key = (envelope.peer, rank, envelope.tag, envelope.communicator);
            self.channels.get(&key).copied().unwrap_or(NONE)
        });
        let queue = self.queues.get_mut(channel as usize).ok_or(BoundError::Deadlock { rank })?;
        let message = *queue.0.get(queue.1).ok_or(BoundError::Deadlock { rank })?;
        queue.1 += 1;
        if self.steps.length(message).needs_receive {
            self.steps.list.push(Step::Post(message));
        }
        Ok(Step::Receive(message))
    }

    fn activate(&mut self, request: u32, wait: Option<Step>) {
        let index = request as usize;
        if self.requests.len() <= index {
            self.requests.resize(index + 1, None);
        }
        self.requests[index] = wait;
    }

    fn wait(&mut self, request: u32) {
        let wait = self.requests.get_mut(request as usize).and_then(Option::take);
        self.steps.list.extend(wait);
    }
}

/// Runs every rank until it has to wait, and again when what it waits for has happened.
fn order(steps: &Steps<'_>) -> Result<Vec<(u32, usize)>, BoundError> {
    let ranks = steps.ranks();
    let mut next: Vec<usize> = steps.starts[..ranks].to_vec();
    let mut progress = Progress::new(steps);
    let mut ready: Vec<u32> = (0..ranks as u32).rev().collect();
    let mut order = Vec::new();
    while let Some(rank) = ready.pop() {
        let begin = next[rank as usize];
        let mine = &steps.list[begin..steps.starts[rank as usize + 1]];
        let run = mine.iter().position(|&step| !progress.can_do(steps, rank, step, &mut ready));
        let end = begin + run.unwrap_or(mine.len());
        if end > begin {
            order.push((rank, end));
        }
        next[rank as usize] = end;
    }
    match (0..ranks).find(|&rank| next[rank] < steps.starts[rank + 1]) {
        Some(rank) => Err(BoundError::Deadlock { rank: rank as u32 }),
        None => Ok(order),
    }
}

/// What has happened so far, and who waits for what.
struct Progress {
    is_sent: Vec<bool>,
    is_posted: Vec<bool>,
    waiting: Vec<Option<Step>>,
}

impl Progress {
    fn new(steps: &Steps<'_>) -> Self {
        Self {
            is_sent: vec![false; steps.messages.len()],
            is_posted: vec![false; steps.messages.len()],
            waiting: vec![None; steps.ranks()],
        }
    }

    /// Does a step, or says that its rank has to wait.
    fn can_do(&mut self, steps: &Steps<'_>, rank: u32, step: Step, ready: &mut Vec<u32>) -> bool {
        let is_ready = match step {
            Step::Compute(_) => true,
            Step::Send(message) => {
                self.is_sent[message as usize] = true;
                self.wake(steps.ends(message).1, Step::Receive(message), ready);
                true
            }
            Step::Post(message) => {
                self.is_posted[message as usize] = true;
                self.wake(steps.ends(message).0, Step::Finish(message), ready);
                true
            }
            Step::Receive(message) => self.is_sent[message as usize],
            Step::Finish(message) => self.is_posted[message as usize],
        };
        self.waiting[rank as usize] = (!is_ready).then_some(step);
        is_ready
    }

    fn wake(&mut self, rank: u32, step: Step, ready: &mut Vec<u32>) {
        if self.waiting[rank as usize] == Some(step) {
            self.waiting[rank as usize] = None;
            ready.push(rank);
        }
    }
}
