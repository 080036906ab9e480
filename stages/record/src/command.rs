//! `hopmap record`: starts a launcher whose ranks record themselves, or makes this rank record itself.

use std::fs;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use clap::{Args, ValueEnum};
use hopmap_command::{Answer, Command, Exit, Failure, shown};
use hopmap_formats::host_list;
use hopmap_launchers::shell_word;
use hopmap_model::{Context, TaskGraph};
use hopmap_mpi_environment::{Abi, CompilerError, Identity, Implementation, LauncherKind, Mpi, Rank};
use hopmap_recording::{Choice, DESCRIPTION, Description, Recording, lines, summarise};
use miette::Report;
use serde_json::json;

use crate::error::RecordError;
use crate::folder::{claim_folder, discard_folder, make_folder};
use crate::launch::{Launch, Plan, run_launcher};
use crate::library::sources;
use crate::program::Program;
use crate::start::{Position, Start, check_starter, exit_of};

/// Version of what `--json` prints.
const VERSION: u32 = 1;

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
Put it before the launcher, or in job scripts between the launcher and the program. The program runs as usual, and its \
exit status is that of hopmap. Afterwards DIR is a trace: hopmap run place --trace DIR

The recorder is built once with the MPI's mpicc, and kept in $XDG_CACHE_HOME/hopmap or ~/.cache/hopmap. Where this folder \
is not on all hosts, name one that is with --cache.

Examples:
  hopmap record -o trace -- mpirun -n 64 ./app input
  mpirun -n 64 hopmap record -o trace ./app input
  srun --mpi=pmi2 -n 64 hopmap record -o trace --cache /shared/cache ./app input")]
pub struct RecordCommand {
    /// Write the recording to this new folder, which all hosts must share.
    #[arg(short, long, alias = "output", value_name = "DIR")]
    out: PathBuf,
    /// How to record.
    #[arg(long, value_enum, default_value_t = Method::Auto)]
    method: Method,
    #[command(flatten)]
    start: Start,
    /// Do not measure the time inside MPI.
    #[arg(long)]
    no_times: bool,
    /// Also write every MPI call of every rank with its times, which predictions of the run time need: 10 to 20 bytes
    /// and less than 100 ns per call. Not with --method openmpi.
    #[arg(long, conflicts_with = "no_times")]
    events: bool,
}

impl Command for RecordCommand {
    const NAME: &'static str = "record";

    fn run(&self, cx: &Context<'_>, _: &mut (dyn Write + Send)) -> Result<Answer, Failure> {
        if self.events && self.method == Method::Openmpi {
            return Err(RecordError::EventsOfOpenMpi.into());
        }
        match self.start.position()? {
            Position::Inside(rank) => self.inside(cx, rank),
            Position::Outside(launcher) => self.outside(cx, launcher),
        }
    }
}

impl RecordCommand {
    /// Records every call, as `--events` does. `command` begins with a launcher.
    #[must_use]
    pub fn of_events(out: PathBuf, mpicc: Option<String>, command: Vec<String>) -> Self {
        let start = Start { inside: false, mpicc, cache: None, command };
        Self { out, method: Method::Auto, start, no_times: false, events: true }
    }

    /// Executes the program in place of this process.
    fn inside(&self, cx: &Context<'_>, rank: Option<Rank>) -> Result<Answer, Failure> {
        let program = Program::find(self.start.first());
        let starter = Implementation::of_this_process();
        let linked = program.as_ref().and_then(Program::abi);
        let abi = linked.or_else(|| starter.and_then(Implementation::abi));
        check_starter(starter, linked)?;
        let plan = self.plan(cx, None, Mpi { implementation: None, abi })?;
        if let (Plan::Preload(_), Some(program)) = (&plan, &program) {
            program.check()?;
        }
        let folder = claim_folder(&self.out, plan.method(), rank)?;
        let described = rank.filter(|rank| rank.rank == 0).and_then(|rank| rank.size);
        if let Some(ranks) = described {
            // How the program ends is not known here.
            Description { ranks, complete: None, ..self.description(&plan) }
                .write(&folder)
                .map_err(RecordError::from)?;
        }
        let launch =
            Launch { plan: &plan, folder: &folder, is_timed: !self.no_times, has_events: self.events };
        let error = self.start.not_started(launch.of_program(&self.start.command).exec());
        if described.is_some() {
            let _ = fs::remove_file(folder.join(DESCRIPTION));
        }
        discard_folder(&folder);
        Err(error.into())
    }

