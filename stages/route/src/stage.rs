//! The stages that read instances, solve, check and export: `route/import`, `tables`, `map`, `check`, `export`, `model`.

use hopmap_model::{
    Context, Diagnosis, Error, InputPath, Inputs, Library, Mapping, Outcome, Outputs, Port, Routes, Stage,
    SystemGraph, Tables, TaskGraph, TextFile,
};
use hopmap_routing::answer::Answer;
use hopmap_routing::check;
use hopmap_routing::diagnosis::{diagnose, summary};
use hopmap_routing::engine::StopCondition;
use hopmap_routing::error::fail;
use hopmap_routing::goals::reach;
use hopmap_routing::network::check_ports;
use hopmap_routing::paper::Formulation;
use hopmap_routing::params::Goal;
use hopmap_routing::problem::{Problem, Rules, Weights, without_performance};
use hopmap_routing::solver::{self, HIGHS};

use crate::export;
use crate::instance::Instance;
use crate::params::{
    CheckParams, ExportFormat, ExportParams, ImportParams, ModelFormat, ModelParams, SolveParams,
};

/// `route/import`: a program and a network from a file.
#[derive(Debug)]
pub struct ImportStage;

/// `route/check`: tables followed entry by entry.
#[derive(Debug)]
pub struct CheckStage;

/// `route/export`: tables in formats that networks load.
#[derive(Debug)]
pub struct ExportStage;

/// `route/model`: the integer program of the paper as a file.
#[derive(Debug)]
pub struct ModelStage;

impl Stage for ImportStage {
    type Params = ImportParams;
    const KIND: &'static str = "route/import";
    const SUMMARY: &'static str =
        "Read processes, streams and a network of hosts and switches from JSON or TOML";
    const REVISION: u32 = 1;
    const PORTS: &'static [Port] = &[
        Port::output::<TaskGraph>("task-graph"),
        Port::output::<SystemGraph>("system"),
        Port::possible::<Mapping>("mapping"),
        Port::possible::<Tables>("tables"),
    ];

    fn reads(params: &Self::Params) -> Result<Vec<InputPath>, Error> {
        // A fixed name, so that renaming a file changes no key.
        Ok(vec![InputPath::named(params.path.path(), "instance")])
    }

    fn run(params: Self::Params, _: Inputs, _: &Context<'_>) -> Result<Outcome, Error> {
        let Instance { graph, system, mapping, tables } = Instance::changed(&params)?;
        let mut outputs = Outputs::new().with("task-graph", graph).with("system", system);
        if let Some(mapping) = mapping {
            outputs = outputs.with("mapping", mapping);
        }
        if let Some(tables) = tables {
            outputs = outputs.with("tables", tables);
        }
        Ok(Outcome::Done(outputs))
    }
}

impl Stage for CheckStage {
    type Params = CheckParams;
    const KIND: &'static str = "route/check";
    const SUMMARY: &'static str = "Verify switch tables entry by entry: routes, loads and deadlocks";
    const REVISION: u32 = 3;
    const PORTS: &'static [Port] = &[
        Port::input::<TaskGraph>("task-graph"),
        Port::input::<SystemGraph>("system"),
        Port::input::<Mapping>("mapping"),
        Port::input::<Tables>("tables"),
        Port::optional::<Routes>("routes"),
        Port::output::<Routes>("routes"),
    ];

    fn check(params: &Self::Params) -> Result<(), Error> {
        Rules::from(params).check()
    }

    fn run(params: Self::Params, inputs: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        let graph = inputs.one::<TaskGraph>("task-graph")?.value;
        let system = inputs.one::<SystemGraph>("system")?.value;
        let mapping = inputs.one::<Mapping>("mapping")?.value;
        let tables = inputs.one::<Tables>("tables")?.value;
        let routes = inputs.optional::<Routes>("routes")?.map(|routes| routes.value);
        let ignoring = params.ignore_performance.then(|| without_performance(&graph, &system));
        let (graph, system) =
            ignoring.as_ref().map_or((&*graph, &*system), |(graph, system)| (graph, system));
        let (rules, merged) = (Rules::from(&params), params.aggregate_flows);
        let checked = check::check(graph, system, &mapping, &tables, routes.as_deref(), &rules, merged)?;
        checked.notes.iter().for_each(|note| cx.log(note));
        Ok(Outcome::Done(Outputs::new().with("routes", checked.routes)))
    }
}

