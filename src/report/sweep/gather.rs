//! The results of a sweep, gathered by what differs in more than the seed.

use std::collections::BTreeMap;

use hopmap_statistics::Sample;
use serde_json::Value as Json;

use crate::engine::{RunReport, State, Store};
use crate::pipeline::Pipeline;

/// The matrix key that only repeats what is done.
const REPEATS: &str = "seed";

/// The cells of a stage that has a matrix.
pub(super) struct Sweep<'a> {
    /// Keys of the matrix that say what is done.
    pub(super) keys: Vec<&'a str>,
    /// Whether the matrix has seeds.
    pub(super) is_repeated: bool,
    pub(super) ways: Vec<Way>,
    /// Names of all metrics, in the order of their importance.
    pub(super) metrics: Vec<String>,
    pub(super) failed: Vec<&'a str>,
    pub(super) cells: usize,
}

/// The cells that differ in their seed only.
pub(super) struct Way {
    /// Values of the keys.
    pub(super) values: Vec<Json>,
    /// Metrics of the cells that have any.
    pub(super) cells: Vec<BTreeMap<String, f64>>,
    pub(super) failed: usize,
}

impl Way {
    /// A metric of all cells.
    pub(super) fn sample(&self, metric: &str) -> Sample {
        Sample::new(self.cells.iter().filter_map(|cell| cell.get(metric).copied()))
    }
}

pub(super) fn gather<'a>(
    stage: &str,
    pipeline: &'a Pipeline,
    store: &Store,
    report: &RunReport,
) -> Sweep<'a> {
    let mut sweep = Sweep {
        keys: Vec::new(),
        is_repeated: false,
        ways: Vec::new(),
        metrics: Vec::new(),
        failed: Vec::new(),
        cells: 0,
    };
    let mut index: BTreeMap<String, usize> = BTreeMap::new();
    for (cell, settled) in pipeline.cells.iter().zip(&report.cells).filter(|(cell, _)| cell.stage == stage) {
        sweep.cells += 1;
        let told = cell.matrix.iter().filter(|(key, _)| key != REPEATS);
        let (keys, values): (Vec<&str>, Vec<Json>) =
            told.map(|(key, value)| (key.as_str(), value.clone())).unzip();
        sweep.is_repeated |= keys.len() < cell.matrix.len();
        sweep.keys = keys;
        let name = Json::from(values.clone()).to_string();
        let way = *index.entry(name).or_insert_with(|| {
            sweep.ways.push(Way { values, cells: Vec::new(), failed: 0 });
            sweep.ways.len() - 1
        });
        if matches!(settled.state, State::Failed | State::Infeasible | State::Blocked) {
            sweep.ways[way].failed += 1;
            sweep.failed.push(&cell.id);
        }
        let mut metrics = BTreeMap::new();
        for (port, record) in settled.outputs.iter() {
            for (name, &value) in &record.metrics {
                let name =
                    if metrics.contains_key(name) { format!("{name} of {port}") } else { name.clone() };
                metrics.insert(name, value);
            }
        }
        let result = settled.key.as_deref().and_then(|key| store.result(key));
        let seconds = result.and_then(|result| result.seconds).filter(|_| !metrics.is_empty());
        metrics.extend(seconds.map(|seconds| ("seconds".to_owned(), seconds)));
        if !metrics.is_empty() {
            sweep.ways[way].cells.push(metrics);
        }
    }
    sweep.metrics = names(&sweep.ways);
    sweep
}

/// What people look at first comes first.
fn names(ways: &[Way]) -> Vec<String> {
    const FIRST: [&str; 5] = ["F", "makespan", "T", "hop_bytes", "seconds"];
    let cells = ways.iter().flat_map(|way| &way.cells);
    let mut names: Vec<String> = cells.flat_map(|cell| cell.keys().cloned()).collect();
    let rank = |name: &str| FIRST.iter().position(|first| *first == name).unwrap_or(FIRST.len());
    names.sort_by(|a, b| rank(a).cmp(&rank(b)).then_with(|| a.cmp(b)));
    names.dedup();
    names
}
