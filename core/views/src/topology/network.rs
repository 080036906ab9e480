//! Contents of a drawing of a machine: boxes in layers, hosts at the bottom, and lines between them.

use std::collections::{BTreeMap, HashMap, HashSet};

use hopmap_model::{CostModel, Levels, Mapping, NodeKind, NodeState, SystemGraph};
use hopmap_text::grouped;

use super::lines::Line;
use crate::human::{Unit, count_of, quantity, ranges};
use crate::layered::{distances, neighbours, reduce_crossings};

/// Boxes in a layer; larger layers are drawn as a number in the boxes above.
pub(crate) const MOST_BOXES: usize = 64;

/// Boxes in a layer of switches whose hosts are drawn as cells below them.
const MOST_BLOCKS: usize = 96;

/// Hosts that are drawn as cells.
const MOST_CELLS: usize = 1500;

/// Layers; what is higher up is drawn in the topmost one.
const MOST_LAYERS: usize = 12;

/// Contents of the drawing of a machine.
#[derive(Debug, Default)]
pub(crate) struct Drawing {
    pub(crate) boxes: Vec<NodeBox>,
    /// Lines between boxes, lower one first, each pair once.
    pub(crate) lines: BTreeMap<(usize, usize), Line>,
    /// The boxes of every layer from the bottom, in drawing order.
    pub(crate) layers: Vec<Vec<usize>>,
    /// Where switches with hosts are the only layer, the group of every box of it: those that are all linked to each other.
    pub(crate) groups: Vec<usize>,
}

/// A host, a switch, or several of them.
#[derive(Debug, Clone, Default)]
pub(crate) struct NodeBox {
    pub(crate) name: String,
    /// What it is; none for a group of nodes.
    pub(crate) kind: Option<NodeKind>,
    pub(crate) is_down: bool,
    /// Hosts below that are drawn as cells, in order.
    pub(crate) cells: Vec<usize>,
    /// Of a host in a cell, its links to the box above.
    pub(crate) own: Option<Line>,
    /// Of a host in a cell, the other boxes that it is linked to.
    pub(crate) elsewhere: Vec<usize>,
    /// Ranks on the host, in order.
    pub(crate) ranks: Vec<u32>,
    pub(crate) slots: u32,
    /// Nodes below that are not drawn.
    pub(crate) hidden_hosts: usize,
    pub(crate) hidden_switches: usize,
    /// The largest load of a link that is not drawn.
    pub(crate) hidden_load: Option<u64>,
    /// Ranks on hosts that are not drawn.
    pub(crate) hidden_ranks: usize,
    layer: usize,
}

impl NodeBox {
    /// The text in a box.
    pub(super) fn inside(&self) -> Vec<String> {
        let hidden = match (self.hidden_hosts, self.hidden_switches) {
            (0, 0) if !self.cells.is_empty() => count_of(self.cells.len(), "host"),
            (0, 0) => String::new(),
            (hosts, 0) => count_of(hosts, "host"),
            (0, switches) => count_of(switches, "switch"),
            (hosts, switches) => format!("{}, {}", count_of(hosts, "host"), count_of(switches, "switch")),
        };
        [self.name.clone(), hidden].into_iter().filter(|line| !line.is_empty()).collect()
    }

    /// Its tooltip.
    pub(super) fn tooltip(&self) -> String {
        /// Ranges of ranks that are named.
        const MOST_RANGES: usize = 40;
        let mut parts = self.inside();
        if self.is_down {
            parts.push("down".into());
        }
        if self.slots > 0 {
            parts.push(format!(
                "{} of {} in use",
                grouped(self.ranks.len()),
                count_of(self.slots as usize, "slot")
            ));
        }
        if !self.ranks.is_empty() {
            let ranges = ranges(&self.ranks);
            let more = if ranges.len() > MOST_RANGES { ", …" } else { "" };
            parts.push(format!("ranks {}{more}", ranges[..ranges.len().min(MOST_RANGES)].join(", ")));
        }
        if self.hidden_ranks > 0 {
            parts.push(format!("{} ranks", grouped(self.hidden_ranks)));
        }
        if let Some(load) = self.hidden_load {
            parts.push(format!("busiest link inside: {}", quantity(load as f64, Unit::Bytes)));
        }
        parts.join(" · ")
    }
}

/// Nodes with their height above the hosts, and links without direction.
struct Network {
    nodes: Vec<NodeBox>,
    links: BTreeMap<(usize, usize), Line>,
}

