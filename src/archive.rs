//! A run as one file that another machine can verify and import: an RO-Crate in a zip archive.
//!
//! Zip, because any program on any system opens it, one file can be read without the others, every file has a checksum,
//! sizes beyond four gigabytes have a form, and the packers and registries of such crates expect it. A tar archive would have to be
//! read from its beginning for every file, and has no checksum of contents.
//!
//! ```text
//! ro-crate-metadata.json          what everything is, with sizes and BLAKE3 (RO-Crate 1.1, Process Run Crate 0.5)
//! pipeline/…/NAME.toml            the pipeline, and the files that it names relative to itself, where it names them
//! working/…                       files that the command line named relative to the working directory
//! absolute/…                      files that were named by absolute paths
//! NAME.lock                       the lock file
//! request.json                    parameters, and where the pipeline is in this archive
//! results.jsonl                   the result of every cell, as the store knows it
//! artifacts/DIGEST/…              the artifacts
//! journal.jsonl  report.html      of the run, if the store still has them
//! ```
//!
//! Files are in the order of their names, the metadata last, with the same time and permissions, Parquet stored and text
//! deflated, so that the same run gives the same bytes. The comment of the archive ends in the BLAKE3 of all bytes before
//! it: whatever byte changes is found. A hash is not a signature: it does not prove who sent the archive.

mod export;
mod imported;
mod inputs;
mod metadata;
mod read;
mod unpack;

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use hopmap_durable::DurableError;
use miette::Diagnostic;

use crate::engine::{RunReport, RunSummary};
use crate::lock::{Lock, Request};
use crate::pipeline::Pipeline;
pub(crate) use export::export;
pub(crate) use imported::{ImportedProject, is_reserved};
pub(crate) use read::{Archive, Checked};

/// Names of files in an archive.
pub(crate) const METADATA: &str = "ro-crate-metadata.json";
const REQUEST: &str = "request.json";
const RESULTS: &str = "results.jsonl";
const ARTIFACTS: &str = "artifacts";
const JOURNAL: &str = "journal.jsonl";
const REPORT: &str = "report.html";

/// A run that is going to be packed.
pub(crate) struct Export<'a> {
    /// What was asked for.
    pub(crate) request: &'a Request,
    /// The pipeline.
    pub(crate) pipeline: &'a Pipeline,
    /// The results in the store: of every cell.
    pub(crate) report: &'a RunReport,
    /// What they were made of.
    pub(crate) lock: &'a Lock,
    /// The run; none if the store has forgotten it.
    pub(crate) run: Option<&'a RunSummary>,
    /// Whether the report in the store is of this run.
    pub(crate) has_report: bool,
    /// Whether to pack the input files, and not only their hashes.
    pub(crate) inputs: bool,
    /// The licence of the data, if it is known.
    pub(crate) license: Option<&'a str>,
}

/// Whether a path is an archive, was one before it was damaged, or has the name of one.
pub(crate) fn looks_like_one(path: &Path) -> bool {
    let is_named_so = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("zip"));
    is_named_so || (path.is_file() && begins_so(path))
}

fn begins_so(path: &Path) -> bool {
    let mut first = [0; 4];
    let read = hopmap_model::open_input(path).and_then(|mut file| file.read_exact(&mut first));
    read.is_ok() && first == *b"PK\x03\x04"
}

/// Why a name must not be unpacked; none if it may.
fn flaw(name: &str) -> Option<&'static str> {
    const LONGEST: usize = 4096;
    if name.is_empty() || name.len() > LONGEST {
        return Some("its name is empty or too long");
    }
    if name.starts_with('/') || name.contains('\\') || name.as_bytes().get(1) == Some(&b':') {
        return Some("its path is absolute, or written for another system");
    }
    if name.chars().any(char::is_control) {
        return Some("its name has control characters");
    }
    let parts = name.strip_suffix('/').unwrap_or(name).split('/');
    for part in parts {
        match part {
            ".." => return Some("its path points outside of the archive"),
            "" | "." => return Some("its path is not plain"),
            part if part.len() > 255 => return Some("its name is too long"),
            _ => {}
        }
    }
    None
}

/// A name as a relative IRI: everything but letters, digits and a few marks percent-encoded.
fn encoded(name: &str) -> String {
    let mut text = String::new();
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' | b'/' => {
                text.push(byte as char);
            }
            byte => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

/// The inverse of [`encoded`]; `None` for any other text.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digits = [rest.next()?, rest.next()?];
                u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

/// Text before the digits at the end of an archive.
const WORDS: &str = "hopmap archive; BLAKE3 of everything before these digits: ";
const DIGITS: usize = 64;
/// With these bytes the last part of an archive begins; 18 more follow, of which the last two are the length of the comment.
const END: &[u8] = b"PK\x05\x06";

/// The comment of an archive that has yet to be sealed.
fn comment() -> String {
    format!("{WORDS}{}", "0".repeat(DIGITS))
}

/// What the end of an archive says of the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Seal {
    /// Every byte is as it was written.
    Whole,
    /// Some byte is not.
    Broken,
    /// There is none: another program packed the files.
    None,
}

