//! Detection of grids, and their division into boxes for the groups of a machine.
//!
//! For a stencil code on a regular grid, boxes are the best known parts. A grid is recognised by the
//! distances from its corners, for any order of its ranks, and verified edge by edge; the cheapest boxes are
//! chosen.

use std::collections::HashMap;

use hopmap_graph::UNREACHED;
use hopmap_objective::Problem;

use super::multisection::Tree;

/// Maximum number of dimensions.
const MOST: usize = 3;

/// A position, or the sides of a box; missing sides are 1.
type Sides = [u32; MOST];

/// A grid of ranks; the neighbours of each are the adjacent ones in every direction.
#[derive(Debug)]
pub(super) struct Grid {
    sides: Sides,
    /// Position of every rank.
    positions: Vec<Sides>,
    /// Mean weight of the edges along every dimension.
    weights: [f64; MOST],
}

impl Grid {
    /// Detects the grid of a problem.
    pub(super) fn recognise(problem: &Problem) -> Option<Self> {
        let ranks = problem.ranks() as u32;
        let degree = |rank: u32| problem.neighbours(rank).len();
        let dimensions = (0..ranks).map(degree).min().filter(|dimensions| (1..=MOST).contains(dimensions))?;
        let corners: Vec<u32> =
            (0..ranks).filter(|&rank| degree(rank) == dimensions).take((1 << MOST) + 1).collect();
        if corners.len() != 1 << dimensions || (0..ranks).any(|rank| degree(rank) > 2 * dimensions) {
            return None;
        }
        let origin = distances(problem, corners[0])?;
        let mut others: Vec<(u32, u32)> = corners[1..].iter().map(|&c| (origin[c as usize], c)).collect();
        others.sort_unstable();
        // The two nearest corners lie along two sides. The third side follows from the number of ranks.
        let near: Vec<(u32, u32)> = others.iter().copied().take(dimensions.min(2)).collect();
        if dimensions < MOST {
            return Self::between(problem, &origin, &near);
        }
        let face = near.iter().map(|near| u64::from(near.0) + 1).product::<u64>();
        let last = others[2..].iter().filter(|last| face * (u64::from(last.0) + 1) == u64::from(ranks));
        last.into_iter().find_map(|&last| Self::between(problem, &origin, &[near[0], near[1], last]))
    }

    /// The grid spanned by a corner and the corners at the other ends of its sides.
    fn between(problem: &Problem, origin: &[u32], ends: &[(u32, u32)]) -> Option<Self> {
        let mut sides = [1; MOST];
        let mut positions = vec![[0; MOST]; origin.len()];
        for (axis, &(length, end)) in ends.iter().enumerate() {
            sides[axis] = length.checked_add(1)?;
            let from_end = distances(problem, end)?;
            for (position, (&from, &to)) in positions.iter_mut().zip(origin.iter().zip(&from_end)) {
                let twice = (from + length).checked_sub(to)?;
                position[axis] = twice / 2;
                if twice % 2 != 0 || position[axis] > length {
                    return None;
                }
            }
        }
        let mut grid = Self { sides, positions, weights: [0.0; MOST] };
        grid.check(problem).then_some(grid)
    }

    /// Checks that every position is used once and the edges are those of the grid; stores their weights.
    fn check(&mut self, problem: &Problem) -> bool {
        let count: u64 = self.sides.iter().map(|&side| u64::from(side)).product();
        if count != self.positions.len() as u64 {
            return false;
        }
        let mut taken = vec![false; self.positions.len()];
        for position in &self.positions {
            if std::mem::replace(&mut taken[index(*position, self.sides) as usize], true) {
                return false;
            }
        }
        let mut counts = [0u64; MOST];
        for (rank, position) in self.positions.iter().enumerate() {
            for neighbour in problem.neighbours(rank as u32) {
                let other = self.positions[neighbour.rank as usize];
                let mut steps = (0..MOST).filter(|&axis| position[axis] != other[axis]);
                let (Some(axis), None) = (steps.next(), steps.next()) else { return false };
                if position[axis].abs_diff(other[axis]) != 1 {
                    return false;
                }
                counts[axis] += 1;
                self.weights[axis] += neighbour.weight as f64;
            }
        }
        (0..MOST).all(|axis| {
            let side = u64::from(self.sides[axis]);
            self.weights[axis] /= counts[axis].max(1) as f64;
            counts[axis] == 2 * (side - 1) * (count / side)
        })
    }

