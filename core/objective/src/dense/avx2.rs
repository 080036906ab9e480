//! Sums over rows: scalar, and with 256-bit vectors.
//!
//! Differences fit the element type and sums of products fit the accumulator: the caller checked
//! [`Element::fits`](super::element::Element::fits). Rows are padded to complete vectors; anything after the
//! last complete vector is not read.
// Vectors are read through pointers, and functions with target features are unsafe to call.
#![allow(unsafe_code)]
// A list of all intrinsics would not add information.
#![allow(clippy::wildcard_imports)]

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

/// Two rows of the same length.
pub(super) type Pair<'r, E> = [&'r [E]; 2];

/// Sums products of differences in a wider type.
macro_rules! dot {
    ($name:ident, $element:ty, $sum:ty) => {
        pub(super) fn $name(weights: Pair<'_, $element>, costs: Pair<'_, $element>) -> i64 {
            let rows = weights[0].iter().zip(weights[1]).zip(costs[0].iter().zip(costs[1]));
            let sum: $sum = rows
                .map(|((&from, &to), (&here, &there))| {
                    (<$sum>::from(to) - <$sum>::from(from)) * (<$sum>::from(here) - <$sum>::from(there))
                })
                .sum();
            sum.into()
        }
    };
}

dot!(scalar_i8, i8, i32);
dot!(scalar_i16, i16, i32);
dot!(scalar_i32, i32, i64);
dot!(scalar_i64, i64, i64);

/// A token that proves AVX2 support.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Token(());

impl Token {
    pub(crate) fn detect() -> Option<Self> {
        #[cfg(target_arch = "x86_64")]
        let found = is_x86_feature_detected!("avx2");
        #[cfg(not(target_arch = "x86_64"))]
        let found = false;
        found.then_some(Self(()))
    }
}

/// Declares a function that is safe to call with a token, and its inner loop.
macro_rules! kernel {
    ($name:ident, $vectors:ident, $element:ty, $twin:path) => {
        #[inline]
        pub(super) fn $name(_: Token, weights: Pair<'_, $element>, costs: Pair<'_, $element>) -> i64 {
            // SAFETY: a token exists only if AVX2 was detected.
            #[cfg(target_arch = "x86_64")]
            unsafe {
                $vectors(weights, costs)
            }
            #[cfg(not(target_arch = "x86_64"))]
            $twin(weights, costs)
        }
    };
}

kernel!(dot_i8, vectors_i8, i8, scalar_i8);
kernel!(dot_i16, vectors_i16, i16, scalar_i16);
kernel!(dot_i32, vectors_i32, i32, scalar_i32);

/// Complete vectors in all four rows.
#[cfg(target_arch = "x86_64")]
#[inline]
fn whole_vectors<E>(weights: Pair<'_, E>, costs: Pair<'_, E>) -> usize {
    let shortest = weights[0].len().min(weights[1].len()).min(costs[0].len()).min(costs[1].len());
    shortest * size_of::<E>() / size_of::<__m256i>()
}

/// A vector of a row.
///
/// # Safety
///
/// The row must have more than `vector` complete vectors.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn load<E>(row: &[E], vector: usize) -> __m256i {
    // SAFETY: by contract the vector lies inside the row; alignment is not required.
    unsafe { _mm256_loadu_si256(row.as_ptr().cast::<__m256i>().add(vector)) }
}

/// One vector of each of four rows, within the range of [`complete_vectors`]: weights, then costs.
#[cfg(target_arch = "x86_64")]
macro_rules! load_four {
    ($weights:ident, $costs:ident, $vector:ident) => {
        // SAFETY: all four rows contain this vector.
        unsafe {
            [
                load($weights[0], $vector),
                load($weights[1], $vector),
                load($costs[0], $vector),
                load($costs[1], $vector),
            ]
        }
    };
}

/// 32 differences at a time. Products of a magnitude and a signed value are added in pairs: at most 2 · 127 · 127, which fits
/// 16 bits.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn vectors_i8(weights: Pair<'_, i8>, costs: Pair<'_, i8>) -> i64 {
    let ones = _mm256_set1_epi16(1);
    let mut sum = _mm256_setzero_si256();
    for vector in 0..whole_vectors(weights, costs) {
        let [from, to, here, there] = load_four!(weights, costs, vector);
        let weight = _mm256_sub_epi8(to, from);
        let cost = _mm256_sign_epi8(_mm256_sub_epi8(here, there), weight);
        let pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(weight), cost);
        sum = _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, ones));
    }
    i64::from(sum_i32(sum))
}

