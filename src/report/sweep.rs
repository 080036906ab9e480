//! Sweeps: tables of the metrics of the cells of a stage. Cells that differ only in their seed share a row with their median and its
//! confidence interval (`core/statistics`).
//!
//! # Limits
//!
//! Tables have at most 300 rows and lists 20 names, whatever the size of the sweep.

use std::collections::BTreeMap;

use hopmap_objective::METRICS;
use hopmap_statistics::Sample;
use serde_json::Value as Json;

use super::page::{Field, Page, Results, cell_name, escape, number};
use super::problem::{Problem, REPEATS, mark_best};
use crate::engine::{Settled, State};
use crate::pipeline::Cell;
use crate::selector::show;

/// Cells that a sentence names.
const MOST_NAMED: usize = 20;

/// Tables for every stage that has a matrix, with a row for all cells that differ only in their seed.
pub(crate) fn sweeps(page: &mut Page, results: Results<'_>) {
    let mut stages: Vec<&str> = Vec::new();
    for cell in results.pipeline.cells.iter().filter(|cell| !cell.matrix.is_empty()) {
        if stages.last() != Some(&cell.stage.as_str()) && !stages.contains(&cell.stage.as_str()) {
            stages.push(&cell.stage);
        }
    }
    let is_shown =
        |sweep: &Sweep<'_>| sweep.cells > 1 && (!sweep.metrics.is_empty() || !sweep.failed.is_empty());
    let linear = linear_costs(results);
    let sweeps = stages.into_iter().map(|stage| (stage, gather(stage, results, &linear)));
    let sweeps: Vec<(&str, Sweep<'_>)> = sweeps.filter(|(_, sweep)| is_shown(sweep)).collect();
    if sweeps.is_empty() {
        return;
    }
    page.heading("Sweeps");
    for (stage, sweep) in &sweeps {
        page.heading_below(&escape(stage));
        failures(page, sweep);
        tables(page, sweep);
    }
}

/// Number and names of the cells without a result.
fn failures(page: &mut Page, sweep: &Sweep<'_>) {
    if sweep.failed.is_empty() {
        return;
    }
    let name = |cell: &&Cell| format!("<code>{}</code>", cell_name(cell));
    let named: Vec<String> = sweep.failed.iter().take(MOST_NAMED).map(name).collect();
    let more = match sweep.failed.len() - named.len() {
        0 => String::new(),
        more => format!(" … and {more} more"),
    };
    let (failed, cells, named) = (sweep.failed.len(), sweep.cells, named.join(", "));
    page.add(&format!("<p class=\"failed\">{failed} of {cells} cells have no result: {named}{more}</p>\n"));
}

/// The cells of a stage that has a matrix.
#[derive(Default)]
struct Sweep<'a> {
    /// Keys of the matrix, without the seed.
    keys: Vec<&'a str>,
    /// Whether the matrix has seeds.
    is_repeated: bool,
    combinations: Vec<Combination>,
    /// Names of all metrics, in the order of their importance.
    metrics: Vec<String>,
    failed: Vec<&'a Cell>,
    cells: usize,
}

impl Sweep<'_> {
    /// Whether a combination has enough cells for an interval of its median.
    fn has_intervals(&self) -> bool {
        self.combinations.iter().any(|combination| combination.cells.len() >= 6)
    }
}

/// The cells that differ only in their seed.
struct Combination {
    /// Values of the keys.
    values: Vec<Json>,
    /// What the first cell solves.
    problem: Problem,
    /// Metrics of the cells that have any.
    cells: Vec<BTreeMap<String, f64>>,
    failed: usize,
}

impl Combination {
    /// A metric of all cells.
    fn sample(&self, metric: &str) -> Sample {
        Sample::new(self.cells.iter().filter_map(|cell| cell.get(metric).copied()))
    }
}

/// The name of a metric relative to that of the linear mapping.
fn over_linear(metric: &str) -> String {
    format!("{metric}_over_linear")
}

/// F of the linear mapping of every problem: of its own cell, or beside a mapping that was evaluated.
fn linear_costs(results: Results<'_>) -> BTreeMap<Problem, f64> {
    let cost = |(cell, settled): (&Cell, &Settled)| {
        let name = if cell.entry.kind == "map/linear" { "F" } else { "F_linear" };
        let cost = settled.outputs.values().find_map(|record| record.metrics.get(name))?;
        Some((Problem::new(results.pipeline, cell), *cost))
    };
    results.cells().filter_map(cost).collect()
}

