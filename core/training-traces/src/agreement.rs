//! Whether the members of a group agree on their collective operations, and what they pass to each other if they may
//! differ.
//!
//! | operation | sizes differ |
//! |---|---|
//! | all-reduce, reduce, reduce-scatter, broadcast | an error: such an operation has no meaning, so the traces are of different steps |
//! | all-gather, gather | a warning, and every rank contributes its own size: programs pad uneven shards, or gather them one by one |
//! | all-to-all | usual with experts: every rank sends what its split sizes say, or its own total. If only the totals of all ranks are known, both ways, it sends in proportion to what the others receive |
//! | scatter, barrier | nothing: only the root passes something |

use std::collections::BTreeMap;
use std::path::Path;

use hopmap_model::CollectiveOperation as Operation;

use crate::calls::{Rank, Split, What};
use crate::error::{RECORD_ALL, TrainingError, damaged};

/// Members of a group in messages.
const NAMED: usize = 4;

/// The groups of a job.
pub(crate) struct Groups<'a> {
    pub(crate) members: &'a [Vec<u32>],
    /// Their kinds.
    pub(crate) names: Vec<&'a str>,
    /// Numbers of their first operations.
    pub(crate) first: &'a [u64],
    /// Operations that were left out before, as some members lack them.
    pub(crate) dropped: u64,
    /// Lower bound on the operations of groups of which no rank has any.
    pub(crate) unseen: u64,
    pub(crate) path: &'a Path,
}

/// What is not as it should be.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Doubts {
    /// What some ranks lack.
    pub(crate) incomplete: Vec<String>,
    /// Operations with shards of different sizes.
    pub(crate) uneven: Option<String>,
}

/// An operation of a rank: its rank, and the index of its call.
type CallIndex = (u32, u32);

/// Number of messages that were received, but whose sends are in no trace.
fn unsent(ranks: &[Rank]) -> u64 {
    let mut missing: BTreeMap<(u32, u32), i64> = BTreeMap::new();
    for (rank, Rank { calls, .. }) in (0..).zip(ranks) {
        for call in calls {
            match *call {
                What::Send { peer, .. } => *missing.entry((rank, peer)).or_default() -= 1,
                What::Receive { peer, .. } => *missing.entry((peer, rank)).or_default() += 1,
                What::Collective { .. } => {}
            }
        }
    }
    missing.into_values().filter_map(|missing| u64::try_from(missing).ok()).sum()
}

