//! Planes: the bytes of the same significance of many words. Each is stored in the way that suits it.

use super::{CodecError, zstandard};

/// How a plane is stored.
const CONSTANT: u8 = 0;
const RAW: u8 = 1;
const PACKED: u8 = 2;

/// Level of Zstandard for planes: there is little to find but how often bytes occur.
const LEVEL: i32 = 1;
/// Bytes of a plane by which noise is recognised.
const SAMPLE: usize = 4096;

/// Appends a plane.
pub(super) fn encode(plane: &[u8], payload: &mut Vec<u8>) -> Result<(), CodecError> {
    let first = plane.first().copied().unwrap_or(0);
    if plane.iter().all(|&byte| byte == first) {
        payload.extend([CONSTANT, first]);
        return Ok(());
    }
    if !is_noise(plane) {
        let before = payload.len();
        payload.extend([PACKED, 0, 0, 0, 0]);
        let length = zstandard::compress(plane, &[], LEVEL, payload)?;
        // Less than one part in 64 is not worth decoding.
        if length < plane.len() - plane.len() / 64 {
            payload[before + 1..before + 5].copy_from_slice(&(length as u32).to_le_bytes());
            return Ok(());
        }
        payload.truncate(before);
    }
    payload.push(RAW);
    payload.extend_from_slice(plane);
    Ok(())
}

/// A plane from the beginning of a payload, and the rest of the payload. It is made in `space`, which is as long, unless the payload
/// has it as it is.
pub(super) fn decode<'p: 's, 's>(
    payload: &'p [u8],
    space: &'s mut [u8],
) -> Result<(&'s [u8], &'p [u8]), CodecError> {
    let damaged = || CodecError::Damaged("it ends too early");
    let (&kind, rest) = payload.split_first().ok_or_else(damaged)?;
    match kind {
        CONSTANT => {
            let (&byte, rest) = rest.split_first().ok_or_else(damaged)?;
            space.fill(byte);
            Ok((space, rest))
        }
        RAW => rest.split_at_checked(space.len()).ok_or_else(damaged),
        PACKED => {
            let (length, rest) = rest.split_first_chunk::<4>().ok_or_else(damaged)?;
            let length = u32::from_le_bytes(*length) as usize;
            let (packed, rest) = rest.split_at_checked(length).ok_or_else(damaged)?;
            zstandard::decompress(packed, &[], space)?;
            Ok((space, rest))
        }
        _ => Err(CodecError::Damaged("a plane of an unknown kind")),
    }
}

/// Whether all bytes occur about equally often.
fn is_noise(plane: &[u8]) -> bool {
    let step = (plane.len() / SAMPLE).max(1);
    let mut counts = [0_u32; 256];
    for chunk in plane.chunks(step * 64) {
        for &byte in &chunk[..chunk.len().min(64)] {
            counts[byte as usize] += 1;
        }
    }
    let total: u64 = counts.iter().map(|&count| u64::from(count)).sum();
    let squares: u64 = counts.iter().map(|&count| u64::from(count) * u64::from(count)).sum();
    // Of n bytes drawn equally likely the squares sum to n + n (n - 1) / 256.
    total >= 1024 && squares < total + total * total / 256 * 11 / 10
}
