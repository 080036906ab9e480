//! Writing an archive.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use hopmap_artifact::{DESCRIPTION, Folder, PROVENANCE};
use hopmap_durable::{DurableError, Staging, crash_point, sync_folder};
use hopmap_model::{InternalError, open_input};
use miette::Report;
use serde::{Deserialize, Serialize};
use zip::result::ZipError;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

use super::inputs::{self, Inputs};
use super::metadata::{self, About, Written};
use super::{ARTIFACTS, ArchiveError, Export, JOURNAL, METADATA, REPORT, REQUEST, RESULTS};
use crate::archive;
use crate::engine::{OutputRecord, ResultRecord, Store};

/// An archive that was written.
#[derive(Debug, Serialize)]
pub(crate) struct Exported {
    /// Files in it.
    pub(crate) files: usize,
    /// Its size.
    pub(crate) bytes: u64,
    /// The digits of its seal.
    pub(crate) blake3: String,
    /// What is worth knowing about it.
    pub(crate) notes: Vec<String>,
}

/// What an archive says of how to run its pipeline again.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct PackedRequest {
    /// Version of this form.
    pub(super) format: u32,
    /// Version of hopmap.
    pub(super) hopmap: String,
    /// Name of the pipeline.
    pub(super) name: String,
    /// The pipeline file in the archive.
    pub(super) pipeline: String,
    /// The folder in the archive in place of that of the pipeline file.
    pub(super) folder: String,
    /// The folder in place of the working directory.
    pub(super) working: String,
    /// The lock file in the archive.
    pub(super) lock: String,
    /// Parameters by name.
    pub(super) parameters: Vec<(String, String)>,
    /// Whether the input files are in it.
    pub(super) inputs: bool,
}

/// The result of a cell.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct PackedResult {
    pub(super) cell: String,
    pub(super) result: ResultRecord,
}

pub(super) const FORMAT: u32 = 1;

/// A file that goes into the archive.
struct Part {
    source: Source,
    about: About,
    /// The hash that it should have.
    blake3: Option<String>,
}

enum Source {
    File(PathBuf),
    /// A file of the artifact of a cell.
    Stored {
        path: PathBuf,
        cell: String,
    },
    Text(String),
}

impl Source {
    /// What is wrong if it has other bytes than it should have.
    fn changed(self, name: String) -> ArchiveError {
        match self {
            Self::Stored { path, cell } => ArchiveError::DamagedArtifact { cell, path },
            Self::File(_) | Self::Text(_) => ArchiveError::Changed(name),
        }
    }
}

/// Writes an archive atomically.
pub(crate) fn export(place: &Path, export: &Export<'_>, store: &mut Store) -> Result<Exported, Report> {
    let inputs = inputs::collect(export.request, export.pipeline, store, export.report)?;
    let note = "is not below any path that a parameter names: only its hash is in the archive";
    let notes = inputs.outside.keys().map(|name| format!("{name} {note}")).collect();
    let parts = parts(export, &inputs, store)?;
    let parent = place.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let staging = Staging::beside(place)?;
    let beside = staging.path().join("archive");
    let (files, blake3) = write(&beside, parts, export, &inputs)?;
    let bytes = std::fs::metadata(&beside).map_err(DurableError::io("read", &beside))?.len();
    crash_point("archive.written", &beside);
    std::fs::rename(&beside, place).map_err(DurableError::io("write", place))?;
    crash_point("archive.renamed", place);
    sync_folder(parent)?;
    Ok(Exported { files, bytes, blake3, notes })
}

