//! A bound from paths through the program.
//!
//! A program lasts as long as its longest path of computation and messages, so at least as long as the mean of
//! any distribution over paths. If the distribution does not depend on the mapping, the mean is computation
//! plus Σ y(p, q) · cost of a message between p and q: the objective of a quadratic assignment problem, whose
//! weights y are the expected numbers of messages on a path. Every lower bound of that problem is one of
//! seconds. Here costs rise from level to level, and for each level the weight beyond it is at least
//! [`Weights::crossing`].
//!
//! The paths are those that are the longest ones if all messages cost the same, with equal shares where several
//! are.

use super::cuts::Effort;
use super::machine::{Level, Machine};
use super::steps::{Step, Steps};
use super::weights::Weights;

/// Relative difference up to which times are the same.
const SAME: f64 = 1e-9;

/// What happened at a step that waits for a message.
const ARRIVED_LAST: u8 = 1;
/// The rank itself was as late.
const OWN_LAST: u8 = 2;
/// The receive was posted after the send.
const POSTED_LAST: u8 = 4;

/// The least seconds of the mean path.
pub(super) fn mean_path(steps: &Steps<'_>, machine: &Machine) -> f64 {
    let Some(far) = machine.levels.last() else { return 0.0 };
    let forward = Forward::new(steps, far);
    let paths = Paths::new(steps, &forward);
    paths.seconds(steps, machine)
}

/// Clocks if all messages cost the same.
struct Forward {
    ends: Vec<f64>,
    flags: Vec<u8>,
}

impl Forward {
    fn new(steps: &Steps<'_>, level: &Level) -> Self {
        let mut sent = vec![0.0; steps.messages.len()];
        let mut posted = vec![0.0_f64; steps.messages.len()];
        // Arrivals of the messages in succession of each rank, and its clock before them.
        let mut arrivals: Vec<Vec<f64>> = vec![Vec::new(); steps.ranks()];
        let mut this = Self { ends: vec![0.0; steps.ranks()], flags: vec![0; steps.list.len()] };
        let mut before = vec![0.0; steps.ranks()];
        steps.visit(|rank, index, step| {
            let clock = &mut this.ends[rank as usize];
            match step {
                Step::Compute(number) => *clock += steps.seconds[number as usize],
                Step::Send(message) => {
                    *clock += steps.length(message).send_s;
                    sent[message as usize] = *clock;
                }
                Step::Post(message) => posted[message as usize] = *clock,
                Step::Receive(message) | Step::Finish(message) => {
                    let (sent, posted) = (sent[message as usize], posted[message as usize]);
                    let length = steps.length(message);
                    let cost =
                        length.bytes * level.seconds_per_byte + length.latency_factor * level.latency_s;
                    if index == steps.starts[rank as usize] || !is_transfer(steps.list[index - 1]) {
                        before[rank as usize] = *clock;
                        arrivals[rank as usize].clear();
                    }
                    let arrival = sent.max(posted) + cost + receive_s(step, steps, message);
                    arrivals[rank as usize].push(arrival);
                    *clock = clock.max(arrival);
                    if posted > sent {
                        this.flags[index] |= POSTED_LAST;
                    }
                    if is_last_transfer(steps, rank, index) {
                        let flags = &mut this.flags;
                        let is_last = |time: f64| time >= *clock * (1.0 - SAME);
                        let arrivals = arrivals[rank as usize].iter().rev();
                        for (transfer, &arrival) in transfers(steps, rank, index).zip(arrivals) {
                            flags[transfer] |= u8::from(is_last(arrival)) * ARRIVED_LAST;
                        }
                        flags[index] |= u8::from(is_last(before[rank as usize])) * OWN_LAST;
                    }
                }
            }
        });
        this
    }
}

fn receive_s(step: Step, steps: &Steps<'_>, message: u32) -> f64 {
    if matches!(step, Step::Receive(_)) { steps.length(message).receive_s } else { 0.0 }
}

fn is_transfer(step: Step) -> bool {
    matches!(step, Step::Receive(_) | Step::Finish(_))
}

