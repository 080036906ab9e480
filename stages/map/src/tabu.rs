//! Robust tabu search (Taillard 1991): the islands, the search of each, and its bans.

use hopmap_islands::{Budget, Counts, Island, Meter, SearchError};
use hopmap_model::{Context, Error, seed_stream};
use hopmap_objective::{Assignment, Deltas, Distance, ObjectiveError, Problem};
use hopmap_random::{Pcg64, Rng, SeedableRng};

use crate::baseline::linear_or_greedy;
use crate::moves::Incumbent;
use crate::params::kind;
use crate::{MapError, Mapper, SearchResult, TabuParams, descend};

/// The default budget, which is never less than so many steps for every rank.
const DEFAULT_EVALUATIONS: u64 = 1 << 25;
const DEFAULT_STEPS: u64 = 4;
/// Most deltas that are kept, of eight bytes each, by every island at work.
const MOST_DELTAS: u64 = 1 << 22;

/// Robust tabu search (Taillard 1991) on independent islands, of which the best wins.
///
/// Every step makes the best exchange of all that are allowed, whether it lowers the cost or not. What leaves a group of the
/// innermost level may not come back for a random number of steps; exchanges inside such a group change nothing and are never
/// made. An exchange is forbidden if it brings both ranks back to where they may not be; it is made all the same where it gives
/// the best placement so far. A rank that was not in a group for very long is sent there, whatever it costs. The deltas of all
/// exchanges are kept, so that a step takes one product for every pair, not one for every pair and neighbour.
///
/// The first island starts from the linear or a greedy placement, whichever costs less, the others from random ones. The best
/// placement ever seen then descends to one that no exchange improves.
#[derive(Debug, Clone, PartialEq)]
pub struct Tabu {
    seed: u64,
    budget: Budget,
}

impl Tabu {
    /// Checks the parameters.
    pub fn new(params: &TabuParams) -> Result<Self, SearchError> {
        let &TabuParams { seed, evaluations, time_limit_s, islands, .. } = params;
        Ok(Self { seed, budget: Budget::new(evaluations, time_limit_s, islands)? })
    }

    /// Where an island begins.
    fn start(&self, problem: &Problem, island: u32) -> Vec<u32> {
        match island {
            0 => linear_or_greedy(problem),
            _ => problem.random(seed_stream(kind::TABU, self.seed, u64::MAX - u64::from(island))),
        }
    }

    /// Searches on one island.
    fn search(
        &self,
        problem: &Problem,
        island: u32,
        mut meter: Meter<'_>,
    ) -> Result<Island<Vec<u32>>, ObjectiveError> {
        let start = Assignment::new(problem, &self.start(problem, island))?;
        let mut incumbent = Incumbent::new(start.cost(), start.slots().to_vec());
        let mut convergence = vec![(0, start.cost())];
        let random = Pcg64::from_seed(seed_stream(kind::TABU, self.seed, u64::from(island)));
        if let Some(deltas) = Deltas::new(start, |evaluations| meter.take_all(evaluations)) {
            let mut search = SearchState::new(deltas, random);
            let pairs = Deltas::pairs(problem);
            while meter.take_all(pairs) {
                search.step(incumbent.best.cost);
                if incumbent.replace(search.assignment()) {
                    convergence.push((meter.spent(), incumbent.best.cost));
                }
            }
        }
        if meter.begin_descent() {
            let mut assignment = Assignment::new(problem, &incumbent.best.solution)?;
            descend(&mut assignment, || meter.take());
            if incumbent.replace(&assignment) {
                convergence.push((meter.spent(), incumbent.best.cost));
            }
        }
        Ok(Island {
            best: incumbent.best,
            evaluations: meter.spent(),
            convergence,
            interrupted: meter.interrupted(),
            counts: Counts::new(),
        })
    }
}

