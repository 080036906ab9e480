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

/// Blocks in which all candidates run, before the best goes on alone.
pub(super) const CHOOSE: u32 = 3;
/// Pairs of runs that an interval needs.
pub(super) const LEAST_PAIRS: u64 = 6;

/// Number of runs that warm up and choose one of these candidates, and of all that are needed to compare it.
pub(super) fn runs_needed(candidates: u64) -> (u64, u64) {
    // One candidate needs no choice, only its warm-up and that of the default.
    let choice = (candidates + 1) * if candidates > 1 { u64::from(CHOOSE + 1) } else { 1 };
    (choice, choice + 2 * LEAST_PAIRS)
}

/// The time was over before anything could be compared.
#[derive(Debug, thiserror::Error, Diagnostic)]
#[error("{whose} were over before {what} had ended")]
#[diagnostic(code(tune::deadline), help("{help}"))]
pub(super) struct OutOfTime {
    whose: String,
    what: &'static str,
    help: String,
}

impl OutOfTime {
    /// The error of a step that the deadline may have cut, if it has: the end of a job is like an interrupt.
    pub(super) fn check(end: Option<End>, what: &'static str) -> Result<()> {
        let Some(End { time, is_of_job, .. }) = end.filter(|end| end.is_over()) else { return Ok(()) };
        let (exit, whose, wanted) = match is_of_job {
            true => (Exit::Interrupted, "left of the job", "a longer job"),
            false => (Exit::Failed, "of --deadline", "a longer --deadline"),
        };
        let whose = format!("the {} s {whose}", time.as_secs());
        let help = format!(
            "give {wanted}, for the recorded run, the measurement of the machine, and about {} more runs, or a shorter run of the \
             program; what has ended is kept for the next call",
            runs_needed(2).1
        );
        Err(Failure::new(exit, [Self { whose, what, help }.into()]))
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
