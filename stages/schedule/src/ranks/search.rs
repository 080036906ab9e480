//! Shared by all searches for the slots of ranks: initial placements, neighbourhoods of slots, and clock checks.

use std::collections::BTreeSet;

use hopmap_model::Processor;
use hopmap_random::{Draw, Pcg64};
use hopmap_replay::{Delays, Distances, ReplayProblem};

/// Maximum number of levels that are detected in distances between pairs.
const MOST_LEVELS: usize = 8;
/// Maximum number of slots or hosts whose pairs are examined to detect a tree.
const MOST_COMPARED: u32 = 1 << 11;
/// Number of near slots per slot of a machine that is not a tree.
const MOST_NEAR: usize = 24;

/// Nodes and messages between checks of the clock.
const CHECK: u64 = 1_000_000;

/// A problem with data for searches.
#[derive(Debug)]
pub struct RankSearch<'p> {
    pub(super) problem: &'p ReplayProblem,
    pub(super) places: Places,
    /// The host of every slot.
    pub(super) hosts: Vec<u32>,
    /// The initial placement, if one is given.
    pub(super) given: Option<Vec<u32>>,
}

impl<'p> RankSearch<'p> {
    /// A search on the processors of the problem, from a given placement or from any.
    #[must_use]
    pub fn new(problem: &'p ReplayProblem, processors: &[Processor], given: Option<Vec<u32>>) -> Self {
        let places = Places::new(problem.delays(), problem.slots() as u32);
        Self { problem, places, hosts: hosts(processors), given }
    }

    /// Number of passes over the program between checks of the clock, about one or two milliseconds.
    pub(super) fn passes_between_checks(&self) -> u64 {
        (CHECK / self.size().max(1)).max(1)
    }

    /// Nodes and messages of a pass over the program.
    pub(super) fn size(&self) -> u64 {
        (self.problem.program().nodes() + self.problem.program().message_count()) as u64
    }

    /// A random slot that is closer to an anchor than a given one; none if there is none, or if the given one is the anchor's.
    pub(super) fn draw_nearer(&self, slot: u32, anchor: u32, random: &mut Pcg64) -> Option<u32> {
        let near = self.places.nearer(slot, anchor);
        let drawn = (!near.is_empty()).then(|| near[random.below(near.len())]);
        drawn.filter(|&drawn| drawn != anchor)
    }
}

/// The host of every slot: its name up to the core. A processor that is not a slot counts as a separate host.
fn hosts(processors: &[Processor]) -> Vec<u32> {
    let host = |processor: &Processor| {
        let name = processor.slot.and_then(|_| processor.name.rsplit_once(':'));
        name.map(|(host, _)| host.to_owned())
    };
    let mut next = 0;
    let mut before: Option<Option<String>> = None;
    let number = |processor| {
        let own = host(processor);
        if before.is_some() && (own.is_none() || before.as_ref() != Some(&own)) {
            next += 1;
        }
        before = Some(own);
        next
    };
    processors.iter().map(number).collect()
}

/// Neighbourhoods of slots: a tree if there is one, otherwise the nearest slots of every slot.
#[derive(Debug)]
pub(super) struct Places {
    /// Levels of the tree, innermost first; the last one has a single group. Empty if the machine is not a tree.
    pub(super) levels: Vec<Groups>,
    /// The slots in an order in which every group is contiguous.
    pub(super) order: Vec<u32>,
    /// For every slot the nearest others, if the machine is not a tree.
    near: Vec<Vec<u32>>,
}

/// The groups of a level.
#[derive(Debug)]
pub(super) struct Groups {
    /// The group of every slot.
    pub(super) of: Vec<u32>,
    /// The start of every group in the order, and the end of the last one.
    pub(super) starts: Vec<u32>,
}

