//! Tables: named columns, written as reproducible Parquet; columns read back, checked for type and missing
//! values; single values as text or JSON.

use std::fmt;
use std::fmt::Display;
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, Float64Array, RecordBatch, StringArray, UInt32Array, UInt64Array};
use arrow_schema::{DataType, Field, Schema};
use arrow_select::concat::concat_batches;
use hopmap_model::open_input;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use parquet::basic::{Compression, Type, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use parquet::file::properties::WriterProperties;

use crate::error::ArtifactError;
use crate::form::field;
use crate::value::ColumnValue;

/// A table under construction: a name and columns of equal length.
#[derive(Debug)]
pub struct Table {
    name: String,
    fields: Vec<Field>,
    columns: Vec<ArrayRef>,
}

impl Table {
    /// A table without columns.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), fields: Vec::new(), columns: Vec::new() }
    }

    /// Adds a column.
    #[must_use]
    pub fn column<T: ColumnValue>(mut self, name: &str, values: impl IntoIterator<Item = T>) -> Self {
        self.fields.push(field(name, T::KIND));
        self.columns.push(T::array(values.into_iter()));
        self
    }

    /// Adds a column unless all its values are the default.
    pub(crate) fn given_column<T: ColumnValue + Default + PartialEq>(
        self,
        name: &str,
        values: impl Iterator<Item = T> + Clone,
    ) -> Self {
        match values.clone().all(|value| value == T::default()) {
            true => self,
            false => self.column(name, values),
        }
    }

    /// Name of the table.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, Array::len)
    }

    /// The table as Parquet.
    pub(crate) fn encode(self) -> Result<Vec<u8>, ParquetError> {
        Self::encode_parts(self, [])
    }

    /// A table as Parquet from parts with the same columns, of which one is in memory at a time.
    pub(crate) fn encode_parts(
        first: Self,
        others: impl IntoIterator<Item = Self>,
    ) -> Result<Vec<u8>, ParquetError> {
        let schema = Arc::new(Schema::new(first.fields.clone()));
        let mut bytes = Vec::new();
        let mut writer = ArrowWriter::try_new(&mut bytes, Arc::clone(&schema), Some(properties()))?;
        for part in std::iter::once(first).chain(others) {
            writer.write(&RecordBatch::try_new(Arc::clone(&schema), part.columns)?)?;
        }
        writer.close()?;
        Ok(bytes)
    }
}

/// Writes a table row group by row group, for tables that do not fit into memory.
pub struct TableWriter {
    path: PathBuf,
    schema: Arc<Schema>,
    writer: ArrowWriter<BufWriter<File>>,
    rows: u64,
}

impl TableWriter {
    /// Creates the Parquet file of a table with the columns of `schema`.
    pub fn create(path: &Path, schema: Schema) -> Result<Self, ArtifactError> {
        let file = File::create(path).map_err(ArtifactError::io("write", path))?;
        let schema = Arc::new(schema);
        let writer = ArrowWriter::try_new(BufWriter::new(file), Arc::clone(&schema), Some(properties()));
        let writer = writer.map_err(|error| unwritable(path, error))?;
        Ok(Self { path: path.into(), schema, writer, rows: 0 })
    }

    /// Adds rows, one array per column.
    pub fn add(&mut self, columns: Vec<ArrayRef>) -> Result<(), ArtifactError> {
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), columns);
        let batch = batch.map_err(|error| unwritable(&self.path, error))?;
        self.rows += batch.num_rows() as u64;
        self.writer.write(&batch).map_err(|error| unwritable(&self.path, error))
    }

    /// Writes the remaining rows and returns the number of rows.
    pub fn close(self) -> Result<u64, ArtifactError> {
        self.writer.close().map_err(|error| unwritable(&self.path, error))?;
        Ok(self.rows)
    }
}

fn unwritable(path: &Path, error: impl std::error::Error + Send + Sync + 'static) -> ArtifactError {
    ArtifactError::io("write", path)(std::io::Error::other(error))
}

/// Fixes every property that could change bytes between builds.
fn properties() -> WriterProperties {
    WriterProperties::builder()
        .set_created_by("hopmap".to_owned())
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_max_row_group_row_count(Some(1 << 20))
        .build()
}

/// Bytes that a batch, or a small table, may take in memory.
const MOST_IN_MEMORY: u64 = 512 << 20;
/// How many times its size a larger table may take in memory.
const MOST_GROWTH: u64 = 1000;
const MOST_ROWS_OF_BATCH: u64 = 1 << 16;

