//! Adapters, switches and cables as a program lists them.

use std::collections::HashMap;

use hopmap_model::{Forward, Link, LinkState, NodeKind, NodeState, to_u32};

use crate::import::format::note;
use crate::import::networks::{Choice, Listed, Member};

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

/// What follows the first word of a description.
pub(super) fn device_of(description: &str) -> &str {
    description.trim().split_once(char::is_whitespace).map_or("", |(_, device)| device.trim())
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

impl FabricLink {
    pub(super) fn link(&self) -> Link {
        Link {
            bandwidth_bytes_per_s: self.bandwidth_bytes_per_s,
            source_port: self.source_port,
            destination_port: self.destination_port,
            state: self.state,
            ..Link::new(to_u32(self.source), to_u32(self.destination))
        }
    }
}

/// Removes the adapters in switches: the aggregation nodes of SHARP, one in every switch since HDR, are
/// listed as adapters with a cable, but they are not hosts.
pub(super) fn without_adapters_of_switches(
    listed: Listed<FabricNode>,
    remarks: &mut Vec<String>,
) -> Listed<FabricNode> {
    let is_of_switch =
        |node: &FabricNode| node.kind == NodeKind::Host && node.description.contains("Aggregation Node");
    let stays: Vec<bool> = listed.0.iter().map(|node| !is_of_switch(node)).collect();
    note(remarks, "aggregation nodes of switches, ignored", stays.iter().filter(|stays| !**stays).count());
    Choice::new(stays, listed.1.len()).reduce(listed)
}

/// Nodes as members of networks.
pub(super) fn members(nodes: &[FabricNode]) -> Vec<Member<'_>> {
    let mut first = HashMap::new();
    let mut members = Vec::with_capacity(nodes.len());
    for (at, node) in nodes.iter().enumerate() {
        let (address, description) = (node.address.as_str(), node.description.trim());
        let label = if description.is_empty() { address } else { description };
        let (name, host, device) = match &node.host {
            Some(name) => (&**name, *first.entry(name).or_insert(at), device_of(description)),
            None => (label, at, ""),
        };
        members.push(Member { kind: node.kind, host, name, address, others: [description, device] });
    }
    members
}