impl Drawing {
    /// The drawing of a machine, with the load of every directed link and the ranks on its hosts.
    pub(crate) fn new(system: &SystemGraph, loads: Option<&[u64]>, placement: Option<&Mapping>) -> Self {
        let mut network = if system.links.is_empty() {
            Network::from_levels(system)
        } else {
            Network::from_links(system, loads)
        };
        network.place(system, placement);
        network.into_drawing()
    }

    /// All nodes and the lines between them, without layers.
    pub(crate) fn whole(system: &SystemGraph, loads: Option<&[u64]>, placement: Option<&Mapping>) -> Self {
        let mut network = Network::from_links(system, loads);
        network.place(system, placement);
        Self { boxes: network.nodes, lines: network.links, ..Self::default() }
    }
}

impl Network {
    fn from_links(system: &SystemGraph, loads: Option<&[u64]>) -> Self {
        let mut links: BTreeMap<(usize, usize), Line> = BTreeMap::new();
        let exists = |node: u32| (node as usize) < system.nodes.len();
        for (index, link) in system.links.iter().enumerate() {
            if link.source == link.destination || !exists(link.source) || !exists(link.destination) {
                continue;
            }
            let pair =
                (link.source.min(link.destination) as usize, link.source.max(link.destination) as usize);
            let load = loads.map(|loads| loads.get(index).copied().unwrap_or(0));
            links.entry(pair).or_default().add(link, link.source < link.destination, load);
        }
        let mut nodes = nodes(system);
        for (node, height) in heights(&nodes, &links).into_iter().enumerate() {
            nodes[node].layer = height;
        }
        let upwards = |((a, b), line): ((usize, usize), Line)| {
            let turned = nodes[a].layer > nodes[b].layer;
            (if turned { (b, a) } else { (a, b) }, line)
        };
        let links = links.into_iter().map(upwards).collect();
        Self { nodes, links }
    }

    /// A machine whose network is not known: the groups of its cost levels, if it has any, replace switches.
    fn from_levels(system: &SystemGraph) -> Self {
        let mut network = Self { nodes: nodes(system), links: BTreeMap::new() };
        let CostModel::Levels(levels) = &system.cost else { return network };
        // The box in which every host lies so far.
        let mut top: HashMap<u32, usize> = (0..system.nodes.len()).map(|node| (node as u32, node)).collect();
        for level in 0..levels.groups.len() {
            if let Some(group_of) = groups_of_hosts(system, levels, level) {
                network.add_level(&mut top, &group_of, levels.costs.get(level).copied());
            }
        }
        network
    }

    fn add_level(&mut self, top: &mut HashMap<u32, usize>, group_of: &[(u32, u32)], cost: Option<f64>) {
        let mut boxes: HashMap<u32, usize> = HashMap::new();
        let height = |host: &u32| top.get(host).map(|&node| self.nodes[node].layer);
        let layer = 1 + group_of.iter().filter_map(|(host, _)| height(host)).max().unwrap_or(0);
        for &(host, group) in group_of {
            let Some(&lower) = top.get(&host) else { continue };
            let upper = *boxes.entry(group).or_insert_with(|| {
                let name = cost.map_or_else(String::new, |cost| format!("cost {cost}"));
                self.nodes.push(NodeBox { name, layer, ..NodeBox::default() });
                self.nodes.len() - 1
            });
            self.links.entry((lower, upper)).or_default();
            top.insert(host, upper);
        }
    }

    fn place(&mut self, system: &SystemGraph, placement: Option<&Mapping>) {
        for (node, _, slots) in system.hosts() {
            if let Some(host) = self.nodes.get_mut(node as usize) {
                host.slots = slots;
            }
        }
        let Some(mapping) = placement else { return };
        let hosts = system.nodes.iter().enumerate().filter(|(_, node)| node.kind == NodeKind::Host);
        let by_name: HashMap<&str, usize> = hosts.map(|(index, node)| (node.name.as_str(), index)).collect();
        for (rank, placement) in mapping.ranks.iter().enumerate() {
            let host =
                mapping.hosts.get(placement.host as usize).and_then(|host| by_name.get(host.host.as_str()));
            if let Some(&node) = host {
                self.nodes[node].ranks.push(rank as u32);
            }
        }
    }

