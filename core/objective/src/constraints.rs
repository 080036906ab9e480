//! Where ranks have to be, and where nobody may be.

use std::collections::{BTreeMap, VecDeque};

use hopmap_model::SystemGraph;

use crate::{ConstraintError, ObjectiveError, Problem, linear, random};

/// Where ranks have to be, and where nobody may be.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Constraints {
    /// Ranks with a place, each at most once.
    pub pinned: Vec<Pin>,
    /// Names of hosts without ranks.
    pub forbidden: Vec<String>,
}

/// A rank and its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pin {
    /// The rank.
    pub rank: u32,
    /// Its place.
    pub place: Place,
}

/// Where a rank has to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// On a slot.
    Slot(u32),
    /// On some slot of a host, by its name.
    Host(String),
}

/// Constraints that some placement keeps, by rank and slot.
#[derive(Debug, Clone)]
pub(crate) struct Admission {
    ranks: Vec<Admitted>,
    /// Host of every slot.
    host_of: Vec<u32>,
    /// The slots that no forbidden host has.
    open: Vec<bool>,
    /// The rank that is pinned to a slot.
    pinned: BTreeMap<u32, u32>,
}

/// The slots that a rank may be on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Admitted {
    Anywhere,
    Host(u32),
    Slot(u32),
}

const NOWHERE: u32 = u32::MAX;

impl Problem {
    /// The same problem with constraints. Each names a rank, slot or host of the program and `system`, none contradicts
    /// another, and there are slots enough.
    pub fn with_constraints(
        mut self,
        constraints: &Constraints,
        system: &SystemGraph,
    ) -> Result<Self, ObjectiveError> {
        let none = constraints.pinned.is_empty() && constraints.forbidden.is_empty();
        self.admission = match none {
            true => None,
            false => Some(Admission::new(constraints, system, self.ranks())?),
        };
        Ok(self)
    }

    /// A placement that keeps the constraints and is close to one that may not: ranks pinned to a slot come first, then those
    /// pinned to a host, then all others. Who can stays on its slot; who cannot takes the next free one, around the end, or
    /// the first free one of its host.
    #[must_use]
    pub fn admit(&self, slots: Vec<u32>) -> Vec<u32> {
        match &self.admission {
            None => slots,
            Some(admission) => admission.admit(&slots),
        }
    }

    /// Every rank on the next slot, in order. Those that are pinned have their places, and the others are on what is left.
    #[must_use]
    pub fn linear(&self) -> Vec<u32> {
        match &self.admission {
            None => linear(self.ranks()),
            Some(admission) => {
                let open = admission.open_slots();
                admission.deal(&open, &open)
            }
        }
    }

    /// Every rank on the next slot of an order of all of them, or of what pinned ranks and forbidden hosts leave of it.
    #[must_use]
    pub fn in_order(&self, order: &[u32]) -> Vec<u32> {
        match &self.admission {
            None => order.iter().copied().take(self.ranks()).collect(),
            Some(admission) => {
                let open: Vec<u32> =
                    order.iter().copied().filter(|&slot| admission.open[slot as usize]).collect();
                admission.deal(&open, &open)
            }
        }
    }

    /// Ranks on slots drawn at random, every placement that keeps the constraints equally likely; the seed is one of
    /// [`hopmap_model::seed_stream`].
    #[must_use]
    pub fn random(&self, seed: [u8; 32]) -> Vec<u32> {
        let Some(admission) = &self.admission else { return random(self.ranks(), self.slots(), seed) };
        let open = admission.open_slots();
        let shuffled = |seed| random(open.len(), open.len(), seed).into_iter().map(|at| open[at as usize]);
        // What is left when the pinned have drawn is drawn anew.
        let mut other = seed;
        other[0] ^= 1;
        admission.deal(&shuffled(seed).collect::<Vec<_>>(), &shuffled(other).collect::<Vec<_>>())
    }

    /// Whether a rank is pinned to a slot, so that no exchange with it is ever admitted.
    #[must_use]
    pub fn is_fixed(&self, rank: u32) -> bool {
        let place = self.admission.as_ref().map(|admission| admission.ranks[rank as usize]);
        matches!(place, Some(Admitted::Slot(_)))
    }
}

