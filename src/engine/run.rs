//! Running a pipeline.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::Scope;
use std::time::Instant;

use miette::{Diagnostic, Report};

use super::batch::{self, Order, Slurm};
use super::execute::{Finished, Shared, StageResult, execute};
use super::key::{Manifest, Reason};
use super::outcome::{Events, Journal, RunReport, Settled, State};
use super::plan::{Decision, Planner, Task};
use super::record::{Ending, OutputRecords, ResultRecord};
use super::resources::{Cores, Deadline, Limits, Resources};
use super::save::Copies;
use super::store::{Result, Store};
use super::writer::Writer;
use crate::pipeline::{Cell, Pipeline};

/// Runs what has to run. Results are in the store the moment their cell is done.
pub(crate) fn run(
    pipeline: &Pipeline,
    store: &mut Store,
    writer: &mut Writer,
    limits: Limits,
    cancelled: &AtomicBool,
    events: &dyn Events,
) -> Result<RunReport, Report> {
    let mut run = Run::new(pipeline, store, writer, limits, cancelled, events);
    run.complete_without_running()?;
    if run.queue.has_work() {
        let cores = Cores::default();
        let journal = Journal::create(run.store, &run.planner.id)?;
        let logs = journal.folder.join("logs");
        let shared = Shared::new(run.store, logs, pipeline.batch.patience, cancelled, events);
        run.output.journal = Some(journal);
        let (sender, receiver) = mpsc::channel::<Finished>();
        let (orders, incoming) = mpsc::channel::<Order<'_>>();
        let manager = sender.clone();
        std::thread::scope(|threads| {
            if pipeline.cells.iter().any(Cell::is_batch) {
                let shared = &shared;
                threads.spawn(move || {
                    batch::serve(&Slurm, &incoming, &manager, shared, pipeline.batch.patience);
                });
            }
            let channels = Channels { finished: (sender, receiver), orders };
            run.execute_all(threads, (&shared, &cores), &channels)
        })?;
    }
    if run.store.jobs().exists() {
        batch::cancel_unwanted(&Slurm, run.store);
    }
    run.finish()
}

/// How running cells are heard of, and where jobs of batch systems are ordered.
struct Channels<'a> {
    finished: (mpsc::Sender<Finished>, mpsc::Receiver<Finished>),
    orders: mpsc::Sender<Order<'a>>,
}

struct Run<'a> {
    planner: Planner<'a>,
    pipeline: &'a Pipeline,
    store: &'a mut Store,
    writer: &'a mut Writer,
    queue: Queue,
    resources: Resources,
    output: Output<'a>,
    cancelled: &'a AtomicBool,
    /// Cells that run, by key, and the cells that wait for the same key.
    running: HashMap<String, Running>,
    failed: bool,
    deadline: Option<Deadline>,
}

/// What is still to be done.
struct Queue {
    /// Cells whose inputs are complete, ordered by index.
    ready: BTreeSet<usize>,
    /// Cells that are to run, by index.
    pending: BTreeMap<usize, Task>,
    /// The same for those that are jobs of a batch system.
    queued: BTreeMap<usize, Task>,
    /// Number of cells of which each still waits.
    waiting: Vec<usize>,
    /// The cells that wait for each.
    dependents: Vec<Vec<usize>>,
    /// Number of cells that may still read the outputs of each.
    readers: Vec<usize>,
}

/// Where events are reported.
struct Output<'a> {
    events: &'a dyn Events,
    journal: Option<Journal>,
    started: Instant,
    /// Cells that settled and are not in the journal yet.
    unwritten: Vec<usize>,
}

impl Queue {
    fn new(pipeline: &Pipeline) -> Self {
        let count = pipeline.cells.len();
        let mut waiting = vec![0; count];
        let mut dependents = vec![Vec::new(); count];
        for (index, cell) in pipeline.cells.iter().enumerate() {
            let needed: HashSet<usize> = cell.dependencies().collect();
            waiting[index] = needed.len();
            needed.into_iter().for_each(|other: usize| dependents[other].push(index));
        }
        Self {
            ready: (0..count).filter(|&index| waiting[index] == 0).collect(),
            pending: BTreeMap::new(),
            queued: BTreeMap::new(),
            waiting,
            readers: dependents.iter().map(Vec::len).collect(),
            dependents,
        }
    }

