//! `hopmap record`: starts a launcher whose ranks record themselves, or makes this rank record itself.

use std::fs;
use std::io::{self, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command as Process, ExitStatus};
use std::thread::sleep;
use std::time::Duration;

use clap::{Args, ValueEnum};
use hopmap_command::{Answer, Command, Exit, Failure, shown};
use hopmap_durable::replace_file;
use hopmap_model::Context;
use hopmap_mpi_environment::{Identity, Implementation, LauncherKind, Rank, host_name};
use hopmap_recording::{Choice, Description, Method as Recorded, Recording, is_recording, lines, profiles};
use miette::Report;
use rustix::process::{Pid, Signal, kill_process};

use crate::error::RecordError;
use crate::launcher::{PRELOAD, arguments, preload};
use crate::library::{Compiler, cache, cached_for};
use crate::program::{check, file_of, mpi_of};

/// Variables of the recorder, see `runtime.c`.
const FOLDER: &str = "HOPMAP_RECORD_DIR";
const TIMES: &str = "HOPMAP_RECORD_TIMES";
const EVENTS: &str = "HOPMAP_RECORD_EVENTS";
/// Folder and prefix of the files of Open MPI's monitoring.
const MONITORING: &str = "monitoring";
const PREFIX: &str = "x";

/// How to record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Method {
    /// Preload where it is possible, otherwise openmpi.
    Auto,
    /// Open MPI's own monitoring: messages and bytes per pair, nothing to build.
    Openmpi,
    /// A recorder loaded into every rank, built with mpicc once: also collective operations and time inside MPI.
    Preload,
}

/// Record the messages of an MPI program.
#[derive(Debug, Args)]
#[command(after_help = "\
Put it before the launcher, or in job scripts between the launcher and the program. The program runs as
usual; its exit status is that of hopmap. Afterwards DIR is a trace: hopmap run place -p trace=DIR

The recorder is built once with the MPI's mpicc, and kept in $XDG_CACHE_HOME/hopmap or ~/.cache/hopmap.
Where this folder is not on all hosts, name one that is with --cache.

Examples:
  hopmap record -o trace -- mpirun -n 64 ./app input
  mpirun -n 64 hopmap record -o trace ./app input
  srun -n 64 hopmap record -o trace --cache /shared/cache ./app input")]
pub struct RecordCommand {
    /// Write the recording to this new folder, which all hosts must share.
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    /// How to record.
    #[arg(long, value_enum, default_value_t = Method::Auto)]
    method: Method,
    /// This process is a rank: load the recorder into the program. Known from the environment of Open MPI, MPICH, Intel
    /// MPI, PMIx and PMI.
    #[arg(long)]
    inside: bool,
    /// Build with this compiler of the program's MPI [default: the mpicc next to the launcher, or in PATH].
    #[arg(long, value_name = "PROGRAM")]
    mpicc: Option<String>,
    /// Keep the built recorder in this folder, which must belong to you alone.
    #[arg(long, value_name = "FOLDER")]
    cache: Option<PathBuf>,
    /// Do not measure the time inside MPI.
    #[arg(long)]
    no_times: bool,
    /// Also write every MPI call of every rank with its times, which predictions of the run time need: 10 to 20 bytes
    /// and less than 100 ns per call. Not with --method openmpi.
    #[arg(long, conflicts_with = "no_times")]
    events: bool,
    /// The launcher or, inside, the program; with its arguments.
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// How ranks record.
enum Plan {
    /// With this library.
    Preload(PathBuf),
    OpenMpi,
}

impl Command for RecordCommand {
    const NAME: &'static str = "record";

