//! The tables of a store: every stage is one of its cells, every table of its artifacts one with the rows of all cells.

mod cells;
mod columns;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, new_null_array};
use arrow::datatypes::{DataType as ArrowType, Field, Schema};
use hopmap::engine::{Catalogue, RunSummary, StageForm, Store, StoredCell};
use hopmap_artifact::{ArtifactError, DESCRIPTION, Folder, KindForm};
use serde_json::Value as Json;

use self::cells::{Row, constants, outputs, records, tables_by_port};
use self::columns::value;
use crate::columns::ColumnType;
use crate::error::QueryError;
use crate::records::{Record, Value, table_of};
use crate::source::{Constant, Source, TableFile};
use crate::tables::Tables;

/// Name of the table of all cells.
pub(crate) const CELLS: &str = "cells";
/// Name of the table of all runs.
pub(crate) const RUNS: &str = "runs";

/// Every stage as a table of its cells, every table of its artifacts as a table with the rows of all cells, `cells` and
/// `runs`. Where a catalogue has the name of a run, a column `run` has it.
#[must_use]
pub fn tables(store: &Store, catalogues: &[Catalogue], runs: &[RunSummary]) -> Tables {
    let mut stages: BTreeMap<&str, Vec<Row>> = BTreeMap::new();
    for catalogue in catalogues {
        for cell in &catalogue.cells {
            let row = Row { run: catalogue.run.clone(), cell: cell.clone() };
            stages.entry(&cell.stage).or_default().push(row);
        }
    }
    let stages: Vec<(&str, Arc<[Row]>)> =
        stages.into_iter().map(|(stage, rows)| (stage, rows.into())).collect();
    let mut tables = Tables::new();
    let forms = || catalogues.iter().flat_map(|catalogue| &catalogue.stages);
    for (stage, rows) in &stages {
        // Without results only the pipeline file says what columns there will be.
        let form = forms().find(|form| form.name == *stage).filter(|_| !has_results(rows));
        let (rows, columns) = (Arc::clone(rows), form.map(stage_columns).unwrap_or_default());
        tables.insert_later(stage, move || {
            Ok(Source::Rows(with_columns(&table_of(&records(&rows)), &columns)))
        });
    }
    let mut all: Vec<Row> = stages.iter().flat_map(|(_, rows)| rows.iter().cloned()).collect();
    for catalogue in catalogues {
        let row = |cell: &StoredCell| Row { run: catalogue.run.clone(), cell: cell.clone() };
        all.extend(catalogue.missing.iter().map(row));
    }
    all.sort_by(|one, other| one.cell.stage.cmp(&other.cell.stage));
    insert_beside(&mut tables, CELLS, move || Ok(Source::Rows(table_of(&cells::all(&all)))));
    let records: Vec<Record> = runs.iter().map(run_record).collect();
    insert_beside(&mut tables, RUNS, move || Ok(Source::Rows(table_of_runs(&records))));
    for (stage, rows) in &stages {
        artifact_tables(&mut tables, store, stage, rows);
    }
    for stage in forms() {
        if !stages.iter().any(|(name, rows)| *name == stage.name && has_results(rows)) {
            empty_tables(&mut tables, stage);
        }
    }
    tables
}

fn has_results(rows: &[Row]) -> bool {
    rows.iter().any(|row| outputs(&row.cell).next().is_some())
}

/// The tables of a stage without results: no rows, but the columns that it will have.
fn empty_tables(tables: &mut Tables, stage: &StageForm) {
    insert_empty(tables, &stage.name, stage_columns(stage).into_iter());
    let (cell, outputs) = (cell_columns(stage), output_forms(stage));
    for (port, form) in &outputs {
        for table in form.tables {
            let of_name =
                |(_, form): &&(String, &KindForm)| form.tables.iter().any(|other| other.name == table.name);
            let name = match outputs.iter().filter(of_name).count() {
                1 => format!("{}_{}", stage.name, table.name),
                _ => format!("{}_{port}_{}", stage.name, table.name),
            };
            let own = table.columns().filter(|column| column.name != "*");
            let own = own.map(|column| (column.name.to_owned(), arrow_type(column.kind)));
            insert_empty(tables, &name, cell.clone().into_iter().chain(own));
        }
    }
}

