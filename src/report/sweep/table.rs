//! The tables of a sweep.

use serde_json::Value as Json;

use super::gather::{Sweep, Way};
use crate::report::page::{Field, Page, escape};
use hopmap_statistics::Sample;

/// Rows of a table.
const MOST_ROWS: usize = 300;
/// Metrics of a stage that have a table, or a column.
const MOST_METRICS: usize = 24;
/// Metrics of which less is better; that of others is called the lowest.
const COSTS: [&str; 6] = ["F", "T", "makespan", "hop_bytes", "seconds", "max_link_load"];

/// A table for every metric where there are seeds, else one for all.
pub(super) fn tables(page: &mut Page, sweep: &Sweep<'_>) {
    let (same, different): (Vec<&String>, Vec<&String>) =
        sweep.metrics.iter().partition(|metric| is_same(sweep, metric) && *metric != "seconds");
    if sweep.is_repeated {
        for (place, metric) in different.iter().take(MOST_METRICS).enumerate() {
            statistics(page, sweep, metric, place == 0);
        }
        if sweep.ways.iter().any(|way| (1..6).contains(&way.cells.len())) {
            page.add("<p class=\"note\">Fewer than six cells say too little of a median for an interval of 95 %.</p>\n");
        }
    } else {
        plain(page, sweep, &different);
    }
    let same: Vec<String> = same
        .into_iter()
        .take(MOST_METRICS)
        .filter_map(|metric| {
            Some(format!("{} = {}", escape(metric), digits(value(sweep.ways.first()?, metric)?)))
        })
        .collect();
    if !same.is_empty() {
        page.add(&format!("<p class=\"note\">The same in all cells: {}.</p>\n", same.join(", ")));
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
    head.extend([
        "n",
        "median",
        "lower quartile",
        "upper quartile",
        best,
        "highest",
        "95 % of median from",
        "to",
    ]);
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
        page.add(&format!("<p class=\"note\">… and {} more.</p>\n", rows - MOST_ROWS));
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
