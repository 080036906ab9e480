//! What an algorithm costs under a placement.

use hopmap_collectives::{Algorithm, Call, Operation};
use hopmap_model::{Costs, Edge, Weight};

/// Where the members of a communicator are, and what their messages weigh.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) costs: &'a Costs<'a>,
    /// Ranks of the program by rank of the communicator.
    pub(super) members: &'a [u32],
    /// Slots by rank of the program.
    pub(super) slots: &'a [u32],
    pub(super) weight: Weight,
}

impl Place<'_> {
    /// Weight × cost of messages between two members.
    fn cost(&self, edge: &Edge) -> f64 {
        let slot = |member: u32| self.slots[self.members[member as usize] as usize];
        self.weight.of(edge) * self.costs.between(slot(edge.source), slot(edge.destination))
    }
}

/// What calls of an operation cost.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Measure {
    /// Messages of all calls.
    pub(super) messages: f64,
    /// Messages of one call that follow each other.
    pub(super) rounds: u64,
    /// Σ weight × cost of all messages.
    pub(super) total: f64,
    /// Σ over rounds of the largest weight × cost of a process.
    pub(super) path: f64,
}

impl Measure {
    /// What one call costs that an algorithm is for.
    pub(super) fn of(call: &Call, algorithm: Algorithm, place: &Place<'_>) -> Self {
        let mut clock = Clock::new(call, algorithm);
        let mut measure = Self::default();
        let told = call.messages(algorithm, |round, mut edge| {
            if call.operation == Operation::Barrier {
                edge.bytes = edge.messages;
            }
            let cost = place.cost(&edge);
            measure.messages += edge.messages as f64;
            measure.total += cost;
            clock.add(round, &edge, cost);
        });
        debug_assert!(told.is_ok(), "the task graph has been checked");
        (measure.rounds, measure.path) = clock.finish();
        measure
    }

    /// Adds so many calls.
    pub(super) fn add(&mut self, one: &Self, calls: u64) {
        let calls = calls as f64;
        self.messages += one.messages * calls;
        self.rounds = self.rounds.max(one.rounds);
        self.total += one.total * calls;
        self.path += one.path * calls;
    }
}

/// The busiest of each round.
enum Clock {
    /// Nobody sends or gets more than one message, or messages with one partner, in a round: messages and cost by round.
    Rounds(Vec<(u64, f64)>),
    /// All is sent at once: messages and cost by process, sent and received.
    AtOnce { sent: Vec<(u64, f64)>, received: Vec<(u64, f64)> },
}

impl Clock {
    fn new(call: &Call, algorithm: Algorithm) -> Self {
        let processes = call.processes as usize;
        match algorithm {
            Algorithm::Linear => {
                Self::AtOnce { sent: vec![(0, 0.0); processes], received: vec![(0, 0.0); processes] }
            }
            _ => Self::Rounds(Vec::new()),
        }
    }

    fn add(&mut self, round: u32, edge: &Edge, cost: f64) {
        match self {
            Self::Rounds(rounds) => {
                let round = round as usize;
                if round >= rounds.len() {
                    rounds.resize(round + 1, (0, 0.0));
                }
                rounds[round] = (rounds[round].0.max(edge.messages), rounds[round].1.max(cost));
            }
            Self::AtOnce { sent, received } => {
                let ends = [&mut sent[edge.source as usize], &mut received[edge.destination as usize]];
                for (messages, sum) in ends {
                    *messages += edge.messages;
                    *sum += cost;
                }
            }
        }
    }

    /// Messages that follow each other, and their cost.
    fn finish(self) -> (u64, f64) {
        match self {
            Self::Rounds(rounds) => {
                rounds.iter().fold((0, 0.0), |(count, sum), (messages, cost)| (count + messages, sum + cost))
            }
            Self::AtOnce { sent, received } => {
                let all = sent.iter().chain(&received);
                all.fold((0, 0.0), |(count, most), (messages, cost)| (count.max(*messages), most.max(*cost)))
            }
        }
    }
}
