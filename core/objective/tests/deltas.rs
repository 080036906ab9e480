//! Deltas of all exchanges, and exchanges of dense programs, against an independent double sum.

use hopmap_model::{CostModel, Edge, Levels, Node, Process, Slot, SystemGraph, TaskGraph, Weight};
use hopmap_objective::{Assignment, Deltas, Problem, random};
use proptest::prelude::*;

/// Bytes between ranks, and the number of slots of a group on every level.
#[derive(Debug, Clone)]
struct Instance {
    bytes: Vec<Vec<u64>>,
    sizes: Vec<u32>,
    slots: u32,
}

impl Instance {
    fn problem(&self) -> Problem {
        let ranks = self.bytes.len() as u32;
        let pairs = (0..ranks).flat_map(|source| (0..ranks).map(move |destination| (source, destination)));
        let edges = pairs.map(|(source, destination)| {
            let bytes = self.bytes[source as usize][destination as usize];
            Edge { source, destination, messages: u64::from(bytes > 0), bytes }
        });
        let graph = TaskGraph {
            processes: vec![Process::default(); ranks as usize],
            edges: edges.filter(|edge| edge.bytes > 0).collect(),
            ..TaskGraph::default()
        };
        let groups = |size: &u32| (0..self.slots).map(|slot| slot / size).collect();
        let system = SystemGraph {
            routing: hopmap_model::Routing::default(),
            nodes: vec![Node::host("host")],
            links: Vec::new(),
            slots: (0..self.slots).map(|core| Slot { host: 0, core }).collect(),
            cost: CostModel::Levels(Levels {
                costs: (0..self.sizes.len()).map(|level| (level * level + 1) as f64).collect(),
                groups: self.sizes.iter().map(groups).collect(),
            }),
            calibration: Vec::new(),
        };
        Problem::new(&graph, &system, Weight::Bytes).unwrap()
    }

    fn cost(&self, slots: &[u32]) -> i64 {
        let mut sum = 0;
        for (i, row) in self.bytes.iter().enumerate() {
            for (j, &bytes) in row.iter().enumerate() {
                let meeting = self.sizes.iter().position(|size| slots[i] / size == slots[j] / size).unwrap();
                let cost = if slots[i] == slots[j] { 0 } else { meeting * meeting + 1 };
                sum += (bytes * cost as u64).cast_signed();
            }
        }
        sum
    }

    /// Change of cost if a rank moves to a slot and a rank there to its own slot.
    fn delta(&self, slots: &[u32], rank: usize, slot: u32) -> i64 {
        let mut after = slots.to_vec();
        if let Some(other) = slots.iter().position(|&taken| taken == slot) {
            after[other] = slots[rank];
        }
        after[rank] = slot;
        self.cost(&after) - self.cost(slots)
    }
}

/// Programs of 7 ranks, some of them silent, sparse or dense, on machines of 12 slots.
fn instance() -> impl Strategy<Value = Instance> {
    let bytes = prop_oneof![3 => Just(0u64), 2 => 1u64..100, 1 => 1u64..10_000_000];
    let matrix = prop::collection::vec(prop::collection::vec(bytes, 7), 7);
    let sizes = prop_oneof![Just(vec![2, 4, 12]), Just(vec![1, 3, 12]), Just(vec![6, 12])];
    (matrix, sizes).prop_map(|(bytes, sizes)| Instance { bytes, sizes, slots: 12 })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn deltas_after_many_exchanges_equal_those_of_the_double_sum(
        instance in instance(),
        draws in prop::collection::vec(any::<prop::sample::Index>(), 1..60),
    ) {
        let problem = instance.problem();
        let start = Assignment::new(&problem, &random(7, 12, [3; 32])).unwrap();
        let mut deltas = Deltas::new(start, |_| true).unwrap();
        let movers: Vec<usize> = (0..7)
            .filter(|&rank| !problem.neighbours(rank as u32).is_empty())
            .collect();
        prop_assert_eq!(deltas.movers(), movers.len());
        prop_assume!(!movers.is_empty());
        for draw in draws {
            let slots = deltas.assignment().slots().to_vec();
            prop_assert_eq!(deltas.assignment().cost(), instance.cost(&slots));
            let mut pairs = Vec::new();
            for (mover, &rank) in movers.iter().enumerate() {
                prop_assert_eq!(deltas.slots()[mover], slots[rank]);
                prop_assert!(deltas.row(mover).iter().all(|&delta| deltas.least(mover) <= delta));
                for (index, &delta) in deltas.row(mover).iter().enumerate() {
                    let unit = mover + 1 + index;
                    prop_assert_eq!(delta, instance.delta(&slots, rank, deltas.slots()[unit]));
                    pairs.push((mover, unit));
                }
            }
            prop_assert_eq!(pairs.len() as u64, Deltas::pairs(&problem));
            let (mover, unit) = pairs[draw.index(pairs.len())];
            deltas.exchange(mover, unit);
        }
    }
}

/// All-to-all communication, in bytes whose differences need a given integer type.
fn everybody(ranks: u64, slots: u32, unit: u64, kinds: u64) -> Instance {
    let bytes = |i: u64, j: u64| if i == j { 0 } else { unit * ((i * 31 + j * 17) % kinds) };
    Instance {
        bytes: (0..ranks).map(|i| (0..ranks).map(|j| bytes(i, j)).collect()).collect(),
        sizes: vec![4, 8, slots],
        slots,
    }
}

#[test]
fn exchanges_of_a_dense_program_equal_those_of_the_double_sum() {
    for (unit, kinds) in [(1, 50), (4096, 50), (8, 5000), (3, 1_000_003)] {
        let instance = everybody(40, 64, unit, kinds);
        let problem = instance.problem();
        #[cfg(target_arch = "x86_64")]
        assert!(problem.is_compact() || !std::arch::is_x86_feature_detected!("avx2"));
        let plain = problem.clone().neighbour_by_neighbour();
        let start = random(40, 64, [1; 32]);
        let mut fast = Assignment::new(&problem, &start).unwrap();
        let mut plain_assignment = Assignment::new(&plain, &start).unwrap();
        for step in 0..600u32 {
            let (rank, slot) = (step * 7 % 40, step * 29 % 64);
            let delta = fast.delta(rank, slot);
            assert_eq!(delta, plain_assignment.delta(rank, slot));
            if step % 20 == 0 {
                assert_eq!(delta, instance.delta(fast.slots(), rank as usize, slot));
            }
            fast.exchange(rank, slot, delta);
            plain_assignment.exchange(rank, slot, delta);
        }
        assert_eq!(fast.slots(), plain_assignment.slots());
        assert_eq!(fast.cost(), instance.cost(fast.slots()));
    }
}

#[test]
fn deltas_of_a_dense_program_stay_correct() {
    let instance = everybody(20, 24, 1, 50);
    let problem = instance.problem();
    let start = Assignment::new(&problem, &random(20, 24, [5; 32])).unwrap();
    let mut deltas = Deltas::new(start, |_| true).unwrap();
    for step in 0..500 {
        let mover = step * 7 % 20;
        deltas.exchange(mover, mover + 1 + step * 11 % (23 - mover));
    }
    let slots = deltas.assignment().slots();
    for mover in 0..20 {
        for (index, &delta) in deltas.row(mover).iter().enumerate() {
            assert_eq!(delta, instance.delta(slots, mover, deltas.slots()[mover + 1 + index]));
        }
    }
}
