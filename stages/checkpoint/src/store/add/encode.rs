//! Encoding a block of new chunks.

use super::lane::Pending;
use crate::CheckpointError;
use crate::chunk::ChunkId;
use crate::codec::{self, Block, Chooser, Codec, Encoded, Outcome};
use crate::store::Store;
use crate::store::base::{BaseRule, Candidates, candidates};
use crate::store::blocks::{Blocks, ChunkBytes};
use crate::store::pack::NewBlock;

/// A block that is to be encoded.
pub(super) struct Job {
    pub(super) lane: usize,
    pub(super) pending: Pending,
    pub(super) wants_bases: bool,
    pub(super) compares: bool,
    pub(super) takes_previous: bool,
    pub(super) epsilon: f64,
    pub(super) chooser: Chooser,
}

/// A block that is encoded.
pub(super) struct Done {
    pub(super) lane: usize,
    pub(super) number: u32,
    /// Whether it was to be told by versions before.
    pub(super) was_based: bool,
    pub(super) block: NewBlock,
    pub(super) outcome: Outcome,
    /// Bytes by the base kept and by the version before, when both were tried.
    pub(super) compared: Option<(usize, usize)>,
}

type Bases = Vec<Option<ChunkId>>;

pub(super) fn encode(store: &Store, blocks: &Blocks<'_>, job: Job) -> Result<Done, CheckpointError> {
    let candidates = job.candidates(store)?;
    let kept: Bases = candidates.iter().map(|candidates| candidates.kept).collect();
    let previous: Bases =
        candidates.iter().map(|candidates| candidates.previous.or(candidates.kept)).collect();
    let hint = job.chooser.hint(job.twin_codec(store));
    let with = |bases: &Bases| -> Result<(Encoded, Bases), CheckpointError> {
        // A base that is damaged is none; verifying tells of it.
        let bytes = bases.iter().map(|base| base.and_then(|base| blocks.chunk(base).ok()));
        let bytes: Vec<Option<ChunkBytes>> = bytes.collect();
        let usable = bases.iter().zip(&bytes).map(|(base, bytes)| base.filter(|_| bytes.is_some())).collect();
        let bytes: Vec<Option<&[u8]>> = bytes.iter().map(|base| base.as_ref().map(AsRef::as_ref)).collect();
        let pending = &job.pending;
        let block = Block { bytes: &pending.bytes, lengths: &pending.lengths, bases: &bytes };
        Ok((codec::encode(&block, hint)?, usable))
    };
    let mut compared = None;
    let (encoded, bases) = if job.compares && kept != previous {
        let (one, other) = (with(&kept)?, with(&previous)?);
        let (first, second) = (one.0.payload.len(), other.0.payload.len());
        compared = Some((first, second));
        if BaseRule::prefers_previous(job.epsilon, first, second) { other } else { one }
    } else {
        with(if job.takes_previous { &previous } else { &kept })?
    };
    job.done(store, encoded, bases, compared)
}

impl Job {
    fn candidates(&self, store: &Store) -> Result<Vec<Candidates>, CheckpointError> {
        let deepest = store.settings().depth;
        let of = |twin: &Option<ChunkId>| match twin.filter(|_| self.wants_bases) {
            // What cannot be read is no base.
            Some(twin) => Ok(candidates(store, twin, deepest).unwrap_or_default()),
            None => Ok(Candidates::default()),
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
        compared: Option<(usize, usize)>,
    ) -> Result<Done, CheckpointError> {
        let had_bases = bases.iter().any(Option::is_some);
        let bases = if encoded.uses_bases { bases } else { Vec::new() };
        let mut depth = 0;
        for base in bases.iter().flatten() {
            let below = store.pack(base.pack)?.block(base.block).map_or(0, |block| block.depth);
            depth = depth.max(below + 1);
        }
        let outcome = Outcome {
            codec: encoded.codec,
            had_bases,
            uses_bases: encoded.uses_bases,
            bytes: self.pending.bytes.len(),
            payload: encoded.payload.len(),
        };
        let Pending { number, lengths, hashes, .. } = self.pending;
        let block =
            NewBlock { codec: encoded.codec, depth, lengths, bases, hashes, payload: encoded.payload };
        Ok(Done { lane: self.lane, number, was_based: self.wants_bases, block, outcome, compared })
    }
}