fn is_last_transfer(steps: &Steps<'_>, rank: u32, index: usize) -> bool {
    index + 1 == steps.starts[rank as usize + 1] || !is_transfer(steps.list[index + 1])
}

/// The messages in succession that end with a step, backwards.
fn transfers<'a>(steps: &'a Steps<'_>, rank: u32, last: usize) -> impl Iterator<Item = usize> + 'a {
    let begin = steps.starts[rank as usize];
    (begin..=last).rev().take_while(|&index| is_transfer(steps.list[index]))
}

/// The distribution over paths.
struct Paths {
    computation_s: f64,
    /// Expected latencies, and bytes, of the messages of each pair.
    latencies: Vec<f64>,
    bytes: Vec<f64>,
}

impl Paths {
    /// Follows paths backwards from the ranks that end last.
    fn new(steps: &Steps<'_>, forward: &Forward) -> Self {
        let mut paths = Self {
            computation_s: 0.0,
            latencies: vec![0.0; steps.pairs.len()],
            bytes: vec![0.0; steps.pairs.len()],
        };
        let end = forward.ends.iter().copied().fold(0.0, f64::max);
        let is_last = |time: f64| time >= end * (1.0 - SAME);
        let count = forward.ends.iter().filter(|&&time| is_last(time)).count() as f64;
        // The probability that a path passes each rank now, and that it comes from each message.
        let mut at_rank: Vec<f64> =
            forward.ends.iter().map(|&time| if is_last(time) { 1.0 / count } else { 0.0 }).collect();
        let mut share = vec![0.0; steps.ranks()];
        let mut of_send = vec![0.0; steps.messages.len()];
        let mut of_post = vec![0.0; steps.messages.len()];
        steps.visit_backwards(|rank, index, step| {
            let flags = forward.flags[index];
            let here = &mut at_rank[rank as usize];
            match step {
                Step::Compute(number) => {
                    paths.computation_s += *here * steps.seconds[number as usize];
                }
                Step::Send(message) => {
                    *here += of_send[message as usize];
                    paths.computation_s += *here * steps.length(message).send_s;
                }
                Step::Post(message) => *here += of_post[message as usize],
                Step::Receive(message) | Step::Finish(message) => {
                    let share = &mut share[rank as usize];
                    if is_last_transfer(steps, rank, index) {
                        let is_last = |&transfer: &usize| forward.flags[transfer] & ARRIVED_LAST != 0;
                        let own = flags & OWN_LAST != 0;
                        let ways = transfers(steps, rank, index).filter(is_last).count() + usize::from(own);
                        *share = *here / ways.max(1) as f64;
                        *here = if own { *share } else { 0.0 };
                    }
                    if flags & ARRIVED_LAST == 0 {
                        return;
                    }
                    let (pair, length) = (steps.messages[message as usize].pair, steps.length(message));
                    paths.latencies[pair as usize] += *share * length.latency_factor;
                    paths.bytes[pair as usize] += *share * length.bytes;
                    paths.computation_s += *share * receive_s(step, steps, message);
                    let of = if flags & POSTED_LAST == 0 { &mut of_send } else { &mut of_post };
                    of[message as usize] += *share;
                }
            }
        });
        paths
    }

    /// The least mean over all mappings.
    fn seconds(&self, steps: &Steps<'_>, machine: &Machine) -> f64 {
        let mut seconds = self.computation_s;
        let (mut latency_s, mut seconds_per_byte) = (0.0, 0.0);
        for level in &machine.levels {
            let rise = (level.latency_s - latency_s, level.seconds_per_byte - seconds_per_byte);
            (latency_s, seconds_per_byte) = (level.latency_s, level.seconds_per_byte);
            let weight = |(pair, &(source, destination)): (usize, &(u32, u32))| {
                let weight = self.latencies[pair] * rise.0 + self.bytes[pair] * rise.1;
                (source, destination, weight)
            };
            let pairs = steps.pairs.iter().enumerate().map(weight);
            let weights = Weights::new(steps.ranks(), pairs).symmetric();
            seconds += weights.crossing(level.ball, level.group, Effort::MOST);
        }
        seconds
    }
}
