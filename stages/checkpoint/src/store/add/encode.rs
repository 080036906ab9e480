//! Encoding a block of new chunks.

use super::lane::Pending;
use crate::CheckpointError;
use crate::chunk::ChunkId;
use crate::codec::{self, Block, Chooser, Codec, Encoded, Hint, Outcome};
use crate::store::Store;
use crate::store::base::{Bound, Candidates, Choice, Sizes, candidates};
use crate::store::blocks::{Blocks, ChunkBytes};
use crate::store::pack::NewBlock;

/// A block that is to be encoded.
pub(super) struct Job {
    pub(super) lane: usize,
    pub(super) pending: Pending,
    /// How deep the versions before are by which its chunks are told; none if these are told by nothing.
    pub(super) twins: Option<u8>,
    pub(super) compares: bool,
    pub(super) choice: Choice,
    pub(super) epsilon: f64,
    pub(super) chooser: Chooser,
    /// How many blocks are between what the chooser knows and this one.
    pub(super) after: u64,
}

/// A block that is encoded.
pub(super) struct Done {
    pub(super) lane: usize,
    pub(super) number: u32,
    /// How deep the versions before are by which it was to be told, if any.
    pub(super) twins: Option<u8>,
    pub(super) block: NewBlock,
    pub(super) outcome: Outcome,
    /// What was found best, when several bases were tried.
    pub(super) compared: Option<Choice>,
}

type Bases = Vec<Option<ChunkId>>;

pub(super) fn encode(store: &Store, blocks: &Blocks<'_>, job: Job) -> Result<Done, CheckpointError> {
    if store.settings().deltas.is_some() {
        let Pending { bytes, lengths, .. } = &job.pending;
        let as_it_is = codec::encode_by(&Block { bytes, lengths, bases: &[] }, Codec::Raw, false)?;
        return job.done(store, as_it_is, Vec::new(), None);
    }
    let candidates = job.candidates(store);
    let all = |base: fn(&Candidates) -> Option<ChunkId>| -> Bases { candidates.iter().map(base).collect() };
    let by = |choice| match choice {
        Choice::Kept => all(|candidates| candidates.kept),
        Choice::Previous => all(|candidates| candidates.previous),
        Choice::Root => all(|candidates| candidates.root),
        Choice::Fresh => vec![None; candidates.len()],
    };
    let told = Teller { blocks, job: &job, hint: job.hint(store), codec: None };
    let (kept, previous) = (by(Choice::Kept), by(Choice::Previous));
    let last = all(|candidates| candidates.last);
    if !job.compares || (kept == previous && previous == last) {
        let (encoded, bases) = told.by(by(job.choice))?;
        return job.done(store, encoded, bases, None);
    }
    let kept = told.by(kept)?;
    // What tells one version best tells the others as well, unless it tells none.
    let told = Teller { codec: Some(kept.0.codec).filter(|codec| codec.uses_bases()), ..told };
    let mut sizes = Sizes { kept: kept.0.payload.len(), previous: kept.0.payload.len(), bound: None };
    let mut best = kept;
    let mut others = Vec::new();
    let mut size_by = |choice| -> Result<usize, CheckpointError> {
        let other = told.by(by(choice))?;
        let size = other.0.payload.len();
        others.push((choice, other));
        Ok(size)
    };
    sizes.previous = size_by(Choice::Previous)?;
    if previous != last {
        let (root, fresh) = (size_by(Choice::Root)?, size_by(Choice::Fresh)?);
        sizes.bound = Some(Bound { last: told.by(last)?.0.payload.len(), root, fresh });
    }
    let choice = sizes.choice(job.epsilon);
    if let Some((_, other)) = others.into_iter().find(|(other, _)| *other == choice) {
        best = other;
    }
    job.done(store, best.0, best.1, Some(choice))
}

/// Encodes the block of a job by bases.
struct Teller<'a> {
    blocks: &'a Blocks<'a>,
    job: &'a Job,
    hint: Hint,
    /// The codec, if it is known already.
    codec: Option<Codec>,
}

impl Teller<'_> {
    fn by(&self, bases: Bases) -> Result<(Encoded, Bases), CheckpointError> {
        // A base that is damaged is none; verifying tells of it.
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
        self.chooser.hint(self.twin_codec(store), self.after)
    }

    fn candidates(&self, store: &Store) -> Vec<Candidates> {
        let deepest = store.settings().depth;
        let of = |twin: &Option<ChunkId>| match twin.filter(|_| self.twins.is_some()) {
            // What cannot be read is no base.
            Some(twin) => candidates(store, twin, deepest).unwrap_or_default(),
            None => Candidates::default(),
        };
        self.pending.twins.iter().map(of).collect()
    }

    /// The codec of the block in which the version before of the first chunk that has one is.
    fn twin_codec(&self, store: &Store) -> Option<Codec> {
        let twin = self.pending.twins.iter().flatten().next()?;
        store.pack(twin.pack).ok()?.block(twin.block).map(|block| block.codec)
    }

    fn done(
        self,
        store: &Store,
        encoded: Encoded,
        bases: Bases,
        compared: Option<Choice>,
    ) -> Result<Done, CheckpointError> {
        let had_bases = bases.iter().any(Option::is_some);
        let explored = had_bases && self.hint(store).explores();
        let bases = if encoded.uses_bases { bases } else { Vec::new() };
        let mut depth = 0;
        for base in bases.iter().flatten() {
            let below = store.pack(base.pack)?.block(base.block).map_or(0, |block| block.depth);
            depth = depth.max(below + 1);
        }
        let outcome = Outcome {
            codec: encoded.codec,
            explored,
            uses_bases: encoded.uses_bases,
            bytes: self.pending.bytes.len(),
            payload: encoded.payload.len(),
        };
        let Pending { number, lengths, hashes, .. } = self.pending;
        let block =
            NewBlock { codec: encoded.codec, depth, lengths, bases, hashes, payload: encoded.payload };
        Ok(Done { lane: self.lane, number, twins: self.twins, block, outcome, compared })
    }
}
