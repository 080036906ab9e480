use std::net::Ipv4Addr;

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::link::Link;
use crate::routes::{Graph, Tables, Ties};

/// The most hosts a network can have: those of the last byte of an address.
const MOST_HOSTS: usize = 200;
/// The longest latency, in seconds.
const LONGEST: f64 = 10.0;
/// Bytes that wait for a link that belongs to one pair of hosts.
const PAIR_QUEUE: u64 = 64 << 20;

/// Hosts, switches, the directed links between them, and the route of every ordered pair of hosts.
///
/// Nodes are numbered: hosts first, then switches. Links cut frames through: the head of a frame goes on as soon as it reaches the
/// end of a link, and a link is busy for `bytes / rate` (Ethernet header included) with every frame. On a route without other
/// traffic a frame takes the sum of the latencies and `bytes / rate` of the slowest link.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Description {
    /// Names of the hosts, unique among all nodes.
    pub hosts: Vec<String>,
    /// Names of the switches.
    pub switches: Vec<String>,
    /// The links.
    pub links: Vec<Link>,
    /// By sender, then by receiver: the links that frames take, in order. Empty where they cannot get.
    pub routes: Vec<Vec<usize>>,
}

impl Description {
    /// Hosts that all have the same latency, in seconds, and no limit of rates.
    #[must_use]
    pub fn uniform(hosts: usize, latency_s: f64) -> Self {
        Self::of(hosts, |_, _| latency_s)
    }

    /// Hosts of a tree whose links are not shared: every ordered pair has a link of its own, without a limit of rates.
    ///
    /// `children` from the root down: `[2, 2, 3]` are two racks of two switches of three hosts. `latencies_s` from the leaves
    /// up: seconds one way between hosts of one switch, of one rack, of different racks. The last value also holds for all
    /// levels above it.
    #[must_use]
    pub fn tree(children: &[usize], latencies_s: &[f64]) -> Self {
        let level = |a: usize, b: usize| {
            let (mut a, mut b, mut level) = (a, b, 0);
            for size in children.iter().rev() {
                (a, b) = (a / size, b / size);
                if a == b {
                    break;
                }
                level += 1;
            }
            level
        };
        let latency = |level: usize| of_level(latencies_s, level).unwrap_or(0.0);
        Self::of(leaves(children), |a, b| latency(level(a, b)))
    }

    /// Hosts with a link of its own for every ordered pair, whose latency in seconds a function returns.
    #[must_use]
    pub fn of(hosts: usize, latency_s: impl Fn(usize, usize) -> f64) -> Self {
        let (mut links, mut routes) = (Vec::new(), vec![Vec::new(); hosts * hosts]);
        for (from, to) in (0..hosts).flat_map(|from| (0..hosts).map(move |to| (from, to))) {
            if from != to {
                routes[from * hosts + to].push(links.len());
                links
                    .push(Link { queue_bytes: PAIR_QUEUE, ..Link::new(from, to, latency_s(from, to), None) });
            }
        }
        Self { hosts: names("h", hosts), switches: Vec::new(), links, routes }
    }

    /// Hosts and switches with shared links. Routes have the fewest links; where several have, the link given first is taken, and
    /// the ports of hosts are spread over pairs of hosts.
    #[must_use]
    pub fn links(hosts: usize, switches: usize, links: Vec<Link>) -> Self {
        let is_host: Vec<bool> = (0..hosts + switches).map(|node| node < hosts).collect();
        let is_link = |link: &Link| link.from.max(link.to) < is_host.len() && link.from != link.to;
        let ends: Vec<_> = links.iter().map(|link| is_link(link).then_some((link.from, link.to))).collect();
        let senders: Vec<usize> = (0..hosts).collect();
        let routes = Graph::new(&is_host, &ends, Ties::First, Tables::new()).routes(&senders);
        Self { hosts: names("h", hosts), switches: names("s", switches), links, routes }
    }

    /// The hosts and switches of a tree with a link in each direction between a node and its parent.
    ///
    /// `children` as in [`Self::tree`]; `bytes_per_s` and `latencies_s` of the links between hosts and their switches, of those
    /// one level up, and so on. The last value of each also holds for all levels above it; no rate means no limit.
    #[must_use]
    pub fn tree_links(children: &[usize], bytes_per_s: &[f64], latencies_s: &[f64]) -> Self {
        let hosts = leaves(children);
        let (mut links, mut first, mut width) = (Vec::new(), 0, hosts);
        for (level, &size) in children.iter().rev().enumerate() {
            let parents = first + width;
            for node in 0..width {
                let (child, parent) = (first + node, parents + node / size.max(1));
                let latency_s = of_level(latencies_s, level).unwrap_or(0.0);
                for (from, to) in [(child, parent), (parent, child)] {
                    links.push(Link::new(from, to, latency_s, of_level(bytes_per_s, level)));
                }
            }
            (first, width) = (parents, width / size.max(1));
        }
        Self::links(hosts, first + width - hosts, links)
    }

