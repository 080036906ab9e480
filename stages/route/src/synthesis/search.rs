//! The best machine from an inventory: cheap components first, well-known shapes, then all designs, then steps from the best one.
//!
//! For all designs, cables of hosts are settled first, one of all ways that differ only in the order of switches. Then the cables between
//! switches are, pair by pair. At every step the machine is looked at in which all pairs that are not settled have as many cables as ports
//! allow: more cables never make anything worse, so what does not do there does not do at all.

use std::collections::{BTreeMap, BTreeSet};

use hopmap_model::{Demands, Error, Node, NodeKind, SystemGraph, seed_stream};
use hopmap_random::{Draw, Pcg64, SeedableRng};

use super::design;
use super::design::{Design, families, orders};
use super::inventory::{Component, Inventory};
use super::judge::{Candidate, Judge, above, units};
use crate::{CheckError, Rules};

/// Most choices of units.
const MOST_CHOICES: usize = 200_000;

/// The best machine, and whether there is surely no better one, or none at all.
pub(super) fn search(
    judge: &mut Judge<'_>,
    inventory: &Inventory,
    seed: u64,
) -> Result<(Option<Candidate>, bool), Error> {
    let mut choices = choices(inventory, judge)?;
    let least =
        |units_of: &Vec<Component>| units(units_of) + design::least(&inventory.boards, units_of.len());
    choices.sort_by(|a, b| least(a).total_cmp(&least(b)).then(a.len().cmp(&b.len())));
    let all = judge.left;
    let mut best = None;
    let mut stars = BTreeMap::new();
    let mut possible = Vec::new();
    // A quarter of what may be looked at is for well-known ways.
    judge.left = all / 4;
    for choice in choices {
        if best.as_ref().is_some_and(|best: &Candidate| above(least(&choice), best.cost)) {
            break;
        }
        if !judge.is_over() && !is_possible(judge, &choice, &mut stars)? {
            continue;
        }
        let thick = inventory.cable_cost <= 0.0;
        for design in families(&choice, thick) {
            if judge.is_over() {
                break;
            }
            let is_many = inventory.cables.is_some_and(|most| design.count() > most);
            if !is_many {
                Candidate::offer(&mut best, &design, inventory, judge)?;
            }
        }
        possible.push(choice);
    }
    judge.left = all.saturating_sub(judge.looked) * 3 / 4;
    judge.unsure = false;
    let mut whole = true;
    for choice in &possible {
        if best.as_ref().is_some_and(|best| above(least(choice), best.cost)) {
            break;
        }
        let switches = choice.iter().filter(|unit| unit.node.kind == NodeKind::Switch).count();
        whole &= switches <= MOST_SWITCHES && !judge.is_over();
        if whole {
            whole &= Exact::new(inventory, choice, judge).search(&mut best)?;
        }
    }
    let proven = whole && !judge.unsure;
    judge.left = all.saturating_sub(judge.looked);
    if !proven {
        climb(judge, inventory, seed, &mut best)?;
    }
    Ok((best, proven))
}

/// All choices of units: of those that are alike the first ones.
fn choices(inventory: &Inventory, judge: &Judge<'_>) -> Result<Vec<Vec<Component>>, Error> {
    let classes: Vec<&Vec<Component>> = inventory.nodes.iter().chain(&inventory.switches).collect();
    // A host without a process is of no use, unless another one may fail.
    let processes = judge.graph.ranks();
    let mut choices: Vec<Vec<usize>> = vec![Vec::new()];
    for class in &classes {
        // Hosts that processes name are there.
        let is_named = |unit: &Component| {
            judge.graph.demands.processes.iter().any(|process| process.host.as_ref() == Some(&unit.node.name))
        };
        let least = usize::from(class.len() == 1 && class.iter().any(is_named));
        let count = choices.len() * (class.len() + 1 - least);
        if count > MOST_CHOICES {
            return Err(CheckError::new(
                format!("the kit leaves more than {MOST_CHOICES} choices of units"),
                "fewer of each, or fewer kinds",
            )
            .into());
        }
        let longer = |choice: &Vec<usize>| {
            let choice = choice.clone();
            (least..=class.len()).map(move |count| choice.iter().copied().chain([count]).collect())
        };
        choices = choices.iter().flat_map(longer).collect();
    }
    let nodes = inventory.nodes.len();
    let most = if judge.survives.is_empty() { processes } else { processes * 2 + 1 };
    let is_useful = |choice: &Vec<usize>| {
        let hosts: usize = choice[..nodes].iter().sum();
        hosts <= most && (hosts > 0 || processes == 0)
    };
    let taken = |choice: Vec<usize>| -> Vec<Component> {
        classes.iter().zip(choice).flat_map(|(class, count)| class[..count].iter().cloned()).collect()
    };
    Ok(choices.into_iter().filter(is_useful).map(taken).collect())
}

