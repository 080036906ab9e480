//! Graphs for Graphviz, and pictures.

use std::collections::{HashMap, VecDeque};
use std::fmt::Write;

use hopmap_graph::UNREACHED;
use hopmap_model::{Link, LinkState, NodeKind, NodeState, SystemGraph, distances_from_hosts};

/// The nodes and links of the machine: one edge for both directions of a link, and an arrow if the opposite
/// direction is missing.
///
/// Edges have bandwidth and latency in the middle and ports at their ends. Switches at the same distance from
/// hosts have one rank. Parts that are down are dashed.
pub(super) fn write(system: &SystemGraph) -> (String, Vec<String>) {
    let tiers = tiers(system);
    let mut text = "graph machine {\n  rankdir=TB;\n  node [shape=box, fontname=\"sans-serif\"];\n  \
                    edge [fontname=\"sans-serif\", fontsize=9];\n"
        .to_owned();
    let mut slots = vec![0_u32; system.nodes.len()];
    for slot in &system.slots {
        if let Some(count) = slots.get_mut(slot.host as usize) {
            *count += 1;
        }
    }
    for (index, node) in system.nodes.iter().enumerate() {
        let style = match (node.kind, node.state) {
            (NodeKind::Host, NodeState::Up) => "",
            (NodeKind::Host, NodeState::Down) => ", style=dashed",
            (NodeKind::Switch, NodeState::Up) => ", style=filled, fillcolor=\"#dde6f0\"",
            (NodeKind::Switch, NodeState::Down) => ", style=\"filled,dashed\", fillcolor=\"#dde6f0\"",
        };
        let slots = match slots.get(index).copied().unwrap_or(0) {
            0 | 1 => String::new(),
            count => format!("\\n{count} slots"),
        };
        // Writing to a string does not fail.
        let _ = writeln!(text, "  n{index} [label=\"{}{slots}\"{style}];", escaped(&node.name));
    }
    ranks(&mut text, &tiers);
    for (link, is_both) in edges(&system.links) {
        edge(&mut text, link, is_both, &tiers);
    }
    text.push_str("}\n");
    let mut lost = vec!["costs between slots".to_owned()];
    if !system.routing.forwarding.is_empty() {
        lost.push("forwarding tables".to_owned());
    }
    (text, lost)
}

/// The picture of the machine in reports.
pub(super) fn svg(system: &SystemGraph) -> (String, Vec<String>) {
    (hopmap_views::topology(system, None, None), Vec::new())
}

/// Number of links from each node to the nearest host, in either direction; `None` if not connected to one.
fn tiers(system: &SystemGraph) -> Vec<Option<u32>> {
    let distances = distances_from_hosts(&system.nodes, &system.links).into_iter();
    distances.map(|distance| (distance != UNREACHED).then_some(distance)).collect()
}

/// Puts the switches of a tier side by side; a network of hosts only has no tiers.
fn ranks(text: &mut String, tiers: &[Option<u32>]) {
    let highest = tiers.iter().copied().flatten().max().unwrap_or(0);
    for tier in (0..=highest).rev().filter(|_| highest > 0) {
        let nodes: Vec<String> = (0_u32..)
            .zip(tiers)
            .filter(|(_, other)| **other == Some(tier))
            .map(|(node, _)| format!("n{node}"))
            .collect();
        let _ = writeln!(text, "  {{ rank=same; {}; }}", nodes.join("; "));
    }
}

/// Each link once, and whether the same link in the opposite direction exists: with the same ports, bandwidth
/// and state.
fn edges(links: &[Link]) -> Vec<(&Link, bool)> {
    let bits = |number: Option<f64>| number.map(f64::to_bits);
    let key = |link: &Link| {
        let what = (bits(link.bandwidth_bytes_per_s), bits(link.latency_s), link.state == LinkState::Up);
        (link.source, link.source_port, link.destination, link.destination_port, what)
    };
    // Edges without an opposite direction so far, by their attributes.
    let mut open: HashMap<_, VecDeque<usize>> = HashMap::new();
    let mut edges: Vec<(&Link, bool)> = Vec::new();
    for link in links {
        match open.get_mut(&key(link)).and_then(VecDeque::pop_front) {
            Some(place) => {
                if let Some(edge) = edges.get_mut(place) {
                    edge.1 = true;
                }
            }
            None => {
                open.entry(key(&link.reversed())).or_default().push_back(edges.len());
                edges.push((link, false));
            }
        }
    }
    edges
}

