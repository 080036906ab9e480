//! `hopmap reorder`: starts a launcher whose ranks are renumbered, or loads the library that does it into this rank's program.

use std::fs::File;
use std::io::{IsTerminal, Seek, Write};
use std::os::fd::{AsFd, BorrowedFd, IntoRawFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use clap::Args;
use hopmap_command::{Answer, Command, Exit, Failure, shown};
use hopmap_durable::replace_file;
use hopmap_model::Context;
use hopmap_mpi_environment::{
    Abi, Identity, Implementation, LauncherKind, Location, Mpi, PRELOAD, Rank, before_programs, host_name,
    preload,
};
use miette::Diagnostic;
use rustix::fs::{MemfdFlags, memfd_create};
use serde_json::json;

use crate::error::{RecordError, ReorderError};
use crate::launch::run_captured;
use crate::library::{reordering_sources, where_sources};
use crate::order::Order;
use crate::program::Program;
use crate::start::{Position, Start, check_starter, exit_of};

/// Variables of the library, see `reorder.c`.
const FILE: &str = "HOPMAP_REORDER_FD";
const HOST: &str = "HOPMAP_REORDER_HOST";
const CORES: &str = "HOPMAP_REORDER_CORES";
const PIN: &str = "HOPMAP_REORDER_PIN";

/// Renumber the ranks of an MPI program, so that each runs where a mapping has it.
#[derive(Debug, Args)]
#[command(mut_arg("command", |command| command.required(false).required_unless_present("shows")), after_help = "\
Processes stay where launcher and site have put them, with their cores, GPUs and limits; only MPI_COMM_WORLD has another order. \
So it needs no launch file, and works under any launcher. Put it before the launcher, or in job scripts between the launcher \
and the program.

A host must have as many processes as the mapping has ranks there. Processes on a host are taken by their cores, or, if they are \
not bound, in the order of the launcher. MAPPING is a mapping of hopmap, a rank file of Open MPI, or a text with a line for each \
rank: RANK HOST, RANK HOST CORE, or RANK INDEX, the rank that the launcher gives to the process.

Examples:
  hopmap reorder --mapping out/rankfile -- mpirun -n 64 ./app input
  hopmap reorder --mapping out/rankfile --verify -- mpirun -n 64 ./app
  hopmap reorder --mapping out/rankfile --build ./app
  srun --mpi=pmi2 -n 64 hopmap reorder --mapping out/rankfile ./app input
  hopmap reorder --mapping out/rankfile -- mpirun -n 64 hopmap record -o trace ./app input")]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of the command line")]
pub struct ReorderCommand {
    /// Where each rank is to run: a mapping, a rank file, or a text.
    #[arg(short, long, value_name = "MAPPING")]
    mapping: PathBuf,
    /// Keep rank 0 in the launcher's process 0, which has the standard input. By default it stays there if this is a file or a
    /// pipe that has not ended.
    #[arg(long, value_name = "RANK", value_parser = clap::value_parser!(u32).range(0..=0))]
    pin_rank: Option<u32>,
    /// There is no standard input to stay with, as the command before the launcher has found.
    #[arg(long, hide = true, conflicts_with = "pin_rank")]
    no_input: bool,
    #[command(flatten)]
    start: Start,
    /// The library, which the command before the launcher has built.
    #[arg(long, hide = true, value_name = "FILE")]
    library: Option<PathBuf>,
    /// Show where each rank would run, instead of the program: the lines of `hopmap where`, with the new ranks.
    #[arg(long = "where")]
    shows: bool,
    /// Run a small program in place of this one, which takes a second, and compare where its ranks are with the mapping.
    #[arg(long, conflicts_with_all = ["shows", "pin_rank"])]
    verify: bool,
    /// Only build the library, beside the mapping: processes inside a launcher then need no compiler.
    #[arg(long, conflicts_with_all = ["shows", "verify", "library"])]
    build: bool,
}

impl Command for ReorderCommand {
    const NAME: &'static str = "reorder";

