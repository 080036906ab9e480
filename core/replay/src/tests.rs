//! Properties of placements of arbitrary programs.

use hopmap_model::{DelayModel, WorkUnit};
use hopmap_test_support::small_programs;
use proptest::prelude::*;

use crate::distances::{Distances, Level, Tree};
use crate::exchange::ExchangeEvaluator;
use crate::machine::{Linear, Lookup, Machine, Measured, Network};
use crate::problem::{MakespanEvaluator, ReplayProblem};
use crate::steps::{Step, steps};

const MODELS: [DelayModel; 2] = [DelayModel::Overlap, DelayModel::Receive];

/// A tree, a measured machine in which messages within a processor also take time, and one with different
/// speeds.
fn machine(kind: u8) -> Machine {
    let mut machine = Machine::uniform(6, Linear::FREE).unwrap();
    let level = |class, groups: [u32; 6]| Level { class, groups: groups.to_vec() };
    let tree = Tree { own: 0, levels: vec![level(1, [0, 0, 1, 1, 2, 2]), level(2, [0; 6])] };
    let classes =
        [(0.0, 0.0), (2.0, 2.0), (8.0, 8.0)].map(|(latency, per_byte)| Linear { latency, per_byte });
    machine.network = Network::Linear { distances: Distances::Tree(tree), classes: classes.to_vec() };
    match kind {
        0 => {}
        1 => {
            let times = |length: u64| (0..36).map(|pair| ((pair * 7 + 3 * length) % 11) as f64).collect();
            let measured = Measured::new(6, vec![1, 2], vec![times(1), times(2)], Lookup::Parus);
            machine.network = Network::Measured(measured);
        }
        _ => {
            machine.pace = vec![1.0, 2.0, 1.5, 1.0, 3.0, 1.0];
            let available = [0.0, 5.0, 1.0, 9.0, 0.0, 0.0];
            machine = machine.with_available(&available).unwrap();
        }
    }
    machine
}

/// A placement of four ranks on six slots, by its number.
fn placement(mut number: usize) -> Vec<u32> {
    let mut left: Vec<u32> = (0..6).collect();
    let mut next = |bound: usize| {
        let digit = number % bound;
        number /= bound;
        left.remove(digit)
    };
    [6, 5, 4, 3].map(&mut next).to_vec()
}

const PLACEMENTS: usize = 6 * 5 * 4 * 3;

proptest! {
    /// Early ends of a pass and rejections by a path are correct.
    #[test]
    fn exchanges_agree_with_a_pass(
        dag in small_programs(), kind in 0u8..3, number in 0..PLACEMENTS,
        moves in prop::collection::vec((0usize..4, 0u32..6, -6i64..12), 1..40),
    ) {
        let machine = machine(kind);
        for model in MODELS {
            let mut problem = ReplayProblem::new(&dag, &machine, model).unwrap();
            problem.check_every(3);
            let mut evaluator = MakespanEvaluator::new(&problem);
            let mut placed = ExchangeEvaluator::new(&problem, &placement(number)[..problem.ranks()], 0.5);
            for &(rank, slot, more) in &moves {
                let rank = rank % problem.ranks();
                if placed.slots()[rank] == slot {
                    continue;
                }
                let mut after = placed.slots().to_vec();
                after.iter_mut().filter(|one| **one == slot).for_each(|one| *one = placed.slots()[rank]);
                after[rank] = slot;
                let before = (placed.slots().to_vec(), placed.makespan(), placed.surrogate());
                let limit = placed.energy() + more;
                let makespan = evaluator.makespan(&after);
                let energy = makespan + (0.5 * problem.surrogate(&after) as f64) as i64;
                let accepted = placed.exchange(rank as u32, slot, limit);
                prop_assert_eq!(accepted, energy <= limit);
                match accepted {
                    true => prop_assert_eq!((placed.slots(), placed.makespan()), (&after[..], makespan)),
                    false => prop_assert_eq!((placed.slots().to_vec(), placed.makespan(), placed.surrogate()), before),
                }
                prop_assert_eq!(placed.surrogate(), problem.surrogate(placed.slots()));
            }
        }
    }

    /// No placement is below the lower bound, and schedules agree with the evaluator.
    #[test]
    fn schedules_agree_with_their_makespan(dag in small_programs(), kind in 0u8..3, number in 0..PLACEMENTS) {
        let machine = machine(kind);
        for model in MODELS {
            let problem = ReplayProblem::new(&dag, &machine, model).unwrap();
            let slots = &placement(number)[..problem.ranks()];
            let makespan = MakespanEvaluator::new(&problem).makespan(slots);
            prop_assert!(problem.lower_bound() <= makespan);
            let schedule = problem.schedule(&dag, &machine.processors, slots);
            prop_assert_eq!(schedule.check(), Ok(()));
            // A rank without tasks finishes at the start of its slot.
            let idle = slots.iter().map(|&slot| problem.available(slot)).max().unwrap_or(0);
            let end = schedule.makespan().max(problem.real(idle));
            prop_assert!(end.total_cmp(&problem.real(makespan)).is_eq(), "{end} and {makespan} ticks");
        }
    }

    /// Every message between two ranks is sent and received once, with its own tag, and in the same order among
    /// those of its channel; all other dependencies are program order.
    #[test]
    fn steps_have_matching_messages(mut dag in small_programs()) {
        dag.unit = WorkUnit::Seconds;
        let steps = steps(&dag).unwrap();
        let of_rank = |(rank, steps): (u32, &Vec<Step>)| {
            let steps = steps.iter();
            let sent = steps.clone().flat_map(|step| &step.sent).map(|one| (rank, one.peer, one.channel, one.tag, one.bytes));
            let received = steps.flat_map(|step| &step.received).map(|one| (one.peer, rank, one.channel, one.tag, one.bytes));
            (sent.collect::<Vec<_>>(), received.collect::<Vec<_>>())
        };
        let (sent, received): (Vec<_>, Vec<_>) = (0..).zip(&steps).map(of_rank).unzip();
        let [mut sent, mut received] = [sent.concat(), received.concat()];
        sent.sort_by_key(|one| (one.0, one.1, one.2));
        received.sort_by_key(|one| (one.0, one.1, one.2));
        prop_assert_eq!(&sent, &received);
        let order: usize = steps.iter().flatten().map(|step| step.after.len()).sum();
        prop_assert_eq!(sent.len() + order, dag.dependencies.len());
        sent.sort_unstable_by_key(|one| (one.0, one.1, one.3));
        sent.dedup_by_key(|one| (one.0, one.1, one.3));
        prop_assert_eq!(sent.len(), received.len());
    }
}
