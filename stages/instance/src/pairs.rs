//! Programs made of pairs of ranks that send to each other.

use hopmap_model::{Edge, Process, TaskGraph};
use hopmap_random::{Draw, Pcg64};

use crate::InstanceError;

/// Most ranks of a generated graph.
pub(crate) const MAX_RANKS: u32 = 1 << 24;

/// Most pairs of ranks that send to each other.
pub(crate) const MAX_PAIRS: u64 = 1 << 26;

/// Rounds of draws of a graph in which some pairs are much likelier than others. What is missing then stays missing.
pub(crate) const MOST_ROUNDS: u32 = 16;

/// Two ranks, the lower one first.
pub(crate) type Pair = (u32, u32);

/// The pairs that a mean degree makes, after checking both.
pub(crate) fn pairs_of_degree(n: u32, degree: f64) -> Result<u64, InstanceError> {
    check_ranks(n)?;
    let most = f64::from(n - 1);
    if !(degree >= 0.0 && degree <= most) {
        return Err(InstanceError::Degree { degree, most });
    }
    let pairs = libm::round(f64::from(n) * degree / 2.0);
    if pairs > MAX_PAIRS as f64 {
        return Err(InstanceError::TooManyPairs);
    }
    Ok(pairs as u64)
}

/// Checks a number of ranks.
pub(crate) fn check_ranks(n: u32) -> Result<(), InstanceError> {
    match (1..=MAX_RANKS).contains(&n) {
        true => Ok(()),
        false => Err(InstanceError::Ranks { n }),
    }
}

/// What every pair sends each way: a number of bytes from a range, drawn.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sizes {
    least: u32,
    most: u32,
}

impl Sizes {
    /// Checks a range of bytes.
    pub(crate) fn new([least, most]: [u32; 2]) -> Result<Self, InstanceError> {
        match least <= most && most <= 1 << 30 {
            true => Ok(Self { least, most }),
            false => Err(InstanceError::Sizes { least, most }),
        }
    }

    pub(crate) fn draw(self, draws: &mut Pcg64) -> u64 {
        u64::from(draws.between(self.least, self.most))
    }
}

/// Draws until there are so many different pairs, or for so many rounds; every round draws as many as are missing. Sorted.
pub(crate) fn distinct(wanted: u64, most_rounds: u32, mut draw: impl FnMut() -> Pair) -> Vec<Pair> {
    let mut pairs: Vec<Pair> = Vec::with_capacity(wanted as usize);
    for _ in 0..most_rounds {
        let missing = wanted - pairs.len() as u64;
        if missing == 0 {
            break;
        }
        pairs.extend((0..missing).map(|_| draw()));
        pairs.sort_unstable();
        pairs.dedup();
    }
    pairs
}

/// The program in which every pair sends one message each way, of the bytes that `bytes` says for the pairs one after another.
/// Pairs are sorted, and each stands once.
pub(crate) fn both_ways(n: u32, pairs: &[Pair], mut bytes: impl FnMut(Pair) -> u64) -> TaskGraph {
    // Where the next edge of every rank to a lower one goes, and to a higher one.
    let mut lower = vec![0usize; n as usize];
    let mut higher = vec![0usize; n as usize];
    for &(one, other) in pairs {
        higher[one as usize] += 1;
        lower[other as usize] += 1;
    }
    let mut begin = 0;
    for (lower, higher) in lower.iter_mut().zip(&mut higher) {
        let (to_lower, to_higher) = (*lower, *higher);
        *lower = begin;
        *higher = begin + to_lower;
        begin += to_lower + to_higher;
    }
    let mut edges = vec![Edge { source: 0, destination: 0, messages: 1, bytes: 0 }; 2 * pairs.len()];
    for &(one, other) in pairs {
        let bytes = bytes((one, other));
        let there = &mut higher[one as usize];
        edges[*there] = Edge { source: one, destination: other, messages: 1, bytes };
        *there += 1;
        let back = &mut lower[other as usize];
        edges[*back] = Edge { source: other, destination: one, messages: 1, bytes };
        *back += 1;
    }
    TaskGraph { processes: vec![Process::default(); n as usize], edges, ..TaskGraph::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn every_pair_sends_both_ways(pairs in prop::collection::btree_set((0u32..20, 0u32..20), 0..60)) {
            let pairs: BTreeSet<Pair> =
                pairs.into_iter().filter(|(a, b)| a != b).map(|(a, b)| (a.min(b), a.max(b))).collect();
            let pairs: Vec<Pair> = pairs.into_iter().collect();
            let graph = both_ways(20, &pairs, |(a, b)| u64::from(100 * a + b));
            prop_assert!(graph.check().is_ok());
            prop_assert_eq!(graph.edges.len(), 2 * pairs.len());
            for edge in &graph.edges {
                let pair = (edge.source.min(edge.destination), edge.source.max(edge.destination));
                prop_assert!(pairs.contains(&pair));
                prop_assert_eq!((edge.messages, edge.bytes), (1, u64::from(100 * pair.0 + pair.1)));
            }
        }
    }

    #[test]
    fn draws_go_on_until_all_are_different() {
        let mut next = 0;
        let draw = || {
            next += 1;
            (0, 1 + next / 3)
        };
        assert_eq!(distinct(4, 9, draw), [(0, 1), (0, 2), (0, 3), (0, 4)]);
        assert_eq!(distinct(4, 3, || (0, 1)), [(0, 1)]);
    }
}