    fn into_drawing(self) -> Drawing {
        let layers = 1 + self.nodes.iter().map(|node| node.layer).max().unwrap_or(0);
        let mut by_layer: Vec<Vec<usize>> = vec![Vec::new(); layers];
        for (node, content) in self.nodes.iter().enumerate() {
            by_layer[content.layer].push(node);
        }
        let mut boxes = self.nodes;
        let mut owner: Vec<usize> = (0..boxes.len()).collect();
        if let [hosts, switches, ..] = &by_layer[..]
            && (MOST_BOXES + 1..=MOST_CELLS).contains(&hosts.len())
            && switches.len() <= MOST_BLOCKS
            && !self.links.is_empty()
            && boxes[switches[0]].kind == Some(NodeKind::Switch)
        {
            let without = enclose(hosts, &mut boxes, &mut owner, &self.links);
            by_layer[0].clear();
            by_layer[1].extend(without);
        }
        for layer in &mut by_layer {
            let most = match layer.iter().any(|&node| !boxes[node].cells.is_empty()) {
                true => MOST_BLOCKS + 1,
                false => MOST_BOXES,
            };
            if layer.len() > most {
                *layer = absorb(layer, &mut boxes, &mut owner, &self.links);
            }
        }
        let mut lines: BTreeMap<(usize, usize), Line> = BTreeMap::new();
        for (&(lower, upper), line) in &self.links {
            if boxes[lower].own.is_some() || boxes[upper].own.is_some() {
                continue;
            }
            let ends = (find(&owner, lower), find(&owner, upper));
            if ends.0 == ends.1 {
                boxes[ends.0].hidden_load = boxes[ends.0].hidden_load.max(line.load);
            } else {
                lines.entry(ends).or_default().merge(line);
            }
        }
        by_layer.retain(|layer| !layer.is_empty());
        // From the top, so that what is below goes where it is linked to.
        by_layer.reverse();
        reduce_crossings(&mut by_layer, &lines.keys().copied().collect::<Vec<_>>());
        by_layer.reverse();
        let mut drawing = Drawing { boxes, lines, layers: by_layer, groups: Vec::new() };
        drawing.group_blocks();
        drawing
    }
}

impl Drawing {
    /// Puts switches that are all linked to each other next to each other, where there is one layer of switches: the groups of a
    /// dragonfly.
    fn group_blocks(&mut self) {
        let [layer] = &mut self.layers[..] else { return };
        if layer.iter().all(|&node| self.boxes[node].cells.is_empty()) || self.lines.is_empty() {
            return;
        }
        let mut neighbours: HashMap<usize, HashSet<usize>> = HashMap::new();
        for &(a, b) in self.lines.keys() {
            neighbours.entry(a).or_default().insert(b);
            neighbours.entry(b).or_default().insert(a);
        }
        let none = HashSet::new();
        let of = |node: usize| neighbours.get(&node).unwrap_or(&none);
        let common = |a: usize, b: usize| of(a).intersection(of(b)).count();
        // Neighbours in a group have the rest of it in common; those in others little.
        let most: HashMap<usize, usize> = layer
            .iter()
            .map(|&node| (node, of(node).iter().map(|&other| common(node, other)).max().unwrap_or(0)))
            .collect();
        let is_near = |a: usize, b: usize| {
            let shared = common(a, b);
            of(a).contains(&b) && shared > 0 && 2 * shared >= most[&a].max(most[&b])
        };
        let mut groups: Vec<Vec<usize>> = Vec::new();
        for &node in layer.iter() {
            let fitting = groups.iter().position(|group| group.iter().all(|&other| is_near(node, other)));
            match fitting {
                Some(place) => groups[place].push(node),
                None => groups.push(vec![node]),
            }
        }
        if groups.len() < 2 || groups.iter().any(|group| group.len() < 2) {
            return;
        }
        self.groups = (0..groups.len()).flat_map(|index| vec![index; groups[index].len()]).collect();
        *layer = groups.concat();
    }
}

/// Puts hosts as cells into the switches that they are linked to; those that are linked to none into a box of their own, if there are
/// any.
fn enclose(
    hosts: &[usize],
    boxes: &mut Vec<NodeBox>,
    owner: &mut Vec<usize>,
    links: &BTreeMap<(usize, usize), Line>,
) -> Option<usize> {
    let mut above: HashMap<usize, Vec<(usize, &Line)>> = HashMap::new();
    for (&(lower, upper), line) in links {
        let is_up = boxes[lower].kind == Some(NodeKind::Host) && boxes[upper].kind == Some(NodeKind::Switch);
        if is_up {
            above.entry(lower).or_default().push((upper, line));
        }
    }
    let mut lonely = None;
    for &host in hosts {
        let Some([(switch, line), rest @ ..]) = above.get(&host).map(Vec::as_slice) else {
            let block = *lonely.get_or_insert_with(|| {
                let name = "not linked".to_owned();
                boxes.push(NodeBox { name, layer: 1, ..NodeBox::default() });
                owner.push(boxes.len() - 1);
                boxes.len() - 1
            });
            boxes[host].own = Some(Line::default());
            boxes[block].cells.push(host);
            owner[host] = block;
            continue;
        };
        boxes[host].own = Some((*line).clone());
        boxes[host].elsewhere = rest.iter().map(|(switch, _)| *switch).collect();
        boxes[*switch].cells.push(host);
        owner[host] = *switch;
    }
    lonely
}

