//! Layout of a routed machine: boxes in layers where every cable joins one layer with the next, else hosts around switches that an
//! embedding places.

use std::collections::BTreeMap;
use std::f64::consts::{FRAC_PI_2, TAU};

use hopmap_model::SystemGraph;

use super::embedding::{Embedding, pairs};
use super::geometry::{Area, Curve, Point};
use super::network::Network;
use crate::layered::{apart, distances, mean, reduce_crossings};

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
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sizes {
    pub(super) switch: Point,
    pub(super) host: Point,
    /// Of a host with an upright name.
    pub(super) upright: Point,
}

/// Positions of boxes and ends of cables.
#[derive(Debug, Default)]
pub(super) struct Layout {
    pub(super) areas: BTreeMap<usize, Area>,
    /// Where the cable from a node to another leaves its box; from the middle of the box where it is not text.
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

impl Layout {
    /// All that is drawn of a machine; nothing if it is too large.
    pub(super) fn new(network: &Network, sizes: &Sizes, has_hosts: bool) -> Option<Self> {
        let pillars = network.pillars().len();
        if pillars == 0 || pillars > MOST_PILLARS {
            return None;
        }
        let parts = network.parts();
        let of_part = |part: &Vec<usize>| {
            layered(network, part, sizes, has_hosts).unwrap_or_else(|| {
                let embedding = Embedding::new(&network.within(part));
                around_embedding(network, part, &embedding, sizes, has_hosts)
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

/// Between a host and its switch, where their link is seen.
const LINK: f64 = 27.0;
/// Between hosts, and between a host and a cable next to it.
const HOSTS: f64 = 6.0;
const CABLE: f64 = 11.0;
/// Between switches, where their cable is seen.
const SWITCHES: f64 = 60.0;
/// Between the hosts of one switch and those of another.
const AROUND_BETWEEN: f64 = 14.0;
/// Farthest that hosts may be from their switch.
const FARTHEST: f64 = 1500.0;

/// The boxes of a part whose switches are placed by an embedding.
pub(super) fn around_embedding(
    network: &Network,
    part: &[usize],
    embedding: &Embedding,
    sizes: &Sizes,
    has_hosts: bool,
) -> Layout {
    let hosts_at = network.hosts_at();
    let clusters: Vec<Vec<(usize, Area)>> = part
        .iter()
        .enumerate()
        .map(|(place, &node)| {
            let hosts: &[usize] = if has_hosts { &hosts_at[node] } else { &[] };
            cluster(network, part, embedding, sizes, place, hosts)
        })
        .collect();
    let middles: Vec<Point> = match embedding.angles.is_some() {
        true => on_grid(embedding, &clusters, sizes),
        false => scaled(network, part, embedding, &clusters),
    };
    let mut layout = Layout::default();
    for (cluster, middle) in clusters.iter().zip(middles) {
        layout.areas.extend(cluster.iter().map(|&(node, area)| (node, area.moved(middle))));
    }
    let pair = |(&(a, b), &direction): (&(usize, usize), &Point)| ((part[a], part[b]), direction);
    layout.around = embedding.around.iter().map(pair).collect();
    layout
}

/// A switch in the origin and its hosts around it.
fn cluster(
    network: &Network,
    part: &[usize],
    embedding: &Embedding,
    sizes: &Sizes,
    place: usize,
    hosts: &[usize],
) -> Vec<(usize, Area)> {
    let node = part[place];
    let size = if network.is_host[node] { sizes.host } else { sizes.switch };
    let own = Area::new(Point::default(), size.x, size.y);
    let to_others = || {
        let others = network.neighbours[node].iter().filter_map(|other| part.binary_search(other).ok());
        others.map(|other| embedding.places[other].minus(embedding.places[place]).angle()).collect()
    };
    let cables: Vec<f64> = embedding.angles.clone().unwrap_or_else(to_others);
    let angles = angles(hosts.len(), &cables, embedding.angles.is_some());
    // Boxes are wider than high: so is their area, unless cables lead away at all angles.
    let stretch = match embedding.angles.is_some() || cables.is_empty() {
        true => ((sizes.host.x + 10.0) / (sizes.host.y + 10.0)).clamp(1.0, 1.6),
        false => 1.0,
    };
    let mut radius = 30.0;
    loop {
        let area = |&angle: &f64| {
            let direction = Point::at_angle(angle);
            let middle = Point::new(direction.x * stretch * radius, direction.y * radius);
            Area::new(middle, sizes.host.x, sizes.host.y)
        };
        let areas: Vec<Area> = angles.iter().map(area).collect();
        if radius > FARTHEST || has_room(&own, &areas, &cables) {
            return std::iter::once((node, own)).chain(hosts.iter().copied().zip(areas)).collect();
        }
        radius += 4.0;
    }
}

/// Angles of hosts: as far from cables and from each other as can be, clockwise.
fn angles(count: usize, cables: &[f64], is_grid: bool) -> Vec<f64> {
    if cables.is_empty() {
        return (0..count).map(|host| FRAC_PI_2 + TAU * host as f64 / count as f64).collect();
    }
    let mut cables: Vec<f64> = cables.iter().map(|angle| angle.rem_euclid(TAU)).collect();
    cables.sort_by(f64::total_cmp);
    let next = cables.iter().skip(1).copied().chain([cables[0] + TAU]);
    let gaps: Vec<(f64, f64)> =
        cables.iter().copied().zip(next).map(|(from, to)| (from, to - from)).collect();
    let mut hosts_in = vec![0_usize; gaps.len()];
    // On a grid the gaps are the same at every switch: below first, then opposite.
    let rank = |gap: usize| if is_grid { [0, 2, 1, 3][gap % 4] } else { gap };
    for _ in 0..count {
        let room = |gap: usize| gaps[gap].1 / (hosts_in[gap] + 1) as f64;
        let widest = (0..gaps.len()).fold(0, |best, gap| {
            let (more, less) = (room(gap) > room(best) + 1e-6, room(gap) < room(best) - 1e-6);
            if more || (!less && rank(gap) < rank(best)) { gap } else { best }
        });
        hosts_in[widest] += 1;
    }
    let in_gap = |((from, gap), hosts): (&(f64, f64), &usize)| {
        let (from, step) = (*from, gap / (hosts + 1) as f64);
        (1..=*hosts).map(move |host| from + step * host as f64)
    };
    let mut angles: Vec<f64> = gaps.iter().zip(&hosts_in).flat_map(in_gap).collect();
    if is_grid {
        // In the order in which a text is read.
        let place = |angle: f64| (libm::sin(angle) > 0.0, libm::cos(angle));
        angles.sort_by(|&a, &b| place(a).0.cmp(&place(b).0).then(place(a).1.total_cmp(&place(b).1)));
    }
    angles
}

/// Whether hosts overlap neither each other nor their switch nor its cables.
fn has_room(own: &Area, hosts: &[Area], cables: &[f64]) -> bool {
    let is_beside_cables = |host: &Area| {
        let is_free = |&angle: &f64| {
            !host.is_crossed(Point::default(), Point::at_angle(angle).times(10.0 * FARTHEST), CABLE)
        };
        cables.iter().all(is_free)
    };
    hosts.iter().enumerate().all(|(place, host)| {
        !host.is_near(own, LINK)
            && !hosts[..place].iter().any(|other| host.is_near(other, HOSTS))
            && is_beside_cables(host)
    })
}

/// Middles of switches on a grid whose rows and columns hold all hosts.
fn on_grid(embedding: &Embedding, clusters: &[Vec<(usize, Area)>], sizes: &Sizes) -> Vec<Point> {
    let all = || clusters.iter().flatten().map(|(_, area)| area);
    let reach = |low: &dyn Fn(&Area) -> f64, high: &dyn Fn(&Area) -> f64| {
        all().map(high).fold(0.0, f64::max) - all().map(low).fold(0.0, f64::min)
    };
    let is_deep = embedding.angles.as_ref().is_some_and(|angles| angles.len() > 4);
    let mut wide = (reach(&Area::left, &Area::right) + AROUND_BETWEEN).max(sizes.switch.x + SWITCHES);
    let mut high = (reach(&Area::top, &Area::bottom) + AROUND_BETWEEN).max(sizes.switch.y + SWITCHES - 8.0);
    if is_deep {
        wide = wide.max(sizes.switch.x + 2.0 * STUB);
        high = high.max(wide * 0.75);
        wide = wide.max(high);
    }
    embedding.places.iter().map(|place| Point::new(place.x * wide, place.y * high)).collect()
}

/// Middles of switches as in the embedding, with as much room as they need.
fn scaled(
    network: &Network,
    part: &[usize],
    embedding: &Embedding,
    clusters: &[Vec<(usize, Area)>],
) -> Vec<Point> {
    let lines = pairs(&network.within(part));
    let mut scale = 60.0;
    let mut best: Option<(usize, f64)> = None;
    while scale < 4000.0 {
        let middles: Vec<Point> = embedding.places.iter().map(|place| place.times(scale)).collect();
        if is_apart(clusters, &middles, &lines) {
            let crossed = crossings(clusters, &middles, &lines);
            if best.is_none_or(|(least, _)| crossed < least) {
                best = Some((crossed, scale));
            }
            // Boxes that stay on lines however large the picture is are passed by bent ones.
            if best.is_some_and(|(least, first)| least == 0 || scale > 1.5 * first) {
                break;
            }
        }
        scale *= 1.06;
    }
    let scale = best.map_or(scale, |(_, scale)| scale);
    embedding.places.iter().map(|place| place.times(scale)).collect()
}

/// Whether boxes of different switches are apart, and lines between them are long enough.
fn is_apart(clusters: &[Vec<(usize, Area)>], middles: &[Point], lines: &[(usize, usize)]) -> bool {
    let long_enough = |&(a, b): &(usize, usize)| {
        let (first, last) = (clusters[a][0].1.moved(middles[a]), clusters[b][0].1.moved(middles[b]));
        !first.is_near(&last, SWITCHES)
    };
    let apart = |a: usize, b: usize| {
        clusters[a].iter().all(|(_, first)| {
            let first = first.moved(middles[a]);
            clusters[b].iter().all(|(_, last)| !first.is_near(&last.moved(middles[b]), AROUND_BETWEEN))
        })
    };
    lines.iter().all(long_enough) && (0..middles.len()).all(|b| (0..b).all(|a| apart(a, b)))
}

/// How many boxes lie on lines between others.
fn crossings(clusters: &[Vec<(usize, Area)>], middles: &[Point], lines: &[(usize, usize)]) -> usize {
    let mut crossings = 0;
    for &(a, b) in lines {
        for (place, cluster) in clusters.iter().enumerate() {
            let boxes = cluster.iter().enumerate();
            // The switches at the ends of a line are not obstacles, but their hosts are.
            let obstacles = boxes.filter(|(index, _)| *index > 0 || (place != a && place != b));
            crossings += obstacles
                .filter(|(_, (_, area))| area.moved(middles[place]).is_crossed(middles[a], middles[b], HOSTS))
                .count();
        }
    }
    crossings
}

/// Layers at most.
const MOST_LAYERS: usize = 8;
/// Width of a row of hosts above which their names are upright.
const WIDEST: f64 = 1100.0;
/// Between boxes in a row, and between the hosts of two switches.
const GAP: f64 = 10.0;

/// Boxes of a part in layers, if every cable joins one layer with the next.
pub(super) fn layered(network: &Network, part: &[usize], sizes: &Sizes, has_hosts: bool) -> Option<Layout> {
    let hosts: Vec<usize> = (0..network.home.len())
        .filter(|&host| network.home[host].is_some_and(|home| part.binary_search(&home).is_ok()))
        .collect();
    // Hosts at several switches are parts of their own.
    let between: Vec<usize> = part.iter().copied().filter(|&node| network.is_host[node]).collect();
    let least = if between.is_empty() { 2 } else { 1 };
    let heights = distances(&network.neighbours, hosts.iter().chain(&between).copied());
    let of = |node: &usize| heights[*node];
    let largest = part.iter().filter_map(of).max()?;
    let joins_layers = |&node: &usize| {
        let own = of(&node);
        network.neighbours[node]
            .iter()
            .all(|other| own.zip(of(other)).is_some_and(|(a, b)| a.abs_diff(b) == 1))
    };
    if !(least..=MOST_LAYERS).contains(&largest) || !part.iter().chain(&hosts).all(joins_layers) {
        return None;
    }
    let mut rows: Vec<Vec<usize>> = vec![Vec::new(); largest + 1];
    for &node in part.iter().chain(&hosts) {
        rows[heights[node]?].push(node);
    }
    if !has_hosts {
        rows.remove(0);
    }
    // From the top, so that what is below goes where it is joined.
    rows.reverse();
    reduce_crossings(&mut rows, &network.cables.keys().copied().collect::<Vec<_>>());
    rows.reverse();
    Some(placed(network, &rows, sizes, has_hosts))
}

/// Boxes in their rows, and where cables end at them.
fn placed(network: &Network, rows: &[Vec<usize>], sizes: &Sizes, has_hosts: bool) -> Layout {
    let upright = has_hosts && rows[0].len() as f64 * (sizes.host.x + GAP) > WIDEST;
    let size = |row: usize| match (row == 0 && has_hosts, upright) {
        (true, true) => Point::new(sizes.upright.x, sizes.upright.y),
        (true, false) => sizes.host,
        (false, _) => sizes.switch,
    };
    let mut across: BTreeMap<usize, f64> = BTreeMap::new();
    for (row, nodes) in rows.iter().enumerate() {
        for (node, x) in nodes.iter().zip(columns(network, nodes, size(row).x, row, &across)) {
            across.insert(*node, x);
        }
    }
    let mut layout = Layout::default();
    let mut y = 0.0;
    for (row, nodes) in rows.iter().enumerate() {
        if row > 0 {
            y -= between(network, nodes, &rows[row - 1], &across)
                + f64::midpoint(size(row).y, size(row - 1).y);
        }
        for node in nodes {
            let area = Area::new(Point::new(across[node], y), size(row).x, size(row).y);
            layout.areas.insert(*node, area);
        }
    }
    for (row, nodes) in rows.iter().enumerate().skip(1) {
        add_ends(network, nodes, &rows[row - 1], &mut layout);
    }
    layout
}

/// The middles of the boxes of a row: above the middle of what they are joined with below, as far as there is room.
fn columns(
    network: &Network,
    nodes: &[usize],
    width: f64,
    row: usize,
    below: &BTreeMap<usize, f64>,
) -> Vec<f64> {
    let step = |pair: &[usize]| {
        let is_new = row == 0 && network.home[pair[0]] != network.home[pair[1]];
        width + GAP + if is_new { GAP } else { 0.0 }
    };
    let mut steps = vec![0.0];
    steps.extend(nodes.windows(2).map(step));
    for index in 1..steps.len() {
        steps[index] += steps[index - 1];
    }
    if row == 0 || below.is_empty() {
        return steps;
    }
    let middle = |node: &usize| {
        mean(network.neighbours[*node].iter().filter_map(|other| below.get(other).copied())).unwrap_or(0.0)
    };
    let wanted: Vec<f64> = nodes.iter().map(middle).collect();
    let range = |values: &[f64]| {
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        (least, values.iter().copied().fold(f64::NEG_INFINITY, f64::max))
    };
    let (low, high) = range(&wanted);
    let (left, right) = range(&below.values().copied().collect::<Vec<_>>());
    let needed = steps.last().copied().unwrap_or_default();
    let wanted = if nodes.len() > 1 && high - low < 0.5 * needed {
        // All are above the same middle: they spread over what there is.
        let pitch = ((right - left) / nodes.len() as f64).max(needed / nodes.len() as f64).min(4.0 * width);
        let first = f64::midpoint(left, right) - pitch * (nodes.len() - 1) as f64 / 2.0;
        (0..nodes.len()).map(|place| first + pitch * place as f64).collect()
    } else {
        wanted
    };
    apart(&wanted, &steps)
}

/// Room between two rows: more where cables lead far across.
fn between(network: &Network, upper: &[usize], lower: &[usize], across: &BTreeMap<usize, f64>) -> f64 {
    let mut farthest: f64 = 0.0;
    for &node in lower {
        for other in network.neighbours[node].iter().filter(|other| upper.contains(other)) {
            farthest = farthest.max((across[&node] - across[other]).abs());
        }
    }
    (0.3 * farthest).clamp(56.0, 220.0)
}

/// Where cables between two rows end: side by side at the edges of boxes, in the order in which they lead away.
fn add_ends(network: &Network, upper: &[usize], lower: &[usize], layout: &mut Layout) {
    let areas = &layout.areas;
    let ends = |node: usize, others: &[usize], is_upper: bool| -> Vec<(usize, Point)> {
        let mut joined: Vec<usize> =
            network.neighbours[node].iter().copied().filter(|other| others.contains(other)).collect();
        joined.sort_by(|a, b| areas[a].middle.x.total_cmp(&areas[b].middle.x));
        let area = &areas[&node];
        let y = if is_upper { area.bottom() + 1.0 } else { area.top() - 1.0 };
        let count = joined.len() as f64;
        let pitch = (1.7 * area.half.x / count.max(1.0)).min(26.0);
        let x = |place: usize| area.middle.x + pitch * (place as f64 - (count - 1.0) / 2.0);
        joined.into_iter().enumerate().map(|(place, other)| (other, Point::new(x(place), y))).collect()
    };
    let mut found: Vec<((usize, usize), Point)> = Vec::new();
    for &node in upper {
        found.extend(ends(node, lower, true).into_iter().map(|(other, point)| ((node, other), point)));
    }
    for &node in lower {
        found.extend(ends(node, upper, false).into_iter().map(|(other, point)| ((node, other), point)));
    }
    layout.ends.extend(found);
}
