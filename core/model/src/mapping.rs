//! The mapping: the slot of every rank, and its metrics compared with baseline mappings.

use std::collections::{BTreeMap, HashMap};

use miette::Diagnostic;

use crate::stage::Artifact;
use crate::system_graph::SystemGraph;
use crate::weight::Weight;

/// The slot of every rank of a program on a machine. Self-contained: launch files need nothing else.
#[derive(Debug, Clone, PartialEq)]
pub struct Mapping {
    /// Location of each rank; the index is the rank.
    pub ranks: Vec<Placement>,
    /// All hosts of the machine in slot order.
    pub hosts: Vec<HostSlots>,
    /// Edge weight used to compute the mapping.
    pub weight: Weight,
    /// Quality metrics by name, such as `F`.
    pub metrics: BTreeMap<String, f64>,
    /// The best cost during the search.
    pub convergence: Vec<ConvergencePoint>,
    /// Whether the search ended by itself.
    pub complete: bool,
}

/// Location of one rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Placement {
    /// Slot of the machine.
    pub slot: u32,
    /// Index into [`Mapping::hosts`].
    pub host: u32,
    /// Logical core on the host.
    pub core: Option<u32>,
}

/// A host and its slots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostSlots {
    /// Host name, as launchers know it.
    pub host: String,
    /// Its first slot.
    pub first_slot: u32,
    /// Number of its slots.
    pub slots: u32,
}

/// The best cost that an island had found after a number of evaluations.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ConvergencePoint {
    /// The island.
    pub island: u32,
    /// Evaluations spent by the island.
    pub evaluations: u64,
    /// Best F of the island so far.
    pub cost: f64,
}

impl Mapping {
    /// A complete mapping of rank `i` to `slots[i]` of a machine, without metrics.
    pub fn new(slots: &[u32], system: &SystemGraph, weight: Weight) -> Result<Self, MappingError> {
        let host = |(node, first_slot, slots): (u32, u32, u32)| {
            let host = system.nodes[node as usize].name.clone();
            HostSlots { host, first_slot, slots }
        };
        let hosts: Vec<HostSlots> = system.hosts().map(host).collect();
        let count = system.slots.len() as u32;
        let placement = |(rank, &slot): (usize, &u32)| {
            let found = system.slots.get(slot as usize);
            let core = found.ok_or(MappingError::NoSuchSlot { rank, slot, slots: count })?.core;
            let host = hosts.partition_point(|host| host.first_slot <= slot) as u32 - 1;
            Ok(Placement { slot, host, core: Some(core) })
        };
        let ranks = slots.iter().enumerate().map(placement).collect::<Result<_, MappingError>>()?;
        let mapping =
            Self { ranks, hosts, weight, metrics: BTreeMap::new(), convergence: Vec::new(), complete: true };
        mapping.check()?;
        Ok(mapping)
    }

    /// The slot of every rank.
    #[must_use]
    pub fn slots(&self) -> Vec<u32> {
        self.ranks.iter().map(|placement| placement.slot).collect()
    }

    /// Number of slots of the machine.
    #[must_use]
    pub fn slot_count(&self) -> u32 {
        self.hosts.last().map_or(0, |host| host.first_slot + host.slots)
    }

    /// Name of the host of a rank.
    #[must_use]
    pub fn host_of(&self, rank: usize) -> &str {
        &self.hosts[self.ranks[rank].host as usize].host
    }

    /// Checks that every rank has its own slot, on its own host, and that the slots of hosts are consecutive.
    pub fn check(&self) -> Result<(), MappingError> {
        let mut next = 0;
        for host in &self.hosts {
            if host.first_slot != next {
                let HostSlots { host, first_slot, .. } = host.clone();
                return Err(MappingError::HostGap { host, first_slot, expected: next });
            }
            next = host.first_slot.checked_add(host.slots).ok_or(MappingError::TooManySlots)?;
        }
        // A host may claim billions of slots, so memory depends on the ranks alone.
        let mut owner = HashMap::with_capacity(self.ranks.len());
        for (rank, placement) in self.ranks.iter().enumerate() {
            let slot = placement.slot;
            if slot >= next {
                return Err(MappingError::NoSuchSlot { rank, slot, slots: next });
            }
            if let Some(other) = owner.insert(slot, rank) {
                return Err(MappingError::SharedSlot { slot, first: other, second: rank });
            }
            let holds = |host: &HostSlots| (host.first_slot..host.first_slot + host.slots).contains(&slot);
            if !self.hosts.get(placement.host as usize).is_some_and(holds) {
                return Err(MappingError::WrongHost { rank, slot });
            }
        }
        Ok(())
    }
}

impl Artifact for Mapping {
    const KIND: &'static str = "mapping";
}

