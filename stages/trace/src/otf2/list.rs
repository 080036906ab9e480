//! Writes the messages of an archive as a table, while reading it.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::{ArrayRef, Float64Array, StringArray, UInt32Array, UInt64Array};
use hopmap_artifact::{ArtifactError, Codec, TableWriter};
use hopmap_model::{Context, Error, Events};

use super::archive_reader::{ArchiveReader, EventReader, Overview, read_by, warn};
use super::communicators::{Communicators, NoReceiver, is_proc_null};
use super::record_schema::OTF2_UNDEFINED_UINT64;
use super::visitor::{Access, BadEvent, Event, Message, Visitor};
use crate::archive::{log_count, warn_of_silence};
use crate::call_stack::{CallStack, OpenRegions};
use crate::error::TraceError;
use crate::numbering::Numbering;
use crate::params::EventsParams;
use crate::selection::{Marks, RegionKind, Selection};

/// Name of the table in its temporary folder.
const TABLE: &str = "messages.parquet";

/// Lists the messages of an archive by location, in order of ids.
pub(crate) fn list(params: &EventsParams, cx: &Context<'_>) -> Result<Events, Error> {
    let archive = ArchiveReader::open(params.path.path(), !params.allow_truncated, cx)?;
    let request = &params.request();
    let mut marks = Marks::new(request);
    let regions = archive.definitions.region_kinds(&mut marks);
    marks.check()?;
    let selection = archive.selection(request)?;
    let listed = Listed {
        regions: &regions,
        communicators: &archive.communicators,
        selection: selection.as_ref(),
        ranked: archive.processes.ranked,
    };
    let start = archive.begin()?;
    let scratch = cx.scratch();
    let folder = tempfile::Builder::new().prefix(".hopmap-events-").tempdir_in(&scratch);
    let folder = folder.map_err(|source| ArtifactError::Io { action: "write", path: scratch, source })?;
    let table = folder.path().join(TABLE);
    let (rows, overview, skipped) = read_by(params.reader, cx, |event_reader| {
        let names = names(&archive, start);
        let writer = Mutex::new(Writer { table: MessageWriter::create(&table, names)?, failure: None });
        let listed = visit(&archive, listed, event_reader, &writer, cx);
        let Writer { table, failure } = writer.into_inner().unwrap_or_else(PoisonError::into_inner);
        // Reason for an early end, if writing failed.
        failure.map_or(Ok(()), Err)?;
        let (overview, skipped) = listed?;
        Ok((table.table.close()?, overview, skipped))
    })?;
    report(&archive, &overview, rows, skipped, cx);
    Ok(Events::new(table, rows).kept_by(folder))
}

/// Writes the table until an error occurs.
struct Writer {
    table: MessageWriter,
    failure: Option<ArtifactError>,
}

impl Writer {
    /// Writes a batch; returns whether it succeeded.
    fn take(&mut self, rows: &mut Rows) -> bool {
        let failure = match self.failure {
            None => self.table.write(rows).err(),
            Some(_) => return false,
        };
        self.failure = failure;
        self.failure.is_none()
    }
}

/// Lists all locations in sequence.
fn visit(
    archive: &ArchiveReader,
    listed: Listed<'_>,
    event_reader: EventReader,
    writer: &Mutex<Writer>,
    cx: &Context<'_>,
) -> Result<(Overview, Skipped), TraceError> {
    let give = |rows: &mut Rows| writer.lock().unwrap_or_else(PoisonError::into_inner).take(rows);
    // Rows are written while events are read, so that cancelled sends have to be known before.
    let cancelled = archive.all_cancelled(&cx.with_threads(1))?;
    let visitor = |location| {
        let rank = archive.processes.rank(location);
        Listing { cancelled: cancelled.get(&location), ..Listing::new(listed, rank, give) }
    };
    let locations = archive.visit(event_reader, &cx.with_threads(1), visitor, |visited, mut listing| {
        listing.finish();
        Ok((visited, listing.skipped))
    })?;
    let (mut overview, mut skipped) = (Overview::default(), Skipped::default());
    for (visited, of_location) in locations {
        overview.add(&visited);
        skipped.add(of_location);
    }
    Ok((overview, skipped))
}

