//! What the papers of GraphHunter say of their parameters, measured again: gaps at equal numbers of evaluations.
//!
//!     HOPMAP_DATA=… cargo run -p hopmap-map --example papers -- [annealing|genetic|composite|defaults|PART OF A NAME] [seeds] [instance…]
//!
//! Prints, for every choice of parameters and every instance, the mean over the seeds of 100 · (F − F0) / F0 without the final
//! descent. Every island has as many evaluations as the papers' annealing takes: solvers × iterations.
#![allow(clippy::print_stdout, reason = "it prints a table")]

use std::path::PathBuf;
use std::time::Instant;

use hopmap_map::{
    Annealing, AnnealingParams, Composite, CompositeParams, Cooling, Crossover, Genetic, GeneticParams,
    Mapper, Master, NeighboursUnit, Reheat, Scheme,
};
use hopmap_model::{
    Context, CostModel, Edge, Error, Matrix, Node, NodeKind, Process, Slot, SystemGraph, TaskGraph, Weight,
};
use hopmap_objective::Problem;

/// Instances and the best F that the papers give.
const INSTANCES: &[(&str, f64)] = &[
    ("tai27e01", 2558.0),
    ("tai45e01", 6412.0),
    ("tai75e01", 14_488.0),
    ("tai125e01", 35_426.0),
    ("tai175e01", 57_540.0),
];

