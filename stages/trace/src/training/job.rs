//! The calls of all ranks of a job, checked against each other.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use hopmap_collectives::Call as Blocks;
use hopmap_model::{CollectiveOperation as Operation, Context};

use super::error::{RECORD_ALL, damaged};
use super::kinds::{MOST_KINDS, POINT_TO_POINT, shape};
use crate::TraceError;
use crate::matrix::MAX_RANKS;

/// What a rank communicates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    /// A collective operation of a group.
    Collective {
        /// Index of the group.
        group: u32,
        operation: Operation,
        /// Rank of the root in the group; 0 if the trace does not say.
        root: Option<u32>,
        /// Bytes of the buffer that this rank passes: its contribution, or what it has for all.
        sent: u64,
    },
    /// A message to a rank, with the index of the kind of its group if the trace says it.
    Send { peer: u32, tag: u32, bytes: u64, kind: Option<u32> },
    /// A message from a rank.
    Receive { peer: u32, tag: u32, bytes: u64 },
}

/// What happens to a communication, by index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Moment {
    Start(u32),
    /// Something waits for it.
    Needed(u32),
}

/// What a rank does.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Rank {
    /// Its communication, in the order of the starts.
    pub(crate) calls: Vec<What>,
    /// Seconds since the begin of the trace at which communication starts and is needed, in order. Empty if the trace
    /// does not say.
    pub(crate) moments: Vec<(f64, Moment)>,
    /// When it computes: begin and end, sorted and disjoint. Empty if the trace does not say.
    pub(crate) computing: Vec<(f64, f64)>,
    pub(crate) host: Option<String>,
    /// Seconds from its first to its last event, if known.
    pub(crate) duration_s: Option<f64>,
}

/// What all ranks do.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Job {
    /// The ranks whose traces were read.
    ranks: BTreeMap<u32, Rank>,
    /// Members of the groups.
    pub(crate) groups: Vec<Vec<u32>>,
    /// Indices of their kinds, where the trace says them.
    pub(crate) kinds: Vec<Option<u32>>,
    numbers: HashMap<(Vec<u32>, Option<u32>), u32>,
    /// Names of the kinds.
    names: Vec<String>,
    /// Why it is not complete, if it is not.
    incomplete: Option<String>,
}

impl Job {
    /// The number of a group. Groups of a kind with the same members are one.
    pub(crate) fn group(
        &mut self,
        members: Vec<u32>,
        kind: Option<String>,
        path: &Path,
    ) -> Result<u32, TraceError> {
        let key = (members, self.kind(kind));
        if let Some(number) = self.numbers.get(&key) {
            return Ok(*number);
        }
        let (members, kind) = key.clone();
        let mut sorted = members.clone();
        sorted.sort_unstable();
        if sorted.is_empty() {
            return Err(damaged(path, "has a group without members"));
        }
        if let Some([rank, _]) = sorted.array_windows().find(|[one, next]| one == next) {
            return Err(damaged(path, format!("has rank {rank} twice in a group")));
        }
        if let Some(rank) = sorted.last().filter(|rank| **rank >= MAX_RANKS) {
            return Err(damaged(path, format!("has a group with rank {rank}, above {}", MAX_RANKS - 1)));
        }
        let number = self.groups.len() as u32;
        self.numbers.insert(key, number);
        self.groups.push(members);
        self.kinds.push(kind);
        Ok(number)
    }

    /// The index of a kind.
    pub(crate) fn kind(&mut self, name: Option<String>) -> Option<u32> {
        let name = name?;
        let known = self.names.iter().position(|known| *known == name);
        Some(known.unwrap_or_else(|| {
            self.names.push(name);
            self.names.len() - 1
        }) as u32)
    }

    /// Adds what a rank does.
    pub(crate) fn add(&mut self, number: u32, rank: Rank, path: &Path) -> Result<(), TraceError> {
        match self.ranks.insert(number, rank) {
            None => Ok(()),
            Some(_) => Err(damaged(path, format!("is a second trace of rank {number}"))),
        }
    }

