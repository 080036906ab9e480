//! Compresses blocks of chunks, and decompresses them; learns the codec of a block from the blocks before it.

mod transform;
mod word;

use crate::chunk::LONGEST_CHUNK;

use transform::Sample;

pub use transform::{Block, Codec, CodecError};

/// Maximum total size of the chunks of a block, and the best size for chunks without bases: Zstandard
/// compresses larger blocks better (4 MB take 2 to 9 % less than 1 MB for first checkpoints), and parts of
/// different kinds are separated anyway.
pub const BLOCK: usize = 4 * 1024 * 1024;

/// Best size of a block whose chunks have bases: the tables of Zstandard fit the fastest cache, and matches
/// in the base are at most one block away.
pub const BASED_BLOCK: usize = 64 * 1024;

/// An encoded block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Encoded {
    /// The codec.
    pub codec: Codec,
    /// Whether decoding needs the bases.
    pub uses_bases: bool,
    /// The payload.
    pub payload: Vec<u8>,
}

/// Encodes a block with the codec of the hint, or with the best one for a sample.
pub fn encode(block: &Block<'_>, hint: Hint) -> Result<Encoded, CodecError> {
    let codec = choose(block, hint)?;
    encode_by(block, codec, hint.thorough)
}

/// Encodes a block with a codec, with more or less effort. Without bases, a codec that needs them is
/// replaced; if the payload is longer than the block, [`Codec::Raw`] is used.
pub fn encode_by(block: &Block<'_>, codec: Codec, thorough: bool) -> Result<Encoded, CodecError> {
    let codec = match codec {
        Codec::Prefix if !has_bases(block.bases) => Codec::Zstd,
        Codec::Changes if !has_bases(block.bases) => Codec::Words,
        Codec::HalfChanges if !has_bases(block.bases) => Codec::Halves,
        codec => codec,
    };
    let mut payload = Vec::new();
    transform::encode(block, codec, thorough, &mut payload)?;
    if codec == Codec::Raw || payload.len() >= block.bytes.len() {
        return Ok(Encoded { codec: Codec::Raw, uses_bases: false, payload: block.bytes.to_vec() });
    }
    payload.shrink_to_fit();
    Ok(Encoded { codec, uses_bases: codec.uses_bases(), payload })
}

/// Decodes a block with chunks of the given `lengths` and appends it to `bytes`. `bases` are those of the
/// encoder, or empty if the block does not use them.
pub fn decode(
    codec: Codec,
    payload: &[u8],
    lengths: &[u32],
    bases: &[Option<&[u8]>],
    bytes: &mut Vec<u8>,
) -> Result<(), CodecError> {
    let length = usize::try_from(total(lengths)).ok().filter(|&length| length <= BLOCK + LONGEST_CHUNK);
    let length = length.ok_or(CodecError::Damaged("longer than the maximum block"))?;
    let before = bytes.len();
    bytes.resize(before + length, 0);
    let decoded = decode_into(codec, payload, lengths, bases, &mut bytes[before..]);
    if decoded.is_err() {
        bytes.truncate(before);
    }
    decoded
}

/// Decodes into a buffer of the length of the block. Its old contents are ignored; after an error its
/// contents are unspecified.
pub fn decode_into(
    codec: Codec,
    payload: &[u8],
    lengths: &[u32],
    bases: &[Option<&[u8]>],
    bytes: &mut [u8],
) -> Result<(), CodecError> {
    match total(lengths) == bytes.len() as u64 {
        true => transform::decode(codec, payload, lengths, bases, bytes),
        false => Err(CodecError::Damaged("wrong length")),
    }
}

fn total(lengths: &[u32]) -> u64 {
    lengths.iter().fold(0, |sum, &length| sum.saturating_add(length.into()))
}

/// Whether any chunk has a nonempty base.
fn has_bases(bases: &[Option<&[u8]>]) -> bool {
    bases.iter().flatten().any(|base| !base.is_empty())
}

/// Expectations for a block before it is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Hint {
    /// Best codec of the blocks of the earlier versions, or of the previous blocks.
    pub usual: Option<Codec>,
    /// Whether to try all suitable codecs on a sample, not only the usual one.
    pub explore: bool,
    /// Whether to spend more time on chunks without bases.
    pub thorough: bool,
}

