//! Communication matrices of a batch, side by side.

use hopmap_artifact::Folder;
use hopmap_model::{Artifact, TaskGraph};
use hopmap_views::{SmallMatrix, small_matrices};

use super::page::{Page, escape};
use crate::engine::{RunReport, Store};
use crate::pipeline::{Cell, Pipeline};

/// Matrices that are drawn.
const MOST_DRAWN: usize = 36;
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
        let graphs: Vec<(String, TaskGraph)> = cells.iter().take(MOST_DRAWN).filter_map(read).collect();
        let matrices: Vec<SmallMatrix<'_>> =
            graphs.iter().map(|(name, graph)| SmallMatrix { name, graph, order: None }).collect();
        page.figure(&small_matrices(&matrices, "Who sends how much to whom"), "");
        if cells.len() > MOST_DRAWN {
            page.add(&format!("<p class=\"note\">… and {} more.</p>\n", cells.len() - MOST_DRAWN));
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
