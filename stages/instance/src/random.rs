//! Programs in which random pairs of ranks send to each other.

use hopmap_model::{Stage, TaskGraph, seed_stream};
use hopmap_random::{Draw, Pcg64, SeedableRng};

use crate::pairs::{Pair, Sizes, both_ways, distinct, pairs_of_degree};
use crate::{InstanceError, RandomGraph, RandomGraphParams};

/// A uniform random graph G(n, m) (Erdős and Rényi 1959): every set of m = n · degree / 2 pairs is equally likely.
pub fn random_graph(params: &RandomGraphParams) -> Result<TaskGraph, InstanceError> {
    let (n, wanted, sizes) = check(params)?;
    let mut draws = Pcg64::from_seed(seed_stream(RandomGraph::KIND, params.seed, 0));
    let all = u64::from(n) * u64::from(n - 1) / 2;
    // No more than half of all pairs are drawn: the others would be ever harder to hit.
    let sought = wanted.min(all - wanted);
    let mut pairs = distinct(sought, u32::MAX, || pair(&mut draws, n));
    if sought < wanted {
        pairs = others(n, &pairs);
    }
    Ok(both_ways(n, &pairs, |_| sizes.draw(&mut draws)))
}

/// Checks the parameters; gives ranks, pairs and what they send.
pub(crate) fn check(params: &RandomGraphParams) -> Result<(u32, u64, Sizes), InstanceError> {
    Ok((params.n, pairs_of_degree(params.n, params.degree)?, Sizes::new(params.bytes)?))
}

/// Two different ranks, every pair equally likely.
fn pair(draws: &mut Pcg64, n: u32) -> Pair {
    let one = draws.below_unbiased(n);
    let other = draws.below_unbiased(n - 1);
    let other = if other >= one { other + 1 } else { other };
    (one.min(other), one.max(other))
}

/// All pairs but these, which are sorted.
fn others(n: u32, pairs: &[Pair]) -> Vec<Pair> {
    let mut left_out = pairs.iter().peekable();
    let all = (0..n).flat_map(|one| (one + 1..n).map(move |other| (one, other)));
    all.filter(|pair| left_out.next_if(|left_out| *left_out == pair).is_none()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn params(n: u32, degree: f64, seed: u64) -> RandomGraphParams {
        RandomGraphParams { n, degree, bytes: [1, 9], seed }
    }

    #[test]
    fn every_set_of_pairs_is_equally_likely() {
        for pairs in [2, 4] {
            let mut counts = BTreeMap::new();
            for seed in 0..3000 {
                let graph = random_graph(&params(4, f64::from(pairs) / 2.0, seed)).unwrap();
                let set: Vec<_> = graph.edges.iter().map(hopmap_model::Edge::pair).collect();
                *counts.entry(set).or_insert(0) += 1;
            }
            assert_eq!(counts.len(), 15);
            assert!(counts.values().all(|&count| (150..250).contains(&count)), "{counts:?}");
        }
    }

    #[test]
    fn the_graph_of_a_seed_never_changes() {
        let graph = random_graph(&params(1000, 4.0, 1)).unwrap();
        let edge = |at: usize| (graph.edges[at].pair(), graph.edges[at].bytes);
        assert_eq!([0, 1999, 3999].map(edge), [((0, 644), 8), ((494, 143), 1), ((999, 927), 2)]);
    }

    #[test]
    fn senseless_parameters_are_refused() {
        let message = |n, degree| random_graph(&params(n, degree, 1)).unwrap_err().to_string();
        assert_eq!(message(0, 0.0), "n is 0");
        assert_eq!(message(1 << 25, 1.0), "n is 33554432");
        assert_eq!(message(4, 3.5), "degree is 3.5, and not from 0 to 3");
        assert_eq!(message(4, -1.0), "degree is -1, and not from 0 to 3");
        assert_eq!(message(4, f64::NAN), "degree is NaN, and not from 0 to 3");
        assert_eq!(message(1 << 24, 100.0), "there would be more than 67108864 pairs of neighbours");
        let error = random_graph(&RandomGraphParams { bytes: [3, 2], ..params(4, 1.0, 1) }).unwrap_err();
        assert_eq!(error.to_string(), "bytes is [3, 2]");
        assert_eq!(random_graph(&params(1, 0.0, 1)).unwrap().ranks(), 1);
    }

    proptest! {
        #[test]
        fn degree_and_sizes_are_kept(n in 1u32..40, share in 0.0..=1.0f64, seed in 0u64..9) {
            let degree = share * f64::from(n - 1);
            let graph = random_graph(&params(n, degree, seed)).unwrap();
            prop_assert!(graph.check().is_ok());
            prop_assert_eq!(graph.edges.len(), 2 * (f64::from(n) * degree / 2.0).round() as usize);
            prop_assert!(graph.edges.iter().all(|edge| (1..=9).contains(&edge.bytes)));
        }
    }
}
