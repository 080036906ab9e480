//! What happens when any one part of a machine fails.
//!
//! Every cable (in both directions), switch and host is taken away in turn. Where processes stay, new routes and tables are
//! looked for as by `route/tables`: all streams from one host to another are one (problem 1 of the paper). Where they may go to
//! other hosts, every stream has a route of its own, as by `route/map` (problem 2), and every process that goes costs something
//! beside the objective.

mod parts;
mod survey;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use hopmap_model::{
    Context, Error, Failures, Inputs, Mapping, Outcome, Outputs, Port, Routes, Stage, SystemGraph, Tables,
    TaskGraph,
};
use rayon::prelude::*;

use crate::error::ParameterError;
use crate::network::check_ports;
use crate::problem::Problem;
use crate::{CheckError, FailuresParams, Rules};

pub(crate) use parts::{Element, elements};
use survey::{Reference, Rest, Survey, nothing};

/// `route/failures`: every link, switch and host taken away in turn.
#[derive(Debug)]
pub struct FailuresStage;

impl Stage for FailuresStage {
    type Params = FailuresParams;
    const KIND: &'static str = "route/failures";
    const SUMMARY: &'static str =
        "Whether a program survives the failure of any link, switch or host, and how";
    const REVISION: u32 = 2;

    fn ports() -> &'static [Port] {
        const {
            &[
                Port::input::<TaskGraph>("task-graph"),
                Port::input::<SystemGraph>("system"),
                Port::input::<Mapping>("mapping"),
                Port::optional::<Routes>("routes"),
                Port::optional::<Tables>("tables"),
                Port::output::<Failures>("failures"),
            ]
        }
    }

    fn check(params: &Self::Params) -> Result<(), Error> {
        params.check_search()?;
        if params.components.is_empty() {
            return Err(CheckError::new("`components` is empty", "link, switch, host, or several").into());
        }
        if !(params.move_cost.is_finite() && params.move_cost >= 0.0) {
            return Err(ParameterError::MoveCost { value: params.move_cost }.into());
        }
        Ok(())
    }

    fn run(params: Self::Params, inputs: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        let graph = inputs.one::<TaskGraph>("task-graph")?.value;
        let system = inputs.one::<SystemGraph>("system")?.value;
        let mapping = inputs.one::<Mapping>("mapping")?.value;
        let routes = inputs.optional::<Routes>("routes")?.map(|routes| routes.value);
        let tables = inputs.optional::<Tables>("tables")?.map(|tables| tables.value);
        let failures =
            failures(&params, &graph, &system, &mapping, (routes.as_deref(), tables.as_deref()), cx)?;
        let metric = |name: &str| failures.metrics.get(name).copied().unwrap_or_default();
        cx.log(format_args!("{} of {} failures are survived", metric("survived"), metric("failures")));
        for failure in failures.failures.iter().filter(|failure| failure.survived != Some(true)) {
            cx.log(format_args!("not without {}: {}", failure.name, failure.shortage));
        }
        let survives = metric("survived") >= metric("failures");
        let proven = metric("proven");
        let outputs = Outputs::new()
            .with("failures", failures)
            .timed(params.time_limit_s.is_some() || cx.deadline().is_some());
        let is_cut_short = cx.should_stop() || (cx.deadline().is_some() && proven <= 0.0);
        Ok(match (is_cut_short, params.require_resilience && !survives) {
            (true, _) => Outcome::Partial(outputs),
            (_, true) => Outcome::Infeasible(outputs),
            _ => Outcome::Done(outputs),
        })
    }
}

/// What happens when any one part of a machine fails. `given` routes and tables are what others are compared with; without any,
/// those that are best for the whole machine.
pub fn failures(
    params: &FailuresParams,
    graph: &TaskGraph,
    system: &SystemGraph,
    mapping: &Mapping,
    given: (Option<&Routes>, Option<&Tables>),
    cx: &Context<'_>,
) -> Result<Failures, Error> {
    check_ports(system)?;
    let rules = Rules::from(params);
    let given = survey::given(graph, system, mapping, given.0, given.1)?;
    let hosts = Problem::new(graph, system, Some(mapping), rules)?.mapped.unwrap_or_default();
    let free = params.remap.then(|| movable(graph));
    let survey = Survey {
        graph: free.as_ref().unwrap_or(graph),
        system,
        mapping,
        hosts,
        rules,
        method: params.method,
        limits: params.limits(cx),
        move_cost: params.remap.then_some(params.move_cost),
    };
    let should_stop = || cx.should_stop();
    let nominal = survey.nominal(given.as_ref(), &should_stop)?;
    let routes = nominal.found.plan.as_ref().map(|plan| plan.routes.as_slice()).unwrap_or_default();
    let reference = given.unwrap_or_else(|| Reference::new(system, routes, None));
    let elements = elements(system, &params.components);
    let done = AtomicU64::new(0);
    let without = |element: &parts::Element| {
        if cx.should_stop() {
            let shortage = "not looked at: the time is over".to_owned();
            return Ok(Rest {
                failure: hopmap_model::Failure { shortage, ..nothing(element) },
                proven: false,
            });
        }
        let rest = survey.without(element, &nominal, &reference, &should_stop);
        cx.progress(done.fetch_add(1, Ordering::Relaxed) + 1, elements.len() as u64);
        rest
    };
    let rests = elements.par_iter().map(without).collect::<Result<Vec<Rest>, Error>>()?;
    Ok(summed(rests))
}

/// The program with processes that may go elsewhere: where all are settled, that is only where they begin.
fn movable(graph: &TaskGraph) -> TaskGraph {
    let mut graph = graph.clone();
    let processes = &mut graph.demands.processes;
    if processes.iter().all(|process| process.host.is_some()) {
        processes.iter_mut().for_each(|process| process.host = None);
    }
    graph
}

fn summed(rests: Vec<Rest>) -> Failures {
    let proven = rests.iter().all(|rest| rest.proven);
    let failures: Vec<_> = rests.into_iter().map(|rest| rest.failure).collect();
    let count = |survived| failures.iter().filter(|failure| failure.survived == survived).count() as f64;
    let worst = failures.iter().filter_map(|failure| failure.objective).reduce(f64::max);
    let moved = failures.iter().map(|failure| failure.moved).max().unwrap_or_default();
    let metrics = [
        ("failures", Some(failures.len() as f64)),
        ("survived", Some(count(Some(true)))),
        ("lost", Some(count(Some(false)))),
        ("unknown", Some(count(None))),
        ("worst_objective", worst),
        ("most_moved", Some(f64::from(moved))),
        ("proven", Some(f64::from(u8::from(proven)))),
    ];
    let metrics: BTreeMap<String, f64> =
        metrics.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect();
    Failures { failures, metrics }
}
