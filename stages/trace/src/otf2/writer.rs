//! Writes archives that are byte-identical to those of libotf2 3.0.2 (`OTF2_Buffer.h`,
//! `OTF2_EvtWriter_inc.c`, `OTF2_GlobalDefWriter_inc.c`, `OTF2_AnchorFile.c`).

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use super::archive_files::ArchiveFiles;
use super::definitions::{
    CLOCK_PROPERTIES, COMM, GROUP, LOCATION, LOCATION_GROUP, REGION, STRING, SYSTEM_TREE_NODE,
};
use super::record_schema::{
    OTF2_GROUP_TYPE_COMM_GROUP, OTF2_GROUP_TYPE_COMM_LOCATIONS, OTF2_LOCATION_GROUP_TYPE_PROCESS,
    OTF2_LOCATION_TYPE_CPU_THREAD, OTF2_PARADIGM_MPI, OTF2_PARADIGM_USER, OTF2_REGION_ROLE_FUNCTION,
    OTF2_REGION_ROLE_POINT2POINT, OTF2_UNDEFINED_UINT32, OTF2_UNDEFINED_UINT64,
};
use super::structure::{CHUNK_HEADER, END_OF_BUFFER, END_OF_CHUNK, END_OF_FILE, LITTLE_ENDIAN, TIMESTAMP};

/// Size of the chunks of event files, as in Score-P.
const EVENT_CHUNK: usize = 1 << 20;
/// Size of the chunks of definition files: a record, such as a group, must fit into one.
const DEFINITION_CHUNK: usize = 4 << 20;

/// Offset of the number of the last event in the header of a chunk.
const LAST_EVENT: usize = 10;
/// Bytes of a timestamp.
const TIMESTAMP_SIZE: usize = 9;
/// Maximum bytes of a compressed number of 32 and of 64 bits.
const MOST_32: usize = 5;
const MOST_64: usize = 9;

/// Types of regions before version 1.1 (`OTF2_RegionType`).
const REGION_TYPE_UNKNOWN: u8 = 0;
const REGION_TYPE_USER_REGION: u8 = 3;
/// Types of groups before version 1.2 (`OTF2_GroupTypePre12`).
const GROUP_TYPE_MPI_GROUP: u8 = 4;
const GROUP_TYPE_MPI_LOCATIONS: u8 = 6;

/// An archive being written: first the events, then the definitions.
#[derive(Debug)]
pub(crate) struct ArchiveWriter {
    files: ArchiveFiles,
}

impl ArchiveWriter {
    /// Creates the archive `NAME.otf2` in a folder.
    pub(crate) fn create(folder: &Path, name: &str) -> io::Result<Self> {
        let files = ArchiveFiles::named(folder, name);
        fs::create_dir(files.folder())?;
        Ok(Self { files })
    }

    /// Starts the events of a location, which does not have local definitions.
    pub(crate) fn events(&self, location: u64) -> io::Result<EventWriter> {
        ChunkedFile::create(&self.files.definitions_of(location), DEFINITION_CHUNK)?.close()?;
        let file = ChunkedFile::create(&self.files.events_of(location), EVENT_CHUNK)?;
        Ok(EventWriter { file, time: None })
    }

    /// Starts the definitions of the archive.
    pub(crate) fn definitions(self) -> io::Result<DefinitionWriter> {
        let file = ChunkedFile::create(&self.files.definitions(), DEFINITION_CHUNK)?;
        Ok(DefinitionWriter { files: self.files, file, strings: 0, definitions: 0, locations: 0 })
    }
}

/// A file of chunks. The current one is in memory.
#[derive(Debug)]
struct ChunkedFile {
    file: File,
    size: usize,
    chunk: Vec<u8>,
    /// Number of events so far; definitions do not count.
    events: u64,
}

impl ChunkedFile {
    fn create(path: &Path, size: usize) -> io::Result<Self> {
        // A number at the end of a chunk is written at full length before it is shortened.
        let chunk = Vec::with_capacity(size + MOST_64);
        let mut file = Self { file: File::create(path)?, size, chunk, events: 0 };
        file.begin();
        Ok(file)
    }

    fn begin(&mut self) {
        self.chunk.extend([CHUNK_HEADER, LITTLE_ENDIAN]);
        self.chunk.extend((self.events + 1).to_le_bytes());
        // The number of the last event is filled in at the end.
        self.chunk.extend([0; 8]);
    }

