//! Reads an archive that may contain anything: harmful entries are rejected, and every fault is named.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::File;
use std::io::{BufReader, ErrorKind, Read};
use std::path::{Path, PathBuf};

use hopmap_artifact::{DESCRIPTION, Description, PROVENANCE};
use hopmap_durable::DurableError;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value as Json;
use zip::result::ZipError;
use zip::{CompressionMethod, ZipArchive};

use super::export::{FORMAT, PackedRequest, PackedResult};
use super::{ARTIFACTS, ArchiveError, METADATA, REQUEST, RESULTS, Seal, decoded, flaw, inputs};
use crate::archive;
use crate::engine::{Ending as ResultEnding, Key, ResultRecord};
use crate::lock::{Ending, Lock};

/// Deflate makes at most 1032 bytes of one, and a little more of very few.
const MOST_RATIO: u64 = 1032;
/// Maximum ratio of the sizes of all files and of the archive, unless they are small.
const MOST_GROWTH: u64 = 100;
const SMALL: u64 = 1 << 30;
/// Maximum size of texts that are read into memory: so much, and so much for every file in the archive, as metadata, results and lock
/// file have a part for each. Parsed, a text takes up to 140 times its size.
const MOST_TEXT: u64 = 4 << 20;
const MOST_TEXT_PER_FILE: u64 = 2 << 10;
/// Maximum number of marks between values in such a text. An object with one entry, of four marks, takes 700 bytes when parsed, so 64 MB
/// took 5.9 GB.
const MOST_MARKS: usize = 1 << 19;
const MOST_MARKS_PER_FILE: usize = 128;
const MOST_ENTRIES: usize = 10_000_000;

/// An archive whose directory has been looked through.
pub(crate) struct Archive {
    pub(super) path: PathBuf,
    pub(super) zip: ZipArchive<BufReader<File>>,
    pub(super) entries: BTreeMap<String, Entry>,
    seal: Seal,
}

/// A file in an archive.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    /// Its place in the directory.
    pub(super) index: usize,
    /// Its size, as the directory claims.
    pub(super) size: u64,
}

/// What is wrong with a file in an archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    /// The file.
    pub(crate) file: String,
    /// What is wrong with it.
    pub(crate) what: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.file, self.what)
    }
}

/// What came of checking an archive.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Checked {
    /// Files in it.
    pub(crate) files: usize,
    /// Artifacts in it.
    pub(crate) artifacts: usize,
    /// Bytes of all files.
    pub(crate) bytes: u64,
    /// What is wrong.
    pub(crate) findings: Vec<Finding>,
    /// What is worth knowing.
    pub(crate) notes: Vec<String>,
}

impl Checked {
    fn find(&mut self, file: &str, what: impl Into<String>) {
        self.findings.push(Finding { file: file.to_owned(), what: what.into() });
    }

    /// What was read of a file, unless that is what is wrong with it.
    fn noted<T>(&mut self, file: &str, read: Result<T, String>) -> Option<T> {
        read.map_err(|reason| self.find(file, reason)).ok()
    }
}

impl Archive {
    /// Opens an archive and refuses what could do harm. Nothing is unpacked.
    pub(crate) fn open(path: &Path) -> Result<Self, ArchiveError> {
        let read = |error| DurableError::io("read", path)(error);
        let mut file = hopmap_model::open_input(path).map_err(|error| match error.kind() {
            ErrorKind::NotFound => ArchiveError::Missing(path.into()),
            _ => read(error).into(),
        })?;
        let bytes = file.metadata().map_err(read)?.len();
        let seal = archive::check(&mut file).map_err(read)?;
        let damaged = |place: &str, error: &ZipError| damaged(path, place, error);
        let mut zip =
            ZipArchive::new(BufReader::new(file)).map_err(|error| damaged("its directory", &error))?;
        let entries = entries(path, &mut zip, bytes)?;
        Ok(Self { path: path.into(), zip, entries, seal })
    }

