//! From an archive to a task graph.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use hopmap_model::{Context, Error, TaskGraph};
use rayon::prelude::*;

use super::anchor::Anchor;
use super::archive_files::{ArchiveFiles, has_extension};
use super::assemble::{assemble, report};
use super::clock::ClockOffsets;
use super::collectives::CollectiveTally;
use super::communicators::{Communicators, NoReceiver};
use super::definitions::Definitions;
use super::library::{Archive, Ended, LocationReader};
use super::local_definitions::LocalDefinitions;
use super::native;
use super::processes::Processes;
use super::structure::{self, EventFile};
use super::tally::{Question, RemoteTraffic, Tally, Total, Traffic};
use super::visitor::Visitor;
use crate::call_stack::{Activity, CallStack, RegionKind};
use crate::collectives::Convention;
use crate::selection::{Class, Marks, Request, Selection};
use crate::{Collectives, Otf2Error, Reader};

/// What is asked of an archive, and how it is read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Options<'a> {
    pub(crate) reader: Reader,
    pub(crate) collectives: Collectives,
    pub(crate) request: Request<'a>,
}

/// Reads an archive: messages and bytes per ordered pair of processes, counted where they are sent.
pub(crate) fn read(path: &Path, options: Options<'_>, cx: &Context<'_>) -> Result<TaskGraph, Error> {
    let files = ArchiveFiles::find(path)?;
    let anchor = Anchor::read(files.anchor())?;
    let mut archive = open(&files)?;
    let definitions = read_definitions(&files, &anchor, &mut archive)?;
    let contradiction = |what| Otf2Error::Definitions { path: files.definitions(), what };
    let processes = Processes::new(&definitions).map_err(contradiction)?;
    let communicators =
        Communicators::new(&definitions, |location| processes.rank(location)).map_err(contradiction)?;
    let locations = locations_with_events(&files, &definitions, cx)?;
    let ticks = ticks_per_second(&definitions, cx);
    let request = options.request;
    let mut marks = Marks::new(&request);
    let regions = definitions.region_kinds(&mut marks);
    marks.check()?;
    let start = if request.needs_time() { begin(&files, &anchor, &locations)? } else { 0 };
    let selection = match request.is_plain() {
        true => None,
        false => {
            Some(Selection::new(&request, (ticks, start), |name| definitions.communicators_called(name))?)
        }
    };
    let question = Question { selection: selection.as_ref(), collectives: options.collectives };
    let program = Program {
        files: &files,
        anchor: &anchor,
        regions,
        contexts: &definitions.calling_contexts,
        processes: &processes,
        communicators,
        question,
        convention: Convention::of_creator(&anchor.creator),
    };
    let records = program.locations(&locations, options.reader, &mut archive, cx)?;
    report(&processes, &records, options.collectives, cx);
    assemble(&program, &request, records, ticks, cx)
}

/// The time of the first event of the trace.
fn begin(files: &ArchiveFiles, anchor: &Anchor, locations: &BTreeSet<u64>) -> Result<u64, Otf2Error> {
    let mut buffer = Vec::new();
    let mut first = None;
    for &location in locations {
        let time = structure::first_time(&files.events_of(location), anchor.event_chunk, location)?;
        let Some(time) = time else { continue };
        let own = files.definitions_of(location);
        let clock = match own.exists() {
            true => LocalDefinitions::read(&own, anchor.definition_chunk, location, &mut buffer)?.clock,
            false => ClockOffsets::default(),
        };
        let time = clock.correct(time);
        first = Some(first.map_or(time, |first: u64| first.min(time)));
    }
    Ok(first.unwrap_or(0))
}

fn of_library(path: &Path, location: Option<u64>, message: String) -> Otf2Error {
    Otf2Error::Library { path: path.to_owned(), location, message }
}

fn open(files: &ArchiveFiles) -> Result<Archive, Otf2Error> {
    Archive::open(files.anchor()).map_err(|message| of_library(files.anchor(), None, message))
}

