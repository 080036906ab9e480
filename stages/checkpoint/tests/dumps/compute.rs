//! Computations whose memory changes in different ways.

use std::collections::HashMap;

/// Rows and columns of the plane.
const SIDE: usize = 600;

/// Numbers in the list, and those inserted between two checkpoints.
const NUMBERS: usize = 600_000;
const INSERTED: usize = 60;

/// Entries of the map, and those added between two checkpoints.
const ENTRIES: u64 = 60_000;
const ADDED: u64 = 4_000;

/// The computation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Heat spreads over a plane of doubles: nearly every word of the field changes.
    Heat,
    /// A growing hash map with changing entries: a few words change in many pages, and it moves when it
    /// grows.
    Map,
    /// A sorted list into which numbers are inserted, which shift all later ones.
    Sorted,
}

impl Kind {
    /// All kinds.
    pub(crate) const ALL: [Self; 3] = [Self::Heat, Self::Map, Self::Sorted];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Heat => "heat",
            Self::Map => "map",
            Self::Sorted => "sorted",
        }
    }
}

pub(crate) enum Computation {
    Heat { now: Vec<f64>, next: Vec<f64> },
    Map { map: HashMap<u64, [u64; 6]>, updates: u64, random: Random },
    Sorted { numbers: Vec<u64>, random: Random },
}

impl Computation {
    pub(crate) fn new(kind: Kind) -> Self {
        let mut random = Random(88_172_645_463_325_252);
        match kind {
            Kind::Heat => {
                let heat = |at: usize| ((at / SIDE).pow(2) + (at % SIDE).pow(2)) as f64 / 5000.0;
                let now =
                    (0..SIDE * SIDE).map(|at| heat(at) + (random.next() % 1000) as f64 * 1e-6).collect();
                Self::Heat { now, next: vec![0.0; SIDE * SIDE] }
            }
            Kind::Map => {
                let map = (0..ENTRIES).map(|key| (key, [key; 6])).collect();
                Self::Map { map, updates: 0, random }
            }
            Kind::Sorted => {
                let mut numbers: Vec<_> = (0..NUMBERS).map(|_| random.next()).collect();
                numbers.sort_unstable();
                Self::Sorted { numbers, random }
            }
        }
    }

    /// A step between two checkpoints.
    pub(crate) fn advance(&mut self) {
        match self {
            Self::Heat { now, next } => (0..4).for_each(|_| {
                spread(now, next);
                std::mem::swap(now, next);
            }),
            Self::Map { map, updates, random } => {
                let size = map.len() as u64;
                for _ in 0..size / 5 {
                    if let Some(entry) = map.get_mut(&(random.next() % size)) {
                        entry[3] += 1;
                        *updates += 1;
                    }
                }
                map.extend((size..size + ADDED).map(|key| (key, [key; 6])));
            }
            Self::Sorted { numbers, random } => {
                for _ in 0..INSERTED {
                    let number = random.next();
                    numbers.insert(numbers.partition_point(|&other| other < number), number);
                }
            }
        }
    }

    /// Checks the result: dumping did not disturb the computation.
    pub(crate) fn check(&self) {
        match self {
            Self::Heat { now, .. } => assert!(now.iter().all(|heat| (0.0..150.0).contains(heat))),
            Self::Map { map, updates, .. } => {
                let changed: u64 = map.iter().map(|(key, entry)| entry[3] - key).sum();
                assert_eq!(changed, *updates);
            }
            Self::Sorted { numbers, .. } => assert!(numbers.is_sorted() && numbers.len() > NUMBERS),
        }
    }
}

/// A step of the heat equation: explicit, five points, borders as they are.
fn spread(now: &[f64], next: &mut [f64]) {
    next.copy_from_slice(now);
    for row in 1..SIDE - 1 {
        for at in row * SIDE + 1..(row + 1) * SIDE - 1 {
            let around = now[at - 1] + now[at + 1] + now[at - SIDE] + now[at + SIDE];
            next[at] = now[at] + 0.2 * (around - 4.0 * now[at]);
        }
    }
}

/// Marsaglia 2003, Xorshift RNGs.
pub(crate) struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}
