//! Extended generalised fat trees with parallel cables.

use hopmap_model::Ties;

use super::MAX_SLOTS;
use super::network::{Fabric, MAX_LINKS, numbers, product};
use crate::SyntheticError;

/// PGFT(h; m; w; p) of Zahavi (2012, Fat-tree routing and node ordering providing contention free traffic for MPI global collectives): a
/// switch of level i has `m_i` children, a node of level i − 1 has `w_i` parents, with `p_i` parallel cables to each.
pub(super) struct FatTree {
    children: Vec<u64>,
    parents: Vec<u64>,
    cables: Vec<u64>,
    /// Nodes of every level, hosts first.
    counts: Vec<u64>,
}

impl FatTree {
    /// `4x4/1x2/1x1`: children, parents and cables of every level, innermost first, the numbers of SimGrid's fat trees. Without parents every
    /// node has one, without cables every parent one.
    pub(super) fn new(shape: &str, text: &str) -> Result<Self, SyntheticError> {
        let parts: Vec<&str> = text.split(['/', ';']).collect();
        let list = |index: usize| parts.get(index).map(|part| numbers(shape, part)).transpose();
        let children = list(0)?.unwrap_or_default();
        let ones = || vec![1; children.len()];
        let (parents, cables) = (list(1)?.unwrap_or_else(ones), list(2)?.unwrap_or_else(ones));
        if parts.len() > 3 || parents.len() != children.len() || cables.len() != children.len() {
            return Err(SyntheticError::Lists { shape: shape.to_owned() });
        }
        let count = |level: usize| {
            let above = children[level..].iter().copied();
            product(shape, above.chain(parents[..level].iter().copied()), u64::from(MAX_SLOTS))
        };
        let counts: Vec<u64> = (0..=children.len()).map(count).collect::<Result<_, _>>()?;
        for level in 0..children.len() {
            product(shape, [counts[level], parents[level], cables[level], 2], MAX_LINKS)?;
        }
        Ok(Self { children, parents, cables, counts })
    }

    pub(super) fn hosts(&self) -> u64 {
        self.counts[0]
    }

    pub(super) fn levels(&self) -> usize {
        self.children.len()
    }

    pub(super) fn links(&self) -> u64 {
        (0..self.levels())
            .map(|level| 2 * self.counts[level] * self.parents[level] * self.cables[level])
            .sum()
    }

    /// A node of level l has the digits `x_h … x_{l+1}` of the subtrees that it is in and `y_l … y_1` of the parents that lead to it.
    pub(super) fn fabric(&self) -> Fabric {
        let mut first = vec![0_u64];
        for count in &self.counts {
            first.push(first[first.len() - 1] + count);
        }
        let switches = (1..=self.levels())
            .flat_map(|level| (0..self.counts[level]).map(move |index| format!("switch-{level}-{index}")));
        let mut cables = Vec::new();
        for level in 0..self.levels() {
            // Below x_{level+1} the digits y_level … y_1 count so many nodes.
            let below: u64 = self.parents[..level].iter().product();
            for node in 0..self.counts[level] {
                let (subtree, way) = (node / below / self.children[level], node % below);
                for parent in 0..self.parents[level] {
                    let upper = (subtree * self.parents[level] + parent) * below + way;
                    let ends = ((first[level] + node) as u32, (first[level + 1] + upper) as u32);
                    cables.extend((0..self.cables[level]).map(|_| (ends.0, ends.1, level)));
                }
            }
        }
        Fabric { switches: switches.collect(), cables, ties: Ties::Spread, forwarding: Vec::new() }
    }
}
