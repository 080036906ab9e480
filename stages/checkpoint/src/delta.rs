//! ADCA as published: the base of each checkpoint of a series, and the bytes that are stored.
//!
//! Deltas use fixed-size compare-by-hash (`FsCH`; Al-Kiswany et al. 2008), as in HBICT: a checkpoint is cut
//! into blocks of equal length, and a block is stored unless the base has an equal one at the same place of
//! the same file (or anywhere, as in stdchk). A delta consists of its changed blocks, with an overhead per
//! block for position and hash. The size of a checkpoint is the sum over its files; a file that the base
//! lacks is stored in full, one that only the base has takes nothing.
//!
//! Every file is read once, as a stream. Only hashes of blocks are kept, and only of checkpoints that a rule
//! may still need.

pub(crate) mod read;
mod signature;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::time::Instant;

use hopmap_durable::DurableError;
use hopmap_model::{CheckpointDelta, Context, DeltaRule, Deltas, RuleTotals, SAVING_AGAINST_FIRST};
use rayon::prelude::*;
use tempfile::Builder;

pub use crate::error::DeltaError;
use crate::params::{Align, Matching};
use crate::series::Checkpoint;
pub use signature::{Difference, FileSignature, Signature};

/// Parameters of a comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Block lengths in bytes: powers of two from 256 to 65536.
    pub blocks: Vec<u32>,
    /// Rules for the base.
    pub rules: Vec<DeltaRule>,
    /// ADCA's threshold, at least 0 and below 1.
    pub epsilon: f64,
    /// How blocks are aligned.
    pub align: Align,
    /// Where the base is searched for a block.
    pub matching: Matching,
    /// Overhead of every changed block for position and hash, in bytes.
    pub block_overhead: u64,
    /// The time of a write.
    pub cost: WriteCost,
}

/// The bytes that every rule stores of a series, for every block length. When stopped, returns those of the
/// checkpoints so far, and false.
pub fn deltas(
    series: &[Checkpoint],
    settings: &Settings,
    cx: &Context<'_>,
) -> Result<(Deltas, bool), DeltaError> {
    let mut trackers: Vec<RuleTracker<'_>> =
        settings.blocks.iter().map(|&block| RuleTracker::new(block, settings)).collect();
    let total = series.iter().map(Checkpoint::bytes).sum();
    let mut done = 0;
    let mut complete = true;
    for (number, checkpoint) in (1..).zip(series) {
        if number > 1 && cx.should_stop() {
            complete = false;
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
    Ok((with_totals(rows, settings), complete))
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

    /// Adds the next checkpoint.
    fn take(&mut self, number: u32, name: &str, signature: Signature) {
        let (matching, overhead) = (self.settings.matching, self.settings.block_overhead);
        let mut compared =
            Compared { signature: &signature, kept: &self.kept, matching, known: BTreeMap::new() };
        let full = signature.full(matching);
        for (walk, rows) in &mut self.walks {
            let choice =
                (number > 1).then(|| walk.step(number - 1, |base| compared.with(base).size(overhead)));
            let (stored_bytes, changed_blocks) = match choice {
                Some(choice) => (choice.bytes, compared.with(choice.base).blocks),
                None => (full.size(0), full.blocks),
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

/// Deltas of a checkpoint against earlier ones, each computed once.
struct Compared<'a> {
    signature: &'a Signature,
    kept: &'a BTreeMap<u32, Signature>,
    matching: Matching,
    known: BTreeMap<u32, Difference>,
}

impl Compared<'_> {
    fn with(&mut self, base: u32) -> Difference {
        let (signature, kept, matching) = (self.signature, self.kept, self.matching);
        // `Walk::needs` keeps all bases that are used; without a base everything would be stored.
        let difference = || match kept.get(&base) {
            Some(base) => signature.difference(base, matching),
            None => signature.full(matching),
        };
        *self.known.entry(base).or_insert_with(difference)
    }
}

/// The table of checkpoints with its sums; rows of a rule and block length are consecutive.
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
        // Σ W(S), with fewer rounding errors than term by term.
        write_s: rows.len().saturating_sub(1) as f64 * cost.latency_s + cost.seconds(stored_bytes),
        depth: rows.iter().map(|row| row.depth).max().unwrap_or(0),
        bases,
    }
}

/// The fraction of the deltas against the first checkpoint that the best rule saves over the whole series, which ADCA compares with ε for
/// a single checkpoint. `None` if the rule `first` is missing, or its deltas are empty.
fn against_first(checkpoints: &[CheckpointDelta], rules: &[RuleTotals], block: u32) -> Option<f64> {
    // All rules store the first checkpoint alike.
    let full = checkpoints.iter().find(|row| row.block == block).map_or(0, |row| row.stored_bytes);
    let of_block = || rules.iter().filter(|rule| rule.block == block);
    let first = of_block().find(|rule| rule.rule == DeltaRule::First)?.stored_bytes;
    let best = of_block().map(|rule| rule.stored_bytes).min()?;
    let deltas = first.saturating_sub(full);
    (deltas > 0).then(|| first.saturating_sub(best) as f64 / deltas as f64)
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
        if let Some(saving) = against_first(checkpoints, rules, block) {
            let suffices = f64::from(u8::from(saving <= settings.epsilon));
            metrics.insert(format!("{SAVING_AGAINST_FIRST}{block}"), saving);
            metrics.insert(format!("first_suffices_{block}"), suffices);
        }
    }
    metrics
}

/// A rule that processes a series, checkpoint by checkpoint.
///
/// ADCA keeps the base b of t − 1 and compares, for every checkpoint t from the second on, C = Δ(t, b) with
/// C' = Δ(t, t − 1). If (S(C) − S(C')) / S(C) > ε, b becomes t − 1. The paper does not specify what is stored
/// then. Read literally it is C, and only later checkpoints are deltas against t − 1; with the reading
/// `immediate` it is C'. There is no division by S(C) = 0.
#[derive(Debug, Clone)]
pub struct Walk {
    rule: DeltaRule,
    epsilon: f64,
    /// b, the base that ADCA keeps.
    held: u32,
}

/// The decision of a rule for a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Choice {
    /// Number of the base.
    pub base: u32,
    /// Stored bytes.
    pub bytes: u64,
    /// The value that ADCA compares with ε.
    pub saving: Option<f64>,
}

