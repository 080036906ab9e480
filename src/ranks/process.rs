//! One of the processes of a stage: its work and its messages from and to the engine.

use std::fs;
use std::io::BufRead;
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hopmap_durable::DurableError;
use hopmap_model::{Communicator, Context, Inputs, InternalError, Observer, Outcome, Outputs};
use miette::{Diagnostic, Report};

use super::launcher::RankLauncher;
use super::{DONE, Done, FAULT, Fault, GREETING, Message, OUT, Task, TaskInput, is_stopped};
use crate::input_files::{SeenFile, look_again};
use crate::outputs::write_outputs;
use crate::pipeline::Launcher;
use crate::ranks;
use crate::registry::{self, Configured, StageEntry};

/// Time for processes to end after the engine has gone.
const GRACE: Duration = Duration::from_secs(30);

/// Folder of the ranks that a stage directs.
const RANKS: &str = "ranks";

/// A task that this process cannot run.
#[derive(Debug, thiserror::Error, Diagnostic)]
enum TaskError {
    #[error("hopmap is {theirs}, but hopmap-ranks is {}", env!("CARGO_PKG_VERSION"))]
    #[diagnostic(
        code(ranks::other_version),
        help("build or install both from the same sources, on every host")
    )]
    OtherVersion { theirs: String },
    #[error("hopmap and this hopmap-ranks have different revisions of {kind}")]
    #[diagnostic(
        code(ranks::other_stage),
        help("build or install both from the same sources, on every host")
    )]
    OtherStage { kind: String },
    #[error(
        "the launcher started independent programs instead of one MPI job: several processes have rank 0"
    )]
    #[diagnostic(
        code(ranks::several_first),
        help(
            "hopmap-ranks was built with another MPI than that of the launcher; `ldd hopmap-ranks` shows which; inside Slurm, \
         use `salloc -n 4 mpirun` where `srun` does not support that MPI"
        )
    )]
    SeveralFirst,
    #[error("{kind} runs as one process here, but the launcher starts several")]
    #[diagnostic(
        code(ranks::several_alone),
        help("start one process: `srun -n 1`; to start MPI ranks, use `mpirun` or `srun --mpi=TYPE`")
    )]
    SeveralAlone { kind: &'static str },
    #[error("{0}")]
    #[diagnostic(code(ranks::parameters))]
    Parameters(String),
    #[error("cannot start {threads} threads: {problem}")]
    #[diagnostic(code(ranks::threads))]
    Threads { threads: usize, problem: String },
}

/// Runs the task of a folder as one of several processes, or alone. The first one writes the outputs and reports with `say`.
pub fn run(
    folder: &Path,
    communicator: Option<&dyn Communicator>,
    say: &(dyn Fn(&str) + Sync),
) -> Result<(), Report> {
    let task = Task::read(folder)?;
    let (entry, configured) = configure(&task)?;
    let is_first = communicator.is_none_or(|communicator| communicator.process() == 0);
    if is_first && !ranks::begin(folder)? {
        let alone = || TaskError::SeveralAlone { kind: entry.kind };
        return Err(communicator.map_or_else(alone, |_| TaskError::SeveralFirst).into());
    }
    // Others may have written to an input while the task waited in a queue.
    let files: Vec<SeenFile> = task.files.iter().map(SeenFile::seen_here).collect::<Result<_, _>>()?;
    let outcome = search(&task, configured, folder, communicator, is_first.then_some(say))?;
    look_again(&*configure(&task)?.1, &files).inspect_err(|_| {
        // The state belongs to other inputs than its name says.
        let _ = task.state.as_ref().map(fs::remove_file);
    })?;
    if is_first { deliver(entry, outcome, folder) } else { Ok(()) }
}

fn configure(task: &Task) -> Result<(&'static StageEntry, Box<dyn Configured>), TaskError> {
    if task.hopmap != env!("CARGO_PKG_VERSION") {
        return Err(TaskError::OtherVersion { theirs: task.hopmap.clone() });
    }
    let entry = registry::stage(&task.kind).filter(|entry| entry.revision == task.revision);
    let entry = entry.ok_or_else(|| TaskError::OtherStage { kind: task.kind.clone() })?;
    let configured = entry.configure(task.parameters.clone());
    Ok((entry, configured.map_err(|error| TaskError::Parameters(error.message))?))
}

