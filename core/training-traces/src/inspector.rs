//! Records of the Inspector, a profiler plugin of NCCL and RCCL: JSON in `*.log`, `*.jsonl`, or packed in `*.gz`,
//! any number of files. A record is a line, or indented; files of Prometheus (`*.prom`) beside them have no operations.
//!
//! Format version 4, from `plugins/profiler/inspector/inspector_json.cc` of NCCL. A rank in a record is that in the
//! communicator, so the process is the pair of host and process id. Processes are numbered by the communicator that
//! has all of them. Bytes are the count of the call times the size of the type: the part of one rank in an
//! all-gather, reduce-scatter or alltoall.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use hopmap_model::{CollectiveOperation as Operation, Context};
use hopmap_text::CUT;
use serde::Deserialize;

use crate::calls::{Rank, Split, What};
use crate::error::{TrainingError, damaged, lacking};
use crate::job::{Checked, Job, Numbered};
use crate::json::{self, Repaired};
use crate::kinds::kind;
use crate::kineto;
use crate::names::{Named, named};
use crate::ranks::{Format, files_of};

/// The files.
pub const FORMAT: Format = (&[".log", ".jsonl", ".gz"], recognises);

#[derive(Debug, Deserialize)]
struct Record {
    header: Header,
    metadata: Metadata,
    coll_perf: Option<Collective>,
    p2p_perf: Option<Message>,
}

#[derive(Debug, Deserialize)]
struct Header {
    id: String,
    /// `unknown` if the program does not name it.
    #[serde(default)]
    comm_name: String,
    rank: u32,
    n_ranks: u32,
}

#[derive(Debug, Deserialize)]
struct Metadata {
    hostname: String,
    pid: u64,
}

#[derive(Debug, Deserialize)]
struct Collective {
    coll: String,
    coll_sn: u64,
    coll_msg_size_bytes: u64,
}

#[derive(Debug, Deserialize)]
struct Message {
    p2p: String,
    p2p_peer: u32,
    p2p_msg_size_bytes: u64,
}

/// A process: its host and its id there.
type Id = (String, u64);

/// A communicator: its processes by rank, and their number.
#[derive(Debug, Default)]
struct Communicator {
    processes: BTreeMap<u32, Id>,
    size: u32,
    name: String,
}

/// Whether a file begins with a record, in a line or indented.
fn recognises(head: &str) -> bool {
    let has = |key| head.contains(key);
    has("\"header\"") && (has("\"coll_perf\"") || has("\"p2p_perf\"")) && !kineto::recognises(head)
}

/// Operations of a process, as recorded: communicator, number, what, and bytes.
type Recorded = BTreeMap<Id, Vec<(String, u64, Done)>>;

#[derive(Debug, Clone, Copy)]
enum Done {
    Collective(Operation, u64),
    /// Rank of the peer in the communicator, bytes, and whether it is sent.
    Message(u32, u64, bool),
}

/// Reads all files.
pub fn read(path: &Path, allow_truncated: bool, cx: &Context<'_>) -> Result<Checked, TrainingError> {
    let (mut cut, mut repaired) = (0, Repaired::default());
    let mut communicators: BTreeMap<String, Communicator> = BTreeMap::new();
    let mut recorded: Recorded = BTreeMap::new();
    for file in files_of(path, FORMAT, cx)? {
        let (records, error) = json::read_all::<Record>(&file, cx, &mut repaired)?;
        match error {
            Some(error) if !json::is_cut(&error) => return Err(json::damaged(&file, &error).into()),
            Some(error) if !allow_truncated => {
                return Err(json::damaged(&file, &error).with_help(CUT).into());
            }
            error => cut += u64::from(error.is_some()),
        }
        for record in records {
            let done = done(&record).map_err(|problem| damaged(&file, problem))?;
            let Record {
                header: Header { id, comm_name, rank, n_ranks },
                metadata: Metadata { hostname, pid },
                ..
            } = record;
            let process = (hostname, pid);
            let communicator = communicators.entry(id.clone()).or_default();
            communicator.size = communicator.size.max(n_ranks);
            communicator.name = comm_name;
            let known = communicator.processes.entry(rank).or_insert_with(|| process.clone());
            if *known != process {
                let problem = format!("has rank {rank} of communicator {id} in two processes");
                return Err(damaged(&file, problem));
            }
            recorded.entry(process).or_default().extend(done.map(|(number, done)| (id, number, done)));
        }
    }
    repaired.log(cx);
    if cut > 0 {
        cx.log(format_args!("warning: files that end within a line or record, which is left out: {cut}"));
    }
    job(path, &communicators, recorded)
}

