//! ADCA as published: which checkpoint each of a series is told by, and what is stored.
//!
//! Deltas are those of fixed-size compare-by-hash (`FsCH`; Al-Kiswany et al. 2008), as HBICT makes them: a checkpoint is cut
//! into blocks of equal length, and a block is stored unless the base has the same one at the same place of the same file (or
//! anywhere, as in stdchk). A delta takes its changed blocks and so many bytes for each that say where it belongs. Files of a checkpoint are taken together:
//! its size is the sum over its files; one that the base has not is stored whole, one that only the base has takes nothing.
//!
//! Every file is read once, as a stream. What is kept are hashes of blocks, and only of the checkpoints that a rule may still
//! ask for.

mod cost;

pub(crate) mod read;

mod rules;
mod signature;

use std::collections::BTreeMap;
use std::path::PathBuf;

use hopmap_durable::DurableError;
use hopmap_model::{CheckpointDelta, Context, DeltaRule, Deltas, RuleTotals};
use miette::Diagnostic;
use rayon::prelude::*;

use crate::cut::CutError;
use crate::params::{Align, Matching};
use crate::series::{Checkpoint, SeriesError};

pub use cost::WriteCost;
pub use rules::{Choice, Walk};
pub use signature::{Difference, FileSignature, Signature};

/// What is compared, and how it is counted.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Lengths of blocks in bytes: powers of two from 256 to 65536.
    pub blocks: Vec<u32>,
    /// Rules for the base.
    pub rules: Vec<DeltaRule>,
    /// ADCA's threshold, at least 0 and below 1.
    pub epsilon: f64,
    /// Which blocks are compared.
    pub align: Align,
    /// Where a base has to have a block.
    pub matching: Matching,
    /// Bytes for every changed block that say where it belongs.
    pub block_overhead: u64,
    /// Seconds to write.
    pub cost: WriteCost,
}

/// What every rule stores of a series, for every block length. Whoever asks to stop gets those of the checkpoints so far, and
/// false.
pub fn deltas(
    series: &[Checkpoint],
    settings: &Settings,
    cx: &Context<'_>,
) -> Result<(Deltas, bool), DeltaError> {
    let mut trackers: Vec<RuleTracker<'_>> =
        settings.blocks.iter().map(|&block| RuleTracker::new(block, settings)).collect();
    let total = series.iter().map(Checkpoint::bytes).sum();
    let mut done = 0;
    let mut whole = true;
    for (number, checkpoint) in (1..).zip(series) {
        if number > 1 && cx.should_stop() {
            whole = false;
            break;
        }
        let signatures = read::signatures(checkpoint, &settings.blocks, settings.align, 0)?;
        trackers.par_iter_mut().zip(signatures).for_each(|(tracker, signature)| {
            tracker.take(number, &checkpoint.name, signature);
        });
        done += checkpoint.bytes();
        cx.progress(done, total);
    }
    let rows = trackers.into_iter().flat_map(RuleTracker::rows).collect();
    Ok((with_totals(rows, settings), whole))
}

/// All rules for one block length.
struct RuleTracker<'a> {
    block: u32,
    settings: &'a Settings,
    /// Signatures that are still needed, by number of the checkpoint.
    kept: BTreeMap<u32, Signature>,
    walks: Vec<(Walk, Vec<CheckpointDelta>)>,
}

impl<'a> RuleTracker<'a> {
    fn new(block: u32, settings: &'a Settings) -> Self {
        let walks = settings.rules.iter().map(|&rule| (Walk::new(rule, settings.epsilon), Vec::new()));
        Self { block, settings, kept: BTreeMap::new(), walks: walks.collect() }
    }

