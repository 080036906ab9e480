//! A tree of next hops for every destination, and the loads of all of them.

use std::collections::BTreeSet;

use super::network::FabricNetwork;
use super::order::Order;
use super::traffic::Traffic;
use super::turns::Turns;
use crate::network::cycle_of;

/// No link, or no path.
pub(super) const NONE: u32 = u32::MAX;

/// Which paths are open.
#[derive(Debug, Clone)]
pub(super) enum Rule {
    /// All shortest ones.
    Shortest,
    /// Up first, then down.
    Order(Order),
    /// Those whose turns close no cycle.
    Turns(Turns),
}

/// Trees of all destinations.
#[derive(Debug, Clone)]
pub(super) struct Trees<'a> {
    network: &'a FabricNetwork<'a>,
    traffic: Traffic,
    rule: Rule,
    /// The channel that each switch takes, at destination · switches + switch; [`NONE`] at the last one.
    channels: Vec<u32>,
    /// Pairs of hosts over each channel.
    loads: Vec<u64>,
    /// For the destination at hand, by switch: hops, cost of the path, and pairs of hosts that pass.
    hops: Vec<u32>,
    costs: Vec<f64>,
    passing: Vec<u64>,
    /// The switches in ascending order of their hops.
    order: Vec<u32>,
    /// Whether the switches of a destination avoid each other's paths, too. Then packets for it come over several paths, so that single
    /// shifts can be worse.
    pub(super) spreads: bool,
}

impl<'a> Trees<'a> {
    /// No trees yet.
    pub(super) fn new(network: &'a FabricNetwork<'a>, traffic: Traffic, rule: Rule) -> Self {
        let switches = network.switches.len();
        Self {
            channels: vec![NONE; network.hosts.len() * switches],
            loads: vec![0; network.channels.len()],
            hops: vec![NONE; switches],
            costs: vec![0.0; switches],
            passing: vec![0; switches],
            order: Vec::new(),
            spreads: false,
            network,
            traffic,
            rule,
        }
    }

    /// Routes every destination; `false` if a host cannot reach one.
    pub(super) fn route_all(&mut self) -> bool {
        (0..self.network.hosts.len()).all(|destination| self.route(destination))
    }

    /// Routes every destination again, given the loads of all others; `false` if it was stopped.
    pub(super) fn route_again(&mut self, is_over: &dyn Fn() -> bool) -> bool {
        for destination in 0..self.network.hosts.len() {
            if destination % 64 == 0 && is_over() {
                return false;
            }
            let row = destination * self.network.switches.len();
            let old = self.channels[row..row + self.network.switches.len()].to_vec();
            self.sort(destination);
            self.load(destination, false);
            self.release(row);
            if !self.route(destination) {
                self.channels[row..row + old.len()].copy_from_slice(&old);
                self.take(row);
                self.sort(destination);
                self.load(destination, true);
            }
        }
        true
    }

    /// The link that a switch takes to a destination; [`NONE`] without a path.
    pub(super) fn next(&self, destination: usize, switch: usize) -> u32 {
        let last = self.network.last[destination].iter().find(|(from, _)| *from as usize == switch);
        match (last, self.channel(destination, switch)) {
            (Some(&(_, link)), _) => link,
            (None, NONE) => NONE,
            (None, channel) => self.network.channels[channel as usize].link,
        }
    }

    pub(super) fn channel(&self, destination: usize, switch: usize) -> u32 {
        self.channels[destination * self.network.switches.len() + switch]
    }

    /// The largest load of a channel.
    pub(super) fn busiest(&self) -> u64 {
        self.loads.iter().copied().max().unwrap_or_default()
    }

    /// Links of the longest route.
    pub(super) fn longest(&self) -> u32 {
        let mut longest = 0;
        for destination in 0..self.network.hosts.len() {
            for &source in &self.network.switch_of {
                let (mut at, mut hops) = (source as usize, 2);
                while let Some(channel) = self.network.channels.get(self.channel(destination, at) as usize) {
                    (at, hops) = (channel.to as usize, hops + 1);
                }
                longest = longest.max(hops);
            }
        }
        longest
    }

    fn route(&mut self, destination: usize) -> bool {
        if !self.choose(destination) {
            return false;
        }
        self.load(destination, true);
        true
    }

