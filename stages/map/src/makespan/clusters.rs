//! A mapping by single linkage.
//!
//! If all ranks wait for the slowest one, a single heavy message between two groups of slots is as bad as many, and
//! a small cut is the wrong aim. Joining ranks by their heaviest messages keeps these inside as long as there is
//! room.

use std::cmp::Reverse;

use hopmap_objective::Problem;

/// The ranks of every cluster, the largest cluster first, on the slots in the order of the machine.
pub(super) fn clusters(problem: &Problem) -> Vec<u32> {
    let ranks = problem.ranks();
    let mut pairs: Vec<(i64, u32, u32)> = (0..ranks as u32)
        .flat_map(|rank| problem.neighbours(rank).iter().map(move |near| (near.weight, rank, near.rank)))
        .filter(|(_, rank, other)| rank < other)
        .collect();
    pairs.sort_unstable_by_key(|&(weight, rank, other)| (Reverse(weight), rank, other));
    let mut members: Vec<Vec<u32>> = (0..ranks as u32).map(|rank| vec![rank]).collect();
    let mut cluster: Vec<usize> = (0..ranks).collect();
    for (_, rank, other) in pairs {
        let [front, back] = [rank, other].map(|rank| cluster[rank as usize]);
        if front != back {
            // The smaller one is appended to the larger one.
            let size = |cluster: usize| (members[cluster].len(), Reverse(cluster));
            let (front, back) = if size(front) >= size(back) { (front, back) } else { (back, front) };
            let moved = std::mem::take(&mut members[back]);
            moved.iter().for_each(|&rank| cluster[rank as usize] = front);
            members[front].extend(moved);
        }
    }
    members.sort_by_key(|members| Reverse(members.len()));
    let mut slots = vec![0; ranks];
    for (&rank, &slot) in members.iter().flatten().zip(problem.distance().order()) {
        slots[rank as usize] = slot;
    }
    problem.admit(slots)
}
