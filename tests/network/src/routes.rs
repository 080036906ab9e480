//! Routes as mappers expect them (`Paths` in `core/model`): by forwarding tables, otherwise over the fewest links.

use std::collections::{HashMap, VecDeque};

use serde::Deserialize;

/// Which of several links that are equally near to a destination frames take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Ties {
    /// The one that is listed first.
    First,
    /// By the number of the destination: the static routes of fat trees (D-mod-K, Zahavi 2012).
    #[default]
    Spread,
}

/// By node and last link of a route: the next link.
pub(crate) type Tables = HashMap<(usize, usize), usize>;

/// Hosts and switches with the links between them.
///
/// Only switches forward frames; hosts do where there are no switches, or where the links form a tree.
#[derive(Debug)]
pub(crate) struct Graph {
    /// Source and destination of every link.
    ends: Vec<(usize, usize)>,
    /// By node: the links that leave it and those that lead to it.
    out: Vec<Vec<usize>>,
    into: Vec<Vec<usize>>,
    forwards: Vec<bool>,
    /// The number of a node among the hosts.
    ordinals: Vec<usize>,
    dividers: Vec<usize>,
    ties: Ties,
    tables: Tables,
}

/// A link to a host, none if the host forwards, and the number of links from every node to its source or to that host.
type Last = (Option<usize>, Vec<usize>);

impl Graph {
    /// Nodes that are hosts or not, and the ends of links; none of a link that is down. Hosts that are down count as hosts.
    pub(crate) fn new(
        is_host: &[bool],
        links: &[Option<(usize, usize)>],
        ties: Ties,
        tables: Tables,
    ) -> Self {
        let nodes = is_host.len();
        let (mut out, mut into) = (vec![Vec::new(); nodes], vec![Vec::new(); nodes]);
        for (number, link) in links.iter().enumerate() {
            if let Some((from, to)) = link {
                out[*from].push(number);
                into[*to].push(number);
            }
        }
        let ends: Vec<(usize, usize)> = links.iter().map(|link| link.unwrap_or_default()).collect();
        let hosts_forward =
            is_host.iter().all(|&is_host| is_host) || tables.is_empty() && is_tree(&into, links);
        let ordinal = |node: usize| is_host[..node].iter().filter(|&&is_host| is_host).count();
        Self {
            forwards: is_host.iter().map(|&is_host| !is_host || hosts_forward).collect(),
            ordinals: (0..nodes).map(ordinal).collect(),
            dividers: dividers(is_host, &out, &ends),
            ends,
            out,
            into,
            ties,
            tables,
        }
    }

    /// By sender, then by receiver: the links from one of these hosts to another; empty where there is no route.
    pub(crate) fn routes(&self, hosts: &[usize]) -> Vec<Vec<usize>> {
        let mut routes = vec![Vec::new(); hosts.len() * hosts.len()];
        for (column, &to) in hosts.iter().enumerate() {
            let lasts: Vec<Last> = if self.forwards[to] {
                vec![(None, self.distances(to))]
            } else {
                let sources = self.into[to].iter().map(|&last| (last, self.ends[last].0));
                let switches = sources.filter(|(_, source)| self.forwards[*source]);
                switches.map(|(last, source)| (Some(last), self.distances(source))).collect()
            };
            for (row, &from) in hosts.iter().enumerate().filter(|(_, from)| **from != to) {
                routes[row * hosts.len() + column] = self.route(from, to, &lasts).unwrap_or_default();
            }
        }
        routes
    }

    /// Between hosts with several ports, the shortest route of any two ports; several equal ones are spread over pairs of hosts.
    fn route(&self, from: usize, to: usize, lasts: &[Last]) -> Option<Vec<usize>> {
        if let [last @ (None, _)] = lasts {
            return self.follow(from, to, Vec::new(), last);
        }
        if let Some(&direct) = self.out[from].iter().find(|&&link| self.ends[link].1 == to) {
            return Some(vec![direct]);
        }
        let firsts = || self.out[from].iter().copied().filter(|&first| self.forwards[self.ends[first].1]);
        let pairs = lasts.iter().flat_map(|last| firsts().map(move |first| (first, last)));
        // A host whose table selects a port sends by no other.
        let own = |last: &Last| self.tables.get(&(from, last.0?)).copied();
        let allowed = pairs.filter(|(first, last)| own(last).is_none_or(|own| own == *first));
        let found = allowed.filter_map(|(first, last)| self.follow(from, to, vec![first], last));
        let mut routes: Vec<Vec<usize>> = found.collect();
        let shortest = routes.iter().map(Vec::len).min()?;
        routes.retain(|route| route.len() == shortest);
        Some(routes.swap_remove((self.ordinals[from] + self.ordinals[to]) % routes.len()))
    }

