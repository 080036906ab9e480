//! Mappings under constraints: admission, construction, exchanges, and infeasible constraints.

use std::collections::BTreeMap;

use hopmap_model::{CostModel, Edge, Levels, Node, NodeState, Process, Slot, SystemGraph, TaskGraph, Weight};
use hopmap_objective::{Assignment, Constraints, Deltas, Location, Pin, Problem};
use proptest::prelude::*;

const RANKS: u32 = 7;

/// Four hosts `h0` to `h3` of three slots each.
fn machine() -> SystemGraph {
    SystemGraph {
        routing: hopmap_model::Routing::default(),
        nodes: (0..4).map(|host| Node::host(format!("h{host}"))).collect(),
        links: Vec::new(),
        slots: (0..12).map(|slot| Slot { host: slot / 3, core: slot % 3 }).collect(),
        cost: CostModel::Levels(Levels {
            costs: vec![1.0, 10.0],
            groups: vec![(0..12).map(|slot| slot / 3).collect(), vec![0; 12]],
        }),
        calibration: Vec::new(),
    }
}

/// A ring.
fn program() -> TaskGraph {
    let edge = |source| Edge {
        source,
        destination: (source + 1) % RANKS,
        messages: 1,
        bytes: 3 + u64::from(source),
    };
    TaskGraph {
        processes: vec![Process::default(); RANKS as usize],
        edges: (0..RANKS).map(edge).collect(),
        ..TaskGraph::default()
    }
}

fn constrained(pins: &[(u32, Location)], forbidden: &[u32]) -> Result<Problem, String> {
    let constraints = Constraints {
        pinned: pins.iter().map(|(rank, place)| Pin { rank: *rank, place: place.clone() }).collect(),
        forbidden: forbidden.iter().map(|host| format!("h{host}")).collect(),
        closed: Vec::new(),
    };
    let problem = Problem::new(&program(), &machine(), Weight::Bytes).unwrap();
    problem.with_constraints(&constraints, &machine()).map_err(|error| error.to_string())
}

fn host(number: u32) -> Location {
    Location::Host(format!("h{number}"))
}

/// Whether all constraints are satisfied and slots are distinct.
fn is_kept(slots: &[u32], pins: &[(u32, Location)], forbidden: &[u32]) -> bool {
    let mut distinct = slots.to_vec();
    distinct.sort_unstable();
    distinct.dedup();
    distinct.len() == RANKS as usize
        && slots.iter().all(|slot| *slot < 12 && !forbidden.contains(&(slot / 3)))
        && pins.iter().all(|(rank, place)| match place {
            Location::Slot(slot) => slots[*rank as usize] == *slot,
            Location::Host(name) => *name == format!("h{}", slots[*rank as usize] / 3),
        })
}

/// Pins and a forbidden host, possibly contradictory.
fn constraints() -> impl Strategy<Value = (Vec<(u32, Location)>, Vec<u32>)> {
    let place = prop_oneof![(0u32..12).prop_map(Location::Slot), (0u32..4).prop_map(host)];
    (
        prop::collection::btree_map(0..RANKS, place, 0..5).prop_map(|pins| pins.into_iter().collect()),
        prop::collection::vec(0u32..4, 0..2),
    )
}

proptest! {
    #[test]
    fn admitted_and_constructed_mappings_satisfy_all_constraints(
        (pins, forbidden) in constraints(), wanted in prop::collection::vec(0u32..14, 0..8), seed in any::<u8>(),
    ) {
        prop_assume!(!pins.is_empty() || !forbidden.is_empty());
        let Ok(problem) = constrained(&pins, &forbidden) else { return Ok(()) };
        let admitted = problem.admit(wanted.clone());
        prop_assert!(is_kept(&admitted, &pins, &forbidden), "{:?}", admitted);
        prop_assert_eq!(problem.admit(admitted.clone()), admitted);
        for slots in [problem.linear(), problem.random([seed; 32])] {
            prop_assert!(is_kept(&slots, &pins, &forbidden), "{:?}", slots);
            prop_assert_eq!(problem.admit(slots.clone()), slots);
        }
    }

    #[test]
    fn a_delta_is_the_change_of_cost_or_never(
        (pins, forbidden) in constraints(),
        seed in any::<u8>(),
        exchanges in prop::collection::vec((0..RANKS, 0u32..12), 1..40),
    ) {
        let Ok(problem) = constrained(&pins, &forbidden) else { return Ok(()) };
        let mut assignment = Assignment::new(&problem, &problem.random([seed; 32])).unwrap();
        for (rank, slot) in exchanges {
            let mut after = assignment.slots().to_vec();
            if let Some(other) = assignment.rank_at(slot) {
                after[other as usize] = after[rank as usize];
            }
            after[rank as usize] = slot;
            let delta = assignment.delta(rank, slot);
            prop_assert_eq!(delta == Assignment::NEVER, !is_kept(&after, &pins, &forbidden));
            if delta != Assignment::NEVER {
                prop_assert_eq!(assignment.cost() + delta, problem.cost(&after));
                assignment.exchange(rank, slot, delta);
                prop_assert_eq!(assignment.slots(), &after);
            }
        }
    }

    #[test]
    fn deltas_show_which_exchanges_are_admitted((pins, forbidden) in constraints(), seed in any::<u8>()) {
        let Ok(problem) = constrained(&pins, &forbidden) else { return Ok(()) };
        let start = Assignment::new(&problem, &problem.random([seed; 32])).unwrap();
        let deltas = Deltas::new(start.clone(), |_| true).unwrap();
        for (mover, &rank) in problem.movable().iter().enumerate() {
            for (index, &delta) in deltas.row(mover).iter().enumerate() {
                let unit = mover + 1 + index;
                let expected = start.delta(rank, deltas.slots()[unit]);
                prop_assert_eq!(deltas.admits(mover, unit), expected != Assignment::NEVER);
                prop_assert!(expected == Assignment::NEVER || expected == delta);
            }
        }
    }
}

