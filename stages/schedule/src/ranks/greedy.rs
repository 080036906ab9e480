//! Greedy placement for machines that are no tree: always the rank that has most to do with those placed, where that is shortest.

use std::collections::BinaryHeap;

use super::problem::RankProblem;

/// Most links times slots that are looked at.
const MOST: usize = 1 << 27;
/// No rank, or no slot.
const NONE: u32 = u32::MAX;

/// Places ranks so that heavy links are short; nothing if the machine is too large for that.
pub(super) fn place(problem: &RankProblem, weights: &[i64]) -> Option<Vec<u32>> {
    let links = &problem.program.links;
    if links.len().saturating_mul(problem.slots) > MOST {
        return None;
    }
    let total =
        |rank: u32| links.of(rank).iter().fold(0i64, |sum, &link| sum.saturating_add(weights[link as usize]));
    let mut unplaced: Vec<u32> = (0..problem.ranks as u32).collect();
    unplaced.sort_by_key(|&rank| std::cmp::Reverse(total(rank)));
    let mut slots = vec![NONE; problem.ranks];
    let mut is_free = vec![true; problem.slots];
    let mut tied = vec![0i64; problem.ranks];
    let mut heap = BinaryHeap::new();
    for first in unplaced {
        heap.push((0, std::cmp::Reverse(first)));
        while let Some((tie, std::cmp::Reverse(rank))) = heap.pop() {
            if slots[rank as usize] != NONE || tie != tied[rank as usize] {
                continue;
            }
            let slot = nearest(problem, weights, &mut slots, &is_free, rank)?;
            slots[rank as usize] = slot;
            is_free[slot as usize] = false;
            for &number in links.of(rank) {
                let link = links.all[number as usize];
                let other = if link.from == rank { link.to } else { link.from };
                if slots[other as usize] == NONE {
                    let tied = &mut tied[other as usize];
                    *tied = tied.saturating_add(weights[number as usize]);
                    heap.push((*tied, std::cmp::Reverse(other)));
                }
            }
        }
    }
    Some(slots)
}

/// The free slot from which the links of a rank to ranks that are placed are shortest, by weight.
fn nearest(
    problem: &RankProblem,
    weights: &[i64],
    slots: &mut [u32],
    is_free: &[bool],
    rank: u32,
) -> Option<u32> {
    let links = &problem.program.links;
    let free = (0..problem.slots as u32).filter(|&slot| is_free[slot as usize]);
    let chosen = free.min_by_key(|&slot| {
        slots[rank as usize] = slot;
        let placed =
            links.of(rank).iter().map(|&number| (links.all[number as usize], weights[number as usize]));
        let placed =
            placed.filter(|(link, _)| slots[link.from as usize] != NONE && slots[link.to as usize] != NONE);
        placed.fold(0i128, |sum, (link, weight)| {
            sum + i128::from(problem.delay(link, slots)) * i128::from(weight)
        })
    });
    slots[rank as usize] = NONE;
    chosen
}
