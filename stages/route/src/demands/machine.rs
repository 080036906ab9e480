//! A machine whose links have ports and whose hosts say what they can do.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use hopmap_model::{
    Link, LinkState, Node, NodeKind, NodeState, Routing, SwitchType, SystemGraph, TableEntry, Tables,
};

use super::DemandsParams;
use crate::CheckError;

/// The machine with a port at both ends of every link, the performance of hosts, and what `params` say of links and switches that do not
/// say it themselves. Ports that are known stay. In networks whose hosts are linked to each other every host gets a switch of its own, called
/// `HOST-router`, for hosts pass nothing on.
pub(super) fn ready(system: &SystemGraph, params: &DemandsParams) -> Result<SystemGraph, CheckError> {
    if system.links.is_empty() {
        return Err(CheckError::new(
            "the links of the machine are not known",
            "take the machine from a fabric (topology/ibnetdiscover, topology/netloc, …), or a shape with links such as `fat-tree:4x4/1x2`, \
             `torus:4x4` or `mesh:2x4` of topology/synthetic",
        ));
    }
    let mut system = system.clone();
    for link in &mut system.links {
        link.bandwidth_bytes_per_s = link.bandwidth_bytes_per_s.or(params.bandwidth);
    }
    routers(&mut system);
    ports(&mut system);
    down(&mut system);
    let slots: HashMap<u32, u32> = system.hosts().map(|(host, _, count)| (host, count)).collect();
    for (id, node) in (0..).zip(&mut system.nodes) {
        match node.kind {
            NodeKind::Host => {
                let count = slots.get(&id).copied().unwrap_or_default();
                node.traits.performance = node.traits.performance.or(Some(f64::from(count)));
            }
            NodeKind::Switch => {
                let other = params.switch_type.and_then(SwitchType::of_number);
                node.traits.switch_type = node.traits.switch_type.or(other);
            }
        }
    }
    Ok(system)
}

/// Takes away what ends at a node that is down.
fn down(system: &mut SystemGraph) {
    let is_down = |node: u32| system.nodes[node as usize].state == NodeState::Down;
    for link in &mut system.links {
        if is_down(link.source) || is_down(link.destination) {
            link.state = LinkState::Down;
        }
    }
}

/// Puts a switch before every host that is linked to another host.
fn routers(system: &mut SystemGraph) {
    let is_host = |node: u32| system.nodes[node as usize].kind == NodeKind::Host;
    let direct = system.links.iter().filter(|link| is_host(link.source) && is_host(link.destination));
    let hosts: BTreeMap<u32, u32> =
        direct.flat_map(|link| [link.source, link.destination]).map(|host| (host, 0)).collect();
    if hosts.is_empty() {
        return;
    }
    let mut names: HashSet<String> = system.nodes.iter().map(|node| node.name.clone()).collect();
    let mut router_of = hosts;
    for (&host, router) in &mut router_of {
        let mut name = format!("{}-router", system.nodes[host as usize].name);
        while !names.insert(name.clone()) {
            name.push('\'');
        }
        *router = system.nodes.len() as u32;
        let state = system.nodes[host as usize].state;
        system.nodes.push(Node { state, ..Node::switch(&name) });
    }
    for link in &mut system.links {
        for end in [&mut link.source, &mut link.destination] {
            *end = router_of.get(end).copied().unwrap_or(*end);
        }
    }
    for (&host, &router) in &router_of {
        system.links.extend([Link::new(host, router), Link::new(router, host)]);
    }
    // Ways that were known do not lead through the new switches.
    system.routing = Routing::default();
}

/// Gives links without ports the lowest ones that are free; both directions of a cable have the same ports.
fn ports(system: &mut SystemGraph) {
    let taken = system.links.iter().flat_map(|link| {
        [
            link.source_port.map(|port| (link.source, port)),
            link.destination_port.map(|port| (link.destination, port)),
        ]
    });
    let mut taken: HashSet<(u32, u32)> = taken.flatten().collect();
    let mut next: HashMap<u32, u32> = HashMap::new();
    let mut free = |node: u32| {
        let port = next.entry(node).or_default();
        while !taken.insert((node, *port)) {
            *port += 1;
        }
        *port
    };
    // Cables whose other direction is still to come, by where that leaves and arrives.
    let mut waiting: HashMap<(u32, u32), VecDeque<(u32, u32)>> = HashMap::new();
    for link in system.links.iter_mut().filter(|link| link.state == LinkState::Up) {
        if link.source_port.is_some() && link.destination_port.is_some() {
            continue;
        }
        let ends = (link.source, link.destination);
        let known = waiting.get_mut(&ends).and_then(VecDeque::pop_front);
        let (source, destination) = known.unwrap_or_else(|| {
            let ports = (free(ends.0), free(ends.1));
            waiting.entry((ends.1, ends.0)).or_default().push_back((ports.1, ports.0));
            ports
        });
        link.source_port = Some(source);
        link.destination_port = Some(destination);
    }
}

