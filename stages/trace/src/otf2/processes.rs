//! The processes of the program: rank and host of every location.

use hopmap_model::to_u32;
use std::collections::{BTreeMap, HashMap};

use super::record_schema::{
    OTF2_GROUP_TYPE_COMM_LOCATIONS, OTF2_LOCATION_GROUP_TYPE_PROCESS, OTF2_LOCATION_TYPE_CPU_THREAD,
    OTF2_PARADIGM_GASPI, OTF2_PARADIGM_MPI, OTF2_PARADIGM_SHMEM, OTF2_PARADIGM_UPC,
};

use super::definitions::{Definitions, Group};

/// Programming models whose ranks are processes. The first one in a trace numbers its processes.
pub(super) const PARADIGMS: [u8; 4] =
    [OTF2_PARADIGM_MPI, OTF2_PARADIGM_SHMEM, OTF2_PARADIGM_GASPI, OTF2_PARADIGM_UPC];

fn name(paradigm: u8) -> &'static str {
    match paradigm {
        OTF2_PARADIGM_SHMEM => "SHMEM",
        OTF2_PARADIGM_GASPI => "GASPI",
        OTF2_PARADIGM_UPC => "UPC",
        _ => "MPI",
    }
}

/// A process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ProcessOf {
    /// Its main location: the one that is an MPI rank, or its first thread.
    pub(super) main: Option<u64>,
    /// Host on which it ran.
    pub(super) host: Option<String>,
}

/// The processes of the program.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Processes {
    /// The processes by rank.
    pub(super) list: Vec<ProcessOf>,
    /// Whether they are ranks of a programming model and can send.
    pub(super) ranked: bool,
    ranks: HashMap<u64, u32>,
}

impl Processes {
    /// The ranks of MPI or another model if any, else all defined processes in order of their ids.
    pub(super) fn new(definitions: &Definitions) -> Result<Self, String> {
        let ranked = |paradigm: u8| {
            let groups = definitions.groups.iter();
            groups.filter(move |((kind, _), group)| {
                *kind == OTF2_GROUP_TYPE_COMM_LOCATIONS && group.paradigm == paradigm
            })
        };
        let first = PARADIGMS.into_iter().find_map(|paradigm| ranked(paradigm).next());
        let processes = match first {
            None => Self::without_ranks(definitions),
            Some((_, first)) => {
                let paradigm = name(first.paradigm);
                if ranked(first.paradigm).any(|(_, other)| other.members != first.members) {
                    return Err(format!("conflicting definitions of the {paradigm} ranks"));
                }
                Self::of_ranks(definitions, first)?
            }
        };
        if processes.list.is_empty() {
            Err("the archive does not define processes".into())
        } else {
            Ok(processes)
        }
    }

    fn of_ranks(definitions: &Definitions, group: &Group) -> Result<Self, String> {
        let (locations, paradigm) = (&group.members, name(group.paradigm));
        let mut ranks = HashMap::with_capacity(locations.len());
        // Rank of every location group; `None` if it has several ranks.
        let mut group_ranks = BTreeMap::new();
        let mut list = Vec::with_capacity(locations.len());
        for (rank, location) in locations.iter().enumerate() {
            let rank = to_u32(rank);
            let defined = definitions.locations.get(location);
            let group = defined
                .ok_or_else(|| {
                    format!("{paradigm} rank {rank} is location {location}, which is not defined")
                })?
                .group;
            if let Some(other) = ranks.insert(*location, rank) {
                return Err(format!("location {location} is both {paradigm} rank {other} and {rank}"));
            }
            group_ranks.entry(group).and_modify(|rank| *rank = None).or_insert(Some(rank));
            list.push(ProcessOf { main: Some(*location), host: host(definitions, group) });
        }
        for (id, location) in &definitions.locations {
            if let Some(Some(rank)) = group_ranks.get(&location.group) {
                ranks.entry(*id).or_insert(*rank);
            }
        }
        Ok(Self { list, ranked: true, ranks })
    }

    fn without_ranks(definitions: &Definitions) -> Self {
        let groups = definitions.location_groups.iter();
        let groups = groups.filter(|(_, group)| group.kind == OTF2_LOCATION_GROUP_TYPE_PROCESS);
        let rank_of_group: BTreeMap<u32, u32> = groups.map(|(id, _)| *id).zip(0..).collect();
        let mut list: Vec<_> = rank_of_group
            .keys()
            .map(|group| ProcessOf { main: None, host: host(definitions, *group) })
            .collect();
        let mut ranks = HashMap::new();
        for (id, location) in &definitions.locations {
            if let Some(rank) = rank_of_group.get(&location.group) {
                ranks.insert(*id, *rank);
                if location.kind == OTF2_LOCATION_TYPE_CPU_THREAD {
                    list[*rank as usize].main.get_or_insert(*id);
                }
            }
        }
        Self { list, ranked: false, ranks }
    }

