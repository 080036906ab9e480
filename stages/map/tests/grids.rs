//! Programs that are grids, in any order of ranks, on machines that are grids.

use hopmap_map::{AutoParams, AutoStage, LinearParams, LinearStage};
use hopmap_model::{
    CostModel, Levels, Link, Mapping, Node, RouteCosts, RouteMetric, Routing, Slot, SystemGraph, TaskGraph,
    Ties,
};
use hopmap_objective::Objective;
use hopmap_random::{Draw, Pcg64, SeedableRng};
use proptest::prelude::*;

use crate::common::{graph, run};

/// Pairs of adjacent points of a grid, in one direction, numbered with the first dimension fastest; with
/// `diagonals` also along several dimensions.
fn pairs(sides: &[u32], is_periodic: bool, diagonals: bool) -> Vec<(u32, u32)> {
    let points: u32 = sides.iter().product();
    let mut pairs = Vec::new();
    for one in 0..points {
        for other in 0..points {
            let (mut a, mut b, mut steps, mut is_adjacent) = (one, other, 0, true);
            for &side in sides {
                let apart = (a % side).abs_diff(b % side);
                let apart = if is_periodic { apart.min(side - apart) } else { apart };
                is_adjacent &= apart <= 1;
                steps += apart;
                (a, b) = (a / side, b / side);
            }
            if is_adjacent && one < other && (steps == 1 || diagonals && steps > 1) {
                pairs.push((one, other));
            }
        }
    }
    pairs
}

/// Hosts at the points of a grid, in the order of their numbers; costs are hops.
fn machine(sides: &[u32], is_periodic: bool, cores: u32) -> SystemGraph {
    let hosts: u32 = sides.iter().product();
    let cables = pairs(sides, is_periodic, false);
    SystemGraph {
        nodes: (0..hosts).map(|host| Node::host(format!("h{host}"))).collect(),
        links: cables.into_iter().flat_map(|(a, b)| [Link::new(a, b), Link::new(b, a)]).collect(),
        slots: (0..hosts * cores).map(|slot| Slot { host: slot / cores, core: slot % cores }).collect(),
        cost: CostModel::Routes(RouteCosts {
            metric: RouteMetric::Hops,
            inside: Levels {
                costs: vec![0.0],
                groups: vec![(0..hosts * cores).map(|slot| slot / cores).collect()],
            },
        }),
        routing: Routing { ties: Ties::First, ..Routing::default() },
        calibration: Vec::new(),
    }
}

fn random(seed: u8) -> Pcg64 {
    Pcg64::from_seed([seed; 32])
}

/// The ranks of these pairs in random order; every pair sends one byte.
fn shuffled(ranks: u32, pairs: &[(u32, u32)], seed: u8) -> TaskGraph {
    let mut order: Vec<u32> = (0..ranks).collect();
    random(seed).shuffle(&mut order);
    graph(ranks as usize, pairs.iter().map(|&(a, b)| (order[a as usize], order[b as usize], 1)))
}

/// The mapping of the start: no evaluations are left for a search.
fn start(graph: &TaskGraph, system: &SystemGraph) -> Mapping {
    let params = AutoParams {
        objective: Objective::HOP_BYTES.into(),
        evaluations: Some(1),
        islands: 1,
        ..AutoParams::default()
    };
    let mapping = run::<AutoStage>(params, graph, system);
    mapping.check().unwrap();
    mapping
}

fn hop_bytes(mapping: &Mapping) -> u64 {
    mapping.metrics["hop_bytes"].round() as u64
}

#[test]
fn a_stencil_in_any_order_is_optimal_on_its_own_mesh_and_torus() {
    let shapes: [&[u32]; 9] =
        [&[2, 3], &[16, 16], &[5, 9], &[4, 4, 4], &[8, 8, 8], &[3, 4, 5], &[6, 2, 7], &[4, 3, 2, 5], &[300]];
    for (seed, sides) in (0..).zip(shapes) {
        for [machine_wraps, program_wraps] in [[false, false], [true, false], [true, true]] {
            let pairs = pairs(sides, program_wraps, false);
            let graph = shuffled(sides.iter().product(), &pairs, seed);
            let mapping = start(&graph, &machine(sides, machine_wraps, 1));
            assert_eq!(hop_bytes(&mapping), pairs.len() as u64, "{sides:?} {machine_wraps} {program_wraps}");
        }
    }
}

#[test]
fn diagonal_neighbours_do_not_hide_a_grid() {
    for (seed, sides) in (0..).zip([&[7, 9][..], &[5, 6, 4]]) {
        let pairs = pairs(sides, false, true);
        let graph = shuffled(sides.iter().product(), &pairs, seed);
        let ordered = graph_in_order(sides, &pairs);
        let machine = machine(sides, false, 1);
        assert_eq!(hop_bytes(&start(&graph, &machine)), hop_bytes(&start(&ordered, &machine)));
    }
}

/// Many extra edges hide the grid; the halves of the machine still fit those of the program.
#[test]
fn a_program_that_is_no_grid_is_cut_along_the_machine() {
    let sides = [8, 8, 8];
    let mut edges = pairs(&sides, false, false);
    let mut random = random(1);
    for _ in 0..edges.len() / 2 {
        let [a, b] = [0, 0].map(|_| random.next_u32() % 512);
        edges.extend((a != b).then_some((a.min(b), a.max(b))));
    }
    let machine = machine(&sides, false, 1);
    let found = hop_bytes(&start(&shuffled(512, &edges, 2), &machine));
    let ordered = run::<LinearStage>(LinearParams::default(), &graph_in_order(&sides, &edges), &machine);
    let best = hop_bytes(&ordered);
    assert!(100 * found <= 115 * best, "{found} and {best}");
}

