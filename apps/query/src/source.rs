//! Where the rows of a table come from, and how they are read.

use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{AsArray, RecordBatch};
use arrow::compute::max;
use arrow::datatypes::{DataType as ArrowType, Field, UInt64Type};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder,
};
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::statistics::Statistics;
use polars::prelude::{Column, DataFrame};
use rayon::prelude::*;

use crate::columns::{ColumnType, to_polars};
use crate::error::QueryError;
use crate::records::Value;

/// The rows of a table.
#[derive(Debug, Clone)]
pub enum Source {
    /// Rows in memory.
    Rows(RecordBatch),
    /// The rows of Parquet files, one file after the other.
    Files(Vec<TableFile>),
}

/// A Parquet file, with columns that have the same value in all of its rows.
#[derive(Debug, Clone)]
pub struct TableFile {
    /// The file.
    pub path: PathBuf,
    /// BLAKE3 of the file in hexadecimal, which it must have.
    pub blake3: Option<String>,
    /// Columns before those of the file.
    pub before: Arc<[Constant]>,
    /// Columns after those of the file.
    pub after: Arc<[Constant]>,
}

/// A column that has the same value in all rows of a file.
#[derive(Debug, Clone, PartialEq)]
pub struct Constant {
    /// Its name.
    pub name: String,
    /// The name that it takes where a file of the table has a column of that name.
    pub otherwise: String,
    /// The value.
    pub value: Value,
}

/// A table whose columns and number of rows are known.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) columns: Vec<(String, ColumnType)>,
    pub(crate) rows: usize,
    data: Data,
}

#[derive(Debug)]
enum Data {
    Rows(RecordBatch),
    Files {
        files: Vec<OpenedFile>,
        /// Columns of the files themselves.
        stored: Columns,
    },
}

#[derive(Debug)]
struct OpenedFile {
    file: TableFile,
    metadata: ArrowReaderMetadata,
}

/// Some rows of a file: a whole row group, unless fewer rows are wanted.
struct Piece<'a> {
    file: &'a OpenedFile,
    /// Columns of all files of the table.
    stored: &'a Columns,
    group: usize,
    rows: usize,
}

impl Opened {
    pub(crate) fn open(source: &Source) -> Result<Self, QueryError> {
        match source {
            Source::Rows(batch) => Self::of_rows(batch),
            Source::Files(files) => Self::of_files(files),
        }
    }

    fn of_rows(batch: &RecordBatch) -> Result<Self, QueryError> {
        let schema = batch.schema();
        let is_large = |place: usize| {
            max(batch.column(place).as_primitive::<UInt64Type>())
                .is_some_and(|max| i64::try_from(max).is_err())
        };
        let column = |(place, field): (usize, &Arc<Field>)| {
            let kind = ColumnType::of(field.data_type(), || is_large(place));
            let kind = kind.ok_or_else(|| strange(Path::new("memory"), field))?;
            Ok((field.name().clone(), kind))
        };
        let columns = schema.fields().iter().enumerate().map(column).collect::<Result<_, QueryError>>()?;
        Ok(Self { columns, rows: batch.num_rows(), data: Data::Rows(batch.clone()) })
    }

    fn of_files(files: &[TableFile]) -> Result<Self, QueryError> {
        let files: Vec<OpenedFile> = files.par_iter().map(OpenedFile::open).collect::<Result<_, _>>()?;
        let mut stored = Columns::default();
        files.iter().try_for_each(|file| file.columns(&mut stored))?;
        let mut columns = Columns::default();
        for constant in files.iter().flat_map(|file| file.file.before.iter()) {
            columns.add(constant.name_beside(&stored), constant.value.kind());
        }
        for (name, kind) in &stored.columns {
            columns.add(name, *kind);
        }
        for constant in files.iter().flat_map(|file| file.file.after.iter()) {
            columns.add(constant.name_beside(&stored), constant.value.kind());
        }
        let rows = files.iter().map(OpenedFile::rows).sum();
        let data = Data::Files { files, stored };
        Ok(Self { columns: columns.finish(), rows, data })
    }

