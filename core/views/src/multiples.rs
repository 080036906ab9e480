//! Many small communication matrices side by side.

use std::fmt::Write;

use hopmap_model::{TaskGraph, Weight};

use crate::human::{Unit, quantity};
use crate::order::RankOrder;
use crate::scale::Axis;
use crate::svg::{Svg, shortened_inside};
use crate::theme::{RAMP, ramp_index};

/// Rows and columns of a small matrix at most.
const MOST_CELLS: usize = 48;
const SIDE: f64 = 128.0;
const GAP: f64 = 22.0;
const COLUMNS: usize = 6;
const TOP: f64 = 54.0;
/// Lines of text below a matrix.
const TEXT: f64 = 40.0;

/// A small matrix.
#[derive(Debug)]
pub struct SmallMatrix<'a> {
    /// What stands below it.
    pub name: &'a str,
    /// The program.
    pub graph: &'a TaskGraph,
    /// The order of its ranks, if it is another one than that of their numbers.
    pub order: Option<&'a RankOrder>,
}

/// Matrices of bytes side by side, senders down and receivers across, each on a logarithmic scale of its own.
#[must_use]
pub fn small_matrices(matrices: &[SmallMatrix<'_>], title: &str) -> String {
    let mut svg = Svg::new(title, "bytes; senders down, receivers across; each on its own scale");
    for (index, matrix) in matrices.iter().enumerate() {
        let x = (SIDE + GAP) * (index % COLUMNS) as f64;
        let y = TOP + (SIDE + TEXT) * (index / COLUMNS) as f64;
        draw(&mut svg, (x, y), matrix);
    }
    let columns = matrices.len().clamp(3, COLUMNS);
    let rows = matrices.len().div_ceil(COLUMNS);
    svg.finish((SIDE + GAP) * columns as f64, TOP + (SIDE + TEXT) * rows as f64)
}

fn draw(svg: &mut Svg, (x, y): (f64, f64), matrix: &SmallMatrix<'_>) {
    let (values, side) = cells(matrix);
    svg.rectangle(x, y, (SIDE, SIDE), 0.0, "b");
    let positive = || values.iter().copied().filter(|value| *value > 0.0);
    let low = positive().fold(f64::INFINITY, f64::min);
    if low.is_finite() {
        let axis = Axis::logarithmic(low, positive().fold(low, f64::max));
        svg.add(format_args!("<g transform=\"translate({x},{y})scale({})\">", SIDE / side as f64));
        for (colour, path) in paths(&values, side, &axis).into_iter().enumerate() {
            if !path.is_empty() {
                svg.add(format_args!("<path class=\"f{colour}\" d=\"{path}\"/>"));
            }
        }
        svg.close_group();
    }
    svg.text(x, y + SIDE + 14.0, "n w", &shortened_inside(matrix.name, SIDE + 6.0));
    let bytes = quantity(matrix.graph.bytes() as f64, Unit::Bytes);
    svg.text(x, y + SIDE + 27.0, "q n", &format!("{} ranks, {bytes}", matrix.graph.ranks()));
}

/// Sums row by row, and the number of rows.
fn cells(matrix: &SmallMatrix<'_>) -> (Vec<f64>, usize) {
    let ranks = matrix.graph.ranks();
    let mut place: Vec<Option<usize>> = vec![None; ranks];
    match matrix.order {
        None => place.iter_mut().enumerate().for_each(|(rank, place)| *place = Some(rank)),
        Some(order) => {
            for (position, &rank) in order.ranks.iter().enumerate() {
                if let Some(place) = place.get_mut(rank as usize) {
                    *place = Some(position);
                }
            }
        }
    }
    let positions = matrix.order.map_or(ranks, |order| order.ranks.len()).max(1);
    let share = positions.div_ceil(MOST_CELLS);
    let side = positions.div_ceil(share);
    let mut values = vec![0.0; side * side];
    for edge in &matrix.graph.edges {
        let of = |rank: u32| place.get(rank as usize).copied().flatten().map(|position| position / share);
        if let (Some(row), Some(column)) = (of(edge.source), of(edge.destination)) {
            values[row * side + column] += Weight::Bytes.of(edge);
        }
    }
    (values, side)
}

/// The squares of every colour.
fn paths(values: &[f64], side: usize, axis: &Axis) -> Vec<String> {
    let mut paths = vec![String::new(); RAMP];
    for (index, &value) in values.iter().enumerate().filter(|(_, value)| **value > 0.0) {
        // Writing to a string cannot fail.
        let _ = write!(paths[ramp_index(axis.at(value))], "M{} {}h1v1h-1z", index % side, index / side);
    }
    paths
}
