//! Where two artifacts that should be the same differ: the first row, value or byte.

use std::io::{BufReader, Read};
use std::path::Path;

use arrow_array::RecordBatch;
use hopmap_artifact::{ArtifactError, Cell, Folder};

use crate::common::names;

/// Differences beyond this number would bury the first ones.
const MOST: usize = 8;

/// Where an artifact that was made again differs from the one before, for people.
#[must_use]
pub fn first_differences(before: &Path, again: &Path) -> Vec<String> {
    let mut lines = match (Folder::open(before), Folder::open(again)) {
        (Err(error), _) | (_, Err(error)) => vec![error.to_string()],
        (Ok(before), Ok(again)) => compare(&before, &again),
    };
    if lines.is_empty() {
        lines.push("other bytes in artifact.json".to_owned());
    }
    if lines.len() > MOST {
        let more = lines.len() - MOST;
        lines.truncate(MOST);
        lines.push(format!("and {more} more"));
    }
    lines
}

fn compare(before: &Folder, again: &Folder) -> Vec<String> {
    let (old, new) = (before.description(), again.description());
    let mut lines = Vec::new();
    if (&old.kind, old.schema) != (&new.kind, new.schema) {
        return vec![format!("{} of schema {}, was {} of {}", new.kind, new.schema, old.kind, old.schema)];
    }
    for name in names(&old.tables, &new.tables) {
        match (old.tables.get(name), new.tables.get(name)) {
            (Some(one), Some(other)) if one == other => {}
            (Some(_), Some(_)) => {
                let line = first_row(before, again, name).unwrap_or_else(|error| error.to_string());
                lines.push(format!("table {name}: {line}"));
            }
            (Some(_), None) => lines.push(format!("table {name} is gone")),
            (None, _) => lines.push(format!("table {name} is new")),
        }
    }
    for name in names(&old.files, &new.files) {
        if old.files.get(name) != new.files.get(name) {
            let place = first_byte(&before.file_path(name), &again.file_path(name));
            lines.push(format!("file {name}: {}", place.unwrap_or_else(|error| error.to_string())));
        }
    }
    let said = |value: Option<String>| value.unwrap_or_else(|| "nothing".to_owned());
    for name in names(&old.metrics, &new.metrics) {
        let [one, other] = [old, new].map(|found| found.metrics.get(name).map(ToString::to_string));
        if one != other {
            lines.push(format!("{name} {}, was {}", said(other), said(one)));
        }
    }
    for name in names(&old.attributes, &new.attributes) {
        let [one, other] = [old, new].map(|found| found.attributes.get(name).map(ToString::to_string));
        if one != other {
            lines.push(format!("{name} {}, was {}", said(other), said(one)));
        }
    }
    lines
}

/// The first row that is not the same, with what is different in it. Rows are counted from 0, like ranks.
fn first_row(before: &Folder, again: &Folder, table: &str) -> Result<String, ArtifactError> {
    let (mut old, mut new) = (before.stream(table)?, again.stream(table)?);
    if old.schema() != new.schema() {
        return Ok("other columns".to_owned());
    }
    let counts = (old.rows(), new.rows());
    let mut row = 0;
    while let (Some(one), Some(other)) = (old.next().transpose()?, new.next().transpose()?) {
        let shared = one.num_rows().min(other.num_rows());
        if let Some((place, values)) = first_in_batch(&one.slice(0, shared), &other.slice(0, shared)) {
            return Ok(format!("row {}: {values}", row + place));
        }
        row += shared;
    }
    Ok(match counts {
        (one, other) if one != other => format!("{other} rows, was {one}"),
        _ => "the same rows in other bytes".to_owned(),
    })
}

fn first_in_batch(old: &RecordBatch, new: &RecordBatch) -> Option<(usize, String)> {
    if old == new {
        return None;
    }
    let row = (0..old.num_rows()).find(|&row| old.slice(row, 1) != new.slice(row, 1))?;
    let schema = old.schema();
    let columns = schema.fields().iter().zip(old.columns().iter().zip(new.columns()));
    let differing = columns.filter(|(_, (one, other))| one.slice(row, 1) != other.slice(row, 1));
    let value = |column| Cell::of(column, row);
    let values = differing
        .map(|(field, (one, other))| format!("{} {}, was {}", field.name(), value(other), value(one)));
    Some((row, values.collect::<Vec<_>>().join("; ")))
}

fn first_byte(before: &Path, again: &Path) -> std::io::Result<String> {
    let open = |path: &Path| std::fs::File::open(path).map(BufReader::new);
    let (old, new) = (open(before)?, open(again)?);
    let mut count = 0_u64;
    let mut new = new.bytes();
    for old in old.bytes() {
        match new.next().transpose()? {
            Some(new) if old? == new => count += 1,
            Some(_) => return Ok(format!("other bytes from byte {count}")),
            None => return Ok(format!("ends at byte {count}")),
        }
    }
    Ok(format!("goes on after byte {count}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    use arrow_array::{ArrayRef, StringArray, UInt32Array};
    use hopmap_model::Metrics;

    #[test]
    fn a_metric_that_differs_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, value: f64| {
            let place = folder.path().join(name);
            std::fs::create_dir_all(&place).unwrap();
            let metrics = Metrics { placements: Vec::new(), summary: [("F".to_owned(), value)].into() };
            Folder::write(&place, &metrics).unwrap();
            place
        };
        let lines = first_differences(&write("one", 1.5), &write("other", 2.0));
        assert!(lines.contains(&"F 2, was 1.5".to_owned()), "{lines:?}");
    }

    #[test]
    fn the_first_row_that_differs_is_found() {
        let batch = |slots: [u32; 3], hosts: [&str; 3]| {
            let columns: [(&str, ArrayRef); 2] = [
                ("slot", Arc::new(UInt32Array::from_iter_values(slots))),
                ("host", Arc::new(StringArray::from_iter_values(hosts))),
            ];
            RecordBatch::try_from_iter(columns).unwrap()
        };
        let old = batch([1, 2, 3], ["a", "b", "c"]);
        assert_eq!(first_in_batch(&old, &old.clone()), None);
        let found = first_in_batch(&old, &batch([1, 5, 4], ["a", "x", "c"]));
        assert_eq!(found, Some((1, "slot 5, was 2; host x, was b".to_owned())));
    }
}
