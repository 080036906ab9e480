//! `hopmap show`: an artifact or one of its tables.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::RecordBatch;
use clap::{Args, ValueEnum};
use hopmap_artifact::{ArtifactError, Folder};
use miette::{IntoDiagnostic, Report};

use super::cells;
use super::exit::Exit;
use super::failure::{Failure, Mistake};
use super::open::{StoreArguments, working_directory};
use super::output::Output;
use super::provenance::{self, Form};
use super::summary::shown;
use crate::engine::Store;

/// Rows of a table that are shown unless all are asked for.
const ROWS: usize = 20;

/// Arguments of `show`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hopmap show placement
  hopmap show lu.graph --table edges --format csv > edges.csv
  hopmap show --provenance out/rankfile             # which run made this file, and from what
  hopmap show --provenance placement --format dot | dot -Tsvg > placement.svg")]
pub(crate) struct Arguments {
    /// Folder of an artifact, the first digits of its digest, or a stage or cell (`placement[seed=3]`) whose newest output is
    /// wanted; with --provenance also a launch file or another file that a pipeline saved.
    artifact: String,
    /// Tell where it comes from: every stage, parameter and input file behind it.
    #[arg(long, conflicts_with_all = ["table", "limit"])]
    provenance: bool,
    /// Table to print.
    #[arg(short, long)]
    table: Option<String>,
    /// Form of the table.
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    format: Format,
    /// Rows to print; CSV and JSON have all unless this is given.
    #[arg(long, value_name = "ROWS")]
    limit: Option<usize>,
    #[command(flatten)]
    store: StoreArguments,
}

/// Form of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Aligned columns for people.
    Table,
    /// Comma-separated values with a header.
    Csv,
    /// One JSON object per row and line; of a provenance one graph.
    Json,
    /// A graph in DOT, of a provenance.
    Dot,
}

pub(crate) fn main(arguments: &Arguments, output: Output) -> Result<Exit, Failure> {
    if arguments.provenance {
        let form = match arguments.format {
            _ if output.is_json() => Form::Json,
            Format::Table => Form::Tree,
            Format::Json => Form::Json,
            Format::Dot => Form::Dot,
            Format::Csv => {
                return Err(Mistake::new("a provenance is no table", "--format json or --format dot").into());
            }
        };
        provenance::print(&arguments.artifact, &arguments.store, form, output)?;
        return Ok(Exit::Done);
    }
    if arguments.format == Format::Dot {
        let hint = "`hopmap show --provenance ARTIFACT --format dot` draws where it comes from";
        return Err(Mistake::new("a table has no form in DOT", hint).into());
    }
    let folder = Folder::open(&locate(&arguments.artifact, &arguments.store)?).map_err(Failure::usage)?;
    match &arguments.table {
        None => describe(&folder, output)?,
        Some(table) => {
            let format = if output.is_json() { Format::Json } else { arguments.format };
            print_table(&folder, table, format, arguments.limit, output)?;
        }
    }
    Ok(Exit::Done)
}

/// The folder of an artifact that is named by its folder, its digest or its stage.
pub(crate) fn locate(name: &str, store: &StoreArguments) -> Result<PathBuf, Failure> {
    let path = working_directory()?.join(name);
    if path.exists() {
        return Ok(path);
    }
    let store = Store::load(&store.root_here()?)?;
    let mut found = stored(&store, name)?;
    found.sort();
    found.dedup();
    match found.as_slice() {
        [digest] => Ok(store.artifact(digest)),
        [] => Err(Mistake::new(
            format!("there is no artifact, digest or stage `{name}`"),
            format!("stages of {}: {}", shown(store.root()), stage_names(&store)),
        )
        .into()),
        several => {
            let names: Vec<&str> = several.iter().map(|digest| &digest[..12]).collect();
            let message = format!("`{name}` stands for {} artifacts", several.len());
            Err(Mistake::new(message, format!("name one by its digest: {}", names.join(", "))).into())
        }
    }
}

/// Outputs of the cell of that name, else digests that begin with it.
fn stored(store: &Store, name: &str) -> Result<Vec<String>, Mistake> {
    let (cells, port) = cells::in_store(name, store)?;
    let results = cells.into_iter().filter_map(|current| store.result(&current.key));
    let outputs = results.flat_map(|result| result.outputs.iter());
    let wanted = outputs.filter(|(output, _)| port.is_none_or(|port| port == *output));
    let found: Vec<String> = wanted.map(|(_, record)| record.digest.clone()).collect();
    if !found.is_empty() {
        return Ok(found);
    }
    let is_digest = name.len() >= 4 && name.chars().all(|letter| letter.is_ascii_hexdigit());
    let digests =
        store.results().flat_map(|result| result.outputs.values()).map(|record| record.digest.clone());
    Ok(digests.filter(|digest| is_digest && digest.starts_with(name)).collect())
}

