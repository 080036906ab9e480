//! The best placement that a chain has seen.

use hopmap_objective::Assignment;

/// The best placement that a chain has seen, and the exchanges since it was last stored.
///
/// Storing a placement takes a step for every rank, so within a sweep only the exchanges are recorded, and after the sweep the
/// chain is wound back to the best point of it.
pub(super) struct Incumbent {
    pub(super) slots: Vec<u32>,
    pub(super) cost: i64,
    /// Evaluations and the cost that they led to, one point for every sweep that lowered it.
    pub(super) improvements: Vec<(u64, i64)>,
    exchanges: Vec<Exchange>,
    /// How many of the exchanges lead to the best point, if one is better than what is stored.
    best: Option<Best>,
}

#[derive(Clone, Copy)]
struct Exchange {
    rank: u32,
    from: u32,
    to: u32,
    delta: i64,
}

#[derive(Clone, Copy)]
struct Best {
    exchanges: usize,
    cost: i64,
    evaluations: u64,
}

impl Incumbent {
    pub(super) fn new(start: &Assignment<'_>) -> Self {
        Self {
            slots: start.slots().to_vec(),
            cost: start.cost(),
            improvements: vec![(0, start.cost())],
            exchanges: Vec::new(),
            best: None,
        }
    }

    /// Notes the exchange that comes next.
    pub(super) fn record(
        &mut self,
        assignment: &Assignment<'_>,
        rank: u32,
        to: u32,
        delta: i64,
        evaluations: u64,
    ) {
        self.exchanges.push(Exchange { rank, from: assignment.slot_of(rank), to, delta });
        let cost = assignment.cost() + delta;
        if cost < self.best.map_or(self.cost, |best| best.cost) {
            self.best = Some(Best { exchanges: self.exchanges.len(), cost, evaluations });
        }
    }

    /// Stores the best point since the last call. The assignment comes back as it was.
    pub(super) fn settle(&mut self, assignment: &mut Assignment<'_>) {
        let mut exchanges = std::mem::take(&mut self.exchanges);
        if let Some(best) = self.best.take() {
            let later = &exchanges[best.exchanges..];
            for exchange in later.iter().rev() {
                assignment.exchange(exchange.rank, exchange.from, -exchange.delta);
            }
            self.store(assignment, best.evaluations);
            for exchange in later {
                assignment.exchange(exchange.rank, exchange.to, exchange.delta);
            }
        }
        exchanges.clear();
        self.exchanges = exchanges;
    }

    /// Stores a placement if it is better.
    pub(super) fn replace(&mut self, assignment: &Assignment<'_>, evaluations: u64) {
        if assignment.cost() < self.cost {
            self.store(assignment, evaluations);
        }
    }

    fn store(&mut self, assignment: &Assignment<'_>, evaluations: u64) {
        self.slots.copy_from_slice(assignment.slots());
        self.cost = assignment.cost();
        self.improvements.push((evaluations, self.cost));
    }
}
