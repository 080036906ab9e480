//! A pipeline that is ready to be planned: its cells, and what each of them needs.

use std::path::PathBuf;

use hopmap_model::Port;
use hopmap_mpi_environment::LauncherKind;
use serde_json::Value as Json;

use super::Problem;
use super::file::{Batch, StageBlock};
use super::matrix::Combination;
use super::template::{Base, Folders, Resolved, Scope};
use crate::gates::Gate;
use crate::query::TableQuestion;
use crate::registry::{Configured, STAGES, StageEntry};
use crate::selector::{Extreme, show};
use crate::source::{LocatedProblem, Source, Table};

/// A pipeline, ready to be planned.
pub(crate) struct Pipeline {
    /// Its name, by which the store remembers what ran.
    pub(crate) name: String,
    /// What it is for.
    pub(crate) description: Option<String>,
    /// The text it was read from.
    pub(crate) source: Source,
    /// All cells in topological order.
    pub(crate) cells: Vec<Cell>,
    /// Queries that are answered after every run.
    pub(crate) tables: Vec<TableQuestion>,
    /// What its results have to keep.
    pub(crate) gates: Vec<Gate>,
    /// How it deals with batch systems.
    pub(crate) batch: Batch,
    /// Whether copies for people are made also where a gate does not hold.
    pub(crate) save_on_failure: bool,
    /// Tables that cannot be made.
    pub(crate) warnings: Vec<LocatedProblem>,
    pub(super) folders: Folders,
    pub(super) parameters: Vec<(String, Resolved)>,
}

impl Pipeline {
    /// The parameters that came from the command line.
    pub(crate) fn given(&self) -> impl Iterator<Item = (&str, &Json)> {
        let given = self.parameters.iter().filter(|(_, resolved)| resolved.base == Base::WorkingDirectory);
        given.map(|(name, resolved)| (name.as_str(), &resolved.value))
    }
}

/// One run of a stage: a stage without a matrix has one cell, others have one for each combination.
pub(crate) struct Cell {
    /// Full name, such as `placement[mapper=annealing,seed=3]`: in files, keys and JSON.
    pub(crate) id: String,
    /// The shortest name that distinguishes it from the other cells of its stage, for people.
    pub(crate) name: String,
    /// Name of the stage.
    pub(crate) stage: String,
    /// Keys and values of the matrix.
    pub(crate) matrix: Vec<(String, Json)>,
    /// What it runs.
    pub(crate) entry: &'static StageEntry,
    /// What is connected to its inputs.
    pub(crate) needs: Vec<Need>,
    /// Exported outputs.
    pub(crate) saves: Vec<Save>,
    /// Cores it may use, each of its processes if it has a launcher; all if not said.
    pub(crate) threads: Option<usize>,
    /// Bytes of memory it takes; not counted if not said.
    pub(crate) memory: Option<u64>,
    /// What starts its processes; it runs in our own process without.
    pub(crate) launcher: Option<Launcher>,
    /// How often it is submitted or started elsewhere again when that ended for causes outside the stage.
    pub(crate) retries: u32,
    pub(super) settings: Settings,
}

/// What is connected to one input port.
pub(crate) struct Need {
    /// The input port.
    pub(crate) port: &'static Port,
    /// Where its values come from.
    pub(crate) origins: Vec<Origin>,
}

/// Where a value comes from.
pub(crate) enum Origin {
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

impl Origin {
    /// Indexes of the cells that it may be.
    pub(crate) fn cells(&self) -> &[usize] {
        match self {
            Self::Cell { cell, .. } => std::slice::from_ref(cell),
            Self::Best { cells, .. } => cells,
        }
    }
}

/// An exported output.
pub(crate) struct Save {
    /// The output port.
    pub(crate) output: &'static str,
    /// Kind of its artifacts.
    pub(crate) kind: &'static str,
    /// Where it goes.
    pub(crate) path: PathBuf,
    /// Where this is said in the pipeline file.
    pub(crate) span: std::ops::Range<usize>,
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
    pub(crate) fn dependencies(&self) -> impl Iterator<Item = usize> {
        let origins = self.needs.iter().flat_map(|need| &need.origins).flat_map(Origin::cells);
        origins.copied().chain(self.settings.artifacts.iter().map(|reference| reference.cell))
    }

