//! The algorithms of the papers: independent of threads, processes and interruptions; every parameter has an
//! effect.

use std::collections::BTreeSet;
use std::path::Path;

use hopmap_map::{
    AfterExchange, Annealing, AnnealingParams, AnnealingPart, AnnealingStage, Composite, CompositeParams,
    CompositeStage, Cooling, Crossover, Genetic, GeneticParams, GeneticPart, GeneticStage, Iteration, Mapper,
    Master, MoveType, MovesUnit, Mutations, Replacement, Scheme, SearchResult,
};
use hopmap_model::{Context, Stage, Weight};
use hopmap_objective::Problem;
use hopmap_test_support::{Impatient, on_processes};
use proptest::prelude::*;

use crate::common::{Silent, exhaustive, graph, grid, inputs, run, tree};

/// 20 ranks of a shuffled grid on 24 slots.
fn problem() -> Problem {
    let mut program = grid(5, 4);
    program.edges.iter_mut().for_each(|edge| edge.bytes = u64::from(1 + edge.source * 7 % 13) * 8);
    Problem::new(&program, &tree(&[2, 3, 4]), Weight::Bytes).unwrap()
}

fn annealing() -> AnnealingParams {
    let (solvers, iterations, exchange_interval) = (Some(3), Some(900), Some(100));
    let iteration = Iteration::Candidate;
    AnnealingParams {
        solvers,
        iterations,
        iteration,
        exchange_interval,
        local_search: false,
        ..AnnealingParams::default()
    }
}

fn genetic() -> GeneticParams {
    let (population, iterations) = (Some(12), Some(15));
    GeneticParams { population, iterations, local_search: false, ..GeneticParams::default() }
}

fn composite() -> CompositeParams {
    let annealing =
        AnnealingPart { iterations: Some(400), iteration: Iteration::Candidate, ..AnnealingPart::default() };
    let genetic = GeneticPart { population: Some(6), iterations: Some(10), ..GeneticPart::default() };
    CompositeParams { annealing, genetic, local_search: false, ..CompositeParams::default() }
}

/// The composite algorithm with given iterations of each part.
fn composite_of(annealing: u64, genetic: Option<u64>) -> CompositeParams {
    let mut params = composite();
    (params.annealing.iterations, params.genetic.iterations) = (Some(annealing), genetic);
    params
}

#[expect(clippy::needless_pass_by_value, reason = "all mappers are created in the same way")]
fn mapper_of_annealing(params: AnnealingParams) -> Box<dyn Mapper + Sync> {
    Box::new(Annealing::new(&params).unwrap())
}

#[expect(clippy::needless_pass_by_value, reason = "all mappers are created in the same way")]
fn mapper_of_genetic(params: GeneticParams) -> Box<dyn Mapper + Sync> {
    Box::new(Genetic::new(&params).unwrap())
}

#[expect(clippy::needless_pass_by_value, reason = "all mappers are created in the same way")]
fn mapper_of_composite(params: CompositeParams) -> Box<dyn Mapper + Sync> {
    Box::new(Composite::new(&params).unwrap())
}

/// Each algorithm, and each scheme of exchange.
fn mappers() -> Vec<Box<dyn Mapper + Sync>> {
    let scheme = Scheme::MasterSlave;
    vec![
        mapper_of_annealing(annealing()),
        mapper_of_annealing(AnnealingParams {
            crossover_on_exchange: true,
            local_search: true,
            ..annealing()
        }),
        mapper_of_genetic(GeneticParams { migrants: 2, ..genetic() }),
        mapper_of_genetic(GeneticParams { scheme, ..genetic() }),
        mapper_of_composite(CompositeParams { local_search: true, ..composite() }),
        mapper_of_composite(CompositeParams {
            genetic: GeneticPart { scheme, ..composite().genetic },
            ..composite()
        }),
    ]
}

#[test]
fn any_number_of_threads_and_processes_gives_the_same() {
    let problem = problem();
    for mapper in mappers() {
        let alone = mapper.map(&problem, &Context::detached()).unwrap();
        for threads in [2, 3, 8] {
            assert_eq!(mapper.map(&problem, &Context::new(threads, None, &Silent)).unwrap(), alone);
        }
        for processes in [2, 3, 6] {
            for found in on_processes(processes, |cx| mapper.map(&problem, &cx).unwrap()) {
                assert_eq!(found, alone);
            }
        }
    }
}

