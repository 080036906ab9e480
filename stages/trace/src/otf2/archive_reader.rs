//! The definitions of an archive, and the traversal of the events of its locations.

use std::collections::BTreeSet;
use std::path::Path;
#[cfg(feature = "libotf2")]
use std::sync::{Mutex, PoisonError};

#[cfg(feature = "libotf2")]
use hopmap_model::open_input;
use hopmap_model::{Context, Error};

use super::archive_files::{Anchor, ArchiveFiles, contradiction, missing};
use super::communicators::Communicators;
use super::definitions::Definitions;
#[cfg(feature = "libotf2")]
use super::library::{Archive, LocationReader, ReadStatus};
use super::local_definitions::{ClockOffsets, LocalDefinitions};
use super::processes::Processes;
use super::structure::{self, EventFile};
use super::visitor::Visitor;
use super::{definitions, native};
use crate::LIBOTF2;
use crate::archive::{has_extension, log_count, on_threads};
use crate::error::TraceError;
#[cfg(feature = "libotf2")]
use crate::error::of_location;
use crate::params::Reader;
use crate::selection::{Request, Selection};

/// An open archive: its definitions, and where its events are.
#[derive(Debug)]
pub(super) struct ArchiveReader {
    pub(super) files: ArchiveFiles,
    pub(super) anchor: Anchor,
    pub(super) definitions: Definitions,
    pub(super) processes: Processes,
    pub(super) communicators: Communicators,
    /// Locations with an event file.
    pub(super) locations: BTreeSet<u64>,
    pub(super) ticks_per_second: Option<f64>,
    /// Whether truncated events are an error.
    complete: bool,
}

/// A location after all its events were visited.
#[derive(Debug)]
pub(super) struct Visited {
    /// Its id.
    pub(super) location: u64,
    /// Summary of its event file.
    pub(super) file: EventFile,
    /// First and last time of the common clock.
    pub(super) span: Option<(u64, u64)>,
    /// Whether it has local definitions.
    pub(super) defined: bool,
    /// Damage that truncated its events.
    damage: Option<Box<TraceError>>,
}

/// The reader of events. libotf2 also reads the definitions and must agree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EventReader {
    Native,
    Library,
}

/// Reads with the requested reader; `auto` falls back to libotf2 if the archive uses features that only
/// libotf2 may support.
pub(super) fn read_by<T>(
    reader: Reader,
    cx: &Context<'_>,
    mut read: impl FnMut(EventReader) -> Result<T, TraceError>,
) -> Result<T, TraceError> {
    match read(if reader == Reader::Libotf2 { EventReader::Library } else { EventReader::Native }) {
        Err(unknown @ TraceError::Unknown { .. }) if reader == Reader::Auto && LIBOTF2.is_built => {
            cx.log(format_args!("{unknown}: reading with libotf2"));
            read(EventReader::Library)
        }
        other => other,
    }
}

impl ArchiveReader {
    /// Opens an archive and reads its definitions. With `complete`, truncated events are an error.
    pub(super) fn open(path: &Path, complete: bool, cx: &Context<'_>) -> Result<Self, TraceError> {
        let files = ArchiveFiles::find(path)?;
        let anchor = Anchor::read(files.anchor())?;
        let definitions = read_definitions(&files, &anchor)?;
        let contradiction = |what: String| contradiction(&files.definitions(), &what);
        let processes = Processes::new(&definitions).map_err(contradiction)?;
        let communicators =
            Communicators::new(&definitions, |location| processes.rank(location)).map_err(contradiction)?;
        let locations = locations_with_events(&files, &definitions, complete, cx)?;
        let ticks_per_second = ticks_per_second(&definitions, cx);
        Ok(Self {
            files,
            anchor,
            definitions,
            processes,
            communicators,
            locations,
            ticks_per_second,
            complete,
        })
    }

