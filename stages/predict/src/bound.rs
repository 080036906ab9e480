//! `predict/bound`: the run time that no mapping can beat, and the most that a placement can gain.

use std::collections::BTreeMap;

use hopmap_model::{
    Context, Error, Inputs, MOST_GAIN, Mapping, Metrics, Outcome, Outputs, Port, Program, Stage, SystemGraph,
    TaskGraph, Weight,
};
use hopmap_objective::linear;
use hopmap_prediction::bound::{Bound, BoundError, BoundKind, bound, bound_of_totals};
use hopmap_prediction::{NetworkError, Options, ReplayError, replay};
use miette::Diagnostic;

use crate::BoundParams;

/// `predict/bound`: a lower bound of the run time.
#[derive(Debug)]
pub struct BoundStage;

/// A bound of nothing.
#[derive(Debug, thiserror::Error, Diagnostic)]
#[error("neither a program nor a task graph is given")]
#[diagnostic(
    code(predict::nothing_given),
    help("connect `program` (trace/program), or `task-graph` (trace/import) for a bound without events")
)]
struct NothingGiven;

/// A task graph of another program.
#[derive(Debug, thiserror::Error, Diagnostic)]
#[error("the program has {program} ranks, but the task graph has {graph}")]
#[diagnostic(
    code(predict::other_program),
    help("connect the program and the task graph of the same recording")
)]
struct OtherProgram {
    program: usize,
    graph: usize,
}

/// The run time without a new placement, in seconds, and what it is.
struct Reference {
    seconds: f64,
    name: &'static str,
}

/// A bound, what it is compared with, and whether messages share links.
struct Found {
    bound: Bound,
    reference: Option<Reference>,
    is_contended: bool,
}

impl Stage for BoundStage {
    type Params = BoundParams;
    const KIND: &'static str = "predict/bound";
    const SUMMARY: &'static str =
        "Bound the run time that any placement can reach, and what it can gain at most";
    const REVISION: u32 = 3;

    fn ports() -> &'static [Port] {
        const {
            &[
                Port::optional::<Program>("program"),
                Port::optional::<TaskGraph>("task-graph"),
                Port::input::<SystemGraph>("system"),
                Port::output::<Metrics>("bound"),
            ]
        }
    }

    fn check(params: &BoundParams) -> Result<(), Error> {
        params.check()
    }

    fn run(params: BoundParams, inputs: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        let system = inputs.one::<SystemGraph>("system")?.value;
        let program = inputs.optional::<Program>("program")?;
        let graph = inputs.optional::<TaskGraph>("task-graph")?;
        let options = params.options(&system)?;
        system.check()?;
        if let (Some(program), Some(graph)) = (&program, &graph) {
            let (program, graph) = (program.value.ranks() as usize, graph.value.ranks());
            if program != graph {
                return Err(OtherProgram { program, graph }.into());
            }
        }
        let of_program = match &program {
            Some(program) => of_program(&program.value, &system, &options, cx)?,
            None => None,
        };
        let found = match (of_program, graph) {
            (Some(found), _) => found,
            (None, Some(graph)) => of_totals(&graph.value, &system, cx)?,
            (None, None) if program.is_some() => return Err(NetworkError::NoRates.into()),
            (None, None) => return Err(NothingGiven.into()),
        };
        report(&found, cx);
        let metrics = Metrics { summary: metrics(&found), placements: Vec::new() };
        Ok(Outcome::Done(Outputs::new().with("bound", metrics)))
    }
}

