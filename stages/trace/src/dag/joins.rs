//! Collective operations, brought together from what their processes recorded.

use std::collections::BTreeMap;

use hopmap_collectives::{Collective, Convention, Operation, exchanged};

use super::{At, Begun, Join, Joint, Link, Moment, Unmatched, What};

/// A collective operation of a process.
#[derive(Debug, Clone, Copy)]
struct Part {
    /// The moment at which it began.
    begun: u32,
    complete: u32,
    joint: Joint,
}

/// Joins of the operations in which everybody waits for everybody. Those with a root become links.
///
/// The first that each process of a group recorded belong together, then the second, and so on.
pub(super) fn joins(
    ranks: &[Vec<Moment>],
    (groups, convention): (&[Vec<u32>], Convention),
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
                Some(all) => connect(members, &all, convention, links, &mut joins),
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

fn connect(
    members: &[u32],
    all: &[Part],
    convention: Convention,
    links: &mut Vec<Link>,
    joins: &mut Vec<Join>,
) {
    if all.len() == 1 {
        return;
    }
    let first = all[0].joint;
    let sent: Vec<u64> = all.iter().map(|part| part.joint.sent).collect();
    let received: Vec<u64> = all.iter().map(|part| part.joint.received).collect();
    let root = Some(first.root);
    let collective =
        Collective { operation: first.operation, root, convention, sent: &sent, received: &received };
    // What each gives to the others and gets from them.
    let (given, got) = exchanged(&collective);
    let places = || 0..all.len();
    let begun = |place: usize| At { rank: members[place], moment: all[place].begun };
    let complete = |place: usize| At { rank: members[place], moment: all[place].complete };
    if !first.operation.has_root() {
        let before = places().map(|place| (begun(place), given[place])).collect();
        let after = places().map(|place| (complete(place), got[place])).collect();
        return joins.push(Join { rank: members[0], before, after });
    }
    let root = first.root as usize;
    let from_root =
        matches!(first.operation, Operation::Broadcast | Operation::Scatter | Operation::ScatterV);
    links.extend(places().filter(|place| *place != root).map(|place| match from_root {
        true => Link { before: begun(root), after: complete(place), bytes: got[place] },
        false => Link { before: begun(place), after: complete(root), bytes: given[place] },
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
