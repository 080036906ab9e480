//! Giving a checkpoint back.
//!
//! A folder is written beside its place and renamed when everything in it was compared with what was added: every chunk with its hash,
//! every file with its digest.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::{BufWriter, ErrorKind, Seek, SeekFrom, Write};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use hopmap_durable::{DurableError, Staging, sync_folder, sync_tree};
use hopmap_model::Context;
use rayon::prelude::*;

use super::blocks::Blocks;
use super::digest::Digest;
use super::manifest::{Manifest, Recipe, Run};
use super::pack::{Hashes, Pack};
use super::{ReadLock, Store};
use crate::CheckpointError;
use crate::chunk::{ChunkHash, ChunkId};
use crate::tree::{self, EntryKind};

/// How a checkpoint is given back.
#[derive(Debug, Clone, Copy, Default)]
pub struct RestoreOptions {
    /// Whether to leave it to the system when the files are put on disk.
    pub unsynced: bool,
}

/// What was given back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    /// Number of the checkpoint.
    pub number: u32,
    /// How many files.
    pub files: usize,
    /// Their bytes.
    pub bytes: u64,
}

/// Bytes of blocks that are decoded ahead, however few of their chunks are needed.
const WINDOW: u64 = 4 << 20;

/// Bytes of decoded blocks that are kept, because other blocks are told by them or they are needed again.
const KEPT: usize = 24 << 20;

impl Store {
    /// Writes a checkpoint to a folder that is missing or empty.
    pub fn restore(
        &self,
        _lock: &ReadLock,
        number: u32,
        to: &Path,
        options: RestoreOptions,
        cx: &Context<'_>,
    ) -> Result<Restored, CheckpointError> {
        let manifest = self.manifest(number)?;
        refuse_what_is_there(to)?;
        self.refuse_other_packs(&manifest, None)?;
        let parent = match to.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let bytes = manifest.bytes();
        let staging = Staging::new(parent)?;
        refuse_too_much(staging.path(), &manifest)?;
        tree::plant(staging.path(), &manifest.entries)?;
        let reader = FileReader::new(self);
        for (&entry, recipe) in &manifest.recipes {
            let Some(entry) = manifest.entries.get(entry as usize) else { continue };
            let EntryKind::File { holes, .. } = &entry.kind else { continue };
            let path = staging.path().join(&entry.path);
            let mut sink = FileSink::open(&path, holes)?;
            reader.read(&entry.path, recipe, &mut sink, cx)?;
            sink.finish(!options.unsynced)?;
        }
        tree::finish(staging.path(), &manifest.entries)?;
        if !options.unsynced {
            sync_tree(staging.path())?;
        }
        // Whatever came to that place meanwhile is not ours to remove.
        fs::rename(staging.path(), to).map_err(|error| match error.kind() {
            ErrorKind::DirectoryNotEmpty | ErrorKind::AlreadyExists | ErrorKind::NotADirectory => {
                CheckpointError::NotEmpty { path: to.to_owned() }
            }
            _ => DurableError::io("write", to)(error).into(),
        })?;
        sync_folder(parent)?;
        Ok(Restored { number, files: manifest.recipes.len(), bytes })
    }

    /// Writes one file of a checkpoint to a stream: the one that is named, or the only one.
    pub fn restore_file(
        &self,
        _lock: &ReadLock,
        number: u32,
        path: Option<&Path>,
        out: &mut (dyn Write + Send),
        cx: &Context<'_>,
    ) -> Result<Restored, CheckpointError> {
        let manifest = self.manifest(number)?;
        let (entry, recipe) = one_file(&manifest, path)?;
        self.refuse_other_packs(&manifest, Some(recipe))?;
        let mut sink = StreamSink { out };
        FileReader::new(self).read(&entry, recipe, &mut sink, cx)?;
        sink.out.flush().map_err(DurableError::io("write", Path::new("standard output")))?;
        Ok(Restored { number, files: 1, bytes: recipe.bytes() })
    }
}

/// The file of this path, or the only one.
fn one_file<'a>(
    manifest: &'a Manifest,
    path: Option<&Path>,
) -> Result<(PathBuf, &'a Recipe), CheckpointError> {
    let found = match path {
        Some(path) => {
            let path: PathBuf = path.components().filter(|part| *part != Component::CurDir).collect();
            manifest.entry(&path).map(|(number, entry)| match entry.kind {
                EntryKind::HardLink(first) => first,
                _ => number,
            })
        }
        None if manifest.recipes.len() == 1 => manifest.recipes.keys().next().copied(),
        None => {
            let (number, files) = (manifest.number, manifest.recipes.len());
            return Err(CheckpointError::SeveralFiles { number, files });
        }
    };
    let entry = found
        .and_then(|number| Some((manifest.entries.get(number as usize)?, manifest.recipes.get(&number)?)));
    let (entry, recipe) = entry.ok_or_else(|| CheckpointError::NoFile {
        number: manifest.number,
        path: path.unwrap_or(Path::new("")).to_owned(),
    })?;
    Ok((entry.path.clone(), recipe))
}

