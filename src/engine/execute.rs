//! Running one cell: inputs read, the stage called, outputs written and moved into the store.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::Write;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hopmap_artifact::{Folder, PROVENANCE};
use hopmap_durable::{DurableError, crash_point};
use hopmap_model::{Context, Inputs, InternalError, Observer, Outcome, Value};
use miette::Report;
use serde_json::{Value as Json, json};

use super::batch;
use super::launch::{Launch, Launched};
use super::outcome::Events;
use super::plan::{ConnectedInput, Task};
use super::record::{Ending, OutputRecord};
use super::store::Store;
use crate::input_files::look_again;
use crate::outputs::write_outputs;
use crate::pipeline::{Cell, Launcher};
use crate::ranks::{Done, TaskInput, panic_message};
use crate::registry;

/// How a cell ended.
pub(crate) struct Finished {
    pub(crate) cell: usize,
    pub(crate) key: String,
    pub(crate) result: Result<StageResult, Report>,
    pub(crate) seconds: f64,
    pub(crate) log: Option<PathBuf>,
}

/// What a stage gave.
pub(crate) struct StageResult {
    /// How it ended; none if it was cut short.
    pub(crate) ending: Option<Ending>,
    pub(crate) timed: bool,
    pub(crate) outputs: BTreeMap<String, OutputRecord>,
    /// Whether the outputs are on disk, or will be when the store is synced.
    pub(crate) is_on_disk: bool,
}

/// What running cells share.
pub(crate) struct Shared<'a> {
    pub(crate) artifacts: PathBuf,
    pub(crate) work: PathBuf,
    pub(crate) states: PathBuf,
    pub(crate) jobs: PathBuf,
    pub(crate) logs: PathBuf,
    /// Time without an answer after which a batch system is given up.
    pub(crate) patience: Duration,
    pub(crate) values: Values,
    /// Held while an artifact is moved into the store, by its digest.
    keeping: [Mutex<()>; 16],
    pub(crate) cancelled: &'a AtomicBool,
    pub(crate) events: &'a dyn Events,
}

/// Values of artifacts that some cell may still need, so that they are not read from disk each time.
#[derive(Default)]
pub(crate) struct Values(Mutex<HashMap<String, Value>>);

impl Values {
    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, Value>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn get(&self, kind: &str, digest: &str, folder: &Path) -> Result<Value, Report> {
        if let Some(value) = self.lock().get(digest) {
            return Ok(Arc::clone(value));
        }
        let kind = registry::kind(kind)
            .ok_or_else(|| InternalError::new(format!("there is no artifact kind `{kind}`")))?;
        let value = kind.read(folder)?;
        self.lock().insert(digest.to_owned(), Arc::clone(&value));
        Ok(value)
    }

    /// Drops an artifact that is no longer needed.
    pub(crate) fn forget(&self, digest: &str) {
        self.lock().remove(digest);
    }
}

/// Runs a cell. A panic of the stage is its failure, not ours.
pub(crate) fn execute(
    task: Task,
    cell: &Cell,
    limits: (usize, Option<Instant>),
    shared: &Shared<'_>,
) -> Finished {
    let started = Instant::now();
    let (index, key) = (task.cell, task.key.clone());
    let log = StageLog::of(cell, shared);
    let observer = CellObserver { cell, log: &log, shared };
    let cx = Context::new(limits.0, limits.1, &observer).with_scratch(&shared.work);
    // A stage that observes the machine may see something else next time, which is not in its key.
    let state = (!task.configured.observes()).then(|| shared.states.join(&key));
    let cx = state.as_deref().map_or(cx, |state| cx.with_state(state));
    let result = std::panic::catch_unwind(AssertUnwindSafe(|| run_stage(task, cell, &cx, shared)))
        .unwrap_or_else(|panic| Err(panicked(panic.as_ref(), cell)));
    if let Err(error) = &result {
        log.write(&format!("failed: {}", explain(error)));
    }
    Finished { cell: index, key, result, seconds: started.elapsed().as_secs_f64(), log: log.written() }
}

fn run_stage(task: Task, cell: &Cell, cx: &Context<'_>, shared: &Shared<'_>) -> Result<StageResult, Report> {
    let job = shared.jobs.join(&task.key);
    if job.exists() {
        // A run that queued this cell was killed, and now it is to run here.
        batch::withdraw(&batch::Slurm, &job, shared.patience, &|| cx.should_stop())?;
    }
    match &cell.launcher {
        None => run_here(task, cell, cx, shared),
        Some(launcher) => run_launched(&task, cell, launcher, cx, shared),
    }
}

/// What is stored next to an artifact.
fn provenance(task: &Task, cell: &Cell) -> Json {
    json!({
        "cell": cell.id,
        "key": task.key,
        "manifest": task.manifest,
        "hopmap": env!("CARGO_PKG_VERSION"),
    })
}

