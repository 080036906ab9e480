//! Copies of outputs for people.

use std::path::Path;

use hopmap_artifact::{DESCRIPTION, Folder, PROVENANCE};
use hopmap_durable::{Staging, copy_file};
use hopmap_model::{Artifact, LaunchFile, TextFile};
use miette::Report;

use super::identity::PipelineId;
use super::outcome::RunReport;
use super::place::{InTheWay, Standing, look_at_file, look_at_folder, mark};
use super::record::OutputRecord;
use super::settled::{Saved, Settled, State};
use super::store::{Store, StoreError};
use super::writer::Writer;
use crate::pipeline::{Cell, Pipeline, Save};

/// Makes the copies that a cell promises; whether that failed. Without a `writer` only says which would be made, as far as nothing
/// is in the way.
pub(super) fn save_outputs(
    cell: &Cell,
    settled: &mut Settled,
    pipeline: &PipelineId,
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
    let id = PipelineId::of(pipeline, store.root());
    for (cell, settled) in pipeline.cells.iter().zip(&mut report.cells) {
        if save_outputs(cell, settled, &id, store, Some(writer)) {
            let failed = std::mem::replace(settled, Settled::new(State::Failed));
            *settled = failed.located(pipeline, cell);
        }
    }
    writer.sync(store)
}

/// Holds all copies of a run or a plan back, as a gate does not hold: notes those that would have been written.
pub fn hold_back(pipeline: &Pipeline, store: &mut Store, report: &mut RunReport) {
    let id = PipelineId::of(pipeline, store.root());
    for (cell, settled) in pipeline.cells.iter().zip(&mut report.cells) {
        settled.saved.clear();
        save_outputs(cell, settled, &id, store, None);
        let saved = std::mem::take(&mut settled.saved);
        report.held.extend(saved.into_iter().filter(|saved| saved.written).map(|saved| saved.path));
    }
    report.held.extend(pipeline.tables.iter().filter_map(|table| table.save.clone()));
}

/// Puts a file that was made aside into the place of a copy.
pub fn save_file(
    made: &Path,
    path: &Path,
    pipeline: &Pipeline,
    store: &mut Store,
    writer: &mut Writer,
) -> Result<(), Report> {
    let id = PipelineId::of(pipeline, store.root());
    let blake3 = store.hashes.blake3_of(made)?;
    let standing = look_at_file(path, Some(&blake3), &id, store)?;
    put(made, path, &blake3, standing, (&id, store, writer))?;
    Ok(())
}

/// What is in the place of a copy.
pub(super) fn look(
    wish: &Save,
    record: Option<&OutputRecord>,
    pipeline: &PipelineId,
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
pub(super) fn only_file(record: &OutputRecord) -> Option<&str> {
    let mut files = record.files.iter().map(|(name, _)| name.as_str()).filter(|name| *name != DESCRIPTION);
    let file = files.next()?.strip_prefix("files/")?;
    files.next().is_none().then_some(file)
}

/// The BLAKE3 of a file of an artifact.
pub(super) fn hash_of(record: &OutputRecord, name: &str, store: &Store) -> Option<String> {
    let folder = Folder::open(&store.artifact(&record.digest)).ok()?;
    folder.description().files.get(name).cloned()
}

/// Makes a copy unless it is there; whether it had to be written.
fn save(
    wish: &Save,
    record: &OutputRecord,
    standing: Standing,
    pipeline: &PipelineId,
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
    mark(&staging.path().join(DESCRIPTION), path, (pipeline, store.root()), &record.digest);
    staging.commit(path)?;
    Ok(true)
}

fn put(
    made: &Path,
    path: &Path,
    blake3: &str,
    standing: Standing,
    (pipeline, store, writer): (&PipelineId, &mut Store, &mut Writer),
) -> Result<bool, Report> {
    writer.saved(store, pipeline, path, blake3)?;
    if standing == Standing::Same {
        return Ok(false);
    }
    copy_file(made, path)?;
    mark(path, path, (pipeline, store.root()), blake3);
    Ok(true)
}
