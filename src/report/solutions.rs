//! Pictures of solutions: mappings (communication matrix before and after, machine with its loads, search), communication matrices
//! of several programs, schedules, and routes (network with its loads, diagnosis of infeasible problems, failures).

use std::collections::BTreeMap;

use hopmap_artifact::Folder;
use hopmap_model::{
    Artifact, Cause, CheckpointStore, ConvergencePoint, Deltas, Diagnosis, Failure, Failures, Mapping, Paths,
    Routes, RuleTotals, Schedule, StoredCheckpoint, SystemGraph, Tables, TaskGraph, first_as_base,
};
use hopmap_objective::{Quality, linear, link_loads};
use hopmap_views::{
    IslandSearch, Palette, RankOrder, Routed, SmallMatrix, convergence, gantt, groups, levels,
    makespan_convergence, matrices, route_loads, routes as picture, run_time_parts, scaled_topology,
    small_matrices, topology,
};

use super::answer::compared_mappings;
use super::page::{Page, Results, cell_name, escape, number, prose, values_of};
use super::problem::best_of_each;
use super::searches::{Colours, evaluations};
use crate::engine::OutputRecord;
use crate::pipeline::{Cell, Pipeline};

/// Mappings that are drawn.
const MOST_MAPPINGS: usize = 6;

/// Draws mappings, the best of each program first, or the one that a trial compares with its baseline.
pub(crate) fn mappings(page: &mut Page, results: Results<'_>, mappers: &Colours<'_>) {
    let Some(cells) = with_output(page, "Mapping", results, Mapping::KIND) else { return };
    let tried = compared_mappings(results).and_then(|[first, rival]| {
        let is_rival = |(index, record): &&(usize, &OutputRecord)| {
            record.digest == rival.digest
                && results.needed::<TaskGraph>(&results.pipeline.cells[*index]).is_some()
        };
        let before = Folder::read::<Mapping>(&results.store.artifact(&first.digest)).ok()?;
        Some((cells.iter().find(is_rival)?.0, (first.name, before)))
    });
    if let Some((index, before)) = &tried {
        return draw(page, results, *index, mappers, Some(before));
    }
    for index in smallest(page, results, &cells, "F", MOST_MAPPINGS) {
        draw(page, results, index, mappers, None);
    }
}

/// The cells with an output of a kind, if there are any, below a heading: their indexes and outputs.
pub(super) fn with_output<'a>(
    page: &mut Page,
    heading: &str,
    results: Results<'a>,
    kind: &'static str,
) -> Option<Vec<(usize, &'a OutputRecord)>> {
    let cells: Vec<_> = results.outputs(kind).collect();
    if cells.is_empty() {
        return None;
    }
    page.heading(heading);
    Some(cells)
}

/// The cells with the smallest values of a metric in each problem, with a note unless these are all.
pub(super) fn smallest(
    page: &mut Page,
    results: Results<'_>,
    cells: &[(usize, &OutputRecord)],
    metric: &str,
    most: usize,
) -> Vec<usize> {
    let (best, has_problems) = best_of_each(results.pipeline, cells, metric, most);
    if best.len() < cells.len() {
        let each = if has_problems { " for each program and machine" } else { "" };
        let (shown, all) = (best.len(), cells.len());
        page.note(&format!(
            "The {shown} of {all} with the smallest {metric}{each}; one of all seeds of a search, equal ones once."
        ));
    }
    best
}

