//! Optimal routes and tables for a given mapping, without a solver of linear programs.
//!
//! [`quick`] finds good routes within a few milliseconds; [`Router`] improves them to proven optimality. The lower bound comes
//! from prices of contested links under which every destination has its cheapest tree (Lagrangian relaxation). If these trees
//! contradict tables, overload links or form a cycle of waiting links, the search branches: one table entry is either forbidden
//! or forced.

mod improve;
mod lower;
mod model;
mod quick;

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::rc::Rc;

use crate::engine::{Engine, SearchResult, StopCondition};
use crate::error::Result;
use crate::network;
use crate::problem::{Plan, Problem, TOLERANCE, gcd};
use improve::RoutingState;
use lower::{Forbidden, Lower, Prices, Question, Stale, Tree, Trees};
use model::{Graph, Model};
pub use quick::{Quick, QuickRouter};

/// Finds the best routes for a given mapping, with a proof of optimality or infeasibility. A search without limits ends after a
/// fixed, deterministic effort if it has proven nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Router {}

impl Engine for Router {
    fn solve(
        &self,
        problem: &Problem<'_>,
        best: Option<&Plan>,
        stop: &StopCondition<'_>,
    ) -> Result<SearchResult> {
        let Some(hosts) = &problem.mapped else { return Ok(SearchResult::nothing()) };
        let quick = QuickRouter::new(problem).route(hosts, stop);
        if Model::cells(problem) > MOST_CELLS || stop.is_over(0) {
            let plan = Plan { hosts: hosts.clone(), routes: quick.routes };
            return Ok(SearchResult { plan: quick.keeps_rules.then_some(plan), ..SearchResult::nothing() });
        }
        let model = Model::new(problem, hosts);
        if !model.parts.iter().all(Graph::is_joined) {
            return Ok(SearchResult::none());
        }
        let mut branch = Branch::new(&model, stop);
        for routes in best.iter().map(|plan| &plan.routes).chain([&quick.routes]) {
            branch.offer(&routes.iter().map(|route| route.links.clone()).collect::<Vec<_>>());
        }
        branch.polish();
        if branch.best.is_some() && stop.is_over(0) {
            return Ok(SearchResult { plan: branch.best, ..SearchResult::nothing() });
        }
        Ok(by_length(&model, branch))
    }
}

/// Searches for the best routes, in ascending order of the longest route.
fn by_length(model: &Model<'_>, mut branch: Branch<'_, '_>) -> SearchResult {
    let longest = model.problem.rules.weights.longest_route;
    let base = |hops: u32| longest * f64::from(hops) + model.offset;
    let mut hops = model.least_longest;
    if branch.best.is_none() {
        let end = branch.search(model.max_hops, base(hops), true);
        if branch.best.is_none() {
            let bound = if end.is_over { f64::INFINITY } else { branch.on_grid(end.bound) };
            return SearchResult { plan: None, bound, proven: end.is_over, nodes: branch.nodes };
        }
        branch.polish();
    }
    if longest <= 0.0 {
        hops = model.max_hops;
    }
    let Some(rest) = without_prices(model) else { return SearchResult::none() };
    let (mut bound, mut proven) = (f64::INFINITY, true);
    while proven && hops <= model.max_hops && !branch.is_settled(base(hops) + rest) {
        let end = branch.search(hops, base(hops), false);
        bound = bound.min(end.bound);
        proven = end.is_over;
        hops += 1;
    }
    if hops <= model.max_hops {
        bound = bound.min(base(hops) + rest);
    }
    let bound = if proven { branch.cost } else { branch.on_grid(bound).min(branch.cost) };
    SearchResult { plan: branch.best, bound, proven, nodes: branch.nodes }
}

/// Cost of lengths and entries if nothing is contested.
fn without_prices(model: &Model<'_>) -> Option<f64> {
    let forbidden = vec![Forbidden::default(); model.groups.len()];
    let question = Question {
        max_hops: model.max_hops,
        forbidden: &forbidden,
        cutoff: f64::INFINITY,
        steps: 1,
        start: &[],
        stale: lower::Stale::All,
    };
    let mut prices = Prices::zero(model);
    let lower = lower::bound(model, &mut Trees::default(), &question, &mut prices, &mut |_, _| f64::INFINITY);
    lower.map(|lower| lower.value)
}

