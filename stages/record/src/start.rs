//! What `hopmap record` and `hopmap reorder` share: where they stand, the library that they build, and what they start.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use clap::Args;
use hopmap_command::Exit;
use hopmap_model::Context;
use hopmap_mpi_environment::{
    Abi, Cache, Compiled, Compiler, Identity, Implementation, LauncherKind, Mpi, Rank, Sources, host_name,
    program_in,
};

use crate::error::RecordError;
use crate::program::Program;

/// The command behind the options, and the library for it.
#[derive(Debug, Args)]
pub(crate) struct Start {
    /// This process is a rank: load the library into the program. Known from the environment of Open MPI, MPICH, Intel
    /// MPI, PMIx and PMI.
    #[arg(long)]
    pub(crate) inside: bool,
    /// Build with this compiler of the program's MPI [default: the mpicc next to the launcher, or in PATH].
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) mpicc: Option<String>,
    /// Keep the built library in this folder, which must belong to you alone.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) cache: Option<PathBuf>,
    /// The launcher or, inside, the program; with its arguments.
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

/// Where a command stands.
pub(crate) enum Position {
    /// Before the program of a rank, whose number may be unknown.
    Inside(Option<Rank>),
    /// Before a launcher, or a program that is none.
    Outside(Option<LauncherKind>),
}

impl Start {
    /// The first word; empty where there is no command.
    pub(crate) fn first(&self) -> &str {
        self.command.first().map_or("", String::as_str)
    }

    pub(crate) fn position(&self) -> Result<Position, RecordError> {
        // A launcher that a rank or an interactive step starts is still a launcher.
        let launcher = LauncherKind::of(self.first()).filter(|_| !self.inside);
        match (launcher, Rank::of_mpi_process()) {
            (None, rank) if self.inside || rank.is_some() => Ok(Position::Inside(rank)),
            (None, _) => match Rank::of_step_without_pmi().and_then(|rank| rank.size) {
                Some(tasks) if tasks > 1 => Err(RecordError::NoPmi { tasks }),
                _ => Ok(Position::Outside(None)),
            },
            (launcher, _) => Ok(Position::Outside(launcher)),
        }
    }

    /// The words behind the launcher and its options.
    pub(crate) fn behind_launcher(&self) -> &[String] {
        match LauncherKind::of(self.first()) {
            Some(_) => &self.command[1 + program_in(&self.command[1..])..],
            None => &self.command,
        }
    }

    /// The programs among these words: there may be wrappers before that of MPI.
    pub(crate) fn programs(&self) -> Vec<Program> {
        let listed = self.listed();
        self.behind_launcher().iter().chain(&listed).filter_map(|word| Program::find(word)).collect()
    }

    /// The words of the file of `srun --multi-prog`, which is the last one of the command.
    fn listed(&self) -> Vec<String> {
        const MOST_BYTES: u64 = 1 << 20;
        let file = self.command.last().filter(|_| self.command.iter().any(|word| word == "--multi-prog"));
        let text = file.and_then(|path| hopmap_text::read_text(Path::new(path), MOST_BYTES).ok());
        text.unwrap_or_default().split_whitespace().map(str::to_owned).collect()
    }

    /// The library of these sources, for the launcher of the command or for the MPI of this process.
    pub(crate) fn compiled(
        &self,
        cx: &Context<'_>,
        sources: &Sources<'_>,
        launcher: Option<&Identity>,
        mpi: Mpi,
    ) -> Result<Compiled, RecordError> {
        let cache = Cache::open(self.cache.as_deref())?;
        let launcher = launcher.map(|launcher| (self.first(), Some(launcher)));
        let (named, say) = (self.mpicc.as_deref(), |line| cx.log(line));
        Ok(Compiler::compile_for(sources, &cache, named, launcher, mpi, &say)?)
    }

    pub(crate) fn not_started(&self, source: io::Error) -> RecordError {
        RecordError::Start { program: self.first().to_owned(), host: host_name(), source }
    }
}

/// Refuses a program that is linked with another MPI than that of what starts it: every rank would be a program of its own.
pub(crate) fn check_starter(starter: Option<Implementation>, linked: Option<Abi>) -> Result<(), RecordError> {
    match starter.zip(linked) {
        Some((launcher, linked)) if launcher.abi().is_some_and(|abi| abi != linked) => {
            Err(RecordError::OtherMpi { linked, launcher })
        }
        _ => Ok(()),
    }
}

/// The exit code for the end of a launcher.
pub(crate) fn exit_of(status: ExitStatus, cx: &Context<'_>) -> Exit {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    match u8::try_from(code).unwrap_or(1) {
        0 if cx.should_stop() => Exit::Interrupted,
        0 => Exit::Done,
        code => Exit::Program(code),
    }
}
