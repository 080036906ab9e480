//! Blocks of chunks as few bytes, and back; which codec a block gets is learned from those before it.

mod transform;
mod word;

use crate::chunk::LONGEST_CHUNK;

use transform::Sample;

pub use transform::{Block, Codec, CodecError};

/// Most bytes of the chunks of a block, and best for chunks without bases: Zstandard finds more in more (four
/// million bytes make 2 … 9 % less of first checkpoints than one million), and parts of different kinds are told apart anyway.
pub const BLOCK: usize = 4 * 1024 * 1024;

/// Best bytes of a block whose chunks have bases: the tables of Zstandard stay in the fastest cache, and a base is found as far
/// back as the block is long.
pub const BASED_BLOCK: usize = 64 * 1024;

/// A block as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Encoded {
    /// How.
    pub codec: Codec,
    /// Whether decoding needs the bases: all that the block was given.
    pub uses_bases: bool,
    /// The bytes.
    pub payload: Vec<u8>,
}

/// Encodes a block by the codec that its hint says, or by the one that is best for a sample of it.
pub fn encode(block: &Block<'_>, hint: Hint) -> Result<Encoded, CodecError> {
    let codec = choose(block, hint)?;
    encode_by(block, codec, hint.thorough)
}

/// Encodes a block by a codec, with more or less effort. One that needs bases gives way to one that does not when there are
/// none, and any to [`Codec::Raw`] when the payload would be longer than the block.
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

/// The bytes of a block: `lengths` in all, appended to `bytes`. `bases` are those it was encoded with, none when it uses
/// none.
pub fn decode(
    codec: Codec,
    payload: &[u8],
    lengths: &[u32],
    bases: &[Option<&[u8]>],
    bytes: &mut Vec<u8>,
) -> Result<(), CodecError> {
    let length = usize::try_from(total(lengths)).ok().filter(|&length| length <= BLOCK + LONGEST_CHUNK);
    let length = length.ok_or(CodecError::Damaged("it is longer than a block may be"))?;
    let before = bytes.len();
    bytes.resize(before + length, 0);
    let decoded = decode_into(codec, payload, lengths, bases, &mut bytes[before..]);
    if decoded.is_err() {
        bytes.truncate(before);
    }
    decoded
}

/// The same into a place that is as long as the block; what was there before does not matter, and what is there after an error
/// is nothing.
pub fn decode_into(
    codec: Codec,
    payload: &[u8],
    lengths: &[u32],
    bases: &[Option<&[u8]>],
    bytes: &mut [u8],
) -> Result<(), CodecError> {
    match total(lengths) == bytes.len() as u64 {
        true => transform::decode(codec, payload, lengths, bases, bytes),
        false => Err(CodecError::Damaged("its length is another")),
    }
}

fn total(lengths: &[u32]) -> u64 {
    lengths.iter().fold(0, |sum, &length| sum.saturating_add(length.into()))
}

/// Whether any chunk has a base that tells anything.
fn has_bases(bases: &[Option<&[u8]>]) -> bool {
    bases.iter().flatten().any(|base| !base.is_empty())
}

/// What is known before a block is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Hint {
    /// How the blocks of the chunks' earlier versions, or of the chunks before, were encoded best.
    pub usual: Option<Codec>,
    /// Whether to try all codecs that may do on a sample, and not only the usual one.
    pub explore: bool,
    /// Whether to spend more time on what has no bases.
    pub thorough: bool,
}

/// How a block came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    /// Its codec.
    pub codec: Codec,
    /// Whether it had bases, and was tried by all codecs.
    pub explored: bool,
    /// Whether it uses them.
    pub uses_bases: bool,
    /// Bytes of its chunks.
    pub bytes: usize,
    /// Bytes of its payload.
    pub payload: usize,
}

/// Learns from blocks which codec the next ones should get. One for each file that is being added; it hears of blocks in
/// their order, so that the same is chosen with any number of threads.
#[derive(Debug, Clone, Default)]
pub struct Chooser {
    asked: u64,
    /// Blocks in a row that had bases and did not use them.
    unused: u32,
    /// Codec of the last block that had bases.
    usual: Option<Codec>,
    /// Blocks in a row that were tried by all codecs and came out by that one.
    steady: u32,
    /// Whether never to spend more time on what is new.
    quick: bool,
}

/// Blocks with unused bases after which bases are not read any more.
const ENOUGH: u32 = 12;

/// Of so many blocks one is tried by all codecs although those before it all came out the same.
const TRIED: u64 = 8;

/// After so many that were tried by all codecs and came out the same, not all are tried.
const STEADY: u32 = 4;

impl Hint {
    /// Whether a block that has bases is tried by all codecs.
    #[must_use]
    pub fn explores(&self) -> bool {
        self.explore || !self.usual.is_some_and(Codec::uses_bases)
    }
}

impl Chooser {
    /// One that stores new data in half the time and some more bytes: 2 to 7 in 100 of it.
    #[must_use]
    pub fn quick() -> Self {
        Self { quick: true, ..Self::default() }
    }

    /// Whether bases are worth reading; if not, blocks are better encoded without, but for one now and then that shows whether
    /// that is still so.
    #[must_use]
    pub fn wants_bases(&self) -> bool {
        self.unused < ENOUGH
    }

    /// What a block should be told: the next one, or the one that comes so many after it. `base` is the codec of the block in which
    /// the earlier versions of most of its chunks are; none if they have none.
    #[must_use]
    pub fn hint(&self, base: Option<Codec>, after: u64) -> Hint {
        let before = base.filter(|codec| codec.uses_bases());
        let is_steady = self.steady >= STEADY;
        let usual = if is_steady { self.usual } else { before.or(self.usual) };
        let sure = is_steady || before.is_some();
        let explore = !sure || (self.asked + after).is_multiple_of(TRIED);
        // What has no earlier version is stored for long; what changes is soon stored anew.
        Hint { usual, explore, thorough: base.is_none() && !self.quick }
    }

    /// Hears how a block came out.
    pub fn learn(&mut self, outcome: &Outcome) {
        self.asked += 1;
        // What came out by the usual codec says nothing about others.
        if outcome.explored {
            self.unused = if outcome.uses_bases { 0 } else { self.unused.saturating_add(1) };
            let same = self.usual == Some(outcome.codec);
            self.steady = if same { self.steady.saturating_add(1) } else { 0 };
            self.usual = Some(outcome.codec);
        }
    }
}

/// The codec of a block: the usual one if it can be used, or the best for a sample.
fn choose(block: &Block<'_>, hint: Hint) -> Result<Codec, CodecError> {
    let has_bases = has_bases(block.bases);
    match hint.usual {
        Some(usual) if has_bases && !hint.explores() => Ok(usual),
        _ if !has_bases => Ok(Codec::Mixed),
        _ => best(block),
    }
}

/// The codec that makes the fewest bytes of a sample. Others than Zstandard have to save one part in 16: long repetitions are
/// not in the sample.
fn best(block: &Block<'_>) -> Result<Codec, CodecError> {
    let sample = Sample::of(block);
    let size = sample.size(Codec::Prefix)?;
    // What the bases have nearly all of is best encoded against them.
    if size < sample.len() / 16 {
        return Ok(Codec::Prefix);
    }
    let prefix = (size - size / 16, Codec::Prefix);
    let words = sample.least(&[Codec::Changes, Codec::HalfChanges, Codec::Words, Codec::Halves], prefix.0)?;
    Ok(words.map_or(prefix, |words| words.min(prefix)).1)
}