fn parts(export: &Export<'_>, inputs: &Inputs, store: &Store) -> Result<BTreeMap<String, Part>, Report> {
    let mut parts = BTreeMap::new();
    let text = |text: String, about: About| Part { source: Source::Text(text), about, blake3: None };
    let file = |path: PathBuf, about: About| Part { source: Source::File(path), about, blake3: None };
    let file_name = export.request.file_name();
    let pipeline = format!("{}/{file_name}", inputs.folder);
    let stem = Path::new(&file_name).file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let lock = format!("{stem}.lock");
    if export.inputs {
        for (name, file) in &inputs.files {
            let (source, blake3) = (Source::File(file.path.clone()), Some(file.blake3.clone()));
            parts.insert(name.clone(), Part { source, about: About::Input, blake3 });
        }
    }
    let mut results = Vec::new();
    for (cell, settled) in export.pipeline.cells.iter().zip(&export.report.cells) {
        let result = settled.key.as_deref().and_then(|key| store.result(key));
        let Some(result) = result.filter(|_| !settled.outputs.is_empty() || settled.because_of.is_none())
        else {
            continue;
        };
        let packed = PackedResult { cell: cell.id.clone(), result: result.clone() };
        results.push(serde_json::to_string(&packed).map_err(|error| unwritable(&error))?);
        for record in result.outputs.values() {
            parts.extend(artifact(&cell.id, record, &store.artifact(&record.digest))?);
        }
    }
    results.push(String::new());
    parts.insert(RESULTS.to_owned(), text(results.join("\n"), About::Results));
    if let Some(run) = export.run {
        let journal = store.runs().join(&run.run).join("journal.jsonl");
        parts.insert(JOURNAL.to_owned(), file(journal, About::Journal));
        let report = crate::report::place(store, export.pipeline);
        if export.has_report && report.is_file() {
            parts.insert(REPORT.to_owned(), file(report, About::Report));
        }
    }
    let request = PackedRequest {
        format: FORMAT,
        hopmap: env!("CARGO_PKG_VERSION").to_owned(),
        name: export.pipeline.name.clone(),
        pipeline: pipeline.clone(),
        folder: inputs.folder.clone(),
        working: inputs.working.clone(),
        lock: lock.clone(),
        parameters: export.request.parameters.clone(),
        inputs: export.inputs,
    };
    let request = serde_json::to_string_pretty(&request).map_err(|error| unwritable(&error))?;
    parts.insert(REQUEST.to_owned(), text(format!("{request}\n"), About::Request));
    parts.insert(lock, text(export.lock.to_string(), About::Lock));
    parts.insert(pipeline, text(export.request.text.clone(), About::Pipeline));
    Ok(parts)
}

fn unwritable(error: &serde_json::Error) -> InternalError {
    InternalError::new(format!("a part of the archive cannot be written as JSON: {error}"))
}

/// The files of an artifact, each with the hash that it had when it was made; what says how it was made has none.
fn artifact(cell: &str, record: &OutputRecord, folder: &Path) -> Result<Vec<(String, Part)>, ArchiveError> {
    let described = Folder::open(folder).ok().filter(|described| described.digest() == record.digest);
    let described = described.ok_or_else(|| ArchiveError::DamagedArtifact {
        cell: cell.to_owned(),
        path: folder.join(DESCRIPTION),
    })?;
    let mut hashes: BTreeMap<PathBuf, String> =
        described.hashes().map(|(path, blake3)| (path, blake3.to_owned())).collect();
    hashes.insert(folder.join(DESCRIPTION), record.digest.clone());
    let provenance = folder.join(PROVENANCE).exists().then(|| PROVENANCE.to_owned());
    let names = record.files.iter().map(|(name, _)| name.clone()).chain(provenance);
    let part = |name: String| {
        let path = folder.join(&name);
        let blake3 = hashes.remove(&path);
        let about = About::Artifact { digest: record.digest.clone() };
        let source = Source::Stored { path, cell: cell.to_owned() };
        (format!("{ARTIFACTS}/{}/{name}", record.digest), Part { source, about, blake3 })
    };
    Ok(names.map(part).collect())
}

