//! XML reports of IPM with `IPM_LOG=full`: a `<hent>` sums up one call, size and partner of one rank.
//!
//! Source: `report_xml.c` and `mod_mpi.h` of IPM 2 and the wrappers of IPM 1. Partners are world ranks: IPM
//! translates those of other communicators. It writes 0 both for no partner and for all, so a message to
//! `MPI_PROC_NULL` looks like one to rank 0.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use hopmap_model::{Context, Edge, TaskGraph};
use hopmap_text::{FileError, Line, Lines, Rows, shown};

use super::reader::{self, Reader};
use crate::archive::log_count;
use crate::matrix::{Accumulator, MAX_RANKS, Overflow};

pub(super) static READER: Reader = Reader {
    recognises: |sample| is_report(&sample.text),
    files: reader::one_file,
    read: |path, _, cx| Ok(read(path, cx)?),
    rows: ROWS,
    ..Reader::BINARY
};

const ROWS: Rows = Rows::like(|text| {
    ["<?xml", "<ipm", "<task", "<hash", "<hent", "<host", "<job", "<perf"]
        .iter()
        .any(|begin| text.starts_with(begin))
});

const HINT: &str = "a report has a `<task mpi_rank=… mpi_size=…>` for every rank, and in it `<hent call=… bytes=… \
                    orank=… count=…>`: IPM writes them with IPM_REPORT=full and IPM_LOG=full";

/// Kind of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Sends to the partner that IPM records.
    Send,
    /// Sends and receives.
    Exchange,
    /// Involves all ranks of a communicator.
    Collective,
    /// Prepares a send that later calls start any number of times.
    Prepared,
    /// Starts prepared sends or receives, without saying which.
    Start,
    /// Accesses the memory of another rank.
    Access,
}

impl Kind {
    /// The kind of a call that sends.
    fn of(call: &str) -> Option<Self> {
        let call = call.to_ascii_lowercase();
        let call = call.strip_prefix("mpi_")?;
        Some(match call {
            "send" | "bsend" | "ssend" | "rsend" | "isend" | "ibsend" | "issend" | "irsend" => Self::Send,
            "sendrecv" | "sendrecv_replace" | "isendrecv" | "isendrecv_replace" => Self::Exchange,
            "send_init" | "bsend_init" | "ssend_init" | "rsend_init" | "psend_init" => Self::Prepared,
            "start" | "startall" => Self::Start,
            "put" | "get" | "accumulate" | "get_accumulate" | "fetch_and_op" | "compare_and_swap"
            | "rput" | "rget" | "raccumulate" | "rget_accumulate" => Self::Access,
            _ if is_collective(call) || call.strip_prefix('i').is_some_and(is_collective) => Self::Collective,
            _ => return None,
        })
    }
}

/// Whether a call sends, or prepares sends.
pub(super) fn is_send(call: &str) -> bool {
    matches!(Kind::of(call), Some(Kind::Send | Kind::Exchange | Kind::Prepared))
}

/// Whether a call that is not in the table may send: receives count at the sender, and files are no ranks.
fn may_send(call: &str) -> bool {
    let call = call.to_ascii_lowercase();
    let libraries = ["mpi_", "mpix_", "shmem_", "gaspi_", "upc", "armci_", "nccl"];
    let silent = ["mpi_file_", "mpi_wait", "mpi_test", "mpi_probe", "mpi_iprobe", "mpi_pack", "mpi_unpack"];
    libraries.iter().any(|library| call.starts_with(library))
        && !silent.iter().any(|silent| call.starts_with(silent))
        && (!call.contains("recv") || call.contains("send"))
}

/// Whether a call, without `MPI_`, is a blocking collective operation; nonblocking ones have an `i` before it.
fn is_collective(call: &str) -> bool {
    let call = call.strip_prefix("neighbor_").unwrap_or(call);
    matches!(
        call,
        "barrier"
            | "bcast"
            | "reduce"
            | "allreduce"
            | "reduce_scatter"
            | "reduce_scatter_block"
            | "scan"
            | "exscan"
            | "gather"
            | "gatherv"
            | "scatter"
            | "scatterv"
            | "allgather"
            | "allgatherv"
            | "alltoall"
            | "alltoallv"
            | "alltoallw"
    )
}

/// Whether a file starts like a report.
fn is_report(head: &str) -> bool {
    head.contains("<ipm_job_profile") || head.contains("<task ipm_version=")
}

/// Reads a report.
fn read(path: &Path, cx: &Context<'_>) -> Result<TaskGraph, FileError> {
    let mut lines = Lines::open(path, HINT)?.with(cx).lossy().of_rows(ROWS);
    let mut report = Report::default();
    // What is before a tag, and the tag, may be on several lines.
    let mut element = String::new();
    while let Some(line) = lines.next()? {
        for part in line.text.split_inclusive('>') {
            element.push_str(part);
            let Some(whole) = element.strip_suffix('>') else { continue };
            if let Some((text, tag)) = whole.rsplit_once('<') {
                report.element(line, text, tag)?;
            }
            element.clear();
        }
        element.push('\n');
    }
    reader::warn_of_foreign(lines.foreign(), cx);
    report.into_graph(&lines, cx)
}

