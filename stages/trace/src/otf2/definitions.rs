//! The relevant definitions of an archive.
//!
//! Records are interpreted as in libotf2 3.0.2 (`OTF2_GlobalDefReader_inc.c`), also those of early versions
//! of the format (`otf2_attic.c`).

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use super::record::{Cursor, Flaw};
use super::record_schema::{
    self, OTF2_GROUP_TYPE_COMM_GROUP, OTF2_GROUP_TYPE_COMM_LOCATIONS, OTF2_GROUP_TYPE_COMM_SELF,
    OTF2_PARADIGM_GASPI, OTF2_PARADIGM_MPI, OTF2_PARADIGM_SHMEM, OTF2_PARADIGM_UPC, OTF2_PARADIGM_USER,
    OTF2_REGION_ROLE_COLL_ALL2ALL, OTF2_REGION_ROLE_COLL_ALL2ONE, OTF2_REGION_ROLE_COLL_ONE2ALL,
    OTF2_REGION_ROLE_COLL_OTHER, OTF2_REGION_ROLE_POINT2POINT, OTF2_REGION_ROLE_RMA, OTF2_UNDEFINED_LOCATION,
};
use super::structure;
use crate::error::TraceError;
use crate::selection::{Marks, RegionKind};

/// A node of the system tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Node {
    /// Id of its name.
    pub(super) name: u32,
    /// Id of the name of its class.
    pub(super) class: u32,
    /// Its parent.
    pub(super) parent: u32,
}

/// A group of locations, such as a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LocationGroup {
    /// Type of the group.
    pub(super) kind: u8,
    /// Its node.
    pub(super) node: u32,
}

/// A location, such as a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Location {
    /// Type of the location.
    pub(super) kind: u8,
    /// Number of its events; always 2 with EZTrace.
    pub(super) events: u64,
    /// Its process.
    pub(super) group: u32,
}

/// A list of locations or ranks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Group {
    /// Its programming model.
    pub(super) paradigm: u8,
    /// Bit set.
    pub(super) flags: u32,
    /// Locations or ranks.
    pub(super) members: Vec<u64>,
}

/// A region, such as a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Region {
    /// Id of its name.
    pub(super) name: u32,
    /// Its programming model.
    pub(super) paradigm: u8,
    /// Its role.
    pub(super) role: u8,
}

/// The definitions of an archive, in any order.
///
/// EZTrace defines some things several times. Different definitions that affect messages are an
/// inconsistency. For strings, nodes and regions the first definition counts.
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
    /// Description of the first inconsistency.
    pub(super) contradiction: Option<String>,
}

impl Definitions {
    pub(super) fn add_location_group(&mut self, id: u32, group: LocationGroup) {
        let same = *self.location_groups.entry(id).or_insert(group) == group;
        self.expect(same, || format!("conflicting definitions of location group {id}"));
    }

    pub(super) fn add_location(&mut self, id: u64, location: Location) {
        // libotf2 aborts on this id.
        self.expect(id != OTF2_UNDEFINED_LOCATION, || "a location lacks an id".into());
        let same = *self.locations.entry(id).or_insert(location) == location;
        self.expect(same, || format!("conflicting definitions of location {id}"));
    }

    pub(super) fn add_group(&mut self, kind: u8, id: u32, group: Group) {
        let same = match self.groups.get(&(kind, id)) {
            Some(known) => *known == group,
            None => self.groups.insert((kind, id), group).is_none(),
        };
        self.expect(same, || format!("conflicting definitions of group {id} of type {kind}"));
    }

    pub(super) fn add_communicator(&mut self, id: u32, group: u32) {
        let same = *self.communicators.entry(id).or_insert(group) == group;
        self.expect(same && !self.inter_communicators.contains_key(&id), || {
            format!("conflicting definitions of communicator {id}")
        });
    }

    pub(super) fn add_inter_communicator(&mut self, id: u32, groups: (u32, u32)) {
        let same = *self.inter_communicators.entry(id).or_insert(groups) == groups;
        self.expect(same && !self.communicators.contains_key(&id), || {
            format!("conflicting definitions of communicator {id}")
        });
    }

    pub(super) fn add_window(&mut self, id: u32, communicator: u32) {
        let same = *self.windows.entry(id).or_insert(communicator) == communicator;
        self.expect(same, || format!("conflicting definitions of window {id}"));
    }

    fn expect(&mut self, holds: bool, otherwise: impl FnOnce() -> String) {
        if !holds && self.contradiction.is_none() {
            self.contradiction = Some(otherwise());
        }
    }

