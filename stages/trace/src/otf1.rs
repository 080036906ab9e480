//! OTF 1 archives, as written by VampirTrace and the `vt` wrappers of Open MPI.
//!
//! An archive is a master file `X.otf`, the definitions `X.0.def` and the events `X.N.events` of every
//! stream `N`, all line-based text, optionally compressed. Format: the sources of libotf (Open Trace Format)
//! 1.12.5; use by VampirTrace: the sources of VampirTrace 5.14.
//!
//! The master file lists the processes of every stream, a line `STREAM:PROCESS,PROCESS,…` each
//! (`OTF_MasterControl.c`). `X.N.def` has the local definitions of a stream. A compressed file has the
//! extension `.z`; if both exist, the plain one is used, as in libotf (`OTF_Filenames.c`, `OTF_File.c`).

mod definitions;
mod fields;
mod stream;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use hopmap_model::{Context, Edge, Error, InputPath, TaskGraph, open_input};
use hopmap_text::FileError;

use crate::archive::{has_extension, log_count, on_threads, only_one};
use crate::error::TraceError;
use crate::matrix::{MessageClasses, Overflow, Work};
use crate::selection::{Marks, RegionKind, Request, Selection};
use definitions::{Definitions, Processes};
use fields::{Fault, Fields, in_record, open_lines};
use stream::{Counts, ProcessRecord, Sent, StreamRecord};

/// All files of an archive that are read, under names that do not depend on the name of the archive.
pub(crate) fn files(path: &Path) -> Result<Vec<InputPath>, TraceError> {
    ArchiveFiles::find(path)?.list()
}

/// Paths of the files of an archive.
#[derive(Debug)]
struct ArchiveFiles {
    master: PathBuf,
    definitions: PathBuf,
    /// The processes of every stream, as the master file lists them.
    streams: BTreeMap<u32, Vec<u32>>,
}

impl ArchiveFiles {
    /// The archive of a master file, or the only one in a folder.
    fn find(path: &Path) -> Result<Self, TraceError> {
        let unreadable = |error| FileError::unreadable(path, &error);
        if !fs::metadata(path).map_err(unreadable)?.is_dir() {
            return Self::of_master(path.to_owned());
        }
        Self::of_master(only_one(path, ("otf", "master"), 0)?)
    }

    fn of_master(master: PathBuf) -> Result<Self, TraceError> {
        if has_extension(&master, "otf2") {
            let help = "use the stage `trace/otf2`; the extension of OTF 1 master files is `.otf`";
            return Err(TraceError::of(&master, "is an OTF2 archive", help));
        }
        let refuse = |reason| {
            let problem = format!("is not the master file of an OTF 1 archive: {reason}");
            let help = "the master file NAME.otf is in one folder with NAME.0.def, NAME.1.events, NAME.2.events and so on";
            Err(TraceError::of(&master, problem, help))
        };
        if !has_extension(&master, "otf") {
            return refuse("its extension is not `.otf`");
        }
        match first_bytes(&master)?.as_slice() {
            b"OTTO" => return refuse("it is an OpenType font"),
            [] => return refuse("it is empty"),
            [b'0'..=b'9' | b'a'..=b'f' | b' ' | b'\t' | b'\n' | b'i', ..] => {}
            _ => return refuse("it does not start like one"),
        }
        let streams = read_master(&master)?;
        if streams.is_empty() {
            return refuse("it does not list streams");
        }
        let definitions = master.with_extension("0.def");
        let definitions = present(&definitions).ok_or_else(|| {
            let help = "copy all files of the archive; `vtunify` of VampirTrace writes the definitions";
            TraceError::of(&definitions, "is missing, also with `.z`", help)
        })?;
        Ok(Self { master, definitions, streams })
    }

    /// The events of a stream.
    fn events_of(&self, stream: u32) -> Result<PathBuf, TraceError> {
        let path = self.master.with_extension(format!("{stream:x}.events"));
        present(&path).ok_or_else(|| {
            let problem = format!("is missing (stream {stream:x}), also with `.z`");
            let help =
                "copy all files of the archive; if the stream does not have events, create an empty file with this name";
            TraceError::of(&path, problem, help)
        })
    }

    /// The local definitions of a stream, if any.
    fn definitions_of(&self, stream: u32) -> Option<PathBuf> {
        present(&self.master.with_extension(format!("{stream:x}.def")))
    }

    /// All files, sorted by their names with `archive` as the name of the archive.
    fn list(&self) -> Result<Vec<InputPath>, TraceError> {
        let mut files = vec![
            InputPath::named(&self.master, "archive.otf"),
            InputPath::named(&self.definitions, format!("archive.0.{}", kind(&self.definitions, "def"))),
        ];
        for stream in self.streams.keys() {
            let events = self.events_of(*stream)?;
            let name = format!("archive.{stream:x}.{}", kind(&events, "events"));
            files.push(InputPath::named(events, name));
            if let Some(definitions) = self.definitions_of(*stream) {
                let name = format!("archive.{stream:x}.{}", kind(&definitions, "def"));
                files.push(InputPath::named(definitions, name));
            }
        }
        files.sort_by(|one, other| one.name().cmp(&other.name()));
        Ok(files)
    }
}

