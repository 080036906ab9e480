//! The links that leave every node.

use crate::Link;

/// Outgoing links of every node, in the order of the links.
#[derive(Debug, Clone)]
pub(super) struct Neighbours {
    first: Vec<u32>,
    targets: Vec<(u32, u32)>,
}

impl Neighbours {
    /// Of the links that count.
    pub(super) fn new(nodes: usize, links: &[Link], counts: impl Fn(&Link) -> bool) -> Self {
        Self::by(nodes, links, counts, |link| (link.source, link.destination))
    }

    /// The links that arrive at every node, with where they come from.
    pub(super) fn incoming(nodes: usize, links: &[Link], counts: impl Fn(&Link) -> bool) -> Self {
        Self::by(nodes, links, counts, |link| (link.destination, link.source))
    }

    fn by(
        nodes: usize,
        links: &[Link],
        counts: impl Fn(&Link) -> bool,
        ends: impl Fn(&Link) -> (u32, u32),
    ) -> Self {
        let mut first = vec![0; nodes + 1];
        let counted = || links.iter().enumerate().filter(|(_, link)| counts(link));
        counted().for_each(|(_, link)| first[ends(link).0 as usize + 1] += 1);
        for node in 0..nodes {
            first[node + 1] += first[node];
        }
        let mut next = first.clone();
        let mut targets = vec![(0, 0); counted().count()];
        for (index, link) in counted() {
            let (node, other) = ends(link);
            targets[next[node as usize] as usize] = (other, index as u32);
            next[node as usize] += 1;
        }
        Self { first, targets }
    }

    /// The other nodes, each with the link.
    pub(super) fn of(&self, node: u32) -> &[(u32, u32)] {
        &self.targets[self.first[node as usize] as usize..self.first[node as usize + 1] as usize]
    }
}