impl Walk {
    /// A rule before the second checkpoint.
    #[must_use]
    pub fn new(rule: DeltaRule, epsilon: f64) -> Self {
        Self::resume(rule, epsilon, 1)
    }

    /// A rule that continues with its base: the first checkpoint until it has chosen another.
    #[must_use]
    pub fn resume(rule: DeltaRule, epsilon: f64, held: u32) -> Self {
        Self { rule, epsilon, held }
    }

    /// The current base, which the next checkpoint may be encoded against.
    #[must_use]
    pub fn held(&self) -> u32 {
        self.held
    }

    /// The rule.
    #[must_use]
    pub fn rule(&self) -> DeltaRule {
        self.rule
    }

    /// Whether checkpoint `number`, which is not the last one seen, may be needed again.
    #[must_use]
    pub fn needs(&self, number: u32) -> bool {
        match self.rule {
            DeltaRule::Incremental => false,
            DeltaRule::First | DeltaRule::AdcaLiteral | DeltaRule::AdcaImmediate => number == self.held,
            DeltaRule::Optimum => true,
        }
    }

    /// Chooses the base of the checkpoint after `previous`; `size` returns the size of its delta against an
    /// earlier one.
    pub fn step(&mut self, previous: u32, mut size: impl FnMut(u32) -> u64) -> Choice {
        let simple = |base, bytes| Choice { base, bytes, saving: None };
        match self.rule {
            DeltaRule::First => simple(self.held, size(self.held)),
            DeltaRule::Incremental => simple(previous, size(previous)),
            DeltaRule::AdcaLiteral => self.adapt(previous, size).0,
            DeltaRule::AdcaImmediate => {
                let (held, switched) = self.adapt(previous, size);
                switched.map_or(held, |bytes| Choice { base: previous, bytes, ..held })
            }
            // The bytes of a checkpoint depend only on its own base, so the best choices for each are
            // globally optimal.
            DeltaRule::Optimum => {
                let sizes = (1..=previous).map(|base| (size(base), base));
                let (bytes, base) = sizes.min().unwrap_or_default();
                simple(base, bytes)
            }
        }
    }