    /// Whether it is a job of a batch system.
    pub(crate) fn is_batch(&self) -> bool {
        self.launcher.as_ref().is_some_and(Launcher::is_batch)
    }

    /// Bytes of memory that it takes of this machine, as far as the pipeline states it.
    pub(crate) fn memory_here(&self) -> u64 {
        let is_elsewhere = self.launcher.as_ref().is_some_and(Launcher::is_elsewhere);
        self.memory.filter(|_| !is_elsewhere).unwrap_or(0)
    }

    /// The parameters, if they name no folders of artifacts.
    pub(crate) fn ready_parameters(&self) -> Option<&dyn Configured> {
        self.settings.ready.as_deref()
    }

    /// Artifacts whose folders the parameters name: index of the cell and output port.
    pub(crate) fn named_artifacts(&self) -> impl Iterator<Item = (usize, &'static str)> {
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
    /// Whether it has a parameter of this name.
    pub(crate) fn has_parameter(&self, name: &str) -> bool {
        self.parameters.iter().any(|(known, _)| known == name)
    }

    /// Keeps some cells and everything they need; forgets the others.
    pub(crate) fn retain(&mut self, wanted: impl IntoIterator<Item = usize>) {
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
    pub(crate) fn place(&self, cell: &Cell) -> String {
        let before = self.source.text().get(..cell.settings.span.start).unwrap_or_default();
        format!("{}:{}", self.source.name(), before.matches('\n').count() + 1)
    }

    /// Whether copies for people wait until its gates are judged.
    pub(crate) fn holds_saves(&self) -> bool {
        !self.gates.is_empty() && !self.save_on_failure
    }

    /// Where the accepted values of its gates are kept: next to the pipeline file, under its name.
    pub(crate) fn accepted_file(&self) -> PathBuf {
        self.folders.file.join(format!("{}.accepted.json", self.source.stem()))
    }

    /// Names of the stages in the order of the cells.
    pub(crate) fn stages(&self) -> Vec<&str> {
        let mut stages: Vec<&str> = self.cells.iter().map(|cell| cell.stage.as_str()).collect();
        let mut seen = std::collections::HashSet::new();
        stages.retain(|stage| seen.insert(*stage));
        stages
    }
}

/// The command that starts the processes of a stage, such as `mpirun -n 4`, or that queues it, such as `sbatch -n 1`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Launcher {
    words: Vec<String>,
}

impl Launcher {
    /// Splits a command into words as a shell does, without doing anything else that shells do. An empty one is none.
    pub(crate) fn parse(text: &str) -> Result<Option<Self>, String> {
        let words = shlex::split(text).ok_or_else(|| format!("`{text}` has a quote that is never closed"))?;
        Ok((!words.is_empty()).then_some(Self { words }))
    }

    /// A launcher of these words; none is none.
    pub(crate) fn of_words(words: &[String]) -> Option<Self> {
        (!words.is_empty()).then(|| Self { words: words.to_vec() })
    }

    /// Its words.
    pub(crate) fn words(&self) -> &[String] {
        &self.words
    }

    /// What it starts, where that is known.
    pub(crate) fn kind(&self) -> Option<LauncherKind> {
        LauncherKind::of(self.program())
    }

    /// Whether it hands a script to a batch system and ends, long before the stage does.
    pub(crate) fn is_batch(&self) -> bool {
        self.kind() == Some(LauncherKind::Batch)
    }

    /// Whether what it starts takes no memory of this machine.
    pub(crate) fn is_elsewhere(&self) -> bool {
        self.kind().is_some_and(|kind| kind != LauncherKind::Ranks)
    }

