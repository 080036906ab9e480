//! Symmetries of ranks and of slots.

/// Step limits, per point, of one search for an automorphism and of all searches; one step examines all
/// points. Points for which no automorphism is found within them count as different.
const STEPS_OF_SEARCH: usize = 100;
const STEPS: usize = 20_000_000;

/// The automorphisms of a matrix: permutations of rows and columns that preserve it.
#[derive(Debug, Clone)]
pub(crate) struct Symmetry<'m> {
    values: &'m [i64],
    size: usize,
}

impl<'m> Symmetry<'m> {
    pub(crate) fn new(values: &'m [i64], size: usize) -> Self {
        Self { values, size }
    }

    fn value(&self, a: usize, b: usize) -> i64 {
        self.values[a * self.size + b]
    }

    /// The class of every point under the automorphisms that fix the `fixed` points, represented by its first
    /// point; `None` if all classes are singletons.
    ///
    /// Points of one class are equivalent; points of different classes may be. Automorphisms that are not
    /// `admitted` do not count.
    pub(crate) fn classes(&self, fixed: &[u32], admitted: impl Fn(&[usize]) -> bool) -> Option<Vec<u32>> {
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
                let image = self.automorphism(&colours, fixed, [other, point], &mut steps);
                if let Some(image) = image.filter(|image| admitted(image)) {
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
        assert_eq!(symmetry.classes(&[], |_| true), Some(vec![0, 1, 0, 0, 1, 0]));
        assert_eq!(symmetry.classes(&[1], |_| true), Some(vec![0, 1, 0, 3, 4, 3]));
        assert_eq!(symmetry.classes(&[0], |_| true), None);
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
        assert_eq!(symmetry.classes(&[], |_| true), Some(vec![0; 8]));
        assert_eq!(symmetry.classes(&[3], |_| true), Some(vec![0, 0, 2, 3, 4, 4, 4, 4]));
        assert_eq!(symmetry.classes(&[3, 4], |_| true), Some(vec![0, 0, 2, 3, 4, 5, 6, 6]));
    }

    #[test]
    fn one_direction_alone_is_not_a_symmetry() {
        let ring = [0, 1, 2, 2, 0, 1, 1, 2, 0];
        assert_eq!(Symmetry::new(&ring, 3).classes(&[], |_| true), Some(vec![0; 3]));
        let path = [0, 1, 0, 0, 0, 1, 0, 0, 0];
        assert_eq!(Symmetry::new(&path, 3).classes(&[], |_| true), None);
    }
}
