//! `route/tables` and `route/map`.

use std::time::Instant;

use hopmap_model::{
    Context, Diagnosis, Error, Inputs, Library, Mapping, Outcome, Outputs, Port, Routes, Stage, SystemGraph,
    Tables, TaskGraph,
};

use crate::answer::{Answer, check_ports};
use crate::diagnosis::diagnose;
use crate::engine::Watch;
use crate::error::ParameterError;
use crate::goals::reach;
use crate::problem::{Problem, without_performance};
use crate::solver::{self, HIGHS, Limits};
use crate::{Goal, Rules, SolveParams};

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
    const REVISION: u32 = 3;

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

    fn libraries() -> &'static [&'static Library] {
        &[HIGHS]
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
    const REVISION: u32 = 3;

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

    fn libraries() -> &'static [&'static Library] {
        &[HIGHS]
    }

    fn check(params: &Self::Params) -> Result<(), Error> {
        match params.ignore_performance {
            true => Err(ParameterError::IgnoresPerformance.into()),
            false => check_solve(params),
        }
    }

    fn run(params: Self::Params, inputs: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        solve(&params, None, &inputs, cx)
    }
}

fn check_solve(params: &SolveParams) -> Result<(), Error> {
    Rules::from(params).check()?;
    params.method.check(HIGHS.is_built)?;
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
    let is_timed = params.seconds.is_some() || cx.deadline().is_some();
    let should_stop = || cx.should_stop();
    let watch = Watch::new(limits, &should_stop);
    let ignoring = params.ignore_performance.then(|| without_performance(&graph, &system));
    let (graph, system) = ignoring.as_ref().map_or((&*graph, &*system), |(graph, system)| (graph, system));
    let problem = Problem::new(graph, system, mapping, Rules::from(params))?;
    let solver = solver::default();
    let answer = reach(&problem, mapping, params.goal, params.method, solver.as_deref(), &watch)?;
    let Some(Answer { mapping, routes, tables }) = answer else {
        cx.log("no mapping, routes and tables keep all constraints");
        // That there is no answer is known, whatever becomes of the reasons.
        let mut diagnosis = diagnose(&problem, solver.as_deref(), &watch).unwrap_or_else(|error| {
            cx.log(format_args!("why was not found out: {error}"));
            Diagnosis::default()
        });
        diagnosis.metrics.insert("infeasible".to_owned(), 1.0);
        tell(&diagnosis, cx);
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
        (false, Some(bound)) => format!("objective {}, not below {bound}", metric("objective")),
        (false, None) => format!("objective {}", metric("objective")),
    });
    // A deadline is no part of the parameters: what it may have shaped is not kept as the result.
    let is_cut_short = metric("proven") <= 0.0 && (cx.should_stop() || cx.deadline().is_some());
    let outputs = Outputs::new().with("mapping", mapping).with("routes", routes).with("tables", tables);
    let outputs = outputs.timed(is_timed);
    Ok(if is_cut_short { Outcome::Partial(outputs) } else { Outcome::Done(outputs) })
}

/// The causes, one remedy after the other.
fn tell(diagnosis: &Diagnosis, cx: &Context<'_>) {
    let mut remedy = 0;
    for cause in &diagnosis.causes {
        match (cause.remedy, cause.remedy == remedy) {
            (0, _) => cx.log(&cause.words),
            (_, true) => cx.log(format_args!("and: {}", cause.words)),
            (_, false) => cx.log(format_args!("or: {}", cause.words)),
        }
        remedy = cause.remedy;
    }
    if diagnosis.metrics.get("complete") == Some(&0.0) {
        cx.log("there may be other remedies, or smaller ones: the search for them was cut short");
    } else if diagnosis.metrics.get("remedies") == Some(&0.0) {
        cx.log("nothing was found that would be enough");
    }
}

/// What was reached of a goal.
fn goal_words(goal: Goal, routes: &Routes) -> Option<String> {
    let metric = |name: &str| routes.metrics.get(name);
    let what = match goal {
        Goal::Objective => return None,
        Goal::BandwidthSlack => "part of the bandwidth that stays free on every link",
        Goal::PerformanceSlack => "part of the performance that stays free on every host",
        Goal::SwitchLoad => "most that arrives at a switch",
    };
    let (goal, bound) = (metric("goal")?, metric("goal_bound")?);
    Some(match metric("goal_proven").is_some_and(|&proven| proven > 0.0) {
        true => format!("{what}: {goal}, proven best"),
        false => format!("{what}: {goal}, not better than {bound}"),
    })
}

/// The lesser of two times, as far as they limit anything.
fn least(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    a.into_iter().chain(b).reduce(f64::min)
}
