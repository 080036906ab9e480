//! Pages of CRIU.

use std::io::Read;
use std::sync::Arc;

use super::plain::Plain;
use super::{CutError, Cutter, Format};
use crate::chunk::{Batch, Earlier};

/// Where the pages of a `pages-N.img` are in memory.
#[derive(Debug, Clone, Default)]
pub struct PageMap {
    /// First address and number of pages, in the order of the file.
    pub runs: Vec<(u64, u64)>,
}

/// Pages that are being cut.
pub(crate) struct Pages<'a> {
    inner: Plain<'a>,
}

impl<'a> Pages<'a> {
    pub(crate) fn new(
        source: Box<dyn Read + Send + 'a>,
        _map: PageMap,
        earlier: Option<Arc<Earlier>>,
    ) -> Self {
        Self { inner: Plain::new(source, earlier) }
    }
}

impl Cutter for Pages<'_> {
    fn format(&self) -> Format {
        Format::Criu
    }

    fn cut(&mut self, batch: &mut Batch, amount: usize) -> Result<bool, CutError> {
        self.inner.cut(batch, amount)
    }
}
