//! What the links of the machine say: bottlenecks and switches.

use std::collections::BTreeMap;

use hopmap_model::{NodeKind, Paths, SystemGraph};

use crate::SelectError;
use crate::space::Host;
use crate::tree::Tree;

/// How wide the ways between nodes are. The links between two nodes are as wide as the wider direction's narrower fellow: of
/// parallel links the widest counts, of both directions the narrower one, and nodes joined in one direction only are not joined.
pub(crate) struct Widths {
    /// Width and ends, widest first.
    joints: Vec<(f64, u32, u32)>,
    nodes: usize,
}

impl Widths {
    pub(crate) fn new(system: &SystemGraph) -> Result<Self, SelectError> {
        if system.links.is_empty() {
            return Err(SelectError::NoLinks { criterion: "bottleneck-bandwidth" });
        }
        let mut widest: BTreeMap<(u32, u32), [f64; 2]> = BTreeMap::new();
        for link in &system.links {
            let name = |node: u32| system.nodes[node as usize].name.clone();
            let width = link.bandwidth_bytes_per_s.ok_or_else(|| SelectError::NoBandwidth {
                from: name(link.source),
                to: name(link.destination),
            })?;
            let (a, b) = (link.source.min(link.destination), link.source.max(link.destination));
            let widths = widest.entry((a, b)).or_insert([f64::NEG_INFINITY; 2]);
            let direction = usize::from(link.source > link.destination);
            widths[direction] = widths[direction].max(width);
        }
        let joint = |((a, b), [there, back]): ((u32, u32), [f64; 2])| (there.min(back), a, b);
        let mut joints: Vec<_> =
            widest.into_iter().map(joint).filter(|(width, ..)| *width > f64::NEG_INFINITY).collect();
        joints.sort_by(|a, b| b.0.total_cmp(&a.0));
        Ok(Self { joints, nodes: system.nodes.len() })
    }

    /// The groups of at least `count` hosts that are joined at the largest width at which there is one, and this width.
    pub(crate) fn widest(
        &self,
        hosts: &[Host],
        chosen: &[u32],
        count: usize,
    ) -> Result<(f64, Vec<Vec<u32>>), SelectError> {
        if count == 1 {
            return Ok((f64::INFINITY, vec![chosen.to_vec()]));
        }
        let mut groups = Groups::new(self.nodes, hosts, chosen);
        for joints in self.joints.chunk_by(|a, b| a.0.total_cmp(&b.0).is_eq()) {
            joints.iter().for_each(|&(_, a, b)| groups.join(a, b));
            let mut found: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
            if groups.largest < count {
                continue;
            }
            for &host in chosen {
                found.entry(groups.root(hosts[host as usize].node)).or_default().push(host);
            }
            let groups = found.into_values().filter(|group| group.len() >= count).collect();
            return Ok((joints[0].0, groups));
        }
        Err(SelectError::InPieces { wanted: count })
    }
}

/// Nodes that are joined, and how many hosts are among them.
struct Groups {
    parent: Vec<u32>,
    hosts: Vec<usize>,
    largest: usize,
}

impl Groups {
    fn new(nodes: usize, hosts: &[Host], chosen: &[u32]) -> Self {
        let mut count = vec![0; nodes];
        chosen.iter().for_each(|&host| count[hosts[host as usize].node as usize] += 1);
        Self { parent: (0..nodes as u32).collect(), hosts: count, largest: usize::from(!chosen.is_empty()) }
    }

    fn root(&mut self, mut node: u32) -> u32 {
        while self.parent[node as usize] != node {
            self.parent[node as usize] = self.parent[self.parent[node as usize] as usize];
            node = self.parent[node as usize];
        }
        node
    }

    /// Joins by index: the path halving of `root` keeps ways short.
    fn join(&mut self, a: u32, b: u32) {
        let (a, b) = (self.root(a), self.root(b));
        if a != b {
            let (root, other) = (a.min(b), a.max(b));
            self.parent[other as usize] = root;
            self.hosts[root as usize] += self.hosts[other as usize];
            self.largest = self.largest.max(self.hosts[root as usize]);
        }
    }
}

