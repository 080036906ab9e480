//! `hopmap show`: an artifact, one of its tables (aligned, as CSV, or as one JSON object per line), the cells of a stage as such a
//! table, or with `--provenance` where an artifact or a saved file comes from.

use std::collections::{HashMap, HashSet};
use std::fmt::{Display, Write};
use std::path::Path;

use arrow_array::RecordBatch;
use clap::{Args, ValueEnum};
use hopmap_artifact::{ArtifactError, Cell, Folder, TableReader};
use hopmap_command::{Exit, Failure, refuse, shown};
use hopmap_model::InternalError;
use hopmap_text::{counted, decimal};
use hopmap_views::run_time_parts;
use miette::Report;
use serde_json::{Value as Json, json};

use super::cells::CellTable;
use super::locate::{self, FoundCell, locate_newest};
use super::open::{StoreArguments, working_directory};
use super::output::{Output, Result};
use crate::engine::{self, PipelineId, RunSummary, Store, short};
use crate::provenance::{FileOrigin, Made, Memory, Origin, Provenance, origin_of, trace};

/// Rows of a table that are shown unless all are asked for.
const ROWS: usize = 20;

/// Arguments of `show`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hopmap show placement                             # of a sweep: a table of its cells
  hopmap show 'placement[min F]'                    # its best cell
  hopmap show placement --format csv > cells.csv    # with all parameters and metrics
  hopmap show lu.graph --table edges --format csv > edges.csv
  hopmap show --provenance out/rankfile             # which run wrote this file, and from what
  hopmap show --provenance placement --format dot | dot -Tsvg > placement.svg")]
pub(crate) struct Arguments {
    /// Folder of an artifact, the first digits of its digest, or the stage, cell (`placement[seed=3]`, `placement[min F]`) or output
    /// (`tables.routes`) that wrote it, also with its pipeline (`place:placement`); with --provenance also a launch file or another
    /// exported file. Of several cells, a table is printed.
    artifact: String,
    /// Show its provenance: all stages, parameters and input files that it depends on.
    #[arg(long, conflicts_with_all = ["table", "limit"])]
    provenance: bool,
    /// Table to print.
    #[arg(short, long)]
    table: Option<String>,
    /// Format of the table. Without --table, csv and json print a row for every cell.
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    format: Format,
    /// Maximum number of rows [default: 20 in a table, else all].
    #[arg(long, value_name = "ROWS")]
    limit: Option<usize>,
    #[command(flatten)]
    store: StoreArguments,
}

/// Format of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Aligned columns for people.
    Table,
    /// Comma-separated values with a header.
    Csv,
    /// One JSON object per row and line; for a provenance, one graph.
    Json,
    /// For a provenance, a graph in DOT.
    Dot,
}

pub(crate) fn main(arguments: &Arguments, output: Output) -> Result {
    let format = if output.is_json() { Format::Json } else { arguments.format };
    if arguments.provenance {
        if format == Format::Csv {
            return refuse("provenance is not a table", "--format json or --format dot");
        }
        print_provenance(&arguments.artifact, &arguments.store, format, output)?;
        return Ok(Exit::Done);
    }
    if arguments.format == Format::Dot {
        let hint = "`hopmap show --provenance ARTIFACT --format dot` draws where it comes from";
        return refuse("a table cannot be written as DOT", hint);
    }
    let (is_printed, which) = match &arguments.table {
        None => print_cells(arguments, format, output)?,
        Some(_) => (false, None),
    };
    let folder = (!is_printed).then(|| locate_newest(&arguments.artifact, &arguments.store, output));
    let folder = folder.transpose()?;
    which.into_iter().for_each(|which| output.note(which));
    let Some(folder) = folder else { return Ok(Exit::Done) };
    let folder = Folder::open(&folder).map_err(Failure::usage)?;
    match &arguments.table {
        None => describe(&folder, output)?,
        Some(table) => print_table(&folder, table, format, arguments.limit, output)?,
    }
    Ok(Exit::Done)
}

