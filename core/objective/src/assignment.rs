//! The mapping of a search, with its cost and deltas.

use crate::dense::CompactAssignment;
use crate::error::{FREE, check_length, ranks_by_slot};
use crate::objective::{HOPS, LOADS, Terms, Values};
use crate::{ObjectiveError, Problem};

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

/// The terms of an objective for a mapping, updated incrementally.
#[derive(Debug, Clone)]
struct Tracked<'p> {
    terms: &'p Terms,
    values: Values,
    hops: [Option<Assignment<'p>>; HOPS],
    /// Twice the contribution of every rank to F.
    shares: Option<Tournament>,
    /// Loads of every link.
    loads: [Option<Tournament>; LOADS],
}

/// Changes of the terms by an exchange.
struct Change {
    values: Values,
    shares: Vec<(u32, i64)>,
    loads: [Vec<(u32, i64)>; LOADS],
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
        let shares = terms.counts_shares().then(|| Tournament::new(&problem.shares(slots)));
        let loads = terms.loads_of(slots).map(|loads| loads.map(|loads| Tournament::new(&loads)));
        let largest = |tournament: &Option<Tournament>| tournament.as_ref().map_or(0, Tournament::largest);
        let values = Values {
            quadratic,
            hops: hops.each_ref().map(|hops| hops.as_ref().map_or(0, Assignment::cost)),
            share: largest(&shares),
            loads: loads.each_ref().map(largest),
        };
        Ok(Self { terms, values, hops, shares, loads })
    }

    /// The integer cost.
    fn cost(&self) -> i64 {
        self.terms.cost(&self.values)
    }

    /// Change of cost if a rank moves to a slot.
    #[inline(never)]
    fn delta(&self, assignment: &Assignment<'_>, rank: u32, slot: u32) -> i64 {
        self.terms.cost(&self.change(assignment, rank, slot).values) - self.cost()
    }

    /// Updates the terms before a rank moves to a slot.
    fn exchange(&mut self, assignment: &Assignment<'_>, rank: u32, slot: u32) {
        let change = self.change(assignment, rank, slot);
        self.values = change.values;
        if let Some(shares) = &mut self.shares {
            shares.add(&change.shares);
        }
        for (loads, changes) in self.loads.iter_mut().zip(&change.loads) {
            if let Some(loads) = loads {
                loads.add(changes);
            }
        }
        for hops in self.hops.iter_mut().flatten() {
            let delta = hops.delta(rank, slot);
            hops.exchange(rank, slot, delta);
        }
    }

    fn change(&self, assignment: &Assignment<'_>, rank: u32, slot: u32) -> Change {
        let mut change =
            Change { values: self.values, shares: Vec::new(), loads: [const { Vec::new() }; LOADS] };
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
        if let Some(traffic) = &self.terms.traffic {
            let mut changes = Vec::new();
            let (slots, other) = (assignment.slots(), assignment.rank_at(slot));
            traffic.changes(slots, rank, other, slot, |link, more| changes.push((link, more)));
            if let Some(other) = other {
                let own = assignment.slot_of(rank);
                traffic.changes(slots, other, Some(rank), own, |link, more| changes.push((link, more)));
                traffic.changes_between(slots, [rank, other], |link, more| changes.push((link, more)));
            }
            let bytes = joined(changes);
            for (index, (loads, costs)) in self.loads.iter().zip(&self.terms.loads).enumerate() {
                if let (Some(loads), Some(costs)) = (loads, costs) {
                    let more = |&(link, bytes)| (link, costs.of(link, bytes));
                    change.loads[index] = bytes.iter().map(more).collect();
                    change.values.loads[index] = loads.largest_after(&change.loads[index]);
                }
            }
        }
        for (sum, hops) in change.values.hops.iter_mut().zip(&self.hops) {
            *sum += hops.as_ref().map_or(0, |hops| hops.delta(rank, slot));
        }
        change
    }
}

/// Non-negative numbers and their maximum, as a tournament tree: an update takes logarithmic time.
#[derive(Debug, Clone)]
struct Tournament {
    /// The root has index 1, the children of node i have indices 2i and 2i + 1; the numbers are the leaves.
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

    /// Adds to numbers; indices are distinct.
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

    /// The largest number after additions; `changes` is sorted by distinct indices.
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

/// Sorts changes by index and sums equal indices.
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
        fn the_maximum_equals_that_of_a_list(
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
