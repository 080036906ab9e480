//! Entries of the history: snapshots of the machine.

use std::path::Path;

use hopmap_artifact::{Codec, Folder};
use hopmap_changes::{Change, Machine, changes};
use hopmap_durable::{Staging, replace_file};
use hopmap_model::{Measurements, SystemGraph};
use jiff::Timestamp;
use serde_json::{Value as Json, json};

use super::RefreshError;

/// Folder of the system graph in an entry.
pub(super) const SYSTEM: &str = "system";
/// Folder of the measurements in an entry.
pub(super) const MEASUREMENTS: &str = "measurements";
/// What is different from the entry that was accepted before.
pub(super) const CHANGES: &str = "changes.json";

/// An entry of the history, by its name: when it was made and the begin of its digest.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry(pub String);

impl Entry {
    /// When it was made, in seconds since 1970; missing if its name was changed.
    #[must_use]
    pub fn made_s(&self) -> Option<i64> {
        let (date, time) = self.0.get(..20)?.split_once('T')?;
        let time = time.replace('-', ":");
        Some(format!("{date}T{time}").parse::<Timestamp>().ok()?.as_second())
    }
}

/// Reads the machine in a folder: an entry, or a folder with a system graph and perhaps measurements. Every byte is checked.
pub fn read_machine(folder: &Path) -> Result<Machine, RefreshError> {
    let measured = folder.join(MEASUREMENTS);
    Ok(Machine {
        system: Folder::read::<SystemGraph>(&folder.join(SYSTEM))?,
        measurements: match measured.is_dir() {
            true => Some(Folder::read::<Measurements>(&measured)?),
            false => None,
        },
    })
}

/// Fills a folder that becomes an entry, reads it back, and gives its digest.
pub(super) fn write_machine(staging: &Staging, machine: &Machine) -> Result<String, RefreshError> {
    let folder = staging.path();
    let mut digests = write(&folder.join(SYSTEM), &machine.system)?;
    if let Some(measured) = &machine.measurements {
        digests.push_str(&write(&folder.join(MEASUREMENTS), measured)?);
    }
    read_machine(folder)?;
    Ok(blake3::hash(digests.as_bytes()).to_hex().to_string())
}

fn write<C: Codec>(folder: &Path, value: &C) -> Result<String, RefreshError> {
    std::fs::create_dir(folder).map_err(hopmap_durable::DurableError::io("create", folder))?;
    Ok(Folder::write(folder, value)?.digest().to_owned())
}

/// What is different, as `changes.json` and `changes.txt` beside each other.
pub(super) fn write_changes(
    folder: &Path,
    before: Option<&Entry>,
    found: &[Change],
) -> Result<(), RefreshError> {
    let value = changes_as_json(before, found);
    let text = serde_json::to_string_pretty(&value).unwrap_or_default() + "\n";
    replace_file(&folder.join(CHANGES), text.as_bytes())?;
    let mut lines: Vec<String> = found.iter().map(ToString::to_string).collect();
    if before.is_none() {
        lines.push("first snapshot".to_owned());
    }
    replace_file(&folder.join("changes.txt"), (lines.join("\n") + "\n").as_bytes())?;
    Ok(())
}

fn changes_as_json(before: Option<&Entry>, found: &[Change]) -> Json {
    json!({
        "format": 1,
        "before": before.map(|entry| &entry.0),
        "changes": found.iter().map(Change::as_json).collect::<Vec<_>>(),
    })
}

/// What is different between two machines.
pub(super) fn differences(
    before: &Machine,
    after: &Machine,
    thresholds: &hopmap_changes::Thresholds,
) -> Vec<Change> {
    changes(&before.snapshot(), &after.snapshot(), thresholds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_an_entry_says_when_it_was_made() {
        assert_eq!(Entry("1970-01-02T00-00-01Z-abc".into()).made_s(), Some(86_401));
        for name in ["", "1970-01-02", "1970-99-02T00-00-01Z-abc", "a-name-that-is-long-enough"] {
            assert_eq!(Entry(name.into()).made_s(), None);
        }
    }
}
