//! From the text of a pipeline file to a [`Pipeline`], with the values of `with` checked against the parameters of a stage.

use std::ops::Range;
use std::path::{Path, PathBuf};

use serde_json::Value as Json;

use super::cells::{ArtifactReference, Cell, Pipeline, Settings};
use super::connect::{Index, order};
use super::expand::{LooseCell, Surroundings, check, expand, saves, sweeps};
use super::file::{File, RETRIES, questions};
use super::gates::gates;
use super::launcher::launcher;
use super::node::{Entry, Node, NodeValue, Table};
use super::problem::{Problem, Problems, Source};
use super::project::{default_in, find_samples, give_your_own, is_embedded};
use super::template::{Base, Folders, Reference, Resolved, SchemaView, Scope, Template};
use crate::registry::{Configured, StageEntry};
use crate::renames;

type Lookup<'a> = dyn Fn(&str, Option<&str>) -> Option<PathBuf> + 'a;

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
        let configured = configure(self, cell, &artifact, &mut problems);
        configured.ok_or_else(|| self.source.tie(problems))
    }

    /// The values of a cell's parameters as they would be if paths were seen from other folders.
    ///
    /// What a value is relative to can be told by asking with folders of different names.
    #[must_use]
    pub fn values_seen_from(&self, cell: &Cell, folders: &Folders) -> Json {
        values(self, cell, &|_, _| Some(PathBuf::from("artifact")), folders, &mut Vec::new())
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
        pipeline(source, folders, parameters)
    }
}

