//! The best placement that a search has seen.

use hopmap_islands::Candidate;
use hopmap_objective::Assignment;
use serde::{Deserialize, Serialize};

/// The best placement that a search has seen, and the exchanges since it was last stored.
///
/// Storing a placement takes a step for every rank, so within a sweep only the exchanges are recorded, and after the sweep the
/// search is wound back to the best point of it. Written down is only what is stored.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Incumbent {
    pub(crate) best: Candidate<Vec<u32>>,
    #[serde(skip)]
    exchanges: Vec<Exchange>,
    /// How many of the exchanges lead to the best point and what it costs, if it is better than what is stored.
    #[serde(skip)]
    pending: Option<(usize, i64)>,
}

#[derive(Clone, Copy)]
struct Exchange {
    rank: u32,
    from: u32,
    to: u32,
    delta: i64,
}

impl Incumbent {
    pub(crate) fn new(cost: i64, slots: Vec<u32>) -> Self {
        Self { best: Candidate { cost, solution: slots }, exchanges: Vec::new(), pending: None }
    }

    /// Notes the exchange that comes next.
    #[inline]
    pub(crate) fn record(&mut self, assignment: &Assignment<'_>, rank: u32, to: u32, delta: i64) {
        self.exchanges.push(Exchange { rank, from: assignment.slot_of(rank), to, delta });
        let cost = assignment.cost() + delta;
        if cost < self.pending.map_or(self.best.cost, |(_, cost)| cost) {
            self.pending = Some((self.exchanges.len(), cost));
        }
    }

    /// Stores the best point since the last call. The assignment comes back as it was.
    pub(crate) fn settle(&mut self, assignment: &mut Assignment<'_>) {
        let mut exchanges = std::mem::take(&mut self.exchanges);
        if let Some((count, _)) = self.pending.take() {
            let later = &exchanges[count..];
            for exchange in later.iter().rev() {
                assignment.exchange(exchange.rank, exchange.from, -exchange.delta);
            }
            self.replace(assignment);
            for exchange in later {
                assignment.exchange(exchange.rank, exchange.to, exchange.delta);
            }
        }
        exchanges.clear();
        self.exchanges = exchanges;
    }

    /// Stores a placement if it is better.
    pub(crate) fn replace(&mut self, assignment: &Assignment<'_>) {
        if assignment.cost() < self.best.cost {
            self.best.cost = assignment.cost();
            self.best.solution.copy_from_slice(assignment.slots());
        }
    }
}
