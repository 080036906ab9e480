//! The cells of a stage as a table: what distinguishes them, what they were given, and their metrics. `hopmap query` gives its tables of
//! stages the same columns.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use hopmap_command::Mistake;
use serde_json::Value as Json;

use super::candidates::metric_names;
use super::locate::FoundCell;
use crate::engine::{OutputRecord, OutputRecords, ResultRecord, State, Store, by_matrix, state_name};

/// Columns by name, and a row for every cell. What a cell does not have is null.
pub(super) struct CellTable {
    pub(super) columns: Vec<String>,
    pub(super) rows: Vec<Vec<Json>>,
    /// Keys of the matrix, and the columns of their values.
    keys: Vec<(String, String)>,
    /// What distinguishes each cell from the others, in short.
    labels: Vec<Vec<(String, String)>>,
    metrics: BTreeSet<String>,
}

/// Groups of columns in the order of a row. Names are given to metrics first: they keep theirs.
const GROUPS: [&str; 6] = ["", "matrix", "parameter", "metric", "end", "digest"];
const BY_PRECEDENCE: [&str; 6] = ["", "end", "digest", "metric", "matrix", "parameter"];

/// Values of one cell by group and name.
type Facts = Vec<(&'static str, String, Json)>;

impl CellTable {
    /// The table of some cells of a stage, perhaps of one of its outputs alone.
    pub(super) fn new(
        mut cells: Vec<FoundCell<'_>>,
        output: Option<&str>,
        store: &Store,
    ) -> Result<Self, Mistake> {
        cells.sort_by(|one, other| {
            by_matrix(&one.current.matrix, &other.current.matrix).then_with(|| one.id.cmp(other.id))
        });
        let none = OutputRecords::default();
        let outputs: Vec<(&OutputRecords, bool)> =
            cells.iter().map(|cell| store.newest(&cell.current.key).unwrap_or((&none, false))).collect();
        if let Some(wanted) = output {
            check_output(wanted, &outputs)?;
        }
        let is_wanted = |(port, _): &(&String, &OutputRecord)| output.is_none_or(|wanted| wanted == *port);
        let shared = shared_metrics(outputs.iter().map(|(outputs, _)| outputs.iter().filter(is_wanted)));
        let facts: Vec<Facts> = cells
            .iter()
            .zip(&outputs)
            .map(|(cell, (outputs, is_partial))| {
                let outputs: Vec<_> = outputs.iter().filter(is_wanted).collect();
                facts(cell, &outputs, *is_partial, &shared, store)
            })
            .collect();
        let order = columns(&facts);
        let rows = facts.iter().map(|facts| row(facts, &order)).collect();
        let names = names(&order);
        let of_group = |group: &'static str| {
            let both = order.iter().zip(&names).filter(move |((own, _), _)| *own == group);
            both.map(|((_, own), name)| (own.clone(), name.clone()))
        };
        Ok(Self {
            keys: of_group("matrix").collect(),
            metrics: of_group("metric").map(|(_, name)| name).collect(),
            labels: cells.iter().map(FoundCell::label).collect(),
            columns: names,
            rows,
        })
    }

    /// What people see: the keys in short, the metrics that vary, and the state if it is not the same; and what all cells share.
    pub(super) fn for_people(&self, text: impl Fn(&Json) -> String) -> (Vec<Vec<String>>, Vec<String>) {
        let is_constant = |column: usize| self.rows.iter().all(|row| row[column] == self.rows[0][column]);
        let is_label = |key: &str| self.labels.iter().flatten().any(|(name, _)| name == key);
        let keys: Vec<&(String, String)> = self.keys.iter().filter(|(key, _)| is_label(key)).collect();
        let state = self.columns.iter().position(|column| column == "state");
        let (same, varied): (Vec<usize>, Vec<usize>) = (0..self.columns.len())
            .filter(|&column| self.metrics.contains(&self.columns[column]) || Some(column) == state)
            .partition(|&column| is_constant(column) && self.rows.len() > 1);
        let names = varied.iter().map(|&column| &self.columns[column]);
        let mut lines = vec![keys.iter().map(|(_, column)| column).chain(names).cloned().collect::<Vec<_>>()];
        lines.extend(self.rows.iter().zip(&self.labels).map(|(row, label)| {
            let value = |key: &str| label.iter().find(|(name, _)| name == key);
            let keys =
                keys.iter().map(|(key, _)| value(key).map(|(_, value)| value.clone()).unwrap_or_default());
            keys.chain(varied.iter().map(|&column| text(&row[column]))).collect()
        }));
        let shared = |&column: &usize| format!("{} {}", self.columns[column], text(&self.rows[0][column]));
        let cached = Json::String(state_name(State::Cached));
        let same = same.iter().filter(|&&column| self.rows[0][column] != cached);
        (lines, same.map(shared).collect())
    }
}

fn check_output(wanted: &str, outputs: &[(&OutputRecords, bool)]) -> Result<(), Mistake> {
    let known: BTreeSet<&str> =
        outputs.iter().flat_map(|(outputs, _)| outputs.keys()).map(String::as_str).collect();
    if known.is_empty() || known.contains(wanted) {
        return Ok(());
    }
    let known: Vec<&str> = known.into_iter().collect();
    Err(Mistake::new(
        format!("the stage has no output `{wanted}`"),
        format!("its outputs: {}", known.join(", ")),
    ))
}