fn stage_names(store: &Store) -> String {
    let mut names: Vec<&str> = store.all_current().map(|(_, _, current)| current.stage.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    names.truncate(20);
    if names.is_empty() { "none yet".to_owned() } else { names.join(", ") }
}

fn describe(folder: &Folder, output: Output) -> Result<(), Failure> {
    let description = folder.description();
    if output.is_json() {
        let value =
            serde_json::json!({ "path": folder.path(), "digest": folder.digest(), "artifact": description });
        output.json(&value);
    }
    output.line(format!("{}  {}", description.kind, shown(folder.path())));
    output.line(format!("digest  {}", folder.digest()));
    for (name, value) in &description.metrics {
        output.line(format!("  {name:<28} {value}"));
    }
    for (name, value) in &description.attributes {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        output.line(format!("  {name:<28} {text}"));
    }
    for (name, table) in &description.tables {
        let table_reader = folder.stream(name).map_err(Report::new)?;
        let names: Vec<&str> =
            table_reader.schema().fields().iter().map(|field| field.name().as_str()).collect();
        let columns = names.join(", ");
        output.line(format!("table {name}: {} rows ({columns})", table.rows));
    }
    for name in description.files.keys() {
        output.line(format!("file {}", shown(&folder.file_path(name))));
    }
    Ok(())
}

fn print_table(
    folder: &Folder,
    table: &str,
    format: Format,
    limit: Option<usize>,
    output: Output,
) -> Result<(), Failure> {
    folder.verify_table(table).map_err(failure)?;
    let reader = folder.stream(table).map_err(failure)?;
    let rows = reader.rows();
    let shown = limit.unwrap_or(if format == Format::Table { ROWS } else { rows }).min(rows);
    let mut printer = Printer::new(format, output);
    printer.print(&RecordBatch::new_empty(Arc::clone(reader.schema())))?;
    let mut left = shown;
    for batch in reader {
        if left == 0 {
            break;
        }
        let batch = batch.map_err(Report::new)?;
        let batch = batch.slice(0, left.min(batch.num_rows()));
        left -= batch.num_rows();
        printer.print(&batch)?;
    }
    printer.end()?;
    if shown < rows && format == Format::Table {
        output.note(format!("{shown} of {rows} rows; --limit {rows} shows all"));
    }
    Ok(())
}

/// A table that there is not is a mistake in the command, a damaged one is none.
fn failure(error: ArtifactError) -> Failure {
    match error {
        ArtifactError::NoTable { .. } => Failure::usage(error),
        error => Failure::Failed(Report::new(error)),
    }
}

/// Prints a table batch by batch, but for aligned columns, whose width only all rows tell.
enum Printer {
    Table(Vec<RecordBatch>, Output),
    Csv(Box<arrow::csv::Writer<Raw>>),
    Json(Box<arrow::json::LineDelimitedWriter<Raw>>),
}

impl Printer {
    fn new(format: Format, output: Output) -> Self {
        match format {
            // Refused before.
            Format::Table | Format::Dot => Self::Table(Vec::new(), output),
            Format::Csv => Self::Csv(Box::new(arrow::csv::Writer::new(Raw(output)))),
            Format::Json => Self::Json(Box::new(arrow::json::LineDelimitedWriter::new(Raw(output)))),
        }
    }

    fn print(&mut self, batch: &RecordBatch) -> Result<(), Report> {
        match self {
            Self::Table(batches, _) => batches.push(batch.clone()),
            Self::Csv(writer) => writer.write(batch).into_diagnostic()?,
            Self::Json(writer) => writer.write(batch).into_diagnostic()?,
        }
        Ok(())
    }

    fn end(self) -> Result<(), Report> {
        match self {
            Self::Table(batches, output) => {
                let table = arrow::util::pretty::pretty_format_batches(&batches).into_diagnostic()?;
                output.raw(format!("{table}\n").as_bytes());
            }
            Self::Csv(_) => {}
            Self::Json(mut writer) => writer.finish().into_diagnostic()?,
        }
        Ok(())
    }
}

/// Standard output.
struct Raw(Output);

impl Write for Raw {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.raw(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
