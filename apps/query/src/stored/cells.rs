//! The cells of one stage as rows.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use hopmap::engine::{OutputRecord, StoredCell};

use super::columns::{Names, flat, renamed, value};
use crate::records::{Record, Value};
use crate::source::Constant;
use crate::tables::sql_name;

/// A cell, and its run where runs are distinguished.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) run: Option<String>,
    pub(crate) cell: StoredCell,
}

/// What a cell was given and gave.
struct Facts {
    matrix: Record,
    parameters: Record,
    metrics: Record,
    digests: Record,
}

/// Outputs of a cell: port and artifact.
pub(crate) fn outputs(cell: &StoredCell) -> impl Iterator<Item = (&String, &OutputRecord)> {
    cell.result.iter().flat_map(|result| result.outputs.iter())
}

/// The rows of the table of a stage.
pub(crate) fn records(rows: &[Row]) -> Vec<Record> {
    let shared = shared_metrics(rows);
    let several = rows.iter().any(|row| outputs(&row.cell).count() > 1);
    let facts: Vec<Facts> = rows.iter().map(|row| Facts::of(&row.cell, &shared, several)).collect();
    let fixed = ["cell", "run", "state", "seconds"].map(str::to_owned).into_iter();
    let digests: BTreeSet<String> =
        facts.iter().flat_map(|facts| names(&facts.digests)).map(str::to_owned).collect();
    let fixed: Vec<String> = fixed.chain(digests).collect();
    let mut taken = Names::new(fixed.iter().map(String::as_str));
    // A metric keeps its name whether or not a parameter of that name is swept.
    let metrics = taken.give("metric", facts.iter().flat_map(|facts| names(&facts.metrics)));
    let matrix = taken.give("matrix", facts.iter().flat_map(|facts| names(&facts.matrix)));
    let parameters = taken.give("parameter", facts.iter().flat_map(|facts| names(&facts.parameters)));
    let record = |(row, facts): (&Row, &Facts)| {
        let mut record = identity(row);
        record.extend(renamed(&facts.matrix, &matrix));
        record.extend(renamed(&facts.parameters, &parameters));
        record.extend(renamed(&facts.metrics, &metrics));
        record.extend(ending(&row.cell));
        record.extend(facts.digests.iter().cloned());
        record
    };
    rows.iter().zip(&facts).map(record).collect()
}

/// What distinguishes the rows of a cell from those of others, as columns of its tables: before and after those of the table.
pub(crate) fn constants(rows: &[Row]) -> Vec<(Vec<Constant>, Vec<Constant>)> {
    let none = HashSet::new();
    let facts: Vec<Facts> = rows.iter().map(|row| Facts::of(&row.cell, &none, false)).collect();
    let mut taken = Names::new(["cell", "run"]);
    let matrix = taken.give("matrix", facts.iter().flat_map(|facts| names(&facts.matrix)));
    let parameters = taken.give("parameter", facts.iter().flat_map(|facts| names(&facts.parameters)));
    let columns = |group: &str, record: Record| -> Vec<Constant> {
        let constant = |(name, value)| Constant { otherwise: format!("{group}_{name}"), name, value };
        record.into_iter().map(constant).collect()
    };
    let of_row = |(row, facts): (&Row, &Facts)| {
        let mut before = columns("stage", identity(row));
        before.extend(columns("matrix", renamed(&facts.matrix, &matrix)));
        (before, columns("parameter", renamed(&facts.parameters, &parameters)))
    };
    rows.iter().zip(&facts).map(of_row).collect()
}

/// The rows of the table of all cells.
pub(crate) fn all(rows: &[Row]) -> Vec<Record> {
    let matrix: Vec<Record> = rows.iter().map(|row| matrix_of(&row.cell)).collect();
    let mut taken = Names::new(["cell", "run", "stage", "kind", "state", "seconds", "timed", "key"]);
    let given = taken.give("matrix", matrix.iter().flat_map(names));
    let record = |(row, matrix): (&Row, &Record)| {
        let cell = &row.cell;
        let mut record = identity(row);
        record.push(("stage".into(), Value::Text(cell.stage.clone())));
        record.push((
            "kind".into(),
            cell.manifest().map_or(Value::Null, |manifest| Value::Text(manifest.kind)),
        ));
        record.extend(renamed(matrix, &given));
        record.extend(ending(cell));
        let timed = cell.result.as_ref().map_or(Value::Null, |result| Value::Truth(result.timed));
        record.push(("timed".into(), timed));
        record.push(("key".into(), cell.key.clone().map_or(Value::Null, Value::Text)));
        record
    };
    rows.iter().zip(&matrix).map(record).collect()
}

impl Facts {
    fn of(cell: &StoredCell, shared: &HashSet<String>, several: bool) -> Self {
        let matrix = matrix_of(cell);
        let mut parameters = cell.manifest().map(|manifest| flat(&manifest.parameters)).unwrap_or_default();
        let mut metrics = Vec::new();
        let mut digests = Vec::new();
        for (port, output) in outputs(cell) {
            let port = sql_name(port);
            for (name, metric) in &output.metrics {
                let name = if shared.contains(name) { format!("{name}_{port}") } else { name.clone() };
                metrics.push((name, Value::Real(*metric)));
            }
            let name = if several { format!("digest_{port}") } else { "digest".to_owned() };
            digests.push((name, Value::Text(output.digest.clone())));
        }
        // A key of the matrix that is a parameter would be a second column of the same values. Where a metric has its name, the
        // parameter keeps the one that it has without a matrix.
        let is_metric = |name: &String| metrics.iter().any(|(metric, _)| metric == name);
        parameters.retain(|parameter| is_metric(&parameter.0) || !matrix.contains(parameter));
        Self { matrix, parameters, metrics, digests }
    }
}

fn matrix_of(cell: &StoredCell) -> Record {
    cell.matrix.iter().map(|(key, json)| (key.clone(), value(json))).collect()
}

/// Metrics that several outputs of a cell have.
fn shared_metrics(rows: &[Row]) -> HashSet<String> {
    let mut shared = HashSet::new();
    for row in rows {
        let mut counts: HashMap<&String, usize> = HashMap::new();
        outputs(&row.cell)
            .flat_map(|(_, output)| output.metrics.keys())
            .for_each(|name| *counts.entry(name).or_default() += 1);
        shared.extend(counts.into_iter().filter(|(_, count)| *count > 1).map(|(name, _)| name.clone()));
    }
    shared
}

fn identity(row: &Row) -> Record {
    let run = row.run.iter().map(|run| ("run".to_owned(), Value::Text(run.clone())));
    std::iter::once(("cell".to_owned(), Value::Text(row.cell.id.clone()))).chain(run).collect()
}

fn ending(cell: &StoredCell) -> Record {
    let seconds = cell.result.as_ref().and_then(|result| result.seconds);
    vec![
        ("state".into(), Value::Text(cell.state.clone())),
        ("seconds".into(), seconds.map_or(Value::Null, Value::Real)),
    ]
}

fn names(record: &Record) -> impl Iterator<Item = &str> {
    record.iter().map(|(name, _)| name.as_str())
}

/// Tables of the artifacts of a stage: for each name of a table the ports that have one.
pub(crate) fn tables_by_port(rows: &[Row]) -> BTreeMap<String, BTreeSet<String>> {
    let mut tables: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (port, output) in rows.iter().flat_map(|row| outputs(&row.cell)) {
        for (file, _) in &output.files {
            if let Some(table) = file.strip_suffix(".parquet").filter(|table| !table.contains('/')) {
                tables.entry(table.to_owned()).or_default().insert(port.clone());
            }
        }
    }
    tables
}
