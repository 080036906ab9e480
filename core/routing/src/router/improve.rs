//! Converts trees to routes that respect capacities: destinations that cross overloaded links get another tree, then every
//! destination gets the best tree that the others leave room for.

use hopmap_random::{Draw, Pcg64, SeedableRng};

use super::lower::{self, Ask, Forbidden, Prices, Trees};
use super::model::Model;
use crate::engine::StopCondition;
use crate::problem::TOLERANCE;

/// Rounds of rerouting while links are overloaded.
const ROUNDS: usize = 12;
/// Rounds within which the overload has to decrease.
const MAX_STALLED_ROUNDS: usize = 3;
/// Rounds of improving the tree of every destination.
const IMPROVEMENT_ROUNDS: usize = 3;
/// Number of destinations that are rerouted together.
const DESTINATIONS_PER_PERTURBATION: usize = 4;
/// Maximum number of such rerouting attempts.
const MAX_PERTURBATIONS: usize = 20_000;
/// Maximum number of contradictions of a tree that are repaired one by one.
const MAX_REPAIRS: usize = 12;

/// Routes of all flows, by part and flow, and their loads.
#[derive(Debug, Clone, Default)]
pub(super) struct RoutingState {
    pub paths: Vec<Vec<Vec<u32>>>,
    pub loads: Vec<f64>,
}

impl RoutingState {
    pub(super) fn new(model: &Model<'_>, paths: Vec<Vec<Vec<u32>>>) -> Self {
        let mut loads = model.fabric.no_loads();
        for (graph, paths) in model.parts.iter().zip(&paths) {
            model.load(&mut loads, graph, paths, 1.0);
        }
        Self { paths, loads }
    }

    /// The route of every flow of the problem.
    pub(super) fn by_flow(&self, model: &Model<'_>) -> Vec<Vec<u32>> {
        let mut paths = vec![Vec::new(); model.problem.flows.len()];
        for (graph, of_part) in model.parts.iter().zip(&self.paths) {
            for (end, path) in graph.ends.iter().zip(of_part) {
                paths[end.flow as usize].clone_from(path);
            }
        }
        paths
    }

    /// Cost of lengths and entries of a destination.
    fn cost(&self, model: &Model<'_>, group: usize) -> f64 {
        let weights = model.problem.rules.weights;
        let mut entries = std::collections::BTreeSet::new();
        let mut hops = 0;
        for path in model.groups[group].iter().flat_map(|&part| &self.paths[part]) {
            hops += path.len();
            entries.extend(path.iter().take(path.len().saturating_sub(1)).map(|&link| model.state(link)));
        }
        weights.total_hops * hops as f64 + weights.table_entries * entries.len() as f64
    }

    fn is_over(&self, model: &Model<'_>, index: usize) -> bool {
        self.loads[index] > model.fabric.most(index) * (1.0 + TOLERANCE)
    }

    /// The links of the routes to a destination.
    fn links<'s>(&'s self, model: &'s Model<'_>, group: usize) -> impl Iterator<Item = u32> + 's {
        model.groups[group].iter().flat_map(|&part| &self.paths[part]).flatten().copied()
    }

    /// Whether a route to a destination crosses an overloaded link.
    fn is_contested(&self, model: &Model<'_>, group: usize) -> bool {
        let is_over = |link: u32| {
            self.is_over(model, link as usize) || self.is_over(model, model.fabric.place_of_head(link))
        };
        self.links(model, group).any(is_over)
    }

    /// The routes of some parts.
    fn paths_of(&self, parts: &[usize]) -> Vec<Vec<Vec<u32>>> {
        parts.iter().map(|&part| self.paths[part].clone()).collect()
    }

    /// Restores the routes of some parts.
    fn restore(&mut self, model: &Model<'_>, parts: &[usize], paths: Vec<Vec<Vec<u32>>>) {
        for (&part, paths) in parts.iter().zip(paths) {
            self.unroute(model, part);
            self.put(model, part, paths);
        }
    }

    fn unroute(&mut self, model: &Model<'_>, part: usize) {
        model.load(&mut self.loads, &model.parts[part], &self.paths[part], -1.0);
        self.paths[part].clear();
    }

    fn put(&mut self, model: &Model<'_>, part: usize, paths: Vec<Vec<u32>>) {
        model.load(&mut self.loads, &model.parts[part], &paths, 1.0);
        self.paths[part] = paths;
    }
}

/// A link of a route and its predecessor, if another route to the same destination continues differently from the same table.
pub(super) fn contradiction<'w>(
    model: &Model<'_>,
    paths: impl Iterator<Item = &'w Vec<u32>>,
) -> Option<(u32, u32)> {
    let mut known = std::collections::BTreeMap::new();
    for pair in paths.flat_map(|path| path.windows(2)) {
        if *known.entry(model.state(pair[0])).or_insert(pair[1]) != pair[1] {
            return Some((pair[0], pair[1]));
        }
    }
    None
}

