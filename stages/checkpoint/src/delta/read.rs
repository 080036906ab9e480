//! Files read once, as a stream, and hashed in blocks of several lengths.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Cursor, ErrorKind, Read};
use std::path::{Path, PathBuf};

use hopmap_durable::DurableError;
use hopmap_model::open_input;
use rayon::prelude::*;

use super::image;
use super::signature::{FileSignature, Signature};
use super::{Align, DeltaError};
use crate::cut::{CutError, HEAD, PageMap, is_image, page_maps};
use crate::series::{Checkpoint, CheckpointFile};

/// Bytes that are read at once: a multiple of every block length.
const WINDOW: usize = 256 * 1024;

/// Signatures of a checkpoint, one for every block length, by a seed of hashes. What is in memory beside them is a window for every thread.
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

/// Where the pages of files of CRIU are in memory.
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
        _ if is_image => image::read(&mut stream),
        Some(map) => image::read_pages(&mut stream, map),
        None => stream.run(0, None).map(drop),
    };
    read.map_err(unreadable)?;
    Ok(stream.finish())
}

/// A file that is being read, and its signatures so far.
pub(super) struct Stream<R> {
    source: R,
    /// Bytes read.
    offset: u64,
    window: Vec<u8>,
    signatures: Vec<FileSignature>,
}

impl<R: Read> Stream<R> {
    pub(super) fn new(source: R, blocks: &[u32], seed: u64) -> Self {
        let signatures = blocks.iter().map(|&block| FileSignature::seeded(u64::from(block), seed)).collect();
        Self { source, offset: 0, window: vec![0; WINDOW], signatures }
    }

    /// Where in the file the next byte is.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// Reads a run: so many bytes that belong to an address and behind it, or all that are left. False if the file ends before.
    pub(super) fn run(&mut self, address: u64, length: Option<u64>) -> Result<bool, CutError> {
        self.signatures.iter_mut().for_each(|signature| signature.begin(address));
        let mut read = 0;
        while length != Some(read) {
            // Windows end at multiples of their length, so that blocks never reach over their ends.
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

    /// The next bytes, which belong to no block and are stored always; fewer at the end of the file.
    pub(super) fn record(&mut self, length: usize) -> Result<&[u8], CutError> {
        let count = self.fill(length.min(WINDOW))?;
        self.signatures.iter_mut().for_each(|signature| signature.add_records(count as u64));
        Ok(self.window.get(..count).unwrap_or_default())
    }

    /// Reads into the window until it has so many bytes, or the file ends.
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
