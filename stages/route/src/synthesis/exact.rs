//! Enumerates all cablings of components or boards that can improve on the best known machine.
//!
//! For components, the cables of hosts come first, up to permutations of switches. Then the cables of each pair of switches are
//! decided in turn. For boards these are pairs of connectors, and those between the first boards come before those of the next
//! one. Of machines that differ only in the order of alike boards, only the one with the lexicographically largest cable counts
//! is examined; the same holds for its first boards, so others are pruned early. At every step a relaxed machine is tested in
//! which all undecided pairs have as many cables as ports allow. More cables never hurt, so if that machine is insufficient, the
//! branch is pruned.

use std::collections::{BTreeMap, BTreeSet};

use hopmap_model::Error;

use super::design::{Assembly, Design, extended, least, orders};
use super::judge::Judge;

/// Maximum number of switches for which permutations are compared.
const MOST_SWITCHES: usize = 6;
/// Maximum number of ways to connect a host to switches.
const MOST_PATTERNS: usize = 5_000;
/// Maximum number of permutations of alike boards that are compared.
const MOST_ORDERS: usize = 5040;

/// The enumeration of cablings of given components or boards.
pub(super) struct Exact<'a, 'j> {
    assembly: &'a Assembly,
    judge: &'a mut Judge<'j>,
    is_fixed: bool,
    /// Components that are hosts, which come first.
    hosts: usize,
    /// The units of every board; every switch on its own.
    groups: Vec<Vec<usize>>,
    /// Pairs of units that cables can connect, except hosts that are components.
    pairs: Vec<(usize, usize)>,
    /// Permutations of the first groups that preserve types, by number of groups; for switches only of all groups.
    orders: Vec<Vec<Vec<usize>>>,
    /// Maximum useful number of cables between two units: one for every stream.
    most: u32,
    /// Lower bound of the cost without cables.
    least: f64,
    /// Results for machines with all loose cables.
    known: BTreeMap<Vec<u32>, bool>,
    /// Number of complete machines.
    offered: BTreeSet<Vec<u32>>,
}

impl<'a, 'j> Exact<'a, 'j> {
    /// None if alike components have too many permutations.
    pub(super) fn new(assembly: &'a Assembly, judge: &'a mut Judge<'j>) -> Option<Self> {
        let (count, is_fixed) = (assembly.units.len(), judge.inventory.is_fixed());
        let (mut hosts, mut pairs) = (0, Vec::new());
        let (groups, orders): (Vec<Vec<usize>>, Vec<_>) = if is_fixed {
            let mut groups = vec![Vec::new(); assembly.kinds.len()];
            (0..count).for_each(|unit| groups[assembly.board_of[unit]].push(unit));
            for (later, board) in groups.iter().enumerate() {
                for earlier in &groups[..later] {
                    let both = both(earlier, board);
                    pairs.extend(both.filter(|&(a, b)| assembly.may_join(a, b)));
                }
            }
            let orders = (0..=groups.len()).map(|boards| orders(&assembly.kinds[..boards], MOST_ORDERS));
            (groups, orders.collect::<Option<_>>()?)
        } else {
            hosts = (0..count).filter(|&unit| assembly.is_host(unit)).count();
            if count - hosts > MOST_SWITCHES {
                return None;
            }
            pairs.extend((hosts..count).flat_map(|a| (a + 1..count).map(move |b| (a, b))));
            let classes: Vec<usize> = assembly.units[hosts..].iter().map(|unit| unit.class).collect();
            ((hosts..count).map(|switch| vec![switch]).collect(), vec![orders(&classes, usize::MAX)?])
        };
        let streams = judge.graph.demands.streams.len().max(1) as u32;
        Some(Self {
            most: if judge.survives.is_empty() { streams } else { streams + 1 },
            least: assembly.cost + least(&judge.inventory.boards, count),
            is_fixed,
            assembly,
            judge,
            hosts,
            groups,
            pairs,
            orders,
            known: BTreeMap::new(),
            offered: BTreeSet::new(),
        })
    }

