//! What a series takes in a store: a picture, and a table of its checkpoints.

use hopmap_model::{Artifact, CheckpointStore, StoredCheckpoint};
use hopmap_views::stored as picture;

use super::page::{Page, escape};
use super::placement::own;
use crate::engine::{RunReport, Store};
use crate::pipeline::Pipeline;

/// Rows of a table.
const MOST_ROWS: usize = 300;

/// Shows every store of checkpoints.
pub(crate) fn stored(page: &mut Page, pipeline: &Pipeline, store: &Store, report: &RunReport) {
    for (index, settled) in report.cells.iter().enumerate() {
        if !settled.outputs.values().any(|record| record.kind == CheckpointStore::KIND) {
            continue;
        }
        let Some(stored) = own::<CheckpointStore>(store, report, index) else { continue };
        page.heading(&format!("Checkpoints: {}", pipeline.cells[index].id));
        let caption = "Above, what the bytes of each checkpoint are: zeros and what was known are not stored again. Below, \
                       what each took on disk, with everything that is needed to find it.";
        page.figure(&picture(&stored), caption);
        table(page, &stored);
    }
}

fn table(page: &mut Page, stored: &CheckpointStore) {
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
    let rows: Vec<Vec<String>> = stored.checkpoints.iter().take(MOST_ROWS).map(row).collect();
    let head =
        ["number", "name", "files", "bytes", "zeros", "unchanged", "known from elsewhere", "new", "on disk"];
    page.table(&head, &rows);
    if stored.checkpoints.len() > rows.len() {
        let all = stored.checkpoints.len();
        page.add(&format!("<p class=\"note\">{} of {all} are shown.</p>\n", rows.len()));
    }
}
