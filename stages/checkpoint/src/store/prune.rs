//! Removes checkpoints, and the blocks that no other needs.
//!
//! First manifests become markers of pruned checkpoints, then packs without needed blocks are removed, then
//! packs with much unneeded data are rewritten without it. `kill -9` between any two steps leaves an intact
//! store that takes more space than necessary; the next prune frees it. Only the last step needs disk space.
//! Without space, unneeded blocks are punched out of the file, which frees some; if that is not enough, the
//! pack stays.

mod sweep;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use hopmap_durable::{DurableError, Lock, crash_point, replace_file, sync_folder};
use hopmap_model::Context;
use serde::{Deserialize, Serialize};

use super::live::Live;
use super::numbers::AssignedNumbers;
use super::pack::{Pack, PackWriter};
use super::sparse::copied;
use super::statistics::length_of;
use super::{Store, WriteLock, in_words, until};
use crate::error::CheckpointError;

use sweep::Sweep;

pub use sweep::Pruned;

/// Selects the checkpoints to keep: all that one of the rules keeps. Without `last` and `every`, all but
/// those to remove are kept.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Keep {
    /// The number of last checkpoints to keep, 1 or more.
    pub last: Option<usize>,
    /// Keep multiples of this number, 1 or more.
    pub every: Option<u32>,
    /// Keep these, in addition to pinned ones.
    pub pinned: Vec<u32>,
    /// Treat these as not pinned.
    pub unpinned: Vec<u32>,
    /// Remove these, regardless of other rules; pinned ones are rejected.
    pub remove: Vec<u32>,
}

/// The result of discarding damage.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Mended {
    /// Discarded blocks: pack and number.
    pub discarded: Vec<(u32, u32)>,
    /// Packs whose damaged ends were repaired.
    pub repaired: Vec<u32>,
}

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Pins {
    pinned: BTreeSet<u32>,
}