/// An inconsistent mapping.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum MappingError {
    /// A rank is on a slot that does not exist.
    #[error("rank {rank} is on slot {slot}, but there are {slots} slots")]
    #[diagnostic(code(model::no_such_slot))]
    NoSuchSlot {
        /// The rank.
        rank: usize,
        /// The slot.
        slot: u32,
        /// Number of slots.
        slots: u32,
    },
    /// Two ranks are on one slot.
    #[error("ranks {first} and {second} are both on slot {slot}")]
    #[diagnostic(code(model::shared_slot))]
    SharedSlot {
        /// The slot.
        slot: u32,
        /// A rank on it.
        first: usize,
        /// Another rank on it.
        second: usize,
    },
    /// The slot of a rank is not on the host of the rank.
    #[error("rank {rank} is on slot {slot}, which is not on its host")]
    #[diagnostic(code(model::wrong_host))]
    WrongHost {
        /// The rank.
        rank: usize,
        /// The slot.
        slot: u32,
    },
    /// The slots of the hosts have no 32-bit numbers.
    #[error("the hosts have more than {} slots", u32::MAX)]
    #[diagnostic(code(model::too_many_slots))]
    TooManySlots,
    /// The slots of the hosts are not consecutive.
    #[error("host `{host}` begins at slot {first_slot} instead of {expected}")]
    #[diagnostic(code(model::host_gap))]
    HostGap {
        /// The host.
        host: String,
        /// Its first slot.
        first_slot: u32,
        /// The slot at which it should begin.
        expected: u32,
    },
}

/// The value of a mapping in [`Metrics`] that is its median run time.
pub const MEASURED: &str = "measured_s";
/// The lower end of the interval of [`MEASURED`].
pub const MEASURED_LOW: &str = "measured_low_s";
/// The upper end of the interval of [`MEASURED`].
pub const MEASURED_HIGH: &str = "measured_high_s";
/// The value of a mapping in [`Metrics`] that is its predicted run time.
pub const PREDICTED: &str = "predicted_s";

/// Metrics of a mapping, compared with linear, round-robin and random mappings of the same ranks on the same
/// machine, or of several mappings, compared with their run times.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Metrics {
    /// One row for the mapping, one for linear, one for round-robin, one per random sample; or one per mapping with run
    /// times.
    pub placements: Vec<PlacementMetrics>,
    /// Medians and ratios by name, such as `F_over_linear`.
    pub summary: BTreeMap<String, f64>,
}

/// The metrics of one mapping.
#[derive(Debug, Clone, PartialEq)]
pub struct PlacementMetrics {
    /// Origin of the mapping.
    pub origin: PlacementOrigin,
    /// Number of the random sample, or of the mapping if there are several.
    pub sample: u32,
    /// Metrics by name, such as `F`. Metrics that the machine does not define are missing.
    pub values: BTreeMap<String, f64>,
}

crate::named_values! {
    /// Origin of a mapping.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum PlacementOrigin {
        /// The mapping under evaluation.
        Mapping = "mapping",
        /// Rank `i` on slot `i`.
        Linear = "linear",
        /// Ranks dealt out to hosts in turn.
        RoundRobin = "round-robin",
        /// Random slots.
        Random = "random",
    }
}

impl Artifact for Metrics {
    const KIND: &'static str = "metrics";
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system_graph::tests::small_tree;
    use proptest::prelude::*;

    #[test]
    fn placements_have_host_and_core() {
        let mapping = Mapping::new(&[7, 0, 2], &small_tree(), Weight::Bytes).unwrap();
        assert_eq!([0, 1, 2].map(|rank| mapping.host_of(rank).to_owned()), ["h3", "h0", "h1"]);
        assert_eq!(mapping.ranks[0], Placement { slot: 7, host: 3, core: Some(1) });
        assert_eq!(mapping.slot_count(), 8);
    }

    #[test]
    fn two_ranks_on_a_slot_are_rejected() {
        let error = Mapping::new(&[1, 1], &small_tree(), Weight::Bytes).unwrap_err();
        assert_eq!(error.to_string(), "ranks 0 and 1 are both on slot 1");
        assert!(matches!(
            Mapping::new(&[8], &small_tree(), Weight::Bytes),
            Err(MappingError::NoSuchSlot { slot: 8, .. })
        ));
    }

    /// The check took memory for every slot: 32 GiB for this host.
    #[test]
    fn hosts_with_billions_of_slots_take_no_memory() {
        let mut mapping = Mapping::new(&[1, 0], &small_tree(), Weight::Bytes).unwrap();
        mapping.hosts.last_mut().unwrap().slots = i32::MAX as u32;
        assert!(mapping.check().is_ok());
        mapping.hosts.last_mut().unwrap().slots = u32::MAX;
        assert!(matches!(mapping.check(), Err(MappingError::TooManySlots)));
    }

    proptest! {
        #[test]
        fn slots_come_back_as_given(slots in Just((0..8).collect::<Vec<u32>>()).prop_shuffle()) {
            let mapping = Mapping::new(&slots, &small_tree(), Weight::Messages).unwrap();
            prop_assert_eq!(mapping.slots(), slots);
        }
    }
}
