//! What no routes can cost less than: links that are contested have prices, and every destination has its cheapest tree under them
//! (Lagrangian relaxation; Held and Karp, "The traveling-salesman problem and minimum spanning trees: part II", 1971).
//!
//! A tree is found by dynamic programming over sets of flows that grow together on their way (Dreyfus and Wagner, "The Steiner problem
//! in graphs", 1971), where a link costs what it costs for all that take it. It costs no more than any routes that agree with tables, and may
//! itself contradict a table: two sets of flows can pass a switch apart from each other. Who needs tables looks at that.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::model::{FAR, Graph, Model};

/// Steps without a better bound before steps get shorter.
const PATIENCE: u32 = 4;
/// Steps shorter than this part of the first ones do not help any more.
const SHORTEST_STEP: f64 = 0.02;
/// Steps between looks whether the prices prove that there are no routes.
const LOOK: u32 = 4;

/// What is asked for.
#[derive(Clone, Copy)]
pub(super) struct Question<'a> {
    /// Most hops of a route.
    pub max_hops: u32,
    /// What is forbidden, by destination.
    pub forbidden: &'a [Forbidden],
    /// Nothing that costs as much is asked for.
    pub cutoff: f64,
    /// Most steps.
    pub steps: u32,
    /// The trees under the first prices; empty if they are not known.
    pub start: &'a [Tree],
    /// The destinations to which that does not apply, because something else was forbidden.
    pub stale: Stale,
}

/// Destinations for which something was forbidden since trees were found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stale {
    /// All.
    All,
    /// One.
    One(usize),
}

/// A bound, and the trees of which it is made.
#[derive(Debug, Clone, Default)]
pub(super) struct Lower {
    /// Lengths and entries of routes cost no less.
    pub value: f64,
    /// The tree of every part under the prices.
    pub trees: Vec<Tree>,
    /// What links and nodes carry of them.
    pub loads: Vec<f64>,
}

/// Prices of contested places, by index of link and node, for what they can carry as a whole.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Prices(pub Vec<f64>);

impl Prices {
    /// Nothing is dear.
    pub(super) fn zero(model: &Model<'_>) -> Self {
        Self(model.fabric.no_loads())
    }

    /// What a link costs for a bandwidth.
    pub(super) fn of(&self, model: &Model<'_>, link: u32, bandwidth: f64) -> f64 {
        let part = |index: usize| match self.0[index] {
            price if price > 0.0 => price / model.fabric.most(index) * bandwidth,
            _ => 0.0,
        };
        part(link as usize) + part(model.fabric.place_of_head(link))
    }
}

/// The best bound that some steps find, with the prices that give it; nothing if there are no routes. `look` sees the trees of every step
/// and answers with the cutoff.
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

/// Finds the trees under prices. Those stay as they are that got dearer nowhere, while nothing else got cheaper.
fn relax(
    model: &Model<'_>,
    search: &mut Trees,
    question: &Question<'_>,
    (prices, before, stale): (&Prices, Option<&Prices>, Stale),
    now: &mut Lower,
) -> Option<()> {
    let hop = model.problem.rules.weights.total_hops;
    let uses =
        |tree: &Tree, place: usize| tree.ways.iter().flatten().any(|&link| model.fabric.is_at(link, place));
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
            let upper = cost(graph, &now.trees[index].ways, (hop, fixed), price);
            let ask = Ask { hop, fixed, max_hops: question.max_hops, forbidden, upper };
            now.trees[index] = search.cheapest(graph, &ask, price)?;
        }
        now.value += now.trees[index].cost;
        model.load(&mut now.loads, graph, &now.trees[index].ways, 1.0);
    }
    now.value -= model.places.iter().map(|place| prices.0[place.index]).sum::<f64>() * (1.0 + 1e-9);
    Some(())
}

/// Moves prices towards where links carry what they can. Nothing moves if trees keep all that is contested.
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

/// Whether prices prove that there are no routes: whatever way flows take, they need more than there is.
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

/// Marks the set of flows that joined others at a link.
const JOINED: u32 = 1 << 31;
/// Nothing before: a route begins.
const BEGIN: u32 = JOINED - 1;
/// Part of a cost by which it may exceed a known one: rounding.
const ROUNDING: f64 = 1e-9;

