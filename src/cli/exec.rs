//! `hopmap exec`: one stage, without a pipeline and without a store. `hopmap worker` (hidden, hopmap itself starts it): the other
//! end of a launcher, for stages that are one process.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::Args;
use hopmap_artifact::{DESCRIPTION, Folder, PROVENANCE};
use hopmap_command::{Exit, Failure, Mistake, all_cores, refuse, shown};
use hopmap_durable::{DurableError, Staging, adopt_folder};
use hopmap_model::{Arity, Context, Direction, Inputs, InternalError, Observer, Outcome};
use hopmap_text::closest;
use miette::{Diagnostic, Report};
use serde_json::json;

use super::consent;
use super::fault::SystemError;
use super::named::is_in_store;
use super::open::{on_interrupt, pairs, working_directory};
use super::output::{Output, Result};
use super::stages::find;
use crate::engine::{self, Launch, Launched, short};
use crate::outputs::write_outputs;
use crate::pipeline::{Folders, LAUNCHERS, Launcher, assignments, configure_alone, distributed_stages};
use crate::ranks::{self, TaskInput};
use crate::registry::{self, Configured, StageEntry};
use crate::source::Source;

/// Arguments of `exec`.
#[derive(Debug, Args)]
#[command(after_help = "\
A stage with one output writes it to DIR, a stage with several to DIR/OUTPUT. An artifact in DIR is replaced if its files \
are unchanged and nothing else is in DIR; any other folder that is not empty is rejected.

Examples:
  hopmap exec trace/otf2 -p path=lu/traces.otf2 --out lu.graph
  hopmap exec topology/synthetic -p shape=tree:2x4x2 -p 'costs=[1,10,100]' --out machine
  hopmap exec map/annealing --in task-graph=lu.graph --in system=machine --out lu.mapping
  hopmap exec map/tabu --launcher 'mpirun -n 4' --in task-graph=lu.graph --in system=machine -o lu")]
pub(crate) struct Arguments {
    /// Kind of the stage, such as `map/annealing`.
    kind: String,
    /// Connect an artifact to an input of the stage.
    #[arg(long = "in", value_name = "PORT=ARTIFACT")]
    inputs: Vec<String>,
    /// Set a parameter of the stage; the value is TOML, or else plain text.
    #[arg(short = 'p', long = "param", value_name = "NAME=VALUE")]
    parameters: Vec<String>,
    /// Write the artifact to this folder.
    #[arg(short, long, value_name = "DIR")]
    out: PathBuf,
    /// Number of cores to use [default: all].
    #[arg(short, long, value_name = "CORES", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// Start the stage as MPI ranks with this command, such as "mpirun -n 4"; --jobs then sets the cores of each rank [default: 1].
    #[arg(long, value_name = "COMMAND")]
    launcher: Option<String>,
}

/// A stage to run.
pub(super) struct Request<'a> {
    pub(super) kind: &'a str,
    /// Ports and artifacts.
    pub(super) inputs: Vec<(String, String)>,
    /// Names and values, in TOML or else as text.
    pub(super) parameters: Vec<(String, String)>,
    /// Folder of the artifact.
    pub(super) out: &'a Path,
    /// Cores.
    pub(super) jobs: Option<u16>,
    /// What starts the stage as MPI ranks.
    pub(super) launcher: Option<&'a str>,
    /// When the stage has to deliver what it has.
    pub(super) end: Option<Instant>,
}

pub(crate) fn main(arguments: &Arguments, output: Output) -> Result {
    let Arguments { kind, inputs, parameters, out, jobs, launcher } = arguments;
    let (inputs, parameters) = (pairs(inputs, "--in")?, pairs(parameters, "-p")?);
    let launcher = launcher.as_deref();
    run(&Request { kind, inputs, parameters, out, jobs: *jobs, launcher, end: None }, output)
}

