//! Translation of the ranks in events, which are relative to a communicator, to world ranks.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::definitions::{Definitions, Group};
use super::processes::PARADIGMS;
use super::record_schema::{
    OTF2_GROUP_FLAG_GLOBAL_MEMBERS, OTF2_GROUP_TYPE_COMM_GROUP, OTF2_GROUP_TYPE_COMM_LOCATIONS,
    OTF2_GROUP_TYPE_COMM_SELF, OTF2_UNDEFINED_UINT32,
};
use super::visitor::Through;

/// `MPI_PROC_NULL` of Open MPI. EZTrace records it unchanged; other libraries use -1, which is "undefined".
const OPEN_MPI_PROC_NULL: u32 = u32::MAX - 1;

/// Whether a receiver is `MPI_PROC_NULL`.
pub(super) fn is_proc_null(receiver: u32) -> bool {
    matches!(receiver, OTF2_UNDEFINED_UINT32 | OPEN_MPI_PROC_NULL)
}

/// The members of a group.
#[derive(Debug, PartialEq, Eq)]
struct Members {
    /// World rank of every member.
    ranks: Vec<u32>,
    /// The same, sorted, for groups that are searched.
    sorted: Vec<u32>,
    /// World ranks by index into the locations of the paradigm, if events use such indexes.
    indexed: Option<Arc<[u32]>>,
}

impl Members {
    fn holds(&self, rank: u32) -> bool {
        self.sorted.binary_search(&rank).is_ok()
    }

    /// The world rank of `receiver` in an event.
    fn rank(&self, receiver: u32) -> Option<u32> {
        match &self.indexed {
            Some(indexed) => indexed.get(receiver as usize).copied().filter(|rank| self.holds(*rank)),
            None => self.ranks.get(receiver as usize).copied(),
        }
    }
}

/// The peers of a process.
#[derive(Debug)]
enum Communicator {
    /// Only itself.
    Alone,
    /// The members of its group.
    Group(Arc<Members>),
    /// The members of the other group.
    Between(Arc<Members>, Arc<Members>),
}

/// Why a receiver is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum NoReceiver {
    /// The communicator is not defined.
    #[error("communicator {communicator} is not a communicator of MPI processes")]
    Undefined { communicator: u32 },
    /// The window is not defined.
    #[error("window {window} is not defined")]
    NoWindow { window: u32 },
    /// The communicator does not have this member.
    #[error("the receiver is rank {receiver} of communicator {communicator}, which has only {size} members")]
    Outside { communicator: u32, receiver: u32, size: usize },
    /// The sender is in neither group of the communicator, or in both.
    #[error(
        "rank {sender} sends through communicator {communicator}, but is not in exactly one of its two groups"
    )]
    NotASide { communicator: u32, sender: u32 },
}

/// All communicators of MPI processes.
#[derive(Debug, Default)]
pub(super) struct Communicators {
    by_id: HashMap<u32, Communicator>,
    /// Communicator of every window, and whether its members are processes.
    windows: HashMap<u32, (u32, bool)>,
}

impl Communicators {
    /// Resolves the communicators of a program after all definitions are read, because EZTrace defines some
    /// communicators before their groups. `rank` gives the rank of a location.
    pub(super) fn new(definitions: &Definitions, rank: impl Fn(u64) -> Option<u32>) -> Result<Self, String> {
        let mut groups = Groups { definitions, ranks: ranks(definitions, rank)?, members: BTreeMap::new() };
        let mut communicators = Self::default();
        for (&id, &group) in &definitions.communicators {
            let communicator = if groups.find(OTF2_GROUP_TYPE_COMM_GROUP, group).is_some() {
                groups.members(id, group, false)?.map(Communicator::Group)
            } else {
                groups.find(OTF2_GROUP_TYPE_COMM_SELF, group).map(|_| Communicator::Alone)
            };
            communicators.by_id.extend(communicator.map(|communicator| (id, communicator)));
        }
        for (&id, &(one, other)) in &definitions.inter_communicators {
            if let (Some(one), Some(other)) =
                (groups.members(id, one, true)?, groups.members(id, other, true)?)
            {
                communicators.by_id.insert(id, Communicator::Between(one, other));
            }
        }
        for (&window, &communicator) in &definitions.windows {
            let processes = communicators.by_id.contains_key(&communicator);
            communicators.windows.insert(window, (communicator, processes));
        }
        Ok(communicators)
    }

