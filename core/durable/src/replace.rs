//! Atomic replacement of files and folders.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex, PoisonError};

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

use crate::DurableError;
use crate::crash::crash_point;

/// A temporary folder; removed when dropped before it is committed.
#[derive(Debug)]
pub struct Staging {
    path: PathBuf,
}

impl Staging {
    /// Creates an empty folder with a unique name inside `parent`.
    pub fn new(parent: &Path) -> Result<Self, DurableError> {
        Self::create(parent, "staging".as_ref())
    }

    /// Creates an empty folder next to `place`. Removes leftovers of killed processes for this place.
    pub fn beside(place: &Path) -> Result<Self, DurableError> {
        clear_abandoned(place);
        Self::create(parent_of(place), place.file_name().unwrap_or_default())
    }

    fn create(parent: &Path, name: &OsStr) -> Result<Self, DurableError> {
        fs::create_dir_all(parent).map_err(DurableError::io("create", parent))?;
        let path = parent.join(unique_name(name));
        fs::create_dir(&path).map_err(DurableError::io("create", &path))?;
        crash_point("staging.made", &path);
        Ok(Self { path })
    }

    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Syncs the folder and moves it to `place`. An existing folder is moved away and removed.
    pub fn commit(self, place: &Path) -> Result<(), DurableError> {
        adopt_folder(&self.path, place)
    }

