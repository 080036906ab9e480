//! What solutions look like: placements (the matrix before and after, the machine with its loads, the search), communication
//! matrices side by side, schedules (who runs what when), and routes (the network with its loads, why there are none, what
//! happens when something fails).

use std::sync::Arc;

use hopmap_artifact::{Codec, Folder};
use hopmap_model::{
    Artifact, Cause, Diagnosis, Failure, Failures, Mapping, Part, Paths, Routes, Schedule, SystemGraph,
    Tables, TaskGraph,
};
use hopmap_objective::{Quality, linear, link_loads};
use hopmap_views::{
    RankOrder, Routed, SmallMatrix, convergence, gantt, levels, makespan_convergence, matrix, route_loads,
    routes as picture, small_matrices, topology,
};

use super::page::{Page, escape};
use crate::engine::{OutputRecord, RunReport, Settled, Store};
use crate::pipeline::{Cell, Origin, Pipeline};

/// Placements that are drawn; of a sweep the best ones.
const MOST_PLACEMENTS: usize = 6;

/// A mapping and what it was made from.
struct Placed<'a> {
    cell: &'a Cell,
    mapping: Arc<Mapping>,
    graph: Arc<TaskGraph>,
    system: Arc<SystemGraph>,
}

/// Draws the placements, the best of each stage first.
pub(crate) fn placements(page: &mut Page, pipeline: &Pipeline, store: &Store, report: &RunReport) {
    let cells = with_output(report, Mapping::KIND);
    if cells.is_empty() {
        return;
    }
    page.heading("Placement");
    for index in smallest(page, cells, "F", MOST_PLACEMENTS, "the smallest F") {
        if let Some(placed) = load(pipeline, store, report, index) {
            draw(page, &placed);
        }
    }
}

/// The cells with an output of a kind: index, and that output.
fn with_output<'a>(report: &'a RunReport, kind: &str) -> Vec<(usize, &'a OutputRecord)> {
    let output = |(index, settled): (usize, &'a Settled)| {
        Some((index, settled.outputs.values().find(|record| record.kind == kind)?))
    };
    report.cells.iter().enumerate().filter_map(output).collect()
}

/// The cells with the smallest values of a metric, which `words` names; said where that are not all.
fn smallest(
    page: &mut Page,
    mut cells: Vec<(usize, &OutputRecord)>,
    metric: &str,
    most: usize,
    words: &str,
) -> impl Iterator<Item = usize> + use<> {
    let all = cells.len();
    if all > most {
        page.note(&format!("The {most} with {words} of {all}."));
    }
    let value = |record: &OutputRecord| record.metrics.get(metric).copied().unwrap_or(f64::INFINITY);
    cells.sort_by(|a, b| value(a.1).total_cmp(&value(b.1)).then(a.0.cmp(&b.0)));
    let cells: Vec<usize> = cells.into_iter().take(most).map(|(index, _)| index).collect();
    cells.into_iter()
}

fn load<'a>(pipeline: &'a Pipeline, store: &Store, report: &RunReport, index: usize) -> Option<Placed<'a>> {
    let cell = &pipeline.cells[index];
    Some(Placed {
        cell,
        mapping: own::<Mapping>(store, report, index)?,
        graph: needed::<TaskGraph>(cell, store, report)?,
        system: needed::<SystemGraph>(cell, store, report)?,
    })
}

/// The output of a cell that is of a kind.
pub(super) fn own<C: Codec>(store: &Store, report: &RunReport, index: usize) -> Option<Arc<C>> {
    let record = report.cells[index].outputs.values().find(|record| record.kind == C::KIND)?;
    Folder::read::<C>(&store.artifact(&record.digest)).ok().map(Arc::new)
}

/// The input of a cell that is of a kind.
pub(super) fn needed<C: Codec>(cell: &Cell, store: &Store, report: &RunReport) -> Option<Arc<C>> {
    let need = cell.needs.iter().find(|need| need.port.kind == C::KIND)?;
    match need.origins.first()? {
        Origin::Cell { cell, .. } => own(store, report, *cell),
        Origin::Best { .. } => None,
    }
}

