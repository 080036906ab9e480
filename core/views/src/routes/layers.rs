//! Switches in layers above the hosts, as in a tree.

use std::collections::{BTreeMap, VecDeque};

use super::geometry::{Area, Point};
use super::network::Network;
use super::standing::{Sizes, Standing};

/// Layers at most.
const MOST_LAYERS: usize = 8;
/// Width of a row of hosts from which on their names stand upright.
const WIDEST: f64 = 1100.0;
/// Between boxes in a row, and between the hosts of two switches.
const GAP: f64 = 10.0;

/// Boxes of a part in layers, if every cable joins one layer with the next.
pub(super) fn standing(
    network: &Network,
    part: &[usize],
    sizes: &Sizes,
    has_hosts: bool,
) -> Option<Standing> {
    let hosts: Vec<usize> = (0..network.home.len())
        .filter(|&host| network.home[host].is_some_and(|home| part.binary_search(&home).is_ok()))
        .collect();
    // Hosts at several switches are parts of their own.
    let between: Vec<usize> = part.iter().copied().filter(|&node| network.is_host[node]).collect();
    let least = if between.is_empty() { 2 } else { 1 };
    let heights = heights(network, hosts.iter().chain(&between).copied());
    let of = |node: &usize| heights.get(node).copied();
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
        rows[heights[&node]].push(node);
    }
    if !has_hosts {
        rows.remove(0);
    }
    untangle(network, &mut rows);
    Some(placed(network, &rows, sizes, has_hosts))
}

/// Cables between every node and the nearest host.
fn heights(network: &Network, hosts: impl Iterator<Item = usize>) -> BTreeMap<usize, usize> {
    let mut queue: VecDeque<usize> = hosts.collect();
    let mut heights: BTreeMap<usize, usize> = queue.iter().map(|&host| (host, 0)).collect();
    while let Some(node) = queue.pop_front() {
        for &other in &network.neighbours[node] {
            if !heights.contains_key(&other) {
                heights.insert(other, heights[&node] + 1);
                queue.push_back(other);
            }
        }
    }
    heights
}

/// Orders every row by the mean place of what it is joined with, downwards and upwards in turn.
fn untangle(network: &Network, rows: &mut [Vec<usize>]) {
    for round in 0..6 {
        let upwards = round % 2 == 1;
        let order: Vec<usize> =
            if upwards { (1..rows.len()).collect() } else { (0..rows.len() - 1).rev().collect() };
        for row in order {
            let next = if upwards { row - 1 } else { row + 1 };
            let places: BTreeMap<usize, f64> =
                rows[next].iter().zip(0..).map(|(&node, place)| (node, f64::from(place))).collect();
            let mean = |node: usize| {
                let joined: Vec<f64> =
                    network.neighbours[node].iter().filter_map(|other| places.get(other).copied()).collect();
                joined.iter().sum::<f64>() / joined.len().max(1) as f64
            };
            rows[row].sort_by(|&a, &b| mean(a).total_cmp(&mean(b)).then(a.cmp(&b)));
        }
    }
}

/// Boxes in their rows, and where cables end at them.
fn placed(network: &Network, rows: &[Vec<usize>], sizes: &Sizes, has_hosts: bool) -> Standing {
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
    let mut standing = Standing::default();
    let mut y = 0.0;
    for (row, nodes) in rows.iter().enumerate() {
        if row > 0 {
            y -= between(network, nodes, &rows[row - 1], &across)
                + f64::midpoint(size(row).y, size(row - 1).y);
        }
        for node in nodes {
            let area = Area::new(Point::new(across[node], y), size(row).x, size(row).y);
            standing.areas.insert(*node, area);
        }
    }
    for (row, nodes) in rows.iter().enumerate().skip(1) {
        add_ends(network, nodes, &rows[row - 1], &mut standing);
    }
    standing
}

/// The middles of the boxes of a row: above the middle of what they are joined with below, as far as there is room.
fn columns(
    network: &Network,
    nodes: &[usize],
    width: f64,
    row: usize,
    below: &BTreeMap<usize, f64>,
) -> Vec<f64> {
    let apart = |pair: &[usize]| {
        let is_new = row == 0 && network.home[pair[0]] != network.home[pair[1]];
        width + GAP + if is_new { GAP } else { 0.0 }
    };
    let mut steps = vec![0.0];
    steps.extend(nodes.windows(2).map(apart));
    for index in 1..steps.len() {
        steps[index] += steps[index - 1];
    }
    if row == 0 || below.is_empty() {
        return steps;
    }
    let mean = |node: &usize| {
        let joined: Vec<f64> =
            network.neighbours[*node].iter().filter_map(|other| below.get(other).copied()).collect();
        joined.iter().sum::<f64>() / joined.len().max(1) as f64
    };
    let wanted: Vec<f64> = nodes.iter().map(mean).collect();
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
    spread(&wanted, &steps)
}

/// The values nearest to those wanted that are at least `steps` apart: isotonic regression by pooling neighbours.
fn spread(wanted: &[f64], steps: &[f64]) -> Vec<f64> {
    let mut pools: Vec<(f64, usize)> = Vec::new();
    for (wanted, step) in wanted.iter().zip(steps) {
        pools.push((wanted - step, 1));
        while let [.., (first, count), (last, more)] = pools[..]
            && first / count as f64 > last / more as f64
        {
            pools.pop();
            pools.pop();
            pools.push((first + last, count + more));
        }
    }
    let bases = pools.iter().flat_map(|&(sum, count)| std::iter::repeat_n(sum / count as f64, count));
    bases.zip(steps).map(|(base, step)| base + step).collect()
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
fn add_ends(network: &Network, upper: &[usize], lower: &[usize], standing: &mut Standing) {
    let areas = &standing.areas;
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
    standing.ends.extend(found);
}
