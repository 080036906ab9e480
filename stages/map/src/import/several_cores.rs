//! Ranks that may run on several cores: each takes one of them as its slot.

use std::collections::HashMap;
use std::ops::Range;

/// The slots that ranks may take, as parts of lists that they share.
#[derive(Debug, Default)]
pub(super) struct SlotLists {
    /// Slots of a host or a socket in the order of their cores.
    pub(super) lists: Vec<Vec<u32>>,
}

/// Slots of a rank: parts of lists.
pub(super) type Part = (usize, Range<usize>);

impl SlotLists {
    /// A slot for every rank: the first of its own that is free. Ranks with fewer slots come first, so that each has a different slot
    /// wherever the slots of two ranks are apart, or those of one are among those of the other. A rank whose slots are all taken is on
    /// its first one.
    pub(super) fn assigned(&self, ranks: &[Vec<Part>], slots: usize) -> Vec<u32> {
        let mut taken = vec![false; slots];
        let mut assigned = vec![0; ranks.len()];
        // Where the free slots of a list begin, from a place on.
        let mut next: HashMap<(usize, usize), usize> = HashMap::new();
        let mut order: Vec<usize> = (0..ranks.len()).collect();
        order.sort_by_key(|&rank| ranks[rank].iter().map(|(_, part)| part.len()).sum::<usize>());
        for rank in order {
            let mut free = ranks[rank].iter().filter_map(|(list, part)| {
                let place = next.entry((*list, part.start)).or_insert(part.start);
                while *place < part.end && taken[self.lists[*list][*place] as usize] {
                    *place += 1;
                }
                (*place < part.end).then(|| self.lists[*list][*place])
            });
            let first = ranks[rank].first().map_or(0, |(list, part)| self.lists[*list][part.start]);
            assigned[rank] = free.next().unwrap_or(first);
            taken[assigned[rank] as usize] = true;
        }
        assigned
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rank_has_a_slot_of_its_own_if_there_are_enough() {
        let lists = SlotLists { lists: vec![(4..12).collect(), vec![0, 2]] };
        let assigned = |ranks: &[Vec<Part>]| lists.assigned(ranks, 12);
        assert_eq!(assigned(&[vec![(0, 0..4)], vec![(0, 4..8)]]), [4, 8]);
        assert_eq!(assigned(&[vec![(0, 0..8)], vec![(0, 0..8)], vec![(0, 0..1)]]), [5, 6, 4]);
        assert_eq!(assigned(&[(); 3].map(|()| vec![(1, 0..2), (0, 7..8)])), [0, 2, 11]);
        assert_eq!(assigned(&[(); 2].map(|()| vec![(1, 0..1)])), [0, 0]);
    }
}