    fn run(&self, cx: &Context<'_>, _: &mut (dyn Write + Send)) -> Result<Answer, Failure> {
        let position = match self.start.position() {
            // The first task says so.
            Err(RecordError::NoPmi { .. }) => Position::Inside(None),
            position => position?,
        };
        match position {
            _ if self.build => self.build(cx),
            Position::Inside(rank) => self.inside(cx, rank).map_err(|error| {
                end_job(&error, cx);
                error.into()
            }),
            Position::Outside(Some(LauncherKind::Ranks | LauncherKind::Step)) => self.outside(cx),
            Position::Outside(_) => {
                Err(ReorderError::NoLauncher { program: self.start.first().to_owned() }.into())
            }
        }
    }
}

impl ReorderCommand {
    /// Builds the library for the program and puts it beside the mapping.
    fn build(&self, cx: &Context<'_>) -> Result<Answer, Failure> {
        let order = Order::read(&self.mapping)?;
        let program = self.start.programs().into_iter().next();
        if let Some(program) = &program {
            program.check()?;
            say_rank_variable(program, cx);
        }
        let mpi = Mpi { implementation: None, abi: program.as_ref().and_then(Program::abi) };
        let library = self.start.compiled(cx, &reordering_sources(), None, mpi)?;
        let path = self.beside_mapping(library.identity.implementation.abi().unwrap_or(Abi::Mpich));
        replace_file(&path, &library.contents).map_err(RecordError::from)?;
        let mut answer = Answer::of(&json!({
            "library": path, "mpi": library.identity.to_string(), "ranks": order.ranks(),
        }));
        answer.line(format!("built {} for {}, {} ranks", shown(&path), library.identity, order.ranks()));
        Ok(answer)
    }

    /// Where `--build` puts the library of this hopmap for MPIs of one binary interface.
    fn beside_mapping(&self, abi: Abi) -> PathBuf {
        let name = self.mapping.file_name().unwrap_or_default().to_string_lossy();
        let abi = match abi {
            Abi::OpenMpi => "open-mpi",
            Abi::Mpich => "mpich",
        };
        self.mapping.with_file_name(format!("{name}.{abi}-{}.so", reordering_sources().hash))
    }

    /// The library that another command has built: the one before the launcher, or `--build`, if that was of this user.
    fn built(&self, abi: Option<Abi>) -> Option<PathBuf> {
        let is_own = |path: &PathBuf| {
            std::fs::metadata(path).is_ok_and(|file| file.uid() == rustix::process::geteuid().as_raw())
        };
        self.library.clone().or_else(|| abi.map(|abi| self.beside_mapping(abi)).filter(is_own))
    }

    /// Executes the program in place of this process; returns only an error.
    fn inside(&self, cx: &Context<'_>, rank: Option<Rank>) -> Result<Answer, ReorderError> {
        if let Some((task, tasks)) =
            Rank::of_step_without_pmi().and_then(|task| Some((task.rank, task.size?)))
            && tasks > 1
        {
            // One message for all.
            return if task == 0 {
                Err(RecordError::NoPmi { tasks }.into())
            } else {
                Ok(Answer::default().ending(Exit::Failed))
            };
        }
        let program = self.start.command.first().and_then(|word| Program::find(word));
        let shows = self.shows || self.verify || is_where(&self.start.command);
        let starter = Implementation::of_this_process();
        let linked = program.as_ref().and_then(Program::abi);
        check_starter(starter, linked)?;
        if let Some(program) = program.as_ref().filter(|_| !shows) {
            program.check()?;
            if self.library.is_none() && rank.is_none_or(|rank| rank.rank == 0) {
                say_rank_variable(program, cx);
            }
        }
        let abi = linked.or_else(|| starter.and_then(Implementation::abi));
        let mpi = Mpi { implementation: None, abi };
        let library = match self.built(abi) {
            Some(library) => library,
            None => self.start.compiled(cx, &reordering_sources(), None, mpi)?.path,
        };
        // The dynamic loader only warns of a library that it does not find, as by a path from another folder.
        let library = std::path::absolute(&library).map_err(RecordError::io("find", &library))?;
        std::fs::metadata(&library).map_err(RecordError::io("read", &library))?;
        let location = Location::of_this_process();
        let first = location.cores.first().copied().unwrap_or_default();
        let mut command = match shows {
            false => std::process::Command::new(self.start.first()),
            true => {
                let program = self.start.compiled(cx, &where_sources(), None, mpi)?;
                let file = self.inherited(&program.contents)?;
                std::process::Command::new(format!("/proc/self/fd/{file}"))
            }
        };
        // Behind others, such as the recorder, which see the new ranks through this library.
        let libraries = match std::env::var(PRELOAD).ok().filter(|existing| !existing.is_empty()) {
            Some(existing) => preload(&existing, Some(&library.to_string_lossy())),
            None => library.to_string_lossy().into_owned(),
        };
        match shows {
            false => command.args(&self.start.command[1..]),
            true => command.arg(location.place()),
        };
        if self.verify {
            command.arg(rank.map_or_else(|| "-".to_owned(), |rank| rank.rank.to_string()));
        }
        command
            .env(PRELOAD, libraries)
            .env(HOST, &location.host)
            .env(CORES, format!("{first} {}", location.cores.len()));
        // Process 0 alone computes the order; who is not numbered may be it.
        if rank.is_none_or(|rank| rank.rank == 0) {
            let text = Order::read(&self.mapping)?.text();
            command.env(FILE, self.inherited(text.as_bytes())?.to_string());
        }
        match self.pin_rank {
            Some(rank) => drop(command.env(PIN, rank.to_string())),
            None if self.no_input => drop(command.env(PIN, "none")),
            None => {}
        }
        let source = command.exec();
        let program = command.get_program().to_string_lossy().into_owned();
        Err(RecordError::Start { program, host: host_name(), source }.into())
    }

