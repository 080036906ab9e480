//! All ways to join boards, as far as they can be better than what is known.
//!
//! Pairs of connectors are settled one after the other, all those between the first boards before those of the next one. Of
//! machines that differ only in the order of alike boards the one is looked at whose numbers of cables come last in the order of
//! words; then the same is true of its first boards, and others are left early. At every step the machine is looked at in which
//! all pairs that are not settled have as many cables as connectors allow: what does not do there does not do at all.

use std::collections::{BTreeMap, BTreeSet};

use hopmap_model::Error;

use super::assembly::{Assembly, Found, offer};
use crate::synthesis::design::Design;
use crate::synthesis::inventory::Inventory;
use crate::synthesis::judge::{Judge, above};

/// Most orders of alike boards that are compared.
const MOST_ORDERS: usize = 5040;

/// All ways to join some boards.
pub(super) struct Exact<'a, 'j> {
    inventory: &'a Inventory,
    counts: &'a [usize],
    assembly: &'a Assembly,
    judge: &'a mut Judge<'j>,
    /// Pairs of units that cables can join.
    pairs: Vec<(usize, usize)>,
    /// The units of every board.
    units: Vec<Vec<usize>>,
    /// Orders of the first boards that keep types in place, by their number.
    orders: Vec<Vec<Vec<usize>>>,
    /// Cables between two units that can be of use: one for every stream.
    most: u32,
    /// What is known of machines with all loose cables.
    known: BTreeMap<Vec<u32>, bool>,
    /// Machines that were offered.
    offered: BTreeSet<Vec<u32>>,
}

impl<'a, 'j> Exact<'a, 'j> {
    /// Nothing where alike boards have too many orders.
    pub(super) fn new(
        inventory: &'a Inventory,
        counts: &'a [usize],
        assembly: &'a Assembly,
        judge: &'a mut Judge<'j>,
    ) -> Option<Self> {
        let mut units = vec![Vec::new(); assembly.kinds.len()];
        (0..assembly.units.len()).for_each(|unit| units[assembly.board_of[unit]].push(unit));
        let mut pairs = Vec::new();
        for (later, earlier) in
            (0..units.len()).flat_map(|later| (0..later).map(move |earlier| (later, earlier)))
        {
            let both = units[earlier].iter().flat_map(|&a| units[later].iter().map(move |&b| (a, b)));
            pairs.extend(both.filter(|&(a, b)| assembly.may_join(a, b)));
        }
        let streams = judge.graph.demands.streams.len().max(1) as u32;
        Some(Self {
            orders: orders(&assembly.kinds)?,
            most: if judge.survives.is_empty() { streams } else { streams + 1 },
            inventory,
            counts,
            assembly,
            judge,
            pairs,
            units,
            known: BTreeMap::new(),
            offered: BTreeSet::new(),
        })
    }

    /// Goes through all ways; false if there are too many.
    pub(super) fn search(&mut self, best: &mut Option<Found>) -> Result<bool, Error> {
        let assembly = self.assembly;
        self.settle(&mut Design::new(&assembly.units), 0, best)
    }

    /// Settles the cables of the pairs from one on.
    fn settle(
        &mut self,
        design: &mut Design<'a>,
        at: usize,
        best: &mut Option<Found>,
    ) -> Result<bool, Error> {
        let cost = self.assembly.cost + self.inventory.cable_cost * f64::from(design.count());
        let is_many = self.inventory.cables.is_some_and(|most| design.count() > most);
        let is_dear = best.as_ref().is_some_and(|best| above(cost, best.cost));
        if is_many || is_dear || !self.is_last_word(design, at) {
            return Ok(true);
        }
        if self.judge.is_over() {
            return Ok(false);
        }
        let mut full = design.clone();
        for &(a, b) in &self.pairs[at..] {
            full.join(a, b, design.free(a).min(design.free(b)).min(self.most));
        }
        let are_free = self.inventory.cable_cost <= 0.0 && self.inventory.cables.is_none();
        if at == self.pairs.len() || (are_free && full.fits_ports()) {
            if !(are_free && self.is_part(&full)) && self.offered.insert(self.canonical(&full)) {
                offer(best, self.assembly, self.counts, &full, self.inventory, self.judge)?;
            }
            return Ok(true);
        }
        if !self.may_do(&full, at)? {
            return Ok(true);
        }
        let (a, b) = self.pairs[at];
        let most = full.between(a, b);
        for step in 0..=most {
            // Where cables are free the most of them first.
            design.join(a, b, if are_free { most - step } else { step });
            let whole = self.settle(design, at + 1, best)?;
            design.join(a, b, 0);
            if !whole {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether free cables could be added, so that another machine is no worse. Where processes have to stay when something fails,
    /// more cables may lead to another mapping, which may survive less.
    fn is_part(&self, design: &Design<'_>) -> bool {
        let is_loose = |&(a, b): &(usize, usize)| {
            design.free(a) > 0 && design.free(b) > 0 && design.between(a, b) < self.most
        };
        (self.judge.survives.is_empty() || self.judge.remap) && self.pairs.iter().any(is_loose)
    }

    /// Whether no order of the boards that are settled has a later word; true while pairs of a board are left.
    fn is_last_word(&self, design: &Design<'_>, at: usize) -> bool {
        let board = |pair: &(usize, usize)| self.assembly.board_of[pair.1];
        let Some(last) = at.checked_sub(1).and_then(|last| self.pairs.get(last)).map(board) else {
            return true;
        };
        if self.pairs.get(at).is_some_and(|next| board(next) == last) {
            return true;
        }
        let own: Vec<usize> = (0..=last).collect();
        let word = self.word(design, &own);
        self.orders[last + 1].iter().all(|order| self.word(design, order) <= word)
    }

    fn canonical(&self, design: &Design<'_>) -> Vec<u32> {
        let orders = self.orders.last().into_iter().flatten();
        orders.map(|order| self.word(design, order)).max().unwrap_or_default()
    }

    /// How many cables join the units of boards in an order, pairs in the order in which they are settled.
    fn word(&self, design: &Design<'_>, order: &[usize]) -> Vec<u32> {
        let mut word = Vec::new();
        for (place, &later) in order.iter().enumerate() {
            for &earlier in &order[..place] {
                let both =
                    self.units[earlier].iter().flat_map(|&a| self.units[later].iter().map(move |&b| (a, b)));
                word.extend(both.map(|(a, b)| design.between(a, b)));
            }
        }
        word
    }

    /// Whether a machine with all loose cables may do.
    fn may_do(&mut self, full: &Design<'_>, at: usize) -> Result<bool, Error> {
        let own: Vec<usize> = (0..self.units.len()).collect();
        let mut key = self.word(full, &own);
        // Which cables are loose matters only to their failures.
        if !self.judge.survives.is_empty() {
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

/// For every number of boards all orders of the first so many that keep types in place; nothing if there are too many.
fn orders(kinds: &[usize]) -> Option<Vec<Vec<Vec<usize>>>> {
    let mut all = vec![vec![Vec::new()]];
    for boards in 1..=kinds.len() {
        let mut orders: Vec<Vec<usize>> = vec![Vec::new()];
        for &kind in &kinds[..boards] {
            let mut longer = Vec::new();
            for order in &orders {
                let free = (0..boards).filter(|board| kinds[*board] == kind && !order.contains(board));
                longer.extend(free.map(|board| order.iter().copied().chain([board]).collect::<Vec<_>>()));
            }
            if longer.len() > MOST_ORDERS {
                return None;
            }
            orders = longer;
        }
        all.push(orders);
    }
    Some(all)
}
