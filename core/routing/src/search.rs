//! Search for mappings and routes without a solver of linear programs.
//!
//! Simulated annealing on an estimate finds good mappings, and the best of them are routed. Then branch and bound searches for
//! better ones, for increasing lengths of the longest route, and proves optimality.

mod anneal;
mod model;
mod paths;
mod tree;

use hopmap_model::Route;
use rayon::prelude::*;

use crate::engine::{Engine, SearchResult, StopCondition};
use crate::error::Result;
use crate::problem::{Plan, Problem};
use crate::router::QuickRouter;

use anneal::{Aim, Annealer, ISLANDS, ShortestPaths};
use model::{Edge, FAR, Model};
use paths::Lengths;
use tree::Tree;

/// Rounds of annealing, each for longer routes.
const ROUNDS: usize = 4;
/// Proposals of an island per pair of processes, and the fraction of them that tests whether a length is feasible.
const PROPOSALS: u64 = 160;
const PROBE: u64 = 8;
/// Steps of the route search for one mapping of many.
const STEPS: u64 = 3000;

/// Finds mappings and routes.
#[derive(Debug, Clone, Copy, Default)]
pub struct Search {}

impl Engine for Search {
    fn solve(
        &self,
        problem: &Problem<'_>,
        best: Option<&Plan>,
        stop: &StopCondition<'_>,
    ) -> Result<SearchResult> {
        if problem.mapped.is_some() {
            return Ok(SearchResult::nothing());
        }
        if problem.allowed.iter().any(Vec::is_empty) {
            return Ok(SearchResult::none());
        }
        let Some(model) = Model::new(problem) else { return Ok(SearchResult::nothing()) };
        Ok(Solver { model: &model, problem, stop, best: best.cloned() }.solve())
    }
}

/// One search.
struct Solver<'m, 'a> {
    model: &'m Model<'a>,
    problem: &'a Problem<'a>,
    stop: &'m StopCondition<'m>,
    /// The best plan that is known.
    best: Option<Plan>,
}

impl Solver<'_, '_> {
    fn cost(&self) -> f64 {
        self.best.as_ref().map_or(f64::INFINITY, |plan| self.problem.cost(plan))
    }

    fn solve(mut self) -> SearchResult {
        let lengths = self.lengths();
        let mut tree = Tree::new(self.model, self.cost());
        let first = match &mut tree {
            Some(tree) => self.least_length(tree, &lengths),
            None => 0,
        };
        if first == lengths.len() {
            // The search covered all mappings.
            let bound = self.cost();
            return self.found(bound, true, tree.map_or(0, |tree| tree.progress.nodes));
        }
        self.anneal(&lengths[first..]);
        let Some(mut tree) = tree else {
            let bound = self.simple_bound().min(self.cost());
            return self.found(bound, false, 0);
        };
        tree.incumbent.cost = self.cost();
        let mut bound = f64::INFINITY;
        for (index, &lengths_now) in lengths.iter().enumerate().skip(first) {
            // Longer routes cannot be better either.
            let rest = tree.root_bound(Lengths { most: FAR, ..lengths_now });
            if rest.is_infinite() {
                break;
            }
            let is_last = index + 1 == lengths.len();
            let is_done = tree.search(lengths_now, self.stop);
            self.take_from(&mut tree);
            if !is_done {
                let later = match is_last {
                    true => f64::INFINITY,
                    false => tree.root_bound(Lengths { most: FAR, ..lengths[index + 1] }),
                };
                bound = tree.incumbent.open.min(later);
                break;
            }
        }
        let (proven, bound) = (bound.is_infinite(), bound.min(self.cost()));
        self.found(bound, proven, tree.progress.nodes)
    }

    fn found(self, bound: f64, proven: bool, nodes: u64) -> SearchResult {
        SearchResult { bound, proven, nodes, plan: self.best }
    }

    /// The first length of the longest route that a short search does not refute.
    fn least_length(&mut self, tree: &mut Tree<'_, '_>, lengths: &[Lengths]) -> usize {
        for (index, &lengths) in lengths.iter().enumerate() {
            let is_done = tree.probe(lengths, self.stop);
            self.take_from(tree);
            if !is_done {
                return index;
            }
        }
        lengths.len()
    }