    /// The same with one rate, in bytes per second, on all links.
    #[must_use]
    pub fn with_rate(mut self, bytes_per_s: f64) -> Self {
        self.links.iter_mut().for_each(|link| link.bytes_per_s = Some(bytes_per_s));
        self
    }

    /// The same with another route between two hosts, as numbers of links.
    #[must_use]
    pub fn with_route(mut self, from: usize, to: usize, links: Vec<usize>) -> Self {
        let hosts = self.hosts.len();
        self.routes[from * hosts + to] = links;
        self
    }

    /// The links from one host to another.
    #[must_use]
    pub fn route(&self, from: usize, to: usize) -> &[usize] {
        self.routes.get(from * self.hosts.len() + to).map_or(&[], Vec::as_slice)
    }

    /// The number of a node.
    pub fn node(&self, name: &str) -> Result<usize, Error> {
        let mut names = self.hosts.iter().chain(&self.switches);
        names.clone().position(|node| node == name).ok_or_else(|| {
            let known: Vec<&str> = names.by_ref().take(8).map(String::as_str).collect();
            let more = if names.next().is_some() { ", …" } else { "" };
            Error::Refused(format!("there is no node {name}: the network has {}{more}", known.join(", ")))
        })
    }

    /// The ordered pairs of hosts without a route.
    pub fn unreachable(&self) -> impl Iterator<Item = (usize, usize)> {
        let hosts = self.hosts.len();
        let pairs = (0..hosts).flat_map(move |from| (0..hosts).map(move |to| (from, to)));
        pairs.filter(|&(from, to)| from != to && self.route(from, to).is_empty())
    }

    /// Seconds from one host to another without other traffic, for frames of no bytes.
    #[must_use]
    pub fn latency_s(&self, from: usize, to: usize) -> f64 {
        self.route(from, to).iter().map(|&link| self.links[link].latency_s).sum()
    }

    /// Whether a network can be made of it.
    pub fn check(&self) -> Result<(), Error> {
        let hosts = self.hosts.len();
        if !(2..=MOST_HOSTS).contains(&hosts) {
            return Err(Error::Description(format!("a network has 2 to {MOST_HOSTS} hosts")));
        }
        let mut names: Vec<&str> = self.hosts.iter().chain(&self.switches).map(String::as_str).collect();
        self.hosts.iter().try_for_each(|name| check_name(name))?;
        names.sort_unstable();
        if let Some([twice, _]) = names.array_windows().find(|[a, b]| a == b) {
            return Err(Error::Description(format!("two nodes are called `{twice}`")));
        }
        self.links.iter().try_for_each(|link| self.check_link(link))?;
        if self.routes.len() != hosts * hosts {
            return Err(Error::Description(format!("{} routes for {hosts} hosts", self.routes.len())));
        }
        self.routes
            .iter()
            .enumerate()
            .try_for_each(|(pair, route)| self.check_route(pair / hosts, pair % hosts, route))
    }

    fn check_link(&self, link: &Link) -> Result<(), Error> {
        let nodes = self.hosts.len() + self.switches.len();
        if link.from >= nodes || link.to >= nodes || link.from == link.to {
            let problem =
                format!("a link from node {} to node {}: there are {nodes} nodes", link.from, link.to);
            return Err(Error::Description(problem));
        }
        check_latency(link.latency_s)?;
        check_rate(link.bytes_per_s)
    }

    fn check_route(&self, from: usize, to: usize, route: &[usize]) -> Result<(), Error> {
        let mut node = from;
        for &number in route {
            match self.links.get(number) {
                Some(link) if link.from == node => node = link.to,
                _ => break,
            }
        }
        if from != to && !route.is_empty() && node != to {
            let (from, to) = (&self.hosts[from], &self.hosts[to]);
            return Err(Error::Description(format!("the route from {from} to {to} is not a path of links")));
        }
        Ok(())
    }
}

/// The value of a level, from the leaves up; the last one also holds for all levels above it.
fn of_level(values: &[f64], level: usize) -> Option<f64> {
    values.get(level).or(values.last()).copied()
}

/// The number of leaves of a tree; of trees that are refused, some number that is refused too.
fn leaves(children: &[usize]) -> usize {
    let leaves = children.iter().fold(1_usize, |leaves, &size| leaves.saturating_mul(size));
    leaves.min(MOST_HOSTS + 1)
}

fn names(prefix: &str, count: usize) -> Vec<String> {
    (0..count).map(|number| format!("{prefix}{number}")).collect()
}

/// Whether a name can be that of a host and of a file.
fn check_name(name: &str) -> Result<(), Error> {
    if name.eq_ignore_ascii_case("localhost") {
        let problem = format!("a host cannot be called `{name}`: on every host, that is the host itself");
        return Err(Error::Description(problem));
    }
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    match (1..=63).contains(&name.len()) && name.bytes().all(is_plain) && !name.starts_with(['-', '.']) {
        true => Ok(()),
        false => Err(Error::Description(format!("`{name}` is not the name of a host"))),
    }
}

