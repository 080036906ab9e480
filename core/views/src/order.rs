//! Ranks in the order of the machine.

use std::ops::Range;

use hopmap_model::{CostModel, Mapping, SystemGraph};

/// The order of ranks along the axes of a matrix.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RankOrder {
    /// The rank at every position.
    pub ranks: Vec<u32>,
    /// Positions of the ranks of every group of the machine, on every level that is drawn, innermost first.
    pub levels: Vec<Vec<Range<usize>>>,
}

impl RankOrder {
    /// Ranks in the order of their slots, those of one host together.
    #[must_use]
    pub fn by_slot(mapping: &Mapping) -> Self {
        let mut ranks: Vec<u32> = (0..mapping.ranks.len() as u32).collect();
        ranks.sort_by_key(|&rank| mapping.ranks[rank as usize].slot);
        let hosts = runs(&ranks, |rank| mapping.ranks[rank as usize].host);
        Self { ranks, levels: vec![hosts] }
    }

    /// Rank `i` on `slots[i]` in the order of the tree of a machine: the ranks of every group on every level together. Of a
    /// machine that is no tree, in the order of its slots, those of one host together.
    #[must_use]
    pub fn in_machine(slots: &[u32], system: &SystemGraph) -> Self {
        let slot = |rank: u32| slots[rank as usize];
        let mut ranks: Vec<u32> = (0..slots.len() as u32).collect();
        // Of costs that follow from routes the tree that they are, if they are one.
        let explicit = system.explicit(0);
        let Some(CostModel::Levels(levels)) = explicit.as_ref().ok().map(|system| &system.cost) else {
            ranks.sort_by_key(|&rank| slot(rank));
            let hosts = runs(&ranks, |rank| system.slots[slot(rank) as usize].host);
            return Self { ranks, levels: vec![hosts] };
        };
        // Groups in the order of their first slots, whatever their numbers.
        let firsts: Vec<Vec<u32>> = levels.groups.iter().map(|groups| first_slots(groups)).collect();
        let place =
            |rank: u32, level: usize| firsts[level][levels.groups[level][slot(rank) as usize] as usize];
        ranks.sort_by(|&a, &b| {
            let outermost_first = (0..firsts.len()).rev().map(|level| place(a, level).cmp(&place(b, level)));
            outermost_first
                .fold(std::cmp::Ordering::Equal, std::cmp::Ordering::then)
                .then(slot(a).cmp(&slot(b)))
        });
        let levels = (0..firsts.len()).map(|level| runs(&ranks, |rank| place(rank, level))).collect();
        Self { ranks, levels }
    }
}

/// Positions of neighbours that have something in common.
fn runs(ranks: &[u32], group: impl Fn(u32) -> u32) -> Vec<Range<usize>> {
    let mut begin = 0;
    let runs = ranks.chunk_by(|&a, &b| group(a) == group(b)).map(|run| {
        begin += run.len();
        begin - run.len()..begin
    });
    runs.collect()
}

/// The first slot of every group.
fn first_slots(groups: &[u32]) -> Vec<u32> {
    let mut first = vec![u32::MAX; groups.iter().map(|&group| group as usize + 1).max().unwrap_or(0)];
    for (slot, &group) in (0..).zip(groups) {
        first[group as usize] = first[group as usize].min(slot);
    }
    first
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init, reason = "a level with one group")]
mod tests {
    use super::*;
    use hopmap_model::{Levels, Matrix, Slot};

    /// Four hosts of two cores; hosts 0 and 2 share a switch, and so do 1 and 3.
    fn machine() -> SystemGraph {
        SystemGraph {
            nodes: Vec::new(),
            links: Vec::new(),
            slots: (0..8).map(|slot| Slot { host: slot / 2, core: slot % 2 }).collect(),
            cost: CostModel::Levels(Levels {
                costs: vec![1.0, 10.0, 100.0],
                groups: vec![vec![3, 3, 1, 1, 0, 0, 2, 2], vec![1, 1, 0, 0, 1, 1, 0, 0], vec![0; 8]],
            }),
            routing: hopmap_model::Routing::default(),
        }
    }

    #[test]
    fn ranks_of_a_group_are_together_on_every_level() {
        let order = RankOrder::in_machine(&[0, 1, 2, 3, 4, 5, 6, 7], &machine());
        assert_eq!(order.ranks, [0, 1, 4, 5, 2, 3, 6, 7]);
        assert_eq!(order.levels, [vec![0..2, 2..4, 4..6, 6..8], vec![0..4, 4..8], vec![0..8]]);
    }

    #[test]
    fn empty_groups_are_left_out() {
        let order = RankOrder::in_machine(&[7, 2, 6], &machine());
        assert_eq!(order.ranks, [1, 2, 0]);
        assert_eq!(order.levels, [vec![0..1, 1..3], vec![0..3], vec![0..3]]);
    }

    #[test]
    fn a_machine_without_a_tree_has_hosts() {
        let machine = SystemGraph { cost: CostModel::Matrix(Matrix { costs: vec![0.0; 64] }), ..machine() };
        let order = RankOrder::in_machine(&[3, 0, 2], &machine);
        assert_eq!((order.ranks, order.levels), (vec![1, 2, 0], vec![vec![0..1, 1..3]]));
    }
}
