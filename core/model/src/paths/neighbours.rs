//! The links of every node, in the order of the links and by neighbour.

use std::collections::HashMap;

use crate::system_graph::Link;

/// The outgoing links of every node by neighbour: of thousands of parallel links, a path needs one.
#[derive(Debug, Clone)]
pub(super) struct Bundles {
    first: Vec<u32>,
    bundles: Vec<Bundle>,
}

/// Parallel links in the order of the links.
#[derive(Debug, Clone)]
pub(super) struct Bundle {
    pub(super) to: u32,
    pub(super) links: Vec<u32>,
}

impl Bundles {
    pub(super) fn new(out: &Neighbours, nodes: usize) -> Self {
        let (mut first, mut bundles) = (vec![0], Vec::new());
        let mut place = HashMap::new();
        for node in 0..nodes as u32 {
            place.clear();
            for &(to, link) in out.of(node) {
                let place = *place.entry(to).or_insert(bundles.len());
                match bundles.get_mut(place) {
                    Some(Bundle { links, .. }) => links.push(link),
                    None => bundles.push(Bundle { to, links: vec![link] }),
                }
            }
            first.push(bundles.len() as u32);
        }
        Self { first, bundles }
    }

    /// The bundles of a node, in the order of their first links.
    pub(super) fn of(&self, node: u32) -> &[Bundle] {
        &self.bundles[self.first[node as usize] as usize..self.first[node as usize + 1] as usize]
    }
}

/// The link at a place among those of bundles, in the order of the links; a place below their number.
pub(super) fn nth_link<'a>(bundles: impl Iterator<Item = &'a Bundle> + Clone, place: usize) -> Option<u32> {
    if bundles.clone().all(|bundle| bundle.links.len() == 1) {
        return bundles.map(|bundle| bundle.links[0]).nth(place);
    }
    let bundles: Vec<&[u32]> = bundles.map(|bundle| &*bundle.links).collect();
    let last = bundles.iter().filter_map(|links| links.last()).max()?;
    let is_after = |link: u32| {
        let until = bundles.iter().map(|links| links.partition_point(|&other| other <= link));
        until.sum::<usize>() > place
    };
    // Bisection: bundles are sorted, but their links may alternate.
    let (mut low, mut high) = (bundles.iter().map(|links| links[0]).min()?, *last);
    while low < high {
        let middle = low + (high - low) / 2;
        if is_after(middle) { high = middle } else { low = middle + 1 }
    }
    Some(low)
}

/// Outgoing links of every node, in the order of the links.
#[derive(Debug, Clone)]
pub(super) struct Neighbours {
    first: Vec<u32>,
    targets: Vec<(u32, u32)>,
}

impl Neighbours {
    /// Of the links that satisfy a predicate.
    pub(super) fn new(nodes: usize, links: &[Link], counts: impl Fn(&Link) -> bool) -> Self {
        Self::by(nodes, links, counts, |link| (link.source, link.destination))
    }

    /// The links that arrive at every node, with their sources.
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

    /// The neighbours of a node, each with the link.
    pub(super) fn of(&self, node: u32) -> &[(u32, u32)] {
        &self.targets[self.first[node as usize] as usize..self.first[node as usize + 1] as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_of_bundles_are_taken_in_the_order_of_the_links() {
        for seed in 1..200u32 {
            let links: Vec<Link> =
                (0..40).map(|link: u32| Link::new(0, 1 + link.pow(2) / seed % (1 + seed % 5))).collect();
            let out = Neighbours::new(7, &links, |_| true);
            let bundles = Bundles::new(&out, 7);
            let some = || bundles.of(0).iter().filter(|bundle| bundle.to != 2);
            let expected = out.of(0).iter().filter(|(to, _)| *to != 2).map(|(_, link)| *link);
            let places = 0..some().map(|bundle| bundle.links.len()).sum();
            assert_eq!(
                places.map_while(|place| nth_link(some(), place)).collect::<Vec<_>>(),
                expected.collect::<Vec<_>>()
            );
        }
    }
}