/// Runs a stage.
pub(super) fn run(request: &Request<'_>, output: Output) -> Result {
    let entry = find(request.kind)?;
    let working = working_directory()?;
    let inputs = inputs(entry, &request.inputs, &working)?;
    let source = Source::new("-p", assignments(entry, &request.parameters));
    let folders = Folders::new(&working, &working);
    let launcher = launcher(entry, request.launcher)?;
    let configured = configure_alone(entry, &source, &folders)?;
    consent::ask_for_files(&configured.commands(), inputs.iter().map(|input| input.path.as_path()))?;
    let out = working.join(request.out);
    check_place(entry, &out)?;
    let cancelled = on_interrupt()?;
    let observer = Notes { output, cancelled: &cancelled };
    let place = Destination {
        end: request.end,
        entry,
        out: &out,
        several: entry.ports(Direction::Out).count() > 1,
        output,
    };
    let is_feasible = match &launcher {
        None => run_here(configured, &inputs, request.jobs, &place, &observer)?,
        Some(launcher) => {
            let threads = request.jobs.map_or(1, usize::from);
            let launch =
                Launch { launcher, entry, configured: &*configured, inputs, files: &[], threads, retries: 0 };
            run_launched(&launch, &place, &observer)?
        }
    };
    match (is_feasible, cancelled.load(Ordering::Relaxed)) {
        (false, _) => {
            output.error(&Report::new(Infeasible));
            Ok(Exit::Failed)
        }
        (true, true) => Ok(Exit::Interrupted),
        (true, false) => Ok(Exit::Done),
    }
}

/// A problem without a solution; its diagnosis is the output of the stage.
#[derive(Debug, thiserror::Error, Diagnostic)]
#[error("the problem is infeasible: no solution exists")]
#[diagnostic(code(command::infeasible), help("the output of the stage explains why"))]
struct Infeasible;

/// The launcher of the command line; an empty one is none.
fn launcher(entry: &'static StageEntry, text: Option<&str>) -> Result<Option<Launcher>> {
    let Some(text) = text else { return Ok(None) };
    let launcher = Launcher::parse(text).map_err(|message| Mistake::new(message, LAUNCHERS))?;
    if let Some(launcher) = &launcher {
        launcher.check(entry).map_err(|message| Mistake::new(message, distributed_stages()))?;
        if launcher.is_batch() {
            let help = "`srun` or `salloc` start one stage now; `launcher` in a pipeline file takes `sbatch`";
            return refuse("`exec` waits for its stage and cannot queue jobs", help);
        }
    }
    Ok(launcher)
}

/// Runs the stage in this process; returns whether a solution exists.
fn run_here(
    configured: Box<dyn Configured>,
    inputs: &[TaskInput],
    jobs: Option<u16>,
    place: &Destination<'_>,
    observer: &Notes<'_>,
) -> Result<bool> {
    let jobs = jobs.map_or_else(all_cores, usize::from);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(jobs).build();
    let pool = pool.map_err(|source| Report::new(SystemError::NoThreads { threads: jobs, source }))?;
    let mut connected = Inputs::new();
    for input in inputs {
        // The ports of a stage have known kinds, and the artifact has that of its port.
        let kind = registry::kind(&input.kind)
            .ok_or_else(|| Report::new(InternalError::new(format!("unknown kind `{}`", input.kind))))?;
        let value = kind.read(&input.path).map_err(Report::new)?;
        connected.connect(&input.port, value, input.digest.clone(), input.label.clone());
    }
    let cx = Context::new(jobs, place.end, observer).with_scratch(place.scratch());
    let (is_feasible, outputs) = match pool.install(|| configured.run(connected, &cx))? {
        Outcome::Done(outputs) | Outcome::Partial(outputs) => (true, outputs),
        Outcome::Infeasible(outputs) => (false, outputs),
    };
    for (port, _, staging, folder) in write_outputs(place.entry, &outputs, place.scratch())? {
        place.put(port, &folder, |place| staging.commit(place))?;
    }
    Ok(is_feasible)
}

/// Runs the stage as the processes that a launcher starts; returns whether a solution exists.
fn run_launched(launch: &Launch<'_>, place: &Destination<'_>, observer: &Notes<'_>) -> Result<bool> {
    let work = Staging::new(place.scratch()).map_err(Report::new)?;
    let cx = Context::new(launch.threads, place.end, observer);
    let Launched { done, outputs } = engine::launch(launch, work.path(), &cx)?;
    for (port, path) in outputs {
        let folder = Folder::open(&path).map_err(Report::new)?;
        folder.verify().map_err(Report::new)?;
        place.put(port, &folder, |place| adopt_folder(&path, place))?;
    }
    Ok(done.feasible)
}