impl Store {
    /// The pinned checkpoints, which every prune keeps.
    pub fn pins(&self) -> Result<BTreeSet<u32>, CheckpointError> {
        let path = self.folder.join("pins.json");
        match fs::read(&path) {
            Ok(text) => {
                let pins: Result<Pins, _> = serde_json::from_slice(&text);
                let reason = |error: serde_json::Error| error.to_string();
                pins.map(|pins| pins.pinned)
                    .map_err(|error| CheckpointError::DamagedPins { path, reason: reason(error) })
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(BTreeSet::new()),
            Err(error) => Err(DurableError::io("read", &path)(error).into()),
        }
    }

    /// Pins a checkpoint.
    pub fn pin(&self, _lock: &WriteLock, number: u32) -> Result<(), CheckpointError> {
        self.require(&[number])?;
        let mut pinned = self.pins()?;
        pinned.insert(number);
        self.write_pins(pinned)
    }

    /// Unpins a checkpoint. Returns false if it was not pinned.
    pub fn unpin(&self, _lock: &WriteLock, number: u32) -> Result<bool, CheckpointError> {
        let mut pinned = self.pins()?;
        let was = pinned.remove(&number);
        if was {
            self.write_pins(pinned)?;
        }
        Ok(was)
    }

    fn write_pins(&self, pinned: BTreeSet<u32>) -> Result<(), CheckpointError> {
        let mut text = serde_json::to_vec_pretty(&Pins { pinned }).unwrap_or_default();
        text.push(b'\n');
        Ok(replace_file(&self.folder.join("pins.json"), &text)?)
    }

    /// Removes the checkpoints that no rule keeps, and unneeded data. Fails while the store is being read,
    /// and if kept checkpoints cannot be read, because their needs are unknown.
    pub fn prune(
        &self,
        lock: &WriteLock,
        keep: &Keep,
        dry_run: bool,
        cx: &Context<'_>,
    ) -> Result<Pruned, CheckpointError> {
        let (kept, removed) = self.split(keep)?;
        let (live, hidden) = Live::of(self, &kept);
        if let Some(first) = hidden.into_iter().next() {
            return Err(CheckpointError::NeedsUnknown(first.to_string()));
        }
        let mut pruned = Pruned { dry_run, removed, kept, ..Pruned::default() };
        if dry_run {
            pruned.freed = self.manifest_bytes(&pruned.removed);
            Sweep::new(self, &pruned.kept)?.estimate(&mut pruned)?;
            pruned.sort();
            return Ok(pruned);
        }
        let readers = self.keep_readers_away(lock, cx)?;
        let done = self.carry_out(&live, &mut pruned, cx);
        self.let_readers_in(readers);
        pruned.sort();
        done.map(|()| pruned)
    }

    /// Removes blocks with wrong checksums, and repairs duplicated parts of packs. Data in such blocks is
    /// lost already, but as long as they exist, equal data is not stored again. Rewriting packs needs disk
    /// space.
    pub fn discard_damaged(&self, lock: &WriteLock, cx: &Context<'_>) -> Result<Mended, CheckpointError> {
        let readers = self.keep_readers_away(lock, cx)?;
        let mut mended = Mended::default();
        let done = self.discard(&mut mended, cx);
        self.let_readers_in(readers);
        done.map(|()| mended)
    }

    /// Approximate bytes that a prune without removals would free, and unneeded bytes that it would leave.
    pub(super) fn prunable(&self, numbers: &[u32]) -> Result<(u64, u64), CheckpointError> {
        let mut pruned = Pruned::default();
        let stay = Sweep::new(self, numbers)?.estimate(&mut pruned)?;
        Ok((pruned.freed, stay))
    }

    fn discard(&self, mended: &mut Mended, cx: &Context<'_>) -> Result<(), CheckpointError> {
        for number in self.pack_numbers()? {
            if cx.should_stop() {
                break;
            }
            // A pack that cannot be opened, or has damaged hashes, is ignored; nothing is encoded against it.
            let Ok(pack) = self.pack(number) else { continue };
            if pack.hashes().is_err() {
                continue;
            }
            let there = (0..pack.blocks().len() as u32).filter(|&block| pack.block(block).is_some());
            let is_whole = |block: &u32| match pack.payload(*block) {
                Err(CheckpointError::DamagedBlock { .. }) => Ok(false),
                payload => payload.map(|_| true),
            };
            let (mut intact, before) = (BTreeSet::new(), mended.discarded.len());
            for block in there {
                match is_whole(&block)? {
                    true => drop(intact.insert(block)),
                    false => mended.discarded.push((number, block)),
                }
            }
            let worn = !pack.worn()?.is_empty();
            if worn || mended.discarded.len() > before {
                mended.repaired.extend(worn.then_some(number));
                self.replace_pack(number, u64::MAX, |pack, temporary| write_again(pack, &intact, temporary))?;
            }
        }
        Ok(())
    }

    /// The numbers to keep and to remove.
    fn split(&self, keep: &Keep) -> Result<(Vec<u32>, Vec<u32>), CheckpointError> {
        for (name, is_none) in [("keep-last", keep.last == Some(0)), ("keep-every", keep.every == Some(0))] {
            if is_none {
                return Err(CheckpointError::Setting { name, range: "1 or more" });
            }
        }
        let AssignedNumbers { there, lost, .. } = self.given()?;
        self.require(&keep.pinned)?;
        self.require(&keep.unpinned)?;
        let missing: Vec<u32> =
            keep.remove.iter().copied().filter(|number| lost.binary_search(number).is_err()).collect();
        self.require(&missing)?;
        let mut pinned = self.pins()?;
        pinned.retain(|number| !keep.unpinned.contains(number));
        pinned.extend(&keep.pinned);
        if let Some(&number) = keep.remove.iter().find(|number| pinned.contains(number)) {
            return Err(CheckpointError::Pinned(number));
        }
        let by_rule = keep.last.is_some() || keep.every.is_some();
        let bases = self.bases_to_come(&there);
        if let Some(&number) = keep.remove.iter().find(|number| bases.contains(number)) {
            return Err(CheckpointError::IsBase(number));
        }
        let last = self.last_of_every_name(&there, keep.last.unwrap_or(0));
        let stays = |number: u32| {
            // No rule knows the name of a checkpoint with a lost manifest; only naming its number removes it.
            let kept = !by_rule
                || lost.binary_search(&number).is_ok()
                || last.contains(&number)
                || bases.contains(&number)
                || keep.every.is_some_and(|every| number.is_multiple_of(every))
                || pinned.contains(&number);
            kept && !keep.remove.contains(&number)
        };
        let mut numbers = [&there[..], &lost[..]].concat();
        numbers.sort_unstable();
        let (kept, removed): (Vec<u32>, Vec<u32>) = numbers.into_iter().partition(|&number| stays(number));
        if kept.is_empty() && !removed.is_empty() {
            return Err(CheckpointError::NothingKept);
        }
        Ok((kept, removed))
    }

    /// The last checkpoints of every name: series that share a store do not displace each other. Unreadable
    /// checkpoints count as unnamed.
    fn last_of_every_name(&self, numbers: &[u32], last: usize) -> BTreeSet<u32> {
        let mut by_name: BTreeMap<String, usize> = BTreeMap::new();
        let is_last = |number: &u32| {
            let name = self.manifest(*number).map(|manifest| manifest.name).unwrap_or_default();
            let seen = by_name.entry(name).or_default();
            *seen += 1;
            *seen <= last
        };
        numbers.iter().rev().copied().filter(is_last).collect()
    }

    /// Those of the numbers that may be the base of the next checkpoint of a name.
    fn bases_to_come(&self, numbers: &[u32]) -> BTreeSet<u32> {
        let mut names = BTreeSet::new();
        let mut bases = BTreeSet::new();
        if self.settings().deltas.is_none() {
            return bases;
        }
        for manifest in numbers.iter().rev().filter_map(|&number| self.manifest(number).ok()) {
            if names.insert(manifest.name) {
                bases.extend(manifest.delta.map(|delta| delta.held));
            }
        }
        bases
    }

    fn require(&self, wanted: &[u32]) -> Result<(), CheckpointError> {
        let there = self.numbers()?;
        match wanted.iter().find(|number| there.binary_search(number).is_err()) {
            Some(&number) => Err(CheckpointError::NoCheckpoint { number, there: in_words(&there) }),
            None => Ok(()),
        }
    }

    fn keep_readers_away(&self, lock: &WriteLock, cx: &Context<'_>) -> Result<Lock, CheckpointError> {
        let holder = format!("process {}, pruning", std::process::id());
        let take = || Lock::try_exclusive(&self.folder.join("readers"), &holder);
        until(lock.wait, &|| cx.should_stop(), take).map_err(|error| match error {
            // The file has the holder of an earlier prune, not the reader.
            CheckpointError::Busy { path, .. } => {
                CheckpointError::Busy { path, holder: "a process that restores or verifies".to_owned() }
            }
            other => other,
        })
    }

    fn let_readers_in(&self, readers: Lock) {
        self.forget_packs();
        // The file must not name this prune to later readers.
        let file = fs::File::options().write(true).open(self.folder.join("readers"));
        let _ = file.and_then(|file| file.set_len(0));
        drop(readers);
    }

    fn manifest_bytes(&self, numbers: &[u32]) -> u64 {
        numbers.iter().map(|&number| length_of(self.manifest_path(number))).sum()
    }

    fn carry_out(&self, live: &Live, pruned: &mut Pruned, cx: &Context<'_>) -> Result<(), CheckpointError> {
        for &number in &pruned.removed {
            pruned.freed += length_of(self.manifest_path(number));
            self.remove_manifest(number)?;
            crash_point("checkpoint.manifest-removed", &self.manifest_path(number));
        }
        sync_folder(&self.folder.join("checkpoints"))?;
        pruned.removed.iter().for_each(|&number| self.empty_mark(number));
        // Removing unneeded packs makes space for rewriting others.
        for number in self.pack_numbers()? {
            if live.blocks(number).is_none() {
                pruned.delete(self, number)?;
            }
        }
        sync_folder(&self.folder.join("packs"))?;
        self.settle(&self.given()?)?;
        loop {
            let before = pruned.freed;
            pruned.left.clear();
            pruned.notes.clear();
            // Rewritten packs are different files now.
            self.forget_packs();
            Sweep::new(self, &pruned.kept)?.carry_out(pruned, cx)?;
            // Freed space may suffice for packs that did not fit before.
            if pruned.left.is_empty() || pruned.freed == before || cx.should_stop() {
                return Ok(());
            }
        }
    }
}

/// Rewrites a pack with a subset of its blocks under their numbers.
fn write_again(
    pack: &Pack,
    blocks: &BTreeSet<u32>,
    temporary: &Path,
) -> Result<(PathBuf, u64), CheckpointError> {
    let hashes = pack.hashes()?;
    let mut writer = PackWriter::create(temporary.to_owned(), pack.number())?;
    for &block in blocks {
        let payload = pack.payload(block)?;
        let entry = pack.block(block).ok_or_else(|| pack.damaged_block(block, "it is missing"))?;
        writer.put(block, copied(entry, &hashes, payload))?;
    }
    writer.finish()
}
