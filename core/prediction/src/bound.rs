//! Seconds that no mapping of a program on a machine can beat.
//!
//! Each of these bounds holds in every mapping, for every way in which messages share links; the result is the
//! largest one.
//!
//! - **Clocks** ([`clocks`]): every rank's clock with its messages at the least costs that its own surroundings
//!   allow, and with the messages that arrive at a host in succession one after the other.
//! - **Separated pairs** ([`pairs`]): some pair of ranks that exchange messages is in two groups of hosts.
//! - **Mean path** ([`flow`]): the mean over a distribution of paths through the program is the objective of a
//!   quadratic assignment problem, with the bounds of these problems.
//! - **Cuts** ([`cuts`]): the bytes between groups of hosts, over the capacity of the links between them.
//!
//! # Why computation, latency and cuts add up
//!
//! A cut alone says nothing about computation, and a clock nothing about links that other ranks use. They are
//! added in *windows* ([`windows`]): all messages of window e are sent after the clock s of its first send, and
//! have arrived before any rank enters epoch e + 1, because every rank's entry depends on their receivers.
//! They need at least c seconds on the links of a cut, and none is on a link before s plus the least latency
//! across the cut. Packets are, but pay the rest of it after the link; where flows can follow packets, c has no
//! latency. So no rank's entry is before s + c, which is a bound of its clock like others: the pass over the
//! program goes on from there. The whole program is a window, too, without an entry after it.

mod clocks;
mod cuts;
mod error;
mod expand;
mod flow;
mod machine;
mod pairs;
mod steps;
#[cfg(test)]
mod tests;
mod weights;
mod windows;

use hopmap_model::{Program, SystemGraph, TaskGraph};

use crate::network::{NetworkError, Rate};
use crate::replay::Options;
use clocks::{Clocks, clocks};
use cuts::Effort;
pub use error::BoundError;
use machine::Machine;
use steps::{Step, Steps};
use weights::Weights;
use windows::Windows;

/// Bounds are lowered by this factor: they are sums of roundings.
const ROUNDING: f64 = 1.0 - 1e-9;
/// Windows of different traffic whose cuts are computed.
const MOST_TRAFFICS: usize = 32;

/// Seconds that no mapping can beat.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Bound {
    /// Computation of the slowest rank.
    pub computation_s: f64,
    /// The latest clock, windows included.
    pub clocks_s: f64,
    /// Some pair of ranks in two groups of hosts.
    pub separated_s: f64,
    /// The mean over paths through the program.
    pub mean_path_s: f64,
    /// The bytes of the whole program over a cut.
    pub cut_s: f64,
    /// Slots of the groups of that cut; `None` if it is over all links between switches, or if there is none.
    pub cut_slots: Option<usize>,
}

/// What a bound comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BoundKind {
    /// Computation of the slowest rank.
    Computation,
    /// Computation, latency and the links of hosts along the history of a rank.
    Clocks,
    /// Some pair of ranks is in two groups of hosts.
    SeparatedPair,
    /// Paths through the program.
    MeanPath,
    /// Bytes over a cut.
    Cut,
}

impl Bound {
    /// The largest of the bounds, in seconds, and what it comes from.
    #[must_use]
    pub fn largest(&self) -> (f64, BoundKind) {
        let others = [
            (self.clocks_s, BoundKind::Clocks),
            (self.separated_s, BoundKind::SeparatedPair),
            (self.mean_path_s, BoundKind::MeanPath),
            (self.cut_s, BoundKind::Cut),
        ];
        let first = (self.computation_s, BoundKind::Computation);
        others.into_iter().fold(first, |largest, other| if other.0 > largest.0 { other } else { largest })
    }

    /// The bound in seconds.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.largest().0
    }
}

/// Checks that all hosts reach each other: no mapping could use the others, but the bound does not know them.
fn check_routes(system: &SystemGraph, machine: &Machine) -> Result<(), NetworkError> {
    let name = |node: u32| system.nodes[node as usize].name.clone();
    match machine.unreachable {
        Some((from, to)) => Err(NetworkError::NoRoute { from: name(from), to: name(to) }),
        None => Ok(()),
    }
}