/// Prints the cells of a stage as a table: several, or those that are wanted as rows. Returns whether it did, and whose cells they are, if
/// that is a choice.
fn print_cells(arguments: &Arguments, format: Format, output: Output) -> Result<(bool, Option<String>)> {
    let name = arguments.artifact.as_str();
    if working_directory()?.join(name).exists() {
        return Ok((false, None));
    }
    let store = Store::load(&arguments.store.readable_root()?)?;
    let Some((cells, port)) = locate::cells(name, &store)? else { return Ok((false, None)) };
    let which = which_pipeline(name, &cells, &store);
    // Of one cell there is more to say, unless its row is wanted.
    if cells.len() < 2 && arguments.format == Format::Table {
        return Ok((false, which));
    }
    let table = CellTable::new(cells, port, &store)?;
    let all = table.rows.len();
    let most = arguments.limit.unwrap_or(if format == Format::Table { ROWS } else { all }).min(all);
    match format {
        Format::Csv => {
            let rows = table.rows[..most].iter().map(|row| row.iter().map(text).collect());
            output.raw(&csv(std::iter::once(table.columns.clone()).chain(rows))?);
        }
        Format::Json => table.rows[..most]
            .iter()
            .for_each(|row| output.raw(object(&table.columns, row.iter().cloned()).as_bytes())),
        // DOT was refused before.
        Format::Table | Format::Dot => {
            let (lines, shared) = table.for_people(|value| match value {
                Json::Number(value) => number(value.as_f64().unwrap_or_default()),
                value => text(value),
            });
            output.raw(frame(&lines[..=most]).as_bytes());
            if !shared.is_empty() {
                output.line(format!("the same in all: {}", shared.join(", ")));
            }
            if most < all {
                output.note(format!("{most} of {}; --limit {all} shows all", counted(all, "cell")));
            }
        }
    }
    Ok((true, which))
}

