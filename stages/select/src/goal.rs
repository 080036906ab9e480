//! What is made small: a sum over chosen hosts and one over pairs of them.

use crate::space::{LevelTree, Space};

/// Σ `single[class]` over chosen hosts + `pairs` · Σ distance over pairs of them + `constant`.
pub(crate) struct Goal {
    pub(crate) single: Vec<i64>,
    pub(crate) pairs: i64,
    constant: i64,
    /// Whether it is the cut, and not the total distance.
    pub(crate) is_cut: bool,
}

impl Goal {
    /// The total distance of the chosen hosts.
    pub(crate) fn total_distance(space: &Space) -> Self {
        Self { single: vec![0; space.classes()], pairs: 1, constant: 0, is_cut: false }
    }

    /// How close the chosen hosts are to those that are left. A host adds its closeness to all others; what it has to other
    /// chosen ones is taken back twice for each pair, which is `2 · (largest − distance)`.
    pub(crate) fn cut(space: &Space, count: usize) -> Self {
        let largest = space.largest();
        let constant = -(count as i64) * (count as i64 - 1) * largest;
        let single = match space.level_tree() {
            Some(tree) => closeness_in_tree(space, tree),
            None => (0..space.classes()).map(|class| closeness(space, class, largest)).collect(),
        };
        Self { single, pairs: 2, constant, is_cut: true }
    }

    /// The class whose hosts are closest to all others, of equals the first.
    pub(crate) fn heaviest(&self) -> usize {
        let closeness = |class: &usize| (self.single[*class], std::cmp::Reverse(*class));
        (0..self.single.len()).max_by_key(closeness).unwrap_or(0)
    }

    /// The value of a choice, `chosen[class]` hosts of every class.
    pub(crate) fn value(&self, space: &Space, chosen: &[i64]) -> i64 {
        let single: i64 = self.single.iter().zip(chosen).map(|(value, k)| value * k).sum();
        single + self.pairs * space.total(chosen) + self.constant
    }
}

/// Sum over all other hosts of how much closer they are than the farthest two. Every class is one host.
fn closeness(space: &Space, class: usize, largest: i64) -> i64 {
    let mut sum = 0;
    space.for_row(class, |other, distance| sum += if other == class { 0 } else { largest - distance });
    sum
}

fn closeness_in_tree(space: &Space, tree: &LevelTree) -> Vec<i64> {
    let sizes: Vec<i64> = (0..space.classes()).map(|class| space.size(class)).collect();
    let mut closeness = vec![0; space.classes()];
    for level in 0..tree.costs.len() - 1 {
        let sums = tree.sums(level, &sizes);
        for (value, &group) in closeness.iter_mut().zip(&tree.groups[level]) {
            *value += tree.step(level) * (sums[group as usize] - 1);
        }
    }
    closeness
}
