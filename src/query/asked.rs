//! The questions of pipeline files.

use hopmap_query::{Answer, Complaint, Form, QueryError, Tables, sql_name};
use miette::Report;

use super::AnsweredTable;
use super::tables::{CELLS, RUNS, tables};
use crate::engine::{Catalogue, RunSummary, Store};
use crate::pipeline::{Pipeline, Problem, Problems, TableQuestion};

/// Rows that are printed after a run and shown in its report.
const ROWS: usize = 40;

/// What is wrong with a question, as far as that can be known before there are results.
pub fn check(sql: &str, stages: &[&str]) -> Result<(), Problem> {
    let names: Vec<String> = stages.iter().map(|stage| sql_name(stage)).collect();
    let builtin = [CELLS, RUNS].map(str::to_owned);
    let known: Vec<&str> = names.iter().chain(&builtin).map(String::as_str).collect();
    // Which tables the artifacts of a stage have is not known before it ran.
    let is_table = |name: &str| {
        let name = sql_name(name);
        let of_stage = |stage: &String| name.strip_prefix(stage).is_some_and(|rest| rest.starts_with('_'));
        known.contains(&name.as_str()) || names.iter().any(of_stage)
    };
    hopmap_query::check(sql, is_table, &known).map_err(problem)
}

/// What is wrong with a question as a problem with its text.
#[must_use]
pub fn problem(complaint: Complaint) -> Problem {
    let Complaint { message, span, label, help } = complaint;
    Problem { message, span, label, help }
}

/// Asks the questions of a pipeline about what there is of it now, and saves the answers. Says what is wrong with the others.
pub fn ask(
    pipeline: &Pipeline,
    store: &Store,
    catalogue: &Catalogue,
    runs: &[RunSummary],
) -> (Vec<AnsweredTable>, Option<Problems>) {
    let tables = tables(store, std::slice::from_ref(catalogue), runs);
    let mut problems = Vec::new();
    let mut answers = Vec::new();
    for question in &pipeline.tables {
        match answer(&tables, question) {
            Ok(answer) => answers.push(answer),
            Err(problem) => problems.push(question.located(problem, pipeline.source.text())),
        }
    }
    let problems = (!problems.is_empty()).then(|| pipeline.source.tie(problems));
    (answers, problems)
}

fn answer(tables: &Tables, question: &TableQuestion) -> Result<AnsweredTable, Problem> {
    let answer = tables.query(&question.sql, None).map_err(|error| match error {
        QueryError::Sql(complaint) => problem(complaint),
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
