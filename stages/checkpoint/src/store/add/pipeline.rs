//! A pipeline that adds files: cuts them into chunks, which are looked up, and encodes new chunks block by
//! block.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::fs::Metadata;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hopmap_durable::DurableError;
use hopmap_model::{InputError, open_input_itself};

use crate::chunk::{Batch, Chunk, ChunkId, Digest, Earlier, EarlierChunk, KeptHash, Position};
use crate::codec::{self, BASED_BLOCK, BLOCK, Block, Chooser, Codec, Encoded, Hint, Outcome};
use crate::cut::{self, Cutter, Known};
use crate::error::CheckpointError;
use crate::store::Store;
use crate::store::base::{BaseRule, Bound, Candidates, Choice, Sizes, candidates};
use crate::store::blocks::{Blocks, ChunkBytes};
use crate::store::manifest::{Manifest, Recipe, RunBuilder};
use crate::store::pack::{Hashes, MOST_CHUNKS, NewBlock, Pack};
use crate::tree::{self, Entry, EntryKind, Time};

/// A sequence of files, and what was learned from their blocks.
pub(super) struct ReaderPipeline<'a> {
    opened: Option<Opened<'a>>,
    pub(super) batch: Batch,
    /// New chunks with base chunks, by depth of these: a block is as deep as its deepest chunk.
    based: BTreeMap<u8, Based>,
    /// New chunks without base chunks.
    fresh: Pending,
    runs: RunBuilder,
    digest: Digest,
    /// Choosers that learn from all blocks, from those with bases, and from those without.
    chooser: Chooser,
    based_chooser: Chooser,
    fresh_chooser: Chooser,
    /// Blocks with bases whose results have not reached the chooser.
    based_after: u64,
    /// Whether one more block of this round should use bases although they did not pay recently.
    tries_bases: bool,
    epsilon: f64,
}

/// New chunks whose base chunks have equal depth, and the decider of their bases.
#[derive(Debug, Default)]
struct Based {
    pending: Pending,
    rule: BaseRule,
}

/// Size of the first read of a file, in bytes.
const FIRST: usize = 1 << 20;

/// A file that is open.
pub(super) struct Opened<'a> {
    number: u32,
    path: PathBuf,
    /// Its metadata at the time of opening; `None` for a stream.
    before: Option<Metadata>,
    cutter: Box<dyn Cutter + 'a>,
    earlier: Option<Arc<Earlier>>,
    ended: bool,
    bytes: u64,
}

impl<'a> Opened<'a> {
    /// Opens a file that was listed with this length and, if known, modification time.
    pub(super) fn file(
        number: u32,
        path: PathBuf,
        found: Option<(u64, Time)>,
        known: Known,
    ) -> Result<Self, CheckpointError> {
        // Does not follow links that replaced the file.
        let file = match open_input_itself(&path) {
            Err(error) if InputError::of(&error).is_some() => return Err(CheckpointError::Changed(path)),
            opened => opened.map_err(DurableError::io("read", &path))?,
        };
        let before = file.metadata().map_err(DurableError::io("read", &path))?;
        let time = Time { seconds: before.mtime(), nanoseconds: before.mtime_nsec() as u32 };
        let is_as_found = |(length, modified): (u64, Time)| {
            before.len() == length && (modified == Time::default() || modified == time)
        };
        if !found.is_none_or(is_as_found) {
            return Err(CheckpointError::Changed(path));
        }
        let known = Known { length: Some(before.len()), ..known };
        Ok(Self { before: Some(before), ..Self::stream(number, path, Box::new(file), known)? })
    }

    pub(super) fn stream(
        number: u32,
        path: PathBuf,
        reader: Box<dyn Read + Send + 'a>,
        known: Known,
    ) -> Result<Self, CheckpointError> {
        let earlier = known.earlier.clone();
        let cutter = cut::cutter(reader, known)
            .map_err(|source| CheckpointError::Cut { path: path.clone(), source })?;
        Ok(Self { number, path, before: None, cutter, earlier, ended: false, bytes: 0 })
    }

