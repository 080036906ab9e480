//! A pipeline that is ready to be planned: its cells, and what each of them needs.

use std::path::PathBuf;

use hopmap_model::Port;
use serde_json::Value as Json;

use super::file::Batch;
use super::launcher::Launcher;
use super::matrix::Combination;
use super::node::Table;
use super::problem::{LocatedProblem, Source};
use super::selector::Extreme;
use super::template::{Folders, Resolved};
use crate::gates::Gate;
use crate::query::TableQuestion;
use crate::registry::{Configured, StageEntry};

/// A pipeline, ready to be planned.
pub struct Pipeline {
    /// Its name, by which the store remembers what ran.
    pub name: String,
    /// What it is for.
    pub description: Option<String>,
    /// The text it was read from.
    pub source: Source,
    /// All cells; what a cell needs stands before it.
    pub cells: Vec<Cell>,
    /// Questions that are asked after every run.
    pub tables: Vec<TableQuestion>,
    /// What its results have to keep.
    pub gates: Vec<Gate>,
    /// How it deals with batch systems.
    pub batch: Batch,
    /// Whether copies for people are made also where a gate does not hold.
    pub save_on_failure: bool,
    /// Deprecated names in it.
    pub warnings: Vec<LocatedProblem>,
    pub(super) folders: Folders,
    pub(super) parameters: Vec<(String, Resolved)>,
}

/// One run of a stage: a stage without a matrix has one cell, others have one for each combination.
pub struct Cell {
    /// Name, such as `placement[mapper=annealing,seed=3]`.
    pub id: String,
    /// Name of the stage.
    pub stage: String,
    /// Keys and values of the matrix.
    pub matrix: Vec<(String, Json)>,
    /// What it runs.
    pub entry: &'static StageEntry,
    /// What is connected to its inputs.
    pub needs: Vec<Need>,
    /// Copies of its outputs for people.
    pub saves: Vec<Save>,
    /// Cores it may use, each of its processes if it has a launcher; all if not said.
    pub threads: Option<usize>,
    /// Bytes of memory it takes; not counted if not said.
    pub memory: Option<u64>,
    /// What starts its processes; it runs in our own process without.
    pub launcher: Option<Launcher>,
    /// How often it is submitted or started elsewhere again when that ended for causes outside the stage.
    pub retries: u32,
    pub(super) settings: Settings,
}

/// What is connected to one input port.
pub struct Need {
    /// The input port.
    pub port: &'static Port,
    /// Where its values come from.
    pub origins: Vec<Origin>,
}

/// Where a value comes from.
pub enum Origin {
    /// An output of a cell.
    Cell {
        /// Index of the cell.
        cell: usize,
        /// Its output port.
        output: &'static str,
    },
    /// The output of that cell whose metric is smallest or largest.
    Best {
        /// Indexes of the cells.
        cells: Vec<usize>,
        /// Their output port.
        output: &'static str,
        /// The metric.
        metric: String,
        /// Smallest or largest.
        extreme: Extreme,
        /// Where this is said in the pipeline file.
        place: std::ops::Range<usize>,
    },
}

/// A copy of an output for people.
pub struct Save {
    /// The output port.
    pub output: &'static str,
    /// Kind of its artifacts.
    pub kind: &'static str,
    /// Where it goes.
    pub path: PathBuf,
    /// Where this is said in the pipeline file.
    pub span: std::ops::Range<usize>,
}

/// The parameters of a cell as written, and the artifacts whose folders they name.
pub(super) struct Settings {
    pub(super) with: Table,
    pub(super) matrix: Combination,
    pub(super) span: std::ops::Range<usize>,
    pub(super) artifacts: Vec<ArtifactReference>,
    pub(super) ready: Option<Box<dyn Configured>>,
}

/// `${stages.NAME.path}` in the parameters of a cell.
pub(super) struct ArtifactReference {
    pub(super) stage: String,
    pub(super) port: Option<String>,
    pub(super) cell: usize,
    pub(super) output: &'static str,
}

