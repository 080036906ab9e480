//! Manifests: the entries of a checkpoint, and the chunks of its files.
//!
//! A manifest is a header (`hopmapMF`, format), [wire](super::wire) numbers compressed with Zstandard, and
//! the BLAKE3 of both.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use serde::Serialize;

use super::pack::MOST_CHUNKS;
use super::wire::{Reader, Torn, Writer, compress, decompress};
use crate::chunk::{ChunkId, KeptHash, LONGEST_CHUNK, Position, Space};
use crate::cut::Format;
use crate::error::CheckpointError;
use crate::tree::{Entry, EntryKind, Time};

const MAGIC: &[u8; 8] = b"hopmapMF";
/// Format 1 lacks the fingerprints of packs, format 2 the first needed pack. Only manifests of checkpoints
/// with a rule have format 4: they end with its delta.
const FORMAT: u32 = 4;
const FORMAT_OF_BLOCKS: u32 = 3;
const CHECKSUM: usize = 32;

/// A checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Manifest {
    /// Its number, from 1.
    pub number: u32,
    /// The checkpoint that it is encoded against; 0 if there is none.
    pub earlier: u32,
    /// The time when it was added.
    pub created: Time,
    /// Its name, or empty.
    pub name: String,
    /// Whether it was a stream and has one file.
    pub stream: bool,
    /// Its entries; parents first.
    pub entries: Vec<Entry>,
    /// The recipes of its files, by entry number.
    pub recipes: BTreeMap<u32, Recipe>,
    /// Statistics of adding it.
    pub figures: Figures,
    /// Fingerprints of its chunks in each pack; empty in format 1.
    pub fingerprints: Fingerprints,
    /// The full checkpoint that it is built on, or itself: it needs no earlier pack. 0 in formats 1 and 2.
    pub whole: u32,
    /// Number of checkpoints of its series since that one.
    pub since: u32,
    /// Its delta in stores with a rule; the base is `earlier`.
    pub delta: Option<Delta>,
}

/// The recipe of a file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Recipe {
    /// The format that it was read as.
    pub format: Format,
    /// BLAKE3 over length and hash of all its chunks.
    pub digest: [u8; 32],
    /// Its chunks.
    pub runs: Vec<Run>,
}

/// Successive chunks in the file, in a block and in their address space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// The first; `None` for zeros.
    pub first: Option<ChunkId>,
    /// The number of chunks.
    pub chunks: u16,
    /// Size of each chunk, or total size of zeros, in bytes.
    pub length: u64,
    /// Position of the first.
    pub place: Position,
}

impl Run {
    /// Its size in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.length.saturating_mul(u64::from(self.chunks))
    }
}

/// Statistics of adding a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Figures {
    /// Total size of all files.
    pub bytes: u64,
    /// Zero bytes.
    pub zero: u64,
    /// Bytes equal to the previous version at the same positions.
    pub unchanged: u64,
    /// Bytes known from elsewhere.
    pub known: u64,
    /// New bytes.
    pub new: u64,
    /// Size of the new bytes in the pack.
    pub stored: u64,
    /// New bytes encoded against other checkpoints: number of the checkpoint, bytes, encoded bytes.
    pub bases: Vec<(u32, u64, u64)>,
    /// How often ADCA compared the current base with others, and how often it changed it.
    pub comparisons: (u64, u64),
}

/// `C_t`: the delta of a whole checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Delta {
    /// The base that the rule keeps after it.
    pub held: u32,
    /// Number of stored blocks.
    pub blocks: u64,
    /// S(C): size of the blocks with their overhead. For the first checkpoint, its size.
    pub bytes: u64,
    /// Number of deltas to apply to restore it: 0 for the first.
    pub depth: u32,
}

/// Collects chunks in runs.
#[derive(Debug, Default)]
pub(crate) struct RunBuilder {
    pub(crate) runs: Vec<Run>,
}

impl RunBuilder {
    pub(crate) fn push(&mut self, id: Option<ChunkId>, length: u64, place: Position) {
        match (self.runs.last_mut().filter(|last| last.continues(id, length, place)), id) {
            (Some(last), Some(_)) => last.chunks += 1,
            (Some(last), None) => last.length += length,
            (None, _) => self.runs.push(Run { first: id, chunks: 1, length, place }),
        }
    }
}

