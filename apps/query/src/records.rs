//! Rows in memory that are made one by one, each with names of its own.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray, UInt64Array};
use arrow::datatypes::{Field, Schema};
use polars::prelude::{AnyValue, Column, DataType, Scalar};

use crate::columns::ColumnType;

/// A value of a row, or of a column that has the same value in all rows of a file.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Nothing is known.
    Null,
    /// True or false.
    Truth(bool),
    /// An integer; of more than 64 bits it becomes a real number.
    Whole(i128),
    /// A real number.
    Real(f64),
    /// Text.
    Text(String),
}

impl Value {
    /// Its type; none for [`Value::Null`], which is of any.
    pub(crate) fn kind(&self) -> Option<ColumnType> {
        Some(match self {
            Self::Null => return None,
            Self::Truth(_) => ColumnType::Truth,
            Self::Whole(number) if i64::try_from(*number).is_ok() => ColumnType::Whole,
            Self::Whole(number) if u64::try_from(*number).is_ok() => ColumnType::Unsigned,
            Self::Whole(_) | Self::Real(_) => ColumnType::Real,
            Self::Text(_) => ColumnType::Text,
        })
    }

    fn whole(&self) -> Option<i64> {
        match self {
            Self::Whole(number) => i64::try_from(*number).ok(),
            _ => None,
        }
    }

    fn unsigned(&self) -> Option<u64> {
        match self {
            Self::Whole(number) => u64::try_from(*number).ok(),
            _ => None,
        }
    }

    fn real(&self) -> Option<f64> {
        match self {
            Self::Whole(number) => Some(*number as f64),
            Self::Real(number) => Some(*number),
            _ => None,
        }
    }

    fn truth(&self) -> Option<bool> {
        match self {
            Self::Truth(truth) => Some(*truth),
            _ => None,
        }
    }

    fn text(&self) -> Option<String> {
        Some(match self {
            Self::Null => return None,
            Self::Truth(truth) => truth.to_string(),
            Self::Whole(number) => number.to_string(),
            Self::Real(number) => number.to_string(),
            Self::Text(text) => text.clone(),
        })
    }

    /// A column with this value in every row.
    pub(crate) fn column(&self, name: &str, kind: ColumnType, rows: usize) -> Column {
        let value = match kind {
            ColumnType::Whole => self.whole().map(AnyValue::Int64),
            ColumnType::Unsigned => self.unsigned().map(AnyValue::UInt64),
            ColumnType::Real => self.real().map(AnyValue::Float64),
            ColumnType::Truth => self.truth().map(AnyValue::Boolean),
            ColumnType::Text => self.text().map(|text| AnyValue::StringOwned(text.into())),
        };
        let kind: DataType = kind.polars();
        Column::new_scalar(name.into(), Scalar::new(kind, value.unwrap_or(AnyValue::Null)), rows)
    }
}

/// One row: names and values.
pub type Record = Vec<(String, Value)>;

/// Rows as a table: all names in the order in which they first appear, null where a row does not have one.
#[must_use]
pub fn table_of(records: &[Record]) -> RecordBatch {
    let mut places: HashMap<&str, usize> = HashMap::new();
    let mut columns: Vec<(&str, Vec<&Value>)> = Vec::new();
    for (row, (name, value)) in records
        .iter()
        .enumerate()
        .flat_map(|(row, record)| record.iter().map(move |pair| (row, (&pair.0, &pair.1))))
    {
        let place = *places.entry(name).or_insert_with(|| {
            columns.push((name, Vec::new()));
            columns.len() - 1
        });
        let values = &mut columns[place].1;
        values.resize(row, &Value::Null);
        values.push(value);
    }
    let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) = columns
        .into_iter()
        .map(|(name, mut values)| {
            values.resize(records.len(), &Value::Null);
            let array = array_of(&values);
            (Field::new(name, array.data_type().clone(), true), array)
        })
        .unzip();
    let schema = Arc::new(Schema::new(fields));
    // Every column was filled up to the number of rows.
    RecordBatch::try_new(Arc::clone(&schema), arrays).unwrap_or_else(|_| RecordBatch::new_empty(schema))
}

fn array_of(values: &[&Value]) -> ArrayRef {
    let kinds = values.iter().filter_map(|value| value.kind());
    let is_negative = |value: &&Value| matches!(value, Value::Whole(number) if *number < 0);
    let kind = match kinds.reduce(ColumnType::common).unwrap_or(ColumnType::Text) {
        // No integer type has both.
        ColumnType::Unsigned if values.iter().any(is_negative) => ColumnType::Real,
        kind => kind,
    };
    match kind {
        ColumnType::Whole => Arc::new(values.iter().map(|value| value.whole()).collect::<Int64Array>()),
        ColumnType::Unsigned => {
            Arc::new(values.iter().map(|value| value.unsigned()).collect::<UInt64Array>())
        }
        ColumnType::Real => Arc::new(values.iter().map(|value| value.real()).collect::<Float64Array>()),
        ColumnType::Truth => Arc::new(values.iter().map(|value| value.truth()).collect::<BooleanArray>()),
        ColumnType::Text => Arc::new(values.iter().map(|value| value.text()).collect::<StringArray>()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Array, AsArray};
    use arrow::datatypes::{DataType, Float64Type};

    #[test]
    fn rows_need_not_have_the_same_names() {
        let row = |pairs: &[(&str, Value)]| -> Record {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
        };
        let table = table_of(&[
            row(&[("a", Value::Whole(1))]),
            row(&[("b", Value::Text("x".into())), ("a", Value::Real(0.5))]),
            row(&[]),
        ]);
        assert_eq!(table.num_rows(), 3);
        assert_eq!(table.schema().field(0).data_type(), &DataType::Float64);
        assert_eq!(
            table.column(0).as_primitive::<Float64Type>().iter().collect::<Vec<_>>(),
            [Some(1.0), Some(0.5), None]
        );
        assert_eq!(table.column(1).null_count(), 2);
    }

    #[test]
    fn numbers_keep_their_value_whatever_the_others_are() {
        let kind = |numbers: &[i128]| {
            let rows: Vec<Record> =
                numbers.iter().map(|&number| vec![("n".into(), Value::Whole(number))]).collect();
            table_of(&rows).schema().field(0).data_type().clone()
        };
        assert_eq!(kind(&[1, -1]), DataType::Int64);
        assert_eq!(kind(&[1, i128::from(u64::MAX)]), DataType::UInt64);
        assert_eq!(kind(&[-1, i128::from(u64::MAX)]), DataType::Float64);
    }
}
