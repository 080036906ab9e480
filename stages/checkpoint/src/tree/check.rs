//! Whether entries can be those of a folder.

use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt;

use super::{Entry, EntryKind, TreeError};

/// Longest name that systems have, in bytes.
const LONGEST_NAME: usize = 255;

/// The greatest mode.
const MODE: u32 = 0o7777;

/// Nanoseconds of a second.
const SECOND: u32 = 1_000_000_000;

/// Checks that nothing is outside the folder, and that everything is in a folder that comes before it, once.
pub(super) fn check(entries: &[Entry]) -> Result<(), TreeError> {
    // The folder itself need not be told.
    let mut folders: HashMap<&[u8], bool> = HashMap::from([(&b""[..], true)]);
    for (index, entry) in entries.iter().enumerate() {
        let path = entry.path.as_os_str().as_bytes();
        if leads_out(path) {
            return Err(TreeError::Outside { path: entry.path.clone() });
        }
        let is_folder = entry.kind == EntryKind::Folder;
        let contradiction = match path.is_empty() {
            true if index > 0 => Some("is the folder itself, and comes after others"),
            true if !is_folder => Some("is not a folder, and there are others in it"),
            true => None,
            false => misplaced(path, &folders)
                .or_else(|| folders.insert(path, is_folder).map(|_| "is there twice")),
        };
        let contradiction =
            contradiction.or_else(|| impossible(entry)).or_else(|| strange(entries, index, entry));
        if let Some(reason) = contradiction {
            return Err(TreeError::Contradiction { path: entry.path.clone(), reason });
        }
    }
    Ok(())
}

fn leads_out(path: &[u8]) -> bool {
    path.starts_with(b"/") || path.split(|&byte| byte == b'/').any(|name| name == b"..")
}

/// What is wrong with a path that leads nowhere else.
fn misplaced(path: &[u8], folders: &HashMap<&[u8], bool>) -> Option<&'static str> {
    let mut names = path.split(|&byte| byte == b'/');
    if names.any(|name| name.is_empty() || name == b"." || name.len() > LONGEST_NAME || name.contains(&0)) {
        return Some("is no path that a folder can have");
    }
    let end = path.iter().rposition(|&byte| byte == b'/').unwrap_or_default();
    match folders.get(path.get(..end).unwrap_or_default()) {
        Some(true) => None,
        Some(false) => Some("is in something that is not a folder"),
        None => Some("is in a folder that does not come before it"),
    }
}

/// What no system would say of anything.
fn impossible(entry: &Entry) -> Option<&'static str> {
    if entry.mode > MODE {
        return Some("has a mode that there is not");
    }
    if entry.modified.nanoseconds >= SECOND {
        return Some("has a time that there is not");
    }
    // To the system this number means that nothing is to change.
    (entry.owner == u32::MAX || entry.group == u32::MAX).then_some("has an owner that there is not")
}

/// What is wrong with what is said of its kind.
fn strange(entries: &[Entry], index: usize, entry: &Entry) -> Option<&'static str> {
    match &entry.kind {
        EntryKind::Folder | EntryKind::Fifo => None,
        EntryKind::File { length, holes } => {
            let mut end = 0;
            let in_order = holes.iter().all(|&(begin, bytes)| {
                let starts = begin >= end;
                end = begin.saturating_add(bytes);
                starts && end <= *length
            });
            (!in_order || i64::try_from(*length).is_err()).then_some("has holes where it has no bytes")
        }
        EntryKind::Symlink(target) => {
            let target = target.as_os_str().as_bytes();
            (target.is_empty() || target.contains(&0)).then_some("is a link to nothing")
        }
        EntryKind::HardLink(first) => {
            let first = entries.get(..index).and_then(|before| before.get(*first as usize));
            let is_file = first.is_some_and(|first| matches!(first.kind, EntryKind::File { .. }));
            (!is_file).then_some("is another name of something that is not a file before it")
        }
    }
}
