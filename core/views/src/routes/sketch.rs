//! Where switches stand to each other: on a grid, on a circle, or as far apart as they are in the network.

use std::collections::BTreeMap;

use super::geometry::Point;
use super::stress;
use crate::topology::direct::Grid;

/// Where nodes stand; neighbours are about one unit apart.
#[derive(Debug, Default)]
pub(super) struct Sketch {
    pub(super) places: Vec<Point>,
    /// Where nodes stand on a grid, the angles at which cables may leave any of them.
    pub(super) angles: Option<Vec<f64>>,
    /// Pairs whose cable leads around a torus, the lesser first, with the direction in which it leaves that one.
    pub(super) around: BTreeMap<(usize, usize), Point>,
}

impl Sketch {
    /// Of nodes with these neighbours, all of them joined.
    pub(super) fn new(neighbours: &[Vec<usize>]) -> Self {
        if let Some(order) = ring(neighbours) {
            return Self { places: circle(&order), ..Self::default() };
        }
        let pairs: Vec<(usize, usize)> = (0..neighbours.len())
            .flat_map(|a| neighbours[a].iter().filter(move |&&b| a < b).map(move |&b| (a, b)))
            .collect();
        match Grid::of(neighbours.len(), &pairs) {
            Some(grid) if neighbours.len() > 1 => Self::grid(&grid, neighbours.len(), &pairs),
            _ => Self { places: stress::places(neighbours), ..Self::default() },
        }
    }

    fn grid(grid: &Grid, count: usize, pairs: &[(usize, usize)]) -> Self {
        let [across, down, planes] = grid.sizes;
        let is_turned = down > across;
        let turned = |point: Point| if is_turned { Point::new(point.y, point.x) } else { point };
        // Nodes that are behind each other stand on a diagonal: no cable along another dimension passes them.
        let place = |node: usize| {
            let [column, row, plane] = grid.place(node);
            turned(Point::new((column * planes + plane) as f64, (row * planes + plane) as f64))
        };
        let directions = [Point::new(1.0, 0.0), Point::new(0.0, 1.0), Point::new(0.71, 0.71)];
        let around = |&(a, b): &(usize, usize)| {
            let step = grid.step(a, b).filter(|step| step.is_around)?;
            let towards = if grid.place(a) < grid.place(b) { -1.0 } else { 1.0 };
            Some(((a, b), turned(directions[step.dimension]).times(towards)))
        };
        let dimensions = if planes > 1 { 3 } else { 2 };
        let angles = directions[..dimensions]
            .iter()
            .flat_map(|direction| [direction.angle(), direction.times(-1.0).angle()])
            .collect();
        Self {
            places: (0..count).map(place).collect(),
            angles: Some(angles),
            around: pairs.iter().filter_map(around).collect(),
        }
    }
}

/// The nodes of a ring in turn.
fn ring(neighbours: &[Vec<usize>]) -> Option<Vec<usize>> {
    if neighbours.len() < 3 || neighbours.iter().any(|others| others.len() != 2) {
        return None;
    }
    let mut order = vec![0];
    let (mut before, mut node) = (0, neighbours[0][0]);
    while node != 0 {
        order.push(node);
        let others = &neighbours[node];
        let next = if others[0] == before { others[1] } else { others[0] };
        (before, node) = (node, next);
    }
    // There may be several rings that only hosts join.
    (order.len() == neighbours.len()).then_some(order)
}

/// Nodes on a circle, flat at the top where their number is even.
fn circle(order: &[usize]) -> Vec<Point> {
    let step = std::f64::consts::TAU / order.len() as f64;
    let first = -std::f64::consts::FRAC_PI_2 - if order.len().is_multiple_of(2) { step / 2.0 } else { 0.0 };
    let radius = 0.5 / libm::sin(step / 2.0);
    let mut places = vec![Point::default(); order.len()];
    for (turn, &node) in order.iter().enumerate() {
        places[node] = Point::at_angle(first + step * turn as f64).times(radius);
    }
    places
}
