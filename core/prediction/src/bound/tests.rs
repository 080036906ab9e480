//! The bound is never above the best mapping, and often near it.

mod exhaustive;
pub(super) mod machines;
mod programs;

use std::cell::Cell;
use std::collections::BTreeMap;

use hopmap_model::{
    Action, Collective, CollectiveOperation, CostModel, Edge, Envelope, Levels, Mapping, Node, Process,
    Program, ProgramBuilder, Routing, Slot, SystemGraph, TaskGraph, Ties, Weight,
};
use hopmap_random::{Draw, Pcg64, SeedableRng};

use super::{Bound, BoundError, BoundKind, bound, bound_of_totals};
use crate::network::{PairRates, Rate};
use crate::replay::{Options, replay};

fn seconds(program: &Program, system: &SystemGraph, options: &Options, slots: &[u32]) -> f64 {
    let mapping = Mapping::new(slots, system, Weight::Bytes).unwrap();
    replay(program, system, &mapping, options, &|| false).unwrap().seconds()
}

fn bound_of(program: &Program, system: &SystemGraph, options: &Options) -> Bound {
    bound(program, system, options, &|| false).unwrap()
}

/// A machine without links: hosts of two slots, and rates between slots by level.
pub(super) fn pairs(hosts: u32, rates: Vec<Rate>) -> (SystemGraph, Options) {
    let slots: Vec<Slot> = (0..hosts).flat_map(|host| (0..2).map(move |core| Slot { host, core })).collect();
    let groups = (0..rates.len())
        .map(|level| slots.iter().map(|slot| (slot.host * 2 + slot.core) >> (level + 1)).collect());
    let costs = (0..rates.len()).map(|level| level as f64).collect();
    let system = SystemGraph {
        nodes: (0..hosts).map(|host| Node::host(format!("h{host}"))).collect(),
        links: Vec::new(),
        cost: CostModel::Levels(Levels { costs, groups: groups.collect() }),
        slots,
        routing: Routing { forwarding: Vec::new(), ties: Ties::Spread },
        calibration: Vec::new(),
    };
    system.check().unwrap();
    (system, Options { pairs: Some(PairRates::Levels(rates)), ..Options::default() })
}

/// The best mapping of a local search over swaps: from linear and round-robin mappings, and from one of few
/// bytes × hops.
fn best_found(program: &Program, system: &SystemGraph, options: &Options, evaluations: usize) -> f64 {
    let slots = system.slots.len();
    let ranks = program.ranks() as usize;
    let linear: Vec<u32> = (0..slots as u32).collect();
    let mut round_robin = linear.clone();
    round_robin.sort_by_key(|&slot| (system.slots[slot as usize].core, slot));
    let hops = system.costs().block(&linear);
    let pairs = sent_bytes(program);
    let hop_bytes = |mapping: &[u32]| -> f64 {
        let cost = |&(a, b, bytes): &(u32, u32, f64)| {
            bytes * hops[mapping[a as usize] as usize * slots + mapping[b as usize] as usize]
        };
        pairs.iter().map(cost).sum()
    };
    let replayed = |mapping: &[u32]| seconds(program, system, options, &mapping[..ranks]);
    let mut placed: Vec<_> =
        (0..40).map(|seed| descend(shuffled(&linear, seed), ranks, 2000, seed, hop_bytes)).collect();
    placed.sort_by(|a, b| a.0.total_cmp(&b.0));
    let placed: Vec<u32> = placed
        .into_iter()
        .take(12)
        .map(|placed| placed.1)
        .min_by(|a, b| replayed(a).total_cmp(&replayed(b)))
        .unwrap();
    [linear, round_robin, placed]
        .into_iter()
        .map(|start| descend(start, ranks, evaluations / 3, 1, replayed).0)
        .fold(f64::INFINITY, f64::min)
}

fn shuffled(slots: &[u32], seed: u64) -> Vec<u32> {
    let mut random = Pcg64::seed_from_u64(seed);
    let mut slots = slots.to_vec();
    (1..slots.len()).rev().for_each(|last| slots.swap(last, random.below(last + 1)));
    slots
}

