//! The pipeline file: parsed, checked, its matrices expanded, and built into a typed graph of cells.
//!
//! All mistakes of a file are found before anything runs, and reported together.
//!
//! # From text to cells
//!
//! `src/source.rs` (TOML with the place of every value) → `file` (known keys, right forms) → `expand` (which cells a stage
//! has: `foreach` × `matrix` × `zip` without `exclude`, each a dimension whose rows are counted before they are made; kinds looked up) →
//! `connect` (selectors to edges, ports checked, cycles found) → `settings` (values of `with` against the stage's schema and types). All
//! problems are collected; nothing runs while there is one (`tests/cli/broken.rs`).
//!
//! `project` has the pipelines that come with hopmap, and makes files of one's own of them (`hopmap init`): read line by line, so
//! each parameter has a line of its own (`parameters_of_embedded_pipelines_are_those_that_toml_has`).
//!
//! Help, completions and manual pages come from the one definition of the command line (`src/cli.rs`). `ci/install.sh` is the only
//! place that says what is installed where; `ci/deb.sh` and `ci/tarball.sh` pack what it installs, `ci/rpm.sh` the tarball, `pyproject.toml` has
//! Maturin pack the program alone, and `ci/try-packages.sh` tries all in clean Debians. A tarball with a library that another machine may not
//! have, or with symbols of a newer glibc (`ci/glibc.sh`), is refused when it is made. The C library stays the system's: a static glibc loads modules at run time to resolve names, of exactly its own
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

mod cells;
mod connect;
mod expand;
mod file;
mod gates;
mod glob;
mod label;
mod matrix;
mod project;
mod range;
mod samples;
mod settings;
mod template;

use std::ops::Range;
use std::path::{Path, PathBuf};

use serde_json::Value as Json;

use crate::registry::{Configured, StageEntry};
use crate::source::{Entry, Node, NodeValue, Problem, Problems, Sink, Source, Table};
use cells::{ArtifactReference, Settings, launcher};
pub(crate) use cells::{Cell, LAUNCHERS, Launcher, Need, Origin, Pipeline, Save, distributed_stages};
use connect::{Index, order};
pub(crate) use expand::plain;
use expand::{LooseCell, check, expand, saves, sweeps};
use file::{File, RETRIES, questions};
pub(crate) use file::{bytes, is_name, show_bytes};
use gates::gates;
pub(crate) use glob::STORE_FOLDER;
pub(crate) use label::{cell_name, labels};
pub(crate) use project::{EMBEDDED, Embedded, SCHEMA_FILE, parameters};
use project::{default_in, find_samples, give_your_own, is_embedded};
use settings::configure_settings;
use template::{Base, Lookup, Reference, Resolved, SchemaView, Scope, Template};
pub(crate) use template::{Folders, literal, without_references};

impl Pipeline {
    /// The parameters of a cell, with the folders of artifacts filled in.
    pub(crate) fn configure(
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
        let problems = Sink::default();
        configure(self, cell, &artifact, &problems).ok_or_else(|| self.source.tie(problems.take()))
    }

    /// Does something with the parameters of a cell: those that are ready, else those with the folders of artifacts filled in.
    pub(crate) fn with_parameters<R>(
        &self,
        cell: &Cell,
        folder: &dyn Fn(usize, &str) -> PathBuf,
        work: impl FnOnce(&dyn Configured) -> R,
    ) -> Result<R, Problems> {
        Ok(match cell.ready_parameters() {
            Some(ready) => work(ready),
            None => work(&*self.configure(cell, folder)?),
        })
    }

    /// The values of a cell's parameters as they would be if paths were seen from other folders.
    ///
    /// Folders of different names show what a value is relative to.
    pub(crate) fn values_seen_from(&self, cell: &Cell, folders: &Folders) -> Json {
        values(self, cell, &|_, _| Some(PathBuf::from("artifact")), folders, &Sink::default())
    }

    /// How to give a cell files of one's own, if its pipeline comes with hopmap and they are not where that has them.
    pub(crate) fn own_files(&self, cell: &Cell) -> Option<String> {
        if !is_embedded(&self.source) {
            return None;
        }
        let schema = SchemaView::new(&cell.entry.schema);
        let values = self.values_seen_from(cell, &self.folders);
        let is_missing = |entry: &&Entry| {
            let path = values.get(&entry.key).and_then(Json::as_str);
            schema.property(&entry.key).is_path() && path.is_some_and(|path| !Path::new(path).exists())
        };
        let missing = cell.settings.with.entries.iter().filter(is_missing);
        let mut names = missing.filter_map(|entry| default_in(&entry.node, &self.parameters)).peekable();
        names.peek()?;
        Some(give_your_own(self.source.name(), names, "PATH"))
    }

    /// Whether it comes with hopmap, also where it is read from a copy.
    pub(crate) fn is_bundled(&self) -> bool {
        EMBEDDED.iter().any(|embedded| embedded.text == self.source.text())
    }

