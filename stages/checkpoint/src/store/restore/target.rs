//! A portion of a file with decoded and verified chunks, and its destination.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, IoSlice, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use hopmap_durable::DurableError;

use crate::chunk::{ChunkHash, ChunkId, Digest};
use crate::error::CheckpointError;
use crate::store::Store;
use crate::store::blocks::Blocks;
use crate::store::manifest::Run;
use crate::store::pack::{Hashes, Pack};

/// Maximum decoded size of the blocks of a portion, unless it needs only one block.
const WINDOW: usize = 2 << 20;

/// Successive runs of a file, and their data.
pub(super) struct Portion {
    blocks: Vec<Arc<Vec<u8>>>,
    /// Block and range of the bytes of each run, or the number of zeros.
    places: Vec<Content>,
    /// Hashes of all nonzero chunks.
    hashes: Vec<ChunkHash>,
}

enum Content {
    Zeros(u64),
    Bytes(usize, Range<usize>),
}

/// A piece of a portion.
pub(super) enum Part<'p> {
    Zeros(u64),
    Bytes(&'p [u8]),
}

/// A block with needed chunks.
struct Source {
    /// Its index among the blocks of the portion.
    number: usize,
    pack: Arc<Pack>,
    hashes: Arc<Hashes>,
}

/// Splits runs into those of a portion and the rest.
pub(super) fn split<'r>(store: &Store, runs: &'r [Run]) -> (&'r [Run], &'r [Run]) {
    let mut blocks = BTreeSet::new();
    let mut bytes = 0;
    let full = runs.iter().position(|run| {
        let new = run.first.filter(|first| blocks.insert((first.pack, first.block)));
        bytes += new.map_or(0, |first| block_bytes(store, first));
        bytes > WINDOW && blocks.len() > 1
    });
    runs.split_at(full.unwrap_or(runs.len()))
}

/// Size of the block of a chunk. Decoding reports why it is missing.
fn block_bytes(store: &Store, chunk: ChunkId) -> usize {
    let pack = store.pack(chunk.pack).ok();
    pack.and_then(|pack| Some(pack.block(chunk.block)?.bytes())).unwrap_or(0)
}

impl Portion {
    pub(super) fn read(store: &Store, blocks: &Blocks<'_>, runs: &[Run]) -> Result<Self, CheckpointError> {
        let mut portion =
            Self { blocks: Vec::new(), places: Vec::with_capacity(runs.len()), hashes: Vec::new() };
        let mut sources = HashMap::new();
        for run in runs {
            let Some(first) = run.first else {
                portion.places.push(Content::Zeros(run.length));
                continue;
            };
            let source = match sources.entry((first.pack, first.block)) {
                Entry::Occupied(source) => source.into_mut(),
                Entry::Vacant(place) => {
                    let (pack, hashes) = (store.pack(first.pack)?, store.hashes(first.pack)?);
                    portion.blocks.push(blocks.block(first.pack, first.block)?);
                    place.insert(Source { number: portion.blocks.len() - 1, pack, hashes })
                }
            };
            portion.add(source, run, first, blocks.seed())?;
        }
        Ok(portion)
    }

    /// Verifies every chunk of a run by its hash.
    fn add(&mut self, source: &Source, run: &Run, first: ChunkId, seed: u64) -> Result<(), CheckpointError> {
        let pack = &source.pack;
        let missing = || pack.damaged_block(first.block, "a chunk is missing");
        let block = pack.block(first.block).ok_or_else(missing)?;
        let chunks = usize::from(first.chunk)..usize::from(first.chunk) + usize::from(run.chunks);
        let lengths = block.lengths.get(chunks).ok_or_else(missing)?;
        if lengths.iter().any(|&length| u64::from(length) != run.length) {
            return Err(missing());
        }
        let begin = block.range(first.chunk).ok_or_else(missing)?.start;
        let range = begin..begin + lengths.len() * run.length as usize;
        let bytes = self.blocks.get(source.number).and_then(|bytes| bytes.get(range.clone()));
        let contents = bytes.ok_or_else(missing)?.chunks_exact(run.length.max(1) as usize);
        for (chunk, content) in (first.chunk..).zip(contents) {
            let hash = ChunkHash::seeded(seed, content);
            if source.hashes.of(block, chunk) != Some(hash.kept()) {
                return Err(pack.damaged_block(first.block, "the hash of a chunk does not match"));
            }
            self.hashes.push(hash);
        }
        self.places.push(Content::Bytes(source.number, range));
        Ok(())
    }