/// Runs the stage of a task on its inputs.
fn search(
    task: &Task,
    configured: Box<dyn Configured>,
    folder: &Path,
    communicator: Option<&dyn Communicator>,
    say: Option<&(dyn Fn(&str) + Sync)>,
) -> Result<Outcome, Report> {
    let deadline = task.seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let deadline = deadline.and_then(|left| Instant::now().checked_add(left));
    let observer = RankObserver::new(folder, say);
    let cx = Context::new(task.threads, deadline, &observer).with_scratch(folder);
    let cx = communicator.map_or(cx, |communicator| cx.with_communicator(communicator));
    let cx = task.state.as_deref().map_or(cx, |state| cx.with_state(state));
    let (entry, _) = configure(task)?;
    let Some(launcher) = Launcher::of_words(&task.launcher) else {
        return run_stage(entry, configured, &task.inputs, &cx);
    };
    let folder = folder.join(RANKS);
    fs::create_dir(&folder).map_err(DurableError::io("create", &folder))?;
    let ranks = RankLauncher { launcher: &launcher, folder: &folder, retried: 0, cx };
    run_stage(entry, configured, &task.inputs, &cx.with_launcher(&ranks))
}

/// Runs a stage on artifacts, in a pool of its cores. A panic of the stage is an error.
pub(crate) fn run_stage(
    entry: &StageEntry,
    configured: Box<dyn Configured>,
    inputs: &[TaskInput],
    cx: &Context<'_>,
) -> Result<Outcome, Report> {
    let (inputs, threads) = (read_inputs(inputs)?, cx.threads());
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    let pool = pool.map_err(|error| TaskError::Threads { threads, problem: error.to_string() })?;
    let run = || pool.install(|| configured.run(inputs, cx));
    std::panic::catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        Err(InternalError::new(format!("{} panicked: {}", entry.kind, ranks::panic_message(&*panic))).into())
    })
}

fn read_inputs(given: &[TaskInput]) -> Result<Inputs, Report> {
    let mut inputs = Inputs::new();
    for input in given {
        let kind =
            registry::kind(&input.kind).ok_or_else(|| TaskError::OtherStage { kind: input.kind.clone() })?;
        let value = kind.read(&input.path)?;
        inputs.connect(&input.port, value, input.digest.clone(), input.label.clone());
    }
    Ok(inputs)
}

/// Writes the outputs, then how it ended.
pub(crate) fn deliver(entry: &StageEntry, outcome: Outcome, folder: &Path) -> Result<(), Report> {
    let (feasible, complete, outputs): (bool, bool, Outputs) = match outcome {
        Outcome::Done(outputs) => (true, true, outputs),
        Outcome::Infeasible(outputs) => (false, true, outputs),
        Outcome::Partial(outputs) => (true, false, outputs),
    };
    let out = folder.join(OUT);
    fs::create_dir_all(&out).map_err(DurableError::io("create", &out))?;
    for (port, _, staging, _) in write_outputs(entry, &outputs, &out)? {
        staging.commit(&out.join(port))?;
    }
    ranks::write(&folder.join(DONE), &Done { feasible, complete, timed: outputs.is_timed() })
}

/// Leaves word of a failure; `false` if another process was first, and what it says counts.
pub fn blame(folder: &Path, rank: u32, error: &Report) -> bool {
    let message = error.chain().map(ToString::to_string).collect::<Vec<_>>().join(": ");
    let code = error.code().map(|code| code.to_string());
    let fault = Fault { rank, code, message, help: error.help().map(|help| help.to_string()) };
    let own = folder.join(format!("fault-{rank}.json"));
    // It appears whole or not at all: whoever comes second aborts everybody at once.
    let linked = ranks::write(&own, &fault).is_ok().then(|| fs::hard_link(&own, folder.join(FAULT)));
    // Where it cannot be written, printing it is all that is left.
    !matches!(linked, Some(Err(error)) if error.kind() == std::io::ErrorKind::AlreadyExists)
}

/// Stops all processes when the engine is gone: it greets the first process on standard input and holds the other end of it
/// as long as it lives.
///
/// An input that ends without the greeting is not connected to the engine and says nothing.
pub fn stop_with_the_engine(folder: &Path) {
    let folder = folder.to_owned();
    std::thread::spawn(move || {
        let mut lines = std::io::stdin().lock().lines();
        if !lines.next().is_some_and(|line| line.is_ok_and(|line| line == GREETING)) {
            return;
        }
        while lines.next().is_some_and(|line| line.is_ok()) {}
        // If this fails the folder is gone, which is a reason to stop as well.
        let _ = ranks::stop(&folder);
        std::thread::sleep(GRACE);
        #[expect(clippy::exit, reason = "the engine that waited for these processes is gone")]
        std::process::exit(1);
    });
}

/// Time between two checks of the folder, and between two progress messages.
const INTERVAL: Duration = Duration::from_millis(100);

/// Checks for the file that stops the task; only the first process reports progress.
pub(crate) struct RankObserver<'a> {
    folder: &'a Path,
    say: Option<&'a (dyn Fn(&str) + Sync)>,
    stopped: AtomicBool,
    checked: Every,
    reported: Every,
}

impl<'a> RankObserver<'a> {
    pub(crate) fn new(folder: &'a Path, say: Option<&'a (dyn Fn(&str) + Sync)>) -> Self {
        let (checked, reported) = (Every::default(), Every::default());
        Self { folder, say, stopped: AtomicBool::new(false), checked, reported }
    }
}

