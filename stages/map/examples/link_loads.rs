//! Busiest link of `map/auto` and of plain annealing of the 8-norm of link loads, at equal evaluations.
//!
//! `cargo run --release -p hopmap-map --example link_loads -- [EVALUATIONS [SEEDS [TIMES]]]`: 20 random programs on
//! trees, tori and fat trees, objective max-link-load, or max-link-time with any third argument. The two islands of
//! `map/auto` share the evaluations.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "an example")]

use std::collections::BTreeMap;
use std::time::Instant;

use hopmap_map::{Auto, AutoParams, Mapper};
use hopmap_model::{
    Context, CostModel, Edge, Levels, Link, Node, NodeKind, Paths, Process, RouteCosts, RouteMetric, Slot,
    SystemGraph, TaskGraph, Weight,
};
use hopmap_objective::{Objective, Problem, random};
use hopmap_random::{Pcg64, Rng, SeedableRng, index_below};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let argument = |at: usize, default| arguments.get(at).map_or(default, |text| text.parse().unwrap());
    let (evaluations, seeds) = (argument(0, 1_000_000), argument(1, 3));
    let objective = if arguments.len() > 2 { Objective::MAX_LINK_TIME } else { Objective::MAX_LINK_LOAD };
    println!("{:<28} {:>10} {:>10} {:>7} {:>6} {:>6}", "case", "norm", "auto", "ratio", "norm s", "auto s");
    let mut ratios = Vec::new();
    for case in 0..20 {
        let (name, graph, system) = made(case);
        let problem = Problem::with_objective(&graph, &system, Weight::Bytes, &objective).unwrap();
        for seed in 1..=seeds {
            let begin = Instant::now();
            let norm = problem.real(problem.cost(&annealed(&graph, &system, &objective, evaluations, seed)));
            let first = begin.elapsed().as_secs_f64();
            let params = AutoParams { seed, evaluations: Some(evaluations / 2), ..AutoParams::default() };
            let found = Auto::new(&params).unwrap().map(&problem, &Context::detached()).unwrap();
            let auto = problem.real(problem.cost(&found.slots));
            let second = begin.elapsed().as_secs_f64() - first;
            println!(
                "{name:<28} {norm:>10.4e} {auto:>10.4e} {:>7.3} {first:>6.2} {second:>6.2}",
                auto / norm
            );
            ratios.push(auto / norm);
        }
    }
    ratios.sort_by(f64::total_cmp);
    let not_worse = ratios.iter().filter(|ratio| **ratio <= 1.0).count();
    let [median, worst] = [ratios.len() / 2, ratios.len() - 1].map(|at| ratios[at]);
    println!("median {median:.3}, worst {worst:.3}, {not_worse} of {} not worse", ratios.len());
}

