//! Constraints: pinned ranks, forbidden hosts and closed slots.

use std::collections::{BTreeMap, VecDeque};

use hopmap_model::{NodeKind, SystemGraph};

use crate::error::ObjectiveError;

/// Constraints: pinned ranks, forbidden hosts and closed slots.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Constraints {
    /// Pinned ranks, each at most once.
    pub pinned: Vec<Pin>,
    /// Names of hosts without ranks.
    pub forbidden: Vec<String>,
    /// Slots without ranks, for which their hosts have too few devices.
    pub closed: Vec<u32>,
}

impl Constraints {
    /// Whether all mappings satisfy them.
    pub(crate) fn is_empty(&self) -> bool {
        self.pinned.is_empty() && self.forbidden.is_empty() && self.closed.is_empty()
    }
}

/// A pinned rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pin {
    /// The rank.
    pub rank: u32,
    /// Its place.
    pub place: Location,
}

/// Where a rank is pinned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// A slot.
    Slot(u32),
    /// Any slot of a host, by name.
    Host(String),
}

/// Satisfiable constraints, by rank and slot.
#[derive(Debug, Clone)]
pub(crate) struct Admission {
    ranks: Vec<Admitted>,
    /// Host of every slot.
    host_of: Vec<u32>,
    /// The slots that ranks may use.
    open: Vec<bool>,
    /// The rank that is pinned to a slot.
    pinned: BTreeMap<u32, u32>,
}

/// The allowed slots of a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Admitted {
    Anywhere,
    Host(u32),
    Slot(u32),
}

const NOWHERE: u32 = u32::MAX;

