//! Errors of `launch/check`.

use std::path::PathBuf;

use hopmap_process::{Cause, RunError};
use hopmap_text::FileError;
use miette::Diagnostic;

/// A launch file was not obeyed, or that could not be seen.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum CheckError {
    /// There is nothing to check.
    #[error("neither a launch file nor `path` with `command` is given")]
    #[diagnostic(
        code(launch::nothing_given),
        help("connect `launch` to a stage launch/*, or set `path` and `command`")
    )]
    NoFile,
    /// A command line is incomplete.
    #[error("`{name}` is `{line}`, which does not start a program")]
    #[diagnostic(
        code(launch::command),
        help(
            "write a program and its arguments; quotes must be closed, and `command` needs a placeholder for the program"
        )
    )]
    Command {
        /// The parameter.
        name: &'static str,
        /// Its value.
        line: String,
    },
    /// The launch file was written for another mapping.
    #[error("{file} is of another mapping: it begins with `{heading}`")]
    #[diagnostic(
        code(launch::other_mapping),
        help("write the launch file again, or connect the mapping that it was written for")
    )]
    OtherMapping {
        /// The file.
        file: String,
        /// Its first line.
        heading: String,
    },
    /// A file cannot be written.
    #[error("cannot write or find `{path}`")]
    #[diagnostic(code(launch::file), help("check its permissions, and the space on its file system"))]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: std::io::Error,
    },
    /// The launch file cannot be read.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Read(#[from] FileError),
    /// HPE Cray MPICH numbers its ranks in `MPI_Init`, which hopmap itself does not call.
    #[error("`hopmap-ranks` is neither beside hopmap nor on PATH")]
    #[diagnostic(
        code(launch::no_ranks_program),
        help(
            "the ranks of a file MPICH_RANK_ORDER are known after MPI_Init: build `hopmap-ranks` with this MPI, or \
             let `program` be a program that prints `rank R on HOST, cores 0 of 1`"
        )
    )]
    NoRanksProgram,
    /// The launcher failed.
    #[error("{error}; its launch file, which is gone now:\n{lines}")]
    #[diagnostic(code(launch::launcher), help("{}", help(&error.cause)))]
    Run {
        /// What it said.
        error: RunError,
        /// The first lines of the launch file.
        lines: String,
    },
    /// The command of the file starts the ranks of one host.
    #[error("the command of {file} starts the ranks of one host, and nothing here starts it on the others")]
    #[diagnostic(
        code(launch::one_host),
        help(
            "in a Slurm job set `launcher = \"srun --ntasks-per-node=1 sh\"`, with the store on a file system that all hosts share; \
             elsewhere start the command on every host with `--no-python hopmap where` as its program, and compare the lines \
             that it prints with the file"
        )
    )]
    OneHost {
        /// The file.
        file: String,
    },
    /// The program did not print where it runs.
    #[error("no rank said where it runs: `{command}` ended without an error{quoted}")]
    #[diagnostic(
        code(launch::silent),
        help("`program` must print what `hopmap where` prints, on standard output")
    )]
    Silent {
        /// The command.
        command: String,
        /// Its standard error.
        quoted: String,
    },
    /// The launcher started other ranks than those of the mapping.
    #[error("{problem}")]
    #[diagnostic(
        code(launch::ranks),
        help(
            "`{launcher}` started other processes than the ranks of the mapping; is it the launcher that the launch file is for, \
             and do its options or variables set a number of processes?"
        )
    )]
    Ranks {
        /// What is wrong.
        problem: String,
        /// The launcher.
        launcher: String,
    },
    /// Ranks are not where the mapping has them.
    #[error("{problem}")]
    #[diagnostic(
        code(launch::disobeyed),
        help(
            "started with `{command}`; an option, a variable or a configuration file of the launcher may override the file. The \
             limits of each launcher are in docs/howto/launch.md"
        )
    )]
    Disobeyed {
        /// The ranks, with the lines for them.
        problem: String,
        /// The command.
        command: String,
    },
}

/// Hint for a launcher that failed.
fn help(cause: &Cause) -> &'static str {
    match cause {
        Cause::Start(_) => "install the launcher, load its module, or name it in `launcher`",
        Cause::Failed(_) => {
            "the ranks were to print where they run; run the command by hand with another program, such as hostname"
        }
        Cause::Time(_) => {
            "raise `timeout_s`; a launcher may wait for a host that does not answer, or for free slots of a job"
        }
        Cause::Output(_) => "`program` must print one line",
        Cause::Stopped => {
            "an interrupt or the deadline of the run ended it: run hopmap again, with more time"
        }
        Cause::Wait(_) => "run hopmap again",
    }
}