    /// Reads a pipeline from a text.
    ///
    /// `parameters` come from the command line: names and values, the latter read as TOML, else as text.
    pub(crate) fn parse(
        source: Source,
        folder: &Path,
        working: &Path,
        parameters: &[(String, String)],
    ) -> Result<Self, Problems> {
        Self::parse_in(source, Folders::new(folder, working), parameters)
    }

    /// Reads a pipeline whose paths are seen from `folders`.
    pub(crate) fn parse_in(
        source: Source,
        folders: Folders,
        from_command_line: &[(String, String)],
    ) -> Result<Self, Problems> {
        let problems = Sink::default();
        let file = File::parse(source.text(), &problems).ok_or_else(|| source.tie(problems.take()))?;
        let parameters = all_parameters(&source, &folders, &file.parameters, from_command_line, &problems)?;
        let blocks = file.stages;
        let scope = Scope::new(&parameters, &folders, &problems);
        let sweeps = sweeps(&blocks, scope, &source);
        let loose = expand(&blocks, &sweeps, scope);
        let index = Index::new(&loose, &blocks, scope);
        let cells: Vec<Cell> = loose.iter().map(|cell| connected(cell, &index, scope)).collect();
        let cells = sorted(cells, &loose, &problems);
        let (tables, unchecked) = questions(&file.tables, &blocks, &scope, source.text());
        let gates = gates(&file.gates, &cells, &blocks, &scope, source.text());
        let name = file.name.unwrap_or_else(|| source.stem());
        let File { description, batch, save_on_failure, .. } = file;
        let warnings = source.tie(unchecked.into_iter().collect()).0;
        let mut pipeline = Self {
            name,
            description,
            source,
            cells,
            tables,
            gates,
            batch,
            save_on_failure,
            warnings,
            folders,
            parameters,
        };
        configure_all(&mut pipeline, &problems);
        check(&pipeline, &problems);
        let problems = problems.take();
        if problems.is_empty() { Ok(pipeline) } else { Err(pipeline.source.tie(problems)) }
    }
}

/// The parameters of the file, those of the command line in their place.
fn all_parameters(
    source: &Source,
    folders: &Folders,
    written: &Table,
    from_command_line: &[(String, String)],
    problems: &Sink,
) -> Result<Vec<(String, Resolved)>, Problems> {
    let nowhere = Folders::new("", "");
    let nowhere = Scope::new(&[], &nowhere, problems);
    let mut parameters: Vec<(String, Resolved)> = Vec::new();
    for entry in &written.entries {
        let mut value = nowhere.resolve(&entry.node, &SchemaView::new(&Json::Null));
        if is_embedded(source) && !from_command_line.iter().any(|(name, _)| *name == entry.key) {
            find_samples(&mut value, folders);
        }
        parameters.push((entry.key.clone(), Resolved { value, base: Base::File }));
    }
    let strange = Sink::default();
    let line = |(key, value): &(String, String)| {
        let is_text = written.get(key).is_some_and(|entry| entry.node.text().is_some());
        format!("{key} = {}\n", as_toml(value, is_text))
    };
    let text = from_command_line.iter().map(line).collect::<Vec<_>>().concat();
    for given in Table::parse(&text, &strange).entries {
        match parameters.iter_mut().find(|(key, _)| *key == given.key) {
            Some((_, value)) => *value = Resolved { value: given.node.plain(), base: Base::WorkingDirectory },
            None => {
                let known = written.entries.iter().map(|entry| entry.key.as_str());
                let message = format!("{} has no parameter `{}`", source.name(), given.key);
                let problem = Problem::new(message, &given.key_span);
                strange.push(problem.suggest(&given.key, "parameters", known));
            }
        }
    }
    let strange = strange.take();
    if strange.is_empty() { Ok(parameters) } else { Err(Source::new("-p", text).tie(strange)) }
}

fn connected(cell: &LooseCell<'_>, index: &Index<'_>, scope: Scope<'_>) -> Cell {
    let (needs, artifacts) = (index.needs(cell), index.artifacts(cell));
    let scope = scope.within(&cell.matrix);
    Cell {
        id: cell.id.clone(),
        name: cell.name.clone(),
        stage: cell.block.name.clone(),
        matrix: cell.matrix.iter().map(|(key, resolved)| (key.clone(), resolved.value.clone())).collect(),
        entry: cell.entry,
        needs,
        saves: saves(cell, &scope),
        threads: cell.block.threads,
        memory: cell.block.memory,
        retries: cell.block.retries.unwrap_or(RETRIES),
        launcher: launcher(cell.block, cell.entry, &scope),
        settings: Settings {
            with: cell.with.clone(),
            matrix: cell.matrix.clone(),
            span: cell.block.with_span.clone(),
            artifacts,
            ready: None,
        },
    }
}

