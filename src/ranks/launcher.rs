//! A launcher and the processes of a stage that it started: watched, stopped, and why they gave no result. What launchers say that end
//! because a host or its connection was lost, and not because of the stage, is known here.

use std::borrow::Cow;
use std::ffi::OsString;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use hopmap_model::Context;
use hopmap_mpi_environment::LauncherKind;
use hopmap_process::{Group, for_each_line};
use miette::{Diagnostic, Report};

use super::{FAULT, Fault, GREETING, Message};
use crate::pipeline::Launcher;
use crate::ranks;

/// Name of the program that every process runs.
pub(crate) const PROGRAM: &str = "hopmap-ranks";
/// Variable that names the program.
pub(crate) const VARIABLE: &str = "HOPMAP_RANKS";
/// Time between two looks at the launcher.
const INTERVAL: Duration = Duration::from_millis(20);
/// Time that a launcher has to end once it was asked to, and its output to end once it has.
const GRACE: Duration = Duration::from_secs(5);
/// Lines of the output that a message shows: the first ones, where ssh says why, and the last ones.
const MOST_LINES: usize = 12;
const FIRST_LINES: usize = 3;

/// What to do when the launcher and the MPI of the processes do not know each other.
const OTHER_MPI: &str = "this launcher cannot start programs of their MPI, that of hopmap-ranks or of `mpicc`: use the mpirun of \
     that MPI, inside Slurm as in `salloc -n 4 mpirun`, or an `srun --mpi=TYPE` that `srun --mpi=list` names";

/// Processes that could not be started or gave no result.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub(crate) enum LaunchError {
    #[error("cannot determine the path of the hopmap executable")]
    #[diagnostic(
        code(engine::no_self),
        help(
            "the executable may have been moved or deleted while it ran: start hopmap again by its absolute path"
        )
    )]
    NoSelf(#[source] std::io::Error),
    #[error("{PROGRAM}, which runs stages as MPI ranks, is missing: {places}")]
    #[diagnostic(
        code(engine::no_program),
        help(
            "build it from the sources of hopmap with `cargo build --release -p hopmap-ranks` (on Debian after `apt-get install \
         libopenmpi-dev libclang-dev`), then put it next to hopmap or on PATH, or name it in {VARIABLE}"
        )
    )]
    NoProgram { places: String },
    #[error("the launcher `{program}` cannot be started")]
    #[diagnostic(
        code(engine::no_launcher),
        help(
            "install it (on Debian `apt-get install openmpi-bin` has mpirun, `slurm-client` has srun), load its module, or \
         correct `launcher`"
        )
    )]
    NoLauncher { program: String, source: std::io::Error },
    #[error("{command} {}{}", how(*loss, *status), indented(output))]
    #[diagnostic(code(engine::failed))]
    Failed {
        command: String,
        status: ExitStatus,
        loss: Option<Loss>,
        output: Vec<String>,
        #[help]
        help: String,
    },
    #[error("the end of {command} cannot be waited for")]
    #[diagnostic(code(engine::not_watched))]
    NotWatched { command: String, source: std::io::Error },
    #[error("its processes wrote nothing to the output `{port}`")]
    #[diagnostic(
        code(engine::no_output),
        help("check that all hosts see the same store folder, then run again")
    )]
    NoOutput { port: &'static str },
    #[error("{command} was stopped before its processes began")]
    #[diagnostic(code(engine::launch_not_begun))]
    NotBegun { command: String },
}

fn how(loss: Option<Loss>, status: ExitStatus) -> String {
    loss.map_or_else(|| format!("ended without a result: {status}"), |loss| loss.in_words().to_owned())
}

/// How often something was done, in words.
pub(crate) fn times(count: u32) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}

fn indented(output: &[String]) -> String {
    output.iter().flat_map(|line| ["\n  ", line]).collect()
}

/// A launcher for a stage that directs its ranks.
pub(crate) struct RankLauncher<'a> {
    pub(crate) launcher: &'a Launcher,
    pub(crate) folder: &'a Path,
    pub(crate) retried: u32,
    pub(crate) cx: Context<'a>,
}