impl Run {
    fn continues(&self, id: Option<ChunkId>, length: u64, place: Position) -> bool {
        let next = Position { address: self.place.address.wrapping_add(self.bytes()), ..self.place };
        let follows = match (self.first, id) {
            (None, None) => self.length.checked_add(length).is_some(),
            (Some(first), Some(id)) => {
                let next = first.chunk.checked_add(self.chunks);
                length == self.length
                    && (id.pack, id.block) == (first.pack, first.block)
                    && next == Some(id.chunk)
                    && usize::from(self.chunks) < MOST_CHUNKS
            }
            _ => false,
        };
        follows && place == next
    }
}

/// By pack, the sum over all chunks of the files: the first half of the hash times a number that depends on
/// the position.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Fingerprints {
    pub(super) packs: BTreeMap<u32, u64>,
}

impl Fingerprints {
    /// Adds a chunk of a file, in any order.
    pub(crate) fn add(&mut self, id: ChunkId, hash: KeptHash) {
        let sum = self.packs.entry(id.pack).or_default();
        *sum = sum.wrapping_add(part(id, hash));
    }

    pub(crate) fn write(&self, out: &mut Writer) {
        out.number(self.packs.len() as u64);
        for (&pack, sum) in &self.packs {
            out.number(u64::from(pack));
            out.plain(&sum.to_le_bytes());
        }
    }

    pub(crate) fn read(input: &mut Reader<'_>) -> Result<Self, Torn> {
        let mut packs = BTreeMap::new();
        for _ in 0..input.count()? {
            let pack = input.small()?;
            let sum = input.plain(8)?.try_into().map_err(|_| Torn)?;
            packs.insert(pack, u64::from_le_bytes(sum));
        }
        Ok(Self { packs })
    }
}

/// The term of a chunk in the sum of its pack.
pub(super) fn part(id: ChunkId, hash: KeptHash) -> u64 {
    let half = hash.0.first_chunk().map_or(0, |half| u64::from_le_bytes(*half));
    // Multiplying by an odd factor loses no information.
    half.wrapping_mul((u64::from(id.block) << 17 | u64::from(id.chunk) << 1) | 1)
}

impl Manifest {
    /// Total size of its files.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.recipes.values().fold(0u64, |sum, recipe| sum.saturating_add(recipe.bytes()))
    }

    /// The entry at a path, and its number.
    #[must_use]
    pub fn entry(&self, path: &std::path::Path) -> Option<(u32, &Entry)> {
        let found = self.entries.iter().position(|entry| entry.path == path)?;
        Some((found as u32, &self.entries[found]))
    }

    /// Encodes it.
    pub fn encode(&self) -> Result<Vec<u8>, CheckpointError> {
        self.encode_as(if self.delta.is_some() { FORMAT } else { FORMAT_OF_BLOCKS })
    }

    fn encode_as(&self, format: u32) -> Result<Vec<u8>, CheckpointError> {
        let mut out = Writer::default();
        self.write(format, &mut out);
        let mut bytes = [&MAGIC[..], &format.to_le_bytes()].concat();
        bytes.extend_from_slice(&compress(&out.finish())?);
        bytes.extend_from_slice(blake3::hash(&bytes).as_bytes());
        Ok(bytes)
    }

    /// Decodes a manifest, or returns the reason why it is invalid.
    pub fn decode(bytes: &[u8]) -> Result<Self, &'static str> {
        let length = bytes.len().checked_sub(CHECKSUM).ok_or("it is truncated")?;
        let (content, checksum) = bytes.split_at(length);
        let content = content.strip_prefix(MAGIC).ok_or("it is not a manifest of hopmap")?;
        if blake3::hash(&bytes[..length]).as_bytes() != checksum {
            return Err("its checksum does not match");
        }
        let (format, content) = content.split_at_checked(4).ok_or("it is truncated")?;
        let format = format.try_into().map_or(0, u32::from_le_bytes);
        if !(1..=FORMAT).contains(&format) {
            return Err("it was written by another version of hopmap");
        }
        let content = decompress(content).map_err(|Torn| "its contents cannot be decompressed")?;
        Self::read(format, Reader::new(&content)).map_err(|Torn| "its contents are inconsistent")
    }

    fn write(&self, format: u32, out: &mut Writer) {
        out.number(u64::from(self.number));
        out.number(u64::from(self.earlier));
        write_time(self.created, out);
        out.text(self.name.as_bytes());
        out.number(u64::from(self.stream));
        self.figures.write(out);
        out.number(self.entries.len() as u64);
        for entry in &self.entries {
            write_entry(entry, out);
        }
        for recipe in self.recipes.values() {
            recipe.write(out);
        }
        if format > 1 {
            self.fingerprints.write(out);
        }
        if format > 2 {
            out.number(u64::from(self.whole));
            out.number(u64::from(self.since));
        }
        if format > 3 {
            self.delta.unwrap_or_default().write(out);
        }
    }

    fn read(format: u32, mut reader: Reader<'_>) -> Result<Self, Torn> {
        let input = &mut reader;
        let mut manifest = Self {
            number: input.small()?,
            earlier: input.small()?,
            created: read_time(input)?,
            name: std::str::from_utf8(input.text()?).map_err(|_| Torn)?.to_owned(),
            stream: input.number()? != 0,
            figures: Figures::read(input)?,
            ..Self::default()
        };
        let count = input.count()?;
        manifest.entries = (0..count).map(|_| read_entry(input)).collect::<Result<_, _>>()?;
        for (number, entry) in (0..).zip(&manifest.entries) {
            if let EntryKind::File { length, .. } = entry.kind {
                manifest.recipes.insert(number, Recipe::read(length, input)?);
            }
        }
        if format > 1 {
            manifest.fingerprints = Fingerprints::read(input)?;
        }
        if format > 2 {
            (manifest.whole, manifest.since) = (input.small()?, input.small()?);
        }
        if format > 3 {
            manifest.delta = Some(Delta::read(input)?);
        }
        reader.end()?;
        Ok(manifest)
    }
}

