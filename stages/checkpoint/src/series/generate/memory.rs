//! The memory of a rank: its initial contents, and its changes between two checkpoints.
//!
//! Heaps have words typical of programs, libraries have code, and fields have floating-point numbers that
//! change smoothly. Random numbers are equal on all machines.

use std::collections::BTreeMap;
use std::f64::consts::TAU;

use hopmap_model::seed_stream;
use hopmap_random::{Draw, Pcg64, Rng, SeedableRng};

use crate::chunk::PAGE;
use crate::params::{Change, GenerateParams, Width};

/// Start address of the heap.
pub(super) const HEAP: u64 = 0x60_0000;

/// Start address of libraries; areas are placed below, top down, as on Linux.
pub(super) const LIBRARIES: u64 = 0x7f00_0000_0000;

/// Maximum size of an area of a library.
const LONGEST_LIBRARY: usize = 2 << 20;

/// Initial number of areas next to the heap.
const AREAS: usize = 8;

/// An area that maps a library: the same in all ranks.
#[derive(Debug)]
pub(super) struct Library {
    /// Its start address.
    pub(super) start: u64,
    /// Its contents, up to the end of the file, which may be inside the last page.
    pub(super) bytes: Vec<u8>,
    /// Whether it is executable (otherwise read-only).
    pub(super) executable: bool,
}

/// A page-aligned area.
#[derive(Debug)]
pub(super) struct Area {
    /// Its start address.
    pub(super) start: u64,
    /// Its contents.
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
    /// Starts at [`HEAP`]; the last page may be incomplete.
    pub(super) heap: Vec<u8>,
    /// The areas next to the heap.
    pub(super) areas: Vec<Area>,
    /// The fields, by the index of their change.
    pub(super) fields: BTreeMap<u32, Area>,
    /// Initial number of pages of heap and areas.
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
                let bytes = first_field(length * PAGE, width, &mut draws);
                let start = memory.place(bytes.len());
                memory.fields.insert(index, Area { start, bytes });
            }
        }
        let mut draws = Stream { rank, checkpoint: 0, change: 0 }.draws(params.seed);
        let per_area = left / 2 / AREAS;
        memory.first_pages = left;
        memory.grow_heap(left - per_area * AREAS, &mut draws);
        for _ in 0..AREAS {
            memory.add_area(per_area, &mut draws);
        }
        memory
    }

    /// Appends pages to the heap.
    pub(super) fn grow_heap(&mut self, pages: usize, draws: &mut Pcg64) {
        let old = self.heap.len();
        self.heap.resize(old + pages * PAGE, 0);
        words(&mut self.heap[old..], draws);
    }

    /// Adds an area.
    pub(super) fn add_area(&mut self, pages: usize, draws: &mut Pcg64) {
        if pages > 0 {
            let mut bytes = vec![0; pages * PAGE];
            words(&mut bytes, draws);
            let start = self.place(bytes.len());
            self.areas.push(Area { start, bytes });
        }
    }

    /// Moves an area to another address.
    pub(super) fn move_area(&mut self, index: usize) {
        if let Some(length) = self.areas.get(index).map(|area| area.bytes.len()) {
            self.areas[index].start = self.place(length);
        }
    }

    /// The highest free address for an area, with an unmapped page on both sides so that neighbours stay
    /// separate.
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

    /// All complete pages of the heap and of the areas.
    pub(super) fn pages_mut(&mut self) -> Vec<&mut [u8; PAGE]> {
        let areas = self.areas.iter_mut().map(|area| &mut area.bytes);
        std::iter::once(&mut self.heap).chain(areas).flat_map(|bytes| bytes.as_chunks_mut().0).collect()
    }
}

/// A fraction of a number of pages, rounded.
fn share_of(pages: usize, share: f64) -> usize {
    (pages as f64 * share).round() as usize
}

/// The libraries, the same in all ranks. Executable and read-only areas alternate; the file of the latter
/// ends in the last page.
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
        libraries.push(Library { start, bytes: code(length - behind, &mut draws), executable });
        start += (length + PAGE) as u64;
        left -= length;
    }
    libraries
}

