//! From the text of a pipeline file to a [`Pipeline`].

use std::path::PathBuf;

use serde_json::Value as Json;

use super::connect::{Index, order};
use super::embedded::{find_samples, is_embedded};
use super::expand::{LooseCell, Surroundings, expand};
use super::file::File;
use super::gates::gates;
use super::launcher::launcher;
use super::node::Table;
use super::resources::RETRIES;
use super::saves::saves;
use super::settings::{as_toml, configure as configure_settings, node_of};
use super::sweep::sweeps;
use super::tables::questions;
use super::template::{Base, Folders, Reference, Resolved, SchemaView, Scope, Template};
use super::{Cell, Pipeline, Problem, Problems, Settings, Source};
use crate::registry::{Configured, StageEntry};
use crate::renames;

type Lookup<'a> = dyn Fn(&str, Option<&str>) -> Option<PathBuf> + 'a;

pub(crate) fn pipeline(
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
    super::saves::check(&pipeline, &mut problems);
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