impl Admission {
    fn new(constraints: &Constraints, system: &SystemGraph, ranks: usize) -> Result<Self, ConstraintError> {
        let hosts: BTreeMap<&str, u32> =
            system.hosts().map(|(host, ..)| (system.nodes[host as usize].name.as_str(), host)).collect();
        let host = |name: &str| {
            hosts.get(name).copied().ok_or_else(|| ConstraintError::NoSuchHost {
                name: name.to_owned(),
                first: system
                    .hosts()
                    .next()
                    .map_or("", |host| &system.nodes[host.0 as usize].name)
                    .to_owned(),
            })
        };
        let host_of: Vec<u32> = system.slots.iter().map(|slot| slot.host).collect();
        let mut closed = vec![false; system.nodes.len()];
        for name in &constraints.forbidden {
            closed[host(name)? as usize] = true;
        }
        let open = host_of.iter().map(|&host| !closed[host as usize]).collect();
        let mut admission =
            Self { ranks: vec![Admitted::Anywhere; ranks], host_of, open, pinned: BTreeMap::new() };
        for pin in &constraints.pinned {
            let admitted = match &pin.place {
                Place::Slot(slot) => Admitted::Slot(*slot),
                Place::Host(name) => Admitted::Host(host(name)?),
            };
            admission.pin(pin.rank, admitted, &closed, system)?;
        }
        admission.check_room(system)?;
        Ok(admission)
    }

    fn pin(
        &mut self,
        rank: u32,
        admitted: Admitted,
        closed: &[bool],
        system: &SystemGraph,
    ) -> Result<(), ConstraintError> {
        let ranks = self.ranks.len();
        let slots = self.host_of.len();
        let host = match admitted {
            Admitted::Anywhere => None,
            Admitted::Host(host) => Some(host),
            Admitted::Slot(slot) => {
                let host = self.host_of.get(slot as usize).copied();
                Some(host.ok_or(ConstraintError::NoSuchSlot { rank, slot, slots })?)
            }
        };
        if let Some(host) = host.filter(|&host| closed[host as usize]) {
            let name = system.nodes[host as usize].name.clone();
            return Err(ConstraintError::Forbidden { rank, name });
        }
        if let Admitted::Slot(slot) = admitted {
            let other = self.pinned.insert(slot, rank).filter(|&other| other != rank);
            if let Some(first) = other {
                return Err(ConstraintError::SharedSlot { slot, first, second: rank });
            }
        }
        let place = self.ranks.get_mut(rank as usize).ok_or(ConstraintError::NoSuchRank { rank, ranks })?;
        match std::mem::replace(place, admitted) {
            Admitted::Anywhere => Ok(()),
            _ => Err(ConstraintError::PinnedTwice { rank }),
        }
    }

    /// Checks that there are slots for all: those that are pinned to a host, and the others.
    fn check_room(&self, system: &SystemGraph) -> Result<(), ConstraintError> {
        let mut pinned = vec![0; system.nodes.len()];
        for &admitted in &self.ranks {
            match admitted {
                Admitted::Anywhere => {}
                Admitted::Host(host) => pinned[host as usize] += 1,
                Admitted::Slot(slot) => pinned[self.host_of[slot as usize] as usize] += 1,
            }
        }
        let crowded = system.hosts().find(|&(host, _, slots)| pinned[host as usize] > slots);
        if let Some((host, _, slots)) = crowded {
            let name = system.nodes[host as usize].name.clone();
            return Err(ConstraintError::CrowdedHost { name, ranks: pinned[host as usize], slots });
        }
        let (ranks, left) = (self.ranks.len(), self.open_slots().len());
        if ranks > left { Err(ConstraintError::TooFewSlots { ranks, left }) } else { Ok(()) }
    }

    /// The slots that are not forbidden, in order.
    fn open_slots(&self) -> Vec<u32> {
        (0..self.open.len() as u32).filter(|&slot| self.open[slot as usize]).collect()
    }