/// Forbids all successors of a link but one.
pub(super) fn force(model: &Model<'_>, (link, next): (u32, u32), forbidden: &mut Forbidden) {
    let node = model.fabric.tail[next as usize];
    let others = model.fabric.leaving(node).iter().copied().filter(|&other| other != next);
    if link != u32::MAX && model.fabric.is_two[node as usize] {
        forbidden.turns.extend(others.map(|other| (link, other)));
    } else {
        forbidden.links.extend(others);
    }
}

/// Computes the trees of a destination; false and unchanged if there are none. `price` is the cost of a link for a bandwidth, in
/// addition to the cost of loads.
fn route(
    model: &Model<'_>,
    trees: &mut Trees,
    routing_state: &mut RoutingState,
    (group, max_hops): (usize, u32),
    price: &dyn Fn(&[f64], u32, f64) -> f64,
) -> bool {
    let parts = &model.groups[group];
    let old = routing_state.paths_of(parts);
    parts.iter().for_each(|&part| routing_state.unroute(model, part));
    let mut forbidden = Forbidden::default();
    let mut is_routed = true;
    for (&part, old) in parts.iter().zip(&old) {
        let Some(paths) = tree(model, trees, routing_state, (part, max_hops, old), &mut forbidden, price)
        else {
            is_routed = false;
            break;
        };
        if parts.len() > 1 {
            // Later parts follow the tables so far.
            paths
                .iter()
                .flat_map(|path| path.windows(2))
                .for_each(|pair| force(model, (pair[0], pair[1]), &mut forbidden));
        }
        routing_state.put(model, part, paths);
    }
    if !is_routed {
        routing_state.restore(model, parts, old);
    }
    is_routed
}

/// A tree of a part that agrees with the tables.
fn tree(
    model: &Model<'_>,
    search: &mut Trees,
    routing_state: &RoutingState,
    (part, max_hops, old): (usize, u32, &[Vec<u32>]),
    forbidden: &mut Forbidden,
    price: &dyn Fn(&[f64], u32, f64) -> f64,
) -> Option<Vec<Vec<u32>>> {
    let graph = &model.parts[part];
    for _ in 0..MAX_REPAIRS {
        let hop = model.problem.rules.weights.total_hops;
        let price = |link: u32, bandwidth: f64| price(&routing_state.loads, link, bandwidth);
        let upper = lower::cost(graph, old, (hop, &graph.fixed), price);
        let ask = Ask { hop, fixed: &graph.fixed, max_hops, forbidden, upper };
        let tree = search.cheapest(graph, &ask, price)?;
        let simple = tree.paths.iter().all(|path| model.is_simple(path));
        match contradiction(model, tree.paths.iter()) {
            Some(pair) => force(model, pair, forbidden),
            None if simple => return Some(tree.paths),
            None => return None,
        }
    }
    None
}

/// Relative overload of a link, and of the switch at its end, with additional bandwidth.
fn overload(model: &Model<'_>, loads: &[f64], link: u32, bandwidth: f64) -> f64 {
    let part = |index: usize| {
        let most = model.fabric.most(index);
        let excess = |load: f64| (load - most * (1.0 + TOLERANCE)).max(0.0);
        if loads[index] + bandwidth <= most * (1.0 + TOLERANCE) {
            0.0
        } else {
            (excess(loads[index] + bandwidth) - excess(loads[index])) / most.max(f64::MIN_POSITIVE)
        }
    };
    part(link as usize) + part(model.fabric.place_of_head(link))
}

/// Cost of a link that must not be overloaded.
fn hard(model: &Model<'_>, loads: &[f64], link: u32, bandwidth: f64) -> f64 {
    if overload(model, loads, link, bandwidth) > 0.0 { f64::INFINITY } else { 0.0 }
}

/// Changes routes until nothing is overloaded; false on failure. `prices` mark contested links.
pub(super) fn repair(
    model: &Model<'_>,
    trees: &mut Trees,
    routing_state: &mut RoutingState,
    max_hops: u32,
    prices: &Prices,
) -> bool {
    let weights = model.problem.rules.weights;
    let unit = weights.total_hops + weights.table_entries + 1e-3 * (1.0 + weights.longest_route);
    let mut pressure = 1.0;
    let mut history = model.fabric.no_loads();
    let mut worst = f64::INFINITY;
    for round in 0..ROUNDS {
        let mut is_contested = false;
        for group in 0..model.groups.len() {
            let paths = model.groups[group].iter().flat_map(|&part| &routing_state.paths[part]);
            let is_wrong = round == 0
                && (contradiction(model, paths.clone()).is_some()
                    || paths.clone().any(|path| !model.is_simple(path)));
            if !is_wrong && !routing_state.is_contested(model, group) {
                continue;
            }
            is_contested = true;
            let price = |loads: &[f64], link: u32, bandwidth: f64| {
                let before = history[link as usize] * bandwidth / model.fabric.most(link as usize);
                let before = if before.is_finite() { before } else { 0.0 };
                0.3 * prices.of(model, link, bandwidth)
                    + unit * (pressure * overload(model, loads, link, bandwidth) * 10.0 + before)
            };
            if !route(model, trees, routing_state, (group, max_hops), &price) && is_wrong {
                return false;
            }
        }
        if !is_contested {
            return true;
        }
        let mut excess = 0.0;
        for place in &model.places {
            if routing_state.is_over(model, place.index) {
                excess += routing_state.loads[place.index] / place.most - 1.0;
                history[place.index] += 1.0;
            }
        }
        // No progress over these rounds: give up.
        if round >= MAX_STALLED_ROUNDS && excess > 0.7 * worst {
            return false;
        }
        worst = if round % MAX_STALLED_ROUNDS == 0 { excess } else { worst };
        pressure *= 2.0;
    }
    false
}

