//! Sweeps: what the cells of a stage say together. Results are gathered by what differs in more than the seed, and shown as
//! tables and Pareto fronts.
//!
//! # Limits
//!
//! Cells of a stage are gathered by their matrix without `seed`; `core/statistics` has medians and their intervals. Whatever the size of
//! a sweep, tables have 300 rows, lists 20 names, and of 400 searches the convergence is read.

use std::collections::BTreeMap;

use hopmap_statistics::Sample;
use serde_json::Value as Json;

use super::page::{Field, Page, Results, escape};
use crate::engine::State;

/// Cells that are named in a sentence.
const MOST_NAMED: usize = 20;

/// A table for every stage that has a matrix, with a row for all cells that differ in their seed only.
pub(crate) fn sweeps(page: &mut Page, results: Results<'_>) {
    let mut stages: Vec<&str> = Vec::new();
    for cell in results.pipeline.cells.iter().filter(|cell| !cell.matrix.is_empty()) {
        if stages.last() != Some(&cell.stage.as_str()) && !stages.contains(&cell.stage.as_str()) {
            stages.push(&cell.stage);
        }
    }
    let is_told =
        |sweep: &Sweep<'_>| sweep.cells > 1 && (!sweep.metrics.is_empty() || !sweep.failed.is_empty());
    let sweeps = stages.into_iter().map(|stage| (stage, gather(stage, results)));
    let sweeps: Vec<(&str, Sweep<'_>)> = sweeps.filter(|(_, sweep)| is_told(sweep)).collect();
    if sweeps.is_empty() {
        return;
    }
    page.heading("Sweeps");
    for (stage, sweep) in &sweeps {
        page.add(&format!("<h3>{}</h3>\n", escape(stage)));
        failures(page, sweep);
        tables(page, sweep);
    }
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
    let (failed, cells, named) = (sweep.failed.len(), sweep.cells, named.join(", "));
    page.add(&format!("<p class=\"failed\">{failed} of {cells} cells have no result: {named}{more}</p>\n"));
}

/// The matrix key that only repeats what is done.
const REPEATS: &str = "seed";

/// The cells of a stage that has a matrix.
#[derive(Default)]
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

fn gather<'a>(stage: &str, results: Results<'a>) -> Sweep<'a> {
    let mut sweep = Sweep::default();
    let mut index: BTreeMap<String, usize> = BTreeMap::new();
    for (cell, settled) in results.cells().filter(|(cell, _)| cell.stage == stage) {
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
        let result = settled.key.as_deref().and_then(|key| results.store.result(key));
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
    let cells = ways.iter().flat_map(|way| &way.cells);
    let mut names: Vec<String> = cells.flat_map(|cell| cell.keys().cloned()).collect();
    let rank = |name: &str| FIRST.iter().position(|first| *first == name).unwrap_or(FIRST.len());
    names.sort_by(|a, b| rank(a).cmp(&rank(b)).then_with(|| a.cmp(b)));
    names.dedup();
    names
}

/// Rows of a table.
const MOST_ROWS: usize = 300;
/// Metrics of a stage that have a table, or a column.
const MOST_METRICS: usize = 24;
/// The metrics that come first, in this order.
const FIRST: [&str; 5] = ["F", "makespan", "T", "hop_bytes", "seconds"];
/// Metrics of which less is better; that of others is called the lowest.
const COSTS: [&str; 6] = ["F", "T", "makespan", "hop_bytes", "seconds", "max_link_load_bytes"];

/// A table for every metric where there are seeds, else one for all.
fn tables(page: &mut Page, sweep: &Sweep<'_>) {
    let (same, different): (Vec<&String>, Vec<&String>) =
        sweep.metrics.iter().partition(|metric| is_same(sweep, metric) && *metric != "seconds");
    if sweep.is_repeated {
        for (place, metric) in different.iter().take(MOST_METRICS).enumerate() {
            statistics(page, sweep, metric, place == 0);
        }
        if sweep.ways.iter().any(|way| (1..6).contains(&way.cells.len())) {
            page.note("Fewer than six cells say too little of a median for an interval of 95 %.");
        }
    } else {
        plain(page, sweep, &different);
    }
    let told = |metric: &String| {
        Some(format!("{} = {}", escape(metric), digits(value(sweep.ways.first()?, metric)?)))
    };
    let same: Vec<String> = same.into_iter().take(MOST_METRICS).filter_map(told).collect();
    if !same.is_empty() {
        page.note(&format!("The same in all cells: {}.", same.join(", ")));
    }
}

fn value(way: &Way, metric: &str) -> Option<f64> {
    way.cells.first()?.get(metric).copied()
}

/// Whether all cells have the same of a metric.
fn is_same(sweep: &Sweep<'_>, metric: &str) -> bool {
    let mut values = sweep.ways.iter().flat_map(|way| &way.cells).map(|cell| cell.get(metric));
    let first = values.next().flatten();
    first.is_some() && values.all(|value| value == first)
}

