//! Columns of a table that was read, checked for type and missing values.

use std::path::{Path, PathBuf};

use arrow_array::{Array, ArrayRef, Float64Array, RecordBatch, StringArray, UInt32Array, UInt64Array};

use crate::{ArtifactError, read_table};

/// A table that was read.
#[derive(Debug)]
pub struct Columns {
    path: PathBuf,
    batch: RecordBatch,
}

impl Columns {
    /// Reads a Parquet file.
    pub fn read(path: &Path) -> Result<Self, ArtifactError> {
        Ok(Self { path: path.into(), batch: read_table(path)? })
    }

    /// Number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.batch.num_rows()
    }

    /// Names of the columns.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.batch.schema().fields().iter().map(|field| field.name().clone()).collect()
    }

    /// Whether there is a column of a name.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.batch.column_by_name(name).is_some()
    }

    /// A column of 32-bit numbers.
    pub fn u32(&self, name: &str) -> Result<Vec<u32>, ArtifactError> {
        self.complete(name, self.optional_u32(name)?)
    }

    /// A column of 32-bit numbers, some of which may be unknown.
    pub fn optional_u32(&self, name: &str) -> Result<Vec<Option<u32>>, ArtifactError> {
        Ok(self.typed::<UInt32Array>(name, "32-bit unsigned numbers")?.iter().collect())
    }

    /// A column of 64-bit numbers.
    pub fn u64(&self, name: &str) -> Result<Vec<u64>, ArtifactError> {
        self.complete(name, self.typed::<UInt64Array>(name, "64-bit unsigned numbers")?.iter().collect())
    }

    /// A column of real numbers.
    pub fn f64(&self, name: &str) -> Result<Vec<f64>, ArtifactError> {
        self.complete(name, self.optional_f64(name)?)
    }

    /// A column of real numbers, some of which may be unknown.
    pub fn optional_f64(&self, name: &str) -> Result<Vec<Option<f64>>, ArtifactError> {
        Ok(self.typed::<Float64Array>(name, "real numbers")?.iter().collect())
    }

    /// A column of text.
    pub fn text(&self, name: &str) -> Result<Vec<String>, ArtifactError> {
        self.complete(name, self.optional_text(name)?)
    }

    /// A column of text, some of which may be unknown.
    pub fn optional_text(&self, name: &str) -> Result<Vec<Option<String>>, ArtifactError> {
        let column = self.typed::<StringArray>(name, "text")?;
        Ok(column.iter().map(|value| value.map(str::to_owned)).collect())
    }

    /// Checks that a column counts the rows from zero.
    pub fn index(&self, name: &str) -> Result<(), ArtifactError> {
        let values = self.u32(name)?;
        match values.iter().enumerate().find(|&(row, &value)| row != value as usize) {
            Some((row, value)) => {
                Err(self.error(name, format!("should count the rows, but row {row} has {value}")))
            }
            None => Ok(()),
        }
    }

    /// An error about a column.
    #[must_use]
    pub fn error(&self, column: &str, reason: impl Into<String>) -> ArtifactError {
        ArtifactError::Column { path: self.path.clone(), column: column.into(), reason: reason.into() }
    }

    fn array(&self, name: &str) -> Result<&ArrayRef, ArtifactError> {
        self.batch.column_by_name(name).ok_or_else(|| self.error(name, "is missing"))
    }

    fn typed<A: Array + 'static>(&self, name: &str, what: &str) -> Result<&A, ArtifactError> {
        let array = self.array(name)?;
        array
            .as_any()
            .downcast_ref()
            .ok_or_else(|| self.error(name, format!("should hold {what}, but holds {}", array.data_type())))
    }

    fn complete<T>(&self, name: &str, values: Vec<Option<T>>) -> Result<Vec<T>, ArtifactError> {
        let rows = values.len();
        let complete: Vec<T> = values.into_iter().flatten().collect();
        match complete.len() == rows {
            true => Ok(complete),
            false => Err(self.error(name, "has missing values")),
        }
    }
}
