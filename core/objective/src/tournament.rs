//! The largest of numbers that change.

/// Numbers of zero or more, and the largest of them, as the winner of a tournament: a change takes a step for every round.
#[derive(Debug, Clone)]
pub(crate) struct Tournament {
    /// The root is at 1, the children of a node at twice its index; the numbers are the leaves.
    nodes: Vec<i64>,
    leaves: usize,
}

impl Tournament {
    pub(crate) fn new(values: &[i64]) -> Self {
        let leaves = values.len().next_power_of_two();
        let mut nodes = vec![0; 2 * leaves];
        nodes[leaves..leaves + values.len()].copy_from_slice(values);
        for node in (1..leaves).rev() {
            nodes[node] = nodes[2 * node].max(nodes[2 * node + 1]);
        }
        Self { nodes, leaves }
    }

    /// The largest number; zero if there is none.
    pub(crate) fn largest(&self) -> i64 {
        self.nodes[1]
    }

    /// Adds to numbers; every index is given once.
    pub(crate) fn add(&mut self, changes: &[(u32, i64)]) {
        for &(index, change) in changes {
            let mut node = self.leaves + index as usize;
            self.nodes[node] += change;
            while node > 1 {
                node /= 2;
                self.nodes[node] = self.nodes[2 * node].max(self.nodes[2 * node + 1]);
            }
        }
    }

    /// The largest number after adding to some; `changes` is sorted by index, every index given once.
    pub(crate) fn largest_after(&self, changes: &[(u32, i64)]) -> i64 {
        let sums = changes.iter().map(|&(index, change)| self.nodes[self.leaves + index as usize] + change);
        let mut largest = sums.max().unwrap_or(0).max(0);
        let mut open = vec![1];
        while let Some(node) = open.pop() {
            if self.nodes[node] <= largest {
                continue;
            }
            if node < self.leaves {
                let (left, right) = (2 * node, 2 * node + 1);
                let is_left_larger = self.nodes[left] > self.nodes[right];
                open.extend(if is_left_larger { [right, left] } else { [left, right] });
            } else if changes.binary_search_by_key(&((node - self.leaves) as u32), |change| change.0).is_err()
            {
                largest = self.nodes[node];
            }
        }
        largest
    }
}

/// Sorts changes by index and adds up those of one.
pub(crate) fn joined(mut changes: Vec<(u32, i64)>) -> Vec<(u32, i64)> {
    changes.sort_unstable_by_key(|change| change.0);
    changes.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        if same {
            kept.1 += next.1;
        }
        same
    });
    changes
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_largest_is_that_of_a_list(
            mut values in prop::collection::vec(0i64..50, 1..20),
            rounds in prop::collection::vec(prop::collection::vec((any::<prop::sample::Index>(), 0i64..50), 0..6), 0..10),
        ) {
            let mut tournament = Tournament::new(&values);
            for round in rounds {
                let mut after = values.clone();
                round.iter().for_each(|(index, value)| after[index.index(values.len())] = *value);
                let changes: Vec<_> = (0..).zip(after.iter().zip(&values).map(|(a, b)| a - b)).collect();
                let changes: Vec<_> = changes.into_iter().filter(|change| change.1 != 0).collect();
                let largest = after.iter().copied().max().unwrap();
                prop_assert_eq!(tournament.largest_after(&changes), largest);
                tournament.add(&changes);
                prop_assert_eq!(tournament.largest(), largest);
                values = after;
            }
        }
    }
}
