//! Slots that make no difference.

use std::collections::{HashMap, HashSet};

use super::problem::RankProblem;
use crate::machine::Distances;

/// Most slots whose pairs are looked at.
const MOST_COMPARED: usize = 1 << 10;

/// Which slots can change their names and nothing is different.
#[derive(Debug)]
pub(super) enum Symmetry {
    /// In a tree whole groups can, as long as they are alike.
    Tree {
        /// What is known of every slot: its speed and when it can begin.
        kinds: Vec<(u32, i64)>,
        /// The group of every slot on every level, innermost first.
        levels: Vec<Vec<u32>>,
    },
    /// Slots that can change places with another: the first such of every slot.
    Twins(Vec<u32>),
}

impl Symmetry {
    pub(super) fn new(problem: &RankProblem) -> Self {
        let kind = |slot: usize| (problem.work.speed_of[slot], problem.available[slot]);
        match is_tree(problem) {
            true => Self::Tree {
                kinds: (0..problem.slots).map(kind).collect(),
                levels: problem.places.levels.iter().map(|level| level.of.clone()).collect(),
            },
            false => Self::Twins(twins(problem, kind)),
        }
    }

    /// Free slots, of those that are alike only the first.
    pub(super) fn different(&self, is_free: &[bool]) -> Vec<u32> {
        let free = (0..is_free.len() as u32).filter(|&slot| is_free[slot as usize]);
        match self {
            Self::Twins(first) => {
                let mut seen = HashSet::new();
                free.filter(|&slot| seen.insert(first[slot as usize])).collect()
            }
            Self::Tree { kinds, levels } => {
                let places = shapes(kinds, levels, is_free);
                let mut seen = HashSet::new();
                free.filter(|&slot| seen.insert(places[slot as usize].clone())).collect()
            }
        }
    }
}

/// For every slot what it is, and what the groups are that it is in: slots for which that is the same can change places, together with the largest
/// groups that hold only one of them. A slot that is taken is like no other.
fn shapes(kinds: &[(u32, i64)], levels: &[Vec<u32>], is_free: &[bool]) -> Vec<Vec<u32>> {
    let mut known: HashMap<Vec<(u64, i64)>, u32> = HashMap::new();
    let mut number = |shape: Vec<(u64, i64)>| {
        let next = known.len() as u32;
        *known.entry(shape).or_insert(next)
    };
    let taken = |slot: usize| vec![(u64::MAX, i64::from(slot as u32))];
    let free = |slot: usize| vec![(u64::MAX - 1, 0), (u64::from(kinds[slot].0), kinds[slot].1)];
    let mut own: Vec<u32> =
        (0..kinds.len()).map(|slot| number(if is_free[slot] { free(slot) } else { taken(slot) })).collect();
    let mut shapes: Vec<Vec<u32>> = own.iter().map(|&one| vec![one]).collect();
    let mut below: Vec<u32> = (0..kinds.len() as u32).collect();
    for groups in levels {
        // Every group of the level below once, by the group that it is in.
        let mut inside: HashMap<u32, Vec<(u64, i64)>> = HashMap::new();
        let mut seen = HashSet::new();
        for (slot, &group) in groups.iter().enumerate() {
            if seen.insert(below[slot]) {
                inside.entry(group).or_default().push((u64::from(own[slot]), 0));
            }
        }
        let mut of_group: HashMap<u32, u32> = HashMap::new();
        for &group in groups {
            of_group.entry(group).or_insert_with(|| {
                let mut shape = inside.remove(&group).unwrap_or_default();
                shape.sort_unstable();
                number(shape)
            });
        }
        own = groups.iter().map(|group| of_group[group]).collect();
        shapes.iter_mut().zip(&own).for_each(|(shape, &one)| shape.push(one));
        below.clone_from(groups);
    }
    shapes
}

/// Whether what messages take depends on nothing but the level on which two slots meet.
fn is_tree(problem: &RankProblem) -> bool {
    let distances = problem.delays.distances();
    match distances {
        Distances::Alike | Distances::Tree(_) => true,
        _ if !problem.places.is_tree() || problem.slots > MOST_COMPARED => false,
        _ => {
            let levels = &problem.places.levels;
            let mut classes: Vec<Option<usize>> = vec![None; levels.len() + 1];
            let slots = 0..problem.slots as u32;
            slots.clone().all(|a| {
                slots.clone().all(|b| {
                    let meets = |level: &super::places::Groups| level.of[a as usize] == level.of[b as usize];
                    let level = if a == b {
                        0
                    } else {
                        1 + levels.iter().position(meets).unwrap_or(levels.len() - 1)
                    };
                    let class = distances.class(a, b);
                    *classes[level].get_or_insert(class) == class
                })
            })
        }
    }
}

/// For every slot the first with which it can change places.
fn twins(problem: &RankProblem, kind: impl Fn(usize) -> (u32, i64)) -> Vec<u32> {
    let all = 0..problem.slots as u32;
    if problem.slots > MOST_COMPARED {
        return all.collect();
    }
    let distances = problem.delays.distances();
    let are_twins = |a: u32, b: u32| {
        let same = |other: u32| {
            distances.class(a, other) == distances.class(b, other)
                && distances.class(other, a) == distances.class(other, b)
        };
        kind(a as usize) == kind(b as usize)
            && distances.class(a, b) == distances.class(b, a)
            && distances.class(a, a) == distances.class(b, b)
            && all.clone().filter(|&other| other != a && other != b).all(same)
    };
    let mut first: Vec<u32> = Vec::with_capacity(problem.slots);
    for slot in all.clone() {
        let twin = (0..slot).find(|&other| first[other as usize] == other && are_twins(other, slot));
        first.push(twin.unwrap_or(slot));
    }
    first
}
