//! The task graph of a recording.

use std::collections::BTreeMap;

use hopmap_collectives::{self as collectives, Algorithm, Algorithms, Call, Collective, Convention};
use hopmap_model::{
    CollectiveCalls, CollectiveOperation as Operation, CollectiveTable, Process, SizeBin, TaskGraph, to_u32,
};

use crate::collective::CollectiveKind;
use crate::description::Method;
use crate::error::RecordingError;
use crate::lengths::{self, Lengths};
use crate::rank::Kind;
use crate::recording::{Calls, Process as Recorded, Recording, Traffic};

/// Most messages that collective operations may become, before equal pairs are added up.
const MOST_MESSAGES: u64 = 1 << 28;

/// Whether collective operations count.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Choice {
    /// Not at all.
    Ignore,
    /// As operations of their communicators, but not as messages.
    Keep,
    /// As operations of their communicators and as the messages of these algorithms. Open MPI's monitoring
    /// counts the messages that were really sent instead.
    Expand(Algorithms),
}

/// A task graph, and what it does not contain.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Converted {
    /// The task graph.
    pub graph: TaskGraph,
    /// Calls of neighbourhood collectives, which are not operations of a task graph.
    pub neighbourhood: u64,
    /// Calls whose root is not in the communicator, such as those between two groups.
    pub without_root: u64,
    /// Calls that do not support the chosen algorithm.
    pub unfit: u64,
}

impl Recording {
    /// The task graph: messages and bytes per ordered pair, also by length; collective operations; hosts and
    /// times of the ranks.
    pub fn task_graph(&self, choice: Choice) -> Result<Converted, RecordingError> {
        let expands = matches!(choice, Choice::Expand(_));
        let counts = |line: &&Traffic| line.kind != Kind::Collective || expands;
        let mut lengths = Lengths::default();
        let mut collective_bytes = 0u64;
        for line in self.traffic.iter().filter(counts) {
            lengths.add(row(line, line.log2_bytes.unwrap_or(0)));
            collective_bytes =
                collective_bytes.saturating_add(if line.kind == Kind::Collective { line.bytes } else { 0 });
        }
        let mut expansion = Expansion::new(self, choice, lengths);
        let same =
            |a: &Calls, b: &Calls| (a.communicator, a.kind, a.root) == (b.communicator, b.kind, b.root);
        if choice != Choice::Ignore {
            self.calls.chunk_by(same).try_for_each(|group| expansion.group(group))?;
        }
        let Expansion { lengths, bytes, sums, neighbourhood, without_root, unfit, .. } = expansion;
        lengths.check()?;
        let rows = lengths.into_rows();
        let edges = lengths::edges(&rows);
        let sizes = match self.method {
            Method::Preload => rows,
            Method::Openmpi => self.sizes(expands),
        };
        let graph = TaskGraph {
            edges,
            sizes,
            duration_s: self.processes.iter().filter_map(|process| Some(process.times?.0)).reduce(f64::max),
            processes: self.processes.iter().map(process).collect(),
            collectives: self.table(sums),
            is_incomplete: self.incomplete.is_some(),
            collective_bytes: expands.then(|| collective_bytes.saturating_add(bytes) as f64),
            ..TaskGraph::default()
        };
        Ok(Converted { graph, neighbourhood, without_root, unfit })
    }

    /// The operations with the communicators that they use.
    fn table(&self, sums: BTreeMap<Key, Count>) -> CollectiveTable {
        let mut table = CollectiveTable::default();
        let mut last = None;
        for ((communicator, operation, root, bytes), Count { calls, uneven }) in sums {
            if last.replace(communicator) != Some(communicator) {
                table.communicators.push(self.communicators[communicator as usize].clone());
            }
            let communicator = to_u32(table.communicators.len()) - 1;
            table.calls.push(CollectiveCalls { communicator, operation, root, bytes, calls, uneven });
        }
        table
    }

    /// Messages by length, from the histograms of Open MPI's monitoring. They cover all messages of a pair,
    /// so there are none if messages of collective operations do not count.
    fn sizes(&self, expands: bool) -> Vec<SizeBin> {
        if !expands && self.traffic.iter().any(|line| line.kind == Kind::Collective) {
            return Vec::new();
        }
        let mut lengths = Lengths::default();
        let is_one_sided = |line: &&Traffic| matches!(line.kind, Kind::Put | Kind::Get);
        for line in self.traffic.iter().filter(is_one_sided) {
            lengths.add(row(line, lengths::class(line.messages, line.bytes)));
        }
        for pair in self.histogram.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
            let (source, destination, ..) = pair[0];
            let first =
                self.traffic.partition_point(|line| (line.source, line.destination) < (source, destination));
            let lines = self.traffic[first..].iter();
            let lines = lines.take_while(|line| (line.source, line.destination) == (source, destination));
            let messages = lines.filter(|line| !is_one_sided(line));
            let bytes = messages.map(|line| line.bytes).fold(0, u64::saturating_add);
            let classes: Vec<(u32, u64)> =
                pair.iter().map(|(.., class, messages)| (*class, *messages)).collect();
            for ((class, messages), bytes) in classes.iter().zip(lengths::shared(&classes, bytes)) {
                let at_least_bytes = lengths::at_least(*class);
                lengths.add(SizeBin { source, destination, at_least_bytes, messages: *messages, bytes });
            }
        }
        lengths.into_rows()
    }
}

