//! Sweeps: what the cells of a stage say together.
//!
//! # Limits
//!
//! `src/report/sweep` gathers the cells of a stage by their matrix without `seed`; `statistics.rs` has medians, their intervals and fronts;
//! `timeline.rs` puts the cells of a journal into lanes, of which the picture and the trace events for Perfetto are made. Whatever the size of
//! a sweep, tables have 300 rows, lists 20 names, and of 400 searches the convergence is read.

mod gather;
mod table;

use gather::{Sweep, gather};

use super::page::{Page, escape};
use crate::engine::{RunReport, Store};
use crate::pipeline::Pipeline;

/// Cells that are named in a sentence.
const MOST_NAMED: usize = 20;

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
