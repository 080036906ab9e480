//! Cables that are listed at both of their ends.

use std::collections::BTreeMap;

use hopmap_model::{LinkState, NodeKind};

use super::fabric::{Fabric, FabricLink, FabricNode};
use super::format::{malformed, note};
use super::{Result, units};

/// Adapters, switches, and the peers of their ports. Node indexes refer to the list here.
#[derive(Debug, Default)]
pub(super) struct Cables {
    pub(super) nodes: Vec<FabricNode>,
    pub(super) ends: Vec<End>,
}

/// The peer of one port.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct End {
    pub(super) node: usize,
    pub(super) port: u32,
    pub(super) peer: usize,
    pub(super) peer_port: u32,
    pub(super) bandwidth_bytes_per_s: Option<f64>,
    /// The line that lists it.
    pub(super) line: usize,
}

impl End {
    fn here(&self) -> (usize, u32) {
        (self.node, self.port)
    }

    fn there(&self) -> (usize, u32) {
        (self.peer, self.peer_port)
    }

    fn link(&self) -> FabricLink {
        FabricLink {
            source: self.node,
            source_port: Some(self.port),
            destination: self.peer,
            destination_port: Some(self.peer_port),
            bandwidth_bytes_per_s: self.bandwidth_bytes_per_s,
            state: LinkState::Up,
        }
    }

    pub(super) fn reversed(&self) -> Self {
        Self { node: self.peer, port: self.peer_port, peer: self.node, peer_port: self.port, ..*self }
    }
}

impl Cables {
    /// Combines the ports of one adapter into one node if the source contains only port GUIDs: their
    /// descriptions are equal, and the GUID of port n is that of the adapter plus n. The GUID of the lowest
    /// port is kept. Returns the new index of each node.
    pub(super) fn join_ports(&mut self, notes: &mut Vec<String>) -> Vec<usize> {
        let mut ports: Vec<Option<u32>> = vec![None; self.nodes.len()];
        for end in &self.ends {
            ports[end.node] = Some(end.port);
        }
        // Nodes that are listed only as peers have a port as well.
        for end in &self.ends {
            ports[end.peer] = ports[end.peer].or(Some(end.peer_port));
        }
        let mut first: BTreeMap<(&str, Option<&str>, u64), usize> = BTreeMap::new();
        let mut order: Vec<usize> =
            (0..self.nodes.len()).filter(|&node| self.nodes[node].kind == NodeKind::Host).collect();
        order.sort_by_key(|&node| ports[node]);
        let mut place: Vec<usize> = (0..self.nodes.len()).collect();
        let mut joined = 0;
        for node in order {
            let FabricNode { address, description, host, .. } = &self.nodes[node];
            let (Some(guid), Some(port)) = (units::hex_guid(address), ports[node]) else { continue };
            let base = guid.wrapping_sub(u64::from(port));
            place[node] = *first.entry((description, host.as_deref(), base)).or_insert(node);
            joined += usize::from(place[node] != node);
        }
        for end in &mut self.ends {
            (end.node, end.peer) = (place[end.node], place[end.peer]);
        }
        let mut kept = vec![usize::MAX; self.nodes.len()];
        let mut listed = std::mem::take(&mut self.nodes).into_iter();
        for node in 0..kept.len() {
            let own = listed.next().filter(|_| place[node] == node);
            if let Some(own) = own {
                kept[node] = self.nodes.len();
                self.nodes.push(own);
            }
        }
        place.iter_mut().for_each(|node| *node = kept[*node]);
        for end in &mut self.ends {
            (end.node, end.peer) = (kept[end.node], kept[end.peer]);
        }
        note(notes, "further ports combined with their adapters by GUID", joined);
        place
    }

