//! What is known of the cells of a pipeline that a person asked for: without running them what goes in, with their results what
//! came out.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use hopmap_durable::{DurableError, replace_file};
use hopmap_model::Direction;
use miette::{Diagnostic, Report};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use toml::{Table, Value};

use super::file::{Ending, Lock, LockedCell, LockedFile};
use crate::engine::{self, PipelineId, RunReport, Settled, State, Store};
use crate::input_files::Hashes;
use crate::pipeline::{Cell, EMBEDDED, Folders, Need, Origin, Pipeline};
use crate::registry::Configured;
use crate::selector::Extreme;
use crate::source::{Problems, Source};

/// A cell before it runs.
#[derive(Debug)]
pub(crate) struct Expected {
    /// What is known of it; outputs are missing.
    pub(crate) cell: LockedCell,
    /// What is not known of it.
    pub(crate) unknown: Option<Unknown>,
}

/// Why the files of a cell are not known.
#[derive(Debug)]
pub(crate) enum Unknown {
    /// They are in an artifact that is made first.
    Made,
    /// They cannot be read.
    Unreadable(Report),
}

/// Some cells have no result, so there is nothing to lock.
#[derive(Debug, thiserror::Error, Diagnostic)]
#[error("{} of {} cells of `{pipeline}` have no result: {}", cells.len(), of, some(cells))]
#[diagnostic(
    code(lock::unfinished),
    help("`hopmap run` computes them; `hopmap plan` lists why each has to run")
)]
pub(crate) struct Unfinished {
    pipeline: String,
    cells: Vec<String>,
    of: usize,
}

/// The first few names.
pub(super) fn some(names: &[String]) -> String {
    const MOST: usize = 3;
    match names.len() {
        // A single one more takes no more room than its count.
        ..=4 => names.join(", "),
        more => format!("{} and {} more", names[..MOST].join(", "), more - MOST),
    }
}

/// The cells of a pipeline as the store has them, with observations as they were last.
pub(crate) fn expect(pipeline: &Pipeline, store: &mut Store) -> RunReport {
    store.trust_observations();
    engine::plan(pipeline, store)
}

/// The lock of a pipeline, from the results in the store.
pub(crate) fn lock(request: &Request, pipeline: &Pipeline, store: &mut Store) -> Result<Lock, Report> {
    let report = expect(pipeline, store);
    let is_settled =
        |settled: &Settled| matches!(settled.state, State::Cached | State::Infeasible | State::Blocked);
    let named = pipeline.cells.iter().zip(&report.cells);
    let open: Vec<String> =
        named.filter(|(_, settled)| !is_settled(settled)).map(|(cell, _)| cell.name.clone()).collect();
    if !open.is_empty() {
        let (pipeline, of) = (pipeline.name.clone(), pipeline.cells.len());
        return Err(Unfinished { pipeline, cells: open, of }.into());
    }
    let mut cells = Vec::new();
    for (expected, settled) in describe(pipeline, store, &report).into_iter().zip(&report.cells) {
        if let Some(Unknown::Unreadable(error)) = expected.unknown {
            return Err(error);
        }
        cells.push(with_result(expected.cell, settled, store));
    }
    Ok(Lock {
        hopmap: env!("CARGO_PKG_VERSION").to_owned(),
        pipeline: pipeline.name.clone(),
        text: text_hash(&request.text),
        parameters: request.parameters.iter().cloned().collect(),
        cells: sorted(pipeline, cells),
    })
}

/// BLAKE3 of the text of a pipeline.
pub(crate) fn text_hash(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().to_string()
}

fn with_result(mut cell: LockedCell, settled: &Settled, store: &Store) -> LockedCell {
    cell.ending = match settled.state {
        State::Infeasible => Ending::Infeasible,
        State::Blocked => Ending::Blocked,
        _ => Ending::Done,
    };
    let result = settled.key.as_deref().and_then(|key| store.result(key));
    cell.timed = result.is_some_and(|result| result.timed);
    cell.outputs =
        settled.outputs.iter().map(|(port, record)| (port.clone(), record.digest.clone())).collect();
    cell
}

