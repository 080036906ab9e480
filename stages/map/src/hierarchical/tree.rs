//! The tree of the slots that may be used.

use std::ops::Range;

use hopmap_objective::Problem;

/// The slots on which ranks may be, in the order of the tree, and the groups that they are in on every level.
pub(super) struct Tree {
    /// Open slots, in the order of the tree.
    pub(super) slots: Vec<u32>,
    /// Where the groups of a level begin, and the end; innermost level first, empty groups left out.
    pub(super) levels: Vec<Vec<u32>>,
}

impl Tree {
    pub(super) fn new(problem: &Problem) -> Self {
        let distance = problem.distance();
        let slots = open_slots(problem);
        let starts = |level: usize| {
            let mut starts = vec![0];
            for (index, pair) in slots.windows(2).enumerate() {
                if distance.group(level, pair[0]) != distance.group(level, pair[1]) {
                    starts.push(index as u32 + 1);
                }
            }
            starts.push(slots.len() as u32);
            starts
        };
        let levels = (0..distance.levels()).map(starts).collect();
        Self { slots, levels }
    }

    /// Number of levels.
    pub(super) fn height(&self) -> usize {
        self.levels.len()
    }

    /// Slots of every group of a level, if all have as many.
    pub(super) fn even_size(&self, level: usize) -> Option<u32> {
        let mut sizes = self.levels[level].windows(2).map(|pair| pair[1] - pair[0]);
        let first = sizes.next()?;
        sizes.all(|size| size == first).then_some(first)
    }

    /// The groups of a level that lie in a run of open slots; single slots on level zero.
    pub(super) fn children(&self, level: usize, run: &Range<usize>) -> Vec<Range<usize>> {
        let Some(level) = level.checked_sub(1) else {
            return run.clone().map(|index| index..index + 1).collect();
        };
        let starts = &self.levels[level];
        let begin = starts.partition_point(|&start| (start as usize) < run.start);
        let pairs = starts[begin..].windows(2).map(|pair| pair[0] as usize..pair[1] as usize);
        pairs.take_while(|group| group.end <= run.end).collect()
    }
}

/// The slots on which some rank may be, in the order of the tree.
fn open_slots(problem: &Problem) -> Vec<u32> {
    let order = problem.distance().order();
    if !problem.is_constrained() {
        return order.to_vec();
    }
    let ranks = problem.ranks() as u32;
    let mut last = 0;
    let mut is_open = |slot: u32| {
        let admitted = (0..ranks).map(|rank| (last + rank) % ranks).find(|&rank| problem.admits(rank, slot));
        last = admitted.unwrap_or(last);
        admitted.is_some()
    };
    order.iter().copied().filter(|&slot| is_open(slot)).collect()
}