/// Swaps slots as long as that does not make a mapping worse.
fn descend(
    mut mapping: Vec<u32>,
    ranks: usize,
    swaps: usize,
    seed: u64,
    value: impl Fn(&[u32]) -> f64,
) -> (f64, Vec<u32>) {
    let mut random = Pcg64::seed_from_u64(seed);
    let mut current = value(&mapping);
    for _ in 0..swaps {
        let (a, b) = (random.below(ranks), random.below(mapping.len()));
        mapping.swap(a, b);
        let changed = value(&mapping);
        match changed <= current {
            true => current = changed,
            false => mapping.swap(a, b),
        }
    }
    (current, mapping)
}

/// Bytes of every message, by pair.
fn sent_bytes(program: &Program) -> Vec<(u32, u32, f64)> {
    let mut pairs = BTreeMap::new();
    for rank in 0..program.ranks() {
        for operation in program.of_rank(rank) {
            if let Action::Send { envelope, bytes } | Action::Isend { envelope, bytes, .. } =
                operation.action()
            {
                *pairs.entry((rank, program.envelopes[envelope as usize].peer)).or_insert(0.0) +=
                    bytes as f64;
            }
        }
    }
    pairs.into_iter().map(|((source, destination), bytes)| (source, destination, bytes)).collect()
}

struct Case {
    name: &'static str,
    program: Program,
    system: SystemGraph,
    options: Options,
}

fn cases() -> Vec<Case> {
    use programs::{all_to_all, butterfly, halo, many_to_one, ring, rows_and_columns, wavefront};
    let ethernet = (50e-6, 12.2e6);
    let fabric = (1e-6, 1.25e9);
    let tree = || machines::tree(&[2, 2, 2], 2, ethernet);
    let star = || machines::tree(&[8], 2, fabric);
    let two_level = || machines::fat_tree(4, 4, 2, 1, fabric);
    let torus = || machines::torus((4, 4), 1, fabric);
    let rate = |latency_s, bandwidth_bytes_per_s| Rate { latency_s, bandwidth_bytes_per_s };
    let emulated = || {
        let rates = [(5e-7, 1e10), (2e-4, 1.25e7), (5e-4, 1.25e7), (1e-3, 1.25e7)];
        pairs(8, rates.map(|(latency_s, bandwidth)| rate(latency_s, bandwidth)).to_vec())
    };
    let case = |name, program, system| Case { name, program, system, options: Options::default() };
    let on_pairs = |name, program| {
        let (system, options) = emulated();
        Case { name, program, system, options }
    };
    vec![
        case("halo 64 KiB, tree (section M)", halo(4, false, 65536, 0.0, 5), tree()),
        case("halo 1 KiB, tree (section M)", halo(4, false, 1024, 0.0, 5), tree()),
        on_pairs("halo 8 KB, pairs (section M)", halo(4, false, 8000, 0.0, 5)),
        on_pairs("halo 256 KB, pairs (section M)", halo(4, false, 256_000, 0.0, 5)),
        case("periodic halo 64 KiB and 20 ms, tree", halo(4, true, 65536, 0.02, 5), tree()),
        case("halo 16 KiB and 20 µs, two levels", halo(4, false, 16384, 2e-5, 5), two_level()),
        case("halo 1 MiB, torus", halo(4, true, 1 << 20, 0.0, 5), torus()),
        case("all-to-all of 4, 64 KiB, tree", all_to_all(16, 4, 65536, 0.0, 5), tree()),
        case("all-to-all of 4, 64 B, tree", all_to_all(16, 4, 64, 0.0, 5), tree()),
        case("all-to-all of 8, 1 MiB, star", all_to_all(16, 8, 1 << 20, 0.0, 5), star()),
        case("wavefront 1 KiB and 100 µs, tree", wavefront(4, 1024, 1e-4, 3), tree()),
        case("wavefront 256 KiB, two levels", wavefront(4, 1 << 18, 0.0, 3), two_level()),
        case("butterfly 64 B, tree", butterfly(16, 64, 0.0, 5), tree()),
        case("butterfly 256 KiB, tree", butterfly(16, 1 << 18, 0.0, 5), tree()),
        case("ring 64 B, torus", ring(16, 64, 0.0, 20), torus()),
        case("ring 64 KiB and 1 ms, tree", ring(16, 65536, 1e-3, 5), tree()),
        case("many to one 64 KiB, tree", many_to_one(16, 65536, 0.0, 5), tree()),
        case("many to one 1 KiB and 10 µs, star", many_to_one(16, 1024, 1e-5, 5), star()),
        case("rows and columns 64 KiB, tree", rows_and_columns(4, 65536, 0.0, 5), tree()),
        case("rows and columns 64 B and 10 µs, two levels", rows_and_columns(4, 64, 1e-5, 5), two_level()),
    ]
}

