//! Who can reach whom.

use std::collections::{BTreeMap, BTreeSet};

use crate::problem::Problem;

/// Two hosts that have to be joined and are not.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Cut {
    pub(super) from: u32,
    pub(super) to: u32,
    /// Processes one of which cannot stay.
    pub(super) ranks: Vec<usize>,
}

/// Streams between processes that stay and that no links join.
pub(super) fn cut_off(problem: &Problem<'_>, must: &BTreeSet<usize>, hosts: &[u32]) -> Vec<Cut> {
    let mut reached: BTreeMap<u32, Vec<bool>> = BTreeMap::new();
    let mut cuts = Vec::new();
    for stream in &problem.graph.demands.streams {
        let ranks = [stream.source, stream.destination].map(|rank| rank as usize);
        let [from, to] = ranks.map(|rank| hosts[rank]);
        if from == to || ranks.iter().any(|rank| must.contains(rank)) {
            continue;
        }
        let reached = reached.entry(from).or_insert_with(|| reachable(problem, from));
        if !reached[to as usize] {
            // A host without links is what is wrong, rather than the other end.
            let bare = |rank: &usize| problem.network.leaving(hosts[*rank]).is_empty();
            let alone: Vec<usize> = ranks.into_iter().filter(bare).collect();
            cuts.push(Cut { from, to, ranks: if alone.is_empty() { ranks.to_vec() } else { alone } });
        }
    }
    cuts
}

/// The nodes that links lead to from a host, through switches alone.
fn reachable(problem: &Problem<'_>, from: u32) -> Vec<bool> {
    let mut reached = vec![false; problem.system.nodes.len()];
    let mut next = vec![from];
    while let Some(node) = next.pop() {
        for &link in problem.network.leaving(node) {
            let to = problem.system.links[link as usize].destination;
            if !std::mem::replace(&mut reached[to as usize], true) && !problem.network.is_host(to) {
                next.push(to);
            }
        }
    }
    reached
}