    /// Reads every byte of every file and holds it against the metadata, the artifacts and the lock file.
    pub(crate) fn check(&mut self) -> Result<Checked, ArchiveError> {
        let mut checked = Checked { files: self.entries.len(), ..Checked::default() };
        let claimed = self.claimed(&mut checked)?;
        let mut hashes: BTreeMap<String, String> = BTreeMap::new();
        for (name, Entry { index, size }) in self.entries.clone() {
            checked.bytes += size;
            match self.hash(index) {
                Ok(hash) => drop(hashes.insert(name, hash)),
                Err(reason) => checked.find(&name, reason),
            }
        }
        for (name, (bytes, blake3)) in &claimed {
            match (hashes.get(name), self.entries.get(name)) {
                (_, None) => checked.find(name, "is missing"),
                (Some(hash), Some(entry)) if blake3 != hash || *bytes != entry.size => {
                    checked.find(name, "does not match its size or checksum in the metadata");
                }
                _ => {}
            }
        }
        for name in hashes.keys().filter(|name| *name != METADATA && !claimed.contains_key(*name)) {
            checked.find(name, "is not listed in the metadata");
        }
        self.check_artifacts(&hashes, &mut checked);
        if checked.findings.is_empty() {
            self.check_lock(&hashes, &mut checked)?;
        }
        match self.seal {
            Seal::Broken if checked.findings.is_empty() => {
                let what = "the files are intact, but bytes between them have changed since the export";
                checked.find("the archive itself", what);
            }
            Seal::None => checked.notes.push(
                "the archive has no seal, so another program packed it: files are checked, what is between them is not"
                    .to_owned(),
            ),
            _ => {}
        }
        Ok(checked)
    }

    /// What the metadata claim of every file.
    fn claimed(&mut self, checked: &mut Checked) -> Result<BTreeMap<String, Claim>, ArchiveError> {
        if !self.entries.contains_key(METADATA) {
            let reason = format!("it has no {METADATA}");
            return Err(ArchiveError::Foreign { path: self.path.clone(), reason });
        }
        let Some(metadata) = checked.noted(METADATA, self.json::<Json>(METADATA)) else {
            return Ok(BTreeMap::new());
        };
        let mut claimed = BTreeMap::new();
        for entity in metadata["@graph"].as_array().into_iter().flatten().filter(|entity| is_file(entity)) {
            let id = entity["@id"].as_str().unwrap_or_default();
            let Some(name) = decoded(id) else {
                checked.find(METADATA, format!("`{id}` is not the name of a file"));
                continue;
            };
            let size = entity["contentSize"].as_str().and_then(|size| size.parse().ok());
            match (size, entity["blake3"].as_str()) {
                (Some(bytes), Some(blake3)) => {
                    if claimed.insert(name.clone(), (bytes, blake3.to_owned())).is_some() {
                        checked.find(METADATA, format!("{name} is described twice"));
                    }
                }
                _ => checked.find(METADATA, format!("{name} has no size or no BLAKE3")),
            }
        }
        Ok(claimed)
    }

    /// BLAKE3 of a file; what is wrong if it cannot be read.
    fn hash(&mut self, index: usize) -> Result<String, String> {
        let mut hasher = blake3::Hasher::new();
        self.copy(index, &mut |bytes| {
            hasher.update(bytes);
            Ok(())
        })?;
        Ok(hasher.finalize().to_hex().to_string())
    }

    /// Reads a file piece by piece, and no more of it than its directory says.
    pub(super) fn copy(
        &mut self,
        index: usize,
        take: &mut dyn FnMut(&[u8]) -> std::io::Result<()>,
    ) -> Result<(), String> {
        let damaged = |error: &dyn fmt::Display| format!("its bytes are damaged: {error}");
        let mut file = self.zip.by_index(index).map_err(|error| damaged(&error))?;
        let mut left = file.size();
        let mut buffer = vec![0; 1 << 16];
        loop {
            match file.read(&mut buffer) {
                Ok(0) if left == 0 => return Ok(()),
                Ok(0) => return Err("it is shorter than its directory says".to_owned()),
                Ok(count) if count as u64 > left => {
                    return Err("it is longer than its directory says".to_owned());
                }
                Ok(count) => {
                    left -= count as u64;
                    take(&buffer[..count]).map_err(|error| error.to_string())?;
                }
                Err(error) => return Err(damaged(&error)),
            }
        }
    }

