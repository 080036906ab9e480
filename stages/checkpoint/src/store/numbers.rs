//! The numbers of checkpoints: never given twice, also when the last one is pruned.

use std::fs;
use std::io::ErrorKind;

use hopmap_durable::DurableError;

use super::{Settings, Store, numbers};
use crate::CheckpointError;

/// Ending of what stays of the manifest of the last checkpoint when the disk is too full to write its number down.
const GONE: &str = ".gone";

impl Store {
    /// The number of the next checkpoint, as the files say now.
    pub(crate) fn next_number(&self) -> Result<u32, CheckpointError> {
        let written = Self::open(&self.folder)?.settings.next.max(1);
        let after = |last: Option<u32>| match last {
            None => Ok(1),
            Some(last) => last
                .checked_add(1)
                .ok_or(CheckpointError::Setting { name: "the number of a checkpoint", range: "below 2^32" }),
        };
        let there = after(self.latest()?)?;
        let gone = after(self.gone()?.last().copied())?;
        Ok(written.max(there).max(gone))
    }

    fn gone(&self) -> Result<Vec<u32>, CheckpointError> {
        numbers(&self.folder.join("checkpoints"), GONE)
    }

    /// Takes the manifest of a checkpoint away. When it is the last one its number is written down before; when there is no space
    /// for that, an empty file keeps it.
    pub(crate) fn remove_manifest(&self, number: u32) -> Result<(), CheckpointError> {
        let path = self.manifest_path(number);
        if self.latest()? == Some(number)
            && let Err(error) = self.write_next(number.saturating_add(1))
        {
            if !is_full(&error) {
                return Err(error);
            }
            let gone = self.folder.join("checkpoints").join(format!("{number}{GONE}"));
            fs::rename(&path, &gone).map_err(DurableError::io("remove", &path))?;
            // Its name is what matters; that it has no bytes is only thrift.
            let _ = fs::File::options().write(true).open(&gone).and_then(|file| file.set_len(0));
            return Ok(());
        }
        Ok(fs::remove_file(&path).map_err(DurableError::io("remove", &path))?)
    }

    /// Writes down the numbers that empty files keep, when there is space again.
    pub(crate) fn settle_gone(&self) -> Result<(), CheckpointError> {
        let gone = self.gone()?;
        let Some(last) = gone.last() else { return Ok(()) };
        if let Err(error) = self.write_next(last.saturating_add(1)) {
            return if is_full(&error) { Ok(()) } else { Err(error) };
        }
        for number in gone {
            let path = self.folder.join("checkpoints").join(format!("{number}{GONE}"));
            fs::remove_file(&path).map_err(DurableError::io("remove", &path))?;
        }
        Ok(())
    }

    fn write_next(&self, next: u32) -> Result<(), CheckpointError> {
        let settings = Self::open(&self.folder)?.settings;
        if settings.next >= next {
            return Ok(());
        }
        self.write_settings(&Settings { next, ..settings })
    }
}

/// Whether something failed because the disk is full.
pub(crate) fn is_full(error: &CheckpointError) -> bool {
    let CheckpointError::Durable(DurableError::Io { source, .. }) = error else { return false };
    matches!(source.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge)
}
