//! Orders of the switches: a route goes up first and then down, never up after down (Schroeder and others, "Autonet: a high-speed,
//! self-configuring local area network using point-to-point links", 1991). Any order is free of deadlocks.

use std::cmp::Reverse;

use super::network::{Channel, FabricNetwork};
use super::product::Product;

/// The rank of every switch: a channel to a lower rank goes up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Order {
    ranks: Vec<u32>,
    /// Dimension of every channel, if the fabric is a product: routes take one dimension after the other, and up and down in each.
    dimensions: Vec<u32>,
}

impl Order {
    /// Switches that are spread over the fabric, the most central ones first.
    pub(super) fn roots(network: &FabricNetwork<'_>, most: usize) -> Vec<u32> {
        let switches = network.switches.len();
        let count = switches.min(most);
        let root = |index: usize| (index * switches / count) as u32;
        let far = |root: u32| network.distances(&[root]).into_iter().max().unwrap_or_default();
        let mut roots: Vec<(u32, u32)> = (0..count).map(root).map(|root| (far(root), root)).collect();
        roots.sort_unstable();
        roots.into_iter().map(|(_, root)| root).collect()
    }

    /// Orders to try: by the dimensions of a product, else by the distance from the hosts, as in a fat tree, and by that from a root.
    pub(super) fn candidates(network: &FabricNetwork<'_>, roots: &[u32]) -> Vec<Self> {
        if let Some(product) = Product::of(network) {
            return vec![Self::by_dimensions(network, &product)];
        }
        let switches = network.switches.len();
        let leaves: Vec<u32> =
            (0..switches as u32).filter(|&switch| network.senders[switch as usize] > 0).collect();
        let from_hosts = network.distances(&leaves);
        let by_root = |&root: &u32| {
            let distances = network.distances(&[root]);
            Self::by(switches, |switch| (distances[switch], switch))
        };
        let first = roots.first().map(|&root| network.distances(&[root])).unwrap_or_default();
        let by_hosts = Self::by(switches, |switch| (Reverse(from_hosts[switch]), first[switch], switch));
        std::iter::once(by_hosts).chain(roots.iter().map(by_root)).collect()
    }

    fn by<K: Ord>(switches: usize, key: impl Fn(usize) -> K) -> Self {
        let mut order: Vec<usize> = (0..switches).collect();
        order.sort_by_key(|&switch| key(switch));
        let mut ranks = vec![0; switches];
        for (rank, switch) in (0..).zip(order) {
            ranks[switch] = rank;
        }
        Self { ranks, dimensions: Vec::new() }
    }

    /// In every dimension by the distance from its middle. A channel changes one coordinate, so that sums of ranks order its ends.
    fn by_dimensions(network: &FabricNetwork<'_>, product: &Product) -> Self {
        let mut ranks = vec![0; network.switches.len()];
        for (dimension, of) in (0..).zip(&product.coordinates) {
            let size = of.iter().max().map_or(0, |most| *most as usize + 1);
            let mut neighbours = vec![Vec::new(); size];
            for (channel, _) in
                network.channels.iter().zip(&product.dimensions).filter(|(_, own)| **own == dimension)
            {
                let (from, to) = (of[channel.from as usize], of[channel.to as usize]);
                neighbours[from as usize].push(to);
                neighbours[to as usize].push(from);
            }
            let far = |from: usize| distances(&neighbours, from);
            let middle = (0..size).min_by_key(|&from| far(from).into_iter().max()).unwrap_or_default();
            let from_middle = far(middle);
            let own = Self::by(size, |place| (from_middle[place], place)).ranks;
            ranks.iter_mut().zip(of).for_each(|(rank, place)| *rank += own[*place as usize]);
        }
        Self { ranks, dimensions: product.dimensions.clone() }
    }

    /// Whether a packet may go on from a channel to the next one.
    pub(super) fn allows(&self, network: &FabricNetwork<'_>, channel: u32, next: u32) -> bool {
        let dimension = |channel: u32| self.dimensions.get(channel as usize);
        let is_up = |Channel { from, to, .. }: Channel| self.ranks[to as usize] < self.ranks[from as usize];
        let [ends, after] = [channel, next].map(|channel| network.channels[channel as usize]);
        match dimension(channel).cmp(&dimension(next)) {
            std::cmp::Ordering::Less => true,
            std::cmp::Ordering::Equal => is_up(ends) || !is_up(after),
            std::cmp::Ordering::Greater => false,
        }
    }
}

/// Hops from a place to all others.
fn distances(neighbours: &[Vec<u32>], from: usize) -> Vec<u32> {
    let mut far = vec![u32::MAX; neighbours.len()];
    far[from] = 0;
    let mut queue = vec![from];
    let mut at = 0;
    while let Some(&place) = queue.get(at) {
        at += 1;
        for &other in &neighbours[place] {
            if far[other as usize] == u32::MAX {
                far[other as usize] = far[place] + 1;
                queue.push(other as usize);
            }
        }
    }
    far
}
