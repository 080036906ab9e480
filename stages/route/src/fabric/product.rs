//! Cartesian products, such as tori, meshes, hypercubes and `HyperX`, in which routes may take one dimension after the other.
//!
//! Links of the same dimension are found by their squares: two links at a switch belong to different dimensions if they span exactly one
//! square without diagonals, whose opposite links belong together (Feigenbaum, Hershberger and Schäffer, "A polynomial time algorithm
//! for finding the prime factors of Cartesian-product graphs", 1985). Numbers of cables and hosts do not matter. A failed cable leaves
//! pairs of links without their square, so that links are taken for one dimension only where most of their pairs span none.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::network::FabricNetwork;
use hopmap_graph::DisjointSets;

/// Part of the switches, and of the links of every dimension, that have to be there.
const LEAST_FOUND: f64 = 0.9;

/// The dimensions of a fabric that is a product.
pub(super) struct Product {
    /// Dimension of every channel.
    pub dimensions: Vec<u32>,
    /// By dimension and switch, the coordinate.
    pub coordinates: Vec<Vec<u32>>,
}

impl Product {
    /// None if the fabric is not a product of two or more networks, or the time is over.
    pub(super) fn of(network: &FabricNetwork<'_>, is_over: &dyn Fn() -> bool) -> Option<Self> {
        let switches = network.switches.len();
        let mut neighbours = vec![BTreeSet::new(); switches];
        for channel in &network.channels {
            neighbours[channel.from as usize].insert(channel.to);
            neighbours[channel.to as usize].insert(channel.from);
        }
        let pairs = |switch: u32| neighbours[switch as usize].iter().map(move |&other| (switch, other));
        let edges: Vec<(u32, u32)> = (0..switches as u32).flat_map(pairs).filter(|(a, b)| a < b).collect();
        let places: BTreeMap<(u32, u32), u32> = edges.iter().copied().zip(0..).collect();
        let place = |a: u32, b: u32| places[&(a.min(b), a.max(b))] as usize;
        let mut groups = DisjointSets::new(edges.len());
        pairs_of_links(&neighbours, is_over, &mut |[switch, one, other], corner| {
            if let Some(corner) = corner {
                groups.join(place(switch, one), place(other, corner));
                groups.join(place(switch, other), place(one, corner));
            }
        })?;
        // By two groups, how many more pairs of their links span no square.
        let mut votes: BTreeMap<(usize, usize), i64> = BTreeMap::new();
        pairs_of_links(&neighbours, is_over, &mut |[switch, one, other], corner| {
            let (a, b) = (groups.root(place(switch, one)), groups.root(place(switch, other)));
            *votes.entry((a.min(b), a.max(b))).or_default() += if corner.is_none() { 1 } else { -1 };
        })?;
        votes.into_iter().filter(|(_, votes)| *votes > 0).for_each(|((a, b), _)| _ = groups.join(a, b));
        let dimension_of = groups.numbers();
        let count = dimension_of.iter().max().map_or(0, |last| last + 1);
        if count < 2 {
            return None;
        }
        let dimension = |a: u32, b: u32| dimension_of[place(a, b)];
        let dimensions = network.channels.iter().map(|channel| dimension(channel.from, channel.to)).collect();
        let of_edges: Vec<u32> = edges.iter().map(|&(a, b)| dimension(a, b)).collect();
        // Switches that are joined without a dimension have the same coordinate in it.
        let coordinates: Vec<Vec<u32>> = (0..count)
            .map(|dimension| {
                let mut parts = DisjointSets::new(switches);
                let others = edges.iter().zip(&of_edges).filter(|(_, own)| **own != dimension);
                others.for_each(|((a, b), _)| _ = parts.join(*a as usize, *b as usize));
                parts.numbers()
            })
            .collect();
        Self { dimensions, coordinates }.checked(switches, &edges, &of_edges)
    }

    /// The product, if its switches and links are nearly all combinations of coordinates.
    fn checked(self, switches: usize, edges: &[(u32, u32)], of_edges: &[u32]) -> Option<Self> {
        let at = |switch: usize| -> Vec<u32> { self.coordinates.iter().map(|of| of[switch]).collect() };
        let places: HashSet<Vec<u32>> = (0..switches).map(at).collect();
        let sizes = self.coordinates.iter().map(|of| of.iter().max().map_or(0, |most| *most as usize + 1));
        let all = sizes.clone().try_fold(1_usize, usize::checked_mul)?;
        let are_most = |found: usize, all: usize| found <= all && found as f64 >= LEAST_FOUND * all as f64;
        // In every dimension, the same links at all combinations of the other coordinates.
        let are_whole = (0..).zip(&self.coordinates).zip(sizes).all(|((dimension, of), size)| {
            let own = edges.iter().zip(of_edges).filter(|(_, own)| **own == dimension);
            let ends = own.clone().map(|((a, b), _)| {
                let (a, b) = (of[*a as usize], of[*b as usize]);
                (a.min(b), a.max(b))
            });
            are_most(own.count(), ends.collect::<HashSet<_>>().len() * (all / size))
        });
        (places.len() == switches && are_most(switches, all) && are_whole).then_some(self)
    }

    /// Switches that differ in some dimensions only.
    pub(super) fn lines(&self, dimensions: &[usize]) -> Vec<Vec<u32>> {
        let others: Vec<usize> =
            (0..self.coordinates.len()).filter(|dimension| !dimensions.contains(dimension)).collect();
        let mut lines: BTreeMap<Vec<u32>, Vec<u32>> = BTreeMap::new();
        for switch in 0..self.coordinates[0].len() {
            let key = others.iter().map(|&dimension| self.coordinates[dimension][switch]).collect();
            lines.entry(key).or_default().push(switch as u32);
        }
        lines.into_values().collect()
    }
}

/// Looks at all pairs of links at a switch: the switch and both neighbours, and the opposite corner if they span exactly one square
/// without diagonals. None if the time is over.
fn pairs_of_links(
    neighbours: &[BTreeSet<u32>],
    is_over: &dyn Fn() -> bool,
    visit: &mut dyn FnMut([u32; 3], Option<u32>),
) -> Option<()> {
    for (switch, own) in (0_u32..).zip(neighbours) {
        if is_over() {
            return None;
        }
        for (at, &one) in own.iter().enumerate() {
            let of_one = &neighbours[one as usize];
            for &other in own.iter().skip(at + 1) {
                let mut common = of_one.intersection(&neighbours[other as usize]).filter(|x| **x != switch);
                let corner = match (common.next(), common.next()) {
                    (Some(&corner), None) if !of_one.contains(&other) => Some(corner),
                    _ => None,
                };
                visit([switch, one, other], corner);
            }
        }
    }
    Some(())
}