fn row(line: &Traffic, class: u32) -> SizeBin {
    let Traffic { source, destination, messages, bytes, .. } = *line;
    SizeBin { source, destination, at_least_bytes: lengths::at_least(class), messages, bytes }
}

/// Several threads of a rank may be inside MPI at once, so the time inside is at most that of the rank.
fn process(recorded: &Recorded) -> Process {
    let inside = recorded.times.map(|(seconds, inside)| inside.min(seconds));
    Process {
        host: recorded.host.clone(),
        compute_s: recorded.times.zip(inside).map(|((seconds, _), inside)| seconds - inside),
        communication_s: inside,
        collective_s: None,
    }
}

/// Communicator, operation, root and bytes of a block.
type Key = (u32, Operation, Option<u32>, u64);

/// Number of equal operations, and how many of them have blocks of different lengths.
#[derive(Debug, Clone, Copy, Default)]
struct Count {
    calls: u64,
    uneven: u64,
}

/// Combines the records of the ranks.
struct Expansion<'a> {
    recording: &'a Recording,
    choice: Choice,
    lengths: Lengths,
    /// Bytes of the messages.
    bytes: u64,
    /// Messages that may still be counted.
    left: u64,
    sums: BTreeMap<Key, Count>,
    neighbourhood: u64,
    without_root: u64,
    unfit: u64,
}

impl<'a> Expansion<'a> {
    fn new(recording: &'a Recording, choice: Choice, lengths: Lengths) -> Self {
        Self {
            recording,
            choice,
            lengths,
            bytes: 0,
            left: MOST_MESSAGES,
            sums: BTreeMap::new(),
            neighbourhood: 0,
            without_root: 0,
            unfit: 0,
        }
    }

    /// Calls of one operation with one root on one communicator.
    fn group(&mut self, group: &[Calls]) -> Result<(), RecordingError> {
        let Calls { communicator, kind, root, .. } = group[0];
        let members = &self.recording.communicators[communicator as usize];
        let by_rank = || group.chunk_by(|a, b| a.rank == b.rank);
        let calls_of = |rows: &[Calls]| rows.iter().map(|row| row.calls).fold(0, u64::saturating_add);
        let calls = by_rank().map(calls_of).max().unwrap_or(0);
        let Some(operation) = kind.operation() else {
            self.neighbourhood = self.neighbourhood.saturating_add(calls);
            return Ok(());
        };
        let root = root.filter(|_| operation.has_root());
        if operation.has_root() && root.is_none_or(|root| root as usize >= members.len()) {
            self.without_root = self.without_root.saturating_add(calls);
            return Ok(());
        }
        if is_irregular(kind) {
            return self.irregular(group, (operation, root), calls);
        }
        let witness = members[witness(operation, root, members.len())];
        let rows = by_rank().find(|rows| rows[0].rank == witness);
        let rows = rows.or_else(|| by_rank().find(|rows| calls_of(rows) == calls)).unwrap_or_default();
        let processes = to_u32(members.len());
        for row in rows.iter().filter(|row| row.calls > 0) {
            let bytes = block(operation, row.bytes.div_ceil(row.calls), processes);
            let call = Call { operation, processes, root, bytes };
            self.count(communicator, (call, row.bytes.is_multiple_of(row.calls)), row.calls);
            self.regular(members, call, row.calls)?;
        }
        Ok(())
    }

    fn count(&mut self, communicator: u32, (call, even): (Call, bool), calls: u64) {
        let Call { operation, root, bytes, .. } = call;
        let count = self.sums.entry((communicator, operation, root, bytes)).or_default();
        count.calls = count.calls.saturating_add(calls);
        count.uneven = count.uneven.saturating_add(if even { 0 } else { calls });
    }

