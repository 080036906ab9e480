//! Reads each file once, as a stream, and hashes it in blocks of several lengths; DMTCP images and CRIU pages
//! are compared at their memory addresses.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Cursor, ErrorKind, Read};
use std::path::{Path, PathBuf};

use hopmap_durable::DurableError;
use hopmap_model::open_input;
use rayon::prelude::*;

use super::signature::{FileSignature, Signature};
use crate::chunk::PAGE;
use crate::cut::{Areas, CutError, HEAD, Next, PageMap, is_image, page_maps};
use crate::error::DeltaError;
use crate::params::Align;
use crate::series::{Checkpoint, CheckpointFile};

/// Size of a read: a multiple of every block length.
const WINDOW: usize = 256 * 1024;

/// Signatures of a checkpoint, one for every block length, with a seed for hashes. Apart from them, each
/// thread keeps one window in memory.
pub(crate) fn signatures(
    checkpoint: &Checkpoint,
    blocks: &[u32],
    align: Align,
    seed: u64,
) -> Result<Vec<Signature>, DeltaError> {
    let maps = if align == Align::Address { page_maps_of(checkpoint) } else { BTreeMap::new() };
    let read = |file: &CheckpointFile| file_signatures(&file.path, blocks, align, maps.get(&file.path), seed);
    let files: Vec<Vec<FileSignature>> = checkpoint.files.par_iter().map(read).collect::<Result<_, _>>()?;
    let mut signatures = vec![Signature::default(); blocks.len()];
    for (file, found) in checkpoint.files.iter().zip(files) {
        for (signature, file_signature) in signatures.iter_mut().zip(found) {
            signature.files.insert(file.place.clone(), file_signature);
        }
    }
    Ok(signatures)
}

/// Memory addresses of the pages in CRIU files.
fn page_maps_of(checkpoint: &Checkpoint) -> BTreeMap<PathBuf, PageMap> {
    let folders: BTreeSet<&Path> = checkpoint.files.iter().filter_map(|file| file.path.parent()).collect();
    let mut maps = BTreeMap::new();
    for folder in folders {
        maps.extend(page_maps(folder).into_iter().map(|(name, map)| (folder.join(name), map)));
    }
    maps
}

fn file_signatures(
    path: &Path,
    blocks: &[u32],
    align: Align,
    map: Option<&PageMap>,
    seed: u64,
) -> Result<Vec<FileSignature>, DeltaError> {
    let mut file = open_input(path).map_err(DurableError::io("read", path))?;
    let unreadable = |source| DeltaError::File { path: path.into(), source };
    let mut head = Vec::new();
    if align == Align::Address {
        let read = (&mut file).take(HEAD as u64).read_to_end(&mut head);
        read.map_err(|error| unreadable(CutError::Read(error)))?;
    }
    let is_image = is_image(&head);
    let mut stream = Stream::new(Cursor::new(head).chain(file), blocks, seed);
    let read = match map {
        _ if is_image => read_image(&mut stream),
        Some(map) => read_pages(&mut stream, map),
        None => stream.run(0, None).map(drop),
    };
    read.map_err(unreadable)?;
    Ok(stream.finish())
}

/// A file that is being read, and its signatures so far.
pub(super) struct Stream<R> {
    source: R,
    /// Number of bytes read.
    offset: u64,
    window: Vec<u8>,
    signatures: Vec<FileSignature>,
}

impl<R: Read> Stream<R> {
    pub(super) fn new(source: R, blocks: &[u32], seed: u64) -> Self {
        let signatures = blocks.iter().map(|&block| FileSignature::seeded(u64::from(block), seed)).collect();
        Self { source, offset: 0, window: vec![0; WINDOW], signatures }
    }

    /// File offset of the next byte.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// Reads a run: some bytes, or the rest of the file, that begin at an address. Returns false if the file
    /// ends before.
    pub(super) fn run(&mut self, address: u64, length: Option<u64>) -> Result<bool, CutError> {
        self.signatures.iter_mut().for_each(|signature| signature.begin(address));
        let mut read = 0;
        while length != Some(read) {
            // Windows end at multiples of their length, so blocks never cross their ends.
            let room = WINDOW as u64 - (address + read) % WINDOW as u64;
            let wanted = length.map_or(room, |length| room.min(length - read)) as usize;
            let count = self.fill(wanted)?;
            let bytes = self.window.get(..count).unwrap_or_default();
            self.signatures.iter_mut().for_each(|signature| signature.add(bytes));
            read += count as u64;
            if count < wanted {
                return Ok(length.is_none());
            }
        }
        Ok(true)
    }