    /// A file as text; what is wrong if it cannot be read.
    pub(super) fn text(&mut self, name: &str) -> Result<String, String> {
        let entry = *self.entries.get(name).ok_or("is missing")?;
        if entry.size > MOST_TEXT + MOST_TEXT_PER_FILE * self.entries.len() as u64 {
            return Err(format!(
                "has {} bytes, too many for an archive of {} files",
                entry.size,
                self.entries.len()
            ));
        }
        let index = entry.index;
        let mut bytes = Vec::new();
        self.copy(index, &mut |piece| {
            bytes.extend_from_slice(piece);
            Ok(())
        })?;
        let marks = bytes.iter().filter(|&byte| b"{[,:=.".contains(byte)).count();
        if marks > MOST_MARKS + MOST_MARKS_PER_FILE * self.entries.len() {
            return Err(format!("has too many values for an archive of {} files", self.entries.len()));
        }
        String::from_utf8(bytes).map_err(|_| "is not text".to_owned())
    }

    fn json<T: DeserializeOwned>(&mut self, name: &str) -> Result<T, String> {
        serde_json::from_str(&self.text(name)?).map_err(|error| format!("is malformed: {error}"))
    }

    /// The digest of an artifact is the BLAKE3 of its `artifact.json`, which has those of its tables and files.
    fn check_artifacts(&mut self, hashes: &BTreeMap<String, String>, checked: &mut Checked) {
        let mut folders: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for name in self.entries.keys() {
            let inside = name.strip_prefix(ARTIFACTS).and_then(|rest| rest.strip_prefix('/'));
            if let Some((digest, name)) = inside.and_then(|inside| inside.split_once('/')) {
                folders.entry(digest.to_owned()).or_default().insert(name.to_owned());
            }
        }
        checked.artifacts = folders.len();
        for (digest, mut names) in folders {
            let full = |name: &str| format!("{ARTIFACTS}/{digest}/{name}");
            let place = full(DESCRIPTION);
            if hashes.get(&place) != Some(&digest) {
                checked.find(&place, "is missing, or its checksum differs from the name of its folder");
                continue;
            }
            let description = self.json::<Description>(&place);
            let Some(description) = checked.noted(&place, description) else { continue };
            names.remove(DESCRIPTION);
            names.remove(PROVENANCE);
            let tables = description.tables.iter();
            let tables = tables.map(|(name, table)| (format!("{name}.parquet"), &table.blake3));
            let files = description.files.iter().map(|(name, blake3)| (format!("files/{name}"), blake3));
            for (name, blake3) in tables.chain(files) {
                names.remove(&name);
                match hashes.get(&full(&name)) {
                    Some(hash) if hash == blake3 => {}
                    Some(_) => checked.find(&full(&name), "does not match its checksum in the artifact"),
                    None => checked.find(&full(&name), "is missing or damaged"),
                }
            }
            for name in names {
                checked.find(&full(&name), "is not listed in the artifact");
            }
        }
    }

