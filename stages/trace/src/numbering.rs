//! Numbers for keys, found fast when the same few come again and again.

use std::collections::HashMap;
use std::hash::Hash;

/// Slots at first.
const SLOTS: usize = 256;

/// There are never more slots.
const MOST_SLOTS: usize = 1 << 18;

/// A key is in one of so many slots from its own on.
const REACH: usize = 16;

/// The number in an empty slot: more keys than fit into memory.
const EMPTY: u32 = u32::MAX;

/// A key that says which slot it is kept in.
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

/// Numbers keys from zero in the order in which they first come. Ids in traces are sparse, but the lowest bits of those that
/// come together differ, so slots by the lowest bits, at least two per key, are nearly all there is to it. Keys that find no
/// slot go to a hash map, so that no choice of ids makes this slow.
#[derive(Debug)]
pub(crate) struct Numbering<K> {
    /// As many as a power of two.
    slots: Vec<(K, u32)>,
    /// Keys for which no slot in reach is free.
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

    /// Number of a key, which is `next` if it is new.
    fn number(&mut self, key: K, next: u32) -> u32 {
        let last = self.slots.len() - 1;
        for place in (0..REACH).map(|step| (key.slot() as usize).wrapping_add(step) & last) {
            match &mut self.slots[place] {
                // Slots are never freed, so the key is not among the others.
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
            // Keys that all belong into few slots, or into many.
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
