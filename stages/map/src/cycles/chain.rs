//! One island's chain of exchanges.

use hopmap_islands::Meter;
use hopmap_objective::{Assignment, ObjectiveError};
use rand_pcg::Pcg64;
use rand_pcg::rand_core::Rng;

use super::Ground;
use super::incumbent::Incumbent;
use super::temperature::Temperatures;
use crate::{Cooling, descend};

/// Sweeps of the first cycle.
const FIRST_SWEEPS: u64 = 64;
/// Temperatures in mean changes of cost: where a cycle begins, where the first one begins, where all end.
const HOT: f64 = 2.0;
const WARM: f64 = 0.3;
const COLD: f64 = 0.02;
/// Neighbours that a rank draws before it goes anywhere.
const DRAWS: usize = 3;

/// Sweeps of a cycle, numbered from zero: each is twice as long as the one before.
pub(super) fn sweeps_of_cycle(cycle: u32) -> u64 {
    FIRST_SWEEPS << cycle.min(48)
}

/// The chain of exchanges of one island.
pub(super) struct Chain<'g> {
    ground: &'g Ground<'g>,
    assignment: Assignment<'g>,
    random: Pcg64,
    cooling: Cooling,
    pub(super) incumbent: Incumbent,
}

impl<'g> Chain<'g> {
    pub(super) fn new(
        ground: &'g Ground<'g>,
        start: Assignment<'g>,
        random: Pcg64,
        cooling: Cooling,
    ) -> Self {
        let incumbent = Incumbent::new(&start);
        Self { ground, assignment: start, random, cooling, incumbent }
    }

    /// Anneals cycle after cycle until the meter stops it.
    pub(super) fn run(&mut self, meter: &mut Meter<'_>) {
        for cycle in 0.. {
            let sweeps = sweeps_of_cycle(cycle);
            let hot = if cycle == 0 { WARM } else { HOT };
            let unit = self.ground.mean_change;
            for temperature in Temperatures::new(self.cooling, hot * unit, COLD * unit, sweeps) {
                let finished = self.sweep(temperature, meter);
                self.incumbent.settle(&mut self.assignment);
                if !finished {
                    return;
                }
            }
        }
    }

    /// Descends from the best placement.
    pub(super) fn descend(&mut self, meter: &mut Meter<'_>) -> Result<(), ObjectiveError> {
        let mut assignment = Assignment::new(self.ground.problem, &self.incumbent.slots)?;
        descend(&mut assignment, || meter.take());
        self.incumbent.replace(&assignment, meter.spent());
        Ok(())
    }

    /// Every rank proposes one exchange; `false` if the meter stopped it.
    fn sweep(&mut self, temperature: f64, meter: &mut Meter<'_>) -> bool {
        for &rank in &self.ground.movable {
            if !meter.take() {
                return false;
            }
            let slot = self.propose(rank);
            let delta = self.assignment.delta(rank, slot);
            if delta == Assignment::NEVER {
                continue;
            }
            if delta <= 0 || delta as f64 <= temperature * self.ground.acceptance.draw(&mut self.random) {
                self.incumbent.record(&self.assignment, rank, slot, delta, meter.spent());
                self.assignment.exchange(rank, slot, delta);
            }
        }
        true
    }

    /// A slot for a rank: towards a neighbour, else anywhere outside its innermost group.
    fn propose(&mut self, rank: u32) -> u32 {
        let problem = self.ground.problem;
        let distance = problem.distance();
        let neighbours = problem.neighbours(rank);
        let here = self.assignment.slot_of(rank);
        let draws = if distance.is_tree() && !neighbours.is_empty() { DRAWS } else { 0 };
        for _ in 0..draws {
            let draw = self.random.next_u64();
            let neighbour = neighbours[below(draw as u32, neighbours.len())];
            let there = self.assignment.slot_of(neighbour.rank);
            let level = distance.meeting_level(here, there);
            if level > 0 {
                let group = distance.group(level - 1, there);
                let slot = distance.order()[group.start + below((draw >> 32) as u32, group.len())];
                if slot != there {
                    return slot;
                }
            }
        }
        let own = distance.group(0, here);
        let index = below(self.random.next_u32(), distance.order().len() - own.len());
        distance.order()[if index < own.start { index } else { index + own.len() }]
    }
}

/// A number below a bound of at most 2^32, from 32 random bits. For searches only: some numbers are likelier than others by as
/// little as the bound is below 2^32.
fn below(bits: u32, bound: usize) -> usize {
    ((u64::from(bits) * bound as u64) >> 32) as usize
}