impl Mapper for Tabu {
    fn map(&self, problem: &Problem, cx: &Context<'_>) -> Result<SearchResult, Error> {
        let pairs = Deltas::pairs(problem);
        if pairs == 0 || problem.distance().levels() < 2 {
            return Ok(SearchResult::at_once(problem.linear()));
        }
        let stored = Deltas::stored(problem);
        if stored > MOST_DELTAS {
            let problem = format!(
                "{stored} exchanges of ranks and slots are more than the {MOST_DELTAS} that tabu search keeps"
            );
            return Err(MapError::new(problem, "use `map/annealing`, or a smaller machine").into());
        }
        let default = DEFAULT_EVALUATIONS.max(DEFAULT_STEPS * problem.ranks() as u64 * pairs);
        let found = self.budget.search(default, cx, |island, meter| self.search(problem, island, meter))?;
        Ok(SearchResult::of_islands(found, problem))
    }
}

/// Where the search of one island is.
pub(crate) struct SearchState<'p> {
    deltas: Deltas<'p>,
    bans: Bans,
    random: Pcg64,
    step: u64,
}

/// An exchange of a mover and a unit after it.
#[derive(Clone, Copy)]
struct Exchange {
    mover: usize,
    unit: usize,
    delta: i64,
}

/// The best exchanges of a step.
#[derive(Default)]
struct Best {
    allowed: Option<Exchange>,
    /// Of those that are forbidden, if it is better than what is allowed.
    forbidden: Option<Exchange>,
}

impl<'p> SearchState<'p> {
    pub(crate) fn new(deltas: Deltas<'p>, random: Pcg64) -> Self {
        let bans = Bans::new(deltas.movers(), deltas.assignment().problem().distance());
        let step = bans.begin();
        Self { deltas, bans, random, step }
    }

    pub(crate) fn assignment(&self) -> &Assignment<'p> {
        self.deltas.assignment()
    }

    /// Makes the best exchange that is allowed, where there is one; `least` is the least cost so far.
    pub(crate) fn step(&mut self, least: i64) {
        self.step += 1;
        let best = self.best();
        let cost = self.assignment().cost();
        let leads = |exchange: &Exchange| cost + exchange.delta < least;
        let aspired = best.forbidden.filter(leads).or(best.allowed.filter(leads));
        if let Some(exchange) = aspired.or_else(|| self.demanded()).or(best.allowed) {
            self.make(exchange);
        }
    }

    fn make(&mut self, Exchange { mover, unit, .. }: Exchange) {
        let [left, entered] = [mover, unit].map(|unit| self.bans.group(self.deltas.slots()[unit]));
        self.deltas.exchange(mover, unit);
        self.bans.impose(mover, left, self.step, &mut self.random);
        self.bans.impose(unit, entered, self.step, &mut self.random);
    }

    /// The best exchanges. Among equals the first one, beginning with a random row.
    fn best(&mut self) -> Best {
        let movers = self.deltas.movers();
        let begin = (u64::from(self.random.next_u32()) * movers as u64) >> 32;
        let mut best = Best::default();
        for mover in (begin as usize..movers).chain(0..begin as usize) {
            self.best_of_row(mover, &mut best);
        }
        best
    }

    fn best_of_row(&self, mover: usize, best: &mut Best) {
        let delta_of = |exchange: Option<Exchange>| exchange.map_or(i64::MAX, |exchange| exchange.delta);
        let slots = self.deltas.slots();
        let own = self.bans.group(slots[mover]);
        let mut bound = delta_of(best.allowed);
        for (index, &delta) in self.deltas.row(mover).iter().enumerate() {
            if delta >= bound {
                continue;
            }
            let unit = mover + 1 + index;
            let group = self.bans.group(slots[unit]);
            if group == own || !self.deltas.admits(mover, unit) {
                continue;
            }
            let exchange = Some(Exchange { mover, unit, delta });
            if self.bans.forbid(mover, group, self.step) && self.bans.forbid(unit, own, self.step) {
                if delta < delta_of(best.forbidden) {
                    best.forbidden = exchange;
                }
            } else {
                best.allowed = exchange;
                bound = delta;
            }
        }
    }

    /// The best exchange that sends one of the two where it was not for very long. Looks at one mover at every step.
    fn demanded(&self) -> Option<Exchange> {
        let mover = (self.step % self.deltas.movers() as u64) as usize;
        let slots = self.deltas.slots();
        let own = self.bans.group(slots[mover]);
        let exchanges = self.deltas.row(mover).iter().enumerate().map(|(index, &delta)| Exchange {
            mover,
            unit: mover + 1 + index,
            delta,
        });
        let demanded = |exchange: &Exchange| {
            let group = self.bans.group(slots[exchange.unit]);
            group != own
                && self.deltas.admits(mover, exchange.unit)
                && (self.bans.demand(mover, group, self.step)
                    || self.bans.demand(exchange.unit, own, self.step))
        };
        exchanges.filter(demanded).min_by_key(|exchange| exchange.delta)
    }
}