    /// The slot of every rank if the groups of all levels are the cheapest boxes; `None` if no boxes fit.
    pub(super) fn place(&self, problem: &Problem, tree: &Tree) -> Option<Vec<u32>> {
        if tree.slots.len() != self.positions.len() {
            return None;
        }
        let sizes = (0..tree.height()).map(|level| tree.even_size(level)).collect::<Option<Vec<u32>>>()?;
        let levels = problem.distance().first_shared_level()..problem.distance().levels();
        let costs: Vec<f64> = levels.map(|level| problem.distance().level_cost(level) as f64).collect();
        let mut boxes = Boxes { grid: self, sizes: &sizes, costs: &costs, known: HashMap::new() };
        boxes.best(sizes.len().checked_sub(1)?, self.sides)?;
        let chain = boxes.chain(self.sides);
        let slot = |position: &Sides| {
            let (mut at, mut position, mut outer) = (0, *position, self.sides);
            for (&inner, &size) in chain.iter().zip(sizes.iter().rev().skip(1).chain([&1])) {
                let number: Sides = std::array::from_fn(|axis| position[axis] / inner[axis]);
                let count: Sides = std::array::from_fn(|axis| outer[axis] / inner[axis]);
                at += index(number, count) * u64::from(size);
                position = std::array::from_fn(|axis| position[axis] % inner[axis]);
                outer = inner;
            }
            tree.slots[at as usize]
        };
        Some(self.positions.iter().map(slot).collect())
    }
}

/// Search for the cheapest nested boxes.
struct Boxes<'g> {
    grid: &'g Grid,
    /// Slots of the groups of every level, innermost first.
    sizes: &'g [u32],
    /// Cost of every level.
    costs: &'g [f64],
    /// Minimum cost inside a box on a level, and the sides of the boxes inside.
    known: HashMap<(usize, Sides), Option<(f64, Sides)>>,
}

impl Boxes<'_> {
    /// Minimum cost of all edges inside a box that is a group of a level.
    fn best(&mut self, level: usize, sides: Sides) -> Option<f64> {
        if let Some(known) = self.known.get(&(level, sides)) {
            return known.map(|known| known.0);
        }
        let size = if level == 0 { 1 } else { self.sizes[level - 1] };
        let mut found: Option<(f64, Sides)> = None;
        for inner in boxes_of(size, sides) {
            let count: u32 = (0..MOST).map(|axis| sides[axis] / inner[axis]).product();
            let own = self.costs[level] * self.cut(sides, inner);
            let below = if level == 0 { Some(0.0) } else { self.best(level - 1, inner) };
            let Some(cost) = below.map(|below| own + below * f64::from(count)) else { continue };
            if found.is_none_or(|found| cost < found.0) {
                found = Some((cost, inner));
            }
        }
        self.known.insert((level, sides), found);
        found.map(|found| found.0)
    }

    /// Weight of the edges between the boxes inside a box.
    fn cut(&self, sides: Sides, inner: Sides) -> f64 {
        let all: f64 = sides.iter().map(|&side| f64::from(side)).product();
        let of_axis = |axis: usize| {
            let planes = f64::from(sides[axis] / inner[axis] - 1);
            self.grid.weights[axis] * planes * all / f64::from(sides[axis])
        };
        (0..MOST).map(of_axis).sum()
    }

    /// The sides of the boxes of all levels, outermost first, down to single ranks.
    fn chain(&self, mut sides: Sides) -> Vec<Sides> {
        let mut chain = Vec::new();
        for level in (0..self.sizes.len()).rev() {
            let Some(Some((_, inner))) = self.known.get(&(level, sides)) else { break };
            chain.push(*inner);
            sides = *inner;
        }
        chain
    }
}

/// All boxes of a number of ranks whose sides divide those of another box.
fn boxes_of(size: u32, sides: Sides) -> Vec<Sides> {
    let divides = |side: &u32, total: u32| total.is_multiple_of(*side);
    let mut boxes = Vec::new();
    for first in (1..=sides[0].min(size)).filter(|side| divides(side, sides[0]) && divides(side, size)) {
        let rest = size / first;
        for second in (1..=sides[1].min(rest)).filter(|side| divides(side, sides[1]) && divides(side, rest)) {
            let third = rest / second;
            if third <= sides[2] && divides(&third, sides[2]) {
                boxes.push([first, second, third]);
            }
        }
    }
    boxes
}

/// Index of a position in a box, row by row.
fn index(position: Sides, sides: Sides) -> u64 {
    position.iter().zip(sides).rev().fold(0, |index, (&at, side)| index * u64::from(side) + u64::from(at))
}

/// Distances in edges from a rank to all others; `None` if the graph is not connected.
fn distances(problem: &Problem, from: u32) -> Option<Vec<u32>> {
    let near = |rank: usize| problem.neighbours(rank as u32).iter().map(|near| near.rank as usize);
    let distances = hopmap_graph::distances(problem.ranks(), [from as usize], near);
    (!distances.contains(&UNREACHED)).then_some(distances)
}
