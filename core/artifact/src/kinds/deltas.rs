//! `deltas`: tables `checkpoints` and `rules`.

use hopmap_model::{CheckpointDelta, DeltaRule, Deltas, RuleTotals};

use crate::{ArtifactError, Codec, Columns, Contents, Folder, Table};

impl Codec for Deltas {
    const SCHEMA: u32 = 1;

    fn encode(&self) -> Contents {
        Contents::new().table(checkpoints(&self.checkpoints)).table(rules(&self.rules)).metrics(&self.metrics)
    }

    fn decode(folder: &Folder) -> Result<Self, ArtifactError> {
        Ok(Self {
            checkpoints: read_checkpoints(&folder.table("checkpoints")?)?,
            rules: read_rules(&folder.table("rules")?)?,
            metrics: folder.description().metrics.clone(),
        })
    }
}

fn checkpoints(checkpoints: &[CheckpointDelta]) -> Table {
    let rows = || checkpoints.iter();
    Table::new("checkpoints")
        .text("rule", rows().map(|row| row.rule.rule()))
        .text("reading", rows().map(|row| row.rule.reading()))
        .u32("block", rows().map(|row| row.block))
        .u32("checkpoint", rows().map(|row| row.checkpoint))
        .text("name", rows().map(|row| &row.name))
        .optional_u32("base", rows().map(|row| row.base))
        .u64("full_bytes", rows().map(|row| row.full_bytes))
        .u64("blocks", rows().map(|row| row.blocks))
        .u64("changed_blocks", rows().map(|row| row.changed_blocks))
        .u64("stored_bytes", rows().map(|row| row.stored_bytes))
        .u32("depth", rows().map(|row| row.depth))
        .f64("write_s", rows().map(|row| row.write_s))
        .optional_f64("saving", rows().map(|row| row.saving))
}

fn rules(rules: &[RuleTotals]) -> Table {
    let rows = || rules.iter();
    Table::new("rules")
        .text("rule", rows().map(|row| row.rule.rule()))
        .text("reading", rows().map(|row| row.rule.reading()))
        .u32("block", rows().map(|row| row.block))
        .text("bases", rows().map(|row| words(&row.bases)))
        .u64("sum_of_bases", rows().map(|row| row.sum_of_bases))
        .u32("base_changes", rows().map(|row| row.base_changes))
        .u64("full_bytes", rows().map(|row| row.full_bytes))
        .u64("stored_bytes", rows().map(|row| row.stored_bytes))
        .f64("write_s", rows().map(|row| row.write_s))
        .u32("depth", rows().map(|row| row.depth))
}

fn read_checkpoints(table: &Columns) -> Result<Vec<CheckpointDelta>, ArtifactError> {
    let rules = read_names(table)?;
    let (blocks_bytes, numbers) = (table.u32("block")?, table.u32("checkpoint")?);
    let (names, bases) = (table.text("name")?, table.optional_u32("base")?);
    let (full, stored) = (table.u64("full_bytes")?, table.u64("stored_bytes")?);
    let (blocks, changed) = (table.u64("blocks")?, table.u64("changed_blocks")?);
    let (depths, seconds) = (table.u32("depth")?, table.f64("write_s")?);
    let savings = table.optional_f64("saving")?;
    let row = |row: usize| {
        if bases[row].is_some_and(|base| base == 0 || base >= numbers[row]) {
            return Err(table.error("base", format!("of row {row} is not an earlier checkpoint")));
        }
        Ok(CheckpointDelta {
            rule: rules[row],
            block: blocks_bytes[row],
            checkpoint: numbers[row],
            name: names[row].clone(),
            base: bases[row],
            full_bytes: full[row],
            blocks: blocks[row],
            changed_blocks: changed[row],
            stored_bytes: stored[row],
            depth: depths[row],
            write_s: seconds[row],
            saving: savings[row],
        })
    };
    (0..table.rows()).map(row).collect()
}

fn read_rules(table: &Columns) -> Result<Vec<RuleTotals>, ArtifactError> {
    let (rules, blocks, bases) = (read_names(table)?, table.u32("block")?, table.text("bases")?);
    let (sums, changes) = (table.u64("sum_of_bases")?, table.u32("base_changes")?);
    let (full, stored) = (table.u64("full_bytes")?, table.u64("stored_bytes")?);
    let (seconds, depths) = (table.f64("write_s")?, table.u32("depth")?);
    let row = |row: usize| {
        let read: Result<Vec<u32>, _> = bases[row].split_whitespace().map(str::parse).collect();
        Ok(RuleTotals {
            rule: rules[row],
            block: blocks[row],
            bases: read.map_err(|error| table.error("bases", error.to_string()))?,
            sum_of_bases: sums[row],
            base_changes: changes[row],
            full_bytes: full[row],
            stored_bytes: stored[row],
            write_s: seconds[row],
            depth: depths[row],
        })
    };
    (0..table.rows()).map(row).collect()
}

fn read_names(table: &Columns) -> Result<Vec<DeltaRule>, ArtifactError> {
    let rows = table.text("rule")?.into_iter().zip(table.text("reading")?);
    let known = |(rule, reading): (String, String)| {
        let found = DeltaRule::of(&rule, &reading);
        found.ok_or_else(|| table.error("rule", format!("holds `{rule}` `{reading}`, which is not a rule")))
    };
    rows.map(known).collect()
}

/// Numbers separated by spaces.
fn words(numbers: &[u32]) -> String {
    numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(" ")
}