/// Artifacts of more bytes are put on disk by the thread that made them; smaller ones all together.
const LARGE: u64 = 1 << 18;

/// Runs the stage in our own process.
fn run_here(task: Task, cell: &Cell, cx: &Context<'_>, shared: &Shared<'_>) -> Result<StageResult, Report> {
    let provenance = provenance(&task, cell);
    // To be asked again for its files when it has run.
    let reads_files = !task.files.is_empty();
    let again = reads_files.then(|| cell.entry.configure(task.configured.given().clone()));
    let mut inputs = Inputs::new();
    for ConnectedInput { port, label, kind, digest, .. } in task.inputs {
        let value = shared.values.get(&kind, &digest, &shared.artifacts.join(&digest))?;
        inputs.connect(port, value, digest, label);
    }
    for (port, OutputRecord { kind, digest, .. }) in task.earlier.iter() {
        inputs.resume_from(port, shared.values.get(kind, digest, &shared.artifacts.join(digest))?);
    }
    let (ending, outputs) = match task.configured.run(inputs, cx)? {
        Outcome::Done(outputs) => (Some(Ending::Done), outputs),
        Outcome::Infeasible(outputs) => (Some(Ending::Infeasible), outputs),
        Outcome::Partial(outputs) => (None, outputs),
    };
    if let Some(Ok(configured)) = again {
        look_again(&*configured, &task.files).inspect_err(|_| forget_state(cx))?;
    }
    let mut records = BTreeMap::new();
    for (port, value, staging, folder) in write_outputs(cell.entry, &outputs, &shared.work)? {
        let record = OutputRecord::of(&folder)?;
        let is_large = record.files.iter().map(|(_, size)| size).sum::<u64>() > LARGE;
        shared.keep(&folder, &record, &provenance, |place| match is_large || place.exists() {
            true => staging.commit(place),
            false => std::fs::rename(staging.path(), place).map_err(DurableError::io("create", place)),
        })?;
        crash_point("store.artifact-renamed", &shared.artifacts.join(&record.digest));
        shared.values.lock().insert(record.digest.clone(), value);
        records.insert(port.to_owned(), record);
    }
    Ok(StageResult { ending, timed: outputs.is_timed(), outputs: records, is_on_disk: false })
}

/// Forgets what a search knows whose inputs changed: its state would be taken for one of the inputs as they were.
fn forget_state(cx: &Context<'_>) {
    if let Some(state) = cx.state() {
        let _ = std::fs::remove_file(state);
    }
}

/// Runs the stage as the processes that its launcher starts, and takes over what the first of them wrote.
fn run_launched(
    task: &Task,
    cell: &Cell,
    launcher: &Launcher,
    cx: &Context<'_>,
    shared: &Shared<'_>,
) -> Result<StageResult, Report> {
    let launch = Launch {
        launcher,
        entry: cell.entry,
        configured: &*task.configured,
        inputs: task_inputs(task, shared),
        files: &task.files,
        // Processes have one core each unless the pipeline sets `threads`.
        threads: cell.threads.unwrap_or(1),
        retries: cell.retries,
    };
    let work = shared.work.join(&task.key);
    let given = take_over(super::launch::launch(&launch, &work, cx)?, task, cell, shared)?;
    // The result is safe. What a straggling process keeps here goes when the cell is launched again.
    let _ = std::fs::remove_dir_all(&work);
    Ok(given)
}

/// What is connected to the inputs of a cell, for those who read it in another process.
pub(crate) fn task_inputs(task: &Task, shared: &Shared<'_>) -> Vec<TaskInput> {
    let input = |input: &ConnectedInput| TaskInput {
        port: input.port.to_owned(),
        kind: input.kind.clone(),
        path: shared.artifacts.join(&input.digest),
        digest: input.digest.clone(),
        label: input.label.clone(),
    };
    task.inputs.iter().map(input).collect()
}

/// Moves what other processes wrote into the store.
pub(crate) fn take_over(
    launched: Launched,
    task: &Task,
    cell: &Cell,
    shared: &Shared<'_>,
) -> Result<StageResult, Report> {
    let Launched { done, outputs } = launched;
    look_again(&*task.configured, &task.files)?;
    let provenance = provenance(task, cell);
    let mut records = BTreeMap::new();
    for (port, path) in outputs {
        let folder = Folder::open(&path)?;
        folder.verify()?;
        let record = OutputRecord::of(&folder)?;
        shared.keep(&folder, &record, &provenance, |place| hopmap_durable::adopt_folder(&path, place))?;
        records.insert(port.to_owned(), record);
    }
    let ending = match done {
        Done { feasible: false, .. } => Some(Ending::Infeasible),
        Done { complete: false, .. } => None,
        Done { .. } => Some(Ending::Done),
    };
    Ok(StageResult { ending, timed: done.timed, outputs: records, is_on_disk: true })
}

