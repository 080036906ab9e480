//! The codecs.
//!
//! Words are stored as byte planes: plane `i` has byte `i` of many words, and each plane is encoded
//! separately. Long blocks are split: memory has tables of numbers next to text and pointers, and each part
//! gets the codec that is best for a sample of it.

use std::cell::Cell;

use miette::Diagnostic;
use zstd::zstd_safe::{CCtx, DCtx, compress_bound, get_error_name};

use super::word::{self, Predictor, Word, predictor};
use crate::chunk::PAGE;

/// Level of Zstandard for samples, which only have to be compared.
const SAMPLE_LEVEL: i32 = 2;

/// Level of Zstandard for blocks of new data, which is most of a series.
const THOROUGH_LEVEL: i32 = 7;

/// Level of Zstandard for other blocks without bases.
const QUICK_LEVEL: i32 = 3;

/// Level of Zstandard for blocks with bases: any level finds most matches in the bases.
const BASED_LEVEL: i32 = 3;

/// Magic number of a Zstandard dictionary; a prefix must not begin with it.
const DICTIONARY: [u8; 4] = [0x37, 0xa4, 0x30, 0xec];

/// The encoding of a block. The numbers are part of the store format: append only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Codec {
    /// Uncompressed.
    Raw = 0,
    /// Zstandard (RFC 8878).
    Zstd = 1,
    /// Zstandard with the bases as prefix.
    Prefix = 2,
    /// Differences of words of 8 bytes to earlier words, stored in byte planes.
    Words = 3,
    /// The same with words of 4 bytes.
    Halves = 4,
    /// As [`Codec::Words8`] after the words of the bases are subtracted.
    Changes = 5,
    /// As [`Codec::Words4`] after the words of the bases are subtracted.
    HalfChanges = 6,
    /// Parts that are each encoded with Zstandard, or as words of 8 or 4 bytes.
    Mixed = 7,
}

impl Codec {
    const ALL: [Self; 8] = {
        use Codec::{Changes, HalfChanges, Halves, Mixed, Prefix, Raw, Words, Zstd};
        [Raw, Zstd, Prefix, Words, Halves, Changes, HalfChanges, Mixed]
    };

    /// The codec of a number.
    #[must_use]
    pub fn of_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|codec| *codec as u8 == number)
    }

    /// Whether decoding needs the bases.
    #[must_use]
    pub fn uses_bases(self) -> bool {
        matches!(self, Self::Prefix | Self::Changes | Self::HalfChanges)
    }
}

/// A block to be encoded.
#[derive(Debug, Clone, Copy)]
pub struct Block<'a> {
    /// Its chunks, concatenated.
    pub bytes: &'a [u8],
    /// The lengths of the chunks.
    pub lengths: &'a [u32],
    /// The bases of the chunks; empty if there are none. A base may have another length than its chunk.
    pub bases: &'a [Option<&'a [u8]>],
}

/// Appends the payload of a block. Missing bases count as zeros or as empty.
pub(super) fn encode(
    block: &Block<'_>,
    codec: Codec,
    thorough: bool,
    payload: &mut Vec<u8>,
) -> Result<(), CodecError> {
    let level = if thorough { THOROUGH_LEVEL } else { QUICK_LEVEL };
    match codec {
        Codec::Mixed => encode_mixed(block.bytes, level, payload)?,
        Codec::Raw => payload.extend_from_slice(block.bytes),
        Codec::Zstd => _ = compress(block.bytes, &[], level, payload)?,
        Codec::Prefix => encode_behind(block, payload)?,
        Codec::Words => encode_words::<u64>(block.bytes, &[], payload)?,
        Codec::Halves => encode_words::<u32>(block.bytes, &[], payload)?,
        Codec::Changes => encode_words::<u64>(block.bytes, &beneath(block.lengths, block.bases), payload)?,
        Codec::HalfChanges => {
            encode_words::<u32>(block.bytes, &beneath(block.lengths, block.bases), payload)?;
        }
    }
    Ok(())
}

