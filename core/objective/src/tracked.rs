//! The terms of an objective during a search.

use crate::objective::{Terms, Values};
use crate::{Assignment, ObjectiveError};

/// What the terms of an objective are for a placement, kept up to date.
#[derive(Debug, Clone)]
pub(crate) struct Tracked<'p> {
    terms: &'p Terms,
    values: Values,
    hops: Option<Assignment<'p>>,
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
    pub(crate) fn new(
        terms: &'p Terms,
        slots: &[u32],
        quadratic: i64,
        shares: impl FnOnce() -> Vec<i64>,
    ) -> Result<Self, ObjectiveError> {
        let hops = terms.hops().map(|hops| Assignment::new(hops, slots)).transpose()?;
        let shares = terms.counts_shares().then(|| Tournament::new(&shares()));
        let loads = terms.traffic().map(|traffic| Tournament::new(&traffic.loads(slots)));
        let largest = |tournament: &Option<Tournament>| tournament.as_ref().map_or(0, Tournament::largest);
        let values = Values {
            quadratic,
            hops: hops.as_ref().map_or(0, Assignment::cost),
            share: largest(&shares),
            load: largest(&loads),
        };
        Ok(Self { terms, values, hops, shares, loads })
    }

    /// The integer cost.
    pub(crate) fn cost(&self) -> i64 {
        self.terms.cost(&self.values)
    }

    /// By how much the cost changes when a rank of a placement moves to a slot.
    #[inline(never)]
    pub(crate) fn delta(&self, assignment: &Assignment<'_>, rank: u32, slot: u32) -> i64 {
        self.terms.cost(&self.change(assignment, rank, slot).values) - self.cost()
    }

    /// Follows a rank of a placement that is about to move to a slot.
    pub(crate) fn exchange(&mut self, assignment: &Assignment<'_>, rank: u32, slot: u32) {
        let change = self.change(assignment, rank, slot);
        self.values = change.values;
        if let Some(shares) = &mut self.shares {
            shares.add(&change.shares);
        }
        if let Some(loads) = &mut self.loads {
            loads.add(&change.loads);
        }
        if let Some(hops) = &mut self.hops {
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
        if let (Some(loads), Some(traffic)) = (&self.loads, self.terms.traffic()) {
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
        if let Some(hops) = &self.hops {
            change.values.hops += hops.delta(rank, slot);
        }
        change
    }
}

/// Numbers of zero or more, and the largest of them, as the winner of a tournament: a change takes a step for every round.
#[derive(Debug, Clone)]
pub(crate) struct Tournament {
    /// The root is at 1, the children of a node at twice its index; the numbers are the leaves.
    nodes: Vec<i64>,
    leaves: usize,
}

impl Tournament {
    pub(crate) fn new(values: &[i64]) -> Self {
        let leaves = values.len().next_power_of_two();
        let mut nodes = vec![0; 2 * leaves];
        nodes[leaves..leaves + values.len()].copy_from_slice(values);
        for node in (1..leaves).rev() {
            nodes[node] = nodes[2 * node].max(nodes[2 * node + 1]);
        }
        Self { nodes, leaves }
    }

    /// The largest number; zero if there is none.
    pub(crate) fn largest(&self) -> i64 {
        self.nodes[1]
    }

    /// Adds to numbers; every index is given once.
    pub(crate) fn add(&mut self, changes: &[(u32, i64)]) {
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
    pub(crate) fn largest_after(&self, changes: &[(u32, i64)]) -> i64 {
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
pub(crate) fn joined(mut changes: Vec<(u32, i64)>) -> Vec<(u32, i64)> {
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
