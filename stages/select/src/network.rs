//! Selection by the switches of a network: widest connection, fewest switches, and dynamic programming over
//! the subtrees of a tree.

use std::collections::BTreeMap;

use hopmap_graph::DisjointSets;
use hopmap_model::{NodeKind, Paths, SystemGraph};

use crate::error::SelectError;
use crate::space::Host;

/// Bandwidths between adjacent nodes. Of parallel links the widest counts, of the two directions the narrower
/// one; nodes with links in one direction only are not connected.
pub(crate) struct Widths {
    /// Width and end nodes, widest first.
    joints: Vec<(f64, u32, u32)>,
    nodes: usize,
}

impl Widths {
    pub(crate) fn new(system: &SystemGraph) -> Result<Self, SelectError> {
        if system.links.is_empty() {
            return Err(SelectError::no_links("bottleneck-bandwidth"));
        }
        let mut widest: BTreeMap<(u32, u32), [f64; 2]> = BTreeMap::new();
        for link in &system.links {
            let width = link.bandwidth_bytes_per_s.ok_or_else(|| {
                let [from, to] =
                    [link.source, link.destination].map(|node| &system.nodes[node as usize].name);
                let problem = format!(
                    "criterion `bottleneck-bandwidth` needs bandwidths, but the link from `{from}` to `{to}` has none"
                );
                let help = "give every link a bandwidth, or choose by `total-distance` or `switches`";
                SelectError::new(problem, help)
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

    /// The groups of at least `count` connected hosts at the largest width that has such a group, and this
    /// width.
    pub(crate) fn widest(
        &self,
        hosts: &[Host],
        chosen: &[u32],
        count: usize,
    ) -> Result<(f64, Vec<Vec<u32>>), SelectError> {
        if count == 1 {
            return Ok((f64::INFINITY, vec![chosen.to_vec()]));
        }
        let mut hosts_at = vec![0; self.nodes];
        chosen.iter().for_each(|&host| hosts_at[hosts[host as usize].node as usize] += 1);
        let mut largest = usize::from(!chosen.is_empty());
        let mut groups = DisjointSets::with_weights(hosts_at);
        for joints in self.joints.chunk_by(|a, b| a.0.total_cmp(&b.0).is_eq()) {
            let sizes = joints.iter().filter_map(|&(_, a, b)| groups.join(a as usize, b as usize));
            largest = sizes.fold(largest, usize::max);
            if largest < count {
                continue;
            }
            let group_of = groups.numbers();
            let mut found: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
            for &host in chosen {
                found.entry(group_of[hosts[host as usize].node as usize]).or_default().push(host);
            }
            let groups = found.into_values().filter(|group| group.len() >= count).collect();
            return Ok((joints[0].0, groups));
        }
        Err(SelectError::in_pieces(count))
    }
}

/// The tree that the links form, with its hosts.
pub(crate) struct Switches {
    tree: Tree,
    /// Free hosts of each tree node: those attached to it, and itself.
    members: Vec<Vec<u32>>,
    is_switch: Vec<bool>,
}

impl Switches {
    pub(crate) fn new(system: &SystemGraph, hosts: &[Host], free: &[u32]) -> Result<Self, SelectError> {
        let paths = Paths::new(system).ok_or_else(|| SelectError::no_links("switches"))?;
        let (nodes, links) = (system.nodes.len(), system.links.len());
        let paths = paths.tree().ok_or_else(|| SelectError::no_tree(links, nodes))?;
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

    /// Additions of [`Self::fewest`].
    pub(crate) fn work(&self, count: usize) -> u64 {
        self.tree.work(count)
    }

    /// Hosts that need the fewest switches. With two or more hosts below a node, all paths between them are
    /// below it.
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

    /// Number of switches on the paths between hosts.
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

/// The nodes ordered so that parents follow their children.
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

const NONE: u32 = u32::MAX;

/// A tree with selectable items on its nodes.
pub(crate) struct Tree {
    /// Parent of each node, which has a higher index; [`Tree::ROOT`] for a root.
    pub(crate) parent: Vec<u32>,
    /// Number of items on the node itself.
    pub(crate) own: Vec<u32>,
}

/// How the best value of a part of the tree was obtained.
enum Origin {
    /// Items on a node.
    Own(u32),
    /// Two merged parts; of `k` items `split[k]` are in the first one.
    Merge { first: u32, second: u32, split: Vec<u32> },
}

/// The best choices of every size up to the requested one, for every subtree.
pub(crate) struct Solution {
    origins: Vec<Origin>,
    /// The part that is the complete subtree of a node.
    part_of: Vec<u32>,
    /// Best value of the requested size below a node, if it has enough items.
    pub(crate) values: Vec<Option<i64>>,
    wanted: usize,
}

impl Tree {
    /// The parent of a root.
    pub(crate) const ROOT: u32 = NONE;

    /// Approximate number of additions of [`Tree::solve`].
    pub(crate) fn work(&self, wanted: usize) -> u64 {
        let sizes = self.parts(wanted);
        sizes.iter().map(|&(_, work)| work).fold(0, u64::saturating_add)
    }

    /// For each node, the size of its subtree, capped at `wanted`, and an upper bound of the work to merge
    /// its parts.
    fn parts(&self, wanted: usize) -> Vec<(u64, u64)> {
        let mut parts: Vec<(u64, u64)> = self.own.iter().map(|&own| (u64::from(own), 1)).collect();
        for node in 0..parts.len() {
            parts[node].0 = parts[node].0.min(wanted as u64);
            let size = parts[node].0;
            if let Some(parent) = parts.get_mut(self.parent[node] as usize) {
                parent.1 = parent.1.saturating_add((parent.0.min(wanted as u64) + 1) * (size + 1));
                parent.0 += size;
            }
        }
        parts
    }

    /// Finds the best choice of `wanted` items below every node. `cost(node, k)` is the cost of `k` items
    /// below a node at that node.
    ///
    /// The parts of a node are merged in pairs, so the work is at most items · `wanted` and the memory items
    /// · depth.
    pub(crate) fn solve(&self, wanted: usize, cost: impl Fn(usize, i64) -> i64) -> Solution {
        let mut solution = Solution {
            origins: Vec::new(),
            part_of: Vec::with_capacity(self.own.len()),
            values: Vec::with_capacity(self.own.len()),
            wanted,
        };
        let mut below: Vec<Vec<(u32, Vec<i64>)>> = self.own.iter().map(|_| Vec::new()).collect();
        for node in 0..self.own.len() {
            let mut parts = std::mem::take(&mut below[node]);
            if self.own[node] > 0 || parts.is_empty() {
                let values = vec![0; (self.own[node] as usize).min(wanted) + 1];
                parts.push((solution.add(Origin::Own(node as u32)), values));
            }
            while parts.len() > 1 {
                parts = solution.merge_pairs(parts);
            }
            let Some((part, mut values)) = parts.pop() else { continue };
            values.iter_mut().enumerate().for_each(|(k, value)| *value += cost(node, k as i64));
            solution.part_of.push(part);
            solution.values.push(values.get(wanted).copied());
            if let Some(siblings) = below.get_mut(self.parent[node] as usize) {
                siblings.push((part, values));
            }
        }
        solution
    }
}

impl Solution {
    fn add(&mut self, origin: Origin) -> u32 {
        self.origins.push(origin);
        self.origins.len() as u32 - 1
    }

    fn merge_pairs(&mut self, parts: Vec<(u32, Vec<i64>)>) -> Vec<(u32, Vec<i64>)> {
        let mut merged = Vec::with_capacity(parts.len().div_ceil(2));
        let mut parts = parts.into_iter();
        while let Some((first, a)) = parts.next() {
            merged.push(match parts.next() {
                None => (first, a),
                Some((second, b)) => {
                    let (values, split) = merge(&a, &b, self.wanted);
                    (self.add(Origin::Merge { first, second, split }), values)
                }
            });
        }
        merged
    }

    /// How many items of every node the best choice below `node` takes.
    pub(crate) fn choice(&self, node: usize) -> Vec<i64> {
        let mut chosen = vec![0; self.part_of.len()];
        let mut open = vec![(self.part_of[node], self.wanted as u32)];
        while let Some((part, k)) = open.pop() {
            match &self.origins[part as usize] {
                Origin::Own(node) => chosen[*node as usize] = i64::from(k),
                Origin::Merge { first, second, split } => {
                    let in_first = split[k as usize];
                    open.extend([(*first, in_first), (*second, k - in_first)]);
                }
            }
        }
        chosen
    }
}

/// The best values of two parts together, and how many items are in the first; ties go to the largest number.
fn merge(a: &[i64], b: &[i64], wanted: usize) -> (Vec<i64>, Vec<u32>) {
    let most = (a.len() + b.len() - 2).min(wanted);
    (0..=most)
        .map(|k| {
            let (low, high) = (k.saturating_sub(b.len() - 1), k.min(a.len() - 1));
            let mut best = (a[high] + b[k - high], high as u32);
            for i in (low..high).rev() {
                let value = a[i] + b[k - i];
                if value < best.0 {
                    best = (value, i as u32);
                }
            }
            best
        })
        .unzip()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_gather_in_one_subtree() {
        // Two groups of 3 and 4 under a root; a pair in a group saves 1.
        let tree = Tree { parent: vec![2, 2, Tree::ROOT], own: vec![3, 4, 0] };
        let solution = tree.solve(5, |node, k| if node < 2 { -k * (k - 1) / 2 } else { 0 });
        assert_eq!(solution.values, [None, None, Some(-6)]);
        assert_eq!(solution.choice(2), [1, 4, 0]);
        assert!(tree.work(5) > 0);
    }
}
