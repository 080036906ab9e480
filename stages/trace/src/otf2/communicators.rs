//! From the ranks in events, which count within a communicator, to the ranks of the program.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

use super::definitions::{Definitions, Group};
use otf2_sys::{
    OTF2_GROUP_FLAG_GLOBAL_MEMBERS, OTF2_GROUP_TYPE_COMM_GROUP, OTF2_GROUP_TYPE_COMM_SELF, OTF2_PARADIGM_MPI,
    OTF2_UNDEFINED_UINT32,
};

/// `MPI_PROC_NULL` as Open MPI numbers it. EZTrace writes it as it is; other libraries use -1, which is "undefined".
const OPEN_MPI_PROC_NULL: u32 = -2i32 as u32;

/// Whether nobody receives what is sent to this rank.
pub(super) fn is_nobody(receiver: u32) -> bool {
    matches!(receiver, OTF2_UNDEFINED_UINT32 | OPEN_MPI_PROC_NULL)
}

/// The members of a group.
#[derive(Debug, PartialEq, Eq)]
struct Members {
    /// Rank of the program of every member.
    ranks: Vec<u32>,
    /// The same in rising order, for those groups in which somebody is looked up.
    sorted: Vec<u32>,
    /// Events give ranks of the program already.
    global: bool,
}

impl Members {
    fn holds(&self, rank: u32) -> bool {
        self.sorted.binary_search(&rank).is_ok()
    }

    /// The rank of the program that events mean by `receiver`.
    fn rank(&self, receiver: u32) -> Option<u32> {
        if self.global {
            return Some(receiver).filter(|receiver| self.holds(*receiver));
        }
        self.ranks.get(receiver as usize).copied()
    }
}

/// Who a process can send to.
#[derive(Debug)]
enum Communicator {
    /// Itself.
    Alone,
    /// The members of its group.
    Group(Arc<Members>),
    /// The members of the group it is not in.
    Between(Arc<Members>, Arc<Members>),
}

/// Why a receiver cannot be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoReceiver {
    /// The communicator is not defined.
    Undefined { communicator: u32 },
    /// The communicator has no such member.
    Outside { communicator: u32, receiver: u32, size: usize },
    /// The sender is in none of the two groups of the communicator, or in both.
    NotASide { communicator: u32, sender: u32 },
}

impl fmt::Display for NoReceiver {
    fn fmt(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Undefined { communicator } => {
                write!(
                    text,
                    "it sends through communicator {communicator}, which is not a communicator of MPI processes"
                )
            }
            Self::Outside { communicator, receiver, size } => write!(
                text,
                "it sends to rank {receiver} of communicator {communicator}, which has {size} members"
            ),
            Self::NotASide { communicator, sender } => write!(
                text,
                "rank {sender} sends through communicator {communicator}, but is not in exactly one of its two groups"
            ),
        }
    }
}

/// All communicators of MPI processes.
#[derive(Debug, Default)]
pub(super) struct Communicators {
    by_id: HashMap<u32, Communicator>,
}

impl Communicators {
    /// Resolves the communicators of a program of `processes` ranks, once all definitions are there: EZTrace
    /// defines some communicators before their groups.
    pub(super) fn new(definitions: &Definitions, processes: usize) -> Result<Self, String> {
        let mut groups = Groups { definitions, processes, members: BTreeMap::new() };
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
        Ok(communicators)
    }

    /// Rank of the program that receives what rank `sender` sends to `receiver`.
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

/// The groups of MPI processes. EZTrace gives groups of different types one id, so a group is known by both.
struct Groups<'a> {
    definitions: &'a Definitions,
    processes: usize,
    members: BTreeMap<u32, Arc<Members>>,
}

impl<'a> Groups<'a> {
    fn find(&self, kind: u8, id: u32) -> Option<&'a Group> {
        self.definitions.groups.get(&(kind, id)).filter(|group| group.paradigm == OTF2_PARADIGM_MPI)
    }

    /// The members of the group of a communicator; `None` if it is not one of MPI processes.
    fn members(&mut self, communicator: u32, id: u32, lookup: bool) -> Result<Option<Arc<Members>>, String> {
        let Some(group) = self.find(OTF2_GROUP_TYPE_COMM_GROUP, id) else {
            return Ok(None);
        };
        let global = group.flags & OTF2_GROUP_FLAG_GLOBAL_MEMBERS != 0;
        let sorted_if_needed = |members: &Members| !lookup || members.sorted.len() == members.ranks.len();
        if let Some(members) = self.members.get(&id).filter(|members| sorted_if_needed(members)) {
            return Ok(Some(Arc::clone(members)));
        }
        let rank = |member: &u64| {
            let rank = u32::try_from(*member).ok().filter(|rank| (*rank as usize) < self.processes);
            rank.ok_or_else(|| {
                let processes = self.processes;
                format!("communicator {communicator} has process {member} as a member, but there are {processes} processes")
            })
        };
        let ranks = group.members.iter().map(rank).collect::<Result<Vec<_>, _>>()?;
        let mut sorted = if global || lookup { ranks.clone() } else { Vec::new() };
        sorted.sort_unstable();
        let members = Arc::new(Members { ranks, sorted, global });
        self.members.insert(id, Arc::clone(&members));
        Ok(Some(members))
    }
}

#[cfg(test)]
mod tests {
    use otf2_sys::OTF2_GROUP_TYPE_COMM_LOCATIONS;

    use super::*;

    fn group(members: &[u64], flags: u32) -> Group {
        Group { paradigm: OTF2_PARADIGM_MPI, flags, members: members.to_vec() }
    }

    /// Communicators 0: all six backwards, 1: alone, 2: ranks 1, 3, 5 with global members, 3: between 0, 2, 4 and
    /// 5, 3, 1, 4: no group, 5: of threads.
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
        Communicators::new(&definitions(), 6).unwrap().receiver(communicator, sender, receiver)
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
        let communicators = Communicators::new(&definitions, 6).unwrap();
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
    fn members_that_are_no_process_are_refused() {
        let error = Communicators::new(&definitions(), 5).unwrap_err();
        assert_eq!(error, "communicator 0 has process 5 as a member, but there are 5 processes");
    }

    #[test]
    fn a_group_shared_by_both_kinds_of_communicators_is_looked_up_in() {
        let definitions = Definitions { communicators: [(0, 3)].into(), ..definitions() };
        let communicators = Communicators::new(&definitions, 6).unwrap();
        assert_eq!(communicators.receiver(0, 1, 1), Ok(2));
        assert_eq!(communicators.receiver(3, 2, 1), Ok(3));
    }

    #[test]
    fn nobody_is_two_numbers() {
        assert!(is_nobody(4_294_967_294) && is_nobody(4_294_967_295) && !is_nobody(4_294_967_293));
    }
}
