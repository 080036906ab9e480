//! Random geometric graphs as programs.

use std::f64::consts::PI;

use hopmap_model::{Error, TaskGraph, require, seed_stream};
use hopmap_random::{Pcg64, Rng, SeedableRng};

use crate::error::{InstanceError, MAX_PAIRS};
use crate::params::{GeometricParams, GeometricWeights};
use crate::random::{Pair, both_ways, check_ranks, pairs_of_degree};

/// Length of a side of the square or cube as an integer.
const SIDE: f64 = 2_147_483_648.0;

/// Maximum radius in sides: larger than the diagonal of the cube.
const MOST_RADIUS: f64 = 1.75;

/// Position of a rank.
type Point = [u32; 3];

/// A number below 2^31.
fn coordinate(draws: &mut Pcg64) -> u32 {
    (draws.next_u64() >> 33) as u32
}

/// A random geometric graph: n points drawn in the unit square or cube; those within a radius of each other
/// are neighbours.
///
/// Source: Penrose, "Random Geometric Graphs", 2003. Coordinates and distances are integers in units of
/// 2^-31 sides. Rank numbers are independent of positions.
pub fn geometric(params: &GeometricParams) -> Result<TaskGraph, Error> {
    let radius = check(params)?;
    let mut draws = Pcg64::from_seed(seed_stream("instance/geometric", params.seed, 0));
    let mut point = || {
        let [x, y] = [(); 2].map(|()| coordinate(&mut draws));
        [x, y, if params.dimensions == 3 { coordinate(&mut draws) } else { 0 }]
    };
    let points: Vec<Point> = (0..params.n).map(|_| point()).collect();
    let pairs = Cells::new(&points, radius, params.dimensions).pairs(&points, radius);
    let bytes = u64::from(params.bytes);
    Ok(both_ways(params.n, &pairs, |(one, other)| match params.weights {
        GeometricWeights::Equal => bytes,
        GeometricWeights::Closeness => {
            let distance = square(points[one as usize], points[other as usize]).isqrt();
            (bytes * (radius - distance) / radius).max(1)
        }
    }))
}

/// Checks the parameters and returns the radius.
pub(crate) fn check(params: &GeometricParams) -> Result<u64, Error> {
    check_ranks(params.n)?;
    let dimensions = params.dimensions;
    require(matches!(dimensions, 2 | 3), "dimensions", dimensions, "2 (a square) or 3 (a cube)")?;
    if params.bytes > 1 << 30 {
        return Err(InstanceError::sizes(params.bytes, params.bytes).into());
    }
    let others = f64::from(params.n - 1);
    let radius = match (params.radius, params.degree) {
        (Some(_), Some(_)) => {
            let help = "remove one of them: degree determines the radius";
            return Err(InstanceError::new("radius and degree cannot be combined", help).into());
        }
        (Some(radius), None) => radius,
        (None, degree) => {
            let degree = degree.unwrap_or_else(|| others.min(8.0));
            pairs_of_degree(params.n, degree)?;
            let volume = degree / others.max(1.0);
            match params.dimensions {
                2 => libm::sqrt(volume / PI),
                _ => libm::cbrt(0.75 * volume / PI),
            }
        }
    };
    let allowed = format!("0 to {MOST_RADIUS}, as a fraction of a side of the square, such as 0.05");
    require((0.0..=MOST_RADIUS).contains(&radius), "radius", radius, allowed)?;
    let volume = match params.dimensions {
        2 => PI * radius * radius,
        _ => PI * radius * radius * radius / 0.75,
    };
    if f64::from(params.n) * others / 2.0 * volume.min(1.0) > MAX_PAIRS as f64 {
        return Err(InstanceError::too_many_pairs().into());
    }
    Ok((radius * SIDE) as u64)
}

