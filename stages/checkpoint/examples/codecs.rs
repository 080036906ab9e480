//! Compression ratios and speed of the codecs for a series of DMTCP images: `codecs FOLDER [CHECKPOINTS
//! [DEPTH [quick]]]`.
//!
//! FOLDER has a folder for each checkpoint. A store is simulated in memory: pages of zeros are dropped, known
//! pages are referenced, the others become blocks; every checkpoint is then reassembled and compared. Times
//! are of one thread.

#![allow(clippy::print_stdout, reason = "prints measurements")]

use std::collections::HashMap;
use std::error::Error;
use std::path::{Path, PathBuf};

use hopmap_checkpoint::chunk::{ChunkHash, PAGE};
use hopmap_checkpoint::codec::{self, BASED_BLOCK, BLOCK, Block, Chooser, Codec, Outcome};
use rustix::time::{ClockId, clock_gettime};

/// Overhead of a store per chunk, and per block, in bytes.
const OF_CHUNK: usize = 12;
const OF_BLOCK: usize = 16;
/// Size of the cache of decoded blocks, in bytes.
const BLOCK_CACHE_BYTES: usize = 32 << 20;
type Place = (u8, u64);
type Id = (u32, u32);

/// A chunk of an image.
struct Piece {
    place: Place,
    start: usize,
    length: usize,
}

struct Stored {
    codec: Codec,
    payload: Vec<u8>,
    lengths: Vec<u32>,
    bases: Vec<Option<Id>>,
    depth: u8,
}

#[derive(Default)]
struct Pending {
    bytes: Vec<u8>,
    lengths: Vec<u32>,
    bases: Vec<Option<Id>>,
    codec: Option<Codec>,
    hashes: Vec<ChunkHash>,
}

#[derive(Default)]
struct Times {
    scan: f64,
    bases: f64,
    encode: f64,
}

#[derive(Default)]
struct Store {
    blocks: Vec<Stored>,
    known: HashMap<ChunkHash, Id>,
    earlier: HashMap<Place, Id>,
    chooser: Chooser,
    kept: HashMap<u32, Vec<u8>>,
    kept_bytes: usize,
    times: Times,
    /// Decoding time in seconds.
    decoding: f64,
    quick: bool,
    /// Longest chain.
    deepest: u8,
    won: HashMap<Codec, (usize, usize, usize)>,
}

/// CPU time of this thread in seconds.
fn now() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// The areas of an image, page by page; headers are separate pages.
fn pieces(bytes: &[u8]) -> Vec<Piece> {
    let number = |at: usize| {
        bytes.get(at..at + 8).map_or(0, |bytes| u64::from_le_bytes(bytes.try_into().unwrap_or_default()))
    };
    let mut pieces = vec![];
    let mut add = |space: u8, address: u64, start: usize, length: usize| {
        for offset in (0..length).step_by(PAGE) {
            let place = (space, address + offset as u64);
            pieces.push(Piece { place, start: start + offset, length: PAGE.min(length - offset) });
        }
    };
    add(0, 0, 0, 2 * PAGE);
    let mut at = 2 * PAGE;
    while at + PAGE <= bytes.len() {
        let (address, size, mapped, properties) =
            (number(at), number(at + 16), number(at + 72), number(at + 80));
        add(2, address, at, PAGE);
        at += PAGE;
        if address == 0 && size == u64::MAX {
            break;
        }
        if properties.trailing_zeros() >= 2 {
            let size = if mapped > 0 { size.min(mapped) } else { size };
            let size = (size as usize).min(bytes.len() - at);
            add(1, address, at, size);
            at += size;
        }
    }
    add(0, at as u64, at, bytes.len() - at);
    pieces
}

