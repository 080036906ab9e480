//! A placement that can be wound back.

use hopmap_objective::{Assignment, ObjectiveError, Problem};

/// A placement, the exchanges since it was whole, and how many of them lead to the best point.
pub(crate) struct Walk<'p> {
    assignment: Assignment<'p>,
    steps: Vec<Step>,
    best: Best,
}

struct Step {
    rank: u32,
    from: u32,
    delta: i64,
}

struct Best {
    cost: i64,
    steps: usize,
}

impl<'p> Walk<'p> {
    /// Begins at a placement.
    pub(crate) fn new(problem: &'p Problem, slots: &[u32]) -> Result<Self, ObjectiveError> {
        let assignment = Assignment::new(problem, slots)?;
        let best = Best { cost: assignment.cost(), steps: 0 };
        Ok(Self { assignment, steps: Vec::new(), best })
    }

    pub(crate) fn assignment(&self) -> &Assignment<'p> {
        &self.assignment
    }

    /// The cost of the best point since the beginning.
    pub(crate) fn best_cost(&self) -> i64 {
        self.best.cost
    }

    /// Makes an exchange of which [`Assignment::delta`] gave what it changes.
    pub(crate) fn exchange(&mut self, rank: u32, slot: u32, delta: i64) {
        self.steps.push(Step { rank, from: self.assignment.slot_of(rank), delta });
        self.assignment.exchange(rank, slot, delta);
        if self.assignment.cost() < self.best.cost {
            self.best = Best { cost: self.assignment.cost(), steps: self.steps.len() };
        }
    }

    /// Winds back to the best point, which is returned.
    pub(crate) fn best(&mut self) -> &[u32] {
        self.wind_back(self.best.steps);
        self.assignment.slots()
    }

    /// Winds back to the beginning.
    pub(crate) fn restart(&mut self) {
        self.wind_back(0);
        self.best = Best { cost: self.assignment.cost(), steps: 0 };
    }

    fn wind_back(&mut self, steps: usize) {
        while self.steps.len() > steps {
            if let Some(step) = self.steps.pop() {
                self.assignment.exchange(step.rank, step.from, -step.delta);
            }
        }
    }
}