impl Figures {
    fn write(&self, out: &mut Writer) {
        for number in [self.bytes, self.zero, self.unchanged, self.known, self.new, self.stored] {
            out.number(number);
        }
        out.number(self.bases.len() as u64);
        for &(checkpoint, bytes, stored) in &self.bases {
            out.number(u64::from(checkpoint));
            out.number(bytes);
            out.number(stored);
        }
        out.number(self.comparisons.0);
        out.number(self.comparisons.1);
    }

    fn read(input: &mut Reader<'_>) -> Result<Self, Torn> {
        let mut numbers = [0; 6];
        for number in &mut numbers {
            *number = input.number()?;
        }
        let [bytes, zero, unchanged, known, new, stored] = numbers;
        let count = input.count()?;
        let bases = (0..count).map(|_| Ok((input.small()?, input.number()?, input.number()?)));
        let bases = bases.collect::<Result<_, Torn>>()?;
        let comparisons = (input.number()?, input.number()?);
        Ok(Self { bytes, zero, unchanged, known, new, stored, bases, comparisons })
    }
}

impl Delta {
    fn write(self, out: &mut Writer) {
        for number in [self.held.into(), self.blocks, self.bytes, self.depth.into()] {
            out.number(number);
        }
    }

    fn read(input: &mut Reader<'_>) -> Result<Self, Torn> {
        let (held, blocks) = (input.small()?, input.number()?);
        Ok(Self { held, blocks, bytes: input.number()?, depth: input.small()? })
    }
}

fn write_time(time: Time, out: &mut Writer) {
    out.signed(time.seconds);
    out.number(u64::from(time.nanoseconds));
}

fn read_time(input: &mut Reader<'_>) -> Result<Time, Torn> {
    let (seconds, nanoseconds) = (input.signed()?, input.small()?);
    if nanoseconds < 1_000_000_000 { Ok(Time { seconds, nanoseconds }) } else { Err(Torn) }
}

