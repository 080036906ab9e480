//! What happens when any one part of a machine fails.
//!
//! Every cable (in both directions), switch and host is taken away in turn. Where processes stay, new routes and tables are
//! looked for as by `route/tables`: all streams from one host to another are one (problem 1 of the paper). Where they may go to
//! other hosts, every stream has a route of its own, as by `route/map` (problem 2), and every process that goes costs something
//! beside the objective.

mod parts;
mod reference;
mod survey;
mod ways;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use hopmap_model::{
    Context, Error, Failures, Inputs, Mapping, Outcome, Outputs, Port, Routes, Stage, SystemGraph, Tables,
    TaskGraph,
};
use rayon::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::answer::check_ports;
use crate::error::ParameterError;
use crate::params::{one, ten, thousand};
use crate::problem::Problem;
use crate::solver::Limits;
use crate::{CheckError, Goal, Method, Rules, SolveParams, TablesStage};

pub use parts::Fallible;
pub(crate) use parts::{Element, elements};
use reference::Reference;
use survey::Survey;
use survey::{Rest, nothing};

/// `route/failures`: every link, switch and host taken away in turn.
#[derive(Debug)]
pub struct FailuresStage;

/// Failures of single parts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FailuresParams {
    /// Which parts are taken away.
    #[serde(default = "all")]
    pub of: Vec<Fallible>,
    /// Whether processes may go to other hosts. Otherwise they stay, and only routes change. A program whose processes are all
    /// settled on hosts is then settled on none.
    #[serde(default)]
    pub remap: bool,
    /// What a process costs that goes to another host, beside the objective.
    #[serde(default = "thousand")]
    pub move_cost: f64,
    /// Whether it counts as infeasible if some failure is not survived, or it is not known.
    #[serde(default)]
    pub must_survive: bool,
    /// What a hop of the longest route weighs in the objective; 1000 in the paper.
    #[serde(default = "thousand")]
    pub longest: f64,
    /// What every hop weighs; 10 in the paper.
    #[serde(default = "ten")]
    pub hops: f64,
    /// What every entry of a table weighs; 1 in the paper.
    #[serde(default = "one")]
    pub entries: f64,
    /// Whether no links may be able to wait for each other in a circle.
    #[serde(default)]
    pub deadlock_free: bool,
    /// Most hops of a route.
    #[serde(default)]
    pub most_hops: Option<u32>,
    /// Part of the bandwidth of every link that stays free, from 0 up to but not including 1.
    #[serde(default)]
    pub bandwidth_slack: f64,
    /// Part of the performance of every host that stays free, from 0 up to but not including 1.
    #[serde(default)]
    pub performance_slack: f64,
    /// Most that arrives at a switch in a second.
    #[serde(default)]
    pub switch_load: Option<f64>,
    /// What looks for answers.
    #[serde(default)]
    pub method: Method,
    /// How many nodes the search may look at for each failure.
    #[serde(default)]
    pub nodes: Option<u64>,
    /// How long the search may take for each failure, in seconds. The result cannot be made again bit for bit.
    #[serde(default)]
    pub seconds: Option<f64>,
}

fn all() -> Vec<Fallible> {
    vec![Fallible::Link, Fallible::Switch, Fallible::Host]
}

impl From<&FailuresParams> for SolveParams {
    fn from(params: &FailuresParams) -> Self {
        Self {
            longest: params.longest,
            hops: params.hops,
            entries: params.entries,
            deadlock_free: params.deadlock_free,
            most_hops: params.most_hops,
            bandwidth_slack: params.bandwidth_slack,
            performance_slack: params.performance_slack,
            switch_load: params.switch_load,
            goal: Goal::Objective,
            method: params.method,
            nodes: params.nodes,
            seconds: params.seconds,
            ignore_performance: false,
            allow_infeasible: false,
        }
    }
}

impl Stage for FailuresStage {
    type Params = FailuresParams;
    const KIND: &'static str = "route/failures";
    const SUMMARY: &'static str =
        "Whether a program survives the failure of any link, switch or host, and how";
    const REVISION: u32 = 1;

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
        TablesStage::check(&SolveParams::from(params))?;
        if params.of.is_empty() {
            return Err(CheckError::new("`of` names no parts", "link, switch, host, or several").into());
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
            .timed(params.seconds.is_some() || cx.deadline().is_some());
        let is_cut_short = cx.should_stop() || (cx.deadline().is_some() && proven <= 0.0);
        Ok(match (is_cut_short, params.must_survive && !survives) {
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
    let rules = Rules::from(&SolveParams::from(params));
    let given = reference::given(graph, system, mapping, given.0, given.1)?;
    let hosts = Problem::new(graph, system, Some(mapping), rules)?.mapped.unwrap_or_default();
    let free = params.remap.then(|| movable(graph));
    let left = cx.deadline().map(|deadline| deadline.saturating_duration_since(Instant::now()).as_secs_f64());
    let survey = Survey {
        graph: free.as_ref().unwrap_or(graph),
        system,
        mapping,
        hosts,
        rules,
        method: params.method,
        limits: Limits {
            nodes: params.nodes,
            seconds: params.seconds.into_iter().chain(left).reduce(f64::min),
        },
        move_cost: params.remap.then_some(params.move_cost),
    };
    let should_stop = || cx.should_stop();
    let nominal = survey.nominal(given.as_ref(), &should_stop)?;
    let routes = nominal.found.plan.as_ref().map(|plan| plan.routes.as_slice()).unwrap_or_default();
    let reference = given.unwrap_or_else(|| Reference::new(system, routes, None));
    let elements = elements(system, &params.of);
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