/// Rows of a batch that fit into memory: each may have the longest text, which a column stores once.
fn rows_of_batch(metadata: &ParquetMetaData) -> usize {
    let columns = metadata.row_groups().iter().flat_map(RowGroupMetaData::columns);
    let texts = columns.filter(|column| column.column_type() == Type::BYTE_ARRAY);
    let longest = texts.map(|column| column.uncompressed_size().unsigned_abs()).max().unwrap_or(0);
    (MOST_IN_MEMORY / longest.max(1)).clamp(1, MOST_ROWS_OF_BATCH) as usize
}

/// Reads a Parquet file batch by batch, for tables that do not fit into memory.
#[derive(Debug)]
pub struct TableReader {
    path: PathBuf,
    schema: Arc<Schema>,
    rows: usize,
    batches: ParquetRecordBatchReader,
}

impl TableReader {
    /// Opens the Parquet file of a table.
    pub fn open(path: &Path) -> Result<Self, ArtifactError> {
        let file = open_input(path).map_err(ArtifactError::io("read", path))?;
        let reader = ParquetRecordBatchReaderBuilder::try_new(file);
        let reader = reader.map_err(|error| ArtifactError::damaged(path, &error))?;
        let schema = Arc::clone(reader.schema());
        let rows = usize::try_from(reader.metadata().file_metadata().num_rows()).unwrap_or(0);
        let rows_of_batch = rows_of_batch(reader.metadata());
        let batches = reader
            .with_batch_size(rows_of_batch)
            .build()
            .map_err(|error| ArtifactError::damaged(path, &error))?;
        Ok(Self { path: path.into(), schema, rows, batches })
    }

    /// The columns.
    #[must_use]
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// Number of rows of all batches.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The batches as columns.
    pub(crate) fn columns(self) -> impl Iterator<Item = Result<Columns, ArtifactError>> {
        let path = self.path.clone();
        self.map(move |batch| Ok(Columns { path: path.clone(), batch: batch? }))
    }
}

impl Iterator for TableReader {
    type Item = Result<RecordBatch, ArtifactError>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.batches.next()?.map_err(|error| ArtifactError::damaged(&self.path, &error)))
    }
}

/// Reads a Parquet file at once.
pub fn read_table(path: &Path) -> Result<RecordBatch, ArtifactError> {
    let reader = TableReader::open(path)?;
    let schema = Arc::clone(reader.schema());
    let size = path.metadata().map_err(ArtifactError::io("read", path))?.len();
    let mut left = size.saturating_mul(MOST_GROWTH).max(MOST_IN_MEMORY);
    let mut batches = Vec::new();
    for batch in reader {
        let batch = batch?;
        // All batches are copied into one, and the texts of that once more.
        let copies = |column: &ArrayRef| if column.data_type() == &DataType::Utf8 { 3 } else { 2 };
        let taken =
            batch.columns().iter().map(|column| copies(column) * column.get_array_memory_size() as u64);
        left = left.checked_sub(taken.sum()).ok_or_else(|| {
            ArtifactError::damaged(path, &format!("its {size} bytes do not fit into memory"))
        })?;
        batches.push(batch);
    }
    concat_batches(&schema, &batches).map_err(|error| ArtifactError::damaged(path, &error))
}

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

    /// Whether a column exists.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.batch.column_by_name(name).is_some()
    }

    /// A column.
    pub fn column<T: ColumnValue>(&self, name: &str) -> Result<Vec<T>, ArtifactError> {
        T::read(self.array(name)?).map_err(|reason| self.error(name, reason))
    }

    /// A column that is written only if a value is not the default.
    pub(crate) fn given_column<T: ColumnValue + Default>(&self, name: &str) -> Result<Vec<T>, ArtifactError> {
        if self.has(name) { self.column(name) } else { Ok(vec![T::default(); self.rows()]) }
    }

    /// Checks that a column numbers the rows from zero.
    pub fn index(&self, name: &str) -> Result<(), ArtifactError> {
        let values = self.column::<u32>(name)?;
        match values.iter().enumerate().find(|&(row, &value)| row != value as usize) {
            Some((row, value)) => {
                Err(self.error(name, format!("should number the rows, but row {row} has {value}")))
            }
            None => Ok(()),
        }
    }

    /// An error of a column.
    #[must_use]
    pub fn error(&self, column: &str, reason: impl Into<String>) -> ArtifactError {
        ArtifactError::Column { path: self.path.clone(), column: column.into(), reason: reason.into() }
    }

    fn array(&self, name: &str) -> Result<&ArrayRef, ArtifactError> {
        self.batch.column_by_name(name).ok_or_else(|| self.error(name, "is missing"))
    }
}

