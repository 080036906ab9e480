//! Weight and cost matrices of a problem, and the symmetries of their ranks and slots.

use hopmap_objective::{OrderedPairs, Problem};

/// Step limits, per point, of one search for an automorphism and of all searches; one step examines all
/// points. Points for which no automorphism is found within them count as different.
const STEPS_OF_SEARCH: usize = 100;
const STEPS: usize = 20_000_000;

/// The automorphisms of a matrix: permutations of rows and columns that preserve it.
#[derive(Debug)]
pub(super) struct Symmetry<'m> {
    values: &'m [i64],
    size: usize,
}

impl<'m> Symmetry<'m> {
    pub(super) fn new(values: &'m [i64], size: usize) -> Self {
        Self { values, size }
    }

    fn value(&self, a: usize, b: usize) -> i64 {
        self.values[a * self.size + b]
    }

    /// The class of every point under the automorphisms that fix the `fixed` points, represented by its first
    /// point; `None` if all classes are singletons.
    ///
    /// Points of one class are equivalent; points of different classes may be.
    pub(super) fn classes(&self, fixed: &[u32]) -> Option<Vec<u32>> {
        let colours = self.colours(fixed);
        let mut classes: Vec<u32> = (0..self.size as u32).collect();
        let mut trivial = true;
        let mut steps = STEPS / self.size.max(1);
        for point in 0..self.size {
            let alike = (0..point).filter(|&other| colours[other] == colours[point]);
            for other in alike.collect::<Vec<_>>() {
                if classes[other] != other as u32 || classes[point] == other as u32 {
                    continue;
                }
                if let Some(image) = self.automorphism(&colours, fixed, [other, point], &mut steps) {
                    trivial = false;
                    image.iter().enumerate().for_each(|(from, &to)| join(&mut classes, from, to));
                }
            }
        }
        (!trivial).then_some(classes)
    }

    /// Refines a colouring until all points of a colour see the same colours at the same distances.
    fn colours(&self, fixed: &[u32]) -> Vec<u32> {
        let mut colours = vec![0; self.size];
        fixed.iter().enumerate().for_each(|(index, &point)| colours[point as usize] = index as u32 + 1);
        let mut count = 0;
        loop {
            let views: Vec<_> = (0..self.size).map(|point| self.view(point, &colours)).collect();
            let mut sorted: Vec<_> = views.iter().collect();
            sorted.sort_unstable();
            sorted.dedup();
            if sorted.len() == count {
                return colours;
            }
            count = sorted.len();
            let colour = |view| sorted.binary_search(&view).map_or(0, |colour| colour as u32);
            colours = views.iter().map(colour).collect();
        }
    }

    /// A colour and its neighbourhood.
    fn view(&self, point: usize, colours: &[u32]) -> (u32, i64, Vec<(u32, i64, i64)>) {
        let others = (0..self.size).filter(|&other| other != point);
        let mut seen: Vec<_> = others
            .map(|other| (colours[other], self.value(point, other), self.value(other, point)))
            .collect();
        seen.sort_unstable();
        (colours[point], self.value(point, point), seen)
    }

    /// An automorphism that maps one point to another and fixes the `fixed` ones.
    fn automorphism(
        &self,
        colours: &[u32],
        fixed: &[u32],
        [from, to]: [usize; 2],
        steps: &mut usize,
    ) -> Option<Vec<usize>> {
        let most = (STEPS_OF_SEARCH * self.size).min(*steps);
        let mut partial =
            Partial { image: vec![None; self.size], taken: vec![false; self.size], steps: most };
        for &point in fixed {
            partial.set(point as usize, point as usize);
        }
        if !self.fits(&partial, colours, from, to) {
            return None;
        }
        partial.set(from, to);
        let free = (0..self.size).filter(|&point| partial.image[point].is_none()).collect::<Vec<_>>();
        let found = self.extend(&mut partial, colours, &free);
        *steps -= most - partial.steps;
        found.then(|| partial.image.into_iter().flatten().collect())
    }

