//! All ways to join units, as far as they can be better than what is known.
//!
//! Cables of hosts are settled first, one of all ways that differ only in the order of switches. Then the cables between switches
//! are, pair by pair. At every step the machine is looked at in which all pairs that are not settled have as many cables as ports
//! allow: more cables never make anything worse, so what does not do there does not do at all.

use std::collections::{BTreeMap, BTreeSet};

use hopmap_model::{Error, NodeKind};

use super::boards;
use super::candidate::{Candidate, above, units};
use super::design::{Design, orders};
use super::judge::Judge;
use super::stock::{Stock, Unit};

/// Most switches whose orders are compared.
pub(super) const MOST_SWITCHES: usize = 6;
/// Most ways to join a host to switches.
const MOST_PATTERNS: usize = 5_000;

/// All ways to join some units.
pub(super) struct Exact<'a, 'j> {
    pub(super) stock: &'a Stock,
    pub(super) units: &'a [Unit],
    pub(super) judge: &'a mut Judge<'j>,
    orders: Vec<Vec<usize>>,
    /// Cables between two switches that can be of use: one for every stream.
    most: u32,
    /// What is known of machines with all loose cables.
    known: BTreeMap<(Vec<u32>, usize), bool>,
    /// Machines that were offered.
    offered: BTreeSet<Vec<u32>>,
}

impl<'a, 'j> Exact<'a, 'j> {
    pub(super) fn new(stock: &'a Stock, units: &'a [Unit], judge: &'a mut Judge<'j>) -> Self {
        let most = judge.graph.demands.streams.len().max(1) as u32;
        let most = if judge.survives.is_empty() { most } else { most + 1 };
        Self {
            stock,
            units,
            orders: orders(units),
            judge,
            most,
            known: BTreeMap::new(),
            offered: BTreeSet::new(),
        }
    }

    fn switches(&self) -> Vec<usize> {
        (0..self.units.len()).filter(|&unit| self.units[unit].node.kind == NodeKind::Switch).collect()
    }

    /// Goes through all ways; false if there are too many.
    pub(super) fn search(&mut self, best: &mut Option<Candidate>) -> Result<bool, Error> {
        let switches = self.switches();
        let ports = self.units.iter().filter(|unit| unit.node.kind == NodeKind::Host).map(|unit| unit.ports);
        let ports = ports.max().unwrap_or_default().min(self.most);
        let Some(patterns) = patterns(switches.len(), ports) else { return Ok(false) };
        self.hosts(&mut Design::new(self.units), 0, 0, &patterns, best)
    }

    /// Joins the hosts from one on; those of a class in ascending order of patterns.
    fn hosts(
        &mut self,
        design: &mut Design<'a>,
        host: usize,
        from: usize,
        patterns: &[Vec<u32>],
        best: &mut Option<Candidate>,
    ) -> Result<bool, Error> {
        if self.judge.is_over() {
            return Ok(false);
        }
        let switches = self.switches();
        if host == design.hosts() {
            return match self.is_first(design) {
                true => self.pairs(design, &pairs(&switches), 0, best),
                false => Ok(true),
            };
        }
        for (number, pattern) in patterns.iter().enumerate().skip(from) {
            if pattern.iter().sum::<u32>() > self.units[host].ports {
                continue;
            }
            switches.iter().zip(pattern).for_each(|(&switch, &cables)| design.join(host, switch, cables));
            let next = host + 1;
            let alike = self.units.get(next).is_some_and(|unit| unit.class == self.units[host].class);
            let whole = !design.fits_ports()
                || self.hosts(design, next, if alike { number } else { 0 }, patterns, best)?;
            switches.iter().for_each(|&switch| design.join(host, switch, 0));
            if !whole {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether of all orders of switches this one comes first, so that only one of them is looked at.
    fn is_first(&self, design: &Design<'_>) -> bool {
        let own: Vec<usize> = self.switches();
        design.canonical(&self.orders) == design.canonical(&[own])
    }

    /// Settles the cables of the pairs of switches from one on.
    fn pairs(
        &mut self,
        design: &mut Design<'a>,
        pairs: &[(usize, usize)],
        at: usize,
        best: &mut Option<Candidate>,
    ) -> Result<bool, Error> {
        let least = units(self.units) + boards::least(&self.stock.boards, self.units.len());
        let cost = least + self.stock.cable_cost * f64::from(design.count());
        let is_many = self.stock.cables.is_some_and(|most| design.count() > most);
        if is_many || best.as_ref().is_some_and(|best| above(cost, best.cost)) {
            return Ok(true);
        }
        if self.judge.is_over() {
            return Ok(false);
        }
        let mut full = design.clone();
        for &(a, b) in &pairs[at..] {
            full.join(a, b, design.free(a).min(design.free(b)).min(self.most));
        }
        let free =
            self.stock.cable_cost <= 0.0 && self.stock.boards.is_empty() && self.stock.cables.is_none();
        if at == pairs.len() || (free && full.fits_ports()) {
            if self.offered.insert(full.canonical(&self.orders)) {
                Candidate::offer(best, &full, self.stock, self.judge)?;
            }
            return Ok(true);
        }
        if !self.may_do(&full, &pairs[at..], design)? {
            return Ok(true);
        }
        let (a, b) = pairs[at];
        let most = full.between(a, b);
        for step in 0..=most {
            // Where cables are free the most of them first.
            design.join(a, b, if free { most - step } else { step });
            let whole = self.pairs(design, pairs, at + 1, best)?;
            design.join(a, b, 0);
            if !whole {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether a machine with all loose cables may do; machines that differ only in the order of switches are looked at once.
    fn may_do(
        &mut self,
        full: &Design<'_>,
        loose: &[(usize, usize)],
        design: &Design<'_>,
    ) -> Result<bool, Error> {
        let mut key = full.canonical(&self.orders);
        let own: Vec<usize> = self.switches();
        // Which cables are loose matters only to their failures.
        if !self.judge.survives.is_empty() {
            key.extend(design.canonical(&[own]));
        }
        let key = (key, if self.judge.survives.is_empty() { 0 } else { loose.len() });
        if let Some(&known) = self.known.get(&key) {
            return Ok(known);
        }
        let system = full.system(&self.judge.graph.demands);
        let loose: BTreeSet<(usize, usize)> = loose.iter().copied().collect();
        let may_do = self.judge.may_do(&system, &loose)?;
        self.known.insert(key, may_do);
        Ok(may_do)
    }
}

/// All pairs of switches.
fn pairs(switches: &[usize]) -> Vec<(usize, usize)> {
    let after =
        |(place, &a): (usize, &usize)| switches[place + 1..].iter().map(move |&b| (a, b)).collect::<Vec<_>>();
    switches.iter().enumerate().flat_map(after).collect()
}

/// How many cables a host may have to each switch, at most so many in all; nothing if there are too many ways.
fn patterns(switches: usize, ports: u32) -> Option<Vec<Vec<u32>>> {
    let mut patterns = vec![Vec::new()];
    for _ in 0..switches {
        let mut longer: Vec<Vec<u32>> = Vec::new();
        for pattern in &patterns {
            let left = ports - pattern.iter().sum::<u32>().min(ports);
            longer.extend((0..=left).map(|cables| pattern.iter().copied().chain([cables]).collect()));
        }
        if longer.len() > MOST_PATTERNS {
            return None;
        }
        patterns = longer;
    }
    Some(patterns)
}
