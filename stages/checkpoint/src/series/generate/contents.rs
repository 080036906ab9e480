//! What is in memory: words as programs have them, and code.

/// Bytes of a word.
use hopmap_random::{Draw, Pcg64, Rng};

pub(super) const WORD: usize = 8;

/// Where pointers of the heap lead.
const POINTED_AT: u64 = 0x7ffa_8000_0000;

const TEXT: &[u8; 16] = b"etaoin shrdlu,.\n";

/// Words of a heap: small numbers, pointers, text, zeros, and words that look like nothing.
pub(super) fn words(bytes: &mut [u8], draws: &mut Pcg64) {
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

/// Changes a word: it counts on, or becomes another.
pub(super) fn edit(word: &mut [u8; WORD], draws: &mut Pcg64) {
    let old = u64::from_le_bytes(*word);
    *word = match draws.next_u64() & 1 {
        0 => old.wrapping_add(1 + (draws.next_u64() & 255)).to_le_bytes(),
        _ => self::word(draws),
    };
    if u64::from_le_bytes(*word) == old {
        *word = old.wrapping_add(1).to_le_bytes();
    }
}

/// Code: few instructions that come often and many that come rarely, with numbers between them.
pub(super) fn code(length: usize, draws: &mut Pcg64) -> Vec<u8> {
    let instructions: Vec<_> =
        (0..1024).map(|_| (draws.next_u64().to_le_bytes(), 2 + draws.below(6))).collect();
    let mut code = Vec::with_capacity(length + WORD);
    while code.len() < length {
        // The product of two numbers is small more often than it is large.
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
