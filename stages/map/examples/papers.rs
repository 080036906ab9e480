//! Parameter studies of the GraphHunter papers, repeated: optimality gaps at equal numbers of evaluations.
//!
//!     HOPMAP_DATA=… cargo run -p hopmap-map --example papers -- [PART OF A NAME] [SEEDS] [INSTANCE…]
//!
//! For every parameter set whose name contains PART and every instance, prints the mean over the seeds of 100
//! · (F − F0) / F0, its standard error, the least, the median, the worst, and the seconds of a run. `reach` prints instead how many iterations
//! 1 to 32 islands need to come within 20 % of F0 on average: the time to a fixed accuracy on as many
//! processes. Every island gets the evaluations of the papers' annealing, solvers × iterations, and no final
//! local search; `defaults` and `paper's` are complete runs. After the seconds come the counters of the last
//! run: exchanges, generations, accepted children. An instance is one of the papers, one of QAPLIB with a
//! solution, or `grid64`, 64 × 64 ranks on a tree, whose F0 is that of the linear mapping.
#![allow(clippy::print_stdout, reason = "it prints a table")]

use std::path::PathBuf;
use std::time::Instant;

use hopmap_map::{
    AfterExchange, Annealing, AnnealingParams, AnnealingPart, Auto, AutoParams, Composite, CompositeParams,
    Cooling, Crossover, Genetic, GeneticParams, GeneticPart, Iteration, Mapper, Master, MoveType, MovesUnit,
    Mutations, Replacement, Scheme,
};
use hopmap_model::{
    Context, CostModel, Edge, Error, Levels, Matrix, Node, Process, Slot, SystemGraph, TaskGraph, Weight,
};
use hopmap_objective::{Problem, linear};

/// Instances and the best F of the papers; other names are read from QAPLIB.
const INSTANCES: &[(&str, f64)] = &[
    ("tai27e01", 2558.0),
    ("tai45e01", 6412.0),
    ("tai75e01", 14_488.0),
    ("tai125e01", 35_426.0),
    ("tai175e01", 57_540.0),
];

/// Slow instances, which only run if named.
const LARGE: &[(&str, f64)] = &[("tai343e01", 145_862.0), ("tai729e01", 469_650.0)];

/// The accuracy to reach, in percent above F0.
const ACCURACY: f64 = 20.0;

