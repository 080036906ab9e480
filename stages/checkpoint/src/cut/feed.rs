//! Reads a file into a batch, and tracks the corresponding position in its earlier version.

use std::collections::HashMap;
use std::io::Read;
use std::sync::{Arc, OnceLock};

use miette::Diagnostic;

use crate::chunk::{Batch, Chunk, ChunkHash, Earlier, EarlierChunk, KeptHash, PAGE, Position, Space};

/// The format of a file, as far as it matters for cutting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// Any file.
    #[default]
    Plain,
    /// An image of DMTCP, format v4.
    Dmtcp,
    /// Pages of CRIU, `pages-N.img`.
    Criu,
    /// A file compressed with gzip: after a small change, nearly all of it differs. DMTCP writes such images
    /// without `--no-gzip`.
    Gzip,
}

/// A file that is being cut sequentially.
pub trait Cutter: Send {
    /// The detected format.
    fn format(&self) -> Format;

    /// Reads on, and adds complete chunks until the batch has at least `amount` bytes, exceeded by at most
    /// one chunk. Returns false at the end of the file, possibly after adding chunks. Runs of zeros count by
    /// the pages that were read.
    fn cut(&mut self, batch: &mut Batch, amount: usize) -> Result<bool, CutError>;
}

/// Maximum size of a read: few system calls, and the bytes are still in the cache when they are hashed.
const PIECE: usize = 1024 * 1024;

/// A file that is being read.
pub(super) struct Feed<'a> {
    source: Box<dyn Read + Send + 'a>,
    /// Bytes that were read, but are not in a chunk yet.
    carry: Vec<u8>,
    ended: bool,
    offset: u64,
}

impl<'a> Feed<'a> {
    pub(super) fn new(source: Box<dyn Read + Send + 'a>) -> Self {
        Self { source, carry: Vec::new(), ended: false, offset: 0 }
    }

    /// Continues the file in a batch. Bytes are read directly to their final position.
    pub(super) fn fill<'f>(
        &'f mut self,
        batch: &'f mut Batch,
        amount: usize,
        look_ahead: usize,
    ) -> Filling<'f, 'a> {
        let kept = batch.bytes.len();
        // Avoids vectors that grow to twice the size.
        batch.bytes.reserve_exact(amount.min(16 * PIECE) + 2 * look_ahead);
        batch.bytes.append(&mut self.carry);
        let first = batch.chunks.len();
        Filling { feed: self, batch, kept, next: kept, first, taken: 0, amount }
    }
}

/// A batch that is being filled: the bytes of its chunks, possibly a gap where zeros were skipped, and the
/// read-ahead.
pub(super) struct Filling<'f, 'a> {
    feed: &'f mut Feed<'a>,
    batch: &'f mut Batch,
    /// End of the bytes of the chunks.
    kept: usize,
    /// Start of the read-ahead.
    next: usize,
    /// The first chunk added since the batch was attached.
    first: usize,
    taken: usize,
    amount: usize,
}

impl Filling<'_, '_> {
    /// Whether the batch is full.
    pub(super) fn is_full(&self) -> bool {
        self.taken >= self.amount
    }

    /// File offset of the next chunk.
    pub(super) fn offset(&self) -> u64 {
        self.feed.offset
    }

    /// The read-ahead.
    pub(super) fn ahead(&self) -> &[u8] {
        self.batch.bytes.get(self.next..).unwrap_or_default()
    }

    /// Reads until the read-ahead has this many bytes, or to the end of the file. Returns its size.
    pub(super) fn read_ahead(&mut self, need: usize) -> Result<usize, CutError> {
        let ahead = self.batch.bytes.len() - self.next;
        if ahead >= need || self.feed.ended {
            return Ok(ahead);
        }
        self.close_gap();
        let due = self.amount.saturating_sub(self.taken).min(PIECE);
        let want = due.max(need) - ahead;
        let mut limited = self.feed.source.by_ref().take(want as u64);
        // Reads into spare capacity, without zeroing it first.
        let count = limited.read_to_end(&mut self.batch.bytes).map_err(CutError::Read)?;
        self.feed.ended = count < want;
        Ok(ahead + count)
    }

