//! From an archive to a task graph.

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use hopmap_model::{Context, Edge, Process, TaskGraph};
use rayon::prelude::*;

use super::archive_files::ArchiveFiles;
use super::definitions::Definitions;
use super::processes::Processes;
use super::stream::{self, Counts, StreamRecord};
use crate::OtfError;
use crate::call_stack::RegionKind;
use crate::matrix::Matrix;

/// Reads an archive: messages and bytes per ordered pair of processes, counted where they are sent.
pub(crate) fn read(path: &Path, cx: &Context<'_>) -> Result<TaskGraph, OtfError> {
    let files = ArchiveFiles::find(path)?;
    let definitions = Definitions::read(&files.definitions)?;
    let listed = files.streams.values().flatten().copied();
    let processes = Processes::new(&definitions, listed)
        .map_err(|what| OtfError::Definitions { path: files.definitions.clone(), what })?;
    let kinds = definitions.region_kinds(None);
    let program = Program { files: &files, definitions: &definitions, processes: &processes, kinds };
    let streams: Vec<u32> = files.streams.keys().copied().collect();
    let records = program.read_all(&streams, cx)?;
    report(&processes, &records, cx);
    let ticks = definitions.ticks_per_second.filter(|ticks| *ticks > 0);
    if ticks.is_none() {
        cx.log("warning: the trace does not say how long a tick of its clock is, so there are no times");
    }
    assemble(&files.master, &processes, &records, ticks)
}

/// What all streams are read with.
struct Program<'a> {
    files: &'a ArchiveFiles,
    definitions: &'a Definitions,
    processes: &'a Processes,
    kinds: HashMap<u32, RegionKind>,
}

impl Program<'_> {
    /// Reads all streams, on as many threads as the context allows. Of several errors the one of the lowest stream
    /// is given, whatever the number of threads.
    fn read_all(&self, streams: &[u32], cx: &Context<'_>) -> Result<Vec<StreamRecord>, OtfError> {
        let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
        // Streams behind the first that failed need not be read.
        let limit = AtomicUsize::new(streams.len());
        let work = |_| {
            let mut records = Vec::new();
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                if index >= limit.load(Ordering::Relaxed) {
                    return records;
                }
                let record = self.read_stream(streams[index], cx);
                match &record {
                    Ok(Some(_)) => {
                        let done = done.fetch_add(1, Ordering::Relaxed) + 1;
                        cx.progress(done as u64, streams.len() as u64);
                    }
                    _ => drop(limit.fetch_min(index, Ordering::Relaxed)),
                }
                records.push((index, record));
            }
        };
        let workers = cx.threads().clamp(1, streams.len().max(1));
        let mut records: Vec<_> = (0..workers).into_par_iter().map(work).flatten().collect();
        records.sort_unstable_by_key(|(index, _)| *index);
        let stopped = || Err(OtfError::Stopped { done: done.load(Ordering::Relaxed), total: streams.len() });
        records.into_iter().map(|(_, record)| record?.map_or_else(stopped, Ok)).collect()
    }

    /// Reads one stream; nothing if it was stopped.
    fn read_stream(&self, stream: u32, cx: &Context<'_>) -> Result<Option<StreamRecord>, OtfError> {
        if cx.should_stop() {
            return Ok(None);
        }
        let events = self.files.events_of(stream)?;
        match self.files.definitions_of(stream) {
            None => stream::read(&events, self.processes, &self.kinds, cx),
            // What a stream defines for itself names its functions; the rest is the same for all streams.
            Some(own) => {
                let kinds = Definitions::read(&own)?.region_kinds(Some(self.definitions));
                stream::read(&events, self.processes, &kinds, cx)
            }
        }
    }
}

/// Tells what was read and what is missing.
fn report(processes: &Processes, records: &[StreamRecord], cx: &Context<'_>) {
    let sum =
        |of: fn(&Counts) -> u64| records.iter().map(|record| of(&record.counts)).fold(0, u64::saturating_add);
    cx.log(format_args!(
        "{} processes, {} streams, {} events, {} messages",
        processes.list.len(),
        records.len(),
        sum(|counts| counts.events),
        sum(|counts| counts.messages),
    ));
    let tell = |what: &str, count: u64| {
        if count > 0 {
            cx.log(format_args!("{what}: {count}"));
        }
    };
    tell("collective operations, which do not count", sum(|counts| counts.collectives));
    tell("accesses to remote memory, which do not count", sum(|counts| counts.remote_accesses));
    tell("threads without a parent, known by their numbers", processes.threads_by_number);
    let silent = records.iter().flat_map(|record| &record.processes);
    tell(
        "calls of MPI_Sendrecv and the like whose messages are not in the trace",
        silent.map(|process| process.activity.silent_send_receives).fold(0, u64::saturating_add),
    );
    tell(
        "warning: messages from or to processes that belong to no MPI rank, which do not count",
        sum(|counts| counts.without_rank),
    );
    tell(
        "warning: processes that begin and do not end, so that their events may be cut off",
        sum(|counts| counts.unfinished),
    );
    tell("warning: times that go back", sum(|counts| counts.backwards));
    let empty = records.iter().filter(|record| record.counts.events == 0).count();
    tell("warning: streams without events", empty as u64);
}

fn assemble(
    master: &Path,
    processes: &Processes,
    records: &[StreamRecord],
    ticks_per_second: Option<u64>,
) -> Result<TaskGraph, OtfError> {
    let seconds = |ticks: u64| ticks_per_second.map(|per_second| ticks as f64 / per_second as f64);
    let mut matrix = Matrix::default();
    let overflow = |_| OtfError::Overflow { path: master.to_owned() };
    // First and last point in time and ticks of communication, by rank.
    let mut activity: Vec<Option<(u64, u64, u64)>> = vec![None; processes.list.len()];
    let mut whole: Option<(u64, u64)> = None;
    for record in records.iter().flat_map(|record| &record.processes) {
        let (first, last) = record.span;
        whole = Some(whole.map_or((first, last), |(from, to)| (from.min(first), to.max(last))));
        let Some(source) = processes.rank(record.process) else { continue };
        for &(destination, messages, bytes) in &record.sent {
            matrix.add(Edge { source, destination, messages, bytes }).map_err(overflow)?;
        }
        if processes.is_main(record.process) {
            let (from, to, communication) = activity[source as usize].unwrap_or((first, last, 0));
            let communication = communication.saturating_add(record.activity.communication);
            activity[source as usize] = Some((from.min(first), to.max(last), communication));
        }
    }
    let compute = |(from, to, communication): (u64, u64, u64)| (to - from).saturating_sub(communication);
    let list = processes.list.iter().zip(activity);
    Ok(TaskGraph {
        processes: list
            .map(|(process, activity)| Process {
                host: process.host.clone(),
                compute_s: activity.and_then(|activity| seconds(compute(activity))),
            })
            .collect(),
        edges: matrix.into_edges(),
        duration_s: whole.and_then(|(from, to)| seconds(to - from)),
    })
}
