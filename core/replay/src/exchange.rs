//! Makespan of a placement under exchanges of ranks.
//!
//! Keeps paths that were critical before: the length of every path is a lower bound of the makespan of a
//! placement, and updating it after an exchange takes a few additions. So most rejected exchanges do not
//! require a pass over the program.

use hopmap_model::DelayModel;

use crate::pass::{Late, Pass};
use crate::problem::ReplayProblem;
use crate::program::NONE;

/// Maximum number of kept paths.
const MOST: usize = 32;
/// Maximum size of the table of channels and paths.
const MOST_ENTRIES: usize = 1 << 24;

/// A placement that changes by exchanges.
///
/// Minimises the makespan plus the weighted surrogate objective, which distinguishes placements of equal
/// makespan.
#[derive(Debug)]
pub struct ExchangeEvaluator<'p> {
    problem: &'p ReplayProblem,
    slots: Vec<u32>,
    owner: Vec<u32>,
    makespan: i64,
    surrogate: i64,
    /// Ticks per unit of the surrogate objective.
    weight: f64,
    /// Current time of every channel.
    delays: Vec<i64>,
    pass: Pass<'p>,
    cuts: Cuts,
    path: Path,
    changes: Vec<Change>,
    /// Channels of the critical path that take more than their minimum, with the cumulated excess.
    critical: Vec<(u32, i64)>,
    passes: u64,
}

impl<'p> ExchangeEvaluator<'p> {
    /// Starts with a placement; a unit of the surrogate objective counts `weight` ticks.
    #[must_use]
    pub fn new(problem: &'p ReplayProblem, slots: &[u32], weight: f64) -> Self {
        let mut owner = vec![NONE; problem.slots()];
        (0..).zip(slots).for_each(|(rank, &slot)| owner[slot as usize] = rank);
        let channels = &problem.program.channels.all;
        let mut evaluator = Self {
            problem,
            slots: slots.to_vec(),
            owner,
            makespan: 0,
            surrogate: problem.surrogate(slots),
            weight,
            delays: channels.iter().map(|&channel| problem.delay(channel, slots)).collect(),
            pass: problem.pass(),
            cuts: Cuts::new(channels.len()),
            path: Path::default(),
            changes: Vec::new(),
            critical: Vec::new(),
            passes: 1,
        };
        evaluator.makespan = evaluator.pass.run(slots, &evaluator.delays, i64::MAX).unwrap_or(i64::MAX);
        evaluator.find_path();
        evaluator
    }

    /// The slot of every rank.
    #[must_use]
    pub fn slots(&self) -> &[u32] {
        &self.slots
    }

    /// The rank on a slot.
    #[must_use]
    pub fn rank_at(&self, slot: u32) -> Option<u32> {
        Some(self.owner[slot as usize]).filter(|&rank| rank != NONE)
    }

    /// The makespan in ticks.
    #[must_use]
    pub fn makespan(&self) -> i64 {
        self.makespan
    }

    /// The surrogate objective.
    #[must_use]
    pub fn surrogate(&self) -> i64 {
        self.surrogate
    }

    /// Number of passes over the program so far.
    #[must_use]
    pub fn passes(&self) -> u64 {
        self.passes
    }

    /// Whether every channel of the critical path takes its minimum, so the placement is optimal.
    #[must_use]
    pub fn is_tight(&self) -> bool {
        self.critical.is_empty() && self.problem.has_equal_slots()
    }

    /// A random channel of the critical path, weighted by its possible gain. `draw` is random.
    #[must_use]
    pub fn critical_channel(&self, draw: u64) -> Option<u32> {
        let total = self.critical.last()?.1;
        let point = ((u128::from(draw) * total as u128) >> 64) as i64;
        let place = self.critical.partition_point(|&(_, until)| until <= point);
        self.critical.get(place).map(|&(channel, _)| channel)
    }

    /// The objective: makespan plus weighted surrogate objective.
    #[must_use]
    pub fn energy(&self) -> i64 {
        self.makespan + self.weighted_surrogate()
    }

    fn weighted_surrogate(&self) -> i64 {
        (self.weight * self.surrogate as f64) as i64
    }

