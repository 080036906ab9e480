//! Lower bounds: contested links have prices, and every destination has its cheapest tree under them (Lagrangian relaxation; Held
//! and Karp, "The traveling-salesman problem and minimum spanning trees: part II", 1971).
//!
//! A tree is found by dynamic programming over sets of flows that merge on their routes (Dreyfus and Wagner, "The Steiner problem
//! in graphs", 1971); the cost of a link does not depend on the number of flows in a set. The tree costs no more than any routes
//! that agree with tables. It may contradict a table, because two sets of flows can pass a switch separately; the caller checks
//! that.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::model::{FAR, Graph, Model};

/// Steps without improvement before the step length is reduced.
const PATIENCE: u32 = 4;
/// Relative step length at which the search ends.
const SHORTEST_STEP: f64 = 0.02;
/// Steps between checks whether the prices prove infeasibility.
const LOOK: u32 = 4;

/// The task of a bound.
#[derive(Clone, Copy)]
pub(super) struct Question<'a> {
    /// Maximum hops of a route.
    pub max_hops: u32,
    /// Forbidden links, by destination.
    pub forbidden: &'a [Forbidden],
    /// Cutoff: nothing that costs as much is sought.
    pub cutoff: f64,
    /// Maximum number of steps.
    pub steps: u32,
    /// The trees under the initial prices; empty if unknown.
    pub start: &'a [Tree],
    /// The destinations for which these trees are invalid, because more was forbidden.
    pub stale: Stale,
}

/// Destinations whose restrictions changed since the trees were found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stale {
    /// All.
    All,
    /// One.
    One(usize),
}

/// A lower bound and its trees.
#[derive(Debug, Clone, Default)]
pub(super) struct Lower {
    /// Lower bound of the cost of lengths and entries.
    pub value: f64,
    /// The tree of every part under the prices.
    pub trees: Vec<Tree>,
    /// Their loads of links and nodes.
    pub loads: Vec<f64>,
}

/// Prices of contested places by index of link and node, each for its full capacity.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Prices(pub Vec<f64>);

impl Prices {
    /// All prices are zero.
    pub(super) fn zero(model: &Model<'_>) -> Self {
        Self(model.fabric.no_loads())
    }

    /// The price of a link for a bandwidth.
    pub(super) fn of(&self, model: &Model<'_>, link: u32, bandwidth: f64) -> f64 {
        let part = |index: usize| match self.0[index] {
            price if price > 0.0 => price / model.fabric.most(index) * bandwidth,
            _ => 0.0,
        };
        part(link as usize) + part(model.fabric.place_of_head(link))
    }
}

/// The best bound within the step limit, with its prices; none if infeasible. `look` receives the trees of every step and returns
/// the cutoff.
pub(super) fn bound(
    model: &Model<'_>,
    trees: &mut Trees,
    question: &Question<'_>,
    prices: &mut Prices,
    look: &mut dyn FnMut(&mut Trees, &Lower) -> f64,
) -> Option<Lower> {
    let mut now = Lower { trees: question.start.to_vec(), ..Lower::default() };
    let mut best = Lower { value: f64::NEG_INFINITY, ..Lower::default() };
    let mut best_prices = prices.clone();
    let (mut stride, mut idle, mut cutoff) = (1.0, 0, question.cutoff);
    let mut solved = (!question.start.is_empty()).then(|| prices.clone());
    let mut stale = question.stale;
    for step in 0..question.steps.max(1) {
        relax(model, trees, question, (prices, solved.as_ref(), stale), &mut now)?;
        solved = Some(prices.clone());
        stale = Stale::One(usize::MAX);
        if best.trees.is_empty() || now.value > best.value + 1e-9 * best.value.abs() {
            best.clone_from(&now);
            best_prices.clone_from(prices);
            idle = 0;
        } else {
            idle += 1;
        }
        cutoff = cutoff.min(look(trees, &now));
        if idle > PATIENCE {
            (idle, stride) = (0, stride * 0.6);
        }
        let is_ripe = step % LOOK == LOOK - 1 && cutoff.is_infinite();
        if is_ripe && is_impossible(model, trees, question, prices) {
            return None;
        }
        let is_done = stride < SHORTEST_STEP || best.value >= cutoff;
        if is_done || !move_prices(model, &now, prices, stride, cutoff) {
            break;
        }
    }
    *prices = best_prices;
    Some(best)
}

