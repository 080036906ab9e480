//! Time-independent traces for `smpirun -replay` of `SimGrid`: a file of actions per rank, and an index of
//! them (`SimGrid` 3.32, `src/smpi/internals/smpi_replay.cpp`).
//!
//! All messages of a replay are those of `MPI_COMM_WORLD`. If a program has messages of other communicators,
//! or tags that `SimGrid` cannot read, every pair of tag and communicator becomes a tag. Lengths are in
//! `MPI_BYTE`. A `wait` completes the oldest active request with its source, destination and tag.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::io::{self, Write};
use std::path::Path;

use hopmap_model::{Action, Collective, CollectiveOperation, Context, Envelope, Program, to_u32};

use super::create::create;
use crate::error::TraceError;

/// Datatype number of `MPI_BYTE`.
const BYTE: u32 = 6;
/// The index file that starts a replay.
const LIST: &str = "ti.txt";

/// Rejects programs with collective operations that a replay does not have.
pub(super) fn check(program: &Program) -> Result<(), TraceError> {
    let world = program.ranks() as usize;
    let is_elsewhere = |collective: &&Collective| {
        let members = &program.communicators[collective.communicator as usize];
        // Other orders give the ranks, and the root, other numbers.
        members.len() != world || !members.iter().copied().eq(0..to_u32(world))
    };
    match program.collectives.iter().find(is_elsewhere) {
        None => Ok(()),
        Some(Collective { communicator, operation, .. }) => {
            let problem = format!(
                "the program calls {operation} on communicator {communicator}, but a replay of SimGrid has only MPI_COMM_WORLD"
            );
            Err(TraceError::refused(
                problem,
                "use `trace/dag` and its `task-dag`, in which operations are messages",
            ))
        }
    }
}

/// Writes a program. Returns the file names.
pub(super) fn write(
    program: &Program,
    flops_per_s: f64,
    folder: &Path,
    cx: &Context<'_>,
) -> io::Result<Vec<String>> {
    let tags = tags(program);
    let sizes = sizes(program);
    let mut names: Vec<String> = (0..program.ranks()).map(|rank| format!("rank-{rank}.ti")).collect();
    let mut reordered = 0;
    for (rank, name) in (0..).zip(&names) {
        create(&folder.join(name), |file| {
            let mut actions = Actions { program, rank, flops_per_s, tags: &tags, file, reordered: 0 };
            actions.write(&sizes)?;
            reordered += actions.reordered;
            Ok(())
        })?;
    }
    if reordered > 0 {
        cx.log(format_args!(
            "warning: waits for a message before an earlier one with the same ends and tag, which complete the earlier one in the replay: {reordered}"
        ));
    }
    create(&folder.join(LIST), |file| names.iter().try_for_each(|name| writeln!(file, "{name}")))?;
    names.push(LIST.into());
    Ok(names)
}

/// The tag in the trace of each envelope.
fn tags(program: &Program) -> Vec<u32> {
    let is_plain = |envelope: &Envelope| envelope.communicator == 0 && i32::try_from(envelope.tag).is_ok();
    let envelopes = &program.envelopes;
    if envelopes.iter().all(is_plain) {
        return envelopes.iter().map(|envelope| envelope.tag).collect();
    }
    let pair = |envelope: &Envelope| (envelope.communicator, envelope.tag);
    let pairs: BTreeSet<(u32, u32)> = envelopes.iter().map(pair).collect();
    let numbers: HashMap<(u32, u32), u32> = pairs.into_iter().zip(0..).collect();
    envelopes.iter().map(|envelope| numbers[&pair(envelope)]).collect()
}

/// Blocks of all ranks in each collective operation that lists them, in the order of the calls.
fn sizes(program: &Program) -> VecDeque<Vec<u64>> {
    let mut sizes: VecDeque<Vec<u64>> = VecDeque::new();
    for rank in 0..program.ranks() {
        let mut place = 0;
        for operation in program.of_rank(rank) {
            let Action::Collective { collective, bytes } = operation.action() else { continue };
            if !lists_sizes(program.collectives[collective as usize].operation) {
                continue;
            }
            if place == sizes.len() {
                sizes.push_back(Vec::new());
            }
            sizes[place].push(bytes);
            place += 1;
        }
    }
    sizes
}

/// Whether the action of an operation lists the blocks of all ranks.
fn lists_sizes(operation: CollectiveOperation) -> bool {
    use CollectiveOperation as Operation;
    matches!(
        operation,
        Operation::GatherV
            | Operation::ScatterV
            | Operation::AllGatherV
            | Operation::AllToAllV
            | Operation::AllToAllW
            | Operation::ReduceScatter
            | Operation::ReduceScatterBlock
    )
}

/// Source, destination and tag of a request.
type Key = (u32, u32, u32);

/// Writes the actions of a rank.
struct Actions<'a, W> {
    program: &'a Program,
    rank: u32,
    flops_per_s: f64,
    /// By envelope.
    tags: &'a [u32],
    file: &'a mut W,
    /// Number of waits that complete another request than in the program.
    reordered: u64,
}

