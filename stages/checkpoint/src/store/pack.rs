//! Packs: the blocks that one checkpoint added, in a file that is written once.
//!
//! A pack is a header (`hopmapPK`, format, number of the pack), the payloads of its blocks, the hashes of
//! their chunks (12 bytes each), two copies of the block table, and two copies of a trailer. All numbers are
//! little-endian; the table consists of [wire](super::wire) numbers, compressed with Zstandard. Every
//! payload, the hashes, the tables and the trailers have their own checksums (XXH3). A block that no
//! checkpoint needs may be missing: it keeps its number and has no payload and no hashes. A chunk that no
//! checkpoint needs may be [dead](super::sparse): zeros in its block, and their hash.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use hopmap_durable::DurableError;
use twox_hash::{XxHash3_64, XxHash3_128};

use super::wire::{LONGEST, Reader, Torn, Writer, compress, decompress};
use crate::chunk::{ChunkId, KeptHash, LONGEST_CHUNK};
use crate::codec::{BLOCK, Codec};
use crate::error::CheckpointError;

/// Maximum number of chunks of a block.
pub(crate) const MOST_CHUNKS: usize = 1024;

/// Maximum length of a chain in any store.
pub(crate) const DEEPEST: u8 = 16;

const MAGIC: &[u8; 8] = b"hopmapPK";
const FORMAT: u32 = 1;
const HEADER: u64 = 16;
const TRAILER: usize = 80;
const HASH: usize = 12;

/// Maximum total size of the chunks of a block: the last chunk may exceed the target.
pub(crate) const MOST_BYTES: usize = BLOCK + LONGEST_CHUNK;

/// Maximum size of the payload of a block, slightly more than its contents.
const MOST_PAYLOAD: u32 = 2 * MOST_BYTES as u32;

/// The entry of a block in the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockEntry {
    /// Offset of its payload.
    pub offset: u64,
    /// Size of its payload.
    pub payload: u32,
    /// XXH3 of its payload.
    pub checksum: u64,
    /// Its codec.
    pub codec: Codec,
    /// Length of the chain of blocks to decode before it: 0 without bases.
    pub depth: u8,
    /// Lengths of its chunks.
    pub lengths: Vec<u32>,
    /// The base of each chunk; empty if the block has no bases.
    pub bases: Vec<Option<ChunkId>>,
    /// Index of its first hash among those of the pack.
    pub(crate) first_hash: usize,
}

/// A block to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NewBlock {
    pub(crate) codec: Codec,
    pub(crate) depth: u8,
    pub(crate) lengths: Vec<u32>,
    pub(crate) bases: Vec<Option<ChunkId>>,
    pub(crate) hashes: Vec<KeptHash>,
    pub(crate) payload: Vec<u8>,
}

/// A pack that is being written to a temporary file.
#[derive(Debug)]
pub(crate) struct PackWriter {
    number: u32,
    path: PathBuf,
    file: BufWriter<File>,
    offset: u64,
    blocks: Vec<Option<(BlockEntry, Vec<KeptHash>)>>,
}

impl PackWriter {
    /// Creates a pack at a path that does not exist yet.
    pub(crate) fn create(path: PathBuf, number: u32) -> Result<Self, CheckpointError> {
        let file = File::create_new(&path).map_err(DurableError::io("write", &path))?;
        let mut file = BufWriter::with_capacity(1 << 18, file);
        file.write_all(&Pack::header(number)).map_err(DurableError::io("write", &path))?;
        Ok(Self { number, path, file, offset: HEADER, blocks: Vec::new() })
    }

