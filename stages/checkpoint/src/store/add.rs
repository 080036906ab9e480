//! Adds a checkpoint.
//!
//! Files are cut, looked up and encoded in rounds of bounded size, so that memory is bounded. Lookups and
//! block numbers are decided in file order; only cutting and encoding run in parallel. The same input gives
//! the same bytes with any number of threads.

mod decide;
mod pipeline;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hopmap_durable::{DurableError, crash_point, replace_file, sync_folder};
use hopmap_model::Context;
use rayon::prelude::*;

use super::base::Choice;
use super::blocks::Blocks;
use super::index::Index;
use super::manifest::{Delta, Figures, Fingerprints, Manifest, Recipe};
use super::pack::{EMPTY, PackWriter};
use super::{Store, WriteLock, begun_pack, in_words};
use crate::chunk::{ChunkId, Earlier};
use crate::cut::{Known, PageMap, page_maps};
use crate::error::CheckpointError;
use crate::params::{Matching, StoreRule};
use crate::tree::{self, Entry, EntryKind, Time, Tree};
use decide::Decision;
use pipeline::{Done, Job, Opened, ReaderPipeline};

pub use decide::Source;

/// Options of `add`.
#[derive(Debug, Clone, Default)]
pub struct AddOptions {
    /// The name of the series; the checkpoint is encoded against the last one with the same name.
    pub name: String,
    /// The time of the addition.
    pub created: Time,
    /// Whether to store new data in half the time, with a few more bytes.
    pub quick: bool,
    /// Whether to store it in full, independent of earlier checkpoints.
    pub whole: bool,
    /// The expected rule of the store.
    pub rule: Option<StoreRule>,
}

/// The result of `add`.
#[derive(Debug)]
pub struct Added {
    /// The checkpoint.
    pub manifest: Manifest,
    /// Size of the new pack; 0 if nothing was new.
    pub pack_bytes: u64,
    /// Size of the manifest.
    pub manifest_bytes: u64,
    /// Warnings: skipped entries, and damage in the store.
    pub notes: Vec<String>,
}

/// Bytes of input per round.
const ROUND_BYTES: usize = 4 << 20;

/// Maximum number of files per round.
const PIPELINES: usize = 2;

/// Number of long blocks that are encoded together.
const LONG_BLOCKS_PER_BATCH: usize = 4;

/// Size of the cache of decoded bases, in bytes.
const BASE_CACHE_BYTES: usize = 16 << 20;

impl Store {
    /// Adds a checkpoint; it is on disk when this returns.
    pub fn add(
        &self,
        _lock: &WriteLock,
        source: Source<'_>,
        options: &AddOptions,
        cx: &Context<'_>,
    ) -> Result<Added, CheckpointError> {
        if let Some(asked) = options.rule.filter(|&asked| asked != self.rule()) {
            let path = self.folder.clone();
            return Err(CheckpointError::OtherRule { path, rule: self.rule().name(), asked: asked.name() });
        }
        let number = self.next_number()?;
        let temporary = begun_pack(&self.folder, number);
        let added = Session::start(self, number, &temporary, options, &source)
            .and_then(|session| session.run(source, options, &temporary, cx));
        if added.is_err() {
            // The next writer removes it if this fails.
            let _ = fs::remove_file(&temporary);
        }
        added
    }

    /// The last readable checkpoint with this name, otherwise the last one.
    fn earlier_than(&self, name: &str, notes: &mut Vec<String>) -> Result<Option<Manifest>, CheckpointError> {
        const FAR: usize = 1000;
        let mut last = None;
        for number in self.numbers()?.into_iter().rev().take(FAR) {
            match self.manifest(number) {
                Ok(manifest) if manifest.name == name => return Ok(Some(manifest)),
                Ok(manifest) => last = last.or(Some(manifest)),
                Err(error) => notes.push(error.to_string()),
            }
        }
        Ok(last)
    }
}

/// Entries, and contents of files.
type Contents = (Vec<Entry>, BTreeMap<u32, Recipe>);