    /// The communicator of a window; `None` if its members are not processes, but devices of one process.
    pub(super) fn of_window(&self, window: u32) -> Result<Option<u32>, NoReceiver> {
        let (communicator, processes) = self.windows.get(&window).ok_or(NoReceiver::NoWindow { window })?;
        Ok(processes.then_some(*communicator))
    }

    /// World ranks of the participants of a collective operation, in order; `None` unless the communicator
    /// is a single group of processes.
    pub(super) fn members(&self, through: Through) -> Option<&[u32]> {
        let id = match through {
            Through::Communicator(id) => id,
            Through::Window(window) => self.of_window(window).ok()??,
        };
        match self.by_id.get(&id)? {
            Communicator::Group(members) => Some(&members.ranks),
            Communicator::Alone | Communicator::Between(..) => None,
        }
    }

    /// World rank of the receiver of a message from rank `sender` to `receiver`.
    pub(super) fn receiver(&self, communicator: u32, sender: u32, receiver: u32) -> Result<u32, NoReceiver> {
        let outside = |size| NoReceiver::Outside { communicator, receiver, size };
        match self.by_id.get(&communicator).ok_or(NoReceiver::Undefined { communicator })? {
            Communicator::Alone if receiver == 0 => Ok(sender),
            Communicator::Alone => Err(outside(1)),
            Communicator::Group(members) => members.rank(receiver).ok_or(outside(members.ranks.len())),
            Communicator::Between(one, other) => {
                let remote = match (one.holds(sender), other.holds(sender)) {
                    (true, false) => other,
                    (false, true) => one,
                    _ => return Err(NoReceiver::NotASide { communicator, sender }),
                };
                remote.rank(receiver).ok_or(outside(remote.ranks.len()))
            }
        }
    }
}

/// World ranks by index into the locations, for every paradigm whose members are processes.
fn ranks(
    definitions: &Definitions,
    rank: impl Fn(u64) -> Option<u32>,
) -> Result<BTreeMap<u8, Arc<[u32]>>, String> {
    let mut ranks = BTreeMap::new();
    for ((kind, id), group) in &definitions.groups {
        if *kind != OTF2_GROUP_TYPE_COMM_LOCATIONS || !PARADIGMS.contains(&group.paradigm) {
            continue;
        }
        let rank = |location: &u64| {
            rank(*location).ok_or_else(|| {
                format!("location {location} of group {id} does not belong to exactly one process")
            })
        };
        let all = group.members.iter().map(rank).collect::<Result<Arc<[u32]>, _>>()?;
        ranks.entry(group.paradigm).or_insert(all);
    }
    Ok(ranks)
}

/// The groups of processes. EZTrace gives groups of different types the same id, so type and id identify a
/// group.
struct Groups<'a> {
    definitions: &'a Definitions,
    /// See [`ranks`].
    ranks: BTreeMap<u8, Arc<[u32]>>,
    members: BTreeMap<u32, Arc<Members>>,
}

