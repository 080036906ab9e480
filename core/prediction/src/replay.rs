//! The replay: ranks that are ready, flows in progress, and events by time.

mod result;
#[cfg(test)]
mod simgrid_tests;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap, VecDeque};

use hopmap_collectives::Algorithms;
use hopmap_model::{Activity, CostName, Interval, Mapping, Prediction, Program, SystemGraph};

use crate::collective::Collectives;
use crate::costs::Costs;
use crate::error::{Cycle, ReplayError, Wait};
use crate::flows::{Demand, Flows, Path};
use crate::message::{Message, Messages};
use crate::network::{Network, PairRates, Rate, Route};
use crate::packets::Packets;
use crate::rank::Rank;
use crate::sharing::Sharing;

/// How a program is replayed. By default, links are shared by max-min fairness and nothing else costs time.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// How messages share links.
    pub sharing: Sharing,
    /// Messages up to this size are one packet: links serve them in the order of arrival. Longer ones share links.
    pub packet_bytes: u64,
    /// Costs of messages at both ends.
    pub costs: Costs,
    /// The memory of a host, for messages between its ranks.
    pub memory: Rate,
    /// Rates between slots of a machine without links, or whose links have no rates; others do not use them.
    pub pairs: Option<PairRates>,
    /// Algorithms of collective operations.
    pub algorithms: Algorithms,
    /// Greatest number of intervals of the timeline; further ones are left out.
    pub intervals: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            sharing: Sharing::default(),
            packet_bytes: Self::PACKET_BYTES,
            costs: Costs::default(),
            memory: Rate::MEMORY,
            pairs: None,
            algorithms: Algorithms::default(),
            intervals: 0,
        }
    }
}

impl Options {
    /// The largest packet of most Ethernet networks.
    pub const PACKET_BYTES: u64 = 1500;

    /// The defaults with the calibration of a machine, if it has one.
    #[must_use]
    pub fn of_machine(system: &SystemGraph) -> Self {
        let value = |cost| system.calibration.iter().find(|row| row.cost == cost).map(|row| row.value);
        let memory = Rate {
            latency_s: value(CostName::MemoryLatency).unwrap_or(Rate::MEMORY.latency_s),
            bandwidth_bytes_per_s: value(CostName::MemoryBandwidth)
                .unwrap_or(Rate::MEMORY.bandwidth_bytes_per_s),
        };
        Self { costs: Costs::calibrated(&system.calibration), memory, ..Self::default() }
    }
}

/// Replays a program on a machine with its ranks on the slots of a mapping.
///
/// Hosts with different [`performance`](hopmap_model::NodeTraits::performance) compute at different speed; the
/// seconds of the program are those of the fastest host that has a rank. Ranks whose slots have the same core
/// share it. `should_stop` is called every few thousand operations and events; when it returns `true`, the
/// prediction is that of the time reached, and not complete.
pub fn replay(
    program: &Program,
    system: &SystemGraph,
    mapping: &Mapping,
    options: &Options,
    should_stop: &dyn Fn() -> bool,
) -> Result<Prediction, ReplayError> {
    program.check()?;
    system.check()?;
    mapping.check()?;
    options.algorithms.check()?;
    let counts = [
        ("ranks", mapping.ranks.len(), "program", program.ranks() as usize),
        ("slots", mapping.slot_count() as usize, "machine", system.slots.len()),
    ];
    for (what, given, of, expected) in counts {
        if given != expected {
            return Err(ReplayError::OtherMapping { what, given, of, expected });
        }
    }
    let network = Network::new(system, options.memory, options.pairs.as_ref())?;
    let slots = mapping.slots();
    let mut replay = Replay::new(program, network, slots, options, should_stop);
    replay.place(system);
    replay.execute()?;
    Ok(replay.prediction(system))
}

/// Events closer together than this share of the time see the same rates: they are simultaneous but for rounding.
const SIMULTANEOUS: f64 = 1e-12;
/// Operations and events between two questions whether to stop.
const STEPS_PER_CHECK: u32 = 1 << 12;
const NONE: u32 = u32::MAX;
/// Marks a flow that is the computation of a rank, not a message.
const COMPUTATION: u32 = 1 << 31;

/// What happens at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Event {
    /// The latency of a message has passed, of which a packet has already passed some links.
    Flow { message: u32, hop: u32 },
    /// The packets have passed for which a message waited.
    Waited { message: u32, hop: u32 },
    /// A message of one packet comes to a link of its route.
    Packet { message: u32, hop: u32 },
    /// A rank begins to compute on a core that it shares; the bits of its seconds.
    Compute { rank: u32, seconds: u64 },
    /// A rank begins a test.
    Test { rank: u32, request: u32 },
    /// A rank ends a test.
    EndTest { rank: u32, request: u32 },
    /// The clock has reached a rank.
    Resume { rank: u32 },
}

