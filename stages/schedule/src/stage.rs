//! The stages of this crate.

use hopmap_islands::Point;
use hopmap_model::{
    Context, ConvergencePoint, Error, InputPath, Inputs, Mapping, Outcome, Outputs, Port, Program, Schedule,
    Stage, SystemGraph, TaskDag, TextFile,
};
use hopmap_replay::{MakespanEvaluator, ReplayProblem, placement};
use hopmap_text::decimal;
use hopmap_views::run_time_parts;

use crate::check::{self, accepts};
use crate::error::invalid;
use crate::params::{
    AutoParams, CheckParams, ExactParams, ExportFormat, ExportParams, GeneticParams, ImportParams,
    ListParams, MachineParams, Ranks, ReplayParams,
};
use crate::plan::{Plan, Scheduler, SearchResult};
use crate::problem::Problem;
use crate::{export, formats, predicted};

/// Inputs and outputs of schedulers.
const PORTS: &[Port] = &[
    Port::input::<TaskDag>("task-dag"),
    Port::optional::<SystemGraph>("system"),
    Port::output::<Schedule>("schedule"),
];

/// Declares the stage of a scheduler. `is_timed` is whether a result depends on the speed of the computer, and `ini` is a
/// parameter file.
macro_rules! scheduler_stage {
    (
        $(#[$meta:meta])* $stage:ident($kind:expr, $revision:literal, $summary:literal), $params:ident,
        is_timed: $is_timed:expr, ini: $ini:expr, distributed: $distributed:literal
    ) => {
        $(#[$meta])*
        #[derive(Debug)]
        pub struct $stage;

        impl Stage for $stage {
            type Params = $params;
            const KIND: &'static str = $kind;
            const SUMMARY: &'static str = $summary;
            const REVISION: u32 = $revision;
            const PORTS: &'static [Port] = PORTS;

            fn check(params: &$params) -> Result<(), Error> {
                params.check()
            }

            fn reads(params: &$params) -> Result<Vec<InputPath>, Error> {
                let ini: fn(&$params) -> Option<&InputPath> = $ini;
                let mut files = MachineParams::from(params).files();
                files.extend(ini(params).map(|file| InputPath::named(file.path(), "ini")));
                Ok(files)
            }

            fn distributed() -> bool {
                $distributed
            }

            fn run(params: $params, inputs: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
                params.check()?;
                let is_timed: fn(&$params) -> bool = $is_timed;
                solve(&MachineParams::from(&params), params.ranks, is_timed(&params), &inputs, cx, &params)
            }
        }
    };
}

scheduler_stage! {
    /// `schedule/list`: a list heuristic.
    ListStage("schedule/list", 5, "Schedule with a list heuristic, such as HEFT"), ListParams,
    is_timed: |_| false, ini: |_| None, distributed: false
}

scheduler_stage! {
    /// `schedule/exact`: branch and bound.
    ExactStage("schedule/exact", 5, "Find the proven optimum of a small problem, or a lower bound"), ExactParams,
    is_timed: |params| params.time_limit_s.is_some(), ini: |_| None, distributed: false
}

scheduler_stage! {
    /// `schedule/auto`: list heuristics, annealing and branch and bound on one budget.
    AutoStage(AutoParams::KIND, 5, "Find the best schedule within a budget, with its optimality gap"), AutoParams,
    is_timed: |params| params.time_limit_s.is_some(), ini: |_| None, distributed: true
}

scheduler_stage! {
    /// `schedule/genetic`: the genetic algorithm of PARUS.
    GeneticStage(GeneticParams::KIND, 5, "Schedule with the genetic algorithm of PARUS"), GeneticParams,
    is_timed: |params| params.time_limit_s.is_some(), ini: |params| params.ini.as_ref(),
    distributed: true
}

/// Schedules the program of the inputs, whose tasks may run anywhere.
fn solve(
    params: &MachineParams,
    ranks: Ranks,
    is_timed: bool,
    inputs: &Inputs,
    cx: &Context<'_>,
    scheduler: &impl Scheduler,
) -> Result<Outcome, Error> {
    let dag = inputs.one::<TaskDag>("task-dag")?.value;
    let system = inputs.optional::<SystemGraph>("system")?.map(|system| system.value);
    dag.check()?;
    if ranks == Ranks::Together && dag.tasks.iter().any(|task| task.rank.is_some()) {
        let problem = "the tasks belong to ranks, each of which stays on its slot";
        let help = "map the ranks with `map/auto` and `objective = \"makespan\"`, and connect the mapping to `schedule/replay`; with `ranks = \"free\"`, every task may run anywhere";
        return invalid(problem, help);
    }
    let machine = params.machine(system.as_deref(), dag.unit)?;
    let problem = Problem::new(&dag, &machine, params.delay_model())?;
    let found = scheduler.schedule(&problem, cx)?;
    let schedule = found.best.schedule(&problem, &dag, &machine.processors);
    let schedule = with_metrics(schedule, &found, |ticks| problem.real(ticks));
    cx.log(describe_quality(&schedule));
    let schedule = beside_recorded(schedule, &dag, cx);
    let outputs = Outputs::new().with("schedule", schedule).timed(is_timed);
    Ok(if found.complete { Outcome::Done(outputs) } else { Outcome::Partial(outputs) })
}

/// A schedule with its metrics.
fn with_metrics(mut schedule: Schedule, found: &SearchResult<Plan>, real: impl Fn(i64) -> f64) -> Schedule {
    let bound = found.lower_bound.min(found.makespan);
    measure(&mut schedule, real(found.makespan), real(bound));
    let counts = [("proven", u64::from(found.is_proven())), ("evaluations", found.evaluations)];
    schedule.metrics.extend(counts.map(|(name, count)| (name.to_owned(), count as f64)));
    let point = |point: &Point| ConvergencePoint {
        island: point.island,
        evaluations: point.evaluations,
        cost: real(point.cost),
    };
    schedule.convergence = found.convergence.iter().map(point).collect();
    schedule.complete = found.complete;
    schedule
}

/// Adds the makespan, its gap and the idle time to the metrics.
fn measure(schedule: &mut Schedule, makespan: f64, bound: f64) {
    let mut metrics = vec![("makespan", makespan), ("lower_bound", bound)];
    let idle = schedule.idle();
    if !idle.is_empty() {
        metrics.push(("idle", idle.iter().sum::<f64>() / idle.len() as f64));
    }
    if bound > 0.0 {
        metrics.push(("gap", (makespan - bound) / bound));
    }
    schedule.metrics.extend(metrics.into_iter().map(|(name, value)| (name.to_owned(), value)));
}

/// Describes the makespan and its gap.
fn describe_quality(schedule: &Schedule) -> String {
    let metric = |name: &str| schedule.metrics.get(name).copied().unwrap_or_default();
    let makespan = decimal(metric("makespan"));
    match (metric("proven") > 0.0, schedule.metrics.get("gap")) {
        (true, _) => format!("makespan {makespan}, proven optimal"),
        (false, Some(gap)) => format!(
            "makespan {makespan}, at most {:.2} % above the optimum (lower bound {})",
            100.0 * gap,
            decimal(metric("lower_bound"))
        ),
        (false, None) => format!("makespan {makespan}"),
    }
}

/// Adds the recorded run time of a traced program to the metrics, and logs what it consists of.
fn beside_recorded(mut schedule: Schedule, dag: &TaskDag, cx: &Context<'_>) -> Schedule {
    if let Some(seconds) = dag.recorded_s {
        schedule.metrics.insert("recorded_s".to_owned(), seconds);
        run_time_parts(&schedule.metrics).iter().for_each(|line| cx.log(line));
    }
    schedule
}

/// `schedule/check`: a schedule recomputed from the program and the machine.
#[derive(Debug)]
pub struct CheckStage;

impl Stage for CheckStage {
    type Params = CheckParams;
    const KIND: &'static str = check::KIND;
    const SUMMARY: &'static str = "Verify a schedule or .sch file by recomputing it";
    const REVISION: u32 = 5;
    const PORTS: &'static [Port] = &[
        Port::input::<TaskDag>("task-dag"),
        Port::optional::<SystemGraph>("system"),
        Port::optional::<Schedule>("schedule"),
        Port::output::<Schedule>("schedule"),
    ];

    fn reads(params: &Self::Params) -> Result<Vec<InputPath>, Error> {
        let mut files = MachineParams::from(params).files();
        files.extend(params.path.iter().map(|file| InputPath::named(file.path(), "schedule")));
        Ok(files)
    }

    fn run(params: Self::Params, inputs: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        let dag = inputs.one::<TaskDag>("task-dag")?.value;
        let system = inputs.optional::<SystemGraph>("system")?.map(|system| system.value);
        let given = inputs.optional::<Schedule>("schedule")?.map(|schedule| schedule.value);
        dag.check()?;
        let machine = MachineParams::from(&params).machine(system.as_deref(), dag.unit)?;
        let schedule = check::check(&dag, &machine, &params, given.as_deref(), cx)?;
        let schedule = beside_recorded(schedule, &dag, cx);
        Ok(Outcome::Done(Outputs::new().with("schedule", schedule)))
    }
}

/// `schedule/replay`: when the tasks of ranks run, each rank on its slot of a mapping.
#[derive(Debug)]
pub struct ReplayStage;

impl Stage for ReplayStage {
    type Params = ReplayParams;
    const KIND: &'static str = "schedule/replay";
    const SUMMARY: &'static str = "Replay the tasks of a traced program under a mapping";
    const REVISION: u32 = 2;
    const PORTS: &'static [Port] = &[
        Port::input::<TaskDag>("task-dag"),
        Port::input::<Mapping>("mapping"),
        Port::optional::<SystemGraph>("system"),
        Port::optional::<Program>("program"),
        Port::output::<Schedule>("schedule"),
    ];

    fn reads(params: &Self::Params) -> Result<Vec<InputPath>, Error> {
        Ok(MachineParams::from(params).files())
    }

    fn run(params: Self::Params, inputs: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        let dag = inputs.one::<TaskDag>("task-dag")?.value;
        let mapping = inputs.one::<Mapping>("mapping")?.value;
        let system = inputs.optional::<SystemGraph>("system")?.map(|system| system.value);
        let program = inputs.optional::<Program>("program")?.map(|program| program.value);
        dag.check()?;
        let params = MachineParams::from(&params);
        let machine = params.machine(system.as_deref(), dag.unit)?;
        let problem = ReplayProblem::new(&dag, &machine, params.delay_model())?;
        let slots = placement(&mapping, &machine, problem.ranks())?;
        let mut schedule = problem.schedule(&dag, &machine.processors, &slots);
        let makespan = MakespanEvaluator::new(&problem).makespan(&slots);
        measure(&mut schedule, problem.real(makespan), problem.real(problem.lower_bound()));
        cx.log(describe_quality(&schedule));
        let computation = schedule.critical_path().into_iter().map(|task| {
            let pace = machine.pace[schedule.tasks[task as usize].processor as usize];
            dag.tasks[task as usize].work * pace
        });
        schedule.metrics.insert("critical_work".to_owned(), computation.sum());
        if let Some(program) = program {
            let Some(system) = system else {
                let problem = "a `program` is connected, but no `system`";
                return invalid(problem, "connect the machine topology that the mapping is for");
            };
            let metrics = predicted::run_time(&program, &system, &mapping, &params, cx)?;
            schedule.metrics.extend(metrics);
        }
        let schedule = beside_recorded(schedule, &dag, cx);
        Ok(Outcome::Done(Outputs::new().with("schedule", schedule)))
    }
}