    /// Time of the first event of the trace.
    pub(super) fn begin(&self) -> Result<u64, TraceError> {
        let mut buffer = Vec::new();
        let mut first = None;
        for &location in &self.locations {
            let events = self.files.events_of(location);
            let time = match structure::first_time(&events, self.anchor.event_chunk, location) {
                Err(TraceError::Damaged { .. }) if !self.complete => None,
                time => time?,
            };
            let Some(time) = time else { continue };
            let clock = self.local_definitions(location, &mut buffer)?.unwrap_or_default().clock;
            let time = clock.correct(time);
            first = Some(first.map_or(time, |first: u64| first.min(time)));
        }
        Ok(first.unwrap_or(0))
    }

    /// The selection and classes; `None` if everything counts in one class.
    pub(super) fn selection(&self, request: &Request<'_>) -> Result<Option<Selection>, Error> {
        if request.is_plain() {
            return Ok(None);
        }
        let start = if request.needs_time() { self.begin()? } else { 0 };
        let called = |name: &str| self.definitions.communicators_called(name);
        Ok(Some(Selection::new(request, (self.ticks_per_second, start), called)?))
    }

    /// An invalid event.
    pub(super) fn bad_event(&self, location: u64, event: u64, what: impl Into<String>) -> TraceError {
        let path = self.files.events_of(location);
        let problem =
            format!("event {event} of location {location} in `{}`: {}", path.display(), what.into());
        TraceError::refused(problem, "")
    }

    /// Reports the events of every location to its own visitor, and finishes the visitor afterwards. Uses as
    /// many threads as the context allows; locations are taken in order of their ids.
    pub(super) fn visit<V: Visitor, T: Send>(
        &self,
        event_reader: EventReader,
        cx: &Context<'_>,
        visitor: impl Fn(u64) -> V + Sync,
        close: impl Fn(Visited, V) -> Result<T, TraceError> + Sync,
    ) -> Result<Vec<T>, TraceError> {
        if event_reader == EventReader::Library {
            return visit_through_library(self, cx, visitor, close);
        }
        let ids: Vec<u64> = self.locations.iter().copied().collect();
        on_threads((ids.len(), "locations"), cx, |index, buffer| {
            let mut visitor = visitor(ids[index]);
            let visited = self.visit_natively(ids[index], &mut visitor, buffer, cx)?;
            visited.map(|visited| close(visited, visitor)).transpose()
        })
    }

    /// The local definitions of a location, if any.
    fn local_definitions(
        &self,
        location: u64,
        buffer: &mut Vec<u8>,
    ) -> Result<Option<LocalDefinitions>, TraceError> {
        let path = self.files.definitions_of(location);
        if !path.exists() {
            return Ok(None);
        }
        LocalDefinitions::read(&path, self.anchor.definition_chunk, location, buffer).map(Some)
    }

    /// Visits one location without libotf2; `None` if interrupted.
    pub(super) fn visit_natively<V: Visitor>(
        &self,
        location: u64,
        visitor: &mut V,
        buffer: &mut Vec<u8>,
        cx: &Context<'_>,
    ) -> Result<Option<Visited>, TraceError> {
        let own = self.local_definitions(location, buffer)?;
        let defined = own.is_some();
        let own = own.unwrap_or_default();
        let path = self.files.events_of(location);
        let chunks = (location, self.anchor.event_chunk);
        let definitions = (&own, &self.definitions.calling_contexts);
        let ended = native::read_events(&path, chunks, definitions, visitor, buffer, || cx.should_stop())?;
        let (file, damage) = match ended {
            native::ReadStatus::Early => return Ok(None),
            native::ReadStatus::Complete(file) => (file, None),
            native::ReadStatus::Cut(_, damage) if self.complete => return Err(*damage),
            native::ReadStatus::Cut(..) if own.unknown => {
                return Err(TraceError::Unknown { path, location, what: "definitions" });
            }
            native::ReadStatus::Cut(file, damage) => (file, Some(damage)),
        };
        self.check(location, visitor)?;
        Ok(Some(Visited { damage, ..Visited::new(location, file, &own.clock, defined) }))
    }

    /// Fails if a visitor found an invalid event.
    pub(super) fn check(&self, location: u64, visitor: &impl Visitor) -> Result<(), TraceError> {
        match visitor.bad_event() {
            Some(bad) => Err(self.bad_event(location, bad.event, bad.what.clone())),
            None => Ok(()),
        }
    }
}

