//! Recordings of `hopmap record`; `hopmap-recording` describes their files.

mod events;

use std::path::Path;

use hopmap_model::{Context, InputPath, TaskGraph};
use hopmap_recording::{Choice, Converted, Recording, files, is_recording};

use super::reader::{Options, Reader, warn_of_foreign};
use crate::archive::log_count;
use crate::error::TraceError;
use crate::params::Collectives;

pub(crate) use events::{files as event_files, program};

pub(super) static READER: Reader = Reader {
    recognises: |sample| sample.is_folder && is_recording(sample.path),
    files: |path| {
        let files = files(path)?.into_iter();
        Ok(files.map(|(path, name)| InputPath::named(path, name)).collect())
    },
    read: |path, options, cx| Ok(read(path, options, cx)?),
    ..Reader::BINARY
};

fn read(path: &Path, options: Options, cx: &Context<'_>) -> Result<TaskGraph, TraceError> {
    graph(&Recording::read(path)?, options, cx)
}

/// The task graph of a recording; the log names what it lacks.
pub(super) fn graph(
    recording: &Recording,
    options: Options,
    cx: &Context<'_>,
) -> Result<TaskGraph, TraceError> {
    warn_of_foreign(recording.foreign.as_ref(), cx);
    if let Some(reason) = &recording.incomplete {
        cx.log(format_args!("warning: the recording is incomplete: {reason}"));
    }
    let choice = choice(options);
    let Converted { graph, neighbourhood, without_root, unfit } = recording.task_graph(choice)?;
    let message =
        "calls of neighbourhood collectives, which count as messages only with `collectives = \"expand\"`";
    log_count(cx, message, if choice == Choice::Keep { neighbourhood } else { 0 });
    let message =
        "warning: collective operations whose root is not in their communicator, which are not counted";
    log_count(cx, message, without_root);
    let message = "collective operations that do not support the chosen algorithm and follow the rules";
    log_count(cx, message, unfit);
    Ok(graph)
}

/// Whether collective operations count.
pub(super) fn choice(options: Options) -> Choice {
    match options.collectives {
        Collectives::Ignore => Choice::Ignore,
        Collectives::Keep => Choice::Keep,
        Collectives::Expand => Choice::Expand(options.algorithms),
    }
}
