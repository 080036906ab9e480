//! What a placement looks like: the matrix before and after, the machine with its loads, the search.

use std::sync::Arc;

use hopmap_artifact::{Codec, Folder};
use hopmap_model::{Artifact, Mapping, Paths, SystemGraph, TaskGraph};
use hopmap_objective::{Quality, linear, link_loads};
use hopmap_views::{RankOrder, convergence, levels, matrix, topology};

use super::page::{Page, escape};
use crate::engine::{RunReport, Store};
use crate::pipeline::{Cell, Origin, Pipeline};

/// Placements that are drawn; of a sweep the best ones.
const MOST_DRAWN: usize = 6;

/// A mapping and what it was made from.
struct Placed<'a> {
    cell: &'a Cell,
    mapping: Arc<Mapping>,
    graph: Arc<TaskGraph>,
    system: Arc<SystemGraph>,
}

/// Draws the placements, the best of each stage first.
pub(crate) fn placements(page: &mut Page, pipeline: &Pipeline, store: &Store, report: &RunReport) {
    let mut cells: Vec<(f64, usize)> = Vec::new();
    for (index, settled) in report.cells.iter().enumerate() {
        let mapping = settled.outputs.values().find(|record| record.kind == Mapping::KIND);
        cells
            .extend(mapping.map(|record| (record.metrics.get("F").copied().unwrap_or(f64::INFINITY), index)));
    }
    cells.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let all = cells.len();
    cells.truncate(MOST_DRAWN);
    if cells.is_empty() {
        return;
    }
    page.heading("Placement");
    if all > MOST_DRAWN {
        page.add(&format!("<p class=\"note\">The {MOST_DRAWN} with the smallest F of {all}.</p>\n"));
    }
    for (_, index) in cells {
        if let Some(placed) = load(pipeline, store, report, index) {
            draw(page, &placed);
        }
    }
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
    page.add(&format!("<h3>{} <code>{}</code></h3>\n", escape(&cell.id), escape(cell.entry.kind)));
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
