//! Reading of arbitrary files: an error or a recording, but never a panic.
//!
//! Plain functions, called by tests with damaged files and by the fuzz target `record` in `fuzz/`.
#![allow(dead_code, reason = "every user needs only a part")]
#![allow(clippy::unwrap_used, reason = "a failure panics")]

use std::path::Path;

use hopmap_collectives::Algorithms;
use hopmap_recording::{Choice, EventFile, Recording, RecordingError, files, lines};

/// Reads a folder, and converts and summarises what it has.
pub(crate) fn recording(folder: &Path) {
    let _ = files(folder);
    convert(Recording::read(folder));
}

/// The same with profiles of Open MPI's monitoring.
pub(crate) fn profiles(folder: &Path) {
    convert(Recording::of_profiles(folder, None));
}

/// Opens the events of rank 2 of 5, and reads them to the end.
pub(crate) fn events(path: &Path) {
    let Ok(file) = EventFile::open(path, 2, 5) else { return };
    for event in file.events() {
        let Ok(event) = event else { break };
        assert!(event.enter <= event.leave && event.outside >= 0.0, "{event:?}");
    }
}

fn convert(read: Result<Recording, RecordingError>) {
    let recording = match read {
        Ok(recording) => recording,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    for choice in [Choice::Ignore, Choice::Keep, Choice::Expand(Algorithms::default())] {
        if let Ok(converted) = recording.task_graph(choice) {
            converted.graph.check().unwrap();
            assert!(!lines(&converted.graph, Some(&recording)).is_empty());
        }
    }
}