fn stopped(mapper: &dyn Mapper, problem: &Problem, patience: u64, file: &Path) -> SearchResult {
    let observer = Impatient::new(patience);
    mapper.map(problem, &Context::new(1, None, &observer).with_state(file)).unwrap()
}

#[test]
fn a_stopped_search_resumes_from_its_state() {
    let problem = problem();
    let longer: [Box<dyn Mapper>; 3] = [
        mapper_of_annealing(AnnealingParams { iterations: Some(40_000), ..annealing() }),
        mapper_of_genetic(GeneticParams { iterations: Some(1500), ..genetic() }),
        mapper_of_composite(composite_of(20_000, Some(10))),
    ];
    for mapper in longer {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("state");
        let uninterrupted = mapper.map(&problem, &Context::detached()).unwrap();
        let first = stopped(mapper.as_ref(), &problem, 40, &file);
        assert!(!first.complete && file.exists() && first.evaluations < uninterrupted.evaluations);
        let second = mapper.map(&problem, &Context::detached().with_state(&file)).unwrap();
        assert_eq!(second, uninterrupted);
    }
}

/// Checks that every choice changes the search and is reproducible; for 2 islands, `evaluations`, `patience`
/// and `stop_when_frozen`, also that they have the intended effect.
fn differ(base: &dyn Mapper, choices: Vec<(&str, Box<dyn Mapper + Sync>)>) {
    let problem = problem();
    let plain = base.map(&problem, &Context::detached()).unwrap();
    for (name, mapper) in choices {
        let found = mapper.map(&problem, &Context::detached()).unwrap();
        assert_ne!(
            (&found.convergence, found.evaluations),
            (&plain.convergence, plain.evaluations),
            "{name}"
        );
        assert_eq!(found, mapper.map(&problem, &Context::detached()).unwrap(), "{name}");
        match name {
            "islands" => assert_eq!((islands(&plain), islands(&found)), ((0..4).collect(), (0..2).collect())),
            "patience" | "stop_when_frozen" => {
                assert!(found.evaluations < plain.evaluations, "{name}: {}", found.evaluations);
            }
            _ => {}
        }
        if let Some(evaluations) = name.strip_prefix("evaluations ") {
            assert!(found.evaluations <= 4 * evaluations.parse::<u64>().unwrap(), "{}", found.evaluations);
        }
    }
}

/// The islands in the convergence table.
fn islands(found: &SearchResult) -> BTreeSet<u32> {
    found.convergence.iter().map(|point| point.island).collect()
}

#[test]
fn every_parameter_of_annealing_counts() {
    let change = |name, change: fn(&mut AnnealingParams)| {
        let mut params = annealing();
        change(&mut params);
        (name, mapper_of_annealing(params))
    };
    differ(
        mapper_of_annealing(annealing()).as_ref(),
        vec![
            change("seed", |params| params.seed = 2),
            change("evaluations 500", |params| params.evaluations = Some(500)),
            change("islands", |params| params.islands = 2),
            change("solvers", |params| params.solvers = Some(4)),
            change("iterations", |params| params.iterations = Some(1000)),
            change("iteration", |params| params.iteration = Iteration::Temperature),
            change("exchange_interval", |params| params.exchange_interval = Some(300)),
            change("moves_per_temperature", |params| params.moves_per_temperature = Some(20)),
            change("moves_unit", |params| params.moves_unit = MovesUnit::PerRank),
            change("max_accepted_per_temperature", |params| params.max_accepted_per_temperature = Some(9)),
            change("cooling", |params| {
                params.cooling =
                    if params.cooling == Cooling::Cauchy { Cooling::Proportional } else { Cooling::Cauchy };
            }),
            change("cooling_rate", |params| params.cooling_rate = Some(0.9)),
            change("initial_temperature", |params| params.initial_temperature = Some(1000.0)),
            change("final_temperature", |params| params.final_temperature = Some(40_000.0)),
            change("temperature_after_exchange", |params| {
                params.temperature_after_exchange = match params.temperature_after_exchange {
                    AfterExchange::Restart => AfterExchange::Continue,
                    AfterExchange::Continue => AfterExchange::Restart,
                };
            }),
            change("patience", |params| params.patience = Some(20)),
            change("crossover_on_exchange", |params| params.crossover_on_exchange = true),
            change("generations", |params| {
                (params.crossover_on_exchange, params.generations) = (true, Some(1));
            }),
            change("move_type", |params| params.move_type = Some(MoveType::Random)),
            change("local_search", |params| params.local_search = true),
        ],
    );
    // At a low initial temperature, soon neither of two candidates is accepted.
    let cold =
        AnnealingParams { moves_per_temperature: Some(2), initial_temperature: Some(1.0), ..annealing() };
    let frozen = AnnealingParams { stop_when_frozen: true, ..cold.clone() };
    let choices = vec![("stop_when_frozen", mapper_of_annealing(frozen))];
    differ(mapper_of_annealing(cold).as_ref(), choices);
}