    /// The algorithms, and that of a call; `None` if calls are not expanded.
    fn algorithm(
        &mut self,
        call: Call,
        calls: u64,
    ) -> Result<Option<(Algorithms, Algorithm)>, RecordingError> {
        let Choice::Expand(algorithms) = self.choice else { return Ok(None) };
        let chosen = algorithms.of(call.operation);
        if call.processes > 1 && chosen.is_some_and(|chosen| !call.suits(chosen)) {
            self.unfit = self.unfit.saturating_add(calls);
        }
        let algorithm =
            chosen.filter(|chosen| call.suits(*chosen)).unwrap_or_else(|| call.usual(algorithms.rules));
        self.left = self.left.checked_sub(call.most_messages(algorithm)).ok_or_else(too_many)?;
        Ok(Some((algorithms, algorithm)))
    }

    /// Calls with blocks of equal length.
    fn regular(&mut self, members: &[u32], call: Call, calls: u64) -> Result<(), RecordingError> {
        let Some((_, algorithm)) = self.algorithm(call, calls)? else { return Ok(()) };
        let sent = call.messages(algorithm, |_, edge| self.message(members, edge, calls));
        debug_assert!(sent.is_ok(), "root and algorithm are checked");
        Ok(())
    }

    /// Calls in which every rank may send another number of bytes: the mean of each rank counts.
    fn irregular(
        &mut self,
        group: &[Calls],
        (operation, root): (Operation, Option<u32>),
        calls: u64,
    ) -> Result<(), RecordingError> {
        let members = &self.recording.communicators[group[0].communicator as usize];
        let mut means: BTreeMap<u32, u64> = BTreeMap::new();
        for rows in group.chunk_by(|a, b| a.rank == b.rank) {
            let sum = |of: fn(&Calls) -> u64| rows.iter().map(|row| u128::from(of(row))).sum::<u128>();
            let mean = sum(|row| row.bytes).div_ceil(sum(|row| row.calls).max(1));
            means.insert(rows[0].rank, u64::try_from(mean).unwrap_or(u64::MAX));
        }
        let sent: Vec<u64> = members.iter().map(|rank| means.get(rank).copied().unwrap_or(0)).collect();
        let count = members.len() as u64;
        // What each rank receives is not recorded: all get the same.
        let received = match root {
            Some(root) if operation == Operation::ScatterV => {
                vec![sent[root as usize].div_ceil(count); sent.len()]
            }
            _ => vec![0; sent.len()],
        };
        let collective = Collective {
            operation,
            root,
            convention: Convention::Arguments,
            sent: &sent,
            received: &received,
        };
        let Ok((call, even)) = collectives::summary(&collective) else { return Ok(()) };
        if calls == 0 {
            return Ok(());
        }
        self.count(group[0].communicator, (call, even), calls);
        if self.recording.counted.contains(&group[0].kind) {
            return Ok(());
        }
        if let Some((algorithms, _)) = self.algorithm(call, calls)? {
            let sent =
                collectives::expand(&collective, &algorithms, |edge| self.message(members, edge, calls));
            debug_assert!(sent.is_ok(), "checked by the summary");
        }
        Ok(())
    }

    /// Messages between two members of a communicator, in every call.
    fn message(&mut self, members: &[u32], edge: hopmap_model::Edge, calls: u64) {
        let length = edge.bytes / edge.messages.max(1);
        let (messages, bytes) = (edge.messages.saturating_mul(calls), edge.bytes.saturating_mul(calls));
        self.bytes = self.bytes.saturating_add(bytes);
        self.lengths.add(SizeBin {
            source: members[edge.source as usize],
            destination: members[edge.destination as usize],
            at_least_bytes: lengths::at_least(lengths::class(1, length)),
            messages,
            bytes,
        });
    }
}

#[cold]
fn too_many() -> RecordingError {
    RecordingError::Limit {
        what: format!("the collective operations would become more than {MOST_MESSAGES} messages"),
        help: "keep them as operations: `collectives = \"keep\"`",
    }
}

fn is_irregular(kind: CollectiveKind) -> bool {
    matches!(kind.name(), "gatherv" | "scatterv" | "allgatherv" | "alltoallv" | "alltoallw")
}

/// The member whose sent bytes give the length of a block.
fn witness(operation: Operation, root: Option<u32>, members: usize) -> usize {
    match (operation, root) {
        (Operation::Broadcast | Operation::Scatter, Some(root)) => root as usize,
        (_, Some(root)) => (root as usize + 1) % members.max(1),
        (_, None) => 0,
    }
}

/// Bytes of a block from the bytes that the witness sent in a call.
fn block(operation: Operation, sent: u64, processes: u32) -> u64 {
    use Operation::{AllToAll, ReduceScatter, ReduceScatterBlock, Scatter};
    match operation {
        Operation::Barrier => 0,
        Scatter | AllToAll | ReduceScatter | ReduceScatterBlock => sent.div_ceil(u64::from(processes)),
        _ => sent,
    }
}
