//! Costs of slots on hosts that are down.

use std::collections::BTreeMap;

use hopmap_model::{CostModel, Costs, Levels, Matrix, RouteCosts, SystemGraph};

use super::system::From;
use crate::words::name;

/// The costs after, and those that slots before had.
pub(super) fn restore(old: &SystemGraph, new: &SystemGraph, slots: &[From]) -> CostModel {
    let twins = Twins::new(old, new);
    match &new.cost {
        CostModel::Levels(levels) if !new.slots.is_empty() => {
            CostModel::Levels(with_levels(old, levels, slots, &twins))
        }
        CostModel::Routes(routes) if !new.slots.is_empty() => CostModel::Routes(RouteCosts {
            metric: routes.metric,
            inside: with_inside(old, &routes.inside, slots),
        }),
        CostModel::Matrix(_) if !new.slots.is_empty() => {
            CostModel::Matrix(with_matrix(old, new, slots, &twins))
        }
        _ => of_before(old, slots),
    }
}

/// Nobody is up: among the slots that are left costs are as they were.
fn of_before(old: &SystemGraph, slots: &[From]) -> CostModel {
    let slots: Vec<u32> = slots.iter().map(|&(From::Before(slot) | From::After(slot))| slot).collect();
    match &old.cost {
        CostModel::Matrix(_) => CostModel::Matrix(Matrix { costs: old.costs().block(&slots) }),
        CostModel::Levels(levels) => CostModel::Levels(levels_of(levels, &slots)),
        CostModel::Routes(routes) => {
            CostModel::Routes(RouteCosts { metric: routes.metric, inside: levels_of(&routes.inside, &slots) })
        }
    }
}

fn levels_of(levels: &Levels, slots: &[u32]) -> Levels {
    let groups = |groups: &Vec<u32>| slots.iter().map(|&slot| groups[slot as usize]).collect();
    Levels { costs: levels.costs.clone(), groups: levels.groups.iter().map(groups).collect() }
}

/// What slots cost inside hosts: a restored host is inside as it was, or if that had other levels all its slots are equally near.
fn with_inside(old: &SystemGraph, inside: &Levels, slots: &[From]) -> Levels {
    let before = match &old.cost {
        CostModel::Routes(routes) if routes.inside.costs.len() == inside.costs.len() => Some(&routes.inside),
        _ => None,
    };
    let last = inside.costs.len().saturating_sub(1);
    let group = |level: usize, from: &From| match (from, before) {
        (From::After(slot), _) => Group::Known(inside.groups[level][*slot as usize]),
        (From::Before(slot), Some(before)) => Group::Lost(level, before.groups[level][*slot as usize]),
        (From::Before(slot), None) if level < last => Group::Slot(*slot),
        (From::Before(slot), None) => Group::Lost(level, old.slots[*slot as usize].host),
    };
    let numbered = |level: usize| {
        let mut numbers: BTreeMap<Group, u32> = BTreeMap::new();
        let number = |from: &From| {
            let next = numbers.len() as u32;
            *numbers.entry(group(level, from)).or_insert(next)
        };
        slots.iter().map(number).collect()
    };
    Levels { costs: inside.costs.clone(), groups: (0..inside.costs.len()).map(numbered).collect() }
}

/// Slots that are there before and after: the same core of the same host.
struct Twins {
    after: BTreeMap<u32, u32>,
    before: BTreeMap<u32, u32>,
}

impl Twins {
    fn new(old: &SystemGraph, new: &SystemGraph) -> Self {
        let key = |system: &SystemGraph, slot: u32| {
            let slot = system.slots[slot as usize];
            (name(system, slot.host).to_owned(), slot.core)
        };
        let known: BTreeMap<_, u32> =
            (0..new.slots.len() as u32).map(|slot| (key(new, slot), slot)).collect();
        let twin = |slot: u32| Some((slot, *known.get(&key(old, slot))?));
        let after: BTreeMap<u32, u32> = (0..old.slots.len() as u32).filter_map(twin).collect();
        Self { before: after.iter().map(|(&old, &new)| (new, old)).collect(), after }
    }
}

/// A matrix where what was never known between two slots is the most that the restored one ever had.
fn with_matrix(old: &SystemGraph, new: &SystemGraph, slots: &[From], twins: &Twins) -> Matrix {
    let was = |from: &From| match from {
        From::Before(slot) => Some(*slot),
        From::After(slot) => twins.before.get(slot).copied(),
    };
    let count = old.slots.len() as u32;
    let (old_costs, new_costs) = (old.costs(), new.costs());
    let most = |slot: u32| {
        (0..count).fold(0.0, |most: f64, other| {
            most.max(old_costs.between(slot, other)).max(old_costs.between(other, slot))
        })
    };
    let largest: BTreeMap<From, f64> = slots
        .iter()
        .filter_map(|from| match from {
            From::Before(slot) => Some((*from, most(*slot))),
            From::After(_) => None,
        })
        .collect();
    let cost = |a: &From, b: &From| match (a, b, was(a), was(b)) {
        (From::After(a), From::After(b), ..) => new_costs.between(*a, *b),
        (_, _, Some(a), Some(b)) => old_costs.between(a, b),
        _ => largest.get(a).or(largest.get(b)).copied().unwrap_or_default(),
    };
    Matrix {
        costs: slots
            .iter()
            .flat_map(|a| slots.iter().map(move |b| (a, b)))
            .map(|(a, b)| cost(a, b))
            .collect(),
    }
}

