//! The cheapest tree of all flows to one destination: sets of flows grow together on their way (Dreyfus and Wagner, "The Steiner problem
//! in graphs", 1971), where a link costs what it costs for all that take it.
//!
//! What comes out costs no more than any routes that agree with tables. It may itself contradict a table: two sets of flows can pass a
//! switch apart from each other. Who needs tables looks at that.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::fabric::FAR;
use super::graph::Graph;

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
    pub most_hops: u32,
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
    /// The cheapest tree, if it does not cost more than is known to be possible. `price` is what a link costs for a bandwidth, beside
    /// hops; for two bandwidths together no less than for each alone.
    pub(super) fn solve(
        &mut self,
        graph: &Graph,
        ask: &Ask<'_>,
        price: impl Fn(u32, f64) -> f64,
    ) -> Option<Tree> {
        let (flows, links) = (graph.ends.len(), graph.links.len());
        let at_least = self.alone(graph, ask, &price)?;
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
            self.move_on(graph, ask, (set, upper - others), &price);
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
        if cost < self.alone[at] && !self.blocked[link] && graph.shortest[at] <= ask.most_hops {
            self.alone[at] = cost;
            self.queue.push((Reverse(cost.to_bits()), Reverse(link as u32)));
        }
    }

    /// Whether all flows of a set may take a link.
    fn may_take(&self, graph: &Graph, ask: &Ask<'_>, set: usize, link: u32) -> bool {
        let links = graph.links.len();
        let may = |flow: usize| {
            let shortest = graph.shortest[flow * links + link as usize];
            set >> flow & 1 == 0 || (shortest != FAR && shortest <= ask.most_hops)
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
