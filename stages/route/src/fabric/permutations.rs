//! Fewer collisions of single permutations: all shifts, and the bit reversal. Tables that are balanced for all pairs of hosts can still send
//! many pairs of one permutation over one link.
//!
//! A local search moves one entry of a table at a time to another path of the same length, if that lowers the sum of the fourth powers of
//! all loads in all permutations. Links may get some more pairs of hosts than the busiest one had. In the last passes they may not, and
//! entries leave the links that have too many at the least cost, so that the busiest link gets what it had, or less.

use super::network::FabricNetwork;
use super::traffic::reversed;
use super::trees::{NONE, Trees};

/// In every pass over all entries, the part of the busiest load that links may get in addition, if turns are not restricted.
const SLACKS: [f64; 10] = [SLACK, SLACK, SLACK, SLACK / 2.0, 0.0, 0.0, -LESS, -LESS, -LESS, 0.0];
const SLACK: f64 = 1.0 / 16.0;
/// Part of the busiest load that is taken from it.
const LESS: f64 = 1.0 / 128.0;
/// Passes in which only entries move that use such links, if those were not enough.
const RELIEFS: usize = 3;
/// Loads that are looked at: about two seconds.
const MOST_WORK: u64 = 300_000_000;
/// Loads that are kept at most, one for every permutation and link.
const MOST_LOADS: usize = 1 << 25;
/// The bit reversal counts like this part of all shifts.
const SHIFTS_PER_REVERSAL: usize = 16;

/// The loads of all links in all permutations.
struct Permutations<'a> {
    network: &'a FabricNetwork<'a>,
    /// At permutation · channels + channel. The permutation is the shift, or 0 for the bit reversal.
    loads: Vec<u16>,
    /// Loads looked at.
    work: u64,
    /// Whether only entries move that use a link with too much.
    only_full: bool,
}

/// Improves trees for permutations, as long as there is time. The busiest link gets no more than it has; no trees have one with less than
/// `bound`.
pub(super) fn improve<'a>(
    trees: &mut Trees<'a>,
    network: &'a FabricNetwork<'a>,
    bound: f64,
    is_over: &dyn Fn() -> bool,
) {
    let hosts = network.hosts.len();
    if hosts.saturating_mul(network.channels.len()) > MOST_LOADS || is_over() {
        return;
    }
    let mut own =
        Permutations { network, loads: vec![0; hosts * network.channels.len()], work: 0, only_full: false };
    for destination in 0..hosts {
        for source in (0..hosts).filter(|source| *source != destination) {
            let path = trees.path(destination, network.switch_of[source]);
            own.load(&path, source, destination, true);
        }
    }
    let before = trees.clone();
    let mut best = before.busiest();
    for slack in SLACKS {
        let slack = if trees.has_turns() { slack.min(0.0) } else { slack };
        let most_work = if slack > 0.0 { MOST_WORK / 2 } else { MOST_WORK };
        let most = (best as f64 * (1.0 + slack)).max(bound) as u64;
        let mut moved = 0;
        for destination in 0..hosts {
            if is_over() || own.work > most_work {
                break;
            }
            moved += usize::from(own.improve(trees, destination, most));
        }
        best = best.min(trees.busiest());
        if moved == 0 && best as f64 <= bound {
            break;
        }
    }
    own.only_full = true;
    for destination in (0..RELIEFS).flat_map(|_| 0..hosts) {
        if trees.busiest() > before.busiest() && !is_over() {
            own.improve(trees, destination, before.busiest());
        }
    }
    if trees.busiest() > before.busiest() {
        *trees = before;
    }
}

