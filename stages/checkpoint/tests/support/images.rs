//! Small images of processes, built from the format descriptions, and a check for arbitrary files: cutting
//! returns chunks that reproduce the file, or an error.
//!
//! Used by tests and by a fuzz target in `fuzz/`.
#![allow(dead_code, reason = "not every test needs all of it")]
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::io::{self, Read};
use std::sync::Arc;

use hopmap_checkpoint::chunk::{
    Batch, Chunk, ChunkHash, ChunkId, Earlier, EarlierChunk, LONGEST_CHUNK, PAGE, Position,
};
use hopmap_checkpoint::cut::{CutError, Format, Known, PageMap, cutter, page_maps};

/// Maximum number of bytes in a batch beyond the requested amount.
const BEYOND: usize = 2 * LONGEST_CHUNK + PAGE;

/// A file that was cut.
pub(crate) struct Cut {
    pub(crate) format: Format,
    pub(crate) chunks: Vec<Chunk>,
    pub(crate) bytes: Vec<u8>,
}

impl Cut {
    /// The stored version of the file.
    pub(crate) fn earlier(&self) -> Arc<Earlier> {
        let chunks = (0..).zip(&self.chunks).map(|(index, chunk)| EarlierChunk {
            id: (!chunk.zero).then(|| id(index)),
            length: chunk.length,
            hash: chunk.hash.kept(),
            place: chunk.place,
        });
        Arc::new(Earlier::new(chunks.collect()))
    }

    /// Number of bytes that are neither zeros nor equal to their base chunks.
    pub(crate) fn new_bytes(&self, earlier: &Earlier) -> usize {
        let is_new = |chunk: &&Chunk| !chunk.zero && !is_same(chunk, earlier);
        self.chunks.iter().filter(is_new).map(|chunk| chunk.length).sum()
    }
}

fn id(index: u32) -> ChunkId {
    ChunkId { pack: 1, block: index, chunk: 0 }
}

/// Whether a chunk equals its base chunk.
pub(crate) fn is_same(chunk: &Chunk, earlier: &Earlier) -> bool {
    let base_chunk = chunk.base_chunk.and_then(|base_chunk| earlier.get(base_chunk));
    base_chunk.is_some_and(|base_chunk| {
        base_chunk.id.is_some() && base_chunk.hash == chunk.hash.kept() && base_chunk.length == chunk.length
    })
}

/// A source with short and interrupted reads.
pub(crate) struct Slow<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) step: usize,
}

impl Read for Slow<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.step = self.step * 7 % 65_521 + 1;
        if self.step.is_multiple_of(5) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let length = self.step.min(buffer.len()).min(self.bytes.len());
        let (head, rest) = self.bytes.split_at(length);
        buffer[..length].copy_from_slice(head);
        self.bytes = rest;
        Ok(length)
    }
}

/// Cuts a file and checks the guarantees of a cutter.
pub(crate) fn cut(
    bytes: &[u8],
    earlier: Option<&Arc<Earlier>>,
    page_map: Option<PageMap>,
    amount: usize,
    source: Box<dyn Read + Send + '_>,
) -> Result<Cut, CutError> {
    let known =
        Known { length: Some(bytes.len() as u64), earlier: earlier.cloned(), page_map, ..Known::default() };
    let mut cutter = cutter(source, known)?;
    let mut all = Cut { format: cutter.format(), chunks: Vec::new(), bytes: Vec::new() };
    let mut batch = Batch::default();
    let mut goes_on = true;
    while goes_on {
        batch.clear();
        goes_on = cutter.cut(&mut batch, amount)?;
        check(&batch, amount, goes_on);
        for chunk in &batch.chunks {
            match chunk.zero {
                true => all.bytes.resize(all.bytes.len() + chunk.length, 0),
                false => all.bytes.extend_from_slice(batch.bytes_of(chunk)),
            }
            assert!(all.bytes.len() <= bytes.len());
            assert!(chunk.base_chunk.is_none_or(|base_chunk| earlier.is_some_and(|earlier| earlier.get(base_chunk).is_some())));
        }
        all.chunks.append(&mut batch.chunks);
    }
    let room = batch.bytes.capacity();
    assert!(room <= amount + 2 * BEYOND, "{room} bytes for {amount}");
    assert!(all.bytes == bytes, "{} bytes became {}", bytes.len(), all.bytes.len());
    Ok(all)
}

fn check(batch: &Batch, amount: usize, goes_on: bool) {
    let mut start = 0;
    let mut total = 0;
    for chunk in &batch.chunks {
        assert!(chunk.length > 0);
        total += chunk.length;
        if chunk.zero {
            assert_eq!(chunk.hash, ChunkHash::default());
            continue;
        }
        assert!(chunk.length <= LONGEST_CHUNK);
        assert_eq!(chunk.start, start);
        start += chunk.length;
        let bytes = batch.bytes_of(chunk);
        assert_eq!(chunk.hash, ChunkHash::of(bytes));
        assert!(bytes.iter().any(|&byte| byte != 0));
    }
    assert_eq!(batch.bytes.len(), start);
    assert!(total < amount + BEYOND, "{total} bytes for {amount}");
    assert!(total >= amount || !goes_on);
}

