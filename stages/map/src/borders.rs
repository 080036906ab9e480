//! Borders: groups of ranks that stay below one switch, such as those of an accelerator domain.
//!
//! # Method
//!
//! Contraction, as for blocks, once for every level of switches with borders, from the hosts up: what the groups of a
//! level connect becomes one rank, and as many slots below one switch become one slot. Any mapper solves the smaller
//! problem. If groups are alike, and slots below a switch cost the same to each other and to those below another
//! switch, the costs differ by a constant, so the optimum of one problem is that of the other. Otherwise exchanges
//! below the switches follow, and the bound is that of the problem without borders.
//!
//! Where groups have several sizes, equal places for all of them may be too few. Then bin packing finds places, exchanges below
//! the switches follow, and the bound is that of the problem without borders.

mod packing;

use std::collections::BTreeMap;

use hopmap_model::{Context, Error, SystemGraph, TaskGraph, Weight};
use hopmap_objective::{Assignment, Objective, Problem};

use packing::{Packing, Regions, pack};

use crate::blocks::{Contraction, Host, block_of, contracted, hosts_alone};
use crate::error::MapError;
use crate::exact::{BOUND, PROVEN};
use crate::mapper::{Mapper, SearchResult};

/// Slots whose costs are compared at most; beyond, nothing is claimed about the optimum.
const MOST_COMPARED: usize = 2048;
/// Exchanges below switches that are evaluated at most, for each rank.
const EXCHANGES: usize = 1 << 12;

/// Groups that no switch of a level may separate.
#[derive(Debug, Clone)]
pub(crate) struct Border {
    level: u32,
    /// Names of the phases whose groups they are.
    kinds: String,
    /// The area of every node of the machine.
    areas: Vec<u32>,
    groups: Vec<Vec<u32>>,
}

/// The borders of a program on a machine, from the lowest level up.
pub(crate) fn borders(
    levels: &BTreeMap<String, u32>,
    graph: &TaskGraph,
    system: &SystemGraph,
) -> Result<Vec<Border>, MapError> {
    let areas = if levels.is_empty() { Vec::new() } else { system.areas() };
    let mut borders: BTreeMap<u32, Border> = BTreeMap::new();
    for (kind, &level) in levels {
        let Some(phase) = graph.phases.iter().find(|phase| phase.name.as_ref() == Some(kind)) else {
            let names: Vec<&str> = graph.phases.iter().filter_map(|phase| phase.name.as_deref()).collect();
            let problem = format!("`borders` has `{kind}`, but the program has no groups of that name");
            let help = match names.is_empty() {
                true => {
                    "groups are those of the phases of a program, such as one of instance/parallel".into()
                }
                false => format!("it has {}", names.join(", ")),
            };
            return Err(MapError::new(problem, help));
        };
        let Some(areas) = (level as usize).checked_sub(1).and_then(|index| areas.get(index)) else {
            let names = system.level_names();
            if (1..=names.len()).contains(&(level as usize)) {
                // All hosts are below common switches of this level.
                continue;
            }
            let problem =
                format!("`borders` has level {level} for `{kind}`, but the machine has no such level");
            let help = match names.is_empty() {
                true => "the machine has no switches".to_owned(),
                false => format!("it has {}", names.join(", ")),
            };
            return Err(MapError::new(problem, help));
        };
        let new = || Border { level, kinds: String::new(), areas: areas.clone(), groups: Vec::new() };
        let border = borders.entry(level).or_insert_with(new);
        let separator = if border.kinds.is_empty() { "" } else { ", " };
        border.kinds += &format!("{separator}`{kind}`");
        border.groups.extend(phase.groups());
    }
    Ok(borders.into_values().collect())
}

impl Border {
    /// The borders of blocks that are those of their ranks.
    pub(crate) fn of_blocks(borders: &[Self], contraction: &Contraction) -> Vec<Self> {
        let block_of = block_of(&contraction.blocks);
        borders.iter().map(|border| border.contracted(&block_of)).collect()
    }

    /// Whether every group is in one area.
    pub(crate) fn is_kept(&self, slots: &[u32], system: &SystemGraph) -> bool {
        let area = |rank: &u32| self.areas[system.slots[slots[*rank as usize] as usize].host as usize];
        self.groups.iter().all(|group| group.windows(2).all(|pair| area(&pair[0]) == area(&pair[1])))
    }

    /// The same border for what the ranks are part of.
    pub(crate) fn contracted(&self, part_of: &[u32]) -> Self {
        let member = |rank: &u32| part_of[*rank as usize];
        let groups = self.groups.iter().map(|group| group.iter().map(member).collect()).collect();
        Self { groups, ..self.clone() }
    }
}

