//! What routes look like: the network with its loads, why there are none, and what happens when something fails.

use hopmap_model::{
    Artifact, Cause, Diagnosis, Failure, Failures, Mapping, Part, Routes, SystemGraph, Tables, TaskGraph,
};
use hopmap_views::{Routed, route_loads, routes as picture};

use super::page::{Page, escape};
use super::placement::{needed, own};
use crate::engine::{OutputRecord, RunReport, Store};
use crate::pipeline::{Cell, Pipeline};

/// Networks that are drawn; of a sweep those with the least objective.
const MOST_DRAWN: usize = 4;
/// Rows of a table.
const MOST_ROWS: usize = 300;

/// Lists all routes, draws the best ones, and shows diagnoses and failures.
pub(crate) fn routes(page: &mut Page, pipeline: &Pipeline, store: &Store, report: &RunReport) {
    drawings(page, pipeline, store, report);
    diagnoses(page, pipeline, store, report);
    failures(page, pipeline, store, report);
}

fn drawings(page: &mut Page, pipeline: &Pipeline, store: &Store, report: &RunReport) {
    let mut cells: Vec<(f64, usize, &OutputRecord)> = Vec::new();
    for (index, settled) in report.cells.iter().enumerate() {
        let record = settled.outputs.values().find(|record| record.kind == Routes::KIND);
        let objective =
            |record: &OutputRecord| record.metrics.get("objective").copied().unwrap_or(f64::INFINITY);
        cells.extend(record.map(|record| (objective(record), index, record)));
    }
    if cells.is_empty() {
        return;
    }
    page.heading("Routes");
    table(page, pipeline, &cells);
    cells.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    if cells.len() > MOST_DRAWN {
        let all = cells.len();
        page.add(&format!("<p class=\"note\">The {MOST_DRAWN} with the least objective of {all}.</p>\n"));
    }
    for (_, index, _) in cells.into_iter().take(MOST_DRAWN) {
        draw(page, &pipeline.cells[index], store, report, index);
    }
}

fn table(page: &mut Page, pipeline: &Pipeline, cells: &[(f64, usize, &OutputRecord)]) {
    let row = |(_, index, record): &(f64, usize, &OutputRecord)| {
        let metric = |name: &str| record.metrics.get(name).copied();
        let value = |name: &str| metric(name).map_or_else(|| "–".to_owned(), |value| value.to_string());
        let answer = |name: &str| match metric(name) {
            Some(value) if value > 0.0 => "yes".to_owned(),
            Some(_) => "no".to_owned(),
            None => "–".to_owned(),
        };
        let busiest = metric("largest_link_utilisation");
        let cell = &pipeline.cells[*index];
        vec![
            escape(&cell.id),
            format!("<code>{}</code>", escape(cell.entry.kind)),
            value("objective"),
            value("bound"),
            answer("proven"),
            value("longest"),
            value("hops"),
            value("entries"),
            answer("deadlock_free"),
            busiest.map_or_else(|| "–".to_owned(), |part| format!("{:.1} %", 100.0 * part)),
        ]
    };
    let rows: Vec<Vec<String>> = cells.iter().take(MOST_ROWS).map(row).collect();
    let head = [
        "stage",
        "kind",
        "objective",
        "bound",
        "proven optimal",
        "longest",
        "hops",
        "entries",
        "deadlock-free",
        "busiest link",
    ];
    page.table(&head, &rows);
    say_rest(page, rows.len(), cells.len());
}

fn draw(page: &mut Page, cell: &Cell, store: &Store, report: &RunReport, index: usize) {
    let Some((routes, system)) =
        own::<Routes>(store, report, index).zip(needed::<SystemGraph>(cell, store, report))
    else {
        return;
    };
    let tables = own::<Tables>(store, report, index).or_else(|| needed::<Tables>(cell, store, report));
    let mapping = own::<Mapping>(store, report, index).or_else(|| needed::<Mapping>(cell, store, report));
    let graph = needed::<TaskGraph>(cell, store, report);
    let shown = Routed {
        system: &system,
        routes: &routes,
        tables: tables.as_deref(),
        graph: graph.as_deref(),
        mapping: mapping.as_deref(),
    };
    page.add(&format!("<h3>{} <code>{}</code></h3>\n", escape(&cell.id), escape(cell.entry.kind)));
    page.figure(&picture(&shown), "The network, and how busy each direction of its links is.");
    page.figure(&route_loads(&shown), "");
}

fn diagnoses(page: &mut Page, pipeline: &Pipeline, store: &Store, report: &RunReport) {
    let row = |cause: &Cause| {
        vec![
            cause.remedy.to_string(),
            part_name(cause.part).to_owned(),
            escape(&cause.name),
            amount(cause.there),
            amount(cause.needed),
            escape(&cause.words),
        ]
    };
    for (index, settled) in report.cells.iter().enumerate() {
        if !settled.outputs.values().any(|record| record.kind == Diagnosis::KIND) {
            continue;
        }
        let Some(diagnosis) = own::<Diagnosis>(store, report, index) else { continue };
        page.heading(&format!("Why {} has no answer", pipeline.cells[index].id));
        page.add("<p class=\"note\">Any one remedy is enough; of a remedy all parts are needed.</p>\n");
        let rows: Vec<Vec<String>> = diagnosis.causes.iter().take(MOST_ROWS).map(row).collect();
        page.table(&["remedy", "part", "name", "there", "needed", "why"], &rows);
        say_rest(page, rows.len(), diagnosis.causes.len());
    }
}

fn failures(page: &mut Page, pipeline: &Pipeline, store: &Store, report: &RunReport) {
    let row = |failure: &Failure| {
        let survived = match failure.survived {
            Some(true) => "<span class=\"state ran\">yes</span>",
            Some(false) => "<span class=\"state failed\">no</span>",
            None => "not known",
        };
        vec![
            part_name(failure.part).to_owned(),
            escape(&failure.name),
            survived.to_owned(),
            amount(failure.objective),
            amount(failure.longest.map(f64::from)),
            failure.moved.to_string(),
            failure.rerouted.to_string(),
            failure.changed_entries.to_string(),
            escape(&failure.shortage),
        ]
    };
    for (index, settled) in report.cells.iter().enumerate() {
        if !settled.outputs.values().any(|record| record.kind == Failures::KIND) {
            continue;
        }
        let Some(failures) = own::<Failures>(store, report, index) else { continue };
        page.heading(&format!("Failures: {}", pipeline.cells[index].id));
        // What is not survived comes first.
        let mut sorted: Vec<&Failure> = failures.failures.iter().collect();
        sorted.sort_by_key(|failure| match failure.survived {
            Some(false) => 0,
            None => 1,
            Some(true) => 2,
        });
        let rows: Vec<Vec<String>> = sorted.into_iter().take(MOST_ROWS).map(row).collect();
        let head = [
            "part",
            "name",
            "survived",
            "objective",
            "longest",
            "processes moved",
            "streams rerouted",
            "entries changed",
            "what is short",
        ];
        page.table(&head, &rows);
        say_rest(page, rows.len(), failures.failures.len());
    }
}

fn say_rest(page: &mut Page, shown: usize, all: usize) {
    if all > shown {
        page.add(&format!("<p class=\"note\">{shown} of {all} are shown.</p>\n"));
    }
}

fn amount(value: Option<f64>) -> String {
    value.map_or_else(|| "–".to_owned(), |value| value.to_string())
}

fn part_name(part: Part) -> &'static str {
    match part {
        Part::Link => "link",
        Part::Switch => "switch",
        Part::Host => "host",
        Part::Process => "process",
        Part::Stream => "stream",
    }
}