fn edge(text: &mut String, link: &Link, is_both: bool, tiers: &[Option<u32>]) {
    let tier = |node: u32| tiers.get(node as usize).copied().flatten();
    // Graphviz draws the first end of an edge above the second.
    let is_upwards = tier(link.source) < tier(link.destination);
    let shown = if is_upwards { link.reversed() } else { *link };
    let mut attributes = Vec::new();
    let labels: Vec<String> = [
        link.bandwidth_bytes_per_s.map(|speed| format!("{} Gb/s", rounded(speed * 8e-9))),
        link.latency_s.map(|latency| format!("{} µs", rounded(latency * 1e6))),
    ]
    .into_iter()
    .flatten()
    .collect();
    if !labels.is_empty() {
        attributes.push(format!("label=\"{}\"", labels.join(", ")));
    }
    for (end, port) in [("taillabel", shown.source_port), ("headlabel", shown.destination_port)] {
        attributes.extend(port.map(|port| format!("{end}=\"{port}\"")));
    }
    if link.state == LinkState::Down {
        attributes.push("style=dashed, color=\"#d55e00\"".to_owned());
    }
    if !is_both {
        attributes.push(format!("dir={}", if is_upwards { "back" } else { "forward" }));
    }
    let attributes =
        if attributes.is_empty() { String::new() } else { format!(" [{}]", attributes.join(", ")) };
    let _ = writeln!(text, "  n{} -- n{}{attributes};", shown.source, shown.destination);
}

/// Rounds to at most three decimals.
fn rounded(number: f64) -> f64 {
    libm::round(number * 1000.0) / 1000.0
}

/// Escapes text for Graphviz.
fn escaped(name: &str) -> String {
    let mut text = String::new();
    for c in name.chars() {
        match c {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            c if c.is_control() => text.push(' '),
            // Labels may contain HTML entities.
            '&' => text.push_str("&amp;"),
            c => text.push(c),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use hopmap_model::{CostModel, Levels, Node, Routing, Slot};

    use super::*;

    fn system() -> SystemGraph {
        let mut nodes =
            vec![Node::host("a\"\\&\n"), Node::host("b"), Node::switch("s"), Node::switch("lonely")];
        nodes[1].state = NodeState::Down;
        let up = Link {
            source_port: Some(1),
            destination_port: Some(7),
            bandwidth_bytes_per_s: Some(4e9),
            latency_s: Some(1.5e-7),
            ..Link::new(0, 2)
        };
        let plain = Link::new(1, 2);
        let down = Link { state: LinkState::Down, ..plain };
        let links = vec![up, up.reversed(), plain, plain.reversed(), plain, plain.reversed(), down, plain];
        SystemGraph {
            nodes,
            links,
            slots: (0..3).map(|slot| Slot { host: slot / 2, core: slot % 2 }).collect(),
            cost: CostModel::Levels(Levels { costs: vec![1.0], groups: vec![vec![0; 3]] }),
            routing: Routing::default(),
            calibration: Vec::new(),
        }
    }

    #[test]
    fn links_are_edges_with_their_known_attributes() {
        let (text, lost) = write(&system());
        let edges: Vec<&str> = text.lines().filter(|line| line.contains("--")).map(str::trim).collect();
        assert_eq!(
            edges,
            [
                "n2 -- n0 [label=\"32 Gb/s, 0.15 µs\", taillabel=\"7\", headlabel=\"1\"];",
                "n2 -- n1;",
                "n2 -- n1;",
                "n2 -- n1 [style=dashed, color=\"#d55e00\", dir=back];",
                "n2 -- n1 [dir=back];",
            ]
        );
        assert!(text.contains("n0 [label=\"a\\\"\\\\&amp; \\n2 slots\"];"), "{text}");
        assert!(text.contains("n1 [label=\"b\", style=dashed];"));
        assert!(text.contains("{ rank=same; n2; }\n  { rank=same; n0; n1; }"));
        assert_eq!(lost, ["costs between slots"]);
    }

    #[test]
    fn a_picture_is_an_svg() {
        let (text, lost) = svg(&system());
        assert!(text.starts_with("<svg ") && text.contains("lonely") && lost.is_empty());
    }
}
