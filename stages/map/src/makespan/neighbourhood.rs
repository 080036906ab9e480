//! Where searches of the makespan begin, and the exchanges that they propose.
//!
//! Most proposals move one end of a message on the critical path closer to the other end. A surrogate, the squared
//! delays of all messages that can delay the end, breaks the ties between mappings of equal makespan.

use hopmap_islands::{Budget, Candidate as Best};
use hopmap_model::{Context, Error};
use hopmap_random::{Draw, Pcg64, Rng};
use hopmap_replay::ExchangeEvaluator;

use super::{Candidate, Makespan};
use crate::moves::draw_closer;

/// Weight of the surrogate of the best candidate, relative to the possible gain.
const SURROGATE: f64 = 0.3;
/// One in this many proposals is unrestricted.
const ANYWHERE: usize = 8;
/// Excess over the best candidate, relative to the possible gain, up to which a search begins with another one.
const AS_GOOD: f64 = 0.3;

/// Starts and proposals.
pub(super) struct Neighbourhood<'a> {
    pub(super) makespan: &'a Makespan<'a>,
    starts: Vec<Candidate>,
    pub(super) bound: i64,
    /// The possible gain: the makespan of the best candidate less the bound.
    pub(super) gain: f64,
    /// Ticks per unit of the surrogate.
    weight: f64,
}

impl<'a> Neighbourhood<'a> {
    pub(super) fn new(
        makespan: &'a Makespan<'a>,
        seed: u64,
        budget: &Budget,
        cx: &Context<'_>,
    ) -> Result<Self, Error> {
        let starts = makespan.candidates(seed, budget, cx)?;
        let (bound, best) = (makespan.replay.lower_bound(), &starts[0]);
        let gain = (best.makespan - bound).max(1) as f64;
        let weight = SURROGATE * gain / makespan.replay.surrogate(&best.slots).max(1) as f64;
        Ok(Self { makespan, starts, bound, gain, weight })
    }

    /// The best candidate.
    pub(super) fn best(&self) -> Best<Vec<u32>> {
        Best { cost: self.starts[0].makespan, solution: self.starts[0].slots.clone() }
    }

    /// A candidate that is about as good as the best one.
    pub(super) fn start(&self, number: usize) -> &[u32] {
        let worst = self.starts[0].makespan + (self.gain * AS_GOOD) as i64;
        let good = self.starts.iter().take_while(|start| start.makespan <= worst).count();
        &self.starts[number % good].slots
    }

    pub(super) fn placed(&self, slots: &[u32]) -> ExchangeEvaluator<'a> {
        ExchangeEvaluator::new(&self.makespan.replay, slots, self.weight)
    }

    /// A rank and a slot for it: usually an end of a message on the critical path, and a slot closer to the other
    /// end.
    pub(super) fn propose(&self, placed: &ExchangeEvaluator<'_>, random: &mut Pcg64) -> (u32, u32) {
        let draw = random.next_u64();
        if let Some(channel) = placed.critical_channel(draw).filter(|_| random.below(ANYWHERE) > 0) {
            let channel = self.makespan.replay.program().channels().all[channel as usize];
            let bits = random.next_u64();
            let ends = [(channel.from, channel.to), (channel.to, channel.from)];
            let (rank, other) = ends[usize::from(bits.is_multiple_of(2))];
            let [here, there] = [rank, other].map(|rank| placed.slots()[rank as usize]);
            let distance = self.makespan.problem.distance();
            if let Some(slot) = draw_closer(distance, here, there, (bits >> 32) as u32) {
                return (rank, slot);
            }
        }
        let replay = &self.makespan.replay;
        (random.below(replay.ranks()) as u32, random.below(replay.slots()) as u32)
    }

    /// Whether an exchange changes the mapping and satisfies the constraints.
    pub(super) fn admits(&self, placed: &ExchangeEvaluator<'_>, rank: u32, slot: u32) -> bool {
        let here = placed.slots()[rank as usize];
        self.makespan.admits(placed.rank_at(slot), rank, slot, here)
    }
}
