//! `schedule/list` where tasks may run anywhere: heuristics that put task after task somewhere and never think again.

mod heuristics;
mod state;
#[cfg(test)]
mod tests;

use hopmap_model::{Context, Error};

use self::heuristics::Rule;
use self::state::View;
use crate::bounds::lower_bound;
use crate::{Evaluator, Heuristic, ListParams, ParameterError, Plan, Problem, Scheduler, SearchResult};

/// Up to how many squares of tasks on processors heuristics count as quick whose time grows so.
const QUICK: u64 = 1 << 26;

/// A list heuristic, or the best of all.
#[derive(Debug, Clone, PartialEq)]
pub struct List {
    params: ListParams,
}

impl List {
    /// Checks the parameters.
    pub fn new(params: &ListParams) -> Result<Self, ParameterError> {
        Ok(Self { params: params.clone() })
    }
}

impl Scheduler for List {
    fn schedule(&self, problem: &Problem, cx: &Context<'_>) -> Result<SearchResult<Plan>, Error> {
        let tried = match self.params.heuristic {
            Heuristic::Best => all(problem),
            one => vec![(one, plan(problem, one))],
        };
        let (heuristic, best, makespan) = best_of(problem, &tried);
        if self.params.heuristic == Heuristic::Best {
            let out: Vec<_> =
                Heuristic::ALL.iter().filter(|one| tried.iter().all(|(tried, _)| tried != *one)).collect();
            if !out.is_empty() {
                let names: Vec<_> = out.iter().map(|one| one.name()).collect();
                cx.log(format!(
                    "too many tasks for {}, whose time grows with their square",
                    names.join(", ")
                ));
            }
            cx.log(format!("the best of {} heuristics is {}", tried.len(), heuristic.name()));
        }
        let (evaluations, lower_bound) = (tried.len() as u64, lower_bound(problem).min(makespan));
        Ok(SearchResult { best, makespan, lower_bound, evaluations, convergence: Vec::new(), complete: true })
    }
}

/// The best plan of a list, the first of several.
fn best_of(problem: &Problem, tried: &[(Heuristic, Plan)]) -> (Heuristic, Plan, i64) {
    let mut evaluator = Evaluator::new(problem);
    let mut makespan = |plan: &Plan| evaluator.makespan(plan);
    let timed = tried.iter().map(|(heuristic, plan)| (makespan(plan), *heuristic, plan));
    match timed.min_by_key(|one| one.0) {
        Some((makespan, heuristic, plan)) => (heuristic, plan.clone(), makespan),
        None => {
            let plan = serial(problem);
            let makespan = evaluator.makespan(&plan);
            (Heuristic::Serial, plan, makespan)
        }
    }
}

/// The plan of a heuristic.
#[must_use]
pub fn plan(problem: &Problem, heuristic: Heuristic) -> Plan {
    match heuristic {
        Heuristic::Best => best_of(problem, &all(problem)).1,
        Heuristic::HeftBackward => run(&View::forward(problem).backward(), heuristic),
        _ => run(&View::forward(problem), heuristic),
    }
}

/// The plans of all heuristics; of large problems without those whose time grows with the square of the number of tasks.
#[must_use]
pub fn all(problem: &Problem) -> Vec<(Heuristic, Plan)> {
    let forward = View::forward(problem);
    let backward = forward.backward();
    let (tasks, processors) = (problem.tasks() as u64, problem.processors() as u64);
    let quick = tasks.saturating_mul(tasks).saturating_mul(processors) <= QUICK;
    let chosen = Heuristic::ALL.into_iter().filter(|one| quick || !one.is_quadratic());
    let view = |heuristic| if heuristic == Heuristic::HeftBackward { &backward } else { &forward };
    chosen.map(|heuristic| (heuristic, run(view(heuristic), heuristic))).collect()
}

/// Runs a heuristic on a problem from one of its ends.
fn run(view: &View<'_>, heuristic: Heuristic) -> Plan {
    match heuristic {
        Heuristic::Best | Heuristic::Heft | Heuristic::HeftBackward => {
            heuristics::heft(view, &view.mean_work)
        }
        Heuristic::HeftFastest => heuristics::heft(view, &view.least_work),
        Heuristic::Lookahead => heuristics::lookahead(view),
        Heuristic::Cpop => heuristics::cpop(view),
        Heuristic::Peft => heuristics::peft(view),
        Heuristic::Mcp => heuristics::mcp(view),
        Heuristic::Hlfet => heuristics::hlfet(view),
        Heuristic::Etf => heuristics::best_pairs(view, Rule::EarliestStart),
        Heuristic::Dls => heuristics::best_pairs(view, Rule::DynamicLevel),
        Heuristic::MinMin => heuristics::best_pairs(view, Rule::MinMin),
        Heuristic::MaxMin => heuristics::best_pairs(view, Rule::MaxMin),
        Heuristic::Sufferage => heuristics::best_pairs(view, Rule::Sufferage),
        Heuristic::LinearClusters => heuristics::linear_clusters(view),
        Heuristic::DominantSequence => heuristics::dominant_sequence(view),
        Heuristic::Serial => serial(view.problem),
    }
}

/// Everything on the processor that is done first with it.
fn serial(problem: &Problem) -> Plan {
    let mut sums = problem.available().to_vec();
    for &task in problem.order() {
        let works = problem.works(task).iter().cycle();
        sums.iter_mut().zip(works).for_each(|(sum, work)| *sum += work);
    }
    let first = (0..).zip(sums).min_by_key(|&(_, sum)| sum);
    Plan::serial(problem, first.map_or(0, |(processor, _)| processor))
}
