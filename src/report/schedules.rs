//! What a schedule looks like: who runs what when, and how far from the best it can be.

use hopmap_model::{Artifact, Schedule};
use hopmap_views::{gantt, makespan_convergence};

use super::page::{Page, escape};
use super::placement::own;
use crate::engine::{OutputRecord, RunReport, Store};
use crate::pipeline::{Cell, Pipeline};

/// Schedules that are drawn; of a sweep the shortest ones.
const MOST_DRAWN: usize = 6;
/// Rows of the table of schedules.
const MOST_ROWS: usize = 300;
/// Tasks of a critical path that are named.
const MOST_NAMED: usize = 24;

/// Lists all schedules and draws the shortest ones.
pub(crate) fn schedules(page: &mut Page, pipeline: &Pipeline, store: &Store, report: &RunReport) {
    let mut cells: Vec<(f64, usize, &OutputRecord)> = Vec::new();
    for (index, settled) in report.cells.iter().enumerate() {
        let schedule = settled.outputs.values().find(|record| record.kind == Schedule::KIND);
        let makespan =
            |record: &OutputRecord| record.metrics.get("makespan").copied().unwrap_or(f64::INFINITY);
        cells.extend(schedule.map(|record| (makespan(record), index, record)));
    }
    if cells.is_empty() {
        return;
    }
    page.heading("Schedules");
    table(page, pipeline, &cells);
    cells.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    if cells.len() > MOST_DRAWN {
        let all = cells.len();
        page.add(&format!("<p class=\"note\">The {MOST_DRAWN} with the smallest makespan of {all}.</p>\n"));
    }
    for (_, index, _) in cells.into_iter().take(MOST_DRAWN) {
        if let Some(schedule) = own::<Schedule>(store, report, index) {
            draw(page, &pipeline.cells[index], &schedule);
        }
    }
}

fn table(page: &mut Page, pipeline: &Pipeline, cells: &[(f64, usize, &OutputRecord)]) {
    let row = |(_, index, record): &(f64, usize, &OutputRecord)| {
        let metric = |name: &str| record.metrics.get(name).copied();
        let value = |name: &str| metric(name).map_or_else(|| "–".to_owned(), |value| value.to_string());
        let percent = |name: &str| {
            metric(name).map_or_else(|| "–".to_owned(), |share| format!("{:.2} %", 100.0 * share))
        };
        let proven = metric("proven").is_some_and(|proven| proven > 0.0);
        let cell = &pipeline.cells[*index];
        vec![
            escape(&cell.id),
            format!("<code>{}</code>", escape(cell.entry.kind)),
            value("makespan"),
            value("lower_bound"),
            percent("gap"),
            if proven { "yes" } else { "no" }.to_owned(),
            percent("idle"),
            value("evaluations"),
        ]
    };
    let rows: Vec<Vec<String>> = cells.iter().take(MOST_ROWS).map(row).collect();
    let head =
        ["stage", "kind", "makespan", "lower bound", "gap at most", "proven optimal", "idle", "evaluations"];
    page.table(&head, &rows);
    if cells.len() > MOST_ROWS {
        page.add(&format!("<p class=\"note\">{MOST_ROWS} of {} are shown.</p>\n", cells.len()));
    }
}

fn draw(page: &mut Page, cell: &Cell, schedule: &Schedule) {
    page.add(&format!("<h3>{} <code>{}</code></h3>\n", escape(&cell.id), escape(cell.entry.kind)));
    let path = schedule.critical_path();
    let names: Vec<String> = path.iter().take(MOST_NAMED).map(|&task| schedule.name(task)).collect();
    let more = if path.len() > names.len() { " → …" } else { "" };
    let caption = format!("The critical path has {} tasks: {}{more}", path.len(), names.join(" → "));
    page.figure(&gantt(schedule), &caption);
    if schedule.convergence.iter().any(|point| point.evaluations > 0) {
        let bound = schedule.metrics.get("lower_bound").copied().filter(|bound| *bound > 0.0);
        let reference = bound.map(|bound| (bound, "lower bound"));
        let picture = makespan_convergence(&schedule.convergence, reference);
        page.figure(&picture, "The least makespan each island had found.");
    }
}