#[test]
fn every_parameter_of_the_genetic_algorithm_counts() {
    let change = |name, change: fn(&mut GeneticParams)| {
        let mut params = genetic();
        change(&mut params);
        (name, mapper_of_genetic(params))
    };
    let master = change("master-slave", |params| params.scheme = Scheme::MasterSlave);
    let reduces: fn(&mut GeneticParams) = |params| {
        params.scheme = Scheme::MasterSlave;
        params.master = Master::Reduces;
    };
    differ(master.1.as_ref(), vec![change("reduces", reduces)]);
    // Clones appear once the population has converged.
    let many = || GeneticParams { iterations: Some(300), ..genetic() };
    let clones = GeneticParams { mutate_clones: false, ..many() };
    let duplicates = GeneticParams { duplicate_migrants: true, ..many() };
    let others = [("mutate_clones", clones), ("duplicate_migrants", duplicates)];
    let others = others.map(|(name, params)| (name, mapper_of_genetic(params)));
    differ(mapper_of_genetic(many()).as_ref(), others.into());
    differ(
        mapper_of_genetic(genetic()).as_ref(),
        vec![
            master,
            change("seed", |params| params.seed = 2),
            change("evaluations 500", |params| params.evaluations = Some(500)),
            change("islands", |params| params.islands = 2),
            change("population", |params| params.population = Some(14)),
            change("iterations", |params| params.iterations = Some(16)),
            change("offspring", |params| params.offspring = Some(3)),
            change("tournament", |params| params.tournament = 3),
            change("sorting", |params| params.crossover = Crossover::Sorting),
            change("order", |params| params.crossover = Crossover::Order),
            change("crossover_probability", |params| params.crossover_probability = 0.5),
            change("mutation", |params| params.mutation = 0.1),
            change("mutations", |params| params.mutations = Mutations::Expected),
            change("replacement", |params| params.replacement = Replacement::IfBetter),
            change("migrants", |params| params.migrants = 3),
            change("local_search", |params| params.local_search = true),
        ],
    );
}

#[test]
fn the_composite_algorithm_anneals_then_breeds() {
    let change = |name, change: fn(&mut CompositeParams)| {
        let mut params = composite();
        change(&mut params);
        (name, mapper_of_composite(params))
    };
    differ(
        mapper_of_composite(composite()).as_ref(),
        vec![
            change("seed", |params| params.seed = 2),
            change("evaluations 2000", |params| params.evaluations = Some(2000)),
            change("population", |params| params.genetic.population = Some(5)),
            change("annealing.iterations", |params| params.annealing.iterations = Some(500)),
            change("annealing.cooling_rate", |params| params.annealing.cooling_rate = Some(0.9)),
            change("annealing.moves_per_temperature", |params| {
                params.annealing.moves_per_temperature = Some(10);
            }),
            change("iterations", |params| params.genetic.iterations = Some(11)),
            change("crossover", |params| params.genetic.crossover = Crossover::Order),
            change("scheme", |params| params.genetic.scheme = Scheme::MasterSlave),
        ],
    );
    let problem = problem();
    let found = mapper_of_composite(composite()).map(&problem, &Context::detached()).unwrap();
    // Six annealing runs of 400 candidates, then ten generations of three children that cost five evaluations
    // each.
    assert_eq!(found.evaluations, 4 * (6 * 400 + 10 * 3 * 5));
}