/// The seconds that no mapping of a program on a machine can beat in a [replay](crate::replay) with these options.
///
/// Takes less than a microsecond per operation, and some tenths of a second for cuts; memory of about 100
/// bytes per message. Fails within a second once `stop` returns `true`.
pub fn bound(
    program: &Program,
    system: &SystemGraph,
    options: &Options,
    stop: &dyn Fn() -> bool,
) -> Result<Bound, BoundError> {
    program.check()?;
    let machine = &Machine::new(system, options.memory, options.pairs.as_ref());
    check_routes(system, machine)?;
    let ranks = program.ranks() as usize;
    if ranks > machine.slots {
        return Err(BoundError::TooFewSlots { ranks, slots: machine.slots });
    }
    let program = expand::expanded(program, &options.algorithms)?;
    let steps = &Steps::new(&program, options, stop)?;
    let clocks = clocks_with_windows(steps, machine)?;
    let separated_s = pairs::separated(steps, machine, &clocks);
    steps.check_stop()?;
    let mean_path_s = flow::mean_path(steps, machine);
    steps.check_stop()?;
    let (cut_s, cut_slots) = whole_cut(steps, machine, &clocks)?;
    Ok(Bound {
        computation_s: computation_s(steps) * ROUNDING,
        clocks_s: clocks.end() * ROUNDING,
        separated_s: separated_s * ROUNDING,
        mean_path_s: mean_path_s * ROUNDING,
        cut_s: cut_s * ROUNDING,
        cut_slots,
    })
}

/// The clocks, with the windows that have the longest durations together.
fn clocks_with_windows(steps: &Steps<'_>, machine: &Machine) -> Result<Clocks, BoundError> {
    let (mut chosen, mut longest) = ((Windows::none(steps), Vec::new()), 0.0);
    for windows in Windows::all(steps) {
        let durations = durations(steps, machine, &windows)?;
        let of_window = |&traffic: &u32| durations.get(traffic as usize).copied().unwrap_or(0.0);
        let sum: f64 = windows.traffic_of.iter().map(of_window).sum();
        // Short windows come first: they add more computation.
        if sum > longest * 1.01 {
            (chosen, longest) = ((windows, durations), sum);
        }
    }
    let clocks = clocks(steps, machine, &chosen.0, &chosen.1);
    steps.check_stop()?;
    Ok(clocks)
}

/// The least seconds of windows, by their traffic.
fn durations(steps: &Steps<'_>, machine: &Machine, windows: &Windows) -> Result<Vec<f64>, BoundError> {
    let effort = Effort::shared(windows.traffic.len() * windows::WIDTHS.len());
    let duration = |traffic: &Vec<(u32, f64)>| {
        let bytes = weights(steps, traffic.iter().copied());
        Ok(cut(&bytes, machine, (steps.least_latency_factor(), effort), &|| steps.is_stopped())?.0)
    };
    windows.traffic.iter().take(MOST_TRAFFICS).map(duration).collect()
}

/// The computation of the slowest rank, in recorded seconds.
fn computation_s(steps: &Steps<'_>) -> f64 {
    let of_step = |step: &Step| match *step {
        Step::Compute(number) => steps.seconds[number as usize],
        _ => 0.0,
    };
    (0..steps.ranks() as u32).map(|rank| steps.of_rank(rank).iter().map(of_step).sum()).fold(0.0, f64::max)
}

/// Bytes by pair as weights.
fn weights(steps: &Steps<'_>, bytes: impl IntoIterator<Item = (u32, f64)>) -> Weights {
    let pair = |(pair, bytes): (u32, f64)| {
        let (source, destination) = steps.pairs[pair as usize];
        (source, destination, bytes)
    };
    Weights::new(steps.ranks(), bytes.into_iter().map(pair))
}

