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
mod error;
mod image;
pub(crate) mod read;
mod rules;
mod signature;
mod totals;

use std::collections::BTreeMap;

use hopmap_model::{CheckpointDelta, Context, DeltaRule, Deltas};
use rayon::prelude::*;

use crate::params::{Align, Matching};
use crate::series::Checkpoint;

pub use cost::WriteCost;
pub use error::DeltaError;
pub use rules::{Choice, Walk};
pub use signature::{Difference, FileSignature, Signature};
pub use totals::{AgainstFirst, against_first};

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
    let mut tellers: Vec<Teller<'_>> =
        settings.blocks.iter().map(|&block| Teller::new(block, settings)).collect();
    let total = series.iter().map(Checkpoint::bytes).sum();
    let mut done = 0;
    let mut whole = true;
    for (number, checkpoint) in (1..).zip(series) {
        if number > 1 && cx.should_stop() {
            whole = false;
            break;
        }
        let signatures = read::signatures(checkpoint, &settings.blocks, settings.align, 0)?;
        tellers.par_iter_mut().zip(signatures).for_each(|(teller, signature)| {
            teller.take(number, &checkpoint.name, signature);
        });
        done += checkpoint.bytes();
        cx.progress(done, total);
    }
    let rows = tellers.into_iter().flat_map(Teller::rows).collect();
    Ok((totals::deltas(rows, settings), whole))
}

/// All rules for one block length.
struct Teller<'a> {
    block: u32,
    settings: &'a Settings,
    /// Signatures that are still needed, by number of the checkpoint.
    kept: BTreeMap<u32, Signature>,
    walks: Vec<(Walk, Vec<CheckpointDelta>)>,
}

impl<'a> Teller<'a> {
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