    fn run(&self, cx: &Context<'_>, _: &mut (dyn Write + Send)) -> Result<Answer, Failure> {
        let rank = Rank::of_mpi_process();
        // A launcher that a rank or an interactive step starts is still a launcher.
        let launcher = LauncherKind::of(&self.command[0]).filter(|_| !self.inside);
        match (launcher, rank) {
            (None, Some(_)) => self.inside(cx, rank),
            (None, None) if self.inside => self.inside(cx, None),
            (launcher, _) => self.outside(cx, launcher),
        }
    }
}

impl RecordCommand {
    /// Executes the program in place of this process.
    fn inside(&self, cx: &Context<'_>, rank: Option<Rank>) -> Result<Answer, Failure> {
        let file = file_of(&self.command[0]);
        let linked = file.as_deref().and_then(mpi_of);
        let plan = self.plan(cx, None, linked.or_else(Implementation::of_this_process))?;
        let folder = self.claimed(&plan, rank)?;
        if matches!(plan, Plan::Preload(_)) {
            file.as_deref().map_or(Ok(()), check)?;
        }
        let ranks = rank.and_then(|rank| rank.size.filter(|_| rank.rank == 0));
        if let Some(ranks) = ranks {
            // The files of the ranks say what is missing.
            self.describe(&folder, &plan, ranks, None)?;
        }
        let mut command = Process::new(&self.command[0]);
        command.args(&self.command[1..]);
        self.environment(&mut command, &plan, &folder);
        if let Plan::Preload(library) = &plan {
            let existing = std::env::var(PRELOAD).ok();
            command.env(PRELOAD, preload(&library.to_string_lossy(), existing.as_deref()));
        }
        Err(self.not_started(command.exec()).into())
    }

    /// The folder, which other ranks of this program may have made, but no other program.
    fn claimed(&self, plan: &Plan, rank: Option<Rank>) -> Result<PathBuf, RecordError> {
        let folder = self.made(plan, true)?;
        let number = rank.map_or(0, |rank| rank.rank);
        let own = [format!("rank-{number}.bin"), format!("{MONITORING}/{PREFIX}.{number}.prof")];
        match own.iter().any(|name| folder.join(name).exists()) {
            true => Err(RecordError::Exists { path: self.output.clone() }),
            false => Ok(folder),
        }
    }