fn read_definitions(
    files: &ArchiveFiles,
    anchor: &Anchor,
    archive: &mut Archive,
) -> Result<Definitions, Otf2Error> {
    let path = files.definitions();
    let there = structure::check_global_definitions(&path, anchor.definition_chunk)?;
    if there != anchor.definitions {
        let what = format!("there are {there}, but the anchor file announces {}", anchor.definitions);
        return Err(Otf2Error::Definitions { path, what });
    }
    let (definitions, read) = archive.definitions().map_err(|message| of_library(&path, None, message))?;
    match definitions.contradiction {
        Some(what) => Err(Otf2Error::Definitions { path, what }),
        None if read != there => {
            Err(of_library(&path, None, format!("it read {read} of {there} definitions")))
        }
        None => Ok(definitions),
    }
}

/// Locations that have an event file. Missing ones are an error if there should be events, and superfluous ones
/// are told.
fn locations_with_events(
    files: &ArchiveFiles,
    definitions: &Definitions,
    cx: &Context<'_>,
) -> Result<BTreeSet<u64>, Otf2Error> {
    let id = |path: &Path| path.file_stem().and_then(|stem| stem.to_str()).and_then(|stem| stem.parse().ok());
    let event_files = files.local_files()?.into_iter().filter(|path| has_extension(path, "evt"));
    let (known, strange): (Vec<_>, Vec<_>) = event_files
        .map(|path| id(&path))
        .partition(|id| id.is_some_and(|id| definitions.locations.contains_key(&id)));
    if !strange.is_empty() {
        cx.log(format_args!("warning: event files of no location, which are not read: {}", strange.len()));
    }
    let known: BTreeSet<u64> = known.into_iter().flatten().collect();
    let missing =
        definitions.locations.iter().find(|(id, location)| location.events > 0 && !known.contains(id));
    match missing {
        Some((id, _)) => Err(Otf2Error::Missing { path: files.events_of(*id), location: Some(*id) }),
        None => Ok(known),
    }
}

fn ticks_per_second(definitions: &Definitions, cx: &Context<'_>) -> Option<f64> {
    let ticks = definitions.ticks_per_second.filter(|ticks| *ticks > 0);
    if ticks.is_none() {
        cx.log("warning: the trace does not say how long a tick of its clock is, so there are no times");
    }
    ticks.map(|ticks| ticks as f64)
}

/// What all locations are read with.
pub(super) struct Program<'a> {
    pub(super) files: &'a ArchiveFiles,
    anchor: &'a Anchor,
    regions: HashMap<u32, RegionKind>,
    contexts: &'a HashMap<u32, u32>,
    pub(super) processes: &'a Processes,
    pub(super) communicators: Communicators,
    pub(super) question: Question<'a>,
    /// What the sizes of collective operations count.
    pub(super) convention: Convention,
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
    pub(super) location: u64,
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
    pub(super) events: u64,
    pub(super) unknown: u64,
    /// Whether it has definitions of its own.
    pub(super) defined: bool,
    pub(super) activity: Activity,
    /// First and last point in time.
    pub(super) span: Option<(u64, u64)>,
}

/// Reads `total` locations, on as many threads as the context allows; each thread has a buffer. Of several errors the
/// one of the lowest location is given, whatever the number of threads.
fn read_locations(
    total: usize,
    cx: &Context<'_>,
    read: impl Fn(usize, &mut Vec<u8>) -> Result<Option<Record>, Otf2Error> + Sync,
) -> Result<Vec<Record>, Otf2Error> {
    let next = AtomicUsize::new(0);
    // Locations behind the first that failed need not be read.
    let limit = AtomicUsize::new(total);
    let done = Mutex::new(0);
    let work = |_| {
        let mut records = Vec::new();
        let mut buffer = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= limit.load(Ordering::Relaxed) {
                return records;
            }
            let record = if cx.should_stop() { None } else { read(index, &mut buffer).transpose() };
            let count = |done: &mut usize| {
                *done += 1;
                cx.progress(*done as u64, total as u64);
            };
            match &record {
                Some(Ok(_)) => count(&mut done.lock().unwrap_or_else(PoisonError::into_inner)),
                _ => drop(limit.fetch_min(index, Ordering::Relaxed)),
            }
            records.push((index, record));
        }
    };
    let mut records: Vec<_> =
        (0..cx.threads().clamp(1, total.max(1))).into_par_iter().map(work).flatten().collect();
    records.sort_unstable_by_key(|(index, _)| *index);
    let done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    let stopped = || Err(Otf2Error::Stopped { done, total });
    records.into_iter().map(|(_, record)| record.unwrap_or_else(stopped)).collect()
}

