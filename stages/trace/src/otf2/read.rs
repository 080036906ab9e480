//! From an archive to a task graph.

use std::collections::HashMap;
use std::path::Path;

use hopmap_model::{Context, Error, TaskGraph};

use super::assemble::{assemble, report};
use super::collectives::CollectiveTally;
use super::communicators::NoReceiver;
use super::program::{Program, Visited, read_by};
use super::tally::{Question, RemoteTraffic, Tally, Total, Traffic};
use crate::call_stack::{Activity, CallStack, RegionKind};
use crate::selection::{Class, Marks, Request};
use crate::{Algorithms, Collectives, Otf2Error, Reader};

/// What is asked of an archive, and how it is read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Options<'a> {
    pub(crate) reader: Reader,
    pub(crate) collectives: Collectives,
    pub(crate) algorithms: Algorithms,
    pub(crate) request: Request<'a>,
    /// Whether events that are cut off are an error.
    pub(crate) whole: bool,
}

/// Reads an archive: messages and bytes per ordered pair of processes, counted where they are sent.
pub(crate) fn read(path: &Path, options: Options<'_>, cx: &Context<'_>) -> Result<TaskGraph, Error> {
    let program = Program::open(path, options.whole, cx)?;
    let request = options.request;
    let mut marks = Marks::new(&request);
    let regions = program.definitions.region_kinds(&mut marks);
    marks.check()?;
    let selection = program.selection(&request)?;
    let question = Question { selection: selection.as_ref(), collectives: options.collectives };
    let counting = Counting { program: &program, regions, question };
    let records = read_by(options.reader, cx, |way| {
        let close = |visited, tally| counting.record(visited, tally);
        program.visit(way, cx, |_| counting.tally(), close)
    })?;
    report(&program, &records, options.collectives, cx);
    assemble(&program, &request, (question, options.algorithms), records, cx)
}

/// Messages of one class between a process and another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part {
    /// Rank of the other process.
    pub(super) peer: u32,
    /// The heading they count under.
    pub(super) class: Class,
    /// How many there are.
    pub(super) total: Total,
}

/// What one location did.
#[derive(Debug)]
pub(super) struct Record {
    pub(super) visited: Visited,
    /// What it sent, and what it put into remote memory; empty if it belongs to no process.
    pub(super) sent: Vec<Part>,
    /// What it fetched from remote memory.
    pub(super) fetched: Vec<Part>,
    /// The collective operations it took part in.
    pub(super) collectives: CollectiveTally,
    /// Number of messages it sent, and those among them that count for no process or that nobody receives.
    pub(super) messages: u64,
    pub(super) without_process: u64,
    pub(super) to_nobody: u64,
    /// Number of accesses to remote memory, and those among them within a process.
    pub(super) accesses: u64,
    pub(super) within_process: u64,
    pub(super) activity: Activity,
}

/// What all locations are counted with.
struct Counting<'a> {
    program: &'a Program,
    regions: HashMap<u32, RegionKind>,
    question: Question<'a>,
}

impl Counting<'_> {
    fn tally(&self) -> Tally<'_> {
        Tally::new(CallStack::new(&self.regions, self.question.selection), self.question)
    }

    fn record(&self, visited: Visited, tally: Tally<'_>) -> Result<Record, Otf2Error> {
        let (location, span) = (visited.location, visited.span);
        let messages = tally.traffic.iter().map(|traffic| traffic.total.messages).sum();
        let sent = self.receivers(location, &tally)?;
        let mut record = Record {
            visited,
            sent,
            fetched: Vec::new(),
            collectives: CollectiveTally::default(),
            messages,
            without_process: if self.program.processes.rank(location).is_some() { 0 } else { messages },
            to_nobody: tally.to_nobody,
            accesses: 0,
            within_process: 0,
            activity: Activity::default(),
        };
        self.add_remote(&tally, &mut record)?;
        record.collectives = tally.collectives;
        record.activity = tally.stack.finish(span.unwrap_or_default());
        Ok(record)
    }

    /// Who received what a location sent.
    fn receivers(&self, location: u64, tally: &Tally<'_>) -> Result<Vec<Part>, Otf2Error> {
        let bad = |event, what: String| self.program.bad_event(location, event, what);
        if let Some(first) = tally.traffic.first().filter(|_| !self.program.processes.ranked) {
            return Err(bad(first.first_event, "it sends, but the archive defines no MPI ranks".into()));
        }
        let Some(sender) = self.program.processes.rank(location) else { return Ok(Vec::new()) };
        let part = |traffic: &Traffic| {
            let peer = self.program.communicators.receiver(traffic.communicator, sender, traffic.receiver);
            let peer = peer.map_err(|reason| bad(traffic.first_event, reason.to_string()))?;
            Ok(Part { peer, class: traffic.class, total: traffic.total })
        };
        tally.traffic.iter().map(part).collect()
    }

    /// Whose memory a location wrote and read.
    fn add_remote(&self, tally: &Tally<'_>, record: &mut Record) -> Result<(), Otf2Error> {
        let location = record.visited.location;
        let bad = |event, what: String| self.program.bad_event(location, event, what);
        for &RemoteTraffic { window, remote, class, put, got, first_event } in &tally.remote {
            let wrong = |reason: NoReceiver| bad(first_event, reason.to_string());
            let accesses = put.messages + got.messages;
            record.accesses += accesses;
            let rank = self.program.processes.rank(location);
            let communicator = self.program.communicators.of_window(window).map_err(wrong)?;
            let (Some(rank), Some(communicator)) = (rank, communicator) else {
                record.within_process += accesses;
                continue;
            };
            if self.question.selection.is_some_and(|selection| !selection.counts_communicator(communicator)) {
                continue;
            }
            let peer = self.program.communicators.receiver(communicator, rank, remote).map_err(wrong)?;
            for (total, parts) in [(put, &mut record.sent), (got, &mut record.fetched)] {
                if total.messages > 0 {
                    parts.push(Part { peer, class, total });
                }
            }
        }
        Ok(())
    }
}