fn refuse_what_is_there(to: &Path) -> Result<(), CheckpointError> {
    match fs::read_dir(to).map(|mut entries| entries.next().is_none()) {
        Ok(true) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) if error.kind() != std::io::ErrorKind::NotADirectory => {
            Err(DurableError::io("read", to)(error).into())
        }
        _ => Err(CheckpointError::NotEmpty { path: to.to_owned() }),
    }
}

/// A disk that cannot hold it is left alone.
fn refuse_too_much(folder: &Path, manifest: &Manifest) -> Result<(), CheckpointError> {
    let holes = |kind: &EntryKind| match kind {
        EntryKind::File { holes, .. } => {
            holes.iter().fold(0u64, |sum, (_, bytes)| sum.saturating_add(*bytes))
        }
        _ => 0,
    };
    let needed = manifest
        .entries
        .iter()
        .fold(0u64, |sum, entry| sum.saturating_add(entry.length().saturating_sub(holes(&entry.kind))));
    let there =
        rustix::fs::statvfs(folder).map_err(|error| DurableError::io("read", folder)(error.into()))?;
    let free = there.f_bavail.saturating_mul(there.f_frsize);
    if needed > free {
        Err(CheckpointError::TooLarge { number: manifest.number, needed, free })
    } else {
        Ok(())
    }
}

/// Where the contents of a file go.
trait Sink: Send {
    fn data(&mut self, bytes: &[u8]) -> Result<(), CheckpointError>;
    fn zeros(&mut self, bytes: u64) -> Result<(), CheckpointError>;
}

struct FileSink<'a> {
    path: &'a Path,
    file: BufWriter<File>,
    offset: u64,
    holes: &'a [(u64, u64)],
}

impl<'a> FileSink<'a> {
    fn open(path: &'a Path, holes: &'a [(u64, u64)]) -> Result<Self, CheckpointError> {
        let file = OpenOptions::new().write(true).open(path).map_err(DurableError::io("write", path))?;
        Ok(Self { path, file: BufWriter::with_capacity(1 << 18, file), offset: 0, holes })
    }

    /// Puts the file on disk now: its mode may keep us from opening it later.
    fn finish(mut self, sync: bool) -> Result<(), CheckpointError> {
        let written = self.file.flush();
        let synced = written.and_then(|()| if sync { self.file.get_ref().sync_data() } else { Ok(()) });
        Ok(synced.map_err(DurableError::io("write", self.path))?)
    }

    /// The bytes from here on that are all in a hole, or all outside, and whether they are in one.
    fn stretch(&mut self, bytes: u64) -> (u64, bool) {
        while let Some(&(begin, length)) = self.holes.first() {
            let end = begin.saturating_add(length);
            if end <= self.offset {
                self.holes = &self.holes[1..];
            } else if begin <= self.offset {
                return (bytes.min(end - self.offset), true);
            } else {
                return (bytes.min(begin - self.offset), false);
            }
        }
        (bytes, false)
    }
}

static ZEROS: [u8; 1 << 16] = [0; 1 << 16];

impl Sink for FileSink<'_> {
    fn data(&mut self, bytes: &[u8]) -> Result<(), CheckpointError> {
        self.offset += bytes.len() as u64;
        Ok(self.file.write_all(bytes).map_err(DurableError::io("write", self.path))?)
    }

    fn zeros(&mut self, mut bytes: u64) -> Result<(), CheckpointError> {
        while bytes > 0 {
            let (stretch, hole) = self.stretch(bytes);
            let step = if hole { stretch } else { stretch.min(ZEROS.len() as u64) };
            let done = match hole {
                true => self.file.seek(SeekFrom::Start(self.offset + step)).map(drop),
                false => self.file.write_all(&ZEROS[..step as usize]),
            };
            done.map_err(DurableError::io("write", self.path))?;
            self.offset += step;
            bytes -= step;
        }
        Ok(())
    }
}

struct StreamSink<'a> {
    out: &'a mut (dyn Write + Send),
}

impl Sink for StreamSink<'_> {
    fn data(&mut self, bytes: &[u8]) -> Result<(), CheckpointError> {
        Ok(self.out.write_all(bytes).map_err(DurableError::io("write", Path::new("standard output")))?)
    }

    fn zeros(&mut self, mut bytes: u64) -> Result<(), CheckpointError> {
        while bytes > 0 {
            let step = bytes.min(ZEROS.len() as u64);
            self.data(&ZEROS[..step as usize])?;
            bytes -= step;
        }
        Ok(())
    }
}

/// Runs that are written together, and the blocks they are in.
struct Window<'r> {
    runs: &'r [Run],
    /// By which chunks are hashed.
    seed: u64,
    packs: BTreeMap<u32, (Arc<Pack>, Arc<Hashes>)>,
    blocks: BTreeMap<(u32, u32), Arc<Vec<u8>>>,
}

struct FileReader<'a> {
    store: &'a Store,
    blocks: Blocks<'a>,
}

