//! Copies of outputs for people.

use std::path::{Path, PathBuf};

use hopmap_artifact::{DESCRIPTION, Folder, PROVENANCE};
use hopmap_durable::{Staging, copy_file};
use hopmap_model::{Artifact, LaunchFile, TextFile};
use miette::{Diagnostic, Report};
use serde::Serialize;

use super::identity::PipelineId;
use super::outcome::RunReport;
use super::place::{InTheWay, Standing, look_at_file, look_at_folder, mark};
use super::plan::plan;
use super::record::OutputRecord;
use super::store::{Store, StoreError};
use super::walk::{Settled, State};
use super::writer::Writer;
use crate::pipeline::{Cell, Pipeline, Problem, Problems, Save, plain};

/// A copy of an output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Saved {
    /// The output port.
    pub output: String,
    /// Where the copy is.
    pub path: PathBuf,
    /// Whether it had to be written, or would have to be.
    pub written: bool,
}

/// Refuses a pipeline whose copies would replace what is not theirs. Nothing runs for it: of a stage that has no result yet it is
/// not known what the copy will be.
pub fn check_saves(pipeline: &Pipeline, store: &mut Store) -> Result<(), Problems> {
    let is_there = |path: &Path| path.symlink_metadata().is_ok();
    let saves = pipeline.cells.iter().enumerate().flat_map(|(index, cell)| {
        cell.saves.iter().filter(|save| is_there(&save.path)).map(move |save| (index, save))
    });
    let saves: Vec<(usize, &Save)> = saves.collect();
    let tables =
        pipeline.tables.iter().filter_map(|table| table.save.as_ref().map(|save| (save, &table.save_span)));
    let tables: Vec<_> = tables.filter(|(path, _)| is_there(path)).collect();
    if saves.is_empty() && tables.is_empty() {
        return Ok(());
    }
    let mut problems = inputs_in_the_way(pipeline, &saves);
    let id = PipelineId::of(pipeline, store.root());
    let mut planned: Option<RunReport> = None;
    for (index, save) in saves {
        let mut standing = look(save, None, &pipeline.name, store);
        if standing.is_err() {
            // It may be the copy of the result that there is.
            let planned = planned.get_or_insert_with(|| plan(pipeline, store));
            let record =
                planned.cells[index].outputs.get(save.output).filter(|_| planned.cells[index].is_usable());
            if let Some(record) = record {
                standing = look(save, Some(record), &pipeline.name, store);
            }
        }
        if !matches!(standing, Ok(Standing::Same | Standing::Ours))
            && is_of_last_result(save, &pipeline.cells[index], &id, store)
        {
            standing = Ok(Standing::Ours);
        }
        problems.extend(standing.err().map(|in_the_way| located(&in_the_way, &save.span)));
    }
    for (path, span) in tables {
        let standing = look_at_file(path, None, &pipeline.name, store);
        problems.extend(standing.err().map(|in_the_way| located(&in_the_way, span)));
    }
    if problems.is_empty() { Ok(()) } else { Err(pipeline.source.tie(problems)) }
}

/// Whether a file is the copy of what a cell gave last, as older versions made them, which wrote nothing down about copies. From now
/// on the store knows it.
fn is_of_last_result(save: &Save, cell: &Cell, id: &PipelineId, store: &mut Store) -> bool {
    let result = store.current(id, &cell.id).and_then(|key| store.result(key));
    let Some(record) = result.and_then(|result| result.outputs.get(save.output)).cloned() else {
        return false;
    };
    let Some(blake3) = only_file(&record).and_then(|name| hash_of(&record, name, store)) else {
        return false;
    };
    let is_same = look(save, Some(&record), &id.name, store).is_ok_and(|standing| standing == Standing::Same);
    if is_same {
        store.know_saved(&id.name, &save.path, &blake3);
    }
    is_same
}

fn located(in_the_way: &InTheWay, span: &std::ops::Range<usize>) -> Problem {
    let problem = Problem::new(in_the_way.to_string(), span);
    match in_the_way.help() {
        Some(help) => problem.help(help.to_string()),
        None => problem,
    }
}

/// Copies that would replace an input of their own pipeline.
fn inputs_in_the_way(pipeline: &Pipeline, saves: &[(usize, &Save)]) -> Vec<Problem> {
    let places: Vec<(PathBuf, &Save)> = saves.iter().map(|(_, save)| (plain(&save.path), *save)).collect();
    let mut problems = Vec::new();
    for cell in &pipeline.cells {
        let files =
            cell.ready_parameters().and_then(|parameters| parameters.reads().ok()).unwrap_or_default();
        for file in files {
            let file = plain(file.path());
            for (_, save) in places.iter().filter(|(place, _)| file.starts_with(place)) {
                let message = format!("{} is an input of `{}`", file.display(), cell.id);
                problems.push(Problem::new(message, &save.span).help("give the copy a path of its own"));
            }
        }
    }
    problems
}

