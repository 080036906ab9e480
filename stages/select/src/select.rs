//! Chooses hosts among the free ones.

use hopmap_model::{Context, SystemGraph};
use hopmap_random::Draw;

use crate::error::{SelectError, check_not_zero};
use crate::greedy::{greedy, min_cut, stream};
use crate::network::{Switches, Tree, Widths};
use crate::params::{Criterion, Method};
use crate::space::{Goal, Host, LevelTree, Space, hosts};

/// Additions up to which `auto` chooses the exact method, and up to which the exact method is allowed: about
/// a second and half a minute.
const MAX_WORK: [u64; 2] = [1 << 30, 1 << 35];
/// Number of hosts up to which `auto` tries branch and bound.
const FEW: usize = 24;
/// Number of random choices for the reported mean.
const RANDOM: u64 = 10;

/// A selection request.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// The free hosts, by ascending index among the hosts with slots.
    pub free: Vec<u32>,
    /// Number of hosts to choose.
    pub count: usize,
    /// Selection criterion.
    pub criterion: Criterion,
    /// Search method.
    pub method: Method,
    /// Seed of the random starts.
    pub seed: u64,
    /// Number of hosts that `greedy` starts from.
    pub starts: u32,
    /// Whether ties between equally near hosts go to those with most slots, rather than to the first of the
    /// machine.
    pub roomy: bool,
}

/// The chosen hosts.
#[derive(Debug, Clone, PartialEq)]
pub struct Selection {
    /// The chosen hosts, by ascending index.
    pub hosts: Vec<u32>,
    /// Value of the criterion: a sum of costs, bytes per second, or a number of switches.
    pub value: f64,
    /// Value of the criterion for the first free hosts.
    pub of_first: f64,
    /// Mean value of the criterion over random choices.
    pub of_random: f64,
    /// Whether the choice is proven optimal.
    pub proven: bool,
    /// Whether the search ended by itself, rather than being stopped.
    pub complete: bool,
}

/// Chooses hosts. The result does not depend on the number of threads, unless the context stops the search.
pub fn select(system: &SystemGraph, request: &Request, cx: &Context<'_>) -> Result<Selection, SelectError> {
    let all = hosts(system);
    let free = request.free.len();
    if request.count > free {
        return Err(SelectError::too_few(request.count as u64, "hosts", free, free as u64));
    }
    check_not_zero("count", Some(request.count as u32))?;
    let evaluator = Evaluator::new(system, &all, request)?;
    let (hosts, proven) = match &evaluator {
        Evaluator::Switches(switches) if switches.work(request.count) > MAX_WORK[1] => {
            return Err(too_hard(request));
        }
        Evaluator::Switches(switches) => (switches.fewest(request.count), true),
        Evaluator::Widths(widths) => widest(system, &all, widths, request, cx)?,
        Evaluator::Distances(space, goal) => {
            let (chosen, proven) = search(space, goal, request, cx)?;
            (space.hosts_of(&chosen), proven)
        }
    };
    let random = |number| {
        let mut hosts = stream(request.seed, (1 << 40) + number).choose(&request.free, request.count);
        hosts.sort_unstable();
        hosts
    };
    let value = |hosts: &[u32]| evaluator.value(&all, hosts);
    Ok(Selection {
        value: value(&hosts),
        of_first: value(&request.free[..request.count]),
        of_random: (0..RANDOM).map(|stream| value(&random(stream))).sum::<f64>() / RANDOM as f64,
        hosts,
        proven,
        complete: proven || !cx.should_stop(),
    })
}

/// Evaluates choices by the criterion.
enum Evaluator {
    Distances(Space, Goal),
    Widths(Widths),
    Switches(Switches),
}

impl Evaluator {
    fn new(system: &SystemGraph, all: &[Host], request: &Request) -> Result<Self, SelectError> {
        let goal: fn(&Space, usize) -> Goal = match request.criterion {
            Criterion::Switches => return Ok(Self::Switches(Switches::new(system, all, &request.free)?)),
            Criterion::BottleneckBandwidth => return Ok(Self::Widths(Widths::new(system)?)),
            Criterion::TotalDistance => |space, _| Goal::total_distance(space),
            Criterion::Cut => Goal::cut,
        };
        let space = Space::new(system, all, &request.free, request.roomy)?;
        let goal = goal(&space, request.count);
        Ok(Self::Distances(space, goal))
    }