/// Metrics that several outputs of a cell have.
fn shared_metrics<'a>(
    cells: impl Iterator<Item = impl Iterator<Item = (&'a String, &'a OutputRecord)>>,
) -> BTreeSet<String> {
    let mut shared = BTreeSet::new();
    for outputs in cells {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        outputs.for_each(|(_, output)| {
            metric_names(output).for_each(|name| *counts.entry(name).or_default() += 1);
        });
        shared.extend(counts.into_iter().filter(|(_, count)| *count > 1).map(|(name, _)| name.to_owned()));
    }
    shared
}

fn facts(
    cell: &FoundCell<'_>,
    outputs: &[(&String, &OutputRecord)],
    is_partial: bool,
    shared: &BTreeSet<String>,
    store: &Store,
) -> Facts {
    let result = store.result(&cell.current.key);
    let mut metrics = Vec::new();
    let mut digests = Vec::new();
    for (port, output) in outputs {
        metrics.extend(output.metrics.iter().map(|(name, value)| {
            let name = if shared.contains(name) { format!("{name}_{port}") } else { name.clone() };
            ("metric", name, Json::from(*value))
        }));
        let name = if outputs.len() > 1 { format!("digest_{port}") } else { "digest".to_owned() };
        digests.push(("digest", name, output.digest.as_str().into()));
    }
    let state = match result {
        Some(_) => State::Cached,
        None if is_partial => State::Partial,
        None => State::Failed,
    };
    let matrix = &cell.current.matrix;
    let mut facts = vec![("", "cell".to_owned(), cell.id.into())];
    facts.extend(matrix.iter().map(|(key, value)| ("matrix", key.clone(), value.clone())));
    let parameters = result.and_then(ResultRecord::manifest).map(|manifest| flat(&manifest.parameters));
    // A key of the matrix that is a parameter would be a second column of the same values, unless a metric has its name.
    let is_metric = |name: &str| metrics.iter().any(|(_, metric, _)| metric == name);
    let parameters = parameters.unwrap_or_default().into_iter();
    let parameters = parameters.filter(|parameter| is_metric(&parameter.0) || !matrix.contains(parameter));
    facts.extend(parameters.map(|(name, value)| ("parameter", name, value)));
    facts.extend(metrics);
    let seconds = result.and_then(|result| result.seconds);
    facts.push(("end", "state".to_owned(), state_name(state).into()));
    facts.push(("end", "seconds".to_owned(), seconds.into()));
    facts.extend(digests);
    facts
}

/// Nested parameters side by side: `{"a": {"b": 1}}` as `a.b`.
fn flat(json: &Json) -> Vec<(String, Json)> {
    let of_key = |(key, inner): (&String, &Json)| match inner {
        Json::Object(nested) if !nested.is_empty() => {
            flat(inner).into_iter().map(|(name, value)| (format!("{key}.{name}"), value)).collect()
        }
        inner => vec![(key.clone(), inner.clone())],
    };
    json.as_object().into_iter().flatten().flat_map(of_key).collect()
}

/// The columns that any of the cells has: by group, then in the order in which the cells have them.
fn columns(all: &[Facts]) -> Vec<(&'static str, String)> {
    let mut seen = BTreeSet::new();
    let mut columns: Vec<(&'static str, String)> = Vec::new();
    for (group, name, _) in all.iter().flatten() {
        if seen.insert((*group, name.as_str())) {
            columns.push((group, name.clone()));
        }
    }
    columns.sort_by_key(|(group, _)| GROUPS.iter().position(|other| other == group));
    columns
}

fn row(facts: &Facts, columns: &[(&'static str, String)]) -> Vec<Json> {
    let values: HashMap<(&str, &str), &Json> =
        facts.iter().map(|(group, name, value)| ((*group, name.as_str()), value)).collect();
    let value =
        |(group, name): &(&'static str, String)| values.get(&(*group, name.as_str())).copied().cloned();
    columns.iter().map(|column| value(column).unwrap_or(Json::Null)).collect()
}

/// A name for every column. One that is taken gets its group before it.
fn names(columns: &[(&'static str, String)]) -> Vec<String> {
    let mut taken = BTreeSet::new();
    let mut names = vec![String::new(); columns.len()];
    for wanted in BY_PRECEDENCE {
        for (index, (group, name)) in columns.iter().enumerate().filter(|(_, (group, _))| *group == wanted) {
            let mut given = name.clone();
            while !taken.insert(given.clone()) {
                given = format!("{group}_{given}");
            }
            names[index] = given;
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn no_two_columns_have_one_name_and_metrics_keep_theirs() {
        let facts: Facts =
            [("", "cell"), ("matrix", "F"), ("parameter", "F"), ("metric", "F"), ("metric", "state")]
                .map(|(group, name)| (group, name.to_owned(), Json::Null))
                .into_iter()
                .chain([("end", "state".to_owned(), json!("cached"))])
                .collect();
        let columns = columns(std::slice::from_ref(&facts));
        assert_eq!(names(&columns), ["cell", "matrix_F", "parameter_F", "F", "metric_state", "state"]);
        assert_eq!(row(&facts, &columns)[5], json!("cached"));
    }

    #[test]
    fn nested_parameters_stand_side_by_side() {
        let flat = flat(&json!({"a": {"b": {"c": 1}}, "d": [1, 2], "e": {}}));
        assert_eq!(flat.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["a.b.c", "d", "e"]);
    }
}
