//! Input files as they were when a key was made of them, and whether they still are. Their BLAKE3 is remembered with what `stat`
//! said: a file is only read again when that changes.

use std::collections::{BTreeSet, HashMap};
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hopmap_durable::{AppendLog, DurableError};
use hopmap_model::{InputError, open_input};
use miette::{Diagnostic, Report};
use serde::{Deserialize, Serialize};

use crate::registry::Configured;

/// A file changed as recently as this could change again without its signature showing it.
const TOO_FRESH: Duration = Duration::from_secs(2);
/// How often a file is hashed that changes meanwhile.
const ATTEMPTS: usize = 3;

/// The fields of `stat` in which a change of a file shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Signature {
    device: u64,
    inode: u64,
    size: u64,
    modified_ns: i128,
    changed_ns: i128,
}

impl Signature {
    pub(crate) fn of(metadata: &Metadata) -> Self {
        let nanoseconds = |seconds: i64, rest: i64| i128::from(seconds) * 1_000_000_000 + i128::from(rest);
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified_ns: nanoseconds(metadata.mtime(), metadata.mtime_nsec()),
            changed_ns: nanoseconds(metadata.ctime(), metadata.ctime_nsec()),
        }
    }

    /// Of the file that would be read: on network file systems opening it asks the server.
    fn of_opened(path: &Path) -> io::Result<Self> {
        Ok(Self::of(&open_input(path)?.metadata()?))
    }

    /// Whether every change after a moment will show.
    fn is_settled(&self, moment: SystemTime) -> bool {
        let moment = moment.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos().cast_signed();
        moment - self.modified_ns.max(self.changed_ns) > TOO_FRESH.as_nanos().cast_signed()
    }
}

/// An input file as it was when it was hashed.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct SeenFile {
    path: PathBuf,
    blake3: String,
    signature: Signature,
    /// Whether every change since then shows in the signature.
    settled: bool,
}

/// An input that cannot be read, or is not that of the key.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub(crate) enum InputFault {
    /// It cannot be read.
    #[error("cannot read {}", path.display())]
    #[diagnostic(code(engine::unreadable))]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
        /// What to do.
        #[help]
        help: &'static str,
    },
    /// Somebody wrote to it.
    #[error("`{}` changed while it was read", .0.display())]
    #[diagnostic(
        code(engine::input_fault_changed),
        help("no result was stored; run again once the file no longer changes")
    )]
    Changed(PathBuf),
}

impl InputFault {
    pub(crate) fn unreadable(path: &Path) -> impl FnOnce(io::Error) -> Self {
        const PATHS: &str =
            "paths in a pipeline file are relative to that file, values of -p to the working directory";
        let path = path.to_owned();
        move |source| {
            let help = InputError::of(&source).map_or(PATHS, InputError::help);
            Self::Unreadable { path, source, help }
        }
    }
}

impl SeenFile {
    /// Hashes a file.
    pub(crate) fn read(path: &Path) -> Result<Self, InputFault> {
        Self::read_with(path, hash_file)
    }

    fn read_with(path: &Path, hash: impl Fn(&Path) -> io::Result<String>) -> Result<Self, InputFault> {
        for _ in 0..ATTEMPTS {
            // Hashing takes a while: what counts is how old the file was before.
            let begin = SystemTime::now();
            let signature = Signature::of_opened(path).map_err(InputFault::unreadable(path))?;
            let blake3 = hash(path).map_err(InputFault::unreadable(path))?;
            if Signature::of_opened(path).map_err(InputFault::unreadable(path))? == signature {
                let settled = signature.is_settled(begin);
                return Ok(Self { path: path.to_owned(), blake3, signature, settled });
            }
        }
        Err(InputFault::Changed(path.to_owned()))
    }

    /// BLAKE3 in hexadecimal.
    pub(crate) fn blake3(&self) -> &str {
        &self.blake3
    }

    /// Fails if the file is not as it was.
    fn look_again(&self) -> Result<(), InputFault> {
        let is_same = Signature::of_opened(&self.path).is_ok_and(|found| found == self.signature)
            && (self.settled || hash_file(&self.path).is_ok_and(|found| found == self.blake3));
        if is_same { Ok(()) } else { Err(InputFault::Changed(self.path.clone())) }
    }

    /// The file seen from another process, perhaps on another host, where devices have other numbers.
    pub(crate) fn seen_here(&self) -> Result<Self, InputFault> {
        let signature = Signature::of_opened(&self.path).map_err(InputFault::unreadable(&self.path))?;
        if self.settled && signature == (Signature { device: signature.device, ..self.signature }) {
            return Ok(Self { signature, ..self.clone() });
        }
        let here = Self::read(&self.path)?;
        if here.blake3 == self.blake3 { Ok(here) } else { Err(InputFault::Changed(here.path)) }
    }
}

