//! Making folders.
//!
//! All paths are relative to the folder, which is opened once. They lead only through folders that were made here: entries are
//! checked before, and what is there already is an error.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{
    AtFlags, Gid, Mode, OFlags, Timespec, Timestamps, UTIME_OMIT, Uid, chownat, fchmod, fchown, ftruncate,
    futimens, linkat, mkdirat, mkfifoat, open, openat, symlinkat, utimensat,
};
use rustix::io::Errno;

use super::walk::refused;
use super::{Entry, EntryKind, TreeError};

/// What only its owner may use, until everything is there.
const OWN_FILE: Mode = Mode::RUSR.union(Mode::WUSR);
const OWN_FOLDER: Mode = Mode::RWXU;

/// The bits of a mode with which programs run with the rights of their owner or group.
const RIGHTS: Mode = Mode::SUID.union(Mode::SGID);

pub(super) fn plant(folder: &Path, entries: &[Entry]) -> Result<(), TreeError> {
    let root = open_folder(folder)?;
    let is_link = |entry: &&Entry| matches!(entry.kind, EntryKind::Symlink(_));
    // Nothing is made while there are links that could lead somewhere else.
    let in_order = entries.iter().filter(|entry| !is_link(entry)).chain(entries.iter().filter(is_link));
    for entry in in_order.filter(|entry| !entry.path.as_os_str().is_empty()) {
        make(&root, entry, entries).map_err(refused("make", &folder.join(&entry.path)))?;
    }
    Ok(())
}

fn make(root: &OwnedFd, entry: &Entry, entries: &[Entry]) -> Result<(), Errno> {
    let path = &entry.path;
    match &entry.kind {
        EntryKind::Folder => mkdirat(root, path, OWN_FOLDER),
        EntryKind::File { length, .. } => {
            let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            ftruncate(openat(root, path, flags, OWN_FILE)?, *length)
        }
        EntryKind::HardLink(first) => {
            let first = entries.get(*first as usize).ok_or(Errno::NOENT)?;
            linkat(root, &first.path, root, path, AtFlags::empty())
        }
        EntryKind::Fifo => mkfifoat(root, path, OWN_FILE),
        EntryKind::Symlink(target) => symlinkat(target, root, path),
    }
}

pub(super) fn finish(folder: &Path, entries: &[Entry]) -> Result<(), TreeError> {
    let root = open_folder(folder)?;
    // What is in a folder comes first: afterwards the folder may be closed to us, and its time stays.
    for entry in entries.iter().rev() {
        settle(&root, entry).map_err(refused("set mode and times of", &folder.join(&entry.path)))?;
    }
    Ok(())
}

fn settle(root: &OwnedFd, entry: &Entry) -> Result<(), Errno> {
    match entry.kind {
        // Its file is among the others.
        EntryKind::HardLink(_) => Ok(()),
        EntryKind::Symlink(_) => {
            let (owner, group) = owners(entry);
            // Links belong to whoever made them where this is refused: it does not matter to anybody.
            let _ = chownat(root, &entry.path, Some(owner), Some(group), AtFlags::SYMLINK_NOFOLLOW);
            utimensat(root, &entry.path, &times(entry), AtFlags::SYMLINK_NOFOLLOW)
        }
        EntryKind::Folder | EntryKind::File { .. } | EntryKind::Fifo => {
            let path = if entry.path.as_os_str().is_empty() { Path::new(".") } else { &entry.path };
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            let opened = openat(root, path, flags, Mode::empty())?;
            let mode = Mode::from_raw_mode(entry.mode);
            let mode = if give(&opened, entry) { mode } else { mode - RIGHTS };
            // Changing the owner takes these rights away: the mode is set afterwards.
            fchmod(&opened, mode)?;
            futimens(&opened, &times(entry))
        }
    }
}

/// Gives something to its owner and group, or to its group alone. Whether both have it now.
fn give(opened: impl AsFd, entry: &Entry) -> bool {
    let (owner, group) = owners(entry);
    if fchown(&opened, Some(owner), Some(group)).is_ok() {
        return true;
    }
    let _ = fchown(&opened, None, Some(group));
    false
}

fn owners(entry: &Entry) -> (Uid, Gid) {
    (Uid::from_raw(entry.owner), Gid::from_raw(entry.group))
}

fn times(entry: &Entry) -> Timestamps {
    let modified =
        Timespec { tv_sec: entry.modified.seconds, tv_nsec: i64::from(entry.modified.nanoseconds) };
    Timestamps { last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT }, last_modification: modified }
}

fn open_folder(folder: &Path) -> Result<OwnedFd, TreeError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    open(folder, flags, Mode::empty()).map_err(refused("open", folder))
}