/// Where the outputs go.
struct Destination<'a> {
    /// When the stage has to deliver what it has.
    end: Option<Instant>,
    entry: &'static StageEntry,
    out: &'a Path,
    several: bool,
    output: Output,
}

impl Destination<'_> {
    /// A folder next to the result, so that large files are not copied.
    fn scratch(&self) -> &Path {
        self.out.ancestors().skip(1).find(|folder| folder.is_dir()).unwrap_or(self.out)
    }

    /// Moves an output to its place and prints it.
    fn put(
        &self,
        port: &str,
        folder: &Folder,
        commit: impl FnOnce(&Path) -> Result<(), DurableError>,
    ) -> Result<()> {
        let place = if self.several { self.out.join(port) } else { self.out.to_owned() };
        // What has come while the stage ran stays, and the result as well.
        let taken = check_output(&place).err();
        let place = if taken.is_some() { free_name_beside(&place) } else { place };
        commit(&place).map_err(Report::new)?;
        if taken.is_some() {
            let message = format!("{} was written while the stage ran", shown(self.out));
            return refuse(message, format!("the result is in {}", shown(&place)));
        }
        let (kind, digest) = (&folder.description().kind, folder.digest());
        self.output.json(&json!({ "output": port, "kind": kind, "digest": digest, "path": place }));
        self.output.line(format!("{kind} {} {}", short(digest), shown(&place)));
        Ok(())
    }
}

fn inputs(entry: &'static StageEntry, given: &[(String, String)], working: &Path) -> Result<Vec<TaskInput>> {
    let mut inputs = Vec::new();
    let mut connected: Vec<&str> = Vec::new();
    for (name, path) in given {
        let known: Vec<&str> = entry.ports(Direction::In).map(|port| port.name).collect();
        let Some(port) = entry.port(Direction::In, name) else {
            let help = match closest(name, &known) {
                Some(meant) => format!("did you mean `{meant}`? inputs: {}", known.join(", ")),
                None => format!("inputs: {}", known.join(", ")),
            };
            return refuse(format!("{} has no input `{name}`", entry.kind), help);
        };
        if port.arity != Arity::Many && connected.contains(&port.name) {
            return refuse(format!("input `{name}` is given twice"), "it takes one artifact");
        }
        let path = working.join(path);
        let folder = Folder::open(&path).map_err(Failure::usage)?;
        if folder.description().kind != port.kind {
            let found = &folder.description().kind;
            let message = format!("{} is a {found}, but `{name}` takes a {}", shown(&path), port.kind);
            return refuse(message, format!("`hopmap stages {}` describes the inputs", entry.kind));
        }
        inputs.push(TaskInput {
            port: port.name.to_owned(),
            kind: port.kind.to_owned(),
            digest: folder.digest().to_owned(),
            label: shown(&path),
            path,
        });
        connected.push(port.name);
    }
    for port in entry.ports(Direction::In) {
        if port.arity == Arity::One && !connected.contains(&port.name) {
            let help = format!("add --in {}=ARTIFACT with a {}", port.name, port.kind);
            return refuse(format!("{} needs `{}`", entry.kind, port.name), help);
        }
    }
    Ok(inputs)
}

/// Rejects a place that is neither an artifact to replace, nor empty, nor new.
fn check_place(entry: &StageEntry, out: &Path) -> Result<()> {
    let in_the_way = |path: &Path, what: &str| {
        let help = "name a new folder, an empty one, or an artifact to replace";
        refuse(format!("{} {what}", shown(path)), help)
    };
    if out.is_symlink() {
        let help = "name its target, or remove it";
        return refuse(format!("{} is a symbolic link", out.display()), help);
    }
    if out.is_file() {
        return in_the_way(out, "is a file");
    }
    if is_in_store(out) {
        return in_the_way(out, "is in a store");
    }
    let ports: Vec<&str> = entry.ports(Direction::Out).map(|port| port.name).collect();
    let names = |folder: &Path| -> Result<Vec<String>> {
        let entries = engine::entries(folder).map_err(Failure::failed)?;
        Ok(entries.iter().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect())
    };
    let found = names(out)?;
    let is_artifact = |names: &[String]| names.is_empty() || names.iter().any(|name| name == DESCRIPTION);
    if ports.len() == 1 {
        check_output(out)?;
    }
    if ports.len() > 1 {
        for name in &found {
            let inner = out.join(name);
            if name == PROVENANCE || !ports.contains(&name.as_str()) || !is_artifact(&names(&inner)?) {
                return in_the_way(&inner, "is not an artifact of this stage");
            }
            only_artifact(&inner)?;
        }
    }
    Ok(())
}

