//! A placement during a search.

use crate::compact::CompactAssignment;
use crate::tracked::Tracked;
use crate::{ObjectiveError, Problem};

const FREE: u32 = u32::MAX;

/// A placement of all ranks of a problem that knows its cost and what an exchange would change.
#[derive(Debug, Clone)]
pub struct Assignment<'p> {
    problem: &'p Problem,
    /// Slot of every rank.
    slots: Vec<u32>,
    /// Code of the slot of every rank.
    codes: Vec<u64>,
    /// Rank on every slot.
    ranks: Vec<u32>,
    /// The same placement in small integers, where that is faster.
    compact: Option<CompactAssignment<'p>>,
    /// What counts besides the quadratic form, or in its place.
    tracked: Option<Box<Tracked<'p>>>,
    cost: i64,
}

impl<'p> Assignment<'p> {
    /// What [`delta`](Self::delta) says of an exchange that breaks a constraint: more than the cost of any placement. A cost,
    /// or this once more, can be added to it.
    pub const NEVER: i64 = i64::MAX / 2;

    /// Puts rank `i` on `slots[i]`, which keeps the constraints.
    pub fn new(problem: &'p Problem, slots: &[u32]) -> Result<Self, ObjectiveError> {
        if slots.len() != problem.ranks() {
            return Err(ObjectiveError::WrongLength { placed: slots.len(), ranks: problem.ranks() });
        }
        let mut ranks = vec![FREE; problem.slots()];
        for (rank, &slot) in slots.iter().enumerate() {
            let entry = ranks.get_mut(slot as usize).ok_or(ObjectiveError::NoSuchSlot {
                rank,
                slot,
                slots: problem.slots(),
            })?;
            if *entry != FREE {
                return Err(ObjectiveError::SharedSlot { slot, first: *entry, second: rank as u32 });
            }
            *entry = rank as u32;
        }
        let broken = (0..).zip(slots).find(|&(rank, &slot)| !problem.admits(rank, slot));
        if let Some((rank, &slot)) = broken {
            return Err(ObjectiveError::NotAdmitted { rank, slot });
        }
        let codes = slots.iter().map(|&slot| problem.distance().code(slot)).collect();
        let compact = problem.compact().map(|compact| CompactAssignment::new(compact, slots)).transpose()?;
        let quadratic = problem.quadratic_cost(slots);
        let tracked =
            problem.terms().map(|terms| Tracked::new(terms, slots, quadratic, || problem.shares(slots)));
        let tracked = tracked.transpose()?.map(Box::new);
        let cost = tracked.as_ref().map_or(quadratic, |tracked| tracked.cost());
        Ok(Self { problem, slots: slots.to_vec(), codes, ranks, compact, tracked, cost })
    }

