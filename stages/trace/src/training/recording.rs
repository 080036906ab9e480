//! A job as recordings, from which task graphs are made as from those of MPI programs.

use std::collections::BTreeMap;

use hopmap_recording::{Calls, CollectiveKind, Kind, Method, Process, Recording, Traffic};

use super::job::{Checked, Rank, What};

/// Equal calls and messages, added up.
#[derive(Debug, Default)]
struct Sums {
    /// Number of calls by communicator, operation, root, rank, and bytes of a call.
    calls: BTreeMap<(u32, CollectiveKind, Option<u32>, u32, u64), u64>,
    /// Messages and bytes by source, destination, and length class.
    traffic: BTreeMap<(u32, u32, u32), (u64, u64)>,
}

impl Sums {
    fn add(&mut self, rank: u32, call: &What, communicators: &[u32]) {
        match *call {
            What::Collective { group, operation, root, sent } => {
                let Some(kind) = CollectiveKind::of_name(operation.name()) else { return };
                *self.calls.entry((communicators[group as usize], kind, root, rank, sent)).or_default() += 1;
            }
            What::Send { peer, bytes, .. } => {
                let length = bytes.checked_ilog2().map_or(0, |log| log + 1);
                let sum = self.traffic.entry((rank, peer, length)).or_default();
                *sum = (sum.0 + 1, sum.1.saturating_add(bytes));
            }
            What::Receive { .. } => {}
        }
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
    pub(crate) fn recordings(&self) -> (Recording, BTreeMap<&str, Recording>) {
        let mut members: Vec<&Vec<u32>> = self.groups.iter().collect();
        members.sort_unstable();
        members.dedup();
        let number = |group: &Vec<u32>| members.binary_search(&group).unwrap_or_default() as u32;
        let communicators: Vec<u32> = self.groups.iter().map(number).collect();
        let mut by_kind: BTreeMap<&str, Sums> = BTreeMap::new();
        for (rank, Rank { calls, .. }) in (0..).zip(&self.ranks) {
            for call in calls {
                by_kind.entry(self.kind(call)).or_default().add(rank, call, &communicators);
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
        let traffic = traffic.into_iter().map(|((source, destination, length), (messages, bytes))| Traffic {
            source,
            destination,
            kind: Kind::PointToPoint,
            log2_bytes: Some(length),
            messages,
            bytes,
        });
        let times = |rank: &Rank| Some((rank.duration_s?, (rank.duration_s? - rank.computing_s()).max(0.0)));
        Recording {
            method: Method::Preload,
            processes: self
                .ranks
                .iter()
                .map(|rank| Process { host: rank.host.clone(), cores: Vec::new(), times: times(rank) })
                .collect(),
            traffic: traffic.collect(),
            histogram: Vec::new(),
            communicators: communicators.iter().map(|members| (*members).clone()).collect(),
            calls: calls.collect(),
            incomplete: self.incomplete.clone(),
        }
    }
}
