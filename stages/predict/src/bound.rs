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

use crate::params::BoundParams;
use crate::uncounted::Uncounted;

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
    /// Why the bound does not hold for real runs, if so.
    uncounted: Option<Uncounted>,
}

impl Stage for BoundStage {
    type Params = BoundParams;
    const KIND: &'static str = "predict/bound";
    const SUMMARY: &'static str =
        "Bound the run time that any placement can reach, and what it can gain at most";
    const REVISION: u32 = 6;
    const PORTS: &'static [Port] = &[
        Port::optional::<Program>("program"),
        Port::optional::<TaskGraph>("task-graph"),
        Port::input::<SystemGraph>("system"),
        Port::optional::<Mapping>("mapping"),
        Port::output::<Metrics>("bound"),
    ];

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
            let uncounted = Uncounted::of(program, system, options, reference.seconds);
            let is_contended = replayed.is_contended;
            Ok(Some(Found { bound, reference: Some(reference), is_contended, uncounted }))
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
    Ok(Found { bound, reference, is_contended: !system.links.is_empty(), uncounted: None })
}

fn metrics(Found { bound, reference, is_contended, uncounted }: &Found) -> BTreeMap<String, f64> {
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
        match (uncounted, most_gain(bound, *seconds)) {
            (Some(Uncounted::Messages { seconds, .. }), _) => {
                metrics.insert("uncounted_s".to_owned(), *seconds);
            }
            (Some(Uncounted::Operations), _) => {}
            (None, gain) => drop(gain.map(|gain| metrics.insert(MOST_GAIN.to_owned(), gain))),
        }
    }
    metrics
}

/// The largest fraction of a run time that a placement can gain.
fn most_gain(bound: &Bound, seconds: f64) -> Option<f64> {
    (seconds > 0.0).then(|| (1.0 - bound.seconds() / seconds).clamp(0.0, 1.0))
}