impl<W: Write> Actions<'_, W> {
    fn write(&mut self, sizes: &VecDeque<Vec<u64>>) -> io::Result<()> {
        let rank = self.rank;
        let mut active: HashMap<u32, Key> = HashMap::new();
        let mut oldest: HashMap<Key, VecDeque<u32>> = HashMap::new();
        let mut sizes = sizes.iter();
        writeln!(self.file, "{rank} init")?;
        for operation in self.program.of_rank(rank) {
            match operation.action() {
                Action::Compute { seconds } => {
                    writeln!(self.file, "{rank} compute {}", seconds * self.flops_per_s)?;
                }
                Action::Send { envelope, bytes } => drop(self.message("send", envelope, bytes)?),
                Action::Recv { envelope, bytes } => drop(self.message("recv", envelope, bytes)?),
                Action::Isend { envelope, bytes, request } => {
                    let (peer, tag) = self.message("isend", envelope, bytes)?;
                    active.insert(request, (rank, peer, tag));
                    oldest.entry((rank, peer, tag)).or_default().push_back(request);
                }
                Action::Irecv { envelope, bytes, request } => {
                    let (peer, tag) = self.message("irecv", envelope, bytes)?;
                    active.insert(request, (peer, rank, tag));
                    oldest.entry((peer, rank, tag)).or_default().push_back(request);
                }
                Action::Wait { request } => {
                    let Some(key) = active.remove(&request) else { continue };
                    let requests = oldest.entry(key).or_default();
                    self.reordered += u64::from(requests.front() != Some(&request));
                    requests.retain(|other| *other != request);
                    writeln!(self.file, "{rank} wait {} {} {}", key.0, key.1, key.2)?;
                }
                Action::Test { request } => {
                    if let Some((source, destination, tag)) = active.get(&request) {
                        writeln!(self.file, "{rank} test {source} {destination} {tag}")?;
                    }
                }
                Action::Waitall => {
                    active.clear();
                    oldest.clear();
                    writeln!(self.file, "{rank} waitall")?;
                }
                Action::Collective { collective, bytes } => {
                    let collective = self.program.collectives[collective as usize];
                    let sizes = if lists_sizes(collective.operation) { sizes.next() } else { None };
                    self.collective(collective, bytes, sizes.map_or(&[][..], Vec::as_slice))?;
                }
            }
        }
        writeln!(self.file, "{rank} finalize")
    }

    /// Writes a message. Gives its peer and tag.
    fn message(&mut self, action: &str, envelope: u32, bytes: u64) -> io::Result<(u32, u32)> {
        let (rank, peer) = (self.rank, self.program.envelopes[envelope as usize].peer);
        let tag = self.tags[envelope as usize];
        writeln!(self.file, "{rank} {action} {peer} {tag} {bytes} {BYTE}")?;
        Ok((peer, tag))
    }

    /// Writes a collective operation; `sizes` are the blocks of all ranks if the action lists them.
    fn collective(&mut self, collective: Collective, bytes: u64, sizes: &[u64]) -> io::Result<()> {
        use CollectiveOperation as Operation;
        let rank = self.rank;
        let root = collective.root.unwrap_or(0);
        let list = sizes.iter().map(u64::to_string).collect::<Vec<_>>().join(" ");
        let text = match collective.operation {
            Operation::Barrier => "barrier".to_owned(),
            Operation::Broadcast => format!("bcast {bytes} {root} {BYTE}"),
            Operation::Reduce => format!("reduce {bytes} 0 {root} {BYTE}"),
            Operation::AllReduce => format!("allreduce {bytes} 0 {BYTE}"),
            Operation::Scan => format!("scan {bytes} 0 {BYTE}"),
            Operation::ExclusiveScan => format!("exscan {bytes} 0 {BYTE}"),
            Operation::Gather => format!("gather {bytes} {bytes} {root} {BYTE} {BYTE}"),
            Operation::Scatter => format!("scatter {bytes} {bytes} {root} {BYTE} {BYTE}"),
            Operation::AllGather => format!("allgather {bytes} {bytes} {BYTE} {BYTE}"),
            Operation::AllToAll => format!("alltoall {bytes} {bytes} {BYTE} {BYTE}"),
            Operation::GatherV => format!("gatherv {bytes} {list} {root} {BYTE} {BYTE}"),
            Operation::AllGatherV => format!("allgatherv {bytes} {list} {BYTE} {BYTE}"),
            Operation::ScatterV => format!("scatterv {list} {bytes} {root} {BYTE} {BYTE}"),
            Operation::ReduceScatter | Operation::ReduceScatterBlock => {
                format!("reducescatter {list} 0 {BYTE}")
            }
            Operation::AllToAllV | Operation::AllToAllW => {
                let sent = vec![bytes.to_string(); sizes.len()].join(" ");
                let all = |bytes: u64| bytes.saturating_mul(sizes.len() as u64);
                let received = sizes.iter().fold(0, |sum: u64, bytes| sum.saturating_add(*bytes));
                format!("alltoallv {} {sent} {received} {list} {BYTE} {BYTE}", all(bytes))
            }
        };
        writeln!(self.file, "{rank} {text}")
    }
}