fn is_whole(record: &OutputRecord, place: &Path) -> bool {
    let same = |(name, size): &(String, u64)| {
        std::fs::metadata(place.join(name)).is_ok_and(|metadata| metadata.len() == *size)
    };
    record.files.iter().all(same) && Folder::open(place).is_ok_and(|folder| folder.verify().is_ok())
}

/// An error with its causes and its hint, as plain text.
pub(crate) fn explain(error: &Report) -> String {
    let mut text = error.chain().map(ToString::to_string).collect::<Vec<_>>().join(": ");
    if let Some(help) = error.help() {
        text.push_str(&format!("\nhelp: {help}"));
    }
    text
}

fn panicked(panic: &(dyn std::any::Any + Send), cell: &Cell) -> Report {
    let (kind, message) = (cell.entry.kind, panic_message(panic));
    InternalError::new(format!("{kind} panicked: {message}")).into()
}

/// A file name for the log of a cell.
pub(crate) fn log_name(id: &str) -> String {
    const LONGEST: usize = 120;
    let is_safe = |letter: char| letter.is_ascii_alphanumeric() || "-_=.,[]".contains(letter);
    let safe = id.replace(|letter| !is_safe(letter), "_");
    if safe == id && safe.len() <= LONGEST {
        return format!("{safe}.log");
    }
    // Two cells must not share a log because their names look alike once cleaned.
    let hash = blake3::hash(id.as_bytes()).to_hex();
    format!("{}-{}.log", &safe[..safe.len().min(LONGEST)], &hash[..12])
}

/// The log of one cell, created with its first line.
pub(crate) struct StageLog {
    path: PathBuf,
    file: Mutex<Option<File>>,
}

impl StageLog {
    pub(crate) fn of(cell: &Cell, shared: &Shared<'_>) -> Self {
        Self { path: shared.logs.join(log_name(&cell.id)), file: Mutex::new(None) }
    }

    pub(crate) fn write(&self, line: &str) {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if file.is_none() {
            *file = self.path.parent().and_then(|parent| {
                std::fs::create_dir_all(parent).ok()?;
                File::create(&self.path).ok()
            });
        }
        if let Some(file) = file.as_mut() {
            // A log that cannot be written must not fail the stage.
            let _ = writeln!(file, "{line}");
        }
    }

    pub(crate) fn written(&self) -> Option<PathBuf> {
        let file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.as_ref().map(|_| self.path.clone())
    }
}

pub(crate) struct CellObserver<'a> {
    pub(crate) cell: &'a Cell,
    pub(crate) log: &'a StageLog,
    pub(crate) shared: &'a Shared<'a>,
}

impl Observer for CellObserver<'_> {
    fn progress(&self, done: u64, total: u64) {
        self.shared.events.progress(self.cell, done, total);
    }

    fn log(&self, line: &str) {
        self.log.write(line);
        self.shared.events.log(self.cell, line);
    }

    fn cancelled(&self) -> bool {
        self.shared.cancelled.load(Ordering::Relaxed)
    }
}

impl<'a> Shared<'a> {
    /// Moves an artifact into the store, unless it is there already.
    fn keep(
        &self,
        folder: &Folder,
        record: &OutputRecord,
        provenance: &Json,
        commit: impl FnOnce(&Path) -> Result<(), DurableError>,
    ) -> Result<(), Report> {
        let place = self.artifacts.join(&record.digest);
        // Two cells may give the same at the same moment.
        let stripe = usize::from(record.digest.bytes().next().unwrap_or_default()) % self.keeping.len();
        let _alone = self.keeping[stripe].lock().unwrap_or_else(PoisonError::into_inner);
        if !is_whole(record, &place) {
            let path = folder.path().join(PROVENANCE);
            std::fs::write(&path, format!("{provenance:#}\n")).map_err(DurableError::io("write", &path))?;
            commit(&place)?;
        }
        Ok(())
    }

    pub(crate) fn new(
        store: &Store,
        logs: PathBuf,
        patience: Duration,
        cancelled: &'a AtomicBool,
        events: &'a dyn Events,
    ) -> Self {
        let artifacts = store.root().join("artifacts");
        let (work, states, jobs) = (store.work(), store.states(), store.jobs());
        let (values, keeping) = (Values::default(), Default::default());
        Self { artifacts, work, states, jobs, logs, patience, values, keeping, cancelled, events }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_of_different_cells_never_share_a_name() {
        assert_eq!(log_name("a[seed=1]"), "a[seed=1].log");
        assert_ne!(log_name("a[f=x/y]"), log_name("a[f=x y]"));
        assert!(log_name(&"x".repeat(500)).len() < 200);
    }
}
