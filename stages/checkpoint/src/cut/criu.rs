//! Pages of CRIU.

mod map;

use std::io::Read;

use super::feed::Feed;
use super::past::Past;
use super::{CutError, Cutter, Format, pages};
use crate::chunk::{Batch, PAGE, Place, Space};

pub use map::{PageMap, page_maps};

/// Pages that are being cut.
pub(crate) struct Pages<'a> {
    feed: Feed<'a>,
    past: Past,
    map: PageMap,
    /// Which run we are in.
    run: usize,
    /// How many pages of it were cut.
    done: u64,
}

impl<'a> Pages<'a> {
    pub(crate) fn new(source: Box<dyn Read + Send + 'a>, map: PageMap, past: Past) -> Self {
        Self { feed: Feed::new(source), past, map, run: 0, done: 0 }
    }
}

impl Cutter for Pages<'_> {
    fn format(&self) -> Format {
        Format::Criu
    }

    fn cut(&mut self, batch: &mut Batch, amount: usize) -> Result<bool, CutError> {
        let Self { feed, past, map, run, done } = self;
        let mut filling = feed.fill(batch, amount, PAGE);
        while !filling.is_full() {
            let ahead = filling.read_ahead(PAGE)?;
            while map.runs.get(*run).is_some_and(|&(_, count)| *done >= count) {
                (*run, *done) = (*run + 1, 0);
            }
            match map.runs.get(*run) {
                Some(_) if ahead < PAGE => {
                    let offset = filling.offset() + ahead as u64;
                    let reason = String::from("its page map names more pages");
                    return Err(CutError::Incomplete { offset, reason });
                }
                Some(&(first, _)) => {
                    let address = first.wrapping_add(done.wrapping_mul(PAGE as u64));
                    pages::keep(&mut filling, past, PAGE, Place { space: Space::Memory, address });
                    *done += 1;
                }
                None if ahead == 0 => return Ok(false),
                None => pages::keep_in_file(&mut filling, past, ahead),
            }
        }
        Ok(true)
    }
}