fn draw(page: &mut Page, placed: &Placed<'_>) {
    let Placed { cell, mapping, graph, system } = placed;
    page.cell_heading(cell);
    page.add("<div class=\"pair\">\n");
    let (placed_on, linear_slots) = (mapping.slots(), linear(graph.ranks()));
    let before = RankOrder::in_machine(&linear_slots, system);
    let caption = "Rank i on slot i: squares are the hosts and other groups of the machine.";
    page.figure(&matrix(graph, mapping.weight, "Linear placement", Some(&before)), caption);
    let after = RankOrder::in_machine(&placed_on, system);
    let caption = "As they are placed: what is inside a square stays in that group.";
    page.figure(&matrix(graph, mapping.weight, "This placement", Some(&after)), caption);
    page.add("</div>\n");
    let loads = Paths::new(system).map(|paths| link_loads(graph, system, &paths, &placed_on));
    if let Some(picture) = levels(graph, system, &placed_on, &linear_slots, mapping.weight) {
        page.figure(&picture, "How far messages travel.");
    }
    page.figure(
        &topology(system, loads.as_deref(), Some(mapping)),
        "The machine, its ranks, and the bytes on its links.",
    );
    if mapping.convergence.iter().any(|point| point.evaluations > 0) {
        let start = Quality::new(graph, system, None, &linear_slots, mapping.weight).ok();
        let reference = start.map(|quality| (quality.f, "linear"));
        page.figure(&convergence(&mapping.convergence, reference), "The best F each island had found.");
    }
}

/// Matrices that are drawn.
const MOST_MATRICES: usize = 36;
/// Edges of a program that is drawn so small.
const MOST_BYTES: u64 = 40_000_000;

/// Draws the programs of every stage that makes several.
pub(crate) fn matrices(page: &mut Page, pipeline: &Pipeline, store: &Store, report: &RunReport) {
    let mut stages: Vec<(&str, Vec<(&Cell, &str)>)> = Vec::new();
    for (cell, settled) in pipeline.cells.iter().zip(&report.cells) {
        let graphs = settled.outputs.values().filter(|record| record.kind == TaskGraph::KIND);
        for record in graphs.filter(|record| record.files.iter().map(|file| file.1).sum::<u64>() < MOST_BYTES)
        {
            match stages.iter_mut().find(|(stage, _)| *stage == cell.stage) {
                Some((_, cells)) => cells.push((cell, &record.digest)),
                None => stages.push((&cell.stage, vec![(cell, &record.digest)])),
            }
        }
    }
    stages.retain(|(_, cells)| cells.len() > 1);
    if stages.is_empty() {
        return;
    }
    page.heading("Programs");
    for (stage, cells) in stages {
        page.add(&format!("<h3>{}</h3>\n", escape(stage)));
        let read = |(cell, digest): &(&Cell, &str)| {
            Some((name(cell), Folder::read::<TaskGraph>(&store.artifact(digest)).ok()?))
        };
        let graphs: Vec<(String, TaskGraph)> = cells.iter().take(MOST_MATRICES).filter_map(read).collect();
        let matrices: Vec<SmallMatrix<'_>> =
            graphs.iter().map(|(name, graph)| SmallMatrix { name, graph, order: None }).collect();
        page.figure(&small_matrices(&matrices, "Who sends how much to whom"), "");
        if cells.len() > MOST_MATRICES {
            page.note(&format!("… and {} more.", cells.len() - MOST_MATRICES));
        }
    }
}

/// What the matrix of the sweep says, of paths the part that tells most: the folder of the archive.
fn name(cell: &Cell) -> String {
    let text = |value: &serde_json::Value| {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let parts: Vec<&str> = text.split('/').filter(|part| *part != "..").collect();
        match parts[..] {
            [.., folder, _] => folder.to_owned(),
            _ => text,
        }
    };
    cell.matrix.iter().map(|(_, value)| text(value)).collect::<Vec<_>>().join(" ")
}

/// Schedules that are drawn; of a sweep the shortest ones.
const MOST_SCHEDULES: usize = 6;
/// Rows of the table of schedules.
const MOST_ROWS: usize = 300;
/// Tasks of a critical path that are named.
const MOST_NAMED: usize = 24;

