//! From an archive to a task graph.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use hopmap_model::{Context, Edge, Process, TaskGraph};
use rayon::prelude::*;

use super::anchor::Anchor;
use super::archive_files::{ArchiveFiles, has_extension};
use super::clock::ClockOffsets;
use super::communicators::Communicators;
use super::definitions::Definitions;
use super::library::{Archive, Ended, LocationReader};
use super::local_definitions::LocalDefinitions;
use super::native;
use super::processes::Processes;
use super::structure::{self, EventFile};
use super::tally::{Tally, Traffic};
use crate::call_stack::{Activity, CallStack, RegionKind};
use crate::matrix::Matrix;
use crate::{Otf2Error, Reader};

/// Reads an archive: messages and bytes per ordered pair of processes, counted where they are sent.
pub(crate) fn read(path: &Path, reader: Reader, cx: &Context<'_>) -> Result<TaskGraph, Otf2Error> {
    let files = ArchiveFiles::find(path)?;
    let anchor = Anchor::read(files.anchor())?;
    let mut archive = open(&files)?;
    let definitions = read_definitions(&files, &anchor, &mut archive)?;
    let contradiction = |what| Otf2Error::Definitions { path: files.definitions(), what };
    let processes = Processes::new(&definitions).map_err(contradiction)?;
    let communicators = Communicators::new(&definitions, processes.list.len()).map_err(contradiction)?;
    let program = Program {
        files: &files,
        anchor: &anchor,
        regions: definitions.region_kinds(),
        contexts: &definitions.calling_contexts,
        processes: &processes,
        communicators,
    };
    let locations = locations_with_events(&files, &definitions, cx)?;
    let records = program.locations(&locations, reader, &mut archive, cx)?;
    report(&processes, &records, cx);
    assemble(&program, records, ticks_per_second(&definitions, cx))
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
struct Program<'a> {
    files: &'a ArchiveFiles,
    anchor: &'a Anchor,
    regions: HashMap<u32, RegionKind>,
    contexts: &'a HashMap<u32, u32>,
    processes: &'a Processes,
    communicators: Communicators,
}

