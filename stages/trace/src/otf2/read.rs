//! Builds the task graph of an archive: counts every location, then combines the counts.

use std::collections::HashMap;
use std::path::Path;

use hopmap_collectives::Convention;
use hopmap_model::{CollectiveTable, Context, Edge, Error, TaskGraph};

use super::accumulator::{Accumulator, Question, RemoteTraffic, Total, Traffic};
use super::archive_reader::{ArchiveReader, Overview, Visited, read_by, warn};
use super::collectives::{CollectiveAccumulator, CollectiveCounts, Expanded, Expansion};
use super::communicators::NoReceiver;
use crate::archive::log_count;
use crate::call_stack::{Activity, CallStack};
use crate::error::TraceError;
use crate::matrix::{MessageClasses, Overflow, Work};
use crate::params::{Algorithms, Collectives, Reader};
use crate::selection::{Class, Marks, RegionKind, Request, Selection};

/// Request to the reader of an archive.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Options<'a> {
    pub(crate) reader: Reader,
    pub(crate) collectives: Collectives,
    pub(crate) algorithms: Algorithms,
    pub(crate) request: Request<'a>,
    /// Whether truncated events are an error.
    pub(crate) complete: bool,
}

/// Reads an archive: messages and bytes per ordered pair of processes, counted at the sender.
pub(crate) fn read(path: &Path, options: Options<'_>, cx: &Context<'_>) -> Result<TaskGraph, Error> {
    let archive = ArchiveReader::open(path, options.complete, cx)?;
    let request = options.request;
    let mut marks = Marks::new(&request);
    let regions = archive.definitions.region_kinds(&mut marks);
    marks.check()?;
    let selection = archive.selection(&request)?;
    let question = Question { selection: selection.as_ref(), collectives: options.collectives };
    let counting = Counting { archive: &archive, regions, question };
    let records = read_by(options.reader, cx, |event_reader| {
        let close = |visited, accumulator| counting.record(visited, accumulator, cx);
        archive.visit(event_reader, cx, |_| counting.accumulator(), close)
    })?;
    report(&archive, &records, options.collectives, cx);
    assemble(&archive, &request, (question, options.algorithms), records, cx)
}

/// Messages of one class between a process and another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Part {
    /// Rank of the other process.
    peer: u32,
    /// Their class.
    class: Class,
    /// Number of messages and bytes.
    total: Total,
}

/// Counts of one location.
#[derive(Debug)]
struct Record {
    visited: Visited,
    /// Sent messages and writes to remote memory; empty without a process.
    sent: Vec<Part>,
    /// Reads of remote memory.
    fetched: Vec<Part>,
    /// The collective operations of the location.
    collectives: CollectiveAccumulator,
    /// Number of sent messages, and of those without a process or to `MPI_PROC_NULL`.
    messages: u64,
    without_process: u64,
    to_proc_null: u64,
    /// Number of sends that were cancelled, which do not count.
    cancelled: u64,
    /// Number of remote memory accesses, and of those within a process.
    accesses: u64,
    within_process: u64,
    activity: Activity,
}

/// Shared input of all locations.
struct Counting<'a> {
    archive: &'a ArchiveReader,
    regions: HashMap<u32, RegionKind>,
    question: Question<'a>,
}

