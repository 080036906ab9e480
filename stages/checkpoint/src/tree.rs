//! Folders as they are: what is in them, and with which modes, owners, times, links and holes.
//!
//! What is made is relative to a folder that is opened once. Paths lead only through folders that were made here: entries are
//! checked before, and what is there already is an error.

use std::collections::HashMap;
use std::fs::{File, Metadata, OpenOptions};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::{fs, io};

use miette::Diagnostic;
use rustix::fs::{
    AtFlags, Gid, Mode, OFlags, SeekFrom, Timespec, Timestamps, UTIME_OMIT, Uid, chownat, fchmod, fchown,
    ftruncate, futimens, linkat, mkdirat, mkfifoat, open, openat, seek, symlinkat, utimensat,
};
use rustix::io::Errno;

/// Something in a folder that is not another folder's business.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Where it is, relative to the folder; never absolute and without `..`. The folder itself has the empty path.
    pub path: PathBuf,
    /// What it is.
    pub kind: EntryKind,
    /// Its mode, without the bits of its kind.
    pub mode: u32,
    /// Number of its owner.
    pub owner: u32,
    /// Number of its group.
    pub group: u32,
    /// When its contents last changed.
    pub modified: Time,
}

impl Entry {
    /// Its bytes, if it is a file.
    #[must_use]
    pub fn length(&self) -> u64 {
        match self.kind {
            EntryKind::File { length, .. } => length,
            _ => 0,
        }
    }
}

/// Nanoseconds since 1970, as seconds and the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Time {
    /// Whole seconds; negative before 1970.
    pub seconds: i64,
    /// Nanoseconds of the second.
    pub nanoseconds: u32,
}

/// What something in a folder is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryKind {
    /// A folder.
    Folder,
    /// A file.
    File {
        /// Its bytes.
        length: u64,
        /// Its holes: where they begin and their bytes, in order.
        holes: Vec<(u64, u64)>,
    },
    /// A symbolic link and where it leads.
    Symlink(PathBuf),
    /// Another name of a file that comes before it; the number of that entry.
    HardLink(u32),
    /// A named pipe.
    Fifo,
}

/// What a walk through a folder found.
#[derive(Debug, Default)]
pub struct Tree {
    /// Everything, parents before what is in them, by the bytes of their paths; the folder itself first.
    pub entries: Vec<Entry>,
    /// What cannot be in a checkpoint, and why.
    pub left_out: Vec<(PathBuf, &'static str)>,
}

/// Bytes of the blocks that the system counts in.
const BLOCK: u64 = 512;

/// The bits of a mode that are not about what it is the mode of; the greatest mode.
const MODE: u32 = 0o7777;

/// Longest name that systems have, in bytes.
const LONGEST_NAME: usize = 255;

/// Nanoseconds of a second.
const SECOND: u32 = 1_000_000_000;

/// What only its owner may use, until everything is there.
const OWN_FILE: Mode = Mode::RUSR.union(Mode::WUSR);

const OWN_FOLDER: Mode = Mode::RWXU;

/// The bits of a mode with which programs run with the rights of their owner or group.
const RIGHTS: Mode = Mode::SUID.union(Mode::SGID);

/// Looks at everything in a folder. Symbolic links are not followed. Extended attributes and access control lists are not
/// looked at.
pub fn walk(folder: &Path) -> Result<Tree, TreeError> {
    let mut found = collect(folder)?;
    found.sort_by(|(one, _), (other, _)| bytes(one).cmp(bytes(other)));
    let mut tree = Tree::default();
    let mut named = HashMap::new();
    for (path, metadata) in found {
        let here = tree.entries.len() as u32;
        let linked = metadata.is_file() && metadata.nlink() > 1;
        let first = match linked {
            true => *named.entry((metadata.dev(), metadata.ino())).or_insert(here),
            false => here,
        };
        let kind =
            if first == here { kind(folder, &path, &metadata)? } else { Ok(EntryKind::HardLink(first)) };
        match kind {
            Ok(kind) => tree.entries.push(entry(path, kind, &metadata)),
            Err(reason) => tree.left_out.push((path, reason)),
        }
    }
    Ok(tree)
}

fn bytes(path: &Path) -> &[u8] {
    path.as_os_str().as_bytes()
}

/// Everything below a folder, and the folder, in any order.
fn collect(folder: &Path) -> Result<Vec<(PathBuf, Metadata)>, TreeError> {
    // The folder itself may be given by a link to it.
    let own = fs::metadata(folder).map_err(refused("read", folder))?;
    let mut found = vec![(PathBuf::new(), own)];
    let mut waiting = vec![PathBuf::new()];
    while let Some(inside) = waiting.pop() {
        let whole = folder.join(&inside);
        for entry in fs::read_dir(&whole).map_err(refused("read", &whole))? {
            let entry = entry.map_err(refused("read", &whole))?;
            let metadata = entry.metadata().map_err(refused("read", &entry.path()))?;
            let path = inside.join(entry.file_name());
            if metadata.is_dir() {
                waiting.push(path.clone());
            }
            found.push((path, metadata));
        }
    }
    Ok(found)
}

fn entry(path: PathBuf, kind: EntryKind, metadata: &Metadata) -> Entry {
    Entry {
        path,
        kind,
        mode: metadata.mode() & MODE,
        owner: metadata.uid(),
        group: metadata.gid(),
        modified: Time { seconds: metadata.mtime(), nanoseconds: metadata.mtime_nsec() as u32 },
    }
}

/// What something is, or why it cannot be in a checkpoint.
fn kind(
    folder: &Path,
    path: &Path,
    metadata: &Metadata,
) -> Result<Result<EntryKind, &'static str>, TreeError> {
    let whole = folder.join(path);
    let kind = metadata.file_type();
    Ok(if kind.is_dir() {
        Ok(EntryKind::Folder)
    } else if kind.is_file() {
        let length = metadata.len();
        let holes = holes(&whole, metadata).map_err(refused("read", &whole))?;
        Ok(EntryKind::File { length, holes })
    } else if kind.is_symlink() {
        Ok(EntryKind::Symlink(fs::read_link(&whole).map_err(refused("read", &whole))?))
    } else if kind.is_fifo() {
        Ok(EntryKind::Fifo)
    } else if kind.is_socket() {
        Err("it is a socket")
    } else {
        Err("it is a device")
    })
}