/// The inverse of [`encode`]: fills `bytes`, whose size is the sum of the lengths.
pub(super) fn decode(
    codec: Codec,
    payload: &[u8],
    lengths: &[u32],
    bases: &[Option<&[u8]>],
    bytes: &mut [u8],
) -> Result<(), CodecError> {
    match codec {
        Codec::Raw if payload.len() == bytes.len() => bytes.copy_from_slice(payload),
        Codec::Raw => return Err(CodecError::Damaged("wrong length")),
        Codec::Zstd => decompress(payload, &[], bytes)?,
        Codec::Prefix => decompress(payload, &prefix(bases), bytes)?,
        Codec::Words => return consumed(decode_words::<u64>(payload, &[], bytes)?),
        Codec::Halves => return consumed(decode_words::<u32>(payload, &[], bytes)?),
        Codec::Changes => return consumed(decode_words::<u64>(payload, &beneath(lengths, bases), bytes)?),
        Codec::HalfChanges => {
            return consumed(decode_words::<u32>(payload, &beneath(lengths, bases), bytes)?);
        }
        Codec::Mixed => decode_mixed(payload, bytes)?,
    }
    Ok(())
}

/// A payload must be consumed completely.
fn consumed(left: &[u8]) -> Result<(), CodecError> {
    match left.is_empty() {
        true => Ok(()),
        false => Err(CodecError::Damaged("wrong length")),
    }
}

/// Appends a block compressed with its bases as prefix. The block follows them in memory, so Zstandard
/// searches both as one buffer, in half the time.
fn encode_behind(block: &Block<'_>, payload: &mut Vec<u8>) -> Result<(), CodecError> {
    let mut both = prefix(block.bases);
    let begins = both.len();
    both.extend_from_slice(block.bytes);
    let (prefix, bytes) = both.split_at(begins);
    compress(bytes, prefix, BASED_LEVEL, payload)?;
    Ok(())
}

/// The concatenated bases.
fn prefix(bases: &[Option<&[u8]>]) -> Vec<u8> {
    let mut prefix = bases.iter().flatten().copied().collect::<Vec<_>>().concat();
    if prefix.starts_with(&DICTIONARY) {
        prefix.insert(0, 0);
    }
    prefix
}

/// For each byte of a block the byte at the same offset of its base, or zero.
fn beneath(lengths: &[u32], bases: &[Option<&[u8]>]) -> Vec<u8> {
    let mut beneath = Vec::with_capacity(lengths.iter().map(|&length| length as usize).sum());
    let bases = bases.iter().copied().chain(std::iter::repeat(None));
    for (&length, base) in lengths.iter().zip(bases) {
        let end = beneath.len() + length as usize;
        let base = base.unwrap_or_default();
        beneath.extend_from_slice(&base[..base.len().min(length as usize)]);
        beneath.resize(end, 0);
    }
    beneath
}

/// Subtracts the words of `beneath`.
fn less<W: Word>(bytes: &[u8], beneath: &[u8]) -> Vec<W> {
    let mut words = Vec::<W>::new();
    word::words(bytes, &mut words);
    for (word, base) in words.iter_mut().zip(beneath.chunks_exact(W::BYTES)) {
        *word = word.minus(W::of(base));
    }
    words
}

/// Approximate size of the output of [`encode_words`].
fn estimate<W: Word>(bytes: &[u8], beneath: &[u8]) -> usize {
    word::estimate(&less::<W>(bytes, beneath))
}

/// Payload: order, stride, the planes, and the bytes after the last complete word.
fn encode_words<W: Word>(bytes: &[u8], beneath: &[u8], payload: &mut Vec<u8>) -> Result<(), CodecError> {
    let (mut words, mut spare) = (less::<W>(bytes, beneath), Vec::<W>::new());
    let predictor = predictor(&words);
    for _ in 0..predictor.order {
        word::differences(&words, predictor.stride.into(), &mut spare);
        std::mem::swap(&mut words, &mut spare);
    }
    if predictor.order > 0 || !beneath.is_empty() {
        words.iter_mut().for_each(|word| *word = word.fold());
    }
    payload.extend([predictor.order, predictor.stride]);
    let mut planes = Vec::new();
    word::split(&words, &mut planes);
    if !words.is_empty() {
        planes.chunks_exact(words.len()).try_for_each(|bytes| encode_plane(bytes, payload))?;
    }
    payload.extend_from_slice(bytes.chunks_exact(W::BYTES).remainder());
    Ok(())
}

