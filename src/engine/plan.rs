//! What a run would do, and what it would need: every cell of a pipeline needs nothing, a run, or something before it. Planning
//! and running share [`Planner`].

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use hopmap_islands::saved_epoch;
use hopmap_model::{Arity, BOUND_PORT, MOST_GAIN};
use miette::Diagnostic;

use super::key::{InputDigest, Manifest, Reason, differences};
use super::outcome::{RunReport, Settled, State};
use super::record::{Ending, OutputRecord, OutputRecords, PipelineId, ResultRecord};
use super::save::{Copies, CopyState, Obstacle, hash_of, only_file};
use super::store::Store;
use crate::input_files::SeenFile;
use crate::pipeline::{Cell, Origin, Pipeline, Save, plain, show_bytes};
use crate::registry::Configured;
use crate::selector::Extreme;
use crate::source::{Problem, Problems};

/// Says what a run would do. Writes nothing.
pub(crate) fn plan(pipeline: &Pipeline, store: &mut Store) -> RunReport {
    let started = Instant::now();
    let mut planner = Planner::new(pipeline, store);
    for index in 0..pipeline.cells.len() {
        let mut settled = match planner.decide(index, store) {
            Decision::Complete(settled) => *settled,
            Decision::Execute(task) => {
                Settled { reasons: task.reasons, key: Some(task.key), ..Settled::new(State::WouldRun) }
            }
        };
        let cell = &pipeline.cells[index];
        Copies { id: &planner.id, store, writer: None }.save_outputs(cell, &mut settled);
        planner.settled[index] = Some(settled.located(pipeline, cell));
    }
    RunReport::new(planner.settled, started)
}

/// A cell whose output or metric another stage needs, and which has none.
#[derive(Debug, thiserror::Error, Diagnostic)]
enum NoValue {
    #[error("`{cell}` has no metric `{metric}`")]
    #[diagnostic(code(engine::no_metric), help("its metrics: {names}"))]
    Metric { cell: String, metric: String, names: String },
    #[error("`{cell}` has nothing at its output `{output}`")]
    #[diagnostic(code(engine::empty_output))]
    Output { cell: String, output: String },
}

/// A cell that this machine has too little memory for.
#[derive(Debug, thiserror::Error, Diagnostic)]
#[error("stage `{cell}` ({place}) needs {needed} of memory, but only {there} are available")]
#[diagnostic(
    code(engine::too_large),
    help(
        "run it on a larger host, for example with `launcher = \"sbatch -n 1\"`; --memory sets the memory that may be used here"
    )
)]
pub(crate) struct TooLarge {
    cell: String,
    place: String,
    needed: String,
    there: String,
}

/// Refuses a pipeline with a cell that would run and is larger than the memory there is.
pub(crate) fn check_memory(
    pipeline: &Pipeline,
    store: &mut Store,
    memory: Option<u64>,
) -> Result<(), TooLarge> {
    let Some(there) = memory else { return Ok(()) };
    if pipeline.cells.iter().all(|cell| cell.memory_here() <= there) {
        return Ok(());
    }
    let cells = plan(pipeline, store).cells;
    let would_run = |state: State| matches!(state, State::WouldRun | State::Waits);
    let mut pairs = pipeline.cells.iter().zip(&cells);
    match pairs.find(|(cell, settled)| cell.memory_here() > there && would_run(settled.state)) {
        None => Ok(()),
        Some((cell, _)) => Err(TooLarge {
            cell: cell.name.clone(),
            place: pipeline.place(cell),
            needed: show_bytes(cell.memory_here()),
            there: show_bytes(there),
        }),
    }
}

/// What a cell needs next.
pub(crate) enum Decision {
    Complete(Box<Settled>),
    Execute(Box<Task>),
}

/// Everything needed to run a cell.
pub(crate) struct Task {
    pub(crate) cell: usize,
    pub(crate) key: String,
    pub(crate) manifest: Manifest,
    /// The files behind its parameters, as they were when the key was made of them.
    pub(crate) files: Vec<SeenFile>,
    pub(crate) reasons: Vec<Reason>,
    pub(crate) configured: Box<dyn Configured>,
    pub(crate) inputs: Vec<ConnectedInput>,
    /// What a run of programs gave before it was stopped early.
    pub(crate) earlier: OutputRecords,
}

/// An artifact that goes into a port.
#[derive(Debug, Clone)]
pub(crate) struct ConnectedInput {
    pub(crate) port: &'static str,
    pub(crate) arity: Arity,
    pub(crate) label: String,
    pub(crate) kind: String,
    pub(crate) digest: String,
}

