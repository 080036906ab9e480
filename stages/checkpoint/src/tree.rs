//! Contents of folders with modes, owners, times, links and holes.
//!
//! Everything is created relative to a folder that is opened once. Paths lead only through folders that were
//! created here: entries are checked first, and existing files are an error.

use std::collections::HashMap;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use miette::Diagnostic;
use rustix::fs::{
    AtFlags, Gid, Mode, OFlags, SeekFrom, Timespec, Timestamps, UTIME_OMIT, Uid, chownat, fchmod, fchown,
    ftruncate, futimens, linkat, mkdirat, mkfifoat, open, openat, seek, symlinkat, utimensat,
};
use rustix::io::Errno;

/// An entry of a folder tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its path relative to the folder; never absolute and without `..`. Empty for the folder itself.
    pub path: PathBuf,
    /// Its kind.
    pub kind: EntryKind,
    /// Its mode, without the bits of its kind.
    pub mode: u32,
    /// User id.
    pub owner: u32,
    /// Group id.
    pub group: u32,
    /// Modification time.
    pub modified: Time,
}

impl Entry {
    /// Its size, if it is a file.
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
    /// Seconds; negative before 1970.
    pub seconds: i64,
    /// Nanoseconds of the second.
    pub nanoseconds: u32,
}

/// The kind of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryKind {
    /// A folder.
    Folder,
    /// A file.
    File {
        /// Its size.
        length: u64,
        /// Its holes: offset and length of each, in order.
        holes: Vec<(u64, u64)>,
    },
    /// A symbolic link with its target.
    Symlink(PathBuf),
    /// A hard link to an earlier entry, by its number.
    HardLink(u32),
    /// A named pipe.
    Fifo,
}