    /// The next bytes, which belong to no block and are always stored; fewer at the end of the file.
    pub(super) fn record(&mut self, length: usize) -> Result<&[u8], CutError> {
        let count = self.fill(length.min(WINDOW))?;
        self.signatures.iter_mut().for_each(|signature| signature.add_records(count as u64));
        Ok(self.window.get(..count).unwrap_or_default())
    }

    /// Fills the window up to some length, or to the end of the file.
    fn fill(&mut self, wanted: usize) -> Result<usize, CutError> {
        let mut count = 0;
        while let Some(room) = self.window.get_mut(count..wanted).filter(|room| !room.is_empty()) {
            match self.source.read(room) {
                Ok(0) => break,
                Ok(read) => count += read,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(CutError::Read(error)),
            }
        }
        self.offset += count as u64;
        Ok(count)
    }

    pub(super) fn finish(mut self) -> Vec<FileSignature> {
        self.signatures.iter_mut().for_each(FileSignature::finish);
        self.signatures
    }
}

/// Reads a DMTCP image to its end: headers and records are always stored, data of areas are compared by
/// address.
pub(super) fn read_image<R: Read>(stream: &mut Stream<R>) -> Result<(), CutError> {
    for _ in 0..2 {
        let offset = stream.offset();
        if stream.record(PAGE)?.len() < PAGE {
            return Err(CutError::incomplete(offset, "its header is truncated"));
        }
    }
    let mut areas = Areas::default();
    loop {
        match next(stream, &mut areas)? {
            Next::Record => {}
            Next::Data { address, left } => {
                if !stream.run(address, Some(left))? {
                    return Err(CutError::incomplete(stream.offset(), "an area is truncated"));
                }
            }
            Next::Nothing => break,
        }
    }
    rest(stream)
}

/// Reads CRIU pages to the end; the page map has their addresses.
pub(super) fn read_pages<R: Read>(stream: &mut Stream<R>, map: &PageMap) -> Result<(), CutError> {
    for &(address, pages) in &map.runs {
        if !stream.run(address, Some(pages.saturating_mul(PAGE as u64)))? {
            return Err(CutError::incomplete(stream.offset(), "its page map has more pages"));
        }
    }
    rest(stream)
}

/// Bytes after the pages. None are expected; if there are any, they are stored.
fn rest<R: Read>(stream: &mut Stream<R>) -> Result<(), CutError> {
    while !stream.record(PAGE)?.is_empty() {}
    Ok(())
}

/// Reads the next record and returns the item that follows.
fn next<R: Read>(stream: &mut Stream<R>, areas: &mut Areas) -> Result<Next, CutError> {
    let offset = stream.offset();
    let record = stream.record(PAGE)?;
    let record =
        record.first_chunk().ok_or_else(|| CutError::incomplete(offset, "the last record is missing"))?;
    Ok(areas.read(record).map_err(|reason| CutError::damaged(offset, reason))?.next)
}

#[cfg(test)]
mod tests {
    use super::super::signature::Difference;
    use super::*;
    use crate::params::Matching;

    fn record(address: u64, bytes: u64, file_bytes: u64, properties: u64) -> Vec<u8> {
        let mut record = vec![7; PAGE];
        for (at, value) in
            [(0, address), (8, address.wrapping_add(bytes)), (16, bytes), (72, file_bytes), (80, properties)]
        {
            record[at..at + 8].copy_from_slice(&value.to_le_bytes());
        }
        // The length of the file in the area, if the area maps one.
        record[88] = b'/';
        record
    }

