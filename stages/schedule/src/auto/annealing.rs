//! Simulated annealing of one plan: temperatures, acceptance, and moves.

use hopmap_islands::{Candidate, Meter};
use hopmap_random::{Pcg64, Rng, index_below};
use serde::{Deserialize, Serialize};

use crate::costs::Costs;
use crate::plan::Plan;
use crate::timeline::Timeline;

/// Proposals between two temperature updates.
const STEP: u64 = 64;

/// Number of tasks above which the clock is checked after every step.
const SLOW: usize = 1000;
/// Maximum number of tasks of a cluster or a segment.
const MOST: usize = 64;
/// Number of precomputed acceptance thresholds; a power of two.
const DRAWS: usize = 4096;

/// An annealing cycle between two steps.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Cycle {
    /// The current plan.
    pub(super) plan: Plan,
    /// The best plan of the cycle.
    pub(super) best: Candidate<Plan>,
    /// Initial and final temperature in ticks.
    hot: f64,
    cold: f64,
    /// Planned and completed number of proposals.
    length: u64,
    done: u64,
}

impl Cycle {
    pub(super) fn new(start: Candidate<Plan>, [hot, cold]: [f64; 2], length: u64) -> Self {
        Self { plan: start.solution.clone(), best: start, hot, cold, length: length.max(1), done: 0 }
    }

    /// Whether it starts hot.
    pub(super) fn is_hot(&self) -> bool {
        self.hot > self.cold
    }

    /// Whether the final temperature is reached.
    pub(super) fn is_over(&self) -> bool {
        self.done >= self.length
    }

    fn temperature(&self) -> f64 {
        match self.is_hot() {
            true => self.hot * libm::pow(self.cold / self.hot, self.done as f64 / self.length as f64),
            false => self.cold,
        }
    }

    /// Continues until the cycle ends, about the given number of evaluations is spent, or the makespan equals a bound; `false` if
    /// the meter stopped it.
    pub(super) fn run<C: Costs>(
        &mut self,
        timeline: &mut Timeline<'_, C>,
        moves: &mut Moves,
        acceptance: &Acceptance,
        random: &mut Pcg64,
        (end, bound): (u64, i64),
        meter: &mut Meter<'_>,
    ) -> bool {
        timeline.set(&self.plan);
        moves.note_change();
        let mut goes_on = true;
        while goes_on && !self.is_over() && meter.spent() < end && self.best.cost > bound {
            let temperature = self.temperature();
            goes_on = self.step(timeline, moves, acceptance, random, temperature, meter);
            self.done += STEP;
            timeline.sort();
            goes_on = goes_on && (timeline.tasks() < SLOW || meter.look());
        }
        self.plan = timeline.plan();
        goes_on
    }

    fn step<C: Costs>(
        &mut self,
        timeline: &mut Timeline<'_, C>,
        moves: &mut Moves,
        acceptance: &Acceptance,
        random: &mut Pcg64,
        temperature: f64,
        meter: &mut Meter<'_>,
    ) -> bool {
        let mut is_idle = true;
        for _ in 0..STEP {
            moves.propose(timeline, random);
            if !timeline.is_changed() {
                continue;
            }
            is_idle = false;
            if !meter.take() {
                timeline.take_back();
                return false;
            }
            let slack = acceptance.slack(random.next_u32(), temperature);
            if timeline.commit(timeline.makespan() + slack) {
                moves.note_change();
                if timeline.makespan() < self.best.cost {
                    self.best = Candidate { cost: timeline.makespan(), solution: timeline.plan() };
                    meter.record(self.best.cost);
                }
            }
        }
        // If no proposal changes anything, the budget must still be consumed.
        !is_idle || meter.take()
    }
}

/// Acceptance threshold at temperature 1: −ln of a uniform number in (0, 1], which is the Metropolis rule if drawn before the
/// evaluation.
#[derive(Debug, Clone)]
pub(super) struct Acceptance {
    draws: Vec<f64>,
}

impl Acceptance {
    pub(super) fn new() -> Self {
        let draw = |number: usize| -libm::log((number as f64 + 0.5) / DRAWS as f64);
        Self { draws: (0..DRAWS).map(draw).collect() }
    }

    /// Acceptance threshold from random bits.
    #[inline]
    fn slack(&self, bits: u32, temperature: f64) -> i64 {
        (self.draws[bits as usize % DRAWS] * temperature) as i64
    }
}

/// Draws proposals, with reusable buffers.
#[derive(Debug, Clone)]
pub(super) struct Moves {
    /// The critical path, if it is that of the current plan.
    path: Vec<u32>,
    is_known: bool,
    cluster: Vec<u32>,
}

impl Moves {
    pub(super) fn new() -> Self {
        Self { path: Vec::new(), is_known: false, cluster: Vec::new() }
    }

    /// Marks the plan as changed.
    #[inline]
    pub(super) fn note_change(&mut self) {
        self.is_known = false;
    }

    /// Draws a proposal and applies its steps.
    pub(super) fn propose<C: Costs>(&mut self, timeline: &mut Timeline<'_, C>, random: &mut Pcg64) {
        let bits = random.next_u64();
        let task = self.draw_task(timeline, bits as u32);
        let kind = (bits >> 32) as u8;
        let more = (bits >> 40) as u32;
        match kind {
            0..=95 => move_task(timeline, task, more, random),
            96..=143 => shift(timeline, task, random.next_u32()),
            144..=175 => move_family(timeline, task, random),
            176..=199 => self.move_chain(timeline, task, random),
            200..=223 => self.move_neighbours(timeline, task, random),
            224..=239 => exchange(timeline, task, random),
            _ => swap_segments(timeline, task, random),
        }
    }

