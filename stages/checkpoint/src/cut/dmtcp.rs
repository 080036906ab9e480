//! Images of DMTCP, format v4: twice the same header, then records of areas of memory, each with its data behind it if it has
//! any, and a last record.
//!
//! Read from `src/writeckpt.cpp`, `src/mtcp/mtcp_restart.c` and `include/procmapsarea.h` of DMTCP 4.

mod area;

use std::io::Read;

use super::feed::{Feed, Filling};
use super::past::Past;
use super::{CutError, Cutter, Format, pages};
use crate::chunk::{Batch, PAGE, Place, Space};

pub(crate) use area::{Areas, Next};

/// How an image begins.
const SIGNATURE: &[u8] = b"DMTCP_CHECKPOINT_IMAGE_v4.0\n";

/// Bytes that tell whether a file is an image.
pub(crate) const HEAD: usize = SIGNATURE.len();

/// Whether a file that begins like this is an image.
pub(crate) fn is_image(head: &[u8]) -> bool {
    head.starts_with(SIGNATURE)
}

/// An image that is being cut at its pages.
pub(crate) struct Image<'a> {
    feed: Feed<'a>,
    past: Past,
    part: Part,
    areas: Areas,
    /// The record of the earlier version that was like one here, the last time there was one, and what is behind its fields.
    like: [Option<u32>; 2],
}

/// What comes next in the image.
#[derive(Debug, Clone, Copy)]
enum Part {
    /// A header.
    Header,
    /// The record of an area, or the last.
    Record,
    /// Data of an area.
    Data {
        /// Where in memory.
        address: u64,
        /// How many bytes.
        left: u64,
    },
    /// Whatever is behind the last record.
    Rest,
}

impl<'a> Image<'a> {
    pub(crate) fn new(source: Box<dyn Read + Send + 'a>, past: Past) -> Self {
        Self { feed: Feed::new(source), past, part: Part::Header, areas: Areas::default(), like: [None; 2] }
    }
}

impl Cutter for Image<'_> {
    fn format(&self) -> Format {
        Format::Dmtcp
    }

    fn cut(&mut self, batch: &mut Batch, amount: usize) -> Result<bool, CutError> {
        let Self { feed, past, part, areas, like } = self;
        let mut filling = feed.fill(batch, amount, PAGE);
        while !filling.is_full() {
            let ahead = filling.read_ahead(PAGE)?;
            *part = match *part {
                Part::Header => header(&mut filling, past, ahead)?,
                Part::Record => record(&mut filling, past, areas, like, ahead)?,
                Part::Data { address, left } => data(&mut filling, past, ahead, (address, left))?,
                Part::Rest if ahead == 0 => return Ok(false),
                Part::Rest => {
                    pages::keep_in_file(&mut filling, past, ahead);
                    Part::Rest
                }
            };
        }
        Ok(true)
    }
}

/// One of the two headers.
fn header(filling: &mut Filling<'_, '_>, past: &mut Past, ahead: usize) -> Result<Part, CutError> {
    let offset = filling.offset();
    let head = filling.ahead().get(..HEAD).unwrap_or_default();
    if ahead < PAGE {
        return Err(incomplete(offset + ahead as u64, "the header is not whole"));
    }
    if !is_image(head) {
        return Err(damaged(offset, "the second copy of the header is missing"));
    }
    pages::keep_in_file(filling, past, ahead);
    Ok(if offset == 0 { Part::Header } else { Part::Record })
}

/// The record of an area, or the last, in two chunks: its fields, and what is behind them, which DMTCP does not set. In one
/// image that is the same in all records, in the next it is something else: apart, it does not make all records new.
fn record(
    filling: &mut Filling<'_, '_>,
    past: &mut Past,
    areas: &mut Areas,
    like: &mut [Option<u32>; 2],
    ahead: usize,
) -> Result<Part, CutError> {
    let offset = filling.offset();
    let Some(bytes) = filling.ahead().first_chunk::<PAGE>() else {
        let reason = if ahead == 0 { "the last record is missing" } else { "a record is not whole" };
        return Err(incomplete(offset + ahead as u64, reason));
    };
    let record = areas.read(bytes).map_err(|reason| damaged(offset, reason))?;
    for (like, (begin, end)) in like.iter_mut().zip([(0, area::FIELDS), (area::FIELDS, PAGE)]) {
        let address = record.address.wrapping_add(begin as u64);
        let place = Place { space: Space::Record, address };
        // The records of new areas are most like those of their neighbours.
        *like = past.at(place).or(*like);
        pages::keep_like(filling, past, end - begin, place, *like);
    }
    Ok(match record.next {
        Next::Record => Part::Record,
        Next::Data { address, left } => Part::Data { address, left },
        Next::Nothing => Part::Rest,
    })
}

/// A page of an area.
fn data(
    filling: &mut Filling<'_, '_>,
    past: &mut Past,
    ahead: usize,
    (address, left): (u64, u64),
) -> Result<Part, CutError> {
    let length = pages::rest_of_page(address, left);
    if ahead < length {
        let reason = format!("{} bytes of the area at {address:#x} are missing", left - ahead as u64);
        return Err(incomplete(filling.offset() + ahead as u64, reason));
    }
    pages::keep(filling, past, length, Place { space: Space::Memory, address });
    let length = length as u64;
    // An area at the very end of memory has no address behind it, and nothing left.
    let address = address.wrapping_add(length);
    Ok(if left == length { Part::Record } else { Part::Data { address, left: left - length } })
}

fn incomplete(offset: u64, reason: impl Into<String>) -> CutError {
    CutError::Incomplete { offset, reason: reason.into() }
}

fn damaged(offset: u64, reason: impl Into<String>) -> CutError {
    CutError::Damaged { offset, reason: reason.into() }
}