impl Counting<'_> {
    fn accumulator(&self) -> Accumulator<'_> {
        Accumulator::new(CallStack::new(&self.regions, self.question.selection), self.question)
    }

    fn record(
        &self,
        visited: Visited,
        mut accumulator: Accumulator<'_>,
        cx: &Context<'_>,
    ) -> Result<Record, TraceError> {
        let (location, span) = (visited.location, visited.span);
        let mut cancelled = 0;
        if accumulator.cancellations > 0 {
            let sends = self.archive.visit_cancelled(location, self.accumulator(), cx)?;
            cancelled = accumulator.remove(&sends);
        }
        let messages = accumulator.traffic.iter().map(|traffic| traffic.total.messages).sum();
        let sent = self.receivers(location, &accumulator)?;
        let mut record = Record {
            visited,
            sent,
            fetched: Vec::new(),
            collectives: CollectiveAccumulator::default(),
            messages,
            without_process: if self.archive.processes.rank(location).is_some() { 0 } else { messages },
            to_proc_null: accumulator.to_proc_null,
            cancelled,
            accesses: 0,
            within_process: 0,
            activity: Activity::default(),
        };
        self.add_remote(&accumulator, &mut record)?;
        record.collectives = accumulator.collectives;
        record.activity = accumulator.stack.finish(span.unwrap_or_default());
        Ok(record)
    }

    /// The receivers of the messages of a location.
    fn receivers(&self, location: u64, accumulator: &Accumulator<'_>) -> Result<Vec<Part>, TraceError> {
        let bad = |event, what: String| self.archive.bad_event(location, event, what);
        if let Some(first) = accumulator.traffic.first().filter(|_| !self.archive.processes.ranked) {
            return Err(bad(first.first_event, "it sends, but the archive does not define MPI ranks".into()));
        }
        let Some(sender) = self.archive.processes.rank(location) else { return Ok(Vec::new()) };
        let part = |traffic: &Traffic| {
            let peer = self.archive.communicators.receiver(traffic.communicator, sender, traffic.receiver);
            let peer = peer.map_err(|reason| bad(traffic.first_event, reason.to_string()))?;
            Ok(Part { peer, class: traffic.class, total: traffic.total })
        };
        accumulator.traffic.iter().map(part).collect()
    }

    /// Adds accesses of a location to remote memory.
    fn add_remote(&self, accumulator: &Accumulator<'_>, record: &mut Record) -> Result<(), TraceError> {
        let location = record.visited.location;
        let bad = |event, what: String| self.archive.bad_event(location, event, what);
        for &RemoteTraffic { window, remote, class, put, got, first_event } in &accumulator.remote {
            let wrong = |reason: NoReceiver| bad(first_event, reason.to_string());
            let accesses = put.messages + got.messages;
            record.accesses += accesses;
            let rank = self.archive.processes.rank(location);
            let communicator = self.archive.communicators.of_window(window).map_err(wrong)?;
            let (Some(rank), Some(communicator)) = (rank, communicator) else {
                record.within_process += accesses;
                continue;
            };
            if self.question.selection.is_some_and(|selection| !selection.counts_communicator(communicator)) {
                continue;
            }
            let peer = self.archive.communicators.receiver(communicator, rank, remote).map_err(wrong)?;
            for (total, parts) in [(put, &mut record.sent), (got, &mut record.fetched)] {
                if total.messages > 0 {
                    parts.push(Part { peer, class, total });
                }
            }
        }
        Ok(())
    }
}

/// Logs what was read and what is missing.
fn report(archive: &ArchiveReader, records: &[Record], collectives: Collectives, cx: &Context<'_>) {
    let mut overview = Overview::default();
    records.iter().for_each(|record| overview.add(&record.visited));
    let sum = |of: fn(&Record) -> u64| records.iter().map(of).fold(0, u64::saturating_add);
    cx.log(format_args!(
        "{} processes, {} locations, {} events, {} messages",
        archive.processes.list.len(),
        overview.locations,
        overview.events,
        sum(|record| record.messages),
    ));
    let warn = |what: &str, count: u64| warn(cx, what, count);
    warn(
        "calls of MPI_Sendrecv and its variants whose messages are missing from the trace and the matrix (EZTrace does not record them)",
        sum(|record| record.activity.silent_send_receives),
    );
    if collectives == Collectives::Ignore {
        let message = "collective operations, which are not counted (`collectives = \"expand\"` counts them)";
        log_count(cx, message, sum(|record| record.collectives.ignored));
    }
    warn(
        "collective operations of unknown size, which are not counted",
        sum(|record| record.collectives.unknown),
    );
    log_count(cx, "cancelled sends, which are not counted", sum(|record| record.cancelled));
    let counted = sum(|record| record.accesses - record.within_process);
    log_count(cx, "remote memory accesses, which count as messages", counted);
    warn(
        "memory accesses within a process or of locations without a rank, which are not counted",
        sum(|record| record.within_process),
    );
    warn("messages to MPI_PROC_NULL, which are not counted", sum(|record| record.to_proc_null));
    warn(
        "messages of locations that do not belong to exactly one MPI rank, which are not counted",
        sum(|record| record.without_process),
    );
    overview.warn(cx);
}