#[test]
fn budgets_hold() {
    let problem = problem();
    for (evaluations, mapper) in [
        (1234, mapper_of_annealing(AnnealingParams { evaluations: Some(1234), ..annealing() })),
        (310, mapper_of_genetic(GeneticParams { evaluations: Some(310), ..genetic() })),
    ] {
        assert_eq!(mapper.map(&problem, &Context::detached()).unwrap().evaluations, 4 * evaluations);
    }
    // Without an iteration limit, annealing restarts repeatedly and the genetic algorithm continues.
    let again = AnnealingParams { evaluations: Some(400_000), iterations: None, ..annealing() };
    let on = GeneticParams { evaluations: Some(400_000), iterations: None, ..genetic() };
    for mapper in [mapper_of_annealing(again), mapper_of_genetic(on)] {
        assert_eq!(mapper.map(&problem, &Context::detached()).unwrap().evaluations, 4 * 400_000);
    }
    for evaluations in [1, 7] {
        let mapper = mapper_of_composite(CompositeParams { evaluations: Some(evaluations), ..composite() });
        assert!(mapper.map(&problem, &Context::detached()).unwrap().evaluations <= 4 * evaluations);
    }
}

#[test]
fn a_budget_in_seconds_ends() {
    let problem = problem();
    let time_limit_s = Some(0.05);
    for mapper in [
        mapper_of_annealing(AnnealingParams { time_limit_s, iterations: None, ..annealing() }),
        mapper_of_genetic(GeneticParams { time_limit_s, iterations: None, ..genetic() }),
        mapper_of_composite(CompositeParams { time_limit_s, ..composite_of(400, None) }),
    ] {
        let found = mapper.map(&problem, &Context::detached()).unwrap();
        assert!(found.complete && found.evaluations > 0);
    }
}

#[test]
fn temperatures_that_do_not_fall_are_refused() {
    let hot = AnnealingParams { final_temperature: Some(1e12), ..annealing() };
    let error = mapper_of_annealing(hot).map(&problem(), &Context::detached()).unwrap_err();
    assert!(error.to_string().starts_with("the final temperature 1000000000000 is not below"), "{error}");
}