    /// Finds images for all `free` points.
    fn extend(&self, partial: &mut Partial, colours: &[u32], free: &[usize]) -> bool {
        let Some((&point, rest)) = free.split_first() else { return true };
        // Points that can be fixed are fixed.
        for image in std::iter::once(point).chain((0..self.size).filter(|&image| image != point)) {
            if partial.steps == 0 {
                return false;
            }
            partial.steps -= 1;
            if self.fits(partial, colours, point, image) {
                partial.set(point, image);
                if self.extend(partial, colours, rest) {
                    return true;
                }
                partial.image[point] = None;
                partial.taken[image] = false;
            }
        }
        false
    }

    /// Whether mapping a point to another is consistent with the known images.
    fn fits(&self, partial: &Partial, colours: &[u32], from: usize, to: usize) -> bool {
        !partial.taken[to]
            && colours[from] == colours[to]
            && partial.image.iter().enumerate().all(|(other, &image)| {
                image.is_none_or(|image| {
                    self.value(from, other) == self.value(to, image)
                        && self.value(other, from) == self.value(image, to)
                })
            })
    }
}

/// A partial automorphism.
struct Partial {
    image: Vec<Option<usize>>,
    taken: Vec<bool>,
    /// Remaining steps.
    steps: usize,
}

impl Partial {
    fn set(&mut self, from: usize, to: usize) {
        self.image[from] = Some(to);
        self.taken[to] = true;
    }
}

/// Joins the classes of two points.
fn join(classes: &mut [u32], a: usize, b: usize) {
    let (kept, gone) = (classes[a].min(classes[b]), classes[a].max(classes[b]));
    classes.iter_mut().filter(|class| **class == gone).for_each(|class| *class = kept);
}

/// Communicating ranks, and all slots; the slots of other ranks do not affect the cost.
///
/// The only code that reads a [`Problem`]. The cost of a rank is [`own`](Self::own), that of two ranks
/// [`pair`](Self::pair), in units of [`unit`](Self::unit), the largest known common divisor of all costs.
#[derive(Debug)]
pub(super) struct Instance<'p> {
    problem: &'p Problem,
    /// The communicating ranks.
    active: Vec<u32>,
    /// Their weight matrix, row by row.
    pub(super) weights: Vec<i64>,
    /// Cost matrix of the slots, row by row.
    pub(super) costs: Vec<i64>,
    pub(super) slots: usize,
    pub(super) unit: i64,
    /// Whether every ordered pair costs a product of its own, with the diagonals; otherwise every pair costs
    /// one.
    pub(super) is_directed: bool,
}

impl<'p> Instance<'p> {
    pub(super) fn new(problem: &'p Problem) -> Self {
        let active = problem.movable().to_vec();
        let mut row_of = vec![0; problem.ranks()];
        active.iter().enumerate().for_each(|(row, &rank)| row_of[rank as usize] = row);
        let mut weights = vec![0; active.len() * active.len()];
        let mut set = |(source, destination, weight): (u32, u32, i64)| {
            weights[row_of[source as usize] * active.len() + row_of[destination as usize]] = weight;
        };
        let slots = problem.slots();
        let ordered = problem.ordered_pairs();
        let is_directed = ordered.is_some();
        let mut costs: Vec<i64> = match ordered {
            Some(_) if active.is_empty() => vec![0; slots * slots],
            Some(OrderedPairs { weights, costs }) => {
                weights.into_iter().for_each(set);
                costs.to_vec()
            }
            None => {
                for &rank in &active {
                    problem.neighbours(rank).iter().for_each(|n| set((rank, n.rank, n.weight)));
                }
                let all = 0..slots as u32;
                let cost = |a, b| problem.distance().cost(a, b);
                all.clone().flat_map(|a| all.clone().map(move |b| cost(a, b))).collect()
            }
        };
        let unit = divide(&mut weights) * divide(&mut costs);
        Self { problem, active, weights, costs, slots, unit, is_directed }
    }

    /// Number of communicating ranks.
    pub(super) fn ranks(&self) -> usize {
        self.active.len()
    }

