//! Cuts files into chunks: images of processes at page boundaries, other files by content, any file into
//! blocks of equal length.

mod criu;
mod dmtcp;
mod feed;
mod plain;

use std::io::Read;
use std::sync::Arc;

use crate::chunk::Earlier;

pub use criu::{PageMap, page_maps};
pub(crate) use dmtcp::{Areas, CHILD, HEAD, Next, PARENT, SIGNATURE, ZERO, is_image};
pub use feed::{CutError, Cutter, Format};

/// Magic number of gzip files (RFC 1952) with the only compression method.
const GZIP: &[u8] = b"\x1f\x8b\x08";

/// Known properties of a file before it is read.
#[derive(Debug, Default)]
pub struct Known {
    /// Its length, unless it is a stream.
    pub length: Option<u64>,
    /// The stored version.
    pub earlier: Option<Arc<Earlier>>,
    /// Memory addresses of its pages, for `pages-N.img` of CRIU.
    pub page_map: Option<PageMap>,
    /// Seed of the chunk hashes.
    pub seed: u64,
    /// Fixed chunk size, if any, in bytes.
    pub block: Option<usize>,
}

/// Detects the format of a file from its beginning and starts to cut it.
pub fn cutter<'a>(
    mut source: Box<dyn Read + Send + 'a>,
    known: Known,
) -> Result<Box<dyn Cutter + 'a>, CutError> {
    if let Some(block) = known.block {
        return Ok(Box::new(plain::Fixed::new(source, block, feed::Past::new(known.earlier, known.seed))));
    }
    let mut head = vec![0; dmtcp::HEAD];
    let mut read = 0;
    while read < head.len() {
        match source.read(&mut head[read..]) {
            Ok(0) => break,
            Ok(count) => read += count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(CutError::Read(error)),
        }
    }
    head.truncate(read);
    let format = if head.starts_with(GZIP) { Format::Gzip } else { Format::Plain };
    let recognised = dmtcp::is_image(&head);
    let source: Box<dyn Read + Send + 'a> = Box::new(std::io::Cursor::new(head).chain(source));
    let past = feed::Past::new(known.earlier, known.seed);
    Ok(match (recognised, known.page_map) {
        (true, _) => Box::new(dmtcp::Image::new(source, past)),
        (false, Some(map)) => Box::new(criu::Pages::new(source, map, past)),
        (false, None) => Box::new(plain::Plain::new(source, format, past)),
    })
}