    fn flush(&mut self) -> io::Result<()> {
        self.chunk[LAST_EVENT..LAST_EVENT + 8].copy_from_slice(&self.events.to_le_bytes());
        self.file.write_all(&self.chunk)?;
        self.chunk.clear();
        Ok(())
    }

    /// Starts the next chunk unless `bytes` and an end mark fit into this one. Returns whether it did.
    #[inline]
    fn make_room(&mut self, bytes: usize) -> io::Result<bool> {
        if self.chunk.len() + bytes < self.size { Ok(false) } else { self.next_chunk(bytes) }
    }

    #[cold]
    fn next_chunk(&mut self, bytes: usize) -> io::Result<bool> {
        self.chunk.resize(self.size, END_OF_CHUNK);
        self.flush()?;
        self.begin();
        if self.chunk.len() + bytes < self.size {
            return Ok(true);
        }
        Err(io::Error::other(format!("a record of {bytes} bytes does not fit into a chunk of OTF2")))
    }

    fn close(mut self) -> io::Result<()> {
        self.chunk.extend([END_OF_FILE, END_OF_BUFFER]);
        self.flush()
    }
}

/// Appends a number in compressed form: its length without leading zeros, then its bytes.
#[inline]
fn put_64(bytes: &mut Vec<u8>, number: u64) {
    if number == OTF2_UNDEFINED_UINT64 {
        return bytes.push(u8::MAX);
    }
    let length = 8 - number.leading_zeros() as usize / 8;
    let end = bytes.len() + 1 + length;
    bytes.push(length as u8);
    bytes.extend(number.to_le_bytes());
    bytes.truncate(end);
}

#[inline]
fn put_32(bytes: &mut Vec<u8>, number: u32) {
    put_64(bytes, if number == OTF2_UNDEFINED_UINT32 { OTF2_UNDEFINED_UINT64 } else { number.into() });
}

/// Writes the events of a location in chronological order.
#[derive(Debug)]
pub(crate) struct EventWriter {
    file: ChunkedFile,
    /// Time of the previous event in the chunk.
    time: Option<u64>,
}

/// A message from the view of one end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Transfer {
    /// Rank of the peer in the communicator.
    pub(crate) peer: u32,
    /// The communicator.
    pub(crate) communicator: u32,
    /// Its length.
    pub(crate) bytes: u64,
}

impl EventWriter {
    /// Writes the remaining data.
    pub(crate) fn close(self) -> io::Result<()> {
        self.file.close()
    }

    /// A region is entered (`ENTER`) or left (`LEAVE`).
    pub(crate) fn region(&mut self, kind: u8, time: u64, region: u32) -> io::Result<()> {
        let chunk = self.begin(time, 1 + MOST_32)?;
        chunk.push(kind);
        put_32(chunk, region);
        Ok(())
    }

    /// A message is sent (`MPI_SEND`) or received (`MPI_RECV`).
    pub(crate) fn message(&mut self, kind: u8, time: u64, transfer: Transfer) -> io::Result<()> {
        const TAG: u32 = 0;
        let chunk = self.begin(time, 2 + 3 * MOST_32 + MOST_64)?;
        chunk.extend([kind, 0]);
        let start = chunk.len();
        for number in [transfer.peer, transfer.communicator, TAG] {
            put_32(chunk, number);
        }
        put_64(chunk, transfer.bytes);
        chunk[start - 1] = (chunk.len() - start) as u8;
        Ok(())
    }

    /// Makes room for a record of at most `most` bytes, counted as in libotf2, and writes the time if it has
    /// changed.
    #[inline]
    fn begin(&mut self, time: u64, most: usize) -> io::Result<&mut Vec<u8>> {
        if self.file.make_room(TIMESTAMP_SIZE + most)? {
            self.time = None;
        }
        if self.time.replace(time) != Some(time) {
            self.file.chunk.push(TIMESTAMP);
            self.file.chunk.extend(time.to_le_bytes());
        }
        self.file.events += 1;
        Ok(&mut self.file.chunk)
    }
}

/// Writes the definitions of an archive. Nodes and regions must be defined before they are referenced.
#[derive(Debug)]
pub(crate) struct DefinitionWriter {
    files: ArchiveFiles,
    file: ChunkedFile,
    strings: u32,
    definitions: u64,
    locations: u64,
}

