//! Files of unknown format: chunks of the earlier version are reused, the rest is cut by content. Also cuts
//! any file into blocks of equal length, which the papers compare by hash.

use std::io::Read;

use super::feed::{Cursor, CutError, Cutter, Feed, Filling, Format, Past, leading_zeros};
use crate::chunk::{Batch, ChunkHash, LONGEST_CHUNK, PAGE, Position, Space};

/// Look-ahead for cutting a chunk, in bytes: two chunks of maximum length, and enough to detect zeros after
/// them.
const LOOK_AHEAD: usize = 2 * LONGEST_CHUNK + PAGE;

/// In a long changed stretch, content-defined cuts are tried at its first chunks and at every n-th one after
/// them.
const PATIENCE: u32 = 4;

/// A file that is being cut.
pub(crate) struct Plain<'a> {
    feed: Feed<'a>,
    format: Format,
    segmenter: Segmenter,
}

impl<'a> Plain<'a> {
    pub(crate) fn new(source: Box<dyn Read + Send + 'a>, format: Format, past: Past) -> Self {
        Self { feed: Feed::new(source), format, segmenter: Segmenter { past, ..Segmenter::default() } }
    }
}

impl Cutter for Plain<'_> {
    fn format(&self) -> Format {
        self.format
    }

    fn cut(&mut self, batch: &mut Batch, amount: usize) -> Result<bool, CutError> {
        let Self { feed, segmenter, .. } = self;
        let mut filling = feed.fill(batch, amount, LOOK_AHEAD);
        while !filling.is_full() {
            // The look-ahead does not depend on the sizes of reads, so cuts are deterministic.
            let ahead = filling.read_ahead(LOOK_AHEAD)?.min(LOOK_AHEAD);
            if ahead == 0 {
                return Ok(false);
            }
            let part = segmenter.part(filling.ahead().get(..ahead).unwrap_or_default());
            segmenter.take(&mut filling, &part);
        }
        Ok(true)
    }
}

/// The next chunk.
enum Part {
    /// Zeros.
    Zeros(usize),
    /// Data.
    Data { length: usize, hash: ChunkHash, base_chunk: Option<u32>, then: Then },
}

/// How the file continues in the earlier version.
enum Then {
    /// In place, as before.
    On,
    /// At this chunk.
    At(u32),
}

/// State of the cutter, apart from the bytes.
#[derive(Default)]
struct Segmenter {
    past: Past,
    /// Current position in the earlier version.
    followed: Cursor,
    /// Position in the earlier version as if nothing was inserted or removed.
    level: Cursor,
    /// Number of successive unknown chunks.
    strange: u32,
    /// Whether the file was in a run of zeros.
    in_zeros: bool,
}

impl Segmenter {
    /// The first chunk of the bytes.
    fn part(&mut self, ahead: &[u8]) -> Part {
        let zeros = leading_zeros(ahead);
        let goes_on = self.in_zeros && zeros > 0;
        self.in_zeros = zeros == ahead.len();
        if zeros >= PAGE || goes_on || self.in_zeros {
            return Part::Zeros(zeros);
        }
        match self.part_of_data(ahead) {
            // A few zeros at the end of a chunk.
            Part::Data { length, .. } if length <= zeros => Part::Zeros(length),
            part => part,
        }
    }

    /// The first chunk of bytes that do not begin with a run of zeros.
    fn part_of_data(&mut self, ahead: &[u8]) -> Part {
        let expected = match self.same(ahead, self.followed) {
            Ok(same) => return same,
            Err(hash) => hash,
        };
        if self.level != self.followed
            && let Ok(same) = self.same(ahead, self.level)
        {
            return same;
        }
        let data = ahead.get(..zeros_begin(ahead)).unwrap_or(ahead);
        let in_place = self.in_place(data, expected);
        if let Some(found) = in_place.as_ref().and_then(|part| self.before_a_known_one(ahead, part)) {
            return found;
        }
        self.strange = self.strange.saturating_add(1);
        let asks = self.strange <= 2 || self.strange.is_multiple_of(PATIENCE);
        match in_place {
            Some(part) if !asks => part,
            part => self.by_content(data, part),
        }
    }

    /// The chunk of the earlier version at a cursor, if the bytes begin with it; otherwise the hash of as
    /// many bytes.
    fn same(&self, ahead: &[u8], cursor: Cursor) -> Result<Part, Option<(usize, ChunkHash)>> {
        let chunk = cursor.begins(&self.past).ok_or(None)?;
        let bytes = ahead.get(..chunk.length).filter(|bytes| chunk_length(bytes)).ok_or(None)?;
        let hash = self.past.hash(bytes);
        if hash.kept() == chunk.hash {
            let then = Then::At(cursor.chunk + 1);
            return Ok(Part::Data { length: chunk.length, hash, base_chunk: Some(cursor.chunk), then });
        }
        Err(Some((chunk.length, hash)))
    }