impl hopmap_model::Launcher for RankLauncher<'_> {
    fn words(&self) -> &[String] {
        self.launcher.words()
    }

    fn folder(&self) -> &Path {
        self.folder
    }

    fn run(&self, program: &Path, look: &mut dyn FnMut() -> Result<(), Report>) -> Result<(), Report> {
        let Self { launcher, folder, retried, cx } = self;
        let mut processes = Processes::start(launcher, &[program.to_owned()], folder)?;
        let status = processes.wait(folder, cx, look)?;
        if status.success() && processes.terminated_at.is_none() {
            return Ok(());
        }
        let loss = processes.loss(launcher.program(), status, folder, cx);
        Err(processes.failure(status, loss, *retried, folder, cx))
    }
}

/// A launcher and what it started.
pub(crate) struct Processes {
    group: Group,
    /// Processes notice its end, and so that of this one.
    input: Option<ChildStdin>,
    /// The command as people type it.
    pub(crate) command: String,
    lines: Receiver<String>,
    shown_lines: Vec<String>,
    /// The lost host that the launcher reported.
    loss: Option<Loss>,
    /// Whether the MPI library spoke of the interface by which launchers connect processes, which it does where there is none.
    lacks_pmi: bool,
    /// When the launcher was asked to end because its processes had not started.
    terminated_at: Option<Instant>,
    is_stopped: bool,
}

impl Processes {
    pub(crate) fn start(launcher: &Launcher, program: &[PathBuf], folder: &Path) -> Result<Self, Report> {
        let more: Vec<_> =
            program.iter().map(PathBuf::as_path).chain([folder]).map(Path::to_string_lossy).collect();
        let words: Vec<&str> = more.iter().map(AsRef::as_ref).collect();
        let command = format!("`{}`", launcher.with(&words));
        // What ssh is given, a shell takes apart once more.
        let quoted =
            |word: &&str| shlex::try_quote(word).map_or_else(|_| (*word).to_owned(), Cow::into_owned);
        let is_ssh = launcher.kind() == Some(LauncherKind::Remote);
        let more: Vec<OsString> = match is_ssh {
            true => words.iter().map(quoted).map(OsString::from).collect(),
            false => program.iter().map(PathBuf::as_path).chain([folder]).map(OsString::from).collect(),
        };
        let mut starter = Command::new(launcher.program());
        starter.args(launcher.arguments()).args(more);
        starter.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let not_started = |source| LaunchError::NoLauncher { program: launcher.program().to_owned(), source };
        // An interrupt is for us alone: we ask the processes for what they have, the launcher would end them.
        let mut group = Group::start(&mut starter).map_err(not_started)?;
        let (sender, lines) = channel();
        group.take_stdout().into_iter().for_each(|output| read_lines(output, sender.clone()));
        group.take_stderr().into_iter().for_each(|output| read_lines(output, sender.clone()));
        let mut input = group.take_stdin();
        // A launcher that has already ended prints the reason itself.
        let _ = input.as_mut().map(|input| writeln!(input, "{GREETING}"));
        Ok(Self {
            group,
            input,
            command,
            lines,
            shown_lines: Vec::new(),
            loss: None,
            lacks_pmi: false,
            terminated_at: None,
            is_stopped: false,
        })
    }

