//! Looking at folders.

use std::collections::HashMap;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{OFlags, SeekFrom, seek};

use super::{Entry, EntryKind, Time, Tree, TreeError};

/// Bytes of the blocks that the system counts in.
const BLOCK: u64 = 512;

/// The bits of a mode that are not about what it is the mode of.
const MODE: u32 = 0o7777;

pub(super) fn walk(folder: &Path) -> Result<Tree, TreeError> {
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

/// An error of the system, on something.
pub(super) fn refused<E: Into<io::Error>>(action: &'static str, path: &Path) -> impl FnOnce(E) -> TreeError {
    move |source| TreeError::Io { action, path: path.to_owned(), source: source.into() }
}