    /// Rejects a file that was modified while it was read.
    fn check_unchanged(&self) -> Result<(), CheckpointError> {
        let Some(before) = &self.before else { return Ok(()) };
        let after = std::fs::metadata(&self.path).map_err(DurableError::io("read", &self.path))?;
        if !tree::is_unchanged(before, &after) || self.bytes != before.len() {
            return Err(CheckpointError::Changed(self.path.clone()));
        }
        Ok(())
    }
}

impl<'a> ReaderPipeline<'a> {
    pub(super) fn new(store: &Store, quick: bool) -> Self {
        let epsilon = store.settings().epsilon;
        let chooser = if quick { Chooser::quick() } else { Chooser::default() };
        Self {
            opened: None,
            batch: Batch::default(),
            based: BTreeMap::new(),
            fresh: Pending::default(),
            runs: RunBuilder::default(),
            digest: Digest::default(),
            chooser: Chooser::default(),
            based_chooser: chooser.clone(),
            fresh_chooser: chooser,
            based_after: 0,
            tries_bases: true,
            epsilon,
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.opened.is_none()
    }

    pub(super) fn begin(&mut self, opened: Opened<'a>) {
        self.opened = Some(opened);
        self.runs = RunBuilder::default();
        self.digest = Digest::default();
    }

    /// Reads and cuts the next part.
    pub(super) fn cut(&mut self, amount: usize) -> Result<(), CheckpointError> {
        let Some(opened) = &mut self.opened else { return Ok(()) };
        self.tries_bases = true;
        // The first blocks train the choosers, so the first read is small.
        let amount = if opened.bytes == 0 { amount.min(FIRST) } else { amount };
        let more = opened.cutter.cut(&mut self.batch, amount);
        let more = more.map_err(|source| CheckpointError::Cut { path: opened.path.clone(), source })?;
        opened.ended = !more;
        Ok(())
    }

    /// The chunk of the earlier version at the same position.
    pub(super) fn base_chunk(&self, chunk: &Chunk) -> Option<EarlierChunk> {
        let earlier = self.opened.as_ref()?.earlier.as_ref()?;
        earlier.get(chunk.base_chunk?).copied()
    }

    /// Records a chunk of the file.
    pub(super) fn record(&mut self, chunk: &Chunk, id: Option<ChunkId>) {
        let length = chunk.length as u64;
        self.runs.push(id, length, chunk.place);
        match id {
            Some(_) => self.digest.chunk(length, chunk.hash),
            None => self.digest.zeros(length),
        }
        if let Some(opened) = &mut self.opened {
            opened.bytes += length;
        }
    }

    /// Reclaims the memory of a batch.
    pub(super) fn give_back(&mut self, mut batch: Batch) {
        batch.clear();
        self.batch = batch;
    }

    /// The number and the recipe of the file, if it was read to its end.
    pub(super) fn ended(&mut self) -> Result<Option<(u32, Recipe)>, CheckpointError> {
        let Some(opened) = self.opened.take_if(|opened| opened.ended) else { return Ok(None) };
        opened.check_unchanged()?;
        let runs = std::mem::take(&mut self.runs).runs;
        let digest = std::mem::take(&mut self.digest).finish();
        Ok(Some((opened.number, Recipe { format: opened.cutter.format(), digest, runs })))
    }

    /// Queues a new chunk; `depth` is that of its base chunk, if any.
    pub(super) fn pending(&mut self, depth: Option<u8>) -> &mut Pending {
        match depth.filter(|_| self.chooser.wants_bases() || self.tries_bases) {
            Some(depth) => &mut self.based.entry(depth).or_default().pending,
            None => &mut self.fresh,
        }
    }

    /// Blocks to be encoded: all full blocks, or all blocks.
    pub(super) fn jobs(&mut self, pipeline: usize, all: bool) -> Vec<Job> {
        let mut jobs = Vec::new();
        let epsilon = self.epsilon;
        for (&depth, based) in &mut self.based {
            if !based.pending.is_due(BASED_BLOCK, all) {
                continue;
            }
            self.tries_bases = false;
            let (pending, rule) = (std::mem::take(&mut based.pending), &mut based.rule);
            let (compares, choice) = (rule.compares(), rule.choice());
            let (chooser, after, base_depth) = (self.based_chooser.clone(), self.based_after, Some(depth));
            jobs.push(Job { pipeline, pending, base_depth, compares, choice, epsilon, chooser, after });
            self.based_after += 1;
        }
        if self.fresh.is_due(BLOCK, all) {
            let (pending, chooser) = (std::mem::take(&mut self.fresh), self.fresh_chooser.clone());
            let (base_depth, compares, choice) = (None, false, Choice::Fresh);
            jobs.push(Job { pipeline, pending, base_depth, compares, choice, epsilon, chooser, after: 0 });
        }
        jobs
    }

    pub(super) fn learn(&mut self, done: &Done) {
        self.chooser.learn(&done.outcome);
        let Some(depth) = done.base_depth else { return self.fresh_chooser.learn(&done.outcome) };
        self.based_after = 0;
        self.based_chooser.learn(&done.outcome);
        if let Some(choice) = done.compared {
            self.based.entry(depth).or_default().rule.learn(choice);
        }
    }
}

/// New chunks that form a block.
#[derive(Debug, Default)]
pub(super) struct Pending {
    pub(super) number: u32,
    pub(super) bytes: Vec<u8>,
    pub(super) lengths: Vec<u32>,
    pub(super) hashes: Vec<KeptHash>,
    pub(super) base_chunks: Vec<Option<ChunkId>>,
}

impl Pending {
    /// Whether the block is full, or nonempty with `all`.
    fn is_due(&self, most: usize, all: bool) -> bool {
        let full = self.bytes.len() >= most || self.lengths.len() >= MOST_CHUNKS;
        full || (all && !self.lengths.is_empty())
    }

