//! Pairs of ranks that no division of the ranks into groups keeps together.
//!
//! If the pairs of some set connect more ranks than a group has slots, one of them is in two groups, whatever
//! the mapping. The program lasts at least as long as it would if just that pair were in two groups: the
//! clocks of its two ranks are followed, with all other messages at their bounds in any mapping. The least
//! over the pairs of a set is a bound. The best set is found as a spanning tree is (Kruskal): pairs are
//! added from the longest to the shortest until a component is larger than a group.

use std::collections::{BTreeMap, HashMap};

use foldhash::fast::RandomState;

use super::clocks::{Clocks, RankClock, Transfer, partners};
use super::machine::{Level, Machine};
use super::steps::{Step, Steps};
use hopmap_graph::DisjointSets;

/// Steps that may be followed for all pairs: a multiple of those of the program, or this number.
const EFFORT: usize = 4;
const LEAST_EFFORT: usize = 1 << 20;

/// The least seconds if some pair of ranks is in two groups, for the best of all divisions into groups.
pub(super) fn separated(steps: &Steps<'_>, machine: &Machine, clocks: &Clocks) -> f64 {
    let divisions: Vec<usize> = (0..machine.divisions.len())
        .filter(|&division| machine.divisions[division].slots < steps.ranks())
        .collect();
    let effort = (EFFORT * steps.list.len()).max(LEAST_EFFORT) / divisions.len().max(1);
    let pairs = candidates(steps, machine, effort);
    let runs = Runs::new(steps);
    let mut longest = 0.0_f64;
    for division in divisions {
        let level = &machine.levels[machine.divisions[division].level];
        let follow = |&(a, b): &(u32, u32)| {
            let seconds = if steps.is_stopped() { 0.0 } else { runs.follow(machine, clocks, level, (a, b)) };
            (seconds, a, b)
        };
        let mut followed: Vec<(f64, u32, u32)> = pairs.iter().map(follow).collect();
        followed.sort_unstable_by(|x, y| y.0.total_cmp(&x.0).then((x.1, x.2).cmp(&(y.1, y.2))));
        let edges = followed.iter().map(|&(seconds, a, b)| (a, b, seconds));
        let seconds = connecting(steps.ranks(), edges, machine.divisions[division].slots);
        longest = longest.max(seconds.unwrap_or(0.0));
    }
    longest
}

/// The pairs to follow: a spanning forest of the heaviest, and then the heaviest others.
fn candidates(steps: &Steps<'_>, machine: &Machine, effort: usize) -> Vec<(u32, u32)> {
    let Some(far) = machine.levels.last() else { return Vec::new() };
    let mut weights: BTreeMap<(u32, u32), f64> = BTreeMap::new();
    let mut of_pair = vec![0.0; steps.pairs.len()];
    for message in &steps.messages {
        let length = &steps.lengths[message.length as usize];
        let cost = far.latency_s * length.latency_factor + length.bytes * far.seconds_per_byte;
        of_pair[message.pair as usize] += cost;
    }
    for (&(a, b), cost) in steps.pairs.iter().zip(of_pair).filter(|(ends, _)| ends.0 != ends.1) {
        *weights.entry((a.min(b), a.max(b))).or_default() += cost;
    }
    let mut pairs: Vec<((u32, u32), f64)> = weights.into_iter().collect();
    pairs.sort_by(|x, y| y.1.total_cmp(&x.1));
    let mut forest = DisjointSets::new(steps.ranks());
    let (mut first, others): (Vec<_>, Vec<_>) = pairs
        .into_iter()
        .map(|pair| pair.0)
        .partition(|&(a, b)| forest.join(a as usize, b as usize).is_some());
    first.extend(others);
    let steps_of = |rank: u32| steps.of_rank(rank).len();
    let mut used = 0;
    let is_affordable = |&(a, b): &(u32, u32)| {
        used += steps_of(a) + steps_of(b);
        used <= effort
    };
    first.into_iter().take_while(is_affordable).collect()
}

