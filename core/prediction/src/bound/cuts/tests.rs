//! Bounds of cuts against all divisions of few ranks, and known ones of many.

use hopmap_random::{Draw, Pcg64, SeedableRng};

use super::{Effort, Weights};

const LITTLE: Effort = Effort { subset_ranks: 0, flows: 0, search: 0 };
const FLOWS: Effort = Effort { subset_ranks: 0, ..Effort::MOST };

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
    for seed in 0..300 {
        let (ranks, most) = (6 + seed as usize % 3, 2 + seed as usize % 3);
        let weights = random(ranks, seed);
        let mut least = f64::INFINITY;
        divisions(ranks, most, &mut Vec::new(), &mut |groups| {
            least = least.min(weight_between(&weights, groups));
        });
        let symmetric = weights.symmetric();
        let [exact, flows, local] =
            [Effort::MOST, FLOWS, LITTLE].map(|effort| symmetric.crossing(most, most, effort));
        assert!((exact - least).abs() < 1e-4 * least + 1e-9, "{exact} {least}");
        assert!(
            exact <= least && flows <= least * (1.0 + 1e-12) && local <= flows,
            "{flows} {local} {least}"
        );
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
fn flows_find_the_bisection_of_a_hypercube() {
    let edges = (0..64_u32).flat_map(|rank| (0..6).map(move |dimension| (rank, rank ^ 1 << dimension, 0.5)));
    let hypercube = Weights::new(64, edges).symmetric();
    let bisection = hypercube.crossing(32, 32, Effort::MOST);
    assert!(bisection > 31.9 && bisection < 32.0 + 1e-9, "{bisection}");
    assert!((hypercube.crossing(2, 2, LITTLE) - 160.0).abs() < 1e-9);
}

/// Weights between neighbours in a square grid.
fn grid(side: u32, is_periodic: bool, weights: (f64, f64)) -> Weights {
    let mut edges = Vec::new();
    for x in 0..side {
        for y in 0..side {
            for (to_x, to_y, weight) in [(x + 1, y, weights.0), (x, y + 1, weights.1)] {
                if is_periodic || (to_x < side && to_y < side) {
                    edges.push((x * side + y, to_x % side * side + to_y % side, weight));
                }
            }
        }
    }
    Weights::new((side * side) as usize, edges).symmetric()
}

#[test]
fn flows_find_most_of_the_weight_between_blocks_of_a_grid() {
    // Side, whether periodic, weights, slots of a group, and the weight between the best blocks.
    let cases = [
        (16, true, (1.0, 1.0), 16, 128.0),
        (16, false, (1.0, 1.0), 16, 96.0),
        (16, false, (1.0, 4.0), 16, 16.0 * (7.0 + 4.0)),
        (32, false, (1.0, 1.0), 64, 192.0),
        (16, false, (1.0, 1.0), 128, 16.0),
    ];
    for (side, is_periodic, weights, group, best) in cases {
        let bound = grid(side, is_periodic, weights).crossing(group, group, Effort::MOST);
        assert!(bound <= best * (1.0 + 1e-9) && bound > 0.6 * best, "{bound} {best}");
    }
}

#[test]
fn everything_stays_in_one_group_that_has_room() {
    let weights = random(5, 1).symmetric();
    assert_eq!(
        (weights.crossing(5, 5, Effort::MOST), weights.heaviest_group(1..=5, Effort::MOST)),
        (0.0, 0.0)
    );
}
