//! Where input files go in an archive: where the pipeline finds them under the same names.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use hopmap_artifact::{DESCRIPTION, Folder};
use miette::Report;
use serde_json::Value as Json;

use crate::engine::{RunReport, Store};
use crate::lock::Request;
use crate::pipeline::{Cell, Folders, Pipeline};
use crate::source::Problems;

/// Folders in the archive: of what the pipeline file names, of what the command line names, of absolute paths.
const BASES: [&str; 3] = ["pipeline", "working", "absolute"];

/// The input files of a pipeline.
#[derive(Debug, Default)]
pub(super) struct Inputs {
    /// Files by their name in the archive.
    pub(super) files: BTreeMap<String, InputFile>,
    /// Files that no parameter leads to, by name: they cannot be put where the pipeline finds them.
    pub(super) outside: BTreeMap<String, InputFile>,
    /// Folder in the archive of the pipeline file.
    pub(super) folder: String,
    /// Folder in the archive of the working directory.
    pub(super) working: String,
}

/// A file that some cell reads.
#[derive(Debug, Clone)]
pub(super) struct InputFile {
    /// Where it is.
    pub(super) path: PathBuf,
    /// BLAKE3 of its contents.
    pub(super) blake3: String,
}

/// A path among the parameters of a cell.
struct Named {
    /// Where it leads on this machine.
    path: PathBuf,
    /// Which of [`BASES`] it is seen from.
    base: usize,
    /// How it is written, from there.
    written: PathBuf,
}

/// Finds the input files of all cells and gives them places in the archive.
pub(super) fn collect(
    request: &Request,
    pipeline: &Pipeline,
    store: &mut Store,
    report: &RunReport,
) -> Result<Inputs, Report> {
    let folders = Folders::new(request.folder.clone(), request.working.clone());
    let here = Folders { root: request.root.clone(), ..folders };
    let named: Vec<Vec<Named>> = pipeline.cells.iter().map(|cell| named(pipeline, cell, &here)).collect();
    let depth = |base: usize| {
        named.iter().flatten().filter(|named| named.base == base).map(|named| ups(&named.written)).max()
    };
    let folder = last_names(&request.folder, depth(0).unwrap_or(0));
    let working = last_names(&request.working, depth(1).unwrap_or(0));
    let starts = [folder, working, Vec::new()];
    let text =
        |base: usize| std::iter::once(BASES[base].to_owned()).chain(starts[base].clone()).collect::<Vec<_>>();
    let mut inputs = Inputs { folder: text(0).join("/"), working: text(1).join("/"), ..Inputs::default() };
    for (cell, named) in pipeline.cells.iter().zip(&named) {
        // Results of other cells travel with these.
        let records =
            cell.named_artifacts().filter_map(|(index, output)| report.cells[index].outputs.get(output));
        let results: Vec<PathBuf> = records.map(|record| store.artifact(&record.digest)).collect();
        for (path, name) in reads(pipeline, cell, store, report)? {
            if results.iter().any(|folder| path.starts_with(folder)) {
                continue;
            }
            let described = described(&path);
            let file = InputFile { blake3: store.hashes.blake3_of(&path)?, path };
            for (name, file) in std::iter::once((name, file)).chain(described) {
                match place(&file.path, named, &starts) {
                    Some(place) => inputs.files.insert(place, file),
                    None => inputs.outside.insert(name, file),
                };
            }
        }
    }
    Ok(inputs)
}

/// The tables and files of an artifact that a cell reads: the key has only its description, but whoever recomputes the
/// cell again needs them all.
fn described(path: &Path) -> Vec<(String, InputFile)> {
    let folder = path.parent().filter(|_| path.file_name().is_some_and(|name| name == DESCRIPTION));
    let Some(folder) = folder.and_then(|folder| Folder::open(folder).ok()) else { return Vec::new() };
    let file = |(path, blake3): (PathBuf, &str)| {
        let name = path.strip_prefix(folder.path()).unwrap_or(&path).to_string_lossy().into_owned();
        (name, InputFile { path, blake3: blake3.to_owned() })
    };
    folder.hashes().map(file).collect()
}

/// The files that a cell reads, with their names.
fn reads(
    pipeline: &Pipeline,
    cell: &Cell,
    store: &Store,
    report: &RunReport,
) -> Result<Vec<(PathBuf, String)>, Report> {
    let folder = |index: usize, output: &str| {
        let record = report.cells[index].outputs.get(output);
        record.map_or_else(PathBuf::new, |record| store.artifact(&record.digest))
    };
    let files = pipeline.with_parameters(cell, &folder, |configured| configured.reads());
    let files = files.map_err(Problems::first)??;
    Ok(files.iter().map(|file| (file.path().to_owned(), file.name().into_owned())).collect())
}

