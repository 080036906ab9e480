//! Turns from one channel to the next: those that routes take must not form a cycle. New ones are allowed one by one, as in `Nue` (Domke,
//! Hoefler and Matsuoka, "Routing on the dependency graph: a new approach to deadlock-free high-performance routing", 2016), but beside
//! those of tables that are free of deadlocks already: a destination that finds no better routes keeps those that it has.

use super::network::FabricNetwork;

/// The dependency graph of channels: how many destinations take each turn.
#[derive(Debug, Clone)]
pub(super) struct Turns {
    /// Number of the first turn of each channel. The others follow in the order of the channels that leave its end.
    first: Vec<u32>,
    /// Position of each channel among those that leave its start.
    position: Vec<u32>,
    uses: Vec<u32>,
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
        let seen = vec![0; channels.len()];
        Self { first, position, uses: vec![0; count as usize], seen, search: 0 }
    }

    fn index(&self, channel: u32, next: u32) -> usize {
        (self.first[channel as usize] + self.position[next as usize]) as usize
    }

    /// Whether a turn closes no cycle.
    pub(super) fn allows(&mut self, network: &FabricNetwork<'_>, channel: u32, next: u32) -> bool {
        if self.uses[self.index(channel, next)] > 0 {
            return true;
        }
        self.search += 1;
        let mut open = vec![next];
        self.seen[next as usize] = self.search;
        while let Some(at) = open.pop() {
            if at == channel {
                return false;
            }
            for &follower in &network.leaving[network.channels[at as usize].to as usize] {
                if self.seen[follower as usize] != self.search && self.uses[self.index(at, follower)] > 0 {
                    self.seen[follower as usize] = self.search;
                    open.push(follower);
                }
            }
        }
        true
    }

    /// A destination takes a turn.
    pub(super) fn take(&mut self, channel: u32, next: u32) {
        let index = self.index(channel, next);
        self.uses[index] += 1;
    }

    /// A destination takes a turn no longer.
    pub(super) fn release(&mut self, channel: u32, next: u32) {
        let index = self.index(channel, next);
        self.uses[index] -= 1;
    }
}