    /// Areas: address, contents, size of the mapped file or 0, properties.
    fn image(areas: &[(u64, &[u8], u64, u64)]) -> Vec<u8> {
        let mut image = vec![0; 2 * PAGE];
        image[..28].copy_from_slice(b"DMTCP_CHECKPOINT_IMAGE_v4.0\n");
        for (address, bytes, file_bytes, properties) in areas {
            image.extend(record(*address, bytes.len() as u64, *file_bytes, *properties));
            let written = if *file_bytes > 0 { *file_bytes as usize } else { bytes.len() };
            if *properties == 0 {
                image.extend(&bytes[..written.min(bytes.len())]);
            }
        }
        image.extend(record(0, u64::MAX, 0, 0));
        image
    }

    fn signature(image: &[u8]) -> Result<Signature, CutError> {
        let mut stream = Stream::new(image, &[4096], 0);
        read_image(&mut stream)?;
        let file = stream.finish().remove(0);
        Ok(Signature { files: BTreeMap::from([("image".into(), file)]) })
    }

    #[test]
    fn pages_are_compared_at_their_addresses() {
        let (ones, twos) = (vec![1; 3 * 4096], vec![2; 2 * 4096]);
        let base = image(&[(0x10000, &ones, 0, 0), (0x40000, &twos, 5000, 0)]);
        let base = signature(&base).unwrap();
        assert_eq!(base.blocks(), 5);
        // A new area shifts the rest of the file; zeros and areas with parts have no bytes.
        let mut changed = ones.clone();
        changed[4096] = 9;
        let areas: [(u64, &[u8], u64, u64); 4] = [
            (0x10000, &changed, 0, 0),
            (0x20000, &twos, 0, 1),
            (0x30000, &twos, 0, 0),
            (0x40000, &twos, 5000, 0),
        ];
        let found = signature(&image(&areas)).unwrap().difference(&base, Matching::Address);
        assert_eq!(found, Difference { blocks: 3, bytes: 3 * 4096, records: 7 * 4096 });
    }

    #[test]
    fn criu_pages_are_compared_at_their_addresses() {
        let signature = |runs: &[(u64, u64)], bytes: &[u8]| {
            let mut stream = Stream::new(bytes, &[4096], 0);
            read_pages(&mut stream, &PageMap { runs: runs.to_vec() })?;
            let file = stream.finish().remove(0);
            Ok::<_, CutError>(Signature { files: BTreeMap::from([("pages-1.img".into(), file)]) })
        };
        let page = |value: u8| vec![value; PAGE];
        let bytes = [page(1), page(2), page(3)].concat();
        let base = signature(&[(0x10000, 2), (0x40000, 1)], &bytes).unwrap();
        // A page before all others shifts them in the file.
        let moved = [page(9), bytes.clone()].concat();
        let runs = [(0x8000, 1), (0x10000, 2), (0x40000, 1)];
        let found = signature(&runs, &moved).unwrap().difference(&base, Matching::Address);
        assert_eq!(found, Difference { blocks: 1, bytes: 4096, records: 0 });
        assert!(matches!(signature(&runs, &bytes), Err(CutError::Incomplete { offset: 12288, .. })));
        // Unexpected bytes are stored.
        let longer = signature(&[(0x10000, 2)], &bytes).unwrap().difference(&base, Matching::Address);
        assert_eq!(longer, Difference { blocks: 0, bytes: 0, records: 4096 });
    }

    #[test]
    fn truncated_images_are_reported() {
        let complete = image(&[(0x10000, &[1; 8192], 0, 0)]);
        for length in (27..complete.len()).step_by(97).chain([complete.len() - 1]) {
            assert!(matches!(signature(&complete[..length]), Err(CutError::Incomplete { .. })), "{length}");
        }
        assert!(signature(&complete).is_ok());
    }

    #[test]
    fn inconsistent_areas_are_reported() {
        let mut wrong = image(&[(0x10000, &[1; 4096], 0, 0)]);
        wrong[2 * PAGE + 8] ^= 1;
        assert!(matches!(signature(&wrong), Err(CutError::Damaged { offset: 8192, .. })));
        // An area of 2⁶⁰ bytes takes no more memory than any other.
        let mut huge = image(&[]);
        huge.truncate(2 * PAGE);
        huge.extend(record(0x1000, 1 << 60, 0, 0));
        huge.extend([1; 5000]);
        assert!(matches!(signature(&huge), Err(CutError::Incomplete { .. })));
    }
}