    /// Moves a rank to a slot, and the rank on that slot back, unless the energy then exceeds a limit.
    pub fn exchange(&mut self, rank: u32, slot: u32, limit: i64) -> bool {
        let from = self.slots[rank as usize];
        self.apply(rank, slot);
        let limit = limit - self.weighted_surrogate();
        if self.cuts.rule_out(&self.changes, limit) {
            self.undo(rank, from);
            return false;
        }
        self.passes += 1;
        match self.pass.run(&self.slots, &self.delays, limit) {
            Ok(makespan) => {
                self.cuts.accept();
                self.makespan = makespan;
                self.find_path();
                true
            }
            Err(late) => {
                self.path.trace_back(self.problem, &self.pass, &self.delays, late);
                self.undo(rank, from);
                self.cuts.add(&self.path, &self.delays);
                false
            }
        }
    }

    /// Places a rank on a slot and records the changes.
    fn apply(&mut self, rank: u32, slot: u32) {
        let from = self.slots[rank as usize];
        let other = self.owner[slot as usize];
        self.slots[rank as usize] = slot;
        self.owner[slot as usize] = rank;
        self.owner[from as usize] = other;
        let channels = &self.problem.program.channels;
        if other != NONE {
            self.slots[other as usize] = from;
        }
        self.changes.clear();
        let of_other = if other == NONE { &[][..] } else { channels.of(other) };
        for &channel in channels.of(rank).iter().chain(of_other) {
            let delay = self.problem.delay(channels.all[channel as usize], &self.slots);
            let delta = delay - self.delays[channel as usize];
            if delta != 0 {
                let least = self.problem.least_delay(channels.all[channel as usize]);
                let critical = &self.problem.criticality;
                self.surrogate += critical.surrogate(channel as usize, delay - least);
                self.surrogate -= critical.surrogate(channel as usize, delay - delta - least);
                self.delays[channel as usize] = delay;
                self.changes.push(Change { channel, delta });
            }
        }
    }

    /// Undoes the last exchange; `from` is the former slot of the rank.
    fn undo(&mut self, rank: u32, from: u32) {
        let (slot, other) = (self.slots[rank as usize], self.owner[from as usize]);
        self.slots[rank as usize] = from;
        self.owner[from as usize] = rank;
        self.owner[slot as usize] = other;
        if other != NONE {
            self.slots[other as usize] = slot;
        }
        for change in &self.changes {
            let delay = &mut self.delays[change.channel as usize];
            let least = self.problem.least_delay(self.problem.program.channels.all[change.channel as usize]);
            let critical = &self.problem.criticality;
            self.surrogate -= critical.surrogate(change.channel as usize, *delay - least);
            *delay -= change.delta;
            self.surrogate += critical.surrogate(change.channel as usize, *delay - least);
        }
    }

    /// Finds the critical path after a completed pass.
    fn find_path(&mut self) {
        let late = Late { rank: self.pass.last(), end: self.problem.program.nodes() as u32, tail: 0 };
        self.path.trace_back(self.problem, &self.pass, &self.delays, late);
        if self.cuts.longest() < self.makespan {
            self.cuts.add(&self.path, &self.delays);
        }
        self.critical.clear();
        let mut total = 0;
        for &channel in &self.path.channels {
            let gain = self.delays[channel as usize]
                - self.problem.least_delay(self.problem.program.channels.all[channel as usize]);
            if gain > 0 {
                total += gain;
                self.critical.push((channel, total));
            }
        }
    }
}

/// Kept paths, and their lengths in the current placement.
#[derive(Debug)]
struct Cuts {
    width: usize,
    /// How often path `c` uses channel `l`, at `l * width + c`.
    counts: Vec<u32>,
    /// The channels of every path.
    channels: Vec<Vec<u32>>,
    lengths: Vec<i64>,
    /// When every path last rejected an exchange.
    used: Vec<u64>,
    clock: u64,
    /// Change of every length by an exchange.
    deltas: Vec<i64>,
}

/// A channel whose time changes by an exchange.
#[derive(Debug, Clone, Copy)]
struct Change {
    channel: u32,
    delta: i64,
}

/// A path from the end of a program back to its start.
#[derive(Debug, Default)]
struct Path {
    /// Its minimum time without messages.
    fixed: i64,
    /// The channels of its messages.
    channels: Vec<u32>,
}