    /// A step of ADCA: the delta against its base, and if it switches, the size of the delta against the
    /// previous checkpoint.
    fn adapt(&mut self, previous: u32, mut size: impl FnMut(u32) -> u64) -> (Choice, Option<u64>) {
        let (base, held, other) = (self.held, size(self.held), size(previous));
        let saving = (held > 0).then(|| (held as f64 - other as f64) / held as f64);
        let fires = saving.is_some_and(|saving| saving > self.epsilon);
        if fires {
            self.held = previous;
        }
        (Choice { base, bytes: held, saving }, fires.then_some(other))
    }
}

/// Sizes of the test files, in bytes; the median of three runs counts.
const SIZES: [u64; 5] = [64 << 10, 512 << 10, 4 << 20, 16 << 20, 64 << 20];
/// Size of a single write call, in bytes.
const PIECE: usize = 1 << 20;

/// Time to write and sync S bytes: latency plus S over bandwidth.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WriteCost {
    /// α, in seconds.
    pub latency_s: f64,
    /// B, in bytes per second.
    pub bytes_per_s: f64,
}

impl Default for WriteCost {
    /// No latency and 1 GB/s: E is proportional to the stored bytes.
    fn default() -> Self {
        Self { latency_s: 0.0, bytes_per_s: 1e9 }
    }
}

impl WriteCost {
    /// W(S) in seconds.
    #[must_use]
    pub fn seconds(self, bytes: u64) -> f64 {
        self.latency_s + bytes as f64 / self.bytes_per_s
    }

    /// Writes files of several sizes into a folder, syncs and removes each, and fits both parameters.
    pub fn measure(folder: &Path) -> Result<Self, DurableError> {
        Self::measure_files(folder, &SIZES)
    }

    fn measure_files(folder: &Path, sizes: &[u64]) -> Result<Self, DurableError> {
        let median = |&bytes: &u64| -> Result<(f64, f64), DurableError> {
            let mut seconds = [write(folder, bytes)?, write(folder, bytes)?, write(folder, bytes)?];
            seconds.sort_by(f64::total_cmp);
            Ok((bytes as f64, seconds[1]))
        };
        Ok(Self::fit(&sizes.iter().map(median).collect::<Result<Vec<_>, _>>()?))
    }

    /// Least-squares line of relative errors with nonnegative latency. Sizes and times are positive.
    #[must_use]
    pub fn fit(times: &[(f64, f64)]) -> Self {
        let sum =
            |term: fn(f64, f64) -> f64| times.iter().map(|&(bytes, s)| term(bytes, s) / (s * s)).sum::<f64>();
        let (weight, bytes, seconds) = (sum(|_, _| 1.0), sum(|b, _| b), sum(|_, s| s));
        let (squares, products) = (sum(|b, _| b * b), sum(|b, s| b * s));
        let slope = (weight * products - bytes * seconds) / (weight * squares - bytes * bytes);
        let latency_s = (seconds - slope * bytes) / weight;
        match latency_s >= 0.0 && slope > 0.0 && slope.is_finite() {
            true => Self { latency_s, bytes_per_s: 1.0 / slope },
            false => Self { latency_s: 0.0, bytes_per_s: squares / products },
        }
    }
}

/// Time to write a file, in seconds.
fn write(folder: &Path, bytes: u64) -> Result<f64, DurableError> {
    let failed = |error| DurableError::io("write", folder)(error);
    // Random bytes, which a file system cannot skip or compress.
    let piece = noise();
    let mut file = Builder::new().prefix(".hopmap-write-").tempfile_in(folder).map_err(failed)?;
    let begin = Instant::now();
    let mut left = bytes;
    while left > 0 {
        let count = left.min(PIECE as u64);
        file.write_all(piece.get(..count as usize).unwrap_or_default()).map_err(failed)?;
        left -= count;
    }
    file.as_file().sync_all().map_err(failed)?;
    Ok(begin.elapsed().as_secs_f64().max(1e-9))
}