/// Finds the trees under prices. Trees remain valid if none of their links became more expensive and no other link became
/// cheaper.
fn relax(
    model: &Model<'_>,
    search: &mut Trees,
    question: &Question<'_>,
    (prices, before, stale): (&Prices, Option<&Prices>, Stale),
    now: &mut Lower,
) -> Option<()> {
    let hop = model.problem.rules.weights.total_hops;
    let uses =
        |tree: &Tree, place: usize| tree.paths.iter().flatten().any(|&link| model.fabric.is_at(link, place));
    now.trees.resize(model.parts.len(), Tree::default());
    now.loads = model.fabric.no_loads();
    now.value = 0.0;
    for (index, graph) in model.parts.iter().enumerate() {
        let is_stale = stale == Stale::All || stale == Stale::One(model.group_of[index]);
        let stays = !is_stale
            && before.is_some_and(|before| {
                model.places.iter().all(|place| {
                    let (old, new) = (before.0[place.index], prices.0[place.index]);
                    old.total_cmp(&new).is_eq() || (new > old && !uses(&now.trees[index], place.index))
                })
            });
        if !stays {
            let forbidden = &question.forbidden[model.group_of[index]];
            let price = |link: u32, bandwidth: f64| prices.of(model, link, bandwidth);
            let fixed = &model.fixed[index];
            let upper = cost(graph, &now.trees[index].paths, (hop, fixed), price);
            let ask = Ask { hop, fixed, max_hops: question.max_hops, forbidden, upper };
            now.trees[index] = search.cheapest(graph, &ask, price)?;
        }
        now.value += now.trees[index].cost;
        model.load(&mut now.loads, graph, &now.trees[index].paths, 1.0);
    }
    now.value -= model.places.iter().map(|place| prices.0[place.index]).sum::<f64>() * (1.0 + 1e-9);
    Some(())
}

/// Moves prices along the subgradient. Nothing moves if the trees respect all contested capacities.
fn move_prices(model: &Model<'_>, now: &Lower, prices: &mut Prices, stride: f64, cutoff: f64) -> bool {
    let over = |index: usize, most: f64| now.loads[index] / most - 1.0;
    let mut norm = 0.0;
    for place in &model.places {
        let over = over(place.index, place.most);
        if over > 0.0 || prices.0[place.index] > 0.0 {
            norm += over * over;
        }
    }
    if norm < 1e-12 {
        return false;
    }
    let target = if cutoff.is_finite() { cutoff } else { now.value + 0.1 * now.value.abs().max(1.0) };
    let length = stride * (target - now.value).max(1e-3 * now.value.abs().max(1e-3)) / norm;
    for place in &model.places {
        let price = &mut prices.0[place.index];
        *price = (*price + length * over(place.index, place.most)).max(0.0);
    }
    true
}

/// Whether prices prove infeasibility: on all routes, flows need more than the capacity.
fn is_impossible(model: &Model<'_>, trees: &mut Trees, question: &Question<'_>, prices: &Prices) -> bool {
    let there: f64 = model.places.iter().map(|place| prices.0[place.index]).sum();
    let mut needed = 0.0;
    for (index, graph) in model.parts.iter().enumerate() {
        let (forbidden, fixed) = (&question.forbidden[model.group_of[index]], &model.fixed[index]);
        let ask = Ask { hop: 0.0, fixed, max_hops: question.max_hops, forbidden, upper: f64::INFINITY };
        match trees.alone(graph, &ask, &|link, bandwidth| prices.of(model, link, bandwidth)) {
            Some(costs) => needed += costs.iter().sum::<f64>(),
            None => return false,
        }
    }
    needed > there * (1.0 + 1e-6) + 1e-9
}

/// Marks the set of flows that merged with others at a link.
const JOINED: u32 = 1 << 31;
/// No predecessor: the start of a route.
const BEGIN: u32 = JOINED - 1;
/// Relative tolerance over a known cost: rounding.
const ROUNDING: f64 = 1e-9;

/// The task of a tree search.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ask<'a> {
    /// Cost of a hop of a flow.
    pub hop: f64,
    /// Fixed cost of each link.
    pub fixed: &'a [f64],
    /// Maximum hops of a route through each link.
    pub max_hops: u32,
    /// Forbidden links, by their number in the machine, and forbidden pairs of consecutive links.
    pub forbidden: &'a Forbidden,
    /// A cost known to be attainable.
    pub upper: f64,
}

/// Forbidden links, and forbidden pairs of consecutive links.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Forbidden {
    pub links: Vec<u32>,
    pub turns: Vec<(u32, u32)>,
}

/// A tree.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Tree {
    pub cost: f64,
    /// The links of every flow, by their number in the machine.
    pub paths: Vec<Vec<u32>>,
}

/// Finds trees, with reusable buffers.
#[derive(Debug, Clone, Default)]
pub(super) struct Trees {
    /// By set of flows and link: the cost when all are at its start, and the predecessor. The last column is the destination.
    cost: Vec<f64>,
    back: Vec<u32>,
    /// By flow and link: the cost of the flow alone from the start of the link.
    alone: Vec<f64>,
    blocked: Vec<bool>,
    queue: BinaryHeap<(Reverse<u64>, Reverse<u32>)>,
    /// Number of examined links.
    pub work: u64,
}