/// What is asked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ask<'a> {
    /// What a hop of a flow costs.
    pub hop: f64,
    /// What each link costs, whatever takes it.
    pub fixed: &'a [f64],
    /// Most hops of a route that every link of it can be part of.
    pub max_hops: u32,
    /// Links, by their number in the machine, that nothing may take, and pairs of which the second may not follow the first.
    pub forbidden: &'a Forbidden,
    /// A cost that is known to be possible.
    pub upper: f64,
}

/// Links that nothing may take, and pairs of which the second may not follow the first.
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
    pub ways: Vec<Vec<u32>>,
}

/// Finds trees; buffers are used again.
#[derive(Debug, Clone, Default)]
pub(super) struct Trees {
    /// By set of flows and link: the cost when they are all at its beginning, and where they come from. The last column is the
    /// destination.
    cost: Vec<f64>,
    back: Vec<u32>,
    /// By flow and link: what a flow costs alone from the beginning of the link on.
    alone: Vec<f64>,
    blocked: Vec<bool>,
    queue: BinaryHeap<(Reverse<u64>, Reverse<u32>)>,
    /// Links that were looked at.
    pub work: u64,
}

impl Trees {
    /// The cheapest tree, first among those that cost no more than is known to be possible.
    pub(super) fn cheapest(
        &mut self,
        graph: &Graph,
        ask: &Ask<'_>,
        price: impl Fn(u32, f64) -> f64,
    ) -> Option<Tree> {
        let tree = self.solve(graph, ask, &price);
        tree.or_else(|| self.solve(graph, &Ask { upper: f64::INFINITY, ..*ask }, &price))
    }

    /// The cheapest tree, if it does not cost more than is known to be possible. `price` is what a link costs for a bandwidth, beside
    /// hops; for two bandwidths together no less than for each alone.
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
        (cost < f64::INFINITY).then(|| Tree { cost, ways: self.ways(graph, all) })
    }

    /// What every flow costs alone from every link on; and from its source, if all get to the destination.
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

    /// Whether all flows of a set may take a link.
    fn may_take(&self, graph: &Graph, ask: &Ask<'_>, set: usize, link: u32) -> bool {
        let links = graph.links.len();
        let may = |flow: usize| {
            let shortest = graph.shortest[flow * links + link as usize];
            set >> flow & 1 == 0 || (shortest != FAR && shortest <= ask.max_hops)
        };
        !self.blocked[link as usize] && (0..graph.ends.len()).all(may)
    }

    /// Joins every two sets of flows that make up a set, wherever they meet.
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

    /// Moves a set of flows from link to link.
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

    /// The way of every flow, back from the destination.
    fn ways(&self, graph: &Graph, all: usize) -> Vec<Vec<u32>> {
        let columns = graph.links.len() + 1;
        let mut ways = vec![Vec::new(); graph.ends.len()];
        let mut open = vec![(all, columns - 1)];
        while let Some((set, link)) = open.pop() {
            let back = self.back[set * columns + link];
            if back & JOINED != 0 {
                let part = (back ^ JOINED) as usize;
                open.extend([(part, link), (set ^ part, link)]);
            } else if back != BEGIN {
                let members = ways.iter_mut().enumerate().filter(|(flow, _)| set >> flow & 1 == 1);
                members.for_each(|(_, way)| way.push(graph.links[back as usize]));
                open.push((set, back as usize));
            }
        }
        ways.iter_mut().for_each(|way| way.reverse());
        ways
    }
}

/// What ways of all flows cost, where a link costs what `price` says for all that it carries; infinite for no ways.
pub(super) fn cost(
    graph: &Graph,
    ways: &[Vec<u32>],
    (hop, fixed): (f64, &[f64]),
    price: impl Fn(u32, f64) -> f64,
) -> f64 {
    if ways.len() != graph.ends.len() || ways.iter().any(Vec::is_empty) {
        return f64::INFINITY;
    }
    let mut carried: Vec<(u32, f64)> = Vec::new();
    for (end, way) in graph.ends.iter().zip(ways) {
        carried.extend(way.iter().map(|&link| (link, end.bandwidth)));
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
