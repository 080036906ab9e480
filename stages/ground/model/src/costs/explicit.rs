//! Costs that follow from routes, written down: as a tree where they are one, else for every pair.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use super::{Costs, CostsError};
use crate::{CostModel, Levels, LinkState, Matrix, NodeState, RouteCosts, RouteMetric, SystemGraph};

/// Most hosts between which all ways are looked at.
const MOST_PAIRED: usize = 4096;
/// Most different costs between hosts that are levels of a tree.
const MOST_LEVELS: usize = 32;

impl SystemGraph {
    /// The machine with costs as levels or as a matrix: as levels where they are those of a tree, else as a matrix of at most
    /// `most` slots. A machine with such costs is given as it is.
    pub fn explicit(&self, most: usize) -> Result<Cow<'_, Self>, CostsError> {
        let CostModel::Routes(routes) = &self.cost else { return Ok(Cow::Borrowed(self)) };
        let cost = match self.levels(routes)? {
            Some(levels) => CostModel::Levels(levels),
            None if self.slots.len() <= most => CostModel::Matrix(self.matrix()?),
            None => return Err(CostsError::TooMany { slots: self.slots.len(), most }),
        };
        let (nodes, links, slots) = (self.nodes.clone(), self.links.clone(), self.slots.clone());
        Ok(Cow::Owned(Self { nodes, links, slots, cost, routing: self.routing.clone() }))
    }

    /// The costs of all ordered pairs of slots.
    pub fn matrix(&self) -> Result<Matrix, CostsError> {
        let costs = self.costs();
        let (slots, hosts): (Vec<u32>, Vec<_>) =
            ((0..self.slots.len() as u32).collect(), self.hosts().collect());
        if !matches!(self.cost, CostModel::Routes(_)) {
            return Ok(Matrix { costs: costs.block(&slots) });
        }
        let count = slots.len();
        let mut matrix = vec![0.0; count * count];
        for &(to, first_to, slots_to) in &hosts {
            for &(from, first_from, slots_from) in &hosts {
                let between = costs.between(first_from, first_to);
                if between.is_infinite() {
                    return Err(self.no_route(from, to));
                }
                for a in first_from..first_from + slots_from {
                    for b in first_to..first_to + slots_to {
                        let cost = if from == to { costs.between(a, b) } else { between };
                        matrix[a as usize * count + b as usize] = cost;
                    }
                }
            }
        }
        Ok(Matrix { costs: matrix })
    }

    fn no_route(&self, from: u32, to: u32) -> CostsError {
        let name = |node: u32| self.nodes[node as usize].name.clone();
        CostsError::NoRoute { from: name(from), to: name(to) }
    }

    /// The costs as levels; `None` if they are not those of a tree, or if there are too many hosts to tell.
    fn levels(&self, routes: &RouteCosts) -> Result<Option<Levels>, CostsError> {
        let hosts: Vec<(u32, u32, u32)> = self.hosts().collect();
        if hosts.len() < 2 {
            return Ok(Some(routes.inside.clone()));
        }
        let costs = self.costs();
        let classes = self.classes(&hosts, routes.metric);
        let members = members(&classes);
        if members.len() > MOST_PAIRED {
            return Ok(None);
        }
        let mut known: BTreeMap<u64, ()> = BTreeMap::new();
        let count = members.len();
        let mut between = vec![0.0; count * count];
        for a in 0..count {
            for b in 0..count {
                // Two hosts of a class are as far apart as any two of it.
                let [from, to] = match (a == b, members[a].as_slice()) {
                    (true, [_]) => continue,
                    (true, [first, second, ..]) => [*first, *second],
                    _ => [members[a][0], members[b][0]],
                }
                .map(|host| hosts[host]);
                let cost = costs.between(from.1, to.1);
                if cost.is_infinite() {
                    return Err(self.no_route(from.0, to.0));
                }
                between[a * count + b] = cost;
                known.insert(cost.to_bits(), ());
                if known.len() > MOST_LEVELS {
                    return Ok(None);
                }
            }
        }
        // The bits of numbers that are not negative are in the order of the numbers.
        let steps: Vec<f64> = known.into_keys().map(f64::from_bits).collect();
        if routes.inside.costs.last().zip(steps.first()).is_some_and(|(inside, step)| inside > step) {
            return Ok(None);
        }
        let Some(groups) = tree(&between, count, &steps) else { return Ok(None) };
        let class_of_slot: Vec<(usize, u32)> = hosts
            .iter()
            .zip(&classes)
            .flat_map(|(&(host, _, slots), &class)| (0..slots).map(move |_| (class, host)))
            .collect();
        let mut levels = routes.inside.clone();
        for (step, groups) in steps.iter().zip(groups) {
            // A class of several hosts is not together below the cost between them.
            let is_together =
                |class: usize| members[class].len() == 1 || between[class * count + class] <= *step;
            let mut numbers: HashMap<(usize, Option<u32>), u32> = HashMap::new();
            let group = |&(class, host): &(usize, u32)| {
                let key = (groups[class], (!is_together(class)).then_some(host));
                let next = numbers.len() as u32;
                *numbers.entry(key).or_insert(next)
            };
            levels.groups.push(class_of_slot.iter().map(group).collect());
            levels.costs.push(*step);
        }
        Ok(Some(levels))
    }

    /// A class for every host: between hosts of two classes all ways cost the same. Hosts that one link joins to the same switch are of
    /// one class where only the number of links counts, or where all links between switches are alike; with forwarding
    /// tables every host is a class of its own.
    fn classes(&self, hosts: &[(u32, u32, u32)], metric: RouteMetric) -> Vec<usize> {
        let alone = || (0..hosts.len()).collect();
        let is_host: Vec<bool> = self.nodes.iter().map(|node| node.kind == crate::NodeKind::Host).collect();
        let bits = |number: Option<f64>| number.map(f64::to_bits);
        let mut alike = None;
        let mut ports: HashMap<u32, Vec<(u32, bool, Option<u64>, Option<u64>)>> = HashMap::new();
        let is_down = |node: u32| self.nodes[node as usize].state == NodeState::Down;
        for link in self.links.iter().filter(|link| link.state == LinkState::Up) {
            let width = (bits(link.latency_s), bits(link.bandwidth_bytes_per_s));
            match (is_host[link.source as usize], is_host[link.destination as usize]) {
                (true, true) => return alone(),
                (false, false) if metric != RouteMetric::Hops && *alike.get_or_insert(width) != width => {
                    return alone();
                }
                (false, false) => {}
                (true, false) if !is_down(link.destination) => {
                    ports.entry(link.source).or_default().push((link.destination, true, width.0, width.1));
                }
                (false, true) if !is_down(link.source) => {
                    ports.entry(link.destination).or_default().push((link.source, false, width.0, width.1));
                }
                _ => {}
            }
        }
        if !self.routing.forwarding.is_empty() {
            return alone();
        }
        let mut classes: HashMap<Vec<(u32, bool, Option<u64>, Option<u64>)>, usize> = HashMap::new();
        let mut next = 0;
        let mut class = |node: u32| {
            let mut own = ports.get(&node).cloned().unwrap_or_default();
            own.sort_unstable();
            if own.len() != 2 || is_down(node) {
                next += 1;
                return next - 1;
            }
            *classes.entry(own).or_insert_with(|| {
                next += 1;
                next - 1
            })
        };
        hosts.iter().map(|&(node, ..)| class(node)).collect()
    }
}

