//! Evaluations and exchanges of dense problems of the sizes of Taillard's tai27e to tai729e.

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use hopmap_objective::{Dense, DenseAssignment, Matrix, random};
use hopmap_random::{Pcg64, Rng, SeedableRng};

/// Evaluations timed together.
const EVALUATIONS: usize = 4096;
const SIZES: [usize; 4] = [27, 175, 343, 729];

fn main() {
    divan::main();
}

/// A symmetric matrix of values below a bound, half of them zero.
fn matrix(size: usize, bound: u64, random: &mut Pcg64) -> Option<Matrix> {
    let mut values = vec![0; size * size];
    for row in 0..size {
        for column in 0..row {
            let draw = random.next_u64();
            let value = if draw >> 63 == 0 { 0 } else { (draw % bound).cast_signed() };
            values[row * size + column] = value;
            values[column * size + row] = value;
        }
    }
    Matrix::new(size, values).ok()
}

fn problem(size: usize, bound: u64) -> Option<Dense> {
    let mut random = Pcg64::seed_from_u64(1);
    Dense::new(&matrix(size, bound, &mut random)?, &matrix(size, bound, &mut random)?).ok()
}

/// Pairs of different ranks.
fn pairs(size: usize) -> Vec<(u32, u32)> {
    let mut random = Pcg64::seed_from_u64(2);
    let mut below = |bound: usize| (random.next_u64() % bound as u64) as u32;
    (0..EVALUATIONS)
        .map(|_| {
            let (first, second) = (below(size), below(size - 1));
            (first, if second >= first { second + 1 } else { second })
        })
        .collect()
}

fn evaluate(bencher: Bencher<'_, '_>, problem: Option<&Dense>) {
    let Some(problem) = problem else { return };
    let size = problem.size();
    let Ok(assignment) = DenseAssignment::new(problem, &random(size, size, [1; 32])) else { return };
    let pairs = pairs(size);
    bencher.counter(ItemsCount::new(EVALUATIONS)).bench(|| {
        black_box(&pairs).iter().map(|&(first, second)| assignment.delta(first, second)).sum::<i64>()
    });
}

#[divan::bench(args = SIZES)]
fn evaluations_of_bytes(bencher: Bencher<'_, '_>, size: usize) {
    evaluate(bencher, problem(size, 42).as_ref());
}

#[divan::bench(args = SIZES)]
fn evaluations_of_bytes_without_vectors(bencher: Bencher<'_, '_>, size: usize) {
    evaluate(bencher, problem(size, 42).map(Dense::scalar).as_ref());
}

#[divan::bench(args = SIZES)]
fn evaluations_of_words(bencher: Bencher<'_, '_>, size: usize) {
    evaluate(bencher, problem(size, 1500).as_ref());
}

#[divan::bench(args = SIZES)]
fn evaluations_of_double_words(bencher: Bencher<'_, '_>, size: usize) {
    evaluate(bencher, problem(size, 1_000_000).as_ref());
}

#[divan::bench(args = SIZES)]
fn exchanges_of_bytes(bencher: Bencher<'_, '_>, size: usize) {
    let Some(problem) = problem(size, 42) else { return };
    let Ok(mut assignment) = DenseAssignment::new(&problem, &random(size, size, [1; 32])) else { return };
    let pairs = pairs(size);
    bencher.counter(ItemsCount::new(EVALUATIONS)).bench_local(|| {
        for &(first, second) in &pairs {
            assignment.exchange(first, second, 0);
        }
    });
}
