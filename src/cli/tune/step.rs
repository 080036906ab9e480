//! A step of `hopmap tune` that is a command of its own: it runs until the deadline, and its result gets its name when it is whole.

use std::path::Path;

use hopmap_command::{Exit, Failure, ParsedCommand, refuse, shown};
use hopmap_durable::adopt_folder;
use hopmap_model::Context;
use miette::Diagnostic;

use crate::cli::exec;
use crate::cli::job::End;
use crate::cli::open::on_interrupt;
use crate::cli::output::{Output, Result};

/// The time was over before anything could be compared.
#[derive(Debug, thiserror::Error, Diagnostic)]
#[error("the time was over before {what} had ended")]
#[diagnostic(code(tune::deadline), help("{help}"))]
pub(super) struct OutOfTime {
    what: &'static str,
    help: &'static str,
}

impl OutOfTime {
    /// The error of a step that the deadline may have cut, if it has: the end of a job is like an interrupt.
    pub(super) fn check(end: Option<End>, what: &'static str) -> Result<()> {
        let help = "give a longer --deadline, or a shorter run of the program";
        match end.filter(|end| end.is_over()) {
            Some(end) => {
                let exit = if end.is_of_job { Exit::Interrupted } else { Exit::Failed };
                Err(Failure::new(exit, [Self { what, help }.into()]))
            }
            None => Ok(()),
        }
    }
}

pub(super) fn run_command(command: &dyn ParsedCommand, end: Option<End>, output: Output) -> Result {
    let cancelled = on_interrupt()?;
    let observer = exec::Notes { output, cancelled: &cancelled };
    Ok(command.run(&Context::new(1, end.map(|end| end.at), &observer), &mut std::io::sink())?.exit)
}

/// Gives what a command has finished its name, unless somebody else has taken it meanwhile.
pub(super) fn keep(ended: Result, unfinished: &Path, place: &Path) -> Result {
    if matches!(ended, Ok(Exit::Done)) {
        if place.exists() {
            return refuse(format!("{} is there already", shown(place)), "move it away if it is yours");
        }
        adopt_folder(unfinished, place).map_err(Failure::failed)?;
    }
    ended
}