/// Whether the hosts could do if one switch without limits joined them all.
pub(super) fn is_possible(
    judge: &mut Judge<'_>,
    choice: &[Component],
    stars: &mut BTreeMap<Vec<usize>, bool>,
) -> Result<bool, Error> {
    let hosts: Vec<Component> =
        choice.iter().filter(|unit| unit.node.kind == NodeKind::Host).cloned().collect();
    let there: f64 = hosts.iter().filter_map(|unit| unit.node.traits.performance).sum();
    let needed: f64 = judge.graph.demands.processes.iter().map(|demand| demand.performance).sum();
    if needed > there * (1.0 + crate::problem::TOLERANCE) {
        return Ok(false);
    }
    let key: Vec<usize> = hosts.iter().map(|unit| unit.class).collect();
    if let Some(&known) = stars.get(&key) {
        return Ok(known);
    }
    let rules = judge.rules;
    let survives = std::mem::take(&mut judge.survives);
    judge.rules = Rules { switch_load: None, ..rules };
    let system = star(&hosts, &judge.graph.demands);
    let possible = judge.may_do(&system, &std::collections::BTreeSet::new());
    (judge.rules, judge.survives) = (rules, survives);
    let possible = possible?;
    stars.insert(key, possible);
    Ok(possible)
}

/// The machine in which one switch joins all hosts, each by a cable with the bandwidth of all its ports.
pub(super) fn star(hosts: &[Component], demands: &Demands) -> SystemGraph {
    let mut units: Vec<Component> = hosts.to_vec();
    units.iter_mut().for_each(|unit| unit.bandwidth *= f64::from(unit.ports));
    let node = Node::switch("the network");
    units.push(Component { class: 0, node, ports: u32::MAX, bandwidth: f64::INFINITY, cost: 0.0 });
    let mut design = Design::new(&units);
    // A host on a board may have no link at all.
    let is_joined = |host: &usize| units[*host].bandwidth > 0.0;
    (0..hosts.len()).filter(is_joined).for_each(|host| design.join(host, hosts.len(), 1));
    design.system(demands)
}

/// Climbs from the best machine: a cable goes elsewhere if that is no worse.
fn climb(
    judge: &mut Judge<'_>,
    inventory: &Inventory,
    seed: u64,
    best: &mut Option<Candidate>,
) -> Result<(), Error> {
    let Some(mut here) = best.clone() else { return Ok(()) };
    let mut random = Pcg64::from_seed(seed_stream("route/build", seed, 0));
    let mut below = move |bound: usize| random.index(bound);
    // As many tries that lead nowhere as there are steps left end it.
    for _ in 0..judge.left {
        if judge.is_over() || here.cables.is_empty() {
            break;
        }
        let units = here.units.clone();
        let mut design = Design { units: &units, cables: here.cables.clone() };
        let from = design.cables.keys().copied().nth(below(design.cables.len()));
        if let Some((a, b)) = from {
            design.join(a, b, design.between(a, b) - 1);
        }
        let is_free = |unit: &usize| design.free(*unit) > 0;
        let free: Vec<usize> = (0..units.len()).filter(is_free).collect();
        let [Some(&a), Some(&b)] = [free.get(below(free.len())), free.get(below(free.len()))] else { break };
        let is_host = |unit: usize| units[unit].node.kind == NodeKind::Host;
        if a == b || (is_host(a) && is_host(b)) || from == Some((a.min(b), a.max(b))) {
            continue;
        }
        design.join(a, b, design.between(a, b) + 1);
        let mut found = None;
        Candidate::offer(&mut found, &design, inventory, judge)?;
        if let Some(found) = found.filter(|found| !above(found.cost, here.cost)) {
            if Candidate::is_beaten(best.as_ref(), found.cost, found.objective) {
                *best = Some(found.clone());
            }
            if !above(found.objective, here.objective) {
                here = found;
            }
        }
    }
    Ok(())
}

/// Most switches whose orders are compared.
pub(super) const MOST_SWITCHES: usize = 6;
/// Most ways to join a host to switches.
const MOST_PATTERNS: usize = 5_000;

/// All ways to join some units.
pub(super) struct Exact<'a, 'j> {
    pub(super) inventory: &'a Inventory,
    pub(super) units: &'a [Component],
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
    pub(super) fn new(inventory: &'a Inventory, units: &'a [Component], judge: &'a mut Judge<'j>) -> Self {
        let most = judge.graph.demands.streams.len().max(1) as u32;
        let most = if judge.survives.is_empty() { most } else { most + 1 };
        Self {
            inventory,
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
        let least = units(self.units) + design::least(&self.inventory.boards, self.units.len());
        let cost = least + self.inventory.cable_cost * f64::from(design.count());
        let is_many = self.inventory.cables.is_some_and(|most| design.count() > most);
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
        let free = self.inventory.cable_cost <= 0.0
            && self.inventory.boards.is_empty()
            && self.inventory.cables.is_none();
        if at == pairs.len() || (free && full.fits_ports()) {
            if self.offered.insert(full.canonical(&self.orders)) {
                Candidate::offer(best, &full, self.inventory, self.judge)?;
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
