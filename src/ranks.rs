//! A stage on several processes: the folder that the engine and the processes communicate through, and the work of each process.
//!
//! The engine writes [`Task`] into a folder that all processes can read and starts `LAUNCHER hopmap-ranks FOLDER`. The first
//! process writes its outputs into `out/` and then `done`; the first process that fails writes `fault.json`. A file `stop` asks all
//! processes to return their best result so far. Nothing here depends on MPI: a process gets a
//! [`Communicator`](hopmap_model::Communicator).
//!
//! # Protocol
//!
//! `launcher` is never part of a key. The engine (`engine/launch.rs`) writes `work/KEY/task.json` (kind, revision, parameters with their
//! paths, folders of the inputs, cores per process, seconds left, state file), finds `hopmap-ranks` (`HOPMAP_RANKS`, next to `hopmap`, on
//! `PATH`) and runs `LAUNCHER hopmap-ranks work/KEY` (`launcher`). `src/ranks` has all messages between the two:
//!
//! | in `work/KEY` | written by | meaning |
//! |---|---|---|
//! | `task.json` | engine | the task and the state of its input files; a process whose task is gone stops |
//! | `begun` | first process | MPI has started; a second process of rank 0 (launcher of another MPI) is rejected |
//! | `stop` | engine | return the best result: Ctrl-C or deadline; all processes check for it ten times a second |
//! | `out/PORT/`, then `done` | first process | the outputs, and whether they are complete, feasible, timed |
//! | `fault.json` | first process that fails | message and hint; that process then aborts all |
//!
//! Lines of standard output that begin with `hopmap-ranks:` carry progress and log messages; all others go into the log unchanged. The
//! launcher has its own process group, so that Ctrl-C on a terminal does not end it before the ranks have returned their results. The
//! engine holds the other end of the first rank's standard input: when it closes, the ranks stop. A stop also ends a launcher whose ranks
//! still wait in a queue. A missing `done`, an exit status other than zero or a rank that died is a failure; the state file stays.
//!
//! A stage that `directs_ranks()`, such as `topology/probe`, runs in the engine itself, or in a job of a batch system in `hopmap
//! worker`. It starts its own program as ranks through `hopmap_model::Launcher`: `LAUNCHER PROGRAM FOLDER`, with `begun`, `stop`,
//! the greeting on standard input and the end of the launcher as above.
//!
//! `hopmap-ranks` (`apps/ranks`) implements `Communicator` with the crate `mpi`: the stage runs in a thread
//! and passes its messages to the main thread, the only one that calls MPI, so `MPI_THREAD_FUNNELED` is enough.

mod launcher;
mod process;

use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};

use hopmap_durable::{DurableError, replace_file};
use miette::{Diagnostic, Report};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::input_files::SeenFile;
pub(crate) use launcher::{LaunchError, Loss, PROGRAM, Processes, RankLauncher, VARIABLE, times};
pub use process::{blame, run, stop_with_the_engine};
pub(crate) use process::{deliver, run_stage};

/// The task.
const TASK: &str = "task.json";
/// Created by the first process.
const BEGUN: &str = "begun";
/// Asks all processes to return their best result.
const STOP: &str = "stop";
/// The first error.
pub(crate) const FAULT: &str = "fault.json";
/// The outcome; written last.
pub(crate) const DONE: &str = "done";
/// Outputs by port.
pub(crate) const OUT: &str = "out";
/// The first line that the engine sends to the first process.
pub(crate) const GREETING: &str = "hopmap";
/// Prefix of lines for the engine.
const MARK: &str = "hopmap-ranks: ";

/// The message of a stage that panicked.
pub(crate) fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let message = panic.downcast_ref::<&str>().map(ToString::to_string);
    message.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default()
}

/// A stage that several processes run together.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Task {
    /// Version of the engine.
    pub(crate) hopmap: String,
    /// Kind of the stage.
    pub(crate) kind: String,
    /// Revision of the stage.
    pub(crate) revision: u32,
    /// Its parameters, paths resolved.
    pub(crate) parameters: Json,
    /// Its inputs, in the order of its ports.
    pub(crate) inputs: Vec<TaskInput>,
    /// Its input files when the engine read them.
    pub(crate) files: Vec<SeenFile>,
    /// What starts the ranks that the stage directs, if it does.
    #[serde(default)]
    pub(crate) launcher: Vec<String>,
    /// Cores that each process may use.
    pub(crate) threads: usize,
    /// Seconds after which the processes return their best result.
    pub(crate) seconds: Option<f64>,
    /// File for the state of a search.
    pub(crate) state: Option<PathBuf>,
}

/// An artifact at an input port.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct TaskInput {
    /// The port.
    pub(crate) port: String,
    /// Kind of the artifact.
    pub(crate) kind: String,
    /// Its folder.
    pub(crate) path: PathBuf,
    /// Its digest.
    pub(crate) digest: String,
    /// Its origin for messages.
    pub(crate) label: String,
}

/// The outcome of processes that did not fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Done {
    /// Whether there is a solution.
    pub(crate) feasible: bool,
    /// Whether the search finished.
    pub(crate) complete: bool,
    /// Whether the result depends on a time limit.
    pub(crate) timed: bool,
}