/// Identifies a stream of random numbers. Adding a change does not affect the streams of others.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stream {
    /// The rank; the largest number for libraries.
    pub(super) rank: u32,
    /// The checkpoint; 0 for the initial contents.
    pub(super) checkpoint: u32,
    /// Index of the change, or of an area.
    pub(super) change: u32,
}

impl Stream {
    /// The random numbers.
    pub(super) fn draws(self, seed: u64) -> Pcg64 {
        // Ranks and checkpoints have four digits, which fit 14 bits; changes use the rest.
        let island = u64::from(self.rank) << 32 | u64::from(self.checkpoint & 0xffff) << 16;
        Pcg64::from_seed(seed_stream("checkpoint/generate", seed, island ^ u64::from(self.change)))
    }
}

/// Size of a word.
const WORD: usize = 8;

/// Target range of pointers in the heap.
const POINTED_AT: u64 = 0x7ffa_8000_0000;

const TEXT: &[u8; 16] = b"etaoin shrdlu,.\n";

/// Words of a heap: small numbers, pointers, text, zeros, and random words.
fn words(bytes: &mut [u8], draws: &mut Pcg64) {
    for word in bytes.chunks_mut(WORD) {
        word.copy_from_slice(&self::word(draws)[..word.len()]);
    }
}

/// A word of a heap.
fn word(draws: &mut Pcg64) -> [u8; WORD] {
    let number = draws.next_u64();
    match number & 15 {
        0..=3 => [0; WORD],
        4..=8 => (POINTED_AT + (number >> 40 << 4)).to_le_bytes(),
        9..=11 => (number >> 52).to_le_bytes(),
        12..=14 => {
            let mut letters = number >> 32;
            [(); WORD].map(|()| {
                letters >>= 4;
                TEXT[(letters & 15) as usize]
            })
        }
        _ => draws.next_u64().to_le_bytes(),
    }
}

/// Changes a word: increments or replaces it.
fn edit(word: &mut [u8; WORD], draws: &mut Pcg64) {
    let old = u64::from_le_bytes(*word);
    *word = match draws.next_u64() & 1 {
        0 => old.wrapping_add(1 + (draws.next_u64() & 255)).to_le_bytes(),
        _ => self::word(draws),
    };
    if u64::from_le_bytes(*word) == old {
        *word = old.wrapping_add(1).to_le_bytes();
    }
}

/// Code: a few frequent instructions and many rare ones, with numbers between them.
fn code(length: usize, draws: &mut Pcg64) -> Vec<u8> {
    let instructions: Vec<_> =
        (0..1024).map(|_| (draws.next_u64().to_le_bytes(), 2 + draws.below(6))).collect();
    let mut code = Vec::with_capacity(length + WORD);
    while code.len() < length {
        // Products of two uniform numbers are small more often than large.
        let which = draws.below(instructions.len()) * draws.below(instructions.len()) / instructions.len();
        let (bytes, used) = &instructions[which];
        code.extend_from_slice(&bytes[..*used]);
        if draws.unit() < 0.2 {
            code.extend_from_slice(&draws.next_u64().to_le_bytes()[..2]);
        }
    }
    code.truncate(length);
    code
}

/// Fraction of the memory that is the field of a change.
pub(super) fn share(change: &Change) -> f64 {
    match *change {
        Change::Drift { share, .. } => share,
        _ => 0.0,
    }
}

/// The initial field: waves, with a little noise so that all bits of the numbers are used.
fn first_field(length: usize, width: Width, draws: &mut Pcg64) -> Vec<u8> {
    let mut bytes = vec![0; length];
    let waves = [1e-5, 1e-3, 1e-1].map(|per_number| Wave::new(per_number, draws));
    change_all(&mut bytes, width, |index, _| {
        waves.iter().map(|wave| wave.at(index)).sum::<f64>() * (1.0 + 1e-6 * draws.unit())
    });
    bytes
}

/// A step: every number changes by a fraction of `step`, from −1 to 1.
fn drift(bytes: &mut [u8], width: Width, step: f64, draws: &mut Pcg64) {
    let wave = Wave::new(1e-4, draws);
    change_all(bytes, width, |index, number| number + step * wave.at(index));
}