/// The result of listing a folder.
#[derive(Debug, Default)]
pub struct Tree {
    /// All entries, parents first, sorted by the bytes of their paths; the folder itself is the first.
    pub entries: Vec<Entry>,
    /// Entries that cannot be part of a checkpoint, and why.
    pub left_out: Vec<(PathBuf, &'static str)>,
}

/// Unit of the block count of a file, in bytes.
const BLOCK: u64 = 512;

/// The permission bits of a mode; the largest mode.
const MODE: u32 = 0o7777;

/// Maximum length of a file name, in bytes.
const LONGEST_NAME: usize = 255;

/// Nanoseconds per second.
const SECOND: u32 = 1_000_000_000;

/// Mode until everything is written: access only for the owner.
const OWN_FILE: Mode = Mode::RUSR.union(Mode::WUSR);

const OWN_FOLDER: Mode = Mode::RWXU;

/// The set-user-ID and set-group-ID bits.
const RIGHTS: Mode = Mode::SUID.union(Mode::SGID);

/// Lists everything in a folder. Does not follow symbolic links, and ignores extended attributes and access
/// control lists.
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

/// The folder and everything below it, in any order.
fn collect(folder: &Path) -> Result<Vec<(PathBuf, Metadata)>, TreeError> {
    // The folder itself may be given by a symbolic link.
    let own = fs::metadata(folder).map_err(refused("read", folder))?;
    let mut found = vec![(PathBuf::new(), own)];
    let mut waiting = vec![PathBuf::new()];
    while let Some(inside) = waiting.pop() {
        let full_path = folder.join(&inside);
        for entry in fs::read_dir(&full_path).map_err(refused("read", &full_path))? {
            let entry = entry.map_err(refused("read", &full_path))?;
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

/// The kind of a file, or why it cannot be in a checkpoint.
fn kind(
    folder: &Path,
    path: &Path,
    metadata: &Metadata,
) -> Result<Result<EntryKind, &'static str>, TreeError> {
    let full_path = folder.join(path);
    let kind = metadata.file_type();
    Ok(if kind.is_dir() {
        Ok(EntryKind::Folder)
    } else if kind.is_file() {
        let length = metadata.len();
        let holes = holes(&full_path, metadata).map_err(refused("read", &full_path))?;
        Ok(EntryKind::File { length, holes })
    } else if kind.is_symlink() {
        Ok(EntryKind::Symlink(fs::read_link(&full_path).map_err(refused("read", &full_path))?))
    } else if kind.is_fifo() {
        Ok(EntryKind::Fifo)
    } else if kind.is_socket() {
        Err("it is a socket")
    } else {
        Err("it is a device")
    })
}

/// The holes of a file; empty if the file system does not report them.
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

/// The first hole from an offset on: where it begins, and where data begin again or the file ends.
fn hole(file: &File, from: u64, length: u64) -> Option<(u64, u64)> {
    let begin = seek(file, SeekFrom::Hole(from)).ok().filter(|&begin| begin < length)?;
    let data = match seek(file, SeekFrom::Data(begin)) {
        Ok(data) => data.min(length),
        Err(rustix::io::Errno::NXIO) => length,
        Err(_) => return None,
    };
    (data > begin).then_some((begin, data))
}

/// Whether a file is unchanged: the same inode, length, modification and change times.
#[must_use]
pub fn is_unchanged(before: &Metadata, after: &Metadata) -> bool {
    let of = |file: &Metadata| {
        let modified = (file.mtime(), file.mtime_nsec());
        (file.dev(), file.ino(), file.len(), modified, (file.ctime(), file.ctime_nsec()))
    };
    of(before) == of(after)
}

/// Whether entries form a tree: nothing is outside of it, and every entry has an earlier parent folder and a
/// unique path.
pub fn check(entries: &[Entry]) -> Result<(), TreeError> {
    // The entry of the folder itself is optional.
    let mut folders: HashMap<&[u8], bool> = HashMap::from([(&b""[..], true)]);
    for (index, entry) in entries.iter().enumerate() {
        let path = entry.path.as_os_str().as_bytes();
        if leads_out(path) {
            return Err(TreeError::Outside(entry.path.clone()));
        }
        let is_folder = entry.kind == EntryKind::Folder;
        let contradiction = match path.is_empty() {
            true if index > 0 => Some("is the folder itself, but not the first entry"),
            true if !is_folder => Some("is not a folder, but has entries in it"),
            true => None,
            false => misplaced(path, &folders)
                .or_else(|| folders.insert(path, is_folder).map(|_| "is a duplicate")),
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

/// The error of a path inside the folder.
fn misplaced(path: &[u8], folders: &HashMap<&[u8], bool>) -> Option<&'static str> {
    let mut names = path.split(|&byte| byte == b'/');
    if names.any(|name| name.is_empty() || name == b"." || name.len() > LONGEST_NAME || name.contains(&0)) {
        return Some("is not a valid path");
    }
    let end = path.iter().rposition(|&byte| byte == b'/').unwrap_or_default();
    match folders.get(path.get(..end).unwrap_or_default()) {
        Some(true) => None,
        Some(false) => Some("is not in a folder"),
        None => Some("precedes its folder"),
    }
}

/// Invalid metadata.
fn impossible(entry: &Entry) -> Option<&'static str> {
    if entry.mode > MODE {
        return Some("has an invalid mode");
    }
    if entry.modified.nanoseconds >= SECOND {
        return Some("has an invalid time");
    }
    // To the system this number means no change.
    (entry.owner == u32::MAX || entry.group == u32::MAX).then_some("has an invalid owner")
}

/// Invalid data of a kind.
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
            (!in_order || i64::try_from(*length).is_err()).then_some("has holes beyond its end")
        }
        EntryKind::Symlink(target) => {
            let target = target.as_os_str().as_bytes();
            (target.is_empty() || target.contains(&0)).then_some("is a link without a valid target")
        }
        EntryKind::HardLink(first) => {
            let first = entries.get(..index).and_then(|before| before.get(*first as usize));
            let is_file = first.is_some_and(|first| matches!(first.kind, EntryKind::File { .. }));
            (!is_file).then_some("is a hard link to something that is not an earlier file")
        }
    }
}

/// Creates everything except the contents of files in an existing, empty folder. Files get their length as
/// one hole. Nothing outside the folder is ever written, whatever the entries are: they are checked before
/// anything is created, existing files are an error, and symbolic links are created last.
pub fn plant(folder: &Path, entries: &[Entry]) -> Result<(), TreeError> {
    check(entries)?;
    let root = open_folder(folder)?;
    let is_link = |entry: &&Entry| matches!(entry.kind, EntryKind::Symlink(_));
    // Nothing is created once there are links that could lead elsewhere.
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

/// Sets mode, owner (if permitted) and times of everything after all contents are written. Set-user-ID and
/// set-group-ID bits are set only if owner and group could be set.
pub fn finish(folder: &Path, entries: &[Entry]) -> Result<(), TreeError> {
    check(entries)?;
    let root = open_folder(folder)?;
    // Contents precede their folder: afterwards the folder may be inaccessible, and its time is final.
    for entry in entries.iter().rev() {
        settle(&root, entry).map_err(refused("set mode and times of", &folder.join(&entry.path)))?;
    }
    Ok(())
}

fn settle(root: &OwnedFd, entry: &Entry) -> Result<(), Errno> {
    match entry.kind {
        // Hard links share the metadata of their file.
        EntryKind::HardLink(_) => Ok(()),
        EntryKind::Symlink(_) => {
            let (owner, group) = owners(entry);
            // If not permitted, links keep the current user as owner, which is harmless.
            let _ = chownat(root, &entry.path, Some(owner), Some(group), AtFlags::SYMLINK_NOFOLLOW);
            utimensat(root, &entry.path, &times(entry), AtFlags::SYMLINK_NOFOLLOW)
        }
        EntryKind::Folder | EntryKind::File { .. } | EntryKind::Fifo => {
            let path = if entry.path.as_os_str().is_empty() { Path::new(".") } else { &entry.path };
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            let opened = openat(root, path, flags, Mode::empty())?;
            let mode = Mode::from_raw_mode(entry.mode);
            let mode = if give(&opened, entry) { mode } else { mode - RIGHTS };
            // Changing the owner clears these bits, so the mode is set afterwards.
            fchmod(&opened, mode)?;
            futimens(&opened, &times(entry))
        }
    }
}

/// Sets owner and group, or only the group. Returns whether both are as requested.
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

/// Wraps an I/O error.
fn refused<E: Into<io::Error>>(action: &'static str, path: &Path) -> impl FnOnce(E) -> TreeError {
    move |source| TreeError::Io { action, path: path.to_owned(), source: source.into() }
}

/// Why a folder cannot be listed or created.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum TreeError {
    /// An I/O error.
    #[error("cannot {action} {}", path.display())]
    #[diagnostic(code(checkpoint::io))]
    Io {
        /// The attempted operation, such as `read`.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// A path that leads out of the folder.
    #[error("the path `{}` leads out of the folder", .0.display())]
    #[diagnostic(
        code(checkpoint::outside),
        help("the checkpoint was not made by hopmap, or was modified; nothing was written")
    )]
    Outside(PathBuf),
    /// Inconsistent entries.
    #[error("`{}` {reason}", path.display())]
    #[diagnostic(
        code(checkpoint::contradiction),
        help("the checkpoint was not made by hopmap, or was modified; nothing was written")
    )]
    Contradiction {
        /// The path.
        path: PathBuf,
        /// The error.
        reason: &'static str,
    },
}
