//! The bound against the best of all mappings, for small random programs on small machines.

use hopmap_model::{Collective, CollectiveOperation, Program, ProgramBuilder, SystemGraph, Ties};
use hopmap_random::{Draw, Pcg64, SeedableRng};
use proptest::prelude::*;

use super::machines::{self, Builder};
use super::programs::{exchange, message};
use super::{Bound, bound_of, pairs, seconds};
use crate::costs::{Costs, Factors, Overhead};
use crate::network::Rate;
use crate::replay::Options;
use crate::sharing::Sharing;

fn choice<T: Copy>(random: &mut Pcg64, values: &[T]) -> T {
    values[random.below(values.len())]
}

fn rate(random: &mut Pcg64) -> (f64, f64) {
    (choice(random, &[0.0, 1e-6, 1e-5, 1e-3]), choice(random, &[1e6, 1e7, 1e9]))
}

/// A program of parts that are exchanges, sequences of blocking messages, computation, or all of them in turn.
fn program(random: &mut Pcg64, ranks: u32) -> Program {
    let mut builder = ProgramBuilder::new(ranks);
    let body: Vec<u64> = (0..=random.below(4)).map(|_| random.below(1 << 40) as u64).collect();
    for _ in 0..=random.below(4) {
        body.iter().for_each(|&seed| part(&mut builder, &mut Pcg64::seed_from_u64(seed)));
    }
    builder.finish().unwrap()
}

fn part(builder: &mut ProgramBuilder, random: &mut Pcg64) {
    let ranks = builder.ranks();
    let bytes = choice(random, &[0, 8, 1000, 20_000, 100_000]);
    let some = |random: &mut Pcg64| -> Vec<(u32, u32)> {
        let count = 1 + random.below(2 * ranks as usize);
        let draw = |random: &mut Pcg64| random.below(ranks as usize) as u32;
        (0..count).map(|_| (draw(random), draw(random))).collect()
    };
    match random.below(8) {
        0 => exchange(builder, &some(random), bytes),
        1 => some(random)
            .into_iter()
            .filter(|(source, destination)| source != destination)
            .for_each(|(source, destination)| message(builder, source, destination, bytes)),
        2 => (0..ranks).for_each(|rank| builder.compute(rank, choice(random, &[0.0, 1e-4, 1e-3]))),
        3 => {
            let all: Vec<_> = (0..ranks).flat_map(|a| (0..ranks).map(move |b| (a, b))).collect();
            let all: Vec<_> = all.into_iter().filter(|(a, b)| a != b).collect();
            exchange(builder, &all, bytes);
        }
        4 => {
            let shift = 1 + random.below(ranks as usize) as u32;
            let ring: Vec<_> = (0..ranks).map(|rank| (rank, (rank + shift) % ranks)).collect();
            exchange(builder, &ring, bytes);
        }
        5 | 6 => {
            let operation = choice(random, &CollectiveOperation::ALL);
            let root = operation.has_root().then(|| random.below(ranks as usize) as u32);
            let collective = Collective { communicator: 0, operation, root };
            let bytes = if operation == CollectiveOperation::Barrier { 0 } else { bytes };
            (0..ranks).for_each(|rank| builder.collective(rank, collective, bytes));
        }
        _ => {
            let root = random.below(ranks as usize) as u32;
            let star: Vec<_> = (0..ranks).filter(|&rank| rank != root).map(|rank| (rank, root)).collect();
            exchange(builder, &star, bytes);
        }
    }
}

fn machine(random: &mut Pcg64) -> (SystemGraph, Options) {
    let same = rate(random);
    let slots = 1 + random.below(2) as u32;
    let system = match random.below(8) {
        0 => machines::tree(&[4 / slots + 1], slots, same),
        1 => machines::tree(&[2, 2], slots, same),
        2 => machines::tree(&[3, 2], 1, same),
        3 => machines::fat_tree(2, 3, 2, 1, same),
        4 => machines::torus((2, 3), 1, same),
        5 => machines::ring_of_hosts(5, 1, same),
        6 => irregular(random),
        _ => {
            let rates = (0..3)
                .map(|_| rate(random))
                .map(|(latency_s, bandwidth_bytes_per_s)| Rate { latency_s, bandwidth_bytes_per_s });
            return pairs(3, rates.collect());
        }
    };
    (system, Options::default())
}