    /// Rank of the process of a location.
    pub(super) fn rank(&self, location: u64) -> Option<u32> {
        self.ranks.get(&location).copied()
    }

    /// Whether a process has several locations.
    pub(super) fn have_threads(&self) -> bool {
        self.ranks.len() > self.list.len()
    }

    /// Whether a location is the main one of its process.
    pub(super) fn is_main(&self, location: u64) -> bool {
        self.rank(location).is_some_and(|rank| self.list[rank as usize].main == Some(location))
    }
}

/// Name of the nearest ancestor of class `node` of a location group, else of its direct node.
fn host(definitions: &Definitions, group: u32) -> Option<String> {
    let nodes = &definitions.nodes;
    let nearest = definitions.location_groups.get(&group)?.node;
    let above = std::iter::successors(nodes.get(&nearest), |node| nodes.get(&node.parent));
    let text = |id: u32| definitions.strings.get(&id).filter(|name| !name.is_empty());
    // Damaged trees may contain cycles, so the walk is bounded by the number of nodes.
    let is_node = |class: u32| text(class).is_some_and(|class| class.eq_ignore_ascii_case("node"));
    let node = above.take(nodes.len()).find(|node| is_node(node.class));
    text(node.or(nodes.get(&nearest))?.name).cloned()
}

#[cfg(test)]
mod tests {
    use super::super::definitions::{Location, LocationGroup, Node};
    use super::*;

    /// Two processes on two nodes of a machine, with two threads each; the second process has the smaller
    /// ids.
    fn definitions() -> Definitions {
        let texts = ["machine", "node", "Linux", "n1", "n2"];
        let node = |name, class, parent| Node { name, class, parent };
        let group = |node| LocationGroup { kind: OTF2_LOCATION_GROUP_TYPE_PROCESS, node };
        let location = |group| Location { kind: OTF2_LOCATION_TYPE_CPU_THREAD, events: 1, group };
        Definitions {
            strings: texts.iter().zip(0..).map(|(text, id)| (id, (*text).to_owned())).collect(),
            nodes: [(0, node(2, 0, u32::MAX)), (1, node(3, 1, 0)), (2, node(4, 1, 0))].into(),
            location_groups: [(7, group(2)), (8, group(1))].into(),
            locations: [(1 << 32, location(8)), (5, location(8)), (6, location(7)), (9, location(7))].into(),
            ..Definitions::default()
        }
    }

    fn mpi(members: &[u64]) -> Definitions {
        let group = Group { paradigm: OTF2_PARADIGM_MPI, flags: 0, members: members.to_vec() };
        Definitions { groups: [((OTF2_GROUP_TYPE_COMM_LOCATIONS, 0), group)].into(), ..definitions() }
    }

    #[test]
    fn threads_belong_to_the_rank_of_their_process() {
        let processes = Processes::new(&mpi(&[5, 9])).unwrap();
        assert_eq!(
            [5, 1 << 32, 6, 9, 77].map(|location| processes.rank(location)),
            [Some(0), Some(0), Some(1), Some(1), None]
        );
        assert!(processes.is_main(5) && !processes.is_main(6));
        let hosts: Vec<_> = processes.list.iter().map(|process| process.host.as_deref().unwrap()).collect();
        assert_eq!(hosts, ["n1", "n2"]);
    }

    #[test]
    fn without_ranks_every_process_is_a_rank() {
        let processes = Processes::new(&definitions()).unwrap();
        assert!(!processes.ranked);
        assert_eq!(processes.list.iter().map(|process| process.main).collect::<Vec<_>>(), [Some(6), Some(5)]);
        assert_eq!([5, 6].map(|location| processes.rank(location)), [Some(1), Some(0)]);
    }

    #[test]
    fn the_host_is_the_nearest_node_of_class_node_or_any() {
        let mut definitions = definitions();
        definitions.nodes.insert(3, Node { name: 2, class: 2, parent: 1 });
        definitions.location_groups.get_mut(&8).unwrap().node = 3;
        assert_eq!(host(&definitions, 8).unwrap(), "n1");
        definitions.nodes = [(3, Node { name: 2, class: 0, parent: 3 })].into();
        assert_eq!(host(&definitions, 8).unwrap(), "Linux");
        assert_eq!(host(&definitions, 7), None);
    }

    #[test]
    fn inconsistent_definitions_are_rejected() {
        let error = |definitions| Processes::new(&definitions).unwrap_err();
        assert_eq!(error(mpi(&[5, 5])), "location 5 is both MPI rank 0 and 1");
        assert_eq!(error(mpi(&[4])), "MPI rank 0 is location 4, which is not defined");
        assert_eq!(error(mpi(&[])), "the archive does not define processes");
        assert_eq!(error(Definitions::default()), "the archive does not define processes");
    }
}