    /// The links, and for each end its outgoing link. Both ends of a cable must agree; a cable listed at one
    /// end only is bidirectional.
    pub(super) fn fabric(self, notes: &mut Vec<String>) -> Result<(Fabric, Vec<usize>)> {
        let Self { nodes, ends } = self;
        let mut order: Vec<usize> = (0..ends.len()).collect();
        order.sort_by_key(|&end| (ends[end].here(), ends[end].line));
        let find = |port: (usize, u32)| {
            let place = order.partition_point(|&end| ends[end].here() < port);
            order.get(place).map(|&end| &ends[end]).filter(|end| end.here() == port)
        };
        let contradict = |end: &End, other: &End| {
            let (line, first) = (end.line.max(other.line), end.line.min(other.line));
            let named = |(node, port): (usize, u32)| {
                format!("port {port} of `{}` ({})", nodes[node].description.trim(), nodes[node].address)
            };
            let connection =
                |end: &End| format!("{} is connected to {}", named(end.here()), named(end.there()));
            let (this, before) = if end.line == line { (end, other) } else { (other, end) };
            malformed(
                line,
                format!("{}, but by line {first} {}", connection(this), connection(before)),
                "one of them is wrong, or the fabric changed during the dump; repeat the dump",
            )
        };
        let mut links: Vec<FabricLink> = Vec::with_capacity(ends.len());
        let mut link_of = vec![0; ends.len()];
        let (mut one_sided, mut unequal) = (0, 0);
        let mut before: Option<&End> = None;
        for &place in &order {
            let end = &ends[place];
            if let Some(before) = before.filter(|before| before.here() == end.here()) {
                if before.there() != end.there() {
                    return Err(contradict(end, before));
                }
                link_of[place] = links.len() - 1;
                continue;
            }
            before = Some(end);
            link_of[place] = links.len();
            links.push(end.link());
            match find(end.there()) {
                Some(other) if other.there() != end.here() => return Err(contradict(end, other)),
                Some(other) => {
                    let differ = other.bandwidth_bytes_per_s != end.bandwidth_bytes_per_s;
                    unequal += usize::from(differ && end.here() < other.here());
                }
                None => one_sided += 1,
            }
        }
        let listed = links.len();
        if one_sided > 0 {
            let lonely = |end: &&End| find(end.there()).is_none();
            let mut back: Vec<End> = ends.iter().filter(lonely).map(End::reversed).collect();
            back.sort_by_key(|end| (end.here(), end.there(), end.line));
            back.dedup_by_key(|end| (end.here(), end.there()));
            if let Some(two) = back.windows(2).find(|two| two[0].here() == two[1].here()) {
                return Err(contradict(&two[0].reversed(), &two[1].reversed()));
            }
            links.extend(back.iter().map(End::link));
            notes.push(format!("cables listed at one end only: {}", links.len() - listed));
        }
        let unknown = links.iter().filter(|link| link.bandwidth_bytes_per_s.is_none()).count();
        note(notes, "links of unknown speed or width, kept without a bandwidth", unknown);
        note(notes, "cables with different speeds at both ends", unequal);
        Ok((Fabric { nodes, links, forwarding: Vec::new() }, link_of))
    }
}

#[cfg(test)]
mod tests {
    use hopmap_model::NodeState;

    use super::*;

    fn cables(kinds: &[(NodeKind, &str, &str)], ends: &[[usize; 4]]) -> Cables {
        let node = |&(kind, address, description): &(NodeKind, &str, &str)| FabricNode {
            kind,
            address: address.into(),
            description: description.into(),
            host: None,
            image: None,
            state: NodeState::Up,
        };
        let end = |(line, &[node, port, peer, peer_port]): (usize, &[usize; 4])| End {
            node,
            port: port as u32,
            peer,
            peer_port: peer_port as u32,
            bandwidth_bytes_per_s: Some(4e9),
            line: line + 1,
        };
        Cables { nodes: kinds.iter().map(node).collect(), ends: ends.iter().enumerate().map(end).collect() }
    }

    const NODES: [(NodeKind, &str, &str); 3] =
        [(NodeKind::Switch, "09", "s"), (NodeKind::Host, "02", "n1"), (NodeKind::Host, "03", "n1")];

    #[test]
    fn one_sided_cables_are_bidirectional_and_repeated_lines_count_once() {
        let mut notes = Vec::new();
        let cables = cables(&NODES, &[[0, 1, 1, 1], [1, 1, 0, 1], [0, 1, 1, 1], [0, 2, 2, 1]]);
        let (fabric, link_of) = cables.fabric(&mut notes).unwrap();
        assert_eq!(notes, ["cables listed at one end only: 1"]);
        let ends: Vec<_> = fabric.links.iter().map(|link| (link.source, link.destination)).collect();
        assert_eq!(ends, [(0, 1), (0, 2), (1, 0), (2, 0)]);
        assert_eq!(link_of, [0, 2, 0, 1]);
    }

    #[test]
    fn contradictions_report_both_lines() {
        for ends in [
            [[0, 1, 1, 1], [1, 1, 0, 2]],
            [[0, 1, 1, 1], [0, 1, 2, 1]],
            [[0, 1, 1, 1], [2, 1, 0, 1]],
            [[0, 1, 1, 1], [0, 2, 1, 1]],
        ] {
            let error = cables(&NODES, &ends).fabric(&mut Vec::new()).unwrap_err();
            let text = error.in_file("f".as_ref()).to_string();
            assert!(text.starts_with("f:2: port "), "{text}");
            assert!(text.contains("but by line 1 port "), "{text}");
        }
    }

    #[test]
    fn ports_of_one_adapter_become_one_node() {
        let mut notes = Vec::new();
        let mut cables = cables(&NODES, &[[0, 1, 1, 1], [2, 2, 0, 2]]);
        assert_eq!(cables.join_ports(&mut notes), [0, 1, 1]);
        assert_eq!(cables.nodes.len(), 2);
        assert_eq!(cables.nodes[1].address, "02");
        assert_eq!((cables.ends[1].node, cables.ends[1].port), (1, 2));
        assert_eq!(notes.len(), 1);
    }
}
