//! BLAKE3 of input files, remembered with what `stat` said: a file is only read again when that changes.

use std::collections::HashMap;
use std::fs::{File, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hopmap_durable::{AppendLog, DurableError};
use serde::{Deserialize, Serialize};

/// A file changed as recently as this could change again without `stat` showing it: its hash is not remembered.
const TOO_FRESH: Duration = Duration::from_secs(2);

/// What `stat` says of a file, as far as a change would show in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Signature {
    device: u64,
    inode: u64,
    size: u64,
    modified_ns: i128,
    changed_ns: i128,
}

#[derive(Serialize, Deserialize)]
struct Line {
    path: PathBuf,
    signature: Signature,
    blake3: String,
}

/// Hashes of files by path.
#[derive(Debug, Default)]
pub struct Hashes {
    known: HashMap<PathBuf, (Signature, String)>,
    fresh: Vec<PathBuf>,
}

impl Hashes {
    /// Reads the log; a damaged line only costs reading a file again.
    pub fn load(log: &Path) -> Result<Self, DurableError> {
        let text = AppendLog::read(log)?;
        let lines = text.lines().filter_map(|line| serde_json::from_str::<Line>(line).ok());
        let known = lines.map(|line| (line.path, (line.signature, line.blake3))).collect();
        Ok(Self { known, fresh: Vec::new() })
    }

    /// BLAKE3 of a file in hexadecimal.
    pub fn of(&mut self, path: &Path) -> Result<String, DurableError> {
        let read = DurableError::io("read", path);
        let metadata = match std::fs::metadata(path) {
            Ok(metadata) => metadata,
            Err(error) => return Err(read(error)),
        };
        let signature = Signature::of(&metadata);
        if let Some((known, hash)) = self.known.get(path)
            && *known == signature
        {
            return Ok(hash.clone());
        }
        let hash = hash_file(path).map_err(read)?;
        if signature.is_settled() {
            self.known.insert(path.into(), (signature, hash.clone()));
            self.fresh.push(path.into());
        }
        Ok(hash)
    }

    /// Appends what was learnt since the last call.
    pub fn save(&mut self, log: &Path) -> Result<(), DurableError> {
        if self.fresh.is_empty() {
            return Ok(());
        }
        let mut log = AppendLog::open(log)?;
        for path in self.fresh.drain(..) {
            let (signature, blake3) = &self.known[&path];
            let line = Line { signature: *signature, blake3: blake3.clone(), path };
            // A path that is not UTF-8 has no form in JSON; it is hashed every time.
            if let Ok(line) = serde_json::to_string(&line) {
                log.append(&line)?;
            }
        }
        Ok(())
    }
}

impl Signature {
    fn of(metadata: &Metadata) -> Self {
        let nanoseconds = |seconds: i64, rest: i64| i128::from(seconds) * 1_000_000_000 + i128::from(rest);
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified_ns: nanoseconds(metadata.mtime(), metadata.mtime_nsec()),
            changed_ns: nanoseconds(metadata.ctime(), metadata.ctime_nsec()),
        }
    }

    fn is_settled(&self) -> bool {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos().cast_signed();
        now - self.modified_ns.max(self.changed_ns) > TOO_FRESH.as_nanos().cast_signed()
    }
}

fn hash_file(path: &Path) -> std::io::Result<String> {
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(File::open(path)?)?;
    Ok(hasher.finalize().to_hex().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_file_has_another_hash_and_a_fresh_one_is_not_trusted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let mut hashes = Hashes::default();
        std::fs::write(&path, "one").unwrap();
        let one = hashes.of(&path).unwrap();
        std::fs::write(&path, "two").unwrap();
        assert_ne!(hashes.of(&path).unwrap(), one);
        assert!(hashes.known.is_empty());
        assert!(hashes.of(folder.path().join("none").as_path()).is_err());
    }

    #[test]
    fn a_settled_file_is_remembered() {
        let folder = tempfile::tempdir().unwrap();
        let (path, log) = (folder.path().join("file"), folder.path().join("log"));
        std::fs::write(&path, "one").unwrap();
        let signature = Signature::of(&std::fs::metadata(&path).unwrap());
        let mut hashes = Hashes::default();
        hashes.known.insert(path.clone(), (signature, "remembered".into()));
        hashes.fresh.push(path.clone());
        hashes.save(&log).unwrap();
        assert_eq!(Hashes::load(&log).unwrap().of(&path).unwrap(), "remembered");
    }
}
