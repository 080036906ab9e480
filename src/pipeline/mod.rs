//! The pipeline file: parsed, checked, its matrices expanded, and built into a typed graph of cells.
//!
//! Everything that is wrong with a file is found before anything runs, and reported at once.
//!
//! # From text to cells
//!
//! `src/pipeline`: `node` (TOML that knows where every value stands) → `file` (known keys, right forms) → `sweep` (which cells a stage
//! has: `foreach` × `matrix` × `zip` without `exclude`, each a dimension whose rows are counted before they are made) → `expand`
//! (cells, kinds looked up) → `connect` (selectors to edges, ports checked, circles found) → `settings` (values of `with` against
//! the stage's schema and types). All problems are collected; nothing runs while there is one (`tests/cli/broken.rs`).
//!
//! `embedded` are the pipelines that come with hopmap, and `project` makes files of one's own of them (`hopmap init`): read line by line, so
//! each parameter stands in a line (`parameters_of_embedded_pipelines_are_those_that_toml_has`).
//!
//! Help, completions and manual pages come from the one definition of the command line (`src/cli/mod.rs`). `ci/install.sh` is the only
//! place that says what is installed where; `ci/deb.sh` and `ci/tarball.sh` pack what it installs, `pyproject.toml` has Maturin pack the
//! program alone, and `ci/try-packages.sh` tries all three in a clean Debian. A tarball with a library that another machine may not have is
//! refused when it is made. The C library stays the system's: a static glibc loads modules at run time to resolve names, of exactly its own
//! version, and `hopmap agent` asks for the address of its host.
//!
//! Cells pair up by equal matrix keys, also inside `[*]` and `[min F]`: `placement[min F]` in a cell with `mapper=linear` chooses
//! among the cells of `placement` with `mapper=linear`. They are looked up by the values of these keys, so that 10,000 cells pair up with
//! 10,000 others in no time.
//!
//! `range` counts in decimals: `0.1..0.5 step 0.1` has 0.3, not 0.30000000000000004. `glob` walks folders itself and takes only the
//! patterns from the crate of that name, which passes over names that are not UTF-8 without a word.
//!
//! Paths in a pipeline file are relative to the file, values of `-p` to the working directory: a value remembers where it was
//! written (`template::Base`).

mod build;
mod connect;
mod embedded;
mod exclude;
mod expand;
mod file;
mod gates;
mod glob;
mod launcher;
mod matrix;
mod node;
mod problem;
mod project;
mod range;
mod resources;
mod saves;
mod selector;
mod settings;
mod sweep;
mod tables;
mod template;

use std::path::{Path, PathBuf};

use hopmap_model::Port;
use serde_json::Value as Json;

use crate::gates::Gate;
use crate::registry::{Configured, StageEntry};

pub use crate::query::TableQuestion;
pub(crate) use build::configure_alone;
pub use embedded::{EMBEDDED, Embedded};
pub use glob::STORE_FOLDER;
pub use launcher::Launcher;
pub(crate) use launcher::{LAUNCHERS, distributed_stages};
pub(crate) use matrix::grouped;
pub(crate) use node::{Entry, Node, NodeValue, Table};
pub use problem::{LocatedProblem, Problem, Problems, Source};
pub use project::{Parameter, SCHEMA_FILE, parameters};
pub use resources::{Batch, bytes, show_bytes};
pub(crate) use saves::plain;
pub use selector::Extreme;
pub(crate) use selector::{Choice, Selector};
pub(crate) use settings::{assignments, first_sentence};
pub use template::Folders;

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
    folders: Folders,
    parameters: Vec<(String, template::Resolved)>,
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
    settings: Settings,
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
struct Settings {
    with: node::Table,
    matrix: matrix::Combination,
    span: std::ops::Range<usize>,
    artifacts: Vec<ArtifactReference>,
    ready: Option<Box<dyn Configured>>,
}

/// `${stages.NAME.path}` in the parameters of a cell.
struct ArtifactReference {
    stage: String,
    port: Option<String>,
    cell: usize,
    output: &'static str,
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
    fn renumber(&mut self, place: &[usize]) {
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
    /// The parameters of a cell, with the folders of artifacts filled in.
    pub fn configure(
        &self,
        cell: &Cell,
        folder: &dyn Fn(usize, &str) -> PathBuf,
    ) -> Result<Box<dyn Configured>, Problems> {
        let artifact = |stage: &str, port: Option<&str>| {
            let named = |reference: &&ArtifactReference| {
                reference.stage == stage && reference.port.as_deref() == port
            };
            let reference = cell.settings.artifacts.iter().find(named)?;
            Some(folder(reference.cell, reference.output))
        };
        let mut problems = Vec::new();
        let configured = build::configure(self, cell, &artifact, &mut problems);
        configured.ok_or_else(|| self.source.tie(problems))
    }

    /// The values of a cell's parameters as they would be if paths were seen from other folders.
    ///
    /// What a value is relative to can be told by asking with folders of different names.
    #[must_use]
    pub fn values_seen_from(&self, cell: &Cell, folders: &Folders) -> Json {
        build::values(self, cell, &|_, _| Some(PathBuf::from("artifact")), folders, &mut Vec::new())
    }

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

    /// Its file; none if it comes with hopmap.
    #[must_use]
    pub fn file(&self) -> Option<PathBuf> {
        let name = self.source.name();
        let file = self.folders.file.join(Path::new(name).file_name().unwrap_or_default());
        let is_embedded = EMBEDDED.iter().any(|embedded| embedded.name == name);
        (!is_embedded || file.is_file()).then_some(file)
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

    /// Reads a pipeline from a text.
    ///
    /// `parameters` come from the command line: names and values, the latter read as TOML, else as text.
    pub fn parse(
        source: Source,
        folder: &Path,
        working: &Path,
        parameters: &[(String, String)],
    ) -> Result<Self, Problems> {
        Self::parse_in(source, Folders::new(folder, working), parameters)
    }

    /// Reads a pipeline whose paths are seen from `folders`.
    pub fn parse_in(
        source: Source,
        folders: Folders,
        parameters: &[(String, String)],
    ) -> Result<Self, Problems> {
        build::pipeline(source, folders, parameters)
    }
}
