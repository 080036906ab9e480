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
    const REVISION: u32 = 4;

    fn ports() -> &'static [Port] {
        const {
            &[
                Port::optional::<Program>("program"),
                Port::optional::<TaskGraph>("task-graph"),
                Port::input::<SystemGraph>("system"),
                Port::optional::<Mapping>("mapping"),
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
        let present = inputs.optional::<Mapping>("mapping")?.map(|input| input.value);
        let of_program = match &program {
            Some(program) => of_program(&program.value, &system, present.as_deref(), &options, cx)?,
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

/// The bound of a program, and the predicted run time of its present mapping, or of the linear one where that is not
/// known; none if the machine has no rates.
fn of_program(
    program: &Program,
    system: &SystemGraph,
    present: Option<&Mapping>,
    options: &Options,
    cx: &Context<'_>,
) -> Result<Option<Found>, Error> {
    let should_stop = || cx.should_stop();
    if program.ranks() as usize > system.slots.len() {
        let (ranks, slots) = (program.ranks() as usize, system.slots.len());
        return Err(BoundError::TooFewSlots { ranks, slots }.into());
    }
    let name = if present.is_some() { "the present mapping" } else { "the linear mapping" };
    let linear = Mapping::new(&linear(program.ranks() as usize), system, Weight::Bytes)?;
    match replay(program, system, present.unwrap_or(&linear), options, &should_stop) {
        Ok(replayed) if replayed.complete => {
            let reference = Reference { seconds: replayed.seconds(), name };
            let bound = bound(program, system, options, &should_stop)?;
            Ok(Some(Found { bound, reference: Some(reference), is_contended: replayed.is_contended }))
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

#[cfg(test)]
mod tests {
    use hopmap_model::{CostModel, Envelope, Levels, Node, ProgramBuilder, Routing, Slot, Ties};
    use hopmap_prediction::{PairRates, Rate};
    use hopmap_test_support::programs;
    use proptest::prelude::*;

    use super::*;

    /// Two hosts of two slots, with 1 µs and 10 GB/s inside, and 1 ms and 1 MB/s between them.
    fn machine() -> (SystemGraph, Options) {
        let slots: Vec<Slot> = (0..4).map(|slot| Slot { host: slot / 2, core: slot % 2 }).collect();
        let groups = vec![vec![0, 0, 1, 1], vec![0; 4]];
        let system = SystemGraph {
            nodes: ["n0", "n1"].map(|name| Node::host(name.to_owned())).into(),
            links: Vec::new(),
            cost: CostModel::Levels(Levels { costs: vec![0.0, 1.0], groups }),
            slots,
            routing: Routing { forwarding: Vec::new(), ties: Ties::Spread },
            calibration: Vec::new(),
        };
        let rate = |latency_s, bandwidth_bytes_per_s| Rate { latency_s, bandwidth_bytes_per_s };
        let rates = vec![rate(1e-6, 1e10), rate(1e-3, 1e6)];
        (system, Options { pairs: Some(PairRates::Levels(rates)), ..Options::default() })
    }

    /// The run time of every mapping.
    fn all_seconds(program: &Program, system: &SystemGraph, options: &Options) -> Vec<([u32; 4], f64)> {
        let mut all = Vec::new();
        for code in 0..256_u32 {
            let slots = [0, 2, 4, 6].map(|shift| code >> shift & 3);
            if slots.iter().fold(0, |seen, slot| seen | 1 << slot) == 0b1111 {
                let mapping = Mapping::new(&slots, system, Weight::Bytes).unwrap();
                let replayed = replay(program, system, &mapping, options, &|| false).unwrap();
                all.push((slots, replayed.seconds()));
            }
        }
        all
    }

    fn gain_over(program: &Program, present: Option<[u32; 4]>) -> f64 {
        let (system, options) = machine();
        let present = present.map(|slots| Mapping::new(&slots, &system, Weight::Bytes).unwrap());
        let found =
            of_program(program, &system, present.as_ref(), &options, &Context::detached()).unwrap().unwrap();
        metrics(&found)[MOST_GAIN]
    }

    #[test]
    fn what_is_gained_is_relative_to_the_present_mapping() {
        let mut builder = ProgramBuilder::new(4);
        for (source, destination) in [(0, 1), (2, 3)] {
            let envelope = |peer| Envelope { peer, tag: 0, communicator: 0 };
            builder.send(source, envelope(destination), 1_000_000);
            builder.recv(destination, envelope(source), 1_000_000);
        }
        let program = builder.finish().unwrap();
        assert!(gain_over(&program, None) < 0.01);
        assert!(gain_over(&program, Some([0, 2, 1, 3])) > 0.9);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn no_mapping_gains_more_than_the_bound_over_any_present_mapping(program in programs(4, 100_000, &[])) {
            let (system, options) = machine();
            let all = all_seconds(&program, &system, &options);
            let best = all.iter().map(|(_, seconds)| *seconds).fold(f64::INFINITY, f64::min);
            for (present, seconds) in all.into_iter().filter(|(_, seconds)| *seconds > 0.0) {
                prop_assert!(1.0 - best / seconds <= gain_over(&program, Some(present)) + 1e-9);
            }
        }
    }
}
