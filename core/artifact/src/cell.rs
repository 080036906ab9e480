//! Single values of a table, as text or JSON.

use std::fmt::{self, Display};

use arrow_array::{Array, Float64Array, StringArray, UInt32Array, UInt64Array};

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
    /// The value in a row of a column; [`Cell::Null`] for types that no table of ours has.
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
            // Shortest digits that read back as the same number, with an exponent where JSON would have one.
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