thread_local! {
    /// Scratch memory for planes.
    static PLANES: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Maximum size of the scratch memory that a thread keeps.
const MAX_SCRATCH_BYTES: usize = 1 << 20;

/// Fills `bytes`, and returns the rest of the payload.
fn decode_words<'p, W: Word>(
    payload: &'p [u8],
    beneath: &[u8],
    bytes: &mut [u8],
) -> Result<&'p [u8], CodecError> {
    let mut space = PLANES.take();
    if space.len() < bytes.len() {
        space.resize(bytes.len(), 0);
    }
    let decoded = decode_words_in::<W>(payload, beneath, bytes, &mut space);
    if space.len() <= MAX_SCRATCH_BYTES {
        PLANES.set(space);
    }
    decoded
}

fn decode_words_in<'p, W: Word>(
    payload: &'p [u8],
    beneath: &[u8],
    bytes: &mut [u8],
    space: &mut [u8],
) -> Result<&'p [u8], CodecError> {
    let (&[order, stride], mut rest) = payload.split_first_chunk().ok_or(CodecError::Damaged("truncated"))?;
    let predictor = Predictor { order, stride };
    if !predictor.is_valid() {
        return Err(CodecError::Damaged("unknown predictor"));
    }
    let count = bytes.len() / W::BYTES;
    let mut planes: [&[u8]; 8] = [&[]; 8];
    if count > 0 {
        for (plane, space) in planes.iter_mut().zip(space.chunks_exact_mut(count)).take(W::BYTES) {
            (*plane, rest) = decode_plane(rest, space)?;
        }
    }
    let mut words = Vec::<W>::new();
    word::join(&planes[..W::BYTES], &mut words);
    if order > 0 || !beneath.is_empty() {
        words.iter_mut().for_each(|word| *word = word.unfold());
    }
    for _ in 0..order {
        word::sums(&mut words, stride.into());
    }
    for (word, base) in words.iter_mut().zip(beneath.chunks_exact(W::BYTES)) {
        *word = word.plus(W::of(base));
    }
    let mut targets = bytes.chunks_exact_mut(W::BYTES);
    for (target, word) in targets.by_ref().zip(&words) {
        word.put(target);
    }
    let left = targets.into_remainder();
    let (last, rest) = rest.split_at_checked(left.len()).ok_or(CodecError::Damaged("truncated"))?;
    left.copy_from_slice(last);
    Ok(rest)
}

/// Size of a part.
const PART: usize = 256 * 1024;

/// Payload: the codec of each part, the compressed size of all Zstandard parts together, their data, and the
/// other parts.
fn encode_mixed(bytes: &[u8], level: i32, payload: &mut Vec<u8>) -> Result<(), CodecError> {
    let codecs = bytes.chunks(PART).map(part_codec).collect::<Result<Vec<_>, _>>()?;
    payload.extend(codecs.iter().map(|codec| *codec as u8));
    let parts = || bytes.chunks(PART).zip(&codecs);
    let begins = payload.len();
    payload.extend([0; 4]);
    let together = match codecs.iter().all(|codec| *codec == Codec::Zstd) {
        true => compress(bytes, &[], level, payload)?,
        false => {
            let theirs = parts().filter(|(_, codec)| **codec == Codec::Zstd).map(|(part, _)| part);
            compress(&theirs.collect::<Vec<_>>().concat(), &[], level, payload)?
        }
    };
    let length = u32::try_from(together).map_err(|_| CodecError::Damaged("too long"))?;
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

/// The inverse of [`encode_mixed`]: fills `bytes`.
fn decode_mixed(payload: &[u8], bytes: &mut [u8]) -> Result<(), CodecError> {
    let damaged = || CodecError::Damaged("truncated");
    let (codecs, rest) = payload.split_at_checked(bytes.len().div_ceil(PART)).ok_or_else(damaged)?;
    let (length, rest) = rest.split_first_chunk::<4>().ok_or_else(damaged)?;
    let (packed, mut rest) =
        rest.split_at_checked(u32::from_le_bytes(*length) as usize).ok_or_else(damaged)?;
    let is_packed = |codec: u8| codec == Codec::Zstd as u8;
    let parts = bytes.chunks(PART).zip(codecs).filter(|(_, codec)| is_packed(**codec));
    let mut end = parts.map(|(part, _)| part.len()).sum();
    decompress(packed, &[], &mut bytes[..end])?;
    // They are decoded contiguously at the front, then moved in reverse order, so none is overwritten.
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
            _ => return Err(CodecError::Damaged("unknown codec of a part")),
        }
    }
    match rest.is_empty() {
        true => Ok(()),
        false => Err(CodecError::Damaged("wrong length")),
    }
}