    /// Its pieces, in order.
    pub(super) fn parts(&self) -> impl Iterator<Item = Part<'_>> {
        self.places.iter().map(|place| match place {
            Content::Zeros(bytes) => Part::Zeros(*bytes),
            Content::Bytes(block, range) => {
                let bytes = self.blocks.get(*block).and_then(|block| block.get(range.clone()));
                Part::Bytes(bytes.unwrap_or_default())
            }
        })
    }

    /// Adds its chunks to the digest of its file.
    pub(super) fn digest(&self, runs: &[Run], digest: &mut Digest) {
        let mut hashes = self.hashes.iter();
        for run in runs {
            match run.first {
                None => digest.zeros(run.length),
                Some(_) => {
                    let mine = hashes.by_ref().take(run.chunks.into());
                    mine.for_each(|&hash| digest.chunk(run.length, hash));
                }
            }
        }
    }

    pub(super) fn give_back(self, blocks: &Blocks<'_>) {
        self.blocks.into_iter().for_each(|block| blocks.give_back(block));
    }
}

/// The destination of the portions of a file.
pub(super) trait Target: Send + Sync {
    /// Writes a portion at this offset, in any order, if the destination allows it.
    fn put_at(&self, offset: u64, portion: &Portion) -> Result<(), CheckpointError>;
    /// Writes the next portion, if the destination needs file order.
    fn put_next(&self, portion: &Portion) -> Result<(), CheckpointError>;
    /// Finishes the file.
    fn finish(&self) -> Result<(), CheckpointError>;
}

/// A file with its final length; its holes are not written.
pub(super) struct FileTarget<'a> {
    path: PathBuf,
    file: File,
    holes: &'a [(u64, u64)],
    /// Whether the file is synced when it ends, because its mode may prevent opening it later.
    sync: bool,
}

impl<'a> FileTarget<'a> {
    pub(super) fn open(path: PathBuf, holes: &'a [(u64, u64)], sync: bool) -> Result<Self, CheckpointError> {
        let file = OpenOptions::new().write(true).open(&path).map_err(DurableError::io("write", &path))?;
        Ok(Self { path, file, holes, sync })
    }

    /// Length of the part that is completely inside or outside of a hole, and whether it is inside.
    fn stretch(&self, offset: u64, bytes: u64) -> (u64, bool) {
        let next = self.holes.partition_point(|&(begin, length)| begin.saturating_add(length) <= offset);
        match self.holes.get(next) {
            Some(&(begin, length)) if begin <= offset => {
                (bytes.min(begin.saturating_add(length) - offset), true)
            }
            Some(&(begin, _)) => (bytes.min(begin - offset), false),
            None => (bytes, false),
        }
    }

    fn write(&self, offset: u64, portion: &Portion) -> io::Result<()> {
        let write = |slices: &[IoSlice<'_>], at| Ok(rustix::io::pwritev(&self.file, slices, at)?);
        let mut gather = Gather::new(offset, write);
        for part in portion.parts() {
            match part {
                Part::Bytes(bytes) => gather.push(bytes)?,
                Part::Zeros(mut bytes) => {
                    while bytes > 0 {
                        let (stretch, is_hole) = self.stretch(gather.end, bytes);
                        match is_hole {
                            true => gather.skip(stretch)?,
                            false => gather.zeros(stretch)?,
                        }
                        bytes -= stretch;
                    }
                }
            }
        }
        gather.flush()
    }
}

impl Target for FileTarget<'_> {
    fn put_at(&self, offset: u64, portion: &Portion) -> Result<(), CheckpointError> {
        Ok(self.write(offset, portion).map_err(DurableError::io("write", &self.path))?)
    }

    fn put_next(&self, _: &Portion) -> Result<(), CheckpointError> {
        Ok(())
    }

    fn finish(&self) -> Result<(), CheckpointError> {
        let synced = if self.sync { self.file.sync_data() } else { Ok(()) };
        Ok(synced.map_err(DurableError::io("write", &self.path))?)
    }
}

/// A stream, such as standard output.
pub(super) struct StreamTarget<'a> {
    out: Mutex<&'a mut (dyn Write + Send)>,
}

impl<'a> StreamTarget<'a> {
    pub(super) fn new(out: &'a mut (dyn Write + Send)) -> Self {
        Self { out: Mutex::new(out) }
    }

    fn with(
        &self,
        write: impl FnOnce(&mut (dyn Write + Send)) -> io::Result<()>,
    ) -> Result<(), CheckpointError> {
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(write(&mut **out).map_err(DurableError::io("write", Path::new("standard output")))?)
    }
}

