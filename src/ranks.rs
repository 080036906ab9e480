//! A stage on several processes: the folder through which the engine and the processes talk, and what each process does.
//!
//! The engine writes [`Task`] into a folder that all processes can read and starts `LAUNCHER hopmap-ranks FOLDER`. The first
//! process writes its outputs into `out/` and then `done`; whoever fails first says so in `fault.json`. A file `stop` asks all to
//! deliver what they have. Nothing here knows MPI: a process is given a [`Communicator`](hopmap_model::Communicator).
//!
//! # Protocol
//!
//! `launcher` is never part of a key. The engine (`engine/launch.rs`) writes `work/KEY/task.json` (kind, revision, parameters with their
//! paths, folders of the inputs, cores per process, seconds left, state file), finds `hopmap-ranks` (`HOPMAP_RANKS`, beside `hopmap`, on
//! `PATH`) and runs `LAUNCHER hopmap-ranks work/KEY`. Everything the two sides tell each other is in `src/ranks`, which knows no MPI:
//!
//! | in `work/KEY` | written by | says |
//! |---|---|---|
//! | `task.json` | engine | what to do, and what the input files were; a process whose task is gone stops |
//! | `begun` | first process | MPI has started; a second first process (a launcher of another MPI) is refused |
//! | `stop` | engine | deliver what you have: Ctrl-C or deadline; all processes look for it ten times a second |
//! | `out/PORT/`, then `done` | first process | the outputs, and whether they are complete, feasible, timed |
//! | `fault.json` | whoever fails first | message and hint; that process then aborts all |
//!
//! Lines of standard output that begin with `hopmap-ranks:` carry progress and log; all others go into the log as they are. The launcher
//! has a process group of its own, so that Ctrl-C on a terminal does not end it before the ranks have delivered. The engine holds the
//! other end of the first rank's standard input: when it is gone, the ranks stop. A launcher whose ranks have not begun, in a queue, is
//! ended by a stop. No `done`, an exit status other than zero or a rank that died is a failure; the state stays.
//!
//! `hopmap-ranks` (`src/bin/hopmap-ranks`, feature `mpi`) implements `Communicator` with the crate `mpi`: the stage runs in a thread,
//! and hands what it wants to send to the main thread, the only one that calls MPI, so `MPI_THREAD_FUNNELED` is enough.

mod process;

use std::fs;
use std::path::{Path, PathBuf};

use hopmap_durable::{DurableError, replace_file};
use miette::{Diagnostic, Report};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::engine::SeenFile;
pub use process::{blame, observes, run, stop_with_the_engine};

/// What is to be done.
const TASK: &str = "task.json";
/// Created by the first process.
const BEGUN: &str = "begun";
/// Asks all processes to deliver what they have.
const STOP: &str = "stop";
/// What went wrong first.
pub(crate) const FAULT: &str = "fault.json";
/// How it ended; written last.
pub(crate) const DONE: &str = "done";
/// Outputs by port.
pub(crate) const OUT: &str = "out";
/// The line with which the engine greets the first process.
pub(crate) const GREETING: &str = "hopmap";
/// What lines for the engine begin with.
const MARK: &str = "hopmap-ranks: ";

/// What a stage said when it panicked.
pub(crate) fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let message = panic.downcast_ref::<&str>().map(ToString::to_string);
    message.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default()
}

/// A stage that several processes run together.
#[derive(Debug, Serialize, Deserialize)]
pub struct Task {
    /// Version of the engine.
    pub hopmap: String,
    /// Kind of the stage.
    pub kind: String,
    /// Revision of the stage.
    pub revision: u32,
    /// Its parameters, paths resolved.
    pub parameters: Json,
    /// What is connected to its inputs, in the order of its ports.
    pub inputs: Vec<TaskInput>,
    /// Its input files, as the engine saw them.
    pub files: Vec<SeenFile>,
    /// Cores that each process may use.
    pub threads: usize,
    /// Seconds after which the processes deliver what they have.
    pub seconds: Option<f64>,
    /// File for the state of a search.
    pub state: Option<PathBuf>,
}

/// An artifact that goes into a port.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TaskInput {
    /// The port.
    pub port: String,
    /// Kind of the artifact.
    pub kind: String,
    /// Its folder.
    pub path: PathBuf,
    /// Its digest.
    pub digest: String,
    /// Where it comes from, in words.
    pub label: String,
}

/// How the processes ended when they did not fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Done {
    /// Whether there is a solution.
    pub feasible: bool,
    /// Whether the search came to its end.
    pub complete: bool,
    /// Whether a budget in seconds shaped the result.
    pub timed: bool,
}

/// What went wrong first, in the words of the stage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error, Diagnostic)]
#[error("{message}")]
pub struct Fault {
    /// The process.
    pub rank: u32,
    /// What went wrong.
    pub message: String,
    /// How to mend it.
    #[help]
    pub help: Option<String>,
}

/// A file of the task that does not say what it should.
#[derive(Debug, thiserror::Error, Diagnostic)]
#[error("{} is not what hopmap wrote: {problem}", path.display())]
#[diagnostic(help("hopmap and hopmap-ranks have to be of the same version: install both again"))]
struct Unreadable {
    path: PathBuf,
    problem: String,
}

impl Task {
    /// Writes the task into an empty folder.
    pub fn write(&self, folder: &Path) -> Result<(), Report> {
        write(&folder.join(TASK), self)
    }

    /// Reads the task of a folder.
    pub(crate) fn read(folder: &Path) -> Result<Self, Report> {
        read(&folder.join(TASK))
    }
}

/// Notes that the first process has begun; `false` if another has noted that before.
pub(crate) fn begin(folder: &Path) -> Result<bool, Report> {
    let path = folder.join(BEGUN);
    match fs::File::create_new(&path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(DurableError::io("create", &path)(error).into()),
    }
}

/// Whether the first process has begun.
pub(crate) fn has_begun(folder: &Path) -> bool {
    folder.join(BEGUN).exists()
}

/// Asks all processes to deliver what they have.
pub fn stop(folder: &Path) -> Result<(), Report> {
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

/// What the first process tells the engine, as a line of its standard output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Message {
    /// So many of so many units are done.
    Progress(u64, u64),
    /// A line for the log.
    Log(String),
}

impl Message {
    /// The line that says it.
    pub(crate) fn line(&self) -> String {
        match self {
            Self::Progress(done, total) => format!("{MARK}progress {done} {total}"),
            Self::Log(text) => format!("{MARK}log {}", text.replace(['\n', '\r'], " ")),
        }
    }

    /// What a line says; launchers may put something before it.
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