impl Admission {
    pub(crate) fn new(
        constraints: &Constraints,
        system: &SystemGraph,
        ranks: usize,
    ) -> Result<Self, ObjectiveError> {
        let hosts: BTreeMap<&str, u32> =
            system.hosts().map(|(host, ..)| (system.nodes[host as usize].name.as_str(), host)).collect();
        let host = |name: &str| {
            hosts.get(name).copied().ok_or_else(|| {
                let first = system.hosts().next().map_or("", |host| &system.nodes[host.0 as usize].name);
                let problem = format!("the machine has no host `{name}` with slots");
                ObjectiveError::new(problem, format!("its first host is `{first}`"))
            })
        };
        let host_of: Vec<u32> = system.slots.iter().map(|slot| slot.host).collect();
        // A host that went down has lost its slots, but not its place in `forbidden`.
        let is_empty_host = |name: &str| {
            system.nodes.iter().any(|node| node.kind == NodeKind::Host && node.name == name)
                && !hosts.contains_key(name)
        };
        let mut closed = vec![false; system.nodes.len()];
        for name in constraints.forbidden.iter().filter(|name| !is_empty_host(name)) {
            closed[host(name)? as usize] = true;
        }
        let mut open: Vec<bool> = host_of.iter().map(|&host| !closed[host as usize]).collect();
        for &slot in &constraints.closed {
            if let Some(open) = open.get_mut(slot as usize) {
                *open = false;
            }
        }
        let mut admission =
            Self { ranks: vec![Admitted::Anywhere; ranks], host_of, open, pinned: BTreeMap::new() };
        for pin in &constraints.pinned {
            let admitted = match &pin.place {
                Location::Slot(slot) => Admitted::Slot(*slot),
                Location::Host(name) => Admitted::Host(host(name)?),
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
    ) -> Result<(), ObjectiveError> {
        let refused = |problem: String, help: &str| Err(ObjectiveError::new(problem, help));
        let host = match admitted {
            Admitted::Anywhere => None,
            Admitted::Host(host) => Some(host),
            Admitted::Slot(slot) => match self.host_of.get(slot as usize) {
                Some(&host) => Some(host),
                None => {
                    let slots = self.host_of.len();
                    let problem =
                        format!("rank {rank} is pinned to slot {slot}, but the machine has {slots} slots");
                    return refused(problem, "slots are numbered from 0, host by host");
                }
            },
        };
        if let Some(host) = host.filter(|&host| closed[host as usize]) {
            let name = &system.nodes[host as usize].name;
            let problem = format!("rank {rank} is pinned to host `{name}`, which is forbidden");
            return refused(problem, "remove the host from `forbidden` or the rank from `pinned`");
        }
        if let Admitted::Slot(slot) = admitted
            && !self.open[slot as usize]
        {
            let problem =
                format!("rank {rank} is pinned to slot {slot}, for which its host has too few devices");
            return refused(
                problem,
                "pin it to one of the first slots of the host, or reserve fewer devices",
            );
        }
        if let Admitted::Slot(slot) = admitted
            && let Some(first) = self.pinned.insert(slot, rank).filter(|&other| other != rank)
        {
            let problem = format!("ranks {first} and {rank} are both pinned to slot {slot}");
            return refused(problem, "every slot takes one rank");
        }
        let ranks = self.ranks.len();
        let Some(place) = self.ranks.get_mut(rank as usize) else {
            let problem = format!("rank {rank} is pinned, but the program has {ranks} ranks");
            return refused(problem, "ranks are numbered from 0");
        };
        match std::mem::replace(place, admitted) {
            Admitted::Anywhere => Ok(()),
            _ => {
                let problem = format!("rank {rank} is pinned twice");
                refused(problem, "list every rank at most once in `pinned`")
            }
        }
    }

    /// Checks that there are enough slots for the ranks pinned to hosts, and for the others.
    fn check_room(&self, system: &SystemGraph) -> Result<(), ObjectiveError> {
        let mut pinned = vec![0; system.nodes.len()];
        for &admitted in &self.ranks {
            match admitted {
                Admitted::Anywhere => {}
                Admitted::Host(host) => pinned[host as usize] += 1,
                Admitted::Slot(slot) => pinned[self.host_of[slot as usize] as usize] += 1,
            }
        }
        let open = |first: u32, slots: u32| {
            self.open[first as usize..][..slots as usize].iter().filter(|&&open| open).count()
        };
        let crowded = system.hosts().find(|&(host, first, slots)| pinned[host as usize] > open(first, slots));
        if let Some((host, first, slots)) = crowded {
            let slots = open(first, slots);
            let (name, ranks) = (&system.nodes[host as usize].name, pinned[host as usize]);
            let problem = format!("{ranks} ranks are pinned to host `{name}`, which has {slots} slots");
            return Err(ObjectiveError::new(problem, "pin fewer ranks to it"));
        }
        let (ranks, left) = (self.ranks.len(), self.open.iter().filter(|&&open| open).count());
        if ranks > left {
            let problem = format!("{ranks} ranks do not fit on the {left} slots that they may use");
            let help = "forbid fewer hosts, reserve fewer devices for a rank, or use a larger machine";
            return Err(ObjectiveError::new(problem, help));
        }
        Ok(())
    }

    /// Keeps the slots that are not forbidden, in order.
    pub(crate) fn open(&self, slots: &[u32]) -> Vec<u32> {
        slots.iter().copied().filter(|&slot| self.open[slot as usize]).collect()
    }

    /// Whether a rank is pinned to a slot.
    pub(crate) fn is_fixed(&self, rank: u32) -> bool {
        matches!(self.ranks[rank as usize], Admitted::Slot(_))
    }

    /// Whether a rank may use a slot.
    #[inline]
    pub(crate) fn admits(&self, rank: u32, slot: u32) -> bool {
        self.open[slot as usize]
            && match self.ranks[rank as usize] {
                Admitted::Anywhere => true,
                Admitted::Host(host) => self.host_of[slot as usize] == host,
                Admitted::Slot(own) => slot == own,
            }
    }

    /// Assigns the first free allowed slot to every rank: first the pinned ranks in one order of open slots,
    /// then the others in another.
    pub(crate) fn deal(&self, first: &[u32], second: &[u32]) -> Vec<u32> {
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

    pub(crate) fn admit(&self, wanted: &[u32]) -> Vec<u32> {
        let count = self.open.len() as u32;
        let wanted_slot = |rank: usize| wanted.get(rank).map_or(0, |&slot| slot.min(count - 1));
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
                if filling.is_free(wanted_slot(rank)) && self.admits(rank as u32, wanted_slot(rank)) {
                    filling.take(rank, wanted_slot(rank));
                }
            }
            for rank in ranks(kind) {
                if filling.slots[rank] == NOWHERE {
                    let from = match self.ranks[rank] {
                        Admitted::Host(host) => self.host_of.iter().position(|&other| other == host),
                        _ => None,
                    };
                    let slot = filling.next_free(from.map_or(wanted_slot(rank), |slot| slot as u32));
                    filling.take(rank, slot);
                }
            }
        }
        filling.slots
    }
}

/// A mapping under construction, rank by rank.
struct Filling {
    /// Slot of every rank.
    slots: Vec<u32>,
    /// A free slot points to itself, others towards the next free one.
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

    /// The next free slot, cyclically; one must exist. Compresses the path for later calls.
    fn next_free(&mut self, mut slot: u32) -> u32 {
        while !self.is_free(slot) {
            let next = self.next[self.next[slot as usize] as usize];
            self.next[slot as usize] = next;
            slot = next;
        }
        slot
    }
}
