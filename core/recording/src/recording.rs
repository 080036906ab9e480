//! The content of a recording.

use std::collections::{HashMap, HashSet};

use hopmap_text::Foreign;
use rayon::prelude::*;

use crate::collective::CollectiveKind;
use crate::description::Method;
use crate::rank::{Kind, Operation, Pair};

/// The merged files of all ranks.
#[derive(Debug, Clone, PartialEq)]
pub struct Recording {
    /// How the program was recorded.
    pub method: Method,
    /// The ranks in order.
    pub processes: Vec<Process>,
    /// Traffic by source, destination, kind and length, sorted and unique.
    pub traffic: Vec<Traffic>,
    /// Messages by source, destination and length, where `traffic` has no lengths; sorted and unique.
    pub histogram: Vec<(u32, u32, u32, u64)>,
    /// Members of the communicators of all operations, sorted and unique.
    pub communicators: Vec<Vec<u32>>,
    /// Collective operations, sorted by communicator, operation, root, rank and bytes.
    pub calls: Vec<Calls>,
    /// Operations whose messages are in `traffic`, as they were really sent: their calls are not expanded.
    pub counted: Vec<CollectiveKind>,
    /// Why it is not complete, if it is not.
    pub incomplete: Option<String>,
    /// Lines of other programs that were skipped.
    pub foreign: Option<Foreign>,
}

/// A rank.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Process {
    /// Its host, if known.
    pub host: Option<String>,
    /// Its cores; empty if unknown.
    pub cores: Vec<u32>,
    /// Seconds between `MPI_Init` and `MPI_Finalize`, and of these inside MPI, if recorded.
    pub times: Option<(f64, f64)>,
    /// Command line of its program, or the begin of it, if known.
    pub program: Option<String>,
}

/// Traffic from one rank to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Traffic {
    /// The rank whose bytes they are.
    pub source: u32,
    /// The rank that gets them.
    pub destination: u32,
    /// Kind of the traffic.
    pub kind: Kind,
    /// 0 for messages without bytes, else 1 + ⌊log₂ bytes⌋; `None` if not recorded.
    pub log2_bytes: Option<u32>,
    /// Number of messages.
    pub messages: u64,
    /// Bytes of all messages.
    pub bytes: u64,
}

impl Traffic {
    fn key(&self) -> (u32, u32, Kind, Option<u32>) {
        (self.source, self.destination, self.kind, self.log2_bytes)
    }

    pub(crate) fn of(rank: u32, pair: &Pair) -> Self {
        let Pair { partner, kind, log2_bytes, messages, bytes } = *pair;
        let (source, destination) = if kind == Kind::Get { (partner, rank) } else { (rank, partner) };
        Self { source, destination, kind, log2_bytes: Some(log2_bytes), messages, bytes }
    }
}

/// Calls of a collective operation by one rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Calls {
    /// Index of the communicator.
    pub communicator: u32,
    /// The operation.
    pub kind: CollectiveKind,
    /// Rank of the root in the communicator, if the operation has one.
    pub root: Option<u32>,
    /// World rank of the caller.
    pub rank: u32,
    /// Bytes that it sent in all calls.
    pub bytes: u64,
    /// Number of calls.
    pub calls: u64,
}

impl Recording {
    /// Adds reasons why the recording is not complete, before the others.
    pub(crate) fn with_reasons(self, mut reasons: Vec<String>) -> Self {
        reasons.extend(self.incomplete);
        Self { incomplete: (!reasons.is_empty()).then(|| reasons.join("; ")), ..self }
    }

    /// Whether a host had more ranks than cores, so that ranks waited for processors.
    #[must_use]
    pub fn shares_processors(&self) -> bool {
        let mut hosts: HashMap<&Option<String>, (usize, HashSet<u32>)> = HashMap::new();
        for process in &self.processes {
            let (ranks, cores) = hosts.entry(&process.host).or_default();
            *ranks += 1;
            cores.extend(&process.cores);
        }
        hosts.into_values().any(|(ranks, cores)| !cores.is_empty() && ranks > cores.len())
    }
}

impl Calls {
    pub(crate) fn of(rank: u32, communicator: u32, operation: &Operation) -> Self {
        let Operation { kind, root, bytes, calls, .. } = *operation;
        Self { communicator, kind, root, rank, bytes, calls }
    }
}

/// Traffic sorted, and added up by its key.
pub(crate) fn summed(mut traffic: Vec<Traffic>) -> Vec<Traffic> {
    traffic.par_sort_unstable_by_key(Traffic::key);
    traffic.dedup_by(|next, kept| {
        let same = next.key() == kept.key();
        if same {
            kept.messages = kept.messages.saturating_add(next.messages);
            kept.bytes = kept.bytes.saturating_add(next.bytes);
        }
        same
    });
    traffic
}

/// A problem of some ranks: `no file of rank 3 and 2 other ranks`.
pub(crate) fn some(mut ranks: impl Iterator<Item = u32>, problem: &str) -> Option<String> {
    let first = ranks.next()?;
    Some(match ranks.count() {
        0 => format!("{problem} rank {first}"),
        1 => format!("{problem} rank {first} and another rank"),
        others => format!("{problem} rank {first} and {others} other ranks"),
    })
}
