//! Memory that is used again: fresh memory costs as much as decoding into it.

use std::sync::Mutex;

use super::lock;

/// Most bytes of memory that nobody uses.
const MOST: usize = 6 << 20;

/// Memory that nobody uses, what was given back last at the end.
#[derive(Debug, Default)]
pub(super) struct Buffers {
    spare: Mutex<Vec<Vec<u8>>>,
}

impl Buffers {
    /// So many bytes, whatever they are.
    pub(super) fn take(&self, length: usize) -> Vec<u8> {
        let fits = |buffer: &Vec<u8>| (length..=length.saturating_mul(2)).contains(&buffer.capacity());
        let mut spare = lock(&self.spare);
        let found = spare.iter().rposition(fits).map(|place| spare.remove(place));
        drop(spare);
        match found {
            Some(mut buffer) => {
                buffer.resize(length, 0);
                buffer
            }
            None => vec![0; length],
        }
    }

    pub(super) fn give(&self, buffer: Vec<u8>) {
        let mut spare = lock(&self.spare);
        spare.push(buffer);
        let mut bytes: usize = spare.iter().map(Vec::capacity).sum();
        let old = spare.iter().take_while(|buffer| {
            let is_too_much = bytes > MOST;
            bytes -= buffer.capacity();
            is_too_much
        });
        let old = old.count();
        spare.drain(..old);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_used_again_where_it_fits_and_bounded() {
        let buffers = Buffers::default();
        let long = buffers.take(1000);
        let place = long.as_ptr();
        buffers.give(long);
        assert_eq!(buffers.take(100).len(), 100, "a short one does not take it");
        let again = buffers.take(700);
        assert_eq!((again.as_ptr(), again.len()), (place, 700));
        for _ in 0..5 {
            buffers.give(vec![0; MOST / 3]);
        }
        assert_eq!(lock(&buffers.spare).len(), 3);
    }
}