/// Names for the numbers in rows.
fn names(archive: &ArchiveReader, start: u64) -> Names {
    let definitions = &archive.definitions;
    // EZTrace gives all communicators an empty name.
    let text = |id: &u32| definitions.strings.get(id).filter(|text| !text.is_empty()).cloned();
    let communicators = definitions.communicator_names.iter();
    let regions = definitions.regions.iter();
    Names {
        clock: (start, archive.ticks_per_second),
        communicators: communicators.filter_map(|(id, name)| Some((*id, text(name)?))).collect(),
        regions: regions.filter_map(|(id, region)| Some((*id, text(&region.name)?))).collect(),
    }
}

/// Logs what was read and what is missing.
fn report(archive: &ArchiveReader, overview: &Overview, rows: u64, skipped: Skipped, cx: &Context<'_>) {
    cx.log(format_args!(
        "{} processes, {} locations, {} events, {rows} messages",
        archive.processes.list.len(),
        overview.locations,
        overview.events,
    ));
    log_count(cx, "collective operations, which are not listed", skipped.collectives);
    log_count(cx, "cancelled sends, which are not listed", skipped.cancelled);
    let within = "memory accesses within a process, which are not listed";
    warn(cx, within, skipped.within_process);
    warn(cx, "messages to MPI_PROC_NULL, which are not listed", skipped.to_proc_null);
    let nowhere = "messages of locations that do not belong to exactly one MPI rank, which are not listed";
    warn(cx, nowhere, skipped.without_process);
    overview.warn(cx);
    warn_of_silence(skipped.between == 0, "", cx);
}

/// Shared input of all locations.
#[derive(Clone, Copy)]
struct Listed<'a> {
    regions: &'a HashMap<u32, RegionKind>,
    communicators: &'a Communicators,
    selection: Option<&'a Selection>,
    /// Whether processes are ranks that can send.
    ranked: bool,
}

/// Lists the messages of a location in batches.
struct Listing<'a, F> {
    listed: Listed<'a>,
    /// Rank of its process, if any.
    rank: Option<u32>,
    /// Events that are cancelled sends, if any.
    cancelled: Option<&'a HashSet<u64>>,
    /// Position of the location for the selection.
    stack: CallStack<'a>,
    /// Id of the region of every index, and whether it is communication.
    regions: Vec<(u32, bool)>,
    /// The open regions: for each its MPI call and the calling function.
    open: OpenRegions<(u32, u32)>,
    peers: Numbering<(u32, u32)>,
    /// Rank of every peer.
    ranks: Vec<u32>,
    rows: Rows,
    give: F,
    /// The invalid event that ended reading.
    bad_event: Option<BadEvent>,
    skipped: Skipped,
}

/// Counters of what is not listed, and of what is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Skipped {
    /// Messages to `MPI_PROC_NULL`.
    to_proc_null: u64,
    /// Memory accesses within a process.
    within_process: u64,
    /// Messages and accesses of locations without a process.
    without_process: u64,
    /// Collective operations.
    collectives: u64,
    /// Cancelled sends.
    cancelled: u64,
    /// Listed messages between different ranks.
    between: u64,
}

impl Skipped {
    /// Adds the counters of another location.
    fn add(&mut self, other: Self) {
        self.to_proc_null += other.to_proc_null;
        self.within_process += other.within_process;
        self.without_process += other.without_process;
        self.collectives += other.collectives;
        self.cancelled += other.cancelled;
        self.between += other.between;
    }
}

