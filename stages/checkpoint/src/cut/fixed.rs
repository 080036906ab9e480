//! Blocks of equal length, whatever a file is: what the papers compare by hash.

use std::io::Read;

use super::feed::Feed;
use super::past::Past;
use super::{CutError, Cutter, Format};
use crate::chunk::{Batch, Place, Space};

/// A file that is being cut.
pub(crate) struct Fixed<'a> {
    feed: Feed<'a>,
    past: Past,
    block: usize,
}

impl<'a> Fixed<'a> {
    pub(crate) fn new(source: Box<dyn Read + Send + 'a>, block: usize, past: Past) -> Self {
        Self { feed: Feed::new(source), past, block }
    }
}

impl Cutter for Fixed<'_> {
    fn format(&self) -> Format {
        Format::Plain
    }

    fn cut(&mut self, batch: &mut Batch, amount: usize) -> Result<bool, CutError> {
        let Self { feed, past, block } = self;
        let mut filling = feed.fill(batch, amount, *block);
        while !filling.is_full() {
            let length = filling.read_ahead(*block)?.min(*block);
            if length == 0 {
                return Ok(false);
            }
            // Blocks of zeros count like any other: so do those of the papers.
            let hash = past.hash(filling.ahead().get(..length).unwrap_or_default());
            let place = Place { space: Space::File, address: filling.offset() };
            let twin = past.at(place);
            filling.keep(length, hash, place, twin);
        }
        Ok(true)
    }
}