/// Stages by name, their cells by the values of their matrices: numbers by their size, everything else as text.
fn sorted(pipeline: &Pipeline, cells: Vec<LockedCell>) -> Vec<LockedCell> {
    let mut pairs: Vec<(&Cell, LockedCell)> = pipeline.cells.iter().zip(cells).collect();
    pairs.sort_by(|(one, _), (other, _)| {
        let by_values = || engine::by_matrix(&one.matrix, &other.matrix);
        one.stage.cmp(&other.stage).then_with(by_values).then_with(|| one.id.cmp(&other.id))
    });
    pairs.into_iter().map(|(_, cell)| cell).collect()
}

/// What goes into every cell, as far as it can be known without running anything.
pub(crate) fn describe(pipeline: &Pipeline, store: &mut Store, report: &RunReport) -> Vec<Expected> {
    let wiring = Wiring::new(pipeline);
    pipeline.cells.iter().map(|cell| describe_cell(&wiring, cell, store, report)).collect()
}

fn describe_cell(wiring: &Wiring<'_>, cell: &Cell, store: &mut Store, report: &RunReport) -> Expected {
    let pipeline = wiring.pipeline;
    let artifacts = store.root().join("artifacts");
    let of_artifact = |index: usize, output: &str| {
        let record = report.cells[index].outputs.get(output);
        record.map_or_else(|| PathBuf::from("artifact"), |record| artifacts.join(&record.digest))
    };
    let made_first = cell
        .named_artifacts()
        .find(|(index, output)| report.cells[*index].outputs.get(*output).is_none())
        .map(|_| Unknown::Made);
    let mut described = LockedCell {
        stage: cell.stage.clone(),
        label: label(cell),
        uses: cell.entry.kind.to_owned(),
        revision: cell.entry.revision,
        needs: wiring.needs(cell),
        ..LockedCell::default()
    };
    let hashes = &mut store.hashes;
    let look = |configured: &dyn Configured| {
        described.observes = configured.observes() || cell.entry.experiments;
        described.parameters = parameters(configured.canonical());
        if made_first.is_none() {
            described.files = files(configured, &artifacts, hashes)?;
        }
        Ok(made_first)
    };
    let unknown = pipeline.with_parameters(cell, &of_artifact, look).map_err(Problems::first).flatten();
    let unknown = unknown.unwrap_or_else(|error| Some(Unknown::Unreadable(error)));
    Expected { cell: described, unknown }
}

/// The text in the brackets of the name of a cell.
fn label(cell: &Cell) -> String {
    let rest = cell.id.strip_prefix(&cell.stage).unwrap_or_default();
    rest.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or_default().to_owned()
}

/// The files that a cell reads, but for those in artifacts, which have digests of their own.
fn files(
    configured: &dyn Configured,
    artifacts: &Path,
    hashes: &mut Hashes,
) -> Result<Vec<LockedFile>, Report> {
    let mut files = Vec::new();
    for file in configured.reads()? {
        if file.path().starts_with(artifacts) {
            continue;
        }
        let blake3 = hashes.blake3_of(file.path())?;
        let metadata = std::fs::metadata(file.path()).map_err(DurableError::io("read", file.path()))?;
        files.push(LockedFile { name: file.name().into_owned(), bytes: metadata.len(), blake3 });
    }
    files.sort();
    Ok(files)
}

fn parameters(canonical: &Json) -> BTreeMap<String, Value> {
    let pairs = canonical.as_object().into_iter().flatten();
    pairs.filter_map(|(name, value)| Some((name.clone(), as_toml(value)?))).collect()
}