    /// Starts the launcher, waits for it, and reads what its ranks have recorded.
    fn outside(&self, cx: &Context<'_>, kind: Option<LauncherKind>) -> Result<Answer, Failure> {
        let program = self.start.first();
        let not_of_ranks = match kind {
            Some(LauncherKind::Allocation) => Some("command for an allocation"),
            Some(LauncherKind::Batch) => Some("command for a batch job"),
            Some(LauncherKind::Remote) => Some("command for another host"),
            Some(LauncherKind::Ranks | LauncherKind::Step) | None => None,
        };
        if let Some(kind) = not_of_ranks {
            return Err(RecordError::Launcher { program: program.to_owned(), kind }.into());
        }
        let launcher = kind.map(|_| Identity::of_launcher(program)).transpose().map_err(Failure::usage)?;
        if self.out.exists() {
            return Err(RecordError::Exists { path: self.out.clone() }.into());
        }
        let starter = launcher
            .as_ref()
            .map(|launcher| launcher.implementation)
            .or_else(Implementation::of_this_process);
        let linked = self.start.programs().iter().find_map(Program::abi);
        check_starter(starter, linked)?;
        let implementation = launcher.as_ref().and(starter).filter(|starter| starter.abi().is_some());
        let plan = self.plan(cx, launcher.as_ref(), Mpi { implementation, abi: linked })?;
        let folder = make_folder(&self.out, plan.method())?;
        let launch =
            Launch { plan: &plan, folder: &folder, is_timed: !self.no_times, has_events: self.events };
        let command = match &launcher {
            Some(launcher) => launch.of_launcher(launcher, &self.start.command),
            None => launch.of_program(&self.start.command),
        };
        let description = self.description(&plan);
        let ended = run_launcher(command, cx).map_err(|error| {
            discard_folder(&folder);
            self.start.not_started(error)
        })?;
        self.answer(cx, &folder, description, ended)
    }

    /// How to record a program of this MPI.
    fn plan(&self, cx: &Context<'_>, launcher: Option<&Identity>, mpi: Mpi) -> Result<Plan, RecordError> {
        if self.method == Method::Openmpi {
            return match mpi.abi().unwrap_or(Abi::OpenMpi) {
                Abi::OpenMpi => Ok(Plan::OpenMpi),
                Abi::Mpich => {
                    let program = self.start.first().to_owned();
                    Err(RecordError::NotOpenMpi { program, mpi: mpi.to_string() })
                }
            };
        }
        match self.start.compiled(cx, &sources(), launcher, mpi) {
            Ok(library) => Ok(Plan::Preload(library)),
            Err(error) if self.may_do_without(&error) && mpi.abi() == Some(Abi::OpenMpi) => {
                cx.log(format!("only messages are recorded, by Open MPI's own monitoring: {error}"));
                Ok(Plan::OpenMpi)
            }
            Err(error) => Err(error),
        }
    }

    /// Whether it is no error that there is no recorder: what the user has named must be usable.
    fn may_do_without(&self, error: &RecordError) -> bool {
        let is_missing = matches!(error, RecordError::Compiler(CompilerError::Missing { .. }));
        self.method == Method::Auto
            && !self.events
            && self.start.mpicc.is_none()
            && (self.start.cache.is_none() || is_missing)
    }

    /// The description of a recording that begins now.
    fn description(&self, plan: &Plan) -> Description {
        let mpi = match plan {
            Plan::Preload(library) => library.identity.to_string(),
            Plan::OpenMpi => Implementation::OpenMpi.to_string(),
        };
        let (arguments, started) = (self.start.command.clone(), jiff::Timestamp::now().to_string());
        Description { mpi, arguments, started, events: self.events, ..Description::new(plan.method(), 1) }
    }

    /// Finishes the recording of a launcher that has ended, and sums it up.
    fn answer(
        &self,
        cx: &Context<'_>,
        folder: &Path,
        description: Description,
        status: ExitStatus,
    ) -> Result<Answer, Failure> {
        let exit = exit_of(status, cx);
        let failed =
            |report: Report| Failure::new(if exit == Exit::Done { Exit::Failed } else { exit }, [report]);
        let reason = match () {
            () if cx.should_stop() => Some("it was interrupted".to_owned()),
            () => (!status.success()).then(|| format!("`{}` ended with {status}", self.start.first())),
        };
        let description = Description { complete: Some(reason.is_none()), reason, ..description };
        let method = description.method;
        let finished = Recording::finish(folder, description).map_err(|error| failed(error.into()))?;
        let Some(recording) = finished else {
            discard_folder(folder);
            return Err(failed(self.nothing_recorded(method, status).into()));
        };
        let graph = task_graph(&recording).map_err(|error| failed(error.into()))?;
        let mut answer = Answer::of(&json!({
            "version": VERSION,
            "path": folder,
            "method": method,
            "incomplete": recording.incomplete,
            "totals": summarise(&graph, 0).totals,
        }));
        lines(&graph, Some(&recording)).into_iter().for_each(|line| answer.line(line));
        answer.line(format!("recorded in {}; next:", shown(&self.out)));
        answer.line(format!("  {}", next_command(&self.out, &graph)));
        Ok(answer.ending(exit))
    }