/// Largest model that is searched, in pairs of a part or flow and a link, each of about 100 bytes. Larger problems have quick routes
/// without a bound.
const MOST_CELLS: usize = 1 << 22;
/// Subgradient steps of the first bound, and of later ones.
const STEPS: (u32, u32) = (150, 6);
/// Bounds between attempts to derive routes from the trees, at first and later.
const TRY: (u64, u64) = (8, 400);
/// Limit of examined links of a search without proof.
const WORK: u64 = 25_000_000;
/// Limit of examined links while the plan of the first bound is improved.
const PERTURBATION_WORK: u64 = 1_500_000;
/// Limit of open nodes of a search without proof.
const OPEN: usize = 100_000;

/// The search for best routes.
struct Branch<'m, 'a> {
    model: &'m Model<'a>,
    stop: &'m StopCondition<'m>,
    trees: Trees,
    /// The best plan and its cost.
    pub best: Option<Plan>,
    pub cost: f64,
    /// Costs are multiples of this.
    grid: f64,
    pub nodes: u64,
    bounds: u64,
}

/// A node of the search: decisions, and what is known under them.
#[derive(Debug, Clone)]
struct Node {
    bound: f64,
    depth: u32,
    number: u64,
    /// Forbidden entries, by destination.
    forbidden: Vec<Forbidden>,
    prices: Prices,
    /// The trees under the prices before the last decision, and the destinations that it affects.
    trees: Rc<Vec<Tree>>,
    stale: Stale,
}

/// How a search ended.
#[derive(Debug, Clone, Copy, PartialEq)]
struct End {
    /// Nothing cheaper exists in the searched range, except for the incumbent.
    pub bound: f64,
    pub is_over: bool,
}

impl<'m, 'a> Branch<'m, 'a> {
    fn new(model: &'m Model<'a>, stop: &'m StopCondition<'m>) -> Self {
        let grid = grid(model);
        Self {
            model,
            stop,
            trees: Trees::default(),
            best: None,
            cost: f64::INFINITY,
            grid,
            nodes: 0,
            bounds: 0,
        }
    }

    /// Keeps a plan if it satisfies all rules and is better.
    fn offer(&mut self, paths: &[Vec<u32>]) {
        let problem = self.model.problem;
        let flows = problem.flows.iter().zip(paths);
        let routes = flows.map(|(flow, path)| problem.route(flow, self.model.hosts, path.clone())).collect();
        let plan = Plan { hosts: self.model.hosts.to_vec(), routes };
        let cost = problem.cost(&plan);
        let are_simple = paths.iter().all(|path| self.model.is_simple(path));
        if cost < self.cost && are_simple && problem.keeps_rules(&plan.routes) {
            self.cost = cost;
            self.best = Some(plan);
        }
    }

    /// Improves the best plan.
    fn polish(&mut self) {
        let Some((mut routing_state, longest)) = self.routing_state() else { return };
        improve::descend(self.model, &mut self.trees, &mut routing_state, longest, self.stop);
        self.offer(&routing_state.by_flow(self.model));
    }

    /// Improves the best plan under the prices of links, if its longest route is within the limit.
    fn perturb(&mut self, max_hops: u32, prices: &Prices) {
        let Some((mut routing_state, longest)) = self.routing_state() else { return };
        if longest <= max_hops {
            let limits = (max_hops, PERTURBATION_WORK);
            improve::perturb(self.model, &mut self.trees, &mut routing_state, limits, prices, self.stop);
            self.offer(&routing_state.by_flow(self.model));
        }
    }

    /// The best plan by parts, and its longest route.
    fn routing_state(&self) -> Option<(RoutingState, u32)> {
        let plan = self.best.as_ref()?;
        let longest = plan.longest() as u32;
        let of_part = |graph: &model::Graph| {
            graph.ends.iter().map(|end| plan.routes[end.flow as usize].links.clone()).collect()
        };
        Some((RoutingState::new(self.model, self.model.parts.iter().map(of_part).collect()), longest))
    }

