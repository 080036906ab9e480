//! A simple, strict reader of DMTCP v4 images that shares no code with the crate.
#![allow(dead_code, reason = "not every test needs all")]

use std::ops::Range;

const PAGE: usize = 4096;

/// A record of a memory area.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Record {
    /// Offset in the image.
    pub(crate) at: usize,
    /// Start address.
    pub(crate) start: u64,
    /// Length in bytes.
    pub(crate) length: u64,
    /// File offset, protection, flags, major and minor number of the device, inode.
    pub(crate) fields: [u64; 6],
    /// Number of its bytes in the file.
    pub(crate) file_bytes: u64,
    /// Zero (1), parent (2), child (4).
    pub(crate) properties: u64,
    /// Its name.
    pub(crate) name: String,
    /// Offset of its contents in the image.
    pub(crate) contents: Range<usize>,
}

impl Record {
    /// Whether records of its parts follow.
    pub(crate) fn is_parent(&self) -> bool {
        self.properties & 2 != 0
    }
}

/// All records in order, without the last one. Panics on any violation.
pub(crate) fn records(image: &[u8]) -> Vec<Record> {
    assert!(image.starts_with(b"DMTCP_CHECKPOINT_IMAGE_v4.0\n\0"), "no magic number");
    assert!(image[..PAGE] == image[PAGE..2 * PAGE], "the headers differ");
    let mut records: Vec<Record> = Vec::new();
    let mut at = 2 * PAGE;
    loop {
        let record = record(image, at);
        if (record.start, record.length) == (0, u64::MAX) {
            assert_eq!(at + PAGE, image.len(), "the image does not end with its last record");
            check_parts(&records);
            return records;
        }
        at = record.contents.end;
        records.push(record);
    }
}

fn record(image: &[u8], at: usize) -> Record {
    let field = |index: usize| u64::from_le_bytes(image[at + index * 8..][..8].try_into().unwrap());
    let (start, length, file_bytes, properties) = (field(0), field(2), field(9), field(10));
    let last = (start, length) == (0, u64::MAX);
    assert!(last || field(1) == start + length, "{at}: the end does not match the length");
    let contents = match properties & 3 {
        _ if last => 0,
        0 if 0 < file_bytes && file_bytes < length => file_bytes,
        0 => length,
        _ => 0,
    };
    let name = &image[at + 88..at + 88 + 1024];
    let name = &name[..name.iter().position(|&byte| byte == 0).unwrap()];
    let begin = at + PAGE;
    assert!(begin + contents as usize <= image.len(), "{at}: the contents are cut off");
    Record {
        at,
        start,
        length,
        fields: [3, 4, 5, 6, 7, 8].map(field),
        file_bytes,
        properties,
        name: String::from_utf8(name.to_vec()).unwrap(),
        contents: begin..begin + contents as usize,
    }
}

/// Parts cover their area and alternate between zeros and other pages; areas are sorted and disjoint.
fn check_parts(records: &[Record]) {
    let mut rest = records;
    let mut end = 0;
    while let Some((area, behind)) = rest.split_first() {
        assert!(area.start >= end, "{:#x}: areas overlap or are not in order", area.start);
        end = area.start + area.length;
        let count = behind.iter().take_while(|part| part.properties & 4 != 0).count();
        let (parts, behind) = behind.split_at(count);
        assert_eq!(parts.is_empty(), !area.is_parent(), "{:#x}", area.start);
        let mut address = area.start;
        for (index, part) in parts.iter().enumerate() {
            assert_eq!((part.start, &part.name, part.fields), (address, &area.name, area.fields));
            assert_ne!(
                Some(part.properties),
                index.checked_sub(1).map(|before| parts[before].properties),
                "{:#x}: two runs of the same sort",
                part.start
            );
            address += part.length;
        }
        assert!(parts.is_empty() || address == end, "{:#x}: parts are missing", area.start);
        rest = behind;
    }
}

/// The nonzero pages of memory, by address; the last page of a file may be shorter.
pub(crate) fn pages<'a>(image: &'a [u8], records: &[Record]) -> Vec<(u64, &'a [u8])> {
    let of = |record: &Record| {
        let pages = image[record.contents.clone()].chunks(PAGE);
        let start = record.start;
        pages.enumerate().map(move |(index, page)| (start + (index * PAGE) as u64, page)).collect::<Vec<_>>()
    };
    records.iter().flat_map(of).collect()
}