/// Draws a mapping beside another one with its name, or the linear one.
fn draw(
    page: &mut Page,
    results: Results<'_>,
    index: usize,
    mappers: &Colours<'_>,
    before: Option<&(String, Mapping)>,
) {
    let cell = &results.pipeline.cells[index];
    let made_from = results.needed::<TaskGraph>(cell).zip(results.needed::<SystemGraph>(cell));
    let Some((mapping, (graph, system))) = results.own::<Mapping>(index).zip(made_from) else { return };
    let (mapping, graph, system) = (&*mapping, &*graph, &*system);
    let linear_slots = linear(graph.ranks());
    let before = before.filter(|(_, other)| other.ranks.len() == mapping.ranks.len());
    let slots = [before.map_or_else(|| linear_slots.clone(), |(_, other)| other.slots()), mapping.slots()];
    let baseline = before.map_or("linear", |(name, _)| name.as_str());
    page.cell_heading(cell);
    let title = format!("Before: {baseline}");
    let [first, placed] = slots.each_ref().map(|slots| RankOrder::in_machine(slots, system));
    pair(
        page,
        &matrices(graph, mapping.weight, [(title.as_str(), &first), ("After: this mapping", &placed)]),
    );
    page.note("Ranks in machine order. Traffic inside a square stays within that host or switch.");
    let name = mappers.name(index);
    let looks = ([name.as_str(), baseline], &mappers.palette);
    if let Some(picture) = levels(graph, system, [&slots[1], &slots[0]], mapping.weight, looks) {
        page.figure(&picture, "Share of the bytes by the level on which sender and receiver meet.");
    }
    machines(page, (graph, system), &slots, (before, mapping));
    if let Some(picture) = groups(graph, system, mapping) {
        page.figure(&picture, "Where the groups of every phase are. Lines are the borders of switches.");
    }
    if let Some(search) = searched(&name, &mapping.convergence, &mapping.metrics) {
        let start = Quality::new(graph, system, None, &linear_slots, mapping.weight).ok();
        let reference = start.map(|quality| (quality.f, "linear"));
        page.explain(["F"]);
        page.figure(&convergence(&search, reference, &mappers.palette), &recorded("F"));
    }
}

/// Two pictures beside each other.
fn pair(page: &mut Page, pictures: &[String; 2]) {
    page.add("<div class=\"pair\">\n");
    pictures.iter().for_each(|picture| page.figure(picture, ""));
    page.add("</div>\n");
}

/// The machine with the loads of its links; under a mapping that ran before, too.
fn machines(
    page: &mut Page,
    (graph, system): (&TaskGraph, &SystemGraph),
    slots: &[Vec<u32>; 2],
    (before, mapping): (Option<&(String, Mapping)>, &Mapping),
) {
    let paths = Paths::new(system);
    let loads = |slots: &Vec<u32>| paths.as_ref().map(|paths| link_loads(graph, system, paths, slots));
    let [first, placed] = slots.each_ref().map(loads);
    let caption = "The machine, and the bytes on its links.";
    let Some((name, other)) = before else {
        return page.figure(&topology(system, placed.as_deref(), Some(mapping)), caption);
    };
    let busiest = [&first, &placed].into_iter().flatten().flatten().max().copied();
    let picture = |loads: &Option<Vec<u64>>, mapping, title: &str| {
        scaled_topology(system, loads.as_deref(), Some(mapping), title, busiest)
    };
    let title = format!("Before: {name}");
    pair(page, &[picture(&first, other, &title), picture(&placed, mapping, "After: this mapping")]);
    page.note(caption);
}

/// The improvements of a search; none if nothing was evaluated.
fn searched<'a>(
    name: &'a str,
    points: &'a [ConvergencePoint],
    metrics: &BTreeMap<String, f64>,
) -> Option<IslandSearch<'a>> {
    let evaluations = evaluations(metrics);
    let any = evaluations > 0 || points.iter().any(|point| point.evaluations > 0);
    (any && !points.is_empty()).then_some(IslandSearch { name, points, evaluations })
}

/// Caption of curves of searches.
fn recorded(metric: &str) -> String {
    format!("The best {metric} of each island. Every step is an improvement.")
}

/// Matrices that are drawn.
const MOST_MATRICES: usize = 36;
/// Size of a communication matrix that is drawn this small.
const MOST_BYTES: u64 = 40_000_000;