/// 16 differences at a time, added in pairs: at most 2 · 32767 · 32767, which fits 32 bits.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn vectors_i16(weights: Pair<'_, i16>, costs: Pair<'_, i16>) -> i64 {
    let mut sum = _mm256_setzero_si256();
    for vector in 0..whole_vectors(weights, costs) {
        let [from, to, here, there] = load_four!(weights, costs, vector);
        let pairs = _mm256_madd_epi16(_mm256_sub_epi16(to, from), _mm256_sub_epi16(here, there));
        sum = _mm256_add_epi32(sum, pairs);
    }
    i64::from(sum_i32(sum))
}

/// Eight differences at a time: the even ones, then the odd ones, as products of 64 bits.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn vectors_i32(weights: Pair<'_, i32>, costs: Pair<'_, i32>) -> i64 {
    let mut sum = _mm256_setzero_si256();
    for vector in 0..whole_vectors(weights, costs) {
        let [from, to, here, there] = load_four!(weights, costs, vector);
        let weight = _mm256_sub_epi32(to, from);
        let cost = _mm256_sub_epi32(here, there);
        let even = _mm256_mul_epi32(weight, cost);
        let odd = _mm256_mul_epi32(_mm256_srli_epi64::<32>(weight), _mm256_srli_epi64::<32>(cost));
        sum = _mm256_add_epi64(sum, _mm256_add_epi64(even, odd));
    }
    let halves = _mm_add_epi64(_mm256_castsi256_si128(sum), _mm256_extracti128_si256::<1>(sum));
    _mm_cvtsi128_si64(halves) + _mm_extract_epi64::<1>(halves)
}

/// The sum of eight numbers.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx2")]
fn sum_i32(vector: __m256i) -> i32 {
    let four = _mm_add_epi32(_mm256_castsi256_si128(vector), _mm256_extracti128_si256::<1>(vector));
    let two = _mm_add_epi32(four, _mm_shuffle_epi32::<0b01_00_11_10>(four));
    let one = _mm_add_epi32(two, _mm_shuffle_epi32::<0b10_11_00_01>(two));
    _mm_cvtsi128_si32(one)
}

/// `values[k] += (weight − weights[k]) · (cost − costs[k])` for slices of equal length, and the smallest value
/// then. Numbers are below 2³⁰.
#[inline]
pub(crate) fn add_products(
    token: Option<Token>,
    values: &mut [i64],
    weights: (i32, &[i32]),
    costs: (i32, &[i32]),
) -> i64 {
    match token {
        // SAFETY: a token exists only if AVX2 was detected.
        #[cfg(target_arch = "x86_64")]
        Some(_) => unsafe { add_products_in_vectors(values, weights, costs) },
        _ => add_products_scalar(values, weights, costs),
    }
}

fn add_products_scalar(
    values: &mut [i64],
    (weight, weights): (i32, &[i32]),
    (cost, costs): (i32, &[i32]),
) -> i64 {
    let mut least = i64::MAX;
    for (value, (other_weight, other_cost)) in values.iter_mut().zip(weights.iter().zip(costs)) {
        *value = value.wrapping_add(i64::from(weight - other_weight) * i64::from(cost - other_cost));
        least = least.min(*value);
    }
    least
}

