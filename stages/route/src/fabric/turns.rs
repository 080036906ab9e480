//! Turns from one channel to the next: those that routes take must not form a cycle. New ones are allowed one by one, as in `Nue` (Domke,
//! Hoefler and Matsuoka, "Routing on the dependency graph: a new approach to deadlock-free high-performance routing", 2016), but beside
//! those of tables that are free of deadlocks already: a destination that finds no better routes keeps those that it has.
//!
//! The channels have a topological order, which changes as turns come in (Pearce and Kelly, "A dynamic topological sort algorithm for
//! directed acyclic graphs", 2007): turns that agree with it need no search for a cycle, others only one between two places.

use super::network::FabricNetwork;

/// The dependency graph of channels: how many destinations take each turn.
#[derive(Debug, Clone)]
pub(super) struct Turns {
    /// Number of the first turn of each channel. The others follow in the order of the channels that leave its end.
    first: Vec<u32>,
    /// Position of each channel among those that leave its start.
    position: Vec<u32>,
    uses: Vec<u32>,
    /// Place of each channel in the topological order.
    places: Vec<u32>,
    seen: Vec<u32>,
    search: u32,
}

impl Turns {
    /// No turns.
    pub(super) fn new(network: &FabricNetwork<'_>) -> Self {
        let channels = &network.channels;
        let mut position = vec![0; channels.len()];
        for leaving in &network.leaving {
            for (at, &channel) in (0..).zip(leaving) {
                position[channel as usize] = at;
            }
        }
        let mut count = 0;
        let first = channels.iter().map(|channel| {
            let first = count;
            count += network.leaving[channel.to as usize].len() as u32;
            first
        });
        let first = first.collect();
        let places = (0..channels.len() as u32).collect();
        let seen = vec![0; channels.len()];
        Self { first, position, uses: vec![0; count as usize], places, seen, search: 0 }
    }

    fn index(&self, channel: u32, next: u32) -> usize {
        (self.first[channel as usize] + self.position[next as usize]) as usize
    }

    /// Whether a turn closes no cycle.
    pub(super) fn allows(&mut self, network: &FabricNetwork<'_>, channel: u32, next: u32) -> bool {
        self.uses[self.index(channel, next)] > 0
            || self.place(channel) < self.place(next)
            || self.after(network, next, channel).is_some()
    }

    fn place(&self, channel: u32) -> u32 {
        self.places[channel as usize]
    }

    /// The channels that are reached from one and not behind another one; none if that is among them.
    fn after(&mut self, network: &FabricNetwork<'_>, from: u32, last: u32) -> Option<Vec<u32>> {
        let most = self.place(last);
        self.search += 1;
        self.seen[from as usize] = self.search;
        let (mut found, mut at) = (vec![from], 0);
        while let Some(&channel) = found.get(at) {
            if channel == last {
                return None;
            }
            at += 1;
            for &next in &network.leaving[network.channels[channel as usize].to as usize] {
                let is_new = self.seen[next as usize] != self.search && self.place(next) <= most;
                if is_new && self.uses[self.index(channel, next)] > 0 {
                    self.seen[next as usize] = self.search;
                    found.push(next);
                }
            }
        }
        Some(found)
    }

    /// The channels from which one is reached, and not before another one.
    fn before(&mut self, network: &FabricNetwork<'_>, to: u32, first: u32) -> Vec<u32> {
        let least = self.place(first);
        self.search += 1;
        self.seen[to as usize] = self.search;
        let (mut found, mut at) = (vec![to], 0);
        while let Some(&channel) = found.get(at) {
            at += 1;
            for &last in &network.entering[network.channels[channel as usize].from as usize] {
                let is_new = self.seen[last as usize] != self.search && self.place(last) >= least;
                if is_new && self.uses[self.index(last, channel)] > 0 {
                    self.seen[last as usize] = self.search;
                    found.push(last);
                }
            }
        }
        found
    }

    /// A destination takes a turn, which closes no cycle.
    pub(super) fn take(&mut self, network: &FabricNetwork<'_>, channel: u32, next: u32) {
        let index = self.index(channel, next);
        self.uses[index] += 1;
        if self.place(channel) < self.place(next) {
            return;
        }
        // What comes before the turn gets the first of the places of both parts.
        let mut before = self.before(network, channel, next);
        let mut after = self.after(network, next, channel).unwrap_or_default();
        before.sort_unstable_by_key(|&channel| self.place(channel));
        after.sort_unstable_by_key(|&channel| self.place(channel));
        before.append(&mut after);
        let mut places: Vec<u32> = before.iter().map(|&channel| self.place(channel)).collect();
        places.sort_unstable();
        before.into_iter().zip(places).for_each(|(channel, place)| self.places[channel as usize] = place);
    }

    /// A destination takes a turn no longer.
    pub(super) fn release(&mut self, channel: u32, next: u32) {
        let index = self.index(channel, next);
        self.uses[index] -= 1;
    }
}