/// Logs the statistics of collective operations.
fn report_expanded(expanded: Expanded, are_messages: bool, cx: &Context<'_>) {
    let Expanded { operations, messages, elsewhere, incomplete, uneven, unfit } = expanded;
    match are_messages {
        true => cx.log(format_args!("collective operations: {operations}, expanded to {messages} messages")),
        false => {
            cx.log(format_args!(
                "collective operations, which are kept and not counted as messages: {operations}"
            ));
        }
    }
    let message = "collective operations with too few bytes or processes for the chosen algorithm, which follow the rules";
    log_count(cx, message, unfit);
    let message =
        "records of collective operations on intercommunicators or within a process, which are not counted";
    warn(cx, message, elsewhere);
    let message = "collective operations that some of their processes did not record, which count as recorded by one process";
    warn(cx, message, uneven);
    let message = "collective operations with different records in their processes, which are not counted";
    warn(cx, message, incomplete);
}

/// Combines the collective operations of all processes, and adds the messages of their algorithms, if any.
fn expand(
    archive: &ArchiveReader,
    (selection, algorithms): (Option<&Selection>, Option<Algorithms>),
    accumulators: Vec<(u32, CollectiveAccumulator)>,
    classes: &mut MessageClasses,
    cx: &Context<'_>,
) -> Result<CollectiveTable, Overflow> {
    let convention = Convention::of_creator(&archive.anchor.creator);
    let expansion = Expansion { communicators: &archive.communicators, convention, selection, algorithms };
    let mut counts = CollectiveCounts::default();
    let expanded = expansion.expand(accumulators, &mut counts, |class, edge| classes.add(class, edge))?;
    report_expanded(expanded, algorithms.is_some(), cx);
    let message =
        "collective operations with blocks of different lengths, which are kept with the mean length";
    log_count(cx, message, counts.uneven());
    Ok(counts.into_table(&archive.communicators))
}

/// Combines the records of all locations.
fn assemble(
    archive: &ArchiveReader,
    request: &Request<'_>,
    (question, algorithms): (Question<'_>, Algorithms),
    records: Vec<Record>,
    cx: &Context<'_>,
) -> Result<TaskGraph, Error> {
    let spans = || records.iter().filter_map(|record| record.visited.span);
    let ends = spans().map(|(first, _)| first).min().zip(spans().map(|(_, last)| last).max());
    let duration = ends.map(|(first, last)| last.saturating_sub(first));
    let selection = question.selection;
    if let Some(selection) = selection {
        selection.check_length(duration.unwrap_or(0))?;
    }
    let overflow = |_: Overflow| {
        let anchor = archive.files.anchor().display();
        TraceError::refused(format!("the messages or bytes of all pairs in `{anchor}` exceed 64 bits"), "")
    };
    let mut classes = MessageClasses::new(request, records.iter().map(|record| record.sent.len()).sum());
    let mut accumulators = Vec::new();
    let mut work = vec![Work::default(); archive.processes.list.len()];
    // Records are freed as soon as they are in the matrix.
    for record in records {
        let Some(rank) = archive.processes.rank(record.visited.location) else { continue };
        for part in record.sent {
            classes.add(part.class, edge(rank, part.peer, part)).map_err(overflow)?;
        }
        for part in record.fetched {
            classes.add(part.class, edge(part.peer, rank, part)).map_err(overflow)?;
        }
        if question.collectives != Collectives::Ignore {
            accumulators.push((rank, record.collectives));
        }
        if let Some(span) = record.visited.span.filter(|_| archive.processes.is_main(record.visited.location))
        {
            let activity = record.activity;
            let communicating = selection.is_none().then_some((activity.communication, activity.collective));
            work[rank as usize] = Work { compute: Some(activity.computing(span)), communicating };
        }
    }
    let mut collectives = CollectiveTable::default();
    if question.collectives != Collectives::Ignore {
        let algorithms = (question.collectives == Collectives::Expand).then_some(algorithms);
        collectives =
            expand(archive, (selection, algorithms), accumulators, &mut classes, cx).map_err(overflow)?;
    }
    let hosts = archive.processes.list.iter().map(|process| process.host.clone());
    let ticks = (duration, archive.ticks_per_second);
    let graph = classes.into_graph((request, selection), (hosts, &work), ticks);
    // EZTrace leaves the creator empty.
    if archive.anchor.creator.is_empty() {
        let to_itself = graph.edges.iter().filter(|edge| edge.source == edge.destination);
        let message =
            "messages from ranks to themselves (EZTrace also records those on intercommunicators like this)";
        warn(cx, message, to_itself.map(|edge| edge.messages).fold(0, u64::saturating_add));
    }
    Ok(TaskGraph { collectives, ..graph })
}

fn edge(source: u32, destination: u32, part: Part) -> Edge {
    Edge { source, destination, messages: part.total.messages, bytes: part.total.bytes }
}