    /// Makes the folder; its absolute path.
    fn made(&self, plan: &Plan, may_exist: bool) -> Result<PathBuf, RecordError> {
        let path = &self.output;
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(RecordError::io("create", parent))?;
        }
        match fs::create_dir(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                if !may_exist || !path.is_dir() {
                    return Err(RecordError::Exists { path: path.clone() });
                }
            }
            made => made.map_err(RecordError::io("create", path))?,
        }
        let monitoring = path.join(MONITORING);
        if matches!(plan, Plan::OpenMpi) {
            fs::create_dir_all(&monitoring).map_err(RecordError::io("create", &monitoring))?;
        }
        fs::canonicalize(path).map_err(RecordError::io("read", path))
    }

    /// Starts the launcher, waits for it, and reads what its ranks have recorded.
    fn outside(&self, cx: &Context<'_>, kind: Option<LauncherKind>) -> Result<Answer, Failure> {
        let program = &self.command[0];
        let not_of_ranks = match kind {
            Some(LauncherKind::Allocation) => Some("command for an allocation"),
            Some(LauncherKind::Batch) => Some("command for a batch job"),
            Some(LauncherKind::Remote) => Some("command for another host"),
            Some(LauncherKind::Ranks | LauncherKind::Step) | None => None,
        };
        if let Some(kind) = not_of_ranks {
            return Err(Failure::usage(RecordError::Launcher { program: program.clone(), kind }));
        }
        let identity = kind.map(|_| Identity::of_launcher(program)).transpose().map_err(Failure::usage)?;
        if self.output.exists() {
            return Err(Failure::usage(RecordError::Exists { path: self.output.clone() }));
        }
        let plan = self.plan(cx, identity.as_ref(), self.linked())?;
        let folder = self.made(&plan, false)?;
        let status = self.launched(cx, identity.as_ref(), &plan, &folder)?;
        self.summary(&plan, &folder, status)
    }

    /// The MPI of the first executable among the arguments that has one.
    fn linked(&self) -> Option<Implementation> {
        let mut files = self.command.iter().skip(usize::from(LauncherKind::of(&self.command[0]).is_some()));
        files.find_map(|word| mpi_of(&file_of(word)?))
    }

    fn plan(
        &self,
        cx: &Context<'_>,
        launcher: Option<&Identity>,
        linked: Option<Implementation>,
    ) -> Result<Plan, RecordError> {
        let of_launcher = launcher.map(|launcher| launcher.implementation);
        let starts = of_launcher.or_else(Implementation::of_this_process);
        if let Some((launcher, linked)) =
            starts.zip(linked).filter(|(one, other)| are_different(*one, *other))
        {
            return Err(RecordError::OtherMpi { linked, launcher });
        }
        let mpi = of_launcher.filter(|mpi| *mpi != Implementation::Slurm).or(linked);
        if self.method == Method::Openmpi {
            if self.events {
                return Err(RecordError::EventsOfOpenMpi);
            }
            return match mpi.unwrap_or(Implementation::OpenMpi) {
                Implementation::OpenMpi => Ok(Plan::OpenMpi),
                implementation => {
                    Err(RecordError::NotOpenMpi { program: self.command[0].clone(), implementation })
                }
            };
        }
        match self.library(launcher, mpi) {
            Ok(library) => Ok(Plan::Preload(library)),
            Err(error)
                if self.method == Method::Auto && !self.events && mpi == Some(Implementation::OpenMpi) =>
            {
                cx.log(format!("only messages are recorded, by Open MPI's own monitoring: {error}"));
                Ok(Plan::OpenMpi)
            }
            Err(error) => Err(error),
        }
    }

    fn library(
        &self,
        launcher: Option<&Identity>,
        mpi: Option<Implementation>,
    ) -> Result<PathBuf, RecordError> {
        let cache = cache(self.cache.as_deref())?;
        let name = launcher.map(|_| self.command[0].as_str());
        let library = match (Compiler::find(self.mpicc.as_deref(), name, mpi), launcher) {
            (Ok(compiler), _) => compiler.library(&cache)?,
            (Err(error), Some(launcher)) if self.mpicc.is_none() => {
                cached_for(&cache, launcher)?.ok_or(error)?
            }
            (Err(error), _) => return Err(error),
        };
        let path = fs::canonicalize(&library).map_err(RecordError::io("read", &library))?;
        match path.to_str().is_some_and(|text| !text.contains([' ', ':', ',', ';'])) {
            true => Ok(path),
            false => Err(RecordError::Cache {
                path: cache,
                host: host_name(),
                problem: "has a character in its name that separates libraries",
            }),
        }
    }

    /// Variables of the ranks that may also reach the launcher.
    fn environment(&self, command: &mut Process, plan: &Plan, folder: &Path) {
        match plan {
            Plan::Preload(_) => {
                command.env(FOLDER, folder).env(TIMES, if self.no_times { "0" } else { "1" });
                command.env(EVENTS, if self.events { "1" } else { "0" });
            }
            Plan::OpenMpi => {
                command
                    .env("OMPI_MCA_pml_monitoring_enable", "2")
                    .env("OMPI_MCA_pml_monitoring_enable_output", "3")
                    .env("OMPI_MCA_pml_monitoring_filename", folder.join(MONITORING).join(PREFIX));
            }
        }
    }

    fn launched(
        &self,
        cx: &Context<'_>,
        identity: Option<&Identity>,
        plan: &Plan,
        folder: &Path,
    ) -> Result<ExitStatus, RecordError> {
        let given = &self.command[1..];
        let existing = std::env::var(PRELOAD).ok();
        let mut command = Process::new(&self.command[0]);
        match (plan, identity) {
            (Plan::Preload(library), Some(launcher)) => {
                let (library, names) = (library.to_string_lossy(), [FOLDER, TIMES, EVENTS]);
                command.args(arguments(
                    launcher.implementation,
                    &library,
                    existing.as_deref(),
                    &names,
                    given,
                ));
            }
            (Plan::Preload(library), None) => {
                command.env(PRELOAD, preload(&library.to_string_lossy(), existing.as_deref())).args(given);
            }
            (Plan::OpenMpi, _) => drop(command.args(given)),
        }
        self.environment(&mut command, plan, folder);
        let child = command.spawn().map_err(|error| self.not_started(error))?;
        waited(child, cx).map_err(|error| self.not_started(error))
    }

    fn not_started(&self, source: io::Error) -> RecordError {
        RecordError::Start { program: self.command[0].clone(), host: host_name(), source }
    }

    /// Writes `record.json`; `failure` says why the program has not ended well.
    fn describe(
        &self,
        folder: &Path,
        plan: &Plan,
        ranks: u32,
        failure: Option<String>,
    ) -> Result<(), RecordError> {
        let (method, mpi) = match plan {
            Plan::Preload(library) => (Recorded::Preload, mpi_of_library(library)),
            Plan::OpenMpi => (Recorded::Openmpi, Implementation::OpenMpi.to_string()),
        };
        let description = Description {
            mpi,
            arguments: self.command.clone(),
            started: jiff::Timestamp::now().to_string(),
            complete: failure.is_none(),
            events: self.events,
            reason: failure,
            ..Description::new(method, ranks)
        };
        let path = folder.join("record.json");
        let text = serde_json::to_string_pretty(&description).map_err(io::Error::from);
        replace_file(&path, text.map_err(RecordError::io("write", &path))?.as_bytes())?;
        Ok(())
    }

    fn summary(&self, plan: &Plan, folder: &Path, status: ExitStatus) -> Result<Answer, Failure> {
        let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1);
        let exit = match u8::try_from(code).unwrap_or(1) {
            0 => Exit::Done,
            code => Exit::Program(code),
        };
        let failed =
            |report: Report| Failure::new(if exit == Exit::Done { Exit::Failed } else { exit }, [report]);
        let ranks = recorded_ranks(plan, folder).map_err(|error| failed(error.into()))?;
        let Some(ranks) = ranks else {
            return Err(failed(self.nothing(plan, folder, status).into()));
        };
        let failure = (!status.success()).then(|| format!("`{}` ended with {status}", self.command[0]));
        self.describe(folder, plan, ranks, failure).map_err(|error| failed(error.into()))?;
        let recording = Recording::read(folder).map_err(|error| failed(error.into()))?;
        // Too many messages to expand are still worth a summary.
        let converted = recording.task_graph(Choice::Expand(hopmap_collectives::Algorithms::default()));
        let converted = converted.or_else(|_| recording.task_graph(Choice::Keep));
        let graph = converted.map_err(|error| failed(error.into()))?.graph;
        let mut answer = Answer::default().ending(exit);
        for line in lines(&graph, Some(&recording)) {
            answer.line(line);
        }
        answer.line(format!("recorded in {}", shown(&self.output)));
        Ok(answer)
    }

    /// Why no rank has recorded anything.
    fn nothing(&self, plan: &Plan, folder: &Path, status: ExitStatus) -> RecordError {
        let library = match plan {
            Plan::Preload(library) => library.clone(),
            Plan::OpenMpi => "Open MPI".into(),
        };
        let unfit = self.command.iter().find_map(|word| check(&file_of(word)?).err());
        if let (Plan::Preload(_), Some(error)) = (plan, unfit) {
            return error;
        }
        let reason = match status.success() {
            true => "no rank has called MPI_Init, or none could load the recorder".to_owned(),
            // Hydra, for example, kills all ranks when one has died.
            false => format!("`{}` ended with {status}, and no rank could write its file", self.command[0]),
        };
        RecordError::Nothing { reason, library, folder: folder.to_owned() }
    }
}