/// The number of an operation and what it is; `None` if it sends nothing.
fn done(record: &Record) -> Result<Option<(u64, Done)>, String> {
    let unknown = |name: &str| format!("has the unknown operation `{name}`");
    if let Some(Collective { coll, coll_sn, coll_msg_size_bytes }) = &record.coll_perf {
        return match named(coll).ok_or_else(|| unknown(coll))? {
            Named::Collective(operation) => {
                let ranks = u64::from(record.header.n_ranks.max(1));
                let parts = match operation {
                    Operation::ReduceScatterBlock | Operation::AllToAll | Operation::Scatter => ranks,
                    _ => 1,
                };
                let sent = coll_msg_size_bytes
                    .checked_mul(parts)
                    .ok_or("has an operation of more than 2^64 bytes")?;
                Ok(Some((*coll_sn, Done::Collective(operation, sent))))
            }
            Named::Nothing => Ok(None),
            _ => Err(unknown(coll)),
        };
    }
    let Some(Message { p2p, p2p_peer, p2p_msg_size_bytes }) = &record.p2p_perf else { return Ok(None) };
    match named(p2p).ok_or_else(|| unknown(p2p))? {
        direction @ (Named::Send | Named::Receive) => {
            Ok(Some((0, Done::Message(*p2p_peer, *p2p_msg_size_bytes, direction == Named::Send))))
        }
        _ => Err(unknown(p2p)),
    }
}

fn job(
    path: &Path,
    communicators: &BTreeMap<String, Communicator>,
    recorded: Recorded,
) -> Result<Checked, TrainingError> {
    let ranks = global_ranks(path, communicators, recorded.len())?;
    let mut job = Job::default();
    let mut groups = BTreeMap::new();
    for (id, Communicator { processes, size, name }) in communicators {
        if let Some(missing) = (0..*size).find(|rank| !processes.contains_key(rank)) {
            let problem = format!("has no record of rank {missing} of communicator {id}, of {size} ranks");
            return Err(lacking(path, problem));
        }
        let members = processes.values().map(|process| ranks[process]).collect();
        groups.insert(id.as_str(), job.group(members, kind(None, name), path)?);
    }
    let mut kept: BTreeMap<u32, Numbered> = BTreeMap::new();
    for (process, mut operations) in recorded {
        operations.sort_by(|one, other| (&one.0, one.1).cmp(&(&other.0, other.1)));
        if let Some((id, number)) = recorded_twice(&operations) {
            let (host, pid) = &process;
            let problem =
                format!("has operation {number} of communicator {id} twice for process {pid} of {host}");
            let help =
                "remove copies of logs from the folder, such as packed ones beside those that are not packed";
            return Err(TrainingError::of(path, problem, help));
        }
        let mut calls = Vec::with_capacity(operations.len());
        for (id, number, done) in operations {
            let group = groups[id.as_str()];
            let member = |rank: u32| communicators[&id].processes.get(&rank).map(|process| ranks[process]);
            let what = match done {
                Done::Collective(operation, sent) => {
                    let root = operation.has_root().then_some(0);
                    What::Collective { group, operation, root, sent, split: Split::Even }
                }
                Done::Message(peer, bytes, is_sent) => {
                    let named = member(peer);
                    let peer = named.ok_or_else(|| {
                        damaged(path, format!("has a message to rank {peer} of {id}, which it lacks"))
                    })?;
                    match is_sent {
                        true => What::Send { peer, tag: 0, bytes, kind: job.kinds[group as usize] },
                        false => What::Receive { peer, tag: 0, bytes },
                    }
                }
            };
            calls.push((group, number, what));
        }
        let rank = ranks[&process];
        kept.insert(rank, (calls, Rank { host: Some(process.0), ..Rank::default() }));
    }
    job.add_common(kept, &BTreeMap::new(), path)?;
    job.checked(None, path)
}

/// A collective operation that sorted operations have twice: every kind of operation has numbers of its own.
fn recorded_twice(operations: &[(String, u64, Done)]) -> Option<(&str, u64)> {
    operations.chunk_by(|one, other| (&one.0, one.1) == (&other.0, other.1)).find_map(|same| {
        let kinds = same.iter().filter_map(|(.., done)| match done {
            Done::Collective(operation, _) => Some(operation.name()),
            Done::Message(..) => None,
        });
        let different: BTreeSet<_> = kinds.clone().collect();
        (different.len() < kinds.count()).then(|| (same[0].0.as_str(), same[0].1))
    })
}

/// The ranks of all processes, from the communicator that has all of them.
fn global_ranks(
    path: &Path,
    communicators: &BTreeMap<String, Communicator>,
    processes: usize,
) -> Result<BTreeMap<Id, u32>, TrainingError> {
    let different = |communicator: &Communicator| {
        communicator.processes.values().collect::<BTreeSet<_>>().len() == communicator.processes.len()
    };
    if let Some((id, _)) = communicators.iter().find(|(_, communicator)| !different(communicator)) {
        let problem =
            format!("has several ranks of communicator {id} in one process, whose order is unknown");
        return Err(TrainingError::of(path, problem, "start a process per GPU"));
    }
    let has_all = |communicator: &&Communicator| communicator.processes.len() == processes;
    let world = communicators.values().find(has_all).ok_or_else(|| {
        let problem =
            format!("has no communicator with all {processes} processes, so that their ranks are unknown");
        TrainingError::of(
            path,
            problem,
            "record an operation of all ranks too, such as the barrier before the first step",
        )
    })?;
    Ok(world.processes.iter().map(|(rank, process)| (process.clone(), *rank)).collect())
}
