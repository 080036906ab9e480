//! Numbers for keys, found fast when the same few come again and again.

use std::collections::HashMap;
use std::hash::Hash;

/// Slots of the cache at first.
const SLOTS: usize = 256;

/// The cache does not grow beyond this.
const MOST_SLOTS: usize = 1 << 16;

/// The number in an empty slot: more keys than fit into memory.
const EMPTY: u32 = u32::MAX;

/// A key that says which slot of the cache it is kept in.
pub(crate) trait Key: Copy + Default + Eq + Hash {
    /// Any number; keys that come together should differ in the lowest bits.
    fn slot(self) -> u32;
}

impl Key for u32 {
    #[inline]
    fn slot(self) -> u32 {
        self
    }
}

impl Key for (u32, u32) {
    #[inline]
    fn slot(self) -> u32 {
        self.0.wrapping_mul(31).wrapping_add(self.1)
    }
}

impl Key for (u32, u32, u32) {
    #[inline]
    fn slot(self) -> u32 {
        (self.0, self.1).slot().wrapping_add(self.2.wrapping_mul(97))
    }
}

/// Numbers keys from zero in the order in which they first come. Ids in traces are sparse, but a location uses few of
/// them: in front of the hash map is one slot for every value of the lowest bits, and more slots than keys.
#[derive(Debug)]
pub(crate) struct Numbering<K> {
    numbers: HashMap<K, u32>,
    /// As long as a power of two.
    cache: Vec<(K, u32)>,
}

impl<K: Key> Numbering<K> {
    pub(crate) fn new() -> Self {
        Self { numbers: HashMap::new(), cache: vec![(K::default(), EMPTY); SLOTS] }
    }

    /// Number of a key.
    #[expect(clippy::inline_always, reason = "it is a part of the loop over all events")]
    #[inline(always)]
    pub(crate) fn of(&mut self, key: K) -> u32 {
        match self.cache[key.slot() as usize & (self.cache.len() - 1)] {
            (known, number) if known == key && number != EMPTY => number,
            _ => self.look_up(key),
        }
    }

    #[cold]
    fn look_up(&mut self, key: K) -> u32 {
        let next = self.numbers.len() as u32;
        let number = *self.numbers.entry(key).or_insert(next);
        if self.numbers.len() > self.cache.len() / 2 && self.cache.len() < MOST_SLOTS {
            self.cache = vec![(K::default(), EMPTY); 2 * self.cache.len()];
        }
        let slot = key.slot() as usize & (self.cache.len() - 1);
        self.cache[slot] = (key, number);
        number
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn keys_are_numbered_in_the_order_they_come(keys in prop::collection::vec((0..4u32, 0..900u32), 0..200)) {
            let mut numbering = Numbering::new();
            let mut seen: Vec<(u32, u32)> = Vec::new();
            for key in keys {
                if !seen.contains(&key) {
                    seen.push(key);
                }
                prop_assert_eq!(Some(numbering.of(key) as usize), seen.iter().position(|known| *known == key));
            }
        }
    }
}