/// The paths among the parameters of a cell: what looks different from folders of other names is one.
fn named(pipeline: &Pipeline, cell: &Cell, here: &Folders) -> Vec<Named> {
    let marks = BASES.map(|base| PathBuf::from(format!("/hopmap archive/{base}")));
    let elsewhere = Folders { root: Some(marks[2].clone()), ..Folders::new(&marks[0], &marks[1]) };
    let mut found = Vec::new();
    let (ours, theirs) = (pipeline.values_seen_from(cell, here), pipeline.values_seen_from(cell, &elsewhere));
    leaves(&ours, &theirs, &mut |ours, theirs| {
        let base = marks.iter().position(|mark| Path::new(theirs).starts_with(mark));
        if let Some(base) = base
            && let Ok(written) = Path::new(theirs).strip_prefix(&marks[base])
        {
            found.push(Named { path: ours.into(), base, written: written.to_owned() });
        }
    });
    found
}

fn leaves(one: &Json, other: &Json, visit: &mut impl FnMut(&str, &str)) {
    match (one, other) {
        (Json::String(one), Json::String(other)) => visit(one, other),
        (Json::Array(ones), Json::Array(others)) => {
            ones.iter().zip(others).for_each(|(one, other)| leaves(one, other, visit));
        }
        (Json::Object(ones), Json::Object(others)) => {
            ones.values().zip(others.values()).for_each(|(one, other)| leaves(one, other, visit));
        }
        _ => {}
    }
}

/// The place of a file in the archive: its path relative to the parameter that leads to it is that on this machine.
fn place(file: &Path, named: &[Named], starts: &[Vec<String>; 3]) -> Option<String> {
    let canonical = |path: &Path| std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let as_it_is = |path: &Path| path.to_owned();
    let behind = |parameter: &Named, real: &dyn Fn(&Path) -> PathBuf| {
        let (file, path) = (real(file), real(&parameter.path));
        let leading = walk(starts[parameter.base].clone(), &parameter.written)?;
        // Below the folder, or next to the file, that is named.
        let (folder, leading) = match file.strip_prefix(&path) {
            Ok(_) => (path, leading),
            Err(_) => (path.parent()?.to_owned(), leading[..leading.len().saturating_sub(1)].to_vec()),
        };
        let rest = file.strip_prefix(&folder).ok()?.to_owned();
        Some((folder.components().count(), parameter.base, walk(leading, &rest)?))
    };
    let nearest = |real: &dyn Fn(&Path) -> PathBuf| {
        named.iter().filter_map(|parameter| behind(parameter, real)).max_by_key(|found| found.0)
    };
    let (_, base, parts) = nearest(&as_it_is).or_else(|| nearest(&canonical))?;
    let place = std::iter::once(BASES[base].to_owned()).chain(parts).collect::<Vec<_>>().join("/");
    super::flaw(&place).is_none().then_some(place)
}

/// Follows a path from some names; none if it has a name that is not text.
fn walk(mut names: Vec<String>, path: &Path) -> Option<Vec<String>> {
    for component in path.components() {
        match component {
            Component::Normal(name) => names.push(name.to_str()?.to_owned()),
            Component::ParentDir => drop(names.pop()),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    Some(names)
}

/// How far above its beginning a path leads.
fn ups(path: &Path) -> usize {
    let (mut depth, mut highest) = (0_i64, 0_i64);
    for component in path.components() {
        match component {
            Component::Normal(_) => depth += 1,
            Component::ParentDir => depth -= 1,
            _ => {}
        }
        highest = highest.max(-depth);
    }
    usize::try_from(highest).unwrap_or(0)
}

/// The last names of a folder.
fn last_names(folder: &Path, count: usize) -> Vec<String> {
    let folder = std::fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    let name = |component: Component<'_>| match component {
        Component::Normal(name) => Some(name.to_string_lossy().into_owned()),
        _ => None,
    };
    let names: Vec<String> = folder.components().filter_map(name).collect();
    names[names.len().saturating_sub(count)..].to_vec()
}

/// Names of the folders that hold inputs.
pub(super) fn is_input(name: &str) -> bool {
    name.split_once('/').is_some_and(|(base, _)| BASES.contains(&base))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_stands_where_its_parameter_leads() {
        let named = |path: &str, written: &str| Named { path: path.into(), base: 0, written: written.into() };
        let starts = [vec!["pipelines".to_owned()], Vec::new(), Vec::new()];
        let parameter = [named("/p/pipelines/../traces/lu/a.otf2", "../traces/lu/a.otf2")];
        let placed = |file: &str| place(Path::new(file), &parameter, &starts);
        assert_eq!(placed("/p/pipelines/../traces/lu/a.otf2").unwrap(), "pipeline/traces/lu/a.otf2");
        assert_eq!(placed("/p/pipelines/../traces/lu/a/0.evt").unwrap(), "pipeline/traces/lu/a/0.evt");
        assert_eq!(placed("/elsewhere/x"), None);
    }

    #[test]
    fn the_highest_point_of_a_path_is_known() {
        assert_eq!(ups(Path::new("a/b")), 0);
        assert_eq!(ups(Path::new("../a/../../b")), 2);
        assert_eq!(ups(Path::new("a/../b")), 0);
    }
}
