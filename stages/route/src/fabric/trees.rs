//! A tree of next hops for every destination, and the loads of all of them.

use std::collections::BTreeSet;

use hopmap_routing::network::cycle_of;

use super::network::{Channel, FabricNetwork};
use super::order::Order;
use super::traffic::Traffic;
use super::turns::Turns;

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

    /// Routes every destination; `false` if a host cannot reach one, or if it was stopped.
    pub(super) fn route_all(&mut self, is_over: &dyn Fn() -> bool) -> bool {
        (0..self.network.hosts.len()).all(|destination| !is_over() && self.route(destination))
    }

    /// All routes along a spanning tree, which takes no time and is free of deadlocks; `false` if no tree joins all hosts.
    pub(super) fn route_on_tree(&mut self) -> bool {
        let network = self.network;
        let switches = network.switches.len();
        let root = network.switch_of[0];
        // The channels between every switch and its parent.
        let (mut up, mut down, mut queue) = (vec![NONE; switches], vec![NONE; switches], vec![root]);
        let mut at = 0;
        while let Some(&parent) = queue.get(at) {
            at += 1;
            for &channel in &network.entering[parent as usize] {
                let child = network.channels[channel as usize].from;
                let is_back = |&&back: &&u32| network.channels[back as usize].to == child;
                let back = network.leaving[parent as usize].iter().find(is_back);
                if let Some(&back) = back.filter(|_| child != root && up[child as usize] == NONE) {
                    (up[child as usize], down[child as usize]) = (channel, back);
                    queue.push(child);
                }
            }
        }
        let is_joined = |switch: u32| switch == root || up[switch as usize] != NONE;
        for destination in 0..network.hosts.len() {
            let row = destination * switches;
            let last = network.last[destination].iter().find(|(switch, _)| is_joined(*switch));
            let Some(&(mut switch, _)) = last else { return false };
            self.channels[row..row + switches].copy_from_slice(&up);
            while let Some(&Channel { from, .. }) = network.channels.get(down[switch as usize] as usize) {
                self.channels[row + from as usize] = down[switch as usize];
                switch = from;
            }
            for (switch, _) in &network.last[destination] {
                self.channels[row + *switch as usize] = NONE;
            }
        }
        network.switch_of.iter().all(|&switch| is_joined(switch))
    }

    /// Routes every destination again, given the loads of all others; `false` if it was stopped. Destinations whose paths have less than
    /// some load everywhere keep them.
    pub(super) fn route_again(&mut self, least: u64, is_over: &dyn Fn() -> bool) -> bool {
        for destination in 0..self.network.hosts.len() {
            if is_over() {
                return false;
            }
            let row = destination * self.network.switches.len();
            let old = self.channels[row..row + self.network.switches.len()].to_vec();
            let load = |channel: &u32| self.loads.get(*channel as usize).copied().unwrap_or_default();
            if least > 0 && old.iter().map(load).max() < Some(least) {
                continue;
            }
            self.order = self.order_to(destination);
            self.load(destination, false);
            self.release(row);
            if !self.route(destination) {
                self.channels[row..row + old.len()].copy_from_slice(&old);
                self.take(row);
                self.order = self.order_to(destination);
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

    /// The channels from a switch to a destination.
    pub(super) fn path(&self, destination: usize, switch: u32) -> Vec<u32> {
        let (mut path, mut at) = (Vec::new(), switch);
        while let Some(ends) = self.network.channels.get(self.channel(destination, at as usize) as usize) {
            path.push(self.channel(destination, at as usize));
            at = ends.to;
        }
        path
    }

    /// By switch, the hops to a destination along its tree; [`NONE`] without a path.
    pub(super) fn hops_to(&self, destination: usize) -> Vec<u32> {
        let network = self.network;
        let mut hops = vec![NONE; network.switches.len()];
        network.last[destination].iter().for_each(|(switch, _)| hops[*switch as usize] = 0);
        let mut passed = Vec::new();
        for switch in 0..hops.len() {
            let mut at = switch;
            while let (NONE, Some(ends)) =
                (hops[at], network.channels.get(self.channel(destination, at) as usize))
            {
                passed.push(at);
                at = ends.to as usize;
            }
            let mut far = hops[at];
            for at in passed.drain(..).rev() {
                far = if far == NONE { NONE } else { far + 1 };
                hops[at] = far;
            }
        }
        hops
    }

    /// The switches with a path to a destination, in ascending order of their hops along its tree.
    pub(super) fn order_to(&self, destination: usize) -> Vec<u32> {
        let mut levels: Vec<Vec<u32>> = Vec::new();
        for (switch, far) in (0..).zip(self.hops_to(destination)).filter(|(_, far)| *far != NONE) {
            let far = far as usize;
            if levels.len() <= far {
                levels.resize(far + 1, Vec::new());
            }
            levels[far].push(switch);
        }
        levels.concat()
    }

    pub(super) fn load_of(&self, channel: u32) -> u64 {
        self.loads[channel as usize]
    }

    /// Changes one entry, which what `passing` counts follows; `false` and no change if the rule forbids it.
    pub(super) fn set(&mut self, destination: usize, switch: usize, channel: u32, passing: u64) -> bool {
        let row = destination * self.network.switches.len();
        let taken = self.turns_at(row, switch);
        self.release_turns(&taken);
        let old = std::mem::replace(&mut self.channels[row + switch], channel);
        if !self.take_allowed(&self.turns_at(row, switch)) {
            self.channels[row + switch] = old;
            self.take_turns(&taken);
            return false;
        }
        for (first, adds) in [(old, false), (channel, true)] {
            let to = self.network.channels[first as usize].to;
            for passed in std::iter::once(first).chain(self.path(destination, to)) {
                let load = &mut self.loads[passed as usize];
                *load = if adds { *load + passing } else { *load - passing };
            }
        }
        true
    }

    /// The turns to and from the channel that a switch takes.
    fn turns_at(&self, row: usize, switch: usize) -> Vec<(u32, u32)> {
        let network = self.network;
        let own = self.channels[row + switch];
        let is_taken =
            |&channel: &u32| self.channels[row + network.channels[channel as usize].from as usize] == channel;
        let next = self.channels[row + network.channels[own as usize].to as usize];
        let before = network.entering[switch].iter().copied().filter(is_taken).map(|channel| (channel, own));
        before.chain((next != NONE).then_some((own, next))).collect()
    }

    /// Takes some turns, or none of them if the rule forbids one.
    fn take_allowed(&mut self, turns: &[(u32, u32)]) -> bool {
        let network = self.network;
        let Rule::Turns(own) = &mut self.rule else { return true };
        for (taken, &(channel, next)) in turns.iter().enumerate() {
            if !own.allows(network, channel, next) {
                turns[..taken].iter().for_each(|&(channel, next)| own.release(channel, next));
                return false;
            }
            own.take(network, channel, next);
        }
        true
    }

    /// The largest load of a channel.
    pub(super) fn busiest(&self) -> u64 {
        self.loads.iter().copied().max().unwrap_or_default()
    }

    /// Links of the longest route.
    pub(super) fn longest(&self) -> u32 {
        let of = |destination| {
            let hops = self.hops_to(destination);
            let own = self.network.sources().map(|source| hops[source as usize]);
            own.filter(|hops| *hops != NONE).max().unwrap_or_default() + 2
        };
        (0..self.network.hosts.len()).map(of).max().unwrap_or_default()
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
        self.traffic.weights(network, destination, &mut self.passing);
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
            Rule::Order(order) => next == NONE || order.allows(channel, next),
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
                    turns.take(network, channel, next);
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
        self.release_turns(&self.turns(row));
    }

    fn take(&mut self, row: usize) {
        self.take_turns(&self.turns(row));
    }

    fn release_turns(&mut self, taken: &[(u32, u32)]) {
        if let Rule::Turns(turns) = &mut self.rule {
            taken.iter().for_each(|&(channel, next)| turns.release(channel, next));
        }
    }

    fn take_turns(&mut self, taken: &[(u32, u32)]) {
        if let Rule::Turns(turns) = &mut self.rule {
            taken.iter().for_each(|&(channel, next)| turns.take(self.network, channel, next));
        }
    }

    /// Whether turns are restricted.
    pub(super) fn has_turns(&self) -> bool {
        matches!(self.rule, Rule::Turns(_))
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
        self.traffic.weights(network, destination, &mut self.passing);
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

    /// Whether no channels can wait for each other in a cycle.
    pub(super) fn is_deadlock_free(&self) -> bool {
        let network = self.network;
        let mut turns = vec![BTreeSet::new(); network.channels.len()];
        let mut seen = vec![NONE; network.switches.len()];
        for destination in 0..network.hosts.len() {
            for source in network.sources() {
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