impl Stage for ExportStage {
    type Params = ExportParams;
    const KIND: &'static str = "route/export";
    const SUMMARY: &'static str = "Export switch tables for RapidIO, Linux or InfiniBand, or draw the routes";
    const REVISION: u32 = 3;
    const PORTS: &'static [Port] = &[
        Port::input::<SystemGraph>("system"),
        Port::input::<Tables>("tables"),
        Port::optional::<Routes>("routes"),
        Port::optional::<TaskGraph>("task-graph"),
        Port::optional::<Mapping>("mapping"),
        Port::output::<TextFile>("file"),
    ];

    fn reads(params: &Self::Params) -> Result<Vec<InputPath>, Error> {
        Ok(params.lids.iter().map(|file| InputPath::named(file.path(), "lids")).collect())
    }

    fn run(params: Self::Params, inputs: Inputs, _: &Context<'_>) -> Result<Outcome, Error> {
        let system = inputs.one::<SystemGraph>("system")?.value;
        let tables = inputs.one::<Tables>("tables")?.value;
        let file = match params.format {
            ExportFormat::Svg | ExportFormat::Html => {
                let routes = inputs.optional::<Routes>("routes")?.map(|routes| routes.value);
                let graph = inputs.optional::<TaskGraph>("task-graph")?.map(|graph| graph.value);
                let mapping = inputs.optional::<Mapping>("mapping")?.map(|mapping| mapping.value);
                let shown = export::Shown {
                    system: &system,
                    tables: &tables,
                    routes: routes.as_deref(),
                    graph: graph.as_deref(),
                    mapping: mapping.as_deref(),
                };
                export::draw(&shown, params.format)?
            }
            _ => export::write(&system, &tables, &params)?,
        };
        Ok(Outcome::Done(Outputs::new().with("file", file)))
    }
}

impl Stage for ModelStage {
    type Params = ModelParams;
    const KIND: &'static str = "route/model";
    const SUMMARY: &'static str =
        "Write the integer program of routing, or of mapping and routing, for glpsol, cbc, scip or HiGHS";
    const REVISION: u32 = 1;
    const PORTS: &'static [Port] = &[
        Port::input::<TaskGraph>("task-graph"),
        Port::input::<SystemGraph>("system"),
        Port::optional::<Mapping>("mapping"),
        Port::output::<TextFile>("file"),
    ];

    fn check(params: &Self::Params) -> Result<(), Error> {
        Ok(Weights::from(params).check()?)
    }

    fn run(params: Self::Params, inputs: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        let graph = inputs.one::<TaskGraph>("task-graph")?.value;
        let system = inputs.one::<SystemGraph>("system")?.value;
        let mapping = inputs.optional::<Mapping>("mapping")?.map(|mapping| mapping.value);
        let problem = Problem::new(&graph, &system, mapping.as_deref(), Rules::from(Weights::from(&params)))?;
        let formulation = Formulation::new(&problem);
        let program = formulation.program();
        cx.log(format_args!(
            "{} variables, {} constraints",
            program.variables.len(),
            program.constraints.len()
        ));
        let (name, text) = match params.format {
            ModelFormat::Lp => ("route.lp", program.lp()),
            ModelFormat::Mps => ("route.mps", program.mps()),
        };
        Ok(Outcome::Done(Outputs::new().with("file", TextFile { name: name.to_owned(), text })))
    }
}

/// `route/tables`: routes and tables for a given mapping.
#[derive(Debug)]
pub struct TablesStage;

/// `route/map`: mapping, routes and tables.
#[derive(Debug)]
pub struct MapStage;

impl Stage for TablesStage {
    type Params = SolveParams;
    const KIND: &'static str = "route/tables";
    const SUMMARY: &'static str = "Compute optimal routes and switch tables for a given mapping";
    const REVISION: u32 = 6;
    const PORTS: &'static [Port] = &[
        Port::input::<TaskGraph>("task-graph"),
        Port::input::<SystemGraph>("system"),
        Port::input::<Mapping>("mapping"),
        Port::possible::<Mapping>("mapping"),
        Port::possible::<Routes>("routes"),
        Port::possible::<Tables>("tables"),
        Port::possible::<Diagnosis>("diagnosis"),
    ];

    fn libraries() -> &'static [&'static Library] {
        &[HIGHS]
    }

    fn check(params: &Self::Params) -> Result<(), Error> {
        params.check_search()
    }

    fn run(params: Self::Params, inputs: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        let mapping = inputs.one::<Mapping>("mapping")?.value;
        solve(&params, Some(&mapping), &inputs, cx)
    }
}

