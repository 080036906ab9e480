//! Types of values in columns.

use std::num::ParseIntError;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, Float64Array, StringArray, UInt32Array, UInt64Array};
use hopmap_model::{CollectiveOperation, SwitchType};

use crate::form::ColumnForm;

/// A type of values in columns; missing values are `None`.
pub trait ColumnValue: Clone {
    /// Its name in the reference: `u32`, `u64`, `f64` or `text`, with `?` if values may be missing.
    const KIND: &'static str;

    /// Values as an Arrow array.
    fn array(values: impl Iterator<Item = Self>) -> ArrayRef;

    /// Reads a column, or says what is wrong with it.
    fn read(column: &dyn Array) -> Result<Vec<Self>, String>;
}

macro_rules! column_values {
    ($($kind:literal: $type:ty, $array:ty, $what:literal, $own:expr;)+) => {$(
        impl ColumnValue for $type {
            const KIND: &'static str = $kind;

            fn array(values: impl Iterator<Item = Self>) -> ArrayRef {
                Arc::new(<$array>::from_iter_values(values))
            }

            fn read(column: &dyn Array) -> Result<Vec<Self>, String> {
                complete(Option::<Self>::read(column)?)
            }
        }

        impl ColumnValue for Option<$type> {
            const KIND: &'static str = concat!($kind, "?");

            fn array(values: impl Iterator<Item = Self>) -> ArrayRef {
                Arc::new(values.collect::<$array>())
            }

            fn read(column: &dyn Array) -> Result<Vec<Self>, String> {
                Ok(typed::<$array>(column, $what)?.iter().map($own).collect())
            }
        }
    )+};
}

column_values! {
    "u32": u32, UInt32Array, "32-bit unsigned numbers", |value| value;
    "u64": u64, UInt64Array, "64-bit unsigned numbers", |value| value;
    "f64": f64, Float64Array, "real numbers", |value| value;
    "text": String, StringArray, "text", |value| value.map(str::to_owned);
}

fn typed<'a, A: Array + 'static>(column: &'a dyn Array, what: &str) -> Result<&'a A, String> {
    let wrong = || format!("should contain {what}, but contains {}", column.data_type());
    column.as_any().downcast_ref().ok_or_else(wrong)
}

fn complete<T>(values: Vec<Option<T>>) -> Result<Vec<T>, String> {
    values.into_iter().collect::<Option<_>>().ok_or_else(|| "has missing values".to_owned())
}

/// The description of a column.
pub(crate) const fn column<T: ColumnValue>(name: &'static str, meaning: &'static str) -> ColumnForm {
    ColumnForm { name, kind: T::KIND, meaning }
}

/// Values that have names in columns of text.
pub(crate) trait Named: Copy + PartialEq + 'static {
    /// All values with their names.
    const NAMES: &'static [(Self, &'static str)];

    fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(known, _)| *known == self).map_or("", |(_, name)| name)
    }

    fn read(column: &dyn Array) -> Result<Vec<Option<Self>>, String> {
        let value = |name: &str| {
            let found = Self::NAMES.iter().find(|(_, known)| *known == name).map(|(value, _)| *value);
            found.ok_or_else(|| format!("has the unknown value `{name}`"))
        };
        typed::<StringArray>(column, "text")?.iter().map(|name| name.map(value).transpose()).collect()
    }
}

impl<T: Named> ColumnValue for T {
    const KIND: &'static str = "text";

    fn array(values: impl Iterator<Item = Self>) -> ArrayRef {
        Arc::new(StringArray::from_iter_values(values.map(Named::name)))
    }

    fn read(column: &dyn Array) -> Result<Vec<Self>, String> {
        complete(<T as Named>::read(column)?)
    }
}

impl ColumnValue for Option<CollectiveOperation> {
    const KIND: &'static str = "text?";

    fn array(values: impl Iterator<Item = Self>) -> ArrayRef {
        Arc::new(values.map(|value| value.map(Named::name)).collect::<StringArray>())
    }

    fn read(column: &dyn Array) -> Result<Vec<Self>, String> {
        Named::read(column)
    }
}

/// The number of the type.
impl ColumnValue for Option<SwitchType> {
    const KIND: &'static str = "u32?";

    fn array(values: impl Iterator<Item = Self>) -> ArrayRef {
        Option::<u32>::array(values.map(|value| value.map(SwitchType::number)))
    }

    fn read(column: &dyn Array) -> Result<Vec<Self>, String> {
        let value = |number| {
            let reason = || format!("holds {number}, which is neither 1 nor 2");
            SwitchType::of_number(number).ok_or_else(reason)
        };
        Option::<u32>::read(column)?.into_iter().map(|number| number.map(value).transpose()).collect()
    }
}

/// Numbers separated by spaces.
impl ColumnValue for Vec<u32> {
    const KIND: &'static str = "text";

    fn array(values: impl Iterator<Item = Self>) -> ArrayRef {
        String::array(values.map(|value| value.iter().map(u32::to_string).collect::<Vec<_>>().join(" ")))
    }

    fn read(column: &dyn Array) -> Result<Vec<Self>, String> {
        let numbers = |text: &String| {
            let numbers = text.split_whitespace().map(str::parse).collect::<Result<_, _>>();
            numbers.map_err(|error: ParseIntError| error.to_string())
        };
        String::read(column)?.iter().map(numbers).collect()
    }
}
