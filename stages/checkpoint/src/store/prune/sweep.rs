//! Removes unneeded data from packs, chunk by chunk.
//!
//! Bases are always in earlier packs, so one pass from the last pack to the first knows which chunks of each
//! pack are needed: those of files, and the bases of remaining blocks of later packs. A pack is changed after
//! all later packs are final on disk, so that `kill -9` never leaves a block without its bases.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use hopmap_durable::{DurableError, crash_point, sync_folder};
use hopmap_model::Context;
use rayon::prelude::*;
use rustix::fs::{FallocateFlags, fallocate};
use serde::Serialize;

use super::super::blocks::{Blocks, in_portions};
use super::super::live::{ChunkSet, LiveChunks};
use super::super::numbers::is_full;
use super::super::pack::{BlockEntry, NewBlock, Pack, PackWriter};
use super::super::sparse::{SparseWriter, ZeroHashes};
use super::super::statistics::length_of;
use super::super::{Store, begun_pack};
use crate::chunk::ChunkId;
use crate::error::CheckpointError;

/// Decoded bytes of blocks that are made sparse together.
const PORTION: u64 = 8 << 20;

/// Size of the cache of decoded bases, in bytes.
const BASE_CACHE_BYTES: usize = 24 << 20;

/// Minimum gain for rewriting a pack, in bytes: the block size of most file systems.
const LEAST: u64 = 4096;

/// The result of a prune.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Pruned {
    /// Whether it was a dry run.
    pub dry_run: bool,
    /// The removed checkpoints.
    pub removed: Vec<u32>,
    /// The remaining checkpoints.
    pub kept: Vec<u32>,
    /// The removed packs.
    pub deleted: Vec<u32>,
    /// Packs that were rewritten without unneeded data.
    pub rewritten: Vec<u32>,
    /// Packs that could not be rewritten and keep their unneeded data.
    pub left: Vec<u32>,
    /// Freed bytes of files; in a dry run an estimate that assumes equal compression of all chunks of a
    /// block.
    pub freed: u64,
    /// Warnings.
    pub notes: Vec<String>,
}

impl Pruned {
    /// Removes an unneeded pack.
    pub(super) fn delete(&mut self, store: &Store, number: u32) -> Result<(), CheckpointError> {
        let path = store.pack_path(number);
        let bytes = length_of(&path);
        fs::remove_file(&path).map_err(DurableError::io("remove", &path))?;
        crash_point("checkpoint.pack-removed", &path);
        self.deleted.push(number);
        self.freed += bytes;
        Ok(())
    }

    pub(super) fn sort(&mut self) {
        self.deleted.sort_unstable();
        self.rewritten.sort_unstable();
        self.rewritten.dedup();
        self.left.sort_unstable();
    }
}

/// A pass through the packs of a store, from the last to the first.
pub(super) struct Sweep<'a> {
    store: &'a Store,
    live: LiveChunks,
    zeros: ZeroHashes,
}

/// What to do with a pack.
enum Due {
    Delete,
    /// Rewrite it, which frees about this many bytes.
    Rewrite(u64),
    /// Keep it: about this many bytes are unneeded, which is too little.
    Nothing(u64),
}

/// The result of rewriting a pack.
struct Rewritten {
    /// Freed bytes.
    freed: u64,
    /// The remaining bases of its blocks.
    bases: Vec<ChunkId>,
}

impl<'a> Sweep<'a> {
    /// Starts with the needs of these checkpoints.
    pub(super) fn new(store: &'a Store, kept: &[u32]) -> Result<Self, CheckpointError> {
        let zeros = ZeroHashes::new(store.settings().seed);
        Ok(Self { store, live: LiveChunks::of(store, kept)?, zeros })
    }

    /// Estimates the freed bytes, and the unneeded bytes that would stay.
    pub(super) fn estimate(mut self, pruned: &mut Pruned) -> Result<u64, CheckpointError> {
        let mut stay = 0;
        for number in self.store.pack_numbers()?.into_iter().rev() {
            match self.due(number)? {
                Due::Delete => {
                    pruned.freed += length_of(self.store.pack_path(number));
                    pruned.deleted.push(number);
                }
                Due::Rewrite(freed) => {
                    pruned.freed += freed;
                    pruned.rewritten.push(number);
                    self.keep(number, ChunkSet::contains)?;
                }
                Due::Nothing(unneeded) => {
                    stay += unneeded;
                    self.keep(number, |_, _| true)?;
                }
            }
        }
        Ok(stay)
    }

