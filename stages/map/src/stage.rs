//! The stages of this crate: every one solves the problem of its inputs with a mapper, and measures the placement.

use hopmap_model::{
    Context, Error, InputPath, Inputs, Library, Mapping, Outcome, Outputs, Paths, Port, Stage, SystemGraph,
    TaskGraph, Weight, WeightChoice,
};
use hopmap_objective::{EVALUATIONS, Metric, Quality, check_weight};

use crate::exact::{BOUND, GAP, PROVEN};
use crate::hierarchical::METIS;
use crate::params::ProblemParams;
use crate::{
    Annealing, AnnealingParams, Auto, AutoParams, Composite, CompositeParams, Exact, ExactParams, External,
    ExternalParams, Found, Genetic, GeneticParams, Hierarchical, HierarchicalParams, ImportParams, Linear,
    LinearParams, Mapper, Random, RandomParams, RoundRobin, Tabu, TabuParams, import,
};

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

/// A stage that maps with one mapper: its kind, revision and summary, what is checked beside the problem, and the mapper.
macro_rules! mapper_stage {
    (
        $(#[$meta:meta])* $stage:ident($stage_params:ty), $kind:expr, $revision:literal, $summary:literal;
        check: |$checked:ident| $check:expr,
        map: |$params:ident, $inputs:ident| $mapper:expr,
        timed: $timed:expr;
        $($more:tt)*
    ) => {
        $(#[$meta])*
        #[derive(Debug)]
        pub struct $stage;

        impl Stage for $stage {
            type Params = $stage_params;
            const KIND: &'static str = $kind;
            const SUMMARY: &'static str = $summary;
            const REVISION: u32 = $revision;

            fn ports() -> &'static [Port] {
                PORTS
            }

            fn check($checked: &Self::Params) -> Result<(), Error> {
                ProblemParams::from($checked).check()?;
                $check
            }

            fn run($params: Self::Params, $inputs: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
                Ok(finish(place(&$mapper, &ProblemParams::from(&$params), &$inputs, cx)?, $timed))
            }

            $($more)*
        }
    };
}

/// A stage that searches: the mapper checks the parameters, and a budget in seconds makes the result one that cannot be made again.
macro_rules! search_stage {
    (
        $(#[$meta:meta])*
        $stage:ident: $mapper:ident($params:ty), $kind:expr, $revision:literal, $summary:literal;
        $($more:tt)*
    ) => {
        mapper_stage! {
            $(#[$meta])* $stage($params), $kind, $revision, $summary;
            check: |params| {
                $mapper::new(params)?;
                Ok(())
            },
            map: |params, inputs| $mapper::new(&params)?,
            timed: params.seconds.is_some();
            $($more)*
        }
    };
}

mapper_stage! {
    /// `map/linear`: rank `i` on slot `i`.
    LinearStage(LinearParams), "map/linear", 1, "Rank i on slot i, as launchers do it";
    check: |params| Ok(()),
    map: |params, inputs| Linear,
    timed: false;
}

mapper_stage! {
    /// `map/round-robin`: rank `i` on host `i` modulo the hosts.
    RoundRobinStage(LinearParams), "map/round-robin", 1, "Rank after rank on host after host, as launchers do it when asked for cyclic";
    check: |params| Ok(()),
    map: |params, inputs| RoundRobin::new(&inputs.one::<SystemGraph>("system")?.value),
    timed: false;
}

mapper_stage! {
    /// `map/random`: ranks on slots drawn at random.
    RandomStage(RandomParams), RandomParams::KIND, 1, "Ranks on slots drawn at random";
    check: |params| Ok(()),
    map: |params, inputs| Random { seed: params.seed },
    timed: false;
}

search_stage! {
    /// `map/annealing`: parallel simulated annealing: islands of solvers that share the best placement.
    AnnealingStage: Annealing(AnnealingParams), AnnealingParams::KIND, 3, "Parallel simulated annealing: islands of solvers that share the best placement";
    fn preset(name: &str) -> Option<AnnealingParams> {
        (name == "paper").then(AnnealingParams::paper)
    }

    fn distributed() -> bool {
        true
    }
}

search_stage! {
    /// `map/genetic`: parallel genetic algorithm: populations that exchange their best placements.
    GeneticStage: Genetic(GeneticParams), GeneticParams::KIND, 2, "Parallel genetic algorithm: populations that exchange their best placements";
    fn preset(name: &str) -> Option<GeneticParams> {
        (name == "paper").then(GeneticParams::paper)
    }

    fn distributed() -> bool {
        true
    }
}

search_stage! {
    /// `map/composite`: genetic algorithm on populations of annealed placements.
    CompositeStage: Composite(CompositeParams), CompositeParams::KIND, 2, "Genetic algorithm on populations of annealed placements";
    fn preset(name: &str) -> Option<CompositeParams> {
        (name == "paper").then(CompositeParams::paper)
    }

    fn distributed() -> bool {
        true
    }
}

search_stage! {
    /// `map/auto`: the search that suits the problem.
    AutoStage: Auto(AutoParams), AutoParams::KIND, 2, "The search that suits the problem";
    fn distributed() -> bool {
        true
    }
}

search_stage! {
    /// `map/tabu`: robust tabu search.
    TabuStage: Tabu(TabuParams), TabuParams::KIND, 1, "Robust tabu search over exchanges of ranks";
    fn distributed() -> bool {
        true
    }
}

search_stage! {
    /// `map/hierarchical`: partition of the ranks down the tree of the machine.
    HierarchicalStage: Hierarchical(HierarchicalParams), "map/hierarchical", 2, "Partition of the ranks down the tree of the machine, for any size";
    fn preset(name: &str) -> Option<HierarchicalParams> {
        (name == "paper").then(HierarchicalParams::paper)
    }

    fn libraries() -> &'static [&'static Library] {
        &[METIS]
    }
}

search_stage! {
    /// `map/external`: any command that reads two matrices and writes a permutation.
    ExternalStage: External(ExternalParams), "map/external", 1, "Another program that reads two matrices and writes a permutation";
    fn observes(_: &ExternalParams) -> bool {
        true
    }
}

/// `map/exact`: branch and bound.
#[derive(Debug)]
pub struct ExactStage;

impl Stage for ExactStage {
    type Params = ExactParams;
    const KIND: &'static str = "map/exact";
    const SUMMARY: &'static str = "The proven optimum of a small problem, or a bound";
    const REVISION: u32 = 1;

    fn ports() -> &'static [Port] {
        PORTS
    }

    fn check(params: &Self::Params) -> Result<(), Error> {
        ProblemParams::from(params).check()?;
        Exact::new(params)?;
        Ok(())
    }

    fn run(params: Self::Params, inputs: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        let mapper = Exact::new(&params)?;
        let mut mapping = place(&mapper, &ProblemParams::from(&params), &inputs, cx)?;
        compare(&mut mapping);
        Ok(finish(mapping, params.seconds.is_some()))
    }
}

/// Compares F with its bound. Both are rounded: the bound never exceeds F, and is F where that is proven.
fn compare(mapping: &mut Mapping) {
    let metrics = &mut mapping.metrics;
    let (Some(&f), Some(&bound)) = (metrics.get("F"), metrics.get(BOUND.name)) else { return };
    let proven = metrics.get(PROVEN.name).is_some_and(|&proven| proven > 0.0);
    let bound = if proven { f } else { bound.min(f) };
    metrics.insert(BOUND.name.to_owned(), bound);
    if bound > 0.0 {
        metrics.insert(GAP.name.to_owned(), (f - bound) / bound);
    } else if f <= 0.0 {
        metrics.insert(GAP.name.to_owned(), 0.0);
    }
}

/// `map/import`: a placement that another tool computed, checked and measured.
#[derive(Debug)]
pub struct ImportStage;

impl Stage for ImportStage {
    type Params = ImportParams;
    const KIND: &'static str = "map/import";
    const SUMMARY: &'static str =
        "A placement from a file of KaHIP, VieM, SharedMap, Scotch or an MPI launcher";
    const REVISION: u32 = 1;

    fn ports() -> &'static [Port] {
        PORTS
    }

    fn check(params: &Self::Params) -> Result<(), Error> {
        check_weight(params.weight.or(0.0, 1.0))?;
        Ok(())
    }

    fn reads(params: &Self::Params) -> Result<Vec<InputPath>, Error> {
        // Always under the same name, so that renaming a file changes no key.
        Ok(vec![InputPath::named(params.file.path(), "placement")])
    }

    fn run(params: Self::Params, inputs: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        let graph = inputs.one::<TaskGraph>("task-graph")?.value;
        let system = inputs.one::<SystemGraph>("system")?.value;
        graph.check()?;
        system.check()?;
        let placed = import(params.file.path(), params.format, graph.ranks(), &system)?;
        cx.log(format_args!("`{}` is a {}", params.file.name(), placed.format.name()));
        let paths = Paths::new(&system);
        let weight = params.weight.resolve(&system, cx)?;
        let mut found = Found::at_once(placed.slots);
        found.metrics.extend(speed(params.weight, weight));
        Ok(finish(measured(found, &graph, &system, paths.as_ref(), weight)?, false))
    }
}

/// Solves the problem of the inputs and measures the placement.
fn place(
    mapper: &impl Mapper,
    params: &ProblemParams<'_>,
    inputs: &Inputs,
    cx: &Context<'_>,
) -> Result<Mapping, Error> {
    let graph = inputs.one::<TaskGraph>("task-graph")?.value;
    let system = inputs.one::<SystemGraph>("system")?.value;
    let weight = params.weight.resolve(&system, cx)?;
    let problem = params.problem(&graph, &system, weight)?;
    let paths = Paths::new(&system);
    let mut found = mapper.map(&problem, cx)?;
    found.metrics.extend(speed(params.weight, weight));
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