/// Whether a latency, in seconds, is one.
pub(crate) fn check_latency(seconds: f64) -> Result<(), Error> {
    match (0.0..=LONGEST).contains(&seconds) {
        true => Ok(()),
        false => Err(Error::Description(format!("a latency is 0 to {LONGEST} s, not {seconds}"))),
    }
}

/// Whether a rate, in bytes per second, is one.
pub(crate) fn check_rate(rate: Option<f64>) -> Result<(), Error> {
    match rate {
        Some(rate) if !(1.0..=1e12).contains(&rate) => {
            Err(Error::Description(format!("a rate is 1 to 1e12 bytes per second, not {rate}")))
        }
        _ => Ok(()),
    }
}

/// The address of a host.
#[must_use]
pub fn address(host: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 77, 0, u8::try_from(host + 1).unwrap_or(u8::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_of_a_tree_are_those_of_the_lowest_common_switch() {
        let tree = Description::tree(&[2, 2, 2], &[1.0, 2.0, 3.0]);
        assert_eq!(tree.hosts.len(), 8);
        let row = |from| (0..8).map(|to| tree.latency_s(from, to)).collect::<Vec<_>>();
        assert_eq!(row(0), [0.0, 1.0, 2.0, 2.0, 3.0, 3.0, 3.0, 3.0]);
        assert_eq!(row(6), [3.0, 3.0, 3.0, 3.0, 2.0, 2.0, 0.0, 1.0]);
        tree.check().unwrap();
        let uneven = Description::tree(&[2, 3], &[1.0]);
        assert_eq!(
            (0..6).map(|to| uneven.latency_s(2, to)).collect::<Vec<_>>(),
            [1.0, 1.0, 0.0, 1.0, 1.0, 1.0]
        );
    }

    #[test]
    fn links_of_a_tree_lead_up_to_the_lowest_common_switch_and_down() {
        let tree = Description::tree_links(&[2, 2, 2], &[3e6, 2e6], &[1.0, 0.5, 0.25]);
        tree.check().unwrap();
        assert_eq!((tree.hosts.len(), tree.switches.len(), tree.links.len()), (8, 7, 28));
        let nodes =
            |from, to| tree.route(from, to).iter().map(|&link| tree.links[link].to).collect::<Vec<_>>();
        assert_eq!(nodes(0, 1), [8, 1]);
        assert_eq!(nodes(0, 7), [8, 12, 14, 13, 11, 7]);
        assert!((tree.latency_s(0, 7) - 3.5).abs() < 1e-12);
        let rates = tree.route(0, 7).iter().map(|&link| tree.links[link].bytes_per_s.unwrap());
        assert_eq!(rates.collect::<Vec<_>>(), [3e6, 2e6, 2e6, 2e6, 2e6, 3e6]);
    }

    #[test]
    fn pairs_of_hosts_without_a_route_are_listed() {
        let description =
            Description::links(3, 0, vec![Link::new(0, 1, 0.0, None), Link::new(1, 2, 0.0, None)]);
        assert_eq!(description.unreachable().collect::<Vec<_>>(), [(1, 0), (2, 0), (2, 1)]);
    }

    #[test]
    fn descriptions_that_no_network_can_have_are_refused() {
        let message = |description: &Description| description.check().unwrap_err().to_string();
        assert_eq!(message(&Description::uniform(1, 0.0)), "a network has 2 to 200 hosts");
        assert_eq!(message(&Description::uniform(201, 0.0)), "a network has 2 to 200 hosts");
        assert_eq!(message(&Description::uniform(2, -1.0)), "a latency is 0 to 10 s, not -1");
        assert_eq!(message(&Description::uniform(2, f64::NAN)), "a latency is 0 to 10 s, not NaN");
        assert_eq!(message(&Description::tree(&[usize::MAX, 2], &[])), "a network has 2 to 200 hosts");
        let slow = Description::uniform(2, 0.0).with_rate(0.0);
        assert_eq!(message(&slow), "a rate is 1 to 1e12 bytes per second, not 0");
        let star = || Description::tree_links(&[3], &[], &[0.0]);
        let bent = star().with_route(0, 1, vec![0, 5]);
        assert_eq!(message(&bent), "the route from h0 to h1 is not a path of links");
        let far = Description::links(2, 0, vec![Link::new(0, 2, 0.0, None)]);
        assert_eq!(message(&far), "a link from node 0 to node 2: there are 2 nodes");
        let mut named = star();
        named.hosts[1] = "a/b".to_owned();
        assert_eq!(message(&named), "`a/b` is not the name of a host");
        named.hosts[1] = "LocalHost".to_owned();
        let own = "a host cannot be called `LocalHost`: on every host, that is the host itself";
        assert_eq!(message(&named), own);
        named.hosts[1] = "h0".to_owned();
        assert_eq!(message(&named), "two nodes are called `h0`");
        named.routes.pop();
        named.hosts[1] = "b".to_owned();
        assert_eq!(message(&named), "8 routes for 3 hosts");
    }
}
