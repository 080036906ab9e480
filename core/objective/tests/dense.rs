//! Exchanges of dense problems against an independent double sum.

use hopmap_objective::{Dense, DenseAssignment, Matrix, random};
use hopmap_random::{Pcg64, SeedableRng};
use hopmap_test_support::soak;
use proptest::prelude::*;

/// Values of a matrix, row after row.
#[derive(Debug, Clone)]
struct Square {
    size: usize,
    values: Vec<i64>,
}

impl Square {
    /// Random values from `low` to `high`, some of them zero.
    fn random(size: usize, low: i64, high: i64, simple: bool, random: &mut Pcg64) -> Self {
        let mut values = vec![0; size * size];
        for row in 0..size {
            for column in 0..size {
                let drawn = low + (random.next_u64() % (high - low + 1) as u64).cast_signed();
                let value = if random.next_u32().is_multiple_of(3) { 0 } else { drawn };
                values[row * size + column] = match simple {
                    true if row == column => 0,
                    true if column < row => values[column * size + row],
                    _ => value,
                };
            }
        }
        Self { size, values }
    }

    fn matrix(&self) -> Matrix {
        Matrix::new(self.size, self.values.clone()).unwrap()
    }
}

/// F as a double sum over all ordered pairs.
fn double_sum(weights: &Square, costs: &Square, slots: &[u32]) -> i128 {
    let mut sum = 0;
    for i in 0..weights.size {
        for j in 0..weights.size {
            let cost = costs.values[slots[i] as usize * costs.size + slots[j] as usize];
            sum += i128::from(weights.values[i * weights.size + j]) * i128::from(cost);
        }
    }
    sum
}

/// Change of the double sum if two ranks are exchanged.
fn change(weights: &Square, costs: &Square, slots: &[u32], pair: [u32; 2]) -> i128 {
    let pair = pair.map(|rank| rank as usize);
    let mut after = slots.to_vec();
    after.swap(pair[0], pair[1]);
    let cost =
        |slots: &[u32], i: usize, j: usize| costs.values[slots[i] as usize * costs.size + slots[j] as usize];
    let more = |i: usize, j: usize| {
        let weight = i128::from(weights.values[i * weights.size + j]);
        weight * (i128::from(cost(&after, i, j)) - i128::from(cost(slots, i, j)))
    };
    let ranks = 0..weights.size;
    let rows = pair.iter().flat_map(|&i| ranks.clone().map(move |j| (i, j)));
    let columns = ranks.clone().filter(|i| !pair.contains(i)).flat_map(|i| pair.map(|j| (i, j)));
    rows.chain(columns).map(|(i, j)| more(i, j)).sum()
}

/// Exchanges random pairs, and compares every vector delta with the scalar one and with the double sum.
fn wander(weights: &Square, costs: &Square, bytes: usize, exchanges: usize, random_pairs: &mut Pcg64) {
    let fast = Dense::new(&weights.matrix(), &costs.matrix()).unwrap();
    assert_eq!(fast.bytes(), bytes);
    let twin = fast.clone().scalar();
    let size = costs.size;
    let start = random(size, size, [7; 32]);
    let mut fast = DenseAssignment::new(&fast, &start).unwrap();
    let mut twin = DenseAssignment::new(&twin, &start).unwrap();
    let mut cost = double_sum(weights, costs, &start);
    for exchange in 0..exchanges {
        let [first, second] = [0, 1].map(|_| random_pairs.next_u32() % size as u32);
        let delta = fast.delta(first, second);
        assert_eq!(delta, twin.delta(first, second));
        if first.max(second) < weights.size as u32 {
            let slots = &fast.slots()[..weights.size];
            assert_eq!(i128::from(delta), change(weights, costs, slots, [first, second]));
        }
        fast.exchange(first, second, delta);
        twin.exchange(first, second, delta);
        if exchange % size == 0 || size < 20 {
            let before = std::mem::replace(&mut cost, double_sum(weights, costs, fast.slots()));
            assert!(size >= 20 || cost - before == i128::from(delta));
        }
        assert!(exchange % size != 0 || cost == i128::from(fast.cost()));
    }
    assert_eq!(i128::from(fast.cost()), double_sum(weights, costs, fast.slots()));
    assert_eq!((fast.cost(), fast.slots()), (twin.cost(), twin.slots()));
}

/// Exchanges per problem; millions in total in a soak.
fn exchanges() -> usize {
    if soak() { 200_000 } else { 400 }
}

