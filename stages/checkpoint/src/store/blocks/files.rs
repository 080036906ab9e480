//! The files of packs that were read last.

use std::fs::File;
use std::sync::{Arc, Mutex};

use super::lock;
use crate::CheckpointError;
use crate::store::pack::Pack;

/// Most files that stay open: a store may have more packs than a process may have open files.
const MOST: usize = 8;

/// Open files of packs, the one that was read last at the end.
#[derive(Debug, Default)]
pub(super) struct Files {
    open: Mutex<Vec<(u32, Arc<File>)>>,
    /// Whether any stay open: a pack that is deleted meanwhile would still take its space.
    pub(super) stay_open: bool,
}

impl Files {
    pub(super) fn of(&self, pack: &Pack) -> Result<Arc<File>, CheckpointError> {
        if !self.stay_open {
            return Ok(Arc::new(pack.file()?));
        }
        let mut open = lock(&self.open);
        let found = open.iter().position(|(number, _)| *number == pack.number());
        let entry = match found.map(|place| open.remove(place)) {
            Some(entry) => entry,
            None => (pack.number(), Arc::new(pack.file()?)),
        };
        if open.len() >= MOST {
            open.remove(0);
        }
        let file = Arc::clone(&entry.1);
        open.push(entry);
        Ok(file)
    }
}