/// The result of encoding a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    /// Its codec.
    pub codec: Codec,
    /// Whether it had bases and all codecs were tried.
    pub explored: bool,
    /// Whether it uses the bases.
    pub uses_bases: bool,
    /// Total size of its chunks.
    pub bytes: usize,
    /// Size of its payload.
    pub payload: usize,
}

/// Learns from encoded blocks which codec to use next. One per file that is added; it receives results in
/// block order, so its choices do not depend on the number of threads.
#[derive(Debug, Clone, Default)]
pub struct Chooser {
    asked: u64,
    /// Number of successive blocks that had bases and did not use them.
    unused: u32,
    /// Codec of the last block that had bases.
    usual: Option<Codec>,
    /// Number of successive blocks for which all codecs were tried and this one won.
    steady: u32,
    /// Whether to skip the extra effort for new data.
    quick: bool,
}

/// Number of blocks with unused bases after which bases are no longer read.
const ENOUGH: u32 = 12;

/// All codecs are tried on one block in this many, even if one codec always won.
const TRIED: u64 = 8;

/// Number of successive trials with the same winner after which not all codecs are tried.
const STEADY: u32 = 4;

impl Hint {
    /// Whether all codecs are tried on a block that has bases.
    #[must_use]
    pub fn explores(&self) -> bool {
        self.explore || !self.usual.is_some_and(Codec::uses_bases)
    }
}

impl Chooser {
    /// Stores new data in half the time, with 2 to 7 % more bytes.
    #[must_use]
    pub fn quick() -> Self {
        Self { quick: true, ..Self::default() }
    }

    /// Whether bases are worth reading. If not, blocks are encoded without them, except an occasional one
    /// that checks whether that is still so.
    #[must_use]
    pub fn wants_bases(&self) -> bool {
        self.unused < ENOUGH
    }

    /// The hint for the next block, or for the one `after` blocks later. `base` is the codec of the block
    /// that has the earlier versions of most of its chunks; `None` if they have none.
    #[must_use]
    pub fn hint(&self, base: Option<Codec>, after: u64) -> Hint {
        let before = base.filter(|codec| codec.uses_bases());
        let is_steady = self.steady >= STEADY;
        let usual = if is_steady { self.usual } else { before.or(self.usual) };
        let sure = is_steady || before.is_some();
        let explore = !sure || (self.asked + after).is_multiple_of(TRIED);
        // New data is stored for long; changing data is soon stored again.
        Hint { usual, explore, thorough: base.is_none() && !self.quick }
    }

    /// Records the result of a block.
    pub fn learn(&mut self, outcome: &Outcome) {
        self.asked += 1;
        // The result of the usual codec has no information about the others.
        if outcome.explored {
            self.unused = if outcome.uses_bases { 0 } else { self.unused.saturating_add(1) };
            let same = self.usual == Some(outcome.codec);
            self.steady = if same { self.steady.saturating_add(1) } else { 0 };
            self.usual = Some(outcome.codec);
        }
    }
}

/// The codec of a block: the usual one if it can be used, otherwise the best one for a sample.
fn choose(block: &Block<'_>, hint: Hint) -> Result<Codec, CodecError> {
    let has_bases = has_bases(block.bases);
    match hint.usual {
        Some(usual) if has_bases && !hint.explores() => Ok(usual),
        _ if !has_bases => Ok(Codec::Mixed),
        _ => best(block),
    }
}

/// The codec with the smallest payload for a sample. Codecs other than Zstandard have to save 1/16, because
/// the sample lacks long repetitions.
fn best(block: &Block<'_>) -> Result<Codec, CodecError> {
    let sample = Sample::of(block);
    let size = sample.size(Codec::Prefix)?;
    // If the bases contain nearly all of it, it is best encoded against them.
    if size < sample.len() / 16 {
        return Ok(Codec::Prefix);
    }
    let prefix = (size - size / 16, Codec::Prefix);
    let words = sample.least(&[Codec::Changes, Codec::HalfChanges, Codec::Words, Codec::Halves], prefix.0)?;
    Ok(words.map_or(prefix, |words| words.min(prefix)).1)
}