/// A name and what makes the mapper for a seed and a number of evaluations.
type Choice = (&'static str, Box<dyn Fn(u64, u64) -> Result<Box<dyn Mapper>, Error>>);

fn main() -> Result<(), Error> {
    let mut arguments = std::env::args().skip(1);
    let wanted = arguments.next().unwrap_or_default();
    let seeds: u64 = arguments.next().and_then(|seeds| seeds.parse().ok()).unwrap_or(3);
    let names: Vec<String> = arguments.collect();
    let named = |name: &str| names.is_empty() || names.iter().any(|wanted| wanted == name);
    let problems = INSTANCES.iter().filter(|(name, _)| named(name));
    let problems =
        problems.map(|&(name, best)| Ok((name, best, read(name)?))).collect::<Result<Vec<_>, Error>>()?;
    print!("{:44}", "mean gap in % (seconds)");
    problems.iter().for_each(|(name, ..)| print!("{name:>20}"));
    println!();
    for (name, mapper) in choices().iter().filter(|(name, _)| name.contains(&wanted)) {
        print!("{name:44}");
        for (_, best, problem) in &problems {
            let begin = Instant::now();
            let mut sum = 0.0;
            for seed in 1..=seeds {
                let found = mapper(seed, budget(problem))?.map(problem, &Context::detached())?;
                sum += 100.0 * (problem.real(problem.cost(&found.slots)) - best) / best;
            }
            print!("{:12.1} {:6.1}s", sum / seeds as f64, begin.elapsed().as_secs_f64() / seeds as f64);
        }
        println!();
    }
    Ok(())
}

/// Solvers × iterations of the papers.
fn budget(problem: &Problem) -> u64 {
    let ranks = problem.ranks() as u64;
    50_000 * if ranks <= 100 { ranks } else { 125 }
}

fn choices() -> Vec<Choice> {
    let mut all = Vec::new();
    let annealing: &[(&'static str, fn() -> AnnealingParams)] = &[
        ("annealing, as by default", AnnealingParams::default),
        ("annealing, Cauchy", || AnnealingParams { cooling: Cooling::Cauchy, ..AnnealingParams::default() }),
        ("annealing, restarts", || AnnealingParams {
            after_exchange: Reheat::Restart,
            ..AnnealingParams::default()
        }),
        ("annealing, restarts, Cauchy", || AnnealingParams {
            after_exchange: Reheat::Restart,
            cooling: Cooling::Cauchy,
            ..AnnealingParams::default()
        }),
        ("annealing, 10 neighbours", || AnnealingParams { max_neighbours: 10, ..AnnealingParams::default() }),
        ("annealing, 250 neighbours", || AnnealingParams {
            max_neighbours: 250,
            ..AnnealingParams::default()
        }),
        ("annealing, 50 neighbours per rank", || AnnealingParams {
            neighbours_unit: NeighboursUnit::PerRank,
            ..AnnealingParams::default()
        }),
        ("annealing, 100 successive", || AnnealingParams {
            successive: Some(100),
            ..AnnealingParams::default()
        }),
        ("annealing, 10,000 successive", || AnnealingParams {
            successive: Some(10_000),
            ..AnnealingParams::default()
        }),
        ("annealing, no exchange", || AnnealingParams {
            successive: Some(50_000),
            ..AnnealingParams::default()
        }),
        ("annealing, 1 solver", || AnnealingParams { solvers: Some(1), ..AnnealingParams::default() }),
        ("annealing, 10 solvers", || AnnealingParams { solvers: Some(10), ..AnnealingParams::default() }),
        ("annealing, frozen ends", || AnnealingParams { frozen: true, ..AnnealingParams::default() }),
        ("annealing, genetic", || AnnealingParams { genetic: true, ..AnnealingParams::default() }),
    ];
    for &(name, params) in annealing {
        all.push((name, anneal(params)));
    }
    let genetic: &[(&'static str, fn() -> GeneticParams)] = &[
        ("genetic, as by default", GeneticParams::default),
        ("genetic, sorting", || GeneticParams { crossover: Crossover::Sorting, ..GeneticParams::default() }),
        ("genetic, order", || GeneticParams { crossover: Crossover::Order, ..GeneticParams::default() }),
        ("genetic, no exchange", || GeneticParams { migrants: 0, ..GeneticParams::default() }),
        ("genetic, 4 migrants", || GeneticParams { migrants: 4, ..GeneticParams::default() }),
        ("genetic, master breeds", || GeneticParams {
            scheme: Scheme::MasterSlave,
            ..GeneticParams::default()
        }),
        ("genetic, master reduces", || GeneticParams {
            scheme: Scheme::MasterSlave,
            master: Master::Reduces,
            ..GeneticParams::default()
        }),
        ("genetic, 2 children", || GeneticParams { children: Some(2), ..GeneticParams::default() }),
        ("genetic, mutation 0.01", || GeneticParams { mutation: 0.01, ..GeneticParams::default() }),
    ];
    for &(name, params) in genetic {
        all.push((name, breed(params)));
    }
    let composite: &[(&'static str, fn() -> CompositeParams)] = &[
        ("composite, as by default", CompositeParams::default),
        ("composite, Cauchy", || CompositeParams { cooling: Cooling::Cauchy, ..CompositeParams::default() }),
        ("composite, sorting", || CompositeParams {
            crossover: Crossover::Sorting,
            ..CompositeParams::default()
        }),
        ("composite, 4 migrants", || CompositeParams { migrants: 4, ..CompositeParams::default() }),
        ("composite, master breeds", || CompositeParams {
            scheme: Scheme::MasterSlave,
            ..CompositeParams::default()
        }),
        ("composite, 16 individuals", || CompositeParams {
            population: Some(16),
            ..CompositeParams::default()
        }),
    ];
    for &(name, params) in composite {
        all.push((name, compose(params)));
    }
    all
}

fn anneal(params: fn() -> AnnealingParams) -> Box<dyn Fn(u64, u64) -> Result<Box<dyn Mapper>, Error>> {
    Box::new(move |seed, evaluations| {
        let params = AnnealingParams { seed, evaluations: Some(evaluations), descent: false, ..params() };
        Ok(Box::new(Annealing::new(&params)?))
    })
}

fn breed(params: fn() -> GeneticParams) -> Box<dyn Fn(u64, u64) -> Result<Box<dyn Mapper>, Error>> {
    Box::new(move |seed, evaluations| {
        let params = GeneticParams { seed, evaluations: Some(evaluations), descent: false, ..params() };
        Ok(Box::new(Genetic::new(&params)?))
    })
}

fn compose(params: fn() -> CompositeParams) -> Box<dyn Fn(u64, u64) -> Result<Box<dyn Mapper>, Error>> {
    Box::new(move |seed, evaluations| {
        let params = CompositeParams { seed, evaluations: Some(evaluations), descent: false, ..params() };
        Ok(Box::new(Composite::new(&params)?))
    })
}

/// An instance in the format of QAPLIB: the size and two matrices.
fn read(name: &str) -> Result<Problem, Error> {
    let data = std::env::var_os("HOPMAP_DATA").ok_or_else(|| Error::msg("HOPMAP_DATA is not set"))?;
    let path = PathBuf::from(data).join("qap/taie").join(name).with_extension("dat");
    let text =
        std::fs::read_to_string(&path).map_err(|error| Error::msg(format!("{}: {error}", path.display())))?;
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
        nodes: (0..size).map(|host| Node { name: format!("host{host}"), kind: NodeKind::Host }).collect(),
        links: Vec::new(),
        slots: (0..size as u32).map(|host| Slot { host, core: 0 }).collect(),
        cost: CostModel::Matrix(Matrix { costs: costs.iter().map(|&cost| cost as f64).collect() }),
    };
    Ok(Problem::new(&graph, &system, Weight::Bytes)?)
}