    /// Adds a chunk; the first one gives the block its number.
    pub(super) fn push(
        &mut self,
        bytes: &[u8],
        hash: KeptHash,
        base_chunk: Option<ChunkId>,
        pack: u32,
        next_block: &mut u32,
    ) -> ChunkId {
        if self.lengths.is_empty() {
            self.number = *next_block;
            *next_block += 1;
        }
        let id = ChunkId { pack, block: self.number, chunk: self.lengths.len() as u16 };
        self.bytes.extend_from_slice(bytes);
        self.lengths.push(bytes.len() as u32);
        self.hashes.push(hash);
        self.base_chunks.push(base_chunk);
        id
    }
}

/// A pack, and the hashes of its chunks.
type Readable = (Arc<Pack>, Arc<Hashes>);

/// The stored version of a file; `None` if its data is damaged.
pub(super) fn earlier(
    store: &Store,
    manifest: Option<&Manifest>,
    entry: Option<u32>,
) -> Option<Arc<Earlier>> {
    let recipe = manifest?.recipes.get(&entry?)?;
    let mut packs: HashMap<u32, Option<Readable>> = HashMap::new();
    let mut chunks = Vec::new();
    for run in &recipe.runs {
        let Some(first) = run.first else {
            let (hash, length) = (KeptHash::default(), usize::try_from(run.length).ok()?);
            chunks.push(EarlierChunk { id: None, length, hash, place: run.place });
            continue;
        };
        let pack = packs
            .entry(first.pack)
            .or_insert_with(|| store.pack(first.pack).ok().zip(store.hashes(first.pack).ok()));
        let Some((pack, hashes)) = pack else { continue };
        let Some(block) = pack.block(first.block) else { continue };
        for step in 0..run.chunks {
            let chunk = first.chunk.saturating_add(step);
            let length = block.lengths.get(usize::from(chunk)).copied().map(u64::from);
            let hash = hashes.of(block, chunk).filter(|_| length == Some(run.length));
            let Some(hash) = hash else { break };
            let address = run.place.address.wrapping_add(u64::from(step) * run.length);
            let (id, place) = (Some(ChunkId { chunk, ..first }), Position { address, ..run.place });
            chunks.push(EarlierChunk { id, length: run.length as usize, hash, place });
        }
    }
    Some(Arc::new(Earlier::new(chunks)))
}

/// The file of the earlier checkpoint that each file is compared with: the one with the same path, or with a
/// path that differs only in numbers, such as process ids.
pub(super) fn base_files(manifest: Option<&Manifest>, entries: &[Entry]) -> BTreeMap<u32, u32> {
    let Some(manifest) = manifest else { return BTreeMap::new() };
    let is_file = |entry: &Entry| matches!(entry.kind, EntryKind::File { .. });
    let before = || (0u32..).zip(&manifest.entries).filter(|(_, entry)| is_file(entry));
    let now = || (0u32..).zip(entries).filter(|(_, entry)| is_file(entry));
    let same: HashMap<&Path, u32> = before().map(|(number, entry)| (entry.path.as_path(), number)).collect();
    let mut bases: BTreeMap<u32, u32> =
        now().filter_map(|(number, entry)| Some((number, *same.get(entry.path.as_path())?))).collect();
    let taken: BTreeSet<u32> = bases.values().copied().collect();
    let mut alike: HashMap<Vec<u8>, VecDeque<u32>> = HashMap::new();
    for (number, entry) in before().filter(|(number, _)| !taken.contains(number)) {
        alike.entry(without_numbers(&entry.path)).or_default().push_back(number);
    }
    for (number, entry) in now() {
        let mut base = || alike.get_mut(&without_numbers(&entry.path)).and_then(VecDeque::pop_front);
        if !bases.contains_key(&number)
            && let Some(base) = base()
        {
            bases.insert(number, base);
        }
    }
    bases
}

/// A path with every decimal or hexadecimal number replaced by `#`.
fn without_numbers(path: &Path) -> Vec<u8> {
    use std::os::unix::ffi::OsStrExt;
    let bytes = path.as_os_str().as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    for word in bytes.chunk_by(|one, other| one.is_ascii_alphanumeric() == other.is_ascii_alphanumeric()) {
        let number = word.iter().all(u8::is_ascii_hexdigit) && word.iter().any(u8::is_ascii_digit);
        let digits = word.iter().map(|byte| if byte.is_ascii_digit() { b'#' } else { *byte });
        match number {
            true => out.push(b'#'),
            false => out.extend(digits),
        }
    }
    out
}

/// A block to be encoded.
pub(super) struct Job {
    pub(super) pipeline: usize,
    pub(super) pending: Pending,
    /// The depth of its base chunks; `None` if there are none.
    pub(super) base_depth: Option<u8>,
    pub(super) compares: bool,
    pub(super) choice: Choice,
    pub(super) epsilon: f64,
    pub(super) chooser: Chooser,
    /// Number of blocks between the last known result and this one.
    pub(super) after: u64,
}

/// An encoded block.
pub(super) struct Done {
    pub(super) pipeline: usize,
    pub(super) number: u32,
    /// The depth of its base chunks, if any.
    pub(super) base_depth: Option<u8>,
    pub(super) block: NewBlock,
    pub(super) outcome: Outcome,
    /// The best choice, if several bases were tried.
    pub(super) compared: Option<Choice>,
}

type Bases = Vec<Option<ChunkId>>;

pub(super) fn encode(store: &Store, blocks: &Blocks<'_>, job: Job) -> Result<Done, CheckpointError> {
    if store.settings().deltas.is_some() {
        let Pending { bytes, lengths, .. } = &job.pending;
        let raw = codec::encode_by(&Block { bytes, lengths, bases: &[] }, Codec::Raw, false)?;
        return job.done(store, blocks, raw, Vec::new(), None);
    }
    let candidates = job.candidates(store);
    let all = |base: fn(&Candidates) -> Option<ChunkId>| -> Bases { candidates.iter().map(base).collect() };
    let by = |choice| match choice {
        Choice::Kept => all(|candidates| candidates.kept),
        Choice::Previous => all(|candidates| candidates.previous),
        Choice::Root => all(|candidates| candidates.root),
        Choice::Fresh => vec![None; candidates.len()],
    };
    let trial = BaseEncoder { blocks, job: &job, hint: job.hint(store), codec: None };
    let (kept, previous) = (by(Choice::Kept), by(Choice::Previous));
    let last = all(|candidates| candidates.last);
    if !job.compares || (kept == previous && previous == last) {
        let (encoded, bases) = trial.by(by(job.choice))?;
        return job.done(store, blocks, encoded, bases, None);
    }
    let kept = trial.by(kept)?;
    // The hint is valid for all versions, except no base at all.
    let trial = BaseEncoder { codec: Some(kept.0.codec).filter(|codec| codec.uses_bases()), ..trial };
    let mut sizes = Sizes { kept: kept.0.payload.len(), previous: kept.0.payload.len(), bound: None };
    let mut best = kept;
    let mut others = Vec::new();
    let mut size_by = |choice| -> Result<usize, CheckpointError> {
        let other = trial.by(by(choice))?;
        let size = other.0.payload.len();
        others.push((choice, other));
        Ok(size)
    };
    sizes.previous = size_by(Choice::Previous)?;
    if previous != last {
        let (root, fresh) = (size_by(Choice::Root)?, size_by(Choice::Fresh)?);
        sizes.bound = Some(Bound { last: trial.by(last)?.0.payload.len(), root, fresh });
    }
    let choice = sizes.choice(job.epsilon);
    if let Some((_, other)) = others.into_iter().find(|(other, _)| *other == choice) {
        best = other;
    }
    job.done(store, blocks, best.0, best.1, Some(choice))
}

/// Encodes the block of a job with bases.
struct BaseEncoder<'a> {
    blocks: &'a Blocks<'a>,
    job: &'a Job,
    hint: Hint,
    /// The codec, if it is already known.
    codec: Option<Codec>,
}