    /// Reads some columns, and no more rows than wanted.
    pub(crate) fn read(&self, names: &[&str], most: usize) -> Result<DataFrame, QueryError> {
        let kind = |name: &str| self.columns.iter().find(|column| column.0 == name).map(|column| column.1);
        let wanted: Vec<(&str, ColumnType)> =
            names.iter().filter_map(|&name| Some((name, kind(name)?))).collect();
        match &self.data {
            Data::Rows(batch) => {
                let rows = batch.num_rows().min(most);
                let batch = batch.slice(0, rows);
                let column = |&(name, kind): &(&str, ColumnType)| match batch.column_by_name(name) {
                    Some(array) => {
                        to_polars(name, kind, array).map_err(|error| damaged(Path::new("memory"), &error))
                    }
                    None => Ok(Value::Null.column(name, kind, rows)),
                };
                let columns = wanted.iter().map(column).collect::<Result<_, _>>()?;
                frame(rows, columns, Path::new("memory"))
            }
            Data::Files { files, stored } => read_files(files, stored, &wanted, most),
        }
    }
}

impl Constant {
    fn name_beside(&self, stored: &Columns) -> &str {
        if stored.has(&self.name) { &self.otherwise } else { &self.name }
    }
}

/// Columns of several files: a name that is in one of them is in all, of a type that holds the values of all.
#[derive(Debug, Default)]
struct Columns {
    places: HashMap<String, usize>,
    columns: Vec<(String, Option<ColumnType>)>,
}

impl Columns {
    fn add(&mut self, name: &str, kind: Option<ColumnType>) {
        let Some(&place) = self.places.get(name) else {
            self.places.insert(name.to_owned(), self.columns.len());
            self.columns.push((name.to_owned(), kind));
            return;
        };
        let known = &mut self.columns[place].1;
        *known = match (*known, kind) {
            (Some(one), Some(other)) => Some(one.common(other)),
            (one, other) => one.or(other),
        };
    }

    fn has(&self, name: &str) -> bool {
        self.places.contains_key(name)
    }

    fn finish(self) -> Vec<(String, ColumnType)> {
        self.columns.into_iter().map(|(name, kind)| (name, kind.unwrap_or(ColumnType::Text))).collect()
    }
}

impl OpenedFile {
    fn open(file: &TableFile) -> Result<Self, QueryError> {
        let content = File::open(&file.path).map_err(|error| damaged(&file.path, &error))?;
        let metadata = ArrowReaderMetadata::load(&content, ArrowReaderOptions::new());
        Ok(Self { metadata: metadata.map_err(|error| damaged(&file.path, &error))?, file: file.clone() })
    }

    fn rows(&self) -> usize {
        self.groups().iter().map(rows_of).sum()
    }

    fn groups(&self) -> &[RowGroupMetaData] {
        self.metadata.metadata().row_groups()
    }

    fn columns(&self, columns: &mut Columns) -> Result<(), QueryError> {
        for (place, field) in self.metadata.schema().fields().iter().enumerate() {
            let is_large = || self.groups().iter().any(|group| is_large(group, place));
            let kind = ColumnType::of(field.data_type(), is_large);
            columns.add(field.name(), Some(kind.ok_or_else(|| strange(&self.file.path, field))?));
        }
        Ok(())
    }

    /// A damaged file would rather give wrong values than an error.
    fn verify(&self) -> Result<(), QueryError> {
        let Some(expected) = &self.file.blake3 else { return Ok(()) };
        let mut hasher = blake3::Hasher::new();
        let content = File::open(&self.file.path).map_err(|error| damaged(&self.file.path, &error))?;
        hasher.update_reader(content).map_err(|error| damaged(&self.file.path, &error))?;
        match hasher.finalize().to_hex().as_str() == expected {
            true => Ok(()),
            false => Err(damaged(&self.file.path, &"its hash differs from the one in artifact.json")),
        }
    }
}

fn rows_of(group: &RowGroupMetaData) -> usize {
    usize::try_from(group.num_rows()).unwrap_or(0)
}

/// Whether a column of numbers without a sign may hold one from 2^63 on.
fn is_large(group: &RowGroupMetaData, place: usize) -> bool {
    let column = group.column(place);
    match column.statistics() {
        Some(Statistics::Int64(statistics)) => match statistics.max_opt() {
            // The bits of the largest number, read with a sign.
            Some(&max) => max < 0,
            None => statistics.null_count_opt() != Some(column.num_values().cast_unsigned()),
        },
        _ => column.num_values() > 0,
    }
}