impl Cuts {
    fn new(channels: usize) -> Self {
        Self {
            width: (MOST_ENTRIES / channels.max(1)).clamp(4, MOST),
            counts: Vec::new(),
            channels: Vec::new(),
            lengths: Vec::new(),
            used: Vec::new(),
            clock: 0,
            deltas: Vec::new(),
        }
    }

    /// Whether a path exceeds a limit after an exchange.
    fn rule_out(&mut self, changes: &[Change], limit: i64) -> bool {
        self.clock += 1;
        self.deltas.clear();
        self.deltas.resize(self.lengths.len(), 0);
        for change in changes {
            let row = &self.counts[change.channel as usize * self.width..][..self.width];
            for (delta, &count) in self.deltas.iter_mut().zip(row) {
                *delta += i64::from(count) * change.delta;
            }
        }
        let mut lengths = self.lengths.iter().zip(&self.deltas);
        match lengths.position(|(length, delta)| length + delta > limit) {
            Some(path) => {
                self.used[path] = self.clock;
                true
            }
            None => false,
        }
    }

    /// Applies the exchange evaluated last.
    fn accept(&mut self) {
        self.lengths.iter_mut().zip(&self.deltas).for_each(|(length, delta)| *length += delta);
    }

    /// The length of the longest path.
    fn longest(&self) -> i64 {
        self.lengths.iter().copied().max().unwrap_or(i64::MIN)
    }

    /// Adds a path in the current placement; replaces the least recently useful one.
    fn add(&mut self, path: &Path, delays: &[i64]) {
        if self.counts.is_empty() {
            self.counts = vec![0; delays.len() * self.width];
        }
        let place = match self.lengths.len() < self.width {
            true => {
                self.channels.push(Vec::new());
                self.lengths.push(0);
                self.used.push(0);
                self.lengths.len() - 1
            }
            false => (0..self.width).min_by_key(|&path| self.used[path]).unwrap_or(0),
        };
        for &channel in &self.channels[place] {
            self.counts[channel as usize * self.width + place] = 0;
        }
        let (mut channels, mut length) = (std::mem::take(&mut self.channels[place]), path.fixed);
        channels.clear();
        for &channel in &path.channels {
            length += delays[channel as usize];
            let count = &mut self.counts[channel as usize * self.width + place];
            *count += 1;
            if *count == 1 {
                channels.push(channel);
            }
        }
        self.channels[place] = channels;
        self.lengths[place] = length;
        self.used[place] = self.clock;
    }
}

impl Path {
    /// The critical path of a pass: from the last node of the late rank back along the latest dependencies.
    fn trace_back(&mut self, problem: &ReplayProblem, pass: &Pass, delays: &[i64], late: Late) {
        let (program, model) = (&problem.program, problem.costs.messages.model);
        self.channels.clear();
        self.fixed = late.tail;
        let nodes = program.nodes_of(late.rank);
        let mut at =
            nodes.partition_point(|&node| node < late.end).checked_sub(1).map_or(NONE, |last| nodes[last]);
        while at != NONE {
            self.fixed += problem.costs.work.least[at as usize];
            let previous = program.previous[at as usize];
            let mut best =
                (if previous == NONE { i64::MIN } else { pass.finish[previous as usize] }, previous, NONE);
            let mut receives = (0, NONE);
            for message in program.incoming(at) {
                let (sent, delay) = (pass.finish[message.source as usize], delays[message.channel as usize]);
                let arrives = match model {
                    DelayModel::Overlap => (sent + delay, message.source, message.channel),
                    DelayModel::Receive => (sent, message.source, NONE),
                };
                if delay > receives.0 {
                    receives = (delay, message.channel);
                }
                if arrives.0 > best.0 {
                    best = arrives;
                }
            }
            let (time, before, mut channel) = best;
            if model == DelayModel::Receive {
                channel = receives.1;
            }
            // A late start of the slot dominates all predecessors.
            let begins = before == NONE || time < pass.begin(program.rank[at as usize]);
            if channel != NONE && (model == DelayModel::Receive || !begins) {
                self.channels.push(channel);
            }
            at = if begins { NONE } else { before };
        }
        self.fixed += problem.costs.slots.earliest;
    }
}
