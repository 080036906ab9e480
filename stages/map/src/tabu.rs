//! Robust tabu search (Taillard 1991): islands, search and tabu list.

use hopmap_islands::{Budget, Candidate, Counts, Island, Meter, Save, TimePlan};
use hopmap_model::{Context, ConvergencePoint, Error, OutOfRange, seed_stream};
use hopmap_objective::{Assignment, Deltas, Distance, ObjectiveError, Problem};
use hopmap_random::{Pcg64, Rng, SeedableRng};
use serde::{Deserialize, Serialize};

use crate::baseline::linear_or_greedy;
use crate::error::MapError;
use crate::mapper::{Mapper, SearchResult};
use crate::moves::{Incumbent, descend};
use crate::params::{TabuParams, kind};
use crate::plan::FINAL_SEARCH;

/// The default budget, and its minimum in steps per rank.
const DEFAULT_EVALUATIONS: u64 = 1 << 25;
const DEFAULT_STEPS: u64 = 4;
/// Number of mappings up to which all are tried: those of seven ranks on seven slots.
const FEW: u64 = 5040;
/// Maximum number of stored deltas per running island, eight bytes each.
const MOST_DELTAS: u64 = 1 << 22;

/// Robust tabu search (Taillard 1991) on independent islands; the best result is kept.
///
/// Every step makes the best allowed exchange, even if it raises the cost. A rank that leaves a group of the
/// innermost level may not return for a random number of steps; exchanges inside a group have no effect and
/// are never made. An exchange is tabu if both ranks would return; the aspiration criterion allows it if it
/// gives a new best mapping. Ranks that have not visited a group for very long are moved there at any cost.
/// The deltas of all exchanges are stored, so that a step costs one product per pair instead of one per pair
/// and neighbour.
///
/// The first island starts from the linear or the greedy mapping, whichever costs less, the others from
/// random ones. A local search improves the best mapping at the end. If there are only a few thousand
/// mappings, all are tried instead.
#[derive(Debug, Clone, PartialEq)]
pub struct Tabu {
    seed: u64,
    budget: Budget,
}

impl Tabu {
    /// Checks the parameters.
    pub fn new(params: &TabuParams) -> Result<Self, OutOfRange> {
        let &TabuParams { seed, evaluations, time_limit_s, islands, .. } = params;
        Ok(Self { seed, budget: Budget::new(evaluations, time_limit_s, islands)? })
    }

    /// Start mapping of an island.
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
                "tabu search would store {stored} exchanges of ranks and slots, but supports at most {MOST_DELTAS}"
            );
            return Err(MapError::new(problem, "use `map/annealing`, or a smaller machine").into());
        }
        if let Some(mappings) = few_mappings(problem).filter(|&count| count <= self.budget.evaluations(FEW)) {
            return Ok(best_of_all(problem, mappings));
        }
        let default = DEFAULT_EVALUATIONS.max(DEFAULT_STEPS * problem.ranks() as u64 * pairs);
        let found = self.budget.search(default, cx, |island, meter| self.search(problem, island, meter))?;
        let phases = TimePlan::begin(FINAL_SEARCH).words(self.budget.time());
        Ok(SearchResult { phases, ..SearchResult::of_islands(found, problem) })
    }
}

/// Number of mappings of all ranks to slots, if it is small.
fn few_mappings(problem: &Problem) -> Option<u64> {
    let slots = problem.slots() as u64;
    let mut choices = (0..problem.ranks() as u64).map(|rank| slots - rank);
    choices.try_fold(1u64, |count, choices| count.checked_mul(choices).filter(|&count| count <= FEW))
}

/// Tries all mappings, the linear one first.
fn best_of_all(problem: &Problem, evaluations: u64) -> SearchResult {
    let linear = problem.linear();
    let first = Candidate { cost: problem.cost(&linear), solution: linear };
    let mut best = first.clone();
    extend(problem, &mut Vec::new(), &mut best);
    let point = |evaluations, cost| ConvergencePoint { island: 0, evaluations, cost: problem.real(cost) };
    let mut convergence = vec![point(0, first.cost)];
    convergence.extend((best.cost < first.cost).then(|| point(evaluations, best.cost)));
    SearchResult { evaluations, convergence, ..SearchResult::at_once(best.solution) }
}

/// Tries all slots for the ranks that follow those of a partial mapping.
fn extend(problem: &Problem, slots: &mut Vec<u32>, best: &mut Candidate<Vec<u32>>) {
    if slots.len() == problem.ranks() {
        let cost = problem.cost(slots);
        if cost < best.cost {
            *best = Candidate { cost, solution: slots.clone() };
        }
        return;
    }
    for slot in 0..problem.slots() as u32 {
        if !slots.contains(&slot) && problem.admits(slots.len() as u32, slot) {
            slots.push(slot);
            extend(problem, slots, best);
            slots.pop();
        }
    }
}

