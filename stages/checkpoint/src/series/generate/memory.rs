//! The memory of a rank.

use hopmap_random::{Draw, Pcg64};

use std::collections::BTreeMap;

use super::contents;
use super::draws::Stream;
use super::field;
use crate::chunk::PAGE;
use crate::{Change, GenerateParams};

/// Where the heap begins.
pub(super) const HEAP: u64 = 0x60_0000;

/// Where libraries begin; areas are below, as high as they have room, as Linux has them.
pub(super) const LIBRARIES: u64 = 0x7f00_0000_0000;

/// Most bytes of an area of a library.
const LONGEST_LIBRARY: usize = 2 << 20;

/// Areas beside the heap at first.
const AREAS: usize = 8;

/// An area that shows a library: the same in all ranks.
#[derive(Debug)]
pub(super) struct Library {
    /// Its first address.
    pub(super) start: u64,
    /// What is there, up to the end of the file, which may be in the last page.
    pub(super) bytes: Vec<u8>,
    /// Whether it is executed (else it is read).
    pub(super) executable: bool,
}

/// An area of whole pages.
#[derive(Debug)]
pub(super) struct Area {
    /// Its first address.
    pub(super) start: u64,
    /// What is there.
    pub(super) bytes: Vec<u8>,
}

impl Area {
    fn ends(&self) -> (u64, u64) {
        (self.start, self.start + self.bytes.len() as u64)
    }
}

/// The memory of a rank without its libraries.
#[derive(Debug)]
pub(super) struct Memory {
    /// Begins at [`HEAP`]; the last page may not be full.
    pub(super) heap: Vec<u8>,
    /// The areas beside the heap.
    pub(super) areas: Vec<Area>,
    /// The fields, by the places of their changes.
    pub(super) fields: BTreeMap<u32, Area>,
    /// Pages of heap and areas at first.
    pub(super) first_pages: usize,
}

impl Memory {
    /// The memory at the first checkpoint.
    pub(super) fn new(params: &GenerateParams, rank: u32) -> Self {
        let pages = (params.bytes / PAGE as u64) as usize;
        let mut memory =
            Self { heap: Vec::new(), areas: Vec::new(), fields: BTreeMap::new(), first_pages: 0 };
        let mut left = pages.saturating_sub(share_of(pages, params.shared));
        for (index, change) in (0..).zip(&params.changes) {
            if let Change::Drift { share, width, .. } = *change {
                let mut draws = Stream { rank, checkpoint: 0, change: index + 1 }.draws(params.seed);
                let length = left.min(share_of(pages, share));
                left -= length;
                let bytes = field::first(length * PAGE, width, &mut draws);
                let start = memory.place(bytes.len());
                memory.fields.insert(index, Area { start, bytes });
            }
        }
        let mut draws = Stream { rank, checkpoint: 0, change: 0 }.draws(params.seed);
        let beside = left / 2 / AREAS;
        memory.first_pages = left;
        memory.grow_heap(left - beside * AREAS, &mut draws);
        for _ in 0..AREAS {
            memory.add_area(beside, &mut draws);
        }
        memory
    }

    /// Adds pages to the heap.
    pub(super) fn grow_heap(&mut self, pages: usize, draws: &mut Pcg64) {
        let old = self.heap.len();
        self.heap.resize(old + pages * PAGE, 0);
        contents::words(&mut self.heap[old..], draws);
    }

    /// Adds an area.
    pub(super) fn add_area(&mut self, pages: usize, draws: &mut Pcg64) {
        if pages > 0 {
            let mut bytes = vec![0; pages * PAGE];
            contents::words(&mut bytes, draws);
            let start = self.place(bytes.len());
            self.areas.push(Area { start, bytes });
        }
    }

    /// Gives an area another address.
    pub(super) fn move_area(&mut self, index: usize) {
        if let Some(length) = self.areas.get(index).map(|area| area.bytes.len()) {
            self.areas[index].start = self.place(length);
        }
    }

    /// The highest address where an area has room, with a page left out at both ends, so that areas beside each other stay two.
    fn place(&self, length: usize) -> u64 {
        let (length, page) = (length as u64, PAGE as u64);
        let mut taken: Vec<_> = self.areas.iter().chain(self.fields.values()).map(Area::ends).collect();
        taken.sort_unstable();
        let mut above = LIBRARIES;
        for (start, end) in taken.into_iter().rev() {
            if above - end >= length + 2 * page {
                break;
            }
            above = start;
        }
        above - length - page
    }

    /// All whole pages of the heap and of the areas.
    pub(super) fn pages_mut(&mut self) -> Vec<&mut [u8; PAGE]> {
        let areas = self.areas.iter_mut().map(|area| &mut area.bytes);
        std::iter::once(&mut self.heap).chain(areas).flat_map(|bytes| bytes.as_chunks_mut().0).collect()
    }
}

/// A share of so many pages, to the nearest.
pub(super) fn share_of(pages: usize, share: f64) -> usize {
    (pages as f64 * share).round() as usize
}

/// The libraries, the same in all ranks. Code and what it reads come in turn; of the latter the file ends in the last page.
pub(super) fn libraries(params: &GenerateParams) -> Vec<Library> {
    let mut left = share_of((params.bytes / PAGE as u64) as usize, params.shared) * PAGE;
    let mut libraries = Vec::new();
    let mut start = LIBRARIES;
    while left > 0 {
        let change = libraries.len() as u32;
        let mut draws = Stream { rank: u32::MAX, checkpoint: 0, change }.draws(params.seed);
        let length = left.min(LONGEST_LIBRARY);
        let executable = libraries.len().is_multiple_of(2);
        let behind = if executable { 0 } else { 1 + draws.below(PAGE - 1) };
        libraries.push(Library { start, bytes: contents::code(length - behind, &mut draws), executable });
        start += (length + PAGE) as u64;
        left -= length;
    }
    libraries
}