    /// Rounds a bound up to the next possible cost.
    fn on_grid(&self, bound: f64) -> f64 {
        match self.grid {
            grid if grid > 0.0 && bound.is_finite() => {
                ((bound - self.model.offset) / grid - 1e-5).ceil() * grid + self.model.offset
            }
            _ => bound,
        }
    }

    /// Whether a node with this bound can be discarded.
    fn is_settled(&self, bound: f64) -> bool {
        self.on_grid(bound) >= self.cost - self.model.problem.rules.tolerance(self.cost, 1e-9)
    }

    fn is_tired(&self) -> bool {
        self.trees.work > WORK || self.stop.is_over(self.nodes)
    }

    /// Searches for better routes within a hop limit; `base` is the fixed cost without lengths and entries.
    fn search(&mut self, max_hops: u32, base: f64, only_first: bool) -> End {
        let node = Node {
            bound: f64::NEG_INFINITY,
            depth: 0,
            number: 0,
            forbidden: vec![Forbidden::default(); self.model.groups.len()],
            prices: Prices::zero(self.model),
            trees: Rc::default(),
            stale: Stale::All,
        };
        let mut open = BinaryHeap::from([node]);
        let mut least = f64::INFINITY;
        while let Some(node) = open.pop() {
            if self.is_settled(node.bound) || (only_first && self.best.is_some()) {
                least = least.min(node.bound);
                break;
            }
            if (self.is_tired() && node.depth > 0) || open.len() > OPEN {
                return End { bound: least.min(node.bound), is_over: false };
            }
            self.nodes += 1;
            open.extend(self.expand(node, max_hops, base));
        }
        least = open.iter().map(|node| node.bound).fold(least, f64::min);
        End { bound: least, is_over: !only_first || self.best.is_none() }
    }

    /// Bounds a node and branches.
    fn expand(&mut self, mut node: Node, max_hops: u32, base: f64) -> Vec<Node> {
        let steps = if node.depth == 0 { STEPS.0 } else { STEPS.1 };
        let Some(lower) = self.bound(&mut node, (max_hops, base, steps)) else { return Vec::new() };
        node.bound = node.bound.max(base + lower.value);
        if self.is_settled(node.bound) {
            return Vec::new();
        }
        if node.depth == 0 {
            self.perturb(max_hops, &node.prices);
        }
        let (stale, children) = self.divide(&node, &lower, max_hops);
        let trees = Rc::new(lower.trees);
        let child = |(number, forbidden): (usize, Vec<Forbidden>)| Node {
            bound: node.bound,
            depth: node.depth + 1,
            number: self.nodes * 64 + number as u64,
            forbidden,
            prices: node.prices.clone(),
            trees: Rc::clone(&trees),
            stale,
        };
        children.into_iter().enumerate().map(child).collect()
    }

    fn bound(&mut self, node: &mut Node, (max_hops, base, steps): (u32, f64, u32)) -> Option<Lower> {
        let (model, mut trees) = (self.model, std::mem::take(&mut self.trees));
        let question = Question {
            max_hops,
            forbidden: &node.forbidden,
            cutoff: self.cutoff(base),
            steps,
            start: &node.trees,
            stale: node.stale,
        };
        let mut prices = std::mem::take(&mut node.prices);
        let at = prices.clone();
        let is_first = node.depth == 0;
        let mut look = |trees: &mut Trees, lower: &Lower| {
            self.bounds += 1;
            if self.stop.is_over(0) && self.best.is_some() {
                return f64::NEG_INFINITY;
            }
            if self.bounds % if is_first { TRY.0 } else { TRY.1 } == 1 {
                self.attempt(trees, lower, (max_hops, &at));
            }
            if self.stop.is_over(0) { f64::NEG_INFINITY } else { self.cutoff(base) }
        };
        let lower = lower::bound(model, &mut trees, &question, &mut prices, &mut look);
        node.prices = prices;
        self.trees = trees;
        lower
    }

    /// The cutoff for lengths and entries.
    fn cutoff(&self, base: f64) -> f64 {
        self.cost - base - 0.999 * self.grid
    }