    /// Adds a block with a number; skipped numbers are missing blocks.
    pub(crate) fn put(&mut self, number: u32, block: NewBlock) -> Result<(), CheckpointError> {
        self.file.write_all(&block.payload).map_err(DurableError::io("write", &self.path))?;
        let entry = BlockEntry {
            offset: self.offset,
            payload: block.payload.len() as u32,
            checksum: XxHash3_64::oneshot(&block.payload),
            codec: block.codec,
            depth: block.depth,
            lengths: block.lengths,
            bases: block.bases,
            first_hash: 0,
        };
        self.offset += u64::from(entry.payload);
        let place = number as usize;
        if self.blocks.len() <= place {
            self.blocks.resize(place + 1, None);
        }
        self.blocks[place] = Some((entry, block.hashes));
        Ok(())
    }

    /// Writes the tables and syncs the file, which is then complete, but still temporary.
    pub(crate) fn finish(mut self) -> Result<(PathBuf, u64), CheckpointError> {
        let failed = DurableError::io("write", &self.path);
        let tail = self.tail()?;
        let written = self.file.write_all(&tail).and_then(|()| self.file.flush());
        written.and_then(|()| self.file.get_ref().sync_data()).map_err(failed)?;
        Ok((self.path, self.offset + tail.len() as u64))
    }

    fn tail(&self) -> Result<Vec<u8>, CheckpointError> {
        let hashes =
            self.blocks.iter().flatten().flat_map(|(_, hashes)| hashes.iter().flat_map(|hash| hash.0));
        let hashes: Vec<u8> = hashes.collect();
        let table = compress(&self.table())?;
        let trailer = Trailer {
            number: self.number,
            hashes_at: self.offset,
            hashes: hashes.len() as u64,
            hashes_checksum: XxHash3_64::oneshot(&hashes),
            table: table.len() as u64,
            table_checksum: XxHash3_128::oneshot(&table),
        };
        let trailer = trailer.encode();
        Ok([&hashes[..], &table, &table, &trailer, &trailer].concat())
    }

    fn table(&self) -> Vec<u8> {
        let mut out = Writer::default();
        out.number(self.blocks.len() as u64);
        for block in &self.blocks {
            match block {
                None => out.number(0),
                Some((entry, _)) => entry.write(self.number, &mut out),
            }
        }
        out.finish()
    }
}

impl BlockEntry {
    fn write(&self, pack: u32, out: &mut Writer) {
        out.number(self.lengths.len() as u64);
        out.number(self.offset);
        out.number(u64::from(self.payload));
        out.plain(&self.checksum.to_le_bytes());
        out.number(self.codec as u64);
        out.number(u64::from(self.depth));
        let mut before = 0;
        for &length in &self.lengths {
            out.signed(i64::from(length) - before);
            before = i64::from(length);
        }
        out.number(u64::from(!self.bases.is_empty()));
        let mut before = ChunkId { pack, block: 0, chunk: 0 };
        for base in &self.bases {
            let Some(base) = *base else {
                out.number(0);
                continue;
            };
            out.number(1 + u64::from(pack - base.pack));
            out.signed(i64::from(base.block) - i64::from(before.block));
            out.signed(i64::from(base.chunk) - i64::from(before.chunk) - 1);
            before = base;
        }
    }

    fn read(pack: u32, count: usize, input: &mut Reader<'_>) -> Result<Self, Torn> {
        if count > MOST_CHUNKS {
            return Err(Torn);
        }
        let (offset, payload): (u64, u32) = (input.number()?, input.small()?);
        let checksum = u64::from_le_bytes(input.plain(8)?.try_into().map_err(|_| Torn)?);
        let codec = Codec::of_number(input.small()?).ok_or(Torn)?;
        let depth = input.small()?;
        let mut before = 0i64;
        let mut lengths = Vec::with_capacity(count);
        for _ in 0..count {
            before = before.checked_add(input.signed()?).ok_or(Torn)?;
            lengths.push(u32::try_from(before).map_err(|_| Torn)?);
        }
        let total: u64 = lengths.iter().map(|&length| u64::from(length)).sum();
        if total > MOST_BYTES as u64 || depth > DEEPEST || payload > MOST_PAYLOAD {
            return Err(Torn);
        }
        let bases = match input.number()? {
            0 => Vec::new(),
            _ => read_bases(pack, count, input)?,
        };
        Ok(Self { offset, payload, checksum, codec, depth, lengths, bases, first_hash: 0 })
    }