/// A value of a table. Tables have columns of these four types only (see [`crate::Table`]).
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Cell<'a> {
    /// Missing.
    Null,
    /// An integer of 32 or 64 bits.
    Whole(u64),
    /// A real number.
    Real(f64),
    /// Text.
    Text(&'a str),
}

impl<'a> Cell<'a> {
    /// The value in a row of a column; [`Cell::Null`] for types that tables do not use.
    #[must_use]
    pub fn of(column: &'a dyn Array, row: usize) -> Self {
        if column.is_null(row) {
            return Self::Null;
        }
        let column = column.as_any();
        if let Some(column) = column.downcast_ref::<UInt32Array>() {
            Self::Whole(column.value(row).into())
        } else if let Some(column) = column.downcast_ref::<UInt64Array>() {
            Self::Whole(column.value(row))
        } else if let Some(column) = column.downcast_ref::<Float64Array>() {
            Self::Real(column.value(row))
        } else if let Some(column) = column.downcast_ref::<StringArray>() {
            Self::Text(column.value(row))
        } else {
            Self::Null
        }
    }

    /// As JSON; numbers that JSON cannot express are null.
    #[must_use]
    pub fn json(self) -> serde_json::Value {
        match self {
            Self::Null => serde_json::Value::Null,
            Self::Whole(value) => value.into(),
            Self::Real(value) => value.into(),
            Self::Text(value) => value.into(),
        }
    }
}

impl Display for Cell<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Null => Ok(()),
            Self::Whole(value) => write!(f, "{value}"),
            // Shortest digits that parse to the same number, with an exponent as in JSON.
            Self::Real(value) => match serde_json::Number::from_f64(value) {
                Some(number) => write!(f, "{number}"),
                None => write!(f, "{value}"),
            },
            Self::Text(value) => f.write_str(value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A text that a column stores once and repeats in every row took as much memory as the rows had.
    #[test]
    fn what_grows_a_thousandfold_is_refused_before_memory_ends() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, batches: usize| {
            let path = folder.path().join(name);
            let schema = Schema::new(vec![Field::new("text", DataType::Utf8, false)]);
            let mut writer = TableWriter::create(&path, schema).unwrap();
            let texts: ArrayRef = Arc::new(StringArray::from(vec!["x".repeat(1 << 18); 16]));
            (0..batches).for_each(|_| writer.add(vec![Arc::clone(&texts)]).unwrap());
            writer.close().unwrap();
            path
        };
        let large = write("large.parquet", 160);
        assert!(large.metadata().unwrap().len() < 100_000);
        assert!(TableReader::open(&large).unwrap().next().unwrap().unwrap().num_rows() <= 1 << 11);
        let error = read_table(&large).unwrap_err().to_string();
        assert!(error.contains("do not fit into memory"), "{error}");
        // With its copies, a table of 250 MB took three times as much.
        assert!(read_table(&write("copied.parquet", 60)).is_err());
        assert_eq!(read_table(&write("small.parquet", 4)).unwrap().num_rows(), 64);
    }

    #[test]
    fn values_of_every_type_are_read() {
        let texts = StringArray::from(vec![Some("a,b"), None]);
        assert_eq!((Cell::of(&texts, 0), Cell::of(&texts, 1)), (Cell::Text("a,b"), Cell::Null));
        let reals = Float64Array::from(vec![1.0, 1e-9, f64::NAN, f64::INFINITY]);
        let shown: Vec<String> = (0..4).map(|row| Cell::of(&reals, row).to_string()).collect();
        assert_eq!(shown, ["1.0", "1e-9", "NaN", "inf"]);
        assert_eq!(Cell::of(&reals, 3).json(), serde_json::Value::Null);
        assert_eq!(Cell::of(&UInt32Array::from(vec![7]), 0), Cell::Whole(7));
        assert_eq!(Cell::of(&UInt64Array::from(vec![u64::MAX]), 0).to_string(), "18446744073709551615");
    }
}
