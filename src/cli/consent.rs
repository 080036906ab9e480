//! Consent to what the pipelines of imported archives start, and write outside of their projects.

use std::path::Path;

use hopmap_artifact::Folder;
use hopmap_command::{Failure, refuse, shown};
use hopmap_launchers::COMMAND_OF_FILE;
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

/// Refuses to start with `commands` what a launch file in an imported project says, if the user has not allowed it.
pub(super) fn ask_for_files<'a>(
    commands: &[String],
    inputs: impl IntoIterator<Item = &'a Path>,
) -> Result<(), Failure> {
    if !commands.iter().any(|command| command.contains(COMMAND_OF_FILE)) {
        return Ok(());
    }
    for path in inputs.into_iter().filter(|path| ImportedProject::of(path).is_some()) {
        let command = Folder::open(path).and_then(|folder| folder.attribute::<String>("command"));
        if let Ok(command) = command {
            let command = engine::visible(&command);
            let message = format!("{} is of an imported project, and would start: {command}", shown(path));
            return refuse(message, "if you trust it, run its pipeline with --allow-programs first");
        }
    }
    Ok(())
}
