//! Records of areas of memory (`ProcMapsArea`), and whether they agree with each other.

use crate::chunk::PAGE;

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
pub(super) const FIELDS: usize = field::NAME + 1024;

/// The area is all zeros, and there are no data (`DMTCP_ZERO_PAGE`).
const ZERO: u64 = 1;

/// The parts of the area have records of their own, which follow (`DMTCP_ZERO_PAGE_PARENT_HEADER`).
const PARENT: u64 = 2;

/// The area is part of the one before it (`DMTCP_ZERO_PAGE_CHILD_HEADER`).
const CHILD: u64 = 4;

/// What there may be in a record.
const KNOWN: [u64; 5] = [0, ZERO, PARENT, CHILD, CHILD | ZERO];

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
            0 => Next::Data { address: begin, left: data(bytes, size)? },
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
fn data(bytes: &[u8; PAGE], size: u64) -> Result<u64, &'static str> {
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