/// Puts the boxes of a layer into the ones above; those that have none above are put together in equal shares.
fn absorb(
    layer: &[usize],
    boxes: &mut [NodeBox],
    owner: &mut [usize],
    links: &BTreeMap<(usize, usize), Line>,
) -> Vec<usize> {
    let mut parent: HashMap<usize, usize> = HashMap::new();
    for &(lower, upper) in links.keys().filter(|(lower, upper)| boxes[*lower].layer < boxes[*upper].layer) {
        parent.entry(lower).or_insert(upper);
    }
    let (with, without): (Vec<usize>, Vec<usize>) = layer.iter().partition(|node| parent.contains_key(node));
    for node in with {
        move_into(parent[&node], node, boxes, owner);
    }
    let share = without.len().div_ceil(MOST_BOXES).max(1);
    for group in without.chunks(share) {
        boxes[group[0]] = summary(&boxes[group[0]]);
        for &node in &group[1..] {
            move_into(group[0], node, boxes, owner);
        }
    }
    without.chunks(share).map(|group| group[0]).collect()
}

fn move_into(target: usize, node: usize, boxes: &mut [NodeBox], owner: &mut [usize]) {
    let inside = summary(&boxes[node]);
    let target_box = &mut boxes[target];
    target_box.hidden_hosts += inside.hidden_hosts;
    target_box.hidden_switches += inside.hidden_switches;
    target_box.hidden_ranks += inside.hidden_ranks;
    owner[node] = target;
}

/// A box with itself among what is not drawn.
fn summary(node: &NodeBox) -> NodeBox {
    NodeBox {
        hidden_hosts: node.hidden_hosts + node.cells.len() + usize::from(node.kind == Some(NodeKind::Host)),
        hidden_switches: node.hidden_switches + usize::from(node.kind == Some(NodeKind::Switch)),
        hidden_ranks: node.hidden_ranks + node.ranks.len(),
        hidden_load: node.hidden_load,
        layer: node.layer,
        ..NodeBox::default()
    }
}

fn find(owner: &[usize], mut node: usize) -> usize {
    while owner[node] != node {
        node = owner[node];
    }
    node
}

fn nodes(system: &SystemGraph) -> Vec<NodeBox> {
    let node = |node: &hopmap_model::Node| NodeBox {
        name: node.name.clone(),
        kind: Some(node.kind),
        is_down: node.state == NodeState::Down,
        layer: usize::from(node.kind != NodeKind::Host),
        ..NodeBox::default()
    };
    system.nodes.iter().map(node).collect()
}

/// Number of links from every node to the nearest host, at most the topmost layer.
fn heights(nodes: &[NodeBox], links: &BTreeMap<(usize, usize), Line>) -> Vec<usize> {
    let hosts = (0..nodes.len()).filter(|&node| nodes[node].kind == Some(NodeKind::Host));
    let heights = distances(&neighbours(nodes.len(), links.keys().copied()), hosts);
    heights.into_iter().map(|height| height.unwrap_or(1).min(MOST_LAYERS - 1)).collect()
}

/// The group of every host on a cost level; none if hosts are split or alone in their groups.
fn groups_of_hosts(system: &SystemGraph, levels: &Levels, level: usize) -> Option<Vec<(u32, u32)>> {
    let group = |slot: u32| levels.groups[level].get(slot as usize).copied();
    let mut groups = Vec::new();
    let mut members: HashMap<u32, usize> = HashMap::new();
    for (host, first, slots) in system.hosts() {
        let own = group(first)?;
        if (first..first + slots).any(|slot| group(slot) != Some(own)) {
            return None;
        }
        *members.entry(own).or_default() += 1;
        groups.push((host, own));
    }
    members.values().any(|&count| count > 1).then_some(groups)
}
