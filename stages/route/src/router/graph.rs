//! The links by which flows get to one destination.

use super::fabric::{FAR, Fabric};

/// Most flows of a tree that is optimized as a whole; the work is three times as much for one more.
pub(super) const MOST_FLOWS: usize = 11;

/// A flow between hosts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct End {
    pub flow: u32,
    pub source: u32,
    pub destination: u32,
    pub bandwidth: f64,
}

/// Some flows to one destination, and the links that they can take; links are numbered anew.
#[derive(Debug, Clone)]
pub(super) struct Graph {
    pub ends: Vec<End>,
    /// The links by their number in the machine.
    pub links: Vec<u32>,
    /// The links by which each flow can leave its source.
    pub first: Vec<Vec<u32>>,
    /// The links that can follow each link, and those that it can follow.
    pub follow: Vec<Vec<u32>>,
    pub before: Vec<Vec<u32>>,
    /// Whether a link arrives at the destination.
    pub arrives: Vec<bool>,
    /// Fewest hops of a route of each flow by way of each link, at `flow * links + link`.
    pub shortest: Vec<u32>,
    /// What the entries cost that a link needs, whatever takes it: that of the switch of type 1 which it leaves, and that of the port of a
    /// switch of type 2 at which it arrives.
    pub fixed: Vec<f64>,
}

impl Graph {
    /// The graph of flows to one destination, over links that can carry them and routes of at most so many hops.
    pub(super) fn new(fabric: &Fabric, ends: &[End], entry: f64, most_hops: u32) -> Self {
        let destination = ends.first().map_or(0, |end| end.destination);
        let all = fabric.head.len();
        let mut shortest = vec![FAR; ends.len() * all];
        for (end, row) in ends.iter().zip(shortest.chunks_mut(all.max(1))) {
            let passes = |link: u32| fabric.carries(link, end.bandwidth);
            let to = fabric.hops_to(destination, passes);
            let from = fabric.hops_from(end.source, passes);
            for (link, hops) in (0..).zip(row) {
                let (tail, head) = (fabric.tail[link as usize] as usize, fabric.head[link as usize] as usize);
                let through_hosts = (fabric.is_host[tail] && tail as u32 != end.source)
                    || (fabric.is_host[head] && head as u32 != destination);
                if passes(link)
                    && fabric.is_up(link)
                    && !through_hosts
                    && from[tail] != FAR
                    && to[head] != FAR
                {
                    let length = from[tail] + 1 + to[head];
                    *hops = if length <= most_hops { length } else { FAR };
                }
            }
        }
        let is_taken = |link: &u32| (0..ends.len()).any(|flow| shortest[flow * all + *link as usize] != FAR);
        let links: Vec<u32> = (0..all as u32).filter(is_taken).collect();
        let shortest = (0..ends.len())
            .flat_map(|flow| links.iter().map(move |&link| (flow, link)))
            .map(|(flow, link)| shortest[flow * all + link as usize])
            .collect();
        Self::joined(fabric, ends, entry, links, shortest)
    }

    fn joined(fabric: &Fabric, ends: &[End], entry: f64, links: Vec<u32>, shortest: Vec<u32>) -> Self {
        let destination = ends.first().map_or(0, |end| end.destination);
        let [mut follow, mut before] = [vec![Vec::new(); links.len()], vec![Vec::new(); links.len()]];
        let (tail, head) = (|link: u32| fabric.tail[link as usize], |link: u32| fabric.head[link as usize]);
        for (at, &link) in links.iter().enumerate().filter(|(_, link)| head(**link) != destination) {
            for &next in fabric.leaving(head(link)) {
                if let Ok(to) = links.binary_search(&next)
                    && head(next) != tail(link)
                {
                    follow[at].push(to as u32);
                    before[to].push(at as u32);
                }
            }
        }
        let first = |(flow, end): (usize, &End)| {
            let leaves = |at: &u32| {
                tail(links[*at as usize]) == end.source && shortest[flow * links.len() + *at as usize] != FAR
            };
            (0..links.len() as u32).filter(leaves).collect()
        };
        let fixed = |&link: &u32| {
            let (tail, head) = (tail(link) as usize, head(link) as usize);
            let of_tail = !fabric.is_host[tail] && !fabric.is_two[tail];
            let of_head = !fabric.is_host[head] && fabric.is_two[head];
            entry * (f64::from(u8::from(of_tail)) + f64::from(u8::from(of_head)))
        };
        Self {
            first: ends.iter().enumerate().map(first).collect(),
            arrives: links.iter().map(|&link| head(link) == destination).collect(),
            fixed: links.iter().map(fixed).collect(),
            ends: ends.to_vec(),
            links,
            follow,
            before,
            shortest,
        }
    }

    /// Whether every flow has a way.
    pub(super) fn is_joined(&self) -> bool {
        self.first.iter().all(|first| !first.is_empty())
    }

    /// Fewest hops of the flow that has the most.
    pub(super) fn longest(&self) -> u32 {
        let links = self.links.len();
        let fewest = |flow: usize| {
            let row = &self.shortest[flow * links..(flow + 1) * links];
            row.iter().copied().min().unwrap_or(FAR)
        };
        (0..self.ends.len()).map(fewest).max().unwrap_or(0)
    }
}
