//! The questions of pipeline files.

use std::path::Path;

use hopmap::engine::{Catalogue, Store, StoreError, read_runs};
use hopmap::query::{AnsweredTable, Form, QueryRequest, TableQuestion};
use hopmap::source::Problem;
use hopmap_model::InternalError;
use miette::Report;

use crate::answer::Answer;
use crate::error::QueryError;
use crate::stored::{CELLS, RUNS, tables};
use crate::tables::{Tables, sql_name};

/// Rows that are printed after a run and shown in its report.
const ROWS: usize = 40;

/// Reads what is asked as JSON and writes a `Result` for every question.
pub fn reply(request: &[u8]) -> Result<Vec<u8>, Report> {
    let wrong = |error: serde_json::Error| InternalError::new(format!("not a request: {error}"));
    Ok(match serde_json::from_slice(request).map_err(wrong)? {
        QueryRequest::Check { stages, questions } => {
            let checked = questions.iter().map(|sql| check(sql, &stages));
            serde_json::to_vec(&checked.collect::<Vec<_>>())
        }
        QueryRequest::Answer { store, catalogue, questions } => {
            let tables = tables_of(&store, catalogue)?;
            let answers = questions.iter().map(|question| answer(&tables, question));
            serde_json::to_vec(&answers.collect::<Vec<_>>())
        }
    }
    .map_err(|error| InternalError::new(format!("the answers cannot be written as JSON: {error}")))?)
}

fn check(sql: &str, stages: &[String]) -> Result<(), Problem> {
    let names: Vec<String> = stages.iter().map(|stage| sql_name(stage)).collect();
    let known: Vec<&str> = names.iter().map(String::as_str).chain([CELLS, RUNS]).collect();
    // Which tables the artifacts of a stage have is not known before it ran.
    let is_table = |name: &str| {
        let name = sql_name(name);
        let of_stage = |stage: &String| name.strip_prefix(stage).is_some_and(|rest| rest.starts_with('_'));
        known.contains(&name.as_str()) || names.iter().any(of_stage)
    };
    crate::tables::check(sql, is_table, &known)
}

fn tables_of(store: &Path, mut catalogue: Catalogue) -> Result<Tables, StoreError> {
    let store = Store::load(store)?;
    catalogue.look_up(&store);
    let mut runs = read_runs(&store)?;
    runs.retain(|run| catalogue.has(run));
    Ok(tables(&store, &[catalogue], &runs))
}

fn answer(tables: &Tables, question: &TableQuestion) -> Result<AnsweredTable, Problem> {
    let answer = tables.query(&question.sql, None).map_err(|error| match error {
        QueryError::Sql(problem) => problem,
        error => whole(question, error.to_string()),
    })?;
    save(&answer, question)?;
    let columns = answer.schema().fields().iter().map(|field| field.name().clone()).collect();
    Ok(AnsweredTable {
        name: question.name.clone(),
        columns,
        rows: answer.texts(ROWS),
        all_rows: answer.rows(),
        saved: question.save.clone(),
    })
}

/// Writes the answer, unless it is there already.
fn save(answer: &Answer, question: &TableQuestion) -> Result<(), Problem> {
    let Some(path) = &question.save else { return Ok(()) };
    let form = Form::of_path(path).unwrap_or(Form::Csv);
    let bytes = answer.encode(form).map_err(|error| whole(question, error.to_string()))?;
    if std::fs::read(path).is_ok_and(|there| there == bytes) {
        return Ok(());
    }
    let written = hopmap_durable::replace_file(path, &bytes);
    written.map_err(|error| {
        let report = Report::new(error);
        let causes: Vec<String> = report.chain().map(ToString::to_string).collect();
        whole(question, causes.join(": "))
    })
}

fn whole(question: &TableQuestion, message: String) -> Problem {
    Problem::new(message, &(0..question.sql.len()))
}