/// Adds pairs until they connect more than `most` ranks; the value of the last one.
fn connecting(ranks: usize, pairs: impl Iterator<Item = (u32, u32, f64)>, most: usize) -> Option<f64> {
    let mut forest = DisjointSets::new(ranks);
    pairs
        .into_iter()
        .find(|&(a, b, _)| forest.join(a as usize, b as usize).is_some_and(|size| size > most))
        .map(|pair| pair.2)
}

/// The runs of every rank, in an order without waiting.
struct Runs<'a> {
    steps: &'a Steps<'a>,
    partners: Vec<usize>,
    /// For each rank: index in the order, begin and end.
    of_rank: Vec<Vec<(usize, usize, usize)>>,
}

impl<'a> Runs<'a> {
    fn new(steps: &'a Steps) -> Self {
        let mut next = steps.starts.clone();
        let mut of_rank = vec![Vec::new(); steps.ranks()];
        for (index, &(rank, end)) in steps.order.iter().enumerate() {
            of_rank[rank as usize].push((index, next[rank as usize], end));
            next[rank as usize] = end;
        }
        Self { steps, partners: partners(steps), of_rank }
    }

    /// The seconds after which both ranks of a pair have ended, if they are beyond a distance.
    fn follow(&self, machine: &Machine, clocks: &Clocks, level: &Level, pair: (u32, u32)) -> f64 {
        let ranks = [pair.0, pair.1];
        let clock = |rank: u32| RankClock::new(machine, self.partners[rank as usize]);
        let mut follower = Follower {
            steps: self.steps,
            machine,
            clocks,
            level,
            ranks,
            own: ranks.map(clock),
            ready: HashMap::default(),
        };
        let runs = ranks.map(|rank| &self.of_rank[rank as usize]);
        let mut next = [0, 0];
        loop {
            let index = |side: usize| runs[side].get(next[side]).map_or(usize::MAX, |run| run.0);
            let side = usize::from(index(1) < index(0));
            let Some(&(_, begin, end)) = runs[side].get(next[side]) else { break };
            next[side] += 1;
            self.steps.list[begin..end].iter().for_each(|&step| follower.step(side, step));
        }
        follower.end()
    }
}

/// The clocks of two ranks that are beyond a distance.
struct Follower<'a> {
    steps: &'a Steps<'a>,
    machine: &'a Machine,
    /// Bounds in any mapping.
    clocks: &'a Clocks,
    level: &'a Level,
    ranks: [u32; 2],
    own: [RankClock; 2],
    /// When both ends are ready for messages between the two.
    ready: HashMap<u32, f64, RandomState>,
}

impl Follower<'_> {
    fn step(&mut self, side: usize, step: Step) {
        let clock = &mut self.own[side];
        if !matches!(step, Step::Receive(_) | Step::Finish(_)) {
            clock.end_of_transfers(self.machine);
        }
        match step {
            Step::Compute(number) => clock.offset += self.steps.seconds[number as usize],
            Step::Send(message) => {
                clock.offset += self.steps.length(message).send_s;
                clock.raise(self.clocks.sent[message as usize]);
                self.note(side, message);
            }
            Step::Post(message) => {
                clock.raise(self.clocks.posted[message as usize]);
                self.note(side, message);
            }
            Step::Receive(message) | Step::Finish(message) => {
                let between = self.ready.get(&message).copied();
                let both = between.unwrap_or(0.0).max(self.clocks.ready(message));
                let transfer = Transfer::new(self.steps, step, message, both);
                clock.transfer(self.machine, transfer);
                if between.is_some() {
                    clock.raise(transfer.end(self.level));
                }
            }
        }
    }

    /// Notes that an end of a message is ready, if the message is one between the two.
    fn note(&mut self, side: usize, message: u32) {
        let (source, destination) = self.steps.ends(message);
        let other = self.ranks[1 - side];
        if source == other || destination == other {
            let ready = self.ready.entry(message).or_default();
            *ready = ready.max(self.own[side].now());
        }
    }

    fn end(mut self) -> f64 {
        self.own.iter_mut().for_each(|clock| clock.end_of_transfers(self.machine));
        self.own[0].now().max(self.own[1].now())
    }
}