    /// Cost of a pair of ranks on two slots.
    pub(super) fn pair(&self, ranks: [usize; 2], slots: [usize; 2]) -> i64 {
        let [i, j] = ranks;
        let [k, l] = slots;
        let product = |i, j, k, l| self.weights[i * self.active.len() + j] * self.costs[k * self.slots + l];
        let back = if self.is_directed { product(j, i, l, k) } else { 0 };
        product(i, j, k, l) + back
    }

    /// Cost of a rank on a slot with itself.
    pub(super) fn own(&self, rank: usize, slot: usize) -> i64 {
        match self.is_directed {
            true => self.weights[rank * self.active.len() + rank] * self.costs[slot * self.slots + slot],
            false => 0,
        }
    }

    /// Cost of a mapping of all ranks.
    pub(super) fn cost(&self, slots: &[u32]) -> i64 {
        self.problem.cost(slots) / self.unit
    }

    /// Maps silent ranks to the remaining slots.
    pub(super) fn complete(&self, slots: &[u32]) -> Vec<u32> {
        let mut taken = vec![false; self.slots];
        let mut of_rank = vec![None; self.problem.ranks()];
        for (&rank, &slot) in self.active.iter().zip(slots) {
            taken[slot as usize] = true;
            of_rank[rank as usize] = Some(slot);
        }
        let mut free = (0..self.slots as u32).filter(|&slot| !taken[slot as usize]);
        of_rank.into_iter().filter_map(|slot| slot.or_else(|| free.next())).collect()
    }
}

/// Divides numbers by their greatest common divisor and returns it; one if all are zero.
fn divide(values: &mut [i64]) -> i64 {
    let mut unit = 0i64;
    for &value in values.iter() {
        let mut other = value;
        while other != 0 {
            (unit, other) = (other, unit % other);
        }
    }
    let unit = unit.max(1);
    values.iter_mut().for_each(|value| *value /= unit);
    unit
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Steps between the points of a grid.
    fn grid(width: u32, height: u32) -> Vec<i64> {
        let places = || (0..width * height).map(|at| (at % width, at / width));
        places()
            .flat_map(|a| places().map(move |b| i64::from(a.0.abs_diff(b.0) + a.1.abs_diff(b.1))))
            .collect()
    }

    #[test]
    fn corners_of_a_grid_are_equivalent() {
        let grid = grid(3, 2);
        let symmetry = Symmetry::new(&grid, 6);
        assert_eq!(symmetry.classes(&[]), Some(vec![0, 1, 0, 0, 1, 0]));
        assert_eq!(symmetry.classes(&[1]), Some(vec![0, 1, 0, 3, 4, 3]));
        assert_eq!(symmetry.classes(&[0]), None);
    }

    #[test]
    fn slots_of_untouched_groups_of_a_tree_are_equivalent() {
        let cost = |a: usize, b: usize| match () {
            () if a == b => 0,
            () if a / 2 == b / 2 => 1,
            () if a / 4 == b / 4 => 10,
            () => 100,
        };
        let tree: Vec<i64> = (0..64).map(|at| cost(at / 8, at % 8)).collect();
        let symmetry = Symmetry::new(&tree, 8);
        assert_eq!(symmetry.classes(&[]), Some(vec![0; 8]));
        assert_eq!(symmetry.classes(&[3]), Some(vec![0, 0, 2, 3, 4, 4, 4, 4]));
        assert_eq!(symmetry.classes(&[3, 4]), Some(vec![0, 0, 2, 3, 4, 5, 6, 6]));
    }

    #[test]
    fn one_direction_alone_is_not_a_symmetry() {
        let ring = [0, 1, 2, 2, 0, 1, 1, 2, 0];
        assert_eq!(Symmetry::new(&ring, 3).classes(&[]), Some(vec![0; 3]));
        let path = [0, 1, 0, 0, 0, 1, 0, 0, 0];
        assert_eq!(Symmetry::new(&path, 3).classes(&[]), None);
    }
}