/// Pseudorandom bytes (xorshift, Marsaglia 2003).
fn noise() -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let word = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    (0..PIECE / 8).flat_map(word).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bases that a rule chooses for a table of sizes: row t − 2 has those of t against 1, 2, …
    fn bases(rule: DeltaRule, sizes: &[&[u64]]) -> Vec<u32> {
        let mut walk = Walk::new(rule, 0.2);
        let step = |(row, sizes): (usize, &&[u64])| {
            let choice = walk.step(row as u32 + 1, |base| sizes[base as usize - 1]);
            assert_eq!(choice.bytes, sizes[choice.base as usize - 1]);
            choice.base
        };
        sizes.iter().enumerate().map(step).collect()
    }

    #[test]
    fn the_readings_differ_in_the_delta_of_a_switch() {
        let sizes: [&[u64]; 3] = [&[100], &[100, 50], &[100, 40, 90]];
        assert_eq!(bases(DeltaRule::First, &sizes), [1, 1, 1]);
        assert_eq!(bases(DeltaRule::Incremental, &sizes), [1, 2, 3]);
        assert_eq!(bases(DeltaRule::AdcaLiteral, &sizes), [1, 1, 2]);
        assert_eq!(bases(DeltaRule::AdcaImmediate, &sizes), [1, 2, 2]);
        assert_eq!(bases(DeltaRule::Optimum, &sizes), [1, 2, 2]);
    }

    #[test]
    fn a_saving_of_exactly_epsilon_does_not_switch() {
        assert_eq!(bases(DeltaRule::AdcaImmediate, &[&[10], &[100, 80]]), [1, 1]);
        assert_eq!(bases(DeltaRule::AdcaImmediate, &[&[10], &[100, 79]]), [1, 2]);
    }

    #[test]
    fn an_empty_delta_does_not_divide_by_zero() {
        let mut walk = Walk::new(DeltaRule::AdcaImmediate, 0.0);
        assert_eq!(walk.step(1, |_| 0), Choice { base: 1, bytes: 0, saving: None });
        assert_eq!(walk.step(2, |base| u64::from(base) - 1).base, 1);
    }

    #[test]
    fn the_oldest_of_equal_bases_is_chosen() {
        assert_eq!(bases(DeltaRule::Optimum, &[&[7], &[7, 7], &[9, 7, 7]]), [1, 1, 2]);
    }

    #[test]
    fn the_base_of_the_second_checkpoint_is_the_first() {
        for rule in DeltaRule::ALL {
            assert_eq!(Walk::new(rule, 0.0).step(1, |_| 100).base, 1);
        }
    }

    #[test]
    fn a_line_is_fitted_exactly() {
        let times: Vec<(f64, f64)> =
            SIZES.iter().map(|&bytes| (bytes as f64, 0.004 + bytes as f64 / 5e8)).collect();
        let found = WriteCost::fit(&times);
        assert!(
            (found.latency_s - 0.004).abs() < 1e-9 && (found.bytes_per_s / 5e8 - 1.0).abs() < 1e-6,
            "{found:?}"
        );
        assert!((found.seconds(500_000_000) - 1.004).abs() < 1e-6);
    }

    #[test]
    fn a_latency_is_never_negative() {
        let found = WriteCost::fit(&[(1e6, 0.0005), (2e6, 0.002), (4e6, 0.006)]);
        assert!(found.latency_s == 0.0 && found.bytes_per_s > 0.0, "{found:?}");
        let flat = WriteCost::fit(&[(1e6, 0.002), (2e6, 0.001), (4e6, 0.0005)]);
        assert!(flat.latency_s == 0.0 && flat.bytes_per_s > 0.0, "{flat:?}");
    }

    #[test]
    fn a_measured_folder_is_left_empty() {
        let folder = tempfile::tempdir().unwrap();
        let found = WriteCost::measure_files(folder.path(), &[1000, 100_000, 3_000_000]).unwrap();
        assert!(
            found.latency_s >= 0.0 && found.bytes_per_s > 0.0 && found.bytes_per_s.is_finite(),
            "{found:?}"
        );
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        assert!(WriteCost::measure(&folder.path().join("missing")).is_err());
    }
}