    /// Total size of its chunks.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.lengths.iter().map(|&length| length as usize).sum()
    }

    /// Offset of a chunk in the block.
    #[must_use]
    pub fn range(&self, chunk: u16) -> Option<std::ops::Range<usize>> {
        let length = *self.lengths.get(usize::from(chunk))? as usize;
        let begin = self.lengths[..usize::from(chunk)].iter().map(|&length| length as usize).sum();
        Some(begin..begin + length)
    }
}

/// Bases are in earlier packs.
fn read_bases(pack: u32, count: usize, input: &mut Reader<'_>) -> Result<Vec<Option<ChunkId>>, Torn> {
    let mut before = (0i64, 0i64);
    let mut bases = Vec::with_capacity(count);
    for _ in 0..count {
        let back: u32 = input.small()?;
        if back == 0 {
            bases.push(None);
            continue;
        }
        let block = before.0.checked_add(input.signed()?).ok_or(Torn)?;
        let chunk =
            before.1.checked_add(input.signed()?).and_then(|chunk| chunk.checked_add(1)).ok_or(Torn)?;
        let base = ChunkId {
            pack: pack.checked_sub(back - 1).ok_or(Torn)?,
            block: block.try_into().map_err(|_| Torn)?,
            chunk: chunk.try_into().map_err(|_| Torn)?,
        };
        if base.pack >= pack {
            return Err(Torn);
        }
        bases.push(Some(base));
        before = (block, chunk);
    }
    Ok(bases)
}

#[derive(Debug)]
struct Trailer {
    number: u32,
    hashes_at: u64,
    hashes: u64,
    hashes_checksum: u64,
    table: u64,
    table_checksum: u128,
}

impl Trailer {
    fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(TRAILER);
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&FORMAT.to_le_bytes());
        bytes.extend_from_slice(&self.number.to_le_bytes());
        for number in [self.hashes_at, self.hashes, self.hashes_checksum, self.table] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        bytes.extend_from_slice(&self.table_checksum.to_le_bytes());
        let checksum = XxHash3_128::oneshot(&bytes);
        bytes.extend_from_slice(&checksum.to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (content, checksum) = bytes.split_at_checked(TRAILER - 16)?;
        if XxHash3_128::oneshot(content).to_le_bytes() != checksum || !content.starts_with(MAGIC) {
            return None;
        }
        let u32_at = |at: usize| Some(u32::from_le_bytes(content.get(at..at + 4)?.try_into().ok()?));
        let u64_at = |at: usize| Some(u64::from_le_bytes(content.get(at..at + 8)?.try_into().ok()?));
        if u32_at(8)? != FORMAT {
            return None;
        }
        Some(Self {
            number: u32_at(12)?,
            hashes_at: u64_at(16)?,
            hashes: u64_at(24)?,
            hashes_checksum: u64_at(32)?,
            table: u64_at(40)?,
            table_checksum: u128::from_le_bytes(content.get(48..64)?.try_into().ok()?),
        })
    }
}

/// The error of a block without bytes: a prune punched them out, or a disk lost them.
pub(crate) const EMPTY: &str = "it is all zeros";

/// A complete pack.
#[derive(Debug)]
pub struct Pack {
    number: u32,
    path: PathBuf,
    length: u64,
    blocks: Vec<Option<BlockEntry>>,
    trailer: Trailer,
}