fn report(Found { bound, reference, is_contended, uncounted }: &Found, cx: &Context<'_>) {
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
        Some(_) if let Some(Uncounted::Operations) = uncounted => cx.log(
            "what a placement gains is not bounded: the program lacks communication of the recorded run, or its order",
        ),
        Some((_, reference, _)) if let Some(Uncounted::Messages { rank, messages, seconds }) = uncounted => {
            cx.log(format_args!(
                "what a placement gains is not bounded: rank {rank} has {messages} messages, whose handling by processors is left out \
                 and may take up to {:.1} % of the run time",
                100.0 * seconds / reference
            ));
        }
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
    use hopmap_model::{CostModel, Envelope, Levels, Link, Node, ProgramBuilder, Routing, Slot, Ties};
    use hopmap_prediction::{PairRates, Rate};
    use hopmap_test_support::{programs, soak};
    use proptest::prelude::*;

    use super::*;

    /// Hosts with slots, 1 µs and 10 GB/s inside, and rates between them: by level, or by links to one switch that messages share.
    fn machine_of(hosts: u32, slots: u32, between: Rate, is_linked: bool) -> (SystemGraph, Options) {
        let count = hosts * slots;
        let inside = Rate { latency_s: 1e-6, bandwidth_bytes_per_s: 1e10 };
        let groups = vec![(0..count).map(|slot| slot / slots).collect(), vec![0; count as usize]];
        let mut nodes: Vec<Node> = (0..hosts).map(|host| Node::host(format!("n{host}"))).collect();
        let mut links = Vec::new();
        if is_linked {
            nodes.push(Node::switch("s"));
            let rate = |link: Link| Link {
                latency_s: Some(between.latency_s),
                bandwidth_bytes_per_s: Some(between.bandwidth_bytes_per_s),
                ..link
            };
            links.extend(
                (0..hosts).flat_map(|host| [Link::new(host, hosts), Link::new(hosts, host)].map(rate)),
            );
        }
        let system = SystemGraph {
            nodes,
            links,
            cost: CostModel::Levels(Levels { costs: vec![0.0, 1.0], groups }),
            slots: (0..count).map(|slot| Slot { host: slot / slots, core: slot % slots }).collect(),
            routing: Routing { forwarding: Vec::new(), ties: Ties::Spread },
            calibration: Vec::new(),
        };
        let pairs = (!is_linked).then(|| PairRates::Levels(vec![inside, between]));
        (system, Options { pairs, memory: inside, ..Options::default() })
    }

    /// Two hosts of two slots, with 1 ms and 1 MB/s between them.
    fn machine() -> (SystemGraph, Options) {
        machine_of(2, 2, Rate { latency_s: 1e-3, bandwidth_bytes_per_s: 1e6 }, false)
    }

    /// The run time of every mapping.
    fn all_seconds(program: &Program, system: &SystemGraph, options: &Options) -> Vec<f64> {
        let mut orders = vec![Vec::new()];
        for _ in 0..program.ranks() {
            let longer = |order: Vec<u32>| {
                let rest = (0..system.slots.len() as u32).filter(|slot| !order.contains(slot));
                rest.map(|slot| [&order[..], &[slot]].concat()).collect::<Vec<_>>()
            };
            orders = orders.into_iter().flat_map(longer).collect();
        }
        let seconds = |slots: Vec<u32>| {
            let mapping = Mapping::new(&slots, system, Weight::Bytes).unwrap();
            replay(program, system, &mapping, options, &|| false).unwrap().seconds()
        };
        orders.into_iter().map(seconds).collect()
    }

    fn gain_over(program: &Program, present: Option<[u32; 4]>) -> f64 {
        let (system, options) = machine();
        let present = present.map(|slots| Mapping::new(&slots, &system, Weight::Bytes).unwrap());
        let found =
            of_program(program, &system, present.as_ref(), &options, &Context::detached()).unwrap().unwrap();
        most_gain(&found.bound, found.reference.unwrap().seconds).unwrap()
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

    /// A measured gain was above the bound where ranks had many short messages.
    #[test]
    fn many_messages_of_a_rank_are_not_bounded() {
        let (system, options) = machine();
        for (messages, seconds, is_bounded) in [(4, 1.0, true), (40, 1.0, false), (40, 10.0, true)] {
            let mut builder = ProgramBuilder::new(4);
            builder.compute(0, seconds);
            let envelope = |peer| Envelope { peer, tag: 0, communicator: 0 };
            for _ in 0..messages {
                builder.send(0, envelope(1), 1);
                builder.recv(1, envelope(0), 1);
            }
            let program = builder.finish().unwrap();
            let found = of_program(&program, &system, None, &options, &Context::detached()).unwrap().unwrap();
            assert_eq!(metrics(&found).contains_key(MOST_GAIN), is_bounded, "{messages} in {seconds} s");
            assert_eq!(metrics(&found).contains_key("uncounted_s"), !is_bounded);
        }
    }

    /// A default run of threads whose sends wait is predicted too short, and what a placement gains with it.
    #[test]
    fn programs_that_lack_operations_or_their_order_are_not_bounded() {
        let (system, options) = machine();
        let mut builder = ProgramBuilder::new(4);
        builder.compute(0, 1.0);
        let whole = builder.finish().unwrap();
        let cut = Program { left_out: std::time::Duration::from_secs(1), ..whole.clone() };
        let approximate = Program { is_approximate: true, ..whole.clone() };
        for (program, is_bounded) in [(whole, true), (cut, false), (approximate, false)] {
            let found = of_program(&program, &system, None, &options, &Context::detached()).unwrap().unwrap();
            assert_eq!(metrics(&found).contains_key(MOST_GAIN), is_bounded);
        }
    }

    fn program_and_machine() -> impl Strategy<Value = (Program, (SystemGraph, Options))> {
        let rate = (1..1000_u32, 1..1000_u32, any::<bool>());
        (2..=6_u32, 2..=3_u32, rate).prop_flat_map(|(ranks, hosts, (microseconds, megabytes, is_linked))| {
            let between = Rate {
                latency_s: 1e-6 * f64::from(microseconds),
                bandwidth_bytes_per_s: 1e6 * f64::from(megabytes),
            };
            let machine = machine_of(hosts, ranks.div_ceil(hosts), between, is_linked);
            (programs(ranks, 1_000_000, &[]), Just(machine))
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if soak() { 2000 } else { 60 }))]

        #[test]
        fn no_mapping_gains_more_than_the_bound_over_any_present_mapping(
            (program, (system, options)) in program_and_machine()
        ) {
            let all = all_seconds(&program, &system, &options);
            let best = all.iter().copied().fold(f64::INFINITY, f64::min);
            let bound = bound(&program, &system, &options, &|| false).unwrap();
            for seconds in all.into_iter().filter(|seconds| *seconds > 0.0) {
                prop_assert!(1.0 - best / seconds <= most_gain(&bound, seconds).unwrap() + 1e-9);
            }
        }
    }
}