    /// The ranks in order, of which there are as many as `size` says or groups and messages mention, after
    /// checking that every one has a trace and that members of a group agree.
    pub(crate) fn checked(mut self, size: Option<u32>, path: &Path) -> Result<Checked, TraceError> {
        let peers = self.ranks.values().flat_map(|rank| &rank.calls).filter_map(|call| match *call {
            What::Send { peer, .. } | What::Receive { peer, .. } => Some(peer),
            What::Collective { .. } => None,
        });
        let mentioned = self.groups.iter().flatten().copied().chain(self.ranks.keys().copied()).chain(peers);
        let last = mentioned.max().ok_or_else(|| damaged(path, "has no trace of any rank"))?;
        let size = size.unwrap_or(0).max(last.saturating_add(1));
        let missing: Vec<u32> = (0..size).filter(|rank| !self.ranks.contains_key(rank)).take(1000).collect();
        if let Some(first) = missing.first() {
            let others = size as usize - self.ranks.len() - 1;
            let others = if others > 0 { format!(" and {others} others") } else { String::new() };
            return Err(damaged(path, format!("has no trace of rank {first}{others}, of {size} ranks")));
        }
        self.check_groups(path)?;
        // A description for every group says nothing about its kind.
        let is_described = self.names.len() <= MOST_KINDS;
        let mut kinds = Vec::with_capacity(self.groups.len());
        for (group, kind) in self.kinds.clone().into_iter().enumerate() {
            let kind = kind.filter(|_| is_described);
            let shape = || shape(&self.groups[group], size as usize);
            let named = kind.is_none().then(shape);
            kinds.push(kind.or_else(|| self.kind(named)).unwrap_or_default());
        }
        let Self { ranks, groups, names, incomplete, .. } = self;
        Ok(Checked { ranks: ranks.into_values().collect(), groups, kinds, names, incomplete })
    }

    /// Checks that members of a group call the same operations in the same order. Calls that only some members
    /// have, because a trace ends earlier, are left out.
    fn check_groups(&mut self, path: &Path) -> Result<(), TraceError> {
        let mut sequences: Vec<BTreeMap<u32, Vec<Operation>>> = vec![BTreeMap::new(); self.groups.len()];
        for (rank, Rank { calls, .. }) in &self.ranks {
            for call in calls {
                let What::Collective { group, operation, .. } = *call else { continue };
                sequences[group as usize].entry(*rank).or_default().push(operation);
            }
        }
        let mut common = vec![0; self.groups.len()];
        let mut partial = 0;
        for ((sequences, members), common) in sequences.iter().zip(&self.groups).zip(&mut common) {
            if let Some(stranger) = sequences.keys().find(|rank| !members.contains(rank)) {
                let problem = format!("has an operation of rank {stranger} in a group of ranks {members:?}");
                return Err(damaged(path, problem));
            }
            let lengths = members.iter().map(|rank| sequences.get(rank).map_or(0, Vec::len));
            let (fewest, most) = (lengths.clone().min().unwrap_or(0), lengths.max().unwrap_or(0));
            (*common, partial) = (fewest, partial + most - fewest);
            let mut all = sequences.iter();
            let Some((first, expected)) = all.next() else { continue };
            for (rank, found) in all {
                if let Some(index) = (0..fewest).find(|index| expected[*index] != found[*index]) {
                    let problem = format!(
                        "contradicts itself: operation {} of a group is `{}` on rank {first} and `{}` on rank {rank}",
                        index + 1,
                        expected[index].name(),
                        found[index].name(),
                    );
                    return Err(TraceError::of(path, problem, RECORD_ALL));
                }
            }
        }
        if partial > 0 {
            self.incomplete =
                Some(format!("{partial} collective operations are not in the traces of all members"));
            self.ranks.values_mut().for_each(|rank| rank.keep_first(&common));
        }
        Ok(())
    }
}

