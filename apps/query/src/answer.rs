//! Answers, and the forms in which they are written.

use std::io::Write;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{Schema, SchemaRef};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use arrow::util::pretty::pretty_format_batches;
use arrow_ipc::writer::FileWriter;
use hopmap::query::Form;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use polars::prelude::{DataFrame, PolarsResult};

use crate::columns::to_arrow;
use crate::error::QueryError;

/// Rows that are converted at a time.
const BATCH: usize = 1 << 16;

/// The rows of an answer.
#[derive(Debug, Clone)]
pub struct Answer {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
    has_more: bool,
}

impl Answer {
    /// An answer of some batches, at least one.
    pub(crate) fn of(batches: Vec<RecordBatch>, has_more: bool) -> Self {
        let schema = batches.first().map_or_else(|| Arc::new(Schema::empty()), RecordBatch::schema);
        Self { schema, batches, has_more }
    }

    pub(crate) fn of_frame(frame: &DataFrame, most: Option<usize>) -> PolarsResult<Self> {
        let most = most.unwrap_or(usize::MAX);
        let rows = frame.height().min(most);
        let starts = (0..rows.max(1)).step_by(BATCH);
        let batches = starts.map(|start| {
            to_arrow(&frame.slice((start as u64).cast_signed(), BATCH.min(rows - start.min(rows))))
        });
        Ok(Self::of(batches.collect::<PolarsResult<_>>()?, frame.height() > most))
    }

    /// The rows.
    #[must_use]
    pub fn batches(&self) -> &[RecordBatch] {
        &self.batches
    }

    /// Names and types of the columns.
    #[must_use]
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// Whether there are more rows than were wanted.
    #[must_use]
    pub fn has_more(&self) -> bool {
        self.has_more
    }

    /// The first rows as text, as [`Form::Table`] shows them.
    #[must_use]
    pub fn texts(&self, most: usize) -> Vec<Vec<String>> {
        let options = FormatOptions::default();
        let rows = self.batches.iter().flat_map(|batch| (0..batch.num_rows()).map(move |row| (batch, row)));
        let text = |batch: &RecordBatch, row| {
            let columns = batch.columns().iter();
            let formatted = columns.filter_map(|column| ArrayFormatter::try_new(column, &options).ok());
            formatted.map(|column| column.value(row).to_string()).collect()
        };
        rows.take(most).map(|(batch, row)| text(batch, row)).collect()
    }

    /// Writes the answer: the same answer always as the same bytes.
    pub fn write(&self, form: Form, to: &mut (dyn Write + Send)) -> Result<(), QueryError> {
        match form {
            Form::Table => {
                let table = pretty_format_batches(&self.batches).map_err(unwritten)?;
                writeln!(to, "{table}").map_err(unwritten)
            }
            Form::Csv => {
                let mut writer = arrow::csv::Writer::new(to);
                self.batches.iter().try_for_each(|batch| writer.write(batch)).map_err(unwritten)
            }
            Form::Json => {
                let mut writer = arrow::json::WriterBuilder::new()
                    .with_explicit_nulls(true)
                    .build::<_, arrow::json::writer::LineDelimited>(to);
                let batches: Vec<&RecordBatch> = self.batches.iter().collect();
                writer.write_batches(&batches).and_then(|()| writer.finish()).map_err(unwritten)
            }
            Form::Arrow => {
                let mut writer = FileWriter::try_new(to, &self.schema).map_err(unwritten)?;
                self.batches.iter().try_for_each(|batch| writer.write(batch)).map_err(unwritten)?;
                writer.finish().map_err(unwritten)
            }
            Form::Parquet => {
                let writer = ArrowWriter::try_new(to, Arc::clone(&self.schema), Some(properties()));
                let mut writer = writer.map_err(unwritten)?;
                self.batches.iter().try_for_each(|batch| writer.write(batch)).map_err(unwritten)?;
                writer.close().map_err(unwritten).map(drop)
            }
        }
    }

    /// The answer in a form, as bytes.
    pub fn encode(&self, form: Form) -> Result<Vec<u8>, QueryError> {
        let mut bytes = Vec::new();
        self.write(form, &mut bytes)?;
        Ok(bytes)
    }
}

/// The same as those of artifacts: everything that could change bytes is fixed here.
fn properties() -> WriterProperties {
    WriterProperties::builder()
        .set_created_by("hopmap".to_owned())
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_max_row_group_row_count(Some(1 << 20))
        .build()
}

fn unwritten(error: impl std::fmt::Display) -> QueryError {
    QueryError::Write(error.to_string())
}
