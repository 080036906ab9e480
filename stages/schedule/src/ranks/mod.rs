//! The slots of ranks whose tasks stay together and in order: what is looked for where a program is known by its trace.
//!
//! Every rank takes a slot of its own, so a placement is the slot of every rank, and what is minimised is the makespan. A quadratic
//! assignment problem adds up what all messages cost; the makespan only counts those that somebody waits for.

mod auto;
mod bound;
mod clusters;
mod criticality;
mod cuts;
mod evaluate;
mod exact;
mod genetic;
mod greedy;
mod mapping;
mod partition;
mod places;
mod problem;
mod program;
mod relax;
mod schedule;
mod starts;
mod symmetry;
#[cfg(test)]
mod tests;
mod walk;

use hopmap_model::{Context, Error};

use crate::{Found, ListParams};

pub use auto::auto;
pub use evaluate::RankEvaluator;
pub use exact::exact;
pub use genetic::genetic;
pub use mapping::{ScheduleMappingError, mapping};
pub use problem::RankProblem;
pub(crate) use schedule::Placed;
pub use starts::{Start, starts};

/// `schedule/list`: the best of the placements with which searches begin. Whichever list heuristic is asked for: ranks that stay together leave
/// nothing to lists of tasks.
pub fn list(_: &ListParams, problem: &RankProblem, cx: &Context<'_>) -> Result<Found<Vec<u32>>, Error> {
    best_start(problem, cx)
}

/// The best of the placements with which searches begin.
fn best_start(problem: &RankProblem, cx: &Context<'_>) -> Result<Found<Vec<u32>>, Error> {
    let starts = starts::starts(problem)?;
    for start in &starts {
        cx.log(format!("{}: makespan {}", start.name, problem.real(start.makespan)));
    }
    let evaluations = starts.len() as u64;
    let best = starts.into_iter().next().ok_or_else(|| Error::msg("there is no placement"))?;
    Ok(Found {
        best: best.slots,
        makespan: best.makespan,
        lower_bound: bound::lower_bound(problem),
        evaluations,
        convergence: Vec::new(),
        complete: true,
    })
}

/// What islands found.
fn found(islands: hopmap_islands::Found<Vec<u32>>, lower_bound: i64) -> Found<Vec<u32>> {
    Found {
        makespan: islands.best.cost,
        best: islands.best.solution,
        lower_bound,
        evaluations: islands.evaluations,
        convergence: islands.convergence,
        complete: islands.complete,
    }
}