struct Session<'a> {
    store: &'a Store,
    number: u32,
    index: Index,
    /// Whether blocks of earlier packs can be decoded.
    intact: HashMap<(u32, u32), bool>,
    blocks: Blocks<'a>,
    writer: PackWriter,
    earlier: Option<Manifest>,
    /// The first checkpoint whose pack is needed.
    whole: u32,
    /// How many checkpoints of the series have been added since.
    since: u32,
    /// The delta of the checkpoint, in stores with a rule.
    delta: Option<Delta>,
    next_block: u32,
    figures: Figures,
    fingerprints: Fingerprints,
    /// Long blocks that are not encoded yet.
    waiting: Vec<Job>,
    quick: bool,
    bases: BTreeMap<u32, (u64, u64)>,
    notes: Vec<String>,
}

impl<'a> Session<'a> {
    fn start(
        store: &'a Store,
        number: u32,
        temporary: &Path,
        options: &AddOptions,
        source: &Source<'_>,
    ) -> Result<Self, CheckpointError> {
        let mut notes = Vec::new();
        let lost = store.given()?.lost;
        if !lost.is_empty() {
            let (folder, lost) = (store.folder.join("checkpoints"), in_words(&lost));
            notes.push(format!("{}: the manifests of {lost} are missing", folder.display()));
        }
        let every = store.settings().whole_every;
        let is_due = |earlier: &Manifest| every > 0 && earlier.since.saturating_add(1) >= every;
        let earlier = store.earlier_than(&options.name, &mut notes)?;
        let earlier = earlier.filter(|earlier| !options.whole && !is_due(earlier));
        let deltas = store.settings().deltas;
        let earlier = earlier.filter(|earlier| deltas.is_none() || earlier.name == options.name);
        let whole = earlier.as_ref().map_or(number, |earlier| earlier.whole);
        let since = earlier.as_ref().map_or(0, |earlier| earlier.since.saturating_add(1));
        let (index, earlier, delta) = match deltas {
            Some(deltas) => {
                let Decision { base, held, index } =
                    decide::decide(store, &deltas, number, earlier, source, &mut notes)?;
                let below = base.as_ref().map(|base| base.delta.unwrap_or_default().depth);
                let depth = below.map_or(0, |depth| depth.saturating_add(1));
                (index, base, Some(Delta { held, depth, ..Delta::default() }))
            }
            None => {
                let (index, damaged) = Index::load(store, whole)?;
                notes.extend(damaged.iter().map(ToString::to_string));
                (index, earlier, None)
            }
        };
        Ok(Self {
            store,
            number,
            index,
            intact: HashMap::new(),
            blocks: Blocks::new(store, BASE_CACHE_BYTES),
            writer: PackWriter::create(temporary.to_owned(), number)?,
            earlier,
            whole,
            since,
            delta,
            next_block: 0,
            figures: Figures::default(),
            fingerprints: Fingerprints::default(),
            waiting: Vec::new(),
            quick: options.quick,
            bases: BTreeMap::new(),
            notes,
        })
    }

