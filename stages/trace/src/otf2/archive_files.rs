//! The files of an archive, their names, and the anchor file, which defines the format of the others.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use hopmap_model::{InputPath, open_input};
use hopmap_text::entries;

use super::record::{Cursor, Flaw};
use super::record_schema::{OTF2_CHUNK_SIZE_MAX, OTF2_CHUNK_SIZE_MIN};
use crate::archive::{check_kind, files_in, has_extension, only_one};
use crate::error::{TraceError, of_location};

/// Maximum depth of the anchor file below the given folder.
const DEEPEST: usize = 2;

/// Paths of the files of an archive.
#[derive(Debug, Clone)]
pub(crate) struct ArchiveFiles {
    anchor: PathBuf,
}

impl ArchiveFiles {
    /// The archive of an anchor file, or the only one in a folder; if there is none, the only one in its
    /// subfolders, because EZTrace 2.0 writes `trace/PROGRAM_trace/eztrace_log.otf2`.
    pub(crate) fn find(path: &Path) -> Result<Self, TraceError> {
        let metadata = fs::metadata(path).map_err(|source| TraceError::unreadable(path, source))?;
        if !metadata.is_dir() {
            return Self::of_anchor(path.to_owned());
        }
        Self::of_anchor(only_one(path, ("otf2", "anchor"), DEEPEST)?)
    }

    /// The files of an archive to be written.
    pub(crate) fn named(folder: &Path, name: &str) -> Self {
        Self { anchor: folder.join(format!("{name}.otf2")) }
    }

    fn of_anchor(anchor: PathBuf) -> Result<Self, TraceError> {
        if has_extension(&anchor, "otf2") {
            return Ok(Self { anchor });
        }
        if has_extension(&anchor, "otf") {
            return Err(otf1(&anchor));
        }
        check_kind(&anchor)?;
        Err(not_an_anchor(&anchor, "its extension is not `.otf2`"))
    }

    /// The anchor file.
    pub(crate) fn anchor(&self) -> &Path {
        &self.anchor
    }

    /// The definitions of the archive.
    pub(crate) fn definitions(&self) -> PathBuf {
        self.anchor.with_extension("def")
    }

    /// The folder with the files of the locations.
    pub(crate) fn folder(&self) -> PathBuf {
        self.anchor.with_extension("")
    }

    /// The events of a location.
    pub(crate) fn events_of(&self, location: u64) -> PathBuf {
        self.folder().join(format!("{location}.evt"))
    }

    /// The definitions of a location.
    pub(crate) fn definitions_of(&self, location: u64) -> PathBuf {
        self.folder().join(format!("{location}.def"))
    }

    /// All files, sorted by their names with `archive` as the name of the archive.
    pub(crate) fn list(&self) -> Result<Vec<InputPath>, TraceError> {
        let definitions = self.definitions();
        if !definitions.is_file() {
            return Err(missing(&definitions, None));
        }
        let mut files = vec![
            InputPath::named(&self.anchor, "archive.otf2"),
            InputPath::named(definitions, "archive.def"),
        ];
        for path in self.local_files()? {
            let name = format!("archive/{}", path.file_name().unwrap_or_default().display());
            files.push(InputPath::named(path, name));
        }
        files.sort_by(|one, other| one.name().cmp(&other.name()));
        Ok(files)
    }

    /// Definitions and events of locations, unordered.
    pub(crate) fn local_files(&self) -> Result<Vec<PathBuf>, TraceError> {
        let folder = self.folder();
        if !folder.is_dir() {
            return Ok(Vec::new());
        }
        let mut files = entries(&folder)?;
        files.retain(|file| has_extension(file, "def") || has_extension(file, "evt"));
        Ok(files)
    }
}

/// The anchor files in a folder, or else in its subfolders.
pub(super) fn anchors(folder: &Path) -> Result<Vec<PathBuf>, TraceError> {
    files_in(folder, "otf2", DEEPEST)
}

fn otf1(path: &Path) -> TraceError {
    let help = "use the stage `trace/otf`; the extension of OTF2 anchor files is `.otf2`";
    TraceError::of(path, "is an OTF 1 archive", help)
}

