//! Which results can be compared: F, makespans and objectives only mean the same for one program on one machine, with messages weighted
//! alike.

use std::collections::BTreeMap;

use hopmap_model::{Artifact, Mapping};

use crate::engine::OutputRecord;
use crate::pipeline::{Cell, Origin, Pipeline};
use crate::registry::Configured;
use crate::selector::show;

/// The matrix key whose values repeat a run.
pub(crate) const REPEATS: &str = "seed";

/// Parameters that decide what F or a makespan means: the weights of messages, and the machine of a schedule.
const PARAMETERS: [&str; 8] =
    ["weight", "processors", "speeds", "latency", "bandwidth", "lookup", "model", "ranks"];

/// What a cell solves or evaluates.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Problem {
    /// The cells that its inputs come from, except for mappings: a search starts from one, and a metric evaluates one.
    pub(crate) cells: Vec<usize>,
    /// Names and values of the parameters that belong to the problem.
    pub(crate) parameters: Vec<(&'static str, String)>,
}

impl Problem {
    pub(crate) fn new(pipeline: &Pipeline, cell: &Cell) -> Self {
        Self { cells: sources(cell), parameters: parameters(pipeline, cell) }
    }

    /// Whether a key of a matrix belongs to the problem, rather than to a search.
    pub(crate) fn has_key(&self, pipeline: &Pipeline, key: &str) -> bool {
        let of_source = |&cell: &usize| pipeline.cells[cell].matrix.iter().any(|(other, _)| other == key);
        PARAMETERS.contains(&key) || self.cells.iter().any(of_source)
    }
}

/// The parameters of a problem, without the default weight, which not every stage knows. Those of a cell without any, which evaluates a
/// mapping, are those of the mapping.
fn parameters(pipeline: &Pipeline, cell: &Cell) -> Vec<(&'static str, String)> {
    let given = cell.ready_parameters().map(Configured::canonical);
    let value = |name: &'static str| Some((name, show(given?.get(name).filter(|value| !value.is_null())?)));
    let own: Vec<(&str, String)> = PARAMETERS.into_iter().filter_map(value).collect();
    let mapping = cell.needs.iter().filter(|need| need.port.kind == Mapping::KIND);
    let from = mapping.flat_map(|need| &need.origins).find_map(|origin| match origin {
        Origin::Cell { cell, .. } => Some(*cell),
        Origin::Best { cells, .. } => cells.first().copied(),
    });
    match from {
        Some(from) if own.is_empty() => parameters(pipeline, &pipeline.cells[from]),
        _ => own.into_iter().filter(|(name, value)| *name != "weight" || value != "auto").collect(),
    }
}

fn sources(cell: &Cell) -> Vec<usize> {
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
/// Also returns whether there are several problems.
pub(crate) fn best_of_each(
    pipeline: &Pipeline,
    cells: &[(usize, &OutputRecord)],
    metric: &str,
    most: usize,
) -> (Vec<usize>, bool) {
    let problem = |(cell, _): &(usize, &OutputRecord)| Problem::new(pipeline, &pipeline.cells[*cell]);
    let problems: Vec<Problem> = cells.iter().map(problem).collect();
    let value = |record: &OutputRecord| record.metrics.get(metric).copied().unwrap_or(f64::INFINITY);
    let results = cells.iter().zip(&problems);
    let results: Vec<_> = results
        .map(|((cell, record), problem)| {
            (problem, value(record), [record.digest.clone(), without_seed(&pipeline.cells[*cell])])
        })
        .collect();
    let chosen = choose(&results, most).into_iter().map(|result| cells[result].0).collect();
    (chosen, problems.windows(2).any(|pair| pair[0] != pair[1]))
}

/// The name of a cell that those of other seeds share.
fn without_seed(cell: &Cell) -> String {
    let keys = cell.matrix.iter().filter(|(key, _)| key != REPEATS);
    keys.fold(cell.stage.clone(), |name, (key, value)| format!("{name},{key}={value}"))
}

/// Indexes of the best results: problem, value, digest and name without the seed. Of those of a problem in which either is equal, the
/// best is chosen.
fn choose<P: Ord, S: AsRef<str>>(results: &[(P, f64, [S; 2])], most: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..results.len()).collect();
    order.sort_by(|&a, &b| results[a].1.total_cmp(&results[b].1));
    let mut chosen_of: BTreeMap<&P, Vec<[&str; 2]>> = BTreeMap::new();
    let mut ranked = Vec::new();
    for index in order {
        let (problem, _, names) = &results[index];
        let names: [&str; 2] = names.each_ref().map(AsRef::as_ref);
        let chosen = chosen_of.entry(problem).or_default();
        if !chosen.iter().any(|other| other[0] == names[0] || other[1] == names[1]) {
            ranked.push((chosen.len(), problem, index));
            chosen.push(names);
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
        let results = [
            ("lu", 70.0, ["a", "tabu"]),
            ("ft", 0.0, ["b", "tabu"]),
            ("lu", 50.0, ["c", "genetic"]),
            ("ft", 0.0, ["b", "genetic"]),
            ("ft", 0.0, ["d", "linear"]),
            // Another seed: once six equal charts of one mapper were drawn.
            ("lu", 60.0, ["e", "genetic"]),
        ];
        assert_eq!(choose(&results, 6), [1, 2, 4, 0]);
        assert_eq!(choose(&results, 2), [1, 2]);
    }

    #[test]
    fn best_values_are_marked_in_each_program() {
        let results = [("lu", 70.0), ("lu", 50.0), ("ft", 0.0), ("ft", 0.0), ("mg", 9.0), ("lu", f64::NAN)];
        assert_eq!(mark_best(&results), [false, true, false, false, false, false]);
    }
}
