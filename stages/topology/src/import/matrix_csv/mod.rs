//! A dense square matrix of costs as text: cells between commas, semicolons, tabs or blanks, `#` before comments, with or without a
//! first line and a first column of names.
//!
//! A name is that of a host, or `host:core`. The slots of a host stand together. Without names every row is a host of its own, or
//! as many rows as the parameter `slots` says.

mod names;
mod table;

#[cfg(test)]
mod tests;

use std::path::Path;

use super::measured::{Measured, refuse};
use super::reader::{Reader, Sample, one_file, read_text};
use super::{Format, ImportError, ImportParams, Imported};
use table::{Square, Table};

pub(super) static READER: Reader = Reader { format: Format::Matrix, recognises, files: one_file, read };

const HELP: &str = "a matrix has as many rows as columns, with a cost of zero or more in every cell";

/// Names of columns of other tables.
const OTHER_TABLES: [&str; 16] = [
    "source",
    "destination",
    "target",
    "from",
    "to",
    "src",
    "dst",
    "a",
    "b",
    "rank",
    "bytes",
    "messages",
    "latency",
    "bandwidth",
    "device_a",
    "device_b",
];

fn recognises(sample: &Sample) -> bool {
    let Some(text) = sample.text() else { return false };
    let Ok(table) = Table::read(Path::new(""), text) else { return false };
    if !sample.is_whole() && table.is_beginning() {
        return true;
    }
    let is_other = |name: &str| OTHER_TABLES.contains(&name.to_ascii_lowercase().as_str());
    let Ok(Square { names, costs }) = table.square(Path::new("")) else { return false };
    costs.len() >= 4 && !names.is_some_and(|names| names.iter().any(|(_, name)| is_other(name)))
}

fn read(path: &Path, params: &ImportParams) -> Result<Imported, ImportError> {
    refuse(params, &["slots"])?;
    let text = read_text(path)?;
    let Square { names, costs } = Table::read(path, &text)?.square(path)?;
    let endpoints = match (names, params.slots) {
        (Some(names), None) => names::endpoints(path, &names)?,
        (None, slots) => numbered(costs.len().isqrt(), slots.unwrap_or(1))?,
        (Some(_), Some(_)) => {
            return Err(ImportError::Parameter {
                name: "slots",
                problem: "means nothing here: the names of the file say what slots hosts have".into(),
                help: "leave it out".into(),
            });
        }
    };
    let mut notes = Vec::new();
    let system = Measured { endpoints, costs }.machine(path, &mut notes)?;
    Ok(Imported { system, notes })
}

/// Hosts without names.
fn numbered(rows: usize, slots: u32) -> Result<Vec<(String, Option<u32>)>, ImportError> {
    match rows.is_multiple_of(slots as usize) {
        true => Ok((0..rows).map(|row| (format!("host-{}", row / slots as usize), None)).collect()),
        false => Err(ImportError::Parameter {
            name: "slots",
            problem: format!("does not divide the {rows} rows of the matrix"),
            help: "it is how many rows belong to a host".into(),
        }),
    }
}