/// Gives every destination the best tree that the others leave room for, until none improves.
pub(super) fn descend(
    model: &Model<'_>,
    trees: &mut Trees,
    routing_state: &mut RoutingState,
    max_hops: u32,
    stop: &StopCondition<'_>,
) {
    let price = |loads: &[f64], link: u32, bandwidth: f64| hard(model, loads, link, bandwidth);
    for _ in 0..IMPROVEMENT_ROUNDS {
        let mut is_better = false;
        for group in 0..model.groups.len() {
            if stop.is_over(0) {
                return;
            }
            let before = routing_state.cost(model, group);
            let old = routing_state.paths_of(&model.groups[group]);
            let changed = route(model, trees, routing_state, (group, max_hops), &price);
            let gain = before - routing_state.cost(model, group);
            // Flows that cross a link separately may overload it together.
            let is_kept = !routing_state.is_contested(model, group) && keeps_order(model, routing_state);
            let is_worth = gain > 1e-9 * before.abs() && is_kept;
            if changed && !is_worth {
                routing_state.restore(model, &model.groups[group], old);
            } else {
                is_better |= is_worth;
            }
        }
        if !is_better {
            return;
        }
    }
}

/// Reroutes groups of destinations that share expensive links, in another order and under other prices. Keeps results that cost
/// no more; ends after a fixed amount of work.
pub(super) fn perturb(
    model: &Model<'_>,
    trees: &mut Trees,
    routing_state: &mut RoutingState,
    (max_hops, work): (u32, u64),
    prices: &Prices,
    stop: &StopCondition<'_>,
) {
    let dear: Vec<usize> =
        model.places.iter().map(|place| place.index).filter(|&index| prices.0[index] > 0.0).collect();
    let mut random = Pcg64::from_seed(hopmap_model::seed_stream("route/router", 1, 0));
    let mut below = |bound: usize| random.index(bound);
    let end = trees.work + work;
    for _ in 0..MAX_PERTURBATIONS {
        if trees.work > end || dear.is_empty() || stop.is_over(0) {
            return;
        }
        let place = dear[below(dear.len())];
        let crosses =
            |&group: &usize| routing_state.links(model, group).any(|link| model.fabric.is_at(link, place));
        let mut groups: Vec<usize> = (0..model.groups.len()).filter(crosses).collect();
        for at in (1..groups.len()).rev() {
            groups.swap(at, below(at + 1));
        }
        groups.truncate(DESTINATIONS_PER_PERTURBATION);
        let part = below(4) as f64 / 2.0;
        reroute(model, trees, routing_state, (&groups, max_hops), &|link, bandwidth| {
            part * prices.of(model, link, bandwidth)
        });
    }
}

/// Reroutes destinations in turn, and each once more; keeps the result if it costs no more than before.
fn reroute(
    model: &Model<'_>,
    trees: &mut Trees,
    routing_state: &mut RoutingState,
    (groups, max_hops): (&[usize], u32),
    dear: &dyn Fn(u32, f64) -> f64,
) {
    let cost = |routing_state: &RoutingState| {
        groups.iter().map(|&group| routing_state.cost(model, group)).sum::<f64>()
    };
    let before = cost(routing_state);
    let parts: Vec<usize> = groups.iter().flat_map(|&group| model.groups[group].iter().copied()).collect();
    let old = routing_state.paths_of(&parts);
    parts.iter().for_each(|&part| routing_state.unroute(model, part));
    let hard = |loads: &[f64], link: u32, bandwidth: f64| hard(model, loads, link, bandwidth);
    let first =
        |loads: &[f64], link: u32, bandwidth: f64| hard(loads, link, bandwidth) + dear(link, bandwidth);
    let is_routed = groups.iter().all(|&group| route(model, trees, routing_state, (group, max_hops), &first))
        && groups.iter().all(|&group| route(model, trees, routing_state, (group, max_hops), &hard));
    let is_kept = is_routed
        && cost(routing_state) <= before + 1e-9 * before.abs()
        && !groups.iter().any(|&group| routing_state.is_contested(model, group))
        && keeps_order(model, routing_state);
    if !is_kept {
        routing_state.restore(model, &parts, old);
    }
}

/// Whether no cycle of waiting links exists, if that is required.
fn keeps_order(model: &Model<'_>, routing_state: &RoutingState) -> bool {
    let paths = routing_state.paths.iter().flatten().map(Vec::as_slice);
    !model.problem.rules.deadlock_free || crate::network::cycle(model.fabric.head.len(), paths).is_empty()
}