    /// Enumerates all cablings; false if there are too many.
    pub(super) fn search(&mut self) -> Result<bool, Error> {
        let assembly = self.assembly;
        let mut design = Design::new(&assembly.units);
        if self.is_fixed {
            return self.settle(&mut design, 0);
        }
        let ports = assembly.units[..self.hosts].iter().map(|unit| unit.ports);
        let ports = ports.max().unwrap_or_default().min(self.most);
        let Some(patterns) = patterns(self.groups.len(), ports) else { return Ok(false) };
        self.join_hosts(&mut design, 0, 0, &patterns)
    }

    /// Connects the hosts from a given one on; those of a class in ascending order of patterns.
    fn join_hosts(
        &mut self,
        design: &mut Design<'a>,
        host: usize,
        from: usize,
        patterns: &[Vec<u32>],
    ) -> Result<bool, Error> {
        if self.judge.is_over() {
            return Ok(false);
        }
        if host == self.hosts {
            // Only the first of all permutations of switches is examined.
            let is_first = self.canonical(design) == self.key(design, &self.own_order());
            return if is_first { self.settle(design, 0) } else { Ok(true) };
        }
        let units = &self.assembly.units;
        for (number, pattern) in patterns.iter().enumerate().skip(from) {
            if pattern.iter().sum::<u32>() > units[host].ports {
                continue;
            }
            let switches = self.hosts..;
            switches.clone().zip(pattern).for_each(|(switch, &cables)| design.join(host, switch, cables));
            let next = host + 1;
            let alike = units.get(next).is_some_and(|unit| unit.class == units[host].class);
            let is_complete = !design.fits_ports()
                || self.join_hosts(design, next, if alike { number } else { 0 }, patterns)?;
            switches.zip(pattern).for_each(|(switch, _)| design.join(host, switch, 0));
            if !is_complete {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Decides the cables of the pairs from a given one on.
    fn settle(&mut self, design: &mut Design<'a>, at: usize) -> Result<bool, Error> {
        let cost = self.least + self.judge.inventory.cable_cost * f64::from(design.count());
        let is_many = self.judge.inventory.cables.is_some_and(|most| design.count() > most);
        if is_many || self.judge.is_dear(cost) || !self.is_last_word(design, at) {
            return Ok(true);
        }
        if self.judge.is_over() {
            return Ok(false);
        }
        let mut full = design.clone();
        for &(a, b) in &self.pairs[at..] {
            full.join(a, b, design.free(a).min(design.free(b)).min(self.most));
        }
        let are_free = self.judge.inventory.cable_cost <= 0.0
            && self.judge.inventory.boards.is_empty()
            && self.judge.inventory.cables.is_none();
        if at == self.pairs.len() || (are_free && full.fits_ports()) {
            if !(are_free && self.is_part(&full)) && self.offered.insert(self.canonical(&full)) {
                self.judge.offer(self.assembly, &full)?;
            }
            return Ok(true);
        }
        if !self.may_do(&full, design, at)? {
            return Ok(true);
        }
        let (a, b) = self.pairs[at];
        let most = full.between(a, b);
        for step in 0..=most {
            // If cables are free, the largest number comes first.
            design.join(a, b, if are_free { most - step } else { step });
            let is_complete = self.settle(design, at + 1)?;
            design.join(a, b, 0);
            if !is_complete {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether free cables between boards could be added without making the machine worse. If processes have to stay after a
    /// failure, more cables may lead to another mapping that survives fewer failures.
    fn is_part(&self, design: &Design<'_>) -> bool {
        let is_loose = |&(a, b): &(usize, usize)| {
            design.free(a) > 0 && design.free(b) > 0 && design.between(a, b) < self.most
        };
        let is_no_worse = self.judge.survives.is_empty() || self.judge.remap;
        self.is_fixed && is_no_worse && self.pairs.iter().any(is_loose)
    }

    /// Whether no permutation of the decided boards is lexicographically larger; true while pairs of a board are undecided.
    fn is_last_word(&self, design: &Design<'_>, at: usize) -> bool {
        let board = |pair: &(usize, usize)| self.assembly.board_of[pair.1];
        let last = at.checked_sub(1).and_then(|last| self.pairs.get(last)).map(board);
        let Some(last) = last.filter(|_| self.is_fixed) else { return true };
        if self.pairs.get(at).is_some_and(|next| board(next) == last) {
            return true;
        }
        let own: Vec<usize> = (0..=last).collect();
        let word = self.key(design, &own);
        self.orders[last + 1].iter().all(|order| self.key(design, order) <= word)
    }

    fn own_order(&self) -> Vec<usize> {
        (0..self.groups.len()).collect()
    }

    /// A canonical form: equal for designs that differ only in the order of alike components.
    fn canonical(&self, design: &Design<'_>) -> Vec<u32> {
        let keys = self.orders.last().into_iter().flatten().map(|order| self.key(design, order));
        let key = if self.is_fixed { keys.max() } else { keys.min() };
        key.unwrap_or_default()
    }

    /// Cable counts between the units of permuted groups, for boards in the order in which pairs are decided; before them the
    /// sorted patterns of the hosts of each class.
    fn key(&self, design: &Design<'_>, order: &[usize]) -> Vec<u32> {
        let units = &self.assembly.units;
        let row = |host: usize| -> Vec<u32> {
            let switches = order.iter().flat_map(|&group| &self.groups[group]);
            let cables = switches.map(|&switch| design.between(host, switch));
            std::iter::once(units[host].class as u32).chain(cables).collect()
        };
        let mut rows: Vec<Vec<u32>> = (0..self.hosts).map(row).collect();
        rows.sort_unstable();
        let mut key = rows.concat();
        for (place, &later) in order.iter().enumerate() {
            if !self.is_fixed {
                key.push(units[self.groups[later][0]].class as u32);
            }
            for &earlier in &order[..place] {
                let both = both(&self.groups[earlier], &self.groups[later]);
                key.extend(both.map(|(a, b)| design.between(a, b)));
            }
        }
        key
    }

    /// Whether a machine with all loose cables may be sufficient; cached up to permutations of switches.
    fn may_do(&mut self, full: &Design<'_>, design: &Design<'_>, at: usize) -> Result<bool, Error> {
        let own = self.own_order();
        let mut key = if self.is_fixed { self.key(full, &own) } else { self.canonical(full) };
        // Loose cables matter only for failures.
        if !self.judge.survives.is_empty() {
            if !self.is_fixed {
                key.extend(self.key(design, &own));
            }
            key.push(at as u32);
        }
        if let Some(&known) = self.known.get(&key) {
            return Ok(known);
        }
        let system = self.assembly.system(full, &self.judge.graph.demands);
        let loose = self.pairs[at..].iter().map(|&pair| self.assembly.nodes(pair)).collect();
        let may_do = self.judge.may_do(&system, &loose)?;
        self.known.insert(key, may_do);
        Ok(may_do)
    }
}

/// All pairs of a unit of one group and a unit of another.
fn both<'a>(first: &'a [usize], second: &'a [usize]) -> impl Iterator<Item = (usize, usize)> + 'a {
    first.iter().flat_map(|&a| second.iter().map(move |&b| (a, b)))
}

/// Possible cable counts of a host to each switch, with a maximum total; none if there are too many.
fn patterns(switches: usize, ports: u32) -> Option<Vec<Vec<u32>>> {
    let mut patterns = vec![Vec::new()];
    for _ in 0..switches {
        patterns =
            extended(&patterns, |pattern| (0..=ports - pattern.iter().sum::<u32>().min(ports)).collect());
        if patterns.len() > MOST_PATTERNS {
            return None;
        }
    }
    Some(patterns)
}