/// The open task element.
struct Task {
    rank: u32,
    size: u32,
}

/// Contents of a report so far.
#[derive(Default)]
struct Report {
    task: Option<Task>,
    /// Number of ranks, the same in all tasks.
    size: Option<u32>,
    seen: BTreeSet<u32>,
    has_hash: bool,
    accumulator: Accumulator,
    hosts: Vec<(u32, String)>,
    computing: Vec<(u32, f64)>,
    /// First and last time in seconds.
    span: Option<(f64, f64)>,
    counts: Counts,
}

/// Calls that are mentioned in the log.
#[derive(Default)]
struct Counts {
    collectives: u64,
    exchanges: u64,
    to_zero: u64,
    /// Prepared sends, the bytes of one start of each, and calls that start some.
    prepared: u64,
    prepared_bytes: u64,
    starts: u64,
    accesses: u64,
    /// Names of other calls that carry bytes, with their number and bytes.
    unknown: BTreeMap<String, (u64, u64)>,
    /// Entries that the report announces, and those that it has.
    announced: u64,
    entries: u64,
}

impl Report {
    /// Processes a tag and the text before it.
    fn element(&mut self, line: Line<'_>, text: &str, tag: &str) -> Result<(), FileError> {
        match tag.split([' ', '\t', '\r', '\n', '/', '>']).next().unwrap_or_default() {
            "task" => self.begin_task(line, tag)?,
            "taskcopy" => {
                return Err(line.error("a clustered report omits the messages of similar ranks"));
            }
            "hash" => {
                self.has_hash = true;
                let announced = attribute(tag, "nkey").and_then(|number| number.parse().ok()).unwrap_or(0);
                self.counts.announced = self.counts.announced.saturating_add(announced);
            }
            "hent" => self.entry(line, tag)?,
            "job" => {
                let tasks = attribute(tag, "ntasks").and_then(|number| number.parse().ok()).unwrap_or(0);
                if let Some(size) = self.size.filter(|size| *size < tasks) {
                    let problem =
                        format!("the job has {tasks} tasks (`ntasks`), but {size} ranks (`mpi_size`)");
                    return Err(line.error(problem));
                }
            }
            "perf" => self.times(tag),
            // The end of an element.
            "" => match (tag.trim_end_matches('>').trim(), &self.task) {
                ("/task", Some(_)) => self.task = None,
                ("/host", Some(task)) if !text.trim().is_empty() => {
                    self.hosts.push((task.rank, text.trim().to_owned()));
                }
                _ => {}
            },
            _ => {}
        }
        Ok(())
    }

    fn begin_task(&mut self, line: Line<'_>, tag: &str) -> Result<(), FileError> {
        if self.task.is_some() {
            return Err(line.error("a task begins inside another"));
        }
        let size = line.below(attribute(tag, "mpi_size"), "mpi_size", MAX_RANKS + 1)?;
        let rank = line.below(attribute(tag, "mpi_rank"), "mpi_rank", size)?;
        if *self.size.get_or_insert(size) != size {
            return Err(line.error("tasks have different values of `mpi_size`"));
        }
        if !self.seen.insert(rank) {
            return Err(line.error(format!("rank {rank} is duplicated")));
        }
        if let (Some(from), Some(to)) = (seconds(tag, "stamp_init"), seconds(tag, "stamp_final")) {
            let (first, last) = self.span.unwrap_or((from, to));
            self.span = Some((first.min(from), last.max(to)));
        }
        self.task = Some(Task { rank, size });
        Ok(())
    }

    /// Time outside of MPI: `wtime` − `mtime` of IPM.
    fn times(&mut self, tag: &str) {
        if let (Some(task), Some(all), Some(inside)) =
            (&self.task, seconds(tag, "wtime"), seconds(tag, "mtime"))
        {
            self.computing.push((task.rank, (all - inside).max(0.0)));
        }
    }

