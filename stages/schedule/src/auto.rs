//! `schedule/auto` where tasks may run anywhere.

use hopmap_model::{Context, Error};

use crate::{AutoParams, Evaluator, Found, ParameterError, Plan, Problem, Scheduler};

/// To be written.
#[derive(Debug, Clone, PartialEq)]
pub struct Auto {
    params: AutoParams,
}

impl Auto {
    /// Checks the parameters.
    pub fn new(params: &AutoParams) -> Result<Self, ParameterError> {
        Ok(Self { params: params.clone() })
    }
}

impl Scheduler for Auto {
    fn schedule(&self, problem: &Problem, _: &Context<'_>) -> Result<Found<Plan>, Error> {
        let _ = &self.params;
        let best = Plan::serial(problem, 0);
        let makespan = Evaluator::new(problem).makespan(&best);
        Ok(Found { best, makespan, lower_bound: 0, evaluations: 1, convergence: Vec::new(), complete: true })
    }
}