    fn run(
        mut self,
        source: Source<'_>,
        options: &AddOptions,
        temporary: &Path,
        cx: &Context<'_>,
    ) -> Result<Added, CheckpointError> {
        let stream = matches!(source, Source::Stream(..));
        let (entries, recipes) = match source {
            Source::Folder(folder) => self.add_folder(folder, cx)?,
            Source::Files(files) => self.add_listed(files, cx)?,
            Source::Stream(name, reader) => self.add_stream(name, reader, options.created, cx)?,
        };
        let bases = std::mem::take(&mut self.bases);
        let delta = self.delta.map(|delta| self.counted(delta));
        let rounded = |(pack, (bytes, thousandths))| (pack, bytes, thousandths / 1000);
        self.figures.bases = bases.into_iter().map(rounded).collect();
        let manifest = Manifest {
            number: self.number,
            earlier: self.earlier.as_ref().map_or(0, |earlier| earlier.number),
            created: options.created,
            name: options.name.clone(),
            stream,
            entries,
            recipes,
            figures: self.figures,
            fingerprints: self.fingerprints,
            whole: self.whole,
            since: self.since,
            delta,
        };
        let bytes = manifest.encode()?;
        // Data that cannot be read back is not added.
        Manifest::decode(&bytes).map_err(|reason| CheckpointError::DamagedManifest {
            path: self.store.manifest_path(self.number),
            number: self.number,
            reason,
        })?;
        if cx.should_stop() {
            return Err(CheckpointError::Interrupted);
        }
        let pack_bytes = commit_pack(self.store, self.writer, self.next_block, self.number, temporary)?;
        replace_file(&self.store.manifest_path(self.number), &bytes)?;
        // The checkpoint exists now. If this fails, for example on a full disk, the next writer records the
        // number.
        let _ = self.store.write_next(self.number.saturating_add(1));
        Ok(Added { manifest, pack_bytes, manifest_bytes: bytes.len() as u64, notes: self.notes })
    }

    fn add_folder(&mut self, folder: &Path, cx: &Context<'_>) -> Result<Contents, CheckpointError> {
        let Tree { entries, left_out } = tree::walk(folder)?;
        let why = |(path, reason): &(PathBuf, &str)| format!("{} is skipped: {reason}", path.display());
        self.notes.extend(left_out.iter().map(why));
        let mut maps = BTreeMap::new();
        for entry in entries.iter().filter(|entry| entry.kind == EntryKind::Folder) {
            let found = page_maps(&folder.join(&entry.path));
            maps.extend(found.into_iter().map(|(name, map)| (entry.path.join(name), map)));
        }
        let files = (0..).zip(&entries).filter(|(_, entry)| matches!(entry.kind, EntryKind::File { .. }));
        let files = files.map(|(number, entry)| (number, folder.join(&entry.path), maps.remove(&entry.path)));
        let files = files.collect();
        let recipes = self.add_files(&entries, files, cx)?;
        let now = tree::walk(folder)?.entries;
        if let Some(changed) = differs(&entries, &now) {
            return Err(CheckpointError::Changed(folder.join(&changed.path)));
        }
        Ok((entries, recipes))
    }

    fn add_listed(
        &mut self,
        files: Vec<(PathBuf, PathBuf)>,
        cx: &Context<'_>,
    ) -> Result<Contents, CheckpointError> {
        let (entries, files) = entries(files)?;
        let recipes = self.add_files(&entries, files, cx)?;
        Ok((entries, recipes))
    }

    /// Adds files: entry number, path and page map of each.
    fn add_files(
        &mut self,
        entries: &[Entry],
        files: Vec<(u32, PathBuf, Option<PageMap>)>,
        cx: &Context<'_>,
    ) -> Result<BTreeMap<u32, Recipe>, CheckpointError> {
        let mut base_files = pipeline::base_files(self.earlier.as_ref(), entries);
        if let (Some(_), Some(earlier)) = (self.delta, &self.earlier) {
            // HBICT compares files of the same name.
            let path =
                |entries: &[Entry], number: u32| entries.get(number as usize).map(|entry| entry.path.clone());
            base_files.retain(|&now, before| path(entries, now) == path(&earlier.entries, *before));
        }
        let total = entries.iter().map(Entry::length).sum();
        let pipelines = files.len().clamp(1, PIPELINES);
        let mut pipelines: Vec<ReaderPipeline<'_>> =
            (0..pipelines).map(|_| ReaderPipeline::new(self.store, self.quick)).collect();
        let mut queue = files.into_iter();
        let mut recipes = BTreeMap::new();
        loop {
            for pipeline in pipelines.iter_mut().filter(|pipeline| pipeline.is_idle()) {
                if let Some((number, path, map)) = queue.next() {
                    let base = base_files.get(&number).copied();
                    let earlier = pipeline::earlier(self.store, self.earlier.as_ref(), base);
                    let entry = entries.get(number as usize).map(|entry| (entry.length(), entry.modified));
                    pipeline.begin(Opened::file(number, path, entry, self.known(earlier, map))?);
                }
            }
            if pipelines.iter().all(ReaderPipeline::is_idle) {
                break;
            }
            self.round(&mut pipelines, &mut recipes, total, cx)?;
        }
        self.flush(&mut pipelines)?;
        Ok(recipes)
    }