/// Lists all schedules and draws the shortest ones.
pub(crate) fn schedules(page: &mut Page, pipeline: &Pipeline, store: &Store, report: &RunReport) {
    let cells = with_output(report, Schedule::KIND);
    if cells.is_empty() {
        return;
    }
    page.heading("Schedules");
    table(page, pipeline, &cells);
    for index in smallest(page, cells, "makespan", MOST_SCHEDULES, "the smallest makespan") {
        if let Some(schedule) = own::<Schedule>(store, report, index) {
            draw_schedule(page, &pipeline.cells[index], &schedule);
        }
    }
}

fn table(page: &mut Page, pipeline: &Pipeline, cells: &[(usize, &OutputRecord)]) {
    let row = |&(index, record): &(usize, &OutputRecord)| {
        let metric = |name: &str| record.metrics.get(name).copied();
        let value = |name: &str| metric(name).map_or_else(|| "–".to_owned(), |value| value.to_string());
        let percent = |name: &str| {
            metric(name).map_or_else(|| "–".to_owned(), |share| format!("{:.2} %", 100.0 * share))
        };
        let proven = metric("proven").is_some_and(|proven| proven > 0.0);
        let cell = &pipeline.cells[index];
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
    let head = "stage | kind | makespan | lower bound | gap at most | proven optimal | idle | evaluations";
    page.first_rows(head, cells.iter().map(row), MOST_ROWS);
}

fn draw_schedule(page: &mut Page, cell: &Cell, schedule: &Schedule) {
    page.cell_heading(cell);
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

/// Networks that are drawn; of a sweep those with the least objective.
const MOST_NETWORKS: usize = 4;

/// Lists all routes, draws the best ones, and shows diagnoses and failures.
pub(crate) fn routes(page: &mut Page, pipeline: &Pipeline, store: &Store, report: &RunReport) {
    drawings(page, pipeline, store, report);
    diagnoses(page, pipeline, store, report);
    failures(page, pipeline, store, report);
}

fn drawings(page: &mut Page, pipeline: &Pipeline, store: &Store, report: &RunReport) {
    let cells = with_output(report, Routes::KIND);
    if cells.is_empty() {
        return;
    }
    page.heading("Routes");
    routes_table(page, pipeline, &cells);
    for index in smallest(page, cells, "objective", MOST_NETWORKS, "the least objective") {
        draw_routes(page, &pipeline.cells[index], store, report, index);
    }
}

fn routes_table(page: &mut Page, pipeline: &Pipeline, cells: &[(usize, &OutputRecord)]) {
    let row = |&(index, record): &(usize, &OutputRecord)| {
        let metric = |name: &str| record.metrics.get(name).copied();
        let value = |name: &str| metric(name).map_or_else(|| "–".to_owned(), |value| value.to_string());
        let answer = |name: &str| match metric(name) {
            Some(value) if value > 0.0 => "yes".to_owned(),
            Some(_) => "no".to_owned(),
            None => "–".to_owned(),
        };
        let busiest = metric("largest_link_utilisation");
        let cell = &pipeline.cells[index];
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
    let head = "stage | kind | objective | bound | proven optimal | longest | hops | entries | deadlock-free | busiest link";
    page.first_rows(head, cells.iter().map(row), MOST_ROWS);
}

fn draw_routes(page: &mut Page, cell: &Cell, store: &Store, report: &RunReport, index: usize) {
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
    page.cell_heading(cell);
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
    for index in 0..report.cells.len() {
        let Some(diagnosis) = own::<Diagnosis>(store, report, index) else { continue };
        page.heading(&format!("Why {} has no answer", pipeline.cells[index].id));
        page.note("Any one remedy is enough; of a remedy all parts are needed.");
        let head = "remedy | part | name | there | needed | why";
        page.first_rows(head, diagnosis.causes.iter().map(row), MOST_ROWS);
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
    for index in 0..report.cells.len() {
        let Some(failures) = own::<Failures>(store, report, index) else { continue };
        page.heading(&format!("Failures: {}", pipeline.cells[index].id));
        // What is not survived comes first.
        let mut sorted: Vec<&Failure> = failures.failures.iter().collect();
        sorted.sort_by_key(|failure| match failure.survived {
            Some(false) => 0,
            None => 1,
            Some(true) => 2,
        });
        let head = "part | name | survived | objective | longest | processes moved | streams rerouted | entries changed | what is short";
        page.first_rows(head, sorted.into_iter().map(row), MOST_ROWS);
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
