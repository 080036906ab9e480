//! Adapters, switches and cables as a program lists them.

use hopmap_model::{Forward, LinkState, NodeKind, NodeState, to_u32};

use crate::import::format::note;

/// Adapters and switches, cables, and forwarding tables. Indexes refer to the lists here.
#[derive(Debug, Clone, Default)]
pub(in crate::import) struct Fabric {
    pub(in crate::import) nodes: Vec<FabricNode>,
    /// Directed; a cable has two.
    pub(in crate::import) links: Vec<FabricLink>,
    /// On `node`, messages that leave the fabric over the link `last` are forwarded over `link`.
    pub(in crate::import) forwarding: Vec<Forward>,
}

/// A host adapter or a switch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::import) struct FabricNode {
    pub(in crate::import) kind: NodeKind,
    /// The GUID, sixteen lower-case hexadecimal digits, unique; empty if nodes are distinguished by
    /// descriptions only.
    pub(in crate::import) address: String,
    /// The node description: for an adapter the host, then the device (`node1 mlx5_0`).
    pub(in crate::import) description: String,
    /// The host of an adapter, if the source contains it separately.
    pub(in crate::import) host: Option<String>,
    /// The system image GUID, which all adapters of one card have, if the source contains it.
    pub(in crate::import) image: Option<u64>,
    pub(in crate::import) state: NodeState,
}

impl FabricNode {
    pub(super) fn address(&self) -> Option<String> {
        (!self.address.is_empty()).then(|| self.address.clone())
    }

    /// What all adapters of one card have in common, and no others.
    pub(super) fn card(&self) -> String {
        match self.image {
            Some(image) => format!("image {image}"),
            None if self.address.is_empty() => self.description.clone(),
            None => self.address.clone(),
        }
    }

    /// The sort key.
    pub(super) fn key(&self) -> (&str, &str) {
        (&self.address, &self.description)
    }
}

/// One direction of a cable.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::import) struct FabricLink {
    pub(in crate::import) source: usize,
    pub(in crate::import) source_port: Option<u32>,
    pub(in crate::import) destination: usize,
    pub(in crate::import) destination_port: Option<u32>,
    pub(in crate::import) bandwidth_bytes_per_s: Option<f64>,
    pub(in crate::import) state: LinkState,
}

impl Fabric {
    /// Removes the adapters in switches: the aggregation nodes of SHARP, one in every switch since HDR, are
    /// listed as adapters with a cable, but they are not hosts.
    pub(super) fn without_adapters_of_switches(self, remarks: &mut Vec<String>) -> Self {
        let is_of_switch =
            |node: &FabricNode| node.kind == NodeKind::Host && node.description.contains("Aggregation Node");
        let stays: Vec<bool> = self.nodes.iter().map(|node| !is_of_switch(node)).collect();
        note(
            remarks,
            "aggregation nodes of switches, ignored",
            stays.iter().filter(|stays| !**stays).count(),
        );
        self.reduced(&stays, |_| true)
    }

    /// The nodes and links that stay, and the forwarding between them.
    pub(super) fn reduced(mut self, node_stays: &[bool], link_stays: impl Fn(usize) -> bool) -> Self {
        if node_stays.iter().all(|stays| *stays) && (0..self.links.len()).all(&link_stays) {
            return self;
        }
        let node_place = places(node_stays.iter().copied());
        let ends = |link: &FabricLink| Some((node_place[link.source]?, node_place[link.destination]?));
        let link_place =
            places((0..).zip(&self.links).map(|(at, link)| link_stays(at) && ends(link).is_some()));
        let links = self.links.iter().zip(&link_place).filter(|(_, place)| place.is_some());
        let links = links.filter_map(|(link, _)| {
            let (source, destination) = ends(link)?;
            Some(FabricLink { source, destination, ..*link })
        });
        let links = links.collect();
        let forward = |entry: Forward| {
            Some(Forward {
                node: to_u32(node_place[entry.node as usize]?),
                last: to_u32(link_place[entry.last as usize]?),
                link: to_u32(link_place[entry.link as usize]?),
            })
        };
        let forwarding = self.forwarding.into_iter().filter_map(forward).collect();
        let mut stays = node_stays.iter();
        self.nodes.retain(|_| stays.next() == Some(&true));
        Self { nodes: self.nodes, links, forwarding }
    }
}

/// New indexes after removing elements that do not stay.
fn places(stay: impl Iterator<Item = bool>) -> Vec<Option<usize>> {
    let mut next = 0..;
    stay.map(|stays| if stays { next.next() } else { None }).collect()
}
