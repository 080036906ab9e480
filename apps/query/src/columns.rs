//! The types of columns, and columns copied between Arrow and Polars.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray, UInt64Array,
};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{
    DataType as ArrowType, Field, Float64Type, Int64Type, Schema as ArrowSchema, UInt64Type,
};
use arrow::error::ArrowError;
use polars::prelude::{
    BooleanChunked, Column, DataFrame, DataType, Float64Chunked, Int64Chunked, IntoColumn, NewChunkedArray,
    PolarsResult, Series, StringChunked, UInt64Chunked,
};

/// The type of a column.
///
/// Integers of artifacts are unsigned and of 32 or 64 bits. In SQL they have 64 bits and a sign, so that a
/// difference may be negative and a sum of ranks needs no thought; only a column that really holds numbers from 2^63
/// on stays unsigned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnType {
    /// Signed integers.
    Whole,
    /// Unsigned integers, some of them at least 2^63.
    Unsigned,
    /// Real numbers.
    Real,
    /// Truth values.
    Truth,
    /// Text.
    Text,
}

impl ColumnType {
    /// Its name in SQL.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Whole => "BIGINT",
            Self::Unsigned => "UBIGINT",
            Self::Real => "DOUBLE",
            Self::Truth => "BOOLEAN",
            Self::Text => "TEXT",
        }
    }

    /// The type that holds values of both.
    pub(crate) fn common(self, other: Self) -> Self {
        let is_number = |kind| matches!(kind, Self::Whole | Self::Unsigned | Self::Real);
        match (self, other) {
            (one, other) if one == other => one,
            (Self::Whole, Self::Unsigned) | (Self::Unsigned, Self::Whole) => Self::Unsigned,
            (one, other) if is_number(one) && is_number(other) => Self::Real,
            _ => Self::Text,
        }
    }

    pub(crate) fn polars(self) -> DataType {
        match self {
            Self::Whole => DataType::Int64,
            Self::Unsigned => DataType::UInt64,
            Self::Real => DataType::Float64,
            Self::Truth => DataType::Boolean,
            Self::Text => DataType::String,
        }
    }

    pub(crate) fn arrow(self) -> ArrowType {
        match self {
            Self::Whole => ArrowType::Int64,
            Self::Unsigned => ArrowType::UInt64,
            Self::Real => ArrowType::Float64,
            Self::Truth => ArrowType::Boolean,
            Self::Text => ArrowType::Utf8,
        }
    }

    /// The type for columns of Arrow; `None` if there is none. Numbers of 64 bits without a sign are asked about.
    pub(crate) fn of(arrow: &ArrowType, is_large: impl FnOnce() -> bool) -> Option<Self> {
        Some(match arrow {
            ArrowType::UInt64 if is_large() => Self::Unsigned,
            whole if whole.is_integer() => Self::Whole,
            ArrowType::Float32 | ArrowType::Float64 => Self::Real,
            ArrowType::Boolean => Self::Truth,
            ArrowType::Utf8 | ArrowType::LargeUtf8 => Self::Text,
            _ => return None,
        })
    }
}

/// Copies a column of Arrow.
pub(crate) fn to_polars(name: &str, kind: ColumnType, array: &ArrayRef) -> Result<Column, ArrowError> {
    let strict = CastOptions { safe: false, ..CastOptions::default() };
    let array = match *array.data_type() == kind.arrow() {
        true => Arc::clone(array),
        false => cast_with_options(array, &kind.arrow(), &strict)?,
    };
    let name = name.into();
    let is_full = array.null_count() == 0;
    Ok(match kind {
        ColumnType::Whole => {
            let array = array.as_primitive::<Int64Type>();
            match is_full {
                true => Int64Chunked::from_slice(name, array.values()),
                false => Int64Chunked::from_iter_options(name, array.iter()),
            }
            .into_column()
        }
        ColumnType::Unsigned => {
            let array = array.as_primitive::<UInt64Type>();
            UInt64Chunked::from_iter_options(name, array.iter()).into_column()
        }
        ColumnType::Real => {
            let array = array.as_primitive::<Float64Type>();
            match is_full {
                true => Float64Chunked::from_slice(name, array.values()),
                false => Float64Chunked::from_iter_options(name, array.iter()),
            }
            .into_column()
        }
        ColumnType::Truth => BooleanChunked::from_iter_options(name, array.as_boolean().iter()).into_column(),
        ColumnType::Text => {
            StringChunked::from_iter_options(name, array.as_string::<i32>().iter()).into_column()
        }
    })
}

/// Copies rows of an answer. Types that artifacts do not have (dates, lists) become text.
pub(crate) fn to_arrow(frame: &DataFrame) -> PolarsResult<RecordBatch> {
    let columns = frame.columns().iter().map(Column::as_materialized_series);
    let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) = columns
        .map(|series| {
            let array = series_to_arrow(series)?;
            Ok((Field::new(series.name().as_str(), array.data_type().clone(), true), array))
        })
        .collect::<PolarsResult<Vec<_>>>()?
        .into_iter()
        .unzip();
    let schema = Arc::new(ArrowSchema::new(fields));
    let options = arrow::array::RecordBatchOptions::new().with_row_count(Some(frame.height()));
    // Every column of a frame has its height.
    Ok(RecordBatch::try_new_with_options(Arc::clone(&schema), arrays, &options)
        .unwrap_or_else(|_| RecordBatch::new_empty(schema)))
}

fn series_to_arrow(series: &Series) -> PolarsResult<ArrayRef> {
    Ok(match series.dtype() {
        DataType::UInt64 => Arc::new(series.u64()?.iter().collect::<UInt64Array>()),
        whole if whole.is_integer() && !matches!(whole, DataType::Int128 | DataType::UInt128) => {
            Arc::new(series.cast(&DataType::Int64)?.i64()?.iter().collect::<Int64Array>())
        }
        DataType::Float32 | DataType::Float64 => {
            Arc::new(series.cast(&DataType::Float64)?.f64()?.iter().collect::<Float64Array>())
        }
        DataType::Boolean => Arc::new(series.bool()?.iter().collect::<BooleanArray>()),
        DataType::String => Arc::new(series.str()?.iter().collect::<StringArray>()),
        DataType::Null => Arc::new(StringArray::from(vec![None::<&str>; series.len()])),
        _ => {
            let text = series.iter().map(|value| (!value.is_null()).then(|| value.to_string()));
            Arc::new(text.collect::<StringArray>())
        }
    })
}
