//! Path parameters of stages, and the only functions that open user files.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::OFlags;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize, Serializer};

/// Why an existing path is not read. It is the inner error of an [`io::Error`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InputError {
    /// The path is a folder.
    #[error("it is a folder, not a file")]
    Folder,
    /// The path is a pipe or device, which may block or never end.
    #[error("it is {0}, not a file")]
    NoFile(&'static str),
    /// The file would take too much memory.
    #[error("it is larger than {0} bytes")]
    TooLarge(u64),
}

impl InputError {
    /// Extracts this error from an I/O error.
    #[must_use]
    pub fn of(error: &io::Error) -> Option<Self> {
        error.get_ref()?.downcast_ref().copied()
    }

    /// A hint.
    #[must_use]
    pub fn help(self) -> &'static str {
        match self {
            Self::Folder => "give the path of a file in it",
            Self::NoFile(_) => "redirect its output to a file and give the path of that file",
            Self::TooLarge(_) => "check that it is the right file",
        }
    }
}

impl From<InputError> for io::Error {
    fn from(error: InputError) -> Self {
        let kind = match error {
            InputError::Folder => ErrorKind::IsADirectory,
            InputError::NoFile(_) => ErrorKind::InvalidInput,
            InputError::TooLarge(_) => ErrorKind::FileTooLarge,
        };
        Self::new(kind, error)
    }
}

/// Opens a file for reading. Rejects anything else, such as a named pipe or a device, without blocking.
pub fn open_input(path: &Path) -> io::Result<File> {
    open(path, OFlags::empty())
}

/// The same, but rejects symbolic links as well.
pub fn open_input_itself(path: &Path) -> io::Result<File> {
    open(path, OFlags::NOFOLLOW)
}

/// Reads a file of at most `most` bytes.
pub fn read_input(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_input(path)?.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > most {
        true => Err(InputError::TooLarge(most).into()),
        false => Ok(bytes),
    }
}

fn open(path: &Path, more: OFlags) -> io::Result<File> {
    // Do not wait for the other end of a pipe, and do not acquire a controlling terminal. Both flags have no
    // effect on regular files.
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY | more;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    // Check the opened file, which may differ from an earlier stat of the path.
    let kind = file.metadata()?.file_type();
    match kind {
        _ if kind.is_file() => note(path),
        _ if kind.is_dir() => return Err(InputError::Folder.into()),
        _ if kind.is_fifo() => return Err(InputError::NoFile("a named pipe").into()),
        _ => return Err(InputError::NoFile("a device").into()),
    }
    Ok(file)
}

/// Records the inputs opened below a folder by any thread, as long as it exists. Tests compare them with
/// keys.
#[derive(Debug)]
pub struct InputRecord(Arc<Notes>);

#[derive(Debug)]
struct Notes {
    folder: PathBuf,
    opened: Mutex<BTreeSet<PathBuf>>,
}

static RECORDS: Mutex<Vec<Arc<Notes>>> = Mutex::new(Vec::new());

impl InputRecord {
    /// Starts recording.
    #[must_use]
    pub fn below(folder: &Path) -> Self {
        let notes = Arc::new(Notes { folder: folder.to_owned(), opened: Mutex::default() });
        RECORDS.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&notes));
        Self(notes)
    }

    /// The files opened so far.
    #[must_use]
    pub fn opened(&self) -> BTreeSet<PathBuf> {
        self.0.opened.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for InputRecord {
    fn drop(&mut self) {
        let mut records = RECORDS.lock().unwrap_or_else(PoisonError::into_inner);
        records.retain(|notes| !Arc::ptr_eq(notes, &self.0));
    }
}

fn note(path: &Path) {
    for notes in &*RECORDS.lock().unwrap_or_else(PoisonError::into_inner) {
        if path.starts_with(&notes.folder) {
            notes.opened.lock().unwrap_or_else(PoisonError::into_inner).insert(path.to_owned());
        }
    }
}

/// `format` of a path parameter in the JSON Schema of a stage: the engine resolves such values.
pub const INPUT_PATH_FORMAT: &str = "input-path";

/// A file or folder named by a parameter.
///
/// The engine resolves it against the pipeline file or the working directory before the stage sees it. It
/// serializes to a marker only: the key contains the names and contents of the files that
/// [`Stage::reads`](crate::Stage::reads) lists, never their location.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(transparent)]
pub struct InputPath {
    path: PathBuf,
    #[serde(skip)]
    name: Option<String>,
}

impl InputPath {
    /// A path whose name for the key is its file name.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), name: None }
    }

    /// A file found through a path parameter, with its name in the key.
    #[must_use]
    pub fn named(path: impl Into<PathBuf>, name: impl Into<String>) -> Self {
        Self { path: path.into(), name: Some(name.into()) }
    }

    /// The path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The name in the key: relative to the parameter, with `/` between folders.
    #[must_use]
    pub fn name(&self) -> Cow<'_, str> {
        match &self.name {
            Some(name) => Cow::Borrowed(name),
            None => self.path.file_name().unwrap_or_default().to_string_lossy(),
        }
    }
}

impl AsRef<Path> for InputPath {
    fn as_ref(&self) -> &Path {
        &self.path
    }
}

impl Serialize for InputPath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str("(path)")
    }
}

impl JsonSchema for InputPath {
    fn schema_name() -> Cow<'static, str> {
        "InputPath".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": INPUT_PATH_FORMAT })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    fn reason(path: &Path) -> Option<InputError> {
        InputError::of(&open_input(path).unwrap_err())
    }

    #[test]
    fn only_files_are_opened_and_pipes_do_not_block() {
        let folder = tempfile::tempdir().unwrap();
        let (pipe, file) = (folder.path().join("pipe"), folder.path().join("file"));
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        std::fs::write(&file, "text").unwrap();
        assert_eq!(reason(&pipe), Some(InputError::NoFile("a named pipe")));
        assert_eq!(reason(Path::new("/dev/zero")), Some(InputError::NoFile("a device")));
        assert_eq!(reason(folder.path()), Some(InputError::Folder));
        assert_eq!(reason(&folder.path().join("none")), None);
        assert_eq!(open_input(folder.path()).unwrap_err().kind(), ErrorKind::IsADirectory);
        assert_eq!(read_input(&file, 4).unwrap(), b"text");
        assert_eq!(read_input(&file, 3).unwrap_err().to_string(), "it is larger than 3 bytes");
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert!(open_input(&link).is_ok() && open_input_itself(&link).is_err());
    }

    #[test]
    fn a_record_contains_files_opened_by_any_thread_below_its_folder() {
        let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let record = InputRecord::below(folder.path());
        let paths = [folder.path().join("a"), other.path().join("b")];
        std::thread::scope(|threads| {
            for path in &paths {
                std::fs::write(path, "").unwrap();
                threads.spawn(|| open_input(path).unwrap());
            }
        });
        assert_eq!(record.opened(), BTreeSet::from([paths[0].clone()]));
    }

    #[test]
    fn the_path_is_not_serialized() {
        let one = serde_json::to_string(&InputPath::new("/a/x.otf2")).unwrap();
        let other = serde_json::to_string(&InputPath::new("/b/y.otf2")).unwrap();
        assert_eq!(one, other);
    }

    #[test]
    fn the_name_is_the_file_name_unless_given() {
        assert_eq!(InputPath::new("/a/x.otf2").name(), "x.otf2");
        assert_eq!(InputPath::named("/a/traces/0.evt", "traces/0.evt").name(), "traces/0.evt");
    }
}