    /// Lower bound of the cost of streams whose processes do not fit on one host.
    fn simple_bound(&self) -> f64 {
        let model = self.model;
        let classes = 0..model.classes.len();
        let apart = |edge: &&Edge| {
            !classes.clone().any(|class| model.can_share(class, edge.source, edge.destination))
        };
        let links = f64::from(model.nearest());
        let count = model.edges.iter().filter(apart).count();
        let longest = if count > 0 { model.weights.longest_route * links } else { 0.0 };
        longest + model.weights.total_hops * links * count as f64
    }

    /// The increasing limits of the longest route; the last one is unlimited.
    fn lengths(&self) -> Vec<Lengths> {
        let last = self.model.farthest();
        let mut all = Vec::new();
        if self.model.weights.longest_route > 0.0 {
            all.extend((0..=last).map(|most| Lengths { most, least: most }));
            all.push(Lengths { most: FAR, least: last + 1 });
        } else {
            all.push(Lengths { most: FAR, least: 0 });
        }
        let most = self.problem.rules.max_hops.map_or(FAR, |most| most.min(u32::from(FAR)) as u16);
        all.retain(|lengths| lengths.least <= most);
        all.iter_mut().for_each(|lengths| lengths.most = lengths.most.min(most));
        all
    }

    /// Anneals for longer and longer routes, briefly until a solution is found, then at full length.
    fn anneal(&mut self, lengths: &[Lengths]) {
        let shortest = ShortestPaths::new(self.model);
        let annealer = Annealer::new(self.model, &shortest);
        if annealer.starts.is_empty() {
            return;
        }
        let processes = self.model.processes as u64;
        let proposals = (PROPOSALS * processes * processes).clamp(2000, 1_000_000);
        let rounds = lengths.len().min(ROUNDS);
        for (round, &lengths) in lengths.iter().take(rounds).enumerate() {
            self.round(&annealer, lengths.most, round as u64, proposals / PROBE);
            let is_found = |plan: &Plan| plan.longest() <= usize::from(lengths.most);
            if round + 1 == rounds || self.best.as_ref().is_some_and(is_found) {
                self.round(&annealer, lengths.most, rounds as u64, proposals);
                return;
            }
        }
    }

    /// Runs some islands for routes of a length, and routes the best mappings.
    fn round(&mut self, annealer: &Annealer<'_, '_>, longest: u16, round: u64, proposals: u64) {
        let weights = self.model.weights;
        let unit = (weights.total_hops + weights.table_entries).max(1e-9);
        let beyond =
            if weights.longest_route > 0.0 { weights.longest_route.min(6.0 * unit).max(unit) } else { 0.0 };
        let aim = Aim { longest, beyond, overload: 8.0 * unit };
        // Reserves a fraction of the time limit for the proof.
        let stop = &self.stop.rest(0, 0.5);
        let islands = (round * ISLANDS..(round + 1) * ISLANDS).into_par_iter();
        let mut mappings: Vec<(f64, Vec<u32>)> =
            islands.flat_map_iter(|island| annealer.island(island, aim, proposals, stop)).collect();
        mappings.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut quick = QuickRouter::new(self.problem);
        for (_, hosts) in &mappings {
            if self.best.is_some() && self.stop.is_over(0) {
                break;
            }
            self.route(hosts, &mut quick);
        }
    }

    /// Routes a mapping, and keeps the plan if it is the best.
    fn route(&mut self, hosts: &[u32], quick: &mut QuickRouter<'_>) {
        let moves = self.model.moves(hosts);
        let lengths = Lengths { most: FAR, least: 0 };
        let found = paths::route(self.model, hosts, lengths, self.cost() - moves, STEPS);
        if let Some((_, paths)) = found.best {
            self.take(hosts, paths);
        } else if !found.is_complete {
            let quick = quick.route(hosts, self.stop);
            if quick.keeps_rules {
                self.keep(Plan { hosts: hosts.to_vec(), routes: quick.routes });
            }
        }
    }

    fn take_from(&mut self, tree: &mut Tree<'_, '_>) {
        if let Some((hosts, paths)) = tree.incumbent.plan.take() {
            self.take(&hosts, paths);
        }
    }

    fn take(&mut self, hosts: &[u32], paths: Vec<Vec<u32>>) {
        let flows = self.problem.flows.iter().zip(paths);
        let routes: Vec<Route> = flows.map(|(flow, links)| self.problem.route(flow, hosts, links)).collect();
        if self.problem.keeps_rules(&routes) {
            self.keep(Plan { hosts: hosts.to_vec(), routes });
        }
    }

    fn keep(&mut self, plan: Plan) {
        if self.problem.cost(&plan) < self.cost() {
            self.best = Some(plan);
        }
    }
}
