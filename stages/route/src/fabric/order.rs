//! Orders of the switches: a route goes up first and then down, never up after down (Schroeder and others, "Autonet: a high-speed,
//! self-configuring local area network using point-to-point links", 1991). Any order is free of deadlocks.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::network::{Channel, FabricNetwork};
use super::product::Product;
use hopmap_graph::distances;

/// What a packet may do after each channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Order {
    /// By channel: channels of a higher stage follow those of a lower one. Products have a stage for every dimension.
    stages: Vec<u32>,
    /// By channel, whether it goes up. In a stage, packets go up first.
    up: Vec<bool>,
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

    /// Orders to try: by the dimensions of a product, by the distance from the hosts, as in a fat tree, and by that from a root.
    pub(super) fn candidates(
        network: &FabricNetwork<'_>,
        roots: &[u32],
        is_over: &dyn Fn() -> bool,
    ) -> Vec<Self> {
        let switches = network.switches.len();
        let leaves: Vec<u32> =
            (0..switches as u32).filter(|&switch| network.senders[switch as usize] > 0).collect();
        let from_hosts = network.distances(&leaves);
        let by_root = |&root: &u32| {
            let distances = network.distances(&[root]);
            Self::by(network, |switch| (distances[switch], switch))
        };
        let first = roots.first().map(|&root| network.distances(&[root])).unwrap_or_default();
        let by_hosts = Self::by(network, |switch| (Reverse(from_hosts[switch]), first[switch], switch));
        let by_dimensions =
            Product::of(network, is_over).and_then(|product| Self::by_dimensions(network, &product));
        by_dimensions.into_iter().chain([by_hosts]).chain(roots.iter().map(by_root)).collect()
    }

    /// Whether routes take one dimension of a product after the other.
    pub(super) fn has_dimensions(&self) -> bool {
        self.stages.iter().any(|stage| *stage > 0)
    }

    fn by<K: Ord>(network: &FabricNetwork<'_>, key: impl Fn(usize) -> K) -> Self {
        let is_up = |channel: &Channel| key(channel.to as usize) < key(channel.from as usize);
        Self { stages: vec![0; network.channels.len()], up: network.channels.iter().map(is_up).collect() }
    }

    /// One dimension after the other, and in every line by the distance from its middle. Where failed cables have cut a line, two
    /// dimensions are one stage in the whole plane. None if that does not join what was cut.
    fn by_dimensions(network: &FabricNetwork<'_>, product: &Product) -> Option<Self> {
        let mut own = Self { stages: product.dimensions.clone(), up: vec![false; network.channels.len()] };
        let dimensions = product.coordinates.len();
        let (mut cut, mut cut_lines) = (Vec::new(), Vec::new());
        for dimension in 0..dimensions {
            for line in product.lines(&[dimension]) {
                if !own.go_up(network, product, &line, &[dimension]) {
                    cut.push(dimension);
                    cut_lines.extend(line.first().copied());
                }
            }
        }
        cut.dedup();
        if cut.is_empty() {
            return Some(own);
        }
        let partner = (0..dimensions).find(|dimension| !cut.contains(dimension));
        cut.extend(partner.filter(|_| cut.len() == 1));
        let &[one, other] = cut.as_slice() else { return None };
        let (first, last) = (one.min(other), one.max(other));
        // The dimensions of planes follow each other.
        let stage = |dimension: u32| match dimension as usize {
            dimension if dimension == last => first as u32 + 1,
            dimension if dimension > first && dimension < last => dimension as u32 + 1,
            dimension => dimension as u32,
        };
        own.stages = product.dimensions.iter().map(|&dimension| stage(dimension)).collect();
        for plane in product.lines(&[first, last]) {
            if !plane.iter().any(|switch| cut_lines.contains(switch)) {
                continue;
            }
            if !own.go_up(network, product, &plane, &[first, last]) {
                return None;
            }
            for &channel in plane.iter().flat_map(|&switch| &network.leaving[switch as usize]) {
                if product.dimensions[channel as usize] as usize == first {
                    own.stages[channel as usize] = first as u32 + 1;
                }
            }
        }
        Some(own)
    }

    /// Directions of the channels of some dimensions between some switches, by the distance from their middle; `false` if these channels
    /// do not join the switches.
    fn go_up(
        &mut self,
        network: &FabricNetwork<'_>,
        product: &Product,
        switches: &[u32],
        dimensions: &[usize],
    ) -> bool {
        let places: BTreeMap<u32, usize> = switches.iter().copied().zip(0..).collect();
        let is_own = |channel: &u32| dimensions.contains(&(product.dimensions[*channel as usize] as usize));
        let mut channels = Vec::new();
        let mut neighbours = vec![Vec::new(); switches.len()];
        for (from, &switch) in switches.iter().enumerate() {
            for &channel in network.leaving[switch as usize].iter().filter(|channel| is_own(channel)) {
                let to = places[&network.channels[channel as usize].to];
                neighbours[from].push(to);
                channels.push((channel, from, to));
            }
        }
        let of = |place: usize| neighbours[place].iter().copied();
        let far = |from: &usize| distances(neighbours.len(), [*from], of).into_iter().max();
        let Some(middle) = (0..switches.len()).min_by_key(far) else { return false };
        let from_middle = distances(neighbours.len(), [middle], of);
        for (channel, from, to) in channels {
            self.up[channel as usize] = (from_middle[to], to) < (from_middle[from], from);
        }
        !from_middle.contains(&u32::MAX)
    }

    /// Whether a packet may go on from a channel to the next one.
    pub(super) fn allows(&self, channel: u32, next: u32) -> bool {
        let [(stage, is_up), (next_stage, goes_up)] =
            [channel, next].map(|at| (self.stages[at as usize], self.up[at as usize]));
        stage < next_stage || (stage == next_stage && (is_up || !goes_up))
    }
}
