//! Metrics that gates and choices name and that no result of their stage has: found before anything runs, where the store has results.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::record::PipelineId;
use super::store::Store;
use crate::gates::{Choice, Gate};
use crate::pipeline::{Origin, Pipeline};
use crate::source::{Problem, Problems};

/// Says which metrics of gates, and of choices such as `placement[min F]`, no result of the same kind of stage has. Where there is no
/// such result, nothing is sure yet.
pub(crate) fn check_metrics(pipeline: &Pipeline, store: &Store) -> Result<(), Problems> {
    let mut doubtful: Vec<Doubt<'_>> = pipeline.gates.iter().flat_map(doubts).collect();
    doubtful.extend(choices(pipeline));
    doubtful.retain(|doubt| !doubt.is_known(pipeline, store));
    if doubtful.is_empty() {
        return Ok(());
    }
    for doubt in &mut doubtful {
        doubt.kinds = doubt.cells.iter().map(|&cell| pipeline.cells[cell].entry.kind).collect();
    }
    let known = known_metrics(store, &doubtful);
    let problem = |doubt: &Doubt<'_>| {
        let found: Option<Vec<&BTreeSet<String>>> =
            doubt.kinds.iter().map(|kind| known.get(&(*kind, doubt.output))).collect();
        let found = found?;
        if found.iter().any(|metrics| metrics.contains(doubt.metric)) {
            return None;
        }
        let (stage, metric) = (doubt.stage, doubt.metric);
        let problem = Problem::new(format!("`{stage}` has no metric `{metric}`"), doubt.place);
        let names: BTreeSet<&str> = found.into_iter().flatten().map(String::as_str).collect();
        Some(problem.suggest(metric, "its metrics", names))
    };
    let problems: Vec<Problem> = doubtful.iter().filter_map(problem).collect();
    if problems.is_empty() { Ok(()) } else { Err(pipeline.source.tie(problems)) }
}

/// A metric of which is not known whether it exists.
struct Doubt<'a> {
    stage: &'a str,
    metric: &'a str,
    output: &'static str,
    /// Its place in the pipeline file.
    place: &'a Range<usize>,
    cells: &'a [usize],
    /// Kinds of the cells, once they are wanted.
    kinds: BTreeSet<&'static str>,
}

fn doubts(gate: &Gate) -> Vec<Doubt<'_>> {
    let mut doubts = Vec::new();
    for (term, bound) in gate.formula.terms.iter().zip(&gate.bounds) {
        let chosen_by = match &term.choice {
            Choice::Best { metric, .. } => Some(metric.as_str()),
            _ => None,
        };
        let metrics = std::iter::once(term.metric.as_str()).chain(chosen_by);
        doubts.extend(metrics.map(|metric| Doubt {
            stage: &term.stage,
            metric,
            output: bound.output,
            place: &bound.place,
            cells: bound.cells.indexes(),
            kinds: BTreeSet::new(),
        }));
    }
    doubts
}

/// Metrics by which stages choose what they need. Of cells that say it in one place the first is enough.
fn choices(pipeline: &Pipeline) -> Vec<Doubt<'_>> {
    let mut seen = BTreeSet::new();
    let mut doubts = Vec::new();
    for origin in pipeline.cells.iter().flat_map(|cell| &cell.needs).flat_map(|need| &need.origins) {
        let Origin::Best { cells, output, metric, place, .. } = origin else { continue };
        if seen.insert((place.start, metric)) {
            let (stage, kinds) = (&pipeline.cells[cells[0]].stage, BTreeSet::new());
            doubts.push(Doubt { stage, metric, output, place, cells, kinds });
        }
    }
    doubts
}

impl Doubt<'_> {
    /// Whether some cell had the metric last time.
    fn is_known(&self, pipeline: &Pipeline, store: &Store) -> bool {
        let id = PipelineId::of(pipeline, store.root());
        self.cells.iter().any(|&cell| {
            let key = store.current(&id, &pipeline.cells[cell].id);
            let result = key.and_then(|key| store.result(key));
            let output = result.and_then(|result| result.outputs.get(self.output));
            output.is_some_and(|output| output.metrics.contains_key(self.metric))
        })
    }
}

/// The metrics of all results in the store, by kind of stage and output.
fn known_metrics(
    store: &Store,
    doubtful: &[Doubt<'_>],
) -> BTreeMap<(&'static str, &'static str), BTreeSet<String>> {
    let mut known = BTreeMap::new();
    for result in store.results() {
        let Some(kind) = result.kind() else { continue };
        for doubt in doubtful {
            let Some(&kind) = doubt.kinds.get(kind.as_str()) else { continue };
            let Some(output) = result.outputs.get(doubt.output) else { continue };
            let metrics: &mut BTreeSet<String> = known.entry((kind, doubt.output)).or_default();
            metrics.extend(output.metrics.keys().cloned());
        }
    }
    known
}
