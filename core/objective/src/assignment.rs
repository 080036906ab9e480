//! A placement during a search.

use crate::dense::CompactAssignment;
use crate::error::{FREE, check_length, ranks_by_slot};
use crate::objective::{HOPS, Terms, Values};
use crate::{ObjectiveError, Problem};

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
        check_length(slots.len(), problem.ranks())?;
        let ranks = ranks_by_slot(slots, problem.slots())?;
        let broken = (0..).zip(slots).find(|&(rank, &slot)| !problem.admits(rank, slot));
        if let Some((rank, &slot)) = broken {
            let problem = format!("rank {rank} is on slot {slot}, where its constraints do not let it be");
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

    // Out of the way of the usual delta, which has to be short; so are the other two.
    #[inline(never)]
    fn directed_delta(&self, rank: u32, slot: u32) -> i64 {
        let mut delta = 0;
        self.changes(rank, slot, |_, _, change| delta += change);
        delta
    }

    /// Calls `changed` with pairs of ranks, perhaps one with itself, and what they cost more with each other when a rank moves
    /// to a slot, and whoever is there to its own.
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

/// What the terms of an objective are for a placement, kept up to date.
#[derive(Debug, Clone)]
struct Tracked<'p> {
    terms: &'p Terms,
    values: Values,
    hops: [Option<Assignment<'p>>; HOPS],
    /// Twice the share of every rank in F.
    shares: Option<Tournament>,
    /// Bytes over every link.
    loads: Option<Tournament>,
}

/// What an exchange does to the terms.
struct Change {
    values: Values,
    shares: Vec<(u32, i64)>,
    loads: Vec<(u32, i64)>,
}

impl<'p> Tracked<'p> {
    /// Takes the terms of a placement and its quadratic form.
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
        let shares = terms.counts_shares().then(|| Tournament::new(&problem.shares(slots)));
        let loads = terms.traffic.as_ref().map(|traffic| Tournament::new(&traffic.loads(slots)));
        let largest = |tournament: &Option<Tournament>| tournament.as_ref().map_or(0, Tournament::largest);
        let values = Values {
            quadratic,
            hops: hops.each_ref().map(|hops| hops.as_ref().map_or(0, Assignment::cost)),
            share: largest(&shares),
            load: largest(&loads),
        };
        Ok(Self { terms, values, hops, shares, loads })
    }

    /// The integer cost.
    fn cost(&self) -> i64 {
        self.terms.cost(&self.values)
    }

    /// By how much the cost changes when a rank of a placement moves to a slot.
    #[inline(never)]
    fn delta(&self, assignment: &Assignment<'_>, rank: u32, slot: u32) -> i64 {
        self.terms.cost(&self.change(assignment, rank, slot).values) - self.cost()
    }

    /// Follows a rank of a placement that is about to move to a slot.
    fn exchange(&mut self, assignment: &Assignment<'_>, rank: u32, slot: u32) {
        let change = self.change(assignment, rank, slot);
        self.values = change.values;
        if let Some(shares) = &mut self.shares {
            shares.add(&change.shares);
        }
        if let Some(loads) = &mut self.loads {
            loads.add(&change.loads);
        }
        for hops in self.hops.iter_mut().flatten() {
            let delta = hops.delta(rank, slot);
            hops.exchange(rank, slot, delta);
        }
    }

    fn change(&self, assignment: &Assignment<'_>, rank: u32, slot: u32) -> Change {
        let mut change = Change { values: self.values, shares: Vec::new(), loads: Vec::new() };
        if assignment.slot_of(rank) == slot {
            return change;
        }
        if let Some(shares) = &self.shares {
            let mut changes = Vec::new();
            assignment.changes(rank, slot, |one, other, more| {
                change.values.quadratic += more;
                changes.extend([(one, more), (other, more)]);
            });
            change.shares = joined(changes);
            change.values.share = shares.largest_after(&change.shares);
        } else {
            change.values.quadratic += assignment.quadratic_delta(rank, slot);
        }
        if let (Some(loads), Some(traffic)) = (&self.loads, &self.terms.traffic) {
            let mut changes = Vec::new();
            let (slots, other) = (assignment.slots(), assignment.rank_at(slot));
            traffic.changes(slots, rank, other, slot, |link, more| changes.push((link, more)));
            if let Some(other) = other {
                let own = assignment.slot_of(rank);
                traffic.changes(slots, other, Some(rank), own, |link, more| changes.push((link, more)));
                traffic.changes_between(slots, [rank, other], |link, more| changes.push((link, more)));
            }
            change.loads = joined(changes);
            change.values.load = loads.largest_after(&change.loads);
        }
        for (sum, hops) in change.values.hops.iter_mut().zip(&self.hops) {
            *sum += hops.as_ref().map_or(0, |hops| hops.delta(rank, slot));
        }
        change
    }
}

