//! Windows of a program: parts that follow each other in time on all ranks.
//!
//! A rank *enters* epoch e + 1 at the first step that depends on the entry of every rank into epoch e. The
//! last entry into an epoch is therefore no later than the first one into the next. The *closing* step of a
//! rank in epoch e is its last send on which the entries of all ranks into epoch e + 1 depend. Messages that
//! are sent after the entry of their sender into epoch e, and received before the closing step of their
//! receiver, are the messages of window e. No transfer of a later window starts before all those of window e
//! have ended, so that the times of windows add up. All this holds as well for every second epoch, or fourth.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::steps::{Step, Steps};

/// Messages of no window.
pub(super) const NO_WINDOW: u32 = u32::MAX;
/// Ranks above which dependencies are not followed: a set of ranks travels with every message.
const MOST_RANKS: usize = 4096;

/// The windows of a program.
#[derive(Debug, Default)]
pub(super) struct Windows {
    /// Index of the step at which each rank enters each epoch after the first.
    pub(super) entries: Vec<Vec<usize>>,
    /// Window of each message; empty if there are no windows.
    pub(super) of_message: Vec<u32>,
    /// Index into `traffic` of each window; [`NO_WINDOW`] if it has no messages.
    pub(super) traffic_of: Vec<u32>,
    /// Different amounts of traffic: bytes by pair, in the order of pairs.
    pub(super) traffic: Vec<Vec<(u32, f64)>>,
}

const NONE: u32 = u32::MAX;

/// A set of ranks.
type Ranks = Box<[u64]>;

/// What messages and posted receives carry to the other end: an epoch and a set of ranks.
struct Carried {
    words: usize,
    /// Place of each message and each posted receive; [`NONE`] if nobody takes it any more.
    places: Vec<u32>,
    epochs: Vec<usize>,
    sets: Vec<u64>,
    vacant: Vec<u32>,
}

impl Carried {
    fn new(steps: &Steps<'_>) -> Self {
        Self {
            words: steps.ranks().div_ceil(64),
            places: vec![NONE; 2 * steps.messages.len()],
            epochs: Vec::new(),
            sets: Vec::new(),
            vacant: Vec::new(),
        }
    }

    fn put(&mut self, key: usize, epoch: usize, set: &Ranks) {
        let place = self.vacant.pop().unwrap_or_else(|| {
            self.epochs.push(0);
            self.sets.resize(self.sets.len() + self.words, 0);
            self.epochs.len() as u32 - 1
        });
        self.places[key] = place;
        self.epochs[place as usize] = epoch;
        self.sets[place as usize * self.words..][..self.words].copy_from_slice(set);
    }

    /// What was put, if it was: senders need not wait for posted receives.
    fn take(&mut self, key: usize) -> Option<(usize, &[u64])> {
        let place = std::mem::replace(&mut self.places[key], NONE);
        if place == NONE {
            return None;
        }
        self.vacant.push(place);
        Some((self.epochs[place as usize], &self.sets[place as usize * self.words..][..self.words]))
    }
}

/// Key of a message or posted receive.
fn key(step: Step) -> Option<usize> {
    match step {
        Step::Send(message) | Step::Receive(message) => Some(2 * message as usize),
        Step::Post(message) | Step::Finish(message) => Some(2 * message as usize + 1),
        Step::Compute(_) => None,
    }
}

/// Numbers of epochs in a window, and before the first one. A step that synchronises all ranks at once, such as
/// an all-to-all, is in no window of one epoch: ranks enter the next one in its midst.
pub(super) const WIDTHS: [(usize, usize); 4] = [(1, 0), (2, 0), (2, 1), (4, 0)];

impl Windows {
    /// No windows.
    pub(super) fn none(steps: &Steps<'_>) -> Self {
        Self { entries: vec![Vec::new(); steps.ranks()], ..Self::default() }
    }

    /// Several ways to divide a program into windows.
    pub(super) fn all<'a>(steps: &'a Steps<'_>) -> impl Iterator<Item = Self> + 'a {
        let mut epochs = Self::none(steps);
        if (2..=MOST_RANKS).contains(&steps.ranks()) {
            epochs.find_entries(steps);
        }
        let windows = move |(width, first): (usize, usize)| {
            let entries = epochs.entries.iter().map(|entries| entries.iter().skip(first).step_by(width));
            let mut windows =
                Self { entries: entries.map(|own| own.copied().collect()).collect(), ..Self::default() };
            let count = windows.entries.iter().map(Vec::len).min().unwrap_or(0);
            if count > 0 && !steps.is_stopped() {
                windows.traffic_of = vec![NO_WINDOW; count];
                windows.assign(steps);
            }
            windows
        };
        WIDTHS.into_iter().map(windows).filter(|windows| !windows.traffic.is_empty())
    }