/// Draws the communication matrices of stages that have several.
pub(crate) fn programs(page: &mut Page, results: Results<'_>) {
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
        page.heading_below(&escape(stage));
        let read = |&(cell, record): &(&Cell, &OutputRecord)| {
            Some((values_of(cell), results.read::<TaskGraph>(record)?))
        };
        let graphs: Vec<(String, TaskGraph)> = cells.iter().take(MOST_MATRICES).filter_map(read).collect();
        let matrices: Vec<SmallMatrix<'_>> =
            graphs.iter().map(|(name, graph)| SmallMatrix { name, graph, order: None }).collect();
        page.figure(&small_matrices(&matrices, "Communication matrices"), "");
        if cells.len() > MOST_MATRICES {
            page.note(&format!("… and {} more.", cells.len() - MOST_MATRICES));
        }
    }
}

/// Schedules that are drawn; of a sweep the shortest ones.
const MOST_SCHEDULES: usize = 6;
/// Rows of the table of schedules.
const MOST_ROWS: usize = 300;
/// Tasks of a critical path that are named.
const MOST_NAMED: usize = 24;

/// Lists all schedules and draws the shortest ones.
pub(crate) fn schedules(page: &mut Page, results: Results<'_>, schedulers: &Colours<'_>) {
    let Some(cells) = with_output(page, "Schedules", results, Schedule::KIND) else { return };
    table(page, results.pipeline, &cells);
    for index in smallest(page, results, &cells, "makespan", MOST_SCHEDULES) {
        if let Some(schedule) = results.own::<Schedule>(index) {
            page.cell_heading(&results.pipeline.cells[index]);
            draw_schedule(page, &schedule, &schedulers.name(index), &schedulers.palette);
        }
    }
}

fn table(page: &mut Page, pipeline: &Pipeline, cells: &[(usize, &OutputRecord)]) {
    let row = |&(index, record): &(usize, &OutputRecord)| {
        let metric = |name: &str| record.metrics.get(name).copied();
        let value = |name: &str| amount(metric(name).map(number));
        let percent = |name: &str| amount(metric(name).map(|share| format!("{:.2} %", 100.0 * share)));
        let proven = metric("proven").is_some_and(|proven| proven > 0.0);
        let cell = &pipeline.cells[index];
        vec![
            cell_name(cell),
            format!("<code>{}</code>", escape(cell.entry.kind)),
            value("makespan"),
            value("predicted_s"),
            value("recorded_s"),
            value("lower_bound"),
            percent("gap"),
            if proven { "yes" } else { "no" }.to_owned(),
            percent("idle"),
            value("evaluations"),
        ]
    };
    let head = "stage | kind | makespan | predicted (s) | recorded (s) | lower bound | gap at most | proven optimal | idle | evaluations";
    page.first_rows(head, cells.iter().map(row), MOST_ROWS);
}

fn draw_schedule(page: &mut Page, schedule: &Schedule, scheduler: &str, palette: &Palette) {
    let path = schedule.critical_path();
    let names: Vec<String> = path.iter().take(MOST_NAMED).map(|&task| schedule.name(task)).collect();
    let more = if path.len() > names.len() { " → …" } else { "" };
    let caption = format!("Critical path of {} tasks: {}{more}", path.len(), names.join(" → "));
    run_time_parts(&schedule.metrics).iter().for_each(|line| page.note(line));
    page.figure(&gantt(schedule), &caption);
    if let Some(search) = searched(scheduler, &schedule.convergence, &schedule.metrics) {
        let bound = schedule.metrics.get("lower_bound").copied().filter(|bound| *bound > 0.0);
        let reference = bound.map(|bound| (bound, "lower bound"));
        let picture = makespan_convergence(&search, reference, palette);
        page.figure(&picture, &recorded("makespan"));
    }
}

/// Networks that are drawn; of a sweep those with the smallest objective.
const MOST_NETWORKS: usize = 4;

/// Lists all routes, draws the best ones, and shows infeasibility diagnoses and failures.
pub(crate) fn routes(page: &mut Page, results: Results<'_>) {
    drawings(page, results);
    diagnoses(page, results);
    failures(page, results);
}

fn drawings(page: &mut Page, results: Results<'_>) {
    let Some(cells) = with_output(page, "Routes", results, Routes::KIND) else { return };
    routes_table(page, results.pipeline, &cells);
    for index in smallest(page, results, &cells, "objective", MOST_NETWORKS) {
        draw_routes(page, results, index);
    }
}

