//! Images of DMTCP, format v4: twice the same header, then records of areas of memory, each with its data behind it if it has
//! any, and a last record.
//!
//! Read from `src/writeckpt.cpp`, `src/mtcp/mtcp_restart.c` and `include/procmapsarea.h` of DMTCP 4.

use std::io::Read;

use super::feed;
use super::feed::{CutError, Cutter, Feed, Filling, Format, Past};
use crate::chunk::{Batch, PAGE, Place, Space};

/// How an image begins.
pub(crate) const SIGNATURE: &[u8] = b"DMTCP_CHECKPOINT_IMAGE_v4.0\n";

/// Bytes that tell whether a file is an image.
pub(crate) const HEAD: usize = SIGNATURE.len();

/// Where the fields of a record begin; all are 64 bits wide, little end first, but the name.
mod field {
    pub(super) const BEGIN: usize = 0;
    pub(super) const END: usize = 8;
    pub(super) const SIZE: usize = 16;
    pub(super) const FILE_SIZE: usize = 72;
    pub(super) const PROPERTIES: usize = 80;
    pub(super) const NAME: usize = 88;
}

/// Bytes of a record that have a meaning: the numbers, and a name of 1024 bytes.
const FIELDS: usize = field::NAME + 1024;

/// The area is all zeros, and there are no data (`DMTCP_ZERO_PAGE`).
pub(crate) const ZERO: u64 = 1;

/// The parts of the area have records of their own, which follow (`DMTCP_ZERO_PAGE_PARENT_HEADER`).
pub(crate) const PARENT: u64 = 2;

/// The area is part of the one before it (`DMTCP_ZERO_PAGE_CHILD_HEADER`).
pub(crate) const CHILD: u64 = 4;

/// What there may be in a record.
const KNOWN: [u64; 5] = [0, ZERO, PARENT, CHILD, CHILD | ZERO];

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
                    feed::keep_in_file(&mut filling, past, ahead);
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
        return Err(CutError::incomplete(offset + ahead as u64, "the header is not whole"));
    }
    if !is_image(head) {
        return Err(CutError::damaged(offset, "the second copy of the header is missing"));
    }
    feed::keep_in_file(filling, past, ahead);
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
        return Err(CutError::incomplete(offset + ahead as u64, reason));
    };
    let record = areas.read(bytes).map_err(|reason| CutError::damaged(offset, reason))?;
    for (like, (begin, end)) in like.iter_mut().zip([(0, FIELDS), (FIELDS, PAGE)]) {
        let address = record.address.wrapping_add(begin as u64);
        let place = Place { space: Space::Record, address };
        // The records of new areas are most like those of their neighbours.
        *like = past.at(place).or(*like);
        feed::keep_like(filling, past, end - begin, place, *like);
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
    let length = feed::rest_of_page(address, left);
    if ahead < length {
        let reason = format!("{} bytes of the area at {address:#x} are missing", left - ahead as u64);
        return Err(CutError::incomplete(filling.offset() + ahead as u64, reason));
    }
    feed::keep(filling, past, length, Place { space: Space::Memory, address });
    let length = length as u64;
    // An area at the very end of memory has no address behind it, and nothing left.
    let address = address.wrapping_add(length);
    Ok(if left == length { Part::Record } else { Part::Data { address, left: left - length } })
}

/// The areas of an image, as far as it has been read.
#[derive(Debug, Default)]
pub(crate) struct Areas {
    /// Where the last area ended: they come in the order of memory.
    reached: u64,
    /// Where the area ends of which parts must follow.
    whole: u64,
}

/// A record that is in order.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Record {
    /// Where its area begins. One more for the record of a whole area: its first part begins at the same address. 0 for the
    /// last record.
    pub(crate) address: u64,
    /// What follows it.
    pub(crate) next: Next,
}

/// What follows a record.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Next {
    /// Another.
    Record,
    /// Data.
    Data {
        /// Where they belong in memory.
        address: u64,
        /// How many bytes.
        left: u64,
    },
    /// Nothing.
    Nothing,
}

impl Areas {
    /// What a record says.
    pub(crate) fn read(&mut self, bytes: &[u8; PAGE]) -> Result<Record, &'static str> {
        let begin = number(bytes, field::BEGIN);
        let size = number(bytes, field::SIZE);
        let properties = number(bytes, field::PROPERTIES);
        if begin == 0 {
            return self.finish(size);
        }
        let end = begin.checked_add(size).ok_or("an area is larger than memory")?;
        if size == 0 || end != number(bytes, field::END) {
            return Err("size and end of an area contradict each other");
        }
        if !KNOWN.contains(&properties) {
            return Err("an area has properties that nobody knows");
        }
        self.enter(begin, end, properties)?;
        let address = begin + u64::from(properties == PARENT);
        let next = match properties & (ZERO | PARENT) {
            0 => Next::Data { address: begin, left: stored_length(bytes, size)? },
            _ => Next::Record,
        };
        Ok(Record { address, next })
    }

    /// Checks that an area comes where it may.
    fn enter(&mut self, begin: u64, end: u64, properties: u64) -> Result<(), &'static str> {
        let is_part = properties & CHILD != 0;
        match is_part {
            true if begin != self.reached || end > self.whole => {
                return Err("a part of an area is not in its place");
            }
            false if self.reached < self.whole => return Err("a part of an area is missing"),
            false if begin < self.reached => return Err("an area begins before the one before it ends"),
            _ => {}
        }
        self.reached = if properties == PARENT { begin } else { end };
        self.whole = if is_part { self.whole } else { end };
        Ok(())
    }

    fn finish(&self, size: u64) -> Result<Record, &'static str> {
        // Its other fields are those of whatever area was looked at last.
        if size != u64::MAX {
            return Err("an area begins at address 0");
        }
        if self.reached < self.whole {
            return Err("a part of an area is missing");
        }
        Ok(Record { address: 0, next: Next::Nothing })
    }
}

/// How many bytes follow the record of an area.
fn stored_length(bytes: &[u8; PAGE], size: u64) -> Result<u64, &'static str> {
    // Of a file that ends within the area only that is there which the file had; −1 if there is no file.
    let in_file = number(bytes, field::FILE_SIZE);
    let has_file = bytes.get(field::NAME) == Some(&b'/');
    match in_file.cast_signed() > 0 && has_file {
        true if in_file > size => Err("an area is smaller than the file in it"),
        true => Ok(in_file),
        false => Ok(size),
    }
}

fn number(bytes: &[u8; PAGE], at: usize) -> u64 {
    let field = bytes.get(at..).and_then(|rest| rest.first_chunk());
    field.map_or(0, |field| u64::from_le_bytes(*field))
}