    /// The next checkpoint.
    fn take(&mut self, number: u32, name: &str, signature: Signature) {
        let (matching, overhead) = (self.settings.matching, self.settings.block_overhead);
        let mut compared =
            Compared { signature: &signature, kept: &self.kept, matching, known: BTreeMap::new() };
        let whole = signature.whole(matching);
        for (walk, rows) in &mut self.walks {
            let choice =
                (number > 1).then(|| walk.step(number - 1, |base| compared.with(base).size(overhead)));
            let (stored_bytes, changed_blocks) = match choice {
                Some(choice) => (choice.bytes, compared.with(choice.base).blocks),
                None => (whole.size(0), whole.blocks),
            };
            let base_row = choice.and_then(|choice| rows.get(choice.base as usize - 1));
            let depth = base_row.map_or(0, |base: &CheckpointDelta| base.depth + 1);
            rows.push(CheckpointDelta {
                rule: walk.rule(),
                block: self.block,
                checkpoint: number,
                name: name.to_owned(),
                base: choice.map(|choice| choice.base),
                full_bytes: signature.bytes(),
                blocks: signature.blocks(),
                changed_blocks,
                stored_bytes,
                depth,
                write_s: self.settings.cost.seconds(stored_bytes),
                saving: choice.and_then(|choice| choice.saving),
            });
        }
        let walks = &self.walks;
        self.kept.retain(|&kept, _| walks.iter().any(|(walk, _)| walk.needs(kept)));
        self.kept.insert(number, signature);
    }

    fn rows(self) -> Vec<CheckpointDelta> {
        self.walks.into_iter().flat_map(|(_, rows)| rows).collect()
    }
}

/// A checkpoint against earlier ones, each compared once.
struct Compared<'a> {
    signature: &'a Signature,
    kept: &'a BTreeMap<u32, Signature>,
    matching: Matching,
    known: BTreeMap<u32, Difference>,
}

impl Compared<'_> {
    fn with(&mut self, base: u32) -> Difference {
        let (signature, kept, matching) = (self.signature, self.kept, self.matching);
        // A base that is not kept would be a mistake of `Walk::needs`; without it everything is stored.
        let difference = || match kept.get(&base) {
            Some(base) => signature.difference(base, matching),
            None => signature.whole(matching),
        };
        *self.known.entry(base).or_insert_with(difference)
    }
}

/// The table of checkpoints with its sums; rows of one rule and block length follow each other.
fn with_totals(checkpoints: Vec<CheckpointDelta>, settings: &Settings) -> Deltas {
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

/// Why the deltas of a series are not known.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum DeltaError {
    /// The checkpoints cannot be found.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Series(#[from] SeriesError),
    /// The system refused something.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Durable(#[from] DurableError),
    /// A file of a checkpoint that cannot be used.
    #[error("{} cannot be compared", path.display())]
    #[diagnostic(help("with `align = \"position\"` images are compared like any other file, whole or not"))]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: CutError,
    },
    /// A length of blocks that there is not.
    #[error("`block` is {block}, but blocks have 256, 512, 1024 … or 65536 bytes")]
    Block {
        /// What was asked for.
        block: u32,
    },
    /// A list without entries.
    #[error("`{name}` is an empty list")]
    Nothing {
        /// Name of the parameter.
        name: &'static str,
    },
    /// A threshold that is no part.
    #[error(
        "`epsilon` is {epsilon}, but has to be at least 0 and below 1: it is a part of the size of a delta"
    )]
    Epsilon {
        /// What was asked for.
        epsilon: f64,
    },
    /// Seconds or bytes per second that cannot be.
    #[error("`{name}` is {value}, but has to be {least}")]
    Cost {
        /// Name of the parameter.
        name: &'static str,
        /// What was asked for.
        value: f64,
        /// What it may be, in words.
        least: &'static str,
    },
    /// The same thing is to be measured and is given.
    #[error("`{name}` is given, and `target` is to be measured")]
    #[diagnostic(help(
        "leave out `target` to use the given time of writing, or the given time to measure it"
    ))]
    MeasuredAndGiven {
        /// Name of the parameter.
        name: &'static str,
    },
}