/// Writes all parts in the order of their names, the metadata, and the seal.
fn write(
    path: &Path,
    parts: BTreeMap<String, Part>,
    export: &Export<'_>,
    inputs: &Inputs,
) -> Result<(usize, String), Report> {
    let create = || File::options().read(true).write(true).create_new(true).open(path);
    let file = create().map_err(DurableError::io("create", path))?;
    let failed = |error: ZipError| DurableError::io("write", path)(error.into());
    let mut zip = ZipWriter::new(BufWriter::new(file));
    let mut written = Vec::new();
    for (name, Part { source, about, blake3 }) in parts {
        let (bytes, found) = match &source {
            Source::Text(text) => add(&mut zip, &name, text.len() as u64, &mut text.as_bytes()),
            Source::File(path) | Source::Stored { path, .. } => add_file(&mut zip, &name, path),
        }?;
        if blake3.is_some_and(|blake3| blake3 != found) {
            return Err(source.changed(name).into());
        }
        written.push(Written { name, bytes, blake3: found, about });
    }
    let count = written.len() + 1;
    let text = metadata::describe(export, inputs, &written);
    add(&mut zip, METADATA, text.len() as u64, &mut text.as_bytes())?;
    zip.set_comment(archive::comment()).map_err(failed)?;
    let writer = zip.finish().map_err(failed)?;
    let io = DurableError::io("write", path);
    let mut file = writer.into_inner().map_err(|error| io(error.into_error()))?;
    let digits = archive::seal(&mut file).and_then(|digits| file.sync_all().map(|()| digits));
    Ok((count, digits.map_err(DurableError::io("write", path))?))
}

type Archive = ZipWriter<BufWriter<File>>;

fn add_file(zip: &mut Archive, name: &str, path: &Path) -> Result<(u64, String), Report> {
    let mut file = open_input(path).map_err(DurableError::io("read", path))?;
    let size = file.metadata().map_err(DurableError::io("read", path))?.len();
    add(zip, name, size, &mut file)
}

/// Adds a file piece by piece; gives its size and its BLAKE3.
fn add(zip: &mut Archive, name: &str, size: u64, source: &mut dyn Read) -> Result<(u64, String), Report> {
    const LARGE: u64 = 0xFFF0_0000;
    let unread = |error| DurableError::io("read", Path::new(name))(error);
    let unwritten = |error| DurableError::io("pack", Path::new(name))(error);
    let mut buffer = vec![0; 1 << 16];
    let mut filled = fill(source, &mut buffer).map_err(unread)?;
    let method = match is_text(name, &buffer[..filled]) {
        true => CompressionMethod::Deflated,
        false => CompressionMethod::Stored,
    };
    let options = SimpleFileOptions::default()
        .compression_method(method)
        .last_modified_time(DateTime::default())
        .unix_permissions(0o644)
        .large_file(size >= LARGE);
    zip.start_file(name, options).map_err(|error| unwritten(error.into()))?;
    let mut hasher = blake3::Hasher::new();
    let mut bytes = 0;
    while filled > 0 {
        hasher.update(&buffer[..filled]);
        zip.write_all(&buffer[..filled]).map_err(unwritten)?;
        bytes += filled as u64;
        filled = fill(source, &mut buffer).map_err(unread)?;
    }
    match bytes == size {
        true => Ok((bytes, hasher.finalize().to_hex().to_string())),
        false => Err(ArchiveError::Changed(name.to_owned()).into()),
    }
}

/// Fills a buffer as far as there is something to read.
fn fill(source: &mut dyn Read, buffer: &mut [u8]) -> std::io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match source.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// Whether a file is text judged by its beginning: Parquet and traces are compressed already.
fn is_text(name: &str, beginning: &[u8]) -> bool {
    if name.ends_with(".parquet") || beginning.contains(&0) {
        return false;
    }
    match std::str::from_utf8(beginning) {
        Ok(_) => true,
        // The last letter may go on behind the beginning.
        Err(error) => error.error_len().is_none() && error.valid_up_to() + 4 > beginning.len(),
    }
}
