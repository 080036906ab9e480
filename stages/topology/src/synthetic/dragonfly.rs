//! Dragonflies.

use std::collections::HashMap;

use hopmap_model::{Forward, Ties};

use super::MAX_SLOTS;
use super::network::{Fabric, MAX_LINKS, numbers, product};
use crate::SyntheticError;

/// A dragonfly (Kim, Dally, Scott and Abts 2008): `p` hosts on a router, `a` routers in a group, each joined to all others of it, `h` global
/// cables of a router, and `g` groups, each joined to all others as often as there are cables for it.
pub(super) struct Dragonfly {
    hosts: u64,
    routers: u64,
    global: u64,
    groups: u64,
}

impl Dragonfly {
    /// `4x8x4` or `4x8x4x33`: p, a, h and g; without g the most there can be, a · h + 1.
    pub(super) fn new(shape: &str, text: &str) -> Result<Self, SyntheticError> {
        let sizes = numbers(shape, text)?;
        let [hosts, routers, global] = *sizes
            .get(..3)
            .and_then(|sizes| sizes.first_chunk())
            .ok_or_else(|| SyntheticError::Lists { shape: shape.to_owned() })?;
        let ways = product(shape, [routers, global], u64::from(MAX_SLOTS))?;
        let groups = sizes.get(3).copied().unwrap_or(ways + 1);
        if groups > ways + 1 || sizes.len() > 4 {
            return Err(SyntheticError::Lists { shape: shape.to_owned() });
        }
        product(shape, [hosts, routers, groups], u64::from(MAX_SLOTS))?;
        product(shape, [routers, routers, groups], MAX_LINKS)?;
        Ok(Self { hosts, routers, global, groups })
    }

    pub(super) fn hosts(&self) -> u64 {
        self.hosts * self.routers * self.groups
    }

    /// How many cables join two groups.
    fn between_groups(&self) -> u64 {
        (self.routers * self.global).checked_div(self.groups - 1).unwrap_or(0)
    }

    pub(super) fn links(&self) -> u64 {
        let local = self.groups * self.routers * (self.routers - 1);
        2 * self.hosts() + local + self.groups * (self.groups - 1) * self.between_groups()
    }

    pub(super) fn fabric(&self) -> Fabric {
        let hosts = self.hosts();
        let switches = (0..self.groups)
            .flat_map(|group| (0..self.routers).map(move |index| format!("router-{group}-{index}")));
        let mut cables: Vec<(u32, u32, usize)> =
            (0..hosts).map(|host| (host as u32, (hosts + host / self.hosts) as u32, 0)).collect();
        for group in 0..self.groups {
            for a in 0..self.routers {
                cables
                    .extend((a + 1..self.routers).map(|b| (self.router(group, a), self.router(group, b), 1)));
            }
        }
        for round in 0..self.between_groups() {
            for a in 0..self.groups {
                cables.extend(
                    (a + 1..self.groups).map(|b| (self.owner(a, b, round), self.owner(b, a, round), 2)),
                );
            }
        }
        let forwarding = self.forwarding(&cables);
        Fabric { switches: switches.collect(), cables, ties: Ties::Spread, forwarding }
    }

    /// The router of a group whose cable of a round leads to another group: the global ports of a group, router by router, lead to
    /// the other groups in turn.
    fn owner(&self, group: u64, other: u64, round: u64) -> u32 {
        let port = round * (self.groups - 1) + if other < group { other } else { other - 1 };
        self.router(group, port / self.global)
    }

    fn router(&self, group: u64, index: u64) -> u32 {
        (self.hosts() + group * self.routers + index) as u32
    }

    /// How many entries the tables have.
    pub(super) fn entries(&self) -> u64 {
        (self.routers * self.groups).saturating_mul(self.hosts())
    }

    /// Minimal routes: to the router with a cable to the group, over it, and on to the router of the host. The shortest ways would pass
    /// other groups. Of several cables between two groups the number of the host decides.
    fn forwarding(&self, cables: &[(u32, u32, usize)]) -> Vec<Forward> {
        let mut link = HashMap::with_capacity(2 * cables.len());
        for (index, &(a, b, _)) in (0..).zip(cables) {
            link.entry((a, b)).or_insert(2 * index);
            link.entry((b, a)).or_insert(2 * index + 1);
        }
        let mut entries = Vec::new();
        let rounds = self.between_groups().max(1);
        for router in 0..self.routers * self.groups {
            let (group, node) = (router / self.routers, (self.hosts() + router) as u32);
            for host in 0..self.hosts() {
                let (home, there) = (host / self.hosts, host / self.hosts / self.routers);
                let round = host % rounds;
                let next = if home == router {
                    host as u32
                } else if there == group {
                    (self.hosts() + home) as u32
                } else {
                    match self.owner(group, there, round) {
                        own if own == node => self.owner(there, group, round),
                        other => other,
                    }
                };
                let last = link.get(&((self.hosts() + home) as u32, host as u32));
                if let (Some(&last), Some(&link)) = (last, link.get(&(node, next))) {
                    entries.push(Forward { node, last, link });
                }
            }
        }
        entries
    }
}