/// Fails if the files that a stage reads are not those, or not as they were, when its key was made.
///
/// Called when the stage has run: what it read lies between the two looks.
pub(crate) fn look_again(configured: &dyn Configured, files: &[SeenFile]) -> Result<(), Report> {
    files.iter().try_for_each(SeenFile::look_again)?;
    if files.is_empty() {
        return Ok(());
    }
    let seen: BTreeSet<&Path> = files.iter().map(|file| file.path.as_path()).collect();
    let listed = configured.reads()?;
    let listed: BTreeSet<&Path> = listed.iter().map(hopmap_model::InputPath::path).collect();
    match seen.symmetric_difference(&listed).next() {
        Some(path) => Err(InputFault::Changed((*path).to_owned()).into()),
        None => Ok(()),
    }
}

fn hash_file(path: &Path) -> io::Result<String> {
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(open_input(path)?)?;
    Ok(hasher.finalize().to_hex().to_string())
}

#[derive(Serialize, Deserialize)]
struct Line {
    path: PathBuf,
    signature: Signature,
    blake3: String,
}

/// Hashes of files by path.
#[derive(Debug, Default)]
pub(crate) struct Hashes {
    known: HashMap<PathBuf, (Signature, String)>,
    fresh: Vec<PathBuf>,
}

impl Hashes {
    /// Reads the log; a damaged line only costs reading a file again.
    pub(crate) fn load(log: &Path) -> Result<Self, DurableError> {
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
            return Ok(SeenFile { path: path.into(), blake3: hash.clone(), signature, settled: true });
        }
        let seen = SeenFile::read(path)?;
        if seen.settled {
            self.known.insert(path.into(), (seen.signature, seen.blake3.clone()));
            self.fresh.push(path.into());
        }
        Ok(seen)
    }

    /// The BLAKE3 of a file.
    pub(crate) fn blake3_of(&mut self, path: &Path) -> Result<String, InputFault> {
        Ok(self.of(path)?.blake3().to_owned())
    }

    /// Appends what was learnt since the last call.
    pub(crate) fn save(&mut self, log: &Path) -> Result<(), DurableError> {
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
    use std::cell::Cell;
    use std::fs;

    fn is_changed<T>(result: &Result<T, InputFault>) -> bool {
        matches!(result, Err(InputFault::Changed(_)))
    }

    #[test]
    fn a_file_is_settled_by_the_time_before_it_was_hashed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "one").unwrap();
        let slowly = |path: &Path| {
            std::thread::sleep(TOO_FRESH + Duration::from_millis(200));
            hash_file(path)
        };
        // Fresh when hashing began, old when it ended.
        assert!(!SeenFile::read_with(&path, slowly).unwrap().settled);
        assert!(SeenFile::read(&path).unwrap().settled);
    }

    #[test]
    fn a_file_that_changes_while_it_is_hashed_is_hashed_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "one").unwrap();
        let changes = Cell::new(0);
        let meanwhile = |most: usize| {
            let (path, changes) = (&path, &changes);
            changes.set(0);
            move |_: &Path| {
                let hash = hash_file(path)?;
                if changes.get() < most {
                    changes.set(changes.get() + 1);
                    fs::write(path, format!("another {most} {}", "x".repeat(changes.get())))?;
                }
                Ok(hash)
            }
        };
        let seen = SeenFile::read_with(&path, meanwhile(1)).unwrap();
        assert_eq!(seen.blake3(), hash_file(&path).unwrap());
        assert!(is_changed(&SeenFile::read_with(&path, meanwhile(usize::MAX))));
    }

    #[test]
    fn whatever_happens_to_a_file_is_seen() {
        let happenings: [fn(&Path); 4] = [
            |path| fs::write(path, "two").unwrap(),
            |path| fs::remove_file(path).unwrap(),
            |path| {
                // Put back with the same bytes.
                let text = fs::read(path).unwrap();
                fs::write(path, "x").unwrap();
                fs::write(path, text).unwrap();
            },
            |path| {
                fs::copy(path, path.with_extension("new")).unwrap();
                fs::rename(path.with_extension("new"), path).unwrap();
            },
        ];
        for (index, happening) in happenings.into_iter().enumerate() {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("file");
            fs::write(&path, "one").unwrap();
            let seen = SeenFile::read(&path).unwrap();
            seen.look_again().unwrap();
            // The clock of a file system may tick only every few milliseconds.
            std::thread::sleep(Duration::from_millis(20));
            happening(&path);
            assert!(is_changed(&seen.look_again()), "{index}");
        }
    }

    #[test]
    fn another_host_sees_the_same_file_by_its_contents() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "one").unwrap();
        let seen = SeenFile::read(&path).unwrap();
        let elsewhere = Signature { device: 0, inode: 0, ..seen.signature };
        let there = SeenFile { signature: elsewhere, ..seen.clone() };
        assert_eq!(there.seen_here().unwrap().signature, seen.signature);
        fs::write(&path, "two").unwrap();
        assert!(is_changed(&there.seen_here()));
    }

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
