//! BLAKE3 of input files, remembered with what `stat` said: a file is only read again when that changes.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use hopmap_durable::{AppendLog, DurableError};
use serde::{Deserialize, Serialize};

use super::seen::{InputFault, SeenFile, Signature};

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

    /// A file and its BLAKE3.
    pub(crate) fn of(&mut self, path: &Path) -> Result<SeenFile, InputFault> {
        let metadata = std::fs::metadata(path).map_err(InputFault::unreadable(path))?;
        let signature = Signature::of(&metadata);
        if let Some((known, hash)) = self.known.get(path)
            && *known == signature
        {
            return Ok(SeenFile::known(path, signature, hash.clone()));
        }
        let seen = SeenFile::read(path)?;
        if let Some(signature) = seen.settled() {
            self.known.insert(path.into(), (signature, seen.blake3().to_owned()));
            self.fresh.push(path.into());
        }
        Ok(seen)
    }

    /// The BLAKE3 of a file.
    pub(crate) fn blake3_of(&mut self, path: &Path) -> Result<String, InputFault> {
        Ok(self.of(path)?.blake3().to_owned())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_file_has_another_hash_and_a_fresh_one_is_not_trusted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let mut hashes = Hashes::default();
        std::fs::write(&path, "one").unwrap();
        let one = hashes.of(&path).unwrap().blake3().to_owned();
        std::fs::write(&path, "two").unwrap();
        assert_ne!(hashes.of(&path).unwrap().blake3(), one);
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
        assert_eq!(Hashes::load(&log).unwrap().of(&path).unwrap().blake3(), "remembered");
    }
}
