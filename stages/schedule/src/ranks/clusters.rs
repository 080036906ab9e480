//! Placement by clusters: what weighs most is joined first, and what was joined early stays together on the tree.
//!
//! A partition makes the sum of what is cut small. Where everybody waits for the slowest, one heavy message that is cut is as bad as many:
//! joining ranks by their heaviest link (single linkage) leaves a heavy one uncut as long as there is room for what it joins.

use super::problem::RankProblem;

/// Places ranks in the order of their clusters on the slots in the order of the tree.
pub(super) fn place(problem: &RankProblem, weights: &[i64]) -> Vec<u32> {
    let mut links: Vec<(i64, usize)> =
        weights.iter().copied().zip(0..).filter(|(weight, _)| *weight > 0).collect();
    links.sort_unstable_by_key(|&(weight, link)| (std::cmp::Reverse(weight), link));
    let mut clusters = Clusters::new(problem.ranks);
    for (_, link) in links {
        let link = problem.program.links.all[link];
        clusters.join(link.from, link.to);
    }
    let mut slots = vec![0; problem.ranks];
    for (rank, &slot) in clusters.order().into_iter().zip(&problem.places.order) {
        slots[rank as usize] = slot;
    }
    slots
}

/// Clusters of ranks, each a chain of its members.
struct Clusters {
    /// A member nearer to the first one of the cluster, or itself.
    up: Vec<u32>,
    /// The next member of the chain.
    next: Vec<Option<u32>>,
    /// Of first members, the last one and the number of them.
    last: Vec<u32>,
    size: Vec<u32>,
}

impl Clusters {
    fn new(ranks: usize) -> Self {
        let own = || (0..ranks as u32).collect::<Vec<u32>>();
        Self { up: own(), next: vec![None; ranks], last: own(), size: vec![1; ranks] }
    }

    fn first(&mut self, mut rank: u32) -> u32 {
        while self.up[rank as usize] != rank {
            let up = self.up[rank as usize];
            self.up[rank as usize] = self.up[up as usize];
            rank = up;
        }
        rank
    }

    /// Joins the clusters of two ranks, the smaller one behind the larger.
    fn join(&mut self, a: u32, b: u32) {
        let (a, b) = (self.first(a), self.first(b));
        if a == b {
            return;
        }
        let size = |first: u32| (self.size[first as usize], std::cmp::Reverse(first));
        let (front, back) = if size(a) >= size(b) { (a, b) } else { (b, a) };
        let [front_index, back_index] = [front as usize, back as usize];
        self.next[self.last[front_index] as usize] = Some(back);
        self.last[front_index] = self.last[back_index];
        self.size[front_index] += self.size[back_index];
        self.up[back_index] = front;
    }

    /// All ranks, cluster by cluster, the largest first.
    fn order(mut self) -> Vec<u32> {
        let ranks = self.up.len() as u32;
        let mut firsts: Vec<u32> = (0..ranks).filter(|&rank| self.first(rank) == rank).collect();
        firsts.sort_by_key(|&first| std::cmp::Reverse(self.size[first as usize]));
        let mut order = Vec::with_capacity(ranks as usize);
        for first in firsts {
            let mut at = Some(first);
            while let Some(rank) = at {
                order.push(rank);
                at = self.next[rank as usize];
            }
        }
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_joined_first_stays_together() {
        let mut clusters = Clusters::new(7);
        for (a, b) in [(5, 2), (2, 6), (0, 3), (3, 6), (0, 5)] {
            clusters.join(a, b);
        }
        assert_eq!(clusters.order(), [2, 5, 6, 0, 3, 1, 4]);
    }
}