/// The first error, with the message of the stage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Fault {
    /// The process.
    pub(crate) rank: u32,
    /// The stable code of the error.
    pub(crate) code: Option<String>,
    /// The error message.
    pub(crate) message: String,
    /// How to fix it.
    pub(crate) help: Option<String>,
}

impl Diagnostic for Fault {
    fn code<'a>(&'a self) -> Option<Box<dyn Display + 'a>> {
        Some(Box::new(self.code.as_ref()?))
    }

    fn help<'a>(&'a self) -> Option<Box<dyn Display + 'a>> {
        Some(Box::new(self.help.as_ref()?))
    }
}

/// A damaged file of the task.
#[derive(Debug, thiserror::Error, Diagnostic)]
#[error("{} is not what hopmap wrote: {problem}", path.display())]
#[diagnostic(
    code(ranks::unreadable),
    help("hopmap and hopmap-ranks have to be of the same version: install both again")
)]
struct Unreadable {
    path: PathBuf,
    problem: String,
}

impl Task {
    /// Writes the task into an empty folder.
    pub(crate) fn write(&self, folder: &Path) -> Result<(), Report> {
        write(&folder.join(TASK), self)
    }

    /// Reads the task of a folder.
    pub(crate) fn read(folder: &Path) -> Result<Self, Report> {
        read(&folder.join(TASK))
    }
}

/// Records that the first process has started; `false` if another one has already.
pub(crate) fn begin(folder: &Path) -> Result<bool, Report> {
    let path = folder.join(BEGUN);
    match fs::File::create_new(&path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(DurableError::io("create", &path)(error).into()),
    }
}

/// Whether the first process has started.
pub(crate) fn has_begun(folder: &Path) -> bool {
    folder.join(BEGUN).exists()
}

/// Asks all processes to return their best result.
pub(crate) fn stop(folder: &Path) -> Result<(), Report> {
    let path = folder.join(STOP);
    Ok(fs::write(&path, "").map_err(DurableError::io("write", &path))?)
}

/// Whether the processes were asked to stop. A folder that is gone belonged to an engine that is gone.
pub(crate) fn is_stopped(folder: &Path) -> bool {
    folder.join(STOP).exists() || !folder.join(TASK).exists()
}

pub(crate) fn write(path: &Path, value: &impl Serialize) -> Result<(), Report> {
    let unreadable =
        |problem: serde_json::Error| Unreadable { path: path.into(), problem: problem.to_string() };
    let text = serde_json::to_vec_pretty(value).map_err(unreadable)?;
    Ok(replace_file(path, &text)?)
}

pub(crate) fn read<T: DeserializeOwned>(path: &Path) -> Result<T, Report> {
    let text = fs::read(path).map_err(DurableError::io("read", path))?;
    let unreadable =
        |problem: serde_json::Error| Unreadable { path: path.into(), problem: problem.to_string() };
    Ok(serde_json::from_slice(&text).map_err(unreadable)?)
}

/// A message of the first process to the engine, as a line of its standard output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Message {
    /// Units that are done, and all units.
    Progress(u64, u64),
    /// A line for the log.
    Log(String),
}

impl Message {
    /// The message as a line.
    pub(crate) fn line(&self) -> String {
        match self {
            Self::Progress(done, total) => format!("{MARK}progress {done} {total}"),
            Self::Log(text) => format!("{MARK}log {}", text.replace(['\n', '\r'], " ")),
        }
    }

    /// The message in a line; launchers may prefix it.
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let (_, said) = line.split_once(MARK)?;
        let (what, rest) = said.split_once(' ')?;
        match what {
            "progress" => {
                let (done, total) = rest.trim_end().split_once(' ')?;
                Some(Self::Progress(done.parse().ok()?, total.parse().ok()?))
            }
            "log" => Some(Self::Log(rest.to_owned())),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_say_what_they_were_made_of() {
        let log = |text: &str| Message::Log(text.to_owned());
        for (message, heard) in [
            (Message::Progress(3, 0), Message::Progress(3, 0)),
            (log("one line"), log("one line")),
            (log("two\nlines"), log("two lines")),
        ] {
            let line = format!("[1,0]<stdout>: {}", message.line());
            assert_eq!(Message::parse(&line), Some(heard));
        }
        for line in
            ["", "progress 1 2", "hopmap-ranks: progress x 2", "hopmap-ranks: other", "hopmap-ranks: "]
        {
            assert_eq!(Message::parse(line), None, "{line}");
        }
    }

    #[test]
    fn only_one_process_is_the_first() {
        let folder = tempfile::tempdir().unwrap();
        assert!(!has_begun(folder.path()));
        assert!(begin(folder.path()).unwrap());
        assert!(!begin(folder.path()).unwrap());
        assert!(has_begun(folder.path()));
    }

    #[test]
    fn a_folder_that_is_gone_is_a_reason_to_stop() {
        let folder = tempfile::tempdir().unwrap();
        assert!(is_stopped(folder.path()));
        std::fs::write(folder.path().join(TASK), "").unwrap();
        assert!(!is_stopped(folder.path()));
        stop(folder.path()).unwrap();
        assert!(is_stopped(folder.path()));
    }
}