/// The codec with the smallest output for a sample of a part.
fn part_codec(part: &[u8]) -> Result<Codec, CodecError> {
    let lengths: Vec<u32> = part.chunks(PAGE).map(|page| page.len() as u32).collect();
    let sample = Sample::of(&Block { bytes: part, lengths: &lengths, bases: &[] });
    let size = sample.size(Codec::Zstd)?;
    // Zstandard finds repetitions that are farther apart than in the sample: more, the more it finds in the
    // sample.
    let allowance = if size < sample.len() / 2 { size / 5 } else { size / 24 };
    let zstd = (size - allowance, Codec::Zstd);
    let words = sample.least(&[Codec::Words, Codec::Halves], zstd.0)?;
    Ok(words.map_or(zstd, |words| words.min(zstd)).1)
}

/// Minimum size of a sample, if the block is large enough.
const SAMPLE: usize = 24 * 1024;

/// Some chunks from all over a block.
pub(super) struct Sample<'a> {
    bytes: Vec<u8>,
    lengths: Vec<u32>,
    bases: Vec<Option<&'a [u8]>>,
}

impl<'a> Sample<'a> {
    /// Groups of three neighbours, so that the sample contains repetitions across chunks.
    pub(super) fn of(block: &Block<'a>) -> Self {
        let mut sample = Self { bytes: Vec::new(), lengths: Vec::new(), bases: Vec::new() };
        let step = (3 * block.bytes.len()).div_ceil(SAMPLE).max(3);
        let mut start = 0;
        for (at, &length) in block.lengths.iter().enumerate() {
            let range = start..start + length as usize;
            start = range.end;
            if at % step < 3
                && let Some(bytes) = block.bytes.get(range)
            {
                sample.bytes.extend_from_slice(bytes);
                sample.lengths.push(length);
                sample.bases.push(block.bases.get(at).copied().flatten());
            }
        }
        sample
    }

    /// Its size with a codec.
    pub(super) fn size(&self, codec: Codec) -> Result<usize, CodecError> {
        let block = Block { bytes: &self.bytes, lengths: &self.lengths, bases: &self.bases };
        let mut payload = Vec::new();
        match codec {
            Codec::Zstd => _ = compress(&self.bytes, &[], SAMPLE_LEVEL, &mut payload)?,
            codec => encode(&block, codec, false, &mut payload)?,
        }
        Ok(payload.len())
    }

    /// Its approximate size with a codec of words, without encoding it.
    fn estimate(&self, codec: Codec) -> usize {
        let beneath = || beneath(&self.lengths, &self.bases);
        match codec {
            Codec::Words => estimate::<u64>(&self.bytes, &[]),
            Codec::Halves => estimate::<u32>(&self.bytes, &[]),
            Codec::Changes => estimate::<u64>(&self.bytes, &beneath()),
            Codec::HalfChanges => estimate::<u32>(&self.bytes, &beneath()),
            Codec::Raw | Codec::Zstd | Codec::Prefix | Codec::Mixed => self.bytes.len(),
        }
    }

    /// The best codec of words and its size, if it may be smaller than a limit. Only promising codecs are
    /// run.
    pub(super) fn least(&self, codecs: &[Codec], most: usize) -> Result<Option<(usize, Codec)>, CodecError> {
        let estimates: Vec<(usize, Codec)> =
            codecs.iter().map(|&codec| (self.estimate(codec), codec)).collect();
        let least = estimates.iter().map(|(size, _)| *size).min().unwrap_or(usize::MAX);
        // The estimates ignore repetitions.
        let close = (least + least / 4).min(most + most / 2);
        let mut best = None;
        for (_, codec) in estimates.into_iter().filter(|(size, _)| *size <= close) {
            let found = Some((self.size(codec)?, codec));
            best = if best.is_none() { found } else { best.min(found) };
        }
        Ok(best)
    }

    /// Its size.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }
}

/// The encoding of a plane.
const CONSTANT: u8 = 0;

const RAW: u8 = 1;
const PACKED: u8 = 2;

/// Level of Zstandard for planes: entropy coding is what matters.
const PLANE_LEVEL: i32 = 1;

/// Number of bytes of a plane that are checked for noise.
const NOISE_SAMPLE: usize = 4096;