impl Store {
    fn add(&mut self, bytes: &[u8]) -> Result<Vec<Option<Id>>, Box<dyn Error>> {
        let start = now();
        let other = self.times.bases + self.times.encode;
        let pieces = pieces(bytes);
        let mut ids = vec![None; pieces.len()];
        let (mut fresh, mut based) = (Pending::default(), Pending::default());
        let mut hashes = HashMap::new();
        self.chooser = if self.quick { Chooser::quick() } else { Chooser::default() };
        for (at, piece) in pieces.iter().enumerate() {
            let chunk = &bytes[piece.start..piece.start + piece.length];
            if chunk.iter().all(|&byte| byte == 0) {
                continue;
            }
            let hash = ChunkHash::of(chunk);
            hashes.insert(at, hash);
            if self.known.contains_key(&hash) {
                continue;
            }
            self.known.insert(hash, (u32::MAX, 0));
            let base_chunk = self.earlier.get(&piece.place).copied();
            let base = base_chunk
                .filter(|_| self.chooser.wants_bases())
                .and_then(|base_chunk| self.base(base_chunk));
            let (pending, most) =
                if base.is_some() { (&mut based, BASED_BLOCK) } else { (&mut fresh, BLOCK) };
            pending.codec =
                pending.codec.or(base_chunk.map(|base_chunk| self.blocks[base_chunk.0 as usize].codec));
            pending.bytes.extend_from_slice(chunk);
            pending.lengths.push(chunk.len() as u32);
            pending.bases.push(base);
            pending.hashes.push(hash);
            if pending.bytes.len() >= most {
                let full = std::mem::take(pending);
                self.store(full)?;
            }
        }
        self.store(fresh)?;
        self.store(based)?;
        for (at, id) in ids.iter_mut().enumerate() {
            *id = hashes.get(&at).and_then(|hash| self.known.get(hash)).copied();
        }
        self.earlier =
            pieces.iter().zip(&ids).filter_map(|(piece, id)| Some((piece.place, (*id)?))).collect();
        self.times.scan += now() - start - (self.times.bases + self.times.encode - other);
        Ok(ids)
    }

    fn base(&self, base_chunk: Id) -> Option<Id> {
        let block = &self.blocks[base_chunk.0 as usize];
        match block.depth < self.deepest {
            true => Some(base_chunk),
            false => block.bases.get(base_chunk.1 as usize).copied().flatten(),
        }
    }

    fn store(&mut self, pending: Pending) -> Result<(), Box<dyn Error>> {
        if pending.lengths.is_empty() {
            return Ok(());
        }
        let start = now();
        let mut bases = vec![];
        for base in &pending.bases {
            bases.push(base.map(|base| self.chunk(base)).transpose()?);
        }
        let had_bases = now();
        let block_bases: Vec<Option<&[u8]>> = bases.iter().map(|base| base.as_deref()).collect();
        let block = Block { bytes: &pending.bytes, lengths: &pending.lengths, bases: &block_bases };
        let hint = self.chooser.hint(pending.codec, 0);
        let encoded = codec::encode(&block, hint)?;
        self.times.encode += now() - had_bases;
        self.times.bases += had_bases - start;
        self.chooser.learn(&Outcome {
            codec: encoded.codec,
            explored: bases.iter().any(Option::is_some) && hint.explores(),
            uses_bases: encoded.uses_bases,
            bytes: pending.bytes.len(),
            payload: encoded.payload.len(),
        });
        let won = self.won.entry(encoded.codec).or_default();
        *won = (won.0 + 1, won.1 + pending.bytes.len(), won.2 + encoded.payload.len());
        let bases = if encoded.uses_bases { pending.bases } else { vec![] };
        let depth = bases.iter().flatten().map(|base| self.blocks[base.0 as usize].depth + 1).max();
        for (at, hash) in pending.hashes.iter().enumerate() {
            self.known.insert(*hash, (self.blocks.len() as u32, at as u32));
        }
        let Pending { lengths, .. } = pending;
        let depth = depth.unwrap_or(0);
        self.blocks.push(Stored { codec: encoded.codec, payload: encoded.payload, lengths, bases, depth });
        Ok(())
    }

    fn chunk(&mut self, id: Id) -> Result<Vec<u8>, Box<dyn Error>> {
        Ok(self.bytes_of(id)?.to_vec())
    }

    fn bytes_of(&mut self, id: Id) -> Result<&[u8], Box<dyn Error>> {
        self.decode(id.0)?;
        let lengths = &self.blocks[id.0 as usize].lengths;
        let start: usize = lengths[..id.1 as usize].iter().map(|&length| length as usize).sum();
        Ok(&self.kept[&id.0][start..start + lengths[id.1 as usize] as usize])
    }