/// Numbers of zero or more, and the largest of them, as the winner of a tournament: a change takes a step for every round.
#[derive(Debug, Clone)]
struct Tournament {
    /// The root is at 1, the children of a node at twice its index; the numbers are the leaves.
    nodes: Vec<i64>,
    leaves: usize,
}

impl Tournament {
    fn new(values: &[i64]) -> Self {
        let leaves = values.len().next_power_of_two();
        let mut nodes = vec![0; 2 * leaves];
        nodes[leaves..leaves + values.len()].copy_from_slice(values);
        for node in (1..leaves).rev() {
            nodes[node] = nodes[2 * node].max(nodes[2 * node + 1]);
        }
        Self { nodes, leaves }
    }

    /// The largest number; zero if there is none.
    fn largest(&self) -> i64 {
        self.nodes[1]
    }

    /// Adds to numbers; every index is given once.
    fn add(&mut self, changes: &[(u32, i64)]) {
        for &(index, change) in changes {
            let mut node = self.leaves + index as usize;
            self.nodes[node] += change;
            while node > 1 {
                node /= 2;
                self.nodes[node] = self.nodes[2 * node].max(self.nodes[2 * node + 1]);
            }
        }
    }

    /// The largest number after adding to some; `changes` is sorted by index, every index given once.
    fn largest_after(&self, changes: &[(u32, i64)]) -> i64 {
        let sums = changes.iter().map(|&(index, change)| self.nodes[self.leaves + index as usize] + change);
        let mut largest = sums.max().unwrap_or(0).max(0);
        let mut open = vec![1];
        while let Some(node) = open.pop() {
            if self.nodes[node] <= largest {
                continue;
            }
            if node < self.leaves {
                let (left, right) = (2 * node, 2 * node + 1);
                let is_left_larger = self.nodes[left] > self.nodes[right];
                open.extend(if is_left_larger { [right, left] } else { [left, right] });
            } else if changes.binary_search_by_key(&((node - self.leaves) as u32), |change| change.0).is_err()
            {
                largest = self.nodes[node];
            }
        }
        largest
    }
}

/// Sorts changes by index and adds up those of one.
fn joined(mut changes: Vec<(u32, i64)>) -> Vec<(u32, i64)> {
    changes.sort_unstable_by_key(|change| change.0);
    changes.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        if same {
            kept.1 += next.1;
        }
        same
    });
    changes
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_largest_is_that_of_a_list(
            mut values in prop::collection::vec(0i64..50, 1..20),
            rounds in prop::collection::vec(prop::collection::vec((any::<prop::sample::Index>(), 0i64..50), 0..6), 0..10),
        ) {
            let mut tournament = Tournament::new(&values);
            for round in rounds {
                let mut after = values.clone();
                round.iter().for_each(|(index, value)| after[index.index(values.len())] = *value);
                let changes: Vec<_> = (0..).zip(after.iter().zip(&values).map(|(a, b)| a - b)).collect();
                let changes: Vec<_> = changes.into_iter().filter(|change| change.1 != 0).collect();
                let largest = after.iter().copied().max().unwrap();
                prop_assert_eq!(tournament.largest_after(&changes), largest);
                tournament.add(&changes);
                prop_assert_eq!(tournament.largest(), largest);
                values = after;
            }
        }
    }
}
