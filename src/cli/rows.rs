//! Tables of artifacts for `hopmap show`: aligned, as CSV, or as one JSON object per line.

use arrow_array::RecordBatch;
use hopmap_artifact::{Cell, TableReader};
use miette::{IntoDiagnostic, Report};
use serde_json::Value;

use super::output::Output;

/// How a table is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    /// Columns in a frame, for people.
    Aligned,
    /// A header, then comma-separated values; missing ones are empty.
    Csv,
    /// One object per row without its missing values.
    Json,
}

/// Prints the first `most` rows. CSV and JSON go out batch by batch; aligned columns need all rows to know their width.
pub(super) fn print(reader: TableReader, layout: Layout, most: usize, output: Output) -> Result<(), Report> {
    let names: Vec<String> = reader.schema().fields().iter().map(|field| field.name().clone()).collect();
    let mut aligned = vec![names.clone()];
    if layout == Layout::Csv {
        output.raw(&csv([&names])?);
    }
    let mut left = most;
    for batch in reader {
        if left == 0 {
            break;
        }
        let batch = batch?;
        let batch = batch.slice(0, left.min(batch.num_rows()));
        left -= batch.num_rows();
        match layout {
            Layout::Aligned => aligned.extend(texts(&batch)),
            Layout::Csv => output.raw(&csv(texts(&batch))?),
            Layout::Json => output.raw(json(&names, &batch).as_bytes()),
        }
    }
    if layout == Layout::Aligned {
        output.raw(frame(&aligned).as_bytes());
    }
    Ok(())
}

fn texts(batch: &RecordBatch) -> impl Iterator<Item = Vec<String>> {
    let row = |row| batch.columns().iter().map(|column| Cell::of(column, row).to_string()).collect();
    (0..batch.num_rows()).map(row)
}

fn csv<R: IntoIterator<Item: AsRef<[u8]>>>(rows: impl IntoIterator<Item = R>) -> Result<Vec<u8>, Report> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    rows.into_iter().try_for_each(|row| writer.write_record(row)).into_diagnostic()?;
    writer.into_inner().into_diagnostic()
}

/// Keys stand in the order of the columns, which a `serde_json::Map` would not keep.
fn json(names: &[String], batch: &RecordBatch) -> String {
    let keys: Vec<Value> = names.iter().map(|name| Value::from(name.as_str())).collect();
    let object = |row| {
        let values = batch.columns().iter().map(|column| Cell::of(column, row).json());
        let present = keys.iter().zip(values).filter(|(_, value)| !value.is_null());
        let pairs: Vec<String> = present.map(|(key, value)| format!("{key}:{value}")).collect();
        format!("{{{}}}\n", pairs.join(","))
    };
    (0..batch.num_rows()).map(object).collect()
}

/// Rows in a frame of `+`, `-` and `|`; the first one is the header.
fn frame(rows: &[Vec<String>]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..rows[0].len()).map(width).collect();
    let rule: Vec<String> = widths.iter().map(|width| "-".repeat(width + 2)).collect();
    let line = |row: &Vec<String>| {
        let cells: Vec<String> =
            row.iter().zip(&widths).map(|(text, width)| format!(" {text:<width$} ")).collect();
        format!("|{}|\n", cells.join("|"))
    };
    let body: String = rows[1..].iter().map(line).collect();
    let rule = format!("+{}+\n", rule.join("+"));
    let end = if body.is_empty() { "" } else { &rule };
    format!("{rule}{}{rule}{body}{end}", line(&rows[0]))
}
