//! Costs that follow from routes, written down: as a tree where they are one, else for every pair.

mod classes;

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};

use super::{Costs, CostsError};
use crate::{CostModel, Levels, Matrix, RouteCosts, SystemGraph};
use classes::Classes;

/// Most classes of hosts between which all ways are looked at.
const MOST_CLASSES: usize = 4096;
/// Most different costs between hosts that are levels of a tree.
const MOST_LEVELS: usize = 32;

/// A host: its node, its first slot and the number of its slots.
type Host = (u32, u32, u32);

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
        let count = self.slots.len();
        if !matches!(self.cost, CostModel::Routes(_)) {
            return Ok(Matrix { costs: costs.block(&(0..count as u32).collect::<Vec<_>>()) });
        }
        let hosts: Vec<Host> = self.hosts().collect();
        let between_hosts = self.costs_of_hosts()?;
        let mut matrix = vec![0.0; count * count];
        for (row, &from) in hosts.iter().enumerate() {
            for (column, &to) in hosts.iter().enumerate() {
                let between = between_hosts[row * hosts.len() + column];
                for a in from.1..from.1 + from.2 {
                    for b in to.1..to.1 + to.2 {
                        let cost = if from == to { costs.between(a, b) } else { between };
                        matrix[a as usize * count + b as usize] = cost;
                    }
                }
            }
        }
        Ok(Matrix { costs: matrix })
    }

    /// The costs between the first slots of all ordered pairs of hosts that have slots, row by row.
    pub fn costs_of_hosts(&self) -> Result<Vec<f64>, CostsError> {
        let costs = self.costs();
        let hosts: Vec<Host> = self.hosts().collect();
        let count = hosts.len();
        let mut between = vec![0.0; count * count];
        // By destination: what is known of the ways there serves all sources.
        for (column, &to) in hosts.iter().enumerate() {
            for (row, &from) in hosts.iter().enumerate() {
                between[row * count + column] = self.way(&costs, from, to)?;
            }
        }
        Ok(between)
    }

    /// The cost between the first slots of two hosts.
    fn way(&self, costs: &Costs<'_>, from: Host, to: Host) -> Result<f64, CostsError> {
        let cost = costs.between(from.1, to.1);
        if cost.is_infinite() {
            let name = |host: Host| self.nodes[host.0 as usize].name.clone();
            return Err(CostsError::NoRoute { from: name(from), to: name(to) });
        }
        Ok(cost)
    }

    /// The costs as levels; `None` if they are not those of a tree, or if there are too many hosts to tell.
    fn levels(&self, routes: &RouteCosts) -> Result<Option<Levels>, CostsError> {
        let hosts: Vec<Host> = self.hosts().collect();
        if hosts.len() < 2 {
            return Ok(Some(routes.inside.clone()));
        }
        let classes = Classes::new(self, &hosts, routes.metric);
        if classes.members.len() > MOST_CLASSES {
            return Ok(None);
        }
        let Some(between) = self.between(&hosts, &classes)? else { return Ok(None) };
        let is_outside = routes.inside.costs.last().zip(between.steps.first());
        if is_outside.is_some_and(|(inside, step)| inside > step) {
            return Ok(None);
        }
        let Some(groups) = between.groups() else { return Ok(None) };
        let mut levels = routes.inside.clone();
        for (step, groups) in between.steps.iter().zip(groups) {
            // Below the cost between two hosts of a class each is on its own.
            let is_apart =
                |class: usize| classes.members[class].len() > 1 && between.of(class, class) > *step;
            let mut numbers: HashMap<(usize, Option<usize>), u32> = HashMap::new();
            let group = |(host, slots): (usize, u32)| {
                let class = classes.of[host];
                let next = numbers.len() as u32;
                let group = *numbers.entry((groups[class], is_apart(class).then_some(host))).or_insert(next);
                std::iter::repeat_n(group, slots as usize)
            };
            let slots = hosts.iter().map(|host| host.2).enumerate();
            levels.groups.push(slots.flat_map(group).collect());
            levels.costs.push(*step);
        }
        Ok(Some(levels))
    }

    /// The costs between classes; `None` if there are too many different ones.
    fn between(&self, hosts: &[Host], classes: &Classes) -> Result<Option<Between>, CostsError> {
        let costs = self.costs();
        let members = &classes.members;
        let count = members.len();
        let mut steps = BTreeSet::new();
        let mut between = vec![0.0; count * count];
        for a in 0..count {
            for b in 0..count {
                // Two hosts of a class are as far apart as any two of it.
                let pair = match members[a].as_slice() {
                    [_] if a == b => continue,
                    [first, second, ..] if a == b => [*first, *second],
                    _ => [members[a][0], members[b][0]],
                };
                let [from, to] = pair.map(|host| hosts[host]);
                let cost = self.way(&costs, from, to)?;
                between[a * count + b] = cost;
                steps.insert(cost.to_bits());
                if steps.len() > MOST_LEVELS {
                    return Ok(None);
                }
            }
        }
        // The bits of numbers that are not negative are in the order of the numbers.
        Ok(Some(Between { costs: between, count, steps: steps.into_iter().map(f64::from_bits).collect() }))
    }
}

/// The costs between classes of hosts.
struct Between {
    costs: Vec<f64>,
    count: usize,
    /// All different ones, rising.
    steps: Vec<f64>,
}

impl Between {
    fn of(&self, a: usize, b: usize) -> f64 {
        self.costs[a * self.count + b]
    }

    /// For every step the group of every class, if classes that cost at most so much are together and no others are.
    fn groups(&self) -> Option<Vec<Vec<usize>>> {
        self.steps.iter().map(|&step| self.groups_of(step)).collect()
    }

    fn groups_of(&self, step: f64) -> Option<Vec<usize>> {
        let mut heads: Vec<usize> = Vec::new();
        let mut groups = Vec::with_capacity(self.count);
        for class in 0..self.count {
            let near = heads.iter().position(|&head| self.of(class, head) <= step);
            groups.push(near.unwrap_or_else(|| {
                heads.push(class);
                heads.len() - 1
            }));
        }
        let fits = |a: usize, b: usize| a == b || (groups[a] == groups[b]) == (self.of(a, b) <= step);
        (0..self.count).all(|a| (0..self.count).all(|b| fits(a, b))).then_some(groups)
    }
}
