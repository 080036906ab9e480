//! Why programs cannot be tried.

use std::io;
use std::path::PathBuf;

use hopmap_launchers::LaunchError;
use miette::Diagnostic;

/// A program cannot be run under the mappings.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum TrialError {
    /// A parameter that should be a command is none.
    #[error("`{parameter}` is `{text}`, which is not a command")]
    #[diagnostic(code(run::command), help("give a program and its arguments; quotes must be closed"))]
    Command {
        /// The parameter.
        parameter: &'static str,
        /// Its value.
        text: String,
    },
    /// The program does not exist, or is not executable.
    #[error("the program `{program}` {reason}")]
    #[diagnostic(
        code(run::program),
        help("relative paths start in `folder`, and without it in the working directory of hopmap")
    )]
    Program {
        /// The program as the parameter names it.
        program: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The mappings cannot be compared.
    #[error("{problem}")]
    #[diagnostic(code(run::mappings), help("connect mappings of the same program, each once, to `mappings`"))]
    Mappings {
        /// What is wrong with them.
        problem: String,
    },
    /// A mapping cannot be launched.
    #[error("mapping `{mapping}` cannot be launched")]
    #[diagnostic(code(run::launch), help("choose the launcher of the program's MPI with `launch`"))]
    Launch {
        /// Its name.
        mapping: String,
        /// Why.
        #[source]
        source: LaunchError,
    },
    /// The launcher cannot be started.
    #[error("the launcher `{launcher}` cannot be started: {source}")]
    #[diagnostic(
        code(run::launcher),
        help("install it, load its module, or name another one with `launcher`")
    )]
    Start {
        /// The launcher.
        launcher: String,
        /// Why.
        source: io::Error,
    },
    /// All mappings failed at once.
    #[error("the program fails under every mapping. {first}")]
    #[diagnostic(
        code(run::failed),
        help("the command must work in a terminal; `launcher` adds options to it, and `env` variables")
    )]
    AllFailed {
        /// How the first run ended.
        first: String,
    },
    /// The mapping to use is one whose runs fail.
    #[error("`{mapping}` is the mapping to use, but failed in {failed} of {runs} runs")]
    #[diagnostic(
        code(run::best_fails),
        help(
            "`hopmap show` lists the runs; with `allow_failures` mappings are compared whose runs fail now and then"
        )
    )]
    BestFails {
        /// Its name.
        mapping: String,
        /// Its runs that failed.
        failed: usize,
        /// All its runs.
        runs: usize,
    },
    /// The command before a run failed.
    #[error("`prepare`: `{command}` {how}")]
    #[diagnostic(code(run::prepare), help("it runs in a shell, in `folder`; run it by hand there"))]
    Prepare {
        /// The command.
        command: String,
        /// How it ended.
        how: String,
    },
    /// The command that measures the lateness of a network failed.
    #[error("`lateness`: {reason}")]
    #[diagnostic(
        code(run::lateness),
        help("the command prints one number: how late frames were since it ran last, in seconds")
    )]
    Lateness {
        /// What it printed, or how it ended.
        reason: String,
    },
    /// A file cannot be written or read.
    #[error("cannot write `{}`: {source}", path.display())]
    #[diagnostic(code(run::file))]
    File {
        /// Its path.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}