/// Appends a plane.
fn encode_plane(plane: &[u8], payload: &mut Vec<u8>) -> Result<(), CodecError> {
    let first = plane.first().copied().unwrap_or(0);
    if plane.iter().all(|&byte| byte == first) {
        payload.extend([CONSTANT, first]);
        return Ok(());
    }
    if !is_noise(plane) {
        let before = payload.len();
        payload.extend([PACKED, 0, 0, 0, 0]);
        let length = compress(plane, &[], PLANE_LEVEL, payload)?;
        // A gain below 1/64 is not worth the decoding time.
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

/// Reads a plane from the beginning of a payload; returns it and the rest of the payload. `space` has the
/// length of the plane and is used unless the payload has the plane uncompressed.
fn decode_plane<'p: 's, 's>(
    payload: &'p [u8],
    space: &'s mut [u8],
) -> Result<(&'s [u8], &'p [u8]), CodecError> {
    let damaged = || CodecError::Damaged("truncated");
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
            decompress(packed, &[], space)?;
            Ok((space, rest))
        }
        _ => Err(CodecError::Damaged("unknown encoding of a plane")),
    }
}

/// Whether the bytes are uniformly distributed.
fn is_noise(plane: &[u8]) -> bool {
    let step = (plane.len() / NOISE_SAMPLE).max(1);
    let mut counts = [0_u32; 256];
    for chunk in plane.chunks(step * 64) {
        for &byte in &chunk[..chunk.len().min(64)] {
            counts[byte as usize] += 1;
        }
    }
    let total: u64 = counts.iter().map(|&count| u64::from(count)).sum();
    let squares: u64 = counts.iter().map(|&count| u64::from(count) * u64::from(count)).sum();
    // For n uniform random bytes the expected sum of squared counts is n + n (n - 1) / 256.
    total >= 1024 && squares < total + total * total / 256 * 11 / 10
}

thread_local! {
    static COMPRESSING: Cell<Option<CCtx<'static>>> = const { Cell::new(None) };
    /// Buffer for payloads before their lengths are known.
    static MADE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
    static DECOMPRESSING: Cell<Option<DCtx<'static>>> = const { Cell::new(None) };
}

/// Appends `bytes` compressed at a level, and returns the compressed size. With a nonempty prefix, they are
/// delta-encoded against it.
fn compress(bytes: &[u8], prefix: &[u8], level: i32, payload: &mut Vec<u8>) -> Result<usize, CodecError> {
    let mut context = COMPRESSING.take().unwrap_or_else(CCtx::create);
    let mut made = MADE.take();
    let most = compress_bound(bytes.len());
    if made.len() < most {
        made.resize(most, 0);
    }
    let target = made.as_mut_slice();
    let result = match prefix.is_empty() {
        true => context.compress(target, bytes, level),
        false => context.compress_using_dict(target, bytes, prefix, level),
    };
    COMPRESSING.set(Some(context));
    if let Some(made) = result.as_ref().ok().and_then(|&length| made.get(..length)) {
        payload.extend_from_slice(made);
    }
    MADE.set(made);
    result.map_err(|code| CodecError::Zstd(get_error_name(code).to_owned()))
}

/// The inverse of [`compress`]: fills `bytes`.
fn decompress(payload: &[u8], prefix: &[u8], bytes: &mut [u8]) -> Result<(), CodecError> {
    let mut context = DECOMPRESSING.take().unwrap_or_else(DCtx::create);
    let result = match prefix.is_empty() {
        true => context.decompress(bytes, payload),
        false => context.decompress_using_dict(bytes, payload, prefix),
    };
    DECOMPRESSING.set(Some(context));
    match result {
        Ok(length) if length == bytes.len() => Ok(()),
        Ok(_) => Err(CodecError::Damaged("fewer bytes than expected")),
        Err(code) => Err(CodecError::Zstd(get_error_name(code).to_owned())),
    }
}

/// Why a block cannot be encoded or decoded.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum CodecError {
    /// Zstandard failed.
    #[error("Zstandard: {0}")]
    #[diagnostic(code(checkpoint::zstd))]
    Zstd(String),
    /// The payload is damaged.
    #[error("the contents of a block are damaged: {0}")]
    #[diagnostic(code(checkpoint::damaged))]
    Damaged(&'static str),
}