impl<'a> Groups<'a> {
    fn find(&self, kind: u8, id: u32) -> Option<&'a Group> {
        self.definitions.groups.get(&(kind, id)).filter(|group| self.ranks.contains_key(&group.paradigm))
    }

    /// The members of the group of a communicator; `None` if they are not processes.
    fn members(&mut self, communicator: u32, id: u32, lookup: bool) -> Result<Option<Arc<Members>>, String> {
        let Some(group) = self.find(OTF2_GROUP_TYPE_COMM_GROUP, id) else {
            return Ok(None);
        };
        let global = group.flags & OTF2_GROUP_FLAG_GLOBAL_MEMBERS != 0;
        let sorted_if_needed = |members: &Members| !lookup || members.sorted.len() == members.ranks.len();
        if let Some(members) = self.members.get(&id).filter(|members| sorted_if_needed(members)) {
            return Ok(Some(Arc::clone(members)));
        }
        let Some(indexed) = self.ranks.get(&group.paradigm).map(Arc::clone) else { return Ok(None) };
        let rank = |member: &u64| {
            let rank = usize::try_from(*member).ok().and_then(|member| indexed.get(member).copied());
            rank.ok_or_else(|| {
                let processes = indexed.len();
                format!("communicator {communicator} has process {member} as a member, but there are {processes} processes")
            })
        };
        let ranks = group.members.iter().map(rank).collect::<Result<Vec<_>, _>>()?;
        let mut sorted = if global || lookup { ranks.clone() } else { Vec::new() };
        sorted.sort_unstable();
        let members = Arc::new(Members { ranks, sorted, indexed: global.then_some(indexed) });
        self.members.insert(id, Arc::clone(&members));
        Ok(Some(members))
    }
}

#[cfg(test)]
mod tests {
    use super::super::record_schema::{OTF2_PARADIGM_MPI, OTF2_PARADIGM_SHMEM};

    use super::*;

    fn rank(location: u64) -> Option<u32> {
        Some(u32::try_from(location.checked_sub(10)?).unwrap())
    }

    fn group(members: &[u64], flags: u32) -> Group {
        Group { paradigm: OTF2_PARADIGM_MPI, flags, members: members.to_vec() }
    }

    /// Communicators 0: all six reversed; 1: self; 2: ranks 1, 3, 5 with global members; 3: between 0, 2, 4
    /// and 5, 3, 1; 4: without a group; 5: of threads.
    fn definitions() -> Definitions {
        let groups = [
            ((OTF2_GROUP_TYPE_COMM_LOCATIONS, 0), group(&[10, 11, 12, 13, 14, 15], 0)),
            ((OTF2_GROUP_TYPE_COMM_GROUP, 0), group(&[5, 4, 3, 2, 1, 0], 0)),
            ((OTF2_GROUP_TYPE_COMM_SELF, 1), group(&[], 0)),
            ((OTF2_GROUP_TYPE_COMM_GROUP, 2), group(&[1, 3, 5], OTF2_GROUP_FLAG_GLOBAL_MEMBERS)),
            ((OTF2_GROUP_TYPE_COMM_GROUP, 3), group(&[0, 2, 4], 0)),
            ((OTF2_GROUP_TYPE_COMM_GROUP, 4), group(&[5, 3, 1], 0)),
            ((OTF2_GROUP_TYPE_COMM_GROUP, 5), Group { paradigm: 7, ..group(&[0, 1], 0) }),
        ];
        Definitions {
            communicators: [(0, 0), (1, 1), (2, 2), (4, 9), (5, 5)].into(),
            inter_communicators: [(3, (3, 4))].into(),
            groups: groups.into(),
            ..Definitions::default()
        }
    }

    fn receiver(communicator: u32, sender: u32, receiver: u32) -> Result<u32, NoReceiver> {
        Communicators::new(&definitions(), rank).unwrap().receiver(communicator, sender, receiver)
    }

    #[test]
    fn ranks_count_within_the_group() {
        assert_eq!([0, 1, 5].map(|rank| receiver(0, 2, rank).unwrap()), [5, 4, 0]);
        assert_eq!(receiver(0, 2, 6), Err(NoReceiver::Outside { communicator: 0, receiver: 6, size: 6 }));
    }

