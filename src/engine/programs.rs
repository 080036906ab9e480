//! Programs that the stages of a pipeline start. `hopmap check` finds the missing ones before a run does, perhaps hours later.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use hopmap_launchers::COMMAND_OF_FILE;
use hopmap_model::{Artifact as _, LaunchFile};
use hopmap_process::on_path;
use miette::{Diagnostic, Report};

use super::launch::ranks_program;
use super::outcome::{RunReport, Settled, State};
use super::save::launch_command;
use super::store::Store;
use crate::pipeline::{Cell, Origin, Pipeline};

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
pub(crate) fn missing_programs(pipeline: &Pipeline) -> Vec<Report> {
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

/// The commands of the user that a cell starts: its launcher, and those of its stage.
fn commands(pipeline: &Pipeline, cell: &Cell, planned: &RunReport, store: &Store) -> Vec<String> {
    // Commands depend on no artifacts but launch files.
    let no_folder = |_, _: &str| PathBuf::new();
    let of_stage = pipeline.with_parameters(cell, &no_folder, |configured| configured.commands());
    let known = of_launch_files(cell, planned, store).join("; ");
    let shown = |command: String| match known.is_empty() {
        true => command,
        false => command.replace(COMMAND_OF_FILE, &known),
    };
    let of_stage = of_stage.unwrap_or_default().into_iter().map(shown);
    cell.launcher.iter().map(|launcher| launcher.with(&[])).chain(of_stage).collect()
}

/// The commands of the launch files that a cell gets, as far as these have been made.
fn of_launch_files(cell: &Cell, planned: &RunReport, store: &Store) -> Vec<String> {
    let needs = cell.needs.iter().filter(|need| need.port.kind == LaunchFile::KIND);
    let records = |origin: &'_ Origin| {
        let (Origin::Cell { output, .. } | Origin::Best { output, .. }) = origin;
        let of_cell = |cell: &usize| planned.cells.get(*cell)?.outputs.get(*output);
        origin.cells().iter().filter_map(of_cell).collect::<Vec<_>>()
    };
    let records = needs.flat_map(|need| &need.origins).flat_map(records);
    records.filter_map(|record| launch_command(store, record, "FILE")).collect()
}

/// What a pipeline that somebody else may have written starts, and where it writes.
#[derive(Debug, thiserror::Error, Diagnostic)]
#[error("this project was imported from an archive, and its pipeline{listed}")]
#[diagnostic(
    code(engine::unasked_commands),
    help(
        "if you trust all of this, add --allow-programs to `hopmap run`: it is then allowed in this project, now and later"
    )
)]
pub(crate) struct UnaskedCommands {
    listed: String,
}

/// The commands that a run would start, given what a plan says of its cells, and the copies that would be written outside of the
/// project.
pub(crate) fn unasked_commands(
    pipeline: &Pipeline,
    planned: &RunReport,
    store: &Store,
    outside: &[&Path],
) -> Option<UnaskedCommands> {
    let mut listed = String::new();
    let mut seen = HashSet::new();
    let runs = |settled: &Settled| !matches!(settled.state, State::Cached | State::Infeasible);
    let cells = pipeline.cells.iter().zip(&planned.cells).filter(|(_, settled)| runs(settled));
    for (cell, command) in cells.flat_map(|(cell, _)| {
        commands(pipeline, cell, planned, store).into_iter().map(move |one| (cell, one))
    }) {
        if seen.insert((&cell.stage, command.clone())) {
            if listed.is_empty() {
                listed.push_str(" starts commands:");
            }
            listed.push_str(&format!("\n  stage `{}`: {}", cell.stage, visible(&command)));
        }
    }
    if !outside.is_empty() {
        let before = if listed.is_empty() { "" } else { "\nand" };
        listed.push_str(&format!("{before} writes outside of the project:"));
        outside.iter().for_each(|path| listed.push_str(&format!("\n  {}", visible(&path.to_string_lossy()))));
    }
    (!listed.is_empty()).then_some(UnaskedCommands { listed })
}

/// A command as one line, in which no sequence of a terminal can hide a part.
pub(crate) fn visible(command: &str) -> String {
    let shown = |c: char| match c {
        '\'' | '"' | '\\' => c.to_string(),
        _ => c.escape_debug().to_string(),
    };
    command.chars().map(shown).collect()
}

/// The missing programs of a cell, with their errors.
fn faults(pipeline: &Pipeline, cell: &Cell) -> Vec<(String, Report)> {
    let missing = |what, program: &str| {
        let fault = if is_path(program) { "does not exist" } else { "is not on PATH" };
        let error = MissingProgram { what, program: program.to_owned(), fault };
        (!exists(program)).then(|| (program.to_owned(), Report::new(error)))
    };
    let mut found = Vec::new();
    if let Some(launcher) = &cell.launcher {
        // What the stage itself starts is needed where the launcher starts the stage.
        let is_ranks = cell.entry.distributed && !cell.entry.directs_ranks;
        let ranks = is_ranks.then(ranks_program).and_then(Result::err);
        let ranks = ranks.map(|error| (String::new(), error));
        found.extend(missing("launcher", launcher.program()).into_iter().chain(ranks));
    }
    // A stage that is started elsewhere has its programs there; one without a launcher compiles nothing for it.
    if cell.launcher.is_some() == cell.entry.directs_ranks {
        // Names of programs do not depend on artifacts.
        let no_folder = |_, _: &str| PathBuf::new();
        let named = pipeline.with_parameters(cell, &no_folder, |configured| configured.programs());
        let named = named.unwrap_or_default();
        found.extend(named.iter().filter_map(|program| missing("program", program)));
    }
    found
}

fn exists(program: &str) -> bool {
    if is_path(program) { Path::new(program).is_file() } else { on_path(program).is_some() }
}

fn is_path(program: &str) -> bool {
    program.contains('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shown_command_hides_nothing() {
        assert_eq!(visible("A='x' rm \\*\r\u{1b}[2Kls\u{202e}"), "A='x' rm \\*\\r\\u{1b}[2Kls\\u{202e}");
    }
}