/// Square of the distance of two points.
fn square(one: Point, other: Point) -> u64 {
    let along = |axis: usize| {
        let distance = u64::from(one[axis].abs_diff(other[axis]));
        distance * distance
    };
    along(0) + along(1) + along(2)
}

/// Points by cell of a grid. Points within the radius are in the same or in adjacent cells.
struct Cells {
    /// Number of cells along every dimension.
    across: [u64; 3],
    /// Start of the points of every cell, and the end.
    begins: Vec<u32>,
    /// Points with their ranks by cell; cells along the last dimension are consecutive.
    points: Vec<(Point, u32)>,
}

impl Cells {
    fn new(points: &[Point], radius: u64, dimensions: u8) -> Self {
        let fitting = (SIDE as u64).checked_div(radius).unwrap_or(u64::MAX);
        // At most about one cell per point: smaller cells only cost memory.
        let enough = match dimensions {
            2 => libm::sqrt(points.len() as f64) as u64,
            _ => libm::cbrt(points.len() as f64) as u64,
        };
        let across = fitting.min(enough).max(1);
        let across = if dimensions == 3 { [across; 3] } else { [1, across, across] };
        let mut cells = Self { across, begins: Vec::new(), points: vec![([0; 3], 0); points.len()] };
        let mut begins = vec![0u32; across.iter().product::<u64>() as usize + 1];
        for &point in points {
            begins[cells.cell(cells.place(point)) + 1] += 1;
        }
        for cell in 1..begins.len() {
            begins[cell] += begins[cell - 1];
        }
        let mut next = begins.clone();
        for (rank, &point) in points.iter().enumerate() {
            let at = &mut next[cells.cell(cells.place(point))];
            cells.points[*at as usize] = (point, rank as u32);
            *at += 1;
        }
        Self { begins, ..cells }
    }

    /// Indices of the cell of a point along every dimension; in the square the first one is unused.
    fn place(&self, [x, y, z]: Point) -> [u64; 3] {
        let along = |coordinate: u32, across: u64| (u64::from(coordinate) * across) >> 31;
        [along(z, self.across[0]), along(y, self.across[1]), along(x, self.across[2])]
    }

    fn cell(&self, [outer, middle, inner]: [u64; 3]) -> usize {
        ((outer * self.across[1] + middle) * self.across[2] + inner) as usize
    }