/// The group of a slot on a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Group {
    /// One that there is after.
    Known(u32),
    /// One that there was on a level before, of slots that are all down.
    Lost(usize, u32),
    /// Of one slot.
    Slot(u32),
}

/// How a slot of a host that is down joins the tree: from `level` on it is where the slot `beside` is.
struct Join {
    beside: u32,
    level: usize,
}

/// A tree where every restored slot meets the slots that are up on the levels where it met them, or on those that cost as much.
fn with_levels(old: &SystemGraph, levels: &Levels, slots: &[From], twins: &Twins) -> Levels {
    let heights = Heights::new(old, levels);
    let joins: BTreeMap<u32, Join> = slots
        .iter()
        .filter_map(|from| match from {
            From::Before(slot) => Some((*slot, heights.join(*slot, twins))),
            From::After(_) => None,
        })
        .collect();
    let group = |level: usize, from: &From| match from {
        From::After(slot) => Group::Known(levels.groups[level][*slot as usize]),
        From::Before(slot) => match &joins[slot] {
            join if level >= join.level => Group::Known(levels.groups[level][join.beside as usize]),
            _ => heights.lost(*slot, level),
        },
    };
    let numbered = |level: usize| {
        let mut numbers: BTreeMap<Group, u32> = BTreeMap::new();
        slots
            .iter()
            .map(|from| {
                let next = numbers.len() as u32;
                *numbers.entry(group(level, from)).or_insert(next)
            })
            .collect()
    };
    Levels { costs: levels.costs.clone(), groups: (0..levels.costs.len()).map(numbered).collect() }
}

/// Which level after has the cost of which level before.
struct Heights<'a> {
    old: &'a SystemGraph,
    old_costs: Costs<'a>,
    costs: &'a [f64],
    /// By level before; empty where costs were a matrix.
    levels: Vec<usize>,
}

impl<'a> Heights<'a> {
    fn new(old: &'a SystemGraph, new: &'a Levels) -> Self {
        let mut heights = Self { old, old_costs: old.costs(), costs: &new.costs, levels: Vec::new() };
        if let CostModel::Levels(before) = &old.cost {
            heights.levels = match before.costs.len() == new.costs.len() {
                true => (0..new.costs.len()).collect(),
                false => before.costs.iter().map(|&cost| heights.of(cost)).collect(),
            };
        }
        heights
    }

    /// The first level that costs about as much or more; the last one if none does.
    fn of(&self, cost: f64) -> usize {
        let enough = |level: &f64| level * 1.3 >= cost;
        self.costs.iter().position(enough).unwrap_or(self.costs.len().saturating_sub(1))
    }

    /// Beside the slot that was nearest of those that are up.
    fn join(&self, slot: u32, twins: &Twins) -> Join {
        // The slots of a host go together where their own nearness is not a tree.
        let slot = match &self.old.cost {
            CostModel::Levels(_) => slot,
            _ => self.first_of_host(slot),
        };
        let nearest = twins.after.iter().min_by(|a, b| {
            let cost = |other: u32| self.old_costs.between(slot, other);
            cost(*a.0).total_cmp(&cost(*b.0)).then(a.0.cmp(b.0))
        });
        let Some((&was, &beside)) = nearest else {
            return Join { beside: 0, level: self.costs.len().saturating_sub(1) };
        };
        let level = match &self.old.cost {
            CostModel::Levels(levels) => self.levels[levels.meeting_level(slot, was)],
            _ => self.of(self.old_costs.between(slot, was)),
        };
        Join { beside, level }
    }

    /// The group of a slot below the level on which it joins others.
    fn lost(&self, slot: u32, level: usize) -> Group {
        let CostModel::Levels(before) = &self.old.cost else {
            return Group::Slot(self.first_of_host(slot));
        };
        match self.levels.iter().rposition(|&height| height <= level) {
            Some(was) => Group::Lost(was, before.groups[was][slot as usize]),
            None => Group::Slot(slot),
        }
    }

    fn first_of_host(&self, slot: u32) -> u32 {
        let host = self.old.slots[slot as usize].host;
        let first = self.old.slots.iter().position(|slot| slot.host == host);
        first.map_or(slot, |first| first as u32)
    }
}
