//! The numbers of checkpoints: never reused, and each one exists, was pruned, or is lost.
//!
//! A prune renames a manifest to a marker, which needs no space, and records the number as pruned when there
//! is space again. A number that was assigned, is not pruned and has no manifest is that of a lost
//! checkpoint.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use hopmap_durable::{DurableError, crash_point};

use super::settings::{Ranges, Settings, in_words, merged};
use super::{Store, numbers};
use crate::error::CheckpointError;

/// File extension of the marker of a pruned checkpoint, until its number is recorded.
const GONE: &str = ".gone";

/// Maximum number of lost checkpoints in a message: a malicious store could claim any number.
const MOST_LOST: usize = 10_000;

/// The numbers that a store has assigned, and their states.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AssignedNumbers {
    /// The number of the next checkpoint.
    pub(crate) next: u32,
    /// Numbers of existing manifests, ascending.
    pub(crate) there: Vec<u32>,
    /// Numbers of lost manifests, ascending.
    pub(crate) lost: Vec<u32>,
    removed: Ranges,
    /// Existing markers.
    gone: Vec<u32>,
    /// Whether there are packs of numbers that were not assigned yet.
    has_others: bool,
}

impl AssignedNumbers {
    /// Whether the manifest of a checkpoint is lost.
    pub(crate) fn is_lost(&self, number: u32) -> bool {
        self.lost.binary_search(&number).is_ok()
    }

    /// Refuses to write to an inconsistent store, because its files would be taken for leftovers.
    pub(crate) fn check(&self, folder: &Path) -> Result<(), CheckpointError> {
        if self.has_others || (self.there.is_empty() && !self.lost.is_empty()) {
            let path = folder.join("checkpoints");
            return Err(CheckpointError::NotTogether { path, lost: in_words(&self.lost) });
        }
        Ok(())
    }
}

impl Store {
    /// The state of the numbers on disk.
    pub(crate) fn given(&self) -> Result<AssignedNumbers, CheckpointError> {
        // Reads packs first and manifests last, the reverse order of adding, so that every number seen has
        // its manifest.
        let packs = self.pack_numbers()?;
        let gone = numbers(&self.folder.join("checkpoints"), GONE)?;
        let settings = Self::open(&self.folder)?.settings;
        let there = self.numbers()?;
        let latest = there.last().copied().unwrap_or(0);
        let highest = latest.max(gone.last().copied().unwrap_or(0));
        let next = settings.next.max(1).max(highest.saturating_add(1));
        // A killed `add` leaves at most the pack of the next number.
        let last_pack = packs.last().copied().unwrap_or(0);
        let has_others = last_pack > next;
        let end = if has_others { last_pack.saturating_add(1) } else { next };
        let each = |numbers: &[u32]| -> Ranges { numbers.iter().map(|&number| (number, number)).collect() };
        let unknown = || {
            let behind: Vec<u32> = packs.iter().copied().filter(|&pack| pack > latest).collect();
            gaps(merged([each(&there), each(&behind)].concat()), end)
        };
        let removed = settings.removed.unwrap_or_else(unknown);
        let removed = merged([removed, each(&gone)].concat());
        let lost = gaps(merged([&removed[..], &each(&there)].concat()), end);
        let lost = lost.into_iter().flat_map(|(first, last)| first..=last).take(MOST_LOST).collect();
        Ok(AssignedNumbers { next, there, lost, removed, gone, has_others })
    }

    /// Removes packs after the last checkpoint, which are leftovers of a killed `add` or of pruned
    /// checkpoints. Packs of lost manifests stay.
    pub(super) fn remove_unfinished(&self, given: &AssignedNumbers) -> Result<(), CheckpointError> {
        let latest = self.latest()?.unwrap_or(0);
        let unfinished = |number: &u32| *number > latest && !given.is_lost(*number);
        for number in self.pack_numbers()?.into_iter().filter(unfinished) {
            let path = self.pack_path(number);
            fs::remove_file(&path).map_err(DurableError::io("remove", &path))?;
        }
        Ok(())
    }

