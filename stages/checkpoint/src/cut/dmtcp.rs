//! DMTCP images, format v4: two identical headers, then records of memory areas, each followed by its data if
//! any, and a last record.
//!
//! Sources: `src/writeckpt.cpp`, `src/mtcp/mtcp_restart.c` and `include/procmapsarea.h` of DMTCP 4.

use std::io::Read;

use super::feed::{self, CutError, Cutter, Feed, Filling, Format, Past};
use crate::chunk::{Batch, PAGE, Position, Space};

/// Magic number of an image.
pub(crate) const SIGNATURE: &[u8] = b"DMTCP_CHECKPOINT_IMAGE_v4.0\n";

/// Number of bytes that identify an image.
pub(crate) const HEAD: usize = SIGNATURE.len();

/// Offsets of the fields of a record. All are little-endian 64-bit numbers, except the name.
mod field {
    pub(super) const BEGIN: usize = 0;
    pub(super) const END: usize = 8;
    pub(super) const SIZE: usize = 16;
    pub(super) const FILE_SIZE: usize = 72;
    pub(super) const PROPERTIES: usize = 80;
    pub(super) const NAME: usize = 88;
}

/// Size of the meaningful part of a record: the numbers, and a name of 1024 bytes.
const FIELDS: usize = field::NAME + 1024;

/// The area is all zeros, and there are no data (`DMTCP_ZERO_PAGE`).
pub(crate) const ZERO: u64 = 1;

/// The parts of the area have their own records, which follow (`DMTCP_ZERO_PAGE_PARENT_HEADER`).
pub(crate) const PARENT: u64 = 2;

/// The area is part of the one before it (`DMTCP_ZERO_PAGE_CHILD_HEADER`).
pub(crate) const CHILD: u64 = 4;

/// Known properties in a record.
const KNOWN: [u64; 5] = [0, ZERO, PARENT, CHILD, CHILD | ZERO];

/// Whether a file with this beginning is an image.
pub(crate) fn is_image(head: &[u8]) -> bool {
    head.starts_with(SIGNATURE)
}

/// An image that is cut at its pages.
pub(crate) struct Image<'a> {
    feed: Feed<'a>,
    past: Past,
    part: Part,
    areas: Areas,
    /// The last corresponding record of the earlier version, and the bytes after its fields.
    like: [Option<u32>; 2],
}

/// The next item of the image.
#[derive(Debug, Clone, Copy)]
enum Part {
    /// A header.
    Header,
    /// The record of an area, or the last.
    Record,
    /// Data of an area.
    Data {
        /// Memory address.
        address: u64,
        /// Length in bytes.
        left: u64,
    },
    /// Bytes after the last record.
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
        return Err(CutError::incomplete(offset + ahead as u64, "the header is truncated"));
    }
    if !is_image(head) {
        return Err(CutError::damaged(offset, "the second copy of the header is missing"));
    }
    feed::keep_in_file(filling, past, ahead);
    Ok(if offset == 0 { Part::Header } else { Part::Record })
}

/// The record of an area, or the last, in two chunks: its fields, and the bytes after them, which DMTCP
/// leaves uninitialized. These are equal for all records of one image and differ between images. A separate
/// chunk keeps them from making all records new.
fn record(
    filling: &mut Filling<'_, '_>,
    past: &mut Past,
    areas: &mut Areas,
    like: &mut [Option<u32>; 2],
    ahead: usize,
) -> Result<Part, CutError> {
    let offset = filling.offset();
    let Some(bytes) = filling.ahead().first_chunk::<PAGE>() else {
        let reason = if ahead == 0 { "the last record is missing" } else { "a record is truncated" };
        return Err(CutError::incomplete(offset + ahead as u64, reason));
    };
    let record = areas.read(bytes).map_err(|reason| CutError::damaged(offset, reason))?;
    for (like, (begin, end)) in like.iter_mut().zip([(0, FIELDS), (FIELDS, PAGE)]) {
        let address = record.address.wrapping_add(begin as u64);
        let place = Position { space: Space::Record, address };
        // The records of new areas resemble those of their neighbours.
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
    feed::keep(filling, past, length, Position { space: Space::Memory, address });
    let length = length as u64;
    // An area at the very end of memory has no end address, and no bytes left.
    let address = address.wrapping_add(length);
    Ok(if left == length { Part::Record } else { Part::Data { address, left: left - length } })
}

/// Validates the areas of an image that have been read.
#[derive(Debug, Default)]
pub(crate) struct Areas {
    /// End of the last area: areas are sorted by address.
    reached: u64,
    /// End of the area whose parts must follow.
    area_end: u64,
}

/// A valid record.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Record {
    /// Start of its area; plus one for the record of an area with parts, whose first part has the same
    /// address; 0 for the last record.
    pub(crate) address: u64,
    /// The next item.
    pub(crate) next: Next,
}

/// The item after a record.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Next {
    /// Another record.
    Record,
    /// Data.
    Data {
        /// Memory address.
        address: u64,
        /// Length in bytes.
        left: u64,
    },
    /// The end.
    Nothing,
}

impl Areas {
    /// Parses a record.
    pub(crate) fn read(&mut self, bytes: &[u8; PAGE]) -> Result<Record, &'static str> {
        let begin = number(bytes, field::BEGIN);
        let size = number(bytes, field::SIZE);
        let properties = number(bytes, field::PROPERTIES);
        if begin == 0 {
            return self.finish(size);
        }
        let end = begin.checked_add(size).ok_or("an area is larger than memory")?;
        if size == 0 || end != number(bytes, field::END) {
            return Err("the size and the end of an area are inconsistent");
        }
        if !KNOWN.contains(&properties) {
            return Err("an area has unknown properties");
        }
        self.enter(begin, end, properties)?;
        let address = begin + u64::from(properties == PARENT);
        let next = match properties & (ZERO | PARENT) {
            0 => Next::Data { address: begin, left: stored_length(bytes, size)? },
            _ => Next::Record,
        };
        Ok(Record { address, next })
    }

    /// Checks the order of the areas.
    fn enter(&mut self, begin: u64, end: u64, properties: u64) -> Result<(), &'static str> {
        let is_part = properties & CHILD != 0;
        match is_part {
            true if begin != self.reached || end > self.area_end => {
                return Err("a part of an area is out of place");
            }
            false if self.reached < self.area_end => return Err("a part of an area is missing"),
            false if begin < self.reached => return Err("two areas overlap"),
            _ => {}
        }
        self.reached = if properties == PARENT { begin } else { end };
        self.area_end = if is_part { self.area_end } else { end };
        Ok(())
    }

    fn finish(&self, size: u64) -> Result<Record, &'static str> {
        // The other fields of a last record are leftovers of the previous area.
        if size != u64::MAX {
            return Err("an area begins at address 0");
        }
        if self.reached < self.area_end {
            return Err("a part of an area is missing");
        }
        Ok(Record { address: 0, next: Next::Nothing })
    }
}

/// Number of data bytes after the record of an area.
fn stored_length(bytes: &[u8; PAGE], size: u64) -> Result<u64, &'static str> {
    // If a file ends inside the area, only the bytes of the file are present; −1 if there is no file.
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
