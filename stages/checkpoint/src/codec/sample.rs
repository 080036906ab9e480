//! A part of a block that stands for all of it.

use super::transform::{self, SAMPLE_LEVEL};
use super::{Block, Codec, CodecError, zstandard};

/// Bytes of chunks that a sample has at least, if the block has them.
const SAMPLE: usize = 24 * 1024;

/// Some chunks of a block, from all over it.
pub(super) struct Sample<'a> {
    bytes: Vec<u8>,
    lengths: Vec<u32>,
    bases: Vec<Option<&'a [u8]>>,
}

impl<'a> Sample<'a> {
    /// Neighbours in groups of three: what is found between chunks is found in the sample as well.
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

    /// Its bytes by a codec.
    pub(super) fn size(&self, codec: Codec) -> Result<usize, CodecError> {
        let block = Block { bytes: &self.bytes, lengths: &self.lengths, bases: &self.bases };
        let mut payload = Vec::new();
        match codec {
            Codec::Zstd => _ = zstandard::compress(&self.bytes, &[], SAMPLE_LEVEL, &mut payload)?,
            codec => transform::encode(&block, codec, false, &mut payload)?,
        }
        Ok(payload.len())
    }

    /// Its bytes by a codec of words, about, without encoding it.
    pub(super) fn estimate(&self, codec: Codec) -> usize {
        let beneath = || transform::beneath(&self.lengths, &self.bases);
        match codec {
            Codec::Words => transform::estimate::<u64>(&self.bytes, &[]),
            Codec::Halves => transform::estimate::<u32>(&self.bytes, &[]),
            Codec::Changes => transform::estimate::<u64>(&self.bytes, &beneath()),
            Codec::HalfChanges => transform::estimate::<u32>(&self.bytes, &beneath()),
            Codec::Raw | Codec::Zstd | Codec::Prefix | Codec::Mixed => self.bytes.len(),
        }
    }

    /// The best of codecs of words, and its bytes, if one may make fewer than so many. Only those are encoded that promise to.
    pub(super) fn least(&self, codecs: &[Codec], most: usize) -> Result<Option<(usize, Codec)>, CodecError> {
        let estimates: Vec<(usize, Codec)> =
            codecs.iter().map(|&codec| (self.estimate(codec), codec)).collect();
        let least = estimates.iter().map(|(size, _)| *size).min().unwrap_or(usize::MAX);
        // Repetitions are not in the estimates.
        let close = (least + least / 4).min(most + most / 2);
        let mut best = None;
        for (_, codec) in estimates.into_iter().filter(|(size, _)| *size <= close) {
            let found = Some((self.size(codec)?, codec));
            best = if best.is_none() { found } else { best.min(found) };
        }
        Ok(best)
    }

    /// Its bytes.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }
}