    /// A file without a name, which the program inherits: its descriptor.
    fn inherited(&self, contents: &[u8]) -> Result<RawFd, ReorderError> {
        let error = RecordError::io("write", &self.mapping);
        let written = memfd_create("hopmap-reorder", MemfdFlags::empty()).map_err(std::io::Error::from);
        let written = written.and_then(|file| {
            let mut file = File::from(file);
            file.write_all(contents)?;
            file.rewind()?;
            Ok(file)
        });
        Ok(written.map_err(error)?.into_raw_fd())
    }

    /// Starts the launcher with this command before each of its programs.
    fn outside(&self, cx: &Context<'_>) -> Result<Answer, Failure> {
        let launcher = Identity::of_launcher(self.start.first()).map_err(Failure::usage)?;
        let order = Order::read(&self.mapping).map_err(Failure::from)?;
        let programs = self.start.programs();
        let linked = programs.iter().find_map(Program::abi);
        check_starter(Some(launcher.implementation), linked)?;
        if let Some(program) = programs.first() {
            program.check()?;
            if !self.verify {
                say_rank_variable(program, cx);
            }
        }
        let implementation = Some(launcher.implementation).filter(|starter| starter.abi().is_some());
        // Built here, so that no rank compiles.
        let mpi = Mpi { implementation, abi: linked };
        let library = self.start.compiled(cx, &reordering_sources(), Some(&launcher), mpi)?;
        if self.shows || self.verify || is_where(self.start.behind_launcher()) {
            self.start.compiled(cx, &where_sources(), Some(&launcher), mpi)?;
        }
        cx.log(format!("{} ranks, renumbered when MPI begins", order.ranks()));
        let mut command = std::process::Command::new(self.start.first());
        command.args(before_programs(&self.start.command[1..], &self.own_words(&library.path)?));
        if self.verify {
            command.stdin(Stdio::null());
        }
        if self.verify || self.shows {
            command.stdout(Stdio::piped());
        }
        let (status, printed) = run_captured(command, cx).map_err(|source| self.start.not_started(source))?;
        let printed = String::from_utf8_lossy(&printed);
        let mut answer = if self.shows { locations(&printed) } else { Answer::default() };
        if self.verify && status.success() {
            match order.difference(&printed) {
                Some(problem) => return Err(ReorderError::Elsewhere { problem }.into()),
                None => {
                    answer = Answer::of(&json!({ "verified": order.ranks() }));
                    answer.line(format!(
                        "{} ranks are where the mapping has them, and messages reach them",
                        order.ranks()
                    ));
                }
            }
        }
        Ok(answer.ending(exit_of(status, cx)))
    }