    /// Derives routes from the trees of a bound.
    fn attempt(&mut self, trees: &mut Trees, lower: &Lower, (max_hops, prices): (u32, &Prices)) {
        let paths = lower.trees.iter().map(|tree| tree.paths.clone()).collect();
        let mut routing_state = RoutingState::new(self.model, paths);
        if improve::repair(self.model, trees, &mut routing_state, max_hops, prices) {
            improve::descend(self.model, trees, &mut routing_state, max_hops, self.stop);
            self.offer(&routing_state.by_flow(self.model));
        }
    }

    /// Branches: sets of forbidden entries such that every better solution satisfies one of them.
    fn divide(&mut self, node: &Node, lower: &Lower, max_hops: u32) -> (Stale, Vec<Vec<Forbidden>>) {
        let choices = Choices { model: self.model, node, lower, max_hops };
        match choices.violation() {
            Violation::Nothing => {}
            Violation::Entry(group, pair) => return (Stale::One(group), choices.both(group, pair)),
            Violation::Hopeless => return (Stale::All, Vec::new()),
        }
        let paths =
            RoutingState::new(self.model, lower.trees.iter().map(|tree| tree.paths.clone()).collect());
        let paths = paths.by_flow(self.model);
        if self.model.problem.rules.deadlock_free {
            let cycle = network::cycle(self.model.fabric.head.len(), paths.iter().map(Vec::as_slice));
            if !cycle.is_empty() {
                let pair = |at: usize| (cycle[at], cycle[(at + 1) % cycle.len()]);
                return (Stale::All, (0..cycle.len()).map(|at| choices.without(pair(at))).collect());
            }
        }
        self.offer(&paths);
        match choices.any() {
            Some((group, pair)) => (Stale::One(group), choices.both(group, pair)),
            None => (Stale::All, Vec::new()),
        }
    }
}

/// Result of the search for violations of the trees.
enum Violation {
    Nothing,
    /// The entry of a destination that connects one link to the next.
    Entry(usize, (u32, u32)),
    /// No open choice is left.
    Hopeless,
}

/// The kinds of violations to branch on.
struct Choices<'c, 'm, 'a> {
    model: &'m Model<'a>,
    node: &'c Node,
    lower: &'c Lower,
    max_hops: u32,
}

