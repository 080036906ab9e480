//! Programs in which a few ranks have very many partners.

use hopmap_model::{Stage, TaskGraph, seed_stream};
use hopmap_random::{Draw, Pcg64, SeedableRng};

use crate::pairs::{MOST_ROUNDS, Pair, Sizes, both_ways, distinct, pairs_of_degree};
use crate::{InstanceError, PowerLaw, PowerLawParams};

/// What the heaviest rank weighs in whole numbers, 2^36: the sum of 2^24 of them fits.
const HEAVIEST: f64 = 68_719_476_736.0;

/// A random graph whose degrees follow a power law: the share of ranks with k neighbours falls as k to the minus `exponent`.
///
/// Source: Chung and Lu, "Connected components in random graphs with given expected degree sequences", Annals of
/// Combinatorics 6, 2002. Rank i of n weighs (i + i₀) to the −1 / (exponent − 1), where i₀ keeps the largest expected degree
/// at √(n · degree). n · degree / 2 different pairs are drawn, both ends by their weights, then ranks are renumbered at
/// random. Pairs that a few rounds of draws do not find, of dense and steep graphs, are missing.
pub fn power_law(params: &PowerLawParams) -> Result<TaskGraph, InstanceError> {
    let (wanted, sizes) = check(params)?;
    let mut draws = Pcg64::from_seed(seed_stream(PowerLaw::KIND, params.seed, 0));
    let ends = Ends::new(params);
    let mut names: Vec<u32> = (0..params.n).collect();
    draws.shuffle_unbiased(&mut names);
    let pairs = distinct(wanted, MOST_ROUNDS, || ends.pair(&mut draws, &names));
    Ok(both_ways(params.n, &pairs, |_| sizes.draw(&mut draws)))
}

/// Checks the parameters; gives pairs and what they send.
pub(crate) fn check(params: &PowerLawParams) -> Result<(u64, Sizes), InstanceError> {
    if !(params.exponent > 2.0 && params.exponent <= 100.0) {
        return Err(InstanceError::Exponent { exponent: params.exponent });
    }
    Ok((pairs_of_degree(params.n, params.degree)?, Sizes::new(params.bytes)?))
}

/// Draws ranks by their weights.
struct Ends {
    /// Weights of all ranks up to one and with it.
    sums: Vec<u64>,
    /// For equal parts of the sum of all weights the first rank that reaches into it.
    guide: Vec<u32>,
    /// Length of such a part.
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

    /// Two different ranks, by their names.
    fn pair(&self, draws: &mut Pcg64, names: &[u32]) -> Pair {
        loop {
            let [one, other] = [(); 2].map(|()| names[self.draw(draws) as usize]);
            if one != other {
                return (one.min(other), one.max(other));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn params(n: u32, degree: f64, exponent: f64, seed: u64) -> PowerLawParams {
        PowerLawParams { n, degree, exponent, bytes: [1, 9], seed }
    }

    fn degrees(graph: &TaskGraph) -> Vec<u32> {
        let mut degrees = vec![0; graph.ranks()];
        for edge in &graph.edges {
            degrees[edge.source as usize] += 1;
        }
        degrees
    }

    /// Of the ranks with at least 8 neighbours 2^-(exponent - 1) have twice as many.
    #[test]
    fn degrees_follow_the_power_law() {
        for exponent in [2.3, 2.6, 3.0] {
            let graph = power_law(&params(1 << 17, 8.0, exponent, 1)).unwrap();
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
        let ends = Ends::new(&params(5, 2.0, 2.5, 1));
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
    fn the_graph_of_a_seed_never_changes() {
        let graph = power_law(&params(1000, 4.0, 2.5, 1)).unwrap();
        let edge = |at: usize| (graph.edges[at].pair(), graph.edges[at].bytes);
        assert_eq!([0, 1999, 3999].map(edge), [((0, 273), 6), ((524, 928), 7), ((999, 963), 7)]);
    }

    #[test]
    fn senseless_exponents_are_refused() {
        for exponent in [2.0, -1.0, f64::NAN, f64::INFINITY] {
            let error = power_law(&params(10, 2.0, exponent, 1)).unwrap_err().to_string();
            assert_eq!(error, format!("exponent is {exponent}"));
        }
    }

    proptest! {
        #[test]
        fn all_parameters_end_in_a_graph(
            n in 1u32..60, share in 0.0..=1.0f64, exponent in prop_oneof![2.0001..4.0f64, 4.0..=100.0f64], seed in 0u64..9,
        ) {
            let degree = share * f64::from(n - 1);
            let graph = power_law(&params(n, degree, exponent, seed)).unwrap();
            prop_assert!(graph.check().is_ok());
            prop_assert!(graph.edges.len() <= 2 * (f64::from(n) * degree / 2.0).round() as usize);
        }
    }
}
