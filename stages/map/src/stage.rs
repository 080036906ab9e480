//! The stages of this room.

use hopmap_model::{
    Context, Error, Inputs, Mapping, Outcome, Outputs, Paths, Port, Stage, SystemGraph, TaskGraph, Weight,
};
use hopmap_objective::{EVALUATIONS, Problem, Quality, check_weight};

use crate::{
    Annealing, AnnealingParams, Auto, AutoParams, Linear, LinearParams, Mapper, Random, RandomParams, Tabu,
    TabuParams,
};

const PORTS: &[Port] = &[
    Port::input::<TaskGraph>("task-graph"),
    Port::input::<SystemGraph>("system"),
    Port::output::<Mapping>("mapping"),
];

/// `map/linear`: rank `i` on slot `i`.
#[derive(Debug)]
pub struct LinearStage;

/// `map/random`: ranks on slots drawn at random.
#[derive(Debug)]
pub struct RandomStage;

/// `map/annealing`: simulated annealing.
#[derive(Debug)]
pub struct AnnealingStage;

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
        Ok(check_weight(params.weight)?)
    }

    fn run(params: Self::Params, inputs: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        Ok(finish(place(&Linear, params.weight, &inputs, cx)?, false))
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
        Ok(check_weight(params.weight)?)
    }

    fn run(params: Self::Params, inputs: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        Ok(finish(place(&Random { seed: params.seed }, params.weight, &inputs, cx)?, false))
    }
}

impl Stage for AnnealingStage {
    type Params = AnnealingParams;
    const KIND: &'static str = "map/annealing";
    const SUMMARY: &'static str = "Simulated annealing over exchanges of ranks";
    const REVISION: u32 = 1;

    fn ports() -> &'static [Port] {
        PORTS
    }

    fn check(params: &Self::Params) -> Result<(), Error> {
        check_weight(params.weight)?;
        Annealing::new(params)?;
        Ok(())
    }

    fn distributed() -> bool {
        true
    }

    fn run(params: Self::Params, inputs: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        let mapper = Annealing::new(&params)?;
        Ok(finish(place(&mapper, params.weight, &inputs, cx)?, params.seconds.is_some()))
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
        check_weight(params.weight)?;
        Tabu::new(params)?;
        Ok(())
    }

    fn distributed() -> bool {
        true
    }

    fn run(params: Self::Params, inputs: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        let mapper = Tabu::new(&params)?;
        Ok(finish(place(&mapper, params.weight, &inputs, cx)?, params.seconds.is_some()))
    }
}

impl Stage for AutoStage {
    type Params = AutoParams;
    const KIND: &'static str = "map/auto";
    const SUMMARY: &'static str = "The search that suits the problem";
    const REVISION: u32 = 1;

    fn ports() -> &'static [Port] {
        PORTS
    }

    fn check(params: &Self::Params) -> Result<(), Error> {
        check_weight(params.weight)?;
        Auto::new(params)?;
        Ok(())
    }

    fn distributed() -> bool {
        true
    }

    fn run(params: Self::Params, inputs: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        let mapper = Auto::new(&params)?;
        Ok(finish(place(&mapper, params.weight, &inputs, cx)?, params.seconds.is_some()))
    }
}

/// Solves the problem of the inputs and measures the placement.
fn place(mapper: &impl Mapper, weight: Weight, inputs: &Inputs, cx: &Context<'_>) -> Result<Mapping, Error> {
    let graph = inputs.one::<TaskGraph>("task-graph")?.value;
    let system = inputs.one::<SystemGraph>("system")?.value;
    let problem = Problem::new(&graph, &system, weight)?;
    let paths = Paths::new(&system)?;
    let found = mapper.map(&problem, cx)?;
    let quality = Quality::new(&graph, &system, paths.as_ref(), &found.slots, weight)?;
    let mut mapping = Mapping::new(&found.slots, &system, weight)?;
    mapping.metrics = quality.metrics();
    mapping.metrics.insert(EVALUATIONS.name.to_owned(), found.evaluations as f64);
    mapping.convergence = found.convergence;
    mapping.complete = found.complete;
    Ok(mapping)
}

fn finish(mapping: Mapping, timed: bool) -> Outcome {
    let complete = mapping.complete;
    let outputs = Outputs::new().with("mapping", mapping).timed(timed);
    if complete { Outcome::Done(outputs) } else { Outcome::Partial(outputs) }
}
