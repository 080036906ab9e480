//! Predicted run times: beside linear and round-robin, the critical path, the time of every rank and the busiest links; metrics and
//! predictions compared with run times.

use std::collections::BTreeMap;

use hopmap_artifact::is_without_contention;
use hopmap_model::{Artifact, LinkUse, MOST_GAIN, Metrics, PREDICTED, Prediction};
use hopmap_views::{correlation, rank_times};

use super::page::{Page, Results, escape, number};
use super::solutions::{smallest, with_output};
use crate::engine::{OutputRecord, Settled};
use crate::pipeline::Pipeline;

/// Rows of the table of predictions.
const MOST_ROWS: usize = 300;
/// Predictions that are drawn; of a sweep the shortest ones.
const MOST_DRAWN: usize = 4;
/// Links that are listed.
const MOST_LINKS: usize = 10;
/// Comparisons of metrics with run times that are drawn.
const MOST_COMPARED: usize = 12;

/// Lists what a placement can gain at most and all predictions, and draws the shortest ones.
pub(crate) fn predictions(page: &mut Page, results: Results<'_>) {
    bounds(page, results);
    let heading = "Predicted run time";
    let Some(cells) = with_output(page, heading, results, Prediction::KIND) else { return };
    table(page, results.pipeline, &cells);
    for index in smallest(page, results, &cells, "seconds", MOST_DRAWN) {
        let Some(prediction) = results.own::<Prediction>(index) else { continue };
        page.cell_heading(&results.pipeline.cells[index]);
        if !prediction.is_contended {
            page.note("Without contention: the machine has no links.");
        }
        if !prediction.is_calibrated {
            page.note("Not calibrated: messages cost no time at their ends.");
        }
        page.figure(&rank_times(&prediction), "");
        busiest(page, &prediction);
    }
}

fn bounds(page: &mut Page, results: Results<'_>) {
    let bound = |(index, settled): (usize, &Settled)| {
        let metrics = &settled.outputs.values().find(|record| record.kind == Metrics::KIND)?.metrics;
        let value = |name: &str| metrics.get(name).copied();
        let amount = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), number);
        Some(vec![
            named(results.pipeline, index, metrics),
            value(MOST_GAIN).map_or_else(|| "–".to_owned(), |gain| format!("{:.1} %", 100.0 * gain)),
            amount(value("reference_s")),
            number(value("bound_s")?),
            amount(value("bound_computation_s")),
            amount(value("bound_cut_s")),
        ])
    };
    let rows: Vec<Vec<String>> = results.report.cells.iter().enumerate().filter_map(bound).collect();
    if rows.is_empty() {
        return;
    }
    page.heading("What a placement can gain");
    let head = "stage | at most | of seconds | no run is shorter than | computation alone | bytes over cuts";
    page.first_rows(head, rows.into_iter(), MOST_ROWS);
    page.note("The run time is that of the linear mapping, predicted, or of the recorded run if there are no events.");
}

/// The name of a cell, and whether its seconds are those of a machine without links.
fn named(pipeline: &Pipeline, index: usize, metrics: &BTreeMap<String, f64>) -> String {
    let contention = if is_without_contention(metrics) { " (without contention)" } else { "" };
    escape(&pipeline.cells[index].id) + contention
}

fn table(page: &mut Page, pipeline: &Pipeline, cells: &[(usize, &OutputRecord)]) {
    let row = |&(index, record): &(usize, &OutputRecord)| {
        let metric = |name: &str| record.metrics.get(name).copied();
        let value = |name: &str| metric(name).map_or_else(|| "–".to_owned(), number);
        let share = |name: &str| {
            let part = metric(name).zip(metric("seconds").filter(|seconds| *seconds > 0.0));
            part.map_or_else(|| "–".to_owned(), |(part, all)| format!("{:.1} %", 100.0 * part / all))
        };
        vec![
            named(pipeline, index, &record.metrics),
            value("seconds"),
            value("recorded_s"),
            value("seconds_over_recorded"),
            value("seconds_over_linear"),
            value("seconds_over_round_robin"),
            share("critical_computation_s"),
            share("critical_overhead_s"),
            share("critical_latency_s"),
            share("critical_bandwidth_s"),
            share("critical_waiting_s"),
        ]
    };
    let head = "stage | seconds | recorded s | ÷ recorded | ÷ linear | ÷ round-robin | computation | overhead | latency | bandwidth | waiting";
    page.first_rows(head, cells.iter().map(row), MOST_ROWS);
    page.note("The last five columns divide the critical path: the operations that the end of the program waited for.");
}

/// The links at full capacity for the largest share of the time.
fn busiest(page: &mut Page, prediction: &Prediction) {
    let mut links: Vec<&LinkUse> = prediction.links.iter().collect();
    if links.is_empty() {
        return;
    }
    links.sort_by(|a, b| b.saturated.total_cmp(&a.saturated).then(b.bytes.total_cmp(&a.bytes)));
    let row = |link: &&LinkUse| {
        vec![
            format!("{} → {}", escape(&link.source), escape(&link.destination)),
            number(link.bytes),
            format!("{:.1} %", 100.0 * link.saturated),
        ]
    };
    page.first_rows("busiest link | bytes | at full capacity", links.iter().map(row), MOST_LINKS);
}

/// Compares metrics and predictions with run times.
pub(crate) fn correlations(page: &mut Page, results: Results<'_>) {
    let has_run_times = |record: &&OutputRecord| {
        record.kind == Metrics::KIND && record.metrics.contains_key("pairs_beyond_noise")
    };
    let records = results
        .cells()
        .filter_map(|(cell, settled)| Some((cell, settled.outputs.values().find(has_run_times)?)));
    for (index, (cell, record)) in records.take(MOST_COMPARED).enumerate() {
        let Some(metrics) = results.read::<Metrics>(record) else { continue };
        if index == 0 {
            page.heading("Metrics and run time");
        }
        page.cell_heading(cell);
        page.figure(
            &correlation(&metrics),
            "Every dot is a mapping. A good metric puts them on a line that rises.",
        );
        correlation_table(page, &record.metrics);
    }
}

fn correlation_table(page: &mut Page, metrics: &BTreeMap<String, f64>) {
    let value = |what: &str, name: &str| metrics.get(&format!("{what}_{name}")).copied();
    let coefficient =
        |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |value| format!("{value:.3}"));
    let row = |name: &str| {
        let regret = value("regret", name).unwrap_or(f64::NAN);
        vec![
            escape(name),
            coefficient(value("spearman", name)),
            coefficient(value("kendall", name)),
            coefficient(value("kendall_beyond_noise", name)),
            format!("{:.1} %", 100.0 * regret),
        ]
    };
    let mut names: Vec<&str> = metrics.keys().filter_map(|key| key.strip_prefix("regret_")).collect();
    names.sort_by_key(|name| *name != PREDICTED);
    let head = "metric | Spearman's ρ | Kendall's τ | τ of pairs that differ by more than the noise | regret";
    page.first_rows(head, names.into_iter().map(row), MOST_ROWS);
    page.note("Regret: how much longer the mapping with the smallest value runs than the fastest one.");
    if let Some(error) = metrics.get("prediction_error") {
        page.note(&format!("Median error of the predictions: {:.1} %.", 100.0 * error));
    }
}