fn pipeline(
    source: Source,
    folders: Folders,
    from_command_line: &[(String, String)],
) -> Result<Pipeline, Problems> {
    let mut problems = Vec::new();
    let file =
        File::parse(source.text(), &mut problems).ok_or_else(|| source.tie(std::mem::take(&mut problems)))?;
    let parameters = parameters(&source, &folders, &file.parameters, from_command_line, &mut problems)?;
    let blocks = file.stages;
    let sweeps = sweeps(&blocks, &parameters, &folders, &source, &mut problems);
    let around =
        Surroundings { blocks: &blocks, sweeps: &sweeps, parameters: &parameters, folders: &folders };
    let pairs = blocks.iter().zip(&sweeps);
    let loose: Vec<LooseCell<'_>> =
        pairs.flat_map(|(block, sweep)| expand(block, sweep, &around, &mut problems)).collect();
    let index = Index::new(&loose, &blocks, &parameters, &folders);
    let cells: Vec<Cell> =
        loose.iter().map(|cell| connected(cell, &index, &parameters, &folders, &mut problems)).collect();
    let cells = sorted(cells, &loose, &mut problems);
    let scope = Scope { parameters: &parameters, matrix: &[], artifact: &|_, _| None, folders: &folders };
    let tables = questions(&file.tables, &blocks, &scope, source.text(), &mut problems);
    let gates = gates(&file.gates, &cells, &blocks, &scope, source.text(), &mut problems);
    let name = file.name.unwrap_or_else(|| source.stem());
    let File { description, batch, save_on_failure, .. } = file;
    let warnings = loose.into_iter().flat_map(|cell| cell.warnings).collect();
    let warnings = source.tie(warnings).0;
    let mut pipeline = Pipeline {
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
    configure_all(&mut pipeline, &mut problems);
    check(&pipeline, &mut problems);
    match problems.is_empty() {
        true => Ok(pipeline),
        false => Err(pipeline.source.tie(problems)),
    }
}

/// The parameters of the file, those of the command line in their place.
fn parameters(
    source: &Source,
    folders: &Folders,
    written: &Table,
    from_command_line: &[(String, String)],
    problems: &mut Vec<Problem>,
) -> Result<Vec<(String, Resolved)>, Problems> {
    let nowhere =
        Scope { parameters: &[], matrix: &[], artifact: &|_, _| None, folders: &Folders::new("", "") };
    let no_schema = Json::Null;
    let mut parameters: Vec<(String, Resolved)> = Vec::new();
    for entry in &written.entries {
        let mut value = nowhere.resolve(&entry.node, &SchemaView::new(&no_schema), problems);
        if is_embedded(source) {
            find_samples(&mut value, folders);
        }
        parameters.push((entry.key.clone(), Resolved { value, base: Base::File }));
    }
    let mut strange = Vec::new();
    let line = |(key, value): &(String, String)| {
        let is_text = written.get(key).is_some_and(|entry| entry.node.text().is_some());
        format!("{key} = {}\n", as_toml(value, is_text))
    };
    let text = from_command_line.iter().map(line).collect::<Vec<_>>().concat();
    for given in Table::parse(&text, &mut strange).entries {
        match parameters.iter_mut().find(|(key, _)| *key == given.key) {
            Some((_, value)) => *value = Resolved { value: given.node.plain(), base: Base::WorkingDirectory },
            None => {
                let known = written.entries.iter().map(|entry| entry.key.as_str());
                let problem = Problem::new(
                    format!("{} has no parameter `{}`", source.name(), given.key),
                    &given.key_span,
                );
                strange.push(problem.suggest(&given.key, "parameters", known));
            }
        }
    }
    match strange.is_empty() {
        true => Ok(parameters),
        false => Err(Source::new("-p", text).tie(strange)),
    }
}

fn connected(
    cell: &LooseCell<'_>,
    index: &Index<'_>,
    parameters: &[(String, Resolved)],
    folders: &Folders,
    problems: &mut Vec<Problem>,
) -> Cell {
    let needs = index.needs(cell, problems);
    let artifacts = index.artifacts(cell, problems);
    let scope = Scope { parameters, matrix: &cell.matrix, artifact: &|_, _| None, folders };
    Cell {
        id: cell.id.clone(),
        stage: cell.block.name.clone(),
        matrix: cell.matrix.iter().map(|(key, resolved)| (key.clone(), resolved.value.clone())).collect(),
        entry: cell.entry,
        needs,
        saves: saves(cell, parameters, folders, problems),
        threads: cell.block.threads,
        memory: cell.block.memory,
        retries: cell.block.retries.unwrap_or(RETRIES),
        launcher: launcher(cell.block, cell.entry, &scope, problems),
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
fn sorted(cells: Vec<Cell>, loose: &[LooseCell<'_>], problems: &mut Vec<Problem>) -> Vec<Cell> {
    let dependencies: Vec<Vec<usize>> = cells.iter().map(|cell| cell.dependencies().collect()).collect();
    let order = match order(&dependencies) {
        Ok(order) => order,
        Err(cycle) => {
            let mut names: Vec<&str> = cycle.iter().map(|&cell| cells[cell].id.as_str()).collect();
            names.push(names[0]);
            let problem =
                Problem::new("stages need each other in a circle", &loose[cycle[0]].block.name_span);
            problems.push(
                problem.label("part of the circle").help(format!("{} (read: needs)", names.join(" → "))),
            );
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
fn configure_all(pipeline: &mut Pipeline, problems: &mut Vec<Problem>) {
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
    problems: &mut Vec<Problem>,
) -> Option<Box<dyn Configured>> {
    let before = problems.len();
    let values = values(pipeline, cell, artifact, &pipeline.folders, problems);
    let Settings { with, span, .. } = &cell.settings;
    match problems.len() == before {
        true => configure_settings(cell.entry, with, values, span, problems),
        false => None,
    }
}

/// The parameters of a cell with references filled in and paths seen from some folders.
pub(crate) fn values(
    pipeline: &Pipeline,
    cell: &Cell,
    artifact: &Lookup<'_>,
    folders: &Folders,
    problems: &mut Vec<Problem>,
) -> Json {
    let scope = Scope { parameters: &pipeline.parameters, matrix: &cell.settings.matrix, artifact, folders };
    let Settings { with, span, .. } = &cell.settings;
    let node = node_of(with.clone(), span.clone());
    scope.resolve(&node, &SchemaView::new(&cell.entry.schema), problems)
}

/// Reads the parameters of a stage that is in no pipeline, from a text of its own.
pub(crate) fn configure_alone(
    entry: &'static StageEntry,
    source: &Source,
    folders: &Folders,
) -> Result<Box<dyn Configured>, Problems> {
    let mut problems = Vec::new();
    let mut with = Table::parse(source.text(), &mut problems);
    renames::renew(entry.kind, &mut with);
    let scope = Scope { parameters: &[], matrix: &[], artifact: &|_, _| None, folders };
    let span = 0..source.text().len();
    let values =
        scope.resolve(&node_of(with.clone(), span.clone()), &SchemaView::new(&entry.schema), &mut problems);
    let configured = match problems.is_empty() {
        true => configure_settings(entry, &with, values, &span, &mut problems),
        false => None,
    };
    configured.ok_or_else(|| source.tie(problems))
}

/// Checks keys, then reads the parameters. Reports unknown and missing keys all at once.
///
/// `written` is what stands in the file, for places; `values` the same with references filled in.
pub(crate) fn configure_settings(
    entry: &StageEntry,
    written: &Table,
    values: Json,
    span: &Range<usize>,
    problems: &mut Vec<Problem>,
) -> Option<Box<dyn Configured>> {
    let schema = SchemaView::new(&entry.schema);
    let before = problems.len();
    check_keys(written, &schema, entry.kind, problems);
    for name in schema.required() {
        if values.get(name).is_none() {
            let problem = Problem::new(format!("`{name}` is missing for {}", entry.kind), span);
            let problem = problem.label(format!("add `{name}`"));
            problems.push(match schema.property(name).description() {
                Some(description) => problem.help(format!("{name}: {}", first_sentence(description))),
                None => problem,
            });
        }
    }
    if problems.len() > before {
        return None;
    }
    read(entry, written, values, span, problems)
}

fn check_keys(table: &Table, schema: &SchemaView<'_>, kind: &str, problems: &mut Vec<Problem>) {
    if !schema.is_closed_table() {
        return;
    }
    let known = schema.property_names();
    for entry in &table.entries {
        if !known.contains(&entry.key.as_str()) {
            let problem = Problem::new(format!("{kind} has no parameter `{}`", entry.key), &entry.key_span);
            problems.push(problem.suggest(&entry.key, "parameters", known.iter().copied()));
        } else if let NodeValue::Table(inner) = &entry.node.value {
            check_keys(inner, &schema.property(&entry.key), kind, problems);
        }
    }
}

/// Reads the parameters; takes out a value that does not fit and goes on, so that all such values are found.
fn read(
    entry: &StageEntry,
    written: &Table,
    mut values: Json,
    span: &Range<usize>,
    problems: &mut Vec<Problem>,
) -> Option<Box<dyn Configured>> {
    let mut sound = true;
    loop {
        let error = match entry.configure(values.clone()) {
            Ok(configured) => return sound.then_some(configured),
            Err(error) => error,
        };
        let first = error.path.first();
        let found = first.and_then(|key| written.get(key));
        let place = found.map_or_else(|| span.clone(), |entry| entry.node.span_at(&error.path[1..]));
        // What is missing now is what was taken out before.
        if sound || found.is_some() {
            let message = match first {
                Some(_) => format!("`{}`: {}", dotted(&error.path), error.message),
                None => error.message,
            };
            let problem = Problem::new(message, &place);
            let description =
                first.and_then(|key| SchemaView::new(&entry.schema).property(key).description());
            problems.push(match (first, description, error.help) {
                (Some(key), Some(text), _) => problem.help(format!("{key}: {}", first_sentence(text))),
                (_, _, Some(help)) => problem.help(help),
                _ => problem,
            });
        }
        sound = false;
        let removed = first.zip(values.as_object_mut()).and_then(|(key, map)| map.remove(key));
        removed.as_ref()?;
    }
}

/// A path as people write it: `weight.time.latency_s`, `costs[1]`.
fn dotted(path: &[String]) -> String {
    let mut text = String::new();
    for part in path {
        match part.parse::<usize>() {
            Ok(index) => text.push_str(&format!("[{index}]")),
            Err(_) if text.is_empty() => text.push_str(part),
            Err(_) => text.push_str(&format!(".{part}")),
        }
    }
    text
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
    let mut problems = Vec::new();
    let parsed = Table::parse(&format!("value = {value}"), &mut problems);
    let is_quoted = parsed.get("value").is_some_and(|entry| entry.node.text().is_some());
    let is_toml = !value.contains('\n') && problems.is_empty();
    match is_toml && (is_quoted || !is_text) {
        true => value.to_owned(),
        false => toml::Value::String(value.to_owned()).to_string(),
    }
}

pub(crate) fn first_sentence(text: &str) -> String {
    let line = text.split("\n\n").next().unwrap_or_default().replace('\n', " ");
    line.trim_end_matches('.').to_owned()
}

/// A table as a node, for values that stand in no file of their own.
pub(crate) fn node_of(table: Table, span: Range<usize>) -> Node {
    Node { span, value: NodeValue::Table(table) }
}
