//! What a pipeline file asks after a run: asked, and printed.

use super::failure::Failure;
use super::output::Output;
use super::summary::shown;
use crate::engine::{self, Catalogue, RunReport, Store};
use crate::pipeline::{Pipeline, Problems};
use crate::query::{self, AnsweredTable};

/// Asks the questions and keeps the answers in the report. Gives what is wrong with a question, which ends no run.
pub(crate) fn ask(
    pipeline: &Pipeline,
    store: &Store,
    report: &mut RunReport,
) -> Result<Option<Problems>, Failure> {
    if pipeline.tables.is_empty() {
        return Ok(None);
    }
    let catalogue = Catalogue::of_report(store, pipeline, report);
    let mut runs = engine::read_runs(store)?;
    runs.retain(|run| run.pipeline == pipeline.name);
    let (tables, problems) = query::ask(pipeline, store, &catalogue, &runs);
    report.tables = tables;
    Ok(problems)
}

/// Prints the answers.
pub(crate) fn print(report: &RunReport, output: Output) {
    for table in &report.tables {
        let place = table.saved.as_ref().map(|path| format!(" in {}", shown(path))).unwrap_or_default();
        output.line(format!("  {:<12} {} rows{place}", table.name, table.all_rows));
        aligned(table).into_iter().for_each(|line| output.line(format!("    {line}")));
        if table.rows.len() < table.all_rows {
            output.line(format!("    … and {} more", table.all_rows - table.rows.len()));
        }
    }
}

/// Columns side by side, numbers at their right end.
fn aligned(table: &AnsweredTable) -> Vec<String> {
    let rows = || std::iter::once(&table.columns).chain(&table.rows);
    let width = |column: usize| rows().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..table.columns.len()).map(width).collect();
    let is_number = |column: &usize| {
        table.rows.iter().all(|row| row[*column].is_empty() || row[*column].parse::<f64>().is_ok())
    };
    let numbers: Vec<bool> = (0..table.columns.len()).map(|column| is_number(&column)).collect();
    let line = |row: &Vec<String>| {
        let texts =
            row.iter().zip(&widths).zip(&numbers).map(|((text, &width), is_number)| match is_number {
                true => format!("{text:>width$}"),
                false => format!("{text:<width$}"),
            });
        texts.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows().map(line).collect()
}