fn write_entry(entry: &Entry, out: &mut Writer) {
    out.text(entry.path.as_os_str().as_bytes());
    for number in [entry.mode, entry.owner, entry.group] {
        out.number(u64::from(number));
    }
    write_time(entry.modified, out);
    match &entry.kind {
        EntryKind::Folder => out.number(0),
        EntryKind::File { length, holes } => {
            out.number(1);
            out.number(*length);
            out.number(holes.len() as u64);
            for &(begin, bytes) in holes {
                out.number(begin);
                out.number(bytes);
            }
        }
        EntryKind::Symlink(target) => {
            out.number(2);
            out.text(target.as_os_str().as_bytes());
        }
        EntryKind::HardLink(to) => {
            out.number(3);
            out.number(u64::from(*to));
        }
        EntryKind::Fifo => out.number(4),
    }
}

fn read_entry(input: &mut Reader<'_>) -> Result<Entry, Torn> {
    let path = PathBuf::from(OsStr::from_bytes(input.text()?));
    let (mode, owner, group) = (input.small()?, input.small()?, input.small()?);
    let modified = read_time(input)?;
    let kind = match input.number()? {
        0 => EntryKind::Folder,
        1 => {
            let length = input.number()?;
            let count = input.count()?;
            let holes = (0..count).map(|_| Ok((input.number()?, input.number()?)));
            EntryKind::File { length, holes: holes.collect::<Result<_, Torn>>()? }
        }
        2 => EntryKind::Symlink(PathBuf::from(OsStr::from_bytes(input.text()?))),
        3 => EntryKind::HardLink(input.small()?),
        4 => EntryKind::Fifo,
        _ => return Err(Torn),
    };
    Ok(Entry { path, kind, mode, owner, group, modified })
}

impl Recipe {
    /// Total size of the file.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.runs.iter().fold(0u64, |sum, run| sum.saturating_add(run.bytes()))
    }

    /// Numbers of the same meaning are stored together, because they compress better.
    fn write(&self, out: &mut Writer) {
        out.number(self.format as u64);
        out.plain(&self.digest);
        out.number(self.runs.len() as u64);
        for run in &self.runs {
            out.number(if run.first.is_some() { u64::from(run.chunks) } else { 0 });
        }
        let mut before = 0;
        for run in &self.runs {
            out.signed(run.length.wrapping_sub(before).cast_signed());
            before = if run.first.is_some() { run.length } else { before };
        }
        let mut expected = ChunkId { pack: 0, block: 0, chunk: 0 };
        for run in &self.runs {
            if let Some(first) = run.first {
                out.signed(i64::from(first.pack) - i64::from(expected.pack));
                out.signed(i64::from(first.block) - i64::from(expected.block));
                out.signed(i64::from(first.chunk) - i64::from(expected.chunk));
                expected = ChunkId { chunk: first.chunk.saturating_add(run.chunks), ..first };
            }
        }
        let mut expected = Position::default();
        for run in &self.runs {
            let jump = run.place.address.wrapping_sub(expected.address).cast_signed();
            out.number(match (run.place.space == expected.space, jump) {
                (true, 0) => 3,
                _ => run.place.space as u64,
            });
            if !(run.place.space == expected.space && jump == 0) {
                out.signed(jump);
            }
            expected = Position { address: run.place.address.wrapping_add(run.bytes()), ..run.place };
        }
    }

    fn read(length: u64, input: &mut Reader<'_>) -> Result<Self, Torn> {
        let format = of_number(&FORMATS, input.number()?)?;
        let digest = input.plain(32)?.try_into().map_err(|_| Torn)?;
        let count = input.count()?;
        let mut runs = Vec::new();
        for _ in 0..count {
            let chunks: u16 = input.small()?;
            let first = (chunks > 0).then_some(ChunkId { pack: 0, block: 0, chunk: 0 });
            runs.push(Run { first, chunks: chunks.max(1), length: 0, place: Position::default() });
        }
        read_lengths(&mut runs, length, input)?;
        read_ids(&mut runs, input)?;
        read_places(&mut runs, input)?;
        Ok(Self { format, digest, runs })
    }
}

/// Bidirectional mapping between numbers and their meaning.
const SPACES: [Space; 3] = [Space::File, Space::Memory, Space::Record];
const FORMATS: [Format; 4] = [Format::Plain, Format::Dmtcp, Format::Criu, Format::Gzip];

fn of_number<T: Copy>(all: &[T], number: u64) -> Result<T, Torn> {
    all.get(usize::try_from(number).unwrap_or(usize::MAX)).copied().ok_or(Torn)
}

