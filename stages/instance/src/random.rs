//! Random graphs as programs: uniform ones, and ones with a power-law degree distribution, in which a few
//! ranks have very many partners. Also code shared by all programs that consist of pairs of ranks.

use hopmap_model::{Edge, Error, OutOfRange, Process, TaskGraph, require, seed_stream};
use hopmap_random::{Draw, Pcg64, SeedableRng};

use crate::error::{InstanceError, MAX_PAIRS, MAX_RANKS};
use crate::params::{PowerLawParams, RandomGraphParams};

/// A uniform random graph G(n, m) (Erdős and Rényi 1959): every set of m = n · degree / 2 pairs is equally likely.
pub fn random_graph(params: &RandomGraphParams) -> Result<TaskGraph, Error> {
    let (n, wanted, sizes) = check(params)?;
    let mut draws = Pcg64::from_seed(seed_stream("instance/random", params.seed, 0));
    let all = u64::from(n) * u64::from(n - 1) / 2;
    // Draws at most half of all pairs, or their complement: the last pairs would be hard to hit.
    let sought = wanted.min(all - wanted);
    let mut pairs = distinct(sought, u32::MAX, || pair(&mut draws, n));
    if sought < wanted {
        pairs = others(n, &pairs);
    }
    Ok(both_ways(n, &pairs, |_| sizes.draw(&mut draws)))
}

/// Checks the parameters and returns ranks, pairs and sizes.
pub(crate) fn check(params: &RandomGraphParams) -> Result<(u32, u64, Sizes), Error> {
    Ok((params.n, pairs_of_degree(params.n, params.degree)?, Sizes::new(params.bytes)?))
}

/// Two different ranks, every pair equally likely.
fn pair(draws: &mut Pcg64, n: u32) -> Pair {
    let one = draws.below_unbiased(n);
    let other = draws.below_unbiased(n - 1);
    let other = if other >= one { other + 1 } else { other };
    (one.min(other), one.max(other))
}

/// All pairs except these, which are sorted.
fn others(n: u32, pairs: &[Pair]) -> Vec<Pair> {
    let mut left_out = pairs.iter().peekable();
    let all = (0..n).flat_map(|one| (one + 1..n).map(move |other| (one, other)));
    all.filter(|pair| left_out.next_if(|left_out| *left_out == pair).is_none()).collect()
}

/// Maximum rounds of draws for graphs in which some pairs are much likelier than others. Pairs that are
/// still missing are omitted.
const MOST_ROUNDS: u32 = 16;

/// Weight of the heaviest rank as an integer, 2^36: the sum of 2^24 of them fits.
const HEAVIEST: f64 = 68_719_476_736.0;

/// A random graph with a power-law degree distribution: the fraction of ranks with k neighbours falls as k
/// to the minus `exponent`.
///
/// Source: Chung and Lu, "Connected components in random graphs with given expected degree sequences",
/// Annals of Combinatorics 6, 2002. Rank i of n has weight (i + i₀) to the −1 / (exponent − 1), where i₀
/// keeps the largest expected degree at √(n · degree). n · degree / 2 different pairs are drawn, both ends
/// by their weights, then ranks are renumbered at random. In dense and steep graphs, pairs that a few rounds
/// of draws do not find are missing.
pub fn power_law(params: &PowerLawParams) -> Result<TaskGraph, Error> {
    let (wanted, sizes) = check_power_law(params)?;
    let mut draws = Pcg64::from_seed(seed_stream("instance/power-law", params.seed, 0));
    let ends = Ends::new(params);
    let mut names: Vec<u32> = (0..params.n).collect();
    draws.shuffle_unbiased(&mut names);
    let pairs = distinct(wanted, MOST_ROUNDS, || ends.pair(&mut draws, &names));
    Ok(both_ways(params.n, &pairs, |_| sizes.draw(&mut draws)))
}

/// Checks the parameters and returns pairs and sizes.
pub(crate) fn check_power_law(params: &PowerLawParams) -> Result<(u64, Sizes), Error> {
    let exponent = params.exponent;
    let allowed = "above 2, at most 100: at 2 and below the mean degree diverges; 2.1 to 3 is usual";
    require(exponent > 2.0 && exponent <= 100.0, "exponent", exponent, allowed)?;
    Ok((pairs_of_degree(params.n, params.degree)?, Sizes::new(params.bytes)?))
}

