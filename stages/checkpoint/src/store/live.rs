//! Which blocks checkpoints need: those of their chunks, and the bases of these. And which chunks of them,
//! because a block may be needed for a few chunks only.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::manifest::{Manifest, Recipe, Run, part};
use super::pack::{Hashes, MOST_CHUNKS, Pack};
use super::{Store, in_words};
use crate::chunk::ChunkId;
use crate::error::CheckpointError;

/// Needed blocks by pack.
#[derive(Debug, Default)]
pub(crate) struct Live {
    packs: BTreeMap<u32, BTreeSet<u32>>,
}

impl Live {
    /// The blocks that some checkpoints need, and unreadable files that hide further needs.
    pub(crate) fn of(store: &Store, numbers: &[u32]) -> (Self, Vec<CheckpointError>) {
        let mut live = Self::default();
        let mut hidden = Vec::new();
        for &number in numbers {
            match store.manifest(number) {
                Ok(manifest) => {
                    live.take(&manifest);
                    let others = store.other_packs(&manifest, |_| true);
                    hidden.extend(others.into_iter().map(|pack| store.other_pack(pack)));
                }
                Err(error) => hidden.push(error),
            }
        }
        hidden.extend(live.close(store));
        (live, hidden)
    }

    /// Adds the blocks of the chunks of a checkpoint.
    pub(crate) fn take(&mut self, manifest: &Manifest) {
        for run in manifest.recipes.values().flat_map(|recipe| &recipe.runs) {
            if let Some(first) = run.first {
                self.insert(first.pack, first.block);
            }
        }
    }

    fn insert(&mut self, pack: u32, block: u32) {
        self.packs.entry(pack).or_default().insert(block);
    }

    /// Adds the bases of the blocks. Returns the packs that cannot be read, whose bases are unknown.
    pub(crate) fn close(&mut self, store: &Store) -> Vec<CheckpointError> {
        let mut hidden = Vec::new();
        let mut below = Some(u32::MAX);
        // Bases are always in earlier packs, so one pass from the last to the first finds everything.
        while let Some((&number, blocks)) = below.and_then(|last| self.packs.range(..=last).next_back()) {
            match store.pack(number) {
                Ok(pack) => {
                    let entries = blocks.iter().filter_map(|&block| pack.block(block));
                    let bases = entries.flat_map(|entry| entry.bases.iter().flatten());
                    let bases: BTreeSet<(u32, u32)> = bases.map(|base| (base.pack, base.block)).collect();
                    bases.into_iter().for_each(|(pack, block)| self.insert(pack, block));
                }
                Err(error) => hidden.push(error),
            }
            below = number.checked_sub(1);
        }
        hidden
    }

    /// The needed packs, ascending, with their needed blocks.
    pub(crate) fn packs(&self) -> impl Iterator<Item = (u32, &BTreeSet<u32>)> {
        self.packs.iter().map(|(&pack, blocks)| (pack, blocks))
    }

    /// The needed blocks of a pack.
    pub(crate) fn blocks(&self, pack: u32) -> Option<&BTreeSet<u32>> {
        self.packs.get(&pack)
    }
}

/// A subset of the chunks of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ChunkSet([u64; MOST_CHUNKS / 64]);

impl ChunkSet {
    fn insert(&mut self, chunk: u16) {
        // No block has more chunks: a manifest with larger indices does not belong to this store.
        if let Some(word) = self.0.get_mut(usize::from(chunk / 64)) {
            *word |= 1 << (chunk % 64);
        }
    }

    /// Whether it contains a chunk.
    pub(crate) fn contains(&self, chunk: u16) -> bool {
        self.0.get(usize::from(chunk / 64)).is_some_and(|word| word >> (chunk % 64) & 1 == 1)
    }
}

/// Needed chunks, by pack and block.
#[derive(Debug, Default)]
pub(crate) struct LiveChunks {
    packs: BTreeMap<u32, BTreeMap<u32, ChunkSet>>,
}

impl LiveChunks {
    /// The chunks of the files of some checkpoints, without their bases.
    pub(crate) fn of(store: &Store, numbers: &[u32]) -> Result<Self, CheckpointError> {
        let mut live = Self::default();
        for &number in numbers {
            live.take(&store.manifest(number)?);
        }
        Ok(live)
    }

    fn take(&mut self, manifest: &Manifest) {
        for run in manifest.recipes.values().flat_map(|recipe| &recipe.runs) {
            let Some(first) = run.first else { continue };
            let block = self.packs.entry(first.pack).or_default().entry(first.block).or_default();
            (0..run.chunks).for_each(|step| block.insert(first.chunk.saturating_add(step)));
        }
    }