#[test]
fn the_bound_is_near_the_best_found_in_half_of_the_cases() {
    let evaluations = std::env::var("HOPMAP_BOUND_EVALUATIONS").map_or(90, |text| text.parse().unwrap());
    let mut table = String::new();
    let mut near = 0;
    for Case { name, program, system, options } in cases() {
        let found = best_found(&program, &system, &options, evaluations);
        let bound = bound_of(&program, &system, &options);
        let ratio = bound.seconds() / found;
        near += usize::from(ratio >= 0.9);
        let Bound { computation_s, clocks_s, separated_s, mean_path_s, cut_s, cut_slots } = bound;
        let parts = [computation_s, clocks_s, separated_s, mean_path_s, cut_s].map(|part| part / found);
        table += &format!("{name:45} {found:.6} {ratio:.3} {parts:.3?} {cut_slots:?}\n");
        assert!(ratio <= 1.0, "{name}: {ratio}");
    }
    assert!(near >= 10, "{table}{near} of 20");
}

fn barrier() -> Collective {
    Collective { communicator: 0, operation: CollectiveOperation::Barrier, root: None }
}

#[test]
fn computation_and_cuts_of_synchronised_iterations_add_up() {
    let seconds_of_iteration = 0.03;
    let iterations = 8;
    let messages: Vec<_> = (0..8).flat_map(|a| (0..8).map(move |b| (a, b))).filter(|(a, b)| a != b).collect();
    let mut builder = ProgramBuilder::new(8);
    for _ in 0..iterations {
        (0..8).for_each(|rank| builder.compute(rank, seconds_of_iteration));
        programs::exchange(&mut builder, &messages, 10_000);
        (0..8).for_each(|rank| builder.collective(rank, barrier(), 0));
    }
    let program = builder.finish().unwrap();
    let system = machines::tree(&[2, 4], 1, (1e-5, 1e7));
    let bound = bound_of(&program, &system, &Options::default());
    // Four ranks send to the four others over one link.
    let of_iteration = seconds_of_iteration + 16.0 * 10_000.0 / 1e7;
    assert!(bound.clocks_s > f64::from(iterations) * of_iteration, "{bound:?}");
    let found = seconds(&program, &system, &Options::default(), &[0, 1, 2, 3, 4, 5, 6, 7]);
    assert!(bound.seconds() <= found && bound.seconds() > 0.95 * found, "{bound:?} {found}");
}

#[test]
fn a_cut_lies_between_computation_before_and_after_it() {
    let mut builder = ProgramBuilder::new(4);
    (0..4).for_each(|rank| builder.compute(rank, 1.0));
    programs::exchange(&mut builder, &[(0, 1), (0, 2), (0, 3)], 10_000_000);
    (0..4).for_each(|rank| builder.compute(rank, 2.0));
    let program = builder.finish().unwrap();
    let bound = bound_of(&program, &machines::tree(&[2], 2, (0.0, 1e7)), &Options::default());
    assert_eq!(bound.cut_slots, Some(2));
    assert!((bound.cut_s - 5.0).abs() < 1e-6, "{bound:?}");
}

/// The packet passes both links during the latency of the flow.
#[test]
fn a_packet_costs_nothing_before_a_flow_that_has_to_wait_for_its_latency() {
    let system = machines::tree(&[2], 1, (1e-3, 1e6));
    let envelope = |peer| Envelope { peer, tag: 0, communicator: 0 };
    let mut builder = ProgramBuilder::new(2);
    for bytes in [1000, 100_000] {
        builder.isend(0, envelope(1), bytes);
        builder.irecv(1, envelope(0), bytes);
    }
    (0..2).for_each(|rank| builder.waitall(rank));
    let program = builder.finish().unwrap();
    let replayed = seconds(&program, &system, &Options::default(), &[0, 1]);
    assert!((replayed - 0.102).abs() < 1e-9, "{replayed}");
    let bound = bound_of(&program, &system, &Options::default()).seconds();
    assert!(bound <= replayed && bound > 0.999 * replayed, "{bound} of {replayed}");
}