#[test]
fn parameters_have_defaults_and_no_unknown_names() {
    assert_eq!(serde_json::from_str::<AnnealingParams>("{}").unwrap(), AnnealingParams::default());
    assert_eq!(serde_json::from_str::<GeneticParams>("{}").unwrap(), GeneticParams::default());
    assert_eq!(serde_json::from_str::<CompositeParams>("{}").unwrap(), CompositeParams::default());
    assert!(serde_json::from_str::<GeneticParams>(r#"{"mutations": 1}"#).is_err());
    let ring: GeneticParams =
        serde_json::from_str(r#"{"scheme": "master-slave", "master": "reduces"}"#).unwrap();
    assert_eq!((ring.scheme, ring.master), (Scheme::MasterSlave, Master::Reduces));
    let annealing = AnnealingPart { cooling_rate: Some(2.0), ..AnnealingPart::default() };
    let refused = CompositeParams { annealing, ..CompositeParams::default() };
    assert_eq!(
        CompositeStage::check(&refused).unwrap_err().to_string(),
        "`cooling_rate` = 2 is out of range"
    );
    let refused = GeneticParams { islands: 0, ..GeneticParams::default() };
    assert_eq!(GeneticStage::check(&refused).unwrap_err().to_string(), "`islands` = 0 is out of range");
}

#[test]
fn the_presets_of_the_papers_exchange_and_breed() {
    let run = |mapper: &dyn Mapper| mapper.map(&problem(), &Context::detached()).unwrap().metrics;
    let metrics = run(&*mapper_of_annealing(AnnealingParams::paper()));
    // After every thousand of 50,000 candidates, until a solver reaches the final temperature.
    assert!((40.0..50.0).contains(&metrics["exchanges"]), "{metrics:?}");
    // Two children at a time, until there are as many as by default: a thousand times half of 20.
    let metrics = run(&*mapper_of_genetic(GeneticParams::paper()));
    assert_eq!(metrics["generations"] as u64, 5000);
    let metrics = run(&*mapper_of_composite(CompositeParams::paper()));
    assert_eq!(metrics["generations"] as u64, 5000);
    let rgo = AnnealingParams { crossover_on_exchange: true, ..AnnealingParams::default() };
    let metrics = run(&*mapper_of_annealing(rgo));
    assert_eq!(metrics["exchanges"] as u64, 20);
    assert!(metrics["accepted_children"] >= 1.0, "{metrics:?}");
}

#[test]
fn the_presets_of_the_papers_keep_their_result() {
    // No candidate and no local search: a random mapping, worse than linear.
    let once = AnnealingParams { iterations: Some(1), solvers: Some(1), ..AnnealingParams::paper() };
    let cost = |params| {
        let found = mapper_of_annealing(params).map(&problem(), &Context::detached()).unwrap();
        problem().cost(&found.slots)
    };
    let linear = problem().cost(&problem().linear());
    assert!(cost(once.clone()) > linear);
    assert_eq!(cost(AnnealingParams { rank_order_fallback: true, ..once }), linear);
}

#[test]
fn silent_programs_are_mapped_at_once() {
    let (program, system) = (graph(4, []), tree(&[2, 3]));
    let slots = [
        run::<AnnealingStage>(AnnealingParams::default(), &program, &system).slots(),
        run::<GeneticStage>(GeneticParams::default(), &program, &system).slots(),
        run::<CompositeStage>(CompositeParams::default(), &program, &system).slots(),
    ];
    assert_eq!(slots, [[0, 1, 2, 3]; 3]);
    // One rank on one of many slots, and two ranks on two.
    for (ranks, shape) in [(1, vec![1, 5]), (2, vec![1, 2])] {
        let program = graph(ranks, (ranks > 1).then_some((0, 1, 8)));
        run::<AnnealingStage>(
            AnnealingParams { move_type: Some(MoveType::Random), ..annealing() },
            &program,
            &tree(&shape),
        );
        run::<GeneticStage>(genetic(), &program, &tree(&shape));
        run::<CompositeStage>(composite(), &program, &tree(&shape));
    }
}

#[test]
fn an_interrupted_search_returns_its_incumbent() {
    let observer = Impatient::new(2);
    let cx = Context::new(1, None, &observer);
    let params = GeneticParams { iterations: Some(1 << 40), ..genetic() };
    let outcome = GeneticStage::run(params, inputs(&grid(5, 4), &tree(&[2, 3, 4])), &cx).unwrap();
    assert!(matches!(outcome, hopmap_model::Outcome::Partial(_)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn small_programs_get_an_optimal_mapping(
        edges in prop::collection::vec((0u32..5, 0u32..5, 1u64..1000), 0..15),
        shape in prop_oneof![Just(vec![2, 3]), Just(vec![3, 2]), Just(vec![1, 6, 1]), Just(vec![2, 2, 2])],
        seed in 0u64..100,
    ) {
        let (program, system) = (graph(5, edges), tree(&shape));
        let best = exhaustive(&program, &shape, &mut Vec::new());
        let annealing = AnnealingParams { seed, solvers: Some(2), ..AnnealingParams::default() };
        let genetic = GeneticParams { seed, iterations: Some(200), ..GeneticParams::default() };
        let composite = CompositeParams { seed, ..composite_of(1000, Some(10)) };
        for (mapper, mapping) in [
            ("annealing", run::<AnnealingStage>(annealing, &program, &system)),
            ("genetic", run::<GeneticStage>(genetic, &program, &system)),
            ("composite", run::<CompositeStage>(composite, &program, &system)),
        ] {
            mapping.check().unwrap();
            let found = mapping.metrics["F"];
            prop_assert!((found - best).abs() < 1e-6, "{}: {} is not {}", mapper, found, best);
        }
    }
}

#[test]
fn no_result_is_worse_than_linear() {
    // Too few evaluations to reach the cost of the linear mapping from a random one.
    let problem = Problem::new(&grid(32, 16), &tree(&[4, 8, 16]), Weight::Bytes).unwrap();
    let linear = problem.cost(&problem.linear());
    let (evaluations, iterations) = (Some(2000), Some(3));
    for mapper in [
        mapper_of_annealing(AnnealingParams { evaluations, ..annealing() }),
        mapper_of_genetic(GeneticParams { evaluations, iterations, ..genetic() }),
        mapper_of_composite(CompositeParams { evaluations, ..composite_of(400, iterations) }),
    ] {
        let found = mapper.map(&problem, &Context::detached()).unwrap();
        assert!(problem.cost(&found.slots) <= linear);
    }
}

/// On equal budgets, which count the sweeps.
#[test]
fn local_search_of_children_improves_a_genetic_algorithm() {
    let (graph, system) = (grid(8, 8), tree(&[4, 4, 4]));
    let best = |child_sweeps, crossover| {
        let params = GeneticParams {
            child_sweeps,
            crossover,
            evaluations: Some(300_000),
            local_search: false,
            ..GeneticParams::default()
        };
        run::<GeneticStage>(params, &graph, &system).metrics["F"]
    };
    let [plain, memetic] = [best(0, Crossover::Basic), best(20, Crossover::Uniform)];
    assert!(memetic < plain, "{memetic} {plain}");
}
