//! Sums over a series.

use std::collections::BTreeMap;

use hopmap_model::{CheckpointDelta, Deltas, RuleTotals};

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
    metrics
}