impl Trees {
    /// The cheapest tree; the first search is limited to the known attainable cost.
    pub(super) fn cheapest(
        &mut self,
        graph: &Graph,
        ask: &Ask<'_>,
        price: impl Fn(u32, f64) -> f64,
    ) -> Option<Tree> {
        let tree = self.solve(graph, ask, &price);
        tree.or_else(|| self.solve(graph, &Ask { upper: f64::INFINITY, ..*ask }, &price))
    }

    /// The cheapest tree, if it costs at most the known attainable cost. `price` is the cost of a link for a bandwidth, in
    /// addition to hops; it must be superadditive: no less for two bandwidths together than for each alone.
    fn solve(&mut self, graph: &Graph, ask: &Ask<'_>, price: &impl Fn(u32, f64) -> f64) -> Option<Tree> {
        let (flows, links) = (graph.ends.len(), graph.links.len());
        let at_least = self.alone(graph, ask, price)?;
        let columns = links + 1;
        self.cost.clear();
        self.cost.resize((1 << flows) * columns, f64::INFINITY);
        self.back.clear();
        self.back.resize((1 << flows) * columns, BEGIN);
        self.work += (columns as u64) << flows >> 4;
        let upper = ask.upper + ask.upper.abs() * ROUNDING + ROUNDING;
        for set in 1..1_usize << flows {
            if set.is_power_of_two() {
                let flow = set.trailing_zeros() as usize;
                for &link in &graph.first[flow] {
                    if self.may_take(graph, ask, set, link) {
                        self.cost[set * columns + link as usize] = 0.0;
                    }
                }
            }
            self.join(set, columns);
            let others: f64 = (0..flows).filter(|flow| set >> flow & 1 == 0).map(|flow| at_least[flow]).sum();
            self.move_on(graph, ask, (set, upper - others), price);
        }
        let all = (1 << flows) - 1;
        let cost = self.cost[all * columns + links];
        (cost < f64::INFINITY).then(|| Tree { cost, paths: self.paths(graph, all) })
    }

    /// The cost of every flow alone from every link; and from its source, if all flows reach the destination.
    pub(super) fn alone(
        &mut self,
        graph: &Graph,
        ask: &Ask<'_>,
        price: &impl Fn(u32, f64) -> f64,
    ) -> Option<Vec<f64>> {
        let links = graph.links.len();
        self.blocked.clear();
        self.blocked.extend(graph.links.iter().map(|link| ask.forbidden.links.contains(link)));
        self.alone.clear();
        self.alone.resize(graph.ends.len() * links, f64::INFINITY);
        let mut costs = Vec::with_capacity(graph.ends.len());
        for (flow, end) in graph.ends.iter().enumerate() {
            let row = flow * links;
            let cost = |link: usize| ask.hop + price(graph.links[link], end.bandwidth);
            self.queue.clear();
            for link in (0..links).filter(|&link| graph.arrives[link]) {
                self.reach_alone(graph, ask, (flow, link), cost(link));
            }
            while let Some((Reverse(key), Reverse(link))) = self.queue.pop() {
                let from = f64::from_bits(key);
                if from > self.alone[row + link as usize] {
                    continue;
                }
                self.work += 1;
                for &before in &graph.before[link as usize] {
                    if !is_turn_forbidden(graph, ask, before, link) {
                        self.reach_alone(graph, ask, (flow, before as usize), from + cost(before as usize));
                    }
                }
            }
            let first = graph.first[flow].iter().map(|&link| self.alone[row + link as usize]);
            costs.push(first.fold(f64::INFINITY, f64::min));
        }
        costs.iter().all(|cost| cost.is_finite()).then_some(costs)
    }

    fn reach_alone(&mut self, graph: &Graph, ask: &Ask<'_>, (flow, link): (usize, usize), cost: f64) {
        let at = flow * graph.links.len() + link;
        if cost < self.alone[at] && !self.blocked[link] && graph.shortest[at] <= ask.max_hops {
            self.alone[at] = cost;
            self.queue.push((Reverse(cost.to_bits()), Reverse(link as u32)));
        }
    }

    /// Whether all flows of a set may use a link.
    fn may_take(&self, graph: &Graph, ask: &Ask<'_>, set: usize, link: u32) -> bool {
        let links = graph.links.len();
        let may = |flow: usize| {
            let shortest = graph.shortest[flow * links + link as usize];
            set >> flow & 1 == 0 || (shortest != FAR && shortest <= ask.max_hops)
        };
        !self.blocked[link as usize] && (0..graph.ends.len()).all(may)
    }

