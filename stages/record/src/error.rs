//! Why a program cannot be recorded.

use std::io;
use std::path::{Path, PathBuf};

use hopmap_command::Failure;
use hopmap_durable::DurableError;
use hopmap_mpi_environment::{Abi, Implementation, MpiError};
use hopmap_process::RunError;
use hopmap_recording::RecordingError;
use miette::Diagnostic;

/// A program that cannot be recorded, or was not.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum RecordError {
    /// A file cannot be written or read.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Durable(#[from] DurableError),
    /// The folder has been used before.
    #[error("{} exists already", path.display())]
    #[diagnostic(code(record::exists), help("name a new folder with -o"))]
    Exists {
        /// The folder.
        path: PathBuf,
    },
    /// The folder is used for something else.
    #[error("{} has `{file}`, which is not of a recording", path.display())]
    #[diagnostic(code(record::not_empty), help("name a new folder with -o"))]
    NotEmpty {
        /// The folder.
        path: PathBuf,
        /// A file or folder in it.
        file: String,
    },
    /// What was recorded cannot be read.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Recording(#[from] RecordingError),
    /// The compiler that the user has named is missing or unknown.
    #[error("`{program}` is not a compiler of {mpi}")]
    #[diagnostic(code(record::mpicc), help("name the mpicc of the program's MPI, or leave --mpicc out"))]
    Mpicc {
        /// The program.
        program: String,
        /// The MPI of the program.
        mpi: String,
        /// Why it cannot be used.
        source: MpiError,
    },
    /// No compiler belongs to the MPI of the program.
    #[error("no mpicc of {mpi} is installed: {tried}")]
    #[diagnostic(
        code(record::compiler),
        help("name it with --mpicc, or record with --method openmpi if the program uses Open MPI")
    )]
    NoCompiler {
        /// The MPI of the program.
        mpi: String,
        /// The programs that were tried, and what they are.
        tried: String,
    },
    /// The recorder does not compile.
    #[error("the recorder cannot be built: {0}")]
    #[diagnostic(code(record::build), help("check that {compiler} compiles C programs", compiler = .0.command.split(' ').next().unwrap_or("mpicc")))]
    Build(RunError),
    /// Others could have changed what ranks would load.
    #[error("{} on {host} {problem}", path.display())]
    #[diagnostic(
        code(record::cache),
        help("ranks load a library from there: remove it, or name a folder of your own with --cache")
    )]
    Cache {
        /// The folder or file.
        path: PathBuf,
        /// This host.
        host: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// The cache has no place.
    #[error("no cache folder is known on {host}: neither XDG_CACHE_HOME nor HOME is set")]
    #[diagnostic(code(record::no_cache), help("name a folder that all hosts share with --cache"))]
    NoCache {
        /// This host.
        host: String,
    },
    /// The launcher is none whose options are known.
    #[error("`{program}` is a {kind}, which does not start the ranks itself")]
    #[diagnostic(
        code(record::launcher),
        help("put hopmap before the program, in the script: mpirun -n 4 hopmap record -o DIR PROGRAM …")
    )]
    Launcher {
        /// Its first word.
        program: String,
        /// What it is.
        kind: &'static str,
    },
    /// Open MPI's monitoring of another MPI.
    #[error("--method openmpi needs a program of Open MPI, but `{program}` belongs to {mpi}")]
    #[diagnostic(code(record::method), help("use --method preload"))]
    NotOpenMpi {
        /// The launcher or the program.
        program: String,
        /// Its MPI.
        mpi: String,
    },
    /// Open MPI's monitoring only counts.
    #[error("--events needs --method preload: Open MPI's monitoring has no calls and no times")]
    #[diagnostic(code(record::events), help("leave --method openmpi out, or --events"))]
    EventsOfOpenMpi,
    /// Every rank would be a program of its own.
    #[error("the program uses {linked}, but its launcher belongs to {launcher}")]
    #[diagnostic(code(record::other_mpi), help("start it with the launcher of {linked}"))]
    OtherMpi {
        /// The MPI that it is linked with.
        linked: Abi,
        /// The MPI that starts it.
        launcher: Implementation,
    },
    /// It does not start.
    #[error("`{program}` cannot be started")]
    #[diagnostic(code(record::start), help("check the name, and that it is executable on {host}"))]
    Start {
        /// The program.
        program: String,
        /// This host.
        host: String,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The dynamic loader preloads nothing.
    #[error("{} is {what}, into which no recorder can be loaded", path.display())]
    #[diagnostic(
        code(record::loader),
        help("{}", if *.is_static { "link it dynamically, or record with --method openmpi if it contains Open MPI" } else { "run a copy without these permissions" })
    )]
    Loader {
        /// The program.
        path: PathBuf,
        /// Why.
        what: &'static str,
        /// Whether it is linked statically.
        is_static: bool,
    },
    /// The program ended, but no rank has left anything.
    #[error("nothing was recorded: {reason}")]
    #[diagnostic(code(record::nothing), help("{help}"))]
    Nothing {
        /// What is known about it.
        reason: String,
        /// What to do.
        help: String,
    },
}

impl From<RecordError> for Failure {
    fn from(error: RecordError) -> Self {
        match error {
            RecordError::Exists { .. }
            | RecordError::NotEmpty { .. }
            | RecordError::Mpicc { .. }
            | RecordError::Launcher { .. }
            | RecordError::EventsOfOpenMpi
            | RecordError::NotOpenMpi { .. } => Self::usage(error),
            error => Self::failed(error),
        }
    }
}

impl RecordError {
    /// Wraps an I/O error.
    pub fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let wrap = DurableError::io(action, path);
        move |error| wrap(error).into()
    }
}
