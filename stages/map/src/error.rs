//! Errors of mappers.

use std::path::PathBuf;

use hopmap_model::NotBuilt;
use hopmap_objective::Problem;
use hopmap_partition::PartitionError;
use hopmap_process::{Cause, RunError};
use miette::Diagnostic;

/// Invalid parameters, an unsupported problem, or a failure of a mapper.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum MapError {
    /// An invalid parameter, an unsupported problem, or an invalid answer.
    #[error("{problem}")]
    #[diagnostic(code(map::invalid))]
    Invalid {
        /// What is wrong.
        problem: String,
        /// How to fix it.
        #[help]
        help: String,
    },
    /// A file that is exchanged with a command cannot be written or read.
    #[error("cannot write or read `{path}`")]
    #[diagnostic(code(map::file))]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: std::io::Error,
    },
    /// The command failed.
    #[error(transparent)]
    #[diagnostic(code(map::command), help("{}", help(&.0.cause)))]
    Run(#[from] RunError),
    /// This build does not have the partitioner.
    #[error(transparent)]
    #[diagnostic(transparent)]
    NotBuilt(#[from] NotBuilt),
    /// The graph or the parts are inconsistent.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Partition(#[from] PartitionError),
}

/// The objective lacks the program or the rates that it counts.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum ProgramError {
    /// No operations are connected.
    #[error("the objective `predicted-time` needs the operations of the program")]
    #[diagnostic(
        code(map::no_program),
        help("connect `program` to the output of trace/program, or use another objective")
    )]
    NoProgram,
    /// No tasks are connected.
    #[error("the objective `makespan` needs the tasks of the program")]
    #[diagnostic(
        code(map::no_tasks),
        help("connect `task-dag` to the output of trace/dag, or use another objective")
    )]
    NoTasks,
    /// The program is not that of the task graph.
    #[error("the program has {program} ranks, but the task graph has {graph}")]
    #[diagnostic(
        code(map::other_program),
        help("make both from the same recording, by trace/import and by trace/program or trace/dag")
    )]
    OtherProgram {
        /// Ranks of the program.
        program: usize,
        /// Ranks of the task graph.
        graph: usize,
    },
    /// The times of messages are unknown.
    #[error(
        "the objective `makespan` needs the times of messages, but the links of the machine have no bandwidth"
    )]
    #[diagnostic(
        code(map::no_rates),
        help(
            "give the times over a distance of cost 1, such as `weight = {{ time = {{ latency_s = 1e-6, bandwidth_bytes_per_s = 1e10 }} }}`, or use a machine whose links have rates"
        )
    )]
    NoRates,
}

impl MapError {
    #[cold]
    pub(crate) fn new(problem: impl Into<String>, help: impl Into<String>) -> Self {
        Self::Invalid { problem: problem.into(), help: help.into() }
    }

    /// The final temperature is not below the initial one.
    pub(crate) fn temperatures(first: f64, last: f64) -> Self {
        let problem = format!("the final temperature {last} is not below the initial temperature {first}");
        Self::new(problem, "temperatures are in the unit of F; lower `final_temperature` or omit it")
    }
}

/// Checks that a problem has at most `max_slots` slots.
pub(crate) fn check_slots(problem: &Problem, stage: &str, max_slots: usize) -> Result<(), MapError> {
    if problem.slots() > max_slots {
        let problem =
            format!("the machine has {} slots, but {stage} supports at most {max_slots}", problem.slots());
        return Err(MapError::new(problem, "use map/auto, or select part of the machine"));
    }
    Ok(())
}

/// Checks that the cost is a sum over pairs of ranks without constraints, in which a pair is one product, and
/// that there are at most `max_slots` slots.
pub(crate) fn check_plain(problem: &Problem, stage: &str, max_slots: usize) -> Result<(), MapError> {
    if !problem.is_sum() {
        let problem = format!("{stage} supports only F or hop-bytes without constraints");
        let help = "omit `objective`, `pinned`, `forbidden` and `devices_per_rank`, or use map/auto";
        return Err(MapError::new(problem, help));
    }
    check_slots(problem, stage, max_slots)?;
    if !problem.is_plain() {
        let problem = format!(
            "{stage} needs symmetric weights or costs, and no cost of messages from a rank to itself"
        );
        return Err(MapError::new(problem, "use map/auto or map/exact, which take any weights and costs"));
    }
    Ok(())
}

/// Hint for a failed command.
pub(crate) fn help(cause: &Cause) -> &'static str {
    match cause {
        Cause::Start(_) => {
            "give the path of the program or a name on PATH; relative paths start at the working directory of hopmap"
        }
        Cause::Wait(_) => "run hopmap again",
        Cause::Failed(_) => {
            "run the command by hand on a small problem; the message quotes its standard error"
        }
        Cause::Time(_) => "raise `time_limit_s`, or pass the time limit to the command as {seconds}",
        Cause::Output(_) => "the output must be n integers; let the command write them to {output}",
        Cause::Stopped => "hopmap was interrupted or reached its deadline",
    }
}