/// Cells of a pipeline as they settle one by one.
pub(crate) struct Planner<'a> {
    pub(crate) pipeline: &'a Pipeline,
    /// By what the store knows the pipeline.
    pub(crate) id: PipelineId,
    /// Least gain for which placements are searched, as a fraction of the run time.
    worth: Option<f64>,
    pub(crate) settled: Vec<Option<Settled>>,
}

impl<'a> Planner<'a> {
    pub(crate) fn new(pipeline: &'a Pipeline, store: &Store) -> Self {
        let id = PipelineId::of(pipeline, store.root());
        Self { pipeline, id, worth: None, settled: pipeline.cells.iter().map(|_| None).collect() }
    }

    /// The same, with the least gain for which placements are searched.
    pub(crate) fn with_worth(self, worth: Option<f64>) -> Self {
        Self { worth, ..self }
    }

    fn at(&self, cell: usize) -> Option<&Settled> {
        self.settled[cell].as_ref()
    }

    /// What a cell needs, now that all cells before it have settled.
    pub(crate) fn decide(&self, index: usize, store: &mut Store) -> Decision {
        self.try_decide(index, store).unwrap_or_else(Decision::Complete)
    }

    fn try_decide(&self, index: usize, store: &mut Store) -> Result<Decision, Box<Settled>> {
        let cell = &self.pipeline.cells[index];
        let inputs = self.inputs(cell)?;
        let own;
        let parameters = match cell.ready_parameters() {
            Some(ready) => ready,
            None => {
                own = self.configured(cell, store)?;
                &*own
            }
        };
        let (manifest, files) = manifest(cell, parameters, &inputs, store)?;
        let key = manifest.key().to_string();
        let reasons = match cached(&key, parameters.observes(), store) {
            Ok(settled) => return Err(settled),
            Err(Some(reason)) => vec![reason],
            Err(None) => self.reasons(cell, &key, &manifest, store),
        };
        let configured = self.configured(cell, store)?;
        if let Some(command) = configured.commands().into_iter().next().filter(|_| store.refuses_commands()) {
            return Err(Box::new(Settled::failed(StartsCommand { command })));
        }
        let earlier = store.partial(&self.id, &cell.id, &key).filter(|_| cell.entry.experiments);
        let earlier = earlier.map(|partial| OutputRecords::clone(&partial.outputs)).unwrap_or_default();
        let task = Task { cell: index, key, manifest, files, reasons, configured, inputs, earlier };
        Ok(Decision::Execute(Box::new(task)))
    }

    fn inputs(&self, cell: &Cell) -> Result<Vec<ConnectedInput>, Box<Settled>> {
        for (needed, _) in cell.named_artifacts() {
            self.usable(needed)?;
        }
        let mut inputs = Vec::new();
        for need in &cell.needs {
            for origin in &need.origins {
                let (from, output) = self.origin(origin)?;
                let is_absent = |settled: &Settled| !settled.outputs.contains_key(output);
                if need.port.arity == Arity::Optional && self.at(from).is_some_and(is_absent) {
                    continue;
                }
                let record = self.output(from, output)?;
                if need.port.name == BOUND_PORT && !self.is_worth_it(record) {
                    return Err(Box::new(Settled::because_of(State::NotWorthIt, from)));
                }
                inputs.push(ConnectedInput {
                    port: need.port.name,
                    arity: need.port.arity,
                    label: self.pipeline.cells[from].id.clone(),
                    kind: record.kind.clone(),
                    digest: record.digest.clone(),
                });
            }
        }
        Ok(inputs)
    }

    /// The cell that an origin selects.
    fn origin(&self, origin: &Origin) -> Result<(usize, &'static str), Box<Settled>> {
        let (cells, output, metric, extreme) = match origin {
            Origin::Cell { cell, output } => return self.usable(*cell).map(|()| (*cell, *output)),
            Origin::Best { cells, output, metric, extreme, .. } => (cells, *output, metric, *extreme),
        };
        let mut best: Option<(usize, f64)> = None;
        for &cell in cells {
            // A cell without a solution takes no part in the choice; one that failed might have won it.
            if self.at(cell).is_some_and(|settled| settled.state == State::Infeasible) {
                continue;
            }
            self.usable(cell)?;
            let metrics = &self.output(cell, output)?.metrics;
            let Some(&value) = metrics.get(metric) else {
                let names: Vec<&str> = metrics.keys().map(String::as_str).collect();
                return Err(Box::new(Settled::failed(NoValue::Metric {
                    cell: self.pipeline.cells[cell].name.clone(),
                    metric: metric.clone(),
                    names: names.join(", "),
                })));
            };
            let wins = best.is_none_or(|(_, best)| match extreme {
                Extreme::Min => value < best,
                Extreme::Max => value > best,
            });
            if wins {
                best = Some((cell, value));
            }
        }
        match best {
            Some((cell, _)) => Ok((cell, output)),
            None => Err(Box::new(Settled::because_of(State::Blocked, cells[0]))),
        }
    }