fn gather<'a>(stage: &str, results: Results<'a>, linear: &BTreeMap<Problem, f64>) -> Sweep<'a> {
    let mut sweep = Sweep::default();
    let mut index: BTreeMap<String, usize> = BTreeMap::new();
    for (cell, settled) in results.cells().filter(|(cell, _)| cell.stage == stage) {
        sweep.cells += 1;
        let others = cell.matrix.iter().filter(|(key, _)| key != REPEATS);
        let (keys, values): (Vec<&str>, Vec<Json>) =
            others.map(|(key, value)| (key.as_str(), value.clone())).unzip();
        sweep.is_repeated |= keys.len() < cell.matrix.len();
        sweep.keys = keys;
        let name = Json::from(values.clone()).to_string();
        let combination = *index.entry(name).or_insert_with(|| {
            let problem = Problem::new(results.pipeline, cell);
            sweep.combinations.push(Combination { values, problem, cells: Vec::new(), failed: 0 });
            sweep.combinations.len() - 1
        });
        if matches!(settled.state, State::Failed | State::Infeasible | State::Blocked) {
            sweep.combinations[combination].failed += 1;
            sweep.failed.push(cell);
        }
        let mut metrics = BTreeMap::new();
        for (port, record) in settled.outputs.iter() {
            for (name, &value) in &record.metrics {
                let name =
                    if metrics.contains_key(name) { format!("{name} of {port}") } else { name.clone() };
                metrics.insert(name, value);
            }
        }
        let of_linear = linear.get(&sweep.combinations[combination].problem).filter(|cost| **cost > 0.0);
        if let Some((f, of_linear)) = metrics.get("F").copied().zip(of_linear) {
            metrics.insert(over_linear("F"), f / of_linear);
        }
        let result = settled.key.as_deref().and_then(|key| results.store.result(key));
        let seconds = result.and_then(|result| result.seconds).filter(|_| !metrics.is_empty());
        metrics.extend(seconds.map(|seconds| (SECONDS.to_owned(), seconds)));
        if !metrics.is_empty() {
            sweep.combinations[combination].cells.push(metrics);
        }
    }
    sweep.metrics = names(&sweep.combinations);
    sweep
}

/// The names of all metrics, the most important ones first.
fn names(combinations: &[Combination]) -> Vec<String> {
    let cells = combinations.iter().flat_map(|combination| &combination.cells);
    let mut names: Vec<String> = cells.flat_map(|cell| cell.keys().cloned()).collect();
    let rank = |name: &str| {
        let name = name.trim_end_matches("_over_linear");
        costs().position(|cost| cost == name).unwrap_or(usize::MAX)
    };
    names.sort_by(|a, b| rank(a).cmp(&rank(b)).then_with(|| a.cmp(b)));
    names.dedup();
    names
}

/// Rows of a table.
const MOST_ROWS: usize = 300;
/// Metrics of a stage that have a table, or a column.
const MOST_METRICS: usize = 24;

/// The metric that every cell has: how long it ran.
const SECONDS: &str = "seconds";

/// Metrics of which less is better, the most important ones first.
fn costs() -> impl Iterator<Item = &'static str> {
    METRICS.iter().map(|metric| metric.name).chain(["makespan", SECONDS])
}

/// A table for every metric where there are seeds, else one for all.
fn tables(page: &mut Page, sweep: &Sweep<'_>) {
    page.explain(sweep.metrics.iter().map(String::as_str));
    let (same, different): (Vec<&String>, Vec<&String>) =
        sweep.metrics.iter().partition(|metric| is_same(sweep, metric) && *metric != SECONDS);
    if sweep.is_repeated {
        // A ratio is a column of the table of its metric.
        let is_column = |name: &str| sweep.metrics.iter().any(|metric| over_linear(metric) == name);
        let different = different.iter().filter(|metric| !is_column(metric));
        for (place, metric) in different.take(MOST_METRICS).enumerate() {
            statistics(page, sweep, metric, place == 0);
        }
        if sweep.has_intervals() && sweep.combinations.iter().any(|combination| combination.cells.len() < 6) {
            page.note("A 95 % confidence interval of the median needs at least six cells.");
        }
    } else {
        plain(page, sweep, &different);
    }
    let text = |metric: &String| {
        Some(format!("{} = {}", escape(metric), number(value(sweep.combinations.first()?, metric)?)))
    };
    let same: Vec<String> = same.into_iter().take(MOST_METRICS).filter_map(text).collect();
    if !same.is_empty() {
        page.note(&format!("The same in all cells: {}.", same.join(", ")));
    }
    if different.iter().any(|metric| best(sweep, metric).contains(&true)) {
        page.note("Bold: the smallest value for each program, machine and weight of messages; other values cannot be compared.");
    }
}

/// Which combinations have the smallest median of a metric for their program and machine.
fn best(sweep: &Sweep<'_>, metric: &str) -> Vec<bool> {
    // The run time of a stage does not measure its result.
    let is_cost = metric != SECONDS && costs().any(|cost| cost == metric);
    let median = |combination: &Combination| match is_cost {
        true => combination.sample(metric).quartiles()[1],
        false => f64::NAN,
    };
    let combinations = sweep.combinations.iter();
    mark_best(
        &combinations.map(|combination| (&combination.problem, median(combination))).collect::<Vec<_>>(),
    )
}

fn value(combination: &Combination, metric: &str) -> Option<f64> {
    combination.cells.first()?.get(metric).copied()
}