/// Draws ranks by their weights.
struct Ends {
    /// Prefix sums of the weights, inclusive.
    sums: Vec<u64>,
    /// For equal parts of the total weight, the first rank that reaches into each.
    guide: Vec<u32>,
    /// Length of a part.
    part: u64,
}

impl Ends {
    fn new(params: &PowerLawParams) -> Self {
        let (n, degree) = (f64::from(params.n), params.degree);
        let slope = 1.0 / (params.exponent - 1.0);
        // The expected degree of rank i is c (i + i₀)^-slope.
        let c = degree * (1.0 - slope) * libm::pow(n, slope);
        let largest = libm::sqrt(n * degree);
        let shift = if largest > 0.0 { libm::pow(c / largest, 1.0 / slope).max(1.0) } else { 1.0 };
        let heaviest = libm::pow(shift, -slope);
        let mut sum = 0;
        let add = |rank| {
            let weight = libm::pow(f64::from(rank) + shift, -slope) / heaviest;
            sum += (HEAVIEST * weight) as u64 + 1;
            sum
        };
        let sums: Vec<u64> = (0..params.n).map(add).collect();
        let part = sum / u64::from(params.n) + 1;
        let mut first = 0;
        let next = |at: u64| {
            while first + 1 < sums.len() && sums[first] <= at * part {
                first += 1;
            }
            first as u32
        };
        let guide = (0..u64::from(params.n)).map(next).collect();
        Self { sums, guide, part }
    }

    /// A rank, by its weight.
    fn draw(&self, draws: &mut Pcg64) -> u32 {
        let at = draws.below(self.sums.last().copied().unwrap_or(1) as usize) as u64;
        let mut rank = self.guide[(at / self.part) as usize];
        while self.sums[rank as usize] <= at {
            rank += 1;
        }
        rank
    }

    /// Two different ranks, renumbered by `names`.
    fn pair(&self, draws: &mut Pcg64, names: &[u32]) -> Pair {
        loop {
            let [one, other] = [(); 2].map(|()| names[self.draw(draws) as usize]);
            if one != other {
                return (one.min(other), one.max(other));
            }
        }
    }
}

/// Two ranks, the lower one first.
pub(crate) type Pair = (u32, u32);

/// The number of pairs of a mean degree, after checking both.
pub(crate) fn pairs_of_degree(n: u32, degree: f64) -> Result<u64, Error> {
    check_ranks(n)?;
    let most = f64::from(n - 1);
    let allowed = format!("0 to {most}: the mean number of neighbours of a rank");
    require(degree >= 0.0 && degree <= most, "degree", degree, allowed)?;
    let pairs = libm::round(f64::from(n) * degree / 2.0);
    if pairs > MAX_PAIRS as f64 {
        return Err(InstanceError::too_many_pairs().into());
    }
    Ok(pairs as u64)
}

/// Checks a number of ranks.
pub(crate) fn check_ranks(n: u32) -> Result<(), OutOfRange> {
    require((1..=MAX_RANKS).contains(&n), "n", n, format!("1 to {MAX_RANKS}"))
}

/// Random bytes per pair and direction, uniform in a range.
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
            false => Err(InstanceError::sizes(least, most)),
        }
    }

    pub(crate) fn draw(self, draws: &mut Pcg64) -> u64 {
        u64::from(draws.between(self.least, self.most))
    }
}

/// Draws until there are `wanted` different pairs, for at most `most_rounds` rounds; every round draws as
/// many as are missing. Sorted.
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