/// A replay in progress.
pub(crate) struct Replay<'a> {
    pub(crate) program: &'a Program,
    pub(crate) options: &'a Options,
    network: Network<'a>,
    slots: Vec<u32>,
    /// Time of a second of computation of every rank.
    pub(crate) pace: Vec<f64>,
    /// The link that models the core of every rank, if others share it.
    pub(crate) cores: Vec<u32>,
    pub(crate) ranks: Vec<Rank>,
    pub(crate) messages: Messages,
    pub(crate) collectives: Collectives<'a>,
    pub(crate) intervals: Intervals,
    flows: Flows,
    packets: Packets,
    /// Computation of ranks in flows.
    computing: Vec<f64>,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    sequence: u64,
    ready: VecDeque<u32>,
    pub(crate) clock: f64,
    /// Length of the next test, in tests.
    pub(crate) tests: u32,
    should_stop: &'a dyn Fn() -> bool,
    steps: u32,
    is_stopped: bool,
}

impl<'a> Replay<'a> {
    fn new(
        program: &'a Program,
        network: Network<'a>,
        slots: Vec<u32>,
        options: &'a Options,
        should_stop: &'a dyn Fn() -> bool,
    ) -> Self {
        let operations = program.starts.windows(2).map(|pair| pair[0]..pair[1]);
        let capacities = network.capacities();
        Self {
            program,
            options,
            slots,
            pace: vec![1.0; program.ranks() as usize],
            cores: vec![NONE; program.ranks() as usize],
            ranks: operations.map(Rank::new).collect(),
            messages: Messages::default(),
            collectives: Collectives::new(program, options.algorithms),
            intervals: Intervals { most: options.intervals, intervals: Vec::new() },
            packets: Packets::new(&capacities, &network.latencies()),
            flows: Flows::new(capacities),
            network,
            computing: vec![0.0; program.ranks() as usize],
            events: BinaryHeap::new(),
            sequence: 0,
            ready: (0..program.ranks()).collect(),
            clock: 0.0,
            tests: 1,
            should_stop,
            steps: 0,
            is_stopped: false,
        }
    }

    /// Sets the speed of every rank on its host, and finds cores with several ranks.
    fn place(&mut self, system: &SystemGraph) {
        let host = |slot: &u32| system.slots[*slot as usize].host;
        let speeds = self.slots.iter().map(|slot| system.nodes[host(slot) as usize].traits.performance);
        let speeds: Option<Vec<f64>> = speeds.map(|speed| speed.filter(|speed| *speed > 0.0)).collect();
        if let Some(speeds) = speeds {
            let fastest = speeds.iter().copied().fold(0.0, f64::max);
            self.pace = speeds.into_iter().map(|speed| fastest / speed).collect();
        }
        let mut cores: BTreeMap<(u32, u32), Vec<usize>> = BTreeMap::new();
        for (rank, slot) in self.slots.iter().enumerate() {
            cores.entry((host(slot), system.slots[*slot as usize].core)).or_default().push(rank);
        }
        for ranks in cores.into_values().filter(|ranks| ranks.len() > 1) {
            let core = self.flows.add_link(1.0);
            ranks.into_iter().for_each(|rank| self.cores[rank] = core);
        }
    }

    fn execute(&mut self) -> Result<(), ReplayError> {
        while !self.is_stopped {
            if let Some(rank) = self.ready.pop_front() {
                self.run(rank)?;
                continue;
            }
            let event = self.events.peek().map(|Reverse((bits, ..))| f64::from_bits(*bits));
            let end = self.flows.next_end();
            let next = event.into_iter().chain(end).reduce(f64::min);
            if self.flows.is_changed() && next.is_none_or(|next| next > self.clock * (1.0 + SIMULTANEOUS)) {
                self.flows.solve(self.clock);
                continue;
            }
            let Some(next) = next else { return self.check_end() };
            self.clock = self.clock.max(next);
            match event {
                Some(event) if event <= next => self.next_event(),
                _ => self.end_flow(),
            }
            self.should_stop();
        }
        Ok(())
    }

    /// Asks from time to time whether to stop.
    pub(crate) fn should_stop(&mut self) -> bool {
        self.steps += 1;
        if self.steps >= STEPS_PER_CHECK {
            self.steps = 0;
            self.is_stopped |= (self.should_stop)();
        }
        self.is_stopped
    }

