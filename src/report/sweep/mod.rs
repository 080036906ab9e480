//! Sweeps: what the cells of a stage say together.
//!
//! # Limits
//!
//! `src/report/sweep` gathers the cells of a stage by their matrix without `seed`; `statistics.rs` has medians, their intervals and fronts;
//! `timeline.rs` puts the cells of a journal into lanes, of which the picture and the trace events for Perfetto are made. Whatever the size of
//! a sweep, tables have 300 rows, lists 20 names, and of 400 searches the convergence is read.

mod table;

use std::collections::BTreeMap;

use serde_json::Value as Json;

use super::page::{Page, escape};
use crate::engine::{RunReport, State, Store};
use crate::pipeline::Pipeline;
use hopmap_statistics::Sample;

/// Cells that are named in a sentence.
const MOST_NAMED: usize = 20;
/// The matrix key that only repeats what is done.
const REPEATS: &str = "seed";

/// The cells of a stage that has a matrix.
struct Sweep<'a> {
    /// Keys of the matrix that say what is done.
    keys: Vec<&'a str>,
    /// Whether the matrix has seeds.
    is_repeated: bool,
    ways: Vec<Way>,
    /// Names of all metrics, in the order of their importance.
    metrics: Vec<String>,
    failed: Vec<&'a str>,
    cells: usize,
}

/// The cells that differ in their seed only.
struct Way {
    /// Values of the keys.
    values: Vec<Json>,
    /// Metrics of the cells that have any.
    cells: Vec<BTreeMap<String, f64>>,
    failed: usize,
}

impl Way {
    /// A metric of all cells.
    fn sample(&self, metric: &str) -> Sample {
        Sample::new(self.cells.iter().filter_map(|cell| cell.get(metric).copied()))
    }
}

/// A table for every stage that has a matrix, with a row for all cells that differ in their seed only.
pub(crate) fn sweeps(page: &mut Page, pipeline: &Pipeline, store: &Store, report: &RunReport) {
    let mut stages: Vec<&str> = Vec::new();
    for cell in pipeline.cells.iter().filter(|cell| !cell.matrix.is_empty()) {
        if stages.last() != Some(&cell.stage.as_str()) && !stages.contains(&cell.stage.as_str()) {
            stages.push(&cell.stage);
        }
    }
    let sweeps: Vec<(&str, Sweep<'_>)> = stages
        .into_iter()
        .map(|stage| (stage, gather(stage, pipeline, store, report)))
        .filter(|(_, sweep)| sweep.cells > 1 && (!sweep.metrics.is_empty() || !sweep.failed.is_empty()))
        .collect();
    if sweeps.is_empty() {
        return;
    }
    page.heading("Sweeps");
    for (stage, sweep) in &sweeps {
        page.add(&format!("<h3>{}</h3>\n", escape(stage)));
        failures(page, sweep);
        table::tables(page, sweep);
    }
}

fn gather<'a>(stage: &str, pipeline: &'a Pipeline, store: &Store, report: &RunReport) -> Sweep<'a> {
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

/// How many cells have no result, and which.
fn failures(page: &mut Page, sweep: &Sweep<'_>) {
    if sweep.failed.is_empty() {
        return;
    }
    let named: Vec<String> =
        sweep.failed.iter().take(MOST_NAMED).map(|id| format!("<code>{}</code>", escape(id))).collect();
    let more = match sweep.failed.len() - named.len() {
        0 => String::new(),
        more => format!(" … and {more} more"),
    };
    page.add(&format!(
        "<p class=\"failed\">{} of {} cells have no result: {}{more}</p>\n",
        sweep.failed.len(),
        sweep.cells,
        named.join(", ")
    ));
}