impl Target for StreamTarget<'_> {
    fn put_at(&self, _: u64, _: &Portion) -> Result<(), CheckpointError> {
        Ok(())
    }

    fn put_next(&self, portion: &Portion) -> Result<(), CheckpointError> {
        self.with(|out| {
            let mut gather = Gather::new(0, |slices: &[IoSlice<'_>], _| out.write_vectored(slices));
            portion.parts().try_for_each(|part| match part {
                Part::Bytes(bytes) => gather.push(bytes),
                Part::Zeros(bytes) => gather.zeros(bytes),
            })?;
            gather.flush()
        })
    }

    fn finish(&self) -> Result<(), CheckpointError> {
        self.with(|out| out.flush())
    }
}

static ZEROS: [u8; 1 << 16] = [0; 1 << 16];

/// Maximum number of slices of a system call.
const MOST_SLICES: usize = 1024;

/// Gathers adjacent slices of a file, and writes them without copying.
struct Gather<'p, W> {
    slices: Vec<IoSlice<'p>>,
    /// Offset of the first slice.
    begin: u64,
    /// End of the last slice.
    end: u64,
    write: W,
}

impl<'p, W: FnMut(&[IoSlice<'_>], u64) -> io::Result<usize>> Gather<'p, W> {
    fn new(begin: u64, write: W) -> Self {
        Self { slices: Vec::new(), begin, end: begin, write }
    }

    fn push(&mut self, bytes: &'p [u8]) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        if self.slices.len() == MOST_SLICES {
            self.flush()?;
        }
        self.slices.push(IoSlice::new(bytes));
        self.end += bytes.len() as u64;
        Ok(())
    }

    fn zeros(&mut self, mut bytes: u64) -> io::Result<()> {
        while bytes > 0 {
            let step = bytes.min(ZEROS.len() as u64);
            self.push(&ZEROS[..step as usize])?;
            bytes -= step;
        }
        Ok(())
    }

    /// Skips some bytes.
    fn skip(&mut self, bytes: u64) -> io::Result<()> {
        self.flush()?;
        self.end += bytes;
        self.begin = self.end;
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut slices = self.slices.as_mut_slice();
        while !slices.is_empty() {
            match (self.write)(slices, self.begin) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(bytes) => {
                    self.begin += bytes as u64;
                    IoSlice::advance_slices(&mut slices, bytes);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.slices.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Write<'w> = &'w mut dyn FnMut(&[IoSlice<'_>], u64) -> io::Result<usize>;

    /// A file that accepts only a limited number of bytes per call.
    fn gathered(most: usize, gathering: impl Fn(&mut Gather<'_, Write<'_>>)) -> Vec<u8> {
        let mut file = Vec::new();
        let mut write = |slices: &[IoSlice<'_>], at: u64| {
            let bytes: Vec<u8> = slices.iter().flat_map(|slice| slice.to_vec()).take(most).collect();
            file.resize(file.len().max(at as usize + bytes.len()), b'.');
            file[at as usize..at as usize + bytes.len()].copy_from_slice(&bytes);
            Ok(bytes.len())
        };
        let mut gather: Gather<'_, Write<'_>> = Gather::new(2, &mut write);
        gathering(&mut gather);
        gather.flush().unwrap();
        file
    }

    #[test]
    fn gathered_slices_are_written_correctly_with_short_writes() {
        for most in [1, 2, 3, 5, 100] {
            let file = gathered(most, |gather| {
                gather.push(b"one").unwrap();
                gather.push(b"").unwrap();
                gather.push(b"two").unwrap();
                gather.skip(2).unwrap();
                gather.zeros(2).unwrap();
                gather.push(b"!").unwrap();
            });
            assert_eq!(file, b"..onetwo..\0\0!", "{most}");
        }
    }

    #[test]
    fn many_slices_and_long_zeros_are_written_completely() {
        let file = gathered(usize::MAX, |gather| {
            for _ in 0..MOST_SLICES + 7 {
                gather.push(b"ab").unwrap();
            }
            gather.zeros(3 * ZEROS.len() as u64 + 5).unwrap();
        });
        assert_eq!(file.len(), 2 + 2 * (MOST_SLICES + 7) + 3 * ZEROS.len() + 5);
        assert!(file[2..2 + 2 * (MOST_SLICES + 7)].chunks(2).all(|pair| pair == b"ab"));
        assert!(file[2 + 2 * (MOST_SLICES + 7)..].iter().all(|&byte| byte == 0));
    }

    #[test]
    fn pieces_end_at_the_ends_of_holes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        File::create(&path).unwrap();
        let target = FileTarget::open(path, &[(10, 5), (15, 5), (100, u64::MAX)], false).unwrap();
        let cases = [
            (0, 8, (8, false)),
            (0, 50, (10, false)),
            (10, 50, (5, true)),
            (17, 2, (2, true)),
            (20, 500, (80, false)),
            (200, 500, (500, true)),
        ];
        for (offset, bytes, stretch) in cases {
            assert_eq!(target.stretch(offset, bytes), stretch, "{offset}");
        }
    }
}
