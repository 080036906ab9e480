//! Writes process images in the layout of DMTCP v4.
//!
//! Two copies of a header, then for every memory area a record and its contents, then a last record. Records
//! and headers are pages. Source: DMTCP 4.2, `include/procmapsarea.h`, `include/dmtcp.h` (`DmtcpCkptHeader`),
//! `src/writeckpt.cpp`. Generated images have no threads, so `dmtcp_restart` cannot resume them.

use std::io::{self, Write};

use miette::Diagnostic;

use crate::chunk::PAGE;
use crate::cut::{CHILD, PARENT, SIGNATURE, ZERO};

/// Maximum length of the name of a program and of an area, in bytes, without the terminating zero.
const LONGEST_NAME: usize = 1023;

/// `MAP_SHARED`, `MAP_PRIVATE`, `MAP_FIXED` and `MAP_ANONYMOUS` of Linux.
const SHARED: u64 = 0x01;
const PRIVATE: u64 = 0x02;
const FIXED: u64 = 0x10;
const ANONYMOUS: u64 = 0x20;

/// The error of an area whose contents have the wrong length.
const OTHER_CONTENTS: &str = "and its contents have different lengths";

/// `PROT_WRITE` of Linux.
const WRITABLE: u32 = 2;

/// The process of an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// Name of the program.
    pub name: String,
    /// Path of its executable.
    pub executable: String,
    /// Process id.
    pub process: u32,
    /// Number of processes that were checkpointed together.
    pub peers: u32,
}

/// An area of memory.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Area {
    /// Its start address.
    pub start: u64,
    /// Its size in bytes: a multiple of the page size.
    pub length: u64,
    /// Access rights: read (1), write (2), execute (4).
    pub protection: u32,
    /// Whether it is shared with other processes.
    pub shared: bool,
    /// Its mapping: the path of a file, `[heap]`, or nothing.
    pub name: String,
    /// The mapped file.
    pub file: Option<MappedFile>,
}

/// A mapped file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MappedFile {
    /// Offset of the area in the file, in bytes.
    pub offset: u64,
    /// Device: major and minor number.
    pub device: (u64, u64),
    /// Inode.
    pub inode: u64,
}

/// A part of an area without a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part<'a> {
    /// Its size in bytes: a multiple of the page size.
    pub length: u64,
    /// Its contents; `None` for zeros.
    pub contents: Option<&'a [u8]>,
}

/// Writes an image.
#[derive(Debug)]
pub struct ImageWriter<W> {
    output: W,
    record: Vec<u8>,
}

impl<W: Write> ImageWriter<W> {
    /// Writes the header.
    pub fn new(mut output: W, program: &Program) -> Result<Self, ImageError> {
        let header = header(program)?;
        output.write_all(&header)?;
        output.write_all(&header)?;
        Ok(Self { output, record: vec![0; PAGE] })
    }

    /// Adds an area that maps a file. If the file ends in the area, the contents are shorter; DMTCP then
    /// omits the rest, so that later data is no longer aligned to pages. Contents of writable areas must not
    /// be shorter.
    pub fn mapped(&mut self, area: &Area, contents: &[u8]) -> Result<(), ImageError> {
        let written = contents.len() as u64;
        let complete = written == area.length;
        let cut =
            area.file.is_some() && area.protection & WRITABLE == 0 && 0 < written && written < area.length;
        if !(complete || cut) {
            return Err(area.contradiction(OTHER_CONTENTS));
        }
        self.record(area, area.start, area.length, written, 0)?;
        Ok(self.output.write_all(contents)?)
    }

    /// Adds an area without a file; for zero pages only their number is written.
    pub fn anonymous(&mut self, area: &Area, contents: &[u8]) -> Result<(), ImageError> {
        self.parts(area, runs(contents))
    }

    /// Adds an area without a file that was never written to.
    pub fn zeros(&mut self, area: &Area) -> Result<(), ImageError> {
        self.parts(area, [Part { length: area.length, contents: None }])
    }

