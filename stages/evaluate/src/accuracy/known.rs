//! What is known of problems, from a CSV file.

use std::path::{Path, PathBuf};

use csv::{ReaderBuilder, StringRecord, Trim};
use hopmap_model::read_input;

use crate::EvaluateError;

/// Bytes of the file.
const MOST_BYTES: u64 = 1 << 28;

/// Rows of known values. A row says something of every group whose keys are those of the row; an empty key fits all.
pub(super) struct Known {
    path: PathBuf,
    header: Vec<String>,
    rows: Vec<StringRecord>,
}

impl Known {
    /// Reads a file with a header, some columns of which are among the keys of the groups.
    pub(super) fn read(path: &Path, by: &[String]) -> Result<Self, EvaluateError> {
        let malformed = |error: csv::Error| EvaluateError::Known {
            path: path.to_owned(),
            line: error.position().map_or(0, csv::Position::line),
            problem: error.to_string(),
        };
        let text = read_input(path, MOST_BYTES).map_err(|error| malformed(error.into()))?;
        let mut reader =
            ReaderBuilder::new().trim(Trim::All).comment(Some(b'#')).from_reader(text.as_slice());
        let header: Vec<String> = reader.headers().map_err(malformed)?.iter().map(str::to_owned).collect();
        let rows = reader.records().collect::<Result<Vec<_>, _>>().map_err(malformed)?;
        if !header.iter().any(|name| by.contains(name)) {
            return Err(EvaluateError::NoCommonKey { path: path.to_owned(), keys: by.join(", ") });
        }
        Ok(Self { path: path.to_owned(), header, rows })
    }

    /// Whether there is such a column.
    pub(super) fn has(&self, column: &str) -> bool {
        self.header.iter().any(|name| name == column)
    }

    /// The columns that are no keys.
    pub(super) fn columns<'k>(&'k self, by: &'k [String]) -> impl Iterator<Item = &'k str> {
        self.header.iter().filter(|name| !by.contains(name)).map(String::as_str)
    }

    /// What the first row that fits and says anything says in a column.
    pub(super) fn text(&self, column: &str, by: &[String], keys: &[String]) -> &str {
        let at = |name: &str| self.header.iter().position(|other| other == name);
        let fits = |row: &&StringRecord| {
            by.iter().zip(keys).all(|(name, key)| {
                let said = at(name).and_then(|index| row.get(index)).unwrap_or_default();
                said.is_empty() || said == key
            })
        };
        let Some(index) = at(column) else { return "" };
        let texts = self.rows.iter().filter(fits).filter_map(|row| row.get(index));
        texts.into_iter().find(|text| !text.is_empty()).unwrap_or_default()
    }

    /// The same as a number; `None` if nothing is said.
    pub(super) fn number(
        &self,
        column: &str,
        by: &[String],
        keys: &[String],
    ) -> Result<Option<f64>, EvaluateError> {
        let text = self.text(column, by, keys);
        if text.is_empty() {
            return Ok(None);
        }
        let number = text.parse().ok().filter(|number: &f64| number.is_finite());
        number.map(Some).ok_or_else(|| EvaluateError::Known {
            path: self.path.clone(),
            line: 0,
            problem: format!("`{text}` in column `{column}` is no number"),
        })
    }
}
