//! Baselines with which mappings are compared.

use hopmap_model::SystemGraph;
use hopmap_random::{Draw, Pcg64, SeedableRng};

/// Linear (block) mapping: rank `i` on slot `i`, the default of most launchers.
#[must_use]
pub fn linear(ranks: usize) -> Vec<u32> {
    (0..ranks as u32).collect()
}

/// All slots in cyclic host order: the first slot of every host, then all second slots, and so on.
///
/// Rank `i` on slot `i` of this order is the cyclic or round-robin mapping of launchers (`srun -m cyclic`,
/// `mpirun --map-by node`).
#[must_use]
pub fn round_robin(system: &SystemGraph) -> Vec<u32> {
    // Remaining slots of every host: the next one and their number.
    let mut hosts: Vec<(u32, u32)> = system.hosts().map(|(_, first, slots)| (first, slots)).collect();
    let mut order = Vec::with_capacity(system.slots.len());
    while !hosts.is_empty() {
        hosts.retain_mut(|(next, left)| {
            order.push(*next);
            *next += 1;
            *left -= 1;
            *left > 0
        });
    }
    order
}

/// Random mapping: all mappings to `slots` slots are equally likely.
///
/// A partial Fisher–Yates shuffle, seeded by [`hopmap_model::seed_stream`]. There must be at least as many
/// slots as ranks.
#[must_use]
pub fn random(ranks: usize, slots: usize, seed: [u8; 32]) -> Vec<u32> {
    let mut random = Pcg64::from_seed(seed);
    let mut placement = linear(slots);
    let ranks = ranks.min(slots);
    for rank in 0..ranks {
        let chosen = rank + random.below_unbiased((slots - rank) as u32) as usize;
        placement.swap(rank, chosen);
    }
    placement.truncate(ranks);
    placement
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopmap_model::seed_stream;
    use std::collections::{BTreeMap, BTreeSet};

    #[test]
    fn slots_are_distinct() {
        let placement = random(50, 64, seed_stream("test", 1, 0));
        let distinct: BTreeSet<_> = placement.iter().collect();
        assert_eq!((placement.len(), distinct.len()), (50, 50));
        assert!(placement.iter().all(|&slot| slot < 64));
    }

    #[test]
    fn hosts_alternate_until_they_are_full() {
        let slots = [1, 3, 2].into_iter().enumerate().flat_map(|(host, slots)| {
            (0..slots).map(move |core| hopmap_model::Slot { host: host as u32, core })
        });
        let system = SystemGraph {
            nodes: Vec::new(),
            links: Vec::new(),
            slots: slots.collect(),
            cost: hopmap_model::CostModel::Levels(hopmap_model::Levels::default()),
            routing: hopmap_model::Routing::default(),
            calibration: Vec::new(),
        };
        assert_eq!(round_robin(&system), [0, 1, 4, 2, 5, 3]);
        assert!(round_robin(&SystemGraph { slots: Vec::new(), ..system }).is_empty());
    }

    #[test]
    fn every_mapping_is_equally_likely() {
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
