//! Direct embedding of programs that are grids in machines that are grids.
//!
//! Program and machine are recognised by their edges and costs (`grids/lattice.rs`, `grids/machine.rs`), for any
//! order of ranks and slots. The coordinates of the program are then coded in those of the machine
//! (`grids/codes.rs`). Ranks without a place of their own take the free slot closest to their neighbours.

mod codes;
mod lattice;
mod machine;

use std::cmp::Reverse;
use std::collections::HashMap;

use hopmap_objective::Problem;

use codes::{Code, Target, cheapest};
use lattice::{Graph, Lattice, MOST, Point};
pub(crate) use machine::Machine;

/// Maximum number of pairs of a rank without a place and a free slot whose costs are compared.
const MOST_CHOICES: usize = 1 << 24;

/// The cheapest direct embedding; `None` unless program and machine are grids.
pub(crate) fn embedding(problem: &Problem, machine: &Machine) -> Option<Vec<u32>> {
    let program = Lattice::recognise(&graph_of(problem))?;
    let grid = Lattice::recognise(&machine.links)?;
    let nodes: HashMap<Point, usize> =
        grid.points.iter().enumerate().filter_map(|(node, point)| Some(((*point)?, node))).collect();
    let slots = machine.nodes.iter().map(Vec::len).max()? as u32;
    let target = Target { axes: &grid.axes, slots };
    let place = |code: Code| {
        let slot_of = |point: &Option<Point>| {
            let (there, slot) = code.place(&(*point)?, &target);
            machine.nodes[*nodes.get(&there)?].get(slot as usize).copied()
        };
        problem.admit(filled(problem, program.points.iter().map(slot_of).collect()))
    };
    let codes = cheapest(&program.axes, &weights(problem, &program), &target);
    codes.into_iter().map(place).min_by_key(|slots| problem.cost(slots))
}

/// The neighbours of every rank.
fn graph_of(problem: &Problem) -> Graph {
    let ranks = 0..problem.ranks() as u32;
    ranks.map(|rank| problem.neighbours(rank).iter().map(|near| near.rank).collect()).collect()
}

/// Mean weight of the edges along every axis of a program.
fn weights(problem: &Problem, program: &Lattice) -> Vec<f64> {
    let mut sums = vec![(0.0, 0u32); program.axes.len()];
    for (rank, point) in program.points.iter().enumerate() {
        for near in problem.neighbours(rank as u32) {
            let (Some(one), Some(other)) = (point, program.points[near.rank as usize]) else { continue };
            let mut apart = (0..MOST).filter(|&axis| one[axis] != other[axis]);
            if let (Some(axis), None) = (apart.next(), apart.next()) {
                sums[axis].0 += near.weight as f64;
                sums[axis].1 += 1;
            }
        }
    }
    sums.into_iter().map(|(sum, count)| sum / f64::from(count.max(1))).collect()
}

/// The slot of every rank: the given one for the first that asks for it; otherwise the free one that costs
/// least, in the order of the number of neighbours that have a slot.
fn filled(problem: &Problem, wanted: Vec<Option<u32>>) -> Vec<u32> {
    let mut is_taken = vec![false; problem.slots()];
    let mut take = |slot: &u32| !std::mem::replace(&mut is_taken[*slot as usize], true);
    let mut slots: Vec<Option<u32>> = wanted.into_iter().map(|slot| slot.filter(&mut take)).collect();
    let mut free: Vec<u32> = (0..problem.slots() as u32).filter(|&slot| !is_taken[slot as usize]).collect();
    let mut left: Vec<u32> =
        (0..).zip(&slots).filter(|(_, slot)| slot.is_none()).map(|(rank, _)| rank).collect();
    if left.len() * free.len() > MOST_CHOICES {
        left.drain(..).zip(free.drain(..)).for_each(|(rank, slot)| slots[rank as usize] = Some(slot));
    }
    loop {
        let placed = |rank: u32| {
            let neighbours = problem.neighbours(rank).iter();
            neighbours.filter_map(|near| Some((near.weight, slots[near.rank as usize]?)))
        };
        let known = (0..left.len()).max_by_key(|&index| (placed(left[index]).count(), Reverse(left[index])));
        let Some(rank) = known.map(|index| left.swap_remove(index)) else { break };
        let cost = |slot: u32| -> i64 {
            placed(rank).map(|(weight, there)| weight * problem.distance().cost(slot, there)).sum()
        };
        let best = (0..free.len()).min_by_key(|&index| (cost(free[index]), free[index]));
        slots[rank as usize] = best.map(|index| free.swap_remove(index));
    }
    slots.into_iter().map(Option::unwrap_or_default).collect()
}
