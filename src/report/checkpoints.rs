//! Checkpoints: what deltas of a series store (a table of the rules, and a picture for each length of blocks), and what a series
//! takes in a store.

use hopmap_model::{CheckpointStore, Deltas, RuleTotals, StoredCheckpoint};

use super::page::{Page, escape};
use super::solutions::own;
use crate::engine::{RunReport, Store};
use crate::pipeline::Pipeline;

/// Pictures of a stage; of more lengths those with the fewest stored bytes.
const MOST_DRAWN: usize = 4;
/// Rows of a table.
const MOST_ROWS: usize = 300;
/// Bases that are written out.
const MOST_BASES: usize = 40;

/// Shows what every stage that told checkpoints by deltas found.
pub(crate) fn deltas(page: &mut Page, pipeline: &Pipeline, store: &Store, report: &RunReport) {
    for index in 0..report.cells.len() {
        let Some(deltas) = own::<Deltas>(store, report, index) else { continue };
        page.heading(&format!("Deltas: {}", pipeline.cells[index].id));
        table(page, &deltas);
        for block in drawn(&deltas) {
            let caption = "Bars are bytes stored of each checkpoint, numbers and arcs below them its base. The first \
                           checkpoint is stored whole; where its bar is larger than any delta it is cut off.";
            page.figure(&hopmap_views::deltas(&deltas, block), caption);
        }
    }
}

fn table(page: &mut Page, deltas: &Deltas) {
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
    page.first_rows(head, deltas.rules.iter().map(row), MOST_ROWS);
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
pub(crate) fn stored(page: &mut Page, pipeline: &Pipeline, store: &Store, report: &RunReport) {
    for index in 0..report.cells.len() {
        let Some(stored) = own::<CheckpointStore>(store, report, index) else { continue };
        page.heading(&format!("Checkpoints: {}", pipeline.cells[index].id));
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
    page.first_rows(head, stored.checkpoints.iter().map(row), MOST_ROWS);
}