/// The place with a number behind its name, the first that is free.
fn free_name_beside(place: &Path) -> PathBuf {
    let name = |number: u32| {
        let mut name = place.as_os_str().to_owned();
        name.push(format!(".{number}"));
        PathBuf::from(name)
    };
    (1..=u32::MAX).map(name).find(|path| path.symlink_metadata().is_err()).unwrap_or_default()
}

/// Rejects a place of one artifact that has something else.
fn check_output(place: &Path) -> Result<()> {
    if place.is_symlink() {
        return refuse(format!("{} is a symbolic link", place.display()), "name its target, or remove it");
    }
    let names = engine::entries(place).map_err(Failure::failed)?;
    if !names.is_empty() && !names.iter().any(|entry| entry.file_name() == DESCRIPTION) {
        let help = "name a new folder, an empty one, or an artifact to replace";
        return refuse(format!("{} contains something that is not an artifact", shown(place)), help);
    }
    only_artifact(place)
}

/// Rejects a folder that contains more than an artifact, and one whose files were changed.
fn only_artifact(path: &Path) -> Result<()> {
    let help = "move your files elsewhere, or name another folder";
    let Ok(folder) = Folder::open(path) else {
        return match engine::entries(path).map_err(Failure::failed)?.is_empty() {
            true => Ok(()),
            // Such as a file of the user that has the name of a description.
            false => refuse(format!("{} is not an artifact", shown(path)), help),
        };
    };
    if let Some(names) = engine::beside_the_artifact(&folder) {
        return refuse(format!("{} also holds {names}, which `exec` would remove", path.display()), help);
    }
    folder.verify().map_err(|error| Failure::from(Mistake::new(error.to_string(), help)))
}

/// Prints what a stage logs.
pub(super) struct Notes<'a> {
    pub(super) output: Output,
    pub(super) cancelled: &'a AtomicBool,
}

impl Observer for Notes<'_> {
    fn progress(&self, _: u64, _: u64) {}

    fn log(&self, line: &str) {
        self.output.note(line);
    }

    fn cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }
}

/// Time between two checks for a signal.
const INTERVAL: Duration = Duration::from_millis(50);

/// Arguments of `worker`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  srun -n 1 hopmap worker .hopmap/work/KEY")]
pub(crate) struct WorkerArguments {
    /// Folder of the task.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

pub(crate) fn worker(arguments: &WorkerArguments) -> Result {
    let folder = &arguments.folder;
    let interrupted = on_interrupt()?;
    let ended = AtomicBool::new(false);
    let result = std::thread::scope(|scope| {
        scope.spawn(|| stop_when_interrupted(folder, &interrupted, &ended));
        ranks::stop_with_the_engine(folder);
        let _ended = Ended(&ended);
        ranks::run(folder, None, &|line| {
            // An engine that does not listen any more is gone.
            let _ = std::io::stdout().lock().write_all(format!("{line}\n").as_bytes());
        })
    });
    result.map(|()| Exit::Done).map_err(|error| {
        ranks::blame(folder, 0, &error);
        Failure::failed(error)
    })
}

/// Marks the stage as ended, even if it panicked.
struct Ended<'a>(&'a AtomicBool);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Stops the stage early: batch systems send a signal before they end a job.
fn stop_when_interrupted(folder: &Path, interrupted: &AtomicBool, ended: &AtomicBool) {
    while !ended.load(Ordering::Relaxed) {
        if interrupted.load(Ordering::Relaxed) {
            // If this fails the folder is gone, which stops the stage as well.
            let _ = ranks::stop(folder);
            return;
        }
        std::thread::sleep(INTERVAL);
    }
}