/// The forwarding tables of a fabric as tables of its switches; nothing if they are not known. Of a host with several addresses the
/// entries of the first one that a switch knows.
pub(super) fn tables(system: &SystemGraph) -> Option<Tables> {
    let mut entries = BTreeMap::new();
    for forward in &system.routing.forwarding {
        let (last, link) = (&system.links[forward.last as usize], &system.links[forward.link as usize]);
        if let (NodeKind::Switch, Some(port)) = (system.nodes[forward.node as usize].kind, link.source_port) {
            entries.entry((forward.node, last.destination)).or_insert(port);
        }
    }
    let entry = |((switch, destination), output_port)| TableEntry {
        switch,
        input_port: None,
        destination,
        output_port,
    };
    let entries: Vec<TableEntry> = entries.into_iter().map(entry).collect();
    (!entries.is_empty()).then(|| Tables { entries, metrics: BTreeMap::new() })
}

#[cfg(test)]
mod tests {
    use hopmap_model::{CostModel, Levels, Slot};

    use super::*;

    /// Hosts `h0` to `h2` and a switch, joined as said.
    fn machine(cables: &[(u32, u32)]) -> SystemGraph {
        let mut nodes: Vec<Node> = (0..3).map(|host| Node::host(format!("h{host}"))).collect();
        nodes.push(Node::switch("s"));
        let links = cables.iter().flat_map(|&(a, b)| [Link::new(a, b), Link::new(b, a)]).collect();
        let slots: Vec<Slot> =
            [0, 0, 1, 2].into_iter().zip([0, 1, 0, 0]).map(|(host, core)| Slot { host, core }).collect();
        let cost = CostModel::Levels(Levels { costs: vec![1.0], groups: vec![vec![0; 4]] });
        SystemGraph { nodes, links, slots, cost, routing: Routing::default() }
    }

    fn is_tidy(system: &SystemGraph) -> bool {
        let leave: HashSet<_> =
            system.links.iter().map(|link| (link.source, link.source_port.unwrap())).collect();
        let back = |link: &Link| {
            let other = link.reversed();
            system.links.iter().any(|link| {
                (link.source, link.source_port, link.destination_port)
                    == (other.source, other.source_port, other.destination_port)
            })
        };
        leave.len() == system.links.len() && system.links.iter().all(back) && system.check().is_ok()
    }

    #[test]
    fn links_get_ports_and_hosts_their_performance() {
        let params = DemandsParams { bandwidth: Some(5.0), switch_type: Some(2), ..DemandsParams::default() };
        let mut system = machine(&[(0, 3), (1, 3), (1, 3), (2, 3)]);
        system.links[6].source_port = Some(0);
        system.links[6].destination_port = Some(1);
        system.links[7] = Link { bandwidth_bytes_per_s: Some(9.0), ..system.links[6].reversed() };
        let ready = ready(&system, &params).unwrap();
        assert!(is_tidy(&ready));
        assert_eq!((ready.links[7].source_port, ready.links[7].bandwidth_bytes_per_s), (Some(1), Some(9.0)));
        assert_eq!(ready.links[0].bandwidth_bytes_per_s, Some(5.0));
        assert_eq!(ready.nodes[0].traits.performance, Some(2.0));
        assert_eq!(ready.nodes[3].traits.switch_type, Some(SwitchType::Two));
    }

    #[test]
    fn forwarding_tables_become_tables_of_switches() {
        let mut system = machine(&[(0, 3), (1, 3), (2, 3)]);
        assert_eq!(tables(&system), None);
        let forward = |node, last, link| hopmap_model::Forward { node, last, link };
        system.routing.forwarding = vec![forward(0, 3, 0), forward(3, 1, 1), forward(3, 3, 3)];
        assert!(system.check().is_ok());
        let ready = ready(&system, &DemandsParams::default()).unwrap();
        let entry =
            |destination, output_port| TableEntry { switch: 3, input_port: None, destination, output_port };
        assert_eq!(tables(&ready).unwrap().entries, [entry(0, 0), entry(1, 1)]);
    }

    #[test]
    fn hosts_that_are_linked_to_each_other_get_a_switch_each() {
        let ready = ready(&machine(&[(0, 1), (1, 2), (2, 0)]), &DemandsParams::default()).unwrap();
        assert!(is_tidy(&ready));
        assert_eq!((ready.nodes.len(), ready.links.len()), (7, 12));
        assert_eq!(ready.nodes[4].name, "h0-router");
        let are_hosts = |link: &Link| link.source.max(link.destination) < 3;
        assert!(!ready.links.iter().any(are_hosts));
        let none = super::ready(&machine(&[]), &DemandsParams::default()).unwrap_err();
        assert_eq!(none.to_string(), "the links of the machine are not known");
    }
}
