//! How many rounds there are, and how long everything takes.

use super::MOST_RANKS;
use super::pattern::Program;
use crate::{GenerateError, GenerateParams};

/// Events of a message at each of its ends: a call of MPI with the message in it, and some computing.
const EVENTS_PER_MESSAGE: u64 = 5;
/// Events around all rounds of a rank.
const EVENTS_AROUND: u64 = 2;
/// Time between two regions, and before a message within its call.
pub(super) const GAP: u64 = 1;

/// A program and when it does what. Times are in nanoseconds.
#[derive(Debug)]
pub(super) struct Schedule {
    pub(super) program: Program,
    pub(super) rounds: u64,
}

impl Schedule {
    /// As many rounds as bring the number of events nearest to what is asked for.
    pub(super) fn new(params: &GenerateParams) -> Result<Self, GenerateError> {
        let ranks = params.ranks;
        if !(2..=MOST_RANKS).contains(&ranks) {
            return Err(GenerateError::Ranks { ranks });
        }
        let program = Program::new(params);
        let around = EVENTS_AROUND * u64::from(ranks);
        // Rounds of different phases have different numbers of messages.
        let phases = program.phases();
        let per_turn = 2 * EVENTS_PER_MESSAGE * (0..phases).map(|phase| program.messages(phase)).sum::<u64>();
        let events = params.events.saturating_sub(around).saturating_mul(phases);
        let rounds = events.saturating_add(per_turn / 2) / per_turn;
        if rounds == 0 {
            return Err(GenerateError::TooFew { events: params.events, needed: around + per_turn / phases });
        }
        Ok(Self { program, rounds })
    }

    /// Number of rounds of a phase.
    pub(super) fn rounds_of(&self, phase: u64) -> u64 {
        (self.rounds + self.program.phases() - 1 - phase) / self.program.phases()
    }

    /// Number of events of all ranks.
    pub(super) fn events(&self) -> u64 {
        (0..self.program.ranks).map(|rank| self.events_of(rank)).sum()
    }

    /// Number of events of a rank.
    pub(super) fn events_of(&self, rank: u32) -> u64 {
        let messages = |phase| {
            let ends = self.program.destinations(rank, phase).len() + self.program.sources(rank, phase).len();
            self.rounds_of(phase) * ends as u64
        };
        EVENTS_AROUND + EVENTS_PER_MESSAGE * (0..self.program.phases()).map(messages).sum::<u64>()
    }

    /// How long a rank computes for each message of a round.
    pub(super) fn computing(&self, rank: u32, round: u64) -> u64 {
        200 + self.program.mix((2 << 40) + u64::from(rank), round) % 800
    }

    /// How long a call of MPI takes at either end.
    pub(super) fn transfer(&self, source: u32, destination: u32) -> u64 {
        1000 + self.program.bytes(source, destination) / 10
    }

    /// Time a rank spends outside of MPI.
    pub(super) fn compute(&self, rank: u32) -> u64 {
        let ends: Vec<u64> = (0..self.program.phases())
            .map(|phase| {
                let sent = self.program.destinations(rank, phase).len();
                (sent + self.program.sources(rank, phase).len()) as u64
            })
            .collect();
        let phases = self.program.phases();
        let round = |round| ends[(round % phases) as usize] * (self.computing(rank, round) + 2 * GAP);
        GAP + (0..self.rounds).map(round).sum::<u64>()
    }

    /// Time between the first and the last event of a rank.
    pub(super) fn duration(&self, rank: u32) -> u64 {
        let transfers = |phase| {
            let sent = self.program.destinations(rank, phase).into_iter();
            let received = self.program.sources(rank, phase).into_iter();
            let sent = sent.map(|other| self.transfer(rank, other)).sum::<u64>();
            sent + received.map(|other| self.transfer(other, rank)).sum::<u64>()
        };
        let transfers = (0..self.program.phases()).map(|phase| self.rounds_of(phase) * transfers(phase));
        self.compute(rank) + transfers.sum::<u64>()
    }
}
