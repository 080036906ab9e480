//! `save`: where copies of outputs go, and where none may.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Component, Path, PathBuf};

use hopmap_model::Direction;

use super::cells::{Cell, Pipeline, Save};
use super::expand::LooseCell;
use super::node::Entry;
use super::problem::Problem;
use super::template::{Folders, Resolved, Scope};

/// A copy as the file has it.
struct Copy<'a> {
    whose: String,
    span: &'a Range<usize>,
    cell: Option<&'a Cell>,
}

/// The copies of a cell's outputs.
pub(super) fn saves(
    cell: &LooseCell<'_>,
    parameters: &[(String, Resolved)],
    folders: &Folders,
    problems: &mut Vec<Problem>,
) -> Vec<Save> {
    let scope = Scope { parameters, matrix: &cell.matrix, artifact: &|_, _| None, folders };
    let mut save = |entry: &Entry| {
        let Some(port) = cell.entry.port(Direction::Out, &entry.key) else {
            let known = cell.entry.ports(Direction::Out).map(|port| port.name);
            let problem =
                Problem::new(format!("{} has no output `{}`", cell.entry.kind, entry.key), &entry.key_span);
            problems.push(problem.suggest(&entry.key, "outputs", known));
            return None;
        };
        let span = &entry.node.span;
        let Some(text) = entry.node.text() else {
            problems.push(Problem::new("a value of `save` should be a path", span));
            return None;
        };
        let Resolved { value, base } = scope.resolve_text(&entry.node, text, problems);
        let path = PathBuf::from(super::matrix::show(&value));
        if path.file_name().is_none() {
            problems.push(Problem::new("this path names no file", span));
            return None;
        }
        let path = folders.resolve(&path, base);
        Some(Save { output: port.name, kind: port.kind, path, span: span.clone() })
    };
    cell.block.save.entries.iter().filter_map(&mut save).collect()
}

/// Finds copies that are in each other's way, or in that of the pipeline's own files; the first of them is told.
pub(super) fn check(pipeline: &Pipeline, problems: &mut Vec<Problem>) {
    let mut copies: BTreeMap<PathBuf, Copy<'_>> = BTreeMap::new();
    let of_cells = pipeline.cells.iter().flat_map(|cell| cell.saves.iter().map(move |save| (cell, save)));
    for (cell, save) in of_cells {
        let copy = Copy { whose: format!("`{}`", cell.id), span: &save.span, cell: Some(cell) };
        if let Some(problem) = repeated(copies.insert(plain(&save.path), copy), cell, &save.span) {
            problems.push(problem);
            return;
        }
    }
    for table in &pipeline.tables {
        let Some(path) = &table.save else { continue };
        let copy = Copy { whose: format!("table `{}`", table.name), span: &table.save_span, cell: None };
        // Tables that save to one place were found when they were read.
        if let Some(Copy { whose, cell: Some(_), .. }) = copies.insert(plain(path), copy) {
            let message = format!("{whose} and table `{}` save to the same place", table.name);
            problems.push(Problem::new(message, &table.save_span).help("give each its own path"));
            return;
        }
    }
    for (path, copy) in &copies {
        let within = path.ancestors().skip(1).find_map(|folder| copies.get(folder));
        if let Some(outer) = within {
            let message = format!("{} saves inside what {} saves", copy.whose, outer.whose);
            problems.push(Problem::new(message, copy.span).help("give each a path beside the other"));
            return;
        }
    }
    for (what, file) in own_files(pipeline) {
        if let Some(copy) = copies.get(&plain(&file)) {
            let problem = Problem::new(format!("{} would replace {what}", copy.whose), copy.span);
            problems.push(problem.help("give the copy a path of its own"));
        }
    }
}

fn repeated(other: Option<Copy<'_>>, cell: &Cell, span: &Range<usize>) -> Option<Problem> {
    let message = format!("{} and `{}` save to the same place", other?.whose, cell.id);
    let problem = Problem::new(message, span);
    Some(match cell.matrix.first() {
        Some((key, _)) => problem.help(format!("tell cells apart, for example with ${{matrix.{key}}}")),
        None => problem.help("give each its own path"),
    })
}

/// The files of a pipeline that are no results.
fn own_files(pipeline: &Pipeline) -> Vec<(&'static str, PathBuf)> {
    let lock = pipeline.folders.file.join(format!("{}.lock", pipeline.source.stem()));
    let mut files = vec![("its lock file", lock), ("its accepted values", pipeline.accepted_file())];
    files.extend(pipeline.file().map(|file| ("its own pipeline file", file)));
    files
}

/// A path without `.` and `..`, as far as that can be told without looking.
pub(crate) fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir if plain.file_name().is_some() => drop(plain.pop()),
            component => plain.push(component),
        }
    }
    plain
}
