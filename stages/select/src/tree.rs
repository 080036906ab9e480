//! The best choice in a tree, by dynamic programming over its subtrees.

const NONE: u32 = u32::MAX;

/// A tree with things to choose on its nodes.
pub(crate) struct Tree {
    /// Parent of every node, which has a higher index; [`Tree::ROOT`] of a root.
    pub(crate) parent: Vec<u32>,
    /// Things on the node itself.
    pub(crate) own: Vec<u32>,
}

/// How the best value of a part of the tree came about.
enum Origin {
    /// Things on a node.
    Own(u32),
    /// Two parts; of `k` things `split[k]` are in the first one.
    Merge { first: u32, second: u32, split: Vec<u32> },
}

/// The best choices of every size up to the one that is wanted, for every subtree.
pub(crate) struct Solution {
    origins: Vec<Origin>,
    /// The part that is the whole subtree of a node.
    part_of: Vec<u32>,
    /// Value of the best choice of the wanted size below a node, if it has so many things.
    pub(crate) values: Vec<Option<i64>>,
    wanted: usize,
}

impl Tree {
    /// The parent of a root.
    pub(crate) const ROOT: u32 = NONE;

    /// Additions that [`Tree::solve`] makes, roughly.
    pub(crate) fn work(&self, wanted: usize) -> u64 {
        let sizes = self.parts(wanted);
        sizes.iter().map(|&(_, work)| work).fold(0, u64::saturating_add)
    }

    /// For every node the size of its subtree, cut to what is wanted, and a bound of the work of merging its parts.
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

    /// Finds the best choice of `wanted` things below every node. `cost(node, k)` is what `k` things below a node cost there.
    ///
    /// Parts of a node are merged in pairs, so the work is bounded by things · `wanted`, and memory by things · depth.
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

    /// How many things of every node the best choice below `node` takes.
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

/// The best values of two parts together, and how many things are in the first; among equals as many as possible.
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