/// A random tree of switches with hosts of one or two slots, more links, and a rate of each.
fn irregular(random: &mut Pcg64) -> SystemGraph {
    let mut builder = Builder::new(choice(random, &[Ties::First, Ties::Spread]));
    let switches: Vec<u32> = (0..=random.below(3)).map(|_| builder.switch()).collect();
    for (index, &switch) in switches.iter().enumerate().skip(1) {
        builder.link(switch, switches[random.below(index)], rate(random));
    }
    if switches.len() > 2 && random.below(2) == 0 {
        builder.link(switches[0], switches[2], rate(random));
    }
    let mut slots = 0;
    while slots < 5 {
        let own = 1 + random.below(2) as u32;
        let host = builder.host(own);
        builder.link(host, choice(random, &switches), rate(random));
        slots += own;
    }
    builder.build()
}

fn options(random: &mut Pcg64, options: Options) -> Options {
    let costs = match random.below(4) {
        0 => Costs::smpi_protocols(),
        1 => Costs::smpi_defaults(),
        2 => Costs {
            send: Overhead::new([(0, 1e-5, 1e-9)]),
            isend: Overhead::new([(0, 2e-5, 0.0)]),
            recv: Overhead::new([(0, 1e-5, 0.0), (500, 3e-5, 0.0)]),
            latency_factor: Factors::new([(0, 0.5), (500, 2.0)]),
            bandwidth_factor: Factors::new([(0, 0.5), (500, 1.5)]),
            eager_limit: 1000,
            detached_limit: 50_000,
            ..Costs::default()
        },
        _ => Costs::default(),
    };
    let sharing = match random.below(3) {
        0 => Sharing::Rtt { bytes_per_link: 0.0 },
        _ => Sharing::MaxMin,
    };
    let packet_bytes = [0, 200, Options::PACKET_BYTES][random.below(3)];
    Options { sharing, packet_bytes, costs, ..options }
}

/// Calls for all ways to place ranks on slots.
fn all_mappings(ranks: usize, slots: u32, mapping: &mut Vec<u32>, visit: &mut dyn FnMut(&[u32])) {
    if mapping.len() == ranks {
        return visit(mapping);
    }
    for slot in 0..slots {
        if !mapping.contains(&slot) {
            mapping.push(slot);
            all_mappings(ranks, slots, mapping, visit);
            mapping.pop();
        }
    }
}

/// The bound of a random case, and the seconds of its best mapping.
fn bound_and_best(seed: u64) -> (Bound, f64) {
    let random = &mut Pcg64::seed_from_u64(seed);
    let (system, given) = machine(random);
    let options = options(random, given);
    let slots = system.slots.len();
    let ranks = (2 + random.below(5)).min(slots);
    let program = program(random, ranks as u32);
    let bound = bound_of(&program, &system, &options);
    let mut best = f64::INFINITY;
    all_mappings(ranks, slots as u32, &mut Vec::new(), &mut |mapping| {
        best = best.min(seconds(&program, &system, &options, mapping));
    });
    (bound, best)
}

/// Stars of messages of one packet, before exchanges of long ones over the same links.
#[test]
fn flows_after_packets_cost_no_more_than_in_the_replay() {
    let (bound, best) = bound_and_best(11_176_334_296_767_436_513);
    assert!(bound.seconds() <= best, "{bound:?} is above {best}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 80, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_mapping_is_faster_than_the_bound(seed in any::<u64>()) {
        let (bound, best) = bound_and_best(seed);
        prop_assert!(bound.seconds() <= best, "{bound:?} is above {best}");
    }
}
