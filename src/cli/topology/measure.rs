//! Running a pipeline for the machine that it gives.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use hopmap_artifact::{Codec, Folder};
use hopmap_changes::Machine;
use hopmap_command::{Failure, Mistake, holder};
use hopmap_model::{Artifact, Measurements, SystemGraph};
use miette::Report;

use crate::cli::output::Output;
use crate::cli::progress::Progress;
use crate::engine::{self, Limits, Policy, RunReport, State, Store, Writer};
use crate::pipeline::{Cell, Pipeline};
use crate::refresh::RefreshError;

/// A pipeline and which of its outputs are the machine.
pub(super) struct Source<'a> {
    pub(super) pipeline: &'a Pipeline,
    pub(super) system: (usize, &'static str),
    pub(super) measurements: Option<(usize, &'static str)>,
    pub(super) limits: Limits,
    pub(super) cancelled: &'a AtomicBool,
    pub(super) output: Output,
}

impl<'a> Source<'a> {
    /// The machine is the system graph of the last cell that gives one, or of a stage that is named; beside it are the
    /// measurements of the last cell that gives some.
    pub(super) fn new(
        pipeline: &'a Pipeline,
        stage: Option<&str>,
        limits: Limits,
        cancelled: &'a AtomicBool,
        output: Output,
    ) -> Result<Self, Failure> {
        let last = |kind: &str, wanted: Option<&str>| {
            let is_wanted = |cell: &Cell| wanted.is_none_or(|name| cell.stage == name || cell.id == name);
            let mut cells = pipeline.cells.iter().enumerate().rev().filter(|(_, cell)| is_wanted(cell));
            cells.find_map(|(index, cell)| Some((index, port(cell, kind)?)))
        };
        let Some(system) = last(SystemGraph::KIND, stage) else {
            let message = match stage {
                Some(stage) => {
                    format!("`{}` has no stage `{stage}` that gives a system graph", pipeline.name)
                }
                None => format!("no stage of `{}` gives a system graph", pipeline.name),
            };
            let help = format!("its stages are: {}", pipeline.stages().join(", "));
            return Err(Mistake::new(message, help).into());
        };
        let measurements = last(Measurements::KIND, None);
        Ok(Self { pipeline, system, measurements, limits, cancelled, output })
    }

    /// Runs what has to run, in a store that nobody else writes to meanwhile.
    pub(super) fn look(&self, root: &Path, is_ours: bool) -> Result<Machine, Report> {
        let mut writer = Writer::open(root, &holder("topology refresh")).map_err(Report::new)?;
        let mut store = Store::load(root).map_err(Report::new)?;
        let progress = Progress::new(self.output, self.pipeline, self.limits.jobs);
        let mut report =
            engine::run(self.pipeline, &mut store, &mut writer, self.limits, self.cancelled, &progress)?;
        progress.finish();
        if self.pipeline.holds_saves() {
            // Nobody judges gates here.
            engine::save_all(self.pipeline, &mut store, &mut writer, &mut report).map_err(Report::new)?;
        }
        let report = self.succeeded(report)?;
        let machine = Machine {
            system: read::<SystemGraph>(&store, &report, self.system)?,
            measurements: match self.measurements {
                Some(place) => Some(read::<Measurements>(&store, &report, place)?),
                None => None,
            },
        };
        if is_ours {
            // Nobody looks at what earlier refreshes saw.
            let policy = Policy { keep: std::time::Duration::ZERO, runs: 20, gone: false };
            let garbage = engine::find_garbage(&store, policy).map_err(Report::new)?;
            if !garbage.is_empty() {
                engine::collect(&mut store, &mut writer, &garbage).map_err(Report::new)?;
            }
        }
        Ok(machine)
    }

    fn succeeded(&self, mut report: RunReport) -> Result<RunReport, Report> {
        if report.interrupted {
            return Err(RefreshError::Interrupted.into());
        }
        if let Some(error) = report.cells.iter_mut().find_map(|settled| settled.error.take()) {
            return Err(error);
        }
        let whole = |state| matches!(state, State::Cached | State::Ran);
        match report.cells.iter().position(|settled| !whole(settled.state)) {
            Some(index) => Err(miette::miette!(
                help = "nothing is published from a pipeline that did not end; give it more time with --deadline",
                "stage `{}` was not done",
                self.pipeline.cells[index].id
            )),
            None => Ok(report),
        }
    }
}

fn port(cell: &Cell, kind: &str) -> Option<&'static str> {
    let mut ports = cell.entry.ports(hopmap_model::Direction::Out).filter(|port| port.kind == kind);
    ports.next().map(|port| port.name)
}

fn read<C: Codec>(store: &Store, report: &RunReport, (cell, port): (usize, &str)) -> Result<C, Report> {
    let record = report.cells[cell].outputs.get(port);
    let record = record.ok_or_else(|| miette::miette!("the stage gave no `{port}`"))?;
    Ok(Folder::read::<C>(&store.artifact(&record.digest))?)
}
