//! Whether copies would replace what is not theirs.

use std::path::{Path, PathBuf};

use miette::Diagnostic;

use super::identity::PipelineId;
use super::outcome::RunReport;
use super::place::{InTheWay, Standing, look_at_file};
use super::plan::plan;
use super::save::{hash_of, look, only_file};
use super::store::Store;
use crate::pipeline::{Cell, Pipeline, Problem, Problems, Save, plain};

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
        let mut standing = look(save, None, &id, store);
        if standing.is_err() {
            // It may be the copy of the result that there is.
            let planned = planned.get_or_insert_with(|| plan(pipeline, store));
            let record =
                planned.cells[index].outputs.get(save.output).filter(|_| planned.cells[index].is_usable());
            if let Some(record) = record {
                standing = look(save, Some(record), &id, store);
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
        let standing = look_at_file(path, None, &id, store);
        problems.extend(standing.err().map(|in_the_way| located(&in_the_way, span)));
    }
    if problems.is_empty() { Ok(()) } else { Err(pipeline.source.tie(problems)) }
}

/// Whether something is the copy of what a cell gave last, as older versions made them, which wrote nothing down about copies. From now
/// on the store knows it.
fn is_of_last_result(save: &Save, cell: &Cell, id: &PipelineId, store: &mut Store) -> bool {
    let result = store.current(id, &cell.id).and_then(|key| store.result(key));
    let Some(record) = result.and_then(|result| result.outputs.get(save.output)).cloned() else {
        return false;
    };
    let blake3 = match only_file(&record) {
        Some(name) => hash_of(&record, name, store),
        None => Some(record.digest.clone()),
    };
    let is_same = look(save, Some(&record), id, store).is_ok_and(|standing| standing == Standing::Same);
    if let Some(blake3) = blake3.filter(|_| is_same) {
        store.know_saved(id, &save.path, &blake3);
        return true;
    }
    false
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