    /// Performs the pass.
    pub(super) fn carry_out(mut self, pruned: &mut Pruned, cx: &Context<'_>) -> Result<(), CheckpointError> {
        let numbers = self.store.pack_numbers()?;
        let blocks = Blocks::new(self.store, BASE_CACHE_BYTES);
        for (done, &number) in numbers.iter().rev().enumerate() {
            if cx.should_stop() {
                pruned.notes.push("interrupted: some packs still have unneeded data".to_owned());
                break;
            }
            cx.progress(done as u64, numbers.len() as u64);
            match self.due(number)? {
                Due::Delete => pruned.delete(self.store, number)?,
                Due::Rewrite(frees) => match self.rewrite_or_punch(number, &blocks, pruned, cx) {
                    Ok(Some(rewritten)) => {
                        pruned.rewritten.push(number);
                        pruned.freed += rewritten.freed;
                        rewritten.bases.into_iter().for_each(|base| self.live.insert(base));
                        continue;
                    }
                    Ok(None) => {}
                    Err(error) => {
                        pruned.left.push(number);
                        pruned.notes.push(self.note(number, frees, &error));
                    }
                },
                Due::Nothing(_) => {}
            }
            self.keep(number, |_, _| true)?;
        }
        sync_folder(&self.store.folder().join("packs"))?;
        cx.progress(numbers.len() as u64, numbers.len() as u64);
        Ok(())
    }

    /// A pack is rewritten if that frees a quarter of its payloads, and more than one file system block.
    fn due(&mut self, number: u32) -> Result<Due, CheckpointError> {
        let Some(live) = self.live.blocks(number) else { return Ok(Due::Delete) };
        let pack = self.store.pack(number)?;
        // Rewriting a pack without hashes fails later.
        let hashes = pack.hashes().ok();
        let (mut freed, mut all) = (0, 0);
        for (block, entry) in (0..).zip(pack.blocks()) {
            let Some(entry) = entry else { continue };
            all += u64::from(entry.payload);
            freed += match live.get(&block) {
                Some(live) => self.zeros.estimate(hashes.as_ref(), entry, live),
                None => u64::from(entry.payload),
            };
        }
        Ok(if freed >= LEAST && freed * 4 >= all { Due::Rewrite(freed) } else { Due::Nothing(freed) })
    }

    /// Marks the bases of needed chunks of a pack as needed, for the chunks that `which` selects.
    fn keep(&mut self, number: u32, which: fn(&ChunkSet, u16) -> bool) -> Result<(), CheckpointError> {
        let Some(live) = self.live.blocks(number) else { return Ok(()) };
        let pack = self.store.pack(number)?;
        let mut bases = Vec::new();
        for (&block, live) in live {
            let chosen = pack.block(block).map(|entry| entry.bases.as_slice()).unwrap_or_default();
            let chosen = (0..).zip(chosen).filter(|(place, _)| which(live, *place));
            bases.extend(chosen.filter_map(|(_, base)| *base));
        }
        bases.into_iter().for_each(|base| self.live.insert(base));
        Ok(())
    }

    /// As [`Sweep::rewrite`]; if the disk is too full, first frees space by punching holes into the pack.
    fn rewrite_or_punch(
        &self,
        number: u32,
        blocks: &Blocks<'_>,
        pruned: &mut Pruned,
        cx: &Context<'_>,
    ) -> Result<Option<Rewritten>, CheckpointError> {
        let full = match self.rewrite(number, blocks, cx) {
            Err(error) if is_full(&error) => error,
            other => return other,
        };
        let room = self.punch(number)?;
        if room == 0 {
            return Err(full);
        }
        let rewritten = self.rewrite(number, blocks, cx);
        // Rewriting makes the pack this much shorter in any case.
        pruned.freed += if matches!(rewritten, Ok(Some(_))) { 0 } else { room };
        rewritten
    }

