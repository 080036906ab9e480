//! Append-only logs of lines.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::DurableError;
use crate::crash::crash_point;
use crate::lock::open_or_create;

/// A log of lines. A line cut off by a crash is dropped when the log is opened for writing and ignored when read.
#[derive(Debug)]
pub struct AppendLog {
    path: PathBuf,
    file: File,
}

impl AppendLog {
    /// Opens a log for appending, creating it if it is missing. The caller must hold a lock that excludes
    /// other writers.
    pub fn open(path: &Path) -> Result<Self, DurableError> {
        let mut file = open_or_create(path)?;
        drop_torn_line(&mut file).map_err(DurableError::io("repair", path))?;
        Ok(Self { path: path.into(), file })
    }

    /// The complete lines of a log; none if it does not exist. Needs no lock.
    pub fn read(path: &Path) -> Result<String, DurableError> {
        let mut bytes = match std::fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(String::new()),
            Err(error) => return Err(DurableError::io("read", path)(error)),
        };
        bytes.truncate(complete_length(&bytes));
        match String::from_utf8(bytes) {
            Ok(text) => Ok(text),
            // The reader reports damaged lines, because it knows their format.
            Err(error) => Ok(String::from_utf8_lossy(error.as_bytes()).into_owned()),
        }
    }

    /// Appends one line; a line end is added. The line is in the file when this returns; [`Self::sync`]
    /// flushes it to disk.
    pub fn append(&mut self, line: &str) -> Result<(), DurableError> {
        let mut bytes = Vec::with_capacity(line.len() + 1);
        bytes.extend_from_slice(line.as_bytes());
        bytes.push(b'\n');
        self.file.write_all(&bytes).map_err(DurableError::io("append to", &self.path))?;
        crash_point("log.appended", &self.path);
        Ok(())
    }

    /// Flushes all appended lines to disk.
    pub fn sync(&self) -> Result<(), DurableError> {
        self.file.sync_data().map_err(DurableError::io("sync", &self.path))?;
        crash_point("log.synced", &self.path);
        Ok(())
    }
}

fn complete_length(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1)
}

fn drop_torn_line(file: &mut File) -> std::io::Result<()> {
    const STEP: u64 = 64 * 1024;
    let mut end = file.seek(SeekFrom::End(0))?;
    let length = end;
    while end > 0 {
        let begin = end.saturating_sub(STEP);
        let mut bytes = vec![0; (end - begin) as usize];
        file.seek(SeekFrom::Start(begin))?;
        file.read_exact(&mut bytes)?;
        let complete = complete_length(&bytes) as u64;
        end = begin + complete;
        if complete > 0 {
            break;
        }
    }
    if end < length {
        file.set_len(end)?;
    }
    file.seek(SeekFrom::Start(end)).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_torn_line_is_ignored_and_then_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        assert_eq!(AppendLog::read(&path).unwrap(), "");
        std::fs::write(&path, "one\ntwo\nthr").unwrap();
        assert_eq!(AppendLog::read(&path).unwrap(), "one\ntwo\n");
        AppendLog::open(&path).unwrap().append("four").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "one\ntwo\nfour\n");
    }

    #[test]
    fn a_long_torn_line_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        std::fs::write(&path, "x".repeat(200_000)).unwrap();
        AppendLog::open(&path).unwrap().append("a").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "a\n");
    }
}
