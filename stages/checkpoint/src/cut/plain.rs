//! Files of no known format.

use std::io::Read;
use std::sync::Arc;

use super::{CutError, Cutter, Format};
use crate::chunk::{Batch, Chunk, ChunkHash, Earlier, PAGE, Place, Space};

/// A file that is being cut where its contents say.
pub(crate) struct Plain<'a> {
    source: Box<dyn Read + Send + 'a>,
    earlier: Option<Arc<Earlier>>,
    offset: u64,
}

impl<'a> Plain<'a> {
    pub(crate) fn new(source: Box<dyn Read + Send + 'a>, earlier: Option<Arc<Earlier>>) -> Self {
        Self { source, earlier, offset: 0 }
    }
}

impl Cutter for Plain<'_> {
    fn format(&self) -> Format {
        Format::Plain
    }

    fn cut(&mut self, batch: &mut Batch, amount: usize) -> Result<bool, CutError> {
        let mut taken = 0;
        while taken < amount {
            let start = batch.bytes.len();
            let length =
                (&mut self.source).take(PAGE as u64).read_to_end(&mut batch.bytes).map_err(CutError::Read)?;
            if length == 0 {
                return Ok(false);
            }
            let bytes = &batch.bytes[start..];
            let place = Place { space: Space::File, address: self.offset };
            let twin = self.earlier.as_ref().and_then(|earlier| earlier.at(place));
            let zero = bytes.iter().all(|&byte| byte == 0);
            let hash = if zero { ChunkHash::default() } else { ChunkHash::of(bytes) };
            batch.chunks.push(Chunk { start, length, zero, hash, place, twin });
            if zero {
                batch.bytes.truncate(start);
            }
            self.offset += length as u64;
            taken += length;
        }
        Ok(true)
    }
}