    /// Merges every two sets of flows that make up a set, wherever they meet.
    fn join(&mut self, set: usize, columns: usize) {
        let lowest = set & set.wrapping_neg();
        let (before, from_here) = self.cost.split_at_mut(set * columns);
        let backs = &mut self.back[set * columns..(set + 1) * columns];
        let mut part = (set - 1) & set;
        while part > 0 {
            if part & lowest != 0 {
                let one = &before[part * columns..(part + 1) * columns];
                let other = &before[(set ^ part) * columns..(set ^ part) * columns + columns];
                for (((sum, back), one), other) in from_here.iter_mut().zip(&mut *backs).zip(one).zip(other) {
                    if one + other < *sum {
                        *sum = one + other;
                        *back = JOINED | part as u32;
                    }
                }
                self.work += columns as u64 / 32;
            }
            part = (part - 1) & set;
        }
    }

    /// Propagates a set of flows from link to link.
    fn move_on(
        &mut self,
        graph: &Graph,
        ask: &Ask<'_>,
        (set, upper): (usize, f64),
        price: &impl Fn(u32, f64) -> f64,
    ) {
        let (links, flows) = (graph.links.len(), graph.ends.len());
        let row = set * (links + 1);
        let members: Vec<usize> = (0..flows).filter(|flow| set >> flow & 1 == 1).collect();
        let bandwidth: f64 = members.iter().map(|&flow| graph.ends[flow].bandwidth).sum();
        let hops = ask.hop * members.len() as f64;
        self.queue.clear();
        for link in 0..links {
            let cost = self.cost[row + link];
            if cost < f64::INFINITY {
                self.queue.push((Reverse(cost.to_bits()), Reverse(link as u32)));
            }
        }
        while let Some((Reverse(key), Reverse(link))) = self.queue.pop() {
            let from = f64::from_bits(key);
            if from > self.cost[row + link as usize] {
                continue;
            }
            self.work += 1;
            let rest: f64 = members.iter().map(|&flow| self.alone[flow * links + link as usize]).sum();
            if from + rest > upper {
                continue;
            }
            let at = link as usize;
            let cost = from + hops + ask.fixed[at] + price(graph.links[at], bandwidth);
            if graph.arrives[at] && cost < self.cost[row + links] {
                self.cost[row + links] = cost;
                self.back[row + links] = link;
            }
            for &next in &graph.follow[at] {
                if cost < self.cost[row + next as usize]
                    && self.may_take(graph, ask, set, next)
                    && !is_turn_forbidden(graph, ask, link, next)
                {
                    self.cost[row + next as usize] = cost;
                    self.back[row + next as usize] = link;
                    self.queue.push((Reverse(cost.to_bits()), Reverse(next)));
                }
            }
        }
    }

    /// Reconstructs the route of every flow from the destination.
    fn paths(&self, graph: &Graph, all: usize) -> Vec<Vec<u32>> {
        let columns = graph.links.len() + 1;
        let mut paths = vec![Vec::new(); graph.ends.len()];
        let mut open = vec![(all, columns - 1)];
        while let Some((set, link)) = open.pop() {
            let back = self.back[set * columns + link];
            if back & JOINED != 0 {
                let part = (back ^ JOINED) as usize;
                open.extend([(part, link), (set ^ part, link)]);
            } else if back != BEGIN {
                let members = paths.iter_mut().enumerate().filter(|(flow, _)| set >> flow & 1 == 1);
                members.for_each(|(_, path)| path.push(graph.links[back as usize]));
                open.push((set, back as usize));
            }
        }
        paths.iter_mut().for_each(|path| path.reverse());
        paths
    }
}

/// The cost of routes of all flows, where a link costs `price` of its load; infinite without routes.
pub(super) fn cost(
    graph: &Graph,
    paths: &[Vec<u32>],
    (hop, fixed): (f64, &[f64]),
    price: impl Fn(u32, f64) -> f64,
) -> f64 {
    if paths.len() != graph.ends.len() || paths.iter().any(Vec::is_empty) {
        return f64::INFINITY;
    }
    let mut carried: Vec<(u32, f64)> = Vec::new();
    for (end, path) in graph.ends.iter().zip(paths) {
        carried.extend(path.iter().map(|&link| (link, end.bandwidth)));
    }
    let hops = hop * carried.len() as f64;
    carried.sort_by_key(|&(link, _)| link);
    let of_link = |carried: &[(u32, f64)]| {
        let link = carried[0].0;
        let fixed = graph.links.binary_search(&link).map_or(0.0, |at| fixed[at]);
        fixed + price(link, carried.iter().map(|(_, bandwidth)| bandwidth).sum())
    };
    hops + carried.chunk_by(|a, b| a.0 == b.0).map(of_link).sum::<f64>()
}

fn is_turn_forbidden(graph: &Graph, ask: &Ask<'_>, link: u32, next: u32) -> bool {
    !ask.forbidden.turns.is_empty()
        && ask.forbidden.turns.contains(&(graph.links[link as usize], graph.links[next as usize]))
}
