//! The links between switches, and the hosts at each switch, by dense numbers.

use hopmap_graph::distances;
use hopmap_model::{LinkState, NodeKind, NodeState, SystemGraph};
use hopmap_routing::error::{Result, fail};

/// A link from one switch to another.
#[derive(Debug, Clone, Copy)]
pub(super) struct Channel {
    /// Number of the link in the machine.
    pub link: u32,
    /// Positions of the switches.
    pub from: u32,
    pub to: u32,
}

/// A fabric. Hosts and switches are numbered by their position in these lists.
#[derive(Debug)]
pub(super) struct FabricNetwork<'a> {
    pub system: &'a SystemGraph,
    /// Node ids.
    pub hosts: Vec<u32>,
    pub switches: Vec<u32>,
    pub channels: Vec<Channel>,
    /// Channels that leave and enter each switch.
    pub leaving: Vec<Vec<u32>>,
    pub entering: Vec<Vec<u32>>,
    /// The switch to which each host sends.
    pub switch_of: Vec<u32>,
    /// The switches from which each host receives, with the link.
    pub last: Vec<Vec<(u32, u32)>>,
    /// Hosts that send to each switch.
    pub senders: Vec<u32>,
    /// By destination, what switches send beside the traffic between all hosts; empty without a program.
    pub streams: Vec<Vec<(u32, u64)>>,
}

impl<'a> FabricNetwork<'a> {
    /// What is up of a machine. Hosts have to be at switches.
    pub(super) fn new(system: &'a SystemGraph) -> Result<Self> {
        let is_up = |node: u32| system.nodes[node as usize].state == NodeState::Up;
        let nodes = |kind| {
            (0..system.nodes.len() as u32)
                .filter(move |&node| system.nodes[node as usize].kind == kind && is_up(node))
        };
        let (hosts, switches): (Vec<u32>, Vec<u32>) =
            (nodes(NodeKind::Host).collect(), nodes(NodeKind::Switch).collect());
        let mut place = vec![None; system.nodes.len()];
        for list in [&hosts, &switches] {
            for (at, &node) in (0_u32..).zip(list) {
                place[node as usize] = Some(at);
            }
        }
        let is_switch = |node: u32| system.nodes[node as usize].kind == NodeKind::Switch;
        let (mut channels, mut switch_of) = (Vec::new(), vec![None; hosts.len()]);
        let mut last = vec![Vec::new(); hosts.len()];
        for (link, found) in (0..).zip(&system.links).filter(|(_, link)| link.state == LinkState::Up) {
            let (Some(from), Some(to)) = (place[found.source as usize], place[found.destination as usize])
            else {
                continue;
            };
            match (is_switch(found.source), is_switch(found.destination)) {
                (true, true) => channels.push(Channel { link, from, to }),
                (false, true) => switch_of[from as usize] = switch_of[from as usize].or(Some(to)),
                (true, false) => last[to as usize].push((from, link)),
                (false, false) => {}
            }
        }
        let lonely = (0..hosts.len()).find(|&host| switch_of[host].is_none() || last[host].is_empty());
        if let Some(host) = lonely {
            let name = &system.nodes[hosts[host] as usize].name;
            return fail(
                format!("host `{name}` has no link to and from a switch"),
                "route/fabric takes fabrics of switches; take hosts that are not connected out with select/nodes",
            );
        }
        if hosts.len() < 2 {
            return fail("the machine has fewer than two hosts", "there is nothing to route");
        }
        let mut own = Self {
            leaving: vec![Vec::new(); switches.len()],
            entering: vec![Vec::new(); switches.len()],
            senders: vec![0; switches.len()],
            streams: Vec::new(),
            switch_of: switch_of.into_iter().flatten().collect(),
            system,
            hosts,
            switches,
            channels,
            last,
        };
        for (channel, &Channel { from, to, .. }) in (0..).zip(&own.channels) {
            own.leaving[from as usize].push(channel);
            own.entering[to as usize].push(channel);
        }
        own.switch_of.iter().for_each(|&switch| own.senders[switch as usize] += 1);
        match own.apart() {
            None => Ok(own),
            Some(pair) => {
                let [from, to] = pair.map(|host| &system.nodes[own.hosts[host] as usize].name);
                fail(
                    format!("there is no path from host `{from}` to host `{to}`"),
                    "a cable or switch may be down; select/nodes takes the hosts of one part of the fabric",
                )
            }
        }
    }

    /// Two hosts without a path from one to the other. Without any, all have one to and from the first host.
    fn apart(&self) -> Option<[usize; 2]> {
        let ends = |channel: u32| self.channels[channel as usize];
        let after = self.joined(&[self.switch_of[0]], &self.leaving, |channel| ends(channel).to);
        let last: Vec<u32> = self.last[0].iter().map(|(switch, _)| *switch).collect();
        let before = self.joined(&last, &self.entering, |channel| ends(channel).from);
        let is_reached = |host: &usize| self.last[*host].iter().any(|(switch, _)| after[*switch as usize]);
        let reaches = |host: &usize| before[self.switch_of[*host] as usize];
        let others = || 1..self.hosts.len();
        let unreached = others().find(|host| !is_reached(host)).map(|host| [0, host]);
        unreached.or_else(|| others().find(|host| !reaches(host)).map(|host| [host, 0]))
    }

    /// By switch, whether it is reached from some over channels in one direction.
    fn joined(&self, from: &[u32], channels: &[Vec<u32>], end: impl Fn(u32) -> u32) -> Vec<bool> {
        let mut joined = vec![false; self.switches.len()];
        let mut open = from.to_vec();
        while let Some(switch) = open.pop() {
            if !std::mem::replace(&mut joined[switch as usize], true) {
                open.extend(channels[switch as usize].iter().map(|&channel| end(channel)));
            }
        }
        joined
    }

    /// The switches that hosts send to.
    pub(super) fn sources(&self) -> impl Iterator<Item = u32> {
        (0..).zip(&self.senders).filter(|(_, senders)| **senders > 0).map(|(switch, _)| switch)
    }

    /// Lower bound of the pairs of hosts over the busiest link between switches, if all hosts send to all others: what has to leave a
    /// switch shares its links, and all shortest paths share all links.
    pub(super) fn least_busiest(&self) -> f64 {
        let hosts = self.hosts.len() as f64;
        let shares = self.senders.iter().zip(&self.leaving).filter(|(_, leaving)| !leaving.is_empty());
        let cut = |(&own, leaving): (&u32, &Vec<u32>)| {
            f64::from(own) * (hosts - f64::from(own)) / leaving.len() as f64
        };
        let mut hops = 0_u64;
        for (switch, &own) in self.senders.iter().enumerate().filter(|(_, own)| **own > 0) {
            let distances = self.distances(&[switch as u32]);
            hops += distances
                .iter()
                .zip(&self.senders)
                .map(|(&far, &others)| u64::from(far) * u64::from(others))
                .sum::<u64>()
                * u64::from(own);
        }
        let mean = hops as f64 / self.channels.len().max(1) as f64;
        shares.map(cut).fold(mean, f64::max).ceil()
    }

    /// Hops from every switch to the nearest of some; 0 if unreachable.
    pub(super) fn distances(&self, targets: &[u32]) -> Vec<u32> {
        let from = |channel: &u32| self.channels[*channel as usize].from as usize;
        let before = |switch: usize| self.entering[switch].iter().map(from);
        let targets = targets.iter().map(|&target| target as usize);
        let mut distances = distances(self.switches.len(), targets, before);
        distances.iter_mut().filter(|far| **far == u32::MAX).for_each(|far| *far = 0);
        distances
    }
}