impl Permutations<'_> {
    /// The permutations to which a pair belongs, with their weights.
    fn of(&self, source: usize, destination: usize) -> impl Iterator<Item = (usize, i64)> + use<> {
        let hosts = self.network.hosts.len();
        let shift = (destination + hosts - source) % hosts;
        let is_reversed = reversed(source, hosts) == Some(destination);
        let weight = (hosts / SHIFTS_PER_REVERSAL).max(1) as u32;
        let weight = i64::from(weight);
        [(shift, 1)].into_iter().chain(is_reversed.then_some((0, weight)))
    }

    fn load(&mut self, path: &[u32], source: usize, destination: usize, adds: bool) {
        for (permutation, _) in self.of(source, destination) {
            let first = permutation * self.network.channels.len();
            for &channel in path {
                let load = &mut self.loads[first + channel as usize];
                *load = if adds { load.saturating_add(1) } else { load.saturating_sub(1) };
            }
        }
    }

    /// Moves entries for a destination; whether it did.
    fn improve(&mut self, trees: &mut Trees<'_>, destination: usize, most: u64) -> bool {
        let network = self.network;
        let hops = trees.hops_to(destination);
        let mut sources = vec![Vec::new(); network.switches.len()];
        for (source, &switch) in
            network.switch_of.iter().enumerate().filter(|(source, _)| *source != destination)
        {
            sources[switch as usize].push(source);
        }
        let mut order: Vec<usize> =
            (0..hops.len()).filter(|&switch| hops[switch] != 0 && hops[switch] != NONE).collect();
        // The farthest first: what a switch gets from others is known then.
        order.sort_by_key(|&switch| std::cmp::Reverse(hops[switch]));
        let mut moved = false;
        for switch in order {
            let passing = std::mem::take(&mut sources[switch]);
            if !passing.is_empty() {
                moved |= self.moves(trees, (destination, switch), &hops, &passing, most);
            }
            let to = network.channels[trees.channel(destination, switch) as usize].to;
            sources[to as usize].extend(passing);
        }
        moved
    }

    /// Moves the entry of a switch to the best other path of the same length, if one is better.
    fn moves(
        &mut self,
        trees: &mut Trees<'_>,
        (destination, switch): (usize, usize),
        hops: &[u32],
        sources: &[usize],
        most: u64,
    ) -> bool {
        let network = self.network;
        let own = trees.path(destination, switch as u32);
        let is_full = |channel: &u32| trees.load_of(*channel) > most;
        let leaves = own.iter().any(is_full);
        if self.only_full && !leaves {
            return false;
        }
        self.work += (sources.len() * own.len()) as u64;
        // Pairs that meet no others gain nothing.
        let none = std::iter::empty();
        let [shifts, reversal] = self.change(sources, destination, &none, &own.iter());
        if !leaves && (-shifts - reversal).cast_unsigned() <= (sources.len() * own.len()) as u64 {
            return false;
        }
        let mut best: Option<(i64, u32, Vec<u32>)> = None;
        for &channel in network.leaving[switch].iter().filter(|channel| **channel != own[0]) {
            let to = network.channels[channel as usize].to;
            if hops[to as usize] == NONE || hops[to as usize] + 1 != hops[switch] {
                continue;
            }
            let mut path = vec![channel];
            path.extend(trees.path(destination, to));
            let new = || path.iter().filter(|channel| !own.contains(channel));
            if new().any(|&channel| trees.load_of(channel) + sources.len() as u64 > most) {
                continue;
            }
            self.work += (2 * sources.len() * path.len()) as u64;
            let old = || own.iter().filter(|channel| !path.contains(channel));
            let [shifts, reversal] = self.change(sources, destination, &new(), &old());
            // The bit reversal is one of many patterns: shifts do not get worse for it.
            let is_better = shifts <= 0 && shifts + reversal < 0 || leaves && old().any(is_full);
            if is_better && best.as_ref().is_none_or(|(least, ..)| shifts + reversal < *least) {
                best = Some((shifts + reversal, channel, path));
            }
        }
        let Some((_, channel, path)) = best else { return false };
        if !trees.set(destination, switch, channel, sources.len() as u64) {
            return false;
        }
        for &source in sources {
            self.load(&own, source, destination, false);
            self.load(&path, source, destination, true);
        }
        true
    }

    /// Change of the sum of powers if some sources take other channels: of the shifts, and of the bit reversal.
    fn change<'c>(
        &self,
        sources: &[usize],
        destination: usize,
        new: &(impl Iterator<Item = &'c u32> + Clone),
        old: &(impl Iterator<Item = &'c u32> + Clone),
    ) -> [i64; 2] {
        let power = |load: i64| load.pow(4);
        let mut change = [0; 2];
        for (permutation, weight) in sources.iter().flat_map(|&source| self.of(source, destination)) {
            let load = |channel: &u32| {
                i64::from(self.loads[permutation * self.network.channels.len() + *channel as usize])
            };
            let more: i64 = new.clone().map(load).map(|load| power(load + 1) - power(load)).sum();
            let less: i64 = old.clone().map(load).map(|load| power(load) - power(load - 1)).sum();
            change[usize::from(permutation == 0)] += weight * (more - less);
        }
        change
    }
}
