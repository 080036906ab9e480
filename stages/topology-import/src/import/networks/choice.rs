//! Which nodes and links of a machine stay.

use hopmap_model::{Forward, Link, to_u32};

/// Nodes, links, and forwarding tables.
pub(in crate::import) type Listed<N> = (Vec<N>, Vec<Link>, Vec<Forward>);

/// Which nodes and links stay.
pub(in crate::import) struct Choice {
    pub(in crate::import) nodes: Vec<bool>,
    pub(super) links: Vec<bool>,
}

impl Choice {
    pub(in crate::import) fn new(nodes: Vec<bool>, links: usize) -> Self {
        Self { nodes, links: vec![true; links] }
    }

    /// What stays in both.
    pub(super) fn and(&self, other: &Self) -> Self {
        let both = |a: &[bool], b: &[bool]| a.iter().zip(b).map(|(a, b)| *a && *b).collect();
        Self { nodes: both(&self.nodes, &other.nodes), links: both(&self.links, &other.links) }
    }

    /// What stays, with the forwarding between it.
    pub(in crate::import) fn reduce<N>(&self, (nodes, links, forwarding): Listed<N>) -> Listed<N> {
        let node = places(self.nodes.iter().copied());
        let moved = |(link, stays): (Link, &bool)| {
            let [source, destination] = [link.source, link.destination].map(|end| node[end as usize]);
            let link = Link { source: to_u32(source?), destination: to_u32(destination?), ..link };
            stays.then_some(link)
        };
        let moved: Vec<Option<Link>> = links.into_iter().zip(&self.links).map(moved).collect();
        let link = places(moved.iter().map(Option::is_some));
        let forward = |entry: Forward| {
            Some(Forward {
                node: to_u32(node[entry.node as usize]?),
                last: to_u32(link[entry.last as usize]?),
                link: to_u32(link[entry.link as usize]?),
            })
        };
        let nodes = nodes.into_iter().zip(&self.nodes).filter(|(_, stays)| **stays).map(|(node, _)| node);
        let forwarding = forwarding.into_iter().filter_map(forward).collect();
        (nodes.collect(), moved.into_iter().flatten().collect(), forwarding)
    }
}

/// New indexes after removing elements that do not stay.
fn places(stay: impl Iterator<Item = bool>) -> Vec<Option<usize>> {
    let mut next = 0..;
    stay.map(|stays| if stays { next.next() } else { None }).collect()
}