impl Groups<'_> {
    /// Checks that members of a group call the same operations in the same order. Calls that only some members
    /// have, because a trace ends earlier, are left out.
    pub(crate) fn agree(&self, ranks: &mut [Rank]) -> Result<Doubts, TrainingError> {
        let mut sequences: Vec<BTreeMap<u32, Vec<CallIndex>>> = vec![BTreeMap::new(); self.members.len()];
        for (rank, Rank { calls, .. }) in (0..).zip(&*ranks) {
            for (index, call) in (0..).zip(calls) {
                let What::Collective { group, .. } = *call else { continue };
                sequences[group as usize].entry(rank).or_default().push((rank, index));
            }
        }
        let mut doubts = Doubts::default();
        let mut common = vec![0; self.members.len()];
        let left_out = self.dropped + self.unseen;
        let (mut partial, mut all, mut uneven) = (left_out, left_out, 0);
        for (group, members) in self.members.iter().enumerate() {
            let sequences = &sequences[group];
            if let Some(stranger) = sequences.keys().find(|rank| !members.contains(rank)) {
                let problem = format!("has an operation of rank {stranger} in the {}", self.name(group));
                return Err(damaged(self.path, problem));
            }
            let of_rank = |rank: &u32| sequences.get(rank).map_or(&[][..], Vec::as_slice);
            let lengths = members.iter().map(|rank| of_rank(rank).len());
            let (fewest, most) = (lengths.clone().min().unwrap_or(0), lengths.max().unwrap_or(0));
            common[group] = fewest;
            (partial, all) = (partial + (most - fewest) as u64, all + most as u64);
            for index in 0..fewest {
                let places: Vec<CallIndex> = members.iter().map(|rank| of_rank(rank)[index]).collect();
                if let Some(example) = self.meet(ranks, (group, index), &places)? {
                    uneven += 1;
                    doubts.uneven.get_or_insert(example);
                }
            }
        }
        if let Some(example) = &mut doubts.uneven {
            *example = format!("{uneven} collective operations have shards of different sizes: {example}");
        }
        if partial > 0 {
            let least = if self.unseen > 0 { "at least " } else { "" };
            let problem = format!(
                "{least}{partial} of {all} collective operations are not in the traces of all members"
            );
            doubts.incomplete.push(problem);
            ranks.iter_mut().for_each(|rank| rank.keep_first(&common));
        }
        let unsent = unsent(ranks);
        if unsent > 0 {
            let problem = format!("{unsent} messages are only in the traces of their receivers");
            doubts.incomplete.push(problem);
        }
        Ok(doubts)
    }

    /// An operation of all members; describes shards of different sizes.
    fn meet(
        &self,
        ranks: &mut [Rank],
        (group, index): (usize, usize),
        places: &[CallIndex],
    ) -> Result<Option<String>, TrainingError> {
        let of = |ranks: &[Rank], (rank, call): CallIndex| match ranks[rank as usize].calls[call as usize] {
            What::Collective { operation: Operation::AllToAllV, sent, .. } => (Operation::AllToAll, sent),
            What::Collective { operation, sent, .. } => (operation, sent),
            What::Send { .. } | What::Receive { .. } => (Operation::Barrier, 0),
        };
        let first = of(ranks, places[0]);
        let other = |differs: &dyn Fn((Operation, u64)) -> bool| {
            places.iter().find(|place| differs(of(ranks, **place))).map(|place| (place.0, of(ranks, *place)))
        };
        let number = self.first.get(group).copied().unwrap_or(1) + index as u64;
        let (rank, called) = (places[0].0, first.0.name());
        if let Some((one, (operation, _))) = other(&|(operation, _)| operation != first.0) {
            let (name, operation) = (self.name(group), operation.name());
            let problem = format!(
                "contradicts itself: operation {number} of the {name} is `{called}` on rank {rank} and `{operation}` on rank {one}"
            );
            return Err(TrainingError::of(self.path, problem, RECORD_ALL));
        }
        let differing = other(&|(_, sent)| sent != first.1);
        let describe = |(one, (_, sent)): (u32, (Operation, u64))| {
            let (name, bytes) = (self.name(group), first.1);
            format!(
                "operation {number} of the {name}, `{called}`, has {bytes} bytes on rank {rank} and {sent} on rank {one}"
            )
        };
        match (first.0, differing) {
            (Operation::AllToAll, differing) => {
                exchange(ranks, places, differing.is_some());
                Ok(None)
            }
            (Operation::Barrier | Operation::Scatter, _) | (_, None) => Ok(None),
            (Operation::AllGather, Some(differing)) => {
                set(ranks, places, Operation::AllGatherV);
                Ok(Some(describe(differing)))
            }
            (Operation::Gather, Some(differing)) => {
                set(ranks, places, Operation::GatherV);
                Ok(Some(describe(differing)))
            }
            (_, Some(differing)) => {
                let problem = format!("contradicts itself: {}", describe(differing));
                let help =
                    "record the same steps on all ranks: with different sizes this operation has no meaning";
                Err(TrainingError::of(self.path, problem, help))
            }
        }
    }

    /// A group in messages: its kind and its first members.
    fn name(&self, group: usize) -> String {
        let members = &self.members[group];
        let first: Vec<String> = members.iter().take(NAMED).map(u32::to_string).collect();
        let (first, name) = (first.join(", "), self.names[group]);
        match members.len() > NAMED {
            true => format!("`{name}` group of the {} ranks {first}, …", members.len()),
            false => format!("`{name}` group of ranks {first}"),
        }
    }
}

fn set(ranks: &mut [Rank], places: &[CallIndex], to: Operation) {
    for &(rank, call) in places {
        if let What::Collective { operation, .. } = &mut ranks[rank as usize].calls[call as usize] {
            *operation = to;
        }
    }
}

/// An all-to-all: one with sizes if any rank lists sizes or passes another total.
fn exchange(ranks: &mut [Rank], places: &[CallIndex], differs: bool) {
    let totals = places.iter().map(|&(rank, call)| match ranks[rank as usize].calls[call as usize] {
        What::Collective { sent, split, .. } => (sent, split),
        What::Send { .. } | What::Receive { .. } => (0, Split::Even),
    });
    let totals: Vec<(u64, Split)> = totals.collect();
    let received =
        places.iter().zip(&totals).map(|((rank, _), (_, split))| ranks[*rank as usize].received(*split));
    let received: Option<Vec<u64>> = received.collect();
    let is_even = |received: &Vec<u64>| received.iter().all(|bytes| *bytes == received[0]);
    let lists = totals.iter().any(|(_, split)| matches!(split, Split::Listed(_)));
    let received = received.filter(|received| !is_even(received));
    if !differs && !lists && received.is_none() {
        return set(ranks, places, Operation::AllToAll);
    }
    set(ranks, places, Operation::AllToAllV);
    let Some(received) = received else { return };
    for (&(rank, call), (sent, _)) in places.iter().zip(totals) {
        let rank = &mut ranks[rank as usize];
        let listed = rank.list(sent, &received);
        if let What::Collective { split, .. } = &mut rank.calls[call as usize] {
            *split = listed;
        }
    }
}
