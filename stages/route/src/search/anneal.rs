//! Good mappings: annealing on an estimate.

use hopmap_random::{Draw, Pcg64};

use super::estimate::{Aim, Estimate, Ways};
use super::model::{FAR, Model};
use super::random;
use crate::engine::Watch;

/// Mappings that an island hands over.
const CANDIDATES: usize = 6;
/// Proposals between two looks at the clock.
const BREATH: u64 = 1024;
/// Hosts that are proposed near another one.
const NEAR: usize = 12;
/// Temperatures at the beginning and at the end, in what a link and an entry cost.
const HOT: f64 = 1.5;
const COLD: f64 = 0.12;
/// Orders in which processes are put on hosts before giving up.
const MOST_STARTS: u64 = 60;

/// What all islands know.
pub(super) struct Sea<'m, 'a> {
    pub(super) model: &'m Model<'a>,
    pub(super) ways: &'m Ways,
    /// Hosts near each class.
    near: Vec<Vec<u32>>,
}

impl<'m, 'a> Sea<'m, 'a> {
    pub(super) fn new(model: &'m Model<'a>, ways: &'m Ways) -> Self {
        let near = |class: usize| {
            let mut others: Vec<usize> = (0..model.classes.len()).collect();
            others.sort_by_key(|&other| if other == class { 0 } else { model.distance(0, class, other) });
            let hosts = others.iter().flat_map(|&other| &model.classes[other].hosts).copied();
            let least = NEAR.max(model.classes[class].hosts.len() + NEAR / 2);
            hosts.take(least).collect()
        };
        Self { near: (0..model.classes.len()).map(near).collect(), model, ways }
    }

    /// Some mapping that fits on hosts, processes near those that they talk to; nothing if none was found.
    pub(super) fn start(&self, island: u64) -> Option<Vec<u32>> {
        (0..MOST_STARTS)
            .find_map(|number| self.placed(&mut random::stream(1000 + island * MOST_STARTS + number), number))
    }

    fn placed(&self, random: &mut Pcg64, number: u64) -> Option<Vec<u32>> {
        let model = self.model;
        let mut order: Vec<(usize, i64, usize, usize)> = (0..model.processes)
            .map(|process| {
                let size = (model.needs[process].first().copied().unwrap_or_default() * 1e6) as i64;
                let tie = random.index(1 << 20);
                // Those that fit on few hosts first, and the largest; later tries look at what is large alone.
                let few = if number.is_multiple_of(2) { model.problem.allowed[process].len() } else { 0 };
                (few, -size, tie, process)
            })
            .collect();
        order.sort_unstable();
        let mut hosts = vec![u32::MAX; model.processes];
        let mut used =
            vec![vec![0.0; model.needs.first().map_or(0, Vec::len)]; model.problem.system.nodes.len()];
        for (.., process) in order {
            let fits = |host: &&u32| model.fits(**host, &used[**host as usize], process);
            let cost = |host: u32| {
                let links = model.neighbours(process).filter(|(_, other)| hosts[*other] != u32::MAX);
                let links = links.map(|(edge, other)| {
                    let distance = model.between(model.edges[edge].kind, host, hosts[other]);
                    f64::from(distance.min(FAR))
                });
                model.weights.hops.max(1.0) * links.sum::<f64>() + model.move_cost(process, host)
            };
            let mut best: Option<(f64, usize, u32)> = None;
            for &host in model.problem.allowed[process].iter().filter(fits) {
                let key = (cost(host), random.index(1 << 20), host);
                if best.is_none_or(|best| key < best) {
                    best = Some(key);
                }
            }
            let host = best?.2;
            hosts[process] = host;
            let there = used[host as usize].iter_mut();
            there.zip(&model.needs[process]).for_each(|(used, need)| *used += need);
        }
        Some(hosts)
    }

    /// The best mappings of one island, the best first.
    pub(super) fn island(
        &self,
        island: u64,
        start: &[u32],
        aim: Aim,
        proposals: u64,
        watch: &Watch<'_>,
    ) -> Vec<(f64, Vec<u32>)> {
        let mut random = random::stream(island);
        let mut state = Estimate::new(self.model, self.ways, aim, start);
        let free: Vec<usize> = (0..self.model.processes)
            .filter(|&process| self.model.problem.allowed[process].len() > 1)
            .collect();
        let mut cost = state.cost();
        let mut best = vec![(cost, start.to_vec())];
        if free.is_empty() {
            return best;
        }
        let weights = self.model.weights;
        let unit = if weights.hops + weights.entries > 0.0 {
            weights.hops + weights.entries
        } else {
            aim.beyond.max(1.0)
        };
        let cooling = libm::log(COLD / HOT);
        let mut temperature = HOT * unit;
        for number in 0..proposals {
            if number.is_multiple_of(BREATH) {
                if watch.should_stop() || watch.seconds_left().is_some_and(|left| left <= 0.0) {
                    break;
                }
                temperature = HOT * unit * libm::exp(cooling * number as f64 / proposals as f64);
            }
            let Some(changes) = self.proposal(&state, &free, &mut random) else { continue };
            let limit = cost + random::slack(&mut random, temperature);
            let back = changes.map(|(process, _)| (process, state.hosts[process]));
            changes.iter().for_each(|&(process, host)| state.put(process, host));
            state.settle();
            let now = state.cost();
            if now > limit {
                back.iter().for_each(|&(process, host)| state.put(process, host));
                state.settle();
                continue;
            }
            cost = now;
            if cost < best[0].0 - 1e-7 * unit {
                best.insert(0, (cost, state.hosts.clone()));
                best.truncate(CANDIDATES);
            }
        }
        best
    }

    /// A process to another host, or two processes that change places; as two steps of which the second one may be the first again.
    fn proposal(
        &self,
        state: &Estimate<'_, '_>,
        free: &[usize],
        random: &mut Pcg64,
    ) -> Option<[(usize, u32); 2]> {
        let model = self.model;
        let process = free[random.index(free.len())];
        let degree = model.sends[process].len() + model.receives[process].len();
        let allowed = &model.problem.allowed[process];
        let host = if degree > 0 && random.index(4) > 0 {
            let (_, other) = model.neighbours(process).nth(random.index(degree))?;
            let near = &self.near[model.class_of[state.hosts[other] as usize]];
            near[random.index(near.len())]
        } else {
            allowed[random.index(allowed.len())]
        };
        let before = state.hosts[process];
        if host == before {
            return None;
        }
        let others = &state.on[host as usize];
        let swaps = !others.is_empty() && random.index(2) == 0;
        if !swaps && state.has_room(process, host, None) {
            return Some([(process, host); 2]);
        }
        let other = *others.get(random.index(others.len().max(1)))?;
        let both = state.has_room(process, host, Some(other)) && state.has_room(other, before, Some(process));
        both.then_some([(process, host), (other, before)])
    }
}
