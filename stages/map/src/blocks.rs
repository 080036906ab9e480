//! Blocks: ranks that share a host and keep their order on its slots.
//!
//! # Method
//!
//! Contraction: every block becomes one rank, every host one slot, and the traffic between two blocks one
//! edge. Any mapper solves the smaller problem, and the ranks of a block take the first slots of its host. If
//! the slots of a host cost the same to any other host, and the insides of all hosts are alike, the costs
//! differ by a constant, so the optimum of one problem is that of the other. Machines and objectives for
//! which this does not hold are refused.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use hopmap_model::{
    CostModel, Costs, Edge, Error, Levels, Matrix, Process, RouteCosts, Slot, SystemGraph, TaskGraph,
};
use hopmap_objective::{Constraints, Location, Objective, Pin};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::MapError;

/// Ranks that stay together on one host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "`host`, or a list of blocks, each a list of ranks")]
pub enum Blocks {
    /// Blocks by name.
    Named(BlockName),
    /// The ranks of every block, in the order of the slots that they take.
    Listed(Vec<Vec<u32>>),
}

/// Blocks that the program defines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BlockName {
    /// The ranks that shared a host when the program was recorded, in rank order.
    Host,
}

impl Blocks {
    /// Checks what does not depend on the program.
    pub(crate) fn check(&self, objective: &Objective) -> Result<(), MapError> {
        if objective.t > 0.0 {
            let problem = "blocks are mapped as a whole, which hides the contribution of a rank to F";
            return Err(MapError::new(problem, "omit `blocks`, or the metric T from `objective`"));
        }
        let Self::Listed(blocks) = self else { return Ok(()) };
        let mut seen = BTreeSet::new();
        match blocks.iter().flatten().find(|&&rank| !seen.insert(rank)) {
            Some(rank) => {
                Err(MapError::new(format!("rank {rank} is twice in `blocks`"), "list every rank once"))
            }
            None => Ok(()),
        }
    }

    /// The ranks of every block.
    fn of(&self, graph: &TaskGraph) -> Result<Vec<Vec<u32>>, MapError> {
        let ranks = graph.ranks();
        let blocks = match self {
            Self::Listed(blocks) => blocks.iter().filter(|block| !block.is_empty()).cloned().collect(),
            Self::Named(BlockName::Host) => {
                let mut hosts: BTreeMap<&str, usize> = BTreeMap::new();
                let mut blocks: Vec<Vec<u32>> = Vec::new();
                for (rank, process) in (0..).zip(&graph.processes) {
                    let Some(host) = &process.host else {
                        let problem = format!("the host of rank {rank} was not recorded");
                        return Err(MapError::new(problem, "list the ranks of every block in `blocks`"));
                    };
                    let block = *hosts.entry(host).or_insert(blocks.len());
                    match blocks.get_mut(block) {
                        Some(block) => block.push(rank),
                        None => blocks.push(vec![rank]),
                    }
                }
                blocks
            }
        };
        let mut listed = vec![false; ranks];
        for &rank in blocks.iter().flatten() {
            match listed.get_mut(rank as usize) {
                Some(listed) => *listed = true,
                None => {
                    let problem = format!("`blocks` has rank {rank}, but the program has {ranks} ranks");
                    return Err(MapError::new(problem, "ranks are numbered from 0"));
                }
            }
        }
        match listed.iter().position(|listed| !listed) {
            Some(rank) => Err(MapError::new(
                format!("rank {rank} is in no block"),
                "list all ranks; a rank in a block of its own has a host of its own",
            )),
            None => Ok(blocks),
        }
    }
}

/// A host with room for every block.
pub(crate) struct Host {
    pub(crate) node: u32,
    /// Its first slot.
    pub(crate) first: u32,
}

/// A problem of blocks and hosts in place of ranks and slots.
pub(crate) struct Contraction {
    pub(crate) graph: TaskGraph,
    pub(crate) system: SystemGraph,
    pub(crate) blocks: Vec<Vec<u32>>,
    hosts: Vec<Host>,
    /// Ranks of the largest block.
    largest: u32,
}

