//! Consent to what the pipelines of imported archives start, and write outside of their projects.

use std::path::Path;

use miette::Report;

use crate::archive::ImportedProject;
use crate::engine::{self, Store};
use crate::pipeline::Pipeline;

/// Refuses what a pipeline in this folder starts and writes elsewhere, if it was imported and the user has not allowed it.
pub(super) fn ask(folder: &Path, pipeline: &Pipeline, store: &mut Store) -> Result<(), Report> {
    let Some(project) = ImportedProject::of(folder) else { return Ok(()) };
    let planned = engine::plan(pipeline, store);
    let unasked = engine::unasked_commands(pipeline, &planned, store, &project.outside(pipeline));
    // Those that depend on results are not known yet.
    store.refuse_commands();
    unasked.map_or(Ok(()), |unasked| Err(unasked.into()))
}