impl<'a, F: FnMut(&mut Rows) -> bool> Listing<'a, F> {
    /// A listing that passes batches to `give`, which returns whether to continue.
    fn new(listed: Listed<'a>, rank: Option<u32>, give: F) -> Self {
        Self {
            listed,
            rank,
            cancelled: None,
            stack: CallStack::new(listed.regions, listed.selection),
            regions: Vec::new(),
            open: OpenRegions::new(),
            peers: Numbering::new(),
            ranks: Vec::new(),
            rows: Rows::new(),
            give,
            bad_event: None,
            skipped: Skipped::default(),
        }
    }

    /// Passes on the last batch.
    fn finish(&mut self) {
        (self.give)(&mut self.rows);
    }

    fn bad(&mut self, event: u64, what: impl Into<Cow<'static, str>>) {
        self.bad_event.get_or_insert(BadEvent { event, what: what.into() });
    }

    /// The current MPI call and its calling function.
    fn place_in_code(&self) -> (u32, u32) {
        self.open.innermost().copied().unwrap_or((NONE, NONE))
    }

    /// World rank of the peer.
    fn peer(&mut self, rank: u32, communicator: u32, peer: u32) -> Result<u32, NoReceiver> {
        let place = self.peers.of((communicator, peer)) as usize;
        if place >= self.ranks.len() {
            self.ranks.push(self.listed.communicators.receiver(communicator, rank, peer)?);
        }
        Ok(self.ranks[place])
    }

    fn counts(&self, communicator: u32, bytes: u64, time: u64) -> bool {
        self.listed.selection.is_none_or(|selection| {
            selection.class_of_message(Some(communicator), bytes, self.stack.inside(), || time).is_some()
        })
    }

    fn list(&mut self, number: u64, message: Message, outwards: bool, tag: Option<u32>, time: u64) {
        let Message { communicator, bytes, .. } = message;
        if bytes == OTF2_UNDEFINED_UINT64 {
            return self.bad(number, "the number of bytes is unknown");
        }
        if !self.listed.ranked {
            return self.bad(number, "it sends, but the archive does not define MPI ranks");
        }
        let Some(rank) = self.rank else {
            self.skipped.without_process += 1;
            return;
        };
        let peer = match self.peer(rank, communicator, message.peer) {
            Ok(peer) => peer,
            Err(reason) => return self.bad(number, reason.to_string()),
        };
        if !self.counts(communicator, bytes, time) {
            return;
        }
        let (source, destination) = if outwards { (rank, peer) } else { (peer, rank) };
        let (operation, region) = self.place_in_code();
        self.skipped.between += u64::from(source != destination);
        self.rows.push(Row { time, source, destination, tag, bytes, communicator, operation, region });
        if self.rows.len() >= BATCH && !(self.give)(&mut self.rows) {
            self.bad(number, "the table cannot be written");
        }
    }

    fn access(&mut self, number: u64, access: Access, time: u64) {
        let communicator = match self.listed.communicators.of_window(access.window) {
            Ok(Some(communicator)) => communicator,
            Ok(None) => {
                self.skipped.within_process += 1;
                return;
            }
            Err(reason) => return self.bad(number, reason.to_string()),
        };
        for (bytes, outwards) in [(access.put, true), (access.got, false)] {
            if let Some(bytes) = bytes {
                let message = Message { peer: access.remote, communicator, tag: 0, bytes, request: None };
                self.list(number, message, outwards, None, time);
            }
        }
    }
}