impl Choices<'_, '_, '_> {
    /// The links before and at every position of the routes to a destination; the first one has no predecessor.
    fn pairs(&self, group: usize) -> impl Iterator<Item = (usize, (u32, u32))> + '_ {
        self.model.groups[group].iter().flat_map(move |&part| {
            let pairs = |path: &Vec<u32>| -> Vec<(usize, (u32, u32))> {
                let before = std::iter::once(u32::MAX).chain(path.iter().copied());
                before.zip(path.iter().copied()).map(|pair| (part, pair)).collect()
            };
            self.lower.trees[part].paths.iter().flat_map(pairs).collect::<Vec<_>>()
        })
    }

    /// Whether another link could follow.
    fn is_open(&self, part: usize, (link, next): (u32, u32)) -> bool {
        let graph = &self.model.parts[part];
        let forbidden = &self.node.forbidden[self.model.group_of[part]];
        let tail = self.model.fabric.tail[next as usize];
        let leaving = self.model.fabric.leaving(tail).iter();
        let is_possible = |&&other: &&u32| {
            let Ok(at) = graph.links.binary_search(&other) else { return false };
            let mut shortest =
                (0..graph.ends.len()).map(|flow| graph.shortest[flow * graph.links.len() + at]);
            shortest.any(|hops| hops <= self.max_hops)
                && !forbidden.links.contains(&other)
                && !(self.model.fabric.is_two[tail as usize] && forbidden.turns.contains(&(link, other)))
        };
        leaving.filter(is_possible).count() > 1
    }

    /// An open choice on the routes of a destination that satisfy a predicate, the last one first.
    fn open(&self, group: usize, is_meant: impl Fn(u32) -> bool) -> Option<(u32, u32)> {
        let mut first = None;
        for (part, pair) in self.pairs(group) {
            if self.is_open(part, pair) {
                if is_meant(pair.1) {
                    return Some(pair);
                }
                first = first.or(Some(pair));
            }
        }
        first
    }

    fn violation(&self) -> Violation {
        for (group, parts) in self.model.groups.iter().enumerate() {
            let paths = || parts.iter().flat_map(|&part| &self.lower.trees[part].paths);
            let contradiction = improve::contradiction(self.model, paths());
            if let Some(pair) = contradiction {
                return Violation::Entry(group, pair);
            }
            if paths().any(|path| !self.model.is_simple(path)) {
                return match self.open(group, |_| false) {
                    Some(pair) => Violation::Entry(group, pair),
                    None => Violation::Hopeless,
                };
            }
        }
        self.overloaded()
    }

    /// A choice of the destination that contributes most to the largest overload.
    fn overloaded(&self) -> Violation {
        let over = |index: usize, most: f64| self.lower.loads[index] / most - 1.0;
        let places = self.model.places.iter().map(|place| (over(place.index, place.most), place.index));
        let worst = places.filter(|(over, _)| *over > TOLERANCE).max_by(|a, b| a.0.total_cmp(&b.0));
        let Some((_, place)) = worst else { return Violation::Nothing };
        let crosses = |link: u32| self.model.fabric.is_at(link, place);
        let mut groups: Vec<(f64, usize)> = Vec::new();
        for (group, parts) in self.model.groups.iter().enumerate() {
            let paths = parts
                .iter()
                .flat_map(|&part| self.model.parts[part].ends.iter().zip(&self.lower.trees[part].paths));
            let crossing = paths.filter(|(_, path)| path.iter().any(|&link| crosses(link)));
            let load: f64 = crossing.map(|(end, _)| end.bandwidth).sum();
            if load > 0.0 {
                groups.push((load, group));
            }
        }
        groups.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let choice = groups.iter().find_map(|&(_, group)| Some((group, self.open(group, crosses)?)));
        choice.map_or(Violation::Hopeless, |(group, pair)| Violation::Entry(group, pair))
    }

    /// Any open choice, preferably one with a price.
    fn any(&self) -> Option<(usize, (u32, u32))> {
        let is_dear = |link: u32| self.node.prices.of(self.model, link, 1.0) > 0.0;
        let mut first = None;
        for group in 0..self.model.groups.len() {
            if let Some(pair) = self.open(group, is_dear) {
                if is_dear(pair.1) {
                    return Some((group, pair));
                }
                first = first.or(Some((group, pair)));
            }
        }
        first
    }

    /// An entry forbidden, and forced.
    fn both(&self, group: usize, (link, next): (u32, u32)) -> Vec<Vec<Forbidden>> {
        let mut without = self.node.forbidden.clone();
        let tail = self.model.fabric.tail[next as usize] as usize;
        if self.model.fabric.is_two[tail] && !self.model.fabric.is_host[tail] {
            without[group].turns.push((link, next));
        } else {
            without[group].links.push(next);
        }
        let mut forced = self.node.forbidden.clone();
        improve::force(self.model, (link, next), &mut forced[group]);
        vec![without, forced]
    }

    /// Forbids a pair of consecutive links for every destination.
    fn without(&self, pair: (u32, u32)) -> Vec<Forbidden> {
        let mut forbidden = self.node.forbidden.clone();
        forbidden.iter_mut().for_each(|forbidden| forbidden.turns.push(pair));
        forbidden
    }
}

/// The common divisor of all costs except the offset; 0 if unknown.
fn grid(model: &Model<'_>) -> f64 {
    let weights = model.problem.rules.weights;
    let weights = [weights.longest_route, weights.total_hops, weights.table_entries];
    for scale in [1.0, 10.0, 100.0, 1000.0] {
        let scaled = weights.map(|weight| weight * scale);
        if scaled.iter().all(|weight| (weight - weight.round()).abs() < 1e-9 && *weight < 1e12) {
            let common = scaled.iter().fold(0_u64, |common, weight| gcd(common, weight.round() as u64));
            return common as f64 / scale;
        }
    }
    0.0
}

impl Ord for Node {
    /// Best-first order: smallest bound, then greatest depth.
    fn cmp(&self, other: &Self) -> Ordering {
        let by_bound = other.bound.total_cmp(&self.bound);
        by_bound.then(self.depth.cmp(&other.depth)).then(self.number.cmp(&other.number))
    }
}

impl PartialOrd for Node {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Node {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Node {}
