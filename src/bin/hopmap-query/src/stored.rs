//! The tables of a store: every stage is one of its cells, every table of its artifacts one with the rows of all cells.

mod cells;
mod columns;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use hopmap::engine::{Catalogue, RunSummary, Store};
use hopmap_artifact::{ArtifactError, DESCRIPTION, Folder};

use self::cells::{Row, constants, outputs, records, tables_by_port};
use crate::error::QueryError;
use crate::records::{Record, Value, table_of};
use crate::source::{Constant, Source, TableFile};
use crate::tables::Tables;

/// Name of the table of all cells.
pub(crate) const CELLS: &str = "cells";
/// Name of the table of all runs.
pub(crate) const RUNS: &str = "runs";

/// Every stage as a table of its cells, every table of its artifacts as a table with the rows of all cells, `cells` and
/// `runs`. Where a catalogue has the name of a run, a column `run` tells it.
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
    for (stage, rows) in &stages {
        let rows = Arc::clone(rows);
        tables.insert_later(stage, move || Ok(Source::Rows(table_of(&records(&rows)))));
    }
    let all: Arc<[Row]> = stages.iter().flat_map(|(_, rows)| rows.iter().cloned()).collect();
    insert_beside(&mut tables, CELLS, move || Ok(Source::Rows(table_of(&cells::all(&all)))));
    let runs: Vec<Record> = runs.iter().map(run_record).collect();
    insert_beside(&mut tables, RUNS, move || Ok(Source::Rows(table_of(&runs))));
    for (stage, rows) in &stages {
        artifact_tables(&mut tables, store, stage, rows);
    }
    tables
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
