//! Why a mapper refuses its parameters or a problem, or fails.

use std::path::PathBuf;

pub use hopmap_islands::SearchError;
use hopmap_model::NotBuilt;
use hopmap_objective::Problem;
use hopmap_partition::PartitionError;
use hopmap_process::{Cause, RunError};
use miette::Diagnostic;

/// Parameters or a problem that a mapper does not take, or what kept it from its end.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum MapError {
    /// A parameter that makes no search, a problem that the mapper cannot solve, or an answer that is none.
    #[error("{problem}")]
    Invalid {
        /// What is wrong.
        problem: String,
        /// What to do about it.
        #[help]
        help: String,
    },
    /// Something is wrong with the budget.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Budget(#[from] SearchError),
    /// A file for a command cannot be written, or one of it cannot be read.
    #[error("`{path}` cannot be written or read")]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: std::io::Error,
    },
    /// The command gives no answer.
    #[error(transparent)]
    #[diagnostic(help("{}", help(&.0.cause)))]
    Run(#[from] RunError),
    /// The partitioner is not in this build.
    #[error(transparent)]
    #[diagnostic(transparent)]
    NotBuilt(#[from] NotBuilt),
    /// A graph or parts that contradict themselves.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Partition(#[from] PartitionError),
}

impl MapError {
    #[cold]
    pub(crate) fn new(problem: impl Into<String>, help: impl Into<String>) -> Self {
        Self::Invalid { problem: problem.into(), help: help.into() }
    }

    /// Nothing is left between the first and the last temperature.
    pub(crate) fn temperatures(first: f64, last: f64) -> Self {
        let problem = format!("the final temperature {last} is not below the initial one, which is {first}");
        Self::new(
            problem,
            "temperatures are in the unit of F; give a lower `final_temperature` or leave it out",
        )
    }

    /// Refuses a value of a parameter if it is not in order.
    pub(crate) fn unless(in_order: bool, name: &str, value: &impl ToString, help: &str) -> Result<(), Self> {
        match in_order {
            true => Ok(()),
            false => Err(Self::new(format!("{name} is {}", value.to_string()), help)),
        }
    }

    /// Refuses zero.
    pub(crate) fn unless_zero(name: &str, value: Option<u64>) -> Result<(), Self> {
        Self::unless(value != Some(0), name, &0, "give a whole number above zero, or leave it out")
    }
}

/// Checks that two matrices say all of a problem, and that it has few enough slots for a stage that `does` something with these.
pub(crate) fn check_plain(
    problem: &Problem,
    does: &str,
    most_slots: usize,
    too_large: &str,
) -> Result<(), MapError> {
    if !problem.is_plain() {
        let problem = format!(
            "{does} F or hop-bytes without constraints, of problems in which weights or costs are symmetric"
        );
        return Err(MapError::new(
            problem,
            "leave out `objective`, `pinned` and `forbidden`, or use map/auto",
        ));
    }
    if problem.slots() > most_slots {
        let problem = format!("{} slots are more than the {most_slots} {too_large}", problem.slots());
        return Err(MapError::new(problem, "use map/auto, or a part of the machine"));
    }
    Ok(())
}

/// What to do about a command without an answer.
pub(crate) fn help(cause: &Cause) -> &'static str {
    match cause {
        Cause::Start(_) => {
            "give the path of the program, or a name that is on PATH; a relative path begins where hopmap was started"
        }
        Cause::Wait(_) => "run hopmap again",
        Cause::Failed(_) => {
            "run the command by hand on a small problem: what it prints on standard error is quoted"
        }
        Cause::Time(_) => "raise `time_limit_s`, or tell the command its time with {seconds}",
        Cause::Output(_) => "an answer is n whole numbers; let the command write it to {output}",
        Cause::Stopped => "hopmap was interrupted, or its deadline had come",
    }
}