/// What one location did.
#[derive(Debug)]
struct Record {
    location: u64,
    /// What it sent, by rank of the receiver; empty if it belongs to no process.
    sent: Vec<(u32, u64, u64)>,
    /// Number of messages it sent, and those among them that count for no process or that nobody receives.
    messages: u64,
    without_process: u64,
    to_nobody: u64,
    events: u64,
    unknown: u64,
    /// Whether it has definitions of its own.
    defined: bool,
    activity: Activity,
    /// First and last point in time.
    span: Option<(u64, u64)>,
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
        read_locations(readers.len(), cx, |index, _| {
            let mut reader = readers[index].lock().unwrap_or_else(PoisonError::into_inner);
            self.read_through_library(&mut reader, cx)
        })
    }

    fn tally(&self) -> Tally<'_> {
        Tally::new(CallStack::new(&self.regions), self.contexts)
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
        match native::read_events(&path, chunks, &definitions, &mut tally, buffer, || cx.should_stop())? {
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
        cx: &Context<'_>,
    ) -> Result<Option<Record>, Otf2Error> {
        let location = reader.id();
        let path = self.files.events_of(location);
        let file = structure::check_events(&path, self.anchor.event_chunk, location)?;
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
        let ended = reader.events(&mut tally, || cx.should_stop());
        let ended = ended.map_err(|message| of_library(&path, Some(location), message))?;
        match ended {
            Ended::Early if tally.bad_event.is_none() => return Ok(None),
            Ended::Complete(read) if read != file.events && tally.bad_event.is_none() => {
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
        if let Some(bad) = tally.bad_event {
            return Err(Otf2Error::Event { path, location, event: bad.event, what: bad.what.into() });
        }
        let span = file.span.map(|(first, last)| (clock.correct(first), clock.correct(last)));
        let (messages, to_nobody) =
            (tally.traffic.iter().map(|traffic| traffic.messages).sum(), tally.to_nobody);
        let sent = self.receivers(&path, location, &tally)?;
        Ok(Record {
            location,
            without_process: if self.processes.rank(location).is_some() { 0 } else { messages },
            sent,
            messages,
            to_nobody,
            events: file.events,
            unknown: file.unknown,
            defined,
            activity: tally.stack.finish(span.map_or(0, |(_, last)| last)),
            span,
        })
    }

    /// Who received what a location sent.
    fn receivers(
        &self,
        path: &Path,
        location: u64,
        tally: &Tally<'_>,
    ) -> Result<Vec<(u32, u64, u64)>, Otf2Error> {
        let bad = |event, what| Otf2Error::Event { path: path.to_owned(), location, event, what };
        if let Some(first) = tally.traffic.first().filter(|_| !self.processes.mpi) {
            return Err(bad(first.first_event, "it sends, but the archive defines no MPI ranks".into()));
        }
        let Some(sender) = self.processes.rank(location) else { return Ok(Vec::new()) };
        let receiver = |traffic: &Traffic| {
            let receiver = self.communicators.receiver(traffic.communicator, sender, traffic.receiver);
            let receiver = receiver.map_err(|reason| bad(traffic.first_event, reason.to_string()))?;
            Ok((receiver, traffic.messages, traffic.bytes))
        };
        tally.traffic.iter().map(receiver).collect()
    }
}

/// Tells what was read and what is missing.
fn report(processes: &Processes, records: &[Record], cx: &Context<'_>) {
    let sum = |of: fn(&Record) -> u64| records.iter().map(of).fold(0, u64::saturating_add);
    cx.log(format_args!(
        "{} processes, {} locations, {} events, {} messages",
        processes.list.len(),
        records.len(),
        sum(|record| record.events),
        sum(|record| record.messages),
    ));
    let warn = |what: &str, count: u64| {
        if count > 0 {
            cx.log(format_args!("warning: {what}: {count}"));
        }
    };
    warn(
        "calls of MPI_Sendrecv and the like whose messages are not in the trace (EZTrace does not record them), so that they are in no matrix",
        sum(|record| record.activity.silent_send_receives),
    );
    warn("messages to MPI_PROC_NULL, which do not count", sum(|record| record.to_nobody));
    warn(
        "messages sent by locations that belong to no MPI rank, or to several, which do not count",
        sum(|record| record.without_process),
    );
    warn("events of unknown kinds, which were passed over", sum(|record| record.unknown));
    let undefined = records.iter().filter(|record| !record.defined && record.events > 0).count();
    warn("locations without a .def file, whose ids and times were taken as they are", undefined as u64);
}

fn assemble(
    program: &Program<'_>,
    records: Vec<Record>,
    ticks_per_second: Option<f64>,
) -> Result<TaskGraph, Otf2Error> {
    let seconds = |ticks: u64| ticks_per_second.map(|per_second| ticks as f64 / per_second);
    let mut processes: Vec<Process> = program
        .processes
        .list
        .iter()
        .map(|process| Process { host: process.host.clone(), compute_s: None })
        .collect();
    let spans = || records.iter().filter_map(|record| record.span);
    let ends = spans().map(|(first, _)| first).min().zip(spans().map(|(_, last)| last).max());
    let mut matrix = Matrix::with_capacity(records.iter().map(|record| record.sent.len()).sum());
    let overflow = |_| Otf2Error::Overflow { path: program.files.anchor().to_owned() };
    // What is copied into the matrix is let go of at once.
    for record in records {
        let Some(source) = program.processes.rank(record.location) else { continue };
        for (destination, messages, bytes) in record.sent {
            matrix.add(Edge { source, destination, messages, bytes }).map_err(overflow)?;
        }
        if let Some((first, last)) = record.span.filter(|_| program.processes.is_main(record.location)) {
            let compute = last.saturating_sub(first).saturating_sub(record.activity.communication);
            processes[source as usize].compute_s = seconds(compute);
        }
    }
    Ok(TaskGraph {
        processes,
        edges: matrix.into_edges(),
        duration_s: ends.and_then(|(first, last)| seconds(last.saturating_sub(first))),
    })
}