/// Puts what a cell needs before it and renumbers.
fn sorted(cells: Vec<Cell>, loose: &[LooseCell<'_>], problems: &Sink) -> Vec<Cell> {
    let dependencies: Vec<Vec<usize>> = cells.iter().map(|cell| cell.dependencies().collect()).collect();
    let order = match order(&dependencies) {
        Ok(order) => order,
        Err(cycle) => {
            let mut names: Vec<&str> = cycle.iter().map(|&cell| cells[cell].id.as_str()).collect();
            names.push(names[0]);
            let place = &loose[cycle[0]].block.name_span;
            let problem =
                Problem::new("the stages form a dependency cycle", place).label("part of the cycle");
            problems.push(problem.help(format!("{} (read: needs)", names.join(" → "))));
            return Vec::new();
        }
    };
    let mut place = vec![0; cells.len()];
    for (new, &old) in order.iter().enumerate() {
        place[old] = new;
    }
    let mut cells: Vec<Option<Cell>> = cells.into_iter().map(Some).collect();
    let mut sorted: Vec<Cell> = order.iter().filter_map(|&old| cells[old].take()).collect();
    sorted.iter_mut().for_each(|cell| cell.renumber(&place));
    sorted
}

/// Reads the parameters of every cell. Where they name the folder of an artifact, any folder does for checking.
fn configure_all(pipeline: &mut Pipeline, problems: &Sink) {
    for index in 0..pipeline.cells.len() {
        let cell = &pipeline.cells[index];
        let any_folder = |_: &str, _: Option<&str>| Some(PathBuf::from("artifact"));
        let configured = configure(pipeline, cell, &any_folder, problems);
        let names_artifacts =
            cell.settings.with.entries.iter().any(|entry| names_artifacts(&entry.node.plain()));
        if !names_artifacts {
            pipeline.cells[index].settings.ready = configured;
        }
    }
}

fn names_artifacts(value: &Json) -> bool {
    let is_artifact = |reference: &Reference| matches!(reference, Reference::Artifact { .. });
    match value {
        Json::String(text) => {
            Template::parse(text).is_ok_and(|template| template.references().any(is_artifact))
        }
        Json::Array(values) => values.iter().any(names_artifacts),
        Json::Object(map) => map.values().any(names_artifacts),
        _ => false,
    }
}

/// Reads the parameters of a cell.
pub(crate) fn configure(
    pipeline: &Pipeline,
    cell: &Cell,
    artifact: &Lookup<'_>,
    problems: &Sink,
) -> Option<Box<dyn Configured>> {
    let before = problems.count();
    let values = values(pipeline, cell, artifact, &pipeline.folders, problems);
    let Settings { with, span, .. } = &cell.settings;
    if problems.count() == before {
        configure_settings(cell.entry, with, values, span, problems)
    } else {
        None
    }
}

/// The parameters of a cell with references filled in and paths seen from some folders.
pub(crate) fn values(
    pipeline: &Pipeline,
    cell: &Cell,
    artifact: &Lookup<'_>,
    folders: &Folders,
    problems: &Sink,
) -> Json {
    let (parameters, Settings { with, matrix, span, .. }) = (&pipeline.parameters, &cell.settings);
    let scope = Scope { parameters, matrix, artifact, folders, problems };
    scope.resolve(&node_of(with.clone(), span.clone()), &SchemaView::new(&cell.entry.schema))
}

/// Reads the parameters of a stage outside a pipeline, from a text of its own.
pub(crate) fn configure_alone(
    entry: &'static StageEntry,
    source: &Source,
    folders: &Folders,
) -> Result<Box<dyn Configured>, Problems> {
    let problems = Sink::default();
    let with = Table::parse(source.text(), &problems);
    let span = 0..source.text().len();
    let node = node_of(with.clone(), span.clone());
    let values = Scope::new(&[], folders, &problems).resolve(&node, &SchemaView::new(&entry.schema));
    let is_valid = problems.count() == 0;
    let configured = is_valid.then(|| configure_settings(entry, &with, values, &span, &problems)).flatten();
    configured.ok_or_else(|| source.tie(problems.take()))
}

/// The values of a command line as a text of TOML, so that messages can show where a fault is.
///
/// See [`as_toml`] for how a value is read.
pub(crate) fn assignments(entry: &StageEntry, pairs: &[(String, String)]) -> String {
    let schema = SchemaView::new(&entry.schema);
    let line = |(key, value): &(String, String)| {
        let wanted = key.split('.').fold(schema, |schema, part| schema.property(part));
        format!("{key} = {}\n", as_toml(value, wanted.is_text()))
    };
    pairs.iter().map(line).collect()
}

/// A value of the command line as TOML. Where text is wanted, `5` and `[a]` are text; text in quotes is what they hold.
pub(crate) fn as_toml(value: &str, is_text: bool) -> String {
    let problems = Sink::default();
    let parsed = Table::parse(&format!("value = {value}"), &problems);
    let is_quoted = parsed.get("value").is_some_and(|entry| entry.node.text().is_some());
    let is_toml = !value.contains('\n') && problems.count() == 0;
    match is_toml && (is_quoted || !is_text) {
        true => value.to_owned(),
        false => toml::Value::String(value.to_owned()).to_string(),
    }
}

/// A table as a node, for values without a file of their own.
pub(crate) fn node_of(table: Table, span: Range<usize>) -> Node {
    Node { span, value: NodeValue::Table(table) }
}