    /// The route that begins with these links.
    fn follow(&self, from: usize, to: usize, mut route: Vec<usize>, last: &Last) -> Option<Vec<usize>> {
        loop {
            let node = route.last().map_or(from, |&link| self.ends[link].1);
            match last.0 {
                Some(last) if route.last() == Some(&last) => return Some(route),
                None if node == to => return Some(route),
                // Tables can lead in circles.
                _ if route.len() > self.out.len() => return None,
                _ => route.push(self.next(node, to, last)?),
            }
        }
    }

    /// The next link on the way from a node to a host.
    fn next(&self, node: usize, to: usize, (last, distances): &Last) -> Option<usize> {
        if let (Some(last), false) = (last, self.tables.is_empty()) {
            let is_usable = |link: &usize| {
                self.out[node].contains(link) && (link == last || self.forwards[self.ends[*link].1])
            };
            return self.tables.get(&(node, *last)).copied().filter(is_usable);
        }
        if distances[node] == 0 {
            return *last;
        }
        let is_nearer = |&&link: &&usize| {
            let other = self.ends[link].1;
            distances[other] == distances[node] - 1 && self.forwards[other]
        };
        let nearer: Vec<usize> = self.out[node].iter().filter(is_nearer).copied().collect();
        let turn = match self.ties {
            Ties::First => 0,
            Ties::Spread => {
                let below = nearer.iter().map(|&link| self.dividers[self.ends[link].1]).min()?;
                self.ordinals[to] / self.dividers[node].min(below)
            }
        };
        nearer.get(turn % nearer.len().max(1)).copied()
    }

    /// The number of links from every node to one that forwards. Nodes that do not can only be the start of a route.
    fn distances(&self, end: usize) -> Vec<usize> {
        distances(vec![end], self.out.len(), |node| {
            let links = if self.forwards[node] { self.into[node].as_slice() } else { &[] };
            links.iter().map(|&link| self.ends[link].0)
        })
    }
}

/// Whether the links form a tree with one link in each direction.
fn is_tree(into: &[Vec<usize>], links: &[Option<(usize, usize)>]) -> bool {
    let sources = |node: usize| into[node].iter().filter_map(|&link| Some(links[link]?.0));
    let has_reverse =
        |link: &Option<(usize, usize)>| link.is_some_and(|(a, b)| links.contains(&Some((b, a))));
    links.len() + 2 == 2 * into.len()
        && links.iter().all(has_reverse)
        && !distances(vec![0], into.len(), sources).contains(&usize::MAX)
}

/// The number of steps from the nearest of some nodes to every node.
fn distances<N: Iterator<Item = usize>>(
    from: Vec<usize>,
    nodes: usize,
    next: impl Fn(usize) -> N,
) -> Vec<usize> {
    let mut distances = vec![usize::MAX; nodes];
    from.iter().for_each(|&node| distances[node] = 0);
    let mut queue = VecDeque::from(from);
    while let Some(node) = queue.pop_front() {
        for other in next(node) {
            if distances[other] == usize::MAX {
                distances[other] = distances[node] + 1;
                queue.push_back(other);
            }
        }
    }
    distances
}

/// By node, what the number of a destination is divided by before it selects a link up, so that switches of different tiers use
/// different digits of it: the product over the tiers of switches below of the most links up of a node. The tier is the distance
/// from the nearest host.
fn dividers(is_host: &[bool], out: &[Vec<usize>], ends: &[(usize, usize)]) -> Vec<usize> {
    let hosts = (0..is_host.len()).filter(|&node| is_host[node]).collect();
    let next = |node: usize| out[node].iter().map(|&link| ends[link].1);
    let tiers = distances(hosts, is_host.len(), next);
    let mut dividers = vec![1_usize, 1];
    loop {
        let tier = dividers.len();
        let up = |node: usize| next(node).filter(|&other| tiers[other] == tier).count();
        let most = (0..tiers.len()).filter(|&node| tiers[node] == tier - 1).map(up).max().unwrap_or(0);
        if most == 0 {
            return tiers.iter().map(|&tier| dividers.get(tier).copied().unwrap_or(1)).collect();
        }
        dividers.push(dividers[tier - 1].saturating_mul(most));
    }
}
