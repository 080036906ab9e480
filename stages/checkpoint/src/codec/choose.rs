//! Which codec a block gets.

use zstd::zstd_safe::{CCtx, CParameter, DCtx, get_error_name};

use super::{Block, Codec, CodecError, Encoded};

/// What is known before a block is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Hint {
    /// How the blocks of the chunks' earlier versions, or of the chunks before, were encoded best.
    pub usual: Option<Codec>,
    /// Whether to try all codecs that may do, and not only the usual one.
    pub explore: bool,
}

/// How a block came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    /// Its codec.
    pub codec: Codec,
    /// Whether it had bases.
    pub had_bases: bool,
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
    blocks: u64,
    usual: Option<Codec>,
}

impl Chooser {
    /// Whether the next block's bases are worth reading; if not, it is encoded without.
    #[must_use]
    pub fn wants_bases(&self) -> bool {
        true
    }

    /// What the next block should be told. `twin` is the codec of the block in which the earlier versions of most of its chunks are.
    #[must_use]
    pub fn hint(&self, twin: Option<Codec>) -> Hint {
        Hint { usual: twin.or(self.usual), explore: self.blocks.is_multiple_of(8) }
    }

    /// Hears how a block came out.
    pub fn learn(&mut self, outcome: &Outcome) {
        self.blocks += 1;
        self.usual = Some(outcome.codec);
    }
}

const LEVEL: i32 = 3;

pub(super) fn encode(block: &Block<'_>, _hint: Hint) -> Result<Encoded, CodecError> {
    let prefix: Vec<u8> = block.bases.iter().flatten().flat_map(|base| base.iter().copied()).collect();
    let mut context = CCtx::create();
    context.set_parameter(CParameter::CompressionLevel(LEVEL)).map_err(zstd)?;
    if !prefix.is_empty() {
        context.ref_prefix(&prefix).map_err(zstd)?;
    }
    let mut payload = Vec::with_capacity(zstd::zstd_safe::compress_bound(block.bytes.len()));
    context.compress2(&mut payload, block.bytes).map_err(zstd)?;
    if payload.len() >= block.bytes.len() {
        return Ok(Encoded { codec: Codec::Raw, uses_bases: false, payload: block.bytes.to_vec() });
    }
    let uses_bases = !prefix.is_empty();
    let codec = if uses_bases { Codec::Prefix } else { Codec::Zstd };
    Ok(Encoded { codec, uses_bases, payload })
}

pub(super) fn decode(
    codec: Codec,
    payload: &[u8],
    lengths: &[u32],
    bases: &[Option<&[u8]>],
    bytes: &mut Vec<u8>,
) -> Result<(), CodecError> {
    let length: usize = lengths.iter().map(|&length| length as usize).sum();
    if codec == Codec::Raw {
        if payload.len() != length {
            return Err(CodecError::Damaged("its length is another"));
        }
        bytes.extend_from_slice(payload);
        return Ok(());
    }
    let prefix: Vec<u8> = bases.iter().flatten().flat_map(|base| base.iter().copied()).collect();
    let mut context = DCtx::create();
    if codec == Codec::Prefix {
        context.ref_prefix(&prefix).map_err(zstd)?;
    }
    let mut decoded = Vec::with_capacity(length);
    context.decompress(&mut decoded, payload).map_err(zstd)?;
    if decoded.len() != length {
        return Err(CodecError::Damaged("its length is another"));
    }
    bytes.extend_from_slice(&decoded);
    Ok(())
}

fn zstd(code: usize) -> CodecError {
    CodecError::Zstd(get_error_name(code).to_owned())
}
