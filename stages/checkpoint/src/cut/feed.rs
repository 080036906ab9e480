//! The bytes of a file on their way into a batch, and where in the earlier version of the file they have come to.

use std::collections::HashMap;
use std::io::Read;
use std::sync::{Arc, OnceLock};

use miette::Diagnostic;

use crate::chunk::{Batch, Chunk, ChunkHash, Earlier, EarlierChunk, KeptHash, PAGE, Place, Space};

/// What a file is, as far as it matters for cutting it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// Any file.
    #[default]
    Plain,
    /// An image of DMTCP, format v4.
    Dmtcp,
    /// Pages of CRIU, `pages-N.img`.
    Criu,
    /// A file that gzip compressed: hardly anything in it stays the same when a little changes. DMTCP makes such images unless
    /// it is told `--no-gzip`.
    Gzip,
}

/// A file that is being cut, from its beginning to its end.
pub trait Cutter: Send {
    /// What the file was recognised as.
    fn format(&self) -> Format;

    /// Reads on, and adds whole chunks until the batch has `amount` bytes or more (by at most a chunk). False at the end of the
    /// file; the batch may have got chunks then as well. Zeros count by the pages they were found in.
    fn cut(&mut self, batch: &mut Batch, amount: usize) -> Result<bool, CutError>;
}

/// Most bytes that are read at once: few calls of the system, and they are still in the processor's cache when they are hashed.
const PIECE: usize = 1024 * 1024;

/// A file that is being read.
pub(super) struct Feed<'a> {
    source: Box<dyn Read + Send + 'a>,
    /// What was read, but is not in a chunk yet.
    carry: Vec<u8>,
    ended: bool,
    offset: u64,
}

impl<'a> Feed<'a> {
    pub(super) fn new(source: Box<dyn Read + Send + 'a>) -> Self {
        Self { source, carry: Vec::new(), ended: false, offset: 0 }
    }

    /// Goes on with the file. The bytes are read to where they are to stay.
    pub(super) fn fill<'f>(
        &'f mut self,
        batch: &'f mut Batch,
        amount: usize,
        look_ahead: usize,
    ) -> Filling<'f, 'a> {
        let kept = batch.bytes.len();
        // Vectors that grow by themselves get up to twice as large.
        batch.bytes.reserve_exact(amount.min(16 * PIECE) + 2 * look_ahead);
        batch.bytes.append(&mut self.carry);
        let first = batch.chunks.len();
        Filling { feed: self, batch, kept, next: kept, first, taken: 0, amount }
    }
}

/// A batch that is being filled. Its bytes are those of its chunks, perhaps a gap where zeros were left out, and what was
/// read ahead.
pub(super) struct Filling<'f, 'a> {
    feed: &'f mut Feed<'a>,
    batch: &'f mut Batch,
    /// Where the bytes of the chunks end.
    kept: usize,
    /// Where what was read ahead begins.
    next: usize,
    /// The first chunk that was not in the batch before.
    first: usize,
    taken: usize,
    amount: usize,
}

impl Filling<'_, '_> {
    /// Whether the batch has got enough.
    pub(super) fn is_full(&self) -> bool {
        self.taken >= self.amount
    }

    /// Where the next chunk begins in the file.
    pub(super) fn offset(&self) -> u64 {
        self.feed.offset
    }

    /// What was read ahead.
    pub(super) fn ahead(&self) -> &[u8] {
        self.batch.bytes.get(self.next..).unwrap_or_default()
    }

    /// Reads until this many bytes are ahead, or to the end of the file. How many there are.
    pub(super) fn read_ahead(&mut self, need: usize) -> Result<usize, CutError> {
        let ahead = self.batch.bytes.len() - self.next;
        if ahead >= need || self.feed.ended {
            return Ok(ahead);
        }
        self.close_gap();
        let due = self.amount.saturating_sub(self.taken).min(PIECE);
        let want = due.max(need) - ahead;
        let mut limited = self.feed.source.by_ref().take(want as u64);
        // Reads into the room that the vector has, without filling it with zeros first.
        let count = limited.read_to_end(&mut self.batch.bytes).map_err(CutError::Read)?;
        self.feed.ended = count < want;
        Ok(ahead + count)
    }