/// The program in which every pair sends one message in each direction, with `bytes` called for the pairs in
/// order. Pairs are sorted and unique.
pub(crate) fn both_ways(n: u32, pairs: &[Pair], mut bytes: impl FnMut(Pair) -> u64) -> TaskGraph {
    // Next position of an edge of every rank to a lower rank, and to a higher one.
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
    use std::collections::{BTreeMap, BTreeSet};

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
    fn invalid_parameters_are_rejected() {
        let message = |n, degree| random_graph(&params(n, degree, 1)).unwrap_err().to_string();
        assert_eq!(message(0, 0.0), "`n` = 0 is out of range");
        assert_eq!(message(1 << 25, 1.0), "`n` = 33554432 is out of range");
        assert_eq!(message(4, 3.5), "`degree` = 3.5 is out of range");
        assert_eq!(message(4, -1.0), "`degree` = -1 is out of range");
        assert_eq!(message(4, f64::NAN), "`degree` = NaN is out of range");
        assert_eq!(message(1 << 24, 100.0), "the graph has more than 67108864 pairs of neighbours");
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
    fn draws_continue_until_all_are_different() {
        let mut next = 0;
        let draw = || {
            next += 1;
            (0, 1 + next / 3)
        };
        assert_eq!(distinct(4, 9, draw), [(0, 1), (0, 2), (0, 3), (0, 4)]);
        assert_eq!(distinct(4, 3, || (0, 1)), [(0, 1)]);
    }

    fn power_law_params(n: u32, degree: f64, exponent: f64, seed: u64) -> PowerLawParams {
        PowerLawParams { n, degree, exponent, bytes: [1, 9], seed }
    }

    fn degrees(graph: &TaskGraph) -> Vec<u32> {
        let mut degrees = vec![0; graph.ranks()];
        for edge in &graph.edges {
            degrees[edge.source as usize] += 1;
        }
        degrees
    }

    /// A fraction of 2^-(exponent - 1) of the ranks with at least 8 neighbours has at least twice as many.
    #[test]
    fn degrees_follow_the_power_law() {
        for exponent in [2.3, 2.6, 3.0] {
            let graph = power_law(&power_law_params(1 << 17, 8.0, exponent, 1)).unwrap();
            assert_eq!(graph.edges.len(), 8 << 17);
            let degrees = degrees(&graph);
            let above = |least: u32| degrees.iter().filter(|&&degree| degree >= least).count() as f64;
            for least in [16, 32] {
                let measured = -libm::log2(above(2 * least) / above(least));
                assert!((measured - (exponent - 1.0)).abs() < 0.35, "{exponent} at {least}: {measured}");
            }
        }
    }

    #[test]
    fn ranks_are_drawn_by_their_weights() {
        let ends = Ends::new(&power_law_params(5, 2.0, 2.5, 1));
        let mut draws = Pcg64::from_seed([1; 32]);
        let mut counts = [0.0; 5];
        (0..100_000).for_each(|_| counts[ends.draw(&mut draws) as usize] += 1e-5);
        let mut before = 0;
        for (rank, &sum) in ends.sums.iter().enumerate() {
            let share = (sum - before) as f64 / ends.sums[4] as f64;
            assert!((counts[rank] - share).abs() < 0.01, "rank {rank}: {} and {share}", counts[rank]);
            before = sum;
        }
    }

    #[test]
    fn the_power_law_graph_of_a_seed_never_changes() {
        let graph = power_law(&power_law_params(1000, 4.0, 2.5, 1)).unwrap();
        let edge = |at: usize| (graph.edges[at].pair(), graph.edges[at].bytes);
        assert_eq!([0, 1999, 3999].map(edge), [((0, 273), 6), ((524, 928), 7), ((999, 963), 7)]);
    }

    #[test]
    fn invalid_exponents_are_rejected() {
        for exponent in [2.0, -1.0, f64::NAN, f64::INFINITY] {
            let error = power_law(&power_law_params(10, 2.0, exponent, 1)).unwrap_err().to_string();
            assert_eq!(error, format!("`exponent` = {exponent} is out of range"));
        }
    }

    proptest! {
        #[test]
        fn all_parameters_end_in_a_graph(
            n in 1u32..60, share in 0.0..=1.0f64, exponent in prop_oneof![2.0001..4.0f64, 4.0..=100.0f64], seed in 0u64..9,
        ) {
            let degree = share * f64::from(n - 1);
            let graph = power_law(&power_law_params(n, degree, exponent, seed)).unwrap();
            prop_assert!(graph.check().is_ok());
            prop_assert!(graph.edges.len() <= 2 * (f64::from(n) * degree / 2.0).round() as usize);
        }
    }
}
