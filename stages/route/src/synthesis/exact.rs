//! All ways to join components or boards, as far as they can be better than what is known.
//!
//! Of components the cables of hosts are settled first, one of all ways that differ only in the order of switches. Then pairs of switches
//! are settled, one after the other; of boards pairs of connectors, all those between the first boards before those of the next one. Of
//! machines that differ only in the order of alike boards the one is looked at whose numbers of cables come last in the order of words; then
//! the same is true of its first boards, and others are left early. At every step the machine is looked at in which all pairs that are not
//! settled have as many cables as ports allow: more cables never make anything worse, so what does not do there does not do at all.

use std::collections::{BTreeMap, BTreeSet};

use hopmap_model::Error;

use super::design::{Assembly, Design, extended, least, orders};
use super::judge::Judge;

/// Most switches whose orders are compared.
const MOST_SWITCHES: usize = 6;
/// Most ways to join a host to switches.
const MOST_PATTERNS: usize = 5_000;
/// Most orders of alike boards that are compared.
const MOST_ORDERS: usize = 5040;

/// All ways to join some components or boards.
pub(super) struct Exact<'a, 'j> {
    assembly: &'a Assembly,
    judge: &'a mut Judge<'j>,
    is_fixed: bool,
    /// Components that are hosts, which come first.
    hosts: usize,
    /// The units of every board; every switch on its own.
    groups: Vec<Vec<usize>>,
    /// Pairs of units that cables can join, apart from hosts that are components.
    pairs: Vec<(usize, usize)>,
    /// Orders of the first groups that keep types in place, by their number; of switches only those of all.
    orders: Vec<Vec<Vec<usize>>>,
    /// Cables between two units that can be of use: one for every stream.
    most: u32,
    /// What it costs at least without cables.
    least: f64,
    /// What is known of machines with all loose cables.
    known: BTreeMap<Vec<u32>, bool>,
    /// Machines that were offered.
    offered: BTreeSet<Vec<u32>>,
}

impl<'a, 'j> Exact<'a, 'j> {
    /// Nothing where what is alike has too many orders.
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

    /// Goes through all ways; false if there are too many.
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

    /// Joins the hosts from one on; those of a class in ascending order of patterns.
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
            // Of all orders of switches only the first one is looked at.
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
            let whole = !design.fits_ports()
                || self.join_hosts(design, next, if alike { number } else { 0 }, patterns)?;
            switches.zip(pattern).for_each(|(switch, _)| design.join(host, switch, 0));
            if !whole {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Settles the cables of the pairs from one on.
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
            // Where cables are free the most of them first.
            design.join(a, b, if are_free { most - step } else { step });
            let whole = self.settle(design, at + 1)?;
            design.join(a, b, 0);
            if !whole {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether free cables could be added between boards, so that another machine is no worse. Where processes have to stay when something
    /// fails, more cables may lead to another mapping, which may survive less.
    fn is_part(&self, design: &Design<'_>) -> bool {
        let is_loose = |&(a, b): &(usize, usize)| {
            design.free(a) > 0 && design.free(b) > 0 && design.between(a, b) < self.most
        };
        let is_no_worse = self.judge.survives.is_empty() || self.judge.remap;
        self.is_fixed && is_no_worse && self.pairs.iter().any(is_loose)
    }

    /// Whether no order of the boards that are settled has a later word; true while pairs of a board are left.
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

    /// The same for designs that differ only in the order of what is alike.
    fn canonical(&self, design: &Design<'_>) -> Vec<u32> {
        let keys = self.orders.last().into_iter().flatten().map(|order| self.key(design, order));
        let key = if self.is_fixed { keys.max() } else { keys.min() };
        key.unwrap_or_default()
    }

    /// How many cables join the units of groups in an order, pairs of boards in the order in which they are settled; before them hosts of a
    /// class sorted by what they are joined to.
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

    /// Whether a machine with all loose cables may do; machines that differ only in the order of switches are looked at once.
    fn may_do(&mut self, full: &Design<'_>, design: &Design<'_>, at: usize) -> Result<bool, Error> {
        let own = self.own_order();
        let mut key = if self.is_fixed { self.key(full, &own) } else { self.canonical(full) };
        // Which cables are loose matters only to their failures.
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

/// Every unit of one group with every unit of another.
fn both<'a>(first: &'a [usize], second: &'a [usize]) -> impl Iterator<Item = (usize, usize)> + 'a {
    first.iter().flat_map(|&a| second.iter().map(move |&b| (a, b)))
}

/// How many cables a host may have to each switch, at most so many in all; nothing if there are too many ways.
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
