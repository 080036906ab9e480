//! Seeds of random streams.

/// The seed of one random stream: BLAKE3 over the kind of the stage, its `seed` parameter and the island.
///
/// Streams of different stages, seeds or islands are independent, and none depends on the number of threads.
#[must_use]
pub fn seed_stream(kind: &str, seed: u64, island: u64) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&(kind.len() as u64).to_le_bytes());
    hasher.update(kind.as_bytes());
    hasher.update(&seed.to_le_bytes());
    hasher.update(&island.to_le_bytes());
    *hasher.finalize().as_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_part_gives_another_stream() {
        let streams: BTreeSet<_> = [("a", 1, 0), ("b", 1, 0), ("a", 2, 0), ("a", 1, 1)]
            .map(|(kind, seed, island)| seed_stream(kind, seed, island))
            .into();
        assert_eq!(streams.len(), 4);
    }
}