    fn add_stream(
        &mut self,
        name: String,
        reader: Box<dyn Read + Send + '_>,
        created: Time,
        cx: &Context<'_>,
    ) -> Result<Contents, CheckpointError> {
        let path = PathBuf::from(name);
        let base = self.earlier.as_ref().and_then(|earlier| earlier.entry(&path)).map(|(number, _)| number);
        let earlier = pipeline::earlier(self.store, self.earlier.as_ref(), base);
        let mut pipelines = vec![ReaderPipeline::new(self.store, self.quick)];
        pipelines[0].begin(Opened::stream(1, path.clone(), reader, self.known(earlier, None))?);
        let mut recipes = BTreeMap::new();
        while !pipelines[0].is_idle() {
            self.round(&mut pipelines, &mut recipes, 0, cx)?;
        }
        self.flush(&mut pipelines)?;
        if self.figures.bytes == 0 {
            return Err(CheckpointError::EmptyStream);
        }
        let kind = EntryKind::File { length: self.figures.bytes, holes: Vec::new() };
        let entries = vec![folder(PathBuf::new(), created), file(path, kind, created)];
        Ok((entries, recipes))
    }

    /// Known properties of a file before it is read.
    fn known(&self, earlier: Option<Arc<Earlier>>, page_map: Option<PageMap>) -> Known {
        let settings = self.store.settings();
        let block = settings.deltas.map(|deltas| deltas.block as usize);
        Known { length: None, earlier, page_map, seed: settings.seed, block }
    }

    /// The delta of the checkpoint; the first takes its own bytes, without overhead.
    fn counted(&self, delta: Delta) -> Delta {
        let overhead = self.store.settings().deltas.map_or(0, |deltas| u64::from(deltas.block_overhead));
        let places = if self.earlier.is_some() { delta.blocks * overhead } else { 0 };
        Delta { bytes: self.figures.stored + places, ..delta }
    }

    /// Whether chunks are looked up regardless of their position.
    fn looks_anywhere(&self) -> bool {
        self.store.settings().deltas.is_none_or(|deltas| deltas.matching == Matching::Anywhere)
    }