    /// Whether it starts MPI ranks and nothing else.
    fn starts_ranks(&self) -> bool {
        self.words.iter().any(|word| LauncherKind::of(word) == Some(LauncherKind::Ranks))
    }

    /// The program.
    pub(crate) fn program(&self) -> &str {
        &self.words[0]
    }

    /// Its arguments.
    pub(crate) fn arguments(&self) -> &[String] {
        &self.words[1..]
    }

    /// Whether a stage can be started by it.
    pub(crate) fn check(&self, entry: &StageEntry) -> Result<(), String> {
        match entry.distributed || !self.starts_ranks() {
            true => Ok(()),
            false => Err(format!("{} cannot run as several processes", entry.kind)),
        }
    }

    /// The command with more arguments, as people type it.
    pub(crate) fn with(&self, more: &[&str]) -> String {
        let words = self.words.iter().map(String::as_str).chain(more.iter().copied());
        shlex::try_join(words.clone()).unwrap_or_else(|_| words.collect::<Vec<_>>().join(" "))
    }
}

/// The launcher of a cell.
pub(crate) fn launcher(block: &StageBlock, entry: &StageEntry, scope: &Scope<'_>) -> Option<Launcher> {
    let written = block.launcher.as_ref()?;
    let before = scope.problems.count();
    let text = show(&scope.resolve_text(&written.node, written.node.text()?).value);
    if scope.problems.count() > before {
        return None;
    }
    let launcher = Launcher::parse(&text).unwrap_or_else(|message| {
        scope.problems.refuse(Problem::new(message, &written.node.span).help(LAUNCHERS))
    })?;
    if let Err(message) = launcher.check(entry) {
        let problem = Problem::new(message, &written.key_span).label("this starts MPI ranks");
        return scope.problems.refuse(problem.help(distributed_stages()));
    }
    Some(launcher)
}

/// What a launcher looks like, for messages.
pub(crate) const LAUNCHERS: &str =
    "write a command such as \"mpirun -n 4\", \"srun -n 4\" or \"sbatch -n 1 --time 10\"";

/// The stages that take any launcher, for messages.
pub(crate) fn distributed_stages() -> String {
    let able: Vec<&str> = STAGES.iter().filter(|entry| entry.distributed).map(|entry| entry.kind).collect();
    format!(
        "stages that can: {}; as one process `srun -n 1` and `sbatch -n 1` start all others",
        able.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_split_into_words_like_in_a_shell() {
        let launcher = Launcher::parse("mpirun -n 2 --host 'a b'").unwrap().unwrap();
        assert_eq!(launcher.program(), "mpirun");
        assert_eq!(launcher.arguments(), ["-n", "2", "--host", "a b"]);
        assert_eq!(launcher.with(&["x y"]), "mpirun -n 2 --host 'a b' 'x y'");
        assert_eq!(Launcher::parse(" ").unwrap(), None);
        assert!(Launcher::parse("mpirun 'a").is_err());
    }

    #[test]
    fn what_starts_ranks_is_only_for_stages_that_can_be_several_processes() {
        let stage = |kind: &str| crate::registry::stage(kind).unwrap();
        let can = |text: &str, kind: &str| Launcher::parse(text).unwrap().unwrap().check(stage(kind)).is_ok();
        for launcher in ["mpirun -n 4", "salloc -N 4 /opt/bin/mpiexec", "sbatch -n 4 mpirun"] {
            assert!(can(launcher, "map/tabu") && !can(launcher, "map/linear"), "{launcher}");
        }
        for launcher in ["srun -n 1", "sbatch -n 1", "ssh node1"] {
            assert!(can(launcher, "map/tabu") && can(launcher, "map/linear"), "{launcher}");
        }
    }

    #[test]
    fn only_sbatch_ends_before_the_stage_has_run() {
        let is_batch = |text: &str| Launcher::parse(text).unwrap().unwrap().is_batch();
        assert!(is_batch("sbatch") && is_batch("/usr/bin/sbatch -n 1"));
        assert!(!is_batch("srun -n 1") && !is_batch("salloc sbatch"));
    }
}