/// A mapping problem with borders.
pub(crate) struct Bordered<'a> {
    graph: &'a TaskGraph,
    system: &'a SystemGraph,
    problem: &'a Problem,
    /// The first rank of the program in every rank of this problem.
    first_ranks: Vec<u32>,
    /// What a slot is in messages, and how many of them a slot of this problem is.
    slot: (&'static str, usize),
}

impl<'a> Bordered<'a> {
    /// The problem of ranks and slots.
    pub(crate) fn of_ranks(graph: &'a TaskGraph, system: &'a SystemGraph, problem: &'a Problem) -> Self {
        let first_ranks = (0..graph.ranks() as u32).collect();
        Self { graph, system, problem, first_ranks, slot: ("slots", 1) }
    }

    /// The problem of blocks and hosts.
    pub(crate) fn of_blocks(contraction: &'a Contraction, problem: &'a Problem) -> Self {
        let first_ranks = contraction.blocks.iter().map(|block| block[0]).collect();
        let Contraction { graph, system, .. } = contraction;
        Self { graph, system, problem, first_ranks, slot: ("hosts", 1) }
    }

    /// Maps ranks so that no border separates its groups.
    pub(crate) fn solve(
        &self,
        mapper: &impl Mapper,
        borders: &[Border],
        (objective, weight): (&Objective, Weight),
        cx: &Context<'_>,
    ) -> Result<SearchResult, Error> {
        match self.contract(mapper, borders, (objective, weight), cx)? {
            Some(found) => Ok(found),
            None => self.packed(mapper, borders, cx),
        }
    }

    /// Maps ranks by contraction; none if a level has too few equal places.
    fn contract(
        &self,
        mapper: &impl Mapper,
        borders: &[Border],
        (objective, weight): (&Objective, Weight),
        cx: &Context<'_>,
    ) -> Result<Option<SearchResult>, Error> {
        let Some((border, outer)) = borders.split_first() else {
            return Ok(Some(mapper.map(self.problem, cx)?));
        };
        let cells = Clustering::new(self, border);
        if cells.cells.len() < cells.clusters.len() {
            return Ok(None);
        }
        let graph = contracted(self.graph, &cells.clusters)?;
        let system = hosts_alone(self.system, &cells.places(self.system));
        let problem = Problem::with_objective(&graph, &system, weight, objective)?;
        let outer: Vec<Border> = outer.iter().map(|border| border.contracted(&cells.cluster_of)).collect();
        let first_rank = |cluster: &Vec<u32>| self.first_ranks[cluster[0] as usize];
        let smaller = Bordered {
            graph: &graph,
            system: &system,
            problem: &problem,
            first_ranks: cells.clusters.iter().map(first_rank).collect(),
            slot: (self.slot.0, self.slot.1 * cells.size),
        };
        let Some(mut found) = smaller.contract(mapper, &outer, (objective, weight), cx)? else {
            return Ok(None);
        };
        let between = problem.real(problem.cost(&found.slots));
        found.slots = cells.expand(&found.slots);
        let inside = self.problem.real(self.problem.cost(&found.slots)) - between;
        found.convergence.iter_mut().for_each(|point| point.cost += inside);
        found.metrics.get_mut(BOUND.name).into_iter().for_each(|bound| *bound += inside);
        if !cells.are_alike(self.problem) {
            let is_bounded = found.metrics.contains_key(BOUND.name);
            found.metrics.retain(|name, _| ![BOUND.name, PROVEN.name].contains(&name.as_str()));
            cells.improve(self.problem, &mut found, cx)?;
            if is_bounded {
                self.bound(mapper.map(self.problem, &cx.without_state())?, borders, &mut found);
            }
        }
        Ok(Some(found))
    }

