//! Latencies between the cores of one host, as `core-to-core-latency` writes them: CSV without names, nanoseconds below the
//! diagonal, nothing elsewhere.

use std::path::Path;

use super::measured::{MOST_ROWS, Measured, refuse};
use super::reader::{Reader, Sample, malformed, one_file, read_text};
use super::{Format, ImportError, ImportParams, Imported};

pub(super) static READER: Reader = Reader { format: Format::CoreToCore, recognises, files: one_file, read };

/// What the host is called: the file does not say it.
const HOST: &str = "localhost";

fn recognises(sample: &Sample) -> bool {
    let Some(text) = sample.text() else { return false };
    let mut columns = None;
    let mut rows = 0;
    for line in text.lines() {
        let count = line.split(',').count();
        if *columns.get_or_insert(count) != count || row(line, rows).is_err() {
            return false;
        }
        rows += 1;
    }
    columns.is_some_and(|columns| columns >= 2 && rows >= 2 && (!sample.is_whole() || rows == columns))
}

/// The numbers of a row, of which there are as many as rows before it.
fn row(line: &str, index: usize) -> Result<Vec<f64>, (usize, String)> {
    let mut numbers = Vec::new();
    for (column, cell) in line.split(',').map(str::trim).enumerate() {
        match (column < index, cell.is_empty()) {
            (true, true) => return Err((column, "is empty".into())),
            (false, false) => return Err((column, "is not empty, on or above the diagonal".into())),
            (false, true) => {}
            (true, false) => {
                let number = cell.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0);
                numbers.push(number.ok_or_else(|| (column, "is no latency".to_owned()))?);
            }
        }
    }
    Ok(numbers)
}

fn read(path: &Path, params: &ImportParams) -> Result<Imported, ImportError> {
    refuse(params, &[])?;
    let text = read_text(path)?;
    let help = "the file has a line for every core and as many cells in each: latencies in nanoseconds to the cores before, \
                the rest empty";
    let first = text.lines().next().map_or(0, |line| line.split(',').count());
    let mut rows = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let cells = line.split(',').count();
        if cells != first || index >= first {
            let problem = match index >= first {
                true => format!("there are more rows than the {first} columns"),
                false => format!("the row has {cells} cells, the first one {first}"),
            };
            return Err(malformed(path, index + 1, problem, help));
        }
        if first > MOST_ROWS {
            let problem = format!("there are more than {MOST_ROWS} columns");
            return Err(malformed(path, index + 1, problem, help));
        }
        let numbers = row(line, index).map_err(|(column, problem)| {
            malformed(path, index + 1, format!("cell {} {problem}", column + 1), help)
        })?;
        rows.push(numbers);
    }
    let count = rows.len();
    if count != first {
        let problem = format!("there are {count} rows of {first} columns");
        return Err(malformed(path, count, problem, help));
    }
    let mut costs = vec![0.0; count * count];
    for (a, row) in rows.iter().enumerate() {
        for (b, &cost) in row.iter().enumerate() {
            costs[a * count + b] = cost;
            costs[b * count + a] = cost;
        }
    }
    let mut notes = vec![
        "costs are nanoseconds; core numbers are those of the rows, as the operating system counts"
            .to_owned(),
        format!("the file does not say of which host it is: `{HOST}`"),
    ];
    let measured = Measured::new(vec![HOST.to_owned(); count], costs);
    Ok(Imported { system: measured.machine(path, &mut notes)?, notes })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn import(text: &str) -> Result<Imported, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        let is_known = recognises(&Sample::new(file.path()).unwrap());
        let imported = read(file.path(), &ImportParams::default()).map_err(|error| error.to_string());
        assert!(is_known == imported.is_ok(), "{text:?} {imported:?}");
        imported
    }

    #[test]
    fn the_triangle_is_mirrored() {
        let system = import(",,\n1.5,,\n2,3,\n").unwrap().system;
        let block = system.costs().block(&[0, 1, 2]);
        assert_eq!(block, [0.0, 1.5, 2.0, 1.5, 0.0, 3.0, 2.0, 3.0, 0.0]);
        assert_eq!((system.nodes.len(), system.slots[2].core), (1, 2));
        assert_eq!(import(",\n7,").unwrap().system.slots.len(), 2);
    }

    #[test]
    fn other_shapes_are_refused() {
        assert!(import(",,\n1,,\n").unwrap_err().contains("2 rows of 3"));
        assert!(import(",,\n1,,\n2,3,\n4,5,6\n").unwrap_err().contains(":4: there are more rows"));
        assert!(import(",,\n1,\n2,3,\n").unwrap_err().contains(":2: the row has 2 cells"));
        assert!(import(",,\n1,4,\n2,3,\n").unwrap_err().contains(":2: cell 2 is not empty"));
        assert!(import(",,\n1,,\n,3,\n").unwrap_err().contains(":3: cell 1 is empty"));
        assert!(import(",,\nx,,\n2,-3,\n").unwrap_err().contains(":2: cell 1 is no latency"));
        assert!(import("0,1\n1,0\n").unwrap_err().contains(":1: cell 1 is not empty"));
    }
}