    /// Chooses a channel for every switch, level by level from the destination: the fewest hops that the rule allows, and of those the
    /// least loaded path. `false` if a host cannot reach it.
    fn choose(&mut self, destination: usize) -> bool {
        let network = self.network;
        let switches = network.switches.len();
        let row = destination * switches;
        self.channels[row..row + switches].fill(NONE);
        self.hops.fill(NONE);
        self.order.clear();
        self.traffic.senders(network, destination, &mut self.passing);
        let mut level: Vec<u32> = network.last[destination].iter().map(|(switch, _)| *switch).collect();
        for &switch in &level {
            (self.hops[switch as usize], self.costs[switch as usize]) = (0, 0.0);
        }
        let mut next = Vec::new();
        while !level.is_empty() {
            for &switch in &level {
                self.order.push(switch);
                for &channel in &network.entering[switch as usize] {
                    let from = network.channels[channel as usize].from as usize;
                    let (far, cost) = (self.hops[switch as usize] + 1, self.cost(channel));
                    let is_new = self.hops[from] == NONE;
                    let is_better = is_new || (self.hops[from] == far && cost < self.costs[from]);
                    if is_better && self.allows(row, channel) {
                        (self.hops[from], self.costs[from], self.channels[row + from]) = (far, cost, channel);
                        if is_new {
                            next.push(from as u32);
                        }
                    }
                }
            }
            next.retain(|&switch| self.commit(row, switch));
            std::mem::swap(&mut level, &mut next);
            next.clear();
        }
        if self.spreads {
            for at in 0..self.order.len() {
                self.load_own(row, self.order[at], false);
            }
        }
        let joins = |switch: usize| network.senders[switch] == 0 || self.hops[switch] != NONE;
        let is_whole = (0..switches).all(joins);
        if !is_whole {
            self.release(row);
        }
        is_whole
    }

    /// Cost of the path that begins with a channel. Squares keep the largest loads small.
    fn cost(&self, channel: u32) -> f64 {
        let load = self.loads[channel as usize] as f64;
        self.costs[self.network.channels[channel as usize].to as usize] + load * load
    }

    /// The same with the loads of other switches on the way to this destination.
    fn cost_now(&self, row: usize, mut channel: u32) -> f64 {
        let mut cost = 0.0;
        while let Some(ends) = self.network.channels.get(channel as usize) {
            let load = self.loads[channel as usize] as f64;
            cost += load * load;
            channel = self.channels[row + ends.to as usize];
        }
        cost
    }

    /// Adds what the hosts of a switch send to the loads of its path, or takes it out.
    fn load_own(&mut self, row: usize, switch: u32, adds: bool) {
        let own = self.passing[switch as usize];
        let mut channel = self.channels[row + switch as usize];
        while let Some(ends) = self.network.channels.get(channel as usize) {
            let load = &mut self.loads[channel as usize];
            *load = if adds { *load + own } else { *load - own };
            channel = self.channels[row + ends.to as usize];
        }
    }

    /// Whether a packet may go on from a channel as its end does.
    fn allows(&mut self, row: usize, channel: u32) -> bool {
        let ends = self.network.channels[channel as usize];
        let next = self.channels[row + ends.to as usize];
        match &mut self.rule {
            Rule::Shortest => true,
            Rule::Order(order) => {
                let goes_up = self
                    .network
                    .channels
                    .get(next as usize)
                    .is_some_and(|next| order.is_up(next.from, next.to));
                order.is_up(ends.from, ends.to) || !goes_up
            }
            Rule::Turns(turns) => next == NONE || turns.allows(self.network, channel, next),
        }
    }