    /// Punches the unneeded blocks out of a pack, if the file system can, and returns the freed bytes. Such
    /// blocks read as zeros, so that later lookups find them dead before anything is encoded against them.
    fn punch(&self, number: u32) -> Result<u64, CheckpointError> {
        let pack = self.store.pack(number)?;
        let is_needed = |block: u32| self.live.blocks(number).is_some_and(|live| live.contains_key(&block));
        let dead = (0..).zip(pack.blocks()).filter(|(block, _)| !is_needed(*block));
        let mut holes: Vec<(u64, u64)> = dead
            .filter_map(|(_, entry)| Some((entry.as_ref()?.offset, u64::from(entry.as_ref()?.payload))))
            .collect();
        holes.sort_unstable();
        // Adjacent blocks are punched together, because a page that two blocks share could not be freed
        // otherwise.
        holes.dedup_by(|next, last| {
            let follows = last.0 + last.1 == next.0;
            last.1 += if follows { next.1 } else { 0 };
            follows
        });
        let write = |error| CheckpointError::from(DurableError::io("write", pack.path())(error));
        let file = fs::File::options().write(true).open(pack.path()).map_err(write)?;
        let taken = || file.metadata().map(|metadata| metadata.blocks() * 512).map_err(write);
        let before = taken()?;
        for (offset, length) in holes {
            let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            // Some file systems do not support it.
            if length > 0 && fallocate(&file, flags, offset, length).is_err() {
                break;
            }
        }
        Ok(before.saturating_sub(taken()?))
    }

    fn note(&self, number: u32, frees: u64, error: &CheckpointError) -> String {
        let length = length_of(self.store.pack_path(number));
        match is_full(error) {
            true => format!(
                "the disk is too full to rewrite pack {number}: that takes about {} bytes temporarily and frees about {frees}",
                length.saturating_sub(frees)
            ),
            false => format!("pack {number} is unchanged: {error}"),
        }
    }

    /// Rewrites a pack with its needed blocks, sparse if that pays. `None` if it would not get smaller.
    fn rewrite(
        &self,
        number: u32,
        blocks: &Blocks<'_>,
        cx: &Context<'_>,
    ) -> Result<Option<Rewritten>, CheckpointError> {
        let empty = BTreeMap::new();
        let live = self.live.blocks(number).unwrap_or(&empty);
        let mut bases = Vec::new();
        let most = self.store.pack(number)?.length().saturating_sub(1);
        let freed = self.store.replace_pack(number, most, |pack, temporary| {
            write_sparse(pack, live, blocks, temporary, &mut bases, cx)
        })?;
        Ok(freed.map(|freed| Rewritten { freed, bases }))
    }
}

impl Store {
    /// Replaces a pack by its rewritten version, unless that exceeds a size. Returns the bytes saved.
    pub(super) fn replace_pack(
        &self,
        number: u32,
        most: u64,
        write: impl FnOnce(&Pack, &Path) -> Result<(PathBuf, u64), CheckpointError>,
    ) -> Result<Option<u64>, CheckpointError> {
        let pack = self.pack(number)?;
        let temporary = begun_pack(&self.folder, number);
        let replaced = write(&pack, &temporary).and_then(|(path, bytes)| {
            if bytes > most {
                return Ok(None);
            }
            let place = self.pack_path(number);
            crash_point("checkpoint.pack-written", &path);
            fs::rename(&path, &place).map_err(DurableError::io("write", &place))?;
            crash_point("checkpoint.pack-replaced", &place);
            sync_folder(&self.folder.join("packs"))?;
            Ok(Some(pack.length().saturating_sub(bytes)))
        });
        if !matches!(replaced, Ok(Some(_))) {
            // The next writer removes it if this fails.
            let _ = fs::remove_file(&temporary);
        }
        replaced
    }
}

fn write_sparse(
    pack: &Pack,
    live: &BTreeMap<u32, ChunkSet>,
    blocks: &Blocks<'_>,
    temporary: &Path,
    bases: &mut Vec<ChunkId>,
    cx: &Context<'_>,
) -> Result<(PathBuf, u64), CheckpointError> {
    let hashes = pack.hashes()?;
    let sparse = SparseWriter::new(blocks, pack, &hashes);
    let mut writer = PackWriter::create(temporary.to_owned(), pack.number())?;
    for portion in portions(pack, live) {
        if cx.should_stop() {
            return Err(CheckpointError::Interrupted);
        }
        let made: Vec<(u32, NewBlock)> = portion
            .par_iter()
            .map(|&(number, live)| Ok((number, sparse.block(number, live)?)))
            .collect::<Result<_, CheckpointError>>()?;
        for (number, block) in made {
            bases.extend(block.bases.iter().flatten());
            writer.put(number, block)?;
        }
    }
    writer.finish()
}

/// The needed blocks of a pack, in portions of about [`PORTION`] bytes.
fn portions<'l>(pack: &Pack, live: &'l BTreeMap<u32, ChunkSet>) -> Vec<Vec<(u32, &'l ChunkSet)>> {
    let blocks = live.iter().map(|(&number, live)| (number, live));
    in_portions(blocks, PORTION, |(number, _)| pack.block(*number).map_or(0, BlockEntry::bytes) as u64)
}