/// Annealing of the 8-norm of the costs of all links by random exchanges, from a random mapping.
fn annealed(
    graph: &TaskGraph,
    system: &SystemGraph,
    objective: &Objective,
    evaluations: u64,
    seed: u64,
) -> Vec<u32> {
    let paths = Paths::new(system).unwrap();
    let hosts = system.slots.last().unwrap().host as usize + 1;
    let routes: Vec<Vec<u32>> = (0..hosts * hosts)
        .map(|pair| paths.path((pair / hosts) as u32, (pair % hosts) as u32).unwrap())
        .collect();
    let route = |from: u32, to: u32| &routes[from as usize * hosts + to as usize];
    let per_byte: Vec<f64> = system
        .links
        .iter()
        .map(
            |link| {
                if objective.max_link_time > 0.0 { 1e9 / link.bandwidth_bytes_per_s.unwrap() } else { 1.0 }
            },
        )
        .collect();
    let mut partners: Vec<Vec<(usize, bool, f64)>> = vec![Vec::new(); graph.ranks()];
    for edge in &graph.edges {
        partners[edge.source as usize].push((edge.destination as usize, true, edge.bytes as f64));
        partners[edge.destination as usize].push((edge.source as usize, false, edge.bytes as f64));
    }
    let mut random_numbers = Pcg64::from_seed([seed as u8; 32]);
    let (ranks, count) = (graph.ranks(), system.slots.len());
    // Free slots belong to ranks without partners.
    let mut slot_of = random(count, count, [!(seed as u8); 32]);
    partners.resize(count, Vec::new());
    let mut at: Vec<usize> = vec![0; count];
    (0..count).for_each(|rank| at[slot_of[rank] as usize] = rank);
    let mut loads = vec![0.0; system.links.len()];
    let traffic = |loads: &mut [f64], slot_of: &[u32], rank: usize, sign: f64, without: Option<usize>| {
        for &(other, sends, bytes) in &partners[rank] {
            if without == Some(other) || other == rank {
                continue;
            }
            let [a, b] = [rank, other].map(|rank| system.slots[slot_of[rank] as usize].host);
            let (from, to) = if sends { (a, b) } else { (b, a) };
            for &link in route(from, to) {
                loads[link as usize] += sign * bytes * per_byte[link as usize];
            }
        }
    };
    for edge in &graph.edges {
        let [from, to] =
            [edge.source, edge.destination].map(|r| system.slots[slot_of[r as usize] as usize].host);
        for &link in route(from, to) {
            loads[link as usize] += edge.bytes as f64 * per_byte[link as usize];
        }
    }
    let power = |load: &f64| {
        let squared = load * load;
        let fourth = squared * squared;
        fourth * fourth
    };
    let norm = |loads: &[f64]| loads.iter().map(power).sum::<f64>().sqrt().sqrt().sqrt();
    let largest = |loads: &[f64]| loads.iter().copied().fold(0.0, f64::max);
    let mut cost = norm(&loads);
    let (mut best, mut least) = (slot_of.clone(), largest(&loads));
    let hot = 0.02 * cost;
    for step in 0..evaluations {
        let temperature = hot * libm::pow(1e-4, step as f64 / evaluations as f64);
        let rank = index_below(random_numbers.next_u32(), ranks);
        let other = at[index_below(random_numbers.next_u32(), count)];
        if rank == other {
            continue;
        }
        let mut exchange = |loads: &mut Vec<f64>, slot_of: &mut Vec<u32>| {
            traffic(loads, slot_of, rank, -1.0, None);
            traffic(loads, slot_of, other, -1.0, Some(rank));
            slot_of.swap(rank, other);
            traffic(loads, slot_of, rank, 1.0, None);
            traffic(loads, slot_of, other, 1.0, Some(rank));
            at.swap(slot_of[rank] as usize, slot_of[other] as usize);
        };
        exchange(&mut loads, &mut slot_of);
        let after = norm(&loads);
        let chance = (f64::from(random_numbers.next_u32()) + 0.5) / 2f64.powi(32);
        if after > cost && libm::exp((cost - after) / temperature) < chance {
            exchange(&mut loads, &mut slot_of);
            continue;
        }
        cost = after;
        if largest(&loads) < least {
            (best, least) = (slot_of.clone(), largest(&loads));
        }
    }
    best.truncate(ranks);
    best
}

/// A random program on a random machine.
fn made(case: u64) -> (String, TaskGraph, SystemGraph) {
    let mut random = Pcg64::from_seed([case as u8 + 100; 32]);
    let mut among = |from: usize, to: usize| from + index_below(random.next_u32(), to - from + 1);
    let (machine, system) = match case % 4 {
        0 => {
            let shape = [among(2, 4), among(4, 6), among(3, 5), among(2, 3)];
            (format!("tree {shape:?}"), tree(&shape))
        }
        1 => {
            let sides = [among(8, 13), among(8, 13), 1];
            (format!("torus {sides:?}"), torus(sides, 1 + among(0, 1)))
        }
        2 => {
            let sides = [among(4, 6), among(4, 6), among(4, 6)];
            (format!("torus {sides:?}"), torus(sides, 1))
        }
        _ => {
            let shape = [among(2, 4), among(4, 8), among(4, 8), among(2, 4)];
            (format!("fat tree {shape:?}"), fat_tree(&shape))
        }
    };
    let slots = system.slots.len();
    let ranks = slots - among(0, slots / 8);
    let mut bytes: BTreeMap<(u32, u32), u64> = BTreeMap::new();
    let width = among(3, 9);
    match case / 4 % 3 {
        // A stencil in rows, in a random order of ranks.
        0 => {
            let order = hopmap_objective::random(ranks, ranks, [case as u8; 32]);
            for at in 0..ranks {
                for step in [1, width].into_iter().filter(|step| at + step < ranks) {
                    let (a, b) = (order[at], order[at + step]);
                    bytes.extend([((a, b), 1000), ((b, a), 1000)]);
                }
            }
        }
        // Random partners, and different sizes.
        1 => {
            for rank in 0..ranks {
                for _ in 0..width / 2 {
                    let other = among(0, ranks - 1);
                    bytes.insert((rank as u32, other as u32), among(1, 1000) as u64);
                }
            }
        }
        // Groups with all-to-all traffic, and a few messages between them.
        _ => {
            for rank in 0..ranks {
                let group = rank % (ranks / width).max(1);
                for other in
                    (0..ranks).filter(|other| other % (ranks / width).max(1) == group && *other != rank)
                {
                    bytes.insert((rank as u32, other as u32), 100);
                }
                bytes.insert((rank as u32, among(0, ranks - 1) as u32), 300);
            }
        }
    }
    let edges = bytes.into_iter().filter(|((a, b), _)| a != b);
    let edge = |((source, destination), bytes)| Edge { source, destination, messages: 1, bytes };
    let graph = TaskGraph {
        processes: vec![Process::default(); ranks],
        edges: edges.map(edge).collect(),
        ..TaskGraph::default()
    };
    (format!("{case} {machine} {ranks}"), graph, system)
}