impl Cell {
    /// Indexes of the cells this one waits for, some perhaps more than once.
    pub fn dependencies(&self) -> impl Iterator<Item = usize> {
        let origins = self.needs.iter().flat_map(|need| &need.origins).flat_map(|origin| match origin {
            Origin::Cell { cell, .. } => std::slice::from_ref(cell),
            Origin::Best { cells, .. } => cells,
        });
        origins.copied().chain(self.settings.artifacts.iter().map(|reference| reference.cell))
    }

    /// Whether it is a job of a batch system.
    #[must_use]
    pub fn is_batch(&self) -> bool {
        self.launcher.as_ref().is_some_and(Launcher::is_batch)
    }

    /// Bytes of memory that it takes of this machine, as far as it is said.
    #[must_use]
    pub fn memory_here(&self) -> u64 {
        let is_elsewhere = self.launcher.as_ref().is_some_and(Launcher::is_elsewhere);
        self.memory.filter(|_| !is_elsewhere).unwrap_or(0)
    }

    /// The parameters, if they name no folders of artifacts.
    #[must_use]
    pub fn ready_parameters(&self) -> Option<&dyn Configured> {
        self.settings.ready.as_deref()
    }

    /// Artifacts whose folders the parameters name: index of the cell and output port.
    pub fn named_artifacts(&self) -> impl Iterator<Item = (usize, &'static str)> {
        self.settings.artifacts.iter().map(|reference| (reference.cell, reference.output))
    }
}

impl Cell {
    /// Names the cells it needs by their new places.
    pub(super) fn renumber(&mut self, place: &[usize]) {
        for origin in self.needs.iter_mut().flat_map(|need| &mut need.origins) {
            match origin {
                Origin::Cell { cell, .. } => *cell = place[*cell],
                Origin::Best { cells, .. } => cells.iter_mut().for_each(|cell| *cell = place[*cell]),
            }
        }
        self.settings.artifacts.iter_mut().for_each(|reference| reference.cell = place[reference.cell]);
    }
}

impl Pipeline {
    /// Keeps some cells and everything they need; forgets the others.
    pub fn retain(&mut self, wanted: impl IntoIterator<Item = usize>) {
        let mut open: Vec<usize> = wanted.into_iter().collect();
        let mut kept = vec![false; self.cells.len()];
        while let Some(index) = open.pop() {
            if !std::mem::replace(&mut kept[index], true) {
                open.extend(self.cells[index].dependencies());
            }
        }
        let mut count = 0;
        let place: Vec<usize> = kept.iter().map(|&kept| (count, count += usize::from(kept)).0).collect();
        let mut kept = kept.into_iter();
        self.cells.retain(|_| kept.next().unwrap_or(false));
        self.cells.iter_mut().for_each(|cell| cell.renumber(&place));
    }

    /// File and line of a cell.
    #[must_use]
    pub fn place(&self, cell: &Cell) -> String {
        let before = self.source.text().get(..cell.settings.span.start).unwrap_or_default();
        format!("{}:{}", self.source.name(), before.matches('\n').count() + 1)
    }

    /// Whether copies for people wait until its gates are judged.
    #[must_use]
    pub fn holds_saves(&self) -> bool {
        !self.gates.is_empty() && !self.save_on_failure
    }

    /// Where the accepted values of its gates are kept: beside the pipeline file, under its name.
    #[must_use]
    pub fn accepted_file(&self) -> PathBuf {
        self.folders.file.join(format!("{}.accepted.json", self.source.stem()))
    }

    /// Names of the stages in the order of the cells.
    #[must_use]
    pub fn stages(&self) -> Vec<&str> {
        let mut stages: Vec<&str> = self.cells.iter().map(|cell| cell.stage.as_str()).collect();
        let mut seen = std::collections::HashSet::new();
        stages.retain(|stage| seen.insert(*stage));
        stages
    }
}
