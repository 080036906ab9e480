//! Where the boxes of a machine stand.

use std::collections::BTreeMap;

use hopmap_model::SystemGraph;

use super::around;
use super::geometry::{Area, Curve, Point};
use super::layers;
use super::network::Network;
use super::sketch::Sketch;

/// Switches, and hosts at none, that are drawn at most.
const MOST_PILLARS: usize = 400;
/// Nodes from which on only switches are drawn, with the number of their hosts.
const MOST_NODES: usize = 128;
/// Between parts that are not joined.
const BETWEEN: f64 = 44.0;
/// Length of the rest of a cable that leads around a torus.
pub(super) const STUB: f64 = 24.0;
/// Between a cable and a box that it passes.
const PASSING: f64 = 6.0;

/// Widths and heights of boxes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    pub(super) switch: Point,
    pub(super) host: Point,
    /// Of a host whose name stands upright.
    pub(super) upright: Point,
}

/// Where boxes stand, and where cables end.
#[derive(Debug, Default)]
pub(super) struct Standing {
    pub(super) areas: BTreeMap<usize, Area>,
    /// Where the cable from a node to another leaves its box; from the middle of the box where it is not said.
    pub(super) ends: BTreeMap<(usize, usize), Point>,
    /// Cables that lead around a torus, the lesser node first, with the direction in which they leave that one.
    pub(super) around: BTreeMap<(usize, usize), Point>,
    pub(super) width: f64,
    pub(super) height: f64,
}

/// Whether every host has a box.
pub(super) fn has_hosts(system: &SystemGraph) -> bool {
    system.nodes.len() <= MOST_NODES
}

impl Standing {
    /// All that is drawn of a machine; nothing if it is too large.
    pub(super) fn new(network: &Network, sizes: &Sizes, has_hosts: bool) -> Option<Self> {
        let pillars = network.pillars().len();
        if pillars == 0 || pillars > MOST_PILLARS {
            return None;
        }
        let parts = network.parts();
        let of_part = |part: &Vec<usize>| {
            layers::standing(network, part, sizes, has_hosts).unwrap_or_else(|| {
                let sketch = Sketch::new(&network.within(part));
                around::standing(network, part, &sketch, sizes, has_hosts)
            })
        };
        Some(Self::packed(parts.iter().map(of_part).collect()))
    }

    /// Parts side by side, in rows.
    fn packed(parts: Vec<Self>) -> Self {
        let bounds: Vec<Area> = parts.iter().map(Self::bounds).collect();
        let widest = bounds.iter().map(|bounds| 2.0 * bounds.half.x).fold(900.0, f64::max);
        let mut all = Self::default();
        let (mut x, mut y, mut deepest) = (0.0, 0.0, 0.0);
        for (part, bounds) in parts.into_iter().zip(bounds) {
            let (width, height) = (2.0 * bounds.half.x, 2.0 * bounds.half.y);
            if x > 0.0 && x + width > widest {
                (x, y, deepest) = (0.0, y + deepest + BETWEEN, 0.0);
            }
            let by = Point::new(x - bounds.left(), y - bounds.top());
            all.areas.extend(part.areas.into_iter().map(|(node, area)| (node, area.moved(by))));
            all.ends.extend(part.ends.into_iter().map(|(pair, end)| (pair, end.plus(by))));
            all.around.extend(part.around);
            x += width + BETWEEN;
            deepest = f64::max(deepest, height);
            (all.width, all.height) = (all.width.max(x - BETWEEN), y + deepest);
        }
        all
    }

    /// What the boxes and the cables around them take.
    fn bounds(&self) -> Area {
        let of = |edge: &dyn Fn(&Area) -> f64, more: &dyn Fn(f64, f64) -> f64, start: f64| {
            self.areas.values().map(edge).fold(start, more)
        };
        let rim = if self.around.is_empty() { 0.0 } else { STUB + 4.0 };
        let left = of(&Area::left, &f64::min, f64::INFINITY) - rim;
        let right = of(&Area::right, &f64::max, f64::NEG_INFINITY) + rim;
        let top = of(&Area::top, &f64::min, f64::INFINITY) - rim;
        let bottom = of(&Area::bottom, &f64::max, f64::NEG_INFINITY) + rim;
        let middle = Point::new(f64::midpoint(left, right), f64::midpoint(top, bottom));
        Area::new(middle, right - left, bottom - top)
    }

    /// Moves everything.
    pub(super) fn shifted(mut self, by: Point) -> Self {
        self.areas.values_mut().for_each(|area| *area = area.moved(by));
        self.ends.values_mut().for_each(|end| *end = end.plus(by));
        self
    }

    /// The course of the cable from a node to another one, so far to the right of its middle, in two parts if it leads around; nothing if
    /// it is not drawn.
    pub(super) fn course(&self, from: usize, to: usize, by: f64) -> Vec<Curve> {
        let (Some(first), Some(last)) = (self.areas.get(&from), self.areas.get(&to)) else {
            return Vec::new();
        };
        let pair = (from.min(to), from.max(to));
        if let Some(&direction) = self.around.get(&pair) {
            let direction = if from < to { direction } else { direction.times(-1.0) };
            let leaves = stub(first, direction).aside(by).outside(Some(first), None);
            let arrives = stub(last, direction.times(-1.0)).reversed().aside(by).outside(None, Some(last));
            return vec![leaves, arrives];
        }
        if let Some((&a, &b)) = self.ends.get(&(from, to)).zip(self.ends.get(&(to, from))) {
            return vec![Curve::straight(a, b).aside(by)];
        }
        vec![self.passing(pair, from < to).aside(by).outside(Some(first), Some(last))]
    }

    /// A line between the middles of two boxes that is bent if another box is in its way.
    fn passing(&self, (a, b): (usize, usize), is_forth: bool) -> Curve {
        const BENDS: [f64; 10] = [22.0, -22.0, 40.0, -40.0, 64.0, -64.0, 96.0, -96.0, 140.0, -140.0];
        let (from, to) = (self.areas[&a].middle, self.areas[&b].middle);
        let is_free = |curve: &Curve| {
            let others = self.areas.iter().filter(|(node, _)| **node != a && **node != b);
            others.into_iter().all(|(_, area)| !meets(curve, area))
        };
        let straight = Curve::straight(from, to);
        let bent = || BENDS.iter().map(|&by| Curve::bent(from, to, by)).find(is_free);
        let curve = if is_free(&straight) { straight } else { bent().unwrap_or(straight) };
        if is_forth { curve } else { curve.reversed() }
    }
}

/// What is seen of a cable that leads around: from the middle of a box outwards.
fn stub(area: &Area, direction: Point) -> Curve {
    let part = |half: f64, along: f64| half / along.abs().max(1e-6);
    let reach = part(area.half.x, direction.x).min(part(area.half.y, direction.y));
    Curve::straight(area.middle, area.middle.plus(direction.times(reach + STUB)))
}

/// Whether a curve comes too near to a box.
fn meets(curve: &Curve, area: &Area) -> bool {
    const STEPS: usize = 12;
    let at = |step: usize| curve.at(step as f64 / STEPS as f64);
    (0..STEPS).any(|step| area.is_crossed(at(step), at(step + 1), PASSING))
}