/// Median, spread, best and the interval of the median of every combination, the smallest median first.
fn statistics(page: &mut Page, sweep: &Sweep<'_>, metric: &str, is_open: bool) {
    let best = if COSTS.contains(&metric) { "best" } else { "lowest" };
    let mut head = sweep.keys.clone();
    head.extend(["n", "median", "lower quartile", "upper quartile", best, "highest"]);
    head.extend(["95 % of median from", "to"]);
    if !sweep.failed.is_empty() {
        head.push("no result");
    }
    let mut rows: Vec<(f64, Vec<Field>)> =
        sweep.ways.iter().map(|way| row(way, &way.sample(metric), !sweep.failed.is_empty())).collect();
    rows.sort_by(|a, b| a.0.total_cmp(&b.0));
    let rows: Vec<Vec<Field>> = rows.into_iter().map(|row| row.1).collect();
    let open = if is_open { " open" } else { "" };
    page.add(&format!("<details{open}><summary>{}</summary>\n", escape(metric)));
    page.sortable(&head, &rows[..rows.len().min(MOST_ROWS)]);
    more(page, rows.len());
    page.add("</details>\n");
}

fn row(way: &Way, sample: &Sample, has_failures: bool) -> (f64, Vec<Field>) {
    let [lower, median, upper] = sample.quartiles();
    let (from, to) = sample.median_interval().unwrap_or((f64::NAN, f64::NAN));
    let mut row: Vec<Field> = way.values.iter().map(field).collect();
    row.push(Field::number(sample.len() as f64, sample.len().to_string()));
    let numbers = [median, lower, upper, sample.least(), sample.largest(), from, to];
    row.extend(numbers.map(|value| Field::number(value, digits(value))));
    if has_failures {
        row.push(Field::number(way.failed as f64, way.failed.to_string()));
    }
    (if sample.is_empty() { f64::INFINITY } else { median }, row)
}

/// Every cell with its metrics.
fn plain(page: &mut Page, sweep: &Sweep<'_>, metrics: &[&String]) {
    let metrics = &metrics[..metrics.len().min(MOST_METRICS)];
    let mut head = sweep.keys.clone();
    head.extend(metrics.iter().map(|metric| metric.as_str()));
    let row = |way: &Way| {
        let metric = |metric: &&String| {
            let value = value(way, metric).unwrap_or(f64::NAN);
            Field::number(value, digits(value))
        };
        way.values.iter().map(field).chain(metrics.iter().map(metric)).collect()
    };
    let rows: Vec<Vec<Field>> = sweep.ways.iter().take(MOST_ROWS).map(row).collect();
    page.sortable(&head, &rows);
    more(page, sweep.ways.len());
}

fn more(page: &mut Page, rows: usize) {
    if rows > MOST_ROWS {
        page.note(&format!("… and {} more.", rows - MOST_ROWS));
    }
}

fn field(value: &Json) -> Field {
    match value {
        Json::String(text) => Field::text(escape(text)),
        value => match value.as_f64() {
            Some(number) => Field::number(number, value.to_string()),
            None => Field::text(escape(&value.to_string())),
        },
    }
}

/// A number with as many digits as people read.
fn digits(value: f64) -> String {
    if !value.is_finite() {
        return "–".to_owned();
    }
    if value.fract() == 0.0 && value.abs() < 1e15 {
        return format!("{value:.0}");
    }
    let rounded: f64 = format!("{value:.4e}").parse().unwrap_or(value);
    if value.abs() >= 1e9 || value.abs() < 1e-4 { format!("{rounded:e}") } else { rounded.to_string() }
}

/// Which points no other one beats: one that is as good in both and better in one.
pub(crate) fn front(points: &[(f64, f64)]) -> Vec<bool> {
    let mut order: Vec<usize> = (0..points.len()).collect();
    order.sort_by(|&a, &b| {
        points[a].0.total_cmp(&points[b].0).then_with(|| points[a].1.total_cmp(&points[b].1))
    });
    let mut is_on_front = vec![false; points.len()];
    let mut best: Option<(f64, f64)> = None;
    for index in order {
        let point = points[index];
        let is_beaten = best.is_some_and(|best| best.1 <= point.1 && best != point);
        if !is_beaten && point.0.is_finite() && point.1.is_finite() {
            is_on_front[index] = true;
            best = Some(point);
        }
    }
    is_on_front
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopmap_objective::METRICS;
    use proptest::prelude::*;

    #[test]
    fn metrics_of_placements_that_tables_know_exist() {
        // These are of schedules and of any stage.
        let is_of_others = |name: &&&str| ["makespan", "seconds"].contains(*name);
        for name in FIRST.iter().chain(&COSTS).filter(|name| !is_of_others(name)) {
            assert!(METRICS.iter().any(|metric| metric.name == *name), "{name}");
        }
    }

    proptest! {
        #[test]
        fn the_front_is_what_nothing_beats(points in prop::collection::vec((0_u8..20, 0_u8..20), 0..40)) {
            let points: Vec<(f64, f64)> = points.into_iter().map(|(x, y)| (f64::from(x), f64::from(y))).collect();
            let beats = |a: (f64, f64), b: (f64, f64)| a.0 <= b.0 && a.1 <= b.1 && a != b;
            let expected: Vec<bool> =
                points.iter().map(|&point| !points.iter().any(|&other| beats(other, point))).collect();
            prop_assert_eq!(front(&points), expected);
        }
    }
}
