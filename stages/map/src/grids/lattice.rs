//! Recognition of grids in graphs: every vertex gets integer coordinates.
//!
//! Coordinates grow from one vertex. Two neighbours of a vertex that lie along different axes have another
//! common neighbour, which completes the square; two along the same axis have none. A vertex with three placed
//! corners of a square is therefore at the fourth, and a neighbour that spans squares with those along all
//! other axes continues a line. The vertex with the most placed neighbours comes first, so that a few missing
//! vertices, edges or extra edges are outvoted. Edges between coordinates that are not adjacent give the
//! lengths of periodic axes. A ring of four is a square of two axes of two.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

/// Maximum number of axes.
pub(super) const MOST: usize = 8;
/// Coordinates of a vertex; those of missing axes are zero.
pub(super) type Point = [i16; MOST];

/// Maximum mean degree of a graph: that of a box stencil in four dimensions.
const MOST_NEIGHBOURS: usize = 80;
/// Vertices at which the number of axes is counted.
const SAMPLE: usize = 64;
/// Minimum fractions of placed vertices and of edges between adjacent points.
const LEAST_PLACED: f64 = 0.6;
const LEAST_ADJACENT: f64 = 0.7;
/// Minimum number of edges across the seam of a periodic axis, relative to a full grid.
const LEAST_SEAM: f64 = 0.3;
/// Outer layers with a smaller fraction of the vertices of a mean layer are outliers.
const LEAST_LAYER: f64 = 0.2;
/// Least Jaccard indices of the closed neighbourhoods of the ends of an edge along an axis, in a box stencil.
/// They are 1/2 along an axis, up to 2/7 along a diagonal inside and 4/9 at a border. Missing vertices change
/// both, so lower values are tried as well.
const ALONG_AXIS: [f64; 4] = [0.47, 0.43, 0.39, 0.35];
/// The same for all edges: 4/23 along a diagonal of three dimensions, and a few neighbours by chance for an
/// edge that does not belong to the stencil.
const OF_STENCIL: f64 = 0.13;

/// The neighbours of every vertex, sorted.
pub(crate) type Graph = Vec<Vec<u32>>;

/// An axis of a grid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Axis {
    pub(super) length: u32,
    pub(super) is_periodic: bool,
}

/// A grid; some vertices may have no place in it, and some points no vertex.
#[derive(Debug)]
pub(super) struct Lattice {
    pub(super) axes: Vec<Axis>,
    pub(super) points: Vec<Option<Point>>,
}

impl Lattice {
    /// Recognises a graph that is a grid but for a few vertices and edges.
    pub(super) fn recognise(graph: &Graph) -> Option<Self> {
        let ends: usize = graph.iter().map(Vec::len).sum();
        if graph.len() < 2 || ends > MOST_NEIGHBOURS * graph.len() {
            return None;
        }
        if graph.iter().all(|neighbours| neighbours.len() <= 2) {
            return line(graph);
        }
        if !is_box(graph) {
            return Self::grown(graph);
        }
        let graph = similar(graph, OF_STENCIL);
        ALONG_AXIS.iter().find_map(|&least| Self::grown(&similar(&graph, least)))
    }

    /// Recognises a grid whose edges are along its axes.
    fn grown(graph: &Graph) -> Option<Self> {
        let mut growth = Growth::begin(graph)?;
        growth.grow();
        growth.wrap();
        growth.clean();
        growth.grow();
        growth.lattice()
    }
}

/// The grid of a path or a ring.
fn line(graph: &Graph) -> Option<Lattice> {
    let begin = graph.iter().position(|neighbours| neighbours.len() == 1);
    let mut points = vec![None; graph.len()];
    let (mut next, mut length) = (Some(begin.unwrap_or(0) as u32), 0);
    while let Some(vertex) = next {
        let mut point = [0; MOST];
        point[0] = i16::try_from(length).ok()?;
        points[vertex as usize] = Some(point);
        length += 1;
        next = graph[vertex as usize].iter().copied().find(|&other| points[other as usize].is_none());
    }
    let axes = vec![Axis { length, is_periodic: begin.is_none() }];
    (length as usize == graph.len()).then_some(Lattice { axes, points })
}

/// Whether most edges are in two triangles, as in box stencils.
fn is_box(graph: &Graph) -> bool {
    let ends: usize = graph.iter().map(Vec::len).sum();
    let in_triangles = |(vertex, neighbours): (usize, &Vec<u32>)| {
        neighbours.iter().filter(|&&other| common(graph, vertex as u32, other).nth(1).is_some()).count()
    };
    2 * graph.iter().enumerate().map(in_triangles).sum::<usize>() > ends
}

