//! What a checkpoint takes of each pack, as one number.
//!
//! A pack of another store, or of a copy of this one that has been added to since, is whole and may have the number that a pack of this
//! one has. Pruning keeps every chunk that a checkpoint needs with its hash and its place, so the number stays right.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Store;
use super::manifest::{Manifest, Recipe, Run};
use super::pack::{Hashes, Pack};
use super::wire::{Reader, Torn, Writer};
use crate::CheckpointError;
use crate::chunk::{ChunkId, KeptHash};

/// What is said of such a pack.
const OTHER_PACK: &str = "it is another pack: of another store, or of a copy of this one that was added to";

/// By pack, the sum over all chunks that files consist of: the first half of the hash times a number that tells the place.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Fingerprints {
    packs: BTreeMap<u32, u64>,
}

impl Fingerprints {
    /// Adds a chunk of a file; they may come in any order.
    pub(crate) fn add(&mut self, id: ChunkId, hash: KeptHash) {
        let sum = self.packs.entry(id.pack).or_default();
        *sum = sum.wrapping_add(part(id, hash));
    }

    pub(crate) fn write(&self, out: &mut Writer) {
        out.number(self.packs.len() as u64);
        for (&pack, sum) in &self.packs {
            out.number(u64::from(pack));
            out.plain(&sum.to_le_bytes());
        }
    }

    pub(crate) fn read(input: &mut Reader<'_>) -> Result<Self, Torn> {
        let mut packs = BTreeMap::new();
        for _ in 0..input.count()? {
            let pack = input.small()?;
            let sum = input.plain(8)?.try_into().map_err(|_| Torn)?;
            packs.insert(pack, u64::from_le_bytes(sum));
        }
        Ok(Self { packs })
    }
}

fn part(id: ChunkId, hash: KeptHash) -> u64 {
    let half = hash.0.first_chunk().map_or(0, |half| u64::from_le_bytes(*half));
    // An odd factor loses nothing of the hash.
    half.wrapping_mul((u64::from(id.block) << 17 | u64::from(id.chunk) << 1) | 1)
}

impl Store {
    /// Refuses a checkpoint one of whose packs is another; where one file alone is needed, only of those that it needs.
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

    /// That a pack is another.
    pub(crate) fn other_pack(&self, pack: u32) -> CheckpointError {
        CheckpointError::DamagedPack { path: self.pack_path(pack), reason: OTHER_PACK }
    }

    /// The packs that are not those that a checkpoint was added with. What is missing, or cannot be read, is not among them.
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

/// A pack that is there, and the sum so far.
struct PackSum {
    pack: Arc<Pack>,
    hashes: Arc<Hashes>,
    sum: u64,
}

impl PackSum {
    fn open(store: &Store, pack: u32) -> Option<Self> {
        Some(Self { pack: store.pack(pack).ok()?, hashes: store.hashes(pack).ok()?, sum: 0 })
    }

    /// Adds the chunks of a run; none if one of them is not there.
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
