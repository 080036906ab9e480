//! The stages of this crate: each runs a mapper on its inputs and measures the result.

use hopmap_model::{
    BOUND_PORT, Context, Error, InputPath, Inputs, Library, Mapping, Metrics, Outcome, Outputs, Paths, Port,
    Program, Stage, SystemGraph, TaskDag, TaskGraph, Weight, WeightChoice, require,
};
use hopmap_objective::{EVALUATIONS, Metric, Objective, Quality, check_weight};
use hopmap_prediction::Options;

use crate::annealing::Annealing;
use crate::auto::Auto;
use crate::baseline::{Linear, Random, RoundRobin};
use crate::blocks::{Blocks, Contraction};
use crate::borders::{Border, Bordered, borders};
use crate::composite::Composite;
use crate::error::{MapError, ProgramError};
use crate::exact::{BOUND, Exact, GAP, PROVEN};
use crate::external::External;
use crate::genetic::Genetic;
use crate::hierarchical::{Hierarchical, METIS};
use crate::import::import;
use crate::makespan::Makespan;
use crate::mapper::{Mapper, SearchResult};
use crate::params::{
    AnnealingParams, AutoGoal, AutoParams, CompositeParams, ExactParams, ExternalParams, GeneticParams,
    HierarchicalParams, ImportParams, LinearParams, ProblemParams, RandomParams, TabuParams, TaskGoal,
    check_demands, kind,
};
use crate::predicted_time::PredictedTime;
use crate::tabu::Tabu;

const PORTS: &[Port] = &[
    Port::input::<TaskGraph>("task-graph"),
    Port::input::<SystemGraph>("system"),
    Port::optional::<Metrics>(BOUND_PORT),
    Port::output::<Mapping>("mapping"),
];

/// Ports of the stages whose objective may be the makespan of tasks.
const TASK_PORTS: &[Port] = &[
    Port::input::<TaskGraph>("task-graph"),
    Port::input::<SystemGraph>("system"),
    Port::optional::<TaskDag>("task-dag"),
    Port::optional::<Metrics>(BOUND_PORT),
    Port::output::<Mapping>("mapping"),
];

/// L of the weight `time`, if taken from the machine.
pub const LATENCY: Metric = Metric {
    name: "latency_s",
    unit: "s",
    explanation: "Latency L of the weight L·N + D/S, if taken from the machine.",
};

/// S of the weight `time`, if taken from the machine.
pub const BANDWIDTH: Metric = Metric {
    name: "bandwidth_bytes_per_s",
    unit: "B/s",
    explanation: "Bandwidth S of the weight L·N + D/S, if taken from the machine.",
};