    /// The criterion of a choice. Unconnected hosts have a bottleneck of zero.
    fn value(&self, all: &[Host], choice: &[u32]) -> f64 {
        match self {
            Self::Switches(switches) => switches.used(choice) as f64,
            Self::Widths(widths) => widths.widest(all, choice, choice.len()).map_or(0.0, |(width, _)| width),
            Self::Distances(space, goal) => goal.value(space, &space.counts_of(choice)) as f64 / space.scale,
        }
    }
}

/// The number of hosts of each class by the requested method, and whether that is proven optimal.
fn search(
    space: &Space,
    goal: &Goal,
    request: &Request,
    cx: &Context<'_>,
) -> Result<(Vec<i64>, bool), SelectError> {
    let count = request.count;
    let stop = || cx.should_stop();
    let start = (request.seed, request.starts.max(1));
    match (request.method, space.level_tree()) {
        (Method::MinCut, _) => Ok((min_cut(space, count, &stop), false)),
        (Method::Greedy, _) => Ok((greedy(space, goal, count, start, &stop), false)),
        (method, Some(levels)) => {
            let tree = levels.tree(space);
            let work = tree.work(count);
            match method {
                Method::Auto if work > MAX_WORK[0] => Ok((greedy(space, goal, count, start, &stop), false)),
                _ if work > MAX_WORK[1] => Err(too_hard(request)),
                _ => Ok((levels.best(space, goal, count, &tree), true)),
            }
        }
        (method, None) => {
            let known = greedy(space, goal, count, start, &stop);
            if method == Method::Auto && space.classes() > FEW {
                return Ok((known, false));
            }
            match branch_and_bound(space, goal, count, known.clone(), &stop) {
                SearchEnd::Proven(chosen) => Ok((chosen, true)),
                SearchEnd::Stopped(chosen) => Ok((chosen, false)),
                SearchEnd::TooLong if method == Method::Auto => Ok((known, false)),
                SearchEnd::TooLong => Err(too_hard(request)),
            }
        }
    }
}

fn too_hard(request: &Request) -> SelectError {
    let (wanted, free) = (request.count, request.free.len());
    let problem = format!("finding the optimal {wanted} of {free} hosts takes too long");
    SelectError::new(problem, "use method `greedy`, or omit `method`")
}

impl LevelTree {
    /// The tree with the hosts of each class on its leaves, level by level.
    fn tree(&self, space: &Space) -> Tree {
        let count = |groups: &Vec<u32>| groups.iter().max().map_or(0, |&last| last as usize + 1);
        let mut tree = Tree { parent: Vec::new(), own: Vec::new() };
        for (level, groups) in self.groups.iter().enumerate() {
            let (first, next) = (tree.parent.len(), tree.parent.len() + count(groups));
            tree.parent.resize(next, Tree::ROOT);
            tree.own.resize(next, 0);
            if let Some(outer) = self.groups.get(level + 1) {
                for (&group, &parent) in groups.iter().zip(outer) {
                    tree.parent[first + group as usize] = next as u32 + parent;
                }
            }
            if level == 0 {
                let sizes = groups.iter().zip(&space.members);
                sizes.for_each(|(&group, members)| tree.own[group as usize] = members.len() as u32);
            }
        }
        tree
    }

    /// The best choice of `count` hosts. Both sums over pairs are sums over the groups of the tree: a group
    /// with k of m hosts chosen counts k (k − 1) / 2 pairs for the distance and k (m − k) for the cut, each
    /// times the cost step of its level.
    fn best(&self, space: &Space, goal: &Goal, count: usize, tree: &Tree) -> Vec<i64> {
        let sizes: Vec<i64> = (0..space.classes()).map(|class| space.size(class)).collect();
        let last = self.costs.len() - 1;
        let groups: Vec<(i64, i64)> = (0..=last)
            .flat_map(|level| {
                let step = if goal.is_cut && level == last { 0 } else { self.step(level) };
                self.sums(level, &sizes).into_iter().map(move |size| (step, size))
            })
            .collect();
        let cost = |node: usize, k: i64| match groups[node] {
            (step, size) if goal.is_cut => step * k * (size - k),
            (step, _) => -step * (k * (k - 1) / 2),
        };
        let chosen = tree.solve(count, cost).choice(tree.parent.len() - 1);
        // Classes are the groups of level 0.
        self.groups[0].iter().map(|&group| chosen[group as usize]).collect()
    }
}