    fn decode(&mut self, number: u32) -> Result<(), Box<dyn Error>> {
        if self.kept.contains_key(&number) {
            return Ok(());
        }
        let mut bases = vec![];
        for base in self.blocks[number as usize].bases.clone() {
            bases.push(base.map(|base| self.chunk(base)).transpose()?);
        }
        let bases: Vec<Option<&[u8]>> = bases.iter().map(|base| base.as_deref()).collect();
        let block = &self.blocks[number as usize];
        let mut bytes = vec![];
        let start = now();
        codec::decode(block.codec, &block.payload, &block.lengths, &bases, &mut bytes)?;
        self.decoding += now() - start;
        if self.kept_bytes > BLOCK_CACHE_BYTES {
            self.kept.clear();
            self.kept_bytes = 0;
        }
        self.kept_bytes += bytes.len();
        self.kept.insert(number, bytes);
        Ok(())
    }

    fn forget(&mut self) {
        self.kept.clear();
        self.kept_bytes = 0;
    }

    fn bytes(&self) -> usize {
        self.blocks.iter().map(|block| block.payload.len() + OF_CHUNK * block.lengths.len() + OF_BLOCK).sum()
    }
}

fn images(folder: &Path, most: usize) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let list = |folder: &Path| -> std::io::Result<Vec<PathBuf>> {
        let mut paths: Vec<_> =
            std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>()?;
        paths.sort();
        Ok(paths)
    };
    let mut images = vec![];
    for folder in list(folder)?.into_iter().filter(|path| path.is_dir()).take(most) {
        images.extend(
            list(&folder)?.into_iter().find(|path| path.extension().is_some_and(|end| end == "dmtcp")),
        );
    }
    Ok(images)
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let folder = arguments.get(1).ok_or("which folder?")?;
    let most = arguments.get(2).map_or(Ok(usize::MAX), |most| most.parse())?;
    let deepest = arguments.get(3).map_or(Ok(2), |deepest| deepest.parse())?;
    let quick = arguments.get(4).is_some_and(|effort| effort == "quick");
    let mut store = Store { quick, deepest, ..Store::default() };
    let (mut read, mut before) = (0, 0);
    let mut checkpoints = vec![];
    for path in images(Path::new(folder), most)? {
        let bytes = std::fs::read(&path)?;
        read += bytes.len();
        let ids = store.add(&bytes)?;
        print!("{:.2} ", (store.bytes() - before) as f64 / 1e6);
        before = store.bytes();
        checkpoints.push((path, ids));
    }
    let Times { scan, bases, encode } = store.times;
    let rate = |bytes: usize, time: f64| bytes as f64 / 1e6 / time;
    println!(
        "\n{folder}: {:.2} MB of {:.1}, {} blocks",
        store.bytes() as f64 / 1e6,
        read as f64 / 1e6,
        store.blocks.len()
    );
    println!(
        "add {:.0} MB/s: scan {scan:.2} s, bases {bases:.2} s, encode {encode:.2} s",
        rate(read, scan + bases + encode)
    );
    let mut won: Vec<_> = store.won.drain().collect();
    won.sort();
    for (codec, (blocks, bytes, payload)) in won {
        println!("  {codec:?}: {blocks} blocks, {:.2} MB of {:.2}", payload as f64 / 1e6, bytes as f64 / 1e6);
    }
    print!("restore, and decoding alone:");
    for (path, ids) in checkpoints {
        let bytes = std::fs::read(&path)?;
        store.forget();
        let pieces = pieces(&bytes);
        let mut restored = vec![0; bytes.len()];
        let (start, before) = (now(), store.decoding);
        for (piece, id) in pieces.iter().zip(ids) {
            if let Some(id) = id {
                restored[piece.start..piece.start + piece.length].copy_from_slice(store.bytes_of(id)?);
            }
        }
        let decoding = store.decoding - before;
        print!(" {:.0} ({:.0})", rate(bytes.len(), now() - start), rate(bytes.len(), decoding));
        if restored != bytes {
            return Err("a restored checkpoint differs".into());
        }
    }
    println!(" MB/s");
    Ok(())
}
