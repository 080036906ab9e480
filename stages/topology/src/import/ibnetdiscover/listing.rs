//! What `ibnetdiscover` lists, in either form, gathered line by line.

use std::collections::{HashMap, HashSet};

use hopmap_model::{NodeKind, NodeState};

use super::super::Result;
use super::super::cables::{Cables, End};
use super::super::fabric::FabricNode;
use crate::import::format::{malformed, note};
use crate::import::units;

/// Nodes, cables and addresses of a fabric.
#[derive(Debug, Default)]
pub(in super::super) struct Listing {
    pub(in super::super) cables: Cables,
    pub(super) addresses: Vec<Address>,
    /// Switches by the LID of their management port, where that is known.
    pub(super) switch_lids: HashMap<u16, usize>,
    by_guid: HashMap<u64, usize>,
    seen: Vec<Seen>,
    counts: Counts,
}

/// A port of an adapter that messages can be sent to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Address {
    pub(super) node: usize,
    pub(super) port: u32,
    /// GUID of the port, if it is said.
    pub(super) guid: Option<u64>,
    /// The first of its LIDs.
    pub(super) lid: u16,
    /// So many lowest bits of the LID are its to choose: it has 2^`lmc` LIDs.
    pub(super) lmc: u8,
    pub(super) line: usize,
}

/// What a node was when it was first named.
#[derive(Debug)]
struct Seen {
    line: usize,
    letter: char,
}

#[derive(Debug, Default)]
struct Counts {
    routers: usize,
    gateways: usize,
    unknown: usize,
    without_peer: usize,
    renamed: usize,
}

impl Listing {
    /// The node of a GUID; `letter` is what the listing says it is: `H`, `S` or `R`.
    pub(super) fn node(&mut self, line: usize, letter: char, id: u64, description: &str) -> Result<usize> {
        if let Some(&node) = self.by_guid.get(&id) {
            let seen = &self.seen[node];
            if seen.letter != letter {
                return Err(malformed(
                    line,
                    format!(
                        "{} is {} here, but {} by line {}",
                        units::guid_address(id),
                        kind(letter),
                        kind(seen.letter),
                        seen.line
                    ),
                    "no two nodes of a fabric may have one GUID: find out which of both is wrong",
                ));
            }
            let known = &mut self.cables.nodes[node].description;
            if known.is_empty() {
                description.clone_into(known);
            } else if known != description && !description.is_empty() {
                self.counts.renamed += 1;
            }
            return Ok(node);
        }
        match letter {
            'R' => self.counts.routers += 1,
            'H' if is_target_channel(id) => self.counts.gateways += 1,
            'H' | 'S' => {}
            _ => self.counts.unknown += 1,
        }
        let node = self.cables.nodes.len();
        self.by_guid.insert(id, node);
        self.seen.push(Seen { line, letter });
        self.cables.nodes.push(FabricNode {
            // What passes messages on between subnets, or to other networks, runs no ranks.
            kind: if letter == 'H' && !is_target_channel(id) { NodeKind::Host } else { NodeKind::Switch },
            address: units::guid_address(id),
            description: description.to_owned(),
            host: None,
            state: NodeState::Up,
        });
        Ok(node)
    }

    /// Takes an adapter for what leads to another network.
    pub(super) fn make_gateway(&mut self, node: usize) {
        if std::mem::replace(&mut self.cables.nodes[node].kind, NodeKind::Switch) == NodeKind::Host {
            self.counts.gateways += 1;
            self.addresses.retain(|address| address.node != node);
        }
    }

    pub(super) fn find(&self, guid: u64) -> Option<usize> {
        self.by_guid.get(&guid).copied()
    }

    pub(super) fn description(&self, guid: u64) -> Option<&str> {
        let description = self.cables.nodes[self.find(guid)?].description.as_str();
        (!description.is_empty()).then_some(description)
    }

    /// A cable as the port at one of its ends lists it.
    pub(super) fn end(
        &mut self,
        line: usize,
        (node, port): (usize, u32),
        (peer, peer_port): (usize, u32),
        width: &str,
        rate: &str,
    ) {
        let bandwidth_bytes_per_s = units::lanes_bandwidth(width, rate);
        self.cables.ends.push(End { node, port, peer, peer_port, bandwidth_bytes_per_s, line });
    }

    pub(super) fn port_without_peer(&mut self) {
        self.counts.without_peer += 1;
    }

    /// What messages to a port of an adapter are addressed to. A port without a subnet manager has LID 0.
    pub(super) fn address(&mut self, address: Address) {
        if address.lid != 0 && self.cables.nodes[address.node].kind == NodeKind::Host {
            self.addresses.push(address);
        }
    }

    /// Makes one adapter of ports that have GUIDs of their own.
    pub(in super::super) fn join_ports(&mut self, notes: &mut Vec<String>) {
        let place = self.cables.join_ports(notes);
        self.addresses.iter_mut().for_each(|address| address.node = place[address.node]);
        self.by_guid.values_mut().chain(self.switch_lids.values_mut()).for_each(|node| *node = place[*node]);
    }

    /// ibnetdiscover lists every cable at both of its ends, so that a node which others lead to and which lists no cable itself stood
    /// in a part that is missing, and so did a port of the last node that others lead to and which is not listed.
    pub(super) fn check_complete(&self) -> Result<()> {
        let mut lists = vec![false; self.cables.nodes.len()];
        self.cables.ends.iter().for_each(|end| lists[end.node] = true);
        let silent = self.cables.ends.iter().filter(|end| !lists[end.peer]);
        let (lacks, first) = match (silent.min_by_key(|end| end.line), self.lacking_of_last()) {
            (Some(first), _) => {
                let count = lists.iter().filter(|lists| !**lists).count();
                (format!("lists no cable, as {count} nodes do"), first)
            }
            (None, Some(first)) => (format!("does not list its port {}", first.peer_port), first),
            (None, None) => return Ok(()),
        };
        let FabricNode { description, address, .. } = &self.cables.nodes[first.peer];
        let name = if description.is_empty() { address } else { description };
        Err(malformed(
            first.line,
            format!("this cable leads to `{name}`, which {lacks}: the listing is cut off"),
            "run ibnetdiscover again, until it ends",
        ))
    }

    /// The first cable to a port of the last node that this one does not list.
    fn lacking_of_last(&self) -> Option<&End> {
        let ends = &self.cables.ends;
        let last = ends.last()?.node;
        let listed: HashSet<u32> = ends.iter().filter(|end| end.node == last).map(|end| end.port).collect();
        ends.iter().find(|end| end.peer == last && !listed.contains(&end.peer_port))
    }

    /// What people should know of it.
    pub(super) fn notes(&self, notes: &mut Vec<String>) {
        let Counts { routers, gateways, unknown, without_peer, renamed } = self.counts;
        for (count, what) in [
            (without_peer, "ports without a cable, left out"),
            (routers, "routers, taken for switches"),
            (gateways, "gateways to other networks, taken for switches"),
            (unknown, "nodes of an unknown kind, taken for switches"),
            (renamed, "lines that describe a node otherwise than the first one does, which counts"),
        ] {
            note(notes, what, count);
        }
    }
}

/// Whether an adapter is a target of an I/O director of Xsigo, as `ibnd_is_xsigo_tca` of infiniband-diags says.
fn is_target_channel(guid: u64) -> bool {
    guid >> 32 == 0x0013_9703
}

fn kind(letter: char) -> &'static str {
    match letter {
        'H' => "an adapter",
        'S' => "a switch",
        'R' => "a router",
        _ => "of an unknown kind",
    }
}
