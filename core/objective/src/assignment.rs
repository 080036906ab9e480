//! The mapping of a search, with its cost and deltas.

use std::cell::RefCell;

use crate::dense::CompactAssignment;
use crate::error::{FREE, ObjectiveError, check_length, ranks_by_slot};
use crate::maximum::{Changes, Maximum};
use crate::objective::{HOPS, LOADS, Terms, Values};
use crate::problem::Problem;

/// A mapping of all ranks of a problem, with its cost and the deltas of exchanges.
#[derive(Debug, Clone)]
pub struct Assignment<'p> {
    problem: &'p Problem,
    /// Slot of every rank.
    slots: Vec<u32>,
    /// Code of the slot of every rank.
    codes: Vec<u64>,
    /// Rank on every slot.
    ranks: Vec<u32>,
    /// The same mapping in small integers, if that is faster.
    compact: Option<CompactAssignment<'p>>,
    /// Terms in addition to or instead of the quadratic form.
    tracked: Option<Box<Tracked<'p>>>,
    cost: i64,
}

impl<'p> Assignment<'p> {
    /// The [`delta`](Self::delta) of an exchange that violates a constraint: larger than any cost. Adding a
    /// cost, or this value again, does not overflow.
    pub const NEVER: i64 = i64::MAX / 2;

    /// Maps rank `i` to `slots[i]`, which must satisfy the constraints.
    pub fn new(problem: &'p Problem, slots: &[u32]) -> Result<Self, ObjectiveError> {
        check_length(slots.len(), problem.ranks())?;
        let ranks = ranks_by_slot(slots, problem.slots())?;
        let broken = (0..).zip(slots).find(|&(rank, &slot)| !problem.admits(rank, slot));
        if let Some((rank, &slot)) = broken {
            let problem = format!("rank {rank} is on slot {slot}, which violates its constraints");
            return Err(ObjectiveError::new(problem, ""));
        }
        let codes = slots.iter().map(|&slot| problem.distance().code(slot)).collect();
        let compact =
            problem.compact.as_ref().map(|compact| CompactAssignment::new(compact, slots)).transpose()?;
        let quadratic = problem.quadratic_cost(slots);
        let tracked = problem.terms.as_deref().map(|terms| Tracked::new(terms, problem, slots, quadratic));
        let tracked = tracked.transpose()?.map(Box::new);
        let cost = tracked.as_ref().map_or(quadratic, |tracked| tracked.cost());
        Ok(Self { problem, slots: slots.to_vec(), codes, ranks, compact, tracked, cost })
    }

    /// The problem of the mapping.
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

    /// The rank on a slot; `None` if it is free.
    #[must_use]
    pub fn rank_at(&self, slot: u32) -> Option<u32> {
        Some(self.ranks[slot as usize]).filter(|&rank| rank != FREE)
    }

    /// Change of cost if a rank moves to a slot and a rank there to its own slot; [`NEVER`](Self::NEVER) if
    /// this violates a constraint.
    ///
    /// Takes a step per neighbour of both ranks, or a sum over dense rows if there are many neighbours.
    #[inline]
    #[must_use]
    pub fn delta(&self, rank: u32, slot: u32) -> i64 {
        if self.problem.admission.is_some() && !self.admits(rank, slot) {
            return Self::NEVER;
        }
        self.unconstrained_delta(rank, slot)
    }

    /// Whether a rank may move to a slot and a rank there to its own slot.
    #[must_use]
    #[inline(never)]
    pub fn admits(&self, rank: u32, slot: u32) -> bool {
        let back = |other| self.problem.admits(other, self.slot_of(rank));
        self.problem.admits(rank, slot) && self.rank_at(slot).is_none_or(back)
    }

    /// The same without constraints.
    #[inline]
    pub(crate) fn unconstrained_delta(&self, rank: u32, slot: u32) -> i64 {
        match &self.tracked {
            None => self.quadratic_delta(rank, slot),
            Some(tracked) => tracked.delta(self, rank, slot),
        }
    }

    /// Change of the quadratic form.
    #[inline]
    fn quadratic_delta(&self, rank: u32, slot: u32) -> i64 {
        match &self.compact {
            Some(compact) => compact.delta(rank, slot),
            None => self.delta_by_neighbours(rank, slot),
        }
    }

    fn delta_by_neighbours(&self, rank: u32, slot: u32) -> i64 {
        if self.problem.directed.is_some() {
            return self.directed_delta(rank, slot);
        }
        let other = self.ranks[slot as usize];
        let here = self.codes[rank as usize];
        let there = self.problem.distance().code(slot);
        let moved = self.moved(rank, other, here, there);
        if other == FREE { moved } else { moved + self.moved(other, rank, there, here) }
    }

    // Not inlined, to keep the common case small; the same holds for the next two.
    #[inline(never)]
    fn directed_delta(&self, rank: u32, slot: u32) -> i64 {
        let mut delta = 0;
        self.changes(rank, slot, |_, _, change| delta += change);
        delta
    }

