//! Blocks are decoded exactly, and damaged payloads do no harm.

use hopmap_checkpoint::codec::{
    BLOCK, Block, Chooser, Codec, Encoded, Hint, Outcome, decode, encode, encode_by,
};
use proptest::prelude::*;

const CODECS: [Codec; 8] = [
    Codec::Raw,
    Codec::Zstd,
    Codec::Prefix,
    Codec::Words,
    Codec::Halves,
    Codec::Changes,
    Codec::HalfChanges,
    Codec::Mixed,
];

/// A block with owned data.
#[derive(Debug, Clone)]
struct OwnedBlock {
    bytes: Vec<u8>,
    lengths: Vec<u32>,
    bases: Vec<Option<Vec<u8>>>,
}

impl OwnedBlock {
    fn bases(&self) -> Vec<Option<&[u8]>> {
        self.bases.iter().map(Option::as_deref).collect()
    }

    fn encode(&self, how: impl Fn(&Block<'_>) -> Encoded) -> Encoded {
        how(&Block { bytes: &self.bytes, lengths: &self.lengths, bases: &self.bases() })
    }

    fn decode(&self, encoded: &Encoded) -> Option<Vec<u8>> {
        let bases = if encoded.uses_bases { self.bases() } else { Vec::new() };
        let mut bytes = vec![7; 3];
        decode(encoded.codec, &encoded.payload, &self.lengths, &bases, &mut bytes).ok()?;
        bytes.starts_with(&[7; 3]).then(|| bytes.split_off(3))
    }
}

/// A chunk: noise, a curve of floats, few values, or text; with its base: none, similar, shorter or longer.
fn chunk() -> impl Strategy<Value = (Vec<u8>, Option<Vec<u8>>)> {
    let length =
        prop_oneof![Just(4096_usize), Just(1), 1_usize..9000, (0_usize..40).prop_map(|words| words * 8)];
    (length, 0_u8..4, any::<u64>(), 0_u8..5).prop_map(|(length, kind, seed, base)| {
        let bytes = contents(length, kind, seed);
        let base = match base {
            0 => None,
            1 => Some(contents(length, kind, seed ^ 1)),
            2 => Some(edited(&bytes, seed)),
            3 => Some(bytes[..length / 3].to_vec()),
            _ => Some([edited(&bytes, seed), vec![5; 100]].concat()),
        };
        (bytes, base)
    })
}

fn contents(length: usize, kind: u8, seed: u64) -> Vec<u8> {
    let mut state = seed | 1;
    let mut noise = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as u32
    };
    let start = f64::from(noise() % 1000);
    let words = (0..=length / 8).flat_map(|at| match kind {
        0 => (u64::from(noise()) << 32 | u64::from(noise())).to_le_bytes(),
        1 => (start + (at as f64 * 0.01).powi(2)).to_le_bytes(),
        2 => u64::from(noise() % 3).to_le_bytes(),
        _ => *b"a line \n",
    });
    words.take(length).collect()
}

fn edited(bytes: &[u8], seed: u64) -> Vec<u8> {
    let mut edited = bytes.to_vec();
    for (at, byte) in edited.iter_mut().enumerate() {
        *byte = byte.wrapping_add(u8::from((at as u64).wrapping_add(seed).is_multiple_of(97)));
    }
    edited
}

