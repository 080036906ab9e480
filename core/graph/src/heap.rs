//! A priority queue in which entries can change.

use std::cmp::Reverse;

/// An entry of an [`IndexedHeap`]: what it is ordered by, and its member, which is a dense index from zero.
pub trait HeapEntry: Ord + Copy {
    /// The member that the entry is of.
    fn member(self) -> u32;
}

impl<K: Ord + Copy> HeapEntry for (K, u32) {
    fn member(self) -> u32 {
        self.1
    }
}

impl<K: Ord + Copy, L: Ord + Copy> HeapEntry for (K, L, u32) {
    fn member(self) -> u32 {
        self.2
    }
}

impl<E: HeapEntry> HeapEntry for Reverse<E> {
    fn member(self) -> u32 {
        self.0.member()
    }
}

/// Binary heap with at most one entry of each member, the largest entry first.
#[derive(Debug, Clone)]
pub struct IndexedHeap<E> {
    entries: Vec<E>,
    /// Position of the entry of each member.
    positions: Vec<u32>,
}

const ABSENT: u32 = u32::MAX;

impl<E> Default for IndexedHeap<E> {
    fn default() -> Self {
        Self { entries: Vec::new(), positions: Vec::new() }
    }
}

impl<E: HeapEntry> IndexedHeap<E> {
    /// The largest entry.
    #[inline]
    #[must_use]
    pub fn first(&self) -> Option<E> {
        self.entries.first().copied()
    }

    /// Inserts the entry of a member, or replaces it.
    pub fn set(&mut self, entry: E) {
        let member = entry.member() as usize;
        if member >= self.positions.len() {
            self.positions.resize(member + 1, ABSENT);
        }
        if self.positions[member] == ABSENT {
            self.positions[member] = self.entries.len() as u32;
            self.entries.push(entry);
        }
        self.place(self.positions[member] as usize, entry);
    }

    /// Removes the entry of a member, if it has one.
    pub fn remove(&mut self, member: u32) {
        let Some(position) = self.positions.get_mut(member as usize).filter(|at| **at != ABSENT) else {
            return;
        };
        let position = std::mem::replace(position, ABSENT) as usize;
        if let Some(last) = self.entries.pop()
            && position < self.entries.len()
        {
            self.place(position, last);
        }
    }

    /// Removes all entries.
    pub fn clear(&mut self) {
        for entry in self.entries.drain(..) {
            self.positions[entry.member() as usize] = ABSENT;
        }
    }

    /// Puts an entry in the place of another one, and from there where it belongs.
    fn place(&mut self, mut position: usize, entry: E) {
        while position > 0 {
            let parent = (position - 1) / 2;
            if self.entries[parent] >= entry {
                break;
            }
            self.put(position, self.entries[parent]);
            position = parent;
        }
        loop {
            let mut child = 2 * position + 1;
            if child + 1 < self.entries.len() && self.entries[child + 1] > self.entries[child] {
                child += 1;
            }
            if child >= self.entries.len() || self.entries[child] <= entry {
                break;
            }
            self.put(position, self.entries[child]);
            position = child;
        }
        self.put(position, entry);
    }

    fn put(&mut self, position: usize, entry: E) {
        self.entries[position] = entry;
        self.positions[entry.member() as usize] = position as u32;
    }
}
