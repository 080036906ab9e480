//! Predicted run times: beside linear and round-robin, the critical path, the time of every rank and the busiest links; metrics and
//! predictions compared with run times.

use std::collections::{BTreeMap, BTreeSet};

use hopmap_artifact::is_without_contention;
use hopmap_model::{Artifact, LinkUse, MOST_GAIN, Mapping, Metrics, PREDICTED, Prediction};
use hopmap_views::{correlation, rank_times};

use super::answer::compared_mappings;
use super::page::{Page, Results, escape, number};
use super::solutions::{smallest, with_output};
use crate::engine::OutputRecord;
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
    let shown = match of_trial(results, &cells) {
        Some(shown) => shown.to_vec(),
        None => smallest(page, results, &cells, "seconds", MOST_DRAWN),
    };
    for index in shown {
        let Some(prediction) = results.own::<Prediction>(index) else { continue };
        page.cell_heading(&results.pipeline.cells[index]);
        if !prediction.is_contended {
            page.note("Without contention: the machine has no links.");
        }
        busiest(page, &prediction);
        page.figure(&rank_times(&prediction), "");
    }
}

/// The predictions of the two mappings that a trial compares.
fn of_trial(results: Results<'_>, cells: &[(usize, &OutputRecord)]) -> Option<[usize; 2]> {
    let [first, rival] = compared_mappings(results)?.map(|mapping| {
        let is_of = |(index, _): &&(usize, &OutputRecord)| {
            let source = results.source(&results.pipeline.cells[*index], Mapping::KIND);
            results
                .outputs(Mapping::KIND)
                .any(|(cell, record)| Some(cell) == source && record.digest == mapping.digest)
        };
        cells.iter().find(is_of).map(|(index, _)| *index)
    });
    Some([first?, rival?])
}

fn bounds(page: &mut Page, results: Results<'_>) {
    let bound = |(index, record): (usize, &OutputRecord)| {
        let metrics = &record.metrics;
        let value = |name: &str| metrics.get(name).copied();
        let amount = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), number);
        // A recording without times bounds nothing.
        value("reference_s").or_else(|| value("bound_s").filter(|seconds| *seconds > 0.0))?;
        Some(vec![
            named(results.pipeline, index, metrics),
            value(MOST_GAIN).map_or_else(|| "–".to_owned(), |gain| format!("{:.1} %", 100.0 * gain)),
            amount(value("reference_s")),
            number(value("bound_s")?),
            amount(value("bound_computation_s")),
            amount(value("bound_cut_s")),
        ])
    };
    let rows: Vec<Vec<String>> = results.outputs(Metrics::KIND).filter_map(bound).collect();
    if rows.is_empty() {
        return;
    }
    page.heading("What a placement can gain");
    let head = "stage | at most | run time (s) | lower bound (s) | compute limit (s) | network limit (s)";
    page.first_rows(head, rows.into_iter(), MOST_ROWS);
    page.note("Run time: predicted for the linear mapping; without events, the recorded one.");
}

/// The name of a cell, and whether its seconds are those of a machine without links.
fn named(pipeline: &Pipeline, index: usize, metrics: &BTreeMap<String, f64>) -> String {
    let contention = if is_without_contention(metrics) { " (without contention)" } else { "" };
    escape(&pipeline.cells[index].id) + contention
}

fn table(page: &mut Page, pipeline: &Pipeline, cells: &[(usize, &OutputRecord)]) {
    let mut digests = BTreeSet::new();
    let different: Vec<_> = cells.iter().filter(|(_, record)| digests.insert(&record.digest)).collect();
    let row = |(_, record): &&(usize, &OutputRecord)| {
        let equal = cells.iter().filter(|(_, other)| other.digest == record.digest);
        let equal: Vec<String> = equal.map(|&(index, _)| named(pipeline, index, &record.metrics)).collect();
        let metric = |name: &str| record.metrics.get(name).copied();
        let value = |name: &str| metric(name).map_or_else(|| "–".to_owned(), number);
        let share = |name: &str| {
            let part = metric(name).zip(metric("seconds").filter(|seconds| *seconds > 0.0));
            part.map_or_else(|| "–".to_owned(), |(part, all)| format!("{:.1} %", 100.0 * part / all))
        };
        vec![
            equal.join("<br>"),
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
    let head = "stage | predicted (s) | recorded (s) | ÷ recorded | ÷ linear | ÷ round-robin | computation | overhead | latency | bandwidth | waiting";
    page.first_rows(head, different.iter().map(row), MOST_ROWS);
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
    let has_run_times = |record: &OutputRecord| record.metrics.contains_key("pairs_beyond_noise");
    let records = results.outputs(Metrics::KIND).filter(|(_, record)| has_run_times(record));
    for (index, (cell, record)) in records.take(MOST_COMPARED).enumerate() {
        let Some(metrics) = results.read::<Metrics>(record) else { continue };
        if index == 0 {
            page.heading("Metrics and run time");
        }
        page.cell_heading(&results.pipeline.cells[cell]);
        page.figure(
            &correlation(&metrics),
            "Each dot is a mapping. With a good metric they lie on a rising line.",
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