fn block(most: usize) -> impl Strategy<Value = OwnedBlock> {
    prop::collection::vec(chunk(), 0..most).prop_map(|chunks| OwnedBlock {
        lengths: chunks.iter().map(|(bytes, _)| bytes.len() as u32).collect(),
        bytes: chunks.iter().flat_map(|(bytes, _)| bytes.iter().copied()).collect(),
        bases: chunks.into_iter().map(|(_, base)| base).collect(),
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn every_codec_round_trips(block in block(20)) {
        for codec in CODECS {
            let encoded = block.encode(|block| encode_by(block, codec, false).unwrap());
            prop_assert!(encoded.payload.len() <= block.bytes.len());
            let back = block.decode(&encoded);
            prop_assert_eq!(back.as_ref(), Some(&block.bytes), "{:?}", codec);
        }
    }

    #[test]
    fn the_chosen_codec_round_trips(block in block(20), usual in 0_usize..9, explore: bool, thorough: bool) {
        let hint = Hint { usual: CODECS.get(usual).copied(), explore, thorough };
        let encoded = block.encode(|block| encode(block, hint).unwrap());
        prop_assert!(encoded.uses_bases == encoded.codec.uses_bases());
        prop_assert_eq!(block.decode(&encoded), Some(block.bytes));
    }

    #[test]
    fn damaged_payloads_do_no_harm(block in block(6), edits in prop::collection::vec(any::<(u32, u8)>(), 40)) {
        for codec in CODECS {
            let encoded = block.encode(|block| encode_by(block, codec, false).unwrap());
            for &(at, value) in &edits {
                let mut damaged = encoded.clone();
                if damaged.payload.is_empty() {
                    continue;
                }
                let at = at as usize % damaged.payload.len();
                match value % 3 {
                    0 => damaged.payload.truncate(at),
                    1 => damaged.payload.insert(at, value),
                    _ => damaged.payload[at] ^= value | 1,
                }
                // Other bytes are possible, which checksums detect, but their number must be right.
                let back = block.decode(&damaged);
                prop_assert!(back.is_none_or(|bytes| bytes.len() == block.bytes.len()));
            }
        }
    }

    #[test]
    fn anything_can_be_decoded_without_harm(
        payload in prop::collection::vec(any::<u8>(), 0..300),
        lengths in prop::collection::vec(0_u32..5000, 0..6),
        bases in prop::collection::vec(prop::option::of(prop::collection::vec(any::<u8>(), 0..100)), 0..8),
    ) {
        let bases: Vec<Option<&[u8]>> = bases.iter().map(Option::as_deref).collect();
        let length: usize = lengths.iter().map(|&length| length as usize).sum();
        for codec in CODECS {
            let mut bytes = Vec::new();
            match decode(codec, &payload, &lengths, &bases, &mut bytes) {
                Ok(()) => prop_assert_eq!(bytes.len(), length),
                Err(_) => prop_assert!(bytes.is_empty()),
            }
        }
    }
}

#[test]
fn a_block_with_excessive_lengths_is_rejected() {
    for codec in CODECS {
        let mut bytes = Vec::new();
        assert!(decode(codec, &[0; 64], &[u32::MAX; 40], &[], &mut bytes).is_err());
        assert!(decode(codec, &[0; 64], &[BLOCK as u32 * 2], &[], &mut bytes).is_err());
        assert_eq!(bytes.capacity(), 0);
    }
}

#[test]
fn a_base_with_the_magic_of_a_dictionary_is_used_as_a_base() {
    let bytes = contents(4096, 0, 3);
    let base = [&[0x37, 0xa4, 0x30, 0xec], &bytes[4..]].concat();
    let block = OwnedBlock { bytes: bytes.clone(), lengths: vec![4096], bases: vec![Some(base)] };
    let encoded = block.encode(|block| encode_by(block, Codec::Prefix, true).unwrap());
    assert!(encoded.payload.len() < 100 && encoded.uses_bases);
    assert_eq!(block.decode(&encoded), Some(bytes));
}

/// Blocks of a curve with five numbers at each point.
fn curve(at: usize) -> OwnedBlock {
    let numbers = (0..8192).map(|number| {
        let (point, part) = ((number + at * 8192) / 5, number % 5);
        (f64::from(part as u32) + 1.0) * (1.5 + (point as f64 * 1e-3).sin())
    });
    let bytes: Vec<u8> = numbers.flat_map(f64::to_le_bytes).collect();
    OwnedBlock { lengths: vec![4096; bytes.len() / 4096], bases: Vec::new(), bytes }
}

#[test]
fn curves_are_stored_as_differences() {
    let block = curve(1);
    let encoded = block.encode(|block| encode(block, Hint::default()).unwrap());
    let zstd = block.encode(|block| encode_by(block, Codec::Zstd, true).unwrap());
    assert_eq!(encoded.codec, Codec::Mixed);
    assert!(
        encoded.payload.len() * 3 < zstd.payload.len() * 2,
        "{} {}",
        encoded.payload.len(),
        zstd.payload.len()
    );
}

#[test]
fn useless_bases_are_not_read_and_useful_ones_are_read_again() {
    let mut chooser = Chooser::default();
    let outcome = |uses_bases| Outcome {
        codec: if uses_bases { Codec::Prefix } else { Codec::Words },
        explored: true,
        uses_bases,
        bytes: 65536,
        payload: 1000,
    };
    let mut read = 0;
    for _ in 0..1000 {
        let wants = chooser.wants_bases();
        read += u32::from(wants);
        chooser.learn(&Outcome { explored: wants, ..outcome(false) });
    }
    assert!((4..50).contains(&read), "{read}");
    chooser.learn(&outcome(true));
    assert!(chooser.wants_bases());
}