    fn entry(&mut self, line: Line<'_>, tag: &str) -> Result<(), FileError> {
        let Some(task) = &self.task else { return Err(line.error("`hent` outside of a task")) };
        let call = attribute(tag, "call").ok_or_else(|| line.error("the call is missing"))?;
        self.counts.entries += 1;
        let Some(kind) = Kind::of(call) else {
            self.counts.see_unknown(call, tag);
            return Ok(());
        };
        let messages = line.whole(attribute(tag, "count"), "count")?;
        let uncounted = match kind {
            Kind::Send | Kind::Exchange => None,
            Kind::Collective => Some(&mut self.counts.collectives),
            Kind::Prepared => Some(&mut self.counts.prepared),
            Kind::Start => Some(&mut self.counts.starts),
            Kind::Access => Some(&mut self.counts.accesses),
        };
        if let Some(sum) = uncounted {
            *sum = sum.saturating_add(messages);
            if kind == Kind::Prepared {
                let bytes = line.whole(attribute(tag, "bytes"), "number of bytes")?.saturating_mul(messages);
                self.counts.prepared_bytes = self.counts.prepared_bytes.saturating_add(bytes);
            }
            return Ok(());
        }
        let destination = line.below(attribute(tag, "orank"), "orank", task.size)?;
        let length = line.whole(attribute(tag, "bytes"), "number of bytes")?;
        let bytes = length.checked_mul(messages).ok_or_else(|| line.error(Overflow.to_string()))?;
        let edge = Edge { source: task.rank, destination, messages, bytes };
        self.accumulator.add(edge).map_err(|overflow| line.error(overflow.to_string()))?;
        self.counts.exchanges += if kind == Kind::Exchange { messages } else { 0 };
        self.counts.to_zero += if destination == 0 { messages } else { 0 };
        Ok(())
    }

    fn into_graph(mut self, lines: &Lines<'_>, cx: &Context<'_>) -> Result<TaskGraph, FileError> {
        if let Some(task) = &self.task {
            return Err(lines.error(format!("the file ends inside rank {}", task.rank)));
        }
        let size = self.size.ok_or_else(|| lines.error("the file does not contain a task"))?;
        if !self.has_hash {
            return Err(lines.error("the report has totals per call, but no receivers"));
        }
        if let Some(missing) = (0..size).find(|rank| !self.seen.contains(rank)) {
            return Err(lines.error(format!("rank {missing} of {size} is missing")));
        }
        self.accumulator.see(size - 1);
        self.counts.log(cx);
        let mut graph = self.accumulator.into_graph();
        for (rank, host) in self.hosts {
            graph.processes[rank as usize].host = Some(host);
        }
        for (rank, compute_s) in self.computing {
            graph.processes[rank as usize].compute_s = Some(compute_s);
        }
        let duration_s = self.span.map(|(first, last)| last - first).filter(|length| *length >= 0.0);
        Ok(TaskGraph { duration_s, ..graph })
    }
}

impl Counts {
    fn see_unknown(&mut self, call: &str, tag: &str) {
        let number = |name| attribute(tag, name).and_then(|number| number.parse().ok()).unwrap_or(0);
        let (count, bytes): (u64, u64) = (number("count"), number("bytes"));
        if count > 0 && bytes > 0 && may_send(call) {
            let sums = self.unknown.entry(shown(call)).or_default();
            *sums = (sums.0.saturating_add(count), sums.1.saturating_add(bytes.saturating_mul(count)));
        }
    }

    fn log(&self, cx: &Context<'_>) {
        reader::warn_of_collectives(self.collectives, cx);
        let message = "warning: calls of MPI_Sendrecv, counted as messages to the rank that IPM records";
        log_count(cx, message, self.exchanges);
        let message =
            "warning: messages to rank 0, which may be messages to MPI_PROC_NULL (IPM records 0 for both)";
        log_count(cx, message, self.to_zero);
        log_count(cx, "warning: remote memory accesses, which are not counted", self.accesses);
        if self.prepared > 0 {
            cx.log(format_args!(
                "warning: persistent sends (MPI_Send_init) of {} bytes per start, which are not counted, as IPM does not record which of them the {} calls of MPI_Start and MPI_Startall start: {}",
                self.prepared_bytes, self.starts, self.prepared
            ));
        }
        for (call, (count, bytes)) in self.unknown.iter().take(8) {
            let message = format!("warning: calls of {call} with {bytes} bytes, which are not counted");
            log_count(cx, &message, *count);
        }
        let message = "warning: entries of the hash that the report announces (`nkey`), but does not have";
        log_count(cx, message, self.announced.saturating_sub(self.entries));
    }
}

/// The value of an attribute of a tag.
fn attribute<'t>(tag: &'t str, name: &str) -> Option<&'t str> {
    let mut rest = tag;
    while let Some(found) = rest.find(name) {
        let (before, behind) = (&rest[..found], &rest[found + name.len()..]);
        let quoted = behind.strip_prefix("=\"").filter(|_| before.ends_with([' ', '\t', '\r', '\n']));
        if let Some((value, _)) = quoted.and_then(|quoted| quoted.split_once('"')) {
            return Some(value.trim());
        }
        rest = behind;
    }
    None
}

/// A time in an attribute, if present and valid.
fn seconds(tag: &str, name: &str) -> Option<f64> {
    attribute(tag, name)?.parse().ok().filter(|seconds: &f64| seconds.is_finite() && *seconds >= 0.0)
}
