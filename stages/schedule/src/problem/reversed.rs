//! The same problem from its end.

use hopmap_model::DelayModel;

use super::Problem;
use crate::Plan;

impl Problem {
    /// The problem in which all messages go back, which has the same optimum: where all processors are alike and a message takes
    /// its time while both compute.
    pub(crate) fn reversed(&self) -> Option<Self> {
        if !self.alike || self.model != DelayModel::Overlap {
            return None;
        }
        let mut reversed = self.clone();
        std::mem::swap(&mut reversed.parents, &mut reversed.children);
        std::mem::swap(&mut reversed.parent_starts, &mut reversed.child_starts);
        reversed.order.reverse();
        Some(reversed)
    }
}

impl Plan {
    /// The plan of a problem for the reversed one, no later than it.
    pub(crate) fn reversed(&self, problem: &Problem) -> Self {
        let times = crate::Evaluator::new(problem).times(self);
        let last = times.finish.iter().copied().max().unwrap_or(0);
        let mut order = self.order.clone();
        order.reverse();
        order.sort_by_key(|&task| (last - times.finish[task as usize], last - times.start[task as usize]));
        Self { order, processor: self.processor.clone() }
    }
}