#[test]
fn contradictions_are_refused_by_name() {
    let refused = |pins: &[(u32, Location)], forbidden: &[u32]| constrained(pins, forbidden).unwrap_err();
    assert_eq!(refused(&[(7, Location::Slot(0))], &[]), "rank 7 is pinned, but the program has 7 ranks");
    assert_eq!(
        refused(&[(1, Location::Slot(12))], &[]),
        "rank 1 is pinned to slot 12, but the machine has 12 slots"
    );
    assert_eq!(refused(&[(1, host(9))], &[]), "the machine has no host `h9` with slots");
    assert_eq!(refused(&[], &[4]), "the machine has no host `h4` with slots");
    assert_eq!(refused(&[(1, host(0)), (1, Location::Slot(0))], &[]), "rank 1 is pinned twice");
    assert_eq!(
        refused(&[(1, Location::Slot(3)), (2, Location::Slot(3))], &[]),
        "ranks 1 and 2 are both pinned to slot 3"
    );
    assert_eq!(refused(&[(1, Location::Slot(3))], &[1]), "rank 1 is pinned to host `h1`, which is forbidden");
    assert_eq!(refused(&[(1, host(2))], &[2]), "rank 1 is pinned to host `h2`, which is forbidden");
    let crowd: Vec<_> = (0..3).map(|rank| (rank, host(1))).chain([(3, Location::Slot(4))]).collect();
    assert_eq!(refused(&crowd, &[]), "4 ranks are pinned to host `h1`, which has 3 slots");
    assert_eq!(refused(&[], &[0, 2]), "7 ranks do not fit on the 6 slots that they may use");
}

#[test]
fn linear_skips_what_is_forbidden_and_keeps_places_for_the_pinned() {
    let problem = constrained(&[(0, Location::Slot(4)), (6, host(0))], &[2]).unwrap();
    assert_eq!(problem.linear(), [4, 1, 2, 3, 5, 9, 0]);
    // Ranks on allowed slots stay; others move to the next free slot.
    assert_eq!(problem.admit(vec![0, 1, 2, 3, 4, 5, 6]), [4, 1, 2, 3, 9, 5, 0]);
    let slots = problem.linear();
    let refused = Assignment::new(&problem, &[3, 1, 2, 4, 5, 9, 0]).unwrap_err().to_string();
    assert_eq!(refused, "rank 0 is on slot 3, which violates its constraints");
    assert!(problem.is_fixed(0) && !problem.is_fixed(6));
    assert!(Assignment::new(&problem, &slots).is_ok());
}

#[test]
fn another_slot_order_is_kept_without_forbidden_slots() {
    let order = hopmap_objective::round_robin(&machine());
    let free = Problem::new(&program(), &machine(), Weight::Bytes).unwrap();
    assert_eq!(free.in_order(&order), [0, 3, 6, 9, 1, 4, 7]);
    let problem = constrained(&[(0, Location::Slot(4)), (6, host(0))], &[2]).unwrap();
    assert_eq!(problem.in_order(&order), [4, 3, 9, 1, 10, 2, 0]);
}

#[test]
fn every_allowed_mapping_is_equally_likely() {
    // Ranks 0 and 1 share host 3, the only pinned ones; five others take the remaining 10 - 1 slots.
    let problem = constrained(&[(0, host(3)), (1, Location::Slot(9))], &[0]).unwrap();
    let mut counts = BTreeMap::new();
    for sample in 0..4000u32 {
        let mut seed = [0; 32];
        seed[..4].copy_from_slice(&sample.to_le_bytes());
        let slots = problem.random(seed);
        *counts.entry((slots[0], slots[2])).or_insert(0) += 1;
    }
    // Rank 0 on 10 or 11, rank 2 on one of the other seven slots.
    assert_eq!(counts.len(), 14);
    assert!(counts.values().all(|&count| (220..360).contains(&count)), "{counts:?}");
}

/// `select/nodes` takes the slots of a host that is down; the host stays in the machine.
#[test]
fn a_forbidden_host_may_have_lost_its_slots() {
    let mut system = machine();
    system.nodes.push(Node { state: NodeState::Down, ..Node::host("h4") });
    let problem = Problem::new(&program(), &system, Weight::Bytes).unwrap();
    let forbid = |names: &[&str]| {
        let forbidden = names.iter().map(|&name| name.to_owned()).collect();
        let constraints = Constraints { forbidden, ..Constraints::default() };
        problem.clone().with_constraints(&constraints, &system).map_err(|error| error.to_string())
    };
    let allowed = forbid(&["h4", "h1"]).unwrap();
    assert!(!allowed.admits(0, 3) && allowed.admits(0, 0));
    assert_eq!(forbid(&["h5"]).unwrap_err(), "the machine has no host `h5` with slots");
}