/// The processes of every stream.
fn read_master(path: &Path) -> Result<BTreeMap<u32, Vec<u32>>, TraceError> {
    let mut streams = BTreeMap::<u32, Vec<u32>>::new();
    let mut listed = BTreeSet::new();
    let mut lines = open_lines(path)?;
    while let Some(line) = lines.next_bytes()? {
        let mut fields = Fields::new(line.text);
        if fields.is_empty() {
            continue;
        }
        if fields.first() == Some(b'i') {
            let problem = "was written through the I/O forwarding layer IOFSL, which is not supported";
            return Err(TraceError::of(path, problem, ""));
        }
        let (stream, processes) =
            stream_and_processes(fields).map_err(|what| line.error(in_record(line.text, what)))?;
        for process in &processes {
            if !listed.insert(*process) {
                return Err(line.error(in_record(line.text, "a process is listed twice")).into());
            }
        }
        streams.entry(stream).or_default().extend(processes);
    }
    Ok(streams)
}

/// A line of the master file.
fn stream_and_processes(mut fields: Fields<'_>) -> Result<(u32, Vec<u32>), Fault> {
    let stream = fields.short()?;
    if !fields.take(b':') {
        return Err("missing colon");
    }
    let processes = fields.list()?;
    fields.end()?;
    if stream == 0 { Err("stream 0 is reserved for definitions") } else { Ok((stream, processes)) }
}

fn first_bytes(path: &Path) -> Result<Vec<u8>, FileError> {
    let mut bytes = Vec::new();
    let read = open_input(path).and_then(|file| file.take(4).read_to_end(&mut bytes));
    read.map(|_| bytes).map_err(|error| FileError::unreadable(path, &error))
}

/// The file, or its compressed form.
fn present(path: &Path) -> Option<PathBuf> {
    if path.is_file() {
        return Some(path.to_owned());
    }
    let mut compressed = path.as_os_str().to_owned();
    compressed.push(".z");
    Some(PathBuf::from(compressed)).filter(|path| path.is_file())
}

/// The extension: contents of the file, and whether it is compressed.
fn kind(path: &Path, what: &str) -> String {
    if has_extension(path, "z") { format!("{what}.z") } else { what.to_owned() }
}

/// Reads an archive: messages and bytes per ordered pair of processes, counted at the sender.
pub(crate) fn read(path: &Path, request: &Request<'_>, cx: &Context<'_>) -> Result<TaskGraph, Error> {
    let files = ArchiveFiles::find(path)?;
    let definitions = Definitions::read(&files.definitions)?;
    let listed = files.streams.values().flatten().copied();
    let processes = Processes::new(&definitions, listed).map_err(|what| {
        let help = "this is not a valid OTF archive: report it with the version of the program that wrote it";
        FileError::new(format!("inconsistent definitions: {what}"), help).in_file(&files.definitions)
    })?;
    let ticks = definitions.ticks_per_second.filter(|ticks| *ticks > 0);
    let kinds = region_kinds(&files, &definitions, request)?;
    let selection = select(&files, &definitions, request, ticks)?;
    let program = Program {
        files: &files,
        definitions: &definitions,
        processes: &processes,
        request,
        selection: selection.as_ref(),
        kinds,
    };
    let streams: Vec<u32> = files.streams.keys().copied().collect();
    let parts = (streams.len(), "streams");
    let records = on_threads(parts, cx, |index, _| program.read_stream(streams[index], cx))?;
    report(&processes, &records, cx);
    if ticks.is_none() {
        cx.log("warning: the trace does not define its clock resolution, so times are unknown");
    }
    assemble(&program, &records, ticks)
}

/// Kinds of the functions that all streams share, after checking that those named in the request exist.
fn region_kinds(
    files: &ArchiveFiles,
    definitions: &Definitions,
    request: &Request<'_>,
) -> Result<HashMap<u32, RegionKind>, Error> {
    let mut marks = Marks::new(request);
    let kinds = definitions.region_kinds(None, &mut marks);
    if marks.check().is_err() {
        for stream in files.streams.keys() {
            if let Some(own) = files.definitions_of(*stream) {
                Definitions::read(&own)?.region_kinds(Some(definitions), &mut marks);
            }
        }
    }
    marks.check()?;
    Ok(kinds)
}

fn select(
    files: &ArchiveFiles,
    definitions: &Definitions,
    request: &Request<'_>,
    ticks: Option<u64>,
) -> Result<Option<Selection>, Error> {
    if request.is_plain() {
        return Ok(None);
    }
    let mut first = None;
    if request.needs_time() {
        for stream in files.streams.keys() {
            let time = stream::first_time(&files.events_of(*stream)?)?;
            first = first.into_iter().chain(time).min();
        }
    }
    let clock = (ticks.map(|ticks| ticks as f64), first.unwrap_or(0));
    Ok(Some(Selection::new(request, clock, |name| definitions.groups_called(name))?))
}

