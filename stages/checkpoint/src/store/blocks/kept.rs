//! The blocks that were used last.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// A block: its pack, and its number in it.
pub(super) type Key = (u32, u32);

/// What a block takes beside its bytes.
const OVERHEAD: usize = 256;

/// Blocks that were used last, of about so many bytes.
#[derive(Debug)]
pub(super) struct Kept {
    /// The turn in which each was used last, and its bytes.
    blocks: HashMap<Key, (u64, Arc<Vec<u8>>)>,
    /// Which was used in a turn.
    turns: BTreeMap<u64, Key>,
    bytes: usize,
    most: usize,
    turn: u64,
}

impl Kept {
    pub(super) fn new(most: usize) -> Self {
        Self { blocks: HashMap::new(), turns: BTreeMap::new(), bytes: 0, most, turn: 0 }
    }

    pub(super) fn get(&mut self, key: Key) -> Option<Arc<Vec<u8>>> {
        let (turn, bytes) = self.blocks.get_mut(&key)?;
        self.turns.remove(turn);
        self.turn += 1;
        *turn = self.turn;
        self.turns.insert(self.turn, key);
        Some(Arc::clone(bytes))
    }

    pub(super) fn insert(&mut self, key: Key, bytes: Arc<Vec<u8>>) {
        self.turn += 1;
        self.bytes += bytes.len() + OVERHEAD;
        self.turns.insert(self.turn, key);
        if let Some((turn, old)) = self.blocks.insert(key, (self.turn, bytes)) {
            self.turns.remove(&turn);
            self.bytes -= old.len() + OVERHEAD;
        }
    }

    /// The block that was used longest ago, if there is no room for so many bytes more. It is kept no longer.
    pub(super) fn make_room(&mut self, bytes: usize) -> Option<Arc<Vec<u8>>> {
        if self.bytes + bytes <= self.most {
            return None;
        }
        let (_, key) = self.turns.pop_first()?;
        let (_, gone) = self.blocks.remove(&key)?;
        self.bytes -= gone.len() + OVERHEAD;
        Some(gone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_used_longest_ago_makes_room() {
        let mut kept = Kept::new(3 * (100 + OVERHEAD));
        for block in 0..3 {
            assert!(kept.make_room(100).is_none());
            kept.insert((1, block), Arc::new(vec![block as u8; 100]));
        }
        assert!(kept.get((1, 0)).is_some());
        assert_eq!(kept.make_room(100).as_deref(), Some(&vec![1; 100]));
        assert!(kept.make_room(100).is_none());
        assert!(kept.get((1, 1)).is_none() && kept.get((1, 0)).is_some() && kept.get((1, 2)).is_some());
        // What is longer than all that may be kept empties it, and stays until there is something else.
        assert_eq!(std::iter::from_fn(|| kept.make_room(1 << 20)).count(), 2);
        kept.insert((2, 0), Arc::new(vec![0; 1 << 20]));
        assert_eq!(kept.make_room(1).map(|gone| gone.len()), Some(1 << 20));
        assert_eq!((kept.bytes, kept.turns.len(), kept.blocks.len()), (0, 0, 0));
    }

    #[test]
    fn a_block_that_comes_again_counts_once() {
        let mut kept = Kept::new(10_000);
        for length in [10, 20] {
            kept.insert((1, 1), Arc::new(vec![0; length]));
        }
        assert_eq!((kept.bytes, kept.turns.len()), (20 + OVERHEAD, 1));
    }
}
