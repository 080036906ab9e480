//! Fast numbering of keys, where few keys repeat often.

use std::collections::HashMap;
use std::hash::Hash;

/// Initial number of slots.
const SLOTS: usize = 256;

/// Maximum number of slots.
const MOST_SLOTS: usize = 1 << 18;

/// Number of slots that are probed for a key.
const REACH: usize = 16;

/// Number that marks an empty slot; there are never that many keys.
const EMPTY: u32 = u32::MAX;

/// A key with a preferred slot.
pub(crate) trait Key: Copy + Default + Eq + Hash {
    /// The preferred slot; keys that occur together should differ in the lowest bits.
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

/// Numbers keys from zero in order of first appearance. Ids in traces are sparse, but the lowest bits of
/// those that occur together differ. So a table indexed by the lowest bits, with at least two slots per key,
/// holds nearly all keys. The rest goes to a hash map, so no choice of ids makes this slow.
#[derive(Debug)]
pub(crate) struct Numbering<K> {
    /// A power of two.
    slots: Vec<(K, u32)>,
    /// Keys without a free slot in reach.
    others: HashMap<K, u32>,
    /// Number of keys.
    count: u32,
}

impl<K: Key> Numbering<K> {
    pub(crate) fn new() -> Self {
        Self { slots: vec![(K::default(), EMPTY); SLOTS], others: HashMap::new(), count: 0 }
    }

    /// Number of a key.
    #[expect(clippy::inline_always, reason = "it is a part of the loop over all events")]
    #[inline(always)]
    pub(crate) fn of(&mut self, key: K) -> u32 {
        match self.slots[key.slot() as usize & (self.slots.len() - 1)] {
            (known, number) if known == key && number != EMPTY => number,
            _ => self.look_up(key),
        }
    }

    #[inline(never)]
    fn look_up(&mut self, key: K) -> u32 {
        let number = self.number(key, self.count);
        if number == self.count {
            self.count += 1;
            if self.count as usize > self.slots.len() / 2 && self.slots.len() < MOST_SLOTS {
                self.grow();
            }
        }
        number
    }

    /// Number of a key; `next` for a new key.
    fn number(&mut self, key: K, next: u32) -> u32 {
        let last = self.slots.len() - 1;
        for place in (0..REACH).map(|step| (key.slot() as usize).wrapping_add(step) & last) {
            match &mut self.slots[place] {
                // Slots are never freed, so the key is not in `others`.
                slot @ (_, EMPTY) => {
                    *slot = (key, next);
                    return next;
                }
                (known, number) if *known == key => return *number,
                _ => {}
            }
        }
        *self.others.entry(key).or_insert(next)
    }

    fn grow(&mut self) {
        let slots = vec![(K::default(), EMPTY); 2 * self.slots.len()];
        let known = std::mem::replace(&mut self.slots, slots);
        let others = std::mem::take(&mut self.others);
        for (key, number) in known.into_iter().filter(|(_, number)| *number != EMPTY).chain(others) {
            self.number(key, number);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn keys_are_numbered_in_the_order_they_come(
            keys in prop::collection::vec((0..4u32, 0..900u32), 0..600),
            // Keys that crowd into few slots, or spread over many.
            spread in prop::sample::select(vec![1u32, 64, 1 << 12]),
        ) {
            let keys = keys.into_iter().map(|(first, second)| (first, second * spread));
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
