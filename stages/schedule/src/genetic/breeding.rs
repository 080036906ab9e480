//! How genes are drawn, mutate and are crossed.

use rand_pcg::Pcg64;
use rand_pcg::rand_core::Rng;

use super::reading::Genes;
use super::rules::Rules;
use crate::search::{below, chance};

/// Random processors and random ranks; read as priorities they are a random plan.
pub(super) fn drawn(tasks: usize, processors: usize, random: &mut Pcg64) -> Genes {
    let mut rank: Vec<u32> = (0..tasks as u32).collect();
    for last in (1..tasks).rev() {
        rank.swap(last, below(random.next_u32(), last + 1));
    }
    let processor = (0..tasks).map(|_| below(random.next_u32(), processors) as u32).collect();
    Genes { processor, rank }
}

/// A number between half and one and a half times the mean.
pub(super) fn about(mean: f64, random: &mut Pcg64) -> usize {
    let part = 0.5 + f64::from(random.next_u32()) / 4_294_967_296.0;
    (part * mean).round() as usize
}

/// Gives some genes another processor, another rank, or both.
pub(super) fn mutate(genes: &mut Genes, processors: usize, rules: &Rules, random: &mut Pcg64) {
    let tasks = genes.rank.len();
    for _ in 0..about(rules.mutation_genes * tasks as f64, random).max(1) {
        let gene = below(random.next_u32(), tasks);
        if chance(random, rules.mutation_processor) {
            genes.processor[gene] = below(random.next_u32(), processors) as u32;
        }
        if chance(random, rules.mutation_priority) {
            genes.rank[gene] = below(random.next_u32(), tasks) as u32;
        }
    }
}

/// Two children: one has the entries of the first parent up to a point, those of the second up to the next, and so on; the other
/// has those that the first child has not.
pub(super) fn cross(one: &Genes, other: &Genes, rules: &Rules, random: &mut Pcg64) -> [Genes; 2] {
    let tasks = one.rank.len();
    let points = about(f64::from(rules.crossover_points), random).max(1);
    let mut points: Vec<usize> = (0..points).map(|_| below(random.next_u32(), tasks)).collect();
    points.push(tasks);
    points.sort_unstable();
    let [mut first, mut second] = [one.clone(), other.clone()];
    for pair in points.chunks_exact(2) {
        let segment = pair[0]..pair[1];
        first.processor[segment.clone()].swap_with_slice(&mut second.processor[segment.clone()]);
        first.rank[segment.clone()].swap_with_slice(&mut second.rank[segment]);
    }
    [first, second]
}

#[cfg(test)]
mod tests {
    use rand_pcg::rand_core::SeedableRng;

    use super::*;
    use crate::formats::ini::SchIni;
    use crate::samples::diamond;

    #[test]
    fn children_have_whole_entries_of_both_parents() {
        let params = serde_json::from_value(serde_json::json!({ "crossover_points": 3 })).unwrap();
        let rules = Rules::new(&params, &SchIni::default(), &diamond());
        let mut numbers = Pcg64::from_seed([3; 32]);
        let [one, other] = [0, 1].map(|parent| Genes { processor: vec![parent; 20], rank: vec![parent; 20] });
        let mut seen = [false; 2];
        for _ in 0..50 {
            let [child, sibling] = cross(&one, &other, &rules, &mut numbers);
            assert_eq!(child.processor, child.rank);
            // What one has of a parent the other has of the other.
            assert!(child.rank.iter().zip(&sibling.rank).all(|(one, other)| one + other == 1));
            assert_eq!(sibling.processor, sibling.rank);
            child.rank.iter().for_each(|&parent| seen[parent as usize] = true);
            let changes = child.rank.windows(2).filter(|pair| pair[0] != pair[1]).count();
            assert!(changes <= 5, "{changes}");
        }
        assert_eq!(seen, [true; 2]);
    }

    #[test]
    fn mutants_change_what_they_may() {
        let value =
            serde_json::json!({ "mutation_processor": 0.0, "mutation_priority": 1.0, "mutation_genes": 0.1 });
        let params = serde_json::from_value(value).unwrap();
        let rules = Rules::new(&params, &SchIni::default(), &diamond());
        let mut numbers = Pcg64::from_seed([4; 32]);
        let start = drawn(40, 3, &mut numbers);
        let mut mutant = start.clone();
        mutate(&mut mutant, 3, &rules, &mut numbers);
        assert_eq!(mutant.processor, start.processor);
        let changed = mutant.rank.iter().zip(&start.rank).filter(|(a, b)| a != b).count();
        assert!((1..=6).contains(&changed), "{changed}");
    }
}
