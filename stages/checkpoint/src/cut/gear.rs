//! Where contents say that a chunk ends.

use crate::chunk::LONGEST_CHUNK;

/// Shortest chunk that is cut by contents, in bytes.
const SHORTEST: usize = 1024;

/// From here on a place to cut is taken more easily, in bytes.
const NORMAL: usize = 4096;

/// Bits of the hash that must be zero before and after [`NORMAL`]: chunks get about as long as that (level 2 of the
/// normalisation in Xia et al., `FastCDC`, USENIX ATC 2016).
const BITS: (u32, u32) = (14, 10);

/// A number for each byte, the same for ever: chunks are found again only where they were cut alike.
const GEAR: [u64; 256] = gear();

/// Numbers that look random (`SplitMix64`).
const fn gear() -> [u64; 256] {
    let mut table = [0; 256];
    let mut state = 0_u64;
    let mut byte = 0;
    while byte < 256 {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        table[byte] = z ^ (z >> 31);
        byte += 1;
    }
    table
}

/// How long the chunk is that the bytes begin with: up to all of them, and [`LONGEST_CHUNK`].
pub(super) fn cut(bytes: &[u8]) -> usize {
    let bytes = bytes.get(..LONGEST_CHUNK).unwrap_or(bytes);
    let Some(rest) = bytes.get(SHORTEST..) else { return bytes.len() };
    let (before, after) = rest.split_at(rest.len().min(NORMAL - SHORTEST));
    let mut hash = 0;
    if let Some(place) = place(&mut hash, before, BITS.0) {
        return SHORTEST + place;
    }
    match place(&mut hash, after, BITS.1) {
        Some(place) => NORMAL + place,
        None => bytes.len(),
    }
}

/// Behind which byte the upper bits of the hash are zero. They depend on the last fifty bytes or so.
fn place(hash: &mut u64, bytes: &[u8], bits: u32) -> Option<usize> {
    let place = bytes.iter().position(|&byte| {
        *hash = (*hash << 1).wrapping_add(GEAR[usize::from(byte)]);
        *hash >> (u64::BITS - bits) == 0
    });
    place.map(|place| place + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(length: usize) -> Vec<u8> {
        let mut state = 7_u64;
        (0..length)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (state >> 56) as u8
            })
            .collect()
    }

    fn cuts(mut bytes: &[u8]) -> Vec<usize> {
        let mut lengths = Vec::new();
        while !bytes.is_empty() {
            let length = cut(bytes);
            lengths.push(length);
            bytes = &bytes[length..];
        }
        lengths
    }

    #[test]
    fn lengths_are_within_their_bounds_and_about_a_page_on_average() {
        let lengths = cuts(&noise(4_000_000));
        let (_, whole) = lengths.split_last().unwrap();
        assert!(whole.iter().all(|length| (SHORTEST + 1..=LONGEST_CHUNK).contains(length)));
        let average = 4_000_000 / lengths.len();
        assert!((3500..5500).contains(&average), "{average}");
    }

    #[test]
    fn cuts_come_back_behind_an_insertion() {
        let bytes = noise(400_000);
        let mut inserted = bytes.clone();
        inserted.splice(100_000..100_000, *b"something new");
        let ends = |lengths: Vec<usize>, shift: usize| -> Vec<usize> {
            let mut end = 0;
            let ends = lengths.into_iter().map(|length| {
                end += length;
                end
            });
            ends.filter(|end| *end > 140_000).map(|end| end - shift).collect()
        };
        assert_eq!(ends(cuts(&bytes), 0), ends(cuts(&inserted), 13));
    }

    #[test]
    fn short_bytes_are_one_chunk() {
        for length in [0, 1, SHORTEST - 1, SHORTEST] {
            assert_eq!(cut(&noise(length)), length);
        }
    }
}
