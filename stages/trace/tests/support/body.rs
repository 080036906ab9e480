//! Properties of readers for arbitrary files: reading returns a result or an error, and all readers agree.
//!
//! Plain functions, called by tests with damaged files and by the fuzz targets in `fuzz/`.
#![allow(dead_code, reason = "every user needs only a part")]
#![allow(clippy::unwrap_used, reason = "a failure panics")]

use std::path::Path;

use hopmap_model::{Context, InputPath, Inputs, Outcome, Stage, TaskGraph};
use hopmap_trace::{
    Collectives, Dag, DagParams, EventsParams, Format, Import, ImportParams, ListEvents, Otf, Otf2,
    Otf2Params, OtfParams, ProgramParams, ProgramStage, Reader,
};

/// Runs a stage, which must not panic, and whose errors must have a message.
fn run<S: Stage>(params: S::Params) -> Result<Outcome, String> {
    S::run(params, Inputs::new(), &Context::detached()).map_err(|error| {
        let message = error.to_string();
        assert!(!message.is_empty());
        message
    })
}

fn graph<S: Stage>(params: S::Params) -> Result<TaskGraph, String> {
    let Outcome::Done(outputs) = run::<S>(params)? else { panic!("reading has no other outcome") };
    let graph = outputs.get("task-graph").unwrap().downcast_ref::<TaskGraph>().unwrap();
    graph.check().unwrap();
    Ok(graph.clone())
}

/// Reads an OTF2 archive natively and, if built in, with libotf2, and builds the table of messages and the
/// task DAG.
pub(crate) fn otf2(archive: &Path) {
    let archive = || InputPath::new(archive);
    let collectives = Collectives::Ignore;
    let other = if cfg!(feature = "libotf2") { Reader::Libotf2 } else { Reader::Native };
    let [native, library] = [Reader::Native, other]
        .map(|reader| graph::<Otf2>(Otf2Params { reader, collectives, ..Otf2Params::new(archive()) }));
    match (native, library) {
        (Ok(native), Ok(library)) => assert_eq!(native, library),
        // The native reader rejects what it does not support; otherwise both readers reject the same
        // archives.
        (Err(error), Ok(_)) => assert!(error.contains("does not support"), "{error}"),
        // libotf2 validates the names of archive properties, which hopmap ignores.
        (Ok(_), Err(error)) => assert!(error.contains("roperty"), "only libotf2 rejects it: {error}"),
        (Err(_), Err(_)) => {}
    }
    let reader = Reader::Native;
    let _ = graph::<Otf2>(Otf2Params { allow_truncated: true, collectives, ..Otf2Params::new(archive()) });
    let _ = run::<ListEvents>(EventsParams { reader, ..EventsParams::new(archive()) });
    let _ = run::<Dag>(DagParams { reader, ..DagParams::new(archive()) });
    let params = ProgramParams::new(Some(archive()));
    let _ = run::<ProgramStage>(ProgramParams { reader, ..params.clone() });
    let _ = run::<ProgramStage>(ProgramParams { allow_truncated: true, ..params });
}

/// Reads an OTF 1 archive.
pub(crate) fn otf(archive: &Path) {
    let _ = graph::<Otf>(OtfParams::new(InputPath::new(archive)));
}

/// Reads a file of another tool with the recognised format and with a given one.
pub(crate) fn import(file: &Path, format: Format) {
    for format in [Format::Auto, format] {
        let _ = graph::<Import>(ImportParams { format, ..ImportParams::new(InputPath::new(file)) });
    }
    let _ = run::<ProgramStage>(ProgramParams::new(Some(InputPath::new(file))));
}

/// Reads a matrix as text.
pub(crate) fn csv(file: &Path) {
    let _ = graph::<Import>(ImportParams { format: Format::Csv, ..ImportParams::new(InputPath::new(file)) });
}
