//! Random damage to data.

/// Pseudo-random numbers (`SplitMix64`).
#[derive(Debug)]
pub struct Random(pub u64);

impl Random {
    /// The next number.
    #[expect(clippy::should_implement_trait, reason = "it never ends")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below a bound; 0 if that is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }

    /// A byte, usually one with meaning in the format.
    fn byte(&mut self, telling: &[u8]) -> u8 {
        if self.below(2) == 0 { telling[self.below(telling.len())] } else { self.next() as u8 }
    }

    /// A position in a file, more often near its ends.
    fn place(&mut self, length: usize) -> usize {
        match self.below(4) {
            0 => self.below(length.min(40)),
            1 => length - 1 - self.below(length.min(40)),
            _ => self.below(length),
        }
    }
}

/// Changes some bytes: flips, overwrites, truncates, removes, inserts or repeats. `significant` are bytes
/// with meaning in the format.
pub fn damage(bytes: &mut Vec<u8>, random: &mut Random, telling: &[u8]) {
    for _ in 0..=random.below(3) {
        if bytes.is_empty() {
            return;
        }
        let place = random.place(bytes.len());
        let end = (place + 1 + random.below(12)).min(bytes.len());
        match random.below(8) {
            0 => bytes[place] ^= 1 << random.below(8),
            1..=3 => bytes[place] = random.byte(telling),
            4 => bytes.truncate(place),
            5 => drop(bytes.drain(place..end)),
            6 => bytes[place..end].iter_mut().for_each(|byte| *byte = random.byte(telling)),
            _ => {
                let copied = bytes[place..end].to_vec();
                bytes.splice(place..place, copied);
            }
        }
    }
}