impl Contraction {
    /// Hosts with room for fewer ranks than the largest block has are left out.
    pub(crate) fn new(
        blocks: &Blocks,
        graph: &TaskGraph,
        system: &SystemGraph,
        rooms: &[u32],
    ) -> Result<Self, Error> {
        graph.check()?;
        system.check()?;
        let blocks = blocks.of(graph)?;
        let largest = blocks.iter().map(Vec::len).max().unwrap_or(0) as u32;
        let large = system.hosts().zip(rooms).filter(|(_, room)| **room >= largest);
        let hosts: Vec<Host> = large.map(|((node, first, _), _)| Host { node, first }).collect();
        if hosts.len() < blocks.len() {
            let problem = format!(
                "{} blocks of up to {largest} ranks do not fit on the {} hosts with enough slots",
                blocks.len(),
                hosts.len()
            );
            return Err(MapError::new(problem, "use smaller blocks, or a larger machine").into());
        }
        let (graph, contracted) = (contracted(graph, &blocks)?, hosts_alone(system, &hosts));
        let contraction = Self { graph, system: contracted, blocks, hosts, largest };
        contraction.check_costs(system)?;
        Ok(contraction)
    }

    /// Checks that the costs of blocks follow from those of hosts.
    fn check_costs(&self, system: &SystemGraph) -> Result<(), MapError> {
        let costs = Costs::with_paths(system, None);
        let inside = |host: &Host| -> Vec<u64> {
            let slots = self.slots(host);
            let pairs = slots.clone().flat_map(|a| slots.clone().map(move |b| (a, b)));
            pairs.map(|(a, b)| costs.between(a, b).to_bits()).collect()
        };
        let first = self.hosts.first().map(inside);
        let unlike = self.hosts.iter().find(|host| Some(inside(host)) != first);
        let unlike = unlike.or_else(|| match &system.cost {
            CostModel::Levels(levels) => self.split_by(levels),
            CostModel::Matrix(_) => self.hosts.iter().find(|host| !self.is_uniform(host, &costs)),
            CostModel::Routes(_) => None,
        });
        let Some(host) = unlike else { return Ok(()) };
        let problem = format!(
            "the slots of host `{}` differ in their costs to other hosts, or from those of other hosts",
            system.nodes[host.node as usize].name
        );
        Err(MapError::new(problem, "`blocks` needs hosts that are alike: select some, or omit `blocks`"))
    }

    /// The slots that the largest block takes.
    fn slots(&self, host: &Host) -> Range<u32> {
        host.first..host.first + self.largest
    }

    /// A host of which a part is in a group with another host.
    fn split_by(&self, levels: &Levels) -> Option<&Host> {
        levels.groups.iter().find_map(|groups| {
            let mut hosts_of: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
            for host in &self.hosts {
                for slot in self.slots(host) {
                    hosts_of.entry(groups[slot as usize]).or_default().insert(host.node);
                }
            }
            self.hosts.iter().find(|host| {
                let groups = || self.slots(host).map(|slot| groups[slot as usize]);
                let is_split = groups().any(|group| groups().next() != Some(group));
                is_split && groups().any(|group| hosts_of[&group].len() > 1)
            })
        })
    }

    /// Whether all slots of a host cost the same to and from any slot of another host.
    fn is_uniform(&self, host: &Host, costs: &Costs<'_>) -> bool {
        let both = |a, b| [costs.between(a, b), costs.between(b, a)].map(f64::to_bits);
        self.hosts.iter().filter(|other| other.node != host.node).all(|other| {
            let expected = both(host.first, other.first);
            self.slots(host).all(|a| self.slots(other).all(|b| both(a, b) == expected))
        })
    }

    /// The constraints of blocks that follow from those of their ranks.
    pub(crate) fn constraints(
        &self,
        of_ranks: &Constraints,
        system: &SystemGraph,
    ) -> Result<Constraints, MapError> {
        let mut places = vec![(u32::MAX, 0); self.blocks.iter().map(Vec::len).sum()];
        for (block, ranks) in (0..).zip(&self.blocks) {
            (0..).zip(ranks).for_each(|(index, &rank)| places[rank as usize] = (block, index));
        }
        let mut pinned: BTreeMap<u32, Pin> = BTreeMap::new();
        for Pin { rank, place } in &of_ranks.pinned {
            let Some(&(block, index)) = places.get(*rank as usize) else {
                let problem = format!("rank {rank} is pinned, but the program has {} ranks", places.len());
                return Err(MapError::new(problem, "ranks are numbered from 0"));
            };
            let is_it = |host: &Host| match place {
                Location::Slot(slot) => host.first + index == *slot,
                Location::Host(name) => system.nodes[host.node as usize].name == *name,
            };
            let Some(host) = self.hosts.iter().position(is_it) else {
                let problem = format!(
                    "rank {rank} cannot be where it is pinned: it is number {index} of a block, and so on slot {index} of a host with at least {} slots",
                    self.largest
                );
                return Err(MapError::new(problem, "change `pinned` or `blocks`"));
            };
            let pin = Pin { rank: block, place: Location::Slot(host as u32) };
            if let Some(other) = pinned.insert(block, pin.clone()).filter(|other| *other != pin) {
                let names = [&other, &pin].map(|pin| match pin.place {
                    Location::Slot(host) => {
                        system.nodes[self.hosts[host as usize].node as usize].name.clone()
                    }
                    Location::Host(ref name) => name.clone(),
                });
                let problem =
                    format!("the block of rank {rank} is pinned to hosts `{}` and `{}`", names[0], names[1]);
                return Err(MapError::new(problem, "a block has one host"));
            }
        }
        Ok(Constraints { pinned: pinned.into_values().collect(), ..of_ranks.clone() })
    }