/// The edges whose ends have at least this Jaccard index of closed neighbourhoods.
fn similar(graph: &Graph, least: f64) -> Graph {
    let is_similar = |one: usize, other: u32| {
        let shared = 2 + common(graph, one as u32, other).count();
        let all = graph[one].len() + graph[other as usize].len() + 2 - shared;
        shared as f64 >= least * all as f64
    };
    let kept = |(vertex, neighbours): (usize, &Vec<u32>)| -> Vec<u32> {
        neighbours.iter().copied().filter(|&other| is_similar(vertex, other)).collect()
    };
    graph.iter().enumerate().map(kept).collect()
}

/// The common neighbours of two vertices.
fn common(graph: &Graph, one: u32, other: u32) -> impl Iterator<Item = u32> + '_ {
    let second = &graph[other as usize];
    let mut from = 0;
    graph[one as usize].iter().copied().filter(move |vertex| {
        while second.get(from).is_some_and(|next| next < vertex) {
            from += 1;
        }
        second.get(from) == Some(vertex)
    })
}

/// Coordinates during growth.
struct Growth<'g> {
    graph: &'g Graph,
    axes: usize,
    points: Vec<Option<Point>>,
    vertices: HashMap<Point, u32>,
    /// Lengths of periodic axes, once known; otherwise zero.
    periods: Point,
}

impl<'g> Growth<'g> {
    /// Places one vertex and its neighbours.
    fn begin(graph: &'g Graph) -> Option<Self> {
        let step = graph.len().div_ceil(SAMPLE);
        let frames: Vec<Frame> =
            (0..graph.len() as u32).step_by(step).map(|vertex| Frame::new(graph, vertex)).collect();
        let count = |axes: usize| frames.iter().filter(|frame| frame.ahead.len() == axes).count();
        let axes = (2..=MOST).max_by_key(|&axes| (count(axes), axes)).filter(|&axes| count(axes) > 0)?;
        let matching = frames.into_iter().filter(|frame| frame.ahead.len() == axes);
        let frame = matching.max_by_key(|frame| (frame.behind.len(), Reverse(frame.vertex)))?;
        let mut growth = Self {
            graph,
            axes,
            points: vec![None; graph.len()],
            vertices: HashMap::new(),
            periods: [0; MOST],
        };
        growth.place(frame.vertex, [0; MOST]);
        for (axis, &vertex) in frame.ahead.iter().enumerate() {
            growth.place(vertex, moved([0; MOST], axis, 1));
        }
        for (axis, vertex) in frame.behind {
            growth.place(vertex, moved([0; MOST], axis, -1));
        }
        Some(growth)
    }

    fn place(&mut self, vertex: u32, point: Point) {
        self.points[vertex as usize] = Some(point);
        self.vertices.insert(point, vertex);
    }

