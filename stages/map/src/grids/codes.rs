//! Embeddings of grids in grids: the coordinates of the program become digits of those of the machine.
//!
//! A coordinate of the program is written with one or more digits in reflected Gray code, so that neighbours
//! differ by one in one digit. Every digit is part of a coordinate of the machine, where it has a stride. One
//! digit per axis is the identity up to the order of the axes. Several digits of one coordinate on different
//! axes are a snake, which splits a dimension; on the same axis, they fold it: a ring on a line. A digit on
//! the slots of a node cuts blocks. The expected costs of all such codes are compared, as long as there are not
//! too many.

use super::lattice::{Axis, MOST, Point};

/// Maximum digits of a coordinate.
const MOST_DIGITS: usize = 4;
/// Maximum number of digits that are tried.
const MOST_TRIES: u32 = 100_000;
/// Number of the cheapest codes to return.
const KEPT: usize = 8;
/// Cost of a step inside a node, relative to a link.
const INSIDE: f64 = 0.05;

/// A digit of a program coordinate: its axis of the machine, number of values, and stride there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Digit {
    axis: usize,
    radix: u32,
    stride: u32,
}

/// The digits of every program coordinate, least significant first.
#[derive(Debug, Clone)]
pub(super) struct Code {
    digits: Vec<Vec<Digit>>,
}

/// The axes of the machine; the last one numbers the slots of a node.
pub(super) struct Target<'a> {
    pub(super) axes: &'a [Axis],
    pub(super) slots: u32,
}

impl Code {
    /// Point of the machine and slot of the node for a point of the program.
    pub(super) fn place(&self, point: &Point, target: &Target<'_>) -> (Point, u32) {
        let (mut there, mut slot) = ([0; MOST], 0);
        for (digits, &at) in self.digits.iter().zip(point) {
            each(digits, at.unsigned_abs().into(), |digit, value| match there.get_mut(digit.axis) {
                Some(there) if digit.axis < target.axes.len() => *there += (value * digit.stride) as i16,
                _ => slot += value * digit.stride,
            });
        }
        (there, slot)
    }
}

/// Calls `visit` with every digit of a number in reflected Gray code and its value.
fn each(digits: &[Digit], mut number: u32, mut visit: impl FnMut(&Digit, u32)) {
    let mut size: u32 = digits.iter().map(|digit| digit.radix).product();
    for digit in digits.iter().rev() {
        size /= digit.radix;
        let value = number / size;
        number %= size;
        if value % 2 == 1 {
            number = size - 1 - number;
        }
        visit(digit, value);
    }
}

/// The cheapest codes, by expected cost. `weights` are the mean weights of the edges along the axes of the
/// program.
pub(super) fn cheapest(program: &[Axis], weights: &[f64], target: &Target<'_>) -> Vec<Code> {
    let lengths: Vec<u32> = target.axes.iter().map(|axis| axis.length).chain([target.slots]).collect();
    let mut search = Search {
        program,
        weights,
        target,
        used: vec![1; lengths.len()],
        lengths,
        digits: vec![Vec::new(); program.len()],
        left: MOST_TRIES,
        found: Vec::new(),
    };
    search.extend(0, 0.0);
    search.found.into_iter().map(|(_, digits)| Code { digits }).collect()
}

struct Search<'a> {
    program: &'a [Axis],
    weights: &'a [f64],
    target: &'a Target<'a>,
    /// Length of every axis of the machine, and the stride of its next digit.
    lengths: Vec<u32>,
    used: Vec<u32>,
    digits: Vec<Vec<Digit>>,
    left: u32,
    /// Cheapest first.
    found: Vec<(f64, Vec<Vec<Digit>>)>,
}

impl Search<'_> {
    /// Adds the digits of an axis and of all later ones; `cost` is that of the earlier ones.
    fn extend(&mut self, axis: usize, cost: f64) {
        let is_worse = self.found.len() == KEPT && self.found.last().is_some_and(|last| cost >= last.0);
        if is_worse || self.left == 0 {
            return;
        }
        let Some(length) = self.program.get(axis).map(|axis| axis.length) else {
            let at = self.found.partition_point(|found| found.0 <= cost);
            self.found.insert(at, (cost, self.digits.clone()));
            self.found.truncate(KEPT);
            return;
        };
        let needed: u64 = self.program[axis..].iter().map(|axis| u64::from(axis.length)).product();
        let room: u64 = (0..self.used.len()).map(|there| u64::from(self.room(there))).product();
        if needed <= room {
            self.split(axis, length, cost);
        }
    }

    /// Adds a digit for a number of values of an axis, and further ones for the rest.
    fn split(&mut self, axis: usize, rest: u32, cost: f64) {
        if rest == 1 {
            let own = self.cost(axis);
            return self.extend(axis + 1, cost + own);
        }
        if self.digits[axis].len() == MOST_DIGITS || self.left == 0 {
            return;
        }
        self.left -= 1;
        for there in 0..self.used.len() {
            let (room, stride) = (self.room(there), self.used[there]);
            for radix in (2..=room.min(rest)).rev() {
                let is_useful = radix == rest || rest.is_multiple_of(radix) || room.is_multiple_of(radix);
                if !is_useful {
                    continue;
                }
                self.digits[axis].push(Digit { axis: there, radix, stride });
                self.used[there] = stride * radix;
                self.split(axis, rest.div_ceil(radix), cost);
                self.used[there] = stride;
                self.digits[axis].pop();
            }
        }
    }

    /// Number of values that the next digit may take on an axis of the machine.
    fn room(&self, there: usize) -> u32 {
        self.lengths[there] / self.used[there]
    }

    /// Expected cost of the edges along an axis of the program, with its present digits.
    fn cost(&self, axis: usize) -> f64 {
        let Axis { length, is_periodic } = self.program[axis];
        let digits = &self.digits[axis];
        let target = self.target.axes;
        let place = |number: u32| {
            let mut at = [0u32; MOST + 1];
            each(digits, number, |digit, value| at[digit.axis] += value * digit.stride);
            at
        };
        let between = |one: &[u32; MOST + 1], other: &[u32; MOST + 1]| -> f64 {
            let inside = if one[target.len()] == other[target.len()] { 0.0 } else { INSIDE };
            let along = target.iter().zip(one.iter().zip(other)).map(|(axis, (one, other))| {
                let steps = one.abs_diff(*other);
                f64::from(if axis.is_periodic { steps.min(axis.length - steps) } else { steps })
            });
            inside + along.sum::<f64>()
        };
        let points: Vec<_> = (0..length).map(place).collect();
        let mut sum: f64 = points.windows(2).map(|pair| between(&pair[0], &pair[1])).sum();
        if let (true, [first, .., last]) = (is_periodic, &points[..]) {
            sum += between(first, last);
        }
        self.weights[axis] * sum / f64::from(length)
    }
}