/// The tree that the links form, with the hosts on it.
pub(crate) struct Switches {
    tree: Tree,
    /// Free hosts that are taken from a node of the tree: those that hang on it, and itself.
    members: Vec<Vec<u32>>,
    is_switch: Vec<bool>,
}

impl Switches {
    pub(crate) fn new(system: &SystemGraph, hosts: &[Host], free: &[u32]) -> Result<Self, SelectError> {
        let paths = Paths::new(system).ok_or(SelectError::NoLinks { criterion: "switches" })?;
        let (nodes, links) = (system.nodes.len(), system.links.len());
        let paths = paths.tree().ok_or(SelectError::NotATree { nodes, links })?;
        let order = leaves_first(paths, system.nodes.len());
        let mut place = vec![0; order.len()];
        (0..).zip(&order).for_each(|(index, &node): (u32, _)| place[node as usize] = index);
        let parent: Vec<u32> = order
            .iter()
            .map(|&node| paths.parent(node).map_or(Tree::ROOT, |parent| place[parent as usize]))
            .collect();
        let mut inner = vec![false; order.len()];
        parent
            .iter()
            .filter(|&&parent| parent != Tree::ROOT)
            .for_each(|&parent| inner[parent as usize] = true);
        let mut members = vec![Vec::new(); order.len()];
        for &host in free {
            let node = place[hosts[host as usize].node as usize];
            let is_leaf = !inner[node as usize] && parent[node as usize] != Tree::ROOT;
            members[if is_leaf { parent[node as usize] } else { node } as usize].push(host);
        }
        let own = members.iter().map(|members| members.len() as u32).collect();
        let is_switch =
            order.iter().map(|&node| system.nodes[node as usize].kind == NodeKind::Switch).collect();
        Ok(Self { tree: Tree { parent, own }, members, is_switch })
    }

    /// The additions that [`Self::fewest`] makes.
    pub(crate) fn work(&self, count: usize) -> u64 {
        self.tree.work(count)
    }

    /// Hosts that need the fewest switches. With two hosts or more below a node, all ways between them lie below it.
    pub(crate) fn fewest(&self, count: usize) -> Vec<u32> {
        if count == 1 {
            return self.members.iter().flatten().copied().min().into_iter().collect();
        }
        let cost = |node: usize, k: i64| i64::from(self.is_switch[node] && k > 0);
        let solution = self.tree.solve(count, cost);
        let values = (0..).zip(&solution.values).filter_map(|(node, value)| Some(((*value)?, node)));
        let Some((_, top)) = values.min() else { return Vec::new() };
        let chosen = solution.choice(top);
        let taken = self.members.iter().zip(&chosen).flat_map(|(members, &k)| &members[..k as usize]);
        let mut hosts: Vec<u32> = taken.copied().collect();
        hosts.sort_unstable();
        hosts
    }

    /// Switches that messages between hosts pass.
    pub(crate) fn used(&self, chosen: &[u32]) -> usize {
        if chosen.len() < 2 {
            return 0;
        }
        let is_chosen = |host: &&u32| chosen.binary_search(host).is_ok();
        let mut below: Vec<usize> =
            self.members.iter().map(|members| members.iter().filter(is_chosen).count()).collect();
        let mut used = 0;
        for node in 0..below.len() {
            used += usize::from(below[node] > 0 && self.is_switch[node]);
            if below[node] == chosen.len() {
                break;
            }
            if let Some(&parent) = self.tree.parent.get(node).filter(|&&parent| parent != Tree::ROOT) {
                below[parent as usize] += below[node];
            }
        }
        used
    }
}

/// The nodes with every parent behind its children.
fn leaves_first(paths: &hopmap_model::Tree, nodes: usize) -> Vec<u32> {
    let mut children = vec![Vec::new(); nodes];
    let mut order = Vec::with_capacity(nodes);
    for node in 0..nodes as u32 {
        match paths.parent(node) {
            Some(parent) => children[parent as usize].push(node),
            None => order.push(node),
        }
    }
    let mut next = 0;
    while let Some(&node) = order.get(next) {
        next += 1;
        order.extend_from_slice(&children[node as usize]);
    }
    order.reverse();
    order
}