/// Four products at a time.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn add_products_in_vectors(
    values: &mut [i64],
    (weight, weights): (i32, &[i32]),
    (cost, costs): (i32, &[i32]),
) -> i64 {
    let (all_weight, all_cost) = (_mm_set1_epi32(weight), _mm_set1_epi32(cost));
    let (values, rest) = values.as_chunks_mut::<4>();
    let (weights, last_weights) = weights.as_chunks::<4>();
    let (costs, last_costs) = costs.as_chunks::<4>();
    let mut least = _mm256_set1_epi64x(i64::MAX);
    for (values, (weights, costs)) in values.iter_mut().zip(weights.iter().zip(costs)) {
        // SAFETY: the arrays have four elements; alignment is not required.
        unsafe {
            let weight = _mm_sub_epi32(all_weight, _mm_loadu_si128(weights.as_ptr().cast()));
            let cost = _mm_sub_epi32(all_cost, _mm_loadu_si128(costs.as_ptr().cast()));
            let products = _mm256_mul_epi32(_mm256_cvtepi32_epi64(weight), _mm256_cvtepi32_epi64(cost));
            let sum = _mm256_add_epi64(_mm256_loadu_si256(values.as_ptr().cast()), products);
            _mm256_storeu_si256(values.as_mut_ptr().cast(), sum);
            least = _mm256_blendv_epi8(least, sum, _mm256_cmpgt_epi64(least, sum));
        }
    }
    let mut lanes = [0; 4];
    // SAFETY: the array has the size of a vector.
    unsafe { _mm256_storeu_si256(lanes.as_mut_ptr().cast(), least) };
    let of_rest = add_products_scalar(rest, (weight, last_weights), (cost, last_costs));
    lanes.into_iter().fold(of_rest, i64::min)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn number() -> impl Strategy<Value = i32> {
        prop_oneof![-(1 << 30) + 1..1 << 30, -9..9]
    }

    /// Four rows of complete vectors whose differences stay below a bound.
    fn rows<E: Clone + std::fmt::Debug + 'static>(
        bound: i64,
        longest: usize,
        element: fn(i64) -> E,
    ) -> impl Strategy<Value = [Vec<E>; 4]> {
        let value = prop_oneof![Just(0), Just(bound), 0..=bound];
        (prop::collection::vec([value.clone(), value.clone(), value.clone(), value], 0..=longest), -bound..=0)
            .prop_map(move |(columns, low)| {
                [0, 1, 2, 3].map(|row| {
                    let mut values: Vec<E> =
                        columns.iter().map(|column| element(column[row] + low)).collect();
                    values.resize(values.len().next_multiple_of(32), element(0));
                    values
                })
            })
    }

    fn same<E>(
        rows: &[Vec<E>; 4],
        vectors: fn(Token, Pair<'_, E>, Pair<'_, E>) -> i64,
        twin: fn(Pair<'_, E>, Pair<'_, E>) -> i64,
    ) -> Result<(), TestCaseError> {
        let [from, to, here, there] = rows.each_ref().map(Vec::as_slice);
        if let Some(token) = Token::detect() {
            prop_assert_eq!(vectors(token, [from, to], [here, there]), twin([from, to], [here, there]));
        }
        Ok(())
    }

    proptest! {
        #[test]
        fn products_are_added_the_same(
            columns in prop::collection::vec((any::<i64>(), number(), number()), 0..40),
            weight in number(),
            cost in number(),
        ) {
            let mut values: Vec<i64> = columns.iter().map(|column| column.0).collect();
            let weights: Vec<i32> = columns.iter().map(|column| column.1).collect();
            let costs: Vec<i32> = columns.iter().map(|column| column.2).collect();
            let mut twin = values.clone();
            let least = add_products(Token::detect(), &mut values, (weight, &weights), (cost, &costs));
            prop_assert_eq!(least, add_products_scalar(&mut twin, (weight, &weights), (cost, &costs)));
            prop_assert_eq!(values, twin);
        }

        #[test]
        fn bytes_sum_to_the_same(rows in rows(127, 700, |value| value as i8)) {
            same(&rows, dot_i8, scalar_i8)?;
        }

        #[test]
        fn words_sum_to_the_same(small in rows(1500, 700, |value| value as i16), one in rows(32_767, 1, |value| value as i16)) {
            same(&small, dot_i16, scalar_i16)?;
            same(&one, dot_i16, scalar_i16)?;
        }

        #[test]
        fn double_words_sum_to_the_same(rows in rows(i64::from(i32::MAX), 2, |value| value as i32)) {
            same(&rows, dot_i32, scalar_i32)?;
        }

        #[test]
        fn many_double_words_sum_to_the_same(rows in rows(50_000_000, 700, |value| value as i32)) {
            same(&rows, dot_i32, scalar_i32)?;
        }
    }
}