/// Whether a metric is the same in all cells.
fn is_same(sweep: &Sweep<'_>, metric: &str) -> bool {
    let mut values =
        sweep.combinations.iter().flat_map(|combination| &combination.cells).map(|cell| cell.get(metric));
    let first = values.next().flatten();
    first.is_some() && values.all(|value| value == first)
}

/// Median, spread, best and the interval of the median of every combination: program after program, the smallest median first.
fn statistics(page: &mut Page, sweep: &Sweep<'_>, metric: &str, is_open: bool) {
    let smallest = if costs().any(|cost| cost == metric) { "best" } else { "lowest" };
    let has = Columns {
        intervals: sweep.has_intervals(),
        over_linear: Some(over_linear(metric)).filter(|name| sweep.metrics.contains(name)),
        failures: !sweep.failed.is_empty(),
    };
    let mut head = sweep.keys.clone();
    head.extend(["n", "median"]);
    head.extend(has.over_linear.as_ref().map(|_| "÷ linear"));
    head.extend(["lower quartile", "upper quartile", smallest, "highest"]);
    head.extend(["95 % interval of median, from", "to"].into_iter().filter(|_| has.intervals));
    head.extend(has.failures.then_some("no result"));
    let problem = |index: usize| {
        let problem = &sweep.combinations[index].problem;
        sweep.combinations.iter().position(|other| other.problem == *problem)
    };
    let rows = sweep.combinations.iter().zip(best(sweep, metric)).enumerate();
    let mut rows: Vec<(Option<usize>, f64, Vec<Field>)> = rows
        .map(|(index, (combination, is_best))| {
            let (median, row) = row(combination, &combination.sample(metric), &has, is_best);
            (problem(index), median, row)
        })
        .collect();
    rows.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let rows: Vec<Vec<Field>> = rows.into_iter().map(|row| row.2).collect();
    let open = if is_open { " open" } else { "" };
    page.add(&format!("<details{open}><summary>{}</summary>\n", escape(metric)));
    page.sortable(&head, &rows[..rows.len().min(MOST_ROWS)]);
    more(page, rows.len());
    page.add("</details>\n");
}

/// Columns that not all tables have.
struct Columns {
    intervals: bool,
    /// The metric that is the ratio.
    over_linear: Option<String>,
    failures: bool,
}

fn row(combination: &Combination, sample: &Sample, has: &Columns, is_best: bool) -> (f64, Vec<Field>) {
    let [lower, median, upper] = sample.quartiles();
    let (from, to) = sample.median_interval().unwrap_or((f64::NAN, f64::NAN));
    let mut row: Vec<Field> = combination.values.iter().map(field).collect();
    row.extend([Field::number(sample.len() as f64), Field::number(median).best(is_best)]);
    let ratio = has.over_linear.as_ref().map(|name| combination.sample(name).quartiles()[1]);
    row.extend(ratio.map(Field::number));
    row.extend([lower, upper, sample.least(), sample.largest()].map(Field::number));
    row.extend([from, to].into_iter().filter(|_| has.intervals).map(Field::number));
    row.extend(has.failures.then(|| Field::number(combination.failed as f64)));
    (if sample.is_empty() { f64::INFINITY } else { median }, row)
}

/// Every cell with its metrics.
fn plain(page: &mut Page, sweep: &Sweep<'_>, metrics: &[&String]) {
    let metrics = &metrics[..metrics.len().min(MOST_METRICS)];
    let mut head = sweep.keys.clone();
    head.extend(metrics.iter().map(|metric| metric.as_str()));
    let best: Vec<Vec<bool>> = metrics.iter().map(|metric| best(sweep, metric)).collect();
    let row = |(index, combination): (usize, &Combination)| {
        let metric = |(metric, best): (&&String, &Vec<bool>)| {
            Field::number(value(combination, metric).unwrap_or(f64::NAN)).best(best[index])
        };
        combination.values.iter().map(field).chain(metrics.iter().zip(&best).map(metric)).collect()
    };
    let rows: Vec<Vec<Field>> = sweep.combinations.iter().enumerate().take(MOST_ROWS).map(row).collect();
    page.sortable(&head, &rows);
    more(page, sweep.combinations.len());
}

fn more(page: &mut Page, rows: usize) {
    if rows > MOST_ROWS {
        page.note(&format!("… and {} more.", rows - MOST_ROWS));
    }
}

/// A value of the matrix.
fn field(value: &Json) -> Field {
    Field::new(&show(value))
}

/// Which points are on the Pareto front: no other point is as good in both coordinates and better in one.
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
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_front_is_what_nothing_dominates(points in prop::collection::vec((0_u8..20, 0_u8..20), 0..40)) {
            let points: Vec<(f64, f64)> = points.into_iter().map(|(x, y)| (f64::from(x), f64::from(y))).collect();
            let beats = |a: (f64, f64), b: (f64, f64)| a.0 <= b.0 && a.1 <= b.1 && a != b;
            let expected: Vec<bool> =
                points.iter().map(|&point| !points.iter().any(|&other| beats(other, point))).collect();
            prop_assert_eq!(front(&points), expected);
        }
    }
}