/// Seals an archive that ends in [`comment`]; gives the digits.
fn seal(file: &mut File) -> std::io::Result<String> {
    let length = file.seek(SeekFrom::End(0))?;
    let digits = hash(file, length - DIGITS as u64)?;
    file.seek(SeekFrom::Start(length - DIGITS as u64))?;
    file.write_all(digits.as_bytes())?;
    Ok(digits)
}

/// Holds an archive against its seal.
fn check(file: &mut File) -> std::io::Result<Seal> {
    let length = file.seek(SeekFrom::End(0))?;
    let mut text = vec![0; (WORDS.len() + DIGITS).min(usize::try_from(length).unwrap_or(usize::MAX))];
    file.seek(SeekFrom::End(-(text.len().cast_signed() as i64)))?;
    file.read_exact(&mut text)?;
    if !text.starts_with(WORDS.as_bytes()) || text.len() < WORDS.len() + DIGITS {
        // An archive of another program ends in its directory, without a comment. Anything else was sealed once.
        let end = text.len().saturating_sub(END.len() + 18);
        let is_bare = text[end..].starts_with(END) && text.ends_with(&[0, 0]);
        return Ok(if is_bare { Seal::None } else { Seal::Broken });
    }
    let digits = &text[WORDS.len()..];
    let found = hash(file, length - DIGITS as u64)?;
    Ok(if found.as_bytes() == digits { Seal::Whole } else { Seal::Broken })
}

/// Whether an archive is at a path, each byte as it was written.
pub(crate) fn is_whole(path: &Path) -> bool {
    File::open(path).and_then(|mut file| check(&mut file)).is_ok_and(|seal| seal == Seal::Whole)
}

fn hash(file: &mut File, length: u64) -> std::io::Result<String> {
    file.seek(SeekFrom::Start(0))?;
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(Read::by_ref(file).take(length))?;
    Ok(hasher.finalize().to_hex().to_string())
}

/// An archive that cannot be read or written.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub(crate) enum ArchiveError {
    /// An operation of the system failed.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Durable(#[from] DurableError),
    /// There is no such file.
    #[error("the archive {} does not exist", .0.display())]
    #[diagnostic(code(archive::missing), help("check the path; `hopmap export` writes an archive"))]
    Missing(PathBuf),
    /// It is not an archive, or its directory is damaged.
    #[error("{} is not an archive, or is damaged: {place}: {reason}", path.display())]
    #[diagnostic(
        code(archive::damaged),
        help("get the archive again; damage cannot be distinguished from forgery")
    )]
    Damaged {
        /// The archive.
        path: PathBuf,
        /// Where in it.
        place: String,
        /// What is wrong.
        reason: String,
    },
    /// It has something in it that no export writes and that could do harm.
    #[error("{} is refused: {place}: {reason}", path.display())]
    #[diagnostic(
        code(archive::refused),
        help("`hopmap export` never writes this; do not unpack the archive with other programs either")
    )]
    Refused {
        /// The archive.
        path: PathBuf,
        /// Which entry of it.
        place: String,
        /// What is wrong with it.
        reason: String,
    },
    /// It is an archive of something else.
    #[error("{} was not written by `hopmap export`: {reason}", path.display())]
    #[diagnostic(code(archive::foreign), help("`hopmap export` packs a run"))]
    Foreign {
        /// The archive.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// It was written without the input files.
    #[error("{} has no input files, so nothing can be recomputed", .0.display())]
    #[diagnostic(
        code(archive::no_inputs),
        help(
            "unpack it, put the files where `pipeline/` needs them, and run `hopmap verify` on the pipeline with --lock"
        )
    )]
    NoInputs(PathBuf),
    /// The folder of a project is not empty.
    #[error("{} is not an empty folder", .0.display())]
    #[diagnostic(
        code(archive::not_empty),
        help("name a folder that does not exist yet: `hopmap import ARCHIVE DIR`")
    )]
    NotEmpty(PathBuf),
    /// An artifact in the store is damaged.
    #[error("the artifact of `{cell}` is damaged: {} does not match its checksum", path.display())]
    #[diagnostic(
        code(archive::damaged_artifact),
        help(
            "delete the folder of the artifact, and `hopmap run` recomputes it; `hopmap verify` lists all damaged artifacts"
        )
    )]
    DamagedArtifact {
        /// The cell that gave it.
        cell: String,
        /// The file.
        path: PathBuf,
    },
    /// A file changed while it was packed.
    #[error("{0} changed since the run, or while it was packed")]
    #[diagnostic(code(archive::changed), help("run the pipeline again, then export it"))]
    Changed(String),
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        for name in
            ["", "/etc/passwd", "../x", "a/../../x", "a//b", "./a", "a/.", "C:/x", "a\\b", "a\nb", "a/.."]
        {
            assert!(flaw(name).is_some(), "{name}");
        }
        for name in ["a", "a/b", "a.b/..c", "ä/ö ü"] {
            assert_eq!(flaw(name), None, "{name}");
        }
    }

    proptest! {
        #[test]
        fn a_name_comes_back_from_its_iri(name in ".{0,20}") {
            let text = encoded(&name);
            prop_assert!(text.is_ascii() && !text.contains(' '));
            prop_assert_eq!(decoded(&text), Some(name));
        }
    }
}