    /// Calls `changed` with pairs of ranks, possibly equal, and the change of their cost if a rank moves to a
    /// slot and a rank there to its own slot.
    fn changes(&self, rank: u32, slot: u32, mut changed: impl FnMut(u32, u32, i64)) {
        let other = self.rank_at(slot);
        if other == Some(rank) {
            return;
        }
        let mut moved = |rank: u32, partner: Option<u32>, there: u32| match &self.problem.directed {
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

    /// Moves a rank to a slot and a rank there to its own slot; `delta` is from [`delta`](Self::delta).
    pub fn exchange(&mut self, rank: u32, slot: u32, delta: i64) {
        let own = self.slots[rank as usize];
        let other = self.ranks[slot as usize];
        self.cost += delta;
        if let Some(mut tracked) = self.tracked.take() {
            tracked.exchange(self, rank, slot);
            // Deltas of smooth maxima are rounded.
            self.cost = tracked.cost();
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
    }

    fn place(&mut self, rank: u32, slot: u32) {
        self.ranks[slot as usize] = rank;
        self.slots[rank as usize] = slot;
        self.codes[rank as usize] = self.problem.distance().code(slot);
    }

    /// Cost of a rank `there` minus `here`; the cost with its exchange partner is unchanged.
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

/// Changes of the numbers that maxima are of: the contributions of ranks, and the bytes over links.
#[derive(Default)]
struct Scratch {
    shares: Changes,
    bytes: Changes,
}

thread_local! {
    /// One per thread: an assignment is shared between threads, and copied often.
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

/// The terms of an objective for a mapping, updated incrementally.
#[derive(Debug, Clone)]
struct Tracked<'p> {
    terms: &'p Terms,
    values: Values,
    hops: [Option<Assignment<'p>>; HOPS],
    /// Twice the contribution of every rank to F.
    shares: Option<Maximum>,
    /// Loads of every link.
    loads: [Option<Maximum>; LOADS],
}

impl<'p> Tracked<'p> {
    /// Computes the terms of a mapping with its quadratic form.
    fn new(
        terms: &'p Terms,
        problem: &'p Problem,
        slots: &[u32],
        quadratic: i64,
    ) -> Result<Self, ObjectiveError> {
        let mut hops = [const { None }; HOPS];
        for (place, problem) in hops.iter_mut().zip(&problem.hops) {
            *place = problem.as_deref().map(|problem| Assignment::new(problem, slots)).transpose()?;
        }
        let shares = terms.counts_shares().then(|| terms.largest_share(&problem.shares(slots)));
        let values = Values {
            quadratic,
            hops: hops.each_ref().map(|hops| hops.as_ref().map_or(0, Assignment::cost)),
            ..Values::default()
        };
        let mut tracked = Self { terms, values, hops, shares, loads: terms.largest_loads(slots) };
        tracked.note_maxima();
        Ok(tracked)
    }

    fn note_maxima(&mut self) {
        self.values.share = self.shares.as_ref().map_or(0, Maximum::value);
        self.values.loads = self.loads.each_ref().map(|loads| loads.as_ref().map_or(0, Maximum::value));
    }

    /// The integer cost.
    fn cost(&self) -> i64 {
        self.terms.cost(&self.values)
    }

    /// Change of cost if a rank moves to a slot.
    #[inline(never)]
    fn delta(&self, assignment: &Assignment<'_>, rank: u32, slot: u32) -> i64 {
        if assignment.slot_of(rank) == slot {
            return 0;
        }
        let mut values = self.values;
        SCRATCH.with_borrow_mut(|scratch| {
            values.quadratic += self.collect(assignment, rank, slot, scratch);
            if let Some(shares) = &self.shares {
                values.share = shares.after(&scratch.shares, |_, change| change);
            }
            for (index, (loads, costs)) in self.loads.iter().zip(&self.terms.loads).enumerate() {
                if let (Some(loads), Some(costs)) = (loads, costs) {
                    values.loads[index] = loads.after(&scratch.bytes, |link, bytes| costs.of(link, bytes));
                }
            }
        });
        for (sum, hops) in values.hops.iter_mut().zip(&self.hops) {
            *sum += hops.as_ref().map_or(0, |hops| hops.delta(rank, slot));
        }
        self.terms.cost(&values) - self.cost()
    }

    /// Updates the terms before a rank moves to a slot.
    fn exchange(&mut self, assignment: &Assignment<'_>, rank: u32, slot: u32) {
        if assignment.slot_of(rank) == slot {
            return;
        }
        SCRATCH.with_borrow_mut(|scratch| {
            self.values.quadratic += self.collect(assignment, rank, slot, scratch);
            if let Some(shares) = &mut self.shares {
                shares.add(&scratch.shares, |_, change| change);
            }
            for (loads, costs) in self.loads.iter_mut().zip(&self.terms.loads) {
                if let (Some(loads), Some(costs)) = (loads, costs) {
                    loads.add(&scratch.bytes, |link, bytes| costs.of(link, bytes));
                }
            }
        });
        self.note_maxima();
        for (sum, hops) in self.values.hops.iter_mut().zip(&mut self.hops) {
            if let Some(hops) = hops {
                hops.exchange(rank, slot, hops.delta(rank, slot));
                *sum = hops.cost();
            }
        }
    }

    /// Collects the changes of an exchange; returns that of the quadratic form.
    fn collect(&self, assignment: &Assignment<'_>, rank: u32, slot: u32, scratch: &mut Scratch) -> i64 {
        let Scratch { shares, bytes } = scratch;
        shares.clear();
        bytes.clear();
        if let Some(traffic) = &self.terms.traffic {
            let mut changed = |link, more| bytes.add(link, more);
            let (slots, other) = (assignment.slots(), assignment.rank_at(slot));
            traffic.changes(slots, rank, other, slot, &mut changed);
            if let Some(other) = other {
                traffic.changes(slots, other, Some(rank), assignment.slot_of(rank), &mut changed);
                traffic.changes_between(slots, [rank, other], &mut changed);
            }
        }
        if self.shares.is_none() {
            return assignment.quadratic_delta(rank, slot);
        }
        let mut quadratic = 0;
        assignment.changes(rank, slot, |one, other, more| {
            quadratic += more;
            shares.add(one, more);
            shares.add(other, more);
        });
        quadratic
    }
}
