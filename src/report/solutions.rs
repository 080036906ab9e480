//! What solutions look like: placements (the matrix before and after, the machine with its loads, the search), communication
//! matrices side by side, schedules (who runs what when), and routes (the network with its loads, why there are none, what
//! happens when something fails).

use hopmap_model::{
    Artifact, Cause, CheckpointStore, Deltas, Diagnosis, Failure, Failures, Mapping, Part, Paths, Routes,
    RuleTotals, Schedule, StoredCheckpoint, SystemGraph, Tables, TaskGraph,
};
use hopmap_objective::{Quality, linear, link_loads};
use hopmap_views::{
    RankOrder, Routed, SmallMatrix, convergence, gantt, levels, makespan_convergence, matrix, route_loads,
    routes as picture, small_matrices, topology,
};

use super::page::{Page, Results, escape};
use crate::engine::{OutputRecord, Settled};
use crate::pipeline::{Cell, Pipeline, show};

/// Placements that are drawn; of a sweep the best ones.
const MOST_PLACEMENTS: usize = 6;

/// Draws the placements, the best of each stage first.
pub(crate) fn placements(page: &mut Page, results: Results<'_>) {
    let Some(cells) = with_output(page, "Placement", results, Mapping::KIND) else { return };
    for index in smallest(page, cells, "F", MOST_PLACEMENTS, "the smallest F") {
        draw(page, results, index);
    }
}

/// The cells with an output of a kind, if there are any, below a heading: index, and that output.
fn with_output<'a>(
    page: &mut Page,
    heading: &str,
    results: Results<'a>,
    kind: &str,
) -> Option<Vec<(usize, &'a OutputRecord)>> {
    let output = |(index, settled): (usize, &'a Settled)| {
        Some((index, settled.outputs.values().find(|record| record.kind == kind)?))
    };
    let cells: Vec<_> = results.report.cells.iter().enumerate().filter_map(output).collect();
    if cells.is_empty() {
        return None;
    }
    page.heading(heading);
    Some(cells)
}

/// The cells with the smallest values of a metric, which `words` names; said where that are not all.
fn smallest(
    page: &mut Page,
    mut cells: Vec<(usize, &OutputRecord)>,
    metric: &str,
    most: usize,
    words: &str,
) -> Vec<usize> {
    let all = cells.len();
    if all > most {
        page.note(&format!("The {most} with {words} of {all}."));
    }
    let value = |record: &OutputRecord| record.metrics.get(metric).copied().unwrap_or(f64::INFINITY);
    cells.sort_by(|a, b| value(a.1).total_cmp(&value(b.1)).then(a.0.cmp(&b.0)));
    cells.into_iter().take(most).map(|(index, _)| index).collect()
}