    fn placed(&self, vertex: u32) -> impl Iterator<Item = (u32, Point)> + '_ {
        let neighbours = self.graph[vertex as usize].iter();
        neighbours.filter_map(|&other| Some((other, self.points[other as usize]?)))
    }

    /// Places vertices next to placed ones, those with the most placed neighbours first.
    fn grow(&mut self) {
        let mut open = BinaryHeap::new();
        let mut number = 0u32;
        for vertex in 0..self.graph.len() as u32 {
            self.propose(vertex, &mut number, &mut open);
        }
        while let Some((score, Reverse(turn), vertex)) = open.pop() {
            let Some((now, point)) = self.predict(vertex) else { continue };
            if now < score {
                open.push((now, Reverse(turn), vertex));
                continue;
            }
            self.place(vertex, point);
            for &neighbour in &self.graph[vertex as usize] {
                self.propose(neighbour, &mut number, &mut open);
            }
        }
    }

    fn propose(&self, vertex: u32, number: &mut u32, open: &mut BinaryHeap<(usize, Reverse<u32>, u32)>) {
        if let Some((score, _)) = self.predict(vertex) {
            open.push((score, Reverse(*number), vertex));
            *number += 1;
        }
    }

    /// The free point with the most placed neighbours of an unplaced vertex, and their number.
    fn predict(&self, vertex: u32) -> Option<(usize, Point)> {
        if self.points[vertex as usize].is_some() {
            return None;
        }
        let placed: Vec<(u32, Point)> = self.placed(vertex).collect();
        let mut points: Vec<Point> = Vec::new();
        for (index, &(one, first)) in placed.iter().enumerate() {
            for &(other, second) in &placed[..index] {
                for corner in common(self.graph, one, other) {
                    let Some(third) = self.points[corner as usize] else { continue };
                    let (Some((axis, _)), Some((across, step))) =
                        (self.step(third, first), self.step(third, second))
                    else {
                        continue;
                    };
                    if axis != across {
                        points.push(self.wrapped(moved(first, across, step)));
                    }
                }
            }
        }
        if points.is_empty() {
            points.extend(placed.iter().filter_map(|&(near, point)| self.straight(near, point, vertex)));
        }
        points.retain(|point| !self.vertices.contains_key(point));
        let score = |point: &Point| placed.iter().filter(|near| self.step(near.1, *point).is_some()).count();
        let scored = points.into_iter().map(|point| (score(&point), point));
        scored.reduce(|best, next| if next.0 > best.0 { next } else { best })
    }

    /// The point of a vertex that continues a line through a neighbour, if it spans squares with neighbours
    /// along all other axes.
    fn straight(&self, near: u32, point: Point, vertex: u32) -> Option<Point> {
        let mut crossed = [false; MOST];
        for (other, there) in self.placed(near) {
            if let Some((axis, _)) = self.step(point, there) {
                crossed[axis] |= common(self.graph, vertex, other).any(|corner| corner != near);
            }
        }
        let mut along = (0..self.axes).filter(|&axis| !crossed[axis]);
        let (axis, None) = (along.next()?, along.next()) else { return None };
        let ends = [1, -1].map(|step| self.wrapped(moved(point, axis, step)));
        ends.into_iter().find(|end| !self.vertices.contains_key(end))
    }

    /// The axis and direction from a point to an adjacent one.
    fn step(&self, from: Point, to: Point) -> Option<(usize, i16)> {
        let mut found = None;
        for axis in 0..self.axes {
            let period = self.periods[axis];
            let difference = match to[axis] - from[axis] {
                0 => continue,
                difference if period > 0 && difference == period - 1 => -1,
                difference if period > 0 && difference == 1 - period => 1,
                difference => difference,
            };
            if difference.abs() != 1 || found.is_some() {
                return None;
            }
            found = Some((axis, difference));
        }
        found
    }

    fn wrapped(&self, mut point: Point) -> Point {
        for (at, &period) in point.iter_mut().zip(&self.periods) {
            if period > 0 {
                *at = at.rem_euclid(period);
            }
        }
        point
    }

    fn edges(&self) -> impl Iterator<Item = [Point; 2]> + '_ {
        let vertices = (0..self.graph.len() as u32).zip(&self.points);
        vertices.filter_map(|(vertex, &point)| Some((vertex, point?))).flat_map(move |(vertex, point)| {
            let later = self.placed(vertex).filter(move |near| near.0 > vertex);
            later.map(move |near| [point, near.1])
        })
    }

    /// Finds periodic axes and wraps all points around them.
    fn wrap(&mut self) {
        let mut seams: HashMap<(usize, i16), usize> = HashMap::new();
        for [one, other] in self.edges() {
            let mut apart = (0..self.axes).filter(|&axis| one[axis] != other[axis]);
            if let (Some(axis), None) = (apart.next(), apart.next()) {
                let length = (one[axis] - other[axis]).abs() + 1;
                *seams.entry((axis, length)).or_default() += usize::from(length > 2);
            }
        }
        let mut seams: Vec<_> =
            seams.into_iter().map(|((axis, length), count)| (count, axis, length)).collect();
        seams.sort_unstable();
        for (count, axis, length) in seams {
            let full = self.vertices.len() as f64 / f64::from(length);
            if count as f64 >= LEAST_SEAM * full {
                self.periods[axis] = length;
            }
        }
        self.rebuild(|_| true);
    }

    /// Removes vertices that are adjacent to less than half of their placed neighbours, and outer layers with
    /// few vertices.
    fn clean(&mut self) {
        let is_in_order = |growth: &Self, vertex: u32, point: Point| {
            let adjacent = growth.placed(vertex).filter(|near| growth.step(point, near.1).is_some()).count();
            adjacent > 0 && 2 * adjacent >= growth.placed(vertex).count()
        };
        let vertices = (0..self.graph.len() as u32).zip(&self.points);
        let kept: Vec<bool> = vertices
            .map(|(vertex, point)| point.is_some_and(|point| is_in_order(self, vertex, point)))
            .collect();
        self.rebuild(|vertex| kept[vertex]);
        for axis in 0..self.axes {
            let (low, high) = self.range(axis);
            let points = self.points.clone();
            let inside = |point: Point| (low..=high).contains(&point[axis]);
            self.rebuild(|vertex| points[vertex].is_some_and(inside));
        }
    }

    /// The first and last layer of an axis, without outliers.
    fn range(&self, axis: usize) -> (i16, i16) {
        if self.periods[axis] > 0 {
            return (0, self.periods[axis] - 1);
        }
        let mut layers: Vec<i16> = self.points.iter().flatten().map(|point| point[axis]).collect();
        layers.sort_unstable();
        let runs: Vec<(i16, usize)> = layers.chunk_by(|a, b| a == b).map(|run| (run[0], run.len())).collect();
        let least = LEAST_LAYER * layers.len() as f64 / runs.len().max(1) as f64;
        let full = || runs.iter().filter(|run| run.1 as f64 >= least).map(|run| run.0);
        (full().min().unwrap_or(0), full().max().unwrap_or(0))
    }

    /// Wraps all points, and keeps the first vertex of each among those to keep.
    fn rebuild(&mut self, keeps: impl Fn(usize) -> bool) {
        let points = std::mem::replace(&mut self.points, vec![None; self.graph.len()]);
        self.vertices.clear();
        for (vertex, point) in points.into_iter().enumerate().filter(|(vertex, _)| keeps(*vertex)) {
            let Some(point) = point.map(|point| self.wrapped(point)) else { continue };
            if !self.vertices.contains_key(&point) {
                self.place(vertex as u32, point);
            }
        }
    }

    /// The grid, if it has most vertices and edges.
    fn lattice(self) -> Option<Lattice> {
        let (mut adjacent, mut all) = (0u32, 0u32);
        for [one, other] in self.edges() {
            all += 1;
            adjacent += u32::from(self.step(one, other).is_some());
        }
        let ranges: Vec<(i16, i16)> = (0..self.axes).map(|axis| self.range(axis)).collect();
        let of_range = |(axis, range): (usize, &(i16, i16))| Axis {
            length: (range.1 - range.0 + 1).unsigned_abs().into(),
            is_periodic: self.periods[axis] > 0,
        };
        let axes: Vec<Axis> = ranges.iter().enumerate().map(of_range).collect();
        let inside = |point: Point| {
            let mut at = [0; MOST];
            for (axis, range) in ranges.iter().enumerate() {
                if !(range.0..=range.1).contains(&point[axis]) {
                    return None;
                }
                at[axis] = point[axis] - range.0;
            }
            Some(at)
        };
        let points: Vec<Option<Point>> = self.points.into_iter().map(|point| inside(point?)).collect();
        let placed = points.iter().flatten().count();
        let room: f64 = axes.iter().map(|axis| f64::from(axis.length)).product();
        let is_grid = placed as f64 >= LEAST_PLACED * room.max(points.len() as f64)
            && f64::from(adjacent) >= LEAST_ADJACENT * f64::from(all);
        is_grid.then_some(Lattice { axes, points })
    }
}

