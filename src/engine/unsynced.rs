//! Results whose artifacts may be in memory only.
//!
//! Small artifacts are put on disk together, half a minute apart, but the log has every result at once, so that a process that is
//! killed loses nothing: what it wrote is in the memory of the machine. Only when the machine itself goes down may artifacts
//! be missing of which the log knows. So the log says which results these are, and in which boot of the machine they were
//! made; after another boot they are read and checked before anybody believes them.

use std::fs;

use super::record::Record;

/// Results whose artifacts were not on disk when the log last said so.
#[derive(Default)]
pub(super) struct Unsynced {
    /// The boot in which they were made, and their keys.
    boots: Vec<(String, Vec<String>)>,
}

impl Unsynced {
    pub(super) fn is_empty(&self) -> bool {
        self.boots.is_empty()
    }

    /// Reads on in the log.
    pub(super) fn hear(&mut self, record: &Record) {
        match record {
            Record::Unsynced { boot } => self.boots.push((boot.clone(), Vec::new())),
            Record::Synced => self.boots.clear(),
            Record::Result(result) => {
                if let Some((_, keys)) = self.boots.last_mut() {
                    keys.push(result.key.clone());
                }
            }
            _ => {}
        }
    }

    /// Those that an earlier boot left: a process that is killed loses nothing, a machine that goes down may.
    pub(super) fn lost(&self) -> impl Iterator<Item = &str> {
        let boot = boot();
        let is_lost = move |other: &String| other.is_empty() || *other != boot;
        let lost = self.boots.iter().filter(move |(other, _)| is_lost(other));
        lost.flat_map(|(_, keys)| keys).map(String::as_str)
    }
}

/// What this boot of the machine is called; nothing where the system does not say.
pub(super) fn boot() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}