/// A column: its name and type.
type NamedType = (String, ArrowType);

/// The columns that a stage will have when it has results.
fn stage_columns(stage: &StageForm) -> Vec<NamedType> {
    let real = |name: &str| (name.to_owned(), ArrowType::Float64);
    let text = |name: &str| (name.to_owned(), ArrowType::Utf8);
    let metrics = stage.metrics.iter().map(|name| real(name));
    let columns = cell_columns(stage).into_iter().chain(metrics);
    let mut columns: Vec<NamedType> =
        columns.chain([text("state"), real("seconds"), text("digest")]).collect();
    let mut seen = BTreeSet::new();
    columns.retain(|(name, _)| seen.insert(name.clone()));
    columns
}

/// The name of the cell and the keys of its matrix.
fn cell_columns(stage: &StageForm) -> Vec<NamedType> {
    let key = |(name, example): &(String, Json)| {
        (name.clone(), value(example).kind().unwrap_or(ColumnType::Text).arrow())
    };
    std::iter::once(("cell".to_owned(), ArrowType::Utf8)).chain(stage.matrix.iter().map(key)).collect()
}

/// The output ports whose kinds are known.
fn output_forms(stage: &StageForm) -> Vec<(String, &'static KindForm)> {
    let form = |(port, kind): &(String, String)| Some((port.clone(), hopmap_artifact::form(kind)?));
    stage.outputs.iter().filter_map(form).collect()
}

/// Rows with further columns that are null.
fn with_columns(rows: &RecordBatch, columns: &[NamedType]) -> RecordBatch {
    let schema = rows.schema();
    let new = columns.iter().filter(|(name, _)| schema.index_of(name).is_err());
    let new: Vec<Field> = new.map(|(name, kind)| Field::new(name, kind.clone(), true)).collect();
    let arrays = new.iter().map(|field| new_null_array(field.data_type(), rows.num_rows()));
    let arrays: Vec<ArrayRef> = rows.columns().iter().cloned().chain(arrays).collect();
    let fields = schema.fields().iter().map(|field| field.as_ref().clone()).chain(new);
    // All columns have as many rows.
    RecordBatch::try_new(Arc::new(Schema::new(fields.collect::<Vec<_>>())), arrays)
        .unwrap_or_else(|_| rows.clone())
}

/// The table of all runs, which has its columns even before the first one.
fn table_of_runs(records: &[Record]) -> RecordBatch {
    let example = RunSummary { seconds: Some(0.0), exit: Some(0), ..RunSummary::default() };
    match records {
        [] => table_of(&[run_record(&example)]).slice(0, 0),
        records => table_of(records),
    }
}

fn arrow_type(kind: &str) -> ArrowType {
    match kind.trim_end_matches('?') {
        "u32" | "u64" => ArrowType::Int64,
        "f64" => ArrowType::Float64,
        _ => ArrowType::Utf8,
    }
}

fn insert_empty(tables: &mut Tables, name: &str, columns: impl Iterator<Item = (String, ArrowType)>) {
    let mut fields: Vec<Field> = Vec::new();
    for (name, kind) in columns {
        if fields.iter().all(|field| *field.name() != name) {
            fields.push(Field::new(name, kind, true));
        }
    }
    tables.insert(name, Source::Rows(RecordBatch::new_empty(Arc::new(Schema::new(fields)))));
}

/// A stage may have the name of a table of ours, which then is called `all_…`.
fn insert_beside(
    tables: &mut Tables,
    name: &str,
    make: impl Fn() -> Result<Source, QueryError> + Send + Sync + 'static,
) {
    let taken = tables.names().any(|known| known == name);
    let name = if taken { format!("all_{name}") } else { name.to_owned() };
    tables.insert_later(&name, make);
}