impl Visited {
    pub(super) fn new(location: u64, file: EventFile, clock: &ClockOffsets, defined: bool) -> Self {
        let span = file.span.map(|(first, last)| (clock.correct(first), clock.correct(last)));
        Self { location, file, span, defined, damage: None }
    }

    /// Whether its events are truncated.
    pub(super) fn is_cut(&self) -> bool {
        self.damage.is_some()
    }
}

/// Statistics over all locations.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Overview {
    pub(super) locations: u64,
    pub(super) events: u64,
    unknown: u64,
    undefined: u64,
    /// Number of truncated locations, and the damage of the first.
    cut: u64,
    damage: Option<String>,
}

impl Overview {
    /// Adds a location.
    pub(super) fn add(&mut self, visited: &Visited) {
        self.locations += 1;
        self.events = self.events.saturating_add(visited.file.events);
        self.unknown = self.unknown.saturating_add(visited.file.unknown);
        self.undefined += u64::from(!visited.defined && visited.file.events > 0);
        if let Some(damage) = &visited.damage {
            self.cut += 1;
            self.damage.get_or_insert_with(|| damage.to_string());
        }
    }

    /// Warns about unknown and missing data.
    pub(super) fn warn(&self, cx: &Context<'_>) {
        warn(cx, "events of unknown kinds, which are skipped", self.unknown);
        let undefined = "locations without a .def file, whose ids and times are used unchanged";
        warn(cx, undefined, self.undefined);
        if let Some(damage) = &self.damage {
            cx.log(format_args!(
                "warning: truncated locations, of which only the events before the damage count: {}; the first: {damage}",
                self.cut
            ));
        }
    }
}

/// Warns if a count is not zero.
pub(super) fn warn(cx: &Context<'_>, what: &str, count: u64) {
    log_count(cx, &format!("warning: {what}"), count);
}

fn read_definitions(files: &ArchiveFiles, anchor: &Anchor) -> Result<Definitions, TraceError> {
    let path = files.definitions();
    let (definitions, there) = definitions::read(&path, anchor.definition_chunk)?;
    if there != anchor.definitions {
        let what = format!("the file has {there}, but the anchor file declares {}", anchor.definitions);
        return Err(contradiction(&path, &what));
    }
    match definitions.contradiction {
        Some(what) => Err(contradiction(&path, &what)),
        None => Ok(definitions),
    }
}

/// Locations with an event file. Missing files are an error if the location has events and the archive must
/// be complete; superfluous files are logged.
fn locations_with_events(
    files: &ArchiveFiles,
    definitions: &Definitions,
    complete: bool,
    cx: &Context<'_>,
) -> Result<BTreeSet<u64>, TraceError> {
    let id = |path: &Path| path.file_stem().and_then(|stem| stem.to_str()).and_then(|stem| stem.parse().ok());
    let event_files = files.local_files()?.into_iter().filter(|path| has_extension(path, "evt"));
    let (known, strange): (Vec<_>, Vec<_>) = event_files
        .map(|path| id(&path))
        .partition(|id| id.is_some_and(|id| definitions.locations.contains_key(&id)));
    warn(cx, "event files without a location, which are not read", strange.len() as u64);
    let known: BTreeSet<u64> = known.into_iter().flatten().collect();
    let mut absent =
        definitions.locations.iter().filter(|(id, location)| location.events > 0 && !known.contains(id));
    if complete && let Some((id, _)) = absent.next() {
        return Err(missing(&files.events_of(*id), Some(*id)));
    }
    warn(cx, "locations without an event file, which are not counted", absent.count() as u64);
    Ok(known)
}

fn ticks_per_second(definitions: &Definitions, cx: &Context<'_>) -> Option<f64> {
    let ticks = definitions.ticks_per_second.filter(|ticks| *ticks > 0);
    if ticks.is_none() {
        cx.log("warning: the trace does not define its clock resolution, so times are unknown");
    }
    ticks.map(|ticks| ticks as f64)
}

