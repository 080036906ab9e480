//! What a pipeline file asks after a run: asked, and printed.

use hopmap_command::shown;

use super::output::Output;
use crate::engine::{Catalogue, RunReport, Store, Writer, save_file};
use crate::pipeline::{Pipeline, Problem, Problems, TableQuestion};
use crate::query::{self, AnsweredTable};

/// Asks the questions and keeps the answers in the report; with a `writer` saves them. Gives what is wrong with a question, which
/// ends no run.
pub(crate) fn ask(
    pipeline: &Pipeline,
    store: &mut Store,
    mut writer: Option<&mut Writer>,
    report: &mut RunReport,
) -> Option<Problems> {
    if pipeline.tables.is_empty() {
        return None;
    }
    let catalogue = Catalogue::of_report(store, pipeline, report);
    let work = store.work();
    // Answers are made aside: whether one may stand in its place is for the store to say.
    let aside = |question: &TableQuestion| {
        let form = question.save.as_ref().filter(|_| writer.is_some())?.extension()?;
        Some(work.join(format!("table-{}", question.name)).with_extension(form))
    };
    let mut asked = pipeline.tables.clone();
    asked.iter_mut().for_each(|question| question.save = aside(question));
    let answers = query::answer(&asked, store.root(), catalogue);
    let mut problems = Vec::new();
    for (question, answer) in pipeline.tables.iter().zip(answers) {
        let saved = answer.and_then(|table| match writer.as_deref_mut() {
            Some(writer) => save(table, question, pipeline, store, writer),
            None => Ok(table),
        });
        match saved {
            Ok(table) => report.tables.push(table),
            Err(problem) => problems.push(question.located(problem, pipeline.source.text())),
        }
    }
    (!problems.is_empty()).then(|| pipeline.source.tie(problems))
}

/// Puts an answer that was made aside into its place.
fn save(
    table: AnsweredTable,
    question: &TableQuestion,
    pipeline: &Pipeline,
    store: &mut Store,
    writer: &mut Writer,
) -> Result<AnsweredTable, Problem> {
    let (Some(made), Some(place)) = (&table.saved, &question.save) else { return Ok(table) };
    save_file(made, place, pipeline, store, writer).map_err(|error| {
        let causes: Vec<String> = error.chain().map(ToString::to_string).collect();
        let problem = Problem::new(causes.join(": "), &(0..question.sql.len()));
        match error.help() {
            Some(help) => problem.help(help.to_string()),
            None => problem,
        }
    })?;
    Ok(AnsweredTable { saved: Some(place.clone()), ..table })
}

/// Prints the answers.
pub(crate) fn print(report: &RunReport, output: Output) {
    for table in &report.tables {
        let place = table.saved.as_ref().map(|path| format!(" in {}", shown(path))).unwrap_or_default();
        output.line(format!("  {:<12} {} rows{place}", table.name, table.all_rows));
        aligned(&table.columns, &table.rows).into_iter().for_each(|line| output.line(format!("    {line}")));
        if table.rows.len() < table.all_rows {
            output.line(format!("    … and {} more", table.all_rows - table.rows.len()));
        }
    }
}

/// Columns side by side, numbers at their right end.
pub(super) fn aligned(columns: &[String], body: &[Vec<String>]) -> Vec<String> {
    let rows = || std::iter::once(columns).chain(body.iter().map(Vec::as_slice));
    let width = |column: usize| rows().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns.len()).map(width).collect();
    let is_number = |text: &str| {
        let digits = text.trim_end_matches(" %").replace(',', "");
        digits.is_empty() || digits.parse::<f64>().is_ok()
    };
    let numbers: Vec<bool> =
        (0..columns.len()).map(|column| body.iter().all(|row| is_number(&row[column]))).collect();
    let line = |row: &[String]| {
        let texts =
            row.iter().zip(&widths).zip(&numbers).map(|((text, &width), is_number)| match is_number {
                true => format!("{text:>width$}"),
                false => format!("{text:<width$}"),
            });
        texts.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows().map(line).collect()
}