/// Hosts of some slots, and links of both directions between nodes of which the first are hosts.
fn system(hosts: usize, slots: usize, nodes: usize, ends: &[(usize, usize)]) -> SystemGraph {
    let kind = |node| if node < hosts { NodeKind::Host } else { NodeKind::Switch };
    let link = |(at, (a, b)): (usize, (usize, usize))| Link {
        bandwidth_bytes_per_s: Some([1e9, 2e9, 5e8][at / 2 % 3]),
        ..Link::new(a as u32, b as u32)
    };
    SystemGraph {
        routing: hopmap_model::Routing::default(),
        nodes: (0..nodes).map(|node| Node::new(format!("n{node}"), kind(node))).collect(),
        links: ends.iter().flat_map(|&(a, b)| [(a, b), (b, a)]).enumerate().map(link).collect(),
        slots: (0..hosts * slots)
            .map(|slot| Slot { host: (slot / slots) as u32, core: (slot % slots) as u32 })
            .collect(),
        cost: CostModel::Routes(RouteCosts {
            metric: RouteMetric::Hops,
            inside: Levels {
                costs: vec![0.0],
                groups: vec![(0..hosts * slots).map(|slot| (slot / slots) as u32).collect()],
            },
        }),
        calibration: Vec::new(),
    }
}

/// Slots of a host, hosts of a switch, and so on.
fn tree(shape: &[usize]) -> SystemGraph {
    let hosts: usize = shape[1..].iter().product();
    let (mut ends, mut first, mut below) = (Vec::new(), 0, hosts);
    for width in &shape[1..] {
        ends.extend((0..below).map(|node| (first + node, first + below + node / width)));
        (first, below) = (first + below, below / width);
    }
    system(hosts, shape[0], first + 1, &ends)
}

fn torus([x, y, z]: [usize; 3], slots: usize) -> SystemGraph {
    let node = |a: usize, b: usize, c: usize| (c % z * y + b % y) * x + a % x;
    let mut ends = Vec::new();
    for (a, b, c) in (0..z).flat_map(|c| (0..y).flat_map(move |b| (0..x).map(move |a| (a, b, c)))) {
        let next = [node(a + 1, b, c), node(a, b + 1, c), node(a, b, c + 1)];
        ends.extend(next.into_iter().filter(|&next| next != node(a, b, c)).map(|next| (node(a, b, c), next)));
    }
    system(x * y * z, slots, x * y * z, &ends)
}

/// Slots of a host, hosts of a leaf switch, leaf switches, and top switches that are connected to all of these.
fn fat_tree(&[slots, hosts, leaves, tops]: &[usize; 4]) -> SystemGraph {
    let all = hosts * leaves;
    let mut ends: Vec<(usize, usize)> = (0..all).map(|host| (host, all + host / hosts)).collect();
    ends.extend((0..leaves).flat_map(|leaf| (0..tops).map(move |top| (all + leaf, all + leaves + top))));
    system(all, slots, all + leaves + tops, &ends)
}