    /// The chunk that ends at the end of the expected chunk of the earlier version.
    fn in_place(&self, data: &[u8], hashed: Option<(usize, ChunkHash)>) -> Option<Part> {
        let chunk = self.past.get(self.followed.chunk).filter(|chunk| chunk.id.is_some())?;
        let length = chunk.length.checked_sub(self.followed.inside)?.min(data.len());
        let bytes = data.get(..length).filter(|bytes| chunk_length(bytes))?;
        let hash = match hashed {
            Some((hashed, hash)) if hashed == length => hash,
            _ => self.past.hash(bytes),
        };
        Some(Part::Data { length, hash, base_chunk: Some(self.followed.chunk), then: Then::On })
    }

    /// The expected chunk, changed, if the chunk after it is unchanged.
    fn before_a_known_one(&self, ahead: &[u8], part: &Part) -> Option<Part> {
        let &Part::Data { length, hash, base_chunk, .. } = part else { return None };
        let mut behind = self.followed;
        behind.advance(&self.past, length);
        self.same(ahead.get(length..)?, behind).ok()?;
        Some(Part::Data { length, hash, base_chunk, then: Then::At(behind.chunk) })
    }

    /// The content-defined chunk, if it or the one after it is known from elsewhere; otherwise the chunk in
    /// place, if there is one.
    fn by_content(&self, data: &[u8], in_place: Option<Part>) -> Part {
        let length = content_cut(data);
        let (bytes, behind) = data.split_at(length);
        let hash = self.past.hash(bytes);
        if let Some(found) = self.past.find(hash.kept(), length) {
            return Part::Data { length, hash, base_chunk: Some(found), then: Then::At(found + 1) };
        }
        let base_chunk = self.past.get(self.followed.chunk).filter(|chunk| chunk.id.is_some());
        let base_chunk = base_chunk.map(|_| self.followed.chunk);
        let Some(in_place) = in_place else { return Part::Data { length, hash, base_chunk, then: Then::On } };
        let second = behind.get(..content_cut(behind)).unwrap_or_default();
        match self.past.find(self.past.hash(second).kept(), second.len()) {
            Some(found) => Part::Data { length, hash, base_chunk, then: Then::At(found) },
            None => in_place,
        }
    }

    /// Adds the next bytes to the batch.
    fn take(&mut self, filling: &mut Filling<'_, '_>, part: &Part) {
        let place = Position { space: Space::File, address: filling.offset() };
        let (length, then) = match part {
            Part::Zeros(length) => {
                let base_chunk = Some(self.followed.chunk).filter(|_| self.followed.inside == 0);
                filling.keep_zeros(*length, place, base_chunk.filter(|&base| self.past.get(base).is_some()));
                (*length, &Then::On)
            }
            Part::Data { length, hash, base_chunk, then } => {
                filling.keep(*length, *hash, place, *base_chunk);
                (*length, then)
            }
        };
        self.level.advance(&self.past, length);
        match *then {
            Then::On => self.followed.advance(&self.past, length),
            Then::At(chunk) => {
                self.followed = Cursor::start(chunk);
                self.strange = 0;
            }
        }
    }
}

fn chunk_length(bytes: &[u8]) -> bool {
    (1..=LONGEST_CHUNK).contains(&bytes.len())
}

/// Start of the first run of zeros of at least a page, or the end of the bytes. They do not begin with one.
fn zeros_begin(bytes: &[u8]) -> usize {
    // Every such run contains one of these positions.
    for sample in (PAGE - 1..bytes.len()).step_by(PAGE) {
        let (before, behind) = bytes.split_at(sample);
        let behind = leading_zeros(behind);
        if behind > 0 {
            let before = before.iter().rev().take_while(|&&byte| byte == 0).count();
            if before + behind >= PAGE {
                return sample - before;
            }
        }
    }
    bytes.len()
}

/// Minimum size of a content-defined chunk, in bytes.
const SHORTEST: usize = 1024;

/// Normal size, in bytes; larger chunks are cut more easily.
const NORMAL: usize = 4096;

/// Bits of the hash that must be zero below and above [`NORMAL`], which becomes about the average size (level
/// 2 of the normalisation in Xia et al., `FastCDC`, USENIX ATC 2016).
const BITS: (u32, u32) = (14, 10);

/// A random number for each byte. Never change it: equal data must be cut alike to be found again.
const GEAR: [u64; 256] = gear();

