//! A stage as several processes: the task written, the launcher started, its outputs taken over.

use std::path::{Path, PathBuf};
use std::time::Instant;
use std::{env, fs};

use hopmap_durable::DurableError;
use hopmap_model::{Arity, Context, Direction, InternalError};
use hopmap_process::on_path;
use miette::Report;

use crate::input_files::SeenFile;
use crate::pipeline::Launcher;
use crate::query::find;
use crate::ranks::{
    self, DONE, Done, LaunchError, Loss, OUT, PROGRAM, Processes, RankLauncher, Task, TaskInput, VARIABLE,
};
use crate::registry::{Configured, StageEntry};

/// The command of hopmap that does the work of `hopmap-ranks` for a stage that is one process.
const WORKER: &str = "worker";

/// A stage that a launcher starts.
pub(crate) struct Launch<'a> {
    /// What starts the processes.
    pub(crate) launcher: &'a Launcher,
    /// The stage.
    pub(crate) entry: &'static StageEntry,
    /// Its parameters.
    pub(crate) configured: &'a dyn Configured,
    /// What is connected to its inputs.
    pub(crate) inputs: Vec<TaskInput>,
    /// Its input files, as they were when its key was made.
    pub(crate) files: &'a [SeenFile],
    /// Cores of each process.
    pub(crate) threads: usize,
    /// How often it is started again when its host is lost.
    pub(crate) retries: u32,
}

/// What the processes of a stage gave: how it ended, and the folder of every output.
pub(crate) struct Launched {
    /// How it ended.
    pub(crate) done: Done,
    /// Folders by output port.
    pub(crate) outputs: Vec<(&'static str, PathBuf)>,
}

/// Runs a stage as the processes that a launcher starts, or beside those that it directs. `folder` is for the files of the task; all processes have to reach it.
///
/// Every attempt has a folder of its own there: a process that goes on though its host was lost finds its task gone and stops.
pub(crate) fn launch(launch: &Launch<'_>, folder: &Path, cx: &Context<'_>) -> Result<Launched, Report> {
    if launch.entry.directs_ranks {
        return direct(launch, folder, cx);
    }
    let program = program(launch.entry, true)?;
    let mut retried = 0;
    loop {
        let folder = &folder.join((retried + 1).to_string());
        prepare(launch, &[], folder, cx)?;
        let mut processes = Processes::start(launch.launcher, &program, folder)?;
        let status = processes.wait(folder, cx, &mut || Ok(()))?;
        let done = ranks::read::<Done>(&folder.join(DONE)).ok();
        // A search that ends early without being asked to has used up its budget. A signal on its host asks it to.
        let has_ended = |done: Done| done.complete || (done.timed && !ranks::is_stopped(folder));
        let is_wanted = done.is_some_and(has_ended) || cx.should_stop();
        if status.success() && done.is_some() && is_wanted {
            return given(launch.entry, folder);
        }
        let loss = processes.loss(launch.launcher.program(), status, folder, cx);
        let loss = loss.or(done.filter(|_| status.success()).map(|_| Loss::Stopped));
        match loss {
            Some(loss) if retried < launch.retries && !cx.should_stop() => {
                retried += 1;
                let _ = fs::remove_dir_all(folder);
                let (command, what) = (&processes.command, loss.in_words());
                cx.log(format!("{command} {what}; retry {retried} of {}", launch.retries));
            }
            Some(loss) if done.is_some_and(|done| !done.complete) => {
                cx.log(format!("{} {}: this is the best so far", processes.command, loss.in_words()));
                return given(launch.entry, folder);
            }
            _ => return Err(processes.failure(status, loss, retried, folder, cx)),
        }
    }
}

/// Runs a stage here that directs the ranks of its launcher.
fn direct(launch: &Launch<'_>, folder: &Path, cx: &Context<'_>) -> Result<Launched, Report> {
    let program = launch.launcher.program();
    if on_path(program).is_none() {
        let source = rustix::io::Errno::NOENT.into();
        return Err(LaunchError::NoLauncher { program: program.to_owned(), source }.into());
    }
    let mut retried = 0;
    loop {
        let folder = &folder.join((retried + 1).to_string());
        make_folder(folder)?;
        let ranks = RankLauncher { launcher: launch.launcher, folder, retried, cx: *cx };
        let configured = launch.entry.configure(launch.configured.given().clone());
        let configured = configured.map_err(|error| InternalError::new(error.message))?;
        let outcome = ranks::run_stage(launch.entry, configured, &launch.inputs, &cx.with_launcher(&ranks));
        let error = match outcome.and_then(|outcome| ranks::deliver(launch.entry, outcome, folder)) {
            Ok(()) => return given(launch.entry, folder),
            Err(error) => error,
        };
        match error.downcast_ref() {
            Some(LaunchError::Failed { loss: Some(loss), command, .. })
                if retried < launch.retries && !cx.should_stop() =>
            {
                retried += 1;
                let _ = fs::remove_dir_all(folder);
                cx.log(format!("{command} {}; retry {retried} of {}", loss.in_words(), launch.retries));
            }
            _ => return Err(error),
        }
    }
}

/// What the processes of a stage gave that has come to its end.
pub(super) fn given(entry: &StageEntry, folder: &Path) -> Result<Launched, Report> {
    let output = |port: &'static hopmap_model::Port| (port.name, folder.join(OUT).join(port.name));
    // A port that may stay empty has no folder then.
    for port in entry.ports(Direction::Out) {
        if port.arity != Arity::Optional && !output(port).1.exists() {
            return Err(LaunchError::NoOutput { port: port.name }.into());
        }
    }
    let outputs = entry.ports(Direction::Out).map(output).filter(|(_, path)| path.exists()).collect();
    Ok(Launched { done: ranks::read(&folder.join(DONE))?, outputs })
}

/// Path of the program that runs stages as MPI ranks.
pub(crate) fn ranks_program() -> Result<PathBuf, Report> {
    Ok(ranks()?)
}

fn ranks() -> Result<PathBuf, LaunchError> {
    find(PROGRAM, VARIABLE).map_err(|places| LaunchError::NoProgram { places })
}

/// What is started for a stage, the folder of its task behind it: ranks where it can be several processes, else hopmap itself.
pub(super) fn program(entry: &StageEntry, is_several: bool) -> Result<Vec<PathBuf>, LaunchError> {
    match entry.distributed && !entry.directs_ranks && is_several {
        true => Ok(vec![ranks()?]),
        false => Ok(vec![env::current_exe().map_err(LaunchError::NoSelf)?, WORKER.into()]),
    }
}

fn make_folder(folder: &Path) -> Result<(), DurableError> {
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(DurableError::io("remove", folder))?;
    }
    fs::create_dir_all(folder).map_err(DurableError::io("create", folder))
}

/// Writes the task into a new folder; `within` is what starts ranks that the stage directs, in its job.
pub(super) fn prepare(
    launch: &Launch<'_>,
    within: &[String],
    folder: &Path,
    cx: &Context<'_>,
) -> Result<(), Report> {
    make_folder(folder)?;
    let left = |deadline: Instant| deadline.saturating_duration_since(Instant::now()).as_secs_f64();
    let task = Task {
        hopmap: env!("CARGO_PKG_VERSION").to_owned(),
        kind: launch.entry.kind.to_owned(),
        revision: launch.entry.revision,
        parameters: launch.configured.given().clone(),
        inputs: launch.inputs.clone(),
        files: launch.files.to_vec(),
        launcher: within.to_vec(),
        threads: launch.threads,
        seconds: cx.deadline().map(left),
        state: cx.state().map(Path::to_owned),
    };
    task.write(folder)
}