    /// Maps ranks by bin packing and exchanges.
    fn packed(
        &self,
        mapper: &impl Mapper,
        borders: &[Border],
        cx: &Context<'_>,
    ) -> Result<SearchResult, Error> {
        let Some((border, outer)) = borders.split_first() else { return mapper.map(self.problem, cx) };
        let mut packed = Clustering::new(self, border);
        let sizes: Vec<usize> = packed.clusters.iter().map(Vec::len).collect();
        let regions = |border: &Border| {
            let classes = clusters(packed.clusters.len(), &border.contracted(&packed.cluster_of).groups);
            let area = |slots: &Vec<u32>| border.areas[self.system.slots[slots[0] as usize].host as usize];
            Regions { of_clusters: block_of(&classes), of_areas: packed.below.iter().map(area).collect() }
        };
        let regions: Vec<Regions> = outer.iter().map(regions).collect();
        let areas = match pack(&sizes, packed.below.iter().map(Vec::len).collect(), &regions) {
            Packing::Found(areas) => areas,
            Packing::Impossible => return Err(packed.refused(self, borders, true).into()),
            Packing::Unknown => return Err(packed.refused(self, borders, false).into()),
        };
        let mut free: Vec<&[u32]> = packed.below.iter().map(Vec::as_slice).collect();
        let mut cell = |(size, area): (&usize, &usize)| {
            let (cell, rest) = free[*area].split_at(*size);
            free[*area] = rest;
            cell.to_vec()
        };
        packed.cells = sizes.iter().zip(&areas).map(&mut cell).collect();
        let all: Vec<u32> = (0..packed.cells.len() as u32).collect();
        let mut found = SearchResult::at_once(packed.expand(&all));
        packed.improve(self.problem, &mut found, cx)?;
        self.bound(mapper.map(self.problem, cx)?, borders, &mut found);
        Ok(found)
    }

    /// Bounds the result by that of the problem without borders, which is the result itself if it keeps them.
    fn bound(&self, free: SearchResult, borders: &[Border], found: &mut SearchResult) {
        let cost = |slots: &[u32]| self.problem.cost(slots);
        let is_kept = borders.iter().all(|border| border.is_kept(&free.slots, self.system));
        if is_kept && cost(&free.slots) <= cost(&found.slots) {
            found.slots = free.slots;
        }
        found.evaluations += free.evaluations;
        found.complete &= free.complete;
        let Some(&bound) = free.metrics.get(BOUND.name) else { return };
        let is_optimal = self.problem.real(cost(&found.slots)) <= bound;
        found.metrics.insert(BOUND.name.to_owned(), bound);
        found.metrics.insert(PROVEN.name.to_owned(), f64::from(u8::from(is_optimal)));
    }
}

/// Ranks that stay together, and places for them.
struct Clustering {
    /// The ranks of every cluster, by its first rank.
    clusters: Vec<Vec<u32>>,
    cluster_of: Vec<u32>,
    /// Ranks of the largest cluster.
    size: usize,
    /// The slots below each switch that may be used.
    below: Vec<Vec<u32>>,
    /// Slots for a cluster, all of them below one switch.
    cells: Vec<Vec<u32>>,
}

impl Clustering {
    fn new(of: &Bordered<'_>, border: &Border) -> Self {
        let clusters = clusters(of.graph.ranks(), &border.groups);
        let cluster_of = block_of(&clusters);
        let size = clusters.iter().map(Vec::len).max().unwrap_or(1);
        let mut below: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for &slot in of.problem.distance().order().iter().filter(|&&slot| of.problem.admits(0, slot)) {
            let host = of.system.slots[slot as usize].host;
            below.entry(border.areas[host as usize]).or_default().push(slot);
        }
        let below: Vec<Vec<u32>> = below.into_values().collect();
        let mut cells: Vec<Vec<u32>> =
            below.iter().flat_map(|slots| slots.chunks_exact(size).map(<[u32]>::to_vec)).collect();
        // A machine has the slots of a host together.
        cells.sort_by_key(|cell| cell[0]);
        Self { clusters, cluster_of, size, below, cells }
    }

    /// Why the clusters do not fit; whether that is proven.
    fn refused(&self, of: &Bordered<'_>, borders: &[Border], is_proven: bool) -> MapError {
        let Border { level, kinds, .. } = &borders[0];
        let ((unit, scale), largest) = (of.slot, self.below.iter().map(Vec::len).max().unwrap_or(0));
        let needed = self.size * scale;
        let problem = if largest < self.size {
            let is_large = |cluster: &&Vec<u32>| cluster.len() == self.size;
            let first =
                self.clusters.iter().find(is_large).map_or(0, |cluster| of.first_ranks[cluster[0] as usize]);
            format!(
                "the group of {kinds} with rank {first} needs {needed} {unit}, but no switch of level {level} has more than {} below it",
                largest * scale
            )
        } else if is_proven && self.is_uniform() && borders.len() == 1 {
            format!(
                "{} groups of {kinds} of {needed} {unit} must not cross switches of level {level}, below which there is room for {}",
                self.clusters.len(),
                self.below.iter().map(|slots| slots.len() / self.size).sum::<usize>()
            )
        } else {
            let rooms: Vec<String> =
                self.below.iter().map(|slots| (slots.len() * scale).to_string()).collect();
            let borders: Vec<String> =
                borders.iter().map(|border| format!("{} level {}", border.kinds, border.level)).collect();
            let found = if is_proven { "there is no placement" } else { "no placement was found" };
            format!(
                "{found} in which no group crosses its switches ({}): {} groups and single ranks, the largest of {needed} {unit}, go below \
                 switches of level {level} with {} {unit}",
                borders.join(", "),
                self.clusters.len(),
                rooms.join(", ")
            )
        };
        MapError::new(
            problem,
            "set a higher level in `borders`, use smaller groups, or a larger part of the machine",
        )
    }

