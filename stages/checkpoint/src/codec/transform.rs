//! The codecs one by one.

use std::cell::Cell;

use super::predict::{Predictor, predictor};
use super::word::{self, Word};
use super::{Block, Codec, CodecError, mixed, plane, zstandard};

/// Level of Zstandard for samples: what is compared is how much there is to find.
pub(super) const SAMPLE_LEVEL: i32 = 2;
/// Level of Zstandard for blocks of what is new: most of a series is its first checkpoint.
const THOROUGH_LEVEL: i32 = 7;
/// Level of Zstandard for other blocks without bases.
const QUICK_LEVEL: i32 = 3;
/// Level of Zstandard for blocks with bases: most is found in the bases at any level.
const BASED_LEVEL: i32 = 3;

/// What Zstandard takes for the beginning of a dictionary of its own; no prefix begins with it.
const DICTIONARY: [u8; 4] = [0x37, 0xa4, 0x30, 0xec];

/// Appends a block to a payload. The codecs that need bases take those that are missing as zeros or nothing.
pub(super) fn encode(
    block: &Block<'_>,
    codec: Codec,
    thorough: bool,
    payload: &mut Vec<u8>,
) -> Result<(), CodecError> {
    let level = if thorough { THOROUGH_LEVEL } else { QUICK_LEVEL };
    match codec {
        Codec::Mixed => mixed::encode(block.bytes, level, payload)?,
        Codec::Raw => payload.extend_from_slice(block.bytes),
        Codec::Zstd => _ = zstandard::compress(block.bytes, &[], level, payload)?,
        Codec::Prefix => _ = zstandard::compress(block.bytes, &prefix(block.bases), BASED_LEVEL, payload)?,
        Codec::Words => encode_words::<u64>(block.bytes, &[], payload)?,
        Codec::Halves => encode_words::<u32>(block.bytes, &[], payload)?,
        Codec::Changes => encode_words::<u64>(block.bytes, &beneath(block.lengths, block.bases), payload)?,
        Codec::HalfChanges => {
            encode_words::<u32>(block.bytes, &beneath(block.lengths, block.bases), payload)?;
        }
    }
    Ok(())
}

/// The inverse of [`encode`]: fills `bytes`, as long as the lengths say.
pub(super) fn decode(
    codec: Codec,
    payload: &[u8],
    lengths: &[u32],
    bases: &[Option<&[u8]>],
    bytes: &mut [u8],
) -> Result<(), CodecError> {
    match codec {
        Codec::Raw if payload.len() == bytes.len() => bytes.copy_from_slice(payload),
        Codec::Raw => return Err(CodecError::Damaged("its length is another")),
        Codec::Zstd => zstandard::decompress(payload, &[], bytes)?,
        Codec::Prefix => zstandard::decompress(payload, &prefix(bases), bytes)?,
        Codec::Words => return whole(decode_words::<u64>(payload, &[], bytes)?),
        Codec::Halves => return whole(decode_words::<u32>(payload, &[], bytes)?),
        Codec::Changes => return whole(decode_words::<u64>(payload, &beneath(lengths, bases), bytes)?),
        Codec::HalfChanges => return whole(decode_words::<u32>(payload, &beneath(lengths, bases), bytes)?),
        Codec::Mixed => mixed::decode(payload, bytes)?,
    }
    Ok(())
}

/// Nothing may be left of a payload.
fn whole(left: &[u8]) -> Result<(), CodecError> {
    match left.is_empty() {
        true => Ok(()),
        false => Err(CodecError::Damaged("its length is another")),
    }
}

/// The bases one after the other.
fn prefix(bases: &[Option<&[u8]>]) -> Vec<u8> {
    let mut prefix = bases.iter().flatten().copied().collect::<Vec<_>>().concat();
    if prefix.starts_with(&DICTIONARY) {
        prefix.insert(0, 0);
    }
    prefix
}

/// For each byte of a block the one at its place in the base of its chunk, or zero.
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

/// Payload: order, stride, the planes, and the bytes after the last whole word.
pub(super) fn encode_words<W: Word>(
    bytes: &[u8],
    beneath: &[u8],
    payload: &mut Vec<u8>,
) -> Result<(), CodecError> {
    let (mut words, mut spare) = (Vec::<W>::new(), Vec::<W>::new());
    word::words(bytes, &mut words);
    for (word, base) in words.iter_mut().zip(beneath.chunks_exact(W::BYTES)) {
        *word = word.minus(W::of(base));
    }
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
        planes.chunks_exact(words.len()).try_for_each(|bytes| plane::encode(bytes, payload))?;
    }
    payload.extend_from_slice(bytes.chunks_exact(W::BYTES).remainder());
    Ok(())
}

thread_local! {
    /// Where planes are made.
    static PLANES: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Most bytes of planes that a thread keeps the space of.
const KEPT: usize = 1 << 20;

/// Fills `bytes`, and gives what is left of the payload.
pub(super) fn decode_words<'p, W: Word>(
    payload: &'p [u8],
    beneath: &[u8],
    bytes: &mut [u8],
) -> Result<&'p [u8], CodecError> {
    let mut space = PLANES.take();
    if space.len() < bytes.len() {
        space.resize(bytes.len(), 0);
    }
    let decoded = decode_words_in::<W>(payload, beneath, bytes, &mut space);
    if space.len() <= KEPT {
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
    let (&[order, stride], mut rest) =
        payload.split_first_chunk().ok_or(CodecError::Damaged("it ends too early"))?;
    let predictor = Predictor { order, stride };
    if !predictor.is_valid() {
        return Err(CodecError::Damaged("a prediction of an unknown kind"));
    }
    let count = bytes.len() / W::BYTES;
    let mut planes: [&[u8]; 8] = [&[]; 8];
    if count > 0 {
        for (plane, space) in planes.iter_mut().zip(space.chunks_exact_mut(count)).take(W::BYTES) {
            (*plane, rest) = plane::decode(rest, space)?;
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
    let (last, rest) = rest.split_at_checked(left.len()).ok_or(CodecError::Damaged("it ends too early"))?;
    left.copy_from_slice(last);
    Ok(rest)
}