impl Rank {
    /// Keeps the first operations of every group.
    fn keep_first(&mut self, common: &[usize]) {
        let mut counts = vec![0; common.len()];
        let is_kept = |call: &What| {
            let What::Collective { group, .. } = *call else { return true };
            counts[group as usize] += 1;
            counts[group as usize] <= common[group as usize]
        };
        let kept: Vec<bool> = self.calls.iter().map(is_kept).collect();
        let mut left = kept.iter();
        self.calls.retain(|_| left.next() == Some(&true));
        let mut next = 0;
        let place = |kept: &bool| {
            next += u32::from(*kept);
            next - u32::from(*kept)
        };
        let numbers: Vec<u32> = kept.iter().map(place).collect();
        self.moments.retain_mut(|(_, Moment::Start(call) | Moment::Needed(call))| {
            let is_kept = kept[*call as usize];
            *call = numbers[*call as usize];
            is_kept
        });
    }

    /// Seconds of computation.
    pub(super) fn computing_s(&self) -> f64 {
        self.computing.iter().map(|(begin, end)| end - begin).sum()
    }
}

/// Calls of every rank with the group and the number of an operation in it.
pub(super) type Kept = BTreeMap<u32, Vec<(u32, u64, What)>>;

/// The calls of every rank from the first operation of each group that all its members still have: tools that keep
/// the last operations only do not keep the same ones on all ranks.
pub(super) fn common(kept: Kept, groups: usize) -> BTreeMap<u32, Vec<What>> {
    let is_collective = |call: &What| matches!(call, What::Collective { .. });
    let mut first = vec![0; groups];
    for calls in kept.values() {
        let mut own: BTreeMap<u32, u64> = BTreeMap::new();
        for (group, number, _) in calls.iter().filter(|(.., call)| is_collective(call)) {
            let lowest = own.entry(*group).or_insert(*number);
            *lowest = (*lowest).min(*number);
        }
        own.into_iter().for_each(|(group, lowest)| first[group as usize] = lowest.max(first[group as usize]));
    }
    let is_kept =
        |(group, number, call): &(u32, u64, What)| !is_collective(call) || *number >= first[*group as usize];
    let calls = |calls: Vec<_>| calls.into_iter().filter(is_kept).map(|(.., call)| call).collect();
    kept.into_iter().map(|(rank, kept)| (rank, calls(kept))).collect()
}

/// A job in which every rank has a trace and all members of a group do the same.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Checked {
    pub(super) ranks: Vec<Rank>,
    pub(super) groups: Vec<Vec<u32>>,
    /// Indices of the kinds of the groups.
    kinds: Vec<u32>,
    /// Names of the kinds.
    names: Vec<String>,
    pub(super) incomplete: Option<String>,
}

impl Checked {
    /// The kind of the group of a call.
    pub(super) fn kind(&self, call: &What) -> &str {
        match *call {
            What::Collective { group, .. } => &self.names[self.kinds[group as usize] as usize],
            What::Send { kind: Some(kind), .. } => &self.names[kind as usize],
            What::Send { .. } | What::Receive { .. } => POINT_TO_POINT,
        }
    }

    /// Time of the rank that took longest, if the trace has times.
    pub(crate) fn recorded_s(&self) -> Option<f64> {
        self.ranks.iter().filter_map(|rank| rank.duration_s).reduce(f64::max)
    }

    /// Logs how long the job took, and what it lacks.
    pub(crate) fn log(&self, cx: &Context<'_>) {
        if let Some(longest) = self.recorded_s() {
            cx.log(format_args!("the trace lasts {longest:.6} s"));
        }
        if let Some(reason) = &self.incomplete {
            cx.log(format_args!("warning: {reason}, and are left out"));
        }
    }

    /// The call of a group with the bytes of a block.
    pub(super) fn blocks(&self, group: u32, operation: Operation, root: Option<u32>, sent: u64) -> Blocks {
        let processes = self.groups[group as usize].len() as u32;
        let divided =
            [Operation::AllToAll, Operation::AllToAllV, Operation::ReduceScatterBlock, Operation::Scatter]
                .contains(&operation);
        let bytes = if divided { sent.div_ceil(u64::from(processes)) } else { sent };
        Blocks { operation, processes, root, bytes }
    }
}
