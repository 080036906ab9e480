//! Long blocks whose parts are of different kinds: memory has tables of numbers beside text and pointers.

use super::sample::Sample;
use super::transform::{decode_words, encode_words};
use super::{Block, Codec, CodecError, zstandard};
use crate::chunk::PAGE;

/// Bytes of a part.
const PART: usize = 256 * 1024;

/// Payload: the codec of each part, the length of what Zstandard made of all its parts together, that, and the other parts.
pub(super) fn encode(bytes: &[u8], level: i32, payload: &mut Vec<u8>) -> Result<(), CodecError> {
    let codecs = bytes.chunks(PART).map(codec).collect::<Result<Vec<_>, _>>()?;
    payload.extend(codecs.iter().map(|codec| *codec as u8));
    let parts = || bytes.chunks(PART).zip(&codecs);
    let begins = payload.len();
    payload.extend([0; 4]);
    let together = match codecs.iter().all(|codec| *codec == Codec::Zstd) {
        true => zstandard::compress(bytes, &[], level, payload)?,
        false => {
            let theirs = parts().filter(|(_, codec)| **codec == Codec::Zstd).map(|(part, _)| part);
            zstandard::compress(&theirs.collect::<Vec<_>>().concat(), &[], level, payload)?
        }
    };
    let length = u32::try_from(together).map_err(|_| CodecError::Damaged("it is too long"))?;
    payload[begins..begins + 4].copy_from_slice(&length.to_le_bytes());
    for (part, codec) in parts() {
        match codec {
            Codec::Words => encode_words::<u64>(part, &[], payload)?,
            Codec::Halves => encode_words::<u32>(part, &[], payload)?,
            _ => {}
        }
    }
    Ok(())
}

/// The inverse of [`encode`]: fills `bytes`.
pub(super) fn decode(payload: &[u8], bytes: &mut [u8]) -> Result<(), CodecError> {
    let damaged = || CodecError::Damaged("it ends too early");
    let (codecs, rest) = payload.split_at_checked(bytes.len().div_ceil(PART)).ok_or_else(damaged)?;
    let (length, rest) = rest.split_first_chunk::<4>().ok_or_else(damaged)?;
    let (packed, mut rest) =
        rest.split_at_checked(u32::from_le_bytes(*length) as usize).ok_or_else(damaged)?;
    let is_packed = |codec: u8| codec == Codec::Zstd as u8;
    let parts = bytes.chunks(PART).zip(codecs).filter(|(_, codec)| is_packed(**codec));
    let mut end = parts.map(|(part, _)| part.len()).sum();
    zstandard::decompress(packed, &[], &mut bytes[..end])?;
    // They stand together at the beginning; from the last to the first none gets in the way of another.
    for (place, _) in codecs.iter().enumerate().rev().filter(|(_, codec)| is_packed(**codec)) {
        let begin = end - PART.min(bytes.len() - place * PART);
        if begin < place * PART {
            bytes.copy_within(begin..end, place * PART);
        }
        end = begin;
    }
    for (part, &codec) in bytes.chunks_mut(PART).zip(codecs) {
        match Codec::of_number(codec) {
            Some(Codec::Zstd) => {}
            Some(Codec::Words) => rest = decode_words::<u64>(rest, &[], part)?,
            Some(Codec::Halves) => rest = decode_words::<u32>(rest, &[], part)?,
            _ => return Err(CodecError::Damaged("a part of an unknown kind")),
        }
    }
    match rest.is_empty() {
        true => Ok(()),
        false => Err(CodecError::Damaged("its length is another")),
    }
}

/// The codec that makes the fewest bytes of a sample of a part.
fn codec(part: &[u8]) -> Result<Codec, CodecError> {
    let lengths: Vec<u32> = part.chunks(PAGE).map(|page| page.len() as u32).collect();
    let sample = Sample::of(&Block { bytes: part, lengths: &lengths, bases: &[] });
    let size = sample.size(Codec::Zstd)?;
    // Zstandard finds repetitions that are farther apart than the sample shows: the more it finds the more.
    let allowance = if size < sample.len() / 2 { size / 5 } else { size / 24 };
    let mut best = (size - allowance, Codec::Zstd);
    for codec in [Codec::Words, Codec::Halves] {
        best = best.min((sample.size(codec)?, codec));
    }
    Ok(best.1)
}