    /// Syncs the folder and moves it to `place`, where nothing may be but an empty folder: what has come meanwhile stays.
    pub fn commit_new(self, place: &Path) -> Result<(), DurableError> {
        sync_tree(&self.path)?;
        crash_point("folder.synced", place);
        fs::rename(&self.path, place).map_err(DurableError::io("create", place))?;
        crash_point("folder.renamed", place);
        sync_folder(parent_of(place))
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // After a commit the folder no longer exists. An error of the cleanup must not hide the original one.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Syncs a folder that another process may have filled and moves it to `place`, as [`replace_folder`] does.
pub fn adopt_folder(from: &Path, place: &Path) -> Result<(), DurableError> {
    sync_tree(from)?;
    crash_point("folder.synced", place);
    replace_folder(from, place)
}

/// Moves a folder to `place` on the same file system. An existing folder is moved away and removed.
pub fn replace_folder(from: &Path, place: &Path) -> Result<(), DurableError> {
    let parent = parent_of(place);
    fs::create_dir_all(parent).map_err(DurableError::io("create", parent))?;
    if let Err(error) = fs::rename(from, place) {
        if !matches!(
            error.kind(),
            ErrorKind::DirectoryNotEmpty | ErrorKind::AlreadyExists | ErrorKind::NotADirectory
        ) {
            return Err(DurableError::io("create", place)(error));
        }
        let old = parent.join(unique_name(place.file_name().unwrap_or_default()));
        fs::rename(place, &old).map_err(DurableError::io("replace", place))?;
        crash_point("folder.aside", place);
        fs::rename(from, place).map_err(DurableError::io("create", place))?;
        crash_point("folder.replaced", place);
        fs::remove_dir_all(&old).map_err(DurableError::io("remove", &old))?;
    }
    crash_point("folder.renamed", place);
    sync_folder(parent)
}

/// Writes a temporary file next to `place`, syncs it and renames it.
pub fn replace_file(place: &Path, contents: &[u8]) -> Result<(), DurableError> {
    let write = |file: &mut File| file.write_all(contents);
    replace_with(place, write)
}

/// Creates a temporary symbolic link next to `place` and renames it, so that `place` exists at all times.
pub fn replace_symlink(place: &Path, target: &Path) -> Result<(), DurableError> {
    let parent = parent_of(place);
    let temporary = parent.join(unique_name(place.file_name().unwrap_or_default()));
    let made = std::os::unix::fs::symlink(target, &temporary).and_then(|()| {
        crash_point("link.made", place);
        fs::rename(&temporary, place)
    });
    if let Err(error) = made {
        let _ = fs::remove_file(&temporary);
        return Err(DurableError::io("write", place)(error));
    }
    crash_point("link.renamed", place);
    sync_folder(parent)
}

/// Whether a name is that of a temporary file or folder as [`unique_name`] gives it, such as one of a killed process. Temporary files
/// of other programs have other names.
#[must_use]
pub fn is_leftover(name: &str) -> bool {
    let name = name.strip_prefix('.').and_then(|name| name.strip_suffix(".tmp"));
    let Some((_, numbers)) = name.and_then(|name| name.rsplit_once('.')) else { return false };
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let is_machine = |part: &str| part.len() == 8 && part.bytes().all(|byte| byte.is_ascii_hexdigit());
    match numbers.split('-').collect::<Vec<_>>()[..] {
        [machine, process, count] => is_machine(machine) && is_number(process) && is_number(count),
        _ => false,
    }
}

/// Removes temporary files of killed processes next to `place`, if it is known that they are gone: not those of another host, another
/// boot or another PID namespace, where a process of the same number may be alive. Errors are ignored: a leftover only wastes space.
fn clear_abandoned(place: &Path) {
    // Each folder is listed once, because it may receive thousands of copies; later leftovers are not of
    // interest.
    static LEFT: Mutex<BTreeMap<PathBuf, Vec<String>>> = Mutex::new(BTreeMap::new());
    let Some(name) = place.file_name().and_then(OsStr::to_str) else { return };
    let parent = parent_of(place);
    let mut left = LEFT.lock().unwrap_or_else(PoisonError::into_inner);
    let left = left.entry(parent.to_owned()).or_insert_with(|| {
        let entries = fs::read_dir(parent).into_iter().flatten().flatten();
        entries
            .filter_map(|entry| entry.file_name().into_string().ok())
            .filter(|name| is_leftover(name))
            .collect()
    });
    let is_gone = |process| matches!(test_kill_process(process), Err(Errno::SRCH));
    for found in left.iter().filter(|found| maker_of(found, name).is_some_and(is_gone)) {
        let path = parent.join(found);
        let _ = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    }
}

/// The process of this machine that created a temporary file next to the place of a name, from the name that [`unique_name`] gave it.
fn maker_of(found: &str, name: &str) -> Option<Pid> {
    let numbers = found.strip_prefix('.')?.strip_prefix(name)?.strip_prefix('.')?.strip_suffix(".tmp")?;
    let (process, count) = numbers.strip_prefix(MACHINE.as_str())?.strip_prefix('-')?.split_once('-')?;
    count.parse::<u64>().ok()?;
    Pid::from_raw(process.parse().ok().filter(|&process| process > 0)?)
}

/// Copies a file to `place` as [`replace_file`] does. Removes leftovers of killed processes for this place.
pub fn copy_file(from: &Path, place: &Path) -> Result<(), DurableError> {
    clear_abandoned(place);
    let mut source = File::open(from).map_err(DurableError::io("read", from))?;
    replace_with(place, |file| std::io::copy(&mut source, file).map(drop))
}

/// Flushes the entries of a folder to disk.
pub fn sync_folder(folder: &Path) -> Result<(), DurableError> {
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(DurableError::io("sync", folder))
}

fn replace_with(
    place: &Path,
    write: impl FnOnce(&mut File) -> std::io::Result<()>,
) -> Result<(), DurableError> {
    let parent = parent_of(place);
    fs::create_dir_all(parent).map_err(DurableError::io("create", parent))?;
    let temporary = parent.join(unique_name(place.file_name().unwrap_or_default()));
    let written = File::create_new(&temporary).and_then(|mut file| {
        write(&mut file)?;
        file.sync_data()
    });
    let renamed = written.and_then(|()| {
        crash_point("file.written", place);
        fs::rename(&temporary, place)
    });
    if let Err(error) = renamed {
        let _ = fs::remove_file(&temporary);
        return Err(DurableError::io("write", place)(error));
    }
    crash_point("file.renamed", place);
    sync_folder(parent)
}

/// Flushes a folder and all its contents to disk.
/// Does not follow links or open pipes. Unreadable files are left to the operating system.
pub fn sync_tree(folder: &Path) -> Result<(), DurableError> {
    let refused = |error: &std::io::Error| error.kind() == ErrorKind::PermissionDenied;
    let entries = match fs::read_dir(folder) {
        Err(error) if refused(&error) => return Ok(()),
        entries => entries.map_err(DurableError::io("read", folder))?,
    };
    for entry in entries {
        let entry = entry.map_err(DurableError::io("read", folder))?;
        let path = entry.path();
        let kind = entry.file_type().map_err(DurableError::io("read", &path))?;
        if kind.is_dir() {
            sync_tree(&path)?;
        } else if kind.is_file() {
            match File::open(&path).and_then(|file| file.sync_data()) {
                Err(error) if !refused(&error) => return Err(DurableError::io("sync", &path)(error)),
                _ => {}
            }
        }
    }
    sync_folder(folder)
}

fn parent_of(place: &Path) -> &Path {
    match place.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Where the numbers of processes are unique: the host, its boot, and the PID namespace, as eight hexadecimal digits.
static MACHINE: LazyLock<String> = LazyLock::new(|| {
    let read = |name: &str| fs::read_to_string(format!("/proc/sys/kernel/{name}")).unwrap_or_default();
    let namespace = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    digits(&read("hostname"), &read("random/boot_id"), &namespace)
});

fn digits(host: &str, boot: &str, namespace: &Path) -> String {
    let mut hasher = DefaultHasher::new();
    (host, boot, namespace).hash(&mut hasher);
    format!("{:08x}", hasher.finish() as u32)
}

/// A hidden name that is unique among threads and processes, also of several hosts.
fn unique_name(name: &OsStr) -> OsString {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let mut unique = OsString::from(".");
    unique.push(name);
    let (process, count) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    unique.push(format!(".{}-{process}-{count}.tmp", *MACHINE));
    unique
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_without_leftovers() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("new/file");
        replace_file(&place, b"one").unwrap();
        replace_file(&place, b"two").unwrap();
        assert_eq!(fs::read(&place).unwrap(), b"two");
        assert_eq!(fs::read_dir(place.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn a_link_is_replaced_without_leftovers() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("current");
        replace_symlink(&place, Path::new("one")).unwrap();
        replace_symlink(&place, Path::new("two")).unwrap();
        assert_eq!(fs::read_link(&place).unwrap(), Path::new("two"));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn leftovers_are_recognized_by_name() {
        let name = unique_name("current".as_ref());
        assert!(is_leftover(name.to_str().unwrap()));
        for name in ["current", ".hopmap", "a.tmp", ".a.tmp", ".notes.draft-1.tmp", ".a.2024-01-15.tmp"] {
            assert!(!is_leftover(name), "{name}");
        }
    }

    #[test]
    fn leftovers_of_a_killed_process_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let mut ended = std::process::Command::new("true").spawn().unwrap();
        ended.wait().unwrap();
        let (gone, here) = (ended.id(), std::process::id());
        let machine = MACHINE.as_str();
        let stays = [
            format!(".a.{machine}-{here}-7.tmp"),
            format!(".a.b.{machine}-{gone}-0.tmp"),
            ".a.tmp".to_owned(),
            // Of another machine, or PID namespace: there the process may be alive.
            format!(".a.{}-{gone}-0.tmp", digits("other", "", Path::new(""))),
        ];
        for name in &stays {
            fs::write(folder.path().join(name), "").unwrap();
        }
        let left = |number: u32| folder.path().join(format!(".a.{machine}-{gone}-{number}.tmp"));
        fs::write(left(0), "").unwrap();
        fs::create_dir_all(left(1).join("folder")).unwrap();
        drop(Staging::beside(&folder.path().join("a")).unwrap());
        let names = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
        names.sort();
        let mut stays = stays.to_vec();
        stays.sort();
        assert_eq!(names, stays);
    }

    #[test]
    fn host_boot_and_namespace_tell_processes_of_one_number_apart() {
        let (host, boot, namespace) = ("a", "b", Path::new("c"));
        let here = digits(host, boot, namespace);
        assert_eq!(here, digits("a", "b", Path::new("c")));
        for other in
            [digits("x", boot, namespace), digits(host, "x", namespace), digits(host, boot, Path::new("x"))]
        {
            assert_ne!(here, other);
        }
    }

    #[test]
    fn a_folder_replaces_another() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("place");
        for text in ["one", "two"] {
            let staging = Staging::new(folder.path()).unwrap();
            fs::write(staging.path().join("file"), text).unwrap();
            staging.commit(&place).unwrap();
        }
        assert_eq!(fs::read_to_string(place.join("file")).unwrap(), "two");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_folder_with_links_and_pipes_is_committed() {
        let folder = tempfile::tempdir().unwrap();
        let staging = Staging::new(folder.path()).unwrap();
        for (name, target) in [("nowhere", "missing"), ("up", "../.."), ("itself", "itself")] {
            std::os::unix::fs::symlink(target, staging.path().join(name)).unwrap();
        }
        let made = std::process::Command::new("mkfifo").arg(staging.path().join("pipe")).status().unwrap();
        assert!(made.success());
        let place = folder.path().join("place");
        staging.commit(&place).unwrap();
        assert_eq!(fs::read_dir(&place).unwrap().count(), 4);
    }

    #[test]
    fn a_dropped_staging_folder_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        drop(Staging::new(folder.path()).unwrap());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