    /// Passes on what the processes say and what the user wants, until the launcher ends. An error of `look` ends it.
    pub(crate) fn wait(
        &mut self,
        folder: &Path,
        cx: &Context<'_>,
        look: &mut dyn FnMut() -> Result<(), Report>,
    ) -> Result<ExitStatus, Report> {
        let command = self.command.clone();
        let failed = |source| LaunchError::NotWatched { command: command.clone(), source };
        let mut looked = Instant::now();
        while self.group.ended().map_err(failed)?.is_none() {
            match self.lines.recv_timeout(INTERVAL) {
                Ok(line) => self.hear(line, cx),
                // All output is closed; nothing is left to wait for but the end.
                Err(RecvTimeoutError::Disconnected) => std::thread::sleep(INTERVAL),
                Err(RecvTimeoutError::Timeout) => {}
            }
            if cx.should_stop() {
                self.stop(folder);
            }
            if looked.elapsed() >= INTERVAL {
                looked = Instant::now();
                look().inspect_err(|_| drop(self.group.stop()))?;
            }
        }
        drop(self.input.take());
        // The last words of the launcher; a process that has left its group may hold the output open.
        let status = self.group.end().map_err(failed)?;
        let end = Instant::now() + GRACE;
        while let Ok(line) = self.lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
            self.hear(line, cx);
        }
        Ok(status)
    }

    fn hear(&mut self, line: String, cx: &Context<'_>) {
        match Message::parse(&line) {
            Some(Message::Progress(done, total)) => cx.progress(done, total),
            Some(Message::Log(line)) => cx.log(line),
            None => {
                cx.log(&line);
                self.loss = self.loss.or_else(|| Loss::of_line(&line));
                self.lacks_pmi |= line.contains("PMI");
                if self.shown_lines.len() == MOST_LINES {
                    "…".clone_into(&mut self.shown_lines[FIRST_LINES]);
                    self.shown_lines.remove(FIRST_LINES + 1);
                }
                self.shown_lines.push(line);
            }
        }
    }

    /// Asks the processes for what they have. Where none has begun, in a queue perhaps, there is nothing to wait for.
    fn stop(&mut self, folder: &Path) {
        if !std::mem::replace(&mut self.is_stopped, true) {
            // Where this fails the folder is gone, which the processes notice.
            let _ = ranks::stop(folder);
            // Directed ranks look here too, as file systems of several hosts may show a new file late.
            let _ = self.input.as_mut().map(|input| writeln!(input, "stop"));
        }
        match self.terminated_at {
            None if !ranks::has_begun(folder) => {
                self.terminated_at = Some(Instant::now());
                self.group.terminate();
            }
            Some(at) if at.elapsed() >= GRACE => self.group.kill(),
            _ => {}
        }
    }

    /// Why there is no result, if the stage is not to blame and may be started again.
    pub(crate) fn loss(
        &self,
        program: &str,
        status: ExitStatus,
        folder: &Path,
        cx: &Context<'_>,
    ) -> Option<Loss> {
        if folder.join(FAULT).exists() {
            return None;
        }
        let loss = self.loss.or_else(|| Loss::of_status(program, status, &self.shown_lines))?;
        let goes_on = loss != Loss::Time || cx.state().is_some_and(Path::exists);
        (goes_on && self.terminated_at.is_none()).then_some(loss)
    }

    pub(crate) fn failure(
        self,
        status: ExitStatus,
        loss: Option<Loss>,
        retried: u32,
        folder: &Path,
        cx: &Context<'_>,
    ) -> Report {
        let command = self.command;
        if let Ok(fault) = ranks::read::<Fault>(&folder.join(FAULT)) {
            let rank = fault.rank;
            return Report::new(fault).wrap_err(format!("rank {rank} of {command}"));
        }
        if self.terminated_at.is_some() {
            return LaunchError::NotBegun { command }.into();
        }
        let is_saved = cx.state().is_some_and(Path::exists);
        let help = match loss {
            _ if is_saved => "the state of the search is saved, and the next run resumes it".to_owned(),
            Some(_) => {
                let times = times(retried + 1);
                format!("it was started {times}; run again, or raise `retries` of the stage in its pipeline")
            }
            None if self.lacks_pmi => OTHER_MPI.to_owned(),
            None => "test the launcher with a simple program such as `hostname`".to_owned(),
        };
        LaunchError::Failed { command, status, loss, output: self.shown_lines, help }.into()
    }
}

/// Sends on every line of an output, in a thread that ends with it.
fn read_lines(output: impl Read + Send + 'static, sender: Sender<String>) {
    // Nobody may listen any more.
    std::thread::spawn(move || for_each_line(output, |line| drop(sender.send(line.to_owned()))));
}

/// Why a launcher gave no result, if the cause lies outside the stage and another attempt may go better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Loss {
    /// A node failed.
    Node,
    /// The connection to a host broke or could not be made.
    Connection,
    /// A batch system made room for another job.
    Preempted,
    /// A signal on its host asked it for what it had.
    Stopped,
    /// The time that a batch system gave is over: worth another attempt where a search has saved its state.
    Time,
}