    /// Adds an area without a file as consecutive parts: a record of the area, then one for each part. Parts
    /// with contents may contain zeros, because DMTCP itself only counts untouched pages as zero.
    pub fn parts<'a>(
        &mut self,
        area: &Area,
        parts: impl IntoIterator<Item = Part<'a>>,
    ) -> Result<(), ImageError> {
        self.record(area, area.start, area.length, u64::MAX, PARENT)?;
        let mut left = area.length;
        for Part { length, contents } in parts {
            if length > left || contents.is_some_and(|contents| contents.len() as u64 != length) {
                return Err(area.contradiction(OTHER_CONTENTS));
            }
            let properties = CHILD | if contents.is_none() { ZERO } else { 0 };
            self.record(area, area.start + (area.length - left), length, u64::MAX, properties)?;
            self.output.write_all(contents.unwrap_or_default())?;
            left -= length;
        }
        match left {
            0 => Ok(()),
            _ => Err(area.contradiction(OTHER_CONTENTS)),
        }
    }

    /// Finishes the image, and returns the writer.
    pub fn finish(mut self) -> Result<W, ImageError> {
        self.record.fill(0);
        put(&mut self.record, 2, u64::MAX);
        self.output.write_all(&self.record)?;
        self.output.flush()?;
        Ok(self.output)
    }

    fn record(
        &mut self,
        area: &Area,
        start: u64,
        length: u64,
        file_bytes: u64,
        properties: u64,
    ) -> Result<(), ImageError> {
        let page = PAGE as u64;
        if length == 0 || !start.is_multiple_of(page) || !length.is_multiple_of(page) {
            return Err(area.contradiction("is not a multiple of the page size"));
        }
        let Some(end) = start.checked_add(length) else {
            return Err(area.contradiction("ends beyond the address space"));
        };
        let file = area.file.unwrap_or_default();
        let sharing = if area.shared { SHARED } else { PRIVATE };
        let anonymous = if area.file.is_some() { 0 } else { ANONYMOUS };
        let fields = [
            start,
            end,
            length,
            file.offset,
            area.protection.into(),
            FIXED | sharing | anonymous,
            file.device.0,
            file.device.1,
            file.inode,
            file_bytes,
            properties,
        ];
        self.record.fill(0);
        for (index, field) in fields.into_iter().enumerate() {
            put(&mut self.record, index, field);
        }
        put_name(&mut self.record[fields.len() * 8..], &area.name)?;
        Ok(self.output.write_all(&self.record)?)
    }
}

impl Area {
    fn contradiction(&self, reason: &'static str) -> ImageError {
        ImageError::Area { start: self.start, reason }
    }
}

/// The header of an image (`DmtcpCkptHeader`).
fn header(program: &Program) -> Result<Vec<u8>, ImageError> {
    /// Offsets of process ids, four bytes each: those of the process, its group and its session, and the
    /// peers.
    const PROCESS: [usize; 5] = [0x30, 0x60, 0x68, 0x70, 0x74];
    const FIRST_OF_ALL: usize = 0x7c;
    const PEERS: usize = 0x80;
    const SIXTY_FOUR_BITS: usize = 0x84;
    const NAME: usize = 0x100;
    const EXECUTABLE: usize = 0x500;
    let mut header = vec![0; PAGE];
    header[..SIGNATURE.len()].copy_from_slice(SIGNATURE);
    for at in PROCESS {
        header[at..at + 4].copy_from_slice(&program.process.to_le_bytes());
    }
    for (at, value) in [(FIRST_OF_ALL, 1), (PEERS, program.peers), (SIXTY_FOUR_BITS, 1)] {
        header[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }
    put_name(&mut header[NAME..], &program.name)?;
    put_name(&mut header[EXECUTABLE..], &program.executable)?;
    Ok(header)
}

fn put(record: &mut [u8], index: usize, field: u64) {
    record[index * 8..][..8].copy_from_slice(&field.to_le_bytes());
}

fn put_name(record: &mut [u8], name: &str) -> Result<(), ImageError> {
    if name.len() > LONGEST_NAME || name.contains('\0') {
        return Err(ImageError::Name(name.to_owned()));
    }
    record[..name.len()].copy_from_slice(name.as_bytes());
    Ok(())
}

/// The runs of zero pages and of other pages.
fn runs(bytes: &[u8]) -> impl Iterator<Item = Part<'_>> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let mut pages = rest.chunks(PAGE).map(is_zero);
        let zero = pages.next()?;
        let count = 1 + pages.take_while(|&next| next == zero).count();
        let (run, behind) = rest.split_at(rest.len().min(count * PAGE));
        rest = behind;
        Some(Part { length: run.len() as u64, contents: (!zero).then_some(run) })
    })
}

fn is_zero(page: &[u8]) -> bool {
    page.iter().all(|&byte| byte == 0)
}

