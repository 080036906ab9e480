//! Tables: named columns, written as Parquet that is the same byte for byte.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray, UInt32Array, UInt64Array};
use arrow_schema::{DataType, Field, Schema};
use arrow_select::concat::concat_batches;
use hopmap_model::open_input;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;

use crate::ArtifactError;

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

    fn column(mut self, name: &str, kind: DataType, nullable: bool, column: ArrayRef) -> Self {
        self.fields.push(Field::new(name, kind, nullable));
        self.columns.push(column);
        self
    }

    /// Adds a column of 32-bit numbers: ranks, slots, nodes.
    #[must_use]
    pub fn u32(self, name: &str, values: impl IntoIterator<Item = u32>) -> Self {
        self.column(name, DataType::UInt32, false, Arc::new(UInt32Array::from_iter_values(values)))
    }

    /// Adds a column of 32-bit numbers, some of which may be unknown.
    #[must_use]
    pub fn optional_u32(self, name: &str, values: impl IntoIterator<Item = Option<u32>>) -> Self {
        self.column(name, DataType::UInt32, true, Arc::new(values.into_iter().collect::<UInt32Array>()))
    }

    /// Adds a column of 64-bit numbers: messages, bytes, evaluations.
    #[must_use]
    pub fn u64(self, name: &str, values: impl IntoIterator<Item = u64>) -> Self {
        self.column(name, DataType::UInt64, false, Arc::new(UInt64Array::from_iter_values(values)))
    }

    /// Adds a column of real numbers.
    #[must_use]
    pub fn f64(self, name: &str, values: impl IntoIterator<Item = f64>) -> Self {
        self.column(name, DataType::Float64, false, Arc::new(Float64Array::from_iter_values(values)))
    }

    /// Adds a column of real numbers, some of which may be unknown.
    #[must_use]
    pub fn optional_f64(self, name: &str, values: impl IntoIterator<Item = Option<f64>>) -> Self {
        self.column(name, DataType::Float64, true, Arc::new(values.into_iter().collect::<Float64Array>()))
    }

    /// Adds a column of text.
    #[must_use]
    pub fn text<T: AsRef<str>>(self, name: &str, values: impl IntoIterator<Item = T>) -> Self {
        self.column(name, DataType::Utf8, false, Arc::new(StringArray::from_iter_values(values)))
    }

    /// Adds a column of text, some of which may be unknown.
    #[must_use]
    pub fn optional_text<T: AsRef<str>>(
        self,
        name: &str,
        values: impl IntoIterator<Item = Option<T>>,
    ) -> Self {
        self.column(name, DataType::Utf8, true, Arc::new(values.into_iter().collect::<StringArray>()))
    }

    /// Name of the table.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, |column| column.len())
    }

    /// The table as Parquet.
    pub(crate) fn encode(self) -> Result<Vec<u8>, parquet::errors::ParquetError> {
        let schema = Arc::new(Schema::new(self.fields));
        let batch = RecordBatch::try_new(Arc::clone(&schema), self.columns)?;
        let mut bytes = Vec::new();
        let mut writer = ArrowWriter::try_new(&mut bytes, schema, Some(properties()))?;
        writer.write(&batch)?;
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
        let file = File::create(path);
        let file = file.map_err(|source| ArtifactError::Io { action: "write", path: path.into(), source })?;
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

    /// Writes what is left; gives the number of rows.
    pub fn close(self) -> Result<u64, ArtifactError> {
        self.writer.close().map_err(|error| unwritable(&self.path, error))?;
        Ok(self.rows)
    }
}

fn unwritable(path: &Path, error: impl std::error::Error + Send + Sync + 'static) -> ArtifactError {
    ArtifactError::Io { action: "write", path: path.into(), source: std::io::Error::other(error) }
}

/// Everything that could change bytes from one build to the next is fixed here.
fn properties() -> WriterProperties {
    WriterProperties::builder()
        .set_created_by("hopmap".to_owned())
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_max_row_group_row_count(Some(1 << 20))
        .build()
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
        let file = open_input(path);
        let file = file.map_err(|source| ArtifactError::Io { action: "read", path: path.into(), source })?;
        let reader = ParquetRecordBatchReaderBuilder::try_new(file);
        let reader = reader.map_err(|error| damaged(path, &error))?;
        let schema = Arc::clone(reader.schema());
        let rows = usize::try_from(reader.metadata().file_metadata().num_rows()).unwrap_or(0);
        let batches = reader.with_batch_size(1 << 16).build().map_err(|error| damaged(path, &error))?;
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
}

impl Iterator for TableReader {
    type Item = Result<RecordBatch, ArtifactError>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.batches.next()?.map_err(|error| damaged(&self.path, &error)))
    }
}

fn damaged(path: &Path, error: &dyn std::fmt::Display) -> ArtifactError {
    ArtifactError::Damaged { path: path.into(), reason: error.to_string() }
}

/// Reads a whole Parquet file.
pub fn read_table(path: &Path) -> Result<RecordBatch, ArtifactError> {
    let reader = TableReader::open(path)?;
    let schema = Arc::clone(reader.schema());
    let batches: Vec<RecordBatch> = reader.collect::<Result<_, _>>()?;
    concat_batches(&schema, &batches).map_err(|error| damaged(path, &error))
}