    #[test]
    fn alone_means_itself() {
        assert_eq!(receiver(1, 4, 0), Ok(4));
        assert_eq!(receiver(1, 4, 1), Err(NoReceiver::Outside { communicator: 1, receiver: 1, size: 1 }));
    }

    #[test]
    fn global_members_need_no_translation() {
        assert_eq!([1, 3, 5].map(|rank| receiver(2, 1, rank).unwrap()), [1, 3, 5]);
        assert_eq!(receiver(2, 1, 2), Err(NoReceiver::Outside { communicator: 2, receiver: 2, size: 3 }));
    }

    #[test]
    fn between_two_groups_the_peer_is_in_the_other() {
        assert_eq!([0, 1, 2].map(|rank| receiver(3, 2, rank).unwrap()), [5, 3, 1]);
        assert_eq!([0, 1, 2].map(|rank| receiver(3, 3, rank).unwrap()), [0, 2, 4]);
        let definitions = Definitions { inter_communicators: [(3, (3, 3))].into(), ..definitions() };
        let communicators = Communicators::new(&definitions, rank).unwrap();
        assert_eq!(communicators.receiver(3, 2, 0), Err(NoReceiver::NotASide { communicator: 3, sender: 2 }));
        assert_eq!(communicators.receiver(3, 1, 0), Err(NoReceiver::NotASide { communicator: 3, sender: 1 }));
    }

    #[test]
    fn communicators_without_a_group_of_processes_are_undefined() {
        for id in [4, 5, 6] {
            assert_eq!(receiver(id, 0, 0), Err(NoReceiver::Undefined { communicator: id }));
        }
    }

    #[test]
    fn members_that_are_not_processes_are_rejected() {
        let mut definitions = definitions();
        definitions.groups.insert((OTF2_GROUP_TYPE_COMM_LOCATIONS, 0), group(&[10, 11, 12, 13, 14], 0));
        let error = Communicators::new(&definitions, rank).unwrap_err();
        assert_eq!(error, "communicator 0 has process 5 as a member, but there are 5 processes");
        let error = Communicators::new(&definitions, |_| None).unwrap_err();
        assert_eq!(error, "location 10 of group 0 does not belong to exactly one process");
    }

    #[test]
    fn windows_have_a_communicator_and_other_paradigms_have_their_own_ranks() {
        let shmem = |members: &[u64]| Group { paradigm: OTF2_PARADIGM_SHMEM, ..group(members, 0) };
        let mut definitions = definitions();
        definitions.groups.insert((OTF2_GROUP_TYPE_COMM_LOCATIONS, 7), shmem(&[13, 11]));
        definitions.groups.insert((OTF2_GROUP_TYPE_COMM_GROUP, 8), shmem(&[0, 1]));
        definitions.communicators.insert(6, 8);
        definitions.windows = [(0, 6), (1, 5)].into();
        let communicators = Communicators::new(&definitions, rank).unwrap();
        assert_eq!(communicators.of_window(0), Ok(Some(6)));
        assert_eq!(communicators.of_window(1), Ok(None));
        assert_eq!(communicators.of_window(2), Err(NoReceiver::NoWindow { window: 2 }));
        assert_eq!(communicators.members(Through::Window(0)), Some(&[3, 1][..]));
        assert_eq!(communicators.receiver(6, 3, 1), Ok(1));
        assert_eq!(communicators.members(Through::Communicator(3)), None);
    }

    #[test]
    fn a_group_shared_by_both_kinds_of_communicators_is_looked_up_in() {
        let definitions = Definitions { communicators: [(0, 3)].into(), ..definitions() };
        let communicators = Communicators::new(&definitions, rank).unwrap();
        assert_eq!(communicators.receiver(0, 1, 1), Ok(2));
        assert_eq!(communicators.receiver(3, 2, 1), Ok(3));
    }

    #[test]
    fn proc_null_has_two_numbers() {
        assert!(is_proc_null(4_294_967_294) && is_proc_null(4_294_967_295) && !is_proc_null(4_294_967_293));
    }
}
