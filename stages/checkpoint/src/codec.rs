//! Blocks of chunks as few bytes, and back.

mod choose;

use miette::Diagnostic;

pub use choose::{Chooser, Hint, Outcome};

/// Most bytes of the chunks of a block.
pub const BLOCK: usize = 256 * 1024;

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
}

impl Codec {
    /// The codec of a number.
    #[must_use]
    pub fn of_number(number: u8) -> Option<Self> {
        [Self::Raw, Self::Zstd, Self::Prefix].into_iter().find(|codec| *codec as u8 == number)
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

/// Encodes a block as the hint says.
pub fn encode(block: &Block<'_>, hint: Hint) -> Result<Encoded, CodecError> {
    choose::encode(block, hint)
}

/// The bytes of a block: `lengths` in all, appended to `bytes`. `bases` are those it was encoded with, none when it uses none.
pub fn decode(
    codec: Codec,
    payload: &[u8],
    lengths: &[u32],
    bases: &[Option<&[u8]>],
    bytes: &mut Vec<u8>,
) -> Result<(), CodecError> {
    choose::decode(codec, payload, lengths, bases, bytes)
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
