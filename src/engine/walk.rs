//! What every cell of a pipeline needs: nothing, a run, or something before it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use hopmap_model::Arity;
use miette::Report;

use super::identity::PipelineId;
use super::key::{InputDigest, Manifest};
use super::reason::{Reason, differences};
use super::record::{Ending, OutputRecord, ResultRecord};
use super::seen::SeenFile;
use super::settled::{Settled, State};
use super::store::Store;
use crate::pipeline::{Cell, Extreme, Origin, Pipeline};
use crate::registry::Configured;
use crate::renames;

/// What a cell needs next.
pub(crate) enum Decision {
    Settle(Box<Settled>),
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
pub(crate) struct Walk<'a> {
    pub(crate) pipeline: &'a Pipeline,
    /// By what the store knows the pipeline.
    pub(crate) id: PipelineId,
    pub(crate) settled: Vec<Option<Settled>>,
}

impl<'a> Walk<'a> {
    pub(crate) fn new(pipeline: &'a Pipeline, store: &Store) -> Self {
        let id = PipelineId::of(pipeline, store.root());
        Self { pipeline, id, settled: pipeline.cells.iter().map(|_| None).collect() }
    }

    fn at(&self, cell: usize) -> Option<&Settled> {
        self.settled[cell].as_ref()
    }

    /// What a cell needs, now that all cells before it have settled.
    pub(crate) fn decide(&self, index: usize, store: &mut Store) -> Decision {
        match self.try_decide(index, store) {
            Ok(decision) => decision,
            Err(settled) => Decision::Settle(settled),
        }
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
        Ok(Decision::Execute(Box::new(Task {
            cell: index,
            key,
            manifest,
            files,
            reasons,
            configured,
            inputs,
        })))
    }

    fn inputs(&self, cell: &Cell) -> Result<Vec<ConnectedInput>, Box<Settled>> {
        for (needed, _) in cell.named_artifacts() {
            self.usable(needed)?;
        }
        let mut inputs = Vec::new();
        for need in &cell.needs {
            for origin in &need.origins {
                let (from, output) = self.origin(origin)?;
                let record = self.output(from, output)?;
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

    /// The cell that an origin stands for.
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
            let Some(&value) = metrics.get(metric).or_else(|| metrics.get(renames::metric(metric))) else {
                let names: Vec<&str> = metrics.keys().map(String::as_str).collect();
                return Err(Box::new(Settled::failed(miette::miette!(
                    help = format!("its metrics: {}", names.join(", ")),
                    "`{}` has no metric `{metric}`",
                    self.pipeline.cells[cell].id
                ))));
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
            _ => State::Blocked,
        };
        Err(Box::new(Settled::because_of(state, cell)))
    }

    fn output(&self, cell: usize, output: &str) -> Result<&OutputRecord, Box<Settled>> {
        let record = self.at(cell).and_then(|settled| settled.outputs.get(output));
        record.ok_or_else(|| {
            let id = &self.pipeline.cells[cell].id;
            Box::new(Settled::failed(miette::miette!("`{id}` gave nothing at its output `{output}`")))
        })
    }

    fn configured(&self, cell: &Cell, store: &Store) -> Result<Box<dyn Configured>, Box<Settled>> {
        let folder = |cell: usize, output: &str| {
            let record = self.at(cell).and_then(|settled| settled.outputs.get(output));
            record.map_or_else(PathBuf::new, |record| store.artifact(&record.digest))
        };
        self.pipeline.configure(cell, &folder).map_err(|problems| {
            let mut problems = problems.0.into_iter();
            let first =
                problems.next().map_or_else(|| miette::miette!("its parameters do not fit"), Report::new);
            Box::new(Settled::failed(first))
        })
    }

    /// Why a cell has to run whose key has no result: the differences to what it depended on before.
    fn reasons(&self, cell: &Cell, key: &str, manifest: &Manifest, store: &Store) -> Vec<Reason> {
        let pipeline = &self.id;
        let seconds = store.partial(pipeline, &cell.id, key).map(|partial| partial.seconds);
        let begun = match (store.state(key).exists(), seconds) {
            (true, seconds) => Some(Reason::GoesOn { seconds }),
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
    for input in inputs {
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

/// The stored result of a key, if it is whole; else a reason to run, if there is one already.
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
    Ok(Box::new(Settled {
        key: Some(key.to_owned()),
        outputs: result.outputs.clone(),
        ..Settled::new(state)
    }))
}