/// What the events of a location come to, whoever read them.
struct Events<'a> {
    file: EventFile,
    tally: Tally<'a>,
    clock: ClockOffsets,
    /// Whether it has definitions of its own.
    defined: bool,
}

impl Program<'_> {
    /// Reads all locations.
    fn locations(
        &self,
        locations: &BTreeSet<u64>,
        reader: Reader,
        archive: &mut Archive,
        cx: &Context<'_>,
    ) -> Result<Vec<Record>, Otf2Error> {
        if reader != Reader::Libotf2 {
            let ids: Vec<u64> = locations.iter().copied().collect();
            let native =
                read_locations(ids.len(), cx, |index, buffer| self.read_natively(ids[index], buffer, cx));
            match native {
                Err(unknown @ Otf2Error::Unknown { .. }) if reader == Reader::Auto => {
                    cx.log(format_args!("{unknown}: reading with libotf2"));
                }
                other => return other,
            }
        }
        let readers =
            archive.locations(locations).map_err(|message| of_library(self.files.anchor(), None, message))?;
        let readers: Vec<Mutex<LocationReader<'_>>> = readers.into_iter().map(Mutex::new).collect();
        read_locations(readers.len(), cx, |index, buffer| {
            let mut reader = readers[index].lock().unwrap_or_else(PoisonError::into_inner);
            self.read_through_library(&mut reader, buffer, cx)
        })
    }

    fn tally(&self) -> Tally<'_> {
        Tally::new(CallStack::new(&self.regions, self.question.selection), self.question)
    }

    /// Reads one location without libotf2; `None` if it was stopped.
    fn read_natively(
        &self,
        location: u64,
        buffer: &mut Vec<u8>,
        cx: &Context<'_>,
    ) -> Result<Option<Record>, Otf2Error> {
        let own_definitions = self.files.definitions_of(location);
        let defined = own_definitions.exists();
        let definitions = match defined {
            true => {
                let chunk_size = self.anchor.definition_chunk;
                LocalDefinitions::read(&own_definitions, chunk_size, location, buffer)?
            }
            false => LocalDefinitions::default(),
        };
        let mut tally = self.tally();
        let path = self.files.events_of(location);
        let chunks = (location, self.anchor.event_chunk);
        let told = (&definitions, self.contexts);
        match native::read_events(&path, chunks, told, &mut tally, buffer, || cx.should_stop())? {
            native::Ended::Early => Ok(None),
            native::Ended::Complete(file) => {
                let clock = definitions.clock;
                self.record(location, Events { file, tally, clock, defined }).map(Some)
            }
        }
    }

    /// Reads one location with libotf2; `None` if it was stopped.
    fn read_through_library(
        &self,
        reader: &mut LocationReader<'_>,
        buffer: &mut Vec<u8>,
        cx: &Context<'_>,
    ) -> Result<Option<Record>, Otf2Error> {
        let location = reader.id();
        let path = self.files.events_of(location);
        let file = structure::check_events(&path, self.anchor.event_chunk, location, buffer)?;
        let own_definitions = self.files.definitions_of(location);
        let defined = own_definitions.exists();
        let mut clock = ClockOffsets::default();
        // EZTrace writes files without any definition.
        if defined
            && structure::check_local_definitions(&own_definitions, self.anchor.definition_chunk, location)?
                > 0
        {
            let definitions = reader.definitions();
            clock = definitions.map_err(|message| of_library(&own_definitions, Some(location), message))?;
        }
        let mut tally = self.tally();
        let ended = reader.events(&mut tally, self.contexts, || cx.should_stop());
        let ended = ended.map_err(|message| of_library(&path, Some(location), message))?;
        match ended {
            Ended::Early if tally.bad_event().is_none() => return Ok(None),
            Ended::Complete(read) if read != file.events && tally.bad_event().is_none() => {
                let message = format!("it read {read} of {} events", file.events);
                return Err(of_library(&path, Some(location), message));
            }
            _ => {}
        }
        self.record(location, Events { file, tally, clock, defined }).map(Some)
    }

    fn record(&self, location: u64, events: Events<'_>) -> Result<Record, Otf2Error> {
        let Events { file, tally, clock, defined } = events;
        let path = self.files.events_of(location);
        if let Some(bad) = tally.bad_event() {
            return Err(Otf2Error::Event { path, location, event: bad.event, what: bad.what.into() });
        }
        let span = file.span.map(|(first, last)| (clock.correct(first), clock.correct(last)));
        let messages = tally.traffic.iter().map(|traffic| traffic.total.messages).sum();
        let sent = self.receivers(&path, location, &tally)?;
        let mut record = Record {
            location,
            sent,
            fetched: Vec::new(),
            messages,
            without_process: if self.processes.rank(location).is_some() { 0 } else { messages },
            to_nobody: tally.to_nobody,
            accesses: 0,
            within_process: 0,
            events: file.events,
            unknown: file.unknown,
            defined,
            activity: Activity::default(),
            span,
            collectives: CollectiveTally::default(),
        };
        self.add_remote(&path, &tally, &mut record)?;
        record.collectives = tally.collectives;
        record.activity = tally.stack.finish(span.unwrap_or_default());
        Ok(record)
    }

    fn bad(path: &Path, location: u64) -> impl Fn(u64, String) -> Otf2Error {
        move |event, what| Otf2Error::Event { path: path.to_owned(), location, event, what }
    }

    /// Who received what a location sent.
    fn receivers(&self, path: &Path, location: u64, tally: &Tally<'_>) -> Result<Vec<Part>, Otf2Error> {
        let bad = Self::bad(path, location);
        if let Some(first) = tally.traffic.first().filter(|_| !self.processes.ranked) {
            return Err(bad(first.first_event, "it sends, but the archive defines no MPI ranks".into()));
        }
        let Some(sender) = self.processes.rank(location) else { return Ok(Vec::new()) };
        let part = |traffic: &Traffic| {
            let peer = self.communicators.receiver(traffic.communicator, sender, traffic.receiver);
            let peer = peer.map_err(|reason| bad(traffic.first_event, reason.to_string()))?;
            Ok(Part { peer, class: traffic.class, total: traffic.total })
        };
        tally.traffic.iter().map(part).collect()
    }

    /// Whose memory a location wrote and read.
    fn add_remote(&self, path: &Path, tally: &Tally<'_>, record: &mut Record) -> Result<(), Otf2Error> {
        let bad = Self::bad(path, record.location);
        for &RemoteTraffic { window, remote, class, put, got, first_event } in &tally.remote {
            let wrong = |reason: NoReceiver| bad(first_event, reason.to_string());
            let accesses = put.messages + got.messages;
            record.accesses += accesses;
            let rank = self.processes.rank(record.location);
            let communicator = self.communicators.of_window(window).map_err(wrong)?;
            let (Some(rank), Some(communicator)) = (rank, communicator) else {
                record.within_process += accesses;
                continue;
            };
            if self.question.selection.is_some_and(|selection| !selection.counts_communicator(communicator)) {
                continue;
            }
            let peer = self.communicators.receiver(communicator, rank, remote).map_err(wrong)?;
            for (total, parts) in [(put, &mut record.sent), (got, &mut record.fetched)] {
                if total.messages > 0 {
                    parts.push(Part { peer, class, total });
                }
            }
        }
        Ok(())
    }
}