    /// The host of every block, from the slots of ranks; none if a block is not in order on the first slots of a host.
    pub(crate) fn hosts_of(&self, slots: &[u32]) -> Option<Vec<u32>> {
        let first: BTreeMap<u32, u32> = self.hosts.iter().map(|host| host.first).zip(0..).collect();
        let hosts = self.blocks.iter().map(|ranks| first.get(&slots[ranks[0] as usize]).copied());
        let hosts: Vec<u32> = hosts.collect::<Option<_>>()?;
        (self.expand(&hosts) == slots).then_some(hosts)
    }

    /// The slot of every rank, from the host of every block.
    pub(crate) fn expand(&self, hosts: &[u32]) -> Vec<u32> {
        let mut slots = vec![0; self.blocks.iter().map(Vec::len).sum()];
        for (ranks, &host) in self.blocks.iter().zip(hosts) {
            let first = self.hosts[host as usize].first;
            (first..).zip(ranks).for_each(|(slot, &rank)| slots[rank as usize] = slot);
        }
        slots
    }
}

/// The block of every rank.
pub(crate) fn block_of(blocks: &[Vec<u32>]) -> Vec<u32> {
    let mut block_of = vec![0; blocks.iter().map(Vec::len).sum()];
    for (block, ranks) in (0..).zip(blocks) {
        ranks.iter().for_each(|&rank| block_of[rank as usize] = block);
    }
    block_of
}

/// The traffic between blocks.
pub(crate) fn contracted(graph: &TaskGraph, blocks: &[Vec<u32>]) -> Result<TaskGraph, MapError> {
    let block_of = block_of(blocks);
    let mut edges: BTreeMap<(u32, u32), Edge> = BTreeMap::new();
    for edge in &graph.edges {
        let [source, destination] = [edge.source, edge.destination].map(|rank| block_of[rank as usize]);
        if source == destination {
            continue;
        }
        let sum = edges.entry((source, destination));
        let sum = sum.or_insert(Edge { source, destination, messages: 0, bytes: 0 });
        let sums = sum.messages.checked_add(edge.messages).zip(sum.bytes.checked_add(edge.bytes));
        let Some((messages, bytes)) = sums else {
            return Err(MapError::new(
                "the traffic between two blocks does not fit 64 bits",
                "use smaller blocks",
            ));
        };
        (sum.messages, sum.bytes) = (messages, bytes);
    }
    Ok(TaskGraph {
        processes: vec![Process::default(); blocks.len()],
        edges: edges.into_values().collect(),
        ..TaskGraph::default()
    })
}

/// The machine with one slot on every host, the first one.
pub(crate) fn hosts_alone(system: &SystemGraph, hosts: &[Host]) -> SystemGraph {
    let all = system.slots.len();
    let cost = match &system.cost {
        CostModel::Levels(levels) => CostModel::Levels(Levels {
            costs: levels.costs.clone(),
            groups: levels
                .groups
                .iter()
                .map(|groups| hosts.iter().map(|host| groups[host.first as usize]).collect())
                .collect(),
        }),
        CostModel::Matrix(matrix) => {
            let pairs = hosts
                .iter()
                .flat_map(|a| hosts.iter().map(move |b| a.first as usize * all + b.first as usize));
            CostModel::Matrix(Matrix { costs: pairs.map(|pair| matrix.costs[pair]).collect() })
        }
        CostModel::Routes(routes) => CostModel::Routes(RouteCosts {
            metric: routes.metric,
            inside: Levels { costs: vec![0.0], groups: vec![hosts.iter().map(|host| host.node).collect()] },
        }),
    };
    let slots = hosts.iter().map(|host| Slot { host: host.node, core: 0 }).collect();
    SystemGraph { slots, cost, ..system.clone() }
}
