//! The memory of a rank as a file.

use std::fs::File;
use std::io::{self, BufWriter, Seek, Write};
use std::path::Path;

use super::memory::{HEAP, LIBRARIES, Library, Memory};
use crate::chunk::PAGE;
use crate::series::dmtcp::{Area, ImageError, ImageWriter, MappedFile, Program};

/// Number of the process that is rank 0.
const FIRST_PROCESS: u32 = 40_000;

/// Writes an image of DMTCP v4; its bytes.
pub(super) fn write_dmtcp(
    path: &Path,
    memory: &Memory,
    libraries: &[Library],
    rank: u32,
    ranks: u32,
) -> io::Result<u64> {
    let program = Program {
        name: "generated".into(),
        executable: "/usr/bin/generated".into(),
        process: FIRST_PROCESS + rank,
        peers: ranks,
    };
    let write = || {
        let mut image = ImageWriter::new(BufWriter::new(File::create(path)?), &program)?;
        for (area, bytes) in areas(memory) {
            match bytes.len() as u64 == area.length {
                true => image.anonymous(&area, bytes)?,
                false => image.anonymous(&area, &whole_pages(bytes))?,
            }
        }
        for library in libraries {
            image.mapped(&area_of(library), &library.bytes)?;
        }
        Ok(length(image.finish()?)?)
    };
    write().map_err(|error: ImageError| match error {
        ImageError::Write(error) => error,
        other => io::Error::other(other),
    })
}

/// Writes the memory alone; its bytes.
pub(super) fn write_plain(path: &Path, memory: &Memory, libraries: &[Library]) -> io::Result<u64> {
    let mut file = BufWriter::new(File::create(path)?);
    for (_, bytes) in areas(memory) {
        file.write_all(bytes)?;
    }
    for library in libraries {
        file.write_all(&library.bytes)?;
    }
    length(file)
}

/// The areas that are the rank's own, by their addresses, and what is in them.
fn areas(memory: &Memory) -> Vec<(Area, &[u8])> {
    let beside = memory.areas.iter().chain(memory.fields.values());
    let mut areas: Vec<_> = std::iter::once((HEAP, &memory.heap, "[heap]"))
        .chain(beside.map(|area| (area.start, &area.bytes, "")))
        .filter(|(_, bytes, _)| !bytes.is_empty())
        .map(|(start, bytes, name)| {
            let length = bytes.len().next_multiple_of(PAGE) as u64;
            let area = Area { start, length, protection: 3, name: name.into(), ..Area::default() };
            (area, bytes.as_slice())
        })
        .collect();
    areas.sort_by_key(|(area, _)| area.start);
    areas
}

fn area_of(library: &Library) -> Area {
    Area {
        start: library.start,
        length: library.bytes.len().next_multiple_of(PAGE) as u64,
        protection: if library.executable { 5 } else { 1 },
        shared: false,
        name: "/usr/lib/libgenerated.so.1".into(),
        file: Some(MappedFile { offset: library.start - LIBRARIES, device: (254, 0), inode: 1 }),
    }
}

fn whole_pages(bytes: &[u8]) -> Vec<u8> {
    let mut whole = bytes.to_vec();
    whole.resize(bytes.len().next_multiple_of(PAGE), 0);
    whole
}

/// The bytes of a file that was written from its beginning.
fn length(mut file: BufWriter<File>) -> io::Result<u64> {
    file.flush()?;
    file.stream_position()
}
