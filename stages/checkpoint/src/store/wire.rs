//! Encoding of tables of packs and manifests: numbers as LEB128 (DWARF 5, 7.6), signed ones with zigzag
//! encoding, texts with their length, and everything compressed.

use crate::codec::CodecError;
use crate::error::CheckpointError;

/// Truncated or invalid bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Torn;

/// Writes numbers and texts.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    pub(crate) fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }

    /// A number that may be negative.
    pub(crate) fn signed(&mut self, number: i64) {
        self.number(((number << 1) ^ (number >> 63)).cast_unsigned());
    }

    pub(crate) fn text(&mut self, text: &[u8]) {
        self.number(text.len() as u64);
        self.bytes.extend_from_slice(text);
    }

    /// Bytes whose number the reader knows.
    pub(crate) fn plain(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    pub(crate) fn finish(self) -> Vec<u8> {
        self.bytes
    }
}

/// Reads what a [`Writer`] wrote.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    pub(crate) fn number(&mut self) -> Result<u64, Torn> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.bytes.split_first().ok_or(Torn)?;
            self.bytes = rest;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                return Err(Torn);
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(Torn)
    }

    /// A number of a smaller type.
    pub(crate) fn small<N: TryFrom<u64>>(&mut self) -> Result<N, Torn> {
        N::try_from(self.number()?).map_err(|_| Torn)
    }

    pub(crate) fn signed(&mut self) -> Result<i64, Torn> {
        let folded = self.number()?;
        Ok((folded >> 1).cast_signed() ^ -(folded & 1).cast_signed())
    }

    pub(crate) fn text(&mut self) -> Result<&'a [u8], Torn> {
        let length = self.small()?;
        self.plain(length)
    }

    pub(crate) fn plain(&mut self, length: usize) -> Result<&'a [u8], Torn> {
        let (bytes, rest) = self.bytes.split_at_checked(length).ok_or(Torn)?;
        self.bytes = rest;
        Ok(bytes)
    }

    /// Number of following items: at most the number of remaining bytes, so that a claim reserves no memory.
    pub(crate) fn count(&mut self) -> Result<usize, Torn> {
        let count = self.small()?;
        if count > self.bytes.len() { Err(Torn) } else { Ok(count) }
    }

    pub(crate) fn end(self) -> Result<(), Torn> {
        if self.bytes.is_empty() { Ok(()) } else { Err(Torn) }
    }
}

/// Compression level of tables and manifests, which are small and written once.
const LEVEL: i32 = 12;

/// Compressed bytes; the length comes first.
pub(super) fn compress(bytes: &[u8]) -> Result<Vec<u8>, CheckpointError> {
    let mut compressed =
        zstd::bulk::compress(bytes, LEVEL).map_err(|error| CodecError::Zstd(error.to_string()))?;
    if !is_credible(bytes.len() as u64, compressed.len()) {
        pad(&mut compressed, (bytes.len() as u64 - CREDIBLE).div_ceil(RATIO) as usize);
    }
    Ok([&(bytes.len() as u64).to_le_bytes()[..], &compressed].concat())
}

/// Maximum size of compressed data.
pub(super) const LONGEST: u64 = 1 << 32;

/// Larger data must not compress better than [`RATIO`], so that small files never fill the memory.
const CREDIBLE: u64 = 16 << 20;
const RATIO: u64 = 256;

fn is_credible(length: u64, compressed: usize) -> bool {
    length <= LONGEST && length <= CREDIBLE.saturating_add(RATIO.saturating_mul(compressed as u64))
}

/// Pads a frame with an empty one (RFC 8878, 3.1.2).
fn pad(compressed: &mut Vec<u8>, length: usize) {
    const SKIPPED: u32 = 0x184D_2A50;
    let rest = length.saturating_sub(compressed.len() + 8);
    compressed.extend_from_slice(&SKIPPED.to_le_bytes());
    compressed.extend_from_slice(&(rest as u32).to_le_bytes());
    compressed.resize(compressed.len() + rest, 0);
}

pub(super) fn decompress(bytes: &[u8]) -> Result<Vec<u8>, Torn> {
    use std::io::Read;
    let (length, compressed) = bytes.split_at_checked(8).ok_or(Torn)?;
    let length = u64::from_le_bytes(length.try_into().map_err(|_| Torn)?);
    if !is_credible(length, compressed.len()) {
        return Err(Torn);
    }
    let mut out = Vec::new();
    let decoder = zstd::stream::read::Decoder::new(compressed).map_err(|_| Torn)?;
    // Memory grows with real data, not with claims.
    decoder.take(length + 1).read_to_end(&mut out).map_err(|_| Torn)?;
    if out.len() as u64 == length { Ok(out) } else { Err(Torn) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn written_data_is_read_back(numbers: Vec<u64>, signed: Vec<i64>, text: Vec<u8>) {
            let mut writer = Writer::default();
            numbers.iter().for_each(|&number| writer.number(number));
            signed.iter().for_each(|&number| writer.signed(number));
            writer.text(&text);
            let bytes = writer.finish();
            let mut reader = Reader::new(&bytes);
            for number in numbers {
                prop_assert_eq!(reader.number(), Ok(number));
            }
            for number in signed {
                prop_assert_eq!(reader.signed(), Ok(number));
            }
            prop_assert_eq!(reader.text(), Ok(&text[..]));
            prop_assert_eq!(reader.end(), Ok(()));
        }

        #[test]
        fn anything_ends(bytes: Vec<u8>) {
            let mut reader = Reader::new(&bytes);
            while reader.number().is_ok() {}
            let mut reader = Reader::new(&bytes);
            while reader.text().is_ok_and(|text| !text.is_empty()) {}
        }
    }
}