    /// What was locked has to be what is packed.
    fn check_lock(
        &mut self,
        hashes: &BTreeMap<String, String>,
        checked: &mut Checked,
    ) -> Result<(), ArchiveError> {
        let request = self.request()?;
        let lock = self
            .text(&request.lock)
            .and_then(|text| Lock::parse(Path::new(&request.lock), &text).map_err(|error| error.to_string()));
        let Some(lock) = checked.noted(&request.lock, lock) else { return Ok(()) };
        if hashes.get(&request.pipeline) != Some(&lock.text) {
            checked.find(&request.pipeline, "is not the pipeline that the lock file is of");
        }
        let packed: BTreeSet<&String> =
            hashes.iter().filter(|(name, _)| inputs::is_input(name)).map(|(_, hash)| hash).collect();
        for cell in &lock.cells {
            for (port, digest) in &cell.outputs {
                if !hashes.contains_key(&format!("{ARTIFACTS}/{digest}/{DESCRIPTION}")) {
                    checked.find(&request.lock, format!("{port} of {} is not in the archive", cell.id()));
                }
            }
            for file in cell.files.iter().filter(|file| request.inputs && !packed.contains(&file.blake3)) {
                let note = format!("{} of {} is not in the archive", file.name, cell.id());
                checked.notes.push(note);
            }
        }
        let results = self.results();
        let Some(results) = checked.noted(RESULTS, results) else { return Ok(()) };
        let locked: BTreeMap<String, &BTreeMap<String, String>> =
            lock.cells.iter().map(|cell| (cell.id(), &cell.outputs)).collect();
        let mut described: BTreeMap<&String, Option<Description>> = BTreeMap::new();
        for (cell, port, record) in results.iter().flat_map(|packed| {
            packed.result.outputs.iter().map(move |(port, record)| (&packed.cell, port, record))
        }) {
            let place = format!("{ARTIFACTS}/{}/{DESCRIPTION}", record.digest);
            let found = described.entry(&record.digest).or_insert_with(|| self.json(&place).ok());
            let is_other = |found: &Description| found.kind != record.kind || found.metrics != record.metrics;
            let folder = format!("{ARTIFACTS}/{}/", record.digest);
            let sizes = |(name, size): &(String, u64)| {
                self.entries.get(&format!("{folder}{name}")).is_some_and(|entry| entry.size == *size)
            };
            let packed =
                self.entries.range(folder.clone()..).take_while(|(name, _)| name.starts_with(&folder));
            let packed = packed.filter(|(name, _)| name[folder.len()..] != *PROVENANCE).count();
            let has_all = record.files.len() == packed && record.files.iter().all(sizes);
            if found.as_ref().is_some_and(is_other) || !has_all {
                checked.find(RESULTS, format!("`{port}` of {cell} is not as its artifact says"));
            }
            let digest = locked.get(cell).and_then(|outputs| outputs.get(port));
            if digest.is_some_and(|digest| *digest != record.digest) {
                checked.find(RESULTS, format!("`{port}` of {cell} is not that of the lock file"));
            }
        }
        let mut with_results: BTreeMap<&String, &ResultRecord> = BTreeMap::new();
        for packed in &results {
            if with_results.insert(&packed.cell, &packed.result).is_some() {
                checked.find(RESULTS, format!("{} is there twice", packed.cell));
            }
        }
        for cell in lock.cells.iter().filter(|cell| cell.ending != Ending::Blocked) {
            let is_infeasible = cell.ending == Ending::Infeasible;
            match with_results.get(&cell.id()) {
                None => checked.find(RESULTS, format!("{} is missing", cell.id())),
                Some(result)
                    if (result.ending == ResultEnding::Infeasible) != is_infeasible
                        || result.timed != cell.timed
                        || !result.outputs.keys().eq(cell.outputs.keys()) =>
                {
                    checked.find(RESULTS, format!("{} did not end as the lock file says", cell.id()));
                }
                Some(_) => {}
            }
        }
        if !request.inputs {
            checked.notes.push("the archive has hashes of the input files, but not the files".to_owned());
        }
        Ok(())
    }

    /// What the archive says of how to run its pipeline again.
    pub(super) fn request(&mut self) -> Result<PackedRequest, ArchiveError> {
        let path = self.path.clone();
        let foreign = |reason: String| ArchiveError::Foreign { path: path.clone(), reason };
        if !self.entries.contains_key(REQUEST) {
            return Err(foreign(format!("it has no {REQUEST}")));
        }
        let text = self.text(REQUEST).map_err(|reason| foreign(format!("{REQUEST} {reason}")))?;
        let request: PackedRequest =
            serde_json::from_str(&text).map_err(|error| foreign(format!("{REQUEST}: {error}")))?;
        let mut names = BTreeSet::new();
        if let Some((name, _)) = request.parameters.iter().find(|(name, _)| !names.insert(name)) {
            return Err(foreign(format!("{REQUEST}: the parameter `{name}` is there twice")));
        }
        match request.format {
            FORMAT => Ok(request),
            other => Err(foreign(format!("it has format {other}, this hopmap reads format {FORMAT}"))),
        }
    }

    /// The results of its cells.
    pub(super) fn results(&mut self) -> Result<Vec<PackedResult>, String> {
        let text = self.text(RESULTS)?;
        let result = |line: &str| {
            let packed: PackedResult = serde_json::from_str(line).map_err(|error| error.to_string())?;
            match is_sound(&packed) {
                true => Ok(packed),
                false => Err(format!("the result of {} has names that are none", packed.cell)),
            }
        };
        text.lines().filter(|line| !line.is_empty()).map(result).collect()
    }
}

