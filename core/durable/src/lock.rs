//! Locks between processes with `flock(2)`. The kernel releases them when the holder ends for any reason.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Seek, SeekFrom, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::DurableError;

/// An exclusive lock, held until dropped or until the process ends.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock or fails at once. `holder` describes this process in the errors of others.
    pub fn try_exclusive(path: &Path, holder: &str) -> Result<Self, DurableError> {
        let mut file = open_or_create(path)?;
        file.try_lock().map_err(|error| refused(path, error))?;
        match write_holder(&mut file, holder) {
            // On a full disk the holder stays unknown, but the lock is kept so that space can be freed.
            Err(error) if !matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded) => {
                Err(DurableError::io("write", path)(error))
            }
            _ => Ok(Self { _file: file }),
        }
    }
}

impl Lock {
    /// Takes the exclusive lock of a folder, which needs no file in it, or fails at once. Who holds it is not said. On NFS it holds only
    /// within a host.
    pub fn of_folder(path: &Path) -> Result<Self, DurableError> {
        let file = File::open(path).map_err(DurableError::io("open", path))?;
        file.try_lock().map_err(|error| refused(path, error))?;
        Ok(Self { _file: file })
    }

    /// Takes a shared lock or fails at once. `None` if the file system does not support locks: operations
    /// that need an exclusive lock are rejected there anyway.
    pub fn try_shared(path: &Path) -> Result<Option<Self>, DurableError> {
        let file = File::open(path).map_err(DurableError::io("open", path))?;
        match file.try_lock_shared().map_err(|error| refused(path, error)) {
            Ok(()) => Ok(Some(Self { _file: file })),
            Err(DurableError::NoLocks { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Retries until the lock is free. Returns [`DurableError::Busy`] after `wait`, or as soon as `stop` is true.
pub fn lock_within<L>(
    wait: Duration,
    stop: &dyn Fn() -> bool,
    lock: impl Fn() -> Result<L, DurableError>,
) -> Result<L, DurableError> {
    const PAUSE: Duration = Duration::from_millis(20);
    let begin = Instant::now();
    loop {
        match lock() {
            Err(DurableError::Busy { .. }) if !stop() && begin.elapsed() < wait => std::thread::sleep(PAUSE),
            result => return result,
        }
    }
}

/// Opens a file for reading and writing, creating it if it is missing.
pub(crate) fn open_or_create(path: &Path) -> Result<File, DurableError> {
    let mut options = OpenOptions::new();
    let options = options.create(true).truncate(false).read(true).write(true);
    options.open(path).map_err(DurableError::io("open", path))
}

/// Converts the error: the lock is held by another process, or not supported.
fn refused(path: &Path, error: TryLockError) -> DurableError {
    match error {
        TryLockError::WouldBlock => {
            // The file is empty while the holder writes it.
            let holder = std::fs::read_to_string(path).unwrap_or_default();
            let holder = if holder.is_empty() { "another process".into() } else { holder };
            DurableError::Busy { path: path.into(), holder }
        }
        TryLockError::Error(source) if has_no_locks(&source) => DurableError::NoLocks { path: path.into() },
        TryLockError::Error(source) => DurableError::io("lock", path)(source),
    }
}

/// Whether the file system does not support locks. Network file systems without a lock service return their
/// own errors.
fn has_no_locks(error: &std::io::Error) -> bool {
    const NO_LOCKS_AVAILABLE: i32 = 37;
    error.kind() == ErrorKind::Unsupported || error.raw_os_error() == Some(NO_LOCKS_AVAILABLE)
}

fn write_holder(file: &mut File, holder: &str) -> std::io::Result<()> {
    file.set_len(0)?;
    file.seek(SeekFrom::Start(0))?;
    file.write_all(holder.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_shared_or_exclusive() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        std::fs::write(&path, "").unwrap();
        let (one, two) = (Lock::try_shared(&path).unwrap(), Lock::try_shared(&path).unwrap());
        assert!(Lock::try_exclusive(&path, "process 7").is_err());
        drop((one, two));
        let lock = Lock::try_exclusive(&path, "process 7").unwrap();
        let error = Lock::try_shared(&path).unwrap_err();
        assert!(matches!(&error, DurableError::Busy { holder, .. } if holder == "process 7"));
        drop(lock);
        Lock::try_shared(&path).unwrap();
    }

    #[test]
    fn a_folder_is_locked_without_a_file_in_it() {
        let folder = tempfile::tempdir().unwrap();
        let lock = Lock::of_folder(folder.path()).unwrap();
        assert!(matches!(Lock::of_folder(folder.path()), Err(DurableError::Busy { .. })));
        drop(lock);
        Lock::of_folder(folder.path()).unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn waiting_ends_when_the_lock_is_free_or_on_stop() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let held = Lock::try_exclusive(&path, "process 7").unwrap();
        let again = || Lock::try_exclusive(&path, "process 8");
        let no_time = lock_within(Duration::ZERO, &|| false, again);
        assert!(matches!(no_time, Err(DurableError::Busy { .. })));
        let long = Duration::from_hours(1);
        let stopped = lock_within(long, &|| true, again);
        assert!(matches!(stopped, Err(DurableError::Busy { .. })));
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| lock_within(long, &|| false, again).is_ok());
            drop(held);
            assert!(waiting.join().unwrap());
        });
    }

    #[test]
    fn the_error_names_the_holder() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let lock = Lock::try_exclusive(&path, "process 7: hopmap run").unwrap();
        let error = Lock::try_exclusive(&path, "process 8").unwrap_err();
        assert!(matches!(&error, DurableError::Busy { holder, .. } if holder == "process 7: hopmap run"));
        drop(lock);
        Lock::try_exclusive(&path, "process 8").unwrap();
    }
}