    /// Adds the next bytes as a chunk.
    pub(super) fn keep(&mut self, length: usize, hash: ChunkHash, place: Position, base_chunk: Option<u32>) {
        let start = self.kept;
        if self.next > self.kept {
            self.batch.bytes.copy_within(self.next..self.next + length, self.kept);
        }
        self.batch.chunks.push(Chunk { start, length, zero: false, hash, place, base_chunk });
        self.kept += length;
        self.pass(length);
    }

    /// Adds the next bytes, which are zeros, as a chunk or to the previous one.
    pub(super) fn keep_zeros(&mut self, length: usize, place: Position, base_chunk: Option<u32>) {
        let start = self.kept;
        let own = self.batch.chunks.get_mut(self.first..).unwrap_or_default();
        match own.last_mut() {
            Some(before) if before.zero && follows(before, place) => before.length += length,
            _ => {
                let hash = ChunkHash::default();
                self.batch.chunks.push(Chunk { start, length, zero: true, hash, place, base_chunk });
            }
        }
        self.pass(length);
    }

    fn pass(&mut self, length: usize) {
        self.next += length;
        self.taken = self.taken.saturating_add(length);
        self.feed.offset += length as u64;
    }

    fn close_gap(&mut self) {
        if self.next > self.kept {
            self.batch.bytes.copy_within(self.next.., self.kept);
            let ahead = self.batch.bytes.len() - self.next;
            self.batch.bytes.truncate(self.kept + ahead);
            self.next = self.kept;
        }
    }
}

impl Drop for Filling<'_, '_> {
    /// Leaves the chunks to the batch, and the read-ahead to the next one.
    fn drop(&mut self) {
        self.feed.carry.clear();
        self.feed.carry.extend_from_slice(self.batch.bytes.get(self.next..).unwrap_or_default());
        self.batch.bytes.truncate(self.kept);
    }
}

fn follows(before: &Chunk, place: Position) -> bool {
    before.place.space == place.space
        && before.place.address.checked_add(before.length as u64) == Some(place.address)
}

/// Number of leading zeros.
pub(super) fn leading_zeros(bytes: &[u8]) -> usize {
    if bytes.first().is_none_or(|&byte| byte != 0) {
        return 0;
    }
    let (blocks, _) = bytes.as_chunks::<64>();
    let zero =
        blocks.iter().take_while(|block| block.iter().fold(0, |any, byte| any | byte) == 0).count() * 64;
    let rest = bytes.get(zero..).unwrap_or_default();
    zero + rest.iter().take_while(|&&byte| byte == 0).count()
}

/// The earlier version, if any.
#[derive(Default)]
pub(super) struct Past {
    earlier: Option<Arc<Earlier>>,
    seed: u64,
    by_hash: OnceLock<HashMap<KeptHash, u32>>,
    next: u32,
}

impl Past {
    pub(super) fn new(earlier: Option<Arc<Earlier>>, seed: u64) -> Self {
        Self { earlier, seed, ..Self::default() }
    }

    /// The hash of a chunk.
    pub(super) fn hash(&self, bytes: &[u8]) -> ChunkHash {
        ChunkHash::seeded(self.seed, bytes)
    }

    /// A chunk by its number.
    pub(super) fn get(&self, index: u32) -> Option<&EarlierChunk> {
        self.earlier.as_ref()?.get(index)
    }

    /// The chunk at a position. Files mostly keep their order, so the successor of the last hit is tried
    /// first.
    pub(super) fn at(&mut self, place: Position) -> Option<u32> {
        let earlier = self.earlier.as_ref()?;
        let found = match earlier.get(self.next) {
            Some(chunk) if chunk.place == place => self.next,
            _ => earlier.at(place)?,
        };
        self.next = found + 1;
        Some(found)
    }

    /// The first chunk with this hash and length.
    pub(super) fn find(&self, hash: KeptHash, length: usize) -> Option<u32> {
        let earlier = self.earlier.as_ref()?;
        let by_hash = self.by_hash.get_or_init(|| index(earlier));
        let found = *by_hash.get(&hash)?;
        (earlier.get(found)?.length == length).then_some(found)
    }
}

