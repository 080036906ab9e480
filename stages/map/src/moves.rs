//! Proposals of exchanges, and what of them a temperature accepts.

use hopmap_objective::{Assignment, Problem};
pub(crate) use hopmap_random::index_below as below;
use rand_pcg::Pcg64;
use rand_pcg::rand_core::Rng;

use crate::incumbent::Incumbent;
use crate::temperature::Acceptance;

/// Neighbours that a rank draws before it goes anywhere.
const DRAWS: usize = 3;

/// Ranks for which it makes a difference where they are, and that no constraint keeps on their slots.
pub(crate) fn movable(problem: &Problem) -> Vec<u32> {
    problem.movable().iter().copied().filter(|&rank| !problem.is_fixed(rank)).collect()
}

/// A slot for a rank, as a proposal: in a tree towards a neighbour, else anywhere outside its innermost group.
///
/// In a tree the rank draws one of its neighbours and goes to a random slot of the largest group that holds the neighbour and
/// not the rank. If it already lies as close as it can to three drawn neighbours, it goes to a random slot outside its own
/// innermost group. Exchanges inside such a group change nothing and are never proposed. `bits` are random.
#[inline]
pub(crate) fn propose(assignment: &Assignment<'_>, rank: u32, bits: u32, random: &mut Pcg64) -> u32 {
    let distance = assignment.problem().distance();
    if distance.is_tree() {
        return propose_in_tree(assignment, rank, bits, random);
    }
    let slots = distance.order();
    let index = below(bits, slots.len() - 1);
    // Of a matrix the slots are in their own order.
    slots[index + usize::from(index >= assignment.slot_of(rank) as usize)]
}

fn propose_in_tree(assignment: &Assignment<'_>, rank: u32, bits: u32, random: &mut Pcg64) -> u32 {
    let distance = assignment.problem().distance();
    let here = assignment.slot_of(rank);
    let neighbours = assignment.problem().neighbours(rank);
    let draws = if neighbours.is_empty() { 0 } else { DRAWS };
    for _ in 0..draws {
        let draw = random.next_u64();
        let neighbour = neighbours[below(draw as u32, neighbours.len())];
        let there = assignment.slot_of(neighbour.rank);
        let level = distance.meeting_level(here, there);
        if level > 0 {
            let group = distance.group(level - 1, there);
            let slot = distance.order()[group.start + below((draw >> 32) as u32, group.len())];
            if slot != there {
                return slot;
            }
        }
    }
    let own = distance.group(0, here);
    let index = below(bits, distance.order().len() - own.len());
    distance.order()[if index < own.start { index } else { index + own.len() }]
}

/// Every rank proposes one exchange, and those that the temperature accepts are made. Gives the number of exchanges that
/// changed the cost.
pub(crate) fn sweep(
    assignment: &mut Assignment<'_>,
    ranks: &[u32],
    temperature: f64,
    acceptance: &Acceptance,
    random: &mut Pcg64,
    incumbent: &mut Incumbent,
) -> u64 {
    let mut changes = 0;
    for &rank in ranks {
        // The upper half is for the proposal, the lower one for its acceptance.
        let draw = random.next_u64();
        let slot = propose(assignment, rank, (draw >> 32) as u32, random);
        let delta = assignment.delta(rank, slot);
        if delta == Assignment::NEVER {
            continue;
        }
        if delta <= 0 || delta as f64 <= temperature * acceptance.threshold(draw as u32) {
            incumbent.record(assignment, rank, slot, delta);
            assignment.exchange(rank, slot, delta);
            changes += u64::from(delta != 0);
        }
    }
    incumbent.settle(assignment);
    changes
}