impl BaseEncoder<'_> {
    fn by(&self, bases: Bases) -> Result<(Encoded, Bases), CheckpointError> {
        // A damaged base is not used; verifying reports it.
        let bytes = bases.iter().map(|base| base.and_then(|base| self.blocks.chunk(base).ok()));
        let bytes: Vec<Option<ChunkBytes>> = bytes.collect();
        let usable =
            bases.into_iter().zip(&bytes).map(|(base, bytes)| base.filter(|_| bytes.is_some())).collect();
        let bytes: Vec<Option<&[u8]>> = bytes.iter().map(|base| base.as_ref().map(AsRef::as_ref)).collect();
        let pending = &self.job.pending;
        let block = Block { bytes: &pending.bytes, lengths: &pending.lengths, bases: &bytes };
        let encoded = match self.codec.filter(|_| bytes.iter().any(Option::is_some)) {
            Some(codec) => codec::encode_by(&block, codec, self.hint.thorough)?,
            None => codec::encode(&block, self.hint)?,
        };
        Ok((encoded, usable))
    }
}

impl Job {
    fn hint(&self, store: &Store) -> Hint {
        self.chooser.hint(self.base_codec(store), self.after)
    }

    fn candidates(&self, store: &Store) -> Vec<Candidates> {
        let deepest = store.settings().depth;
        let of = |base_chunk: &Option<ChunkId>| match base_chunk.filter(|_| self.base_depth.is_some()) {
            // Unreadable data cannot be a base.
            Some(base_chunk) => candidates(store, base_chunk, deepest).unwrap_or_default(),
            None => Candidates::default(),
        };
        self.pending.base_chunks.iter().map(of).collect()
    }

    /// The codec of the block with the first base chunk.
    fn base_codec(&self, store: &Store) -> Option<Codec> {
        let base_chunk = self.pending.base_chunks.iter().flatten().next()?;
        store.pack(base_chunk.pack).ok()?.block(base_chunk.block).map(|block| block.codec)
    }

    fn done(
        self,
        store: &Store,
        blocks: &Blocks<'_>,
        encoded: Encoded,
        bases: Bases,
        compared: Option<Choice>,
    ) -> Result<Done, CheckpointError> {
        let had_bases = bases.iter().any(Option::is_some);
        let explored = had_bases && self.hint(store).explores();
        let bases = if encoded.uses_bases { bases } else { Vec::new() };
        let depth = blocks.depth(&bases)?;
        let Encoded { codec, uses_bases, payload } = encoded;
        let bytes = self.pending.bytes.len();
        let outcome = Outcome { codec, explored, uses_bases, bytes, payload: payload.len() };
        let Pending { number, lengths, hashes, .. } = self.pending;
        let block = NewBlock { codec, depth, lengths, bases, hashes, payload };
        Ok(Done { pipeline: self.pipeline, number, base_depth: self.base_depth, block, outcome, compared })
    }
}
