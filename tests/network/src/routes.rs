//! Routes over the fewest links, as `topology/export` describes machines and mappers see them.

use crate::link::Link;

/// Which of several links that are equally near to a destination frames take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ties {
    /// The one that is listed first.
    First,
    /// By the number of the destination: the static routes of fat trees (D-mod-K, Zahavi 2012).
    Spread,
}

/// By sender, then by receiver: the links of a route with the fewest. Hosts forward nothing if there are switches.
pub(crate) fn shortest(hosts: usize, nodes: usize, links: &[Link], ties: Ties) -> Vec<Vec<usize>> {
    let mut routes = vec![Vec::new(); hosts * hosts];
    let (mut outgoing, mut incoming) = (vec![Vec::new(); nodes], vec![Vec::new(); nodes]);
    for (number, link) in links.iter().enumerate().filter(|(_, link)| link.from < nodes && link.to < nodes) {
        outgoing[link.from].push(number);
        incoming[link.to].push(number);
    }
    let forwards = |node: usize| node >= hosts || nodes == hosts;
    let dividers = dividers(hosts, links, &outgoing);
    for to in 0..hosts {
        let distances = distances(to, links, &incoming, forwards);
        for from in (0..hosts).filter(|&from| from != to && distances[from] != usize::MAX) {
            let (mut node, route) = (from, &mut routes[from * hosts + to]);
            while node != to {
                let is_nearer = |&&link: &&usize| {
                    let next = links[link].to;
                    distances[next] == distances[node] - 1 && (next == to || forwards(next))
                };
                let nearer: Vec<usize> = outgoing[node].iter().filter(is_nearer).copied().collect();
                let turn = match ties {
                    Ties::First => 0,
                    Ties::Spread => {
                        let below = nearer.iter().map(|&link| dividers[links[link].to]).min().unwrap_or(1);
                        to / dividers[node].min(below)
                    }
                };
                let Some(&link) = nearer.get(turn % nearer.len().max(1)) else { break };
                route.push(link);
                node = links[link].to;
            }
        }
    }
    routes
}

/// The number of links from every node to a host.
fn distances(
    to: usize,
    links: &[Link],
    incoming: &[Vec<usize>],
    forwards: impl Fn(usize) -> bool,
) -> Vec<usize> {
    let mut distances = vec![usize::MAX; incoming.len()];
    distances[to] = 0;
    let (mut queue, mut next) = (vec![to], 0);
    while let Some(&node) = queue.get(next) {
        next += 1;
        if node != to && !forwards(node) {
            continue;
        }
        for &link in &incoming[node] {
            let other = links[link].from;
            if distances[other] == usize::MAX {
                distances[other] = distances[node] + 1;
                queue.push(other);
            }
        }
    }
    distances
}

/// By node, what the number of a destination is divided by before it selects a link up, so that switches of different tiers use
/// different digits of it: the product over the tiers of switches below of the most links up of a node. The tier is the distance
/// from the nearest host.
fn dividers(hosts: usize, links: &[Link], outgoing: &[Vec<usize>]) -> Vec<usize> {
    let mut tiers: Vec<usize> =
        (0..outgoing.len()).map(|node| if node < hosts { 0 } else { usize::MAX }).collect();
    let (mut queue, mut next) = ((0..hosts).collect::<Vec<_>>(), 0);
    while let Some(&node) = queue.get(next) {
        next += 1;
        for other in outgoing[node].iter().map(|&link| links[link].to) {
            if tiers[other] == usize::MAX {
                tiers[other] = tiers[node] + 1;
                queue.push(other);
            }
        }
    }
    let highest = tiers.iter().filter(|&&tier| tier != usize::MAX).max().copied().unwrap_or(0);
    let mut dividers = vec![1_usize; highest + 1];
    for tier in 2..=highest {
        let up = |node: usize| outgoing[node].iter().filter(|&&link| tiers[links[link].to] == tier).count();
        let most = (0..outgoing.len()).filter(|&node| tiers[node] == tier - 1).map(up).max().unwrap_or(1);
        dividers[tier] = dividers[tier - 1] * most.max(1);
    }
    tiers.iter().map(|&tier| dividers.get(tier).copied().unwrap_or(1)).collect()
}