/// The bytes of the whole program over a cut, after the first message that could be on it, and before the
/// computation that follows the last one.
fn whole_cut(
    steps: &Steps<'_>,
    machine: &Machine,
    clocks: &Clocks,
) -> Result<(f64, Option<usize>), BoundError> {
    let mut bytes = vec![0.0; steps.pairs.len()];
    let mut first = f64::INFINITY;
    for (number, message) in steps.messages.iter().enumerate() {
        let (source, destination) = steps.pairs[message.pair as usize];
        if source != destination {
            bytes[message.pair as usize] += steps.lengths[message.length as usize].bytes;
            first = first.min(clocks.ready(number as u32));
        }
    }
    let pairs = (0..bytes.len() as u32).zip(bytes.iter().copied());
    let effort = (steps.least_latency_factor(), Effort::MOST);
    let (seconds, slots) = cut(&weights(steps, pairs), machine, effort, &|| steps.is_stopped())?;
    Ok((if seconds > 0.0 { first + seconds + tail_s(steps) } else { 0.0 }, slots))
}

/// The least computation of a rank after its last message.
fn tail_s(steps: &Steps<'_>) -> f64 {
    let tail = |rank: u32| {
        let mut tail = 0.0;
        for step in steps.of_rank(rank).iter().rev() {
            match step {
                Step::Compute(number) => tail += steps.seconds[*number as usize],
                Step::Receive(_) => return Some(tail),
                _ => {}
            }
        }
        None
    };
    (0..steps.ranks() as u32).filter_map(tail).reduce(f64::min).unwrap_or(0.0)
}

/// The least seconds in which bytes pass the links between groups, and the slots of the groups; none if the
/// bound is that of all inner links together.
fn cut(
    bytes: &Weights,
    machine: &Machine,
    (latency_factor, effort): (f64, Effort),
    stop: &dyn Fn() -> bool,
) -> Result<(f64, Option<usize>), BoundError> {
    let go_on = || if stop() { Err(BoundError::Stopped) } else { Ok(()) };
    let mut longest = (0.0, None);
    let symmetric = bytes.symmetric();
    let reversed = bytes.reversed();
    for division in &machine.divisions {
        go_on()?;
        let level = &machine.levels[division.level];
        // Slots without a rank are fewer than those of the machine that are not needed.
        let unused = machine.slots - bytes.ranks();
        let sizes = division.least_slots.saturating_sub(unused).max(1)..=division.slots;
        let seconds = [
            symmetric.crossing(division.slots, division.slots, effort) / division.total,
            bytes.heaviest_group(sizes.clone(), effort) / division.most_out,
            reversed.heaviest_group(sizes, effort) / division.most_in,
        ];
        let seconds = seconds.into_iter().fold(0.0, f64::max);
        let seconds = if seconds > 0.0 { seconds + level.latency_s * latency_factor } else { 0.0 };
        if seconds > longest.0 {
            longest = (seconds, Some(division.slots));
        }
    }
    let mut on_inner_links = 0.0;
    let mut before = 0.0;
    for level in &machine.levels {
        let rise = level.inner_seconds_per_byte - before;
        before = level.inner_seconds_per_byte;
        if rise > 0.0 {
            go_on()?;
            on_inner_links += rise * symmetric.crossing(level.ball, level.group, effort);
        }
    }
    let seconds = on_inner_links / machine.inner_links.max(1) as f64;
    Ok(if seconds > longest.0 { (seconds, None) } else { longest })
}

/// The seconds that no mapping can beat, without events: computation of the slowest rank, and bytes over cuts.
///
/// Fails within a second once `stop` returns `true`.
pub fn bound_of_totals(
    program: &TaskGraph,
    system: &SystemGraph,
    stop: &dyn Fn() -> bool,
) -> Result<Bound, BoundError> {
    let (ranks, slots) = (program.ranks(), system.slots.len());
    if ranks > slots {
        return Err(BoundError::TooFewSlots { ranks, slots });
    }
    let machine = Machine::new(system, Rate::MEMORY, None);
    check_routes(system, &machine)?;
    let computation_s = program.processes.iter().filter_map(|process| process.compute_s).fold(0.0, f64::max);
    let edges = program.edges.iter().map(|edge| (edge.source, edge.destination, edge.bytes as f64));
    let (cut_s, cut_slots) = cut(&Weights::new(ranks, edges), &machine, (1.0, Effort::MOST), stop)?;
    Ok(Bound { computation_s, cut_s: cut_s * ROUNDING, cut_slots, ..Bound::default() })
}