/// State of the search of one island.
pub(crate) struct SearchState<'p> {
    deltas: Deltas<'p>,
    bans: Bans,
    random: Pcg64,
    step: u64,
}

/// A search between two steps.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct SavedSearch {
    slots: Vec<u32>,
    /// The bans.
    until: Vec<u64>,
    random: Pcg64,
    step: u64,
}

/// An exchange of a mover and a later unit.
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
    /// The best tabu one, if better than the best allowed one.
    forbidden: Option<Exchange>,
}

/// What the future of the search depends on, if every slot has a rank that may move.
impl Save for SearchState<'_> {
    type Saved = SavedSearch;

    fn save(&self) -> SavedSearch {
        let Self { bans, random, step, .. } = self;
        let slots = self.assignment().slots().to_vec();
        SavedSearch { slots, until: bans.until.clone(), random: random.clone(), step: *step }
    }
}

impl<'p> SearchState<'p> {
    pub(crate) fn new(deltas: Deltas<'p>, random: Pcg64) -> Self {
        let bans = Bans::new(deltas.movers(), deltas.assignment().problem().distance());
        let step = bans.begin();
        Self { deltas, bans, random, step }
    }

    /// Starts from a mapping.
    pub(crate) fn of(start: Assignment<'p>, random: Pcg64) -> Self {
        Self::new(Deltas::of(start), random)
    }

    /// Continues a saved search.
    pub(crate) fn restore(problem: &'p Problem, saved: &SavedSearch) -> Result<Self, ObjectiveError> {
        let SavedSearch { slots, until, random, step } = saved;
        let mut search = Self::of(Assignment::new(problem, slots)?, random.clone());
        (search.bans.until, search.step) = (until.clone(), *step);
        Ok(search)
    }

    pub(crate) fn assignment(&self) -> &Assignment<'p> {
        self.deltas.assignment()
    }

    /// Makes the best allowed exchange, if any; `least` is the lowest cost so far.
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

    /// The best exchanges; ties go to the first one from a random row.
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
        if self.deltas.least(mover) >= bound {
            return;
        }
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

    /// The best exchange that moves a rank to a group not visited for very long. Checks one mover per step.
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

/// Maximum tabu tenure, in multiples of the base tenure; scaled by the cube of a random number in [0, 1).
const LONGEST: f64 = 8.0;
/// Steps after which a mover is moved to an unvisited group, in multiples of movers times groups.
const PATIENCE: u64 = 5;

/// The tabu list: for every mover and group of the innermost level, the step at which the ban ends.
///
/// In a tree, all slots of such a group are equivalent, so a ban covers the group. With bans on single slots,
/// as for matrices, the search would cycle.
struct Bans {
    /// Group of every slot.
    group_of: Vec<u32>,
    groups: usize,
    /// Last step of the ban, by mover and group.
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
        // With few groups, a tenure of one step per rank would forbid everything.
        let usual = movers.min(movers * (groups - 1) / 8).max(1) as f64;
        // Stagger the first forced moves over movers and groups.
        let all = (movers * groups) as u64;
        let until = (0..all).map(|index| all - index).collect();
        Self { group_of, groups, until, usual, patience: PATIENCE * all }
    }

    /// The step before the first one. Initial bans end by then, later ones after it.
    fn begin(&self) -> u64 {
        self.until.len() as u64
    }

    /// The group of a slot.
    #[inline]
    fn group(&self, slot: u32) -> u32 {
        self.group_of[slot as usize]
    }

    /// Whether a group is tabu for a unit. Always true for non-movers: the exchange partner decides.
    #[inline]
    fn forbid(&self, unit: usize, group: u32, step: u64) -> bool {
        self.until.get(unit * self.groups + group as usize).is_none_or(|&until| until >= step)
    }

    /// Whether a mover has not visited a group for so long that it is moved there.
    fn demand(&self, unit: usize, group: u32, step: u64) -> bool {
        let until = self.until.get(unit * self.groups + group as usize);
        until.is_some_and(|&until| until + self.patience < step)
    }

    /// Bans a unit from a group.
    fn impose(&mut self, unit: usize, group: u32, step: u64, random: &mut Pcg64) {
        let fraction = (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        let steps = (fraction * fraction * fraction * LONGEST * self.usual) as u64 + 1;
        if let Some(until) = self.until.get_mut(unit * self.groups + group as usize) {
            *until = step + steps;
        }
    }
}