/// Pseudorandom numbers (`SplitMix64`).
const fn gear() -> [u64; 256] {
    let mut table = [0; 256];
    let mut state = 0_u64;
    let mut byte = 0;
    while byte < 256 {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        table[byte] = z ^ (z >> 31);
        byte += 1;
    }
    table
}

/// Length of the first content-defined chunk: at most all bytes, and [`LONGEST_CHUNK`].
fn content_cut(bytes: &[u8]) -> usize {
    let bytes = bytes.get(..LONGEST_CHUNK).unwrap_or(bytes);
    let Some(rest) = bytes.get(SHORTEST..) else { return bytes.len() };
    let (before, after) = rest.split_at(rest.len().min(NORMAL - SHORTEST));
    let mut hash = 0;
    if let Some(place) = place(&mut hash, before, BITS.0) {
        return SHORTEST + place;
    }
    match place(&mut hash, after, BITS.1) {
        Some(place) => NORMAL + place,
        None => bytes.len(),
    }
}

/// Position after which the masked bits of the hash are zero. They depend on about the last fifty bytes.
fn place(hash: &mut u64, bytes: &[u8], bits: u32) -> Option<usize> {
    let place = bytes.iter().position(|&byte| {
        *hash = (*hash << 1).wrapping_add(GEAR[usize::from(byte)]);
        *hash >> (u64::BITS - bits) == 0
    });
    place.map(|place| place + 1)
}

/// A file that is being cut.
pub(crate) struct Fixed<'a> {
    feed: Feed<'a>,
    past: Past,
    block: usize,
}

impl<'a> Fixed<'a> {
    pub(crate) fn new(source: Box<dyn Read + Send + 'a>, block: usize, past: Past) -> Self {
        Self { feed: Feed::new(source), past, block }
    }
}

impl Cutter for Fixed<'_> {
    fn format(&self) -> Format {
        Format::Plain
    }

    fn cut(&mut self, batch: &mut Batch, amount: usize) -> Result<bool, CutError> {
        let Self { feed, past, block } = self;
        let mut filling = feed.fill(batch, amount, *block);
        while !filling.is_full() {
            let length = filling.read_ahead(*block)?.min(*block);
            if length == 0 {
                return Ok(false);
            }
            // Blocks of zeros count like all others, as in the papers.
            let hash = past.hash(filling.ahead().get(..length).unwrap_or_default());
            let place = Position { space: Space::File, address: filling.offset() };
            let base_chunk = past.at(place);
            filling.keep(length, hash, place, base_chunk);
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_zeros_are_found_at_any_offset() {
        for begin in [1, 2, 4095, 4096, 4097, 10_000, 20_479] {
            for length in [4095, 4096, 5000] {
                let mut bytes = vec![1; 30_000];
                bytes[begin..begin + length].fill(0);
                let expected = if length < PAGE { bytes.len() } else { begin };
                assert_eq!(zeros_begin(&bytes), expected, "{length} from {begin}");
            }
        }
    }

    fn noise(length: usize) -> Vec<u8> {
        let mut state = 7_u64;
        (0..length)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (state >> 56) as u8
            })
            .collect()
    }

    fn cuts(mut bytes: &[u8]) -> Vec<usize> {
        let mut lengths = Vec::new();
        while !bytes.is_empty() {
            let length = content_cut(bytes);
            lengths.push(length);
            bytes = &bytes[length..];
        }
        lengths
    }

    #[test]
    fn lengths_are_in_range_and_about_a_page_on_average() {
        let lengths = cuts(&noise(4_000_000));
        let (_, inner) = lengths.split_last().unwrap();
        assert!(inner.iter().all(|length| (SHORTEST + 1..=LONGEST_CHUNK).contains(length)));
        let average = 4_000_000 / lengths.len();
        assert!((3500..5500).contains(&average), "{average}");
    }

    #[test]
    fn cuts_resynchronize_after_an_insertion() {
        let bytes = noise(400_000);
        let mut inserted = bytes.clone();
        inserted.splice(100_000..100_000, *b"something new");
        let ends = |lengths: Vec<usize>, shift: usize| -> Vec<usize> {
            let mut end = 0;
            let ends = lengths.into_iter().map(|length| {
                end += length;
                end
            });
            ends.filter(|end| *end > 140_000).map(|end| end - shift).collect()
        };
        assert_eq!(ends(cuts(&bytes), 0), ends(cuts(&inserted), 13));
    }

    #[test]
    fn short_bytes_are_one_chunk() {
        for length in [0, 1, SHORTEST - 1, SHORTEST] {
            assert_eq!(content_cut(&noise(length)), length);
        }
    }
}