    /// Follows the epoch of every rank, and the ranks whose entries into it the rank depends on: vector
    /// clocks of one bit per rank.
    fn find_entries(&mut self, steps: &Steps<'_>) {
        let ranks = steps.ranks();
        let mut states: Vec<(usize, Ranks)> = (0..ranks as u32).map(|rank| (0, only(ranks, rank))).collect();
        let mut carried = Carried::new(steps);
        steps.visit(|rank, index, step| {
            let Some(key) = key(step) else { return };
            let (own_epoch, own) = &mut states[rank as usize];
            if matches!(step, Step::Send(_) | Step::Post(_)) {
                carried.put(key, *own_epoch, own);
                return;
            }
            let Some((epoch, known)) = carried.take(key) else { return };
            let entries = &mut self.entries[rank as usize];
            while *own_epoch < epoch {
                // The sender depends on all entries into the epoch before.
                *own_epoch += 1;
                entries.push(index);
                set_only(own, rank);
            }
            if *own_epoch == epoch && unite(own, known, ranks) {
                *own_epoch += 1;
                entries.push(index);
                set_only(own, rank);
            }
        });
    }

    /// Assigns messages, backwards: a rank knows which ranks' entries into the next epoch depend on it.
    fn assign(&mut self, steps: &Steps<'_>) {
        let ranks = steps.ranks();
        let mut of_message = vec![NO_WINDOW; steps.messages.len()];
        // The last entry closes the last window.
        let mut epochs: Vec<usize> = self.entries.iter().map(Vec::len).collect();
        let mut dependants: Vec<Ranks> = vec![empty(ranks); ranks];
        let mut is_closed = vec![false; ranks];
        let mut carried = Carried::new(steps);
        let mut collected = Collected::default();
        steps.visit_backwards(|rank, index, step| {
            let own = rank as usize;
            while epochs[own] > 0 && self.entries[own][epochs[own] - 1] == index {
                epochs[own] -= 1;
                set_only(&mut dependants[own], rank);
                is_closed[own] = false;
            }
            let Some(key) = key(step) else { return };
            match step {
                Step::Receive(message) if is_closed[own] => of_message[message as usize] = epochs[own] as u32,
                Step::Send(message) => {
                    let window = &mut of_message[message as usize];
                    match *window == epochs[own] as u32 {
                        true => collected.add(*window, steps, message),
                        false => *window = NO_WINDOW,
                    }
                }
                _ => {}
            }
            if matches!(step, Step::Receive(_) | Step::Finish(_)) {
                carried.put(key, epochs[own], &dependants[own]);
                return;
            }
            if let Some((epoch, known)) = carried.take(key)
                && epoch == epochs[own]
                && unite(&mut dependants[own], known, ranks)
            {
                is_closed[own] = true;
            }
        });
        collected.finish();
        for (window, traffic) in collected.windows {
            if let Some(of_window) = self.traffic_of.get_mut(window as usize) {
                *of_window = traffic;
            }
        }
        self.of_message = of_message;
        self.traffic = collected.traffic;
    }
}

/// Traffic of one window after the other.
#[derive(Default)]
struct Collected {
    window: u32,
    bytes: HashMap<u32, f64, RandomState>,
    /// Traffic of the windows so far, and numbers of different traffic.
    windows: Vec<(u32, u32)>,
    numbers: HashMap<Vec<(u32, u64)>, u32, RandomState>,
    traffic: Vec<Vec<(u32, f64)>>,
}

impl Collected {
    /// All messages of a window come in succession, in any order of the steps: windows depend on each other.
    fn add(&mut self, window: u32, steps: &Steps<'_>, message: u32) {
        if window != self.window {
            self.finish();
            self.window = window;
        }
        let pair = steps.messages[message as usize].pair;
        *self.bytes.entry(pair).or_default() += steps.length(message).bytes;
    }

    fn finish(&mut self) {
        if self.bytes.is_empty() {
            return;
        }
        let mut key: Vec<(u32, u64)> =
            self.bytes.drain().map(|(pair, bytes)| (pair, bytes.to_bits())).collect();
        key.sort_unstable();
        let next = self.traffic.len() as u32;
        let number = *self.numbers.entry(key).or_insert_with_key(|key| {
            self.traffic.push(key.iter().map(|&(pair, bits)| (pair, f64::from_bits(bits))).collect());
            next
        });
        self.windows.push((self.window, number));
    }
}

fn empty(ranks: usize) -> Ranks {
    vec![0; ranks.div_ceil(64)].into_boxed_slice()
}

fn only(ranks: usize, rank: u32) -> Ranks {
    let mut set = empty(ranks);
    set_only(&mut set, rank);
    set
}

fn set_only(set: &mut Ranks, rank: u32) {
    set.fill(0);
    set[rank as usize / 64] = 1 << (rank % 64);
}

/// Adds ranks to a set, and says whether it has all of them.
fn unite(set: &mut Ranks, other: &[u64], ranks: usize) -> bool {
    let mut count = 0;
    for (word, other) in set.iter_mut().zip(other) {
        *word |= other;
        count += word.count_ones() as usize;
    }
    count == ranks
}