/// `schedule/import`: a task graph from a file.
#[derive(Debug)]
pub struct ImportStage;

impl Stage for ImportStage {
    type Params = ImportParams;
    const KIND: &'static str = "schedule/import";
    const SUMMARY: &'static str =
        "Read a task graph in the format of PARUS, Graphviz, the STG set or WfCommons";
    const REVISION: u32 = 2;
    const PORTS: &'static [Port] = &[Port::output::<TaskDag>("task-dag")];

    fn reads(params: &Self::Params) -> Result<Vec<InputPath>, Error> {
        // A fixed name, so that renaming a file changes no key.
        Ok(vec![InputPath::named(params.path.path(), "graph")])
    }

    fn check(params: &Self::Params) -> Result<(), Error> {
        formats::check(params)
    }

    fn run(params: Self::Params, _: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        let dag = formats::read_graph(&params, cx)?;
        Ok(Outcome::Done(Outputs::new().with("task-dag", dag)))
    }
}

/// `schedule/export`: a schedule as a text file for other tools.
#[derive(Debug)]
pub struct ExportStage;

impl Stage for ExportStage {
    type Params = ExportParams;
    const KIND: &'static str = "schedule/export";
    const SUMMARY: &'static str = "Export a schedule as .sch, Gantt chart, Perfetto, Pajé or WfFormat";
    const REVISION: u32 = 1;
    const PORTS: &'static [Port] = &[
        Port::input::<Schedule>("schedule"),
        Port::optional::<TaskDag>("task-dag"),
        Port::output::<TextFile>("file"),
    ];

    fn run(params: Self::Params, inputs: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        let schedule = inputs.one::<Schedule>("schedule")?.value;
        let dag = inputs.optional::<TaskDag>("task-dag")?.map(|dag| dag.value);
        let file = export::write(&schedule, dag.as_deref(), &params)?;
        let is_of_program = |dag: &&TaskDag| dag.tasks.len() == schedule.tasks.len();
        if let (ExportFormat::Sch, Some(dag)) = (params.format, dag.as_deref().filter(is_of_program))
            && !accepts(dag, &schedule.turns())
        {
            cx.log("`check_schedule` of PARUS rejects this order; `parus_order = true` of `schedule/check` finds an accepted one");
        }
        Ok(Outcome::Done(Outputs::new().with("file", file)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_import_stage_outputs_tasks() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "digraph { a [Weight=1] b [Weight=2] a -> b }").unwrap();
        let params = ImportParams::of(file.path());
        ImportStage::check(&params).unwrap();
        let Outcome::Done(outputs) =
            ImportStage::run(params.clone(), Inputs::new(), &Context::detached()).unwrap()
        else {
            panic!("not done")
        };
        let dag = outputs.get("task-dag").unwrap().downcast_ref::<TaskDag>().unwrap();
        assert_eq!((dag.tasks.len(), dag.name(1).as_ref()), (2, "b"));
        assert!(ImportStage::check(&ImportParams { scale: f64::NAN, ..params.clone() }).is_err());
        assert_eq!(ImportStage::reads(&params).unwrap()[0].name(), "graph");
    }
}
