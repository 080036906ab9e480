//! What the system refuses to a command.

use std::io;

use miette::Diagnostic;

#[derive(Debug, thiserror::Error, Diagnostic)]
pub(crate) enum SystemError {
    #[error("the current directory cannot be determined")]
    #[diagnostic(code(command::no_directory), help("it may have been deleted: change to another directory"))]
    NoDirectory(#[source] io::Error),
    #[error("cannot start {threads} threads")]
    #[diagnostic(
        code(command::no_threads),
        help("use fewer cores, or raise the limit of processes (`ulimit -u`)")
    )]
    NoThreads { threads: usize, source: rayon::ThreadPoolBuildError },
    #[error("Ctrl-C cannot be handled")]
    #[diagnostic(code(command::no_signals), help("no signal handler can be installed: check `ulimit -u`"))]
    NoSignals(#[source] ctrlc::Error),
    #[error("{files} cannot be saved again")]
    #[diagnostic(
        code(command::read_only_store),
        help(
            "a run that saves files writes to the store: make it writable, or name another one with --store"
        )
    )]
    ReadOnlyStore { files: String, source: Box<dyn std::error::Error + Send + Sync> },
}
