//! The stages of this crate.

mod annealing;
mod composite;
mod exact;
mod external;
mod genetic;
mod hierarchical;
mod import;

use hopmap_model::{
    Context, Error, Inputs, Mapping, Outcome, Outputs, Paths, Port, Stage, SystemGraph, TaskGraph, Weight,
    WeightChoice,
};
use hopmap_objective::{EVALUATIONS, Metric, Quality};

use crate::params::Wishes;
use crate::{
    Auto, AutoParams, Found, Linear, LinearParams, Mapper, Random, RandomParams, RoundRobin, Tabu, TabuParams,
};

pub use annealing::AnnealingStage;
pub use composite::CompositeStage;
pub use exact::ExactStage;
pub use external::ExternalStage;
pub use genetic::GeneticStage;
pub use hierarchical::HierarchicalStage;
pub use import::ImportStage;

const PORTS: &[Port] = &[
    Port::input::<TaskGraph>("task-graph"),
    Port::input::<SystemGraph>("system"),
    Port::output::<Mapping>("mapping"),
];

/// L of the weight `time`, where the machine said it.
pub const LATENCY: Metric = Metric {
    name: "latency_s",
    unit: "s",
    explanation: "Latency L of the weight L·N + D/S, where it was taken from the machine.",
};

/// S of the weight `time`, where the machine said it.
pub const BANDWIDTH: Metric = Metric {
    name: "bandwidth_bytes_per_s",
    unit: "B/s",
    explanation: "Bandwidth S of the weight L·N + D/S, where it was taken from the machine.",
};

/// `map/linear`: rank `i` on slot `i`.
#[derive(Debug)]
pub struct LinearStage;

/// `map/round-robin`: rank `i` on host `i` modulo the hosts.
#[derive(Debug)]
pub struct RoundRobinStage;

/// `map/random`: ranks on slots drawn at random.
#[derive(Debug)]
pub struct RandomStage;

/// `map/auto`: the search that suits the problem.
#[derive(Debug)]
pub struct AutoStage;

/// `map/tabu`: robust tabu search.
#[derive(Debug)]
pub struct TabuStage;

impl Stage for LinearStage {
    type Params = LinearParams;
    const KIND: &'static str = "map/linear";
    const SUMMARY: &'static str = "Rank i on slot i, as launchers do it";
    const REVISION: u32 = 1;

    fn ports() -> &'static [Port] {
        PORTS
    }

    fn check(params: &Self::Params) -> Result<(), Error> {
        Wishes::from(params).check()
    }

    fn run(params: Self::Params, inputs: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        Ok(finish(place(&Linear, &Wishes::from(&params), &inputs, cx)?, false))
    }
}

impl Stage for RoundRobinStage {
    type Params = LinearParams;
    const KIND: &'static str = "map/round-robin";
    const SUMMARY: &'static str =
        "Rank after rank on host after host, as launchers do it when asked for cyclic";
    const REVISION: u32 = 1;

    fn ports() -> &'static [Port] {
        PORTS
    }

    fn check(params: &Self::Params) -> Result<(), Error> {
        Wishes::from(params).check()
    }

    fn run(params: Self::Params, inputs: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        let mapper = RoundRobin::new(&inputs.one::<SystemGraph>("system")?.value);
        Ok(finish(place(&mapper, &Wishes::from(&params), &inputs, cx)?, false))
    }
}

impl Stage for RandomStage {
    type Params = RandomParams;
    const KIND: &'static str = "map/random";
    const SUMMARY: &'static str = "Ranks on slots drawn at random";
    const REVISION: u32 = 1;

    fn ports() -> &'static [Port] {
        PORTS
    }

    fn check(params: &Self::Params) -> Result<(), Error> {
        Wishes::from(params).check()
    }

    fn run(params: Self::Params, inputs: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        Ok(finish(place(&Random { seed: params.seed }, &Wishes::from(&params), &inputs, cx)?, false))
    }
}

impl Stage for TabuStage {
    type Params = TabuParams;
    const KIND: &'static str = "map/tabu";
    const SUMMARY: &'static str = "Robust tabu search over exchanges of ranks";
    const REVISION: u32 = 1;

    fn ports() -> &'static [Port] {
        PORTS
    }

    fn check(params: &Self::Params) -> Result<(), Error> {
        Wishes::from(params).check()?;
        Tabu::new(params)?;
        Ok(())
    }

    fn distributed() -> bool {
        true
    }

    fn run(params: Self::Params, inputs: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        let mapper = Tabu::new(&params)?;
        Ok(finish(place(&mapper, &Wishes::from(&params), &inputs, cx)?, params.seconds.is_some()))
    }
}

impl Stage for AutoStage {
    type Params = AutoParams;
    const KIND: &'static str = "map/auto";
    const SUMMARY: &'static str = "The search that suits the problem";
    const REVISION: u32 = 2;

    fn ports() -> &'static [Port] {
        PORTS
    }

    fn check(params: &Self::Params) -> Result<(), Error> {
        Wishes::from(params).check()?;
        Auto::new(params)?;
        Ok(())
    }

    fn distributed() -> bool {
        true
    }

    fn run(params: Self::Params, inputs: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        let mapper = Auto::new(&params)?;
        Ok(finish(place(&mapper, &Wishes::from(&params), &inputs, cx)?, params.seconds.is_some()))
    }
}

/// Solves the problem of the inputs and measures the placement.
fn place(
    mapper: &impl Mapper,
    wishes: &Wishes<'_>,
    inputs: &Inputs,
    cx: &Context<'_>,
) -> Result<Mapping, Error> {
    let graph = inputs.one::<TaskGraph>("task-graph")?.value;
    let system = inputs.one::<SystemGraph>("system")?.value;
    let weight = wishes.weight.resolve(&system, cx)?;
    let problem = wishes.problem(&graph, &system, weight)?;
    let paths = Paths::new(&system);
    let mut found = mapper.map(&problem, cx)?;
    found.metrics.extend(speed(wishes.weight, weight));
    measured(found, &graph, &system, paths.as_ref(), weight)
}

/// What the machine said of a weight, as metrics.
fn speed(asked: WeightChoice, weight: Weight) -> Vec<(String, f64)> {
    match weight {
        Weight::Time { latency_s, bandwidth_bytes_per_s } if asked.asks_the_machine() => {
            vec![(LATENCY.name.to_owned(), latency_s), (BANDWIDTH.name.to_owned(), bandwidth_bytes_per_s)]
        }
        _ => Vec::new(),
    }
}

/// What was found as a mapping with all metrics.
fn measured(
    found: Found,
    graph: &TaskGraph,
    system: &SystemGraph,
    paths: Option<&Paths>,
    weight: Weight,
) -> Result<Mapping, Error> {
    let quality = Quality::new(graph, system, paths, &found.slots, weight)?;
    let mut mapping = Mapping::new(&found.slots, system, weight)?;
    mapping.metrics = quality.metrics();
    mapping.metrics.insert(EVALUATIONS.name.to_owned(), found.evaluations as f64);
    mapping.metrics.extend(found.metrics);
    mapping.convergence = found.convergence;
    mapping.complete = found.complete;
    Ok(mapping)
}

fn finish(mapping: Mapping, timed: bool) -> Outcome {
    let complete = mapping.complete;
    let outputs = Outputs::new().with("mapping", mapping).timed(timed);
    if complete { Outcome::Done(outputs) } else { Outcome::Partial(outputs) }
}