fn moved(mut point: Point, axis: usize, step: i16) -> Point {
    point[axis] += step;
    point
}

/// A vertex and its neighbours along every axis.
struct Frame {
    vertex: u32,
    /// One neighbour along every axis.
    ahead: Vec<u32>,
    /// The opposite neighbours, with the axis.
    behind: Vec<(usize, u32)>,
}

impl Frame {
    /// Neighbours that span a square with each other lie along different axes; one that does so with all but
    /// one is opposite to that one.
    fn new(graph: &Graph, vertex: u32) -> Self {
        let neighbours = &graph[vertex as usize];
        let spans = |one: u32, other: u32| {
            let mut corners = common(graph, one, other).filter(|&corner| corner != vertex);
            corners.next().is_some()
                && corners.next().is_none()
                && graph[one as usize].binary_search(&other).is_err()
        };
        let squares =
            |&one: &u32| neighbours.iter().filter(|&&other| other != one && spans(one, other)).count();
        let mut order: Vec<(Reverse<usize>, u32)> =
            neighbours.iter().map(|one| (Reverse(squares(one)), *one)).collect();
        order.sort_unstable();
        let (mut ahead, mut rest) = (Vec::new(), Vec::new());
        for (_, neighbour) in order {
            let is_across = ahead.iter().all(|&other| spans(neighbour, other));
            if is_across { &mut ahead } else { &mut rest }.push(neighbour);
        }
        let mut behind: Vec<(usize, u32)> = Vec::new();
        for neighbour in rest {
            let mut along = (0..ahead.len()).filter(|&axis| !spans(neighbour, ahead[axis]));
            if let (Some(axis), None) = (along.next(), along.next())
                && behind.iter().all(|other| other.0 != axis)
            {
                behind.push((axis, neighbour));
            }
        }
        Self { vertex, ahead, behind }
    }
}