/// The bound of a program, and the predicted run time of its linear mapping; none if the machine has no rates.
fn of_program(
    program: &Program,
    system: &SystemGraph,
    options: &Options,
    cx: &Context<'_>,
) -> Result<Option<Found>, Error> {
    let should_stop = || cx.should_stop();
    if program.ranks() as usize > system.slots.len() {
        let (ranks, slots) = (program.ranks() as usize, system.slots.len());
        return Err(BoundError::TooFewSlots { ranks, slots }.into());
    }
    let mapping = Mapping::new(&linear(program.ranks() as usize), system, Weight::Bytes)?;
    match replay(program, system, &mapping, options, &should_stop) {
        Ok(linear) if linear.complete => {
            let reference = Reference { seconds: linear.seconds(), name: "the linear mapping" };
            let bound = bound(program, system, options, &should_stop)?;
            Ok(Some(Found { bound, reference: Some(reference), is_contended: linear.is_contended }))
        }
        Ok(_) => Err(BoundError::Stopped.into()),
        Err(ReplayError::Network(reason @ (NetworkError::NoRates | NetworkError::UnknownRate { .. }))) => {
            cx.log(format_args!("{reason}: this bound is that of the computation"));
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

/// The bound without events, and the recorded run time if there is one.
fn of_totals(graph: &TaskGraph, system: &SystemGraph, cx: &Context<'_>) -> Result<Found, Error> {
    graph.check()?;
    let seconds = graph.processes.iter().map(|process| Some(process.compute_s? + process.communication_s?));
    let seconds: Option<Vec<f64>> = seconds.collect();
    let longest = seconds.and_then(|seconds| seconds.into_iter().reduce(f64::max));
    let reference = longest.map(|seconds| Reference { seconds, name: "the recorded run" });
    let bound = bound_of_totals(graph, system, &|| cx.should_stop())?;
    Ok(Found { bound, reference, is_contended: !system.links.is_empty() })
}

fn metrics(Found { bound, reference, is_contended }: &Found) -> BTreeMap<String, f64> {
    let parts = [
        ("bound_s", bound.seconds()),
        ("bound_computation_s", bound.computation_s),
        ("bound_clocks_s", bound.clocks_s),
        ("bound_separated_s", bound.separated_s),
        ("bound_mean_path_s", bound.mean_path_s),
        ("bound_cut_s", bound.cut_s),
        ("contended", f64::from(u8::from(*is_contended))),
    ];
    let mut metrics: BTreeMap<String, f64> =
        parts.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    if let Some(Reference { seconds, .. }) = reference {
        metrics.insert("reference_s".to_owned(), *seconds);
        if let Some(gain) = most_gain(bound, *seconds) {
            metrics.insert(MOST_GAIN.to_owned(), gain);
        }
    }
    metrics
}

/// The largest fraction of a run time that a placement can gain.
fn most_gain(bound: &Bound, seconds: f64) -> Option<f64> {
    (seconds > 0.0).then(|| (1.0 - bound.seconds() / seconds).clamp(0.0, 1.0))
}

fn report(Found { bound, reference, is_contended }: &Found, cx: &Context<'_>) {
    let (seconds, kind) = bound.largest();
    let kind = match kind {
        BoundKind::Computation => "computation of the slowest rank",
        BoundKind::Clocks => "computation and messages of a rank",
        BoundKind::SeparatedPair => "a pair of ranks on different hosts",
        BoundKind::MeanPath => "paths through the program",
        BoundKind::Cut => "bytes between groups of hosts",
    };
    let contention = without_contention(*is_contended);
    let gain = reference
        .as_ref()
        .and_then(|Reference { seconds, name }| Some((most_gain(bound, *seconds)?, seconds, name)));
    match gain {
        Some((gain, reference, name)) => cx.log(format_args!(
            "no placement gains more than {:.1} % over {name} of {reference:.6} s: no run is shorter than {seconds:.6} s \
             ({kind}){contention}",
            100.0 * gain
        )),
        None if seconds <= 0.0 => {
            cx.log("the recording has no times: what a placement gains is not bounded");
        }
        None => cx.log(format_args!(
            "no run is shorter than {seconds:.6} s ({kind}){contention}; the recording has no times to compare with"
        )),
    }
}

/// What every line about a machine without links says.
pub(crate) fn without_contention(is_contended: bool) -> &'static str {
    match is_contended {
        true => "",
        false => "; without contention, because the machine has no links",
    }
}