fn routes_table(page: &mut Page, pipeline: &Pipeline, cells: &[(usize, &OutputRecord)]) {
    let row = |&(index, record): &(usize, &OutputRecord)| {
        let metric = |name: &str| record.metrics.get(name).copied();
        let value = |name: &str| amount(metric(name).map(number));
        let answer = |name: &str| amount(metric(name).map(|value| if value > 0.0 { "yes" } else { "no" }));
        let busiest = metric("largest_link_utilisation").map(|part| format!("{:.1} %", 100.0 * part));
        let cell = &pipeline.cells[index];
        vec![
            cell_name(cell),
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
            cause.part.name().to_owned(),
            escape(&cause.name),
            amount(cause.there),
            amount(cause.needed),
            prose(&cause.words),
        ]
    };
    for (cell, diagnosis) in results.all::<Diagnosis>() {
        page.add(&format!("<h2>Why {} is infeasible</h2>\n", cell_name(cell)));
        page.note("Any one remedy is enough; it needs all of its parts.");
        let head = "remedy | part | name | available | needed | why";
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
            failure.part.name().to_owned(),
            escape(&failure.name),
            survived.to_owned(),
            amount(failure.objective.map(number)),
            amount(failure.longest),
            failure.moved.to_string(),
            failure.rerouted.to_string(),
            failure.changed_entries.to_string(),
            prose(&failure.shortage),
        ]
    };
    for (cell, failures) in results.all::<Failures>() {
        page.heading_of("Failures: ", cell);
        // Failures that the program does not survive come first.
        let mut sorted: Vec<&Failure> = failures.failures.iter().collect();
        sorted.sort_by_key(|failure| match failure.survived {
            Some(false) => 0,
            None => 1,
            Some(true) => 2,
        });
        let head = "part | name | survived | objective | longest route | processes moved | streams rerouted | entries changed | shortage";
        page.first_rows(head, sorted.into_iter().map(row), MOST_ROWS);
    }
}

fn amount(value: Option<impl ToString>) -> String {
    value.map_or_else(|| "–".to_owned(), |value| value.to_string())
}

/// Pictures of a stage: the block lengths that store the fewest bytes.
const MOST_DRAWN: usize = 4;
/// Rows of a table of blocks or checkpoints.
const MOST_BLOCK_ROWS: usize = 300;
/// Bases that are written out.
const MOST_BASES: usize = 40;

/// Shows the results of every stage that encodes checkpoints as deltas.
pub(crate) fn deltas(page: &mut Page, results: Results<'_>) {
    for (cell, deltas) in results.all::<Deltas>() {
        page.heading_of("Deltas: ", cell);
        first_as_base(&deltas.metrics).into_iter().for_each(|verdict| page.note(&escape(&verdict)));
        block_table(page, &deltas);
        for block in drawn(&deltas) {
            let caption = "Bars: bytes stored for each checkpoint. Numbers and arcs: its base. The first checkpoint is stored in \
                           full; its bar is cut off where it is larger than any delta.";
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
        "rule | bytes of a block | bytes stored | of all | E (s) | Σ b | base changes | depth | bases b";
    page.first_rows(head, deltas.rules.iter().map(row), MOST_BLOCK_ROWS);
}

fn bases(rule: &RuleTotals) -> String {
    let shown: Vec<String> = rule.bases.iter().take(MOST_BASES).map(u32::to_string).collect();
    let rest = if rule.bases.len() > shown.len() { " …" } else { "" };
    format!("{}{rest}", shown.join(" "))
}

/// Block lengths that are drawn, in ascending order.
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

/// Shows every checkpoint store.
pub(crate) fn stored(page: &mut Page, results: Results<'_>) {
    for (cell, stored) in results.all::<CheckpointStore>() {
        page.heading_of("Checkpoints: ", cell);
        let caption = "Top: the bytes of each checkpoint by kind; zeros and known bytes are not stored again. Bottom: the space it \
                       took on disk, metadata included.";
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
