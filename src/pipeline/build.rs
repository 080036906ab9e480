//! From the text of a pipeline file to a [`Pipeline`].

use std::path::{Path, PathBuf};

use serde_json::Value as Json;

use super::cells::{ArtifactReference, Cell, Pipeline, Settings};
use super::connect::{Index, order};
use super::embedded::{default_in, find_samples, give_your_own, is_embedded};
use super::expand::{LooseCell, Surroundings, expand};
use super::file::File;
use super::gates::gates;
use super::launcher::launcher;
use super::node::{Entry, Table};
use super::problem::{Problem, Problems, Source};
use super::resources::RETRIES;
use super::saves::{check, saves};
use super::settings::{as_toml, configure as configure_settings, node_of};
use super::sweep::sweeps;
use super::tables::questions;
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