impl Stage for MapStage {
    type Params = SolveParams;
    const KIND: &'static str = "route/map";
    const SUMMARY: &'static str = "Optimise mapping, routes and switch tables together";
    const REVISION: u32 = 6;
    const PORTS: &'static [Port] = &[
        Port::input::<TaskGraph>("task-graph"),
        Port::input::<SystemGraph>("system"),
        Port::possible::<Mapping>("mapping"),
        Port::possible::<Routes>("routes"),
        Port::possible::<Tables>("tables"),
        Port::possible::<Diagnosis>("diagnosis"),
    ];

    fn libraries() -> &'static [&'static Library] {
        &[HIGHS]
    }

    fn check(params: &Self::Params) -> Result<(), Error> {
        match params.ignore_performance {
            true => fail(
                "`ignore_performance` requires a given mapping",
                "use `route/tables`; without performance limits, the best mapping puts all processes on one host",
            ),
            false => params.check_search(),
        }
    }

    fn run(params: Self::Params, inputs: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        solve(&params, None, &inputs, cx)
    }
}

fn solve(
    params: &SolveParams,
    mapping: Option<&Mapping>,
    inputs: &Inputs,
    cx: &Context<'_>,
) -> Result<Outcome, Error> {
    let graph = inputs.one::<TaskGraph>("task-graph")?.value;
    let system = inputs.one::<SystemGraph>("system")?.value;
    check_ports(&system)?;
    let is_timed = params.time_limit_s.is_some() || cx.deadline().is_some();
    let should_stop = || cx.should_stop();
    let stop = StopCondition::new(params.limits(cx), &should_stop);
    let ignoring = params.ignore_performance.then(|| without_performance(&graph, &system));
    let (graph, system) = ignoring.as_ref().map_or((&*graph, &*system), |(graph, system)| (graph, system));
    let problem = Problem::new(graph, system, mapping, Rules::from(params))?;
    let solver = solver::default();
    let answer = reach(&problem, mapping, params.goal, params.method, solver.as_deref(), &stop)?;
    let Some(Answer { mapping, routes, tables }) = answer else {
        cx.log("no mapping, routes and tables satisfy all constraints");
        // Infeasibility is proven even if the diagnosis fails.
        let mut diagnosis = diagnose(&problem, solver.as_deref(), &stop).unwrap_or_else(|error| {
            cx.log(format_args!("the diagnosis failed: {error}"));
            Diagnosis::default()
        });
        diagnosis.metrics.insert("infeasible".to_owned(), 1.0);
        summary(&diagnosis).iter().for_each(|line| cx.log(line));
        let is_cut_short = diagnosis.metrics.get("complete").is_none_or(|complete| *complete <= 0.0)
            && (cx.should_stop() || cx.deadline().is_some());
        let outputs = Outputs::new().with("diagnosis", diagnosis).timed(is_timed);
        return Ok(match (is_cut_short, params.allow_infeasible) {
            (true, _) => Outcome::Partial(outputs),
            (false, true) => Outcome::Done(outputs),
            (false, false) => Outcome::Infeasible(outputs),
        });
    };
    let metric = |name: &str| routes.metrics.get(name).copied().unwrap_or_default();
    if let Some(words) = goal_words(params.goal, &routes) {
        cx.log(words);
    }
    cx.log(match (metric("proven") > 0.0, routes.metrics.get("bound")) {
        (true, _) => format!("objective {}, proven optimal", metric("objective")),
        (false, Some(bound)) => format!("objective {}, lower bound {bound}", metric("objective")),
        (false, None) => format!("objective {}", metric("objective")),
    });
    // The deadline is not a parameter, so a result that it cut short must not be stored as final.
    let is_cut_short = metric("proven") <= 0.0 && (cx.should_stop() || cx.deadline().is_some());
    let outputs = Outputs::new().with("mapping", mapping).with("routes", routes).with("tables", tables);
    let outputs = outputs.timed(is_timed);
    Ok(if is_cut_short { Outcome::Partial(outputs) } else { Outcome::Done(outputs) })
}

/// Describes the value reached for a goal.
fn goal_words(goal: Goal, routes: &Routes) -> Option<String> {
    let metric = |name: &str| routes.metrics.get(name);
    let what = match goal {
        Goal::Objective => return None,
        Goal::BandwidthSlack => "fraction of bandwidth free on every link",
        Goal::PerformanceSlack => "fraction of performance free on every host",
        Goal::SwitchLoad => "load of the busiest switch",
    };
    let (goal, bound) = (metric("goal")?, metric("goal_bound")?);
    Some(match metric("goal_proven").is_some_and(|&proven| proven > 0.0) {
        true => format!("{what}: {goal}, proven optimal"),
        false => format!("{what}: {goal}, bound {bound}"),
    })
}