/// Words of Slurm (`srun`, `slurmstepd`), Open MPI 4 and 5, and `ssh`.
const WORDS: [(&str, Loss); 14] = [
    ("srun: error: Node failure on ", Loss::Node),
    (" DUE TO NODE FAILURE", Loss::Node),
    (" DUE TO PREEMPTION", Loss::Preempted),
    (" DUE TO TIME LIMIT", Loss::Time),
    ("ORTE has lost communication with a remote daemon", Loss::Connection),
    ("PRTE has lost communication with a remote daemon", Loss::Connection),
    ("An ORTE daemon has unexpectedly failed after launch", Loss::Connection),
    ("ORTE was unable to reliably start one or more daemons", Loss::Connection),
    ("PRTE was unable to reliably start one or more daemons", Loss::Connection),
    ("ssh: connect to host ", Loss::Connection),
    ("ssh_exchange_identification: ", Loss::Connection),
    ("kex_exchange_identification: ", Loss::Connection),
    ("client_loop: send disconnect: ", Loss::Connection),
    (" closed by remote host", Loss::Connection),
];

/// The status with which ssh ends when it could not connect, or lost its host.
const SSH: i32 = 255;

/// Messages of ssh with that status that another attempt does not change.
const REFUSALS: [&str; 4] = [
    "Permission denied",
    "Host key verification failed",
    "Could not resolve hostname",
    "REMOTE HOST IDENTIFICATION HAS CHANGED",
];

impl Loss {
    /// The loss that one line of a launcher reports.
    pub(crate) fn of_line(line: &str) -> Option<Self> {
        WORDS.iter().find(|(words, _)| line.contains(words)).map(|(_, loss)| *loss)
    }

    /// The loss that follows from the exit status of a launcher.
    pub(crate) fn of_status(program: &str, status: ExitStatus, last_lines: &[String]) -> Option<Self> {
        let is_refused = || last_lines.iter().any(|line| REFUSALS.iter().any(|words| line.contains(words)));
        (LauncherKind::of(program) == Some(LauncherKind::Remote)
            && status.code() == Some(SSH)
            && !is_refused())
        .then_some(Self::Connection)
    }

    /// What happened, behind the command.
    pub(crate) fn in_words(self) -> &'static str {
        match self {
            Self::Node => "was lost: its node failed",
            Self::Connection => "lost a host",
            Self::Stopped => "was terminated on its host",
            Self::Preempted => "was preempted",
            Self::Time => "reached its time limit",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;

    #[test]
    fn messages_of_launchers_that_lose_a_node_are_recognised() {
        let losses = [
            ("srun: error: Node failure on n4", Some(Loss::Node)),
            (
                "slurmstepd: error: *** STEP 5.0 ON n4 CANCELLED AT 2026-11-23T01:00:00 DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***",
                Some(Loss::Node),
            ),
            (
                "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-11-23T01:00:00 DUE TO TIME LIMIT ***",
                Some(Loss::Time),
            ),
            (
                "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-11-23T01:00:00 DUE TO PREEMPTION ***",
                Some(Loss::Preempted),
            ),
            ("ORTE has lost communication with a remote daemon.", Some(Loss::Connection)),
            ("ssh: connect to host node7 port 22: No route to host", Some(Loss::Connection)),
            ("slurmstepd: error: *** STEP 5.0 ON n4 CANCELLED AT 2026-11-23T01:00:00 ***", None),
            ("srun: error: n4: task 0: Exited with exit code 2", None),
            ("the node failed to be reached in the graph", None),
        ];
        for (line, loss) in losses {
            assert_eq!(Loss::of_line(line), loss, "{line}");
        }
    }

    #[test]
    fn the_status_of_ssh_reports_a_lost_host() {
        let ended = |code: i32| ExitStatus::from_raw(code << 8);
        assert_eq!(Loss::of_status("/usr/bin/ssh", ended(255), &[]), Some(Loss::Connection));
        assert_eq!(Loss::of_status("ssh", ended(1), &[]), None);
        assert_eq!(Loss::of_status("mpirun", ended(255), &[]), None);
        let refused = ["nobody@node7: Permission denied (publickey).".to_owned()];
        assert_eq!(Loss::of_status("ssh", ended(255), &refused), None);
    }
}
