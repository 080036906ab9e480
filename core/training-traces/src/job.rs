//! The calls of all ranks of a job, checked against each other.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use hopmap_collectives::Call as Blocks;
use hopmap_model::{CollectiveOperation as Operation, Context, to_u32};

use crate::agreement::{Doubts, Groups};
use crate::calls::{Rank, What};
use crate::error::{MAX_RANKS, TrainingError, damaged, lacking};
use crate::kinds::{MOST_KINDS, POINT_TO_POINT, shape};

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
    /// Numbers of the first operations of the groups, if the trace has numbers.
    first: Vec<u64>,
    /// Operations with numbers that some members of their group do not have.
    pub(crate) dropped: u64,
    /// The fewest operations of groups of which no trace has any.
    pub(crate) unseen: u64,
    /// Sends and receives that their ranks made, but did not keep.
    pub(crate) lost_messages: u64,
}

impl Job {
    /// The number of a group. Groups of a kind with the same members are one.
    pub(crate) fn group(
        &mut self,
        members: Vec<u32>,
        kind: Option<String>,
        path: &Path,
    ) -> Result<u32, TrainingError> {
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
        let number = to_u32(self.groups.len());
        self.numbers.insert(key, number);
        self.groups.push(members);
        self.kinds.push(kind);
        Ok(number)
    }

    /// The index of a kind.
    pub(crate) fn kind(&mut self, name: Option<String>) -> Option<u32> {
        let name = name?;
        let known = self.names.iter().position(|known| *known == name);
        Some(to_u32(known.unwrap_or_else(|| {
            self.names.push(name);
            self.names.len() - 1
        })))
    }

    /// Adds what a rank does.
    pub(crate) fn add(&mut self, number: u32, rank: Rank, path: &Path) -> Result<(), TrainingError> {
        match self.ranks.insert(number, rank) {
            None => Ok(()),
            Some(_) => Err(lacking(path, format!("is a second trace of rank {number}"))),
        }
    }

    /// The ranks in order, of which there are as many as `size` says or groups and messages mention, after
    /// checking that every one has a trace and that members of a group agree.
    pub(crate) fn checked(mut self, size: Option<u32>, path: &Path) -> Result<Checked, TrainingError> {
        let peers = self.ranks.values().flat_map(|rank| &rank.calls).filter_map(|call| match *call {
            What::Send { peer, .. } | What::Receive { peer, .. } => Some(peer),
            What::Collective { .. } => None,
        });
        let mentioned = self.groups.iter().flatten().copied().chain(self.ranks.keys().copied()).chain(peers);
        let last = mentioned.max().ok_or_else(|| lacking(path, "has no trace of any rank"))?;
        let size = size.unwrap_or(0).max(last.saturating_add(1));
        let missing: Vec<u32> = (0..size).filter(|rank| !self.ranks.contains_key(rank)).take(1000).collect();
        if let Some(first) = missing.first() {
            let others = size as usize - self.ranks.len() - 1;
            let others = if others > 0 { format!(" and {others} others") } else { String::new() };
            return Err(lacking(path, format!("has no trace of rank {first}{others}, of {size} ranks")));
        }
        // A description for every group says nothing about its kind.
        let is_described = self.names.len() <= MOST_KINDS;
        let mut kinds = Vec::with_capacity(self.groups.len());
        for (group, kind) in self.kinds.clone().into_iter().enumerate() {
            let kind = kind.filter(|_| is_described);
            let shape = || shape(&self.groups[group], size as usize);
            let named = kind.is_none().then(shape);
            kinds.push(kind.or_else(|| self.kind(named)).unwrap_or_default());
        }
        let Self { ranks, groups, names, first, dropped, unseen, lost_messages, .. } = self;
        let mut ranks: Vec<Rank> = ranks.into_values().collect();
        let kinds_of_groups = kinds.iter().map(|kind| names[*kind as usize].as_str()).collect();
        let agreed =
            Groups { members: &groups, names: kinds_of_groups, first: &first, dropped, unseen, path };
        let mut doubts = agreed.agree(&mut ranks)?;
        if lost_messages > 0 {
            let reason =
                format!("at least {lost_messages} sends and receives are not in the traces of their ranks");
            doubts.incomplete.push(reason);
        }
        Ok(Checked { ranks, groups, kinds, names, doubts })
    }