impl Pack {
    /// Opens a pack and reads its table.
    pub fn open(path: &Path, number: u32) -> Result<Self, CheckpointError> {
        let damaged = |reason| CheckpointError::DamagedPack { path: path.to_owned(), reason };
        let file = File::open(path).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => damaged("it is missing"),
            _ => DurableError::io("read", path)(error).into(),
        })?;
        let length = file.metadata().map_err(DurableError::io("read", path))?.len();
        let trailer = [1, 2].into_iter().find_map(|copy| trailer_copy(&file, length, copy));
        let trailer = trailer.ok_or_else(|| damaged("its end is missing or damaged"))?;
        if trailer.number != number {
            return Err(damaged("it is another pack with a wrong name"));
        }
        let table = [2, 1].into_iter().find_map(|copy| table_copy(&file, length, &trailer, copy));
        let table = table.ok_or_else(|| damaged("its table is damaged"))?;
        let blocks =
            parse_table(number, &table, &trailer).map_err(|Torn| damaged("its table is inconsistent"))?;
        Ok(Self { number, path: path.to_owned(), length, blocks, trailer })
    }

    /// Packs do not stay open: a store may have more packs than a process may open files.
    pub(super) fn file(&self) -> Result<File, CheckpointError> {
        Ok(File::open(&self.path).map_err(DurableError::io("read", &self.path))?)
    }

    /// Damage of data that has a copy or is not needed: nothing is lost yet.
    pub(crate) fn worn(&self) -> Result<Vec<&'static str>, CheckpointError> {
        let file = self.file()?;
        let mut worn = Vec::new();
        let mut header = [0; HEADER as usize];
        let read = file.read_exact_at(&mut header, 0);
        if read.is_err() || header != Self::header(self.number) {
            worn.push("its header is damaged");
        }
        let trailers = [1, 2].map(|copy| trailer_copy(&file, self.length, copy));
        if trailers.iter().any(Option::is_none) {
            worn.push("one of the two copies of its end is damaged");
        }
        let trailer = trailers.into_iter().flatten().next();
        let is_valid =
            |copy| trailer.as_ref().is_some_and(|it| table_copy(&file, self.length, it, copy).is_some());
        if !(is_valid(1) && is_valid(2)) {
            worn.push("one of the two copies of its table is damaged");
        }
        Ok(worn)
    }

    fn header(number: u32) -> [u8; HEADER as usize] {
        let mut header = [0; HEADER as usize];
        header[..8].copy_from_slice(MAGIC);
        header[8..12].copy_from_slice(&FORMAT.to_le_bytes());
        header[12..].copy_from_slice(&number.to_le_bytes());
        header
    }

    /// Number of chunks of all blocks.
    pub(crate) fn chunks(&self) -> usize {
        self.trailer.hashes as usize / HASH
    }

    /// Its number.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Size of the file.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Its blocks by number; `None` for missing ones.
    #[must_use]
    pub fn blocks(&self) -> &[Option<BlockEntry>] {
        &self.blocks
    }

    /// An existing block.
    #[must_use]
    pub fn block(&self, number: u32) -> Option<&BlockEntry> {
        self.blocks.get(number as usize)?.as_ref()
    }

    /// The payload of a block, verified by its checksum.
    pub fn payload(&self, number: u32) -> Result<Vec<u8>, CheckpointError> {
        let entry = self.block(number).ok_or_else(|| self.damaged_block(number, "it is missing"))?;
        let mut payload = vec![0; entry.payload as usize];
        self.read_payload(&self.file()?, number, entry, &mut payload)?;
        Ok(payload)
    }

    /// Reads the payload of a block into a buffer of its length and verifies its checksum.
    pub(super) fn read_payload(
        &self,
        file: &File,
        number: u32,
        entry: &BlockEntry,
        payload: &mut [u8],
    ) -> Result<(), CheckpointError> {
        file.read_exact_at(payload, entry.offset).map_err(|error| match error.kind() {
            std::io::ErrorKind::UnexpectedEof => {
                self.damaged_block(number, "the pack is truncated before it")
            }
            _ => DurableError::io("read", &self.path)(error).into(),
        })?;
        if XxHash3_64::oneshot(payload) != entry.checksum {
            let empty = payload.iter().all(|&byte| byte == 0);
            return Err(self.damaged_block(number, if empty { EMPTY } else { "its checksum does not match" }));
        }
        Ok(())
    }

    /// The hashes of all chunks of existing blocks.
    pub fn hashes(&self) -> Result<Hashes, CheckpointError> {
        let mut bytes = vec![0; self.trailer.hashes as usize];
        let read = self.file()?.read_exact_at(&mut bytes, self.trailer.hashes_at);
        read.map_err(DurableError::io("read", &self.path))?;
        if XxHash3_64::oneshot(&bytes) != self.trailer.hashes_checksum {
            let reason = "the hashes of its chunks are damaged";
            return Err(CheckpointError::DamagedPack { path: self.path.clone(), reason });
        }
        Ok(Hashes { bytes })
    }

    pub(crate) fn damaged_block(&self, block: u32, reason: &'static str) -> CheckpointError {
        CheckpointError::DamagedBlock { path: self.path.clone(), block, reason }
    }
}

