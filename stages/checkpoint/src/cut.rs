//! Files cut into chunks: images of processes at their pages, other files where their contents say, any file into blocks of equal length.

mod criu;
mod dmtcp;
mod feed;
mod plain;

use std::io::Read;
use std::sync::Arc;

use miette::Diagnostic;

use crate::chunk::{Batch, Earlier};

pub use criu::{PageMap, page_maps};
pub(crate) use dmtcp::{Areas, HEAD, Next, is_image};

/// How a file of gzip begins (RFC 1952), with the only method there is.
const GZIP: &[u8] = b"\x1f\x8b\x08";

/// What a file is, as far as it matters for cutting it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// Any file.
    #[default]
    Plain,
    /// An image of DMTCP, format v4.
    Dmtcp,
    /// Pages of CRIU, `pages-N.img`.
    Criu,
    /// A file that gzip compressed: hardly anything in it stays the same when a little changes. DMTCP makes such images unless
    /// it is told `--no-gzip`.
    Gzip,
}

/// A file that is being cut, from its beginning to its end.
pub trait Cutter: Send {
    /// What the file was recognised as.
    fn format(&self) -> Format;

    /// Reads on, and adds whole chunks until the batch has `amount` bytes or more (by at most a chunk). False at the end of the
    /// file; the batch may have got chunks then as well. Zeros count by the pages they were found in.
    fn cut(&mut self, batch: &mut Batch, amount: usize) -> Result<bool, CutError>;
}

/// What is known of a file before it is read.
#[derive(Debug, Default)]
pub struct Known {
    /// Its length, if it is not a stream.
    pub length: Option<u64>,
    /// The version that the store has.
    pub earlier: Option<Arc<Earlier>>,
    /// Where its pages are in memory, if it is `pages-N.img` of CRIU.
    pub page_map: Option<PageMap>,
    /// By which its chunks are hashed.
    pub seed: u64,
    /// Bytes of each of its chunks, if they are to be of equal length whatever the file is.
    pub block: Option<usize>,
}

/// Looks at the beginning of a file and starts to cut it.
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

/// Why a file cannot be taken.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum CutError {
    /// The system refused to read.
    #[error("cannot be read")]
    Read(#[source] std::io::Error),
    /// An image that ends too early.
    #[error("the image is incomplete: {reason} at byte {offset}")]
    #[diagnostic(help(
        "the program was killed, or is still writing: add the checkpoint when it is whole; nothing was stored"
    ))]
    Incomplete {
        /// Where it ends.
        offset: u64,
        /// What is missing.
        reason: String,
    },
    /// An image that contradicts itself.
    #[error("the image is damaged: {reason} at byte {offset}")]
    #[diagnostic(help("make the checkpoint again; nothing was stored"))]
    Damaged {
        /// Where.
        offset: u64,
        /// What is wrong.
        reason: String,
    },
}