    /// Every pipeline reads its share of a round; then new chunks are encoded and written.
    fn round(
        &mut self,
        pipelines: &mut [ReaderPipeline<'_>],
        recipes: &mut BTreeMap<u32, Recipe>,
        total: u64,
        cx: &Context<'_>,
    ) -> Result<(), CheckpointError> {
        if cx.should_stop() {
            return Err(CheckpointError::Interrupted);
        }
        let busy = pipelines.iter().filter(|pipeline| !pipeline.is_idle()).count().max(1);
        pipelines.par_iter_mut().try_for_each(|pipeline| pipeline.cut(ROUND_BYTES / busy))?;
        let mut jobs = Vec::new();
        for (place, pipeline) in pipelines.iter_mut().enumerate() {
            self.take(place, pipeline, &mut jobs);
            if let Some((number, recipe)) = pipeline.ended()? {
                recipes.insert(number, recipe);
            }
        }
        self.write(pipelines, jobs, false)?;
        cx.progress(self.figures.bytes, total);
        Ok(())
    }

    /// Looks up every chunk of a pipeline's batch.
    fn take(&mut self, place: usize, pipeline: &mut ReaderPipeline<'_>, jobs: &mut Vec<Job>) {
        let batch = std::mem::take(&mut pipeline.batch);
        for chunk in &batch.chunks {
            self.figures.bytes += chunk.length as u64;
            let bytes = chunk.length as u64;
            let base = pipeline.base_chunk(chunk).filter(|base| base.id.is_none_or(|id| self.is_sound(id)));
            let kept = chunk.hash.kept();
            let known = |session: &mut Self| session.index.get(kept).filter(|&id| session.is_sound(id));
            let id = if chunk.zero {
                self.figures.zero += bytes;
                None
            } else if let Some(same) =
                base.filter(|base| base.id.is_some() && base.hash == kept && base.length == chunk.length)
            {
                self.figures.unchanged += bytes;
                same.id
            } else if let Some(known) = known(self) {
                self.figures.known += bytes;
                Some(known)
            } else {
                self.figures.new += bytes;
                self.delta.iter_mut().for_each(|delta| delta.blocks += 1);
                // The papers store changed blocks uncompressed.
                let base = base.and_then(|base| base.id).filter(|_| self.delta.is_none());
                let depth = base.map(|base| self.depth(base));
                let id = pipeline.pending(depth).push(
                    batch.bytes_of(chunk),
                    kept,
                    base,
                    self.number,
                    &mut self.next_block,
                );
                if self.looks_anywhere() {
                    self.index.replace(kept, id);
                }
                Some(id)
            };
            id.into_iter().for_each(|id| self.fingerprints.add(id, kept));
            pipeline.record(chunk, id);
            jobs.extend(pipeline.jobs(place, false));
        }
        pipeline.give_back(batch);
    }

    /// Whether the block of a chunk can be decoded. Each block is read once before it is first referenced: a
    /// checkpoint that is built on a damaged block could not be restored, and the lost data is at hand to be
    /// stored again.
    fn is_sound(&mut self, id: ChunkId) -> bool {
        id.pack == self.number || self.is_block_intact((id.pack, id.block))
    }

    fn is_block_intact(&mut self, block: (u32, u32)) -> bool {
        if let Some(&intact) = self.intact.get(&block) {
            return intact;
        }
        let intact = self.index.is_usable(block.0, block.1) && self.is_payload_intact(block);
        self.intact.insert(block, intact);
        intact
    }

    /// Whether the payload of a block and of all its bases is intact.
    fn is_payload_intact(&mut self, (pack, block): (u32, u32)) -> bool {
        if let Err(error) = self.blocks.check(pack, block) {
            if !matches!(error, CheckpointError::DamagedBlock { reason: EMPTY, .. }) {
                self.notes.push(format!("{error}; equal data is stored again"));
            }
            return false;
        }
        let pack = self.store.pack(pack).ok();
        let entry = pack.as_ref().and_then(|pack| pack.block(block));
        let bases = entry.into_iter().flat_map(|entry| entry.bases.iter().flatten());
        let bases: BTreeSet<(u32, u32)> = bases.map(|base| (base.pack, base.block)).collect();
        bases.into_iter().all(|base| self.is_block_intact(base))
    }

    /// The depth of a chunk.
    fn depth(&self, id: ChunkId) -> u8 {
        let pack = self.store.pack(id.pack).ok();
        pack.and_then(|pack| pack.block(id.block).map(|block| block.depth)).unwrap_or(0)
    }

    fn flush(&mut self, pipelines: &mut [ReaderPipeline<'_>]) -> Result<(), CheckpointError> {
        let jobs = pipelines
            .iter_mut()
            .enumerate()
            .flat_map(|(place, pipeline)| pipeline.jobs(place, true))
            .collect();
        self.write(pipelines, jobs, true)
    }

    /// Encodes blocks and writes them. Long ones are collected, so that all threads have work.
    fn write(
        &mut self,
        pipelines: &mut [ReaderPipeline<'_>],
        jobs: Vec<Job>,
        all: bool,
    ) -> Result<(), CheckpointError> {
        let (mut jobs, long): (Vec<Job>, Vec<Job>) =
            jobs.into_iter().partition(|job| job.base_depth.is_some());
        self.waiting.extend(long);
        if all || self.waiting.len() >= LONG_BLOCKS_PER_BATCH {
            jobs.append(&mut self.waiting);
        }
        let done = jobs.into_par_iter().map(|job| pipeline::encode(self.store, &self.blocks, job));
        let done: Vec<Done> = done.collect::<Result<_, _>>()?;
        for done in done {
            let pipeline = &mut pipelines[done.pipeline];
            pipeline.learn(&done);
            if let Some(choice) = done.compared {
                self.figures.comparisons.0 += 1;
                self.figures.comparisons.1 += u64::from(choice != Choice::Kept);
            }
            let stored = done.block.payload.len() as u64;
            self.figures.stored += stored;
            self.count_bases(&done, stored);
            self.writer.put(done.number, done.block)?;
        }
        Ok(())
    }

    /// Counts the bytes that are deltas, by checkpoint of the base.
    fn count_bases(&mut self, done: &Done, stored: u64) {
        let block = &done.block;
        let total: u64 = block.lengths.iter().map(|&length| u64::from(length)).sum();
        for (base, &length) in block.bases.iter().zip(&block.lengths) {
            if let Some(base) = base {
                let counts = self.bases.entry(base.pack).or_default();
                counts.0 += u64::from(length);
                // Bytes of a block are split proportionally; thousandths avoid rounding small shares to zero.
                counts.1 += stored * u64::from(length) * 1000 / total.max(1);
            }
        }
    }
}

/// The first entry in which two trees differ.
fn differs<'t>(before: &'t [Entry], after: &'t [Entry]) -> Option<&'t Entry> {
    let longer = if before.len() < after.len() { after } else { before };
    let same = before.iter().zip(after).take_while(|(before, after)| before == after).count();
    longer.get(same)
}

/// Moves the pack to its place, unless it is empty.
fn commit_pack(
    store: &Store,
    writer: PackWriter,
    blocks: u32,
    number: u32,
    temporary: &Path,
) -> Result<u64, CheckpointError> {
    if blocks == 0 {
        drop(writer);
        fs::remove_file(temporary).map_err(DurableError::io("remove", temporary))?;
        return Ok(0);
    }
    let (path, bytes) = writer.finish()?;
    let place = store.pack_path(number);
    crash_point("checkpoint.pack-written", &path);
    fs::rename(&path, &place).map_err(DurableError::io("write", &place))?;
    crash_point("checkpoint.pack-renamed", &place);
    sync_folder(&store.folder.join("packs"))?;
    Ok(bytes)
}

/// A folder with default metadata.
fn folder(path: PathBuf, modified: Time) -> Entry {
    Entry { path, kind: EntryKind::Folder, mode: 0o755, owner: 0, group: 0, modified }
}

/// A file with default metadata.
fn file(path: PathBuf, kind: EntryKind, modified: Time) -> Entry {
    Entry { path, kind, mode: 0o644, owner: 0, group: 0, modified }
}

/// Entry number, path, and no page map.
type ListedFile = (u32, PathBuf, Option<PageMap>);

/// The entries of files, with their parent folders, and the paths of the files.
fn entries(files: Vec<(PathBuf, PathBuf)>) -> Result<(Vec<Entry>, Vec<ListedFile>), CheckpointError> {
    let above = |(place, _): &(PathBuf, PathBuf)| -> Vec<PathBuf> {
        place.ancestors().skip(1).map(PathBuf::from).collect()
    };
    let mut folders: BTreeSet<PathBuf> = files.iter().flat_map(above).collect();
    folders.insert(PathBuf::new());
    let mut entries: Vec<Entry> = folders.into_iter().map(|path| folder(path, Time::default())).collect();
    let mut listed = Vec::new();
    for (place, path) in files {
        let length = std::fs::metadata(&path).map_err(DurableError::io("read", &path))?.len();
        listed.push((entries.len() as u32, path, None));
        entries.push(file(place, EntryKind::File { length, holes: Vec::new() }, Time::default()));
    }
    Ok((entries, listed))
}