fn read_lengths(runs: &mut [Run], total: u64, input: &mut Reader<'_>) -> Result<(), Torn> {
    let (mut before, mut sum) = (0u64, 0u64);
    for run in runs {
        run.length = before.wrapping_add(input.signed()?.cast_unsigned());
        let longest = if run.first.is_some() { LONGEST_CHUNK as u64 } else { u64::MAX };
        if run.length == 0 || run.length > longest || usize::from(run.chunks) > MOST_CHUNKS {
            return Err(Torn);
        }
        sum = run
            .length
            .checked_mul(u64::from(run.chunks))
            .and_then(|bytes| sum.checked_add(bytes))
            .ok_or(Torn)?;
        before = if run.first.is_some() { run.length } else { before };
    }
    if sum == total { Ok(()) } else { Err(Torn) }
}

fn read_ids(runs: &mut [Run], input: &mut Reader<'_>) -> Result<(), Torn> {
    let mut expected = ChunkId { pack: 0, block: 0, chunk: 0 };
    for run in runs {
        let Some(first) = &mut run.first else { continue };
        let mut next = |number: i64| number.checked_add(input.signed()?).ok_or(Torn);
        let (pack, block, chunk) =
            (next(expected.pack.into())?, next(expected.block.into())?, next(expected.chunk.into())?);
        *first = ChunkId {
            pack: pack.try_into().map_err(|_| Torn)?,
            block: block.try_into().map_err(|_| Torn)?,
            chunk: chunk.try_into().map_err(|_| Torn)?,
        };
        expected = ChunkId { chunk: first.chunk.saturating_add(run.chunks), ..*first };
    }
    Ok(())
}

fn read_places(runs: &mut [Run], input: &mut Reader<'_>) -> Result<(), Torn> {
    let mut expected = Position::default();
    for run in runs {
        run.place = match input.number()? {
            3 => expected,
            number => {
                let space = of_number(&SPACES, number)?;
                Position { space, address: expected.address.wrapping_add(input.signed()?.cast_unsigned()) }
            }
        };
        expected = Position { address: run.place.address.wrapping_add(run.bytes()), ..run.place };
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A manifest of one file of zeros, with the data that only later formats have.
    fn sample() -> Manifest {
        let kind = EntryKind::File { length: 10, holes: Vec::new() };
        let modified = Time::default();
        let entry = Entry { path: "file".into(), kind, mode: 0o600, owner: 1, group: 2, modified };
        let runs = vec![Run { first: None, chunks: 1, length: 10, place: Position::default() }];
        let recipe = Recipe { runs, ..Recipe::default() };
        let mut fingerprints = Fingerprints::default();
        fingerprints.add(ChunkId { pack: 7, block: 0, chunk: 0 }, KeptHash([3; 12]));
        Manifest {
            number: 7,
            earlier: 6,
            created: modified,
            name: "job".into(),
            stream: false,
            entries: vec![entry],
            recipes: BTreeMap::from([(0, recipe)]),
            figures: Figures::default(),
            fingerprints,
            whole: 3,
            since: 4,
            delta: None,
        }
    }

    #[test]
    fn manifests_of_earlier_formats_are_read() {
        let manifest = sample();
        assert_eq!(Manifest::decode(&manifest.encode().unwrap()).as_ref(), Ok(&manifest));
        let second = Manifest { whole: 0, since: 0, ..manifest.clone() };
        assert_eq!(Manifest::decode(&manifest.encode_as(2).unwrap()).as_ref(), Ok(&second));
        let old = Manifest { fingerprints: Fingerprints::default(), ..second };
        assert_eq!(Manifest::decode(&manifest.encode_as(1).unwrap()), Ok(old));
        let delta = Some(Delta { held: 3, blocks: 5, bytes: 20_600, depth: 2 });
        let with_delta = Manifest { delta, ..manifest.clone() };
        assert_eq!(Manifest::decode(&with_delta.encode().unwrap()).as_ref(), Ok(&with_delta));
        let newer = manifest.encode_as(FORMAT + 1).unwrap();
        assert_eq!(Manifest::decode(&newer), Err("it was written by another version of hopmap"));
    }
}