    /// Adds calls with their numbers in groups: of collective operations those that all members of the group still have.
    /// Tools that keep the last operations only do not keep the same ones on all ranks. In groups whose
    /// last number is `stated`, or zero, operations count from one, and some may be on no rank.
    pub(crate) fn add_common(
        &mut self,
        kept: BTreeMap<u32, Numbered>,
        stated: &BTreeMap<u32, u64>,
        path: &Path,
    ) -> Result<(), TrainingError> {
        let number_of = |(group, number, call): &(u32, u64, What)| {
            matches!(call, What::Collective { .. }).then_some((*group, *number))
        };
        // How many members of its group have an operation.
        let mut owners: BTreeMap<(u32, u64), usize> = BTreeMap::new();
        for (rank, (calls, _)) in &kept {
            let own: BTreeSet<(u32, u64)> = calls.iter().filter_map(number_of).collect();
            let of_member = own.into_iter().filter(|(group, _)| self.groups[*group as usize].contains(rank));
            of_member.for_each(|operation| *owners.entry(operation).or_default() += 1);
        }
        let all = owners.len();
        owners.retain(|(group, _), owners| *owners == self.groups[*group as usize].len());
        let calls = kept.values().flat_map(|(calls, _)| calls).filter(|(_, number, _)| *number > 0);
        let numbers: BTreeSet<(u32, u64)> = calls.map(|(group, number, _)| (*group, *number)).collect();
        let lost = stated.iter().map(|(&group, &last)| {
            let known = numbers.range((group, 0)..=(group, u64::MAX));
            let last = known.clone().next_back().map_or(last, |known| last.max(known.1));
            last.saturating_sub(known.count() as u64)
        });
        let lost = lost.fold(0, u64::saturating_add).min(u64::MAX / 2);
        self.dropped = (all - owners.len()) as u64 + lost;
        let mut first = vec![0; self.groups.len()];
        owners.keys().rev().for_each(|(group, number)| first[*group as usize] = *number);
        for (rank, (calls, mut rest)) in kept {
            // An operation of a stranger stays, to be refused.
            let is_kept = |call: &(u32, u64, What)| {
                let is_common = |operation: (u32, u64)| {
                    owners.contains_key(&operation) || !self.groups[operation.0 as usize].contains(&rank)
                };
                number_of(call).is_none_or(is_common)
            };
            rest.calls = calls.into_iter().filter(is_kept).map(|(.., call)| call).collect();
            self.add(rank, rest, path)?;
        }
        self.first = first;
        Ok(())
    }
}

/// The calls of a rank with the group and the number of an operation in it, and the rank without them.
pub(crate) type Numbered = (Vec<(u32, u64, What)>, Rank);

/// A job in which every rank has a trace and all members of a group do the same.
#[derive(Debug, Clone, PartialEq)]
pub struct Checked {
    pub(crate) ranks: Vec<Rank>,
    pub(crate) groups: Vec<Vec<u32>>,
    /// Indices of the kinds of the groups.
    kinds: Vec<u32>,
    /// Names of the kinds.
    names: Vec<String>,
    pub(crate) doubts: Doubts,
}

impl Checked {
    /// The kind of the group of a call.
    pub(crate) fn kind(&self, call: &What) -> &str {
        match *call {
            What::Collective { group, .. } => &self.names[self.kinds[group as usize] as usize],
            What::Send { kind: Some(kind), .. } => &self.names[kind as usize],
            What::Send { .. } | What::Receive { .. } => POINT_TO_POINT,
        }
    }

    /// Time of the rank that took longest, if the trace has times.
    pub fn recorded_s(&self) -> Option<f64> {
        self.ranks.iter().filter_map(|rank| rank.duration_s).reduce(f64::max)
    }

    /// Logs how long the job took, and what it lacks.
    pub fn log(&self, cx: &Context<'_>) {
        if let Some(longest) = self.recorded_s() {
            cx.log(format_args!("the trace lasts {longest:.6} s"));
        }
        for reason in &self.doubts.incomplete {
            cx.log(format_args!("warning: {reason}, and are left out"));
        }
        self.log_uneven(cx);
    }

    /// Logs that ranks contribute different amounts to an operation.
    pub fn log_uneven(&self, cx: &Context<'_>) {
        if let Some(example) = &self.doubts.uneven {
            cx.log(format_args!("warning: {example}; each rank counts with its own"));
        }
    }

    /// The call of a group with the bytes of a block.
    pub(crate) fn blocks(&self, group: u32, operation: Operation, root: Option<u32>, sent: u64) -> Blocks {
        let processes = to_u32(self.groups[group as usize].len());
        let divided =
            [Operation::AllToAll, Operation::AllToAllV, Operation::ReduceScatterBlock, Operation::Scatter]
                .contains(&operation);
        let bytes = if divided { sent.div_ceil(u64::from(processes)) } else { sent };
        Blocks { operation, processes, root, bytes }
    }
}
