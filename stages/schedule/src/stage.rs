//! The stages of this crate.

mod auto;
mod check;
mod exact;
mod export;
mod genetic;
mod import;
mod list;
mod mapping;

use hopmap_islands::Point;
use hopmap_model::{
    Context, ConvergencePoint, Error, InputPath, Inputs, Mapping, Outcome, Outputs, Port, Schedule,
    SystemGraph, TaskDag,
};

use crate::ranks::{Placed, RankProblem};
use crate::{Found, Machine, MachineParams, Plan, Problem, Ranks};

pub use auto::AutoStage;
pub use check::CheckStage;
pub use exact::ExactStage;
pub use export::ExportStage;
pub use genetic::GeneticStage;
pub use import::ImportStage;
pub use list::ListStage;
pub use mapping::MappingStage;

/// What schedulers take and give. A mapping is where a search for the slots of ranks begins.
const PORTS: &[Port] = &[
    Port::input::<TaskDag>("task-dag"),
    Port::optional::<SystemGraph>("system"),
    Port::optional::<Mapping>("mapping"),
    Port::output::<Schedule>("schedule"),
];

/// The files of PARUS behind the parameters.
fn files(params: &MachineParams) -> Vec<InputPath> {
    // Always under the same names, so that renaming a file changes no key.
    let named =
        |file: &Option<InputPath>, name: &str| file.as_ref().map(|file| InputPath::named(file.path(), name));
    [named(&params.procs, "procs"), named(&params.network, "network")].into_iter().flatten().collect()
}

/// Schedules the program of the inputs: `free` where tasks may run anywhere, `bound` where those of a rank stay together.
fn solve(
    params: &MachineParams,
    timed: bool,
    inputs: &Inputs,
    cx: &Context<'_>,
    free: impl FnOnce(&Problem) -> Result<Found<Plan>, Error>,
    bound: impl FnOnce(&RankProblem) -> Result<Found<Vec<u32>>, Error>,
) -> Result<Outcome, Error> {
    let dag = inputs.one::<TaskDag>("task-dag")?.value;
    let system = inputs.optional::<SystemGraph>("system")?.map(|system| system.value);
    let mapping = inputs.optional::<Mapping>("mapping")?.map(|mapping| mapping.value);
    dag.check()?;
    let machine = Machine::new(params, system.as_deref(), dag.unit)?;
    let stays = params.ranks == Ranks::Together && dag.tasks.iter().any(|task| task.rank.is_some());
    let (schedule, complete) = if stays {
        let problem = RankProblem::new(&dag, &machine, params.model, mapping.as_deref())?;
        let found = bound(&problem)?;
        let placed = Placed { problem: &problem, dag: &dag, processors: &machine.processors };
        (measured(placed.schedule(&found.best), &found, |ticks| problem.real(ticks)), found.complete)
    } else {
        let problem = Problem::new(&dag, &machine, params.model)?;
        let found = free(&problem)?;
        let schedule = found.best.schedule(&problem, &dag, &machine.processors);
        (measured(schedule, &found, |ticks| problem.real(ticks)), found.complete)
    };
    cx.log(verdict(&schedule));
    let outputs = Outputs::new().with("schedule", schedule).timed(timed);
    Ok(if complete { Outcome::Done(outputs) } else { Outcome::Partial(outputs) })
}

/// A schedule with its metrics.
fn measured<S>(mut schedule: Schedule, found: &Found<S>, real: impl Fn(i64) -> f64) -> Schedule {
    let (makespan, bound) = (real(found.makespan), real(found.lower_bound.min(found.makespan)));
    let mut metrics = vec![
        ("makespan", makespan),
        ("lower_bound", bound),
        ("proven", f64::from(u8::from(found.is_proven()))),
        ("evaluations", found.evaluations as f64),
    ];
    let idle = schedule.idle();
    if !idle.is_empty() {
        metrics.push(("idle", idle.iter().sum::<f64>() / idle.len() as f64));
    }
    if bound > 0.0 {
        metrics.push(("gap", (makespan - bound) / bound));
    }
    schedule.metrics = metrics.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    let point = |point: &Point| ConvergencePoint {
        island: point.island,
        evaluations: point.evaluations,
        cost: real(point.cost),
    };
    schedule.convergence = found.convergence.iter().map(point).collect();
    schedule.complete = found.complete;
    schedule
}

/// How good a schedule is, in words.
fn verdict(schedule: &Schedule) -> String {
    let metric = |name: &str| schedule.metrics.get(name).copied().unwrap_or_default();
    let makespan = metric("makespan");
    match (metric("proven") > 0.0, schedule.metrics.get("gap")) {
        (true, _) => format!("makespan {makespan}, proven optimal"),
        (false, Some(gap)) => format!(
            "makespan {makespan}, at most {:.2} % above the optimum (lower bound {})",
            100.0 * gap,
            metric("lower_bound")
        ),
        (false, None) => format!("makespan {makespan}"),
    }
}