/// The hashes of the chunks of a pack.
#[derive(Debug)]
pub struct Hashes {
    bytes: Vec<u8>,
}

impl Hashes {
    /// The hash of a chunk of a block of that pack.
    #[must_use]
    pub fn of(&self, block: &BlockEntry, chunk: u16) -> Option<KeptHash> {
        let begin = (block.first_hash + usize::from(chunk)) * HASH;
        let bytes = self.bytes.get(begin..begin + HASH)?;
        bytes.try_into().ok().map(KeptHash)
    }
}

/// A copy of the trailer; 1 is the last one.
fn trailer_copy(file: &File, length: u64, copy: u64) -> Option<Trailer> {
    let mut bytes = [0; TRAILER];
    file.read_exact_at(&mut bytes, length.checked_sub(copy * TRAILER as u64)?).ok()?;
    // A valid trailer has the length of the file.
    Trailer::decode(&bytes).filter(|trailer| trailer.fits(length))
}

impl Trailer {
    fn fits(&self, length: u64) -> bool {
        let tail = self.table.checked_mul(2).and_then(|tables| tables.checked_add(2 * TRAILER as u64));
        let end =
            self.hashes_at.checked_add(self.hashes).zip(tail).and_then(|(at, tail)| at.checked_add(tail));
        end == Some(length) && self.table <= LONGEST
    }
}

/// A copy of the table; 1 is the last one.
fn table_copy(file: &File, length: u64, trailer: &Trailer, copy: u64) -> Option<Vec<u8>> {
    let at = length.checked_sub(2 * TRAILER as u64 + copy * trailer.table)?;
    let mut table = vec![0; trailer.table as usize];
    file.read_exact_at(&mut table, at).ok()?;
    (XxHash3_128::oneshot(&table) == trailer.table_checksum).then_some(table)
}

fn parse_table(pack: u32, table: &[u8], trailer: &Trailer) -> Result<Vec<Option<BlockEntry>>, Torn> {
    let table = decompress(table)?;
    let mut input = Reader::new(&table);
    let count = input.count()?;
    let mut blocks = Vec::new();
    let mut first_hash = 0;
    for _ in 0..count {
        let chunks = input.small()?;
        if chunks == 0 {
            blocks.push(None);
            continue;
        }
        let mut block = BlockEntry::read(pack, chunks, &mut input)?;
        let end = block.offset.checked_add(u64::from(block.payload)).ok_or(Torn)?;
        if block.offset < HEADER || end > trailer.hashes_at {
            return Err(Torn);
        }
        block.first_hash = first_hash;
        first_hash += chunks;
        blocks.push(Some(block));
    }
    input.end()?;
    if first_hash as u64 * HASH as u64 != trailer.hashes {
        return Err(Torn);
    }
    Ok(blocks)
}
