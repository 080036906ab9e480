//! Programs that the stages of a pipeline start. `hopmap check` finds the missing ones before a run does, perhaps hours later.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use hopmap_process::on_path;
use miette::{Diagnostic, Report};

use super::launch::ranks_program;
use crate::pipeline::{Cell, Pipeline};

/// A launcher, or a program that the parameters of a stage name, is missing.
#[derive(Debug, thiserror::Error, Diagnostic)]
#[error("the {what} `{program}` {fault}")]
#[diagnostic(
    code(engine::missing_program),
    help("install it, load its module, or correct its name in the pipeline file")
)]
struct MissingProgram {
    what: &'static str,
    program: String,
    fault: &'static str,
}

/// An error for each missing program, at the first stage that needs it.
#[must_use]
pub fn missing_programs(pipeline: &Pipeline) -> Vec<Report> {
    let mut seen = HashSet::new();
    let mut missing = Vec::new();
    for cell in &pipeline.cells {
        for (program, error) in faults(pipeline, cell) {
            if seen.insert(program) {
                let place = format!("stage `{}` ({})", cell.name, pipeline.place(cell));
                missing.push(error.wrap_err(place));
            }
        }
    }
    missing
}

/// The missing programs of a cell, with their errors.
fn faults(pipeline: &Pipeline, cell: &Cell) -> Vec<(String, Report)> {
    let missing = |what, program: &str| {
        let fault = if is_path(program) { "does not exist" } else { "is not on PATH" };
        let error = MissingProgram { what, program: program.to_owned(), fault };
        (!exists(program)).then(|| (program.to_owned(), Report::new(error)))
    };
    if let Some(launcher) = &cell.launcher {
        // What the stage itself starts is needed where the launcher starts the stage.
        let ranks = cell.entry.distributed.then(ranks_program).and_then(Result::err);
        let ranks = ranks.map(|error| (String::new(), error));
        return missing("launcher", launcher.program()).into_iter().chain(ranks).collect();
    }
    // Names of programs do not depend on artifacts.
    let no_folder = |_, _: &str| PathBuf::new();
    let named = pipeline.with_parameters(cell, &no_folder, |configured| configured.programs());
    let named = named.unwrap_or_default();
    named.iter().filter_map(|program| missing("program", program)).collect()
}

fn exists(program: &str) -> bool {
    if is_path(program) { Path::new(program).is_file() } else { on_path(program).is_some() }
}

fn is_path(program: &str) -> bool {
    program.contains('/')
}