    /// Kinds of regions.
    pub(super) fn region_kinds(&self, marks: &mut Marks<'_>) -> HashMap<u32, RegionKind> {
        let mut kind = |region: &Region| {
            let name = self.strings.get(&region.name).map_or("", String::as_str);
            marks.mark(name, kind(name, region.paradigm, region.role))
        };
        self.regions.iter().map(|(id, region)| (*id, kind(region))).collect()
    }

    /// Ids of the communicators with this name or number.
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

/// A region is communication if its paradigm is a library for messages or shared memory between processes
/// (MPI, GASPI, UPC, SHMEM), or if its role is to send, to take part in a collective operation or to access
/// remote memory. Regions of EZTrace have neither paradigm nor role and are recognised by their names.
pub(super) fn kind(name: &str, paradigm: u8, role: u8) -> RegionKind {
    let library = [OTF2_PARADIGM_MPI, OTF2_PARADIGM_GASPI, OTF2_PARADIGM_UPC, OTF2_PARADIGM_SHMEM];
    let collective = [
        OTF2_REGION_ROLE_COLL_ONE2ALL,
        OTF2_REGION_ROLE_COLL_ALL2ONE,
        OTF2_REGION_ROLE_COLL_ALL2ALL,
        OTF2_REGION_ROLE_COLL_OTHER,
    ];
    let roles = [OTF2_REGION_ROLE_POINT2POINT, OTF2_REGION_ROLE_RMA];
    let marked = library.contains(&paradigm) || roles.contains(&role);
    RegionKind::new(name, marked, collective.contains(&role))
}

pub(super) const CLOCK_PROPERTIES: u8 = 5;
pub(super) const STRING: u8 = 10;
pub(super) const SYSTEM_TREE_NODE: u8 = 12;
pub(super) const LOCATION_GROUP: u8 = 13;
pub(super) const LOCATION: u8 = 14;
pub(super) const REGION: u8 = 15;
pub(super) const GROUP: u8 = 18;
pub(super) const COMM: u8 = 22;
const RMA_WIN: u8 = 24;
const CALLING_CONTEXT: u8 = 34;
const INTER_COMM: u8 = 43;

const OPENMP: u8 = 3;

/// Reads and validates the definitions of an archive; returns the number of records, irrelevant ones
/// included.
pub(super) fn read(path: &Path, chunk_size: u64) -> Result<(Definitions, u64), TraceError> {
    let (mut definitions, mut records) = (Definitions::default(), 0);
    let layout = record_schema::global_definition;
    structure::walk_definitions(path, chunk_size, None, &mut Vec::new(), layout, |kind, _, mut body| {
        records += 1;
        add(&mut definitions, kind, &mut body.record()?)
    })?;
    Ok((definitions, records))
}

/// Adds a record that has already been validated.
fn add(all: &mut Definitions, kind: u8, record: &mut Cursor<'_>) -> Result<(), Flaw> {
    match kind {
        CLOCK_PROPERTIES => all.ticks_per_second = Some(record.compressed(8)?),
        STRING => {
            let (id, text) = (record.compressed_32()?, record.text()?);
            all.strings.entry(id).or_insert_with(|| String::from_utf8_lossy(text).into_owned());
        }
        SYSTEM_TREE_NODE => {
            let [id, name, class, parent] = numbers(record)?;
            all.nodes.entry(id).or_insert(Node { name, class, parent });
        }
        LOCATION_GROUP => {
            let [id, _name] = numbers(record)?;
            let (kind, node) = (record.byte()?, record.compressed_32()?);
            all.add_location_group(id, LocationGroup { kind, node });
        }
        LOCATION => {
            let (id, _name) = (record.compressed(8)?, record.compressed_32()?);
            let (kind, events, group) = (record.byte()?, record.compressed(8)?, record.compressed_32()?);
            all.add_location(id, Location { kind, events, group });
        }
        REGION => {
            let (id, region) = region(record)?;
            all.regions.entry(id).or_insert(region);
        }
        GROUP => {
            let (kind, id, group) = group(record)?;
            all.add_group(kind, id, group);
        }
        COMM => {
            let [id, name, group] = numbers(record)?;
            all.add_communicator(id, group);
            all.communicator_names.entry(id).or_insert(name);
        }
        INTER_COMM => {
            let [id, name, one, other] = numbers(record)?;
            all.add_inter_communicator(id, (one, other));
            all.communicator_names.entry(id).or_insert(name);
        }
        RMA_WIN => {
            let [id, _name, communicator] = numbers(record)?;
            all.add_window(id, communicator);
        }
        CALLING_CONTEXT => {
            let [id, region] = numbers(record)?;
            all.calling_contexts.entry(id).or_insert(region);
        }
        _ => {}
    }
    Ok(())
}

fn region(record: &mut Cursor<'_>) -> Result<(u32, Region), Flaw> {
    let [id, name, _description] = numbers(record)?;
    let old_type = record.byte()?;
    let [_file, _begin, _end] = numbers(record)?;
    // Version 1.1 split the type.
    let (role, paradigm) = if record.rest().is_empty() {
        role_and_paradigm(old_type)
    } else {
        let _canonical_name = record.compressed_32()?;
        (record.byte()?, record.byte()?)
    };
    Ok((id, Region { name, paradigm, role }))
}

fn group(record: &mut Cursor<'_>) -> Result<(u8, u32, Group), Flaw> {
    let [id, _name] = numbers(record)?;
    let old_type = record.byte()?;
    // A member takes at least one byte, and the record is validated, so the count is bounded by its length.
    let members = (0..record.compressed_32()?).map(|_| record.compressed(8)).collect::<Result<_, _>>()?;
    // Version 1.2 split the type.
    let (kind, paradigm, flags) = if record.rest().is_empty() {
        let (kind, paradigm) = kind_and_paradigm(old_type);
        (kind, paradigm, 0)
    } else {
        (record.byte()?, record.byte()?, record.compressed_32()?)
    };
    Ok((kind, id, Group { paradigm, flags, members }))
}

/// Role and paradigm of a region by its type before version 1.1 (`OTF2_RegionType`).
const fn role_and_paradigm(old_type: u8) -> (u8, u8) {
    match old_type {
        // Functions and user regions, without a paradigm.
        1 | 3 => (1, 0),
        2 | 30 | 32 => (3, OTF2_PARADIGM_USER),
        4 => (27, OTF2_PARADIGM_USER),
        27..=29 => (4, OTF2_PARADIGM_USER),
        31 => (1, OTF2_PARADIGM_USER),
        5 => (5, OPENMP),
        6 => (3, OPENMP),
        // Sections, section, workshare, single.
        7..=10 => (old_type - 1, OPENMP),
        // Master, critical.
        11 | 12 => (old_type, OPENMP),
        // Atomic, barrier, implicit barrier, flush.
        13..=16 => (old_type + 1, OPENMP),
        // The blocks of critical and single.
        17 => (13, OPENMP),
        18 => (10, OPENMP),
        // Wrapper, task, wait for tasks, create a task, ordered, its block.
        19 => (2, OPENMP),
        20 => (20, OPENMP),
        21 => (22, OPENMP),
        33 => (21, OPENMP),
        34 => (18, OPENMP),
        35 => (19, OPENMP),
        22 => (15, OTF2_PARADIGM_MPI),
        // Collective operations: one to all, all to one, all to all, others.
        23..=26 => (old_type, OTF2_PARADIGM_MPI),
        _ => (0, 0),
    }
}

/// Type and paradigm of a group by its type before version 1.2 (`OTF2_GroupTypePre12`). libotf2 treats
/// groups of metrics as groups of regions.
const fn kind_and_paradigm(old_type: u8) -> (u8, u8) {
    match old_type {
        1 => (1, 0),
        2 | 3 => (2, 0),
        4 => (OTF2_GROUP_TYPE_COMM_GROUP, OTF2_PARADIGM_MPI),
        5 => (OTF2_GROUP_TYPE_COMM_SELF, OTF2_PARADIGM_MPI),
        6 => (OTF2_GROUP_TYPE_COMM_LOCATIONS, OTF2_PARADIGM_MPI),
        _ => (0, 0),
    }
}

fn numbers<const N: usize>(record: &mut Cursor<'_>) -> Result<[u32; N], Flaw> {
    let mut numbers = [0; N];
    for place in &mut numbers {
        *place = record.compressed_32()?;
    }
    Ok(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn identical_duplicates_are_accepted() {
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
    fn conflicting_definitions_are_noted() {
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
        assert_eq!(definitions.contradiction.unwrap(), "a location lacks an id");
    }

    #[test]
    fn communication_is_recognised_by_paradigm_role_or_name() {
        let communication = |name, paradigm, role| kind(name, paradigm, role).communication;
        assert!(communication("MPI_Init", 0, 0));
        assert!(communication("x", OTF2_PARADIGM_MPI, 0) && communication("x", OTF2_PARADIGM_SHMEM, 0));
        assert!(communication("x", 0, OTF2_REGION_ROLE_POINT2POINT));
        assert!(!communication("main", 1, 1));
        // An OpenMP barrier.
        assert!(!communication("!$omp barrier", 3, 15));
    }

    fn record(kind: u8, body: &[u8]) -> Vec<u8> {
        [&[kind, body.len() as u8], body].concat()
    }

    fn file(records: &[Vec<u8>]) -> Vec<u8> {
        [&[3, 0x42][..], &[0; 16], &records.concat(), &[2, 1]].concat()
    }

    fn read_bytes(bytes: &[u8]) -> Result<(Definitions, u64), String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        read(file.path(), 1 << 18)
            .map_err(|error| error.to_string().replace(&file.path().display().to_string(), "FILE"))
    }

    fn some_records() -> Vec<Vec<u8>> {
        vec![
            record(99, &[7, 7, 7]),
            record(CLOCK_PROPERTIES, &[2, 0, 4, 1, 9, 0]),
            record(STRING, &[1, 7, b'a', 0]),
            record(STRING, &[1, 7, b'b', 0]),
            record(SYSTEM_TREE_NODE, &[0, 1, 7, 0, 255]),
            record(LOCATION_GROUP, &[1, 5, 0, 1, 0]),
            record(LOCATION, &[1, 3, 0, 1, 1, 2, 1, 5, 42]),
            record(REGION, &[0, 1, 7, 0, 0, 0, 0, 0, 0, 28, 4, 0]),
            // Locations 9 and 300 of MPI, then their ranks.
            record(GROUP, &[0, 0, 0, 1, 2, 1, 9, 2, 44, 1, 4, 4, 0]),
            record(GROUP, &[0, 0, 0, 1, 2, 0, 1, 1, 5, 4, 1, 1]),
            record(COMM, &[1, 2, 1, 7, 0, 255]),
            record(INTER_COMM, &[1, 1, 1, 7, 0, 1, 2, 255, 0]),
            record(RMA_WIN, &[0, 0, 1, 1]),
            record(CALLING_CONTEXT, &[1, 4, 1, 6, 0, 0]),
        ]
    }

    #[test]
    fn the_first_definition_of_an_id_counts_and_unknown_records_are_skipped() {
        let (all, records) = read_bytes(&file(&some_records())).unwrap();
        assert_eq!(records, 14);
        assert_eq!((all.ticks_per_second, all.strings[&7].as_str()), (Some(1024), "a"));
        assert_eq!(all.nodes[&0], Node { name: 7, class: 0, parent: u32::MAX });
        assert_eq!(all.location_groups[&5], LocationGroup { kind: 1, node: 0 });
        assert_eq!(all.locations[&3], Location { kind: 1, events: 2, group: 5 });
        assert_eq!(all.regions[&0], Region { name: 7, paradigm: 4, role: 28 });
        assert_eq!((all.communicators[&2], all.communicator_names[&2]), (0, 7));
        assert_eq!((all.inter_communicators[&1], all.communicator_names[&1]), ((0, 2), 7));
        assert_eq!((all.windows[&0], all.calling_contexts[&4]), (1, 6));
    }

    #[test]
    fn groups_are_identified_by_type_and_id_and_keep_their_order() {
        let (all, _) = read_bytes(&file(&some_records())).unwrap();
        assert_eq!(all.groups[&(4, 0)], Group { paradigm: 4, flags: 0, members: vec![9, 300] });
        assert_eq!(all.groups[&(5, 0)], Group { paradigm: 4, flags: 1, members: vec![0, 1] });
        assert_eq!(all.contradiction, None);
    }

    #[test]
    fn types_of_early_versions_are_split() {
        // An MPI barrier and the locations of MPI ranks.
        let records = [record(REGION, &[0, 0, 0, 22, 0, 0, 0]), record(GROUP, &[0, 0, 6, 1, 1, 0])];
        let (all, _) = read_bytes(&file(&records)).unwrap();
        assert_eq!(all.regions[&0], Region { name: 0, paradigm: 4, role: 15 });
        assert_eq!(all.groups[&(4, 0)], Group { paradigm: 4, flags: 0, members: vec![0] });
    }

    #[test]
    fn numbers_may_have_the_highest_byte_first() {
        let mut bytes = file(&[record(CLOCK_PROPERTIES, &[2, 4, 0, 0, 0])]);
        bytes[1] = 0x23;
        assert_eq!(read_bytes(&bytes).unwrap().0.ticks_per_second, Some(1024));
    }

    #[test]
    fn declared_counts_do_not_reserve_memory() {
        // A group that declares 2³² − 1 members.
        let error = read_bytes(&file(&[record(GROUP, &[0, 0, 0, 255, 0, 0, 0])])).map(drop).unwrap_err();
        assert_eq!(error, "`FILE` is damaged at byte 29: the file is truncated");
    }

    proptest! {
        #[test]
        fn damage_ends_in_an_error_or_definitions(
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
            length in any::<prop::sample::Index>(),
            cut in any::<bool>(),
        ) {
            let mut bytes = file(&some_records());
            for (place, byte) in changes {
                let place = place.index(bytes.len());
                bytes[place] = byte;
            }
            if cut {
                bytes.truncate(length.index(bytes.len()));
            }
            if let Err(error) = read_bytes(&bytes) {
                prop_assert!(error.contains("is damaged at byte"), "{error}");
            }
        }
    }
}