    /// The problem it is a placement of.
    #[must_use]
    pub fn problem(&self) -> &'p Problem {
        self.problem
    }

    /// Integer cost.
    #[must_use]
    pub fn cost(&self) -> i64 {
        self.cost
    }

    /// The slot of every rank.
    #[must_use]
    pub fn slots(&self) -> &[u32] {
        &self.slots
    }

    /// The slot of a rank.
    #[must_use]
    pub fn slot_of(&self, rank: u32) -> u32 {
        self.slots[rank as usize]
    }

    /// The rank on a slot, if it is not free.
    #[must_use]
    pub fn rank_at(&self, slot: u32) -> Option<u32> {
        Some(self.ranks[slot as usize]).filter(|&rank| rank != FREE)
    }

    /// By how much the cost changes when a rank moves to a slot, and whoever is there to its own; [`NEVER`](Self::NEVER) if
    /// that breaks a constraint.
    ///
    /// Takes a step for every neighbour of the two, or a sum over short rows where there are many.
    #[inline]
    #[must_use]
    pub fn delta(&self, rank: u32, slot: u32) -> i64 {
        if self.problem.admission.is_some() && !self.admits(rank, slot) {
            return Self::NEVER;
        }
        self.unconstrained_delta(rank, slot)
    }

    /// Whether a rank may move to a slot, and whoever is there to its own.
    #[must_use]
    #[inline(never)]
    pub fn admits(&self, rank: u32, slot: u32) -> bool {
        let back = |other| self.problem.admits(other, self.slot_of(rank));
        self.problem.admits(rank, slot) && self.rank_at(slot).is_none_or(back)
    }

    /// The same whatever the constraints are.
    #[inline]
    pub(crate) fn unconstrained_delta(&self, rank: u32, slot: u32) -> i64 {
        match &self.tracked {
            None => self.quadratic_delta(rank, slot),
            Some(tracked) => tracked.delta(self, rank, slot),
        }
    }

    /// By how much the quadratic form changes.
    #[inline]
    pub(crate) fn quadratic_delta(&self, rank: u32, slot: u32) -> i64 {
        match &self.compact {
            Some(compact) => compact.delta(rank, slot),
            None => self.delta_by_neighbours(rank, slot),
        }
    }

    fn delta_by_neighbours(&self, rank: u32, slot: u32) -> i64 {
        if self.problem.directed().is_some() {
            return self.directed_delta(rank, slot);
        }
        let other = self.ranks[slot as usize];
        let here = self.codes[rank as usize];
        let there = self.problem.distance().code(slot);
        let moved = self.moved(rank, other, here, there);
        if other == FREE { moved } else { moved + self.moved(other, rank, there, here) }
    }

    // Out of the way of the usual delta, which has to be short; so are the other two.
    #[inline(never)]
    fn directed_delta(&self, rank: u32, slot: u32) -> i64 {
        let mut delta = 0;
        self.changes(rank, slot, |_, _, change| delta += change);
        delta
    }

    /// Calls `changed` with pairs of ranks, perhaps one with itself, and what they cost more with each other when a rank moves
    /// to a slot, and whoever is there to its own.
    pub(crate) fn changes(&self, rank: u32, slot: u32, mut changed: impl FnMut(u32, u32, i64)) {
        let other = self.rank_at(slot);
        if other == Some(rank) {
            return;
        }
        let mut moved = |rank: u32, partner: Option<u32>, there: u32| match self.problem.directed() {
            Some(directed) => {
                directed.changes(&self.slots, rank, partner, there, |other, more| changed(rank, other, more));
            }
            None => {
                let distance = self.problem.distance();
                let (here, there) = (self.codes[rank as usize], distance.code(there));
                for neighbour in self.problem.neighbours(rank).iter().filter(|n| partner != Some(n.rank)) {
                    let code = self.codes[neighbour.rank as usize];
                    let more = distance.between(there, code) - distance.between(here, code);
                    changed(rank, neighbour.rank, neighbour.weight * more);
                }
            }
        };
        moved(rank, other, slot);
        if let Some(other) = other {
            moved(other, Some(rank), self.slots[rank as usize]);
        }
    }

    /// Moves a rank to a slot, and whoever is there to its own; `delta` is what [`delta`](Self::delta) gave for it.
    pub fn exchange(&mut self, rank: u32, slot: u32, delta: i64) {
        let own = self.slots[rank as usize];
        let other = self.ranks[slot as usize];
        if let Some(mut tracked) = self.tracked.take() {
            tracked.exchange(self, rank, slot);
            self.tracked = Some(tracked);
        }
        if let Some(compact) = &mut self.compact {
            compact.exchange(rank, slot);
        }
        self.place(rank, slot);
        match other {
            FREE => self.ranks[own as usize] = FREE,
            other => self.place(other, own),
        }
        self.cost += delta;
    }

    fn place(&mut self, rank: u32, slot: u32) {
        self.ranks[slot as usize] = rank;
        self.slots[rank as usize] = slot;
        self.codes[rank as usize] = self.problem.distance().code(slot);
    }

    /// What a rank costs more `there` than `here`; the way to the rank it changes places with stays the same.
    #[inline]
    fn moved(&self, rank: u32, partner: u32, here: u64, there: u64) -> i64 {
        let distance = self.problem.distance();
        let mut delta = 0;
        for neighbour in self.problem.neighbours(rank) {
            if neighbour.rank != partner {
                let code = self.codes[neighbour.rank as usize];
                delta += neighbour.weight * (distance.between(there, code) - distance.between(here, code));
            }
        }
        delta
    }
}
