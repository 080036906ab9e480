//! Orders of the switches: a route goes up first and then down, never up after down (Schroeder and others, "Autonet: a high-speed,
//! self-configuring local area network using point-to-point links", 1991). Any order is free of deadlocks.

use std::cmp::Reverse;

use super::network::FabricNetwork;

/// The rank of every switch: a channel to a lower rank goes up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Order(Vec<u32>);

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

    /// Orders to try: by the distance from the hosts, as in a fat tree, and by the distance from a root.
    pub(super) fn candidates(network: &FabricNetwork<'_>, roots: &[u32]) -> Vec<Self> {
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
        Self(ranks)
    }

    /// Whether a channel goes up.
    pub(super) fn is_up(&self, from: u32, to: u32) -> bool {
        self.0[to as usize] < self.0[from as usize]
    }
}
