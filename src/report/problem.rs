//! Which results can be compared: F, makespans and objectives only mean the same for one program on one machine.

use std::collections::BTreeMap;

use hopmap_model::{Artifact, Mapping};

use crate::engine::OutputRecord;
use crate::pipeline::{Cell, Origin, Pipeline};

/// The cells that the inputs of a cell come from, except for mappings: a search starts from one, and a metric evaluates one.
pub(crate) fn problem(cell: &Cell) -> Vec<usize> {
    let needs = cell.needs.iter().filter(|need| need.port.kind != Mapping::KIND);
    let origins = needs.flat_map(|need| &need.origins);
    let known = |origin: &Origin| match origin {
        Origin::Cell { cell, .. } => Some(*cell),
        Origin::Best { .. } => None,
    };
    let mut cells: Vec<usize> = origins.filter_map(known).collect();
    cells.sort_unstable();
    cells.dedup();
    cells
}

/// The cells with the smallest values of a metric, at most `most`: the best of every problem first, then the second of every problem.
/// Also says whether there are several problems.
pub(crate) fn best_of_each(
    pipeline: &Pipeline,
    cells: &[(usize, &OutputRecord)],
    metric: &str,
    most: usize,
) -> (Vec<usize>, bool) {
    let problems: Vec<Vec<usize>> = cells.iter().map(|(cell, _)| problem(&pipeline.cells[*cell])).collect();
    let value = |record: &OutputRecord| record.metrics.get(metric).copied().unwrap_or(f64::INFINITY);
    let results = cells.iter().zip(&problems);
    let results: Vec<_> =
        results.map(|((_, record), problem)| (problem, value(record), record.digest.as_str())).collect();
    let chosen = choose(&results, most).into_iter().map(|result| cells[result].0).collect();
    (chosen, problems.windows(2).any(|pair| pair[0] != pair[1]))
}

/// Indexes of the best results: problem, value and digest. Equal results of a problem are chosen once.
fn choose<P: Ord>(results: &[(P, f64, &str)], most: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..results.len()).collect();
    order.sort_by(|&a, &b| results[a].1.total_cmp(&results[b].1));
    let mut chosen_of: BTreeMap<&P, Vec<&str>> = BTreeMap::new();
    let mut ranked = Vec::new();
    for index in order {
        let (problem, _, digest) = &results[index];
        let chosen = chosen_of.entry(problem).or_default();
        if !chosen.contains(digest) {
            ranked.push((chosen.len(), problem, index));
            chosen.push(digest);
        }
    }
    ranked.sort_by_key(|(rank, problem, _)| (*rank, *problem));
    ranked.into_iter().take(most).map(|(.., index)| index).collect()
}

/// Marks the smallest values of each problem that has several results.
pub(crate) fn mark_best<P: Ord>(results: &[(P, f64)]) -> Vec<bool> {
    let mut of: BTreeMap<&P, (f64, f64)> = BTreeMap::new();
    for (problem, value) in results.iter().filter(|(_, value)| value.is_finite()) {
        let (least, largest) = of.entry(problem).or_insert((*value, *value));
        (*least, *largest) = (least.min(*value), largest.max(*value));
    }
    let is_best = |(problem, value): &(P, f64)| {
        of.get(problem).is_some_and(|(least, largest)| least < largest && value <= least)
    };
    results.iter().map(is_best).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// F of an empty program is 0, whatever the mapping: once a report drew six of its equal mappings and none of the others.
    #[test]
    fn the_best_results_are_those_of_each_program() {
        let results =
            [("lu", 70.0, "a"), ("ft", 0.0, "b"), ("lu", 50.0, "c"), ("ft", 0.0, "b"), ("ft", 0.0, "d")];
        assert_eq!(choose(&results, 6), [1, 2, 4, 0]);
        assert_eq!(choose(&results, 2), [1, 2]);
    }

    #[test]
    fn best_values_are_marked_in_each_program() {
        let results = [("lu", 70.0), ("lu", 50.0), ("ft", 0.0), ("ft", 0.0), ("mg", 9.0), ("lu", f64::NAN)];
        assert_eq!(mark_best(&results), [false, true, false, false, false, false]);
    }
}