/// Says of which pipeline the cells are, where others have a stage of this name, too.
fn which_pipeline(name: &str, cells: &[FoundCell<'_>], store: &Store) -> Option<String> {
    let FoundCell { pipeline, current, .. } = cells.first()?;
    let stage = &current.stage;
    let has_stage =
        |id: &&PipelineId| store.all_newest().any(|(of, _, other)| of == *id && other.stage == *stage);
    let others = store.pipelines().filter(|id| id != pipeline).filter(has_stage);
    let others: Vec<String> = others.map(ToString::to_string).collect();
    (pipeline.strip(name).is_none() && !others.is_empty()).then(|| {
        let others = others.join("; ");
        format!("`{stage}` is that of {pipeline}; PIPELINE:{stage} is that of another one: {others}")
    })
}

/// A value of a cell as text; a list is JSON.
fn text(value: &Json) -> String {
    match value {
        Json::Null => String::new(),
        Json::String(text) => text.clone(),
        value => value.to_string(),
    }
}

fn describe(folder: &Folder, output: Output) -> Result<()> {
    let description = folder.description();
    output.json(&json!({ "path": folder.path(), "digest": folder.digest(), "artifact": description }));
    output.line(format!("{}  {}", description.kind, shown(folder.path())));
    output.line(format!("digest  {}", folder.digest()));
    let metrics = &description.metrics;
    metrics.iter().for_each(|(name, value)| output.line(format!("  {name:<28} {}", number(*value))));
    for (name, value) in &description.attributes {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        output.line(format!("  {name:<28} {text}"));
    }
    run_time_parts(metrics).iter().for_each(|line| output.line(format!("  {line}")));
    for (name, table) in &description.tables {
        let reader = folder.stream(name).map_err(Report::new)?;
        let names: Vec<&str> = reader.schema().fields().iter().map(|field| field.name().as_str()).collect();
        let rows = counted(table.rows as usize, "row");
        output.line(format!("table {name}: {rows} ({})", names.join(", ")));
    }
    description.files.keys().for_each(|name| output.line(format!("file {}", shown(&folder.file_path(name)))));
    Ok(())
}

fn print_table(
    folder: &Folder,
    table: &str,
    format: Format,
    limit: Option<usize>,
    output: Output,
) -> Result<()> {
    folder.verify_table(table).map_err(failure)?;
    let reader = folder.stream(table).map_err(failure)?;
    let all = reader.rows();
    let shown = limit.unwrap_or(if format == Format::Table { ROWS } else { all }).min(all);
    print(reader, format, shown, output)?;
    if shown < all && format == Format::Table {
        output.note(format!("{shown} of {}; --limit {all} shows all", counted(all, "row")));
    }
    Ok(())
}

/// A table that does not exist is a mistake in the command; a damaged one is not.
fn failure(error: ArtifactError) -> Failure {
    match error {
        ArtifactError::NoTable { .. } => Failure::usage(error),
        error => Failure::failed(error),
    }
}

/// Prints the first `most` rows. CSV and JSON go out batch by batch; aligned columns need all rows to know their width.
fn print(reader: TableReader, format: Format, most: usize, output: Output) -> Result<(), Report> {
    let names: Vec<String> = reader.schema().fields().iter().map(|field| field.name().clone()).collect();
    let mut aligned = vec![names.clone()];
    if format == Format::Csv {
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
        match format {
            // DOT was refused before.
            Format::Table | Format::Dot => aligned.extend(texts(&batch, for_people)),
            Format::Csv => output.raw(&csv(texts(&batch, |cell| cell.to_string()))?),
            Format::Json => output.raw(json(&names, &batch).as_bytes()),
        }
    }
    if format == Format::Table {
        output.raw(frame(&aligned).as_bytes());
    }
    Ok(())
}

fn texts(batch: &RecordBatch, text: fn(Cell<'_>) -> String) -> impl Iterator<Item = Vec<String>> {
    let row = move |row| batch.columns().iter().map(|column| text(Cell::of(column, row))).collect();
    (0..batch.num_rows()).map(row)
}

/// A cell of an aligned table. CSV and JSON are exact.
fn for_people(cell: Cell<'_>) -> String {
    match cell {
        Cell::Real(value) if value.fract() != 0.0 => number(value),
        cell => cell.to_string(),
    }
}

/// A number for people: integers in full, and fractions without the last digits, which are rounding in sums.
fn number(value: f64) -> String {
    if value.fract() == 0.0 { value.to_string() } else { decimal(value) }
}

fn csv<R: IntoIterator<Item: AsRef<[u8]>>>(rows: impl IntoIterator<Item = R>) -> Result<Vec<u8>, Report> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let wrong = |error: &dyn Display| InternalError::new(format!("a row is not CSV: {error}"));
    rows.into_iter().try_for_each(|row| writer.write_record(row)).map_err(|error| wrong(&error))?;
    Ok(writer.into_inner().map_err(|error| wrong(&error))?)
}

/// Keys are in the order of the columns, which a `serde_json::Map` would not keep.
fn json(names: &[String], batch: &RecordBatch) -> String {
    let row = |row| object(names, batch.columns().iter().map(|column| Cell::of(column, row).json()));
    (0..batch.num_rows()).map(row).collect()
}

fn object(names: &[String], values: impl Iterator<Item = Json>) -> String {
    let present = names.iter().zip(values).filter(|(_, value)| !value.is_null());
    let pairs: Vec<String> =
        present.map(|(name, value)| format!("{}:{value}", Json::from(name.as_str()))).collect();
    format!("{{{}}}\n", pairs.join(","))
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

/// Input files of one artifact that the tree shows; archives have thousands.
const MOST_FILES: usize = 6;

/// Prints where an artifact or a file comes from.
fn print_provenance(name: &str, arguments: &StoreArguments, format: Format, output: Output) -> Result<()> {
    let root = arguments.readable_root()?;
    let store = root.is_dir().then(|| Store::load(&root)).transpose()?;
    let runs: Vec<RunSummary> = store.as_ref().map(engine::read_runs).transpose()?.unwrap_or_default();
    let memory = store.as_ref().map_or_else(Memory::default, |store| Memory::of(store, &runs));
    let path = working_directory()?.join(name);
    let provenance = match path.is_file() {
        true => of_file(&path, store.as_ref(), &memory, output)?,
        false => {
            let folder = Folder::open(&locate_newest(name, arguments, output)?).map_err(Failure::usage)?;
            trace(folder.digest(), Some(folder.path()), &memory)
        }
    };
    match format {
        Format::Json => output.document(&graph(&provenance)),
        Format::Dot => output.raw(dot(&provenance).as_bytes()),
        Format::Table | Format::Csv => output.line(tree(&provenance).trim_end()),
    }
    Ok(())
}

/// Follows a file that people saved.
fn of_file(path: &Path, store: Option<&Store>, memory: &Memory<'_>, output: Output) -> Result<Provenance> {
    let origin = origin_of(path, store).map_err(Failure::usage)?;
    let (kind, digest) = match origin {
        Some(FileOrigin::Bytes { digest }) => return Ok(trace(&digest, None, memory)),
        Some(FileOrigin::Comment { kind, digest }) => (kind, digest),
        None => {
            let message = format!("the origin of {} is unknown", shown(path));
            let hint =
                "it is not a file of an artifact in this store and has no comment `hopmap KIND DIGEST`";
            return refuse(message, hint);
        }
    };
    if !memory.knows(&digest) {
        let message = format!("{} was made from {kind} {digest}, which is not in this store", shown(path));
        return refuse(message, "--store names the store of the run that made it");
    }
    output.note(format!("{} was edited, but names its origin", shown(path)));
    Ok(trace(&digest, None, memory))
}

/// Every artifact under what was made from it; one that goes into several is printed once.
fn tree(provenance: &Provenance) -> String {
    let by_digest: HashMap<&str, &Origin> =
        provenance.artifacts.iter().map(|origin| (origin.digest.as_str(), origin)).collect();
    let mut shown = HashSet::new();
    let mut text = String::new();
    let mut waiting = vec![(0, "", provenance.root.as_str())];
    while let Some((depth, port, digest)) = waiting.pop() {
        let Some(origin) = by_digest.get(digest) else { continue };
        let indent = "  ".repeat(depth);
        let port = if port.is_empty() { String::new() } else { format!("{port}: ") };
        let kind = origin.kind.as_deref().unwrap_or("artifact");
        let cell = origin.made.as_ref().map_or("", |made| made.cell.as_str());
        let is_repeated = !shown.insert(digest);
        let above = if is_repeated { " (above)" } else { "" };
        // Writing to a string cannot fail.
        let _ =
            writeln!(text, "{}", format!("{indent}{port}{kind} {} {cell}{above}", short(digest)).trim_end());
        if is_repeated {
            continue;
        }
        let ends = origin.ends.iter().map(|why| format!("the chain ends here: {why}"));
        for line in origin.made.iter().flat_map(made).chain(ends) {
            let _ = writeln!(text, "{indent}  {line}");
        }
        let inputs = origin.made.iter().flat_map(|made| made.inputs.iter().rev());
        waiting.extend(inputs.map(|input| (depth + 1, input.port.as_str(), input.digest.as_str())));
    }
    text
}

/// How an artifact was made, in lines.
fn made(made: &Made) -> Vec<String> {
    let mut how = format!("{} revision {}", made.stage, made.revision);
    if let Some(version) = &made.hopmap {
        how.push_str(&format!(", hopmap {version}"));
    }
    match &made.run {
        Some(run) => how.push_str(&format!(", run {} of {}", run.run, run.pipeline)),
        None => how.push_str(", run unknown"),
    }
    let parameters = made.parameters.iter().map(|(name, value)| format!("{name} = {value}"));
    let files = made.files.iter().take(MOST_FILES).map(|file| format!("file {} {}", file.name, file.blake3));
    let more = made.files.len().saturating_sub(MOST_FILES);
    let more = (more > 0).then(|| format!("… and {more} more files; --json has them all"));
    std::iter::once(how).chain(parameters).chain(files).chain(more).collect()
}

/// Artifacts as nodes, what went into what as edges.
fn graph(provenance: &Provenance) -> serde_json::Value {
    let edges = provenance.artifacts.iter().flat_map(|origin| {
        let inputs = origin.made.iter().flat_map(|made| &made.inputs);
        inputs.map(|input| json!({ "from": input.digest, "to": origin.digest, "port": input.port }))
    });
    json!({ "root": provenance.root, "nodes": provenance.artifacts, "edges": edges.collect::<Vec<_>>() })
}

fn dot(provenance: &Provenance) -> String {
    let quote = |text: &str| {
        let escaped = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        format!("\"{escaped}\"")
    };
    let mut text =
        "digraph provenance {\n  rankdir=LR\n  node [shape=box, fontname=\"sans-serif\"]\n".to_owned();
    for origin in &provenance.artifacts {
        let kind = origin.kind.as_deref().unwrap_or("artifact");
        let (cell, stage) = origin.made.as_ref().map_or(("", ""), |made| (&made.cell, &made.stage));
        let label = format!("{cell}\n{stage}\n{kind} {}", short(&origin.digest));
        let style = if origin.ends.is_some() { ", style=dashed" } else { "" };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {} [label={}{style}]", quote(short(&origin.digest)), quote(label.trim()));
        for file in origin.made.iter().flat_map(|made| &made.files) {
            let name = quote(&format!("file {}", file.blake3));
            let label = quote(&format!("{}\n{}", file.name, short(&file.blake3)));
            let _ = writeln!(text, "  {name} [label={label}, shape=note]");
            let _ = writeln!(text, "  {name} -> {}", quote(short(&origin.digest)));
        }
        for input in origin.made.iter().flat_map(|made| &made.inputs) {
            let (from, to) = (quote(short(&input.digest)), quote(short(&origin.digest)));
            let _ = writeln!(text, "  {from} -> {to} [label={}]", quote(&input.port));
        }
    }
    text.push_str("}\n");
    text
}