/// Makes the copies that a cell promises; whether that failed. Without a `writer` only says which would be made, as far as nothing
/// is in the way.
pub(super) fn save_outputs(
    cell: &Cell,
    settled: &mut Settled,
    pipeline: &str,
    store: &mut Store,
    mut writer: Option<&mut Writer>,
) -> bool {
    if !settled.is_usable() {
        return false;
    }
    for wish in &cell.saves {
        let Some(record) = settled.outputs.get(wish.output) else { continue };
        let written = match look(wish, Some(record), pipeline, store) {
            Ok(standing) => match writer.as_deref_mut() {
                Some(writer) => save(wish, record, standing, pipeline, store, writer),
                None => Ok(standing != Standing::Same),
            },
            Err(_) if writer.is_none() => continue,
            Err(in_the_way) => Err(in_the_way.into()),
        };
        match written {
            Ok(written) => {
                let (output, path) = (wish.output.to_owned(), wish.path.clone());
                settled.saved.push(Saved { output, path, written });
            }
            Err(error) => {
                settled.state = State::Failed;
                settled.error = Some(error);
                return true;
            }
        }
    }
    false
}

/// Makes all copies of a run that waited for its gates.
pub fn save_all(
    pipeline: &Pipeline,
    store: &mut Store,
    writer: &mut Writer,
    report: &mut RunReport,
) -> Result<(), StoreError> {
    for (cell, settled) in pipeline.cells.iter().zip(&mut report.cells) {
        if save_outputs(cell, settled, &pipeline.name, store, Some(writer)) {
            let failed = std::mem::replace(settled, Settled::new(State::Failed));
            *settled = failed.located(pipeline, cell);
        }
    }
    writer.sync(store)
}

/// Holds all copies of a run or a plan back, as a gate does not hold: notes those that would have been written.
pub fn hold_back(pipeline: &Pipeline, store: &mut Store, report: &mut RunReport) {
    for (cell, settled) in pipeline.cells.iter().zip(&mut report.cells) {
        settled.saved.clear();
        save_outputs(cell, settled, &pipeline.name, store, None);
        let saved = std::mem::take(&mut settled.saved);
        report.held.extend(saved.into_iter().filter(|saved| saved.written).map(|saved| saved.path));
    }
    report.held.extend(pipeline.tables.iter().filter_map(|table| table.save.clone()));
}

/// Puts a file that was made aside into the place of a copy.
pub fn save_file(
    made: &Path,
    path: &Path,
    pipeline: &str,
    store: &mut Store,
    writer: &mut Writer,
) -> Result<(), Report> {
    let blake3 = store.hashes.blake3_of(made)?;
    let standing = look_at_file(path, Some(&blake3), pipeline, store)?;
    put(made, path, &blake3, standing, (pipeline, store, writer))?;
    Ok(())
}

/// What is in the place of a copy.
fn look(
    wish: &Save,
    record: Option<&OutputRecord>,
    pipeline: &str,
    store: &mut Store,
) -> Result<Standing, InTheWay> {
    let path = &wish.path;
    let Some(record) = record else {
        let is_file = [LaunchFile::KIND, TextFile::KIND].contains(&wish.kind) || path.is_file();
        return match is_file {
            true => look_at_file(path, None, pipeline, store),
            false => look_at_folder(path, None, pipeline, store),
        };
    };
    match only_file(record) {
        Some(name) => {
            let wanted = hash_of(record, name, store);
            // Its bytes are not known only where the artifact is damaged, which is found when it is copied.
            look_at_file(path, Some(wanted.as_deref().unwrap_or_default()), pipeline, store)
        }
        None => look_at_folder(path, Some(record), pipeline, store),
    }
}

/// The file of an artifact that is nothing but a file.
fn only_file(record: &OutputRecord) -> Option<&str> {
    let mut files = record.files.iter().map(|(name, _)| name.as_str()).filter(|name| *name != DESCRIPTION);
    let file = files.next()?.strip_prefix("files/")?;
    files.next().is_none().then_some(file)
}

/// The BLAKE3 of a file of an artifact.
fn hash_of(record: &OutputRecord, name: &str, store: &Store) -> Option<String> {
    let folder = Folder::open(&store.artifact(&record.digest)).ok()?;
    folder.description().files.get(name).cloned()
}

/// Makes a copy unless it is there; whether it had to be written.
fn save(
    wish: &Save,
    record: &OutputRecord,
    standing: Standing,
    pipeline: &str,
    store: &mut Store,
    writer: &mut Writer,
) -> Result<bool, Report> {
    let source = store.artifact(&record.digest);
    let path = &wish.path;
    if let Some(name) = only_file(record) {
        let made = source.join("files").join(name);
        let blake3 = match hash_of(record, name, store) {
            Some(blake3) => blake3,
            None => store.hashes.blake3_of(&made)?,
        };
        return put(&made, path, &blake3, standing, (pipeline, store, writer));
    }
    // Before it is written: what a killed process leaves is ours as well.
    writer.saved(store, pipeline, path, &record.digest)?;
    if standing == Standing::Same {
        return Ok(false);
    }
    let staging = Staging::beside(path)?;
    for (name, _) in &record.files {
        copy_file(&source.join(name), &staging.path().join(name))?;
    }
    let provenance = source.join(PROVENANCE);
    if provenance.is_file() {
        copy_file(&provenance, &staging.path().join(PROVENANCE))?;
    }
    staging.commit(path)?;
    Ok(true)
}

fn put(
    made: &Path,
    path: &Path,
    blake3: &str,
    standing: Standing,
    (pipeline, store, writer): (&str, &mut Store, &mut Writer),
) -> Result<bool, Report> {
    writer.saved(store, pipeline, path, blake3)?;
    if standing == Standing::Same {
        return Ok(false);
    }
    copy_file(made, path)?;
    mark(path, pipeline, blake3);
    Ok(true)
}