/// Whether keys, digests and names of files are what they should be: paths are made of them.
fn is_sound(packed: &PackedResult) -> bool {
    let is_digest = |text: &str| Key::parse(text).is_some();
    let outputs = packed.result.outputs.values();
    is_digest(&packed.result.key)
        && outputs.into_iter().all(|record| {
            is_digest(&record.digest) && record.files.iter().all(|(name, _)| flaw(name).is_none())
        })
}

/// Size and BLAKE3 of a file.
type Claim = (u64, String);

fn is_file(entity: &Json) -> bool {
    match &entity["@type"] {
        Json::String(kind) => kind == "File",
        Json::Array(kinds) => kinds.iter().any(|kind| kind == "File"),
        _ => false,
    }
}

fn damaged(path: &Path, place: &str, error: &ZipError) -> ArchiveError {
    let reason = error.to_string();
    ArchiveError::Damaged { path: path.into(), place: place.to_owned(), reason }
}

/// Every entry of the directory, looked at before anything is read.
fn entries(
    path: &Path,
    zip: &mut ZipArchive<BufReader<File>>,
    bytes: u64,
) -> Result<BTreeMap<String, Entry>, ArchiveError> {
    let refused = |place: String, reason: &str| ArchiveError::Refused {
        path: path.into(),
        place,
        reason: reason.to_owned(),
    };
    if zip.len() > MOST_ENTRIES {
        return Err(refused("its directory".into(), "it has more than ten million files"));
    }
    let mut entries = BTreeMap::new();
    let mut all = 0_u64;
    let mut ranges = Vec::new();
    for index in 0..zip.len() {
        let file = zip
            .by_index_raw(index)
            .map_err(|error| damaged(path, &format!("entry {index} of its directory"), &error))?;
        let raw = file.name_raw().to_vec();
        let at = file.header_start();
        let place = format!("{} at byte {at}", String::from_utf8_lossy(&raw).escape_debug());
        let name = String::from_utf8(raw).map_err(|_| refused(place.clone(), "its name is not UTF-8"))?;
        if let Some(reason) = flaw(&name) {
            return Err(refused(place, reason));
        }
        let is_plain = file.unix_mode().is_none_or(|mode| matches!(mode & 0o170_000, 0 | 0o100_000));
        if file.is_symlink() || !(is_plain || file.is_dir()) {
            return Err(refused(place, "it is a link or a special file"));
        }
        if file.encrypted() {
            return Err(refused(place, "it is encrypted"));
        }
        let (size, packed) = (file.size(), file.compressed_size());
        ranges.push((at, file.data_start().unwrap_or(at).saturating_add(packed)));
        let most = match file.compression() {
            CompressionMethod::Stored => packed,
            CompressionMethod::Deflated => packed.saturating_mul(MOST_RATIO).saturating_add(MOST_RATIO),
            _ => return Err(refused(place, "it is compressed in a way that is not known")),
        };
        if size > most || packed > bytes {
            return Err(refused(place, "it claims a size that cannot be"));
        }
        all = all.saturating_add(size);
        if all > SMALL && all > bytes.saturating_mul(MOST_GROWTH) {
            return Err(refused(place, "it would unpack to more than a hundred times its size"));
        }
        if file.is_dir() {
            if size > 0 {
                return Err(refused(place, "a folder with contents"));
            }
            continue;
        }
        if entries.insert(name, Entry { index, size }).is_some() {
            return Err(refused(place, "two files have this name"));
        }
    }
    match hidden(ranges, zip.offset(), zip.central_directory_start()) {
        None => Ok(entries),
        Some(at) => Err(refused(format!("byte {at}"), "files overlap, or the directory hides one")),
    }
}

/// Where files overlap, or something lies between them that can be a file that the directory does not show.
fn hidden(mut ranges: Vec<(u64, u64)>, start: u64, directory: u64) -> Option<u64> {
    /// What may follow a file: its checksum and sizes, if they were not known before.
    const DESCRIPTOR: u64 = 24;
    ranges.sort_unstable();
    let mut end = start;
    for (from, to) in ranges.into_iter().chain([(directory, directory)]) {
        if from < end || from - end > DESCRIPTOR {
            return Some(end);
        }
        end = to;
    }
    None
}
