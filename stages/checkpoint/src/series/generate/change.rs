//! What happens between two checkpoints.

use hopmap_random::{Draw, Pcg64};

use super::memory::{Memory, share_of};
use super::{contents, field};
use crate::Change;
use crate::chunk::PAGE;

/// Lets a change happen to the memory. `index` is its place among the changes.
pub(super) fn apply(change: &Change, index: u32, memory: &mut Memory, draws: &mut Pcg64) {
    match *change {
        Change::Moves { pages, areas } => moves(memory, pages, areas, draws),
        Change::Insertions { count, bytes } => insertions(memory, count, bytes as usize, draws),
        Change::Words { pages, words } => edit_words(memory, pages, words, draws),
        Change::Drift { step, width, .. } => {
            if let Some(area) = memory.fields.get_mut(&index) {
                field::drift(&mut area.bytes, width, step, draws);
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

/// Exchanges pages with others, and moves areas.
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
        contents::words(&mut bytes, draws);
        memory.heap.splice(at..at, bytes);
    }
}

fn edit_words(memory: &mut Memory, pages: f64, words: f64, draws: &mut Pcg64) {
    for page in memory.pages_mut() {
        if draws.unit() < pages {
            for word in page.as_chunks_mut().0 {
                if draws.unit() < words {
                    contents::edit(word, draws);
                }
            }
        }
    }
}

/// Fills pages that are zero, and makes as many others zero.
fn zeros(memory: &mut Memory, share: f64, draws: &mut Pcg64) {
    let pages = memory.pages_mut();
    let count = share_of(pages.len(), share);
    let (mut zero, mut filled): (Vec<_>, Vec<_>) = pages.into_iter().partition(|page| **page == [0; PAGE]);
    for page in draw_out(&mut zero, count, draws) {
        contents::words(page, draws);
    }
    for page in draw_out(&mut filled, count, draws) {
        page.fill(0);
    }
}

/// Takes so many of something, or all.
fn draw_out<T>(from: &mut Vec<T>, count: usize, draws: &mut Pcg64) -> Vec<T> {
    let count = count.min(from.len());
    (0..count).map(|_| from.swap_remove(draws.below(from.len()))).collect()
}