    fn is_uniform(&self) -> bool {
        self.clusters.iter().all(|cluster| cluster.len() == self.size)
    }

    /// The first slot of every cell.
    fn places(&self, system: &SystemGraph) -> Vec<Host> {
        self.cells
            .iter()
            .map(|cell| Host { node: system.slots[cell[0] as usize].host, first: cell[0] })
            .collect()
    }

    /// The slot of every rank, from the cell of every cluster.
    fn expand(&self, cells: &[u32]) -> Vec<u32> {
        let mut slots = vec![0; self.cluster_of.len()];
        for (ranks, &cell) in self.clusters.iter().zip(cells) {
            let places = &self.cells[cell as usize];
            ranks.iter().zip(places).for_each(|(&rank, &slot)| slots[rank as usize] = slot);
        }
        slots
    }

    /// Whether costs follow from the switches alone, so that the optimum of clusters is that of ranks.
    fn are_alike(&self, problem: &Problem) -> bool {
        let places: Vec<(usize, u32)> = self
            .below
            .iter()
            .enumerate()
            .flat_map(|(area, slots)| slots.iter().map(move |&slot| (area, slot)))
            .collect();
        let is_sum = problem.is_quadratic() && problem.ordered_pairs().is_none();
        if !is_sum || !self.is_uniform() || places.len() > MOST_COMPARED {
            return false;
        }
        let areas = self.below.len();
        let (mut inside, mut between) = (None, vec![None; areas * areas]);
        places.iter().enumerate().all(|(index, &(area, slot))| {
            places[..index].iter().all(|&(other_area, other)| {
                let known =
                    if area == other_area { &mut inside } else { &mut between[area * areas + other_area] };
                let cost = problem.distance().cost(slot, other);
                *known.get_or_insert(cost) == cost
            })
        })
    }

    /// Exchanges ranks below the same switch as long as that lowers the cost.
    fn improve(&self, problem: &Problem, found: &mut SearchResult, cx: &Context<'_>) -> Result<(), Error> {
        let mut assignment = Assignment::new(problem, &found.slots)?;
        let most = EXCHANGES.saturating_mul(found.slots.len());
        let mut evaluations = 0;
        let mut before = i64::MAX;
        while assignment.cost() < before {
            before = assignment.cost();
            for (slots, &slot) in
                self.below.iter().flat_map(|slots| slots.iter().map(move |slot| (slots, slot)))
            {
                let is_over = evaluations >= most || cx.should_stop();
                for &other in slots.iter().filter(|&&other| other != slot && !is_over) {
                    let Some(rank) = assignment.rank_at(slot) else { break };
                    let delta = assignment.delta(rank, other);
                    evaluations += 1;
                    if delta < 0 {
                        assignment.exchange(rank, other, delta);
                    }
                }
            }
        }
        found.slots = assignment.slots().to_vec();
        found.evaluations += evaluations as u64;
        if let Some(&last) = found.convergence.last() {
            let cost = problem.real(assignment.cost());
            let evaluations = last.evaluations + evaluations as u64;
            found.convergence.push(hopmap_model::ConvergencePoint { cost, evaluations, ..last });
        }
        Ok(())
    }
}

/// Ranks that groups connect, in ascending order; a rank in no group is alone.
fn clusters(ranks: usize, groups: &[Vec<u32>]) -> Vec<Vec<u32>> {
    let mut first: Vec<u32> = (0..ranks as u32).collect();
    let root = |first: &[u32], mut rank: u32| {
        while first[rank as usize] != rank {
            rank = first[rank as usize];
        }
        rank
    };
    for pair in groups.iter().flat_map(|group| group.windows(2)) {
        let [a, b] = [pair[0], pair[1]].map(|rank| root(&first, rank));
        first[a.max(b) as usize] = a.min(b);
    }
    let mut clusters: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for rank in 0..ranks as u32 {
        let root = root(&first, rank);
        first[rank as usize] = root;
        clusters.entry(root).or_default().push(rank);
    }
    clusters.into_values().collect()
}
