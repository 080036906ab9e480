//! Task graphs that hopmap has stored, so that a pipeline takes them as well as recordings.

use hopmap_artifact::Folder;
use hopmap_model::{Artifact, InputPath, TaskGraph};

use super::reader::{Reader, Sample};
use crate::error::TraceError;

/// The file that describes an artifact; it contains the digests of all other files.
const DESCRIPTION: &str = "artifact.json";

pub(super) static READER: Reader = Reader {
    recognises: is_task_graph,
    files: |path| Ok(vec![InputPath::named(path.join(DESCRIPTION), DESCRIPTION)]),
    read: |path, _, _| Ok(Folder::read::<TaskGraph>(path).map_err(TraceError::from)?),
    ..Reader::BINARY
};

fn is_task_graph(sample: &Sample<'_>) -> bool {
    sample.is_folder
        && Folder::open(sample.path).is_ok_and(|folder| folder.description().kind == TaskGraph::KIND)
}