fn draw(page: &mut Page, results: Results<'_>, index: usize) {
    let cell = &results.pipeline.cells[index];
    let made_from = results.needed::<TaskGraph>(cell).zip(results.needed::<SystemGraph>(cell));
    let Some((mapping, (graph, system))) = results.own::<Mapping>(index).zip(made_from) else { return };
    let (mapping, graph, system) = (&*mapping, &*graph, &*system);
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
pub(crate) fn matrices(page: &mut Page, results: Results<'_>) {
    let mut stages: Vec<(&str, Vec<(&Cell, &OutputRecord)>)> = Vec::new();
    for (cell, settled) in results.cells() {
        let graphs = settled.outputs.values().filter(|record| record.kind == TaskGraph::KIND);
        for record in graphs.filter(|record| record.files.iter().map(|file| file.1).sum::<u64>() < MOST_BYTES)
        {
            match stages.iter_mut().find(|(stage, _)| *stage == cell.stage) {
                Some((_, cells)) => cells.push((cell, record)),
                None => stages.push((&cell.stage, vec![(cell, record)])),
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
        let read =
            |&(cell, record): &(&Cell, &OutputRecord)| Some((name(cell), results.read::<TaskGraph>(record)?));
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
        let text = show(value);
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
pub(crate) fn schedules(page: &mut Page, results: Results<'_>) {
    let Some(cells) = with_output(page, "Schedules", results, Schedule::KIND) else { return };
    table(page, results.pipeline, &cells);
    for index in smallest(page, cells, "makespan", MOST_SCHEDULES, "the smallest makespan") {
        if let Some(schedule) = results.own::<Schedule>(index) {
            draw_schedule(page, &results.pipeline.cells[index], &schedule);
        }
    }
}

fn table(page: &mut Page, pipeline: &Pipeline, cells: &[(usize, &OutputRecord)]) {
    let row = |&(index, record): &(usize, &OutputRecord)| {
        let metric = |name: &str| record.metrics.get(name).copied();
        let value = |name: &str| amount(metric(name));
        let percent = |name: &str| amount(metric(name).map(|share| format!("{:.2} %", 100.0 * share)));
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
pub(crate) fn routes(page: &mut Page, results: Results<'_>) {
    drawings(page, results);
    diagnoses(page, results);
    failures(page, results);
}

fn drawings(page: &mut Page, results: Results<'_>) {
    let Some(cells) = with_output(page, "Routes", results, Routes::KIND) else { return };
    routes_table(page, results.pipeline, &cells);
    for index in smallest(page, cells, "objective", MOST_NETWORKS, "the least objective") {
        draw_routes(page, results, index);
    }
}

fn routes_table(page: &mut Page, pipeline: &Pipeline, cells: &[(usize, &OutputRecord)]) {
    let row = |&(index, record): &(usize, &OutputRecord)| {
        let metric = |name: &str| record.metrics.get(name).copied();
        let value = |name: &str| amount(metric(name));
        let answer = |name: &str| amount(metric(name).map(|value| if value > 0.0 { "yes" } else { "no" }));
        let busiest = metric("largest_link_utilisation").map(|part| format!("{:.1} %", 100.0 * part));
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
            amount(busiest),
        ]
    };
    let head = "stage | kind | objective | bound | proven optimal | longest | hops | entries | deadlock-free | busiest link";
    page.first_rows(head, cells.iter().map(row), MOST_ROWS);
}

fn draw_routes(page: &mut Page, results: Results<'_>, index: usize) {
    let cell = &results.pipeline.cells[index];
    let routes = results.own::<Routes>(index).zip(results.needed::<SystemGraph>(cell));
    let Some((routes, system)) = routes else { return };
    let tables = results.own::<Tables>(index).or_else(|| results.needed::<Tables>(cell));
    let mapping = results.own::<Mapping>(index).or_else(|| results.needed::<Mapping>(cell));
    let graph = results.needed::<TaskGraph>(cell);
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

fn diagnoses(page: &mut Page, results: Results<'_>) {
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
    for (cell, diagnosis) in results.all::<Diagnosis>() {
        page.heading(&format!("Why {} has no answer", cell.id));
        page.note("Any one remedy is enough; of a remedy all parts are needed.");
        let head = "remedy | part | name | there | needed | why";
        page.first_rows(head, diagnosis.causes.iter().map(row), MOST_ROWS);
    }
}

fn failures(page: &mut Page, results: Results<'_>) {
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
            amount(failure.longest),
            failure.moved.to_string(),
            failure.rerouted.to_string(),
            failure.changed_entries.to_string(),
            escape(&failure.shortage),
        ]
    };
    for (cell, failures) in results.all::<Failures>() {
        page.heading(&format!("Failures: {}", cell.id));
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

fn amount(value: Option<impl ToString>) -> String {
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

/// Pictures of a stage; of more lengths those with the fewest stored bytes.
const MOST_DRAWN: usize = 4;
/// Rows of a table of blocks or checkpoints.
const MOST_BLOCK_ROWS: usize = 300;
/// Bases that are written out.
const MOST_BASES: usize = 40;

/// Shows what every stage that told checkpoints by deltas found.
pub(crate) fn deltas(page: &mut Page, results: Results<'_>) {
    for (cell, deltas) in results.all::<Deltas>() {
        page.heading(&format!("Deltas: {}", cell.id));
        block_table(page, &deltas);
        for block in drawn(&deltas) {
            let caption = "Bars are bytes stored of each checkpoint, numbers and arcs below them its base. The first \
                           checkpoint is stored whole; where its bar is larger than any delta it is cut off.";
            page.figure(&hopmap_views::deltas(&deltas, block), caption);
        }
    }
}

fn block_table(page: &mut Page, deltas: &Deltas) {
    let row = |rule: &RuleTotals| {
        let part = 100.0 * rule.stored_bytes as f64 / rule.full_bytes.max(1) as f64;
        vec![
            escape(rule.rule.name()),
            rule.block.to_string(),
            rule.stored_bytes.to_string(),
            format!("{part:.1} %"),
            format!("{:.3}", rule.write_s),
            rule.sum_of_bases.to_string(),
            rule.base_changes.to_string(),
            rule.depth.to_string(),
            bases(rule),
        ]
    };
    let head =
        "rule | bytes of a block | bytes stored | of all | E, seconds | Σ b | base changes | depth | bases b";
    page.first_rows(head, deltas.rules.iter().map(row), MOST_BLOCK_ROWS);
}

fn bases(rule: &RuleTotals) -> String {
    let shown: Vec<String> = rule.bases.iter().take(MOST_BASES).map(u32::to_string).collect();
    let rest = if rule.bases.len() > shown.len() { " …" } else { "" };
    format!("{}{rest}", shown.join(" "))
}

/// Lengths of blocks that are drawn, in rising order.
fn drawn(deltas: &Deltas) -> Vec<u32> {
    let mut blocks: Vec<(u64, u32)> =
        deltas.rules.iter().map(|rule| (rule.stored_bytes, rule.block)).collect();
    blocks.sort_unstable();
    let mut drawn: Vec<u32> = Vec::new();
    for (_, block) in blocks {
        if !drawn.contains(&block) && drawn.len() < MOST_DRAWN {
            drawn.push(block);
        }
    }
    drawn.sort_unstable();
    drawn
}

/// Shows every store of checkpoints.
pub(crate) fn stored(page: &mut Page, results: Results<'_>) {
    for (cell, stored) in results.all::<CheckpointStore>() {
        page.heading(&format!("Checkpoints: {}", cell.id));
        let caption = "Above, what the bytes of each checkpoint are: zeros and what was known are not stored again. Below, \
                       what each took on disk, with everything that is needed to find it.";
        page.figure(&hopmap_views::stored(&stored), caption);
        stored_table(page, &stored);
    }
}

fn stored_table(page: &mut Page, stored: &CheckpointStore) {
    let row = |row: &StoredCheckpoint| {
        vec![
            row.checkpoint.to_string(),
            escape(&row.name),
            row.files.to_string(),
            row.bytes.to_string(),
            row.zero_bytes.to_string(),
            row.unchanged_bytes.to_string(),
            row.known_bytes.to_string(),
            row.new_bytes.to_string(),
            row.stored_bytes.to_string(),
        ]
    };
    let head = "number | name | files | bytes | zeros | unchanged | known from elsewhere | new | on disk";
    page.first_rows(head, stored.checkpoints.iter().map(row), MOST_BLOCK_ROWS);
}
