//! Collective operations, brought together from what their processes recorded.

use std::collections::BTreeMap;

use super::{At, Begun, Join, Joint, Link, Moment, Unmatched, What};
use crate::collectives::Operation;

/// A collective operation of a process.
#[derive(Debug, Clone, Copy)]
struct Part {
    /// The moment at which it began.
    begun: u32,
    complete: u32,
    joint: Joint,
}

/// The bytes that a process gives to a join and gets from it. What comes out of an exchange has gone in already.
fn bytes(joint: Joint) -> (u64, u64) {
    use Operation::{AllGather, AllGatherV, AllReduce, Barrier, ExclusiveScan, Scan};
    match joint.operation {
        Barrier => (0, 0),
        AllReduce | AllGather | AllGatherV | Scan | ExclusiveScan => (joint.sent, joint.received),
        _ => (joint.sent, 0),
    }
}

/// Joins of the operations in which everybody waits for everybody. Those with a root become links.
///
/// The first that each process of a group recorded belong together, then the second, and so on.
pub(super) fn joins(
    ranks: &[Vec<Moment>],
    groups: &[Vec<u32>],
    links: &mut Vec<Link>,
    unmatched: &mut Unmatched,
) -> Vec<Join> {
    let mut parts: BTreeMap<u32, BTreeMap<u32, Vec<Part>>> = BTreeMap::new();
    for (rank, moments) in (0..).zip(ranks) {
        add(rank, moments, &mut parts);
    }
    let mut joins = Vec::new();
    for (group, by_rank) in parts {
        let members = &groups[group as usize];
        let lists: Vec<&[Part]> =
            members.iter().map(|rank| by_rank.get(rank).map_or(&[][..], Vec::as_slice)).collect();
        let most = by_rank.values().map(Vec::len).max().unwrap_or(0);
        for place in 0..most {
            let all: Option<Vec<Part>> = lists.iter().map(|list| list.get(place).copied()).collect();
            match all.filter(|all| is_one(all)) {
                Some(all) => connect(members, &all, links, &mut joins),
                None => unmatched.joints += 1,
            }
        }
    }
    joins
}

/// Whether all processes tell of the same operation.
fn is_one(all: &[Part]) -> bool {
    let Some(first) = all.first() else { return false };
    let same = |part: &Part| {
        part.joint.operation == first.joint.operation
            && (!first.joint.operation.has_root() || part.joint.root == first.joint.root)
    };
    all.iter().all(same) && (!first.joint.operation.has_root() || (first.joint.root as usize) < all.len())
}

fn connect(members: &[u32], all: &[Part], links: &mut Vec<Link>, joins: &mut Vec<Join>) {
    let first = all[0].joint;
    let parts = || members.iter().zip(all);
    let begun = |(rank, part): (&u32, &Part)| At { rank: *rank, moment: part.begun };
    let complete = |(rank, part): (&u32, &Part)| At { rank: *rank, moment: part.complete };
    if all.len() == 1 {
        return;
    }
    if !first.operation.has_root() {
        let before = parts().map(|part| (begun(part), bytes(part.1.joint).0)).collect();
        let after = parts().map(|part| (complete(part), bytes(part.1.joint).1)).collect();
        return joins.push(Join { rank: members[0], before, after });
    }
    let root = first.root as usize;
    let at_root = (&members[root], &all[root]);
    let from_root =
        matches!(first.operation, Operation::Broadcast | Operation::Scatter | Operation::ScatterV);
    let others = parts().enumerate().filter(|(place, _)| *place != root).map(|(_, part)| part);
    links.extend(others.map(|part| match from_root {
        true => Link { before: begun(at_root), after: complete(part), bytes: part.1.joint.received },
        false => Link { before: begun(part), after: complete(at_root), bytes: part.1.joint.sent },
    }));
}

/// Adds the operations of a rank to those of its groups, in the order in which they began.
fn add(rank: u32, moments: &[Moment], parts: &mut BTreeMap<u32, BTreeMap<u32, Vec<Part>>>) {
    let mut begun = Begun::new();
    let mut own: BTreeMap<u32, Vec<Part>> = BTreeMap::new();
    for (moment, what) in (0..).zip(moments.iter().map(|moment| moment.what)) {
        match what {
            What::Begin { request } => drop(begun.insert(request, moment)),
            What::Complete { joint, request } => {
                let begun = request.and_then(|request| begun.remove(&request)).unwrap_or(moment);
                own.entry(joint.group).or_default().push(Part { begun, complete: moment, joint });
            }
            _ => {}
        }
    }
    for (group, mut list) in own {
        list.sort_by_key(|part| part.begun);
        parts.entry(group).or_default().insert(rank, list);
    }
}