    /// This command as it stands before a program.
    fn own_words(&self, library: &Path) -> Result<Vec<String>, ReorderError> {
        let absolute = |path: &Path| {
            std::path::absolute(path)
                .map(|path| path.to_string_lossy().into_owned())
                .map_err(RecordError::io("find", path))
        };
        let program = std::env::current_exe().map_err(RecordError::io("find", Path::new("hopmap")))?;
        let mut words = vec![program.to_string_lossy().into_owned(), Self::NAME.to_owned()];
        words.extend(["--inside".to_owned(), "--mapping".to_owned(), absolute(&self.mapping)?]);
        for (option, value) in [
            ("--pin-rank", self.pin_rank.map(|rank| rank.to_string())),
            ("--mpicc", self.start.mpicc.clone()),
            ("--library", Some(library.to_string_lossy().into_owned())),
            ("--cache", self.start.cache.as_deref().map(absolute).transpose()?),
        ] {
            words.extend(value.into_iter().flat_map(|value| [option.to_owned(), value]));
        }
        words.extend(self.shows.then(|| "--where".to_owned()));
        words.extend(self.verify.then(|| "--verify".to_owned()));
        let is_empty = self.verify || std::io::stdin().is_terminal() || is_null(std::io::stdin().as_fd());
        words.extend((is_empty && self.pin_rank.is_none()).then(|| "--no-input".to_owned()));
        Ok(words)
    }
}

/// Where the ranks run, in their order, by what they printed through the launcher.
fn locations(text: &str) -> Answer {
    let mut lines: Vec<(Option<Location>, &str)> =
        text.lines().map(|line| (Location::parse(line), line)).collect();
    lines.sort_by_key(|(location, _)| location.as_ref().and_then(|location| location.rank));
    let found = lines.iter().filter_map(|(location, _)| location.as_ref());
    let found = found.map(|Location { rank, host, cores, of }| {
        json!({ "rank": rank, "host": host, "cores": cores, "cores_of_host": of })
    });
    let mut answer = Answer::of(&found.collect::<Vec<_>>());
    lines.iter().for_each(|(_, line)| answer.line(line));
    answer
}

/// Whether the program is `hopmap where`, which does not call MPI: a program that does replaces it.
fn is_where(words: &[String]) -> bool {
    let own = std::env::current_exe().and_then(std::fs::canonicalize);
    let is_own = || {
        own.ok()
            .zip(Program::find(&words[0]))
            .is_some_and(|(own, program)| std::fs::canonicalize(program.path()).is_ok_and(|path| path == own))
    };
    matches!(words, [_, command] if command == "where") && is_own()
}

/// Ends the other processes of the job, which would wait in `MPI_Init` for one that has ended before.
fn end_job(error: &ReorderError, cx: &Context<'_>) {
    if std::env::var_os("OMPI_COMM_WORLD_RANK").is_some() {
        // Open MPI's launcher does so.
    } else if let [Ok(job), Ok(step)] = ["SLURM_JOB_ID", "SLURM_STEP_ID"].map(std::env::var)
        // The steps of batch scripts have larger numbers.
        && step.parse::<i32>().is_ok()
    {
        // Nobody waits for it, as it ends this process, which has to print an error.
        let _ = std::process::Command::new("scancel").args(["-Q", &format!("{job}.{step}")]).spawn();
    } else if std::env::var_os("PMI_FD").is_some() {
        // Hydra ends a job if a process ends by a signal.
        let help = error.help().map(|help| format!("; {help}")).unwrap_or_default();
        cx.log(format!("error: {error}{help}"));
        let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    }
}

/// Warns of a program that may not take its rank from MPI.
fn say_rank_variable(program: &Program, cx: &Context<'_>) {
    if let Some(variable) = program.rank_variable() {
        let path = shown(program.path());
        cx.log(format!("warning: {path} may read its rank from `{variable}`, which is not renumbered"));
    }
}

/// Whether a descriptor is that of `/dev/null`.
fn is_null(descriptor: BorrowedFd<'_>) -> bool {
    let (Ok(own), Ok(null)) = (rustix::fs::fstat(descriptor), rustix::fs::stat("/dev/null")) else {
        return false;
    };
    (own.st_mode & 0o170_000, own.st_rdev) == (null.st_mode & 0o170_000, null.st_rdev)
}