/// Part of a definition.
#[derive(Clone, Copy)]
enum Part<'a> {
    Ids(&'a [u32]),
    Numbers(&'a [u64]),
    Bytes(&'a [u8]),
}

use Part::{Bytes, Ids, Numbers};

impl DefinitionWriter {
    fn define(&mut self, kind: u8, parts: &[Part<'_>]) -> io::Result<()> {
        let mut record = Vec::new();
        for part in parts {
            match *part {
                Ids(ids) => ids.iter().for_each(|id| put_32(&mut record, *id)),
                Numbers(numbers) => numbers.iter().for_each(|number| put_64(&mut record, *number)),
                Bytes(bytes) => record.extend(bytes),
            }
        }
        let length = match u8::try_from(record.len()) {
            Ok(length) if length < u8::MAX => vec![length],
            _ => [&[u8::MAX][..], &(record.len() as u64).to_le_bytes()].concat(),
        };
        self.file.make_room(1 + length.len() + record.len())?;
        self.file.chunk.push(kind);
        self.file.chunk.extend(length);
        self.file.chunk.extend(record);
        self.definitions += 1;
        Ok(())
    }

    /// Sets the clock to nanoseconds; the trace starts at `start` and is `length` ticks long.
    pub(crate) fn nanoseconds(&mut self, start: u64, length: u64) -> io::Result<()> {
        self.define(CLOCK_PROPERTIES, &[Numbers(&[1_000_000_000, start, length, OTF2_UNDEFINED_UINT64])])
    }

    pub(crate) fn string(&mut self, string: &str) -> io::Result<u32> {
        let id = self.strings;
        self.strings += 1;
        self.define(STRING, &[Ids(&[id]), Bytes(string.as_bytes()), Bytes(&[0])])?;
        Ok(id)
    }

    /// A node without a parent.
    pub(crate) fn node(&mut self, id: u32, name: u32, class: u32) -> io::Result<()> {
        let no_parent = OTF2_UNDEFINED_UINT32;
        self.define(SYSTEM_TREE_NODE, &[Ids(&[id, name, class, no_parent])])
    }

    /// A process and its only thread, with the same id.
    pub(crate) fn process(&mut self, id: u32, name: u32, node: u32, events: u64) -> io::Result<()> {
        let (process, thread) = (OTF2_LOCATION_GROUP_TYPE_PROCESS, OTF2_LOCATION_TYPE_CPU_THREAD);
        let no_creator = OTF2_UNDEFINED_UINT32;
        self.define(LOCATION_GROUP, &[Ids(&[id, name]), Bytes(&[process]), Ids(&[node, no_creator])])?;
        self.locations += 1;
        self.define(LOCATION, &[Ids(&[id, name]), Bytes(&[thread]), Numbers(&[events]), Ids(&[id])])
    }

    /// A function, of MPI or of the program.
    pub(crate) fn region(&mut self, id: u32, name: u32, mpi: bool) -> io::Result<()> {
        let (old_type, role, paradigm) = match mpi {
            true => (REGION_TYPE_UNKNOWN, OTF2_REGION_ROLE_POINT2POINT, OTF2_PARADIGM_MPI),
            false => (REGION_TYPE_USER_REGION, OTF2_REGION_ROLE_FUNCTION, OTF2_PARADIGM_USER),
        };
        let none = OTF2_UNDEFINED_UINT32;
        // Description; file, first and last line; canonical name; flags.
        self.define(
            REGION,
            &[
                Ids(&[id, name, none]),
                Bytes(&[old_type]),
                Ids(&[none, 0, 0, name]),
                Bytes(&[role, paradigm]),
                Ids(&[0]),
            ],
        )
    }

    /// The locations of the MPI ranks.
    pub(crate) fn ranks(&mut self, id: u32, name: u32, locations: &[u64]) -> io::Result<()> {
        self.group(id, name, [GROUP_TYPE_MPI_LOCATIONS, OTF2_GROUP_TYPE_COMM_LOCATIONS], locations)
    }

    /// A communicator of some ranks, and their group with the given id.
    pub(crate) fn communicator(&mut self, id: u32, name: u32, group: u32, ranks: &[u64]) -> io::Result<()> {
        self.group(group, name, [GROUP_TYPE_MPI_GROUP, OTF2_GROUP_TYPE_COMM_GROUP], ranks)?;
        let no_parent = OTF2_UNDEFINED_UINT32;
        self.define(COMM, &[Ids(&[id, name, group, no_parent, 0])])
    }

    fn group(&mut self, id: u32, name: u32, [old, new]: [u8; 2], members: &[u64]) -> io::Result<()> {
        let count = u32::try_from(members.len()).map_err(io::Error::other)?;
        self.define(
            GROUP,
            &[
                Ids(&[id, name]),
                Bytes(&[old]),
                Ids(&[count]),
                Numbers(members),
                Bytes(&[new, OTF2_PARADIGM_MPI]),
                Ids(&[0]),
            ],
        )
    }

    /// Writes the remaining data and the anchor file. libotf2 derives the identifier from the time, the
    /// process and the machine.
    pub(crate) fn close(self, identifier: u64) -> io::Result<()> {
        self.file.close()?;
        let mut anchor = vec![CHUNK_HEADER, LITTLE_ENDIAN];
        anchor.extend(b"OTF2\0");
        // Version of this file, of the trace format and of libotf2.
        anchor.extend([3, 2, 3, 0, 2]);
        anchor.extend([EVENT_CHUNK, DEFINITION_CHUNK].map(|size| (size as u64).to_le_bytes()).concat());
        // Plain files, not compressed.
        anchor.extend([1, 1]);
        anchor.extend([self.locations, self.definitions].map(u64::to_le_bytes).concat());
        // No machine, creator, description; no properties.
        anchor.extend([0; 3 + 4]);
        anchor.extend(identifier.to_le_bytes());
        // No snapshots, no thumbnails.
        anchor.extend([0; 4 + 4]);
        anchor.extend([END_OF_FILE, END_OF_BUFFER, END_OF_CHUNK]);
        fs::write(self.files.anchor(), anchor)
    }
}

#[cfg(test)]
mod tests {
    use super::super::definitions;
    use super::super::structure::{ENTER, LEAVE, MPI_SEND};
    use super::*;

    #[test]
    fn an_event_file_is_a_header_records_and_an_end() {
        let folder = tempfile::tempdir().unwrap();
        let archive = ArchiveWriter::create(folder.path(), "x").unwrap();
        let mut events = archive.events(7).unwrap();
        events.region(ENTER, 0, 300).unwrap();
        events.message(MPI_SEND, 0, Transfer { peer: 3, communicator: 0, bytes: 8192 }).unwrap();
        events.region(LEAVE, 2, u32::MAX).unwrap();
        events.close().unwrap();
        let expected = [
            &[3, 0x42, 1, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0][..],
            &[5, 0, 0, 0, 0, 0, 0, 0, 0, 12, 2, 0x2c, 1],
            &[14, 7, 1, 3, 0, 0, 2, 0, 0x20],
            &[5, 2, 0, 0, 0, 0, 0, 0, 0, 13, 255],
            &[2, 1],
        ];
        assert_eq!(fs::read(folder.path().join("x/7.evt")).unwrap(), expected.concat());
        assert_eq!(fs::read(folder.path().join("x/7.def")).unwrap()[10..], [0, 0, 0, 0, 0, 0, 0, 0, 2, 1]);
    }

    #[test]
    fn definitions_continue_in_further_chunks() {
        let folder = tempfile::tempdir().unwrap();
        let mut definitions = ArchiveWriter::create(folder.path(), "x").unwrap().definitions().unwrap();
        let text = |id: u32| format!("{id}").repeat(id as usize % 100);
        for id in 0..40_000 {
            assert_eq!(definitions.string(&text(id)).unwrap(), id);
        }
        definitions.close(1).unwrap();
        let path = folder.path().join("x.def");
        assert!(fs::metadata(&path).unwrap().len() > 2 * DEFINITION_CHUNK as u64);
        let (read, count) = definitions::read(&path, DEFINITION_CHUNK as u64).unwrap();
        assert_eq!(count, 40_000);
        assert!((0..40_000).all(|id| read.strings[&id] == text(id)));
    }

    #[test]
    fn a_definition_larger_than_a_chunk_is_rejected() {
        let folder = tempfile::tempdir().unwrap();
        let mut definitions = ArchiveWriter::create(folder.path(), "x").unwrap().definitions().unwrap();
        let error = definitions.string(&"x".repeat(DEFINITION_CHUNK)).unwrap_err().to_string();
        assert_eq!(error, "a record of 4194316 bytes does not fit into a chunk of OTF2");
    }
}
