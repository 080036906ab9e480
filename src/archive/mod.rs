//! A run as one file that another machine can verify: an RO-Crate in a zip archive.
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
//! it: whatever byte changes is found. A hash is no signature: who wants to be sure of the sender needs one from him.

mod export;
mod inputs;
mod metadata;
mod names;
mod read;

use std::io::Read;
use std::path::Path;

pub use export::{Exported, export};
pub use names::ArchiveError;
pub use read::{Archive, Checked, Finding, Unpacked};

use crate::engine::{RunReport, RunSummary};
use crate::lock::{Lock, Request};
use crate::pipeline::Pipeline;

/// Names of files in an archive.
pub(crate) const METADATA: &str = "ro-crate-metadata.json";
const REQUEST: &str = "request.json";
const RESULTS: &str = "results.jsonl";
const ARTIFACTS: &str = "artifacts";
const JOURNAL: &str = "journal.jsonl";
const REPORT: &str = "report.html";

/// A run that is going to be packed.
pub struct Export<'a> {
    /// What was asked for.
    pub request: &'a Request,
    /// The pipeline.
    pub pipeline: &'a Pipeline,
    /// The results in the store: of every cell.
    pub report: &'a RunReport,
    /// What they were made of.
    pub lock: &'a Lock,
    /// The run; none if the store has forgotten it.
    pub run: Option<&'a RunSummary>,
    /// Whether the report in the store is of this run.
    pub has_report: bool,
    /// Whether to pack the input files, and not only their hashes.
    pub inputs: bool,
    /// The licence of the data, if it is known.
    pub license: Option<&'a str>,
}

/// Whether a path is an archive, or was one before it was damaged.
#[must_use]
pub fn looks_like_one(path: &Path) -> bool {
    let is_named_so = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("zip"));
    path.is_file() && (is_named_so || begins_so(path))
}

fn begins_so(path: &Path) -> bool {
    let mut first = [0; 4];
    let read = hopmap_model::open_input(path).and_then(|mut file| file.read_exact(&mut first));
    read.is_ok() && first == *b"PK\x03\x04"
}
