//! Cartesian products, such as tori, meshes, hypercubes and `HyperX`, in which routes may take one dimension after the other.
//!
//! Links of the same dimension are found by their squares: two links at a switch belong to different dimensions if they span exactly one
//! square without diagonals, whose opposite links belong together (Feigenbaum, Hershberger and Schäffer, "A polynomial time algorithm
//! for finding the prime factors of Cartesian-product graphs", 1985). Numbers of cables and hosts do not matter.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::network::FabricNetwork;

/// The dimensions of a fabric that is a product.
pub(super) struct Product {
    /// Dimension of every channel.
    pub dimensions: Vec<u32>,
    /// By dimension and switch, the coordinate.
    pub coordinates: Vec<Vec<u32>>,
}

impl Product {
    /// None if the fabric is not a product of two or more networks.
    pub(super) fn of(network: &FabricNetwork<'_>) -> Option<Self> {
        let switches = network.switches.len();
        let mut neighbours = vec![BTreeSet::new(); switches];
        for channel in &network.channels {
            neighbours[channel.from as usize].insert(channel.to);
            neighbours[channel.to as usize].insert(channel.from);
        }
        let pairs = |switch: u32| neighbours[switch as usize].iter().map(move |&other| (switch, other));
        let edges: Vec<(u32, u32)> = (0..switches as u32).flat_map(pairs).filter(|(a, b)| a < b).collect();
        let places: BTreeMap<(u32, u32), u32> = edges.iter().copied().zip(0..).collect();
        let place = |a: u32, b: u32| places[&(a.min(b), a.max(b))];
        let mut groups = Groups::new(edges.len());
        for switch in 0..switches as u32 {
            let others: Vec<u32> = neighbours[switch as usize].iter().copied().collect();
            for (at, &one) in others.iter().enumerate() {
                for &other in &others[at + 1..] {
                    let mut common = neighbours[one as usize]
                        .intersection(&neighbours[other as usize])
                        .filter(|x| **x != switch);
                    match (common.next(), common.next()) {
                        (Some(&corner), None) if !neighbours[one as usize].contains(&other) => {
                            groups.join(place(switch, one), place(other, corner));
                            groups.join(place(switch, other), place(one, corner));
                        }
                        _ => groups.join(place(switch, one), place(switch, other)),
                    }
                }
            }
        }
        let roots: BTreeSet<u32> = (0..edges.len() as u32).map(|edge| groups.root(edge)).collect();
        let number: BTreeMap<u32, u32> = roots.into_iter().zip(0..).collect();
        if number.len() < 2 {
            return None;
        }
        let mut dimension = |a: u32, b: u32| number[&groups.root(place(a, b))];
        let dimensions = network.channels.iter().map(|channel| dimension(channel.from, channel.to)).collect();
        let of_edges: Vec<u32> = edges.iter().map(|&(a, b)| dimension(a, b)).collect();
        // Switches that are joined without a dimension have the same coordinate in it.
        let coordinates: Vec<Vec<u32>> = (0..number.len() as u32)
            .map(|dimension| {
                let mut parts = Groups::new(switches);
                let others = edges.iter().zip(&of_edges).filter(|(_, own)| **own != dimension);
                others.for_each(|((a, b), _)| parts.join(*a, *b));
                let roots: Vec<u32> = (0..switches as u32).map(|switch| parts.root(switch)).collect();
                let distinct: BTreeMap<u32, u32> =
                    roots.iter().copied().collect::<BTreeSet<u32>>().into_iter().zip(0..).collect();
                roots.iter().map(|root| distinct[root]).collect()
            })
            .collect();
        Self { dimensions, coordinates }.checked(switches, &edges, &of_edges)
    }

    /// The product, if its switches and links are all combinations of coordinates.
    fn checked(self, switches: usize, edges: &[(u32, u32)], of_edges: &[u32]) -> Option<Self> {
        let at = |switch: usize| -> Vec<u32> { self.coordinates.iter().map(|of| of[switch]).collect() };
        let places: HashSet<Vec<u32>> = (0..switches).map(at).collect();
        let sizes = self.coordinates.iter().map(|of| of.iter().max().map_or(0, |most| *most as usize + 1));
        let all = sizes.clone().try_fold(1_usize, usize::checked_mul)?;
        // In every dimension, the same links at all combinations of the other coordinates.
        let are_whole = (0..).zip(&self.coordinates).zip(sizes).all(|((dimension, of), size)| {
            let own = edges.iter().zip(of_edges).filter(|(_, own)| **own == dimension);
            let ends = own.clone().map(|((a, b), _)| {
                let (a, b) = (of[*a as usize], of[*b as usize]);
                (a.min(b), a.max(b))
            });
            ends.collect::<HashSet<_>>().len() * (switches / size) == own.count()
        });
        (places.len() == switches && all == switches && are_whole).then_some(self)
    }
}

/// Disjoint sets.
struct Groups(Vec<u32>);

impl Groups {
    fn new(count: usize) -> Self {
        Self((0..count as u32).collect())
    }

    fn root(&mut self, mut at: u32) -> u32 {
        while self.0[at as usize] != at {
            self.0[at as usize] = self.0[self.0[at as usize] as usize];
            at = self.0[at as usize];
        }
        at
    }

    fn join(&mut self, one: u32, other: u32) {
        let (one, other) = (self.root(one), self.root(other));
        self.0[one.max(other) as usize] = one.min(other);
    }
}