/// Of the groups connected at the largest width, the hosts with the smallest total distance.
fn widest(
    system: &SystemGraph,
    all: &[Host],
    widths: &Widths,
    request: &Request,
    cx: &Context<'_>,
) -> Result<(Vec<u32>, bool), SelectError> {
    let (_, groups) = widths.widest(all, &request.free, request.count)?;
    let mut best: Option<(f64, Vec<u32>)> = None;
    let mut all_proven = true;
    for group in groups {
        let space = Space::new(system, all, &group, request.roomy)?;
        let (chosen, proven) = search(&space, &Goal::total_distance(&space), request, cx)?;
        all_proven &= proven;
        let total = space.total(&chosen) as f64 / space.scale;
        if best.as_ref().is_none_or(|(least, _)| total < *least) {
            best = Some((total, space.hosts_of(&chosen)));
        }
    }
    best.map(|(_, hosts)| (hosts, all_proven)).ok_or_else(|| SelectError::in_pieces(request.count))
}

/// Search nodes after which branch and bound gives up.
const MAX_NODES: u64 = 1 << 22;
/// Largest number of hosts for branch and bound.
const MAX_HOSTS: usize = 256;

/// How a search ended.
pub(crate) enum SearchEnd {
    /// Proven optimal.
    Proven(Vec<i64>),
    /// Stopped; the incumbent.
    Stopped(Vec<i64>),
    /// It would take too long.
    TooLong,
}

/// The best choice of `count` hosts of a space in which every class is one host, starting from the incumbent
/// `known`.
///
/// A search node has decided about the first hosts. Lower bound: each host still to be chosen adds at least
/// its distances to the chosen hosts and half the distances to its nearest hosts.
pub(crate) fn branch_and_bound(
    space: &Space,
    goal: &Goal,
    count: usize,
    known: Vec<i64>,
    stop: &dyn Fn() -> bool,
) -> SearchEnd {
    if space.classes() > MAX_HOSTS {
        return SearchEnd::TooLong;
    }
    let best = (goal.value(space, &known), known);
    let base = goal.value(space, &vec![0; space.classes()]);
    let near = (0..space.classes()).map(|class| nearest(space, class)).collect();
    let mut search = Search { space, goal, near, best, nodes: 0, stop, stopped: false };
    search.extend(0, count, &mut vec![0; space.classes()], &goal.single.clone(), base);
    match search {
        Search { stopped: true, best, .. } => SearchEnd::Stopped(best.1),
        Search { nodes, .. } if nodes > MAX_NODES => SearchEnd::TooLong,
        Search { best, .. } => SearchEnd::Proven(best.1),
    }
}

/// Prefix sums of the distances from a host to its nearest other hosts.
fn nearest(space: &Space, class: usize) -> Vec<i64> {
    let mut distances = Vec::new();
    space.for_row(class, |other, distance| {
        if other != class {
            distances.push(distance);
        }
    });
    distances.sort_unstable();
    let mut sum = 0;
    let sums = distances.into_iter().map(|distance| {
        sum += distance;
        sum
    });
    std::iter::once(0).chain(sums).collect()
}

struct Search<'s> {
    space: &'s Space,
    goal: &'s Goal,
    near: Vec<Vec<i64>>,
    best: (i64, Vec<i64>),
    nodes: u64,
    stop: &'s dyn Fn() -> bool,
    stopped: bool,
}

impl Search<'_> {
    /// Decides about the hosts from `next` on: `missing` more are needed. `price` is the added cost of each
    /// given the chosen ones, whose value is `value`.
    fn extend(&mut self, next: usize, missing: usize, chosen: &mut Vec<i64>, price: &[i64], value: i64) {
        if missing == 0 {
            if value < self.best.0 {
                self.best = (value, chosen.clone());
            }
            return;
        }
        for host in next..=price.len() - missing {
            self.nodes += 1;
            self.stopped |= self.nodes.is_multiple_of(1024) && (self.stop)();
            if self.stopped || self.nodes > MAX_NODES || !self.is_promising(host, missing, price, value) {
                return;
            }
            let mut dearer = price.to_vec();
            self.space.for_row(host, |other, distance| dearer[other] += self.goal.pairs * distance);
            chosen[host] = 1;
            self.extend(host + 1, missing - 1, chosen, &dearer, value + price[host]);
            chosen[host] = 0;
        }
    }

    /// Whether a choice of `missing` hosts from `next` on can improve the incumbent. All values are doubled.
    fn is_promising(&self, next: usize, missing: usize, price: &[i64], value: i64) -> bool {
        let least = |host: usize| 2 * price[host] + self.goal.pairs * self.near[host][missing - 1];
        let mut least: Vec<i64> = (next..price.len()).map(least).collect();
        least.select_nth_unstable(missing - 1);
        2 * value + least[..missing].iter().sum::<i64>() < 2 * self.best.0
    }
}