/// The hosts of every class.
fn members(classes: &[usize]) -> Vec<Vec<usize>> {
    let mut members = vec![Vec::new(); classes.iter().max().map_or(0, |most| most + 1)];
    classes.iter().enumerate().for_each(|(host, &class)| members[class].push(host));
    members
}

/// For every step of cost the group of every class, if those that cost at most so much are together and no others are.
fn tree(between: &[f64], count: usize, steps: &[f64]) -> Option<Vec<Vec<usize>>> {
    let near =
        |a: usize, b: usize, step: f64| between[a * count + b] <= step && between[b * count + a] <= step;
    let mut levels = Vec::with_capacity(steps.len());
    for &step in steps {
        let mut heads: Vec<usize> = Vec::new();
        let mut groups = Vec::with_capacity(count);
        for class in 0..count {
            let place = heads.iter().position(|&head| near(class, head, step)).unwrap_or_else(|| {
                heads.push(class);
                heads.len() - 1
            });
            groups.push(place);
        }
        let fits = |a: usize, b: usize| {
            let together = groups[a] == groups[b];
            a == b || (together == (between[a * count + b] <= step) && together == near(a, b, step))
        };
        if !(0..count).all(|a| (0..count).all(|b| fits(a, b))) {
            return None;
        }
        levels.push(groups);
    }
    Some(levels)
}

impl Costs<'_> {
    /// The machine whose costs these are.
    #[must_use]
    pub fn system(&self) -> &SystemGraph {
        self.system
    }
}