/// A value as TOML, keys in order. What is not set is left out: TOML has no null.
fn as_toml(value: &Json) -> Option<Value> {
    Some(match value {
        Json::Null => return None,
        Json::Bool(value) => Value::Boolean(*value),
        Json::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(number), _) => Value::Integer(number),
            (None, Some(real)) if number.is_f64() => Value::Float(real),
            _ => Value::String(number.to_string()),
        },
        Json::String(text) => Value::String(text.clone()),
        Json::Array(values) => {
            Value::Array(values.iter().map(|v| as_toml(v).unwrap_or(Value::String("null".into()))).collect())
        }
        Json::Object(map) => {
            let sorted: BTreeMap<&String, &Json> = map.iter().collect();
            let pairs = sorted.into_iter().filter_map(|(key, value)| Some((key.clone(), as_toml(value)?)));
            Value::Table(pairs.collect::<Table>())
        }
    })
}

/// How the cells of a pipeline are connected, as people write it.
struct Wiring<'a> {
    pipeline: &'a Pipeline,
    /// Cells of each stage.
    cells: HashMap<&'a str, Vec<&'a Cell>>,
}

impl<'a> Wiring<'a> {
    fn new(pipeline: &'a Pipeline) -> Self {
        let mut cells: HashMap<&str, Vec<&Cell>> = HashMap::new();
        pipeline.cells.iter().for_each(|cell| cells.entry(&cell.stage).or_default().push(cell));
        Self { pipeline, cells }
    }

    /// Where the inputs of a cell come from, by port.
    fn needs(&self, cell: &Cell) -> BTreeMap<String, String> {
        cell.needs.iter().map(|need| (need.port.name.to_owned(), self.origins(cell, need))).collect()
    }

    fn origins(&self, cell: &Cell, need: &Need) -> String {
        let mut single: Vec<(usize, &str)> = Vec::new();
        let mut texts: Vec<String> = Vec::new();
        for origin in &need.origins {
            match origin {
                Origin::Cell { cell, output } => single.push((*cell, output)),
                Origin::Best { cells, output, metric, extreme, .. } => {
                    let word = match extreme {
                        Extreme::Min => "min",
                        Extreme::Max => "max",
                    };
                    let all: Vec<(usize, &str)> = cells.iter().map(|&cell| (cell, *output)).collect();
                    texts.push(format!("{word} {metric} of {}", self.group(cell, &all)));
                }
            }
        }
        if !single.is_empty() {
            texts.insert(0, self.group(cell, &single));
        }
        texts.join(" and ")
    }

    /// Cells in few words: the one of a stage with our values is the stage, all of a stage with our values are `stage[*]`.
    fn group(&self, cell: &Cell, origins: &[(usize, &str)]) -> String {
        let at = |origin: &(usize, &str)| &self.pipeline.cells[origin.0];
        let mut texts = Vec::new();
        for run in origins.chunk_by(|one, other| at(one).stage == at(other).stage && one.1 == other.1) {
            let first = at(&run[0]);
            let several = first.entry.ports(Direction::Out).count() > 1;
            let port = if several { format!(".{}", run[0].1) } else { String::new() };
            let stage = format!("{}{port}", first.stage);
            let is_paired = |other: &Cell| other.matrix.iter().all(|pair| cell.matrix.contains(pair));
            match run.len() {
                1 if is_paired(first) => texts.push(stage),
                2.. if self.are_all(cell, run) => texts.push(format!("{stage}[*]")),
                _ => texts.extend(run.iter().map(|origin| match label(at(origin)) {
                    label if label.is_empty() => stage.clone(),
                    label => format!("{stage}[{label}]"),
                })),
            }
        }
        texts.join(", ")
    }

    /// Whether these are all cells of their stage that have our values of the matrix keys that both have.
    fn are_all(&self, cell: &Cell, origins: &[(usize, &str)]) -> bool {
        let agrees = |other: &Cell| {
            let same = |(key, value): &(String, Json)| {
                other.matrix.iter().find(|(name, _)| name == key).is_none_or(|(_, found)| found == value)
            };
            cell.matrix.iter().all(same)
        };
        let stage = &self.cells[self.pipeline.cells[origins[0].0].stage.as_str()];
        origins.iter().all(|(index, _)| agrees(&self.pipeline.cells[*index]))
            && stage.iter().filter(|other| agrees(other)).count() == origins.len()
    }
}

/// Name of the file in the folder of a run that remembers what was asked for.
pub(crate) const REQUEST: &str = "request.json";

