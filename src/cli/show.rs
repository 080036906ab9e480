//! `hopmap show`: an artifact or one of its tables.

use clap::{Args, ValueEnum};
use hopmap_artifact::{ArtifactError, Folder};
use hopmap_command::{Exit, Failure, Mistake, shown};
use miette::Report;

use super::locate::locate_newest;
use super::open::StoreArguments;
use super::output::Output;
use super::provenance::{self, Form};
use super::rows::{self, Layout};

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
    let folder = locate_newest(&arguments.artifact, &arguments.store, output)?;
    let folder = Folder::open(&folder).map_err(Failure::usage)?;
    match &arguments.table {
        None => describe(&folder, output)?,
        Some(table) => {
            let format = if output.is_json() { Format::Json } else { arguments.format };
            print_table(&folder, table, format, arguments.limit, output)?;
        }
    }
    Ok(Exit::Done)
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
    let all = reader.rows();
    let shown = limit.unwrap_or(if format == Format::Table { ROWS } else { all }).min(all);
    let layout = match format {
        // DOT was refused before.
        Format::Table | Format::Dot => Layout::Aligned,
        Format::Csv => Layout::Csv,
        Format::Json => Layout::Json,
    };
    rows::print(reader, layout, shown, output)?;
    if shown < all && format == Format::Table {
        output.note(format!("{shown} of {all} rows; --limit {all} shows all"));
    }
    Ok(())
}

/// A table that there is not is a mistake in the command, a damaged one is none.
fn failure(error: ArtifactError) -> Failure {
    match error {
        ArtifactError::NoTable { .. } => Failure::usage(error),
        error => Failure::failed(error),
    }
}
