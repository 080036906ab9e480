//! Tables of packs and manifests: what is compressed and unpacked as a whole.

use super::wire::Torn;
use crate::CheckpointError;
use crate::codec::CodecError;

/// Level of tables and manifests: they are small, and written once.
const LEVEL: i32 = 12;

/// Bytes of anything that is compressed as a whole; the length comes first.
pub(super) fn compress(bytes: &[u8]) -> Result<Vec<u8>, CheckpointError> {
    let mut compressed =
        zstd::bulk::compress(bytes, LEVEL).map_err(|error| CodecError::Zstd(error.to_string()))?;
    if !is_credible(bytes.len() as u64, compressed.len()) {
        pad(&mut compressed, (bytes.len() as u64 - CREDIBLE).div_ceil(RATIO) as usize);
    }
    Ok([&(bytes.len() as u64).to_le_bytes()[..], &compressed].concat())
}

/// Longest of what is compressed as a whole.
pub(super) const LONGEST: u64 = 1 << 32;

/// What is longer has to be at least one part in [`RATIO`] of its length, so that small files never fill the memory.
const CREDIBLE: u64 = 16 << 20;
const RATIO: u64 = 256;

fn is_credible(length: u64, compressed: usize) -> bool {
    length <= LONGEST && length <= CREDIBLE.saturating_add(RATIO.saturating_mul(compressed as u64))
}

/// Makes a frame so long with one that says nothing (RFC 8878, 3.1.2).
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
    // Memory grows with what is really there, not with what is claimed.
    decoder.take(length + 1).read_to_end(&mut out).map_err(|_| Torn)?;
    if out.len() as u64 == length { Ok(out) } else { Err(Torn) }
}