/// `STAGE_TABLE` for every table of the artifacts of a stage, `STAGE_PORT_TABLE` where several outputs have one of that name.
fn artifact_tables(tables: &mut Tables, store: &Store, stage: &str, rows: &Arc<[Row]>) {
    for (table, ports) in tables_by_port(rows) {
        let insert = |tables: &mut Tables, name: &str, ports: BTreeSet<String>| {
            let (root, rows, table) = (store.root().to_owned(), Arc::clone(rows), table.clone());
            tables.insert_later(name, move || files(&root, &rows, &ports, &table))
        };
        if ports.len() == 1 && insert(tables, &format!("{stage}_{table}"), ports.clone()) {
            continue;
        }
        for port in ports {
            insert(tables, &format!("{stage}_{port}_{table}"), BTreeSet::from([port]));
        }
    }
}

/// The files of a table of the artifacts of a stage.
fn files(root: &Path, rows: &[Row], ports: &BTreeSet<String>, table: &str) -> Result<Source, QueryError> {
    let mut files = Vec::new();
    for (row, (before, after)) in rows.iter().zip(constants(rows)) {
        let (before, after) = (before.into(), after.into());
        let of_table = outputs(&row.cell).filter(|(port, _)| ports.contains(*port));
        for (_, output) in of_table {
            let path = root.join("artifacts").join(&output.digest);
            let folder = Folder::open(&path).map_err(|error| damaged(&path, &error))?;
            if folder.digest() != output.digest {
                let reason = "its bytes are not those of its digest".to_owned();
                return Err(QueryError::Damaged { path: path.join(DESCRIPTION), reason });
            }
            files.extend(file(&folder, table, Arc::clone(&before), Arc::clone(&after)));
        }
    }
    Ok(Source::Files(files))
}

fn file(folder: &Folder, table: &str, before: Arc<[Constant]>, after: Arc<[Constant]>) -> Option<TableFile> {
    let description = folder.description().tables.get(table)?;
    Some(TableFile {
        path: folder.table_path(table),
        blake3: Some(description.blake3.clone()),
        before,
        after,
    })
}

fn damaged(path: &Path, error: &ArtifactError) -> QueryError {
    QueryError::Damaged { path: path.join(DESCRIPTION), reason: error.to_string() }
}

/// Adds an artifact that is in no store: `NAME` with its metrics, `NAME_TABLE` for each of its tables. `None` if there is a
/// table of that name.
pub fn add_artifact(tables: &mut Tables, name: &str, path: &Path) -> Result<Option<()>, ArtifactError> {
    let folder = Folder::open(path)?;
    let text = |text: &str| Value::Text(text.to_owned());
    let mut record: Record = vec![("kind".into(), text(&folder.description().kind))];
    let metrics = folder.description().metrics.iter();
    record.extend(metrics.map(|(name, value)| (name.clone(), Value::Real(*value))));
    record.push(("digest".into(), text(folder.digest())));
    let mut is_new = tables.insert(name, Source::Rows(table_of(&[record])));
    for table in folder.description().tables.keys() {
        let files = file(&folder, table, [].into(), [].into()).into_iter().collect();
        is_new &= tables.insert(&format!("{name}_{table}"), Source::Files(files));
    }
    Ok(is_new.then_some(()))
}

fn run_record(run: &RunSummary) -> Record {
    let count = |states: &[&str]| {
        let cells = run.stages.iter().filter(|stage| states.contains(&stage.state.as_str()));
        Value::Whole(cells.count() as i128)
    };
    vec![
        ("run".into(), Value::Text(run.run.clone())),
        ("pipeline".into(), Value::Text(run.pipeline.clone())),
        ("time".into(), Value::Text(run.time.clone())),
        ("seconds".into(), run.seconds.map_or(Value::Null, Value::Real)),
        ("exit".into(), run.exit.map_or(Value::Null, |exit| Value::Whole(exit.into()))),
        ("ran".into(), count(&["ran"])),
        ("cached".into(), count(&["cached"])),
        ("failed".into(), count(&["failed", "infeasible"])),
    ]
}