/// Longest ban, in multiples of the usual one; a random number in [0, 1) to the third power shortens it.
const LONGEST: f64 = 8.0;
/// Steps after which a mover is sent to a group, in multiples of the number of movers and groups.
const PATIENCE: u64 = 5;

/// The groups of the innermost level, and until which step every mover may not go to each.
///
/// In a tree it makes no difference on which slot of such a group a rank lies, so what leaves a group must not come back to any
/// of its slots: with bans on slots alone, as for matrices without such groups, the search would go round in circles.
struct Bans {
    /// Group of every slot.
    group_of: Vec<u32>,
    groups: usize,
    /// Last step of the ban; a row for every mover, a column for every group.
    until: Vec<u64>,
    usual: f64,
    patience: u64,
}

impl Bans {
    fn new(movers: usize, distance: &Distance) -> Self {
        let mut group_of = vec![0; distance.order().len()];
        let mut groups = 0;
        let mut begin = 0;
        while let Some(&slot) = distance.order().get(begin) {
            let range = distance.group(0, slot);
            range.clone().for_each(|index| group_of[distance.order()[index] as usize] = groups as u32);
            groups += 1;
            begin = range.end;
        }
        // With few groups, bans of as many steps as there are ranks would forbid everything.
        let usual = movers.min(movers * (groups - 1) / 8).max(1) as f64;
        // Waiting for the first time ends for one mover and group after the other.
        let all = (movers * groups) as u64;
        let until = (0..all).map(|index| all - index).collect();
        Self { group_of, groups, until, usual, patience: PATIENCE * all }
    }

    /// The step before the first one. Every ban that is imposed ends later, every one there is from the beginning by then.
    fn begin(&self) -> u64 {
        self.until.len() as u64
    }

    /// The group of a slot.
    #[inline]
    fn group(&self, slot: u32) -> u32 {
        self.group_of[slot as usize]
    }

    /// Whether a unit may not go to a group. Always true of what is no mover: whoever it changes places with decides.
    #[inline]
    fn forbid(&self, unit: usize, group: u32, step: u64) -> bool {
        self.until.get(unit * self.groups + group as usize).is_none_or(|&until| until >= step)
    }

    /// Whether a mover has not been in a group for so long that it is sent there.
    fn demand(&self, unit: usize, group: u32, step: u64) -> bool {
        let until = self.until.get(unit * self.groups + group as usize);
        until.is_some_and(|&until| until + self.patience < step)
    }

    /// Keeps a unit out of a group for a while.
    fn impose(&mut self, unit: usize, group: u32, step: u64, random: &mut Pcg64) {
        let fraction = (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        let steps = (fraction * fraction * fraction * LONGEST * self.usual) as u64 + 1;
        if let Some(until) = self.until.get_mut(unit * self.groups + group as usize) {
            *until = step + steps;
        }
    }
}