    /// A task; with probability 1/2 one of the critical path.
    #[inline]
    fn draw_task<C: Costs>(&mut self, timeline: &Timeline<'_, C>, bits: u32) -> u32 {
        let (is_critical, bits) = (bits & 1 == 0, bits & !1);
        if !is_critical {
            return index_below(bits, timeline.tasks()) as u32;
        }
        if !self.is_known {
            timeline.critical_path(&mut self.path);
            self.is_known = true;
        }
        self.path[index_below(bits, self.path.len())]
    }

    /// A task, its critical parent, the critical parent of that, and so on.
    fn move_chain<C: Costs>(&mut self, timeline: &mut Timeline<'_, C>, task: u32, random: &mut Pcg64) {
        let bits = random.next_u32();
        let processor = if bits & 1 == 0 { timeline.on(task) } else { target(timeline, task, random) };
        let length = 2 + index_below(bits & !1, 6);
        self.cluster.clear();
        let mut at = Some(task);
        while let Some(task) = at.filter(|_| self.cluster.len() < length) {
            self.cluster.push(task);
            at = timeline.last_parent(task);
        }
        for &task in &self.cluster {
            timeline.transfer(task, processor);
        }
    }

    /// Moves a connected set of tasks on one processor to another.
    fn move_neighbours<C: Costs>(&mut self, timeline: &mut Timeline<'_, C>, task: u32, random: &mut Pcg64) {
        let own = timeline.on(task);
        let bits = random.next_u32();
        let length = 2 + index_below(bits, 8.min(timeline.tasks()));
        let processor = target(timeline, task, random);
        let graph = timeline.costs().graph();
        self.cluster.clear();
        self.cluster.push(task);
        let mut at = 0;
        while at < self.cluster.len() && self.cluster.len() < length {
            let member = self.cluster[at];
            at += 1;
            for &other in graph.parents(member).iter().chain(graph.children(member)) {
                if timeline.on(other) == own && !self.cluster.contains(&other) {
                    self.cluster.push(other);
                    if self.cluster.len() == length {
                        break;
                    }
                }
            }
        }
        for &task in &self.cluster {
            timeline.transfer(task, processor);
        }
    }
}

/// Moves a task to another processor, and usually to another position.
fn move_task<C: Costs>(timeline: &mut Timeline<'_, C>, task: u32, bits: u32, random: &mut Pcg64) {
    let processor = target(timeline, task, random);
    timeline.transfer(task, processor);
    if bits & 3 != 0 {
        shift(timeline, task, random.next_u32());
    }
}

/// Moves a task and some or all of its parents to one processor.
fn move_family<C: Costs>(timeline: &mut Timeline<'_, C>, task: u32, random: &mut Pcg64) {
    let bits = random.next_u64();
    let processor = if bits & 1 == 0 { timeline.on(task) } else { target(timeline, task, random) };
    timeline.transfer(task, processor);
    let graph = timeline.costs().graph();
    let all = bits & 2 == 0;
    let relatives = if bits % 16 < 4 { graph.children(task) } else { graph.parents(task) };
    for (index, &parent) in relatives.iter().enumerate().take(MOST) {
        if all || (bits >> (4 + index % 56)) & 1 == 0 {
            timeline.transfer(parent, processor);
        }
    }
}

/// A processor for a task: that of a neighbour in the graph, or any.
fn target<C: Costs>(timeline: &Timeline<'_, C>, task: u32, random: &mut Pcg64) -> u32 {
    let bits = random.next_u64();
    let graph = timeline.costs().graph();
    if bits & (1 << 40) == 0 {
        let (parents, children) = (graph.parents(task), graph.children(task));
        if parents.len() + children.len() > 0 {
            let index = index_below(bits as u32, parents.len() + children.len());
            let relative = parents.get(index).unwrap_or_else(|| &children[index - parents.len()]);
            let processor = timeline.on(*relative);
            if processor != timeline.on(task) {
                return processor;
            }
        }
    }
    let processors = timeline.costs().problem().processors();
    if processors == 1 {
        return 0;
    }
    let processor = index_below(random.next_u32(), processors - 1) as u32;
    processor + u32::from(processor >= timeline.on(task))
}

/// Moves a task to another position.
#[inline]
fn shift<C: Costs>(timeline: &mut Timeline<'_, C>, task: u32, bits: u32) {
    let (first, last) = timeline.window(task);
    timeline.shift(task, first + index_below(bits, last - first + 1));
}

/// Swaps the processors of two tasks and, as far as possible, their positions.
fn exchange<C: Costs>(timeline: &mut Timeline<'_, C>, task: u32, random: &mut Pcg64) {
    let other = index_below(random.next_u32(), timeline.tasks()) as u32;
    let [one, two] = [timeline.on(task), timeline.on(other)];
    let places = [timeline.place(task), timeline.place(other)];
    timeline.transfer(task, two);
    timeline.transfer(other, one);
    for (task, place) in [(task, places[1]), (other, places[0])] {
        let (first, last) = timeline.window(task);
        timeline.shift(task, place.clamp(first, last));
    }
}

/// Swaps the tasks of two processors from one position of the order on.
fn swap_segments<C: Costs>(timeline: &mut Timeline<'_, C>, task: u32, random: &mut Pcg64) {
    let one = timeline.on(task);
    let two = target(timeline, task, random);
    let begin = timeline.place(task);
    let bits = random.next_u32();
    let length = if bits & 1 == 0 { MOST } else { 2 + index_below(bits & !1, MOST / 4) };
    let merge = bits & 2 == 0;
    for place in begin..timeline.tasks().min(begin + length) {
        let task = timeline.at(place);
        if timeline.on(task) == one {
            timeline.transfer(task, two);
        } else if timeline.on(task) == two && !merge {
            timeline.transfer(task, one);
        }
    }
}
