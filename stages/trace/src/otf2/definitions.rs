//! The definitions of an archive, as far as they matter here.

use std::collections::{BTreeMap, HashMap};

use super::constants::OTF2_UNDEFINED_LOCATION;

use super::region_kinds;
use crate::call_stack::RegionKind;
use crate::selection::Marks;

/// A node of the tree of machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Node {
    /// Id of its name.
    pub(super) name: u32,
    /// Id of the name of its class.
    pub(super) class: u32,
    /// The node above it.
    pub(super) parent: u32,
}

/// A process, or something like it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LocationGroup {
    /// What it is.
    pub(super) kind: u8,
    /// The node it is on.
    pub(super) node: u32,
}

/// A thread, or something like it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Location {
    /// What it is.
    pub(super) kind: u8,
    /// Number of its events; EZTrace always says 2.
    pub(super) events: u64,
    /// The process it belongs to.
    pub(super) group: u32,
}

/// A list of locations or ranks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Group {
    /// The programming model it belongs to.
    pub(super) paradigm: u8,
    /// Bit set.
    pub(super) flags: u32,
    /// Locations or ranks.
    pub(super) members: Vec<u64>,
}

/// A function or a piece of code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Region {
    /// Id of its name.
    pub(super) name: u32,
    /// The programming model it belongs to.
    pub(super) paradigm: u8,
    /// What it does.
    pub(super) role: u8,
}

/// The definitions of an archive, in whatever order they came.
///
/// EZTrace defines some things several times. If two definitions decide who sends to whom and differ, the archive
/// contradicts itself; of texts, nodes and regions the first counts.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Definitions {
    pub(super) ticks_per_second: Option<u64>,
    pub(super) strings: HashMap<u32, String>,
    pub(super) nodes: HashMap<u32, Node>,
    pub(super) location_groups: BTreeMap<u32, LocationGroup>,
    pub(super) locations: BTreeMap<u64, Location>,
    pub(super) regions: HashMap<u32, Region>,
    /// Groups by type and id.
    pub(super) groups: BTreeMap<(u8, u32), Group>,
    /// Group of every communicator.
    pub(super) communicators: BTreeMap<u32, u32>,
    /// Id of the name of every communicator.
    pub(super) communicator_names: BTreeMap<u32, u32>,
    /// The two groups of every communicator between groups.
    pub(super) inter_communicators: BTreeMap<u32, (u32, u32)>,
    /// Communicator of every window of remote memory.
    pub(super) windows: BTreeMap<u32, u32>,
    /// Region of every calling context.
    pub(super) calling_contexts: HashMap<u32, u32>,
    /// What is wrong, if anything.
    pub(super) contradiction: Option<String>,
}

impl Definitions {
    pub(super) fn add_location_group(&mut self, id: u32, group: LocationGroup) {
        let same = *self.location_groups.entry(id).or_insert(group) == group;
        self.expect(same, || format!("location group {id} is defined in two ways"));
    }

    pub(super) fn add_location(&mut self, id: u64, location: Location) {
        // libotf2 aborts when it is asked for this one.
        self.expect(id != OTF2_UNDEFINED_LOCATION, || "a location has no id".into());
        let same = *self.locations.entry(id).or_insert(location) == location;
        self.expect(same, || format!("location {id} is defined in two ways"));
    }

    pub(super) fn add_group(&mut self, kind: u8, id: u32, group: Group) {
        let same = match self.groups.get(&(kind, id)) {
            Some(known) => *known == group,
            None => self.groups.insert((kind, id), group).is_none(),
        };
        self.expect(same, || format!("group {id} of type {kind} is defined in two ways"));
    }

    pub(super) fn add_communicator(&mut self, id: u32, group: u32) {
        let same = *self.communicators.entry(id).or_insert(group) == group;
        self.expect(same && !self.inter_communicators.contains_key(&id), || {
            format!("communicator {id} is defined in two ways")
        });
    }

    pub(super) fn add_inter_communicator(&mut self, id: u32, groups: (u32, u32)) {
        let same = *self.inter_communicators.entry(id).or_insert(groups) == groups;
        self.expect(same && !self.communicators.contains_key(&id), || {
            format!("communicator {id} is defined in two ways")
        });
    }

    pub(super) fn add_window(&mut self, id: u32, communicator: u32) {
        let same = *self.windows.entry(id).or_insert(communicator) == communicator;
        self.expect(same, || format!("window {id} is defined in two ways"));
    }

    fn expect(&mut self, holds: bool, otherwise: impl FnOnce() -> String) {
        if !holds && self.contradiction.is_none() {
            self.contradiction = Some(otherwise());
        }
    }

    /// What matters about the regions.
    pub(super) fn region_kinds(&self, marks: &mut Marks<'_>) -> HashMap<u32, RegionKind> {
        let mut kind = |region: &Region| {
            let name = self.strings.get(&region.name).map_or("", String::as_str);
            marks.mark(name, region_kinds::kind(name, region.paradigm, region.role))
        };
        self.regions.iter().map(|(id, region)| (*id, kind(region))).collect()
    }

    /// Ids of the communicators of a name, or with a number.
    pub(super) fn communicators_called(&self, name: &str) -> Vec<u32> {
        let called = |id: &&u32| self.strings.get(*id).is_some_and(|string| string == name);
        let by_name = self.communicator_names.iter().filter(|(_, string)| called(string)).map(|(id, _)| *id);
        let number = name
            .parse()
            .ok()
            .filter(|id| self.communicators.contains_key(id) || self.inter_communicators.contains_key(id));
        by_name.chain(number).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_definition_may_come_twice() {
        let mut definitions = Definitions::default();
        let group = Group { paradigm: 4, flags: 0, members: vec![0, 1] };
        for _ in 0..2 {
            definitions.add_group(5, 0, group.clone());
            definitions.add_communicator(0, 0);
            definitions.add_location(3, Location { kind: 1, events: 2, group: 0 });
            definitions.add_location_group(0, LocationGroup { kind: 1, node: 0 });
            definitions.add_inter_communicator(1, (0, 1));
        }
        definitions.add_group(4, 0, Group { members: vec![7, 8], ..group });
        assert_eq!(definitions.contradiction, None);
    }

    #[test]
    fn contradictions_are_noted() {
        let noted = |add: fn(&mut Definitions)| {
            let mut definitions = Definitions::default();
            add(&mut definitions);
            definitions.contradiction.unwrap()
        };
        let location = Location { kind: 1, events: 2, group: 0 };
        assert!(
            noted(|d| [1, 2].into_iter().for_each(|group| d.add_communicator(9, group)))
                .contains("communicator 9")
        );
        assert!(
            noted(|d| {
                d.add_communicator(9, 1);
                d.add_inter_communicator(9, (1, 2));
            })
            .contains("communicator 9")
        );
        let mut definitions = Definitions::default();
        definitions.add_location(u64::MAX, location);
        assert_eq!(definitions.contradiction.unwrap(), "a location has no id");
    }
}
