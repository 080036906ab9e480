//! `route/tables` and `route/map`.

use std::time::Instant;

use hopmap_model::{
    Context, Diagnosis, Error, Inputs, Mapping, Outcome, Outputs, Port, Routes, Stage, SystemGraph, Tables,
    TaskGraph,
};

use crate::answer::{Answer, check_ports};
use crate::diagnosis::diagnose;
use crate::engine::Watch;
use crate::error::ParameterError;
use crate::goals::reach;
use crate::problem::Problem;
use crate::solver::{self, Limits};
use crate::{Rules, SolveParams, Weights};

/// `route/tables`: routes and tables for processes that are where they are.
#[derive(Debug)]
pub struct TablesStage;

/// `route/map`: mapping, routes and tables.
#[derive(Debug)]
pub struct MapStage;

impl Stage for TablesStage {
    type Params = SolveParams;
    const KIND: &'static str = "route/tables";
    const SUMMARY: &'static str = "Routes of streams and tables of switches for a given mapping, proven best";
    const REVISION: u32 = 1;

    fn ports() -> &'static [Port] {
        const {
            &[
                Port::input::<TaskGraph>("task-graph"),
                Port::input::<SystemGraph>("system"),
                Port::input::<Mapping>("mapping"),
                Port::possible::<Mapping>("mapping"),
                Port::possible::<Routes>("routes"),
                Port::possible::<Tables>("tables"),
                Port::possible::<Diagnosis>("diagnosis"),
            ]
        }
    }

    fn check(params: &Self::Params) -> Result<(), Error> {
        check_solve(params)
    }

    fn run(params: Self::Params, inputs: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        let mapping = inputs.one::<Mapping>("mapping")?.value;
        solve(&params, Some(&mapping), &inputs, cx)
    }
}

impl Stage for MapStage {
    type Params = SolveParams;
    const KIND: &'static str = "route/map";
    const SUMMARY: &'static str =
        "Hosts of processes, routes of streams and tables of switches together, proven best";
    const REVISION: u32 = 1;

    fn ports() -> &'static [Port] {
        const {
            &[
                Port::input::<TaskGraph>("task-graph"),
                Port::input::<SystemGraph>("system"),
                Port::possible::<Mapping>("mapping"),
                Port::possible::<Routes>("routes"),
                Port::possible::<Tables>("tables"),
                Port::possible::<Diagnosis>("diagnosis"),
            ]
        }
    }

    fn check(params: &Self::Params) -> Result<(), Error> {
        check_solve(params)
    }

    fn run(params: Self::Params, inputs: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        solve(&params, None, &inputs, cx)
    }
}

fn check_solve(params: &SolveParams) -> Result<(), Error> {
    Weights::from(params).check()?;
    let limits = [("seconds", params.seconds), ("nodes", params.nodes.map(|nodes| nodes as f64))];
    for (name, value) in limits {
        if let Some(value) = value.filter(|value| !(value.is_finite() && *value > 0.0)) {
            return Err(ParameterError::Limit { name, value }.into());
        }
    }
    Ok(())
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
    let left = cx.deadline().map(|deadline| deadline.saturating_duration_since(Instant::now()).as_secs_f64());
    let limits = Limits { nodes: params.nodes, seconds: least(params.seconds, left) };
    let should_stop = || cx.should_stop();
    let watch = Watch::new(limits, &should_stop);
    let problem = Problem::new(&graph, &system, mapping, Rules::from(params))?;
    let solver = solver::default();
    let answer = reach(&problem, mapping, params.goal, params.method, solver.as_deref(), &watch)?;
    let Some(Answer { mapping, routes, tables }) = answer else {
        let diagnosis = diagnose(&problem, solver.as_deref(), &watch)?;
        cx.log("no mapping, routes and tables keep all constraints");
        diagnosis.causes.iter().for_each(|cause| cx.log(&cause.words));
        return Ok(Outcome::Infeasible(Outputs::new().with("diagnosis", diagnosis)));
    };
    let metric = |name: &str| routes.metrics.get(name).copied().unwrap_or_default();
    cx.log(match (metric("proven") > 0.0, routes.metrics.get("bound")) {
        (true, _) => format!("objective {}, proven optimal", metric("objective")),
        (false, Some(bound)) => format!("objective {}, not below {bound}", metric("objective")),
        (false, None) => format!("objective {}", metric("objective")),
    });
    let is_cut_short = metric("proven") <= 0.0 && cx.should_stop();
    let outputs = Outputs::new().with("mapping", mapping).with("routes", routes).with("tables", tables);
    let outputs = outputs.timed(params.seconds.is_some());
    Ok(if is_cut_short { Outcome::Partial(outputs) } else { Outcome::Done(outputs) })
}

/// The lesser of two times, as far as they limit anything.
fn least(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    a.into_iter().chain(b).reduce(f64::min)
}
