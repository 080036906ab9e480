//! Where ranks may not go, and for how long.

use hopmap_objective::Distance;
use rand_pcg::Pcg64;
use rand_pcg::rand_core::Rng;

/// Longest ban, in multiples of the usual one; a random number in [0, 1) to the third power shortens it.
const LONGEST: f64 = 8.0;
/// Steps after which a mover is sent to a group, in multiples of the number of movers and groups.
const PATIENCE: u64 = 5;

/// The groups of the innermost level, and until which step every mover may not go to each.
///
/// In a tree it makes no difference on which slot of such a group a rank lies, so what leaves a group must not come back to any
/// of its slots: with bans on slots alone, as for matrices without such groups, the search would go round in circles.
pub(super) struct Bans {
    /// Group of every slot.
    group_of: Vec<u32>,
    groups: usize,
    /// Last step of the ban; a row for every mover, a column for every group.
    until: Vec<u64>,
    usual: f64,
    patience: u64,
}

impl Bans {
    pub(super) fn new(movers: usize, distance: &Distance) -> Self {
        let mut group_of = vec![0; distance.order().len()];
        let mut groups = 0;
        let mut begin = 0;
        while let Some(&slot) = distance.order().get(begin) {
            let range = distance.group(0, slot);
            range.clone().for_each(|index| group_of[distance.order()[index] as usize] = groups as u32);
            groups += 1;
            begin = range.end;
        }
        // With few groups, bans of as many steps as there are ranks would forbid everything.
        let usual = movers.min(movers * (groups - 1) / 8).max(1) as f64;
        // Waiting for the first time ends for one mover and group after the other.
        let all = (movers * groups) as u64;
        let until = (0..all).map(|index| all - index).collect();
        Self { group_of, groups, until, usual, patience: PATIENCE * all }
    }

    /// The step before the first one. Every ban that is imposed ends later, every one there is from the beginning by then.
    pub(super) fn begin(&self) -> u64 {
        self.until.len() as u64
    }

    /// The group of a slot.
    #[inline]
    pub(super) fn group(&self, slot: u32) -> u32 {
        self.group_of[slot as usize]
    }

    /// Whether a unit may not go to a group. Always true of what is no mover: whoever it changes places with decides.
    #[inline]
    pub(super) fn forbid(&self, unit: usize, group: u32, step: u64) -> bool {
        self.until.get(unit * self.groups + group as usize).is_none_or(|&until| until >= step)
    }

    /// Whether a mover has not been in a group for so long that it is sent there.
    pub(super) fn demand(&self, unit: usize, group: u32, step: u64) -> bool {
        let until = self.until.get(unit * self.groups + group as usize);
        until.is_some_and(|&until| until + self.patience < step)
    }

    /// Keeps a unit out of a group for a while.
    pub(super) fn impose(&mut self, unit: usize, group: u32, step: u64, random: &mut Pcg64) {
        let fraction = (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        let steps = (fraction * fraction * fraction * LONGEST * self.usual) as u64 + 1;
        if let Some(until) = self.until.get_mut(unit * self.groups + group as usize) {
            *until = step + steps;
        }
    }
}