    /// Whether there is something to decide or to start.
    fn has_work(&self) -> bool {
        !self.ready.is_empty() || !self.pending.is_empty() || !self.queued.is_empty()
    }

    /// Notes that a cell has settled: cells that waited for nothing else are ready.
    fn complete(&mut self, index: usize, cell: &Cell) {
        for needed in cell.dependencies().collect::<HashSet<usize>>() {
            self.readers[needed] -= 1;
        }
        for dependent in std::mem::take(&mut self.dependents[index]) {
            self.waiting[dependent] -= 1;
            if self.waiting[dependent] == 0 {
                self.ready.insert(dependent);
            }
        }
    }
}

/// The system has no threads for a cell.
#[derive(Debug, thiserror::Error, Diagnostic)]
#[error("its threads cannot be started: {0}")]
#[diagnostic(
    code(engine::no_threads),
    help("use fewer cores with --jobs, or raise the limit of processes (`ulimit -u`)")
)]
struct NoThreads(String);

/// The end of a cell for which the system has no threads.
fn without_threads(cell: usize, key: String, error: &dyn std::error::Error) -> Finished {
    let result = Err(NoThreads(error.to_string()).into());
    Finished { cell, key, result, seconds: 0.0, log: None }
}

struct Running {
    cores: usize,
    /// When it has to deliver what it has, unless it is known to be done long before.
    until: Option<Instant>,
    memory: u64,
    is_batch: bool,
    reasons: Vec<Reason>,
    manifest: Manifest,
    waiting_for_same_key: Vec<usize>,
}

impl<'a> Run<'a> {
    fn new(
        pipeline: &'a Pipeline,
        store: &'a mut Store,
        writer: &'a mut Writer,
        limits: Limits,
        cancelled: &'a AtomicBool,
        events: &'a dyn Events,
    ) -> Self {
        let queue = Queue::new(pipeline);
        let deadline = limits.deadline.map(|end| Deadline::new(end, pipeline, store, &queue.dependents));
        Self {
            planner: Planner::new(pipeline, store).with_worth(limits.worth),
            pipeline,
            store,
            writer,
            queue,
            resources: Resources { limits, used_cores: 0, used_memory: 0, jobs: 0 },
            output: Output { events, journal: None, started: Instant::now(), unwritten: Vec::new() },
            cancelled,
            running: HashMap::new(),
            failed: false,
            deadline,
        }
    }

    /// Decides every ready cell; what is in the store settles at once and makes others ready.
    fn complete_without_running(&mut self) -> Result {
        while let Some(index) = self.queue.ready.pop_first() {
            match self.planner.decide(index, self.store) {
                Decision::Complete(settled) => self.complete(index, *settled)?,
                Decision::Execute(task) => {
                    let is_batch = self.pipeline.cells[index].is_batch();
                    let queue = if is_batch { &mut self.queue.queued } else { &mut self.queue.pending };
                    queue.insert(index, *task);
                }
            }
        }
        Ok(())
    }

    fn execute_all<'scope>(
        &mut self,
        threads: &'scope Scope<'scope, '_>,
        places: (&'scope Shared<'_>, &'scope Cores),
        channels: &Channels<'a>,
    ) -> Result
    where
        'a: 'scope,
    {
        let (sender, receiver) = &channels.finished;
        loop {
            self.complete_without_running()?;
            if self.is_stopping() {
                self.queue.pending.clear();
                self.queue.queued.clear();
            }
            while let Some(task) = self.next_task() {
                self.start(task, threads, places, sender)?;
            }
            while let Some(task) = self.next_job() {
                self.order(task, &channels.orders)?;
            }
            if !self.queue.ready.is_empty() {
                continue;
            }
            if self.running.is_empty() {
                return Ok(());
            }
            // The channel cannot close while we hold a sender.
            if let Ok(finished) = receiver.recv() {
                self.finished(finished, places.0)?;
            }
        }
    }