impl Observer for RankObserver<'_> {
    fn progress(&self, done: u64, total: u64) {
        if let Some(say) = self.say.filter(|_| done == total || self.reported.is_due()) {
            say(&Message::Progress(done, total).line());
        }
    }

    fn log(&self, line: &str) {
        if let Some(say) = self.say {
            say(&Message::Log(line.to_owned()).line());
        }
    }

    fn cancelled(&self) -> bool {
        if !self.stopped.load(Ordering::Relaxed) && self.checked.is_due() && is_stopped(self.folder) {
            self.stopped.store(true, Ordering::Relaxed);
        }
        self.stopped.load(Ordering::Relaxed)
    }
}

/// An action that at most one thread does in an interval.
#[derive(Default)]
struct Every(Mutex<Option<Instant>>);

impl Every {
    fn is_due(&self) -> bool {
        // Another thread does it.
        let Ok(mut last) = self.0.try_lock() else { return false };
        let is_due = last.is_none_or(|last| last.elapsed() >= INTERVAL);
        if is_due {
            *last = Some(Instant::now());
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// One process, alone.
    struct Alone;

    impl Communicator for Alone {
        fn process(&self) -> u32 {
            0
        }

        fn processes(&self) -> u32 {
            1
        }

        fn shift(&self, bytes: Vec<u8>) -> Result<Vec<u8>, Report> {
            Ok(bytes)
        }

        fn all_gather(&self, bytes: Vec<u8>) -> Result<Vec<Vec<u8>>, Report> {
            Ok(vec![bytes])
        }
    }

    fn task() -> Task {
        let entry = registry::stage("topology/synthetic").unwrap();
        Task {
            hopmap: env!("CARGO_PKG_VERSION").into(),
            kind: entry.kind.into(),
            revision: entry.revision,
            parameters: json!({ "shape": "tree:2x2", "costs": [1, 10] }),
            inputs: Vec::new(),
            files: Vec::new(),
            launcher: Vec::new(),
            threads: 1,
            seconds: None,
            state: None,
        }
    }

    fn run_task(task: &Task, folder: &Path) -> Result<(), Report> {
        task.write(folder).unwrap();
        run(folder, Some(&Alone), &|_| {})
    }

    #[test]
    fn the_first_process_writes_the_outputs_and_then_that_it_is_done() {
        let folder = tempfile::tempdir().unwrap();
        run_task(&task(), folder.path()).unwrap();
        let done: Done = ranks::read(&folder.path().join(DONE)).unwrap();
        assert_eq!(done, Done { feasible: true, complete: true, timed: false });
        registry::kind("system-graph").unwrap().read(&folder.path().join("out/system-graph")).unwrap();
    }

    #[test]
    fn a_second_first_process_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        run_task(&task(), folder.path()).unwrap();
        let error = run_task(&task(), folder.path()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the launcher started independent programs instead of one MPI job: several processes have rank 0"
        );
    }

    #[test]
    fn another_version_or_stage_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let other = Task { hopmap: "0.0.1".into(), ..task() };
        let message = run_task(&other, folder.path()).unwrap_err().to_string();
        assert!(message.starts_with("hopmap is 0.0.1"), "{message}");
        let other = Task { revision: 999, ..task() };
        let message = run_task(&other, folder.path()).unwrap_err().to_string();
        assert!(message.contains("have different revisions of topology/synthetic"), "{message}");
    }

    #[test]
    fn the_first_who_fails_is_heard() {
        let folder = tempfile::tempdir().unwrap();
        let error = miette::miette!(help = "do that", "this went wrong");
        assert!(blame(folder.path(), 3, &error));
        assert!(!blame(folder.path(), 1, &error));
        let fault: Fault = ranks::read(&folder.path().join(FAULT)).unwrap();
        assert_eq!(
            (fault.rank, fault.message.as_str(), fault.help.as_deref()),
            (3, "this went wrong", Some("do that"))
        );
    }

    #[test]
    fn a_stop_is_heard_and_only_the_first_process_talks() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("task.json"), "").unwrap();
        let heard = Mutex::new(Vec::new());
        let say = |line: &str| heard.lock().unwrap().push(line.to_owned());
        let first = RankObserver::new(folder.path(), Some(&say));
        let other = RankObserver::new(folder.path(), None);
        for observer in [&first, &other] {
            assert!(!observer.cancelled());
            observer.log("hello");
            observer.progress(7, 7);
        }
        assert_eq!(*heard.lock().unwrap(), ["hopmap-ranks: log hello", "hopmap-ranks: progress 7 7"]);
        super::super::stop(folder.path()).unwrap();
        for observer in [&first, &other] {
            while !observer.cancelled() {
                std::thread::yield_now();
            }
        }
    }
}
