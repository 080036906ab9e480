//! Embedding of switches: on a grid, on a circle, or at distances as in the network.

use std::collections::BTreeMap;
use std::f64::consts::{FRAC_PI_2, TAU};

use super::geometry::Point;
use crate::layered::distances;
use crate::topology::direct::Grid;

/// Positions of nodes; neighbours are about one unit apart.
#[derive(Debug, Default)]
pub(super) struct Embedding {
    pub(super) places: Vec<Point>,
    /// For a grid, the angles at which cables may leave nodes.
    pub(super) angles: Option<Vec<f64>>,
    /// Pairs whose cable leads around a torus, the lesser first, with the direction in which it leaves that one.
    pub(super) around: BTreeMap<(usize, usize), Point>,
}

impl Embedding {
    /// Of nodes with these neighbours, all of them joined.
    pub(super) fn new(neighbours: &[Vec<usize>]) -> Self {
        if let Some(order) = ring(neighbours) {
            return Self { places: ring_places(&order), ..Self::default() };
        }
        let pairs = pairs(neighbours);
        match Grid::of(neighbours.len(), &pairs) {
            Some(grid) if neighbours.len() > 1 => Self::grid(&grid, neighbours.len(), &pairs),
            _ => Self { places: places(neighbours), ..Self::default() },
        }
    }

