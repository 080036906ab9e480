//! A job as recordings, from which task graphs are made as from those of MPI programs.

use hopmap_model::to_u32;
use std::collections::BTreeMap;

use hopmap_model::CollectiveOperation as Operation;
use hopmap_recording::{Calls, CollectiveKind, Kind, Method, Process, Recording, Traffic};

use crate::calls::{Rank, What};
use crate::job::Checked;

/// Equal calls and messages, added up.
#[derive(Debug, Default)]
struct Sums {
    /// Number of calls by communicator, operation, root, rank, and bytes of a call.
    calls: BTreeMap<(u32, CollectiveKind, Option<u32>, u32, u64), u64>,
    /// Messages and bytes by source, destination, kind, and length class.
    traffic: BTreeMap<(u32, u32, Kind, u32), (u64, u64)>,
}

impl Sums {
    fn add(&mut self, (number, rank): (u32, &Rank), call: &What, (group, communicator): (&[u32], u32)) {
        match *call {
            What::Collective { operation, root, sent, split, .. } => {
                let Some(kind) = CollectiveKind::of_name(operation.name()) else { return };
                *self.calls.entry((communicator, kind, root, number, sent)).or_default() += 1;
                if operation == Operation::AllToAllV {
                    let shares = rank.shares(sent, split, group.len());
                    let others =
                        group.iter().zip(shares).filter(|(peer, bytes)| **peer != number && *bytes > 0);
                    others.for_each(|(peer, bytes)| self.send((number, *peer, Kind::Collective), bytes));
                }
            }
            What::Send { peer, bytes, .. } => self.send((number, peer, Kind::PointToPoint), bytes),
            What::Receive { .. } => {}
        }
    }

    fn send(&mut self, (source, destination, kind): (u32, u32, Kind), bytes: u64) {
        let length = bytes.checked_ilog2().map_or(0, |log| log + 1);
        let sum = self.traffic.entry((source, destination, kind, length)).or_default();
        *sum = (sum.0 + 1, sum.1.saturating_add(bytes));
    }

    fn merge(&mut self, other: &Self) {
        for (key, calls) in &other.calls {
            *self.calls.entry(*key).or_default() += calls;
        }
        for (key, (messages, bytes)) in &other.traffic {
            let sum = self.traffic.entry(*key).or_default();
            *sum = (sum.0 + messages, sum.1.saturating_add(*bytes));
        }
    }
}

impl Checked {
    /// The recording of all communication, and those of every kind of group, by its name.
    #[must_use]
    pub fn recordings(&self) -> (Recording, BTreeMap<&str, Recording>) {
        let mut members: Vec<&Vec<u32>> = self.groups.iter().collect();
        members.sort_unstable();
        members.dedup();
        let number = |group: &Vec<u32>| to_u32(members.binary_search(&group).unwrap_or_default());
        let communicators: Vec<u32> = self.groups.iter().map(number).collect();
        let mut by_kind: BTreeMap<&str, Sums> = BTreeMap::new();
        for (number, rank) in (0..).zip(&self.ranks) {
            for call in &rank.calls {
                let group = match *call {
                    What::Collective { group, .. } => {
                        (self.groups[group as usize].as_slice(), communicators[group as usize])
                    }
                    _ => (&[][..], 0),
                };
                by_kind.entry(self.kind(call)).or_default().add((number, rank), call, group);
            }
        }
        let mut all = Sums::default();
        by_kind.values().for_each(|sums| all.merge(sums));
        let recording = |sums| self.recording(sums, &members);
        (recording(all), by_kind.into_iter().map(|(kind, sums)| (kind, recording(sums))).collect())
    }

    fn recording(&self, Sums { calls, traffic }: Sums, communicators: &[&Vec<u32>]) -> Recording {
        let calls = calls.into_iter().map(|((communicator, kind, root, rank, sent), calls)| Calls {
            communicator,
            kind,
            root,
            rank,
            bytes: sent.saturating_mul(calls),
            calls,
        });
        let traffic = traffic.into_iter().map(|((source, destination, kind, length), (messages, bytes))| {
            Traffic { source, destination, kind, log2_bytes: Some(length), messages, bytes }
        });
        let times = |rank: &Rank| Some((rank.duration_s?, (rank.duration_s? - rank.computing_s()).max(0.0)));
        Recording {
            method: Method::Preload,
            processes: self
                .ranks
                .iter()
                .map(|rank| Process { host: rank.host.clone(), times: times(rank), ..Process::default() })
                .collect(),
            traffic: traffic.collect(),
            histogram: Vec::new(),
            communicators: communicators.iter().map(|members| (*members).clone()).collect(),
            calls: calls.collect(),
            // `traffic` has the messages of all-to-alls with sizes.
            counted: CollectiveKind::of_name(Operation::AllToAllV.name()).into_iter().collect(),
            incomplete: Some(self.doubts.incomplete.join("; ")).filter(|reasons| !reasons.is_empty()),
            foreign: None,
        }
    }
}