    fn usable(&self, cell: usize) -> Result<(), Box<Settled>> {
        let state = match self.at(cell) {
            Some(settled) if settled.is_usable() => return Ok(()),
            Some(settled) => settled.state,
            None => State::NotStarted,
        };
        let state = match state {
            State::WouldRun | State::Waits => State::Waits,
            State::NotStarted => State::NotStarted,
            State::NotWorthIt => State::NotWorthIt,
            _ => State::Blocked,
        };
        Err(Box::new(Settled::because_of(state, cell)))
    }

    /// Whether a placement can gain as much as is wanted; also if it is not known how much that is.
    fn is_worth_it(&self, bound: &OutputRecord) -> bool {
        let gain = self.worth.zip(bound.metrics.get(MOST_GAIN).copied());
        gain.is_none_or(|(worth, most)| most >= worth)
    }

    fn output(&self, cell: usize, output: &str) -> Result<&OutputRecord, Box<Settled>> {
        let record = self.at(cell).and_then(|settled| settled.outputs.get(output));
        record.ok_or_else(|| {
            let cell = self.pipeline.cells[cell].name.clone();
            Box::new(Settled::failed(NoValue::Output { cell, output: output.to_owned() }))
        })
    }

    fn configured(&self, cell: &Cell, store: &Store) -> Result<Box<dyn Configured>, Box<Settled>> {
        let folder = |cell: usize, output: &str| {
            let record = self.at(cell).and_then(|settled| settled.outputs.get(output));
            record.map_or_else(PathBuf::new, |record| store.artifact(&record.digest))
        };
        let configured = self.pipeline.configure(cell, &folder);
        configured.map_err(|problems| Box::new(Settled::failed(problems.first())))
    }

    /// Why a cell has to run whose key has no result: the differences to what it depended on before.
    fn reasons(&self, cell: &Cell, key: &str, manifest: &Manifest, store: &Store) -> Vec<Reason> {
        let pipeline = &self.id;
        let seconds = store.partial(pipeline, &cell.id, key).map(|partial| partial.seconds);
        let state = store.state(key);
        let begun = match (state.exists(), seconds) {
            (true, seconds) => Some(Reason::GoesOn { seconds, epoch: saved_epoch(&state) }),
            (false, Some(seconds)) => Some(Reason::CutShort { seconds }),
            (false, None) => None,
        };
        let Some(before) = store.current(pipeline, &cell.id) else {
            return vec![begun.unwrap_or(Reason::FirstRun)];
        };
        match store.result(before).and_then(ResultRecord::manifest) {
            Some(old) if before != key => differences(&old, manifest).into_iter().chain(begun).collect(),
            _ => vec![begun.unwrap_or(Reason::Unfinished)],
        }
    }
}

fn manifest(
    cell: &Cell,
    configured: &dyn Configured,
    inputs: &[ConnectedInput],
    store: &mut Store,
) -> Result<(Manifest, Vec<SeenFile>), Box<Settled>> {
    let mut ports: BTreeMap<&str, Vec<InputDigest>> = BTreeMap::new();
    for input in inputs.iter().filter(|input| input.port != BOUND_PORT) {
        let label = (input.arity == Arity::Many).then(|| input.label.clone());
        ports.entry(input.port).or_default().push(InputDigest { label, digest: input.digest.clone() });
    }
    let mut files = Vec::new();
    let mut seen = Vec::new();
    for file in configured.reads().map_err(|error| Box::new(Settled::failed(error)))? {
        let found = store.hashes.of(file.path()).map_err(|error| Box::new(Settled::failed(error)))?;
        files.push((file.name().into_owned(), found.blake3().to_owned()));
        seen.push(found);
    }
    let manifest = Manifest {
        kind: cell.entry.kind.to_owned(),
        revision: cell.entry.revision,
        parameters: configured.canonical().clone(),
        inputs: ports.into_iter().map(|(port, inputs)| (port.to_owned(), inputs)).collect(),
        files,
    };
    Ok((manifest, seen))
}

/// A stage that would start a command of the user, where that is not asked for.
#[derive(Debug, thiserror::Error, Diagnostic)]
#[error("it starts `{command}`, which was not asked for, and its result is not in the store")]
#[diagnostic(
    code(engine::starts_command),
    help("`hopmap run` starts it, in an imported project with --allow-programs; `hopmap verify` does not")
)]
struct StartsCommand {
    command: String,
}

