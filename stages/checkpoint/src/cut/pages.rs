//! Pages of memory on their way into a batch.

use super::feed::{Filling, leading_zeros};
use super::past::Past;
use crate::chunk::{PAGE, Place, Space};

/// Bytes from a place to the end of its page, or to the end of what there is.
pub(super) fn rest_of_page(address: u64, left: u64) -> usize {
    let page = PAGE as u64;
    (page - address % page).min(left) as usize
}

/// The next bytes as a chunk that belongs to a place, and its twin.
pub(super) fn keep(filling: &mut Filling<'_, '_>, past: &mut Past, length: usize, place: Place) {
    let twin = past.at(place);
    keep_like(filling, past, length, place, twin);
}

/// The next bytes as a chunk that belongs to a place and has this twin.
pub(super) fn keep_like(
    filling: &mut Filling<'_, '_>,
    past: &Past,
    length: usize,
    place: Place,
    twin: Option<u32>,
) {
    let bytes = filling.ahead().get(..length).unwrap_or_default();
    if leading_zeros(bytes) == length {
        return filling.keep_zeros(length, place, twin);
    }
    let hash = past.hash(bytes);
    filling.keep(length, hash, place, twin);
}

/// The next page of the file, or what there is of it, where it stands in the file.
pub(super) fn keep_in_file(filling: &mut Filling<'_, '_>, past: &mut Past, ahead: usize) {
    let address = filling.offset();
    let length = rest_of_page(address, ahead as u64);
    keep(filling, past, length, Place { space: Space::File, address });
}