    /// Takes the turn of a switch. Switches of the same level can close a cycle together: then another channel is taken, or none for now.
    fn commit(&mut self, row: usize, switch: u32) -> bool {
        if !matches!(self.rule, Rule::Turns(_)) && !self.spreads {
            return true;
        }
        let (network, far) = (self.network, self.hops[switch as usize]);
        let mut channels: Vec<u32> = network.leaving[switch as usize].clone();
        channels.retain(|&channel| {
            let hops = self.hops[network.channels[channel as usize].to as usize];
            hops != NONE && hops + 1 == far
        });
        let cost = |channel: u32| if self.spreads { self.cost_now(row, channel) } else { self.cost(channel) };
        channels.sort_by(|&one, &other| cost(one).total_cmp(&cost(other)));
        for channel in channels {
            if self.allows(row, channel) {
                let next = self.channels[row + network.channels[channel as usize].to as usize];
                if let (Rule::Turns(turns), true) = (&mut self.rule, next != NONE) {
                    turns.take(channel, next);
                }
                (self.channels[row + switch as usize], self.costs[switch as usize]) =
                    (channel, self.cost(channel));
                if self.spreads {
                    self.load_own(row, switch, true);
                }
                return true;
            }
        }
        (self.hops[switch as usize], self.channels[row + switch as usize]) = (NONE, NONE);
        false
    }

    /// The turns of a destination.
    fn turns(&self, row: usize) -> Vec<(u32, u32)> {
        let next = |channel: &u32| {
            let ends = self.network.channels.get(*channel as usize)?;
            Some(self.channels[row + ends.to as usize]).filter(|next| *next != NONE)
        };
        let channels = self.channels[row..row + self.network.switches.len()].iter();
        channels.filter_map(|channel| Some((*channel, next(channel)?))).collect()
    }

    /// Gives back the turns of a destination.
    fn release(&mut self, row: usize) {
        let taken = self.turns(row);
        if let Rule::Turns(turns) = &mut self.rule {
            taken.into_iter().for_each(|(channel, next)| turns.release(channel, next));
        }
    }

    fn take(&mut self, row: usize) {
        let taken = self.turns(row);
        if let Rule::Turns(turns) = &mut self.rule {
            taken.into_iter().for_each(|(channel, next)| turns.take(channel, next));
        }
    }

    /// The same trees, in which any further turns are open that close no cycle.
    pub(super) fn with_turns(mut self) -> Self {
        self.rule = Rule::Turns(Turns::new(self.network));
        let switches = self.network.switches.len();
        (0..self.network.hosts.len()).for_each(|destination| self.take(destination * switches));
        self
    }

    /// Adds the routes to a destination to the loads, or takes them out.
    fn load(&mut self, destination: usize, adds: bool) {
        let network = self.network;
        let row = destination * network.switches.len();
        self.traffic.senders(network, destination, &mut self.passing);
        // What passes a switch is known once all farther ones are done.
        for &switch in self.order.iter().rev() {
            let channel = self.channels[row + switch as usize];
            let passing = self.passing[switch as usize];
            if let Some(ends) = network.channels.get(channel as usize) {
                self.passing[ends.to as usize] += passing;
                let load = &mut self.loads[channel as usize];
                *load = if adds { *load + passing } else { *load - passing };
            }
        }
    }

    /// The switches in ascending order of their hops to a destination, along its tree.
    fn sort(&mut self, destination: usize) {
        let network = self.network;
        let row = destination * network.switches.len();
        let hops = |switch: usize| {
            let (mut at, mut hops) = (switch, 0_u32);
            while let Some(ends) = network.channels.get(self.channels[row + at] as usize) {
                (at, hops) = (ends.to as usize, hops + 1);
            }
            hops
        };
        let mut keyed: Vec<(u32, u32)> =
            (0..network.switches.len()).map(|switch| (hops(switch), switch as u32)).collect();
        keyed.sort_unstable();
        self.order = keyed.into_iter().map(|(_, switch)| switch).collect();
    }

    /// Whether no channels can wait for each other in a cycle.
    pub(super) fn is_deadlock_free(&self) -> bool {
        let network = self.network;
        let mut turns = vec![BTreeSet::new(); network.channels.len()];
        let mut seen = vec![NONE; network.switches.len()];
        for destination in 0..network.hosts.len() {
            for &source in &network.switch_of {
                let mut at = source;
                while seen[at as usize] != destination as u32 {
                    seen[at as usize] = destination as u32;
                    let channel = self.channel(destination, at as usize);
                    let Some(found) = network.channels.get(channel as usize) else { break };
                    let next = self.channel(destination, found.to as usize);
                    if next != NONE {
                        turns[channel as usize].insert(next);
                    }
                    at = found.to;
                }
            }
        }
        cycle_of(&turns).is_empty()
    }
}
