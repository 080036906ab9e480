//! Asymmetric problems against an independent double sum.

use hopmap_model::{CostModel, Edge, Matrix, Node, Process, Slot, SystemGraph, TaskGraph, Weight};
use hopmap_objective::{Assignment, Deltas, Problem, Quality, random};
use proptest::prelude::*;

/// Bytes between ranks and costs between slots, row by row, including the diagonal.
#[derive(Debug, Clone)]
struct Instance {
    ranks: usize,
    slots: usize,
    bytes: Vec<u64>,
    costs: Vec<u64>,
}

impl Instance {
    fn program(&self) -> TaskGraph {
        let edge = |(at, &bytes): (usize, &u64)| Edge {
            source: (at / self.ranks) as u32,
            destination: (at % self.ranks) as u32,
            messages: 1,
            bytes,
        };
        TaskGraph {
            processes: vec![Process::default(); self.ranks],
            edges: self.bytes.iter().enumerate().filter(|(_, bytes)| **bytes > 0).map(edge).collect(),
            ..TaskGraph::default()
        }
    }

    fn machine(&self) -> SystemGraph {
        SystemGraph {
            routing: hopmap_model::Routing::default(),
            nodes: vec![Node::host("host")],
            links: Vec::new(),
            slots: (0..self.slots as u32).map(|core| Slot { host: 0, core }).collect(),
            cost: CostModel::Matrix(Matrix { costs: self.costs.iter().map(|&cost| cost as f64).collect() }),
            calibration: Vec::new(),
        }
    }

    fn problem(&self) -> Problem {
        Problem::new(&self.program(), &self.machine(), Weight::Bytes).unwrap()
    }

    fn cost(&self, slots: &[u32]) -> i64 {
        let pairs = (0..self.ranks).flat_map(|i| (0..self.ranks).map(move |j| (i, j)));
        let cost = |(i, j): (usize, usize)| {
            self.bytes[i * self.ranks + j] * self.costs[slots[i] as usize * self.slots + slots[j] as usize]
        };
        pairs.map(cost).sum::<u64>().cast_signed()
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

/// 7 ranks, some of them silent, on 10 slots: with small numbers and many edges, which are evaluated by rows,
/// or not.
fn instances() -> impl Strategy<Value = Instance> {
    let bytes = prop_oneof![
        prop::collection::vec(0u64..40, 49),
        prop::collection::vec(prop_oneof![4 => Just(0u64), 1 => 1u64..1_000_000], 49),
    ];
    (bytes, prop::collection::vec(0u64..60, 100)).prop_map(|(bytes, costs)| Instance {
        ranks: 7,
        slots: 10,
        bytes,
        costs,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn deltas_after_many_exchanges_equal_those_of_the_double_sum(
        instance in instances(),
        draws in prop::collection::vec(any::<prop::sample::Index>(), 1..40),
    ) {
        for problem in [instance.problem(), instance.problem().neighbour_by_neighbour()] {
            let start = Assignment::new(&problem, &random(7, 10, [3; 32])).unwrap();
            let mut deltas = Deltas::new(start, |_| true).unwrap();
            prop_assume!(deltas.movers() > 0);
            for draw in &draws {
                let slots = deltas.assignment().slots().to_vec();
                prop_assert_eq!(deltas.assignment().cost(), instance.cost(&slots));
                prop_assert_eq!(problem.cost(&slots), instance.cost(&slots));
                let mut pairs = Vec::new();
                for (mover, &rank) in problem.movable().iter().enumerate() {
                    for (index, &delta) in deltas.row(mover).iter().enumerate() {
                        let unit = mover + 1 + index;
                        let slot = deltas.slots()[unit];
                        prop_assert_eq!(delta, instance.delta(&slots, rank as usize, slot));
                        prop_assert_eq!(delta, deltas.assignment().delta(rank, slot));
                        pairs.push((mover, unit));
                    }
                }
                let (mover, unit) = pairs[draw.index(pairs.len())];
                deltas.exchange(mover, unit);
            }
        }
    }

    #[test]
    fn costs_are_those_of_the_metric(instance in instances(), seed in any::<u8>()) {
        let slots = random(7, 10, [seed; 32]);
        let (graph, system) = (instance.program(), instance.machine());
        let quality = Quality::new(&graph, &system, None, &slots, Weight::Bytes).unwrap();
        let problem = instance.problem();
        prop_assert!((problem.real(problem.cost(&slots)) - quality.f).abs() < 1e-6);
    }
}

#[test]
fn ranks_that_only_send_to_themselves_can_be_moved() {
    let instance =
        Instance { ranks: 2, slots: 3, bytes: vec![0, 0, 0, 5], costs: vec![4, 0, 0, 0, 3, 0, 0, 0, 1] };
    let problem = instance.problem();
    assert_eq!(problem.movable(), [1]);
    let assignment = Assignment::new(&problem, &[0, 1]).unwrap();
    assert_eq!((assignment.cost(), assignment.delta(1, 2), assignment.delta(1, 0)), (15, -10, 5));
    assert_eq!((assignment.delta(0, 1), assignment.delta(0, 2), assignment.delta(1, 1)), (5, 0, 0));
}