fn not_an_anchor(path: &Path, reason: &str) -> TraceError {
    let help = "the anchor file has the extension `.otf2` and is in one folder with a `.def` file and a folder of the same name";
    TraceError::of(path, format!("is not the anchor file of an OTF2 archive: {reason}"), help)
}

/// A file of an archive is missing.
pub(super) fn missing(path: &Path, location: Option<u64>) -> TraceError {
    let help = "an archive consists of the anchor file, NAME.def and the folder NAME: copy all of them";
    TraceError::of(path, format!("is missing{}", of_location(location)), help)
}

/// The definitions of an archive are inconsistent.
pub(super) fn contradiction(path: &Path, what: &str) -> TraceError {
    let problem = format!("inconsistent definitions in `{}`: {what}", path.display());
    let help =
        "check the archive with `otf2-print`; if it fails too, report it to the authors of the tracing tool";
    TraceError::refused(problem, help)
}

/// Maximum size of an anchor file, which is read at once.
const MOST_BYTES: u64 = 64 << 20;

/// Maximum number of properties; libotf2 compares each with all others.
const MOST_PROPERTIES: u32 = 4096;

/// Latest version of the trace format that libotf2 3.0 supports.
const LATEST_TRACE_FORMAT: u8 = 2;

/// First byte of every file of an archive.
const HEADER: u8 = 3;
/// Mark of the end of a file.
const END_OF_FILE: u8 = 2;

/// Contents of an anchor file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Anchor {
    /// Size of the chunks of event files.
    pub(super) event_chunk: u64,
    /// Size of the chunks of definition files.
    pub(super) definition_chunk: u64,
    /// Number of definitions of the archive.
    pub(super) definitions: u64,
    /// Name of the program that recorded the archive.
    pub(super) creator: String,
}

