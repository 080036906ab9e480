//! Bounds of cuts against all divisions of few ranks, and known ones of many.

use hopmap_random::{Draw, Pcg64, SeedableRng};

use super::{Effort, Weights};

const LITTLE: Effort = Effort { subset_ranks: 0, spectral_ranks: 0, search: 0 };
const SPECTRAL: Effort = Effort { subset_ranks: 0, ..Effort::MOST };

/// Weights of random pairs.
fn random(ranks: usize, seed: u64) -> Weights {
    let mut random = Pcg64::seed_from_u64(seed);
    let count = random.below(3 * ranks);
    let pairs = (0..count).map(|_| {
        let ends = (random.below(ranks) as u32, random.below(ranks) as u32);
        (ends.0, ends.1, (1 + random.below(9)) as f64)
    });
    Weights::new(ranks, pairs.collect::<Vec<_>>())
}

/// Calls for all ways to put ranks into groups of at most `most`.
fn divisions(ranks: usize, most: usize, groups: &mut Vec<usize>, visit: &mut dyn FnMut(&[usize])) {
    if groups.len() == ranks {
        return visit(groups);
    }
    let used = groups.iter().max().map_or(0, |last| last + 1);
    for group in 0..=used {
        if groups.iter().filter(|&&other| other == group).count() < most {
            groups.push(group);
            divisions(ranks, most, groups, visit);
            groups.pop();
        }
    }
}

fn weight_between(weights: &Weights, groups: &[usize]) -> f64 {
    let is_between = |&(a, b, _): &(u32, u32, f64)| groups[a as usize] != groups[b as usize];
    weights.iter().filter(is_between).map(|pair| pair.2).sum()
}

#[test]
fn the_weight_between_groups_is_the_least_of_all_divisions() {
    for seed in 0..60 {
        let (ranks, most) = (6 + seed as usize % 3, 2 + seed as usize % 3);
        let weights = random(ranks, seed);
        let mut least = f64::INFINITY;
        divisions(ranks, most, &mut Vec::new(), &mut |groups| {
            least = least.min(weight_between(&weights, groups));
        });
        let symmetric = weights.symmetric();
        let [exact, spectral, local] =
            [Effort::MOST, SPECTRAL, LITTLE].map(|effort| symmetric.crossing(most, most, effort));
        assert!((exact - least).abs() < 1e-4 * least + 1e-9, "{exact} {least}");
        assert!(exact <= least && spectral <= least && local <= spectral, "{spectral} {local} {least}");
    }
}

#[test]
fn some_group_has_the_weight_of_the_heaviest() {
    for seed in 0..60 {
        let (ranks, sizes) = (7, [1..=2, 2..=3, 3..=3, 1..=4][seed as usize % 4].clone());
        let weights = random(ranks, seed);
        let out = |group: usize| {
            let leaves = |&(a, b, _): &(u32, u32, f64)| group >> a & 1 == 1 && group >> b & 1 == 0;
            weights.iter().filter(leaves).map(|pair| pair.2).sum::<f64>()
        };
        let least_with = |rank: usize| {
            let suits =
                |group: &usize| group >> rank & 1 == 1 && sizes.contains(&(group.count_ones() as usize));
            (1..1_usize << ranks).filter(suits).map(out).fold(f64::INFINITY, f64::min)
        };
        let expected = (0..ranks).map(least_with).fold(0.0, f64::max);
        assert!((weights.heaviest_group(sizes.clone(), Effort::MOST) - expected).abs() < 1e-9);
        assert!(weights.heaviest_group(sizes, LITTLE) <= expected);
    }
}

#[test]
fn the_bisection_of_a_hypercube_is_found_by_its_eigenvalue() {
    let edges = (0..64_u32).flat_map(|rank| (0..6).map(move |dimension| (rank, rank ^ 1 << dimension, 0.5)));
    let hypercube = Weights::new(64, edges).symmetric();
    let bisection = hypercube.crossing(32, 32, Effort::MOST);
    assert!(bisection > 31.9 && bisection <= 32.0, "{bisection}");
    assert!((hypercube.crossing(2, 2, LITTLE) - 160.0).abs() < 1e-9);
}

#[test]
fn everything_stays_in_one_group_that_has_room() {
    let weights = random(5, 1).symmetric();
    assert_eq!(
        (weights.crossing(5, 5, Effort::MOST), weights.heaviest_group(1..=5, Effort::MOST)),
        (0.0, 0.0)
    );
}