    /// Adds an event. Simultaneous events happen in the order in which they were added.
    pub(crate) fn at(&mut self, time: f64, event: Event) {
        self.sequence += 1;
        self.events.push(Reverse((time.to_bits(), self.sequence, event)));
    }

    fn next_event(&mut self) {
        let Some(Reverse((.., event))) = self.events.pop() else { return };
        match event {
            Event::Flow { message, hop } => self.start_flow(message, hop),
            Event::Waited { message, hop } => self.end_wait(message, hop),
            Event::Packet { message, hop } => self.pass(message, hop),
            Event::Compute { rank, seconds } => {
                let seconds = f64::from_bits(seconds);
                self.computing[rank as usize] = seconds;
                let demand = Demand { amount: seconds, factor: 1.0, owner: rank | COMPUTATION };
                let core = self.cores[rank as usize];
                let path = Path { number: core << 1 | 1, links: &[core], penalty: 1.0, bound: f64::INFINITY };
                self.flows.start(demand, path, self.clock);
            }
            Event::Test { rank, request } => self.begin_test(rank, request),
            Event::EndTest { rank, request } => {
                self.end_test(rank, request);
                self.ready.push_back(rank);
            }
            Event::Resume { rank } => self.ready.push_back(rank),
        }
    }

    fn end_flow(&mut self) {
        match self.flows.end() {
            Some(owner) if owner & COMPUTATION != 0 => {
                let rank = owner & !COMPUTATION;
                self.end_compute(rank, self.clock, self.computing[rank as usize]);
                self.ready.push_back(rank);
            }
            Some(message) => self.end_transfer(message, self.clock),
            None => {}
        }
    }

    /// Bytes in the network, factor of the bandwidth, and highest rate before the factor.
    fn load(&self, bytes: u64, route: &Route) -> (u64, f64, f64) {
        let costs = &self.options.costs;
        let bytes = bytes.saturating_add(costs.envelope_bytes);
        let window = costs.window_bytes.filter(|_| route.latency_s > 0.0);
        let bound = window.map_or(f64::INFINITY, |window| window / (2.0 * route.latency_s));
        (bytes, costs.bandwidth_factor.of(bytes), bound)
    }

    /// Starts the transfer of a message at its start, which is known and not before the clock.
    pub(crate) fn start_transfer(&mut self, index: u32) -> Result<(), ReplayError> {
        let message = self.messages.get(index);
        let route = match self.messages.route(index) {
            Some(route) => route,
            None => {
                let [from, to] = [message.source, message.destination].map(|rank| self.slots[rank as usize]);
                let route = self.network.between(from, to)?;
                self.messages.set_route(index, route);
                route
            }
        };
        let route = self.network.route(route);
        let (bytes, factor, bound) = self.load(self.messages.get(index).bytes, route);
        let latency = route.latency_s * self.options.costs.latency_factor.of(bytes);
        let seconds = bytes as f64 / (route.bandwidth.min(bound) * factor);
        let message = self.messages.get_mut(index);
        message.path.latency += latency;
        message.path.bandwidth += seconds;
        let (start, arrival) = (message.start, message.start + latency);
        let is_packet = bytes <= self.options.packet_bytes;
        match self.network.is_contended() && bytes > 0 {
            true if is_packet => self.at(start, Event::Packet { message: index, hop: 0 }),
            true if arrival > self.clock => self.at(arrival, Event::Flow { message: index, hop: 0 }),
            true => self.start_flow(index, 0),
            false => self.end_transfer(index, arrival + seconds),
        }
        Ok(())
    }

    /// Sends a packet over the link of its route that it has come to.
    fn pass(&mut self, index: u32, hop: u32) {
        let Some(number) = self.messages.route(index) else { return };
        let links = &self.network.links(number)[hop as usize..];
        let route = self.network.route(number);
        let message_bytes = self.messages.get(index).bytes;
        let (bytes, factor, bound) = self.load(message_bytes, route);
        let latency_factor = self.options.costs.latency_factor.of(bytes);
        let latency = |link: &u32| self.packets.latency_s(*link) * latency_factor;
        if self.flows.is_used(links[0]) || self.packets.is_awaited(links[0]) {
            let rest: f64 = links.iter().map(latency).sum();
            return self.at(self.clock + rest, Event::Flow { message: index, hop });
        }
        let (latency, is_last) = (latency(&links[0]), links.len() == 1);
        let seconds = bytes as f64 / (route.bandwidth.min(bound) * factor);
        let head = self.packets.queue(links[0], bytes as f64 / factor, self.clock) + latency;
        if is_last {
            self.network.count(number, message_bytes);
            self.end_transfer(index, head + seconds);
        } else {
            self.at(head, Event::Packet { message: index, hop: hop + 1 });
        }
    }

