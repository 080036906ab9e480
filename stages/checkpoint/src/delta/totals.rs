//! Sums over a series.

use std::collections::BTreeMap;

use hopmap_model::{CheckpointDelta, DeltaRule, Deltas, RuleTotals};

use super::{Settings, WriteCost};

/// The table of checkpoints with its sums; rows of one rule and block length follow each other.
pub(super) fn deltas(checkpoints: Vec<CheckpointDelta>, settings: &Settings) -> Deltas {
    let rules: Vec<RuleTotals> = checkpoints
        .chunk_by(|a, b| (a.rule, a.block) == (b.rule, b.block))
        .filter_map(|rows| rows.first().map(|first| totals(first, rows, settings.cost)))
        .collect();
    let metrics = metrics(&checkpoints, &rules, settings);
    Deltas { checkpoints, rules, metrics }
}

fn totals(first: &CheckpointDelta, rows: &[CheckpointDelta], cost: WriteCost) -> RuleTotals {
    let stored_bytes = rows.iter().map(|row| row.stored_bytes).sum();
    let bases: Vec<u32> = rows.iter().filter_map(|row| row.base).collect();
    RuleTotals {
        rule: first.rule,
        block: first.block,
        sum_of_bases: bases.iter().copied().map(u64::from).sum(),
        base_changes: bases.windows(2).map(|pair| u32::from(pair.first() != pair.last())).sum(),
        full_bytes: rows.iter().map(|row| row.full_bytes).sum(),
        stored_bytes,
        // Σ W(S), with fewer roundings than term by term.
        write_s: rows.len().saturating_sub(1) as f64 * cost.latency_s + cost.seconds(stored_bytes),
        depth: rows.iter().map(|row| row.depth).max().unwrap_or(0),
        bases,
    }
}

/// How the best rule compares with the first checkpoint as base, over the whole series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AgainstFirst {
    /// The rule that stores least; of equal ones the first in tables.
    pub best: DeltaRule,
    /// The part of the deltas of the first base that it saves. ADCA compares the same of one checkpoint with ε.
    pub saving: f64,
}

/// Compares the rules for a block length. None where the first base is not among them, or has nothing to store.
#[must_use]
pub fn against_first(
    checkpoints: &[CheckpointDelta],
    rules: &[RuleTotals],
    block: u32,
) -> Option<AgainstFirst> {
    // All rules store the first checkpoint alike.
    let whole = checkpoints.iter().find(|row| row.block == block).map_or(0, |row| row.stored_bytes);
    let of_block = || rules.iter().filter(|rule| rule.block == block);
    let first = of_block().find(|rule| rule.rule == DeltaRule::First)?;
    let best = of_block().min_by_key(|rule| (rule.stored_bytes, rule.rule))?;
    let deltas = first.stored_bytes.saturating_sub(whole);
    let saved = first.stored_bytes.saturating_sub(best.stored_bytes);
    (deltas > 0).then(|| AgainstFirst { best: best.rule, saving: saved as f64 / deltas as f64 })
}

fn metrics(
    checkpoints: &[CheckpointDelta],
    rules: &[RuleTotals],
    settings: &Settings,
) -> BTreeMap<String, f64> {
    let last = checkpoints.iter().map(|row| row.checkpoint).max().unwrap_or(0);
    let mut metrics = BTreeMap::from([
        ("checkpoints".to_owned(), f64::from(last)),
        ("full_bytes".to_owned(), rules.first().map_or(0.0, |rule| rule.full_bytes as f64)),
        ("epsilon".to_owned(), settings.epsilon),
        ("block_overhead".to_owned(), settings.block_overhead as f64),
        ("write_latency_s".to_owned(), settings.cost.latency_s),
        ("write_bytes_per_s".to_owned(), settings.cost.bytes_per_s),
    ]);
    for rule in rules {
        let name = format!("{}_{}", rule.rule.name().replace(' ', "_"), rule.block);
        let values = [
            ("E", rule.write_s),
            ("stored_bytes", rule.stored_bytes as f64),
            ("sum_of_bases", rule.sum_of_bases as f64),
            ("base_changes", f64::from(rule.base_changes)),
            ("depth", f64::from(rule.depth)),
        ];
        metrics.extend(values.map(|(what, value)| (format!("{what}_{name}"), value)));
    }
    for &block in &settings.blocks {
        let found = against_first(checkpoints, rules, block);
        metrics.extend(found.map(|found| (format!("saving_against_first_{block}"), found.saving)));
    }
    metrics
}