/// Reason for rejecting an anchor file.
enum Refusal {
    Not(&'static str),
    Unsupported(&'static str),
    Flawed(Flaw),
}

impl From<Flaw> for Refusal {
    fn from(flaw: Flaw) -> Self {
        Self::Flawed(flaw)
    }
}

impl Anchor {
    /// Reads and validates the complete anchor file: libotf2 continues with partial data when it is damaged.
    pub(super) fn read(path: &Path) -> Result<Self, TraceError> {
        let mut bytes = Vec::new();
        let file = open_input(path).and_then(|file| file.take(MOST_BYTES).read_to_end(&mut bytes));
        file.map_err(|source| TraceError::unreadable(path, source))?;
        parse(&bytes).map_err(|refusal| match refusal {
            Refusal::Not(_) if is_otf1(&bytes) => otf1(path),
            Refusal::Not(reason) => not_an_anchor(path, reason),
            Refusal::Unsupported(what) => TraceError::of(path, format!("{what}, which is not supported"), ""),
            Refusal::Flawed(Flaw { at, what }) => {
                TraceError::Damaged { path: path.to_owned(), location: None, offset: at as u64, what }
            }
        })
    }
}

fn parse(bytes: &[u8]) -> Result<Anchor, Refusal> {
    let mut cursor = start(bytes)?;
    let format = cursor.byte()?;
    if format == 0 {
        cursor.at -= 1;
        return Err(cursor.flaw("version zero of the anchor file").into());
    }
    if cursor.byte()? > LATEST_TRACE_FORMAT {
        return Err(Refusal::Unsupported("uses a later version of the format"));
    }
    // Version of the library.
    cursor.take(3)?;
    let event_chunk = chunk_size(&mut cursor)?;
    let definition_chunk = chunk_size(&mut cursor)?;
    match cursor.byte()? {
        1 => {}
        2 => return Err(Refusal::Unsupported("stores its events in SIONlib files")),
        _ => return Err(Flaw { at: cursor.at - 1, what: "unknown kind of files" }.into()),
    }
    match cursor.byte()? {
        1 => {}
        2 => return Err(Refusal::Unsupported("is compressed with zlib")),
        _ => return Err(Flaw { at: cursor.at - 1, what: "unknown compression" }.into()),
    }
    // Number of locations; ignored in favour of the definitions.
    cursor.word()?;
    let definitions = cursor.word()?;
    let mut texts = cursor;
    end(cursor, format)?;
    // Machine, creator, description.
    texts.text()?;
    let creator = String::from_utf8_lossy(texts.text()?).into_owned();
    Ok(Anchor { event_chunk, definition_chunk, definitions, creator })
}

/// Validates the start of an anchor file and determines the byte order.
fn start(bytes: &[u8]) -> Result<Cursor<'_>, Refusal> {
    let mut cursor = Cursor::new(bytes);
    match bytes {
        [] => return Err(Refusal::Not("it is empty")),
        [HEADER, 0x42, ..] => {}
        [HEADER, 0x23, ..] => cursor.big_endian = true,
        _ => return Err(Refusal::Not("it does not start like one")),
    }
    cursor.at = 2;
    match cursor.text() {
        Ok(b"OTF2") => Ok(cursor),
        _ if b"OTF2".starts_with(&bytes[2..]) => {
            Err(Flaw { at: bytes.len(), what: "the file is truncated" }.into())
        }
        _ => Err(Refusal::Not("it does not start like one")),
    }
}

fn chunk_size(cursor: &mut Cursor<'_>) -> Result<u64, Flaw> {
    let start = cursor.at;
    let size = cursor.word()?;
    let valid = (OTF2_CHUNK_SIZE_MIN..=OTF2_CHUNK_SIZE_MAX).contains(&size);
    if valid { Ok(size) } else { Err(Flaw { at: start, what: "invalid chunk size" }) }
}

/// Validates the rest after the numbers: texts, then additions of later versions of the format.
fn end(mut cursor: Cursor<'_>, format: u8) -> Result<(), Flaw> {
    // Machine, creator, description.
    for _ in 0..3 {
        cursor.text()?;
    }
    if format >= 2 {
        let properties = cursor.half_word()?;
        if properties > MOST_PROPERTIES {
            cursor.at -= 4;
            return Err(cursor.flaw("the anchor file declares too many properties"));
        }
        for _ in 0..properties {
            cursor.text()?;
            cursor.text()?;
        }
        // The identifier.
        cursor.word()?;
    }
    if format >= 3 {
        // Number of snapshots and of thumbnails.
        cursor.word()?;
    }
    if format == 3 && cursor.byte()? != END_OF_FILE {
        cursor.at -= 1;
        return Err(cursor.flaw("missing end-of-file mark"));
    }
    Ok(())
}

/// An OTF 1 control file lists its streams: `1:1`, `2:a,b`, in hexadecimal.
fn is_otf1(bytes: &[u8]) -> bool {
    let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let mut parts = line.splitn(2, |byte| *byte == b':');
    let hexadecimal = |part: Option<&[u8]>, also: &[u8]| {
        part.is_some_and(|part| {
            !part.is_empty() && part.iter().all(|byte| byte.is_ascii_hexdigit() || also.contains(byte))
        })
    };
    hexadecimal(parts.next(), b"") && hexadecimal(parts.next(), b",\r")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touch(folder: &Path, names: &[&str]) {
        for name in names {
            let path = folder.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
    }

    fn names(path: &Path) -> Vec<String> {
        let files = ArchiveFiles::find(path).unwrap().list().unwrap();
        files.iter().map(|file| file.name().into_owned()).collect()
    }

    #[test]
    fn files_are_named_without_the_name_of_the_archive() {
        let folder = tempfile::tempdir().unwrap();
        touch(
            folder.path(),
            &["lu.8.otf2", "lu.8.def", "lu.8/12.evt", "lu.8/0.evt", "lu.8/0.def", "lu.8/0.snap"],
        );
        let expected = ["archive.def", "archive.otf2", "archive/0.def", "archive/0.evt", "archive/12.evt"];
        assert_eq!(names(&folder.path().join("lu.8.otf2")), expected);
        assert_eq!(names(folder.path()), expected);
    }

    #[test]
    fn an_archive_may_lack_local_files_but_not_definitions() {
        let folder = tempfile::tempdir().unwrap();
        touch(folder.path(), &["a.otf2"]);
        let missing = ArchiveFiles::find(folder.path()).unwrap().list().unwrap_err();
        assert!(missing.to_string().contains("a.def` is missing"));
        touch(folder.path(), &["a.def"]);
        assert_eq!(names(folder.path()), ["archive.def", "archive.otf2"]);
    }

    #[test]
    fn folders_must_contain_exactly_one_anchor() {
        let folder = tempfile::tempdir().unwrap();
        let error = || ArchiveFiles::find(folder.path()).unwrap_err().to_string();
        assert!(error().ends_with("does not contain anchor files"));
        touch(folder.path(), &["b.otf2", "a.otf2"]);
        assert!(error().ends_with("contains several anchor files: a.otf2, b.otf2"));
    }

    #[test]
    fn the_only_archive_below_a_folder_is_found() {
        let folder = tempfile::tempdir().unwrap();
        touch(
            folder.path(),
            &["lu_trace/eztrace_log.otf2", "lu_trace/eztrace_log.def", "lu_trace/eztrace_log/0.evt"],
        );
        let expected = ["archive.def", "archive.otf2", "archive/0.evt"];
        assert_eq!(names(folder.path()), expected);
        touch(folder.path(), &["cg_trace/eztrace_log.otf2"]);
        let error = ArchiveFiles::find(folder.path()).unwrap_err().to_string();
        let several = "contains several anchor files: cg_trace/eztrace_log.otf2, lu_trace/eztrace_log.otf2";
        assert!(error.ends_with(several), "{error}");
    }

    #[test]
    fn other_files_are_rejected() {
        let folder = tempfile::tempdir().unwrap();
        touch(folder.path(), &["a.otf", "a.def"]);
        let error = |name: &str| ArchiveFiles::find(&folder.path().join(name)).unwrap_err();
        assert!(error("a.otf").to_string().ends_with("is an OTF 1 archive"));
        assert!(error("a.def").to_string().contains("is not the anchor file of an OTF2 archive"));
        assert!(matches!(error("a.otf2"), TraceError::Read { .. }));
    }

    const SAMPLE: &str =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../sample-traces/rows-columns-16/eztrace_log.otf2");

    fn refused(bytes: &[u8]) -> String {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        let error = Anchor::read(file.path()).unwrap_err().to_string();
        error.replace(&file.path().display().to_string(), "FILE")
    }

    #[test]
    fn a_sample_is_read() {
        let anchor = Anchor::read(Path::new(SAMPLE)).unwrap();
        assert_eq!(
            anchor,
            Anchor {
                event_chunk: 16 << 20,
                definition_chunk: 16 << 20,
                definitions: 696,
                creator: String::new()
            }
        );
    }

    #[test]
    fn truncation_is_detected_at_every_length() {
        let bytes = std::fs::read(SAMPLE).unwrap();
        // The last byte marks the end of a buffer and is not read.
        for length in 0..bytes.len() - 2 {
            let error = refused(&bytes[..length]);
            assert!(error.contains("damaged") || error.contains("not the anchor file"), "{length}: {error}");
        }
    }

    #[test]
    fn other_files_are_named() {
        assert_eq!(refused(b"1:1\n2:2\n"), "`FILE` is an OTF 1 archive");
        assert!(refused(b"").ends_with("it is empty"));
        assert!(refused(b"\x7fELF").ends_with("it does not start like one"));
        assert!(refused(b"\x03BOTF1\0").ends_with("it does not start like one"));
    }

    #[test]
    fn unsupported_features_are_named() {
        let mut bytes = std::fs::read(SAMPLE).unwrap();
        bytes[8] = 3;
        assert_eq!(refused(&bytes), "`FILE` uses a later version of the format, which is not supported");
        bytes[8] = 2;
        bytes[29] = 2;
        assert_eq!(refused(&bytes), "`FILE` is compressed with zlib, which is not supported");
        bytes[28] = 2;
        assert_eq!(refused(&bytes), "`FILE` stores its events in SIONlib files, which is not supported");
        bytes[28] = 9;
        assert_eq!(refused(&bytes), "`FILE` is damaged at byte 28: unknown kind of files");
    }

    #[test]
    fn invalid_chunk_sizes_are_rejected() {
        let mut bytes = std::fs::read(SAMPLE).unwrap();
        bytes[12..20].copy_from_slice(&u64::MAX.to_le_bytes());
        assert_eq!(refused(&bytes), "`FILE` is damaged at byte 12: invalid chunk size");
    }
}