    /// Whether a rank may be on a slot.
    #[inline]
    pub(crate) fn admits(&self, rank: u32, slot: u32) -> bool {
        self.open[slot as usize]
            && match self.ranks[rank as usize] {
                Admitted::Anywhere => true,
                Admitted::Host(host) => self.host_of[slot as usize] == host,
                Admitted::Slot(own) => slot == own,
            }
    }

    /// Gives every rank the first free slot that it may be on, of two orders of all that are open: the ranks that are pinned of
    /// the first, then the others of the second.
    fn deal(&self, first: &[u32], second: &[u32]) -> Vec<u32> {
        let mut slots = vec![NOWHERE; self.ranks.len()];
        let mut taken = vec![false; self.open.len()];
        let mut waiting: BTreeMap<u32, VecDeque<usize>> = BTreeMap::new();
        for (rank, &admitted) in self.ranks.iter().enumerate() {
            match admitted {
                Admitted::Anywhere => {}
                Admitted::Host(host) => waiting.entry(host).or_default().push_back(rank),
                Admitted::Slot(slot) => {
                    slots[rank] = slot;
                    taken[slot as usize] = true;
                }
            }
        }
        for &slot in first {
            let ranks = waiting.get_mut(&self.host_of[slot as usize]).filter(|_| !taken[slot as usize]);
            if let Some(rank) = ranks.and_then(VecDeque::pop_front) {
                slots[rank] = slot;
                taken[slot as usize] = true;
            }
        }
        let mut left = second.iter().filter(|&&slot| !taken[slot as usize]);
        for slot in slots.iter_mut().filter(|slot| **slot == NOWHERE) {
            *slot = left.next().copied().unwrap_or(NOWHERE);
        }
        slots
    }

    fn admit(&self, wishes: &[u32]) -> Vec<u32> {
        let count = self.open.len() as u32;
        let wish = |rank: usize| wishes.get(rank).map_or(0, |&slot| slot.min(count - 1));
        let mut filling = Filling::new(self);
        let ranks =
            |kind: fn(Admitted) -> bool| (0..self.ranks.len()).filter(move |&rank| kind(self.ranks[rank]));
        for rank in ranks(|admitted| matches!(admitted, Admitted::Slot(_))) {
            if let Admitted::Slot(slot) = self.ranks[rank] {
                filling.take(rank, slot);
            }
        }
        for kind in
            [|admitted| matches!(admitted, Admitted::Host(_)), |admitted| admitted == Admitted::Anywhere]
        {
            for rank in ranks(kind) {
                if filling.is_free(wish(rank)) && self.admits(rank as u32, wish(rank)) {
                    filling.take(rank, wish(rank));
                }
            }
            for rank in ranks(kind) {
                if filling.slots[rank] == NOWHERE {
                    let from = match self.ranks[rank] {
                        Admitted::Host(host) => self.host_of.iter().position(|&other| other == host),
                        _ => None,
                    };
                    let slot = filling.next_free(from.map_or(wish(rank), |slot| slot as u32));
                    filling.take(rank, slot);
                }
            }
        }
        filling.slots
    }
}

/// A placement that is filled rank by rank.
struct Filling {
    /// Slot of every rank.
    slots: Vec<u32>,
    /// A slot itself where it is free, else one closer to the next free one.
    next: Vec<u32>,
}

impl Filling {
    fn new(admission: &Admission) -> Self {
        let mut filling = Self {
            slots: vec![NOWHERE; admission.ranks.len()],
            next: (0..admission.open.len() as u32).collect(),
        };
        (0..).zip(&admission.open).filter(|(_, open)| !**open).for_each(|(slot, _)| filling.close(slot));
        filling
    }

    fn close(&mut self, slot: u32) {
        self.next[slot as usize] = (slot + 1) % self.next.len() as u32;
    }

    fn is_free(&self, slot: u32) -> bool {
        self.next[slot as usize] == slot
    }

    fn take(&mut self, rank: usize, slot: u32) {
        self.slots[rank] = slot;
        self.close(slot);
    }

    /// The next free slot, around the end. There is one. Halves the way for the next time.
    fn next_free(&mut self, mut slot: u32) -> u32 {
        while !self.is_free(slot) {
            let next = self.next[self.next[slot as usize] as usize];
            self.next[slot as usize] = next;
            slot = next;
        }
        slot
    }
}
