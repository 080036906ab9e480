//! Zstandard, with contexts that each thread keeps.

use std::cell::Cell;

use zstd::zstd_safe::{CCtx, DCtx, compress_bound, get_error_name};

use super::CodecError;

thread_local! {
    static COMPRESSING: Cell<Option<CCtx<'static>>> = const { Cell::new(None) };
    /// Where payloads are made before their lengths are known.
    static MADE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
    static DECOMPRESSING: Cell<Option<DCtx<'static>>> = const { Cell::new(None) };
}

/// Appends `bytes` compressed at a level, and gives the number of bytes that makes. With a prefix, what is like it is told by it;
/// an empty one is none.
pub(super) fn compress(
    bytes: &[u8],
    prefix: &[u8],
    level: i32,
    payload: &mut Vec<u8>,
) -> Result<usize, CodecError> {
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
pub(super) fn decompress(payload: &[u8], prefix: &[u8], bytes: &mut [u8]) -> Result<(), CodecError> {
    let mut context = DECOMPRESSING.take().unwrap_or_else(DCtx::create);
    let result = match prefix.is_empty() {
        true => context.decompress(bytes, payload),
        false => context.decompress_using_dict(bytes, payload, prefix),
    };
    DECOMPRESSING.set(Some(context));
    match result {
        Ok(length) if length == bytes.len() => Ok(()),
        Ok(_) => Err(CodecError::Damaged("it gives fewer bytes than it should")),
        Err(code) => Err(CodecError::Zstd(get_error_name(code).to_owned())),
    }
}
