//! The terms of an objective during a search.

use crate::terms::{Terms, Values};
use crate::tournament::{Tournament, joined};
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
