//! Content of an `ibnetdiscover` listing in either syntax, collected line by line.

use std::collections::{HashMap, HashSet};

use hopmap_model::{NodeKind, NodeState};
use hopmap_text::Foreign;

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
    /// Switches by the LID of their management port, if known.
    pub(super) switch_lids: HashMap<u16, usize>,
    by_guid: HashMap<u64, usize>,
    seen: Vec<Seen>,
    counts: Counts,
    /// Lines behind its end.
    pub(super) behind: Option<Foreign>,
}

/// An addressable port of an adapter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Address {
    pub(super) node: usize,
    pub(super) port: u32,
    /// Port GUID, if listed.
    pub(super) guid: Option<u64>,
    /// The first of its LIDs.
    pub(super) lid: u16,
    /// LID mask control: the port has 2^`lmc` consecutive LIDs.
    pub(super) lmc: u8,
    pub(super) line: usize,
}

/// First occurrence of a node.
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
    /// The node with a GUID; `letter` is its type in the listing: `H`, `S` or `R`.
    pub(in super::super) fn node(
        &mut self,
        line: usize,
        letter: char,
        id: u64,
        description: &str,
    ) -> Result<usize> {
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
                    "GUIDs must be unique in a fabric; check which of them is wrong",
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
            // Routers and gateways to other networks run no ranks.
            kind: if letter == 'H' && !is_target_channel(id) { NodeKind::Host } else { NodeKind::Switch },
            address: units::guid_address(id),
            description: description.to_owned(),
            host: None,
            image: None,
            state: NodeState::Up,
        });
        Ok(node)
    }

    /// Treats an adapter as a gateway to another network.
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

    /// Adds a cable as listed at one of its ends.
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

    /// Whether a line is empty, or one behind the end, which is counted.
    pub(super) fn is_behind(&mut self, line: usize, text: &str, is_one: fn(&str) -> bool) -> bool {
        if !text.is_empty() && is_one(text) {
            let first = || Foreign { count: 0, line, first: text.to_owned(), file: None };
            self.behind.get_or_insert_with(first).count += 1;
            return true;
        }
        text.is_empty()
    }

    pub(in super::super) fn port_without_peer(&mut self) {
        self.counts.without_peer += 1;
    }

    /// Adds the address of an adapter port. A port without a subnet manager has LID 0.
    pub(super) fn address(&mut self, address: Address) {
        if address.lid != 0 && self.cables.nodes[address.node].kind == NodeKind::Host {
            self.addresses.push(address);
        }
    }

    /// Combines ports with their own GUIDs into one adapter.
    pub(in super::super) fn join_ports(&mut self, notes: &mut Vec<String>) {
        let place = self.cables.join_ports(notes);
        self.addresses.iter_mut().for_each(|address| address.node = place[address.node]);
        self.by_guid.values_mut().chain(self.switch_lids.values_mut()).for_each(|node| *node = place[*node]);
    }

    /// ibnetdiscover lists every cable at both ends. So the listing is truncated if a node that is a peer
    /// lists no cables itself, or if a peer port of the last node is not listed.
    pub(in super::super) fn check_complete(&self) -> Result<()> {
        let mut lists = vec![false; self.cables.nodes.len()];
        self.cables.ends.iter().for_each(|end| lists[end.node] = true);
        let silent = self.cables.ends.iter().filter(|end| !lists[end.peer]);
        let (lacks, first) = match (silent.min_by_key(|end| end.line), self.lacking_of_last()) {
            (Some(first), _) => {
                let count = lists.iter().filter(|lists| !**lists).count();
                (format!("lists no cables (as do {count} nodes in total)"), first)
            }
            (None, Some(first)) => (format!("does not list its port {}", first.peer_port), first),
            (None, None) => return Ok(()),
        };
        let FabricNode { description, address, .. } = &self.cables.nodes[first.peer];
        let name = if description.is_empty() { address } else { description };
        Err(malformed(
            first.line,
            format!("this cable leads to `{name}`, which {lacks}: the listing is truncated"),
            "list the fabric again, completely",
        ))
    }

    /// The first cable to a port of the last node that the node does not list.
    fn lacking_of_last(&self) -> Option<&End> {
        let ends = &self.cables.ends;
        let last = ends.last()?.node;
        let listed: HashSet<u32> = ends.iter().filter(|end| end.node == last).map(|end| end.port).collect();
        ends.iter().find(|end| end.peer == last && !listed.contains(&end.peer_port))
    }

    /// Adds notes for the user.
    pub(in super::super) fn notes(&self, notes: &mut Vec<String>) {
        let Counts { routers, gateways, unknown, without_peer, renamed } = self.counts;
        for (count, what) in [
            (without_peer, "ports without a cable, ignored"),
            (routers, "routers, treated as switches"),
            (gateways, "gateways to other networks, treated as switches"),
            (unknown, "nodes of unknown kind, treated as switches"),
            (renamed, "lines with another node description than the first, which is used"),
        ] {
            note(notes, what, count);
        }
        notes.extend(self.behind.as_ref().map(Foreign::to_string));
    }
}

/// The lines behind the last one of a listing that cannot be the beginning of one, such as `done` or `-----`.
pub(in super::super) fn behind_end(text: &str, is_own: impl Fn(&str) -> bool) -> Vec<usize> {
    let lines: Vec<(usize, &str)> = (1..).zip(text.lines().map(str::trim)).collect();
    let behind = lines.iter().rev().take_while(|(_, line)| line.is_empty() || !is_own(line));
    let mut behind: Vec<usize> =
        behind.filter(|(_, line)| !line.is_empty()).map(|(number, _)| *number).collect();
    behind.reverse();
    behind
}

/// Whether an adapter is a target of a Xsigo I/O director, by the rule of `ibnd_is_xsigo_tca` in
/// infiniband-diags.
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