impl<F: FnMut(&mut Rows) -> bool> Visitor for Listing<'_, F> {
    const BOTH_ENDS: bool = false;

    fn place(&mut self, region: u32) -> u32 {
        let place = self.stack.place(region);
        if place as usize == self.regions.len() {
            let communication = self.listed.regions.get(&region).is_some_and(|kind| kind.communication);
            self.regions.push((region, communication));
        }
        place
    }

    fn enter(&mut self, place: u32, time: impl Fn() -> u64) {
        let code = match self.regions[place as usize] {
            (call, true) => (call, self.place_in_code().1),
            (function, false) => (NONE, function),
        };
        self.open.enter(place, code);
        if self.listed.selection.is_some() {
            self.stack.enter_at(place, time);
        }
    }

    fn leave(&mut self, place: u32, time: impl Fn() -> u64) {
        self.open.leave(place, |_| ());
        if self.listed.selection.is_some() {
            self.stack.leave_at(place, time);
        }
    }

    fn send(&mut self, number: u64, message: Message, time: impl Fn() -> u64) {
        if self.cancelled.is_some_and(|events| events.contains(&number)) {
            self.skipped.cancelled += 1;
        } else if is_proc_null(message.peer) {
            self.skipped.to_proc_null += 1;
        } else {
            self.list(number, message, true, Some(message.tag), time());
        }
    }

    fn event(&mut self, number: u64, event: Event, time: impl Fn() -> u64) {
        match event {
            Event::Access(access) => self.access(number, access, time()),
            Event::Collective(..) => self.skipped.collectives += 1,
            _ => {}
        }
    }

    fn bad_event(&self) -> Option<&BadEvent> {
        self.bad_event.as_ref()
    }
}

/// Rows of a batch.
const BATCH: usize = 1 << 15;

/// No region.
const NONE: u32 = u32::MAX;

/// A message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Row {
    /// Ticks of the common clock.
    time: u64,
    source: u32,
    destination: u32,
    tag: Option<u32>,
    bytes: u64,
    /// Id of the communicator.
    communicator: u32,
    /// Id of the region of the call, or [`NONE`].
    operation: u32,
    /// Id of the region that called it, or [`NONE`].
    region: u32,
}

/// A batch of messages.
type Rows = Vec<Row>;

/// Names for the numbers in rows.
#[derive(Debug)]
struct Names {
    /// First tick of the trace, and ticks per second if known.
    clock: (u64, Option<f64>),
    communicators: HashMap<u32, String>,
    regions: HashMap<u32, String>,
}

/// Writes the table.
struct MessageWriter {
    names: Names,
    table: TableWriter,
}

impl MessageWriter {
    /// Creates a table.
    fn create(path: &Path, names: Names) -> Result<Self, ArtifactError> {
        Ok(Self { names, table: TableWriter::create(path, Events::TABLES[0].schema())? })
    }

    /// Writes and clears a batch.
    fn write(&mut self, rows: &mut Rows) -> Result<(), ArtifactError> {
        let all = rows.as_slice();
        let (start, per_second) = self.names.clock;
        // Times before the first event occur if clocks run backwards.
        let time = |row: &Row| {
            let ticks =
                if row.time >= start { (row.time - start) as f64 } else { -((start - row.time) as f64) };
            per_second.map(|per_second| ticks / per_second)
        };
        let region = |id: u32| self.names.regions.get(&id).map(String::as_str);
        let unnamed: HashMap<u32, String> = all
            .iter()
            .filter(|row| !self.names.communicators.contains_key(&row.communicator))
            .map(|row| (row.communicator, row.communicator.to_string()))
            .collect();
        let communicator = |row: &Row| {
            let id = &row.communicator;
            self.names.communicators.get(id).or_else(|| unnamed.get(id)).map(String::as_str)
        };
        let columns: Vec<ArrayRef> = vec![
            Arc::new(all.iter().map(time).collect::<Float64Array>()),
            Arc::new(UInt32Array::from_iter_values(all.iter().map(|row| row.source))),
            Arc::new(UInt32Array::from_iter_values(all.iter().map(|row| row.destination))),
            Arc::new(all.iter().map(|row| row.tag).collect::<UInt32Array>()),
            Arc::new(UInt64Array::from_iter_values(all.iter().map(|row| row.bytes))),
            Arc::new(all.iter().map(communicator).collect::<StringArray>()),
            Arc::new(all.iter().map(|row| region(row.operation)).collect::<StringArray>()),
            Arc::new(all.iter().map(|row| region(row.region)).collect::<StringArray>()),
        ];
        self.table.add(columns)?;
        rows.clear();
        Ok(())
    }
}