/// Whether a launcher cannot start programs of an MPI. Slurm starts those of all, and Intel MPI is an MPICH.
fn are_different(launcher: Implementation, linked: Implementation) -> bool {
    let is_open = |mpi| mpi == Implementation::OpenMpi;
    launcher != Implementation::Slurm && is_open(launcher) != is_open(linked)
}

/// Waits for the launcher. A signal to this process reaches the launcher, which ends the ranks.
fn waited(mut child: Child, cx: &Context<'_>) -> io::Result<ExitStatus> {
    let mut is_asked = false;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if cx.should_stop() && !is_asked {
            is_asked = true;
            // An error means that it has ended.
            let _ = kill_process(Pid::from_child(&child), Signal::TERM);
        }
        sleep(Duration::from_millis(10));
    }
}

/// How many ranks have recorded something; `None` if no rank has.
fn recorded_ranks(plan: &Plan, folder: &Path) -> Result<Option<u32>, RecordError> {
    match plan {
        Plan::Preload(_) if is_recording(folder) => Ok(Some(Recording::read(folder)?.processes.len() as u32)),
        Plan::OpenMpi if hopmap_recording::is_profiles(&folder.join(MONITORING)) => {
            let ranks = profiles(&folder.join(MONITORING))?.into_iter().map(|(rank, _)| rank + 1).max();
            Ok(ranks)
        }
        _ => {
            let _ = fs::remove_dir(folder.join(MONITORING));
            // Without a recording, the name is free again.
            let _ = fs::remove_dir(folder);
            Ok(None)
        }
    }
}

/// `open-mpi 4.1.4` from the name of the recorder.
fn mpi_of_library(library: &Path) -> String {
    let name = library.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let words: Vec<&str> = name.strip_prefix("record-").unwrap_or(&name).rsplitn(4, '-').collect();
    match words[..] {
        [_, _, version, "open-mpi"] => format!("Open MPI {version}"),
        [_, _, version, "mpich"] => format!("MPICH {version}"),
        [_, _, version, "intel-mpi"] => format!("Intel MPI {version}"),
        _ => String::new(),
    }
}
