//! Metrics that gates and choices name and that no result of their stage has: found before anything runs, where the store has results.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::judge::number;
use super::{Choice, Comparison, Gate};
use crate::accepted::{AcceptedError, now, read_json, write_json};
use crate::engine::{PipelineId, Store};
use crate::pipeline::{Origin, Pipeline, Problem, Problems};

/// Says which metrics of gates, and of choices such as `placement[min F]`, no result of the same kind of stage has. Where there is no
/// such result, nothing is sure yet.
pub fn check_metrics(pipeline: &Pipeline, store: &Store) -> Result<(), Problems> {
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

/// The version of the file that is written and read.
const FORMAT: u32 = 1;

/// The contents of the file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AcceptedMetrics {
    /// Version of the file.
    pub format: u32,
    /// Name of the pipeline.
    pub pipeline: String,
    /// Values by what they are of, such as `placement[seed=1].F`.
    pub metrics: BTreeMap<String, f64>,
    /// What was said when they were accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Version of hopmap that wrote the file.
    pub hopmap: String,
    /// When they were accepted, in UTC.
    pub time: String,
}

impl AcceptedMetrics {
    /// Values that are accepted now.
    #[must_use]
    pub fn new(pipeline: &str, metrics: BTreeMap<String, f64>, note: Option<&str>) -> Self {
        Self {
            format: FORMAT,
            pipeline: pipeline.to_owned(),
            metrics,
            note: note.map(str::to_owned),
            hopmap: env!("CARGO_PKG_VERSION").to_owned(),
            time: now(),
        }
    }

    /// Reads a file; none if there is no file.
    pub fn read(path: &Path) -> Result<Option<Self>, AcceptedError> {
        let value = match read_json(path, FORMAT) {
            Ok(value) => value,
            Err(AcceptedError::Missing(_)) => return Ok(None),
            Err(error) => return Err(error),
        };
        let malformed = |reason: String| AcceptedError::Malformed { path: path.into(), reason };
        if value.get("digest").is_some() {
            return Err(malformed("it accepts an artifact, not the values of gates".into()));
        }
        serde_json::from_value(value).map(Some).map_err(|error| malformed(error.to_string()))
    }

    /// Writes a file atomically, unless it has the same content already; whether it was written.
    pub fn write(&self, path: &Path) -> Result<bool, AcceptedError> {
        if Self::read(path)?.is_some_and(|found| found.says_the_same(self)) {
            return Ok(false);
        }
        write_json(path, self)?;
        Ok(true)
    }

    /// A file without a new note keeps the old one.
    fn says_the_same(&self, new: &Self) -> bool {
        self.pipeline == new.pipeline
            && self.differences(&new.metrics).is_empty()
            && (new.note.is_none() || self.note == new.note)
    }

    /// What is different about other values, for people; nothing if they are the accepted ones.
    #[must_use]
    pub fn differences(&self, found: &BTreeMap<String, f64>) -> Vec<String> {
        let mut names: Vec<&String> = found.keys().chain(self.metrics.keys()).collect();
        names.sort();
        names.dedup();
        let said = |value: Option<&f64>| value.map_or_else(|| "nothing".to_owned(), |&value| number(value));
        let line = |name: &&String| {
            let (found, accepted) = (found.get(*name), self.metrics.get(*name));
            let equal = found.zip(accepted).is_some_and(|(&one, &other)| Comparison::Equal.holds(one, other));
            (!equal).then(|| format!("{name} {}, accepted {}", said(found), said(accepted)))
        };
        names.iter().filter_map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(values: &[(&str, f64)]) -> BTreeMap<String, f64> {
        values.iter().map(|&(name, value)| (name.to_owned(), value)).collect()
    }

    #[test]
    fn values_come_back_and_a_file_that_says_the_same_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.accepted.json");
        assert_eq!(AcceptedMetrics::read(&path).unwrap(), None);
        let metrics = values(&[("b.F", 0.1 + 0.2), ("a[seed=1].F", 1e-300), ("c.F", 1_234_567.891)]);
        let accepted = AcceptedMetrics::new("x", metrics.clone(), Some("why"));
        assert!(accepted.write(&path).unwrap());
        let found = AcceptedMetrics::read(&path).unwrap().unwrap();
        assert_eq!(found.differences(&metrics), [""; 0]);
        assert_eq!(found.note.as_deref(), Some("why"));
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(!AcceptedMetrics::new("x", metrics.clone(), None).write(&path).unwrap());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        assert!(AcceptedMetrics::new("x", metrics, Some("why else")).write(&path).unwrap());
    }

    #[test]
    fn differences_name_what_is_new_gone_and_changed() {
        let accepted = AcceptedMetrics::new("x", values(&[("a.F", 1.0), ("b.F", 2.0), ("c.F", 3.0)]), None);
        let lines = accepted.differences(&values(&[("a.F", 1.0), ("b.F", 2500.0), ("d.F", 4.0)]));
        assert_eq!(lines, ["b.F 2,500, accepted 2", "c.F nothing, accepted 3", "d.F 4, accepted nothing"]);
    }

    #[test]
    fn other_files_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.json");
        let error = |text: &str| {
            std::fs::write(&path, text).unwrap();
            AcceptedMetrics::read(&path).unwrap_err().to_string().replace(path.to_str().unwrap(), "FILE")
        };
        assert!(error("{").starts_with("FILE is not an accepted state: EOF"));
        assert_eq!(error(r#"{"format": 7}"#), "FILE has format 7, this hopmap reads format 1");
        let of_artifact = r#"{"format": 1, "digest": "x"}"#;
        assert!(error(of_artifact).ends_with("it accepts an artifact, not the values of gates"));
        assert!(error(r#"{"format": 1, "pipeline": "x"}"#).contains("missing field `metrics`"));
    }
}