#[test]
fn every_delta_equals_that_of_the_double_sum() {
    let mut random = Pcg64::seed_from_u64(1);
    for (bytes, low, high) in
        [(1, 0, 41), (1, -63, 63), (2, 0, 1000), (2, -700, 700), (4, -1_000_000, 9_000_000), (8, 0, 1 << 20)]
    {
        for size in [1, 2, 5, 27, 32, 33, 70] {
            for simple in [true, false] {
                // Values whose differences always need the type.
                let mut weights = Square::random(size, low, high, simple, &mut random);
                let mut costs = Square::random(size, low, high, simple, &mut random);
                if size < 2 {
                    continue;
                }
                for square in [&mut weights, &mut costs] {
                    (square.values[1], square.values[size]) = (high, if simple { high } else { low });
                }
                let high = if bytes == 8 { 1 << 33 } else { high };
                (weights.values[1], weights.values[size]) = (high, if simple { high } else { low });
                wander(&weights, &costs, bytes, exchanges(), &mut random);
            }
        }
    }
}

#[test]
fn missing_ranks_send_nothing() {
    let mut random = Pcg64::seed_from_u64(2);
    for simple in [true, false] {
        let weights = Square::random(9, 0, 41, simple, &mut random);
        let costs = Square::random(14, 0, 41, simple, &mut random);
        wander(&weights, &costs, 1, exchanges(), &mut random);
    }
}

#[test]
fn the_extremes_of_every_type_are_summed_exactly() {
    for (bytes, most, size) in [(1, 127, 1000), (2, 32_767, 1), (2, 1400, 1000), (4, 1_000_000, 1000)] {
        let all = |value: i64, size: usize| Square {
            size,
            values: (0..size * size)
                .map(|at| if (at / size + at % size).is_multiple_of(2) { 0 } else { value })
                .collect(),
        };
        let (weights, costs) = (all(most, size), all(most, size));
        wander(&weights, &costs, if size == 1 { 1 } else { bytes }, 20, &mut Pcg64::seed_from_u64(3));
    }
}

#[test]
fn costs_beyond_64_bits_are_refused() {
    let square = |value| Matrix::new(2, vec![0, value, value, 0]).unwrap();
    let refused = |weight, cost| Dense::new(&square(weight), &square(cost)).unwrap_err().to_string();
    let message = "the largest possible cost does not fit 64-bit integers";
    assert_eq!(refused(1 << 40, 1 << 40), message);
    assert_eq!(refused(i64::MIN, 1), message);
    let spread = Matrix::new(2, vec![0, i64::MAX, i64::MIN, 0]).unwrap();
    assert_eq!(Dense::new(&spread, &square(0)).unwrap_err().to_string(), message);
    let widest = Dense::new(&square(1 << 40), &square(1 << 18)).unwrap();
    assert_eq!((widest.bytes(), widest.cost(&[1, 0])), (8, 1 << 59));
}

#[test]
fn an_invalid_matrix_is_refused() {
    let refused = Matrix::new(2, vec![1; 3]).unwrap_err();
    assert_eq!(refused.to_string(), "3 values are not a matrix of 2 × 2");
}

#[test]
fn an_invalid_mapping_is_refused() {
    let square = |size| Matrix::new(size, vec![1; size * size]).unwrap();
    let problem = Dense::new(&square(2), &square(3)).unwrap();
    let message = |slots: &[u32]| DenseAssignment::new(&problem, slots).unwrap_err().to_string();
    assert_eq!(message(&[0, 1]), "the mapping has 2 ranks, but the task graph has 3");
    assert_eq!(message(&[0, 1, 3]), "rank 2 is on slot 3, but the machine has 3 slots");
    assert_eq!(message(&[0, 1, 1]), "ranks 1 and 2 are both on slot 1");
    assert_eq!(Dense::new(&square(3), &square(2)).unwrap_err().to_string(), "3 ranks do not fit on 2 slots");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_values_give_the_deltas_of_the_double_sum(
        size in 2usize..12,
        ends in prop::array::uniform2((0i64..=40).prop_map(|bits| 1i64 << (bits / 2))),
        simple in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let mut random = Pcg64::seed_from_u64(seed);
        let weights = Square::random(size, -ends[0], ends[0], simple, &mut random);
        let costs = Square::random(size, -ends[1], ends[1], simple, &mut random);
        let bytes = Dense::new(&weights.matrix(), &costs.matrix()).unwrap().bytes();
        wander(&weights, &costs, bytes, 60, &mut random);
    }
}