#[test]
fn the_number_of_threads_changes_no_bisection() {
    let sides = [6, 8];
    let (graph, machine) = (shuffled(96, &pairs(&[8, 12], true, true), 3), machine(&sides, true, 2));
    let found = [1, 3].map(|threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| start(&graph, &machine))
    });
    assert_eq!(found[0], found[1]);
}

fn graph_in_order(sides: &[u32], pairs: &[(u32, u32)]) -> TaskGraph {
    graph(sides.iter().product::<u32>() as usize, pairs.iter().map(|&(a, b)| (a, b, 1)))
}

#[test]
fn grids_of_other_shapes_are_split_folded_and_cut_into_blocks() {
    // Program, periodic; machine, periodic, slots of a host; hop-bytes.
    type Case = (&'static [u32], bool, &'static [u32], bool, u32, u64);
    let cases: [Case; 7] = [
        // A snake: every edge is one link.
        (&[256], false, &[16, 16], false, 1, 255),
        (&[64], true, &[8, 8], true, 1, 64),
        // A ring on a line: every link twice.
        (&[12], true, &[12], false, 1, 22),
        // 64 = 16 · 4: a snake of four rows.
        (&[64, 4], false, &[16, 16], false, 1, 480),
        // The other order of axes, and a part of a larger machine.
        (&[3, 5, 2], false, &[2, 3, 5], true, 1, 59),
        (&[4, 4], false, &[6, 7], false, 1, 24),
        // Blocks of 2 × 2: two edges between adjacent blocks.
        (&[16, 16], false, &[8, 8], true, 4, 224),
    ];
    for (seed, (program, wraps, sides, machine_wraps, slots, best)) in (0..).zip(cases) {
        let graph = shuffled(program.iter().product(), &pairs(program, wraps, false), seed);
        let mapping = start(&graph, &machine(sides, machine_wraps, slots));
        assert_eq!(hop_bytes(&mapping), best, "{program:?} on {sides:?}");
    }
}

/// Extra edges, unequal weights and missing ranks: at most a few per cent worse than the order from which the
/// program was made. Once extra edges hid box stencils.
#[test]
fn a_few_wrong_edges_and_missing_ranks_are_outvoted() {
    let shapes = [&[8, 8, 8][..], &[16, 16], &[12, 20], &[6, 10, 7]];
    let cases = (1..).zip(shapes).flat_map(|(seed, sides)| [(seed, sides, false), (seed, sides, true)]);
    for (seed, sides, is_box) in cases {
        let mut random = random(seed);
        let points: u32 = sides.iter().product();
        let mut edges = pairs(sides, false, is_box);
        for _ in 0..edges.len() / 20 {
            let [a, b] = [0, 0].map(|_| random.next_u32() % points);
            edges.push((a.min(b), a.max(b)));
        }
        let is_missing: Vec<bool> = (0..points).map(|_| random.next_u32() % 100 < 8).collect();
        edges.retain(|edge| {
            edge.0 != edge.1 && ![edge.0, edge.1].iter().any(|&rank| is_missing[rank as usize])
        });
        let left: Vec<u32> = (0..points).filter(|&rank| !is_missing[rank as usize]).collect();
        let mut order: Vec<u32> = (0..left.len() as u32).collect();
        random.shuffle(&mut order);
        let number = |point: u32| order[left.binary_search(&point).unwrap()];
        let weighed = edges.iter().map(|&(a, b)| (number(a), number(b), 1 + random.next_u64() % 3));
        let graph = graph(left.len(), weighed.collect::<Vec<_>>());
        let machine = machine(sides, false, 1);
        let slots: Vec<u32> = {
            let mut slots = vec![0; left.len()];
            left.iter().for_each(|&point| slots[number(point) as usize] = point);
            slots
        };
        let quality = hopmap_objective::Quality::new(
            &graph,
            &machine,
            hopmap_model::Paths::new(&machine).as_ref(),
            &slots,
            hopmap_model::Weight::Bytes,
        );
        let best = quality.unwrap().metrics()["hop_bytes"];
        let found = start(&graph, &machine).metrics["hop_bytes"];
        assert!(found <= 1.1 * best, "{sides:?}, {is_box}: {found} and {best}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    /// Any grid on any grid with room for it gives a mapping, not worse than the order of the ranks.
    #[test]
    fn an_embedding_is_a_mapping(
        program in prop::collection::vec(1u32..6, 1..4),
        sides in prop::collection::vec(2u32..6, 1..4),
        [wraps, machine_wraps, diagonals] in any::<[bool; 3]>(),
        seed in any::<u8>(),
    ) {
        let (ranks, hosts): (u32, u32) = (program.iter().product(), sides.iter().product());
        let graph = shuffled(ranks, &pairs(&program, wraps, diagonals), seed);
        let machine = machine(&sides, machine_wraps, ranks.div_ceil(hosts));
        let mapping = start(&graph, &machine);
        let linear = run::<LinearStage>(LinearParams::default(), &graph, &machine);
        prop_assert!(hop_bytes(&mapping) <= hop_bytes(&linear));
    }
}