/// Shared input of all streams.
struct Program<'a> {
    files: &'a ArchiveFiles,
    definitions: &'a Definitions,
    processes: &'a Processes,
    request: &'a Request<'a>,
    selection: Option<&'a Selection>,
    kinds: HashMap<u32, RegionKind>,
}

impl Program<'_> {
    /// Reads one stream; `None` if interrupted.
    fn read_stream(&self, stream: u32, cx: &Context<'_>) -> Result<Option<StreamRecord>, TraceError> {
        let events = self.files.events_of(stream)?;
        match self.files.definitions_of(stream) {
            None => Ok(stream::read(&events, (self.processes, self.selection), &self.kinds, cx)?),
            // Local definitions of a stream apply to its functions only.
            Some(own) => {
                let mut marks = Marks::new(self.request);
                let kinds = Definitions::read(&own)?.region_kinds(Some(self.definitions), &mut marks);
                Ok(stream::read(&events, (self.processes, self.selection), &kinds, cx)?)
            }
        }
    }
}

/// Logs what was read and what is missing.
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
    let log = |what, count| log_count(cx, what, count);
    log("collective operations, which are not counted", sum(|counts| counts.collectives));
    log("remote memory accesses, which are not counted", sum(|counts| counts.remote_accesses));
    log("threads without a parent, identified by their numbers", processes.threads_by_number);
    let silent = records.iter().flat_map(|record| &record.processes);
    log(
        "calls of MPI_Sendrecv and its variants whose messages are not in the trace",
        silent.map(|process| process.activity.silent_send_receives).fold(0, u64::saturating_add),
    );
    log(
        "warning: messages from or to processes that are not MPI ranks, which are not counted",
        sum(|counts| counts.without_rank),
    );
    log(
        "warning: processes without an end event, whose events may be truncated",
        sum(|counts| counts.unfinished),
    );
    log("warning: timestamps that decrease", sum(|counts| counts.backwards));
    let empty = records.iter().filter(|record| record.counts.events == 0).count();
    log("warning: streams without events", empty as u64);
}

/// Records of the main thread of a process over all streams.
#[derive(Debug, Clone, Default)]
struct Main {
    span: Option<(u64, u64)>,
    communication: u64,
    collective: u64,
    compute: Option<Vec<u64>>,
}

impl Main {
    fn add(&mut self, record: &ProcessRecord) {
        let ((first, last), activity) = (record.span, &record.activity);
        self.span = Some(self.span.map_or((first, last), |(from, to)| (from.min(first), to.max(last))));
        self.communication = self.communication.saturating_add(activity.communication);
        self.collective = self.collective.saturating_add(activity.collective);
        if let Some(ticks) = &activity.compute {
            let sum = self.compute.get_or_insert_default();
            sum.resize(sum.len().max(ticks.len()), 0);
            sum.iter_mut().zip(ticks).for_each(|(sum, ticks)| *sum = sum.saturating_add(*ticks));
        }
    }

    fn work(&self) -> Work {
        let Some((first, last)) = self.span else { return Work::default() };
        let all = || vec![(last - first).saturating_sub(self.communication)];
        // Only if the complete trace counts.
        let communicating = self.compute.is_none().then_some((self.communication, self.collective));
        Work { compute: Some(self.compute.clone().unwrap_or_else(all)), communicating }
    }
}

fn assemble(
    program: &Program<'_>,
    records: &[StreamRecord],
    ticks_per_second: Option<u64>,
) -> Result<TaskGraph, Error> {
    let Program { processes, request, selection, .. } = program;
    let mut classes = MessageClasses::new(request, 0);
    let overflow =
        |overflow: Overflow| FileError::new(overflow.to_string(), "").in_file(&program.files.master);
    let mut mains = vec![Main::default(); processes.list.len()];
    let mut span: Option<(u64, u64)> = None;
    for record in records.iter().flat_map(|record| &record.processes) {
        let (first, last) = record.span;
        span = Some(span.map_or((first, last), |(from, to)| (from.min(first), to.max(last))));
        let Some(source) = processes.rank(record.process) else { continue };
        for &Sent { destination, class, messages, bytes } in &record.sent {
            classes.add(class, Edge { source, destination, messages, bytes }).map_err(overflow)?;
        }
        if processes.is_main(record.process) {
            mains[source as usize].add(record);
        }
    }
    let duration = span.map(|(from, to)| to - from);
    if let Some(selection) = selection {
        selection.check_length(duration.unwrap_or(0))?;
    }
    let hosts = processes.list.iter().map(|process| process.host.clone());
    let work: Vec<Work> = mains.iter().map(Main::work).collect();
    let ticks_per_second = ticks_per_second.map(|ticks| ticks as f64);
    Ok(classes.into_graph((request, *selection), (hosts, &work), (duration, ticks_per_second)))
}