/// Cuts a file in one piece.
pub(crate) fn cut_all(bytes: &[u8], earlier: Option<&Arc<Earlier>>) -> Result<Cut, CutError> {
    cut(bytes, earlier, None, 16 << 20, Box::new(bytes))
}

/// Any bytes: the first two select whether they are read as a page map, or cut twice as a file, the second
/// time with the first result as the earlier version.
pub(crate) fn anything(data: &[u8]) {
    let Some((&[method, size], bytes)) = data.split_first_chunk() else { return };
    if method & 2 != 0 {
        return page_map(bytes);
    }
    let amount = 1 << (usize::from(size) % 20);
    let page_map = (method & 1 != 0).then(|| PageMap { runs: vec![(0x1000, u64::from(size)), (1 << 40, 3)] });
    let source = || Box::new(Slow { bytes, step: usize::from(method) });
    let first = cut(bytes, None, page_map.clone(), amount, source());
    match first {
        Ok(first) => {
            let earlier = first.earlier();
            let again = cut(bytes, Some(&earlier), page_map, 3 * amount, source()).unwrap();
            assert_eq!(again.new_bytes(&earlier), 0);
        }
        Err(error) => assert!((1..1000).contains(&error.to_string().len())),
    }
}

/// Reads a page map, which may also be valid for a file.
fn page_map(bytes: &[u8]) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("pagemap-1.img"), bytes).unwrap();
    for (name, map) in page_maps(folder.path()) {
        assert!(name.to_str().unwrap().starts_with("pages-"));
        let ends = map.runs.iter().map(|&(first, count)| first.checked_add(count.checked_mul(PAGE as u64)?));
        assert!(ends.map(Option::unwrap).max().is_none_or(|end| end > 0));
        let pages = noise(1, 3 * PAGE);
        let _ = cut(&pages, None, Some(map), PAGE, Box::new(pages.as_slice()));
    }
}

/// A memory area for a DMTCP image.
pub(crate) enum Area {
    /// A single area: address, data, and number of bytes that its file lacks.
    File(u64, Vec<u8>, u64),
    /// An area of parts: address, and data of each, or a number of zero pages.
    Parts(u64, Vec<Result<Vec<u8>, u64>>),
}

/// A DMTCP image.
pub(crate) fn dmtcp(areas: &[Area]) -> Vec<u8> {
    let mut header = b"DMTCP_CHECKPOINT_IMAGE_v4.0\n\0\0\0\0a process".to_vec();
    header.resize(PAGE, 0);
    let mut image = header.repeat(2);
    for area in areas {
        match area {
            Area::File(address, data, missing) => {
                let length = data.len() as u64;
                image.extend(record(*address, length + missing, length.cast_signed(), 0, b"/lib/a library"));
                image.extend(data);
            }
            Area::Parts(address, parts) => push_parts(&mut image, *address, parts),
        }
    }
    image.extend(record(0, u64::MAX, -1, 0, b"[vsyscall]"));
    image
}

fn push_parts(image: &mut Vec<u8>, address: u64, parts: &[Result<Vec<u8>, u64>]) {
    let size = |part: &Result<Vec<u8>, u64>| match part {
        Ok(data) => data.len() as u64,
        Err(pages) => pages * PAGE as u64,
    };
    image.extend(record(address, parts.iter().map(size).sum(), -1, 2, b"[heap]"));
    let mut begin = address;
    for part in parts {
        image.extend(record(begin, size(part), -1, 4 | u64::from(part.is_err()), b"[heap]"));
        image.extend(part.as_deref().unwrap_or_default());
        begin += size(part);
    }
}

/// A record of an area.
pub(crate) fn record(address: u64, size: u64, file: i64, properties: u64, name: &[u8]) -> Vec<u8> {
    let numbers =
        [address, address.wrapping_add(size), size, 0, 3, 34, 8, 1, 4711, file.cast_unsigned(), properties];
    let mut bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    bytes.extend(name);
    bytes.resize(88 + 1024, 0);
    // Leftovers of the stack.
    bytes.resize(PAGE, 0xaa);
    bytes
}

/// Pseudorandom bytes.
pub(crate) fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed;
    (0..length)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8
        })
        .collect()
}

/// A typical image.
pub(crate) fn sample() -> Vec<u8> {
    let mut heap = noise(1, 9 * PAGE);
    heap[3 * PAGE..5 * PAGE].fill(0);
    dmtcp(&[
        Area::File(0x40_0000, noise(2, 3 * PAGE), 0),
        Area::Parts(0x60_0000, vec![Ok(heap), Err(20), Ok(noise(3, PAGE))]),
        Area::File(0x7000_0000_0000, noise(4, 2 * PAGE + 1360), 4096 - 1360),
        Area::Parts(0x7fff_0000_0000, vec![Ok(noise(5, 2 * PAGE))]),
    ])
}

/// Positions of chunks, for comparison.
pub(crate) fn places(cut: &Cut) -> Vec<(Position, usize)> {
    cut.chunks.iter().map(|chunk| (chunk.place, chunk.length)).collect()
}
