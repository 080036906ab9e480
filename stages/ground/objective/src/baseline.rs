//! The placements that every mapping has to beat.

use rand_pcg::Pcg64;
use rand_pcg::rand_core::{Rng, SeedableRng};

/// Rank `i` on slot `i`, as launchers do it.
#[must_use]
pub fn linear(ranks: usize) -> Vec<u32> {
    (0..ranks as u32).collect()
}

/// Ranks on slots drawn at random: every placement on `slots` slots is equally likely.
///
/// The first steps of a Fisher–Yates shuffle; the seed is one of [`hopmap_model::seed_stream`]. There are at least as many
/// slots as ranks.
#[must_use]
pub fn random(ranks: usize, slots: usize, seed: [u8; 32]) -> Vec<u32> {
    let mut random = Pcg64::from_seed(seed);
    let mut placement = linear(slots);
    let ranks = ranks.min(slots);
    for rank in 0..ranks {
        let chosen = rank + below(&mut random, (slots - rank) as u32) as usize;
        placement.swap(rank, chosen);
    }
    placement.truncate(ranks);
    placement
}

/// A number below a bound, each equally likely (Lemire 2019, Fast random integer generation in an interval).
fn below(random: &mut Pcg64, bound: u32) -> u32 {
    let rejected = bound.wrapping_neg() % bound;
    loop {
        let product = u64::from((random.next_u64() >> 32) as u32) * u64::from(bound);
        if product as u32 >= rejected {
            return (product >> 32) as u32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopmap_model::seed_stream;
    use std::collections::{BTreeMap, BTreeSet};

    #[test]
    fn every_rank_gets_a_slot_of_its_own() {
        let placement = random(50, 64, seed_stream("test", 1, 0));
        let distinct: BTreeSet<_> = placement.iter().collect();
        assert_eq!((placement.len(), distinct.len()), (50, 50));
        assert!(placement.iter().all(|&slot| slot < 64));
    }

    #[test]
    fn every_placement_is_equally_likely() {
        let mut counts = BTreeMap::new();
        for sample in 0..12_000 {
            *counts.entry(random(2, 4, seed_stream("test", 1, sample))).or_insert(0) += 1;
        }
        assert_eq!(counts.len(), 12);
        assert!(counts.values().all(|&count| (900..1100).contains(&count)), "{counts:?}");
    }

    #[test]
    fn the_stream_of_a_seed_never_changes() {
        assert_eq!(random(6, 1000, seed_stream("test", 1, 0)), [862, 109, 895, 12, 418, 149]);
    }
}
