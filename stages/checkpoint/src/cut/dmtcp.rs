//! Images of DMTCP, format v4.

use std::io::Read;
use std::sync::Arc;

use super::plain::Plain;
use super::{CutError, Cutter, Format};
use crate::chunk::{Batch, Earlier};

/// Bytes that tell whether a file is an image.
pub(crate) const HEAD: usize = 27;

/// Whether a file that begins like this is an image.
pub(crate) fn is_image(head: &[u8]) -> bool {
    head.starts_with(b"DMTCP_CHECKPOINT_IMAGE_v4.0")
}

/// An image that is being cut at its pages.
pub(crate) struct Image<'a> {
    inner: Plain<'a>,
}

impl<'a> Image<'a> {
    pub(crate) fn new(source: Box<dyn Read + Send + 'a>, earlier: Option<Arc<Earlier>>) -> Self {
        Self { inner: Plain::new(source, earlier) }
    }
}

impl Cutter for Image<'_> {
    fn format(&self) -> Format {
        Format::Dmtcp
    }

    fn cut(&mut self, batch: &mut Batch, amount: usize) -> Result<bool, CutError> {
        self.inner.cut(batch, amount)
    }
}