fn index(earlier: &Earlier) -> HashMap<KeptHash, u32> {
    let mut by_hash = HashMap::with_capacity(earlier.chunks().len());
    for (index, chunk) in (0..).zip(earlier.chunks()) {
        if chunk.id.is_some() {
            by_hash.entry(chunk.hash).or_insert(index);
        }
    }
    by_hash
}

/// A byte position in the earlier version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Cursor {
    /// The chunk.
    pub(super) chunk: u32,
    /// Offset in the chunk.
    pub(super) inside: usize,
}

impl Cursor {
    /// The first byte of a chunk.
    pub(super) fn start(chunk: u32) -> Self {
        Self { chunk, inside: 0 }
    }

    /// Advances by some bytes.
    pub(super) fn advance(&mut self, past: &Past, length: usize) {
        self.inside = self.inside.saturating_add(length);
        while let Some(chunk) = past.get(self.chunk)
            && self.inside >= chunk.length
        {
            self.inside -= chunk.length;
            self.chunk += 1;
        }
    }

    /// The chunk that begins here, unless it is zeros.
    pub(super) fn begins<'p>(&self, past: &'p Past) -> Option<&'p EarlierChunk> {
        past.get(self.chunk).filter(|chunk| self.inside == 0 && chunk.id.is_some())
    }
}

/// Number of bytes from a position to the end of its page, or to the end of the data.
pub(super) fn rest_of_page(address: u64, left: u64) -> usize {
    let page = PAGE as u64;
    (page - address % page).min(left) as usize
}

/// Adds the next bytes as a chunk at a position, with the base chunk at that position.
pub(super) fn keep(filling: &mut Filling<'_, '_>, past: &mut Past, length: usize, place: Position) {
    let base_chunk = past.at(place);
    keep_like(filling, past, length, place, base_chunk);
}

/// Adds the next bytes as a chunk at a position, with this base chunk.
pub(super) fn keep_like(
    filling: &mut Filling<'_, '_>,
    past: &Past,
    length: usize,
    place: Position,
    base_chunk: Option<u32>,
) {
    let bytes = filling.ahead().get(..length).unwrap_or_default();
    if leading_zeros(bytes) == length {
        return filling.keep_zeros(length, place, base_chunk);
    }
    let hash = past.hash(bytes);
    filling.keep(length, hash, place, base_chunk);
}

/// Adds the next page of the file, or what is left of it, at its file offset.
pub(super) fn keep_in_file(filling: &mut Filling<'_, '_>, past: &mut Past, ahead: usize) {
    let address = filling.offset();
    let length = rest_of_page(address, ahead as u64);
    keep(filling, past, length, Position { space: Space::File, address });
}

/// Why a file cannot be added.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum CutError {
    /// The operating system could not read it.
    #[error("cannot be read")]
    #[diagnostic(code(checkpoint::read))]
    Read(#[source] std::io::Error),
    /// A truncated image.
    #[error("the image is incomplete: {reason} at byte {offset}")]
    #[diagnostic(
        code(checkpoint::incomplete),
        help(
            "the program was killed, or is still writing: add the checkpoint when it is complete; nothing was stored"
        )
    )]
    Incomplete {
        /// Where it ends.
        offset: u64,
        /// What is missing.
        reason: String,
    },
    /// An inconsistent image.
    #[error("the image is damaged: {reason} at byte {offset}")]
    #[diagnostic(code(checkpoint::cut_damaged), help("create the checkpoint again; nothing was stored"))]
    Damaged {
        /// Where.
        offset: u64,
        /// What is wrong.
        reason: String,
    },
}

impl CutError {
    pub(crate) fn incomplete(offset: u64, reason: impl Into<String>) -> Self {
        Self::Incomplete { offset, reason: reason.into() }
    }

    pub(crate) fn damaged(offset: u64, reason: impl Into<String>) -> Self {
        Self::Damaged { offset, reason: reason.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::leading_zeros;

    #[test]
    fn zeros_are_counted_exactly() {
        for length in [0, 1, 63, 64, 65, 200, 4096] {
            assert_eq!(leading_zeros(&vec![0; length]), length);
            for other in 0..length {
                let mut bytes = vec![0; length];
                bytes[other] = 128;
                assert_eq!(leading_zeros(&bytes), other);
            }
        }
    }
}