    /// Why no rank has recorded anything.
    fn nothing_recorded(&self, method: hopmap_recording::Method, status: ExitStatus) -> RecordError {
        let programs = self.start.programs();
        let unfit = programs.iter().find_map(|program| program.check().err());
        if let (hopmap_recording::Method::Preload, Some(error)) = (method, unfit) {
            return error;
        }
        let name = self.start.first();
        let is_mpi = programs.iter().any(|program| program.abi().is_some());
        let is_binary = programs.first().is_some_and(Program::is_binary);
        let (reason, help) = match method {
            // Hydra, for example, kills all ranks when one has died.
            _ if !status.success() => (
                format!("`{name}` ended with {status}, and no rank has left a file"),
                "see its messages above; the program must reach MPI_Init",
            ),
            hopmap_recording::Method::Openmpi => (
                "Open MPI has written no profile".to_owned(),
                "the program must reach MPI_Finalize, and `ompi_info` must list `pml: monitoring`",
            ),
            hopmap_recording::Method::Preload if is_mpi => (
                "no rank has left a file".to_owned(),
                "the program must reach MPI_Init, and all hosts must share -o and the cache (--cache)",
            ),
            hopmap_recording::Method::Preload if is_binary && LauncherKind::of(name).is_some() => (
                "the program is not linked with MPI, and no process has called MPI_Init".to_owned(),
                "record a program that uses MPI",
            ),
            hopmap_recording::Method::Preload => (
                "no process has loaded the recorder and called MPI_Init".to_owned(),
                "if a script starts the launcher, put hopmap there: mpirun -n 4 hopmap record -o DIR PROGRAM …",
            ),
        };
        RecordError::Nothing { reason, help: help.to_owned() }
    }
}

/// The command that maps a recorded program: to the hosts on which it was recorded, if they were several.
fn next_command(recording: &Path, graph: &TaskGraph) -> String {
    let mut command = format!("hopmap run place --trace {}", shell_word(&shown(recording)));
    let mut hosts: Vec<(&str, usize)> = Vec::new();
    for process in &graph.processes {
        let Some(name) = process.host.as_deref() else { return command };
        match hosts.iter_mut().find(|(host, _)| *host == name) {
            Some((_, slots)) => *slots += 1,
            None => hosts.push((name, 1)),
        }
    }
    if hosts.len() > 1 {
        let names = host_list::compress(hosts.iter().map(|(host, _)| host));
        let slots: Vec<String> = match hosts.iter().all(|(_, slots)| *slots == hosts[0].1) {
            true => vec![hosts[0].1.to_string()],
            false => hosts.iter().map(|(_, slots)| slots.to_string()).collect(),
        };
        command.push_str(&format!(" --hosts {} --slots {}", shell_word(&names), slots.join(",")));
    }
    command
}

/// The task graph for the summary. Too many messages to expand are still worth one.
fn task_graph(recording: &Recording) -> Result<TaskGraph, RecordError> {
    let expanded = recording.task_graph(Choice::Expand(hopmap_collectives::Algorithms::default()));
    Ok(expanded.or_else(|_| recording.task_graph(Choice::Keep))?.graph)
}

#[cfg(test)]
mod tests {
    use hopmap_model::Process;

    use super::*;

    #[test]
    fn the_next_command_names_the_recorded_hosts() {
        let next = |hosts: &[Option<&str>]| {
            let process =
                |host: Option<&str>| Process { host: host.map(str::to_owned), ..Process::default() };
            let graph =
                TaskGraph { processes: hosts.iter().copied().map(process).collect(), ..TaskGraph::default() };
            next_command(Path::new("my trace"), &graph)
        };
        let begin = "hopmap run place --trace 'my trace'";
        assert_eq!(next(&[Some("n1"), Some("n1")]), begin);
        assert_eq!(next(&[Some("n1"), None]), begin);
        assert_eq!(
            next(&[Some("n1"), Some("n2"), Some("n2"), Some("n1")]),
            format!("{begin} --hosts 'n[1-2]' --slots 2")
        );
        assert_eq!(next(&[Some("b"), Some("a"), Some("a")]), format!("{begin} --hosts 'b,a' --slots 1,2"));
    }
}