/// The holes of a file; none where the system cannot tell.
fn holes(path: &Path, metadata: &Metadata) -> io::Result<Vec<(u64, u64)>> {
    let length = metadata.len();
    let mut holes = Vec::new();
    if metadata.blocks().saturating_mul(BLOCK) >= length {
        return Ok(holes);
    }
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    let mut end = 0;
    while let Some((begin, behind)) = hole(&file, end, length) {
        holes.push((begin, behind - begin));
        end = behind;
    }
    Ok(holes)
}

/// The first hole from a place on: where it begins, and where data begin again or the file ends.
fn hole(file: &File, from: u64, length: u64) -> Option<(u64, u64)> {
    let begin = seek(file, SeekFrom::Hole(from)).ok().filter(|&begin| begin < length)?;
    let data = match seek(file, SeekFrom::Data(begin)) {
        Ok(data) => data.min(length),
        Err(rustix::io::Errno::NXIO) => length,
        Err(_) => return None,
    };
    (data > begin).then_some((begin, data))
}

/// Whether a file is what it was: the same one, as long, and neither its contents nor anything else about it changed in between.
#[must_use]
pub fn is_unchanged(before: &Metadata, after: &Metadata) -> bool {
    let of = |file: &Metadata| {
        let modified = (file.mtime(), file.mtime_nsec());
        (file.dev(), file.ino(), file.len(), modified, (file.ctime(), file.ctime_nsec()))
    };
    of(before) == of(after)
}

/// Whether entries can be those of a folder: nothing is outside of it, and everything is in a folder that comes before it, once.
pub fn check(entries: &[Entry]) -> Result<(), TreeError> {
    // The folder itself need not be told.
    let mut folders: HashMap<&[u8], bool> = HashMap::from([(&b""[..], true)]);
    for (index, entry) in entries.iter().enumerate() {
        let path = entry.path.as_os_str().as_bytes();
        if leads_out(path) {
            return Err(TreeError::Outside(entry.path.clone()));
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

/// Makes everything but the contents of files below a folder that is there and empty. Files get their length as one hole.
/// Nothing outside the folder is ever written, whatever the entries say: they are checked as a whole before anything is made,
/// what is there already is an error, and symbolic links come last.
pub fn plant(folder: &Path, entries: &[Entry]) -> Result<(), TreeError> {
    check(entries)?;
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

/// Gives everything its mode, owner (where the system allows it) and times, when all contents are written. What would run with
/// the rights of its owner or group does so only if both could be given to it.
pub fn finish(folder: &Path, entries: &[Entry]) -> Result<(), TreeError> {
    check(entries)?;
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

/// An error of the system, on something.
fn refused<E: Into<io::Error>>(action: &'static str, path: &Path) -> impl FnOnce(E) -> TreeError {
    move |source| TreeError::Io { action, path: path.to_owned(), source: source.into() }
}

/// Why a folder cannot be read or made.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum TreeError {
    /// The system refused an operation.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// What was tried, such as `read`.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A path that leads out of the folder.
    #[error("the path `{}` leads out of the folder", .0.display())]
    #[diagnostic(help("the checkpoint was not made by hopmap, or somebody changed it; nothing was written"))]
    Outside(PathBuf),
    /// Entries that contradict each other.
    #[error("`{}` {reason}", path.display())]
    #[diagnostic(help("the checkpoint was not made by hopmap, or somebody changed it; nothing was written"))]
    Contradiction {
        /// The path.
        path: PathBuf,
        /// What is wrong.
        reason: &'static str,
    },
}
