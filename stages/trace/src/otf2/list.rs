//! From an archive to a table of messages.

use std::sync::{Mutex, PoisonError};

use hopmap_artifact::ArtifactError;
use hopmap_model::{Context, Error, Events};

use super::listing::{Listed, Listing, Skipped};
use super::program::{Overview, Program, Way, read_by, warn};
use crate::messages::{MessageWriter, Names, Rows};
use crate::selection::Marks;
use crate::{EventsParams, Otf2Error};

/// Name of the table in its temporary folder.
const TABLE: &str = "messages.parquet";

/// Lists the messages of an archive, location by location in the order of ids.
pub(crate) fn list(params: &EventsParams, cx: &Context<'_>) -> Result<Events, Error> {
    let program = Program::open(params.archive.path(), !params.allow_truncated, cx)?;
    let request = &params.request();
    let mut marks = Marks::new(request);
    let regions = program.definitions.region_kinds(&mut marks);
    marks.check()?;
    let selection = program.selection(request)?;
    let listed = Listed {
        regions: &regions,
        communicators: &program.communicators,
        selection: selection.as_ref(),
        ranked: program.processes.ranked,
    };
    let start = program.begin()?;
    let scratch = cx.scratch();
    let folder = tempfile::Builder::new().prefix(".hopmap-events-").tempdir_in(&scratch);
    let folder = folder.map_err(|source| ArtifactError::Io { action: "write", path: scratch, source })?;
    let table = folder.path().join(TABLE);
    let (rows, overview, skipped) = read_by(params.reader, cx, |way| {
        let names = names(&program, start);
        let writer = Mutex::new(Writer { table: MessageWriter::create(&table, names)?, failure: None });
        let listed = visit(&program, listed, way, &writer, cx);
        let Writer { table, failure } = writer.into_inner().unwrap_or_else(PoisonError::into_inner);
        // Why it ended, if the writing did not go on.
        failure.map_or(Ok(()), Err)?;
        let (overview, skipped) = listed?;
        Ok((table.close()?, overview, skipped))
    })?;
    report(&program, &overview, rows, skipped, cx);
    Ok(Events::new(table, rows).kept_by(folder))
}

/// Writes the table until something goes wrong.
struct Writer {
    table: MessageWriter,
    failure: Option<ArtifactError>,
}

impl Writer {
    /// Writes a batch; tells whether it could.
    fn take(&mut self, rows: &mut Rows) -> bool {
        let failure = match self.failure {
            None => self.table.write(rows).err(),
            Some(_) => return false,
        };
        self.failure = failure;
        self.failure.is_none()
    }
}

/// Lists all locations one after the other.
fn visit(
    program: &Program,
    listed: Listed<'_>,
    way: Way,
    writer: &Mutex<Writer>,
    cx: &Context<'_>,
) -> Result<(Overview, Skipped), Otf2Error> {
    let give = |rows: &mut Rows| writer.lock().unwrap_or_else(PoisonError::into_inner).take(rows);
    let visitor = |location| Listing::new(listed, program.processes.rank(location), give);
    let locations = program.visit(way, &cx.with_threads(1), visitor, |visited, mut listing| {
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

/// What the numbers in rows stand for.
fn names(program: &Program, start: u64) -> Names {
    let definitions = &program.definitions;
    // EZTrace names communicators, all alike, by nothing.
    let text = |id: &u32| definitions.strings.get(id).filter(|text| !text.is_empty()).cloned();
    let communicators = definitions.communicator_names.iter();
    let regions = definitions.regions.iter();
    Names {
        clock: (start, program.ticks_per_second),
        communicators: communicators.filter_map(|(id, name)| Some((*id, text(name)?))).collect(),
        regions: regions.filter_map(|(id, region)| Some((*id, text(&region.name)?))).collect(),
    }
}

/// Tells what was read and what is missing.
fn report(program: &Program, overview: &Overview, rows: u64, skipped: Skipped, cx: &Context<'_>) {
    cx.log(format_args!(
        "{} processes, {} locations, {} events, {rows} messages",
        program.processes.list.len(),
        overview.locations,
        overview.events,
    ));
    if skipped.collectives > 0 {
        cx.log(format_args!("collective operations, which are not listed: {}", skipped.collectives));
    }
    let within = "accesses to memory within a process, which are not listed";
    warn(cx, within, skipped.within_process);
    warn(cx, "messages to MPI_PROC_NULL, which are not listed", skipped.to_nobody);
    let nowhere = "messages of locations that belong to no MPI rank, or to several, which are not listed";
    warn(cx, nowhere, skipped.without_process);
    overview.warn(cx);
}