/// Declares the stage of a mapper: kind, revision, summary, checks beyond those of the problem, the mapper,
/// whether the result depends on time, and optional capabilities.
macro_rules! mapper_stage {
    (
        $(#[$meta:meta])* $stage:ident($stage_params:ty), $kind:expr, $revision:literal, $summary:literal;
        check: |$checked:ident| $check:expr,
        map: |$params:ident, $inputs:ident| $mapper:expr,
        timed: $timed:expr;
        $($($option:ident)+;)*
    ) => {
        $(#[$meta])*
        #[derive(Debug)]
        pub struct $stage;

        impl Stage for $stage {
            type Params = $stage_params;
            const KIND: &'static str = $kind;
            const SUMMARY: &'static str = $summary;
            const REVISION: u32 = $revision;
            const PORTS: &'static [Port] = PORTS;

            fn check($checked: &Self::Params) -> Result<(), Error> {
                ProblemParams::from($checked).check()?;
                $check
            }

            fn run($params: Self::Params, $inputs: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
                place(&$mapper, &ProblemParams::from(&$params), &$inputs, $timed, cx)
            }

            $(stage_option! { $($option)+ })*
        }
    };
}

/// Optional capabilities of a stage.
macro_rules! stage_option {
    (preset $params:ident) => {
        fn preset(name: &str) -> Option<Self::Params> {
            (name == "paper").then($params::paper)
        }
    };
    (distributed) => {
        fn distributed() -> bool {
            true
        }
    };
    (observes) => {
        fn observes(_: &Self::Params) -> bool {
            true
        }
    };
    (programs $params:ident) => {
        fn programs(params: &$params) -> Vec<String> {
            params.command.program().map(str::to_owned).into_iter().collect()
        }

        fn commands(params: &$params) -> Vec<String> {
            vec![params.command.words().join(" ")]
        }
    };
    (library $library:ident) => {
        fn libraries() -> &'static [&'static Library] {
            &[$library]
        }
    };
}

/// Declares the stage of a search: the mapper checks the parameters, and a time limit makes the result
/// irreproducible.
macro_rules! search_stage {
    (
        $(#[$meta:meta])*
        $stage:ident: $mapper:ident($params:ty), $kind:expr, $revision:literal, $summary:literal;
        $($options:tt)*
    ) => {
        mapper_stage! {
            $(#[$meta])* $stage($params), $kind, $revision, $summary;
            check: |params| {
                $mapper::new(params)?;
                Ok(())
            },
            map: |params, inputs| $mapper::new(&params)?,
            timed: params.time_limit_s.is_some();
            $($options)*
        }
    };
}

mapper_stage! {
    /// `map/linear`: rank `i` on slot `i`.
    LinearStage(LinearParams), "map/linear", 3, "Map rank i to slot i (block mapping, the default of most launchers)";
    check: |params| Ok(()),
    map: |params, inputs| Linear,
    timed: false;
}

mapper_stage! {
    /// `map/round-robin`: rank `i` on host `i` modulo the hosts.
    RoundRobinStage(LinearParams), "map/round-robin", 3, "Map ranks to hosts in turn (cyclic mapping)";
    check: |params| match (&params.blocks, params.borders.is_empty()) {
        (None, true) => Ok(()),
        _ => Err(without_groups("map/round-robin deals the ranks of a block or group to different hosts").into()),
    },
    map: |params, inputs| RoundRobin::new(&inputs.one::<SystemGraph>("system")?.value),
    timed: false;
}

mapper_stage! {
    /// `map/random`: ranks on randomly drawn slots.
    RandomStage(RandomParams), kind::RANDOM, 3, "Map ranks to randomly drawn slots";
    check: |params| Ok(()),
    map: |params, inputs| Random { seed: params.seed },
    timed: false;
}

search_stage! {
    /// `map/annealing`: parallel simulated annealing.
    AnnealingStage: Annealing(AnnealingParams), kind::ANNEALING, 7, "Search by parallel simulated annealing; islands share the best mapping";
    preset AnnealingParams;
    distributed;
}

search_stage! {
    /// `map/genetic`: parallel genetic algorithm.
    GeneticStage: Genetic(GeneticParams), kind::GENETIC, 7, "Search by a parallel genetic algorithm; islands exchange their best mappings";
    preset GeneticParams;
    distributed;
}

search_stage! {
    /// `map/composite`: genetic algorithm on annealed mappings.
    CompositeStage: Composite(CompositeParams), kind::COMPOSITE, 7, "Anneal a population of mappings, then evolve it by a genetic algorithm";
    preset CompositeParams;
    distributed;
}

/// `map/tabu`: tabu search.
#[derive(Debug)]
pub struct TabuStage;

impl Stage for TabuStage {
    type Params = TabuParams;
    const KIND: &'static str = kind::TABU;
    const SUMMARY: &'static str = "Search by robust tabu search over exchanges of ranks";
    const REVISION: u32 = 4;
    const PORTS: &'static [Port] = TASK_PORTS;

    fn check(params: &Self::Params) -> Result<(), Error> {
        check_tasks(params.objective, &ProblemParams::from(params))?;
        Tabu::new(params)?;
        Ok(())
    }

    fn distributed() -> bool {
        true
    }

    fn run(params: Self::Params, inputs: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        let (problem, timed) = (ProblemParams::from(&params), params.time_limit_s.is_some());
        match params.objective {
            TaskGoal::Makespan => {
                place_by_makespan(problem, &inputs, timed, cx, |makespan| makespan.tabu(&params, cx))
            }
            _ => place(&Tabu::new(&params)?, &problem, &inputs, timed, cx),
        }
    }
}

search_stage! {
    /// `map/hierarchical`: recursive multisection along the machine tree.
    HierarchicalStage: Hierarchical(HierarchicalParams), "map/hierarchical", 5, "Partition ranks recursively along the machine tree, up to millions of ranks";
    preset HierarchicalParams;
    library METIS;
}

search_stage! {
    /// `map/external`: an external solver.
    ExternalStage: External(ExternalParams), "map/external", 3, "Run an external solver that reads two matrices and writes a permutation";
    observes;
    programs ExternalParams;
}

/// `map/exact`: branch and bound.
#[derive(Debug)]
pub struct ExactStage;

impl Stage for ExactStage {
    type Params = ExactParams;
    const KIND: &'static str = "map/exact";
    const SUMMARY: &'static str =
        "Prove the optimum of a small problem by branch and bound, or give a lower bound";
    const REVISION: u32 = 6;
    const PORTS: &'static [Port] = TASK_PORTS;

    fn check(params: &Self::Params) -> Result<(), Error> {
        check_tasks(params.objective, &ProblemParams::from(params))?;
        Exact::new(params)?;
        Ok(())
    }

    fn run(params: Self::Params, inputs: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        let (problem, timed) = (ProblemParams::from(&params), params.time_limit_s.is_some());
        match params.objective {
            TaskGoal::Makespan => {
                place_by_makespan(problem, &inputs, timed, cx, |makespan| makespan.prove(&params, cx))
            }
            _ => place(&Exact::new(&params)?, &problem, &inputs, timed, cx),
        }
    }
}

/// `map/auto`: algorithm portfolio.
#[derive(Debug)]
pub struct AutoStage;

impl Stage for AutoStage {
    type Params = AutoParams;
    const KIND: &'static str = kind::AUTO;
    const SUMMARY: &'static str =
        "Choose and run a search by size, density and time limit (algorithm portfolio)";
    const REVISION: u32 = 9;
    const PORTS: &'static [Port] = &[
        Port::input::<TaskGraph>("task-graph"),
        Port::input::<SystemGraph>("system"),
        Port::optional::<Program>("program"),
        Port::optional::<TaskDag>("task-dag"),
        Port::optional::<Metrics>(BOUND_PORT),
        Port::many::<Mapping>("mappings"),
        Port::output::<Mapping>("mapping"),
    ];

    fn check(params: &Self::Params) -> Result<(), Error> {
        ProblemParams::from(params).check()?;
        let has_groups = params.blocks.is_some() || !params.borders.is_empty();
        if has_groups && params.objective == AutoGoal::Makespan {
            return Err(without_groups(SINGLE_RANKS).into());
        }
        Auto::new(params)?;
        if let Some(rate) = params.memory_bandwidth_bytes_per_s {
            let is_right = rate.is_finite() && rate > 0.0;
            require(is_right, "memory_bandwidth_bytes_per_s", rate, "more than 0")?;
        }
        Ok(params.algorithms.check()?)
    }

    fn distributed() -> bool {
        true
    }

    fn run(params: Self::Params, inputs: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        let (problem, timed) = (ProblemParams::from(&params), params.time_limit_s.is_some());
        match params.objective {
            AutoGoal::Metrics(_) => place(&Auto::new(&params)?, &problem, &inputs, timed, cx),
            AutoGoal::Makespan => {
                place_by_makespan(problem, &inputs, timed, cx, |makespan| makespan.anneal(&params, cx))
            }
            AutoGoal::PredictedTime => {
                let program = inputs.optional::<Program>("program")?.ok_or(ProgramError::NoProgram)?.value;
                let given = inputs.many::<Mapping>("mappings")?;
                let given: Vec<_> = given.into_iter().map(|input| (input.label, input.value)).collect();
                measure((params.weight, &Objective::F), &inputs, timed, |graph, system| {
                    check_demands(graph, system)?;
                    let weight = params.weight.resolve(graph, system, cx)?;
                    let mut options =
                        Options { algorithms: params.algorithms, ..Options::of_machine(system) };
                    if let Some(bandwidth) = params.memory_bandwidth_bytes_per_s {
                        options.memory.bandwidth_bytes_per_s = bandwidth;
                    }
                    let rooms = || problem.rooms(system);
                    let contraction =
                        problem.blocks.map(|blocks| Contraction::new(blocks, graph, system, &rooms()?));
                    let contraction = contraction.transpose()?;
                    let borders = borders(problem.borders, graph, system)?;
                    let search = PredictedTime {
                        params: &params,
                        program: &program,
                        given: &given,
                        graph,
                        system,
                        borders: match &contraction {
                            Some(contraction) => Border::of_blocks(&borders, contraction),
                            None => borders,
                        },
                        contraction: contraction.as_ref(),
                        weight,
                        options,
                        cx,
                    };
                    Ok((search.search()?, weight))
                })
            }
        }
    }
}

/// Why blocks and the makespan exclude each other.
const SINGLE_RANKS: &str = "the objective `makespan` exchanges single ranks";

/// Checks the problem of a stage whose objective may be the makespan.
fn check_tasks(objective: TaskGoal, params: &ProblemParams<'_>) -> Result<(), Error> {
    params.check()?;
    if objective == TaskGoal::Makespan && (params.blocks.is_some() || !params.borders.is_empty()) {
        return Err(without_groups(SINGLE_RANKS).into());
    }
    Ok(())
}

/// Searches by the makespan of the tasks of the inputs, and measures the result.
fn place_by_makespan(
    params: ProblemParams<'_>,
    inputs: &Inputs,
    timed: bool,
    cx: &Context<'_>,
    search: impl FnOnce(&Makespan<'_>) -> Result<SearchResult, Error>,
) -> Result<Outcome, Error> {
    let dag = inputs.optional::<TaskDag>("task-dag")?.ok_or(ProgramError::NoTasks)?.value;
    measure((params.weight, &Objective::F), inputs, timed, |graph, system| {
        check_demands(graph, system)?;
        let weight = params.weight.resolve(graph, system, cx)?;
        Ok((search(&Makespan::new(params, &dag, graph, system, weight)?)?, weight))
    })
}

/// Adds the optimality gap if there is a lower bound of the objective. Both values are rounded: the bound is
/// clamped to the value, and set to it if the optimum is proven.
fn compare(mapping: &mut Mapping, objective: &Objective) {
    let metrics = &mut mapping.metrics;
    let (Some(value), Some(&bound)) = (objective.of_metrics(metrics), metrics.get(BOUND.name)) else {
        return;
    };
    let proven = metrics.get(PROVEN.name).is_some_and(|&proven| proven > 0.0);
    let bound = if proven { value } else { bound.min(value) };
    metrics.insert(BOUND.name.to_owned(), bound);
    if bound > 0.0 {
        metrics.insert(GAP.name.to_owned(), (value - bound) / bound);
    } else if value <= 0.0 {
        metrics.insert(GAP.name.to_owned(), 0.0);
    }
}

/// `map/import`: checks and measures a mapping that another tool computed.
#[derive(Debug)]
pub struct ImportStage;

impl Stage for ImportStage {
    type Params = ImportParams;
    const KIND: &'static str = "map/import";
    const SUMMARY: &'static str = "Import a mapping from KaHIP, VieM, SharedMap, Scotch or an MPI launcher";
    const REVISION: u32 = 5;
    const PORTS: &'static [Port] = PORTS;

    fn check(params: &Self::Params) -> Result<(), Error> {
        check_weight(params.weight.or(0.0, 1.0))?;
        Ok(())
    }

    fn reads(params: &Self::Params) -> Result<Vec<InputPath>, Error> {
        // The name is constant, so that renaming the file does not change the key.
        Ok(vec![InputPath::named(params.path.path(), "placement")])
    }

    fn run(params: Self::Params, inputs: Inputs, cx: &Context<'_>) -> Result<Outcome, Error> {
        measure((params.weight, &Objective::F), &inputs, false, |graph, system| {
            graph.check()?;
            system.check()?;
            let placed = import(params.path.path(), params.format, graph.ranks(), system)?;
            cx.log(format_args!("`{}` is a {}", params.path.name(), placed.format.name()));
            if let Some(foreign) = hopmap_text::foreign_lines(params.path.path()) {
                cx.log(format_args!("warning: {foreign}"));
            }
            if placed.several_cores > 0 {
                let ranks = placed.several_cores;
                cx.log(format_args!(
                    "ranks with several cores: {ranks}; each takes the slot of the first of them that is free"
                ));
            }
            Ok((SearchResult::at_once(placed.slots), params.weight.resolve(graph, system, cx)?))
        })
    }
}

/// Solves the problem of the inputs and measures the result.
fn place(
    mapper: &impl Mapper,
    params: &ProblemParams<'_>,
    inputs: &Inputs,
    timed: bool,
    cx: &Context<'_>,
) -> Result<Outcome, Error> {
    measure((params.weight, &params.objective), inputs, timed, |graph, system| {
        let weight = params.weight.resolve(graph, system, cx)?;
        if mapper.is_search() {
            params.check_performance(system)?;
            check_demands(graph, system)?;
        }
        let found = match params.blocks {
            None => {
                let borders = borders(params.borders, graph, system)?;
                let problem = &params.problem(graph, system, weight)?;
                let bordered = Bordered::of_ranks(graph, system, problem);
                bordered.solve(mapper, &borders, (&params.objective, weight), cx)?
            }
            Some(blocks) => place_blocks(mapper, params, blocks, graph, system, weight, cx)?,
        };
        found.phases.iter().for_each(|line| cx.log(line));
        Ok((found, weight))
    })
}

fn without_groups(problem: &str) -> MapError {
    MapError::new(problem, "omit `blocks` and `borders`")
}

/// Maps blocks to hosts, and ranks to the slots of the host of their block.
fn place_blocks(
    mapper: &impl Mapper,
    params: &ProblemParams<'_>,
    blocks: &Blocks,
    graph: &TaskGraph,
    system: &SystemGraph,
    weight: Weight,
    cx: &Context<'_>,
) -> Result<SearchResult, Error> {
    let contraction = Contraction::new(blocks, graph, system, &params.rooms(system)?)?;
    let problem = params.problem_of_blocks(&contraction, system, weight)?;
    let borders = Border::of_blocks(&borders(params.borders, graph, system)?, &contraction);
    let bordered = Bordered::of_blocks(&contraction, &problem);
    let mut found = bordered.solve(mapper, &borders, (&params.objective, weight), cx)?;
    let between = problem.real(problem.cost(&found.slots));
    found.slots = contraction.expand(&found.slots);
    let paths = Paths::new(system);
    let quality = Quality::new(graph, system, paths.as_ref(), &found.slots, weight)?;
    // What the ranks of a block pay to each other is the same on every host.
    let inside = params.objective.of_metrics(&quality.metrics()).map_or(0.0, |all| all - between);
    found.convergence.iter_mut().for_each(|point| point.cost += inside);
    found.metrics.get_mut(BOUND.name).into_iter().for_each(|bound| *bound += inside);
    Ok(found)
}

/// Measures the result of `find` for the inputs: a mapping with all metrics.
fn measure(
    (asked, objective): (WeightChoice, &Objective),
    inputs: &Inputs,
    timed: bool,
    find: impl FnOnce(&TaskGraph, &SystemGraph) -> Result<(SearchResult, Weight), Error>,
) -> Result<Outcome, Error> {
    let graph = inputs.one::<TaskGraph>("task-graph")?.value;
    let system = inputs.one::<SystemGraph>("system")?.value;
    let (found, weight) = find(&graph, &system)?;
    let paths = Paths::new(&system);
    let quality = Quality::new(&graph, &system, paths.as_ref(), &found.slots, weight)?;
    let mut mapping = Mapping::new(&found.slots, &system, weight)?;
    mapping.metrics = quality.metrics();
    let mut note = |metric: Metric, value| mapping.metrics.insert(metric.name.to_owned(), value);
    note(EVALUATIONS, found.evaluations as f64);
    if let Weight::Time { latency_s, bandwidth_bytes_per_s } = weight
        && asked.asks_the_machine()
    {
        note(LATENCY, latency_s);
        note(BANDWIDTH, bandwidth_bytes_per_s);
    }
    mapping.metrics.extend(found.metrics);
    mapping.convergence = found.convergence;
    mapping.complete = found.complete;
    compare(&mut mapping, objective);
    let complete = mapping.complete;
    let outputs = Outputs::new().with("mapping", mapping).timed(timed);
    Ok(if complete { Outcome::Done(outputs) } else { Outcome::Partial(outputs) })
}