#[test]
fn totals_bound_computation_and_the_links_of_the_busiest_host() {
    let process = |compute_s| Process { compute_s: Some(compute_s), ..Process::default() };
    let edge = |source, destination, bytes| Edge { source, destination, messages: 1, bytes };
    let mut program = TaskGraph {
        processes: (0..4).map(|_| process(0.5)).collect(),
        edges: vec![edge(0, 1, 10_000_000), edge(0, 2, 20_000_000), edge(0, 3, 30_000_000)],
        ..TaskGraph::default()
    };
    let system = machines::tree(&[2], 2, (0.0, 1e7));
    let bound = bound_of_totals(&program, &system, &|| false).unwrap();
    // The largest message stays in the host of its ranks.
    assert_eq!((bound.largest().1, bound.cut_slots), (BoundKind::Cut, Some(2)));
    assert!((bound.seconds() - 3.0).abs() < 1e-6, "{bound:?}");
    program.processes[3] = process(7.0);
    let bound = bound_of_totals(&program, &system, &|| false).unwrap();
    assert_eq!(bound.largest(), (7.0, BoundKind::Computation));
    assert!(matches!(bound_of_totals(&program, &system, &|| true), Err(BoundError::Stopped)));
}

#[test]
fn a_cycle_too_few_slots_and_a_stop_are_errors() {
    let system = machines::tree(&[2], 1, (0.0, 1e7));
    let options = Options::default();
    let envelope = |peer| Envelope { peer, tag: 0, communicator: 0 };
    let mut builder = ProgramBuilder::new(2);
    for rank in 0..2 {
        builder.send(rank, envelope(1 - rank), 1 << 20);
        builder.recv(rank, envelope(1 - rank), 1 << 20);
    }
    let program = builder.finish().unwrap();
    let error = bound(&program, &system, &options, &|| false).unwrap_err();
    assert!(matches!(error, BoundError::Deadlock { .. }), "{error}");
    let program = programs::ring(3, 8, 0.0, 1);
    let error = bound(&program, &system, &options, &|| false).unwrap_err();
    assert!(matches!(error, BoundError::TooFewSlots { ranks: 3, slots: 2 }), "{error}");
    let system = machines::tree(&[3], 1, (0.0, 1e7));
    for checks in 0..12 {
        let left = Cell::new(checks);
        let stop = || left.replace(left.get() - 1) <= 0;
        let error = bound(&program, &system, &options, &stop).unwrap_err();
        assert!(matches!(error, BoundError::Stopped), "{error}");
    }
}

#[test]
fn a_program_without_messages_takes_its_computation() {
    let mut builder = ProgramBuilder::new(2);
    builder.compute(1, 2.5);
    let system = machines::tree(&[2], 1, (0.0, 1e7));
    let bound = bound_of(&builder.finish().unwrap(), &system, &Options::default());
    assert!((bound.seconds() - 2.5).abs() < 1e-6 && bound.cut_s == 0.0, "{bound:?}");
    let nothing = bound_of(&ProgramBuilder::new(2).finish().unwrap(), &system, &Options::default());
    assert_eq!(nothing, Bound::default());
}

#[test]
fn a_host_that_others_cannot_reach_is_an_error() {
    let mut builder = machines::Builder::new(Ties::Spread);
    let switch = builder.switch();
    for _ in 0..2 {
        let host = builder.host(1);
        builder.link(host, switch, (1e-5, 100.0));
    }
    builder.host(1);
    let system = builder.build();
    let mut program = ProgramBuilder::new(2);
    program.compute(0, 1.0);
    let error = bound(&program.finish().unwrap(), &system, &Options::default(), &|| false).unwrap_err();
    assert_eq!(error.to_string(), "host `h3` cannot reach host `h1`");
    let error = bound_of_totals(&TaskGraph::default(), &system, &|| false).unwrap_err();
    assert_eq!(error.to_string(), "host `h3` cannot reach host `h1`");
}