/// A name and a constructor of the mapper for a seed and a number of evaluations.
type Choice = (&'static str, Make);
type Make = Box<dyn Fn(u64, u64) -> Result<Box<dyn Mapper>, Error>>;
/// A name and parameters.
type Named<P> = (&'static str, fn() -> P);

fn main() -> Result<(), Error> {
    let mut arguments = std::env::args().skip(1);
    let wanted = arguments.next().unwrap_or_default();
    let seeds: u64 = arguments.next().and_then(|seeds| seeds.parse().ok()).unwrap_or(3);
    let names: Vec<String> = arguments.collect();
    let all = || INSTANCES.iter().map(|(name, _)| (*name).to_owned()).collect();
    let names = if names.is_empty() { all() } else { names };
    let read = |name: String| read(&name).map(|(problem, best)| (name, best, problem));
    let problems = names.into_iter().map(read).collect::<Result<Vec<_>, Error>>()?;
    print!("{:44}", "gap in %: mean, error, least, median, worst; s");
    problems.iter().for_each(|(name, ..)| print!("{name:>46}"));
    println!();
    if wanted == "reach" {
        return reach(&problems, seeds);
    }
    for (name, mapper) in choices().iter().filter(|(name, _)| name.contains(&wanted)) {
        print!("{name:44}");
        for (_, best, problem) in &problems {
            let begin = Instant::now();
            let (mut gaps, mut counts) = (Vec::new(), String::new());
            for seed in 1..=seeds {
                let found = mapper(seed, budget(problem))?.map(problem, &Context::detached())?;
                gaps.push(100.0 * (problem.real(problem.cost(&found.slots)) - best) / best);
                counts = found.metrics.values().fold(String::new(), |text, count| format!("{text} {count}"));
            }
            let (mean, error) = mean_and_error(&gaps);
            gaps.sort_by(f64::total_cmp);
            let [least, median, worst] = [0, gaps.len() / 2, gaps.len() - 1].map(|at| gaps[at]);
            let seconds = begin.elapsed().as_secs_f64() / seeds as f64;
            print!("{mean:8.1} ±{error:5.1} {least:7.2} {median:7.2} {worst:7.2} {seconds:5.1}s{counts}");
        }
        println!();
    }
    Ok(())
}

/// The mean of some values and its standard error.
fn mean_and_error(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
    (mean, (squares / (count - 1.0).max(1.0) / count).sqrt())
}

/// Prints the smallest number of iterations, a power of two times the first one, with which islands reach the
/// accuracy on average.
fn reach(problems: &[(String, f64, Problem)], seeds: u64) -> Result<(), Error> {
    const FIRST: u64 = 250;
    const LAST: u64 = 256_000;
    for islands in [1, 2, 4, 8, 16, 32] {
        print!("{:44}", format!("annealing, iterations to {ACCURACY} %, {islands} islands"));
        for (_, best, problem) in problems {
            let mut iterations = FIRST;
            while iterations <= LAST && mean_gap(problem, *best, seeds, islands, iterations)? > ACCURACY {
                iterations *= 2;
            }
            match iterations <= LAST {
                true => print!("{iterations:>22}"),
                false => print!("{:>22}", "never"),
            }
        }
        println!();
    }
    Ok(())
}

/// Mean gap of annealing with a number of iterations and fifty exchanges.
fn mean_gap(problem: &Problem, best: f64, seeds: u64, islands: u32, iterations: u64) -> Result<f64, Error> {
    let mut sum = 0.0;
    for seed in 1..=seeds {
        let params = AnnealingParams {
            seed,
            islands,
            iterations: Some(iterations),
            exchange_interval: Some(iterations.div_ceil(50)),
            local_search: false,
            ..AnnealingParams::default()
        };
        let found = Annealing::new(&params)?.map(problem, &Context::detached())?;
        sum += 100.0 * (problem.real(problem.cost(&found.slots)) - best) / best;
    }
    Ok(sum / seeds as f64)
}

/// Solvers × iterations of the papers.
fn budget(problem: &Problem) -> u64 {
    let ranks = problem.ranks() as u64;
    50_000 * if ranks <= 100 { ranks } else { 125 }
}

fn choices() -> Vec<Choice> {
    let annealing = [SCHEDULES, SOLVERS].concat();
    let annealing = annealing.into_iter().map(|(name, params)| (name, anneal(params)));
    let genetic = GENETIC.iter().map(|&(name, params)| (name, breed(params)));
    let composite = COMPOSITE.iter().map(|&(name, params)| (name, compose(params)));
    annealing.chain(genetic).chain(composite).chain(whole_runs()).collect()
}

/// All algorithms with defaults and with the papers' parameters: complete runs.
fn whole_runs() -> Vec<Choice> {
    let annealing = |name, params: fn() -> AnnealingParams| -> Choice {
        (name, Box::new(move |seed, _| Ok(Box::new(Annealing::new(&AnnealingParams { seed, ..params() })?))))
    };
    let genetic = |name, params: fn() -> GeneticParams| -> Choice {
        (name, Box::new(move |seed, _| Ok(Box::new(Genetic::new(&GeneticParams { seed, ..params() })?))))
    };
    let composite = |name, params: fn() -> CompositeParams| -> Choice {
        (name, Box::new(move |seed, _| Ok(Box::new(Composite::new(&CompositeParams { seed, ..params() })?))))
    };
    let auto = |name, time_limit_s| -> Choice {
        let params = AutoParams { time_limit_s: Some(time_limit_s), ..AutoParams::default() };
        (name, Box::new(move |seed, _| Ok(Box::new(Auto::new(&AutoParams { seed, ..params.clone() })?))))
    };
    vec![
        auto("auto, 1 s", 1.0),
        auto("auto, 10 s", 10.0),
        annealing("defaults of annealing", AnnealingParams::default),
        // The work of the defaults; 50,000 temperatures would be cut off after about 1000.
        annealing("defaults of annealing, Cauchy", || AnnealingParams {
            cooling: Cooling::Cauchy,
            iterations: Some(1200),
            ..AnnealingParams::default()
        }),
        genetic("defaults of genetic", GeneticParams::default),
        composite("defaults of composite", CompositeParams::default),
        annealing("paper's annealing", AnnealingParams::paper),
        annealing("paper's annealing, T1 0.01", || AnnealingParams {
            final_temperature: Some(0.01),
            ..AnnealingParams::paper()
        }),
        annealing("paper's annealing, proportional", || AnnealingParams {
            cooling: Cooling::Proportional,
            ..AnnealingParams::paper()
        }),
        annealing("paper's annealing, every 100", || AnnealingParams {
            exchange_interval: Some(100),
            ..AnnealingParams::paper()
        }),
        annealing("paper's annealing, never", || AnnealingParams {
            exchange_interval: Some(100_000),
            ..AnnealingParams::paper()
        }),
        genetic("paper's genetic", GeneticParams::paper),
        genetic("paper's genetic, sorting", || GeneticParams {
            crossover: Crossover::Sorting,
            ..GeneticParams::paper()
        }),
        genetic("paper's genetic, every gene", || GeneticParams {
            mutations: Mutations::Random,
            ..GeneticParams::paper()
        }),
        genetic("paper's genetic, half of all", || GeneticParams {
            offspring: None,
            ..GeneticParams::paper()
        }),
        genetic("paper's genetic, half of all, every gene, always", || GeneticParams {
            offspring: None,
            mutations: Mutations::Random,
            replacement: Replacement::Always,
            ..GeneticParams::paper()
        }),
        composite("paper's composite", CompositeParams::paper),
        annealing("RGO", || AnnealingParams { crossover_on_exchange: true, ..AnnealingParams::default() }),
        annealing("RGO, 10 generations", || AnnealingParams {
            crossover_on_exchange: true,
            generations: Some(10),
            ..AnnealingParams::default()
        }),
        annealing("RGO, 40 generations", || AnnealingParams {
            crossover_on_exchange: true,
            generations: Some(40),
            ..AnnealingParams::default()
        }),
    ]
}

/// Cooling schedules of annealing.
const SCHEDULES: &[Named<AnnealingParams>] = &[
    ("annealing, as by default", AnnealingParams::default),
    ("annealing, restarts", || AnnealingParams {
        temperature_after_exchange: AfterExchange::Restart,
        ..AnnealingParams::default()
    }),
    ("annealing, candidates", || AnnealingParams {
        iteration: Iteration::Candidate,
        ..AnnealingParams::default()
    }),
    ("annealing, candidates, Cauchy", || AnnealingParams {
        iteration: Iteration::Candidate,
        cooling: Cooling::Cauchy,
        ..AnnealingParams::default()
    }),
    ("annealing, candidates, restarts", || AnnealingParams {
        iteration: Iteration::Candidate,
        temperature_after_exchange: AfterExchange::Restart,
        ..AnnealingParams::default()
    }),
    ("annealing, candidates, restarts, Cauchy", || AnnealingParams {
        iteration: Iteration::Candidate,
        temperature_after_exchange: AfterExchange::Restart,
        cooling: Cooling::Cauchy,
        ..AnnealingParams::default()
    }),
    ("annealing, 10 neighbours", || AnnealingParams {
        moves_per_temperature: Some(10),
        ..AnnealingParams::default()
    }),
    ("annealing, 250 neighbours", || AnnealingParams {
        moves_per_temperature: Some(250),
        ..AnnealingParams::default()
    }),
];

/// Neighbourhoods and exchanges of solvers.
const SOLVERS: &[Named<AnnealingParams>] = &[
    ("annealing, 50 neighbours per rank", || AnnealingParams {
        moves_unit: MovesUnit::PerRank,
        ..AnnealingParams::default()
    }),
    ("annealing, 100 successive", || AnnealingParams {
        exchange_interval: Some(100),
        ..AnnealingParams::default()
    }),
    ("annealing, 500 successive", || AnnealingParams {
        exchange_interval: Some(500),
        ..AnnealingParams::default()
    }),
    ("annealing, no exchange", || AnnealingParams {
        exchange_interval: Some(50_000),
        ..AnnealingParams::default()
    }),
    ("annealing, 1 solver", || AnnealingParams { solvers: Some(1), ..AnnealingParams::default() }),
    ("annealing, 10 solvers", || AnnealingParams { solvers: Some(10), ..AnnealingParams::default() }),
    ("annealing, frozen ends", || AnnealingParams { stop_when_frozen: true, ..AnnealingParams::default() }),
    ("annealing, random neighbours", || AnnealingParams {
        move_type: Some(MoveType::Random),
        ..AnnealingParams::default()
    }),
    ("annealing, neighbours towards", || AnnealingParams {
        move_type: Some(MoveType::Towards),
        ..AnnealingParams::default()
    }),
    ("annealing, genetic", || AnnealingParams { crossover_on_exchange: true, ..AnnealingParams::default() }),
];

const GENETIC: &[Named<GeneticParams>] = &[
    ("genetic, as by default", GeneticParams::default),
    ("genetic, sorting", || GeneticParams { crossover: Crossover::Sorting, ..GeneticParams::default() }),
    ("genetic, order", || GeneticParams { crossover: Crossover::Order, ..GeneticParams::default() }),
    ("genetic, no exchange", || GeneticParams { migrants: 0, ..GeneticParams::default() }),
    ("genetic, 4 migrants", || GeneticParams { migrants: 4, ..GeneticParams::default() }),
    ("genetic, master breeds", || GeneticParams { scheme: Scheme::MasterSlave, ..GeneticParams::default() }),
    ("genetic, master reduces", || GeneticParams {
        scheme: Scheme::MasterSlave,
        master: Master::Reduces,
        ..GeneticParams::default()
    }),
    ("genetic, 2 children", || GeneticParams { offspring: Some(2), ..GeneticParams::default() }),
    ("genetic, mutation 0.01", || GeneticParams { mutation: 0.01, ..GeneticParams::default() }),
];

/// The composite algorithm with another genetic algorithm.
fn composite_of(genetic: GeneticPart) -> CompositeParams {
    CompositeParams { genetic, ..CompositeParams::default() }
}

const COMPOSITE: &[Named<CompositeParams>] = &[
    ("composite, as by default", CompositeParams::default),
    ("composite, Cauchy", || CompositeParams {
        annealing: AnnealingPart { cooling: Cooling::Cauchy, ..AnnealingPart::default() },
        ..CompositeParams::default()
    }),
    ("composite, sorting", || {
        composite_of(GeneticPart { crossover: Crossover::Sorting, ..GeneticPart::default() })
    }),
    ("composite, 4 migrants", || composite_of(GeneticPart { migrants: 4, ..GeneticPart::default() })),
    ("composite, master breeds", || {
        composite_of(GeneticPart { scheme: Scheme::MasterSlave, ..GeneticPart::default() })
    }),
    ("composite, 16 individuals", || {
        composite_of(GeneticPart { population: Some(16), ..GeneticPart::default() })
    }),
];

fn anneal(params: fn() -> AnnealingParams) -> Make {
    Box::new(move |seed, evaluations| {
        let params =
            AnnealingParams { seed, evaluations: Some(evaluations), local_search: false, ..params() };
        Ok(Box::new(Annealing::new(&params)?))
    })
}

fn breed(params: fn() -> GeneticParams) -> Make {
    Box::new(move |seed, evaluations| {
        let params = GeneticParams { seed, evaluations: Some(evaluations), local_search: false, ..params() };
        Ok(Box::new(Genetic::new(&params)?))
    })
}

fn compose(params: fn() -> CompositeParams) -> Make {
    Box::new(move |seed, evaluations| {
        let params =
            CompositeParams { seed, evaluations: Some(evaluations), local_search: false, ..params() };
        Ok(Box::new(Composite::new(&params)?))
    })
}

/// A file of the data.
fn text(path: &str) -> Result<String, Error> {
    let data = std::env::var_os("HOPMAP_DATA").ok_or_else(|| Error::msg("HOPMAP_DATA is not set"))?;
    let path = PathBuf::from(data).join("qap").join(path);
    std::fs::read_to_string(&path).map_err(|error| Error::msg(format!("{}: {error}", path.display())))
}

/// An instance of the papers and their best F, or one of QAPLIB and its optimum.
fn read(name: &str) -> Result<(Problem, f64), Error> {
    if let Some(&(_, best)) = INSTANCES.iter().chain(LARGE).find(|(known, _)| *known == name) {
        return Ok((instance(&text(&format!("taie/{name}.dat"))?)?, best));
    }
    if let Some(width) = name.strip_prefix("grid").and_then(|width| width.parse().ok()) {
        let problem = grid(width)?;
        let linear = problem.real(problem.cost(&linear(problem.ranks())));
        return Ok((problem, linear));
    }
    let solution = text(&format!("qaplib/{name}.sln"))?;
    let best = solution.split_whitespace().nth(1).and_then(|best| best.parse().ok());
    let best = best.ok_or_else(|| Error::msg(format!("{name}.sln has no value")))?;
    Ok((instance(&text(&format!("qaplib/{name}.dat"))?)?, best))
}

/// A square grid of ranks with four neighbours each, on a tree of 16 cores per host and as many hosts under
/// each switch as there are switches. Its cost is compared with the linear mapping.
fn grid(width: u32) -> Result<Problem, Error> {
    let ranks = width * width;
    let switch = 16 * f64::from(ranks / 16).sqrt() as u32;
    let right = (0..ranks).filter(|rank| rank % width > 0).map(|rank| (rank - 1, rank));
    let down = (width..ranks).map(|rank| (rank - width, rank));
    let edge = |(source, destination)| Edge { source, destination, messages: 1, bytes: 1 };
    let mut edges: Vec<_> = right.chain(down).flat_map(|(a, b)| [(a, b), (b, a)]).map(edge).collect();
    edges.sort_by_key(Edge::pair);
    let graph =
        TaskGraph { processes: vec![Process::default(); ranks as usize], edges, ..TaskGraph::default() };
    let system = SystemGraph {
        routing: hopmap_model::Routing::default(),
        nodes: (0..ranks / 16).map(|host| Node::host(format!("host{host}"))).collect(),
        links: Vec::new(),
        slots: (0..ranks).map(|slot| Slot { host: slot / 16, core: slot % 16 }).collect(),
        cost: CostModel::Levels(Levels {
            costs: vec![1.0, 10.0, 100.0],
            groups: [16, switch, ranks].map(|size| (0..ranks).map(|slot| slot / size).collect()).to_vec(),
        }),
        calibration: Vec::new(),
    };
    Ok(Problem::new(&graph, &system, Weight::Bytes)?)
}

/// An instance in the format of QAPLIB: the size and two matrices.
fn instance(text: &str) -> Result<Problem, Error> {
    let mut numbers = text.split_whitespace().filter_map(|number| number.parse::<u64>().ok());
    let size = numbers.next().unwrap_or(0) as usize;
    let mut matrix = || numbers.by_ref().take(size * size).collect::<Vec<_>>();
    let (weights, costs) = (matrix(), matrix());
    let edge = |(at, &bytes): (usize, &u64)| Edge {
        source: (at / size) as u32,
        destination: (at % size) as u32,
        messages: 1,
        bytes,
    };
    let graph = TaskGraph {
        processes: vec![Process::default(); size],
        edges: weights.iter().enumerate().filter(|(_, weight)| **weight > 0).map(edge).collect(),
        ..TaskGraph::default()
    };
    let system = SystemGraph {
        routing: hopmap_model::Routing::default(),
        nodes: (0..size).map(|host| Node::host(format!("host{host}"))).collect(),
        links: Vec::new(),
        slots: (0..size as u32).map(|host| Slot { host, core: 0 }).collect(),
        cost: CostModel::Matrix(Matrix { costs: costs.iter().map(|&cost| cost as f64).collect() }),
        calibration: Vec::new(),
    };
    Ok(Problem::new(&graph, &system, Weight::Bytes)?)
}