/// Why an image cannot be written.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum ImageError {
    /// An I/O error.
    #[error("the image cannot be written")]
    #[diagnostic(code(checkpoint::write))]
    Write(#[from] io::Error),
    /// An invalid area.
    #[error("the area at {start:#x} {reason}")]
    #[diagnostic(code(checkpoint::area))]
    Area {
        /// Its start address.
        start: u64,
        /// The cause.
        reason: &'static str,
    },
    /// A name that does not fit a record.
    #[error("the name `{}` is longer than {LONGEST_NAME} bytes or contains a zero byte", .0.escape_debug())]
    #[diagnostic(code(checkpoint::name))]
    Name(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn area(start: u64, pages: u64, name: &str) -> Area {
        Area { start, length: pages * PAGE as u64, protection: 3, name: name.into(), ..Area::default() }
    }

    fn program() -> Program {
        Program { name: "solver".into(), executable: "/opt/solver".into(), process: 4000, peers: 2 }
    }

    fn word(image: &[u8], page: usize, index: usize) -> u64 {
        u64::from_le_bytes(image[page * PAGE + index * 8..][..8].try_into().unwrap())
    }

    #[test]
    fn runs_of_zero_pages_have_a_record_but_no_contents() {
        let mut contents = vec![0; 5 * PAGE];
        contents[PAGE] = 1;
        contents[3 * PAGE - 1] = 1;
        let mut writer = ImageWriter::new(Vec::new(), &program()).unwrap();
        writer.anonymous(&area(0x10000, 5, "[heap]"), &contents).unwrap();
        let image = writer.finish().unwrap();
        // Two headers, the area, zeros, a record with two pages, zeros, the end.
        assert_eq!(image.len(), 9 * PAGE);
        assert_eq!(image[..PAGE], image[PAGE..2 * PAGE]);
        assert!(image.starts_with(b"DMTCP_CHECKPOINT_IMAGE_v4.0\n\0"));
        let fields =
            [2, 3, 4, 7].map(|page| (word(&image, page, 0), word(&image, page, 2), word(&image, page, 10)));
        assert_eq!(
            fields,
            [(0x10000, 0x5000, 2), (0x10000, 0x1000, 5), (0x11000, 0x2000, 4), (0x13000, 0x2000, 5)]
        );
        assert_eq!(image[5 * PAGE..7 * PAGE], contents[PAGE..3 * PAGE]);
        assert_eq!(image[2 * PAGE + 88..][..7], *b"[heap]\0");
        assert_eq!((word(&image, 2, 4), word(&image, 2, 5), word(&image, 2, 9)), (3, 0x32, u64::MAX));
        assert_eq!((word(&image, 8, 0), word(&image, 8, 2)), (0, u64::MAX));
    }

    #[test]
    fn contents_end_with_the_file() {
        let mut shown = area(0x40_0000, 2, "/usr/lib/locale");
        shown.file = Some(MappedFile { offset: 4096, device: (254, 1), inode: 77 });
        shown.protection = 1;
        let mut writer = ImageWriter::new(Vec::new(), &program()).unwrap();
        writer.mapped(&shown, &[7; 5000]).unwrap();
        let image = writer.finish().unwrap();
        assert_eq!(image.len(), 4 * PAGE + 5000);
        assert_eq!([5, 6, 7, 8, 9, 10].map(|index| word(&image, 2, index)), [0x12, 254, 1, 77, 5000, 0]);
        shown.protection = 3;
        let mut writer = ImageWriter::new(Vec::new(), &program()).unwrap();
        let error = writer.mapped(&shown, &[7; 5000]).unwrap_err();
        assert_eq!(error.to_string(), "the area at 0x400000 and its contents have different lengths");
    }

    #[test]
    fn invalid_areas_are_rejected() {
        let mut writer = ImageWriter::new(Vec::new(), &program()).unwrap();
        let mut refused = |area: Area| writer.zeros(&area).unwrap_err().to_string();
        assert_eq!(refused(area(100, 1, "")), "the area at 0x64 is not a multiple of the page size");
        assert_eq!(refused(area(4096, 0, "")), "the area at 0x1000 is not a multiple of the page size");
        let last = u64::MAX - 4095;
        assert_eq!(
            refused(area(last, 1, "")),
            "the area at 0xfffffffffffff000 ends beyond the address space"
        );
        assert!(refused(area(4096, 1, &"long".repeat(256))).starts_with("the name `longlong"));
        for bytes in [4096, 3 * 4096] {
            let error = writer.anonymous(&area(4096, 2, ""), &vec![0; bytes]).unwrap_err();
            assert_eq!(error.to_string(), "the area at 0x1000 and its contents have different lengths");
        }
    }
}
