//! Reads archives with libotf2, of the files that were checked before.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use hopmap_model::{Context, open_input};

use super::clock::ClockOffsets;
use super::library::{Archive, Ended, LocationReader};
use super::program::{Program, Visited, on_threads};
use super::structure::check;
use super::visitor::Visitor;
use crate::Otf2Error;

/// Tells the events of every location to a visitor of its own, as [`Program::visit`] does.
pub(super) fn visit<V: Visitor, T: Send>(
    program: &Program,
    cx: &Context<'_>,
    visitor: impl Fn(u64) -> V + Sync,
    close: impl Fn(Visited, V) -> Result<T, Otf2Error> + Sync,
) -> Result<Vec<T>, Otf2Error> {
    // libotf2 opens whatever stands there, and would wait for the other end of a pipe.
    for file in program.files.list()? {
        let path = file.path();
        open_input(path).map_err(|source| Otf2Error::Read { path: path.to_owned(), source })?;
    }
    let failed = |message| of_library(program.files.anchor(), None, message);
    let mut archive = Archive::open(program.files.anchor()).map_err(failed)?;
    read_definitions(program, &mut archive)?;
    let readers = archive.locations(&program.locations).map_err(failed)?;
    let readers: Vec<Mutex<LocationReader<'_>>> = readers.into_iter().map(Mutex::new).collect();
    on_threads(readers.len(), cx, |index, buffer| {
        let mut reader = readers[index].lock().unwrap_or_else(PoisonError::into_inner);
        let mut visitor = visitor(reader.id());
        let visited = tell(program, &mut reader, &mut visitor, buffer, cx)?;
        visited.map(|visited| close(visited, visitor)).transpose()
    })
}

/// Reads the definitions, without which libotf2 does not know the calling contexts in events. They must be those that
/// hopmap read.
fn read_definitions(program: &Program, archive: &mut Archive) -> Result<(), Otf2Error> {
    let failed = |message| of_library(&program.files.definitions(), None, message);
    let (definitions, read) = archive.definitions().map_err(failed)?;
    let there = program.anchor.definitions;
    if read != there {
        return Err(failed(format!("it read {read} of {there} definitions")));
    }
    if definitions != program.definitions {
        return Err(failed("it reads other definitions than hopmap does".into()));
    }
    Ok(())
}

/// Tells the events of one location; `None` if it was stopped.
fn tell<V: Visitor>(
    program: &Program,
    reader: &mut LocationReader<'_>,
    visitor: &mut V,
    buffer: &mut Vec<u8>,
    cx: &Context<'_>,
) -> Result<Option<Visited>, Otf2Error> {
    let location = reader.id();
    let path = program.files.events_of(location);
    let file = check::check_events(&path, program.anchor.event_chunk, location, buffer)?;
    let own = program.files.definitions_of(location);
    let defined = own.exists();
    let mut clock = ClockOffsets::default();
    let chunk = program.anchor.definition_chunk;
    // EZTrace writes files without any definition.
    if defined && check::check_local_definitions(&own, chunk, location)? > 0 {
        let definitions = reader.definitions();
        clock = definitions.map_err(|message| of_library(&own, Some(location), message))?;
    }
    let ended = reader.events(visitor, &program.definitions.calling_contexts, || cx.should_stop());
    let ended = ended.map_err(|message| of_library(&path, Some(location), message))?;
    program.check(location, visitor)?;
    match ended {
        Ended::Early => Ok(None),
        Ended::Complete(read) if read != file.events => {
            let message = format!("it read {read} of {} events", file.events);
            Err(of_library(&path, Some(location), message))
        }
        Ended::Complete(_) => Ok(Some(Visited::new(location, file, &clock, defined))),
    }
}

fn of_library(path: &Path, location: Option<u64>, message: String) -> Otf2Error {
    Otf2Error::Library { path: path.to_owned(), location, message }
}