impl Places {
    fn new(delays: &Delays, slots: u32) -> Self {
        let sizes = delays.sizes() as u32;
        // Probes with the longest message for bandwidths and the shortest for latencies, in both directions because a tree is
        // undirected.
        let ends = [0, sizes.saturating_sub(1)];
        let distance = |a: u32, b: u32| -> i64 {
            if sizes == 0 {
                return 0;
            }
            ends.map(|size| delays.ticks(size, a, b) + delays.ticks(size, b, a)).iter().sum()
        };
        let levels = match delays.distances() {
            Distances::Alike => Some(Vec::new()),
            Distances::Pairs { .. } => find_tree(slots, distance),
            Distances::Tree(tree) => Some(tree.levels.iter().map(|level| level.groups.clone()).collect()),
            Distances::Hosts(hosts) => {
                let mut first = vec![0; hosts.hosts];
                (0..slots).rev().for_each(|slot| first[hosts.host[slot as usize] as usize] = slot);
                let between =
                    find_tree(hosts.hosts as u32, |a, b| distance(first[a as usize], first[b as usize]));
                let inside = hosts.inside.levels.iter().map(|level| level.groups.clone());
                let of_slots =
                    |groups: Vec<u32>| hosts.host.iter().map(|&host| groups[host as usize]).collect();
                Some(inside.chain(between.into_iter().flatten().map(of_slots)).collect())
            }
        };
        match levels {
            Some(levels) => Self::of_tree(levels, slots),
            None => {
                Self { levels: Vec::new(), order: (0..slots).collect(), near: nearest_slots(slots, distance) }
            }
        }
    }

    fn of_tree(mut levels: Vec<Vec<u32>>, slots: u32) -> Self {
        if levels.last().is_none_or(|last| last.windows(2).any(|pair| pair[0] != pair[1])) {
            levels.push(vec![0; slots as usize]);
        }
        let mut order: Vec<u32> = (0..slots).collect();
        order.sort_by_cached_key(|&slot| {
            levels.iter().rev().map(|level| level[slot as usize]).collect::<Vec<_>>()
        });
        let groups = |groups: Vec<u32>| {
            let (mut of, mut starts) = (vec![0; slots as usize], vec![0]);
            for (at, pair) in order.windows(2).enumerate() {
                if groups[pair[0] as usize] != groups[pair[1] as usize] {
                    starts.push(at as u32 + 1);
                }
                of[pair[1] as usize] = starts.len() as u32 - 1;
            }
            starts.push(slots);
            Groups { of, starts }
        };
        Self { levels: levels.into_iter().map(groups).collect(), order, near: Vec::new() }
    }

    /// Whether the machine is a tree.
    pub(super) fn is_tree(&self) -> bool {
        self.near.is_empty()
    }

    /// The slots closer to an anchor than a given slot, as far as they are known; in a tree those of the largest group without
    /// the slot.
    pub(super) fn nearer(&self, slot: u32, anchor: u32) -> &[u32] {
        if !self.is_tree() {
            let near = &self.near[anchor as usize];
            let end = near.iter().position(|&one| one == slot).unwrap_or(near.len());
            return &near[..end];
        }
        let meets = |groups: &Groups| groups.of[slot as usize] == groups.of[anchor as usize];
        match self.levels.iter().position(meets).and_then(|level| level.checked_sub(1)) {
            Some(level) => self.members(level, anchor),
            None => &[],
        }
    }

    /// The slots of the group of a slot on a level.
    pub(super) fn members(&self, level: usize, slot: u32) -> &[u32] {
        let groups = &self.levels[level];
        let group = groups.of[slot as usize] as usize;
        &self.order[groups.starts[group] as usize..groups.starts[group + 1] as usize]
    }
}

/// The levels of a tree with these distances between its leaves, innermost first, if there is one with few levels.
fn find_tree(leaves: u32, distance: impl Fn(u32, u32) -> i64) -> Option<Vec<Vec<u32>>> {
    if leaves > MOST_COMPARED {
        return None;
    }
    let mut values = BTreeSet::new();
    for a in 0..leaves {
        values.extend((0..a).map(|b| distance(a, b)));
        if values.len() > MOST_LEVELS {
            return None;
        }
    }
    let level = |&most: &i64| {
        let mut groups = vec![u32::MAX; leaves as usize];
        for a in 0..leaves {
            let near = |b: u32| a == b || distance(a, b) <= most;
            let is_new = groups[a as usize] == u32::MAX;
            for b in 0..leaves {
                match near(b) {
                    true if is_new && groups[b as usize] == u32::MAX => groups[b as usize] = a,
                    near if near != (groups[a as usize] == groups[b as usize]) => return None,
                    _ => {}
                }
            }
        }
        Some(groups)
    };
    values.iter().map(level).collect()
}

/// The nearest slots of every slot.
fn nearest_slots(slots: u32, distance: impl Fn(u32, u32) -> i64) -> Vec<Vec<u32>> {
    let of_slot = |slot: u32| {
        let mut others: Vec<u32> = (0..slots).filter(|&other| other != slot).collect();
        others.sort_by_cached_key(|&other| distance(slot, other));
        others.truncate(MOST_NEAR);
        others
    };
    (0..slots).map(of_slot).collect()
}