    fn is_stopping(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed) || (self.resources.limits.fail_fast && self.failed)
    }

    /// The next cell to start here, if there are cores and memory for it.
    fn next_task(&mut self) -> Option<Task> {
        loop {
            let (_, task) = self.queue.pending.first_key_value()?;
            let (cores, memory) = (self.wanted_cores(task), self.pipeline.cells[task.cell].memory_here());
            if !self.resources.have_room(cores, memory) {
                return None;
            }
            let (_, task) = self.queue.pending.pop_first()?;
            if let Some(task) = self.claim(task) {
                return Some(task);
            }
        }
    }

    /// The next cell to hand to a batch system, if there is room in the queue.
    fn next_job(&mut self) -> Option<Task> {
        while self.resources.jobs < self.pipeline.batch.jobs {
            let (_, task) = self.queue.queued.pop_first()?;
            if let Some(task) = self.claim(task) {
                return Some(task);
            }
        }
        None
    }

    /// A task, unless another cell of the same key has given its result or is at it.
    fn claim(&mut self, task: Task) -> Option<Task> {
        if self.is_done_meanwhile(&task) {
            self.queue.ready.insert(task.cell);
            return None;
        }
        match self.running.get_mut(&task.key) {
            // Share the result.
            Some(running) => {
                running.waiting_for_same_key.push(task.cell);
                None
            }
            None => Some(task),
        }
    }

    /// Whether another cell of the same key has finished since this one was decided.
    fn is_done_meanwhile(&self, task: &Task) -> bool {
        let has_to_run = |reason: &Reason| matches!(reason, Reason::Observes | Reason::OutputDamaged { .. });
        self.store.result(&task.key).is_some() && !task.reasons.iter().any(has_to_run)
    }

    /// The fewest cores with which a cell starts. What is measured would be slower beside other stages, so it gets all of them.
    fn wanted_cores(&self, task: &Task) -> usize {
        let (cell, most) = (&self.pipeline.cells[task.cell], self.resources.limits.jobs);
        if cell.entry.experiments { most } else { cell.threads.unwrap_or(1).min(most) }
    }

    /// The cores that a cell has as long as it runs: those that it asks for, or else its share of those that are free.
    fn cores(&self, task: &Task) -> usize {
        let cell = &self.pipeline.cells[task.cell];
        if cell.threads.is_some() || cell.launcher.is_some() || cell.entry.experiments {
            return self.wanted_cores(task);
        }
        let Resources { limits, used_cores, .. } = self.resources;
        let free = limits.jobs.saturating_sub(used_cores);
        if self.queue.pending.len() >= free {
            return 1;
        }
        let others = self.queue.pending.keys().map(|&cell| &self.pipeline.cells[cell]);
        let wanted: Vec<usize> = others.filter_map(|cell| cell.threads).collect();
        let sharing = self.queue.pending.len() - wanted.len() + 1;
        free.saturating_sub(wanted.iter().sum()).div_ceil(sharing).max(1)
    }

    /// Runs a cell on a thread of its own, and its stage in threads that it shares with no other cell.
    fn start<'scope>(
        &mut self,
        task: Task,
        threads: &'scope Scope<'scope, '_>,
        (shared, pools): (&'scope Shared<'_>, &'scope Cores),
        sender: &mpsc::Sender<Finished>,
    ) -> Result
    where
        'a: 'scope,
    {
        let cell: &'a Cell = &self.pipeline.cells[task.cell];
        let cores = self.cores(&task);
        let until = self.share_of_deadline(&task);
        self.begin(&task, cores, until)?;
        let (index, key, own) = (task.cell, task.key.clone(), sender.clone());
        let run = move || {
            let (index, key) = (task.cell, task.key.clone());
            let run = || execute(task, cell, (cores, until), shared);
            let finished = match &cell.launcher {
                // It works in other processes.
                Some(_) => Ok(run()),
                None => pools.lend(cores, run),
            };
            // The receiver lives as long as anything runs.
            let _ = own.send(finished.unwrap_or_else(|error| without_threads(index, key, &error)));
        };
        let thread = std::thread::Builder::new().name(cell.id.replace('\0', ""));
        if let Err(error) = thread.spawn_scoped(threads, run) {
            let _ = sender.send(without_threads(index, key, &error));
        }
        Ok(())
    }

    /// Hands a cell to the batch system of its launcher.
    fn order(&mut self, task: Task, orders: &mpsc::Sender<Order<'a>>) -> Result {
        let cell: &'a Cell = &self.pipeline.cells[task.cell];
        let Some(launcher) = &cell.launcher else { return Ok(()) };
        let deadline = self.share_of_deadline(&task);
        self.begin(&task, 0, deadline)?;
        // The other end listens as long as we hold this one.
        let _ = orders.send(Order { task, cell, launcher, deadline });
        Ok(())
    }

    /// Notes that a cell runs.
    fn begin(&mut self, task: &Task, cores: usize, until: Option<Instant>) -> Result {
        let cell = &self.pipeline.cells[task.cell];
        let is_quick = self.deadline.as_ref().is_some_and(|deadline| deadline.is_quick(task.cell));
        self.writer.begin(self.store, &self.planner.id, &cell.id, &task.key)?;
        self.output.events.started(cell, &task.reasons);
        let (memory, is_batch) = (cell.memory_here(), cell.is_batch());
        self.resources.used_cores += cores;
        self.resources.used_memory += memory;
        self.resources.jobs += usize::from(is_batch);
        let running = Running {
            cores,
            until: until.filter(|_| !is_quick),
            memory,
            is_batch,
            reasons: task.reasons.clone(),
            manifest: task.manifest.clone(),
            waiting_for_same_key: Vec::new(),
        };
        self.running.insert(task.key.clone(), running);
        Ok(())
    }

    /// When a cell that starts now has to deliver.
    fn share_of_deadline(&self, task: &Task) -> Option<Instant> {
        let deadline = self.deadline.as_ref()?;
        let is_live = task.configured.observes();
        if self.pipeline.cells[task.cell].is_batch() {
            return Some(deadline.of(task.cell, is_live, 1, &[], 1));
        }
        let busy =
            self.running.values().filter_map(|running| running.until.map(|until| (until, running.cores)));
        let busy: Vec<Instant> = busy.flat_map(|(until, cores)| std::iter::repeat_n(until, cores)).collect();
        let waiting = self.queue.pending.values().filter(|task| !deadline.is_quick(task.cell));
        let waiting: usize = waiting.map(|task| self.wanted_cores(task)).sum();
        let cores = waiting + self.wanted_cores(task);
        Some(deadline.of(task.cell, is_live, self.resources.limits.jobs, &busy, cores))
    }

    fn finished(&mut self, finished: Finished, shared: &Shared<'_>) -> Result {
        let Finished { cell, key, result, seconds, log } = finished;
        let Some(Running { cores, memory, is_batch, reasons, manifest, waiting_for_same_key, .. }) =
            self.running.remove(&key)
        else {
            return Ok(());
        };
        self.resources.used_cores -= cores;
        self.resources.used_memory -= memory;
        self.resources.jobs -= usize::from(is_batch);
        let settled = match result {
            Ok(given) => self.keep(&key, &manifest, given, seconds)?,
            Err(error) => Settled::failed(error),
        };
        for waiting in waiting_for_same_key {
            // The others got the same answer without running.
            let state = if settled.state == State::Ran { State::Cached } else { settled.state };
            let outputs = settled.outputs.clone();
            let because_of = (state == State::Failed).then_some(cell);
            let state = if state == State::Failed { State::Blocked } else { state };
            let key = Some(key.clone());
            self.complete(waiting, Settled { key, outputs, because_of, ..Settled::new(state) })?;
        }
        self.complete(cell, Settled { reasons, key: Some(key), seconds, log, ..settled })?;
        self.forget_values(cell, shared);
        Ok(())
    }

    /// Puts a result on record, unless it was cut short.
    fn keep(&mut self, key: &str, manifest: &Manifest, result: StageResult, seconds: f64) -> Result<Settled> {
        let StageResult { ending, timed, outputs, is_on_disk } = result;
        let outputs: OutputRecords = Arc::new(outputs);
        let state = match ending {
            Some(Ending::Done) => State::Ran,
            Some(Ending::Infeasible) => State::Infeasible,
            None => State::Partial,
        };
        if let Some(ending) = ending {
            let record = ResultRecord::new(key, ending, timed, outputs.clone(), manifest).took(seconds);
            self.writer.record(self.store, record, is_on_disk)?;
        }
        Ok(Settled { outputs, ..Settled::new(state) })
    }

    fn complete(&mut self, index: usize, mut settled: Settled) -> Result {
        let cell = &self.pipeline.cells[index];
        if !self.pipeline.holds_saves() {
            let (id, store) = (&self.planner.id, &mut *self.store);
            Copies { id, store, writer: Some(self.writer) }.save_outputs(cell, &mut settled);
        }
        let settled = settled.located(self.pipeline, cell);
        let id = &self.planner.id;
        match settled.key.as_deref() {
            Some(key) if settled.state == State::Partial => {
                let Settled { outputs, seconds, .. } = &settled;
                self.writer.set_partial(self.store, id, (cell, key), outputs, *seconds)?;
            }
            Some(key) => self.writer.set_current(self.store, id, cell, key)?,
            None => {}
        }
        self.failed |= matches!(settled.state, State::Failed | State::Infeasible);
        self.output.events.settled(cell, &settled);
        self.output.unwritten.push(index);
        self.planner.settled[index] = Some(settled);
        self.queue.complete(index, cell);
        self.write_journal()
    }

    /// Writes what has settled, once there is a journal: a run with nothing to do leaves none.
    fn write_journal(&mut self) -> Result {
        let Some(journal) = &mut self.output.journal else { return Ok(()) };
        let now = self.output.started.elapsed().as_secs_f64();
        for index in self.output.unwritten.drain(..) {
            if let Some(settled) = &self.planner.settled[index] {
                journal.settled(&self.pipeline.cells[index], settled, now)?;
            }
        }
        Ok(())
    }

    /// Lets go of values whose every reader has settled.
    fn forget_values(&self, index: usize, shared: &Shared<'_>) {
        let read = self.pipeline.cells[index].dependencies().chain([index]);
        for cell in read.filter(|&cell| self.queue.readers[cell] == 0) {
            let outputs = self.planner.settled[cell].iter().flat_map(|settled| settled.outputs.values());
            outputs.for_each(|record| shared.values.forget(&record.digest));
        }
    }

    fn finish(mut self) -> Result<RunReport, Report> {
        let interrupted = self.cancelled.load(Ordering::Relaxed);
        for index in 0..self.pipeline.cells.len() {
            if self.planner.settled[index].is_none() {
                self.complete(index, Settled::new(State::NotStarted))?;
            }
        }
        let has_ended = |settled: &Settled| !matches!(settled.state, State::NotStarted | State::Partial);
        if self.planner.settled.iter().flatten().all(has_ended) {
            self.writer.keep_cells(self.store, &self.planner.id, &self.pipeline.cells)?;
        }
        self.writer.sync(self.store)?;
        let report = RunReport::new(self.planner.settled, self.output.started);
        let mut report = RunReport { interrupted, ..report };
        if let Some(mut journal) = self.output.journal {
            journal.end(report.seconds, report.exit_code())?;
            report.folder = Some(journal.folder);
        }
        Ok(report)
    }
}
