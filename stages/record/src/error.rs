//! Why a program cannot be recorded.

use std::io;
use std::path::{Path, PathBuf};

use hopmap_artifact::ArtifactError;
use hopmap_command::Failure;
use hopmap_durable::DurableError;
use hopmap_mpi_environment::{Abi, CompilerError, Implementation};
use hopmap_recording::RecordingError;
use hopmap_text::FileError;
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
    /// A step of Slurm whose tasks do not know each other.
    #[error("srun has started {tasks} tasks without PMI: for MPI, each is a program of one rank")]
    #[diagnostic(
        code(record::no_pmi),
        help(
            "add --mpi=pmi2 (MPICH, Intel MPI) or --mpi=pmix (Open MPI) to srun; `srun --mpi=list` shows what there is, and `hopmap record --inside` records all the same"
        )
    )]
    NoPmi {
        /// Their number.
        tasks: u32,
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
    /// The recorder cannot be built, or not be kept.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Compiler(#[from] CompilerError),
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
    #[error("{} is {what}, into which no library can be loaded", path.display())]
    #[diagnostic(
        code(record::loader),
        help("{}", if *.is_static { "link it dynamically; `hopmap record --method openmpi` needs no library if it contains Open MPI" } else { "run a copy without these permissions" })
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

/// Ranks that cannot be reordered.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum ReorderError {
    /// The program cannot be started with a library.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Start(#[from] RecordError),
    /// The mapping is wrong.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Mapping(#[from] FileError),
    /// The folder is no mapping.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Artifact(#[from] ArtifactError),
    /// `--verify` has found a rank at another place.
    #[error("{problem}")]
    #[diagnostic(
        code(reorder::elsewhere),
        help(
            "compare the mapping with `hopmap reorder --where`; `--mpicc` names the compiler of the program's MPI"
        )
    )]
    Elsewhere {
        /// The rank, and where it is.
        problem: String,
    },
    /// One process has nothing to reorder.
    #[error("`{program}` does not start ranks, and is not one")]
    #[diagnostic(
        code(reorder::no_launcher),
        help(
            "name the launcher: hopmap reorder --mapping M -- mpirun -n 4 {program} …; `--inside` says that this process is a rank"
        )
    )]
    NoLauncher {
        /// The first word of the command.
        program: String,
    },
}

impl From<ReorderError> for Failure {
    fn from(error: ReorderError) -> Self {
        match error {
            ReorderError::NoLauncher { .. } => Self::usage(error),
            ReorderError::Start(error) => error.into(),
            error => Self::failed(error),
        }
    }
}

impl From<RecordError> for Failure {
    fn from(error: RecordError) -> Self {
        match error {
            RecordError::Exists { .. }
            | RecordError::NoPmi { .. }
            | RecordError::NotEmpty { .. }
            | RecordError::Compiler(CompilerError::Mpicc { .. })
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