/// The stored result of a key, if it is complete; else a reason to run, if there is one already.
fn cached(key: &str, observes: bool, store: &Store) -> Result<Box<Settled>, Option<Reason>> {
    if observes && !store.trusts_observations() {
        return Err(Some(Reason::Observes));
    }
    let result = store.result(key).ok_or(None)?;
    for (output, record) in result.outputs.iter() {
        if let Some(file) = store.flaw(record) {
            return Err(Some(Reason::OutputDamaged { output: output.clone(), file }));
        }
    }
    let state = match result.ending {
        Ending::Done => State::Cached,
        Ending::Infeasible => State::Infeasible,
    };
    let (key, outputs) = (Some(key.to_owned()), result.outputs.clone());
    Ok(Box::new(Settled { key, outputs, ..Settled::new(state) }))
}

/// Refuses a pipeline whose copies would replace what is not theirs. Nothing runs for it: of a stage that has no result yet it is
/// not known what the copy will be.
pub(crate) fn check_saves(pipeline: &Pipeline, store: &mut Store) -> Result<(), Problems> {
    let is_there = |path: &Path| path.symlink_metadata().is_ok();
    let saves = pipeline.cells.iter().enumerate().flat_map(|(index, cell)| {
        cell.saves.iter().filter(|save| is_there(&save.path)).map(move |save| (index, save))
    });
    let saves: Vec<(usize, &Save)> = saves.collect();
    let tables =
        pipeline.tables.iter().filter_map(|table| table.save.as_ref().map(|save| (save, &table.save_span)));
    let tables: Vec<_> = tables.filter(|(path, _)| is_there(path)).collect();
    if saves.is_empty() && tables.is_empty() {
        return Ok(());
    }
    let mut problems = inputs_replaced(pipeline, &saves);
    let id = PipelineId::of(pipeline, store.root());
    let mut planned: Option<RunReport> = None;
    for (index, save) in saves {
        let mut state = Copies { id: &id, store, writer: None }.look(save, None);
        if state.is_err() {
            // It may be the copy of the result that there is.
            let planned = planned.get_or_insert_with(|| plan(pipeline, store));
            let record =
                planned.cells[index].outputs.get(save.output).filter(|_| planned.cells[index].is_usable());
            if let Some(record) = record {
                state = Copies { id: &id, store, writer: None }.look(save, Some(record));
            }
        }
        if !matches!(state, Ok(CopyState::Same | CopyState::Ours))
            && is_of_last_result(save, &pipeline.cells[index], &id, store)
        {
            state = Ok(CopyState::Ours);
        }
        problems.extend(state.err().map(|obstacle| located(&obstacle, &save.span)));
    }
    for (path, span) in tables {
        let state = Copies { id: &id, store, writer: None }.look_at_file(path, None);
        problems.extend(state.err().map(|obstacle| located(&obstacle, span)));
    }
    if problems.is_empty() { Ok(()) } else { Err(pipeline.source.tie(problems)) }
}

/// Whether something is the copy of what a cell gave last, as older versions made them, which wrote nothing down about copies. From now
/// on the store knows it.
fn is_of_last_result(save: &Save, cell: &Cell, id: &PipelineId, store: &mut Store) -> bool {
    let result = store.current(id, &cell.id).and_then(|key| store.result(key));
    let Some(record) = result.and_then(|result| result.outputs.get(save.output)).cloned() else {
        return false;
    };
    let blake3 = match only_file(&record) {
        Some(name) => hash_of(&record, name, store),
        None => Some(record.digest.clone()),
    };
    let state = Copies { id, store, writer: None }.look(save, Some(&record));
    let is_same = state.is_ok_and(|state| state == CopyState::Same);
    if let Some(blake3) = blake3.filter(|_| is_same) {
        store.know_saved(id, &save.path, &blake3);
        return true;
    }
    false
}

fn located(obstacle: &Obstacle, span: &std::ops::Range<usize>) -> Problem {
    let problem = Problem::new(obstacle.to_string(), span);
    match obstacle.help() {
        Some(help) => problem.help(help.to_string()),
        None => problem,
    }
}

/// Copies that would replace an input of their own pipeline.
fn inputs_replaced(pipeline: &Pipeline, saves: &[(usize, &Save)]) -> Vec<Problem> {
    let places: Vec<(PathBuf, &Save)> = saves.iter().map(|(_, save)| (plain(&save.path), *save)).collect();
    let mut problems = Vec::new();
    for cell in &pipeline.cells {
        let files =
            cell.ready_parameters().and_then(|parameters| parameters.reads().ok()).unwrap_or_default();
        for file in files {
            let file = plain(file.path());
            for (_, save) in places.iter().filter(|(place, _)| file.starts_with(place)) {
                let message = format!("{} is an input of `{}`", file.display(), cell.name);
                problems.push(Problem::new(message, &save.span).help("give the copy a different path"));
            }
        }
    }
    problems
}