/// [`ArchiveReader::visit`] through libotf2, for files that were validated before.
#[cfg(feature = "libotf2")]
fn visit_through_library<V: Visitor, T: Send>(
    archive: &ArchiveReader,
    cx: &Context<'_>,
    visitor: impl Fn(u64) -> V + Sync,
    close: impl Fn(Visited, V) -> Result<T, TraceError> + Sync,
) -> Result<Vec<T>, TraceError> {
    // libotf2 opens special files as well, and would block on a pipe.
    for file in archive.files.list()? {
        let path = file.path();
        open_input(path).map_err(|source| TraceError::unreadable(path, source))?;
    }
    let failed = |message: String| of_library(archive.files.anchor(), None, &message);
    let mut library = Archive::open(archive.files.anchor()).map_err(failed)?;
    check_definitions(archive, &mut library)?;
    let readers = library.locations(&archive.locations).map_err(failed)?;
    let readers: Vec<Mutex<LocationReader<'_>>> = readers.into_iter().map(Mutex::new).collect();
    on_threads((readers.len(), "locations"), cx, |index, buffer| {
        let mut reader = readers[index].lock().unwrap_or_else(PoisonError::into_inner);
        let mut visitor = visitor(reader.id());
        let visited = visit_location_through_library(archive, &mut reader, &mut visitor, buffer, cx)?;
        visited.map(|visited| close(visited, visitor)).transpose()
    })
}

/// Reads the definitions, which libotf2 needs for calling contexts in events, and checks that they agree
/// with those of the native reader.
#[cfg(feature = "libotf2")]
fn check_definitions(archive: &ArchiveReader, library: &mut Archive) -> Result<(), TraceError> {
    let failed = |message: String| of_library(&archive.files.definitions(), None, &message);
    let (definitions, read) = library.definitions().map_err(failed)?;
    let there = archive.anchor.definitions;
    if read != there {
        return Err(failed(format!("it read only {read} of {there} definitions")));
    }
    if definitions != archive.definitions {
        return Err(failed("its definitions differ from those of the native reader".into()));
    }
    Ok(())
}

/// Visits one location; `None` if interrupted.
#[cfg(feature = "libotf2")]
fn visit_location_through_library<V: Visitor>(
    archive: &ArchiveReader,
    reader: &mut LocationReader<'_>,
    visitor: &mut V,
    buffer: &mut Vec<u8>,
    cx: &Context<'_>,
) -> Result<Option<Visited>, TraceError> {
    let location = reader.id();
    let path = archive.files.events_of(location);
    let file = structure::check::check_events(&path, archive.anchor.event_chunk, location, buffer)?;
    let own = archive.files.definitions_of(location);
    let defined = own.exists();
    let mut clock = ClockOffsets::default();
    let chunk = archive.anchor.definition_chunk;
    // EZTrace writes files without definitions.
    if defined && structure::check::check_local_definitions(&own, chunk, location)? > 0 {
        let definitions = reader.definitions();
        clock = definitions.map_err(|message| of_library(&own, Some(location), &message))?;
    }
    let ended = reader.events(visitor, &archive.definitions.calling_contexts, || cx.should_stop());
    let ended = ended.map_err(|message| of_library(&path, Some(location), &message))?;
    archive.check(location, visitor)?;
    match ended {
        ReadStatus::Early => Ok(None),
        ReadStatus::Complete(read) if read != file.events => {
            let message = format!("it read only {read} of {} events", file.events);
            Err(of_library(&path, Some(location), &message))
        }
        ReadStatus::Complete(_) => Ok(Some(Visited::new(location, file, &clock, defined))),
    }
}

#[cfg(feature = "libotf2")]
fn of_library(path: &Path, location: Option<u64>, message: &str) -> TraceError {
    let file = format!("`{}`{}", path.display(), of_location(location));
    TraceError::refused(format!("libotf2 cannot read {file}: {message}"), "")
}

/// Reports that libotf2 is missing.
#[cfg(not(feature = "libotf2"))]
fn visit_through_library<V: Visitor, T: Send>(
    _: &ArchiveReader,
    _: &Context<'_>,
    _: impl Fn(u64) -> V + Sync,
    _: impl Fn(Visited, V) -> Result<T, TraceError> + Sync,
) -> Result<Vec<T>, TraceError> {
    Err(LIBOTF2.missing(Reader::NEEDS_LIBRARY).into())
}
