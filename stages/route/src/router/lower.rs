//! What no routes can cost less than: links that are contested have prices, and every destination has its cheapest tree under them
//! (Lagrangian relaxation; Held and Karp, "The traveling-salesman problem and minimum spanning trees: part II", 1971).

use super::model::Model;
use super::trees::{self, Ask, Forbidden, Tree, Trees};

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
    pub most_hops: u32,
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
        Self(model.no_loads())
    }

    /// What a link costs for a bandwidth.
    pub(super) fn of(&self, model: &Model<'_>, link: u32, bandwidth: f64) -> f64 {
        let part = |index: usize| match self.0[index] {
            price if price > 0.0 => price / model.most(index) * bandwidth,
            _ => 0.0,
        };
        part(link as usize) + part(model.fabric.head.len() + model.fabric.head[link as usize] as usize)
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
    let hop = model.problem.rules.weights.hops;
    now.trees.resize(model.parts.len(), Tree::default());
    now.loads = model.no_loads();
    now.value = 0.0;
    for (index, graph) in model.parts.iter().enumerate() {
        let is_stale = stale == Stale::All || stale == Stale::One(model.group_of[index]);
        let stays = !is_stale
            && before.is_some_and(|before| {
                model.places.iter().all(|place| {
                    let (old, new) = (before.0[place.index], prices.0[place.index]);
                    old.total_cmp(&new).is_eq() || (new > old && !uses(model, &now.trees[index], place.index))
                })
            });
        if !stays {
            let forbidden = &question.forbidden[model.group_of[index]];
            let price = |link: u32, bandwidth: f64| prices.of(model, link, bandwidth);
            let fixed = &model.fixed[index];
            let upper = trees::cost(graph, &now.trees[index].ways, (hop, fixed), price);
            let ask = Ask { hop, fixed, most_hops: question.most_hops, forbidden, upper };
            now.trees[index] = match search.solve(graph, &ask, price) {
                Some(tree) => tree,
                None => search.solve(graph, &Ask { upper: f64::INFINITY, ..ask }, price)?,
            };
        }
        now.value += now.trees[index].cost;
        model.load(&mut now.loads, graph, &now.trees[index].ways, 1.0);
    }
    now.value -= model.places.iter().map(|place| prices.0[place.index]).sum::<f64>() * (1.0 + 1e-9);
    Some(())
}

fn uses(model: &Model<'_>, tree: &Tree, place: usize) -> bool {
    let links = model.fabric.head.len();
    let mut taken = tree.ways.iter().flatten();
    taken.any(|&link| link as usize == place || links + model.fabric.head[link as usize] as usize == place)
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
        let forbidden = &question.forbidden[model.group_of[index]];
        let fixed = &model.fixed[index];
        let most_hops = question.most_hops;
        let ask = Ask { hop: 0.0, fixed, most_hops, forbidden, upper: f64::INFINITY };
        match trees.alone(graph, &ask, &|link, bandwidth| prices.of(model, link, bandwidth)) {
            Some(costs) => needed += costs.iter().sum::<f64>(),
            None => return false,
        }
    }
    needed > there * (1.0 + 1e-6) + 1e-9
}