    /// All pairs of points within the radius, sorted.
    fn pairs(&self, points: &[Point], radius: u64) -> Vec<Pair> {
        let mut pairs: Vec<Pair> = Vec::new();
        for (rank, &point) in points.iter().enumerate() {
            let first = pairs.len();
            let [outer, middle, inner] = self.place(point);
            let around = |place: u64, across: u64| place.saturating_sub(1)..=(place + 1).min(across - 1);
            let last = around(inner, self.across[2]);
            for outer in around(outer, self.across[0]) {
                for middle in around(middle, self.across[1]) {
                    let begin = self.begins[self.cell([outer, middle, *last.start()])] as usize;
                    let end = self.begins[self.cell([outer, middle, *last.end()]) + 1] as usize;
                    let near = |&&(other, name): &&(Point, u32)| {
                        name as usize > rank && square(point, other) <= radius * radius
                    };
                    let found = self.points[begin..end].iter().filter(near);
                    pairs.extend(found.map(|&(_, name)| (rank as u32, name)));
                }
            }
            pairs[first..].sort_unstable();
        }
        pairs
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn params(n: u32) -> GeometricParams {
        serde_json::from_value(serde_json::json!({ "n": n })).unwrap()
    }

    /// Away from the border, ranks have the requested number of neighbours.
    #[test]
    fn degrees_match_the_request() {
        for (dimensions, border) in [(2, 0.04), (3, 0.16)] {
            let params = GeometricParams { dimensions, degree: Some(12.0), ..params(20_000) };
            let mean = geometric(&params).unwrap().edges.len() as f64 / 20_000.0;
            assert!((12.0 * (1.0 - border)..12.0).contains(&mean), "{dimensions}: {mean}");
        }
    }

    #[test]
    fn the_graph_of_a_seed_never_changes() {
        let graph =
            geometric(&GeometricParams { weights: GeometricWeights::Closeness, ..params(1000) }).unwrap();
        let edge = |at: usize| (graph.edges[at].pair(), graph.edges[at].bytes);
        assert_eq!([0, 1999, 3999].map(edge), [((0, 104), 500), ((259, 649), 369), ((516, 120), 631)]);
    }

    #[test]
    fn invalid_parameters_are_rejected() {
        let message = |change: fn(&mut GeometricParams)| {
            let mut params = params(100);
            change(&mut params);
            geometric(&params).unwrap_err().to_string()
        };
        assert_eq!(message(|p| p.n = 0), "`n` = 0 is out of range");
        assert_eq!(message(|p| p.dimensions = 4), "`dimensions` = 4 is out of range");
        assert_eq!(message(|p| p.degree = Some(100.0)), "`degree` = 100 is out of range");
        assert_eq!(message(|p| p.radius = Some(f64::NAN)), "`radius` = NaN is out of range");
        assert_eq!(message(|p| p.radius = Some(2.0)), "`radius` = 2 is out of range");
        assert_eq!(message(|p| p.bytes = 1 << 31), "bytes is [2147483648, 2147483648]");
        let both = |p: &mut GeometricParams| (p.radius, p.degree) = (Some(0.1), Some(3.0));
        assert_eq!(message(both), "radius and degree cannot be combined");
        let dense = |p: &mut GeometricParams| (p.n, p.radius) = (1 << 20, Some(0.1));
        assert_eq!(message(dense), "the graph has more than 67108864 pairs of neighbours");
    }

    proptest! {
        #[test]
        fn neighbours_are_all_within_the_radius(
            n in 1u32..80, dimensions in 2u8..4, radius in prop_oneof![0.0..0.4f64, 0.0..=1.75f64], seed in 0u64..99,
        ) {
            let params = GeometricParams { dimensions, radius: Some(radius), seed, ..params(n) };
            let radius = check(&params).unwrap();
            let mut draws = Pcg64::from_seed(seed_stream("instance/geometric", seed, 0));
            let points: Vec<Point> = (0..n)
                .map(|_| {
                    let (x, y) = (coordinate(&mut draws), coordinate(&mut draws));
                    [x, y, if dimensions == 3 { coordinate(&mut draws) } else { 0 }]
                })
                .collect();
            let graph = geometric(&params).unwrap();
            prop_assert!(graph.check().is_ok());
            let mut expected = Vec::new();
            for one in 0..n {
                for other in (0..n).filter(|&other| other != one) {
                    if square(points[one as usize], points[other as usize]) <= radius * radius {
                        expected.push((one, other));
                    }
                }
            }
            prop_assert_eq!(graph.edges.iter().map(hopmap_model::Edge::pair).collect::<Vec<_>>(), expected);
            prop_assert!(graph.edges.iter().all(|edge| edge.bytes == 1024));
        }

        #[test]
        fn the_closer_the_more_is_sent(seed in 0u64..99) {
            let weights = GeometricWeights::Closeness;
            let near = GeometricParams { radius: Some(1.0), weights, bytes: 1000, seed, ..params(30) };
            let graph = geometric(&near).unwrap();
            prop_assert!(graph.edges.iter().all(|edge| (1..=1000).contains(&edge.bytes)));
            // Half the radius keeps only the pairs that send more than half.
            let half = geometric(&GeometricParams { radius: Some(0.5), ..near }).unwrap();
            for edge in &graph.edges {
                let is_near = half.edges.iter().any(|other| other.pair() == edge.pair());
                let range = if is_near { 500..=1000 } else { 1..=500 };
                prop_assert!(range.contains(&edge.bytes));
            }
        }
    }
}