/// A wave along the numbers of a field.
struct Wave {
    per_number: f64,
    phase: f64,
}

impl Wave {
    /// A wave with about this many periods per number.
    fn new(turns: f64, draws: &mut Pcg64) -> Self {
        Self { per_number: TAU * turns * (0.5 + draws.unit()), phase: TAU * draws.unit() }
    }

    fn at(&self, index: usize) -> f64 {
        libm::sin(self.phase + self.per_number * index as f64)
    }
}

fn change_all(bytes: &mut [u8], width: Width, mut change: impl FnMut(usize, f64) -> f64) {
    match width {
        Width::Double => {
            for (index, number) in bytes.as_chunks_mut().0.iter_mut().enumerate() {
                *number = change(index, f64::from_le_bytes(*number)).to_le_bytes();
            }
        }
        Width::Single => {
            for (index, number) in bytes.as_chunks_mut().0.iter_mut().enumerate() {
                *number = (change(index, f32::from_le_bytes(*number).into()) as f32).to_le_bytes();
            }
        }
    }
}

/// Applies a change to the memory. `index` is its position in the list of changes.
pub(super) fn apply(change: &Change, index: u32, memory: &mut Memory, draws: &mut Pcg64) {
    match *change {
        Change::Moves { pages, areas } => moves(memory, pages, areas, draws),
        Change::Insertions { count, bytes } => insertions(memory, count, bytes as usize, draws),
        Change::Words { pages, words } => edit_words(memory, pages, words, draws),
        Change::Drift { step, width, .. } => {
            if let Some(area) = memory.fields.get_mut(&index) {
                drift(&mut area.bytes, width, step, draws);
            }
        }
        Change::Growth { pages } => {
            let pages = share_of(memory.first_pages, pages);
            memory.grow_heap(pages - pages / 2, draws);
            memory.add_area(pages / 2, draws);
        }
        Change::Zeros { pages } => zeros(memory, pages, draws),
    }
}

/// Swaps pages, and moves areas.
fn moves(memory: &mut Memory, share: f64, areas: u32, draws: &mut Pcg64) {
    let mut pages = memory.pages_mut();
    for _ in 0..share_of(pages.len(), share / 2.0) {
        let (one, other) = (draws.below(pages.len()), draws.below(pages.len()));
        if let Ok([one, other]) = pages.get_disjoint_mut([one, other]) {
            std::mem::swap(*one, *other);
        }
    }
    for _ in 0..areas.min(memory.areas.len() as u32) {
        memory.move_area(draws.below(memory.areas.len()));
    }
}

fn insertions(memory: &mut Memory, count: u32, length: usize, draws: &mut Pcg64) {
    for _ in 0..count {
        let at = draws.below(memory.heap.len() + 1);
        let mut bytes = vec![0; length];
        words(&mut bytes, draws);
        memory.heap.splice(at..at, bytes);
    }
}

fn edit_words(memory: &mut Memory, pages: f64, words: f64, draws: &mut Pcg64) {
    for page in memory.pages_mut() {
        if draws.unit() < pages {
            for word in page.as_chunks_mut().0 {
                if draws.unit() < words {
                    edit(word, draws);
                }
            }
        }
    }
}

/// Fills zero pages, and zeroes as many others.
fn zeros(memory: &mut Memory, share: f64, draws: &mut Pcg64) {
    let pages = memory.pages_mut();
    let count = share_of(pages.len(), share);
    let (mut zero, mut filled): (Vec<_>, Vec<_>) = pages.into_iter().partition(|page| **page == [0; PAGE]);
    for page in draw_out(&mut zero, count, draws) {
        words(page, draws);
    }
    for page in draw_out(&mut filled, count, draws) {
        page.fill(0);
    }
}

/// Selects some items, or all.
fn draw_out<T>(from: &mut Vec<T>, count: usize, draws: &mut Pcg64) -> Vec<T> {
    let count = count.min(from.len());
    (0..count).map(|_| from.swap_remove(draws.below(from.len()))).collect()
}