    fn start_flow(&mut self, index: u32, hop: u32) {
        let Some(number) = self.messages.route(index) else { return };
        match self.packets.wait(&self.network.links(number)[hop as usize..], self.clock) {
            Some(end) => self.at(end, Event::Waited { message: index, hop }),
            None => self.share(index, number),
        }
    }

    fn end_wait(&mut self, index: u32, hop: u32) {
        let Some(number) = self.messages.route(index) else { return };
        self.packets.end_wait(&self.network.links(number)[hop as usize..]);
        self.share(index, number);
    }

    /// Lets a message share the links of its route.
    fn share(&mut self, index: u32, number: u32) {
        let links = self.network.links(number);
        let route = self.network.route(number);
        let message_bytes = self.messages.get(index).bytes;
        let (bytes, factor, bound) = self.load(message_bytes, route);
        let penalty = match self.options.sharing {
            Sharing::MaxMin => 1.0,
            Sharing::Rtt { bytes_per_link } => route.latency_s + bytes_per_link * route.inverse_bandwidths,
        };
        let penalty = if penalty > 0.0 { penalty } else { 1.0 };
        let bound = if bound < route.bandwidth { bound } else { f64::INFINITY };
        let demand = Demand { amount: bytes as f64, factor, owner: index };
        self.flows.start(demand, Path { number: number << 1, links, penalty, bound }, self.clock);
        self.network.count(number, message_bytes);
    }

    fn end_transfer(&mut self, index: u32, end: f64) {
        let message = self.messages.get_mut(index);
        message.end = end;
        let ends =
            [(message.is_sender_blocked, message.source), (message.is_receiver_blocked, message.destination)];
        for (_, rank) in ends.into_iter().filter(|(is_blocked, _)| *is_blocked) {
            let state = &mut self.ranks[rank as usize];
            state.pending -= 1;
            if state.pending == 0 {
                self.ready.push_back(rank);
            }
        }
        self.messages.release(index);
    }

    /// Checks that nobody waits and no message is left.
    fn check_end(&self) -> Result<(), ReplayError> {
        let waits = |rank: &Rank| !rank.is_finished();
        if let Some(rank) = self.ranks.iter().position(waits) {
            return Err(self.deadlock(rank as u32));
        }
        match self.messages.unmatched() {
            Some(&Message { source, destination, bytes, .. }) => {
                Err(ReplayError::NeverReceived { source_rank: source, destination, bytes })
            }
            None => Ok(()),
        }
    }

    /// The cycle of waiting ranks that a rank leads to.
    fn deadlock(&self, first: u32) -> ReplayError {
        let mut places = HashMap::new();
        let mut waits: Vec<Wait> = Vec::new();
        let mut rank = first;
        loop {
            if let Some(place) = places.insert(rank, waits.len()) {
                return ReplayError::Deadlock(Cycle(waits.split_off(place)));
            }
            match self.wait_of(rank) {
                Some(wait) => {
                    rank = wait.peer;
                    waits.push(wait);
                }
                None => break,
            }
        }
        match waits.last() {
            Some(&Wait { rank, index, is_send: false, peer, .. }) => {
                ReplayError::NeverSent { source_rank: peer, destination: rank, index }
            }
            _ => ReplayError::Deadlock(Cycle(waits)),
        }
    }

    /// What a rank waits for, if it does.
    fn wait_of(&self, rank: u32) -> Option<Wait> {
        let state = &self.ranks[rank as usize];
        let end = state.awaited.iter().find(|end| self.messages.get(end.message()).end.is_nan())?;
        let message = self.messages.get(end.message());
        let is_send = !end.is_receive();
        let peer = if is_send { message.destination } else { message.source };
        let operation = state.next - 1;
        let index = operation - self.program.starts[rank as usize];
        Some(Wait { rank, index, kind: self.program.operations[operation].kind(), is_send, peer })
    }
}

/// The timeline, bounded.
#[derive(Debug)]
pub(crate) struct Intervals {
    most: usize,
    intervals: Vec<Interval>,
}

impl Intervals {
    pub(crate) fn add(
        &mut self,
        rank: u32,
        activity: Activity,
        start_s: f64,
        finish_s: f64,
        peer: Option<u32>,
    ) {
        if self.intervals.len() < self.most && finish_s > start_s {
            self.intervals.push(Interval { rank, start_s, finish_s, activity, peer });
        }
    }
}
