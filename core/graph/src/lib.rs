//! Disjoint sets, distances by breadth-first search, and a priority queue. Nodes are dense indexes from zero.

mod heap;

pub use heap::{HeapEntry, IndexedHeap};

/// Disjoint sets whose members have weights (Tarjan 1975, "Efficiency of a good but not linear set union algorithm").
#[derive(Debug, Clone)]
pub struct DisjointSets {
    parent: Vec<usize>,
    /// Of roots: the weight of their set.
    weight: Vec<usize>,
}

impl DisjointSets {
    /// Sets of one member each, all of weight 1.
    #[must_use]
    pub fn new(count: usize) -> Self {
        Self::with_weights(vec![1; count])
    }

    /// Sets of one member each.
    #[must_use]
    pub fn with_weights(weight: Vec<usize>) -> Self {
        Self { parent: (0..weight.len()).collect(), weight }
    }

    /// The member that represents a set; halves the path to it.
    pub fn root(&mut self, mut member: usize) -> usize {
        while self.parent[member] != member {
            self.parent[member] = self.parent[self.parent[member]];
            member = self.parent[member];
        }
        member
    }

    /// Weight of the set of a member.
    pub fn weight(&mut self, member: usize) -> usize {
        let root = self.root(member);
        self.weight[root]
    }

    /// Joins the sets of two members under the root of the first one; their weight if they were different.
    pub fn join(&mut self, first: usize, second: usize) -> Option<usize> {
        let (root, other) = (self.root(first), self.root(second));
        if root == other {
            return None;
        }
        self.parent[other] = root;
        self.weight[root] += self.weight[other];
        Some(self.weight[root])
    }

    /// The set of every member; sets are numbered by their first members.
    pub fn numbers(&mut self) -> Vec<u32> {
        let count = self.parent.len();
        let (mut number_of_root, mut next) = (vec![None; count], 0);
        let number = |member| {
            let root = self.root(member);
            *number_of_root[root].get_or_insert_with(|| {
                next += 1;
                next - 1
            })
        };
        (0..count).map(number).collect()
    }
}

/// Distance of nodes that are not reached.
pub const UNREACHED: u32 = u32::MAX;

/// Number of edges from the nearest of some nodes to every node.
pub fn distances<N: IntoIterator<Item = usize>>(
    count: usize,
    from: impl IntoIterator<Item = usize>,
    neighbours: impl Fn(usize) -> N,
) -> Vec<u32> {
    let mut distances = vec![UNREACHED; count];
    let mut queue: Vec<usize> = from.into_iter().collect();
    queue.iter().for_each(|&node| distances[node] = 0);
    let mut next = 0;
    while let Some(&node) = queue.get(next) {
        next += 1;
        for other in neighbours(node) {
            if distances[other] == UNREACHED {
                distances[other] = distances[node] + 1;
                queue.push(other);
            }
        }
    }
    distances
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_add_their_weights_under_the_first_root() {
        let mut sets = DisjointSets::with_weights(vec![1, 2, 4, 8, 16]);
        assert_eq!((sets.join(3, 1), sets.join(1, 4), sets.join(4, 3)), (Some(10), Some(26), None));
        assert_eq!((sets.root(4), sets.weight(1), sets.weight(2)), (3, 26, 4));
        assert_eq!(sets.numbers(), [0, 1, 2, 1, 1]);
    }

    #[test]
    fn distances_are_those_to_the_nearest() {
        let edges: [&[usize]; 6] = [&[1], &[0, 2], &[1, 3], &[2], &[5], &[4]];
        let of = |node: usize| edges[node].iter().copied();
        assert_eq!(distances(6, [0, 3], of), [0, 1, 1, 0, UNREACHED, UNREACHED]);
        assert_eq!(distances(2, [], of), [UNREACHED; 2]);
    }
}