fn read_files(
    files: &[OpenedFile],
    stored: &Columns,
    wanted: &[(&str, ColumnType)],
    most: usize,
) -> Result<DataFrame, QueryError> {
    let mut left = most;
    let mut pieces = Vec::new();
    for file in files {
        for (group, metadata) in file.groups().iter().enumerate() {
            let rows = rows_of(metadata).min(left);
            left -= rows;
            if rows > 0 {
                pieces.push(Piece { file, stored, group, rows });
            }
        }
    }
    let mut used: Vec<&OpenedFile> = pieces.iter().map(|piece| piece.file).collect();
    used.dedup_by_key(|file| &raw const **file);
    used.par_iter().try_for_each(|file| file.verify())?;
    let frames: Vec<DataFrame> =
        pieces.par_iter().map(|piece| piece.read(wanted)).collect::<Result<_, _>>()?;
    let place = files.first().map_or(Path::new("memory"), |file| &file.file.path);
    stack(frames, wanted, place)
}

fn stack(
    frames: Vec<DataFrame>,
    wanted: &[(&str, ColumnType)],
    place: &Path,
) -> Result<DataFrame, QueryError> {
    if wanted.is_empty() {
        return frame(frames.iter().map(DataFrame::height).sum(), Vec::new(), place);
    }
    let mut frames = frames.into_iter();
    let Some(mut all) = frames.next() else {
        return frame(
            0,
            wanted.iter().map(|&(name, kind)| Value::Null.column(name, kind, 0)).collect(),
            place,
        );
    };
    for more in frames {
        all.vstack_mut_owned(more).map_err(|error| damaged(place, &error))?;
    }
    Ok(all)
}

impl Piece<'_> {
    fn read(&self, wanted: &[(&str, ColumnType)]) -> Result<DataFrame, QueryError> {
        let TableFile { path, before, after, .. } = &self.file.file;
        let schema = self.file.metadata.schema();
        let roots: Vec<usize> = wanted.iter().filter_map(|(name, _)| schema.index_of(name).ok()).collect();
        let batch = if roots.is_empty() { None } else { Some(self.batch(&roots)?) };
        let column = |&(name, kind): &(&str, ColumnType)| {
            if let Some(array) = batch.as_ref().and_then(|batch| batch.column_by_name(name)) {
                return to_polars(name, kind, array).map_err(|error| damaged(path, &error));
            }
            let mut constants = before.iter().chain(after.iter());
            let constant = constants.find(|constant| constant.name_beside(self.stored) == name);
            Ok(constant.map_or(&Value::Null, |constant| &constant.value).column(name, kind, self.rows))
        };
        let columns: Vec<Column> = wanted.iter().map(column).collect::<Result<_, _>>()?;
        frame(self.rows, columns, path)
    }

    fn batch(&self, roots: &[usize]) -> Result<RecordBatch, QueryError> {
        let path = &self.file.file.path;
        let broken = |error: &dyn std::fmt::Display| damaged(path, error);
        let content = File::open(path).map_err(|error| broken(&error))?;
        let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(content, self.file.metadata.clone());
        let mask = ProjectionMask::roots(builder.parquet_schema(), roots.iter().copied());
        let mut reader = builder
            .with_projection(mask)
            .with_row_groups(vec![self.group])
            .with_batch_size(self.rows)
            .build()
            .map_err(|error| broken(&error))?;
        match reader.next() {
            Some(Ok(batch)) if batch.num_rows() == self.rows => Ok(batch),
            Some(Err(error)) => Err(broken(&error)),
            _ => Err(broken(&"it has fewer rows than it says")),
        }
    }
}

fn frame(rows: usize, columns: Vec<Column>, place: &Path) -> Result<DataFrame, QueryError> {
    DataFrame::new(rows, columns).map_err(|error| damaged(place, &error))
}

fn damaged(path: &Path, error: &dyn std::fmt::Display) -> QueryError {
    QueryError::Damaged { path: path.into(), reason: error.to_string() }
}

fn strange(path: &Path, field: &Field) -> QueryError {
    let found = match field.data_type() {
        ArrowType::List(_) | ArrowType::LargeList(_) => "a list".to_owned(),
        other => format!("of type {other}"),
    };
    QueryError::Type { path: path.into(), column: field.name().clone(), found }
}