    /// The next bytes as a chunk.
    pub(super) fn keep(&mut self, length: usize, hash: ChunkHash, place: Place, base_chunk: Option<u32>) {
        let start = self.kept;
        if self.next > self.kept {
            self.batch.bytes.copy_within(self.next..self.next + length, self.kept);
        }
        self.batch.chunks.push(Chunk { start, length, zero: false, hash, place, base_chunk });
        self.kept += length;
        self.pass(length);
    }

    /// The next bytes, which are zeros, as a chunk or as a part of the one before.
    pub(super) fn keep_zeros(&mut self, length: usize, place: Place, base_chunk: Option<u32>) {
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
    /// Leaves to the batch what is in chunks, and what was read ahead to the next.
    fn drop(&mut self) {
        self.feed.carry.clear();
        self.feed.carry.extend_from_slice(self.batch.bytes.get(self.next..).unwrap_or_default());
        self.batch.bytes.truncate(self.kept);
    }
}

fn follows(before: &Chunk, place: Place) -> bool {
    before.place.space == place.space
        && before.place.address.checked_add(before.length as u64) == Some(place.address)
}

/// How many zeros bytes begin with.
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

/// An earlier version, or none.
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

    /// The chunk at a place. Files are in the same order as before for the most part: the one after that which was found last
    /// is looked at first.
    pub(super) fn at(&mut self, place: Place) -> Option<u32> {
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

/// A byte of the earlier version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Cursor {
    /// The chunk it is in.
    pub(super) chunk: u32,
    /// How many bytes of that chunk come before it.
    pub(super) inside: usize,
}

impl Cursor {
    /// The first byte of a chunk.
    pub(super) fn start(chunk: u32) -> Self {
        Self { chunk, inside: 0 }
    }

    /// Goes on by some bytes.
    pub(super) fn advance(&mut self, past: &Past, length: usize) {
        self.inside = self.inside.saturating_add(length);
        while let Some(chunk) = past.get(self.chunk)
            && self.inside >= chunk.length
        {
            self.inside -= chunk.length;
            self.chunk += 1;
        }
    }

    /// The chunk that begins here, if it is one of data.
    pub(super) fn begins<'p>(&self, past: &'p Past) -> Option<&'p EarlierChunk> {
        past.get(self.chunk).filter(|chunk| self.inside == 0 && chunk.id.is_some())
    }
}

/// Bytes from a place to the end of its page, or to the end of what there is.
pub(super) fn rest_of_page(address: u64, left: u64) -> usize {
    let page = PAGE as u64;
    (page - address % page).min(left) as usize
}

/// The next bytes as a chunk that belongs to a place, and the base chunk at that place.
pub(super) fn keep(filling: &mut Filling<'_, '_>, past: &mut Past, length: usize, place: Place) {
    let base_chunk = past.at(place);
    keep_like(filling, past, length, place, base_chunk);
}

/// The next bytes as a chunk that belongs to a place and has this base chunk.
pub(super) fn keep_like(
    filling: &mut Filling<'_, '_>,
    past: &Past,
    length: usize,
    place: Place,
    base_chunk: Option<u32>,
) {
    let bytes = filling.ahead().get(..length).unwrap_or_default();
    if leading_zeros(bytes) == length {
        return filling.keep_zeros(length, place, base_chunk);
    }
    let hash = past.hash(bytes);
    filling.keep(length, hash, place, base_chunk);
}

/// The next page of the file, or what there is of it, where it stands in the file.
pub(super) fn keep_in_file(filling: &mut Filling<'_, '_>, past: &mut Past, ahead: usize) {
    let address = filling.offset();
    let length = rest_of_page(address, ahead as u64);
    keep(filling, past, length, Place { space: Space::File, address });
}

/// Why a file cannot be taken.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum CutError {
    /// The system refused to read.
    #[error("cannot be read")]
    Read(#[source] std::io::Error),
    /// An image that ends too early.
    #[error("the image is incomplete: {reason} at byte {offset}")]
    #[diagnostic(help(
        "the program was killed, or is still writing: add the checkpoint when it is whole; nothing was stored"
    ))]
    Incomplete {
        /// Where it ends.
        offset: u64,
        /// What is missing.
        reason: String,
    },
    /// An image that contradicts itself.
    #[error("the image is damaged: {reason} at byte {offset}")]
    #[diagnostic(help("make the checkpoint again; nothing was stored"))]
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
    fn zeros_are_counted_to_the_byte() {
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
