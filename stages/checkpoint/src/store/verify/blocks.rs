//! Verifies the needed blocks: their checksums, their bases, and in a deep verification their chunks.

use std::collections::BTreeSet;
use std::sync::Arc;

use hopmap_model::Context;
use rayon::prelude::*;

use super::super::blocks::{Blocks, in_portions};
use super::super::pack::{BlockEntry, EMPTY, Hashes, Pack};
use super::{Verifier, reason_of};
use crate::chunk::{ChunkHash, ChunkId};
use crate::error::CheckpointError;

/// Bytes of payloads that are verified together.
const PORTION: u64 = 4 << 20;

/// Size of the cache of decoded bases, in bytes.
const BASE_CACHE_BYTES: usize = 24 << 20;

/// The result for a block: an error, or the part of its chunk hashes that packs do not store.
type Seen = (u32, Result<Vec<[u8; 4]>, String>);

impl Verifier<'_> {
    /// Verifies all needed blocks, pack by pack, in file order.
    pub(super) fn check_blocks(&mut self, cx: &Context<'_>) -> Result<(), CheckpointError> {
        let needed: Vec<(u32, BTreeSet<u32>)> =
            self.live.packs().map(|(pack, blocks)| (pack, blocks.clone())).collect();
        let decoded = Blocks::new(self.store, BASE_CACHE_BYTES);
        for (done, (number, blocks)) in needed.iter().enumerate() {
            cx.progress(done as u64, needed.len() as u64);
            match self.store.pack(*number) {
                Ok(pack) => self.check_pack(&pack, blocks, &decoded, cx)?,
                Err(error) => {
                    let problem = self.problem(*number, None, None, reason_of(&error));
                    self.packs.insert(*number, problem);
                }
            }
        }
        Ok(())
    }

    fn check_pack(
        &mut self,
        pack: &Arc<Pack>,
        needed: &BTreeSet<u32>,
        decoded: &Blocks<'_>,
        cx: &Context<'_>,
    ) -> Result<(), CheckpointError> {
        let number = pack.number();
        let path = pack.path().display();
        let worn = pack.worn().unwrap_or_else(|_| vec!["it cannot be reread"]);
        self.found.worn.extend((!worn.is_empty()).then_some(number));
        let warning =
            |what| format!("{path}: {what}; nothing is lost yet, and `verify --discard` repairs it");
        self.found.warnings.extend(worn.iter().map(warning));
        let hashes = match self.store.hashes(number) {
            Ok(hashes) => Some(hashes),
            Err(error) => {
                let problem = self.problem(number, None, None, reason_of(&error));
                self.hashes.insert(number, problem);
                None
            }
        };
        if self.found.deep {
            self.rests.insert(number, vec![[0; 4]; pack.chunks()]);
        }
        let missing = "it is missing";
        for &block in needed.iter().filter(|&&block| pack.block(block).is_none()) {
            let problem = self.problem(number, Some(block), None, missing.to_owned());
            self.blocks.insert((number, block), problem);
            self.unusable.insert((number, block));
        }
        for portion in portions(pack, needed) {
            if cx.should_stop() {
                return Err(CheckpointError::Interrupted);
            }
            let look = |&(block, entry): &(u32, &BlockEntry)| {
                (block, self.check_block(pack, block, entry, hashes.as_deref(), decoded))
            };
            let seen: Vec<Seen> = portion.par_iter().map(look).collect();
            for (block, seen) in seen {
                self.take(pack, block, seen);
            }
        }
        Ok(())
    }

    /// Verifies the checksums of unneeded blocks: new ones may be encoded against them.
    pub(super) fn check_unneeded(&mut self, number: u32, cx: &Context<'_>) -> Result<(), CheckpointError> {
        let none = BTreeSet::new();
        let Ok(pack) = self.store.pack(number) else {
            if self.live.blocks(number).is_none() {
                let path = self.store.pack_path(number);
                let warning = format!("{}: it cannot be read; no checkpoint needs it", path.display());
                self.found.warnings.push(warning);
            }
            return Ok(());
        };
        let needed = self.live.blocks(number).unwrap_or(&none);
        let others: BTreeSet<u32> =
            (0..pack.blocks().len() as u32).filter(|block| !needed.contains(block)).collect();
        for portion in portions(&pack, &others) {
            if cx.should_stop() {
                return Err(CheckpointError::Interrupted);
            }
            let damaged = portion.par_iter().filter_map(|&(block, _)| pack.payload(block).err());
            // Holes that a prune punched into a pack are not damage.
            let damaged =
                damaged.filter(|error| !matches!(error, CheckpointError::DamagedBlock { reason: EMPTY, .. }));
            let damaged: Vec<String> = damaged.map(|error| error.to_string()).collect();
            self.found.warnings.extend(damaged.iter().map(|what| format!("{what}; no checkpoint needs it")));
            self.found.blocks += portion.len() as u64;
            self.found.bytes += portion.iter().map(|(_, entry)| u64::from(entry.payload)).sum::<u64>();
        }
        Ok(())
    }

    /// Records the result of a block.
    fn take(&mut self, pack: &Pack, block: u32, seen: Result<Vec<[u8; 4]>, String>) {
        let Some(entry) = pack.block(block) else { return };
        self.found.blocks += 1;
        self.found.bytes += u64::from(entry.payload);
        if seen.is_err() || self.has_bad_base(entry) {
            self.unusable.insert((pack.number(), block));
        }
        match seen {
            Ok(rests) => {
                let kept = self.rests.get_mut(&pack.number());
                let place =
                    kept.and_then(|kept| kept.get_mut(entry.first_hash..entry.first_hash + rests.len()));
                if let Some(place) = place {
                    place.copy_from_slice(&rests);
                }
            }
            Err(what) => {
                let problem = self.problem(pack.number(), Some(block), Some(entry.offset), what);
                self.blocks.insert((pack.number(), block), problem);
            }
        }
    }

    fn check_block(
        &self,
        pack: &Pack,
        block: u32,
        entry: &BlockEntry,
        hashes: Option<&Hashes>,
        decoded: &Blocks<'_>,
    ) -> Result<Vec<[u8; 4]>, String> {
        if !self.found.deep || self.has_bad_base(entry) {
            // It is unknown whether it can be decoded; damage is reported for its base.
            pack.payload(block).map_err(|error| reason_of(&error))?;
            return self.check_bases(entry).map(|()| Vec::new());
        }
        self.check_bases(entry)?;
        let bytes = decoded.block(pack.number(), block).map_err(|error| reason_of(&error))?;
        let mut rests = Vec::with_capacity(entry.lengths.len());
        let mut begin = 0;
        for (chunk, &length) in (0..).zip(&entry.lengths) {
            let content = bytes.get(begin..begin + length as usize).ok_or("wrong length")?;
            let hash = ChunkHash::seeded(decoded.seed(), content);
            if hashes.is_some_and(|hashes| hashes.of(entry, chunk) != Some(hash.kept())) {
                return Err("the hash of a chunk does not match".to_owned());
            }
            rests.push(hash.rest());
            begin += length as usize;
        }
        Ok(rests)
    }

    /// Whether a base cannot be decoded; earlier packs have been verified.
    fn has_bad_base(&self, entry: &BlockEntry) -> bool {
        let is_bad = |base: &ChunkId| {
            self.packs.contains_key(&base.pack) || self.unusable.contains(&(base.pack, base.block))
        };
        entry.bases.iter().flatten().any(is_bad)
    }

    /// Whether the bases of a block exist where they should.
    fn check_bases(&self, entry: &BlockEntry) -> Result<(), String> {
        for base in entry.bases.iter().flatten() {
            let Ok(pack) = self.store.pack(base.pack) else { continue };
            let Some(below) = pack.block(base.block) else { continue };
            if usize::from(base.chunk) >= below.lengths.len() {
                return Err("its base chunk does not exist".to_owned());
            }
            if below.depth >= entry.depth {
                return Err("its chain is longer than declared".to_owned());
            }
        }
        Ok(())
    }
}

/// The existing needed blocks, in file order, in portions of about [`PORTION`] bytes.
fn portions<'p>(pack: &'p Pack, needed: &BTreeSet<u32>) -> Vec<Vec<(u32, &'p BlockEntry)>> {
    let mut blocks: Vec<(u32, &BlockEntry)> =
        needed.iter().filter_map(|&block| Some((block, pack.block(block)?))).collect();
    blocks.sort_by_key(|(_, entry)| entry.offset);
    in_portions(blocks, PORTION, |(_, entry)| u64::from(entry.payload))
}