    /// The number of the next checkpoint according to the files.
    pub(crate) fn next_number(&self) -> Result<u32, CheckpointError> {
        let given = self.given()?;
        if given.there.contains(&given.next) || given.gone.contains(&given.next) {
            return Err(CheckpointError::Setting { name: "the number of a checkpoint", range: "below 2^32" });
        }
        Ok(given.next)
    }

    /// Why a number has no manifest.
    pub(crate) fn no_manifest(&self, number: u32) -> Result<CheckpointError, CheckpointError> {
        let given = self.given()?;
        if given.is_lost(number) {
            let path = self.manifest_path(number);
            return Ok(CheckpointError::DamagedManifest { path, number, reason: "it is missing" });
        }
        Ok(CheckpointError::NoCheckpoint { number, there: in_words(&given.there) })
    }

    /// Renames the manifest of a checkpoint, or its remains, to the marker of a pruned one.
    pub(crate) fn remove_manifest(&self, number: u32) -> Result<(), CheckpointError> {
        let (path, mark) = (self.manifest_path(number), self.mark(number));
        let marked = match fs::rename(&path, &mark) {
            Err(error) if error.kind() == ErrorKind::NotFound => fs::File::create(&mark).map(drop),
            marked => marked,
        };
        Ok(marked.map_err(DurableError::io("remove", &path))?)
    }

    /// Truncates a marker: only its name matters, and the freed space may allow recording it.
    pub(crate) fn empty_mark(&self, number: u32) {
        let _ = fs::File::options().write(true).open(self.mark(number)).and_then(|file| file.set_len(0));
    }

    fn mark(&self, number: u32) -> PathBuf {
        self.folder.join("checkpoints").join(format!("{number}{GONE}"))
    }

    /// Records the next number and the pruned ones, then removes the markers. They stay while the disk is
    /// full.
    pub(crate) fn settle(&self, given: &AssignedNumbers) -> Result<(), CheckpointError> {
        let settings = Self::open(&self.folder)?.settings;
        let settled = Settings {
            format: settings.newest_format(),
            next: given.next,
            removed: Some(given.removed.clone()),
            ..settings.clone()
        };
        if settled != settings
            && let Err(error) = self.write_settings(&settled)
        {
            return if is_full(&error) { Ok(()) } else { Err(error) };
        }
        for &number in &given.gone {
            let path = self.mark(number);
            fs::remove_file(&path).map_err(DurableError::io("remove", &path))?;
            crash_point("checkpoint.mark-removed", &path);
        }
        Ok(())
    }

    pub(crate) fn write_next(&self, next: u32) -> Result<(), CheckpointError> {
        let settings = Self::open(&self.folder)?.settings;
        if settings.next >= next {
            return Ok(());
        }
        self.write_settings(&Settings { next, ..settings })
    }
}

/// The numbers from 1 to `end` that are in none of these ranges.
fn gaps(ranges: Ranges, end: u32) -> Ranges {
    let mut gaps = Ranges::new();
    let mut next = 1;
    for (first, last) in ranges.into_iter().chain([(end, end)]) {
        let first = first.min(end);
        if next < first {
            gaps.push((next, first - 1));
        }
        next = next.max(last.saturating_add(1));
    }
    gaps
}

/// Whether an error means that the disk is full.
pub(crate) fn is_full(error: &CheckpointError) -> bool {
    let CheckpointError::Durable(DurableError::Io { source, .. }) = error else { return false };
    matches!(source.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_merged_and_gaps_are_found() {
        assert_eq!(merged([(5, 5), (1, 2), (3, 3), (9, 8), (4, 7)]), [(1, 7)]);
        assert_eq!(merged([(4, 9), (1, 2), (5, 6)]), [(1, 2), (4, 9)]);
        assert_eq!(gaps(vec![(2, 3), (6, 6)], 9), [(1, 1), (4, 5), (7, 8)]);
        assert_eq!(gaps(vec![(1, 20)], 9), []);
        assert_eq!(gaps(vec![(1, 3), (12, 20)], 9), [(4, 8)]);
        assert_eq!(gaps(Vec::new(), 1), []);
        assert_eq!(gaps(vec![(u32::MAX, u32::MAX)], u32::MAX), [(1, u32::MAX - 1)]);
    }
}