    fn grid(grid: &Grid, count: usize, pairs: &[(usize, usize)]) -> Self {
        let [across, down, planes] = grid.sizes;
        let is_turned = down > across;
        let turned = |point: Point| if is_turned { Point::new(point.y, point.x) } else { point };
        // Nodes behind each other are drawn on a diagonal: no cable along another dimension passes them.
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

/// Every pair of neighbours, the lesser one first.
pub(super) fn pairs(neighbours: &[Vec<usize>]) -> Vec<(usize, usize)> {
    let of = |a: usize| neighbours[a].iter().filter(move |&&b| a < b).map(move |&b| (a, b));
    (0..neighbours.len()).flat_map(of).collect()
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

/// Nodes of a ring, neighbours one unit apart, flat at the top where their number is even.
fn ring_places(order: &[usize]) -> Vec<Point> {
    let step = TAU / order.len() as f64;
    let first = -FRAC_PI_2 - if order.len().is_multiple_of(2) { step / 2.0 } else { 0.0 };
    circular_layout(order, first, 0.5 / libm::sin(step / 2.0))
}

/// Nodes in this order on a circle, from an angle on.
fn circular_layout(order: &[usize], first: f64, radius: f64) -> Vec<Point> {
    let step = TAU / order.len() as f64;
    let mut places = vec![Point::default(); order.len()];
    for (turn, &node) in order.iter().enumerate() {
        places[node] = Point::at_angle(first + step * turn as f64).times(radius);
    }
    places
}

/// Steps of the descent; large networks get fewer.
const STEPS: usize = 200;

/// Places of nodes that are all joined; neighbours are about one unit apart.
pub(super) fn places(neighbours: &[Vec<usize>]) -> Vec<Point> {
    let count = neighbours.len();
    if count < 2 {
        return vec![Point::default(); count];
    }
    let distances: Vec<Vec<f64>> = (0..count).map(|node| distances_from(neighbours, node)).collect();
    let steps = (STEPS * 60 / count.max(60)).max(30);
    let orders = [(0..count).collect(), depth_first(neighbours)];
    let mut starts = vec![by_landmarks(&distances)];
    starts.extend(orders.iter().map(|order: &Vec<usize>| circular_layout(order, 0.0, count as f64 / 6.0)));
    let ends: Vec<Vec<Point>> = starts.into_iter().map(|start| descend(start, &distances, steps)).collect();
    wide(best(neighbours, &distances, ends))
}

/// The places with the fewest crossings of those with nearly the least stress.
fn best(neighbours: &[Vec<usize>], distances: &[Vec<f64>], ends: Vec<Vec<Point>>) -> Vec<Point> {
    const MOST_PAIRS: usize = 300;
    let pairs = pairs(neighbours);
    let stresses: Vec<f64> = ends.iter().map(|places| stress(places, distances)).collect();
    let least = stresses.iter().copied().fold(f64::INFINITY, f64::min);
    let rated = ends.into_iter().zip(stresses).filter(|(_, stress)| *stress <= 1.6 * least + 1e-9);
    let rated = rated.map(|(places, stress)| {
        let crossings = if pairs.len() > MOST_PAIRS { 0 } else { crossings(&places, &pairs) };
        (crossings, stress, places)
    });
    let best = rated.min_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
    best.map(|(_, _, places)| places).unwrap_or_default()
}

/// How often lines between places cross.
fn crossings(places: &[Point], pairs: &[(usize, usize)]) -> usize {
    let side = |a: usize, b: usize, c: usize| {
        let (way, other) = (places[b].minus(places[a]), places[c].minus(places[a]));
        way.x * other.y - way.y * other.x > 0.0
    };
    let cross = |&(a, b): &(usize, usize), &(c, d): &(usize, usize)| {
        let shared = a == c || a == d || b == c || b == d;
        !shared && side(a, b, c) != side(a, b, d) && side(c, d, a) != side(c, d, b)
    };
    pairs
        .iter()
        .enumerate()
        .map(|(index, one)| pairs[..index].iter().filter(|two| cross(one, two)).count())
        .sum()
}

/// Nodes in the order in which a search finds them that goes on from the last one as long as it can.
fn depth_first(neighbours: &[Vec<usize>]) -> Vec<usize> {
    let mut order = Vec::with_capacity(neighbours.len());
    let mut is_found = vec![false; neighbours.len()];
    for start in 0..neighbours.len() {
        let mut stack = vec![start];
        while let Some(node) = stack.pop() {
            if !std::mem::replace(&mut is_found[node], true) {
                order.push(node);
                stack.extend(neighbours[node].iter().rev());
            }
        }
    }
    order
}

/// Cables from a node to every other one.
fn distances_from(neighbours: &[Vec<usize>], node: usize) -> Vec<f64> {
    let distances = distances(neighbours, [node]);
    // Nodes that are joined through hosts only are farther apart than any others.
    let farthest = distances.iter().flatten().copied().max().unwrap_or(0).max(1) + 1;
    distances.into_iter().map(|distance| distance.unwrap_or(farthest) as f64).collect()
}

/// Places by the distances from two pairs of nodes that are far apart, none exactly where another one is.
fn by_landmarks(distances: &[Vec<f64>]) -> Vec<Point> {
    let count = distances.len();
    let farthest = |from: &dyn Fn(usize) -> f64| {
        (0..count).max_by(|&a, &b| from(a).total_cmp(&from(b)).then(b.cmp(&a))).unwrap_or(0)
    };
    let west = farthest(&|node| distances[0][node]);
    let east = farthest(&|node| distances[west][node]);
    let aside = |node: usize| -(distances[west][node] - distances[east][node]).abs();
    let north = farthest(&|node| 4.0 * aside(node) + distances[west][node] + distances[east][node]);
    let south = farthest(&|node| 2.0 * aside(node) + distances[north][node]);
    (0..count)
        .map(|node| {
            let nudge = Point::at_angle(2.4 * node as f64).times(0.05);
            let x = (distances[west][node] - distances[east][node]) / 2.0;
            let y = (distances[north][node] - distances[south][node]) / 2.0;
            Point::new(x, y).plus(nudge)
        })
        .collect()
}

/// Moves one node after the other to where all others want it, the near ones most.
fn descend(mut places: Vec<Point>, distances: &[Vec<f64>], steps: usize) -> Vec<Point> {
    for _ in 0..steps {
        for node in 0..places.len() {
            let (mut sum, mut weights) = (Point::default(), 0.0);
            for other in (0..places.len()).filter(|&other| other != node) {
                let distance = distances[node][other].max(1.0);
                let weight = 1.0 / (distance * distance);
                let way = places[node].minus(places[other]);
                let wanted = places[other].plus(way.unit().times(distance));
                sum = sum.plus(wanted.times(weight));
                weights += weight;
            }
            places[node] = sum.times(1.0 / weights);
        }
    }
    places
}

fn stress(places: &[Point], distances: &[Vec<f64>]) -> f64 {
    let mut sum = 0.0;
    for (node, place) in places.iter().enumerate() {
        for (other, distance) in distances[node].iter().enumerate().take(node) {
            let relative = place.minus(places[other]).length() / distance.max(1.0) - 1.0;
            sum += relative * relative;
        }
    }
    sum
}

/// The same places turned so that they reach farther across than down.
fn wide(places: Vec<Point>) -> Vec<Point> {
    let middle = places.iter().fold(Point::default(), |sum, &place| sum.plus(place));
    let middle = middle.times(1.0 / places.len().max(1) as f64);
    let (mut across, mut down, mut both) = (0.0, 0.0, 0.0);
    for place in &places {
        let far = place.minus(middle);
        across += far.x * far.x;
        down += far.y * far.y;
        both += far.x * far.y;
    }
    let angle = -0.5 * libm::atan2(2.0 * both, across - down);
    let turn = Point::at_angle(angle);
    let turned = |place: Point| {
        let far = place.minus(middle);
        Point::new(far.x * turn.x - far.y * turn.y, far.x * turn.y + far.y * turn.x)
    };
    places.into_iter().map(turned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mesh_is_spread_out() {
        let (wide, high) = (6, 4);
        let neighbours: Vec<Vec<usize>> = (0..wide * high)
            .map(|node| {
                let near = |&other: &usize| {
                    let (a, b) = ((node % wide, node / wide), (other % wide, other / wide));
                    a.0.abs_diff(b.0) + a.1.abs_diff(b.1) == 1
                };
                (0..wide * high).filter(near).collect()
            })
            .collect();
        let places = places(&neighbours);
        for (node, others) in neighbours.iter().enumerate() {
            for &other in others {
                let length = places[node].minus(places[other]).length();
                assert!((0.6..1.4).contains(&length), "{node} to {other}: {length}");
            }
            for other in (0..node).filter(|other| !others.contains(other)) {
                let length = places[node].minus(places[other]).length();
                assert!(length > 0.7, "{node} and {other}: {length}");
            }
        }
    }
}