    /// Adds a chunk.
    pub(crate) fn insert(&mut self, id: ChunkId) {
        self.packs.entry(id.pack).or_default().entry(id.block).or_default().insert(id.chunk);
    }

    /// The needed chunks of a pack by block; `None` if there are none.
    pub(crate) fn blocks(&self, pack: u32) -> Option<&BTreeMap<u32, ChunkSet>> {
        self.packs.get(&pack)
    }
}

/// The error for such a pack.
const OTHER_PACK: &str = "it belongs to another store, or to a modified copy of this one";

impl Store {
    /// Rejects a checkpoint with a wrong pack; to restore a single file, only packs of that file count.
    pub(crate) fn refuse_other_packs(
        &self,
        manifest: &Manifest,
        only: Option<&Recipe>,
    ) -> Result<(), CheckpointError> {
        let firsts = only.map(|recipe| recipe.runs.iter().filter_map(|run| run.first));
        let needed: Option<BTreeSet<u32>> = firsts.map(|firsts| firsts.map(|first| first.pack).collect());
        let is_needed = |pack| needed.as_ref().is_none_or(|needed| needed.contains(&pack));
        match self.other_packs(manifest, is_needed).first() {
            Some(&pack) => Err(self.other_pack(pack)),
            None => Ok(()),
        }
    }

    /// Adds to an error which delta of the chain of a checkpoint is damaged, and which others depend on it.
    pub(crate) fn in_chain(&self, manifest: &Manifest, error: CheckpointError) -> CheckpointError {
        let (CheckpointError::DamagedPack { path, .. } | CheckpointError::DamagedBlock { path, .. }) = &error
        else {
            return error;
        };
        let damaged = packs(manifest).into_iter().find(|&pack| self.pack_path(pack) == *path);
        match damaged.filter(|_| self.settings().deltas.is_some()) {
            Some(damaged) => CheckpointError::DamagedChain {
                number: manifest.number,
                damaged,
                others: in_words(&self.needing(damaged)),
                source: Box::new(error),
            },
            None => error,
        }
    }

    /// The checkpoints that need blocks of a pack.
    fn needing(&self, pack: u32) -> Vec<u32> {
        let numbers = self.numbers().unwrap_or_default();
        let needs = |number: &u32| self.manifest(*number).is_ok_and(|other| packs(&other).contains(&pack));
        numbers.into_iter().filter(needs).collect()
    }

    /// The error of a wrong pack.
    pub(crate) fn other_pack(&self, pack: u32) -> CheckpointError {
        CheckpointError::DamagedPack { path: self.pack_path(pack), reason: OTHER_PACK }
    }

    /// The packs that differ from those at the time of adding the checkpoint, except missing and unreadable
    /// ones.
    pub(crate) fn other_packs(&self, manifest: &Manifest, is_needed: impl Fn(u32) -> bool) -> Vec<u32> {
        let expected = &manifest.fingerprints.packs;
        let packs = expected.keys().copied().filter(|&pack| is_needed(pack));
        let mut found: BTreeMap<u32, Option<PackSum>> =
            packs.map(|pack| (pack, PackSum::open(self, pack))).collect();
        for run in manifest.recipes.values().flat_map(|recipe| &recipe.runs) {
            let Some(place) = run.first.and_then(|first| found.get_mut(&first.pack)) else { continue };
            if place.as_mut().and_then(|found| found.add(run)).is_none() {
                *place = None;
            }
        }
        let is_other = |(pack, found): &(u32, Option<PackSum>)| {
            found.as_ref().is_some_and(|found| expected.get(pack) != Some(&found.sum))
        };
        found.into_iter().filter(is_other).map(|(pack, _)| pack).collect()
    }
}

/// The packs of the blocks of a checkpoint.
fn packs(manifest: &Manifest) -> BTreeSet<u32> {
    let runs = manifest.recipes.values().flat_map(|recipe| &recipe.runs);
    runs.filter_map(|run| run.first).map(|first| first.pack).collect()
}

/// A pack that exists, and its sum so far.
struct PackSum {
    pack: Arc<Pack>,
    hashes: Arc<Hashes>,
    sum: u64,
}

impl PackSum {
    fn open(store: &Store, pack: u32) -> Option<Self> {
        Some(Self { pack: store.pack(pack).ok()?, hashes: store.hashes(pack).ok()?, sum: 0 })
    }

    /// Adds the chunks of a run; `None` if one does not exist.
    fn add(&mut self, run: &Run) -> Option<()> {
        let first = run.first?;
        let block = self.pack.block(first.block)?;
        for step in 0..run.chunks {
            let id = ChunkId { chunk: first.chunk.saturating_add(step), ..first };
            self.sum = self.sum.wrapping_add(part(id, self.hashes.of(block, id.chunk)?));
        }
        Some(())
    }
}
