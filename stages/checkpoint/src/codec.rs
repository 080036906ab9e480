//! Blocks of chunks as few bytes, and back.

mod choose;
mod mixed;
mod plane;
mod predict;
mod sample;
mod transform;
mod word;
mod zstandard;

use miette::Diagnostic;

use crate::chunk::LONGEST_CHUNK;

pub use choose::{Chooser, Hint, Outcome};

/// Most bytes of the chunks of a block, and best for chunks without bases: Zstandard finds more in more (four
/// million bytes make 2 … 9 % less of first checkpoints than one million), and parts of different kinds are told apart anyway.
pub const BLOCK: usize = 4 * 1024 * 1024;

/// Best bytes of a block whose chunks have bases: the tables of Zstandard stay in the fastest cache, and a base is found as far
/// back as the block is long.
pub const BASED_BLOCK: usize = 64 * 1024;

/// How a block is encoded. The number is in the files of stores: never changed, only added to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Codec {
    /// As it is.
    Raw = 0,
    /// Zstandard (RFC 8878).
    Zstd = 1,
    /// Zstandard with the bases as its prefix.
    Prefix = 2,
    /// Words of 8 bytes less those before them, stored by the significance of their bytes.
    Words = 3,
    /// The same of 4 bytes.
    Halves = 4,
    /// The same of 8 bytes after the words of the bases were subtracted.
    Changes = 5,
    /// The same of 4 bytes after the words of the bases were subtracted.
    HalfChanges = 6,
    /// Parts that are each encoded by Zstandard, as words, or as halves.
    Mixed = 7,
}

impl Codec {
    const ALL: [Self; 8] = [
        Self::Raw,
        Self::Zstd,
        Self::Prefix,
        Self::Words,
        Self::Halves,
        Self::Changes,
        Self::HalfChanges,
        Self::Mixed,
    ];

    /// The codec of a number.
    #[must_use]
    pub fn of_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|codec| *codec as u8 == number)
    }

    /// Whether blocks need their bases to be decoded.
    #[must_use]
    pub fn uses_bases(self) -> bool {
        matches!(self, Self::Prefix | Self::Changes | Self::HalfChanges)
    }
}

/// A block before it is encoded.
#[derive(Debug, Clone, Copy)]
pub struct Block<'a> {
    /// Its chunks, one after the other.
    pub bytes: &'a [u8],
    /// How long each is.
    pub lengths: &'a [u32],
    /// The chunk that each may be told by; none for some or all. A base need not be as long as its chunk.
    pub bases: &'a [Option<&'a [u8]>],
}

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
    let codec = choose::codec(block, hint)?;
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

/// Why a block cannot be encoded or decoded.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum CodecError {
    /// Zstandard says no.
    #[error("Zstandard: {0}")]
    Zstd(String),
    /// The payload does not give the bytes it should.
    #[error("the contents of a block are damaged: {0}")]
    Damaged(&'static str),
}