/// A pipeline, its parameters, and where paths begin. With it a run can be planned again as it was, whatever has become of
/// the pipeline file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Request {
    /// The pipeline file as it was named, or the name of a pipeline that comes with hopmap.
    pub(crate) pipeline: String,
    /// The text of the pipeline.
    pub(crate) text: String,
    /// Folder to which paths of the pipeline are relative.
    pub(crate) folder: PathBuf,
    /// Folder to which paths among the parameters are relative.
    pub(crate) working: PathBuf,
    /// Where absolute paths begin, if not at the root of the file system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) root: Option<PathBuf>,
    /// The parameters that were given, by name.
    pub(crate) parameters: Vec<(String, String)>,
    /// Cores in all; none if nothing has run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) jobs: Option<usize>,
}

impl Request {
    /// The pipeline.
    pub(crate) fn open(&self) -> Result<Pipeline, Problems> {
        let source = Source::new(&self.pipeline, self.text.clone());
        let folders =
            Folders { root: self.root.clone(), ..Folders::new(self.folder.clone(), self.working.clone()) };
        Pipeline::parse_in(source, folders, &self.parameters)
    }

    /// Where the lock file is: next to the pipeline file, else in the working directory.
    pub(crate) fn lock_file(&self) -> PathBuf {
        let stem = Path::new(&self.pipeline).file_stem().unwrap_or_default();
        let mut name = stem.to_owned();
        name.push(".lock");
        self.folder.join(name)
    }

    /// Name of the pipeline file.
    pub(crate) fn file_name(&self) -> String {
        let name = Path::new(&self.pipeline).file_name().unwrap_or_default().to_string_lossy();
        if name.ends_with(".toml") { name.into_owned() } else { format!("{name}.toml") }
    }

    /// The file in a store that remembers what was asked for when the same pipeline ran last.
    fn last_in(&self, root: &Path) -> PathBuf {
        let file = self.folder.join(Path::new(&self.pipeline).file_name().unwrap_or_default());
        let is_embedded = EMBEDDED.iter().any(|embedded| embedded.name == self.pipeline);
        let file = Some(file).filter(|file| !is_embedded || file.is_file());
        Self::last_place(root, &PipelineId::of_file("", file, &self.pipeline, root))
    }

    fn last_place(root: &Path, nameless: &PipelineId) -> PathBuf {
        engine::requests(root).join(format!("{}.json", nameless.digits()))
    }

    /// What was asked for when a pipeline ran last in a store, also if there was nothing to do.
    pub(crate) fn last_of(root: &Path, id: &PipelineId) -> Option<Self> {
        Self::read_file(&Self::last_place(root, &PipelineId { name: String::new(), ..id.clone() }))
    }

    /// What was asked for when the same pipeline ran last in a store.
    pub(crate) fn last(&self, root: &Path) -> Option<Self> {
        Self::read_file(&self.last_in(root))
    }

    /// Remembers it as what was asked for last.
    pub(crate) fn remember(&self, root: &Path) -> Result<(), DurableError> {
        if self.last(root).as_ref() == Some(self) { Ok(()) } else { self.write_file(&self.last_in(root)) }
    }

    /// Remembers it in the folder of a run.
    pub(crate) fn write(&self, run: &Path) -> Result<(), DurableError> {
        self.write_file(&run.join(REQUEST))
    }

    fn write_file(&self, file: &Path) -> Result<(), DurableError> {
        // Plain data with text keys, but for paths that are not UTF-8: such a request is not remembered.
        match serde_json::to_string_pretty(self) {
            Ok(text) => replace_file(file, format!("{text}\n").as_bytes()),
            Err(_) => Ok(()),
        }
    }

    /// What was asked for in a run; none if it was killed, or ran in a version that remembered nothing.
    pub(crate) fn read(run: &Path) -> Option<Self> {
        Self::read_file(&run.join(REQUEST))
    }

    fn read_file(file: &Path) -> Option<Self> {
        serde_json::from_slice(&std::fs::read(file).ok()?).ok()
    }
}
