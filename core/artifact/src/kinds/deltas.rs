//! `deltas`: tables `checkpoints` and `rules`.

use std::collections::BTreeMap;

use hopmap_model::{CheckpointDelta, DeltaRule, Deltas, RuleTotals, first_as_base};

use crate::codec::{Codec, Contents};
use crate::error::ArtifactError;
use crate::folder::Folder;
use crate::form::TableForm;
use crate::rows::Rows;
use crate::table::{Columns, Table};
use crate::value::column;

impl Codec for Deltas {
    const SCHEMA: u32 = 1;
    const CONTENTS: &'static str =
        "What delta encoding of a series of checkpoints stores, by rule and block length.";
    const TABLES: &'static [TableForm] = &[
        TableForm {
            columns: &[
                &[
                    column::<String>("rule", "`first`, `incremental`, `adca` or `optimum`"),
                    column::<String>("reading", "reading of ADCA: `literal` or `immediate`"),
                ],
                CheckpointDelta::COLUMNS,
            ],
            ..CheckpointDelta::TABLE
        },
        TableForm {
            columns: &[
                &[column::<String>("rule", "rule"), column::<String>("reading", "reading of ADCA")],
                RuleTotals::COLUMNS,
            ],
            ..RuleTotals::TABLE
        },
    ];

    /// Whether the first checkpoint suffices as base, for the shortest block that was tried.
    fn headline(metrics: &BTreeMap<String, f64>) -> Option<String> {
        let verdicts = first_as_base(metrics);
        let more = match verdicts.len() {
            0 | 1 => String::new(),
            all => format!("; … and {} more block lengths", all - 1),
        };
        Some(verdicts.into_iter().next()? + &more)
    }

    fn encode(&self) -> Contents {
        let checkpoints = rules_of("checkpoints", self.checkpoints.iter().map(|row| row.rule));
        let rules = rules_of("rules", self.rules.iter().map(|row| row.rule));
        Contents::new()
            .table(CheckpointDelta::add(checkpoints, self.checkpoints.iter()))
            .table(RuleTotals::add(rules, self.rules.iter()))
            .metrics(&self.metrics)
    }

    fn decode(folder: &Folder) -> Result<Self, ArtifactError> {
        let table = folder.table("checkpoints")?;
        let rules = read_rules(&table)?;
        let rows = CheckpointDelta::read(&table)?.zip(rules);
        let checkpoints: Vec<_> = rows.map(|(row, rule)| CheckpointDelta { rule, ..row }).collect();
        let is_later =
            |row: &CheckpointDelta| row.base.is_some_and(|base| base == 0 || base >= row.checkpoint);
        if let Some(row) = checkpoints.iter().position(is_later) {
            return Err(table.error("base", format!("of row {row} is not an earlier checkpoint")));
        }
        let table = folder.table("rules")?;
        let rules = read_rules(&table)?;
        let rules = RuleTotals::read(&table)?.zip(rules).map(|(row, rule)| RuleTotals { rule, ..row });
        Ok(Self { checkpoints, rules: rules.collect(), metrics: folder.description().metrics.clone() })
    }
}

table_rows!("checkpoints": CheckpointDelta {
    block: u32 = "bytes of a block",
    checkpoint: u32 = "checkpoint, from 1",
    name: String = "its name",
    base: Option<u32> = "base that it is encoded against; missing for the first",
    full_bytes: u64 = "size of the checkpoint",
    blocks: u64 = "its blocks",
    changed_blocks: u64 = "blocks that are stored",
    stored_bytes: u64 = "bytes that are stored, S(C)",
    depth: u32 = "deltas that a restore applies",
    write_s: f64 = "seconds to write them, W(S(C))",
    saving: Option<f64> = "fraction that ADCA compares with ε",
} other rule);

table_rows!("rules": RuleTotals {
    block: u32 = "bytes of a block",
    bases: Vec<u32> = "base of every checkpoint from the second on: the vector b",
    sum_of_bases: u64 = "Σ b",
    base_changes: u32 = "number of times the base changes",
    full_bytes: u64 = "size of all checkpoints",
    stored_bytes: u64 = "bytes that are stored",
    write_s: f64 = "E(C(b)) in seconds",
    depth: u32 = "deltas of the longest chain",
} other rule);

/// A table with the columns of rules.
fn rules_of(table: &str, rules: impl Iterator<Item = DeltaRule> + Clone) -> Table {
    Table::new(table)
        .column("rule", rules.clone().map(|rule| rule.rule().to_owned()))
        .column("reading", rules.map(|rule| rule.reading().to_owned()))
}

fn read_rules(table: &Columns) -> Result<Vec<DeltaRule>, ArtifactError> {
    let rows = table.column::<String>("rule")?.into_iter().zip(table.column::<String>("reading")?);
    let known = |(rule, reading): (String, String)| {
        let found = DeltaRule::of(&rule, &reading);
        found.ok_or_else(|| table.error("rule", format!("holds `{rule}` `{reading}`, which is not a rule")))
    };
    rows.map(known).collect()
}