impl<'a> FileReader<'a> {
    fn new(store: &'a Store) -> Self {
        Self { store, blocks: Blocks::new(store, KEPT) }
    }

    /// Gives the contents of a file to a sink, window by window; while one is written the next one is decoded.
    fn read(
        &self,
        path: &Path,
        recipe: &Recipe,
        sink: &mut dyn Sink,
        cx: &Context<'_>,
    ) -> Result<(), CheckpointError> {
        let mut digest = Digest::default();
        let mut windows = self.windows(&recipe.runs);
        let mut current = windows.next().map(|runs| self.decode(runs)).transpose()?;
        while let Some(window) = current {
            if cx.should_stop() {
                return Err(CheckpointError::Interrupted);
            }
            let next = windows.next();
            let (written, decoded) = rayon::join(
                || window.write(sink, &mut digest),
                || next.map(|runs| self.decode(runs)).transpose(),
            );
            written?;
            current = decoded?;
        }
        if digest.finish() != recipe.digest {
            return Err(CheckpointError::WrongContents { path: path.to_owned() });
        }
        Ok(())
    }

    /// Runs in portions whose blocks have about [`WINDOW`] bytes.
    fn windows<'r>(&self, mut runs: &'r [Run]) -> impl Iterator<Item = &'r [Run]> {
        std::iter::from_fn(move || {
            let mut blocks = BTreeSet::new();
            let mut bytes = 0;
            let full = runs.iter().position(|run| {
                let new = run.first.filter(|first| blocks.insert((first.pack, first.block)));
                bytes += new.map_or(0, |first| self.block_bytes(first));
                bytes >= WINDOW
            });
            let (window, rest) = runs.split_at(full.map_or(runs.len(), |last| last + 1));
            runs = rest;
            (!window.is_empty()).then_some(window)
        })
    }

    /// Bytes of the block of a chunk. Decoding tells why there is none.
    fn block_bytes(&self, chunk: ChunkId) -> u64 {
        let pack = self.store.pack(chunk.pack).ok();
        pack.and_then(|pack| Some(pack.block(chunk.block)?.bytes() as u64)).unwrap_or(0)
    }

    fn decode<'r>(&self, runs: &'r [Run]) -> Result<Window<'r>, CheckpointError> {
        let wanted: BTreeSet<(u32, u32)> =
            runs.iter().filter_map(|run| run.first).map(|first| (first.pack, first.block)).collect();
        let mut packs = BTreeMap::new();
        for &(pack, _) in &wanted {
            if let std::collections::btree_map::Entry::Vacant(place) = packs.entry(pack) {
                place.insert((self.store.pack(pack)?, self.store.hashes(pack)?));
            }
        }
        let blocks = wanted.into_par_iter().map(|(pack, block)| {
            let bytes = self.blocks.block(pack, block)?;
            Ok(((pack, block), bytes))
        });
        let blocks = blocks.collect::<Result<_, CheckpointError>>()?;
        Ok(Window { runs, seed: self.blocks.seed(), packs, blocks })
    }
}

impl Window<'_> {
    fn write(&self, sink: &mut dyn Sink, digest: &mut Digest) -> Result<(), CheckpointError> {
        for run in self.runs {
            match run.first {
                None => {
                    digest.zeros(run.length);
                    sink.zeros(run.length)?;
                }
                Some(first) => self.write_run(run, first, sink, digest)?,
            }
        }
        Ok(())
    }

    /// Compares every chunk of a run with its hash, and writes the run.
    fn write_run(
        &self,
        run: &Run,
        first: ChunkId,
        sink: &mut dyn Sink,
        digest: &mut Digest,
    ) -> Result<(), CheckpointError> {
        let missing = |pack: &Pack, block| pack.damaged_block(block, "a chunk is missing");
        let Some((pack, hashes)) = self.packs.get(&first.pack) else { return Ok(()) };
        let block = pack.block(first.block).ok_or_else(|| missing(pack, first.block))?;
        let bytes = self.blocks.get(&(first.pack, first.block)).ok_or_else(|| missing(pack, first.block))?;
        let mut range = block.range(first.chunk).ok_or_else(|| missing(pack, first.block))?;
        let begin = range.start;
        for step in 0..run.chunks {
            let chunk = first.chunk.saturating_add(step);
            let length = block.lengths.get(usize::from(chunk)).copied().map(u64::from);
            if length != Some(run.length) {
                return Err(missing(pack, first.block));
            }
            range.end = range.start + run.length as usize;
            let content = bytes.get(range.clone()).ok_or_else(|| missing(pack, first.block))?;
            let hash = ChunkHash::seeded(self.seed, content);
            if hashes.of(block, chunk) != Some(hash.kept()) {
                return Err(pack.damaged_block(first.block, "a chunk has another hash"));
            }
            digest.chunk(run.length, hash);
            range.start = range.end;
        }
        sink.data(bytes.get(begin..range.end).unwrap_or_default())
    }
}
