//! Descriptions of kinds, tables and columns, for the reference.

use arrow_schema::{DataType, Field, Schema};

/// An artifact kind.
#[derive(Debug)]
pub struct KindForm {
    /// Its name, such as `task-graph`.
    pub kind: &'static str,
    /// Its contents, in a sentence.
    pub summary: &'static str,
    /// Its tables.
    pub tables: &'static [TableForm],
    /// Its metrics with their meanings. Metrics of mappings are `METRICS` of `hopmap-objective`.
    pub metrics: &'static [(&'static str, &'static str)],
}

/// A table of an artifact.
#[derive(Debug)]
pub struct TableForm {
    /// Its name; the file is `NAME.parquet`.
    pub name: &'static str,
    /// When it is written; empty for always.
    pub when: &'static str,
    /// Its columns in groups, in the order in which they are written.
    pub columns: &'static [&'static [ColumnForm]],
}

impl TableForm {
    /// Its columns, in the order in which they are written.
    pub fn columns(&self) -> impl Iterator<Item = &'static ColumnForm> + Clone {
        self.columns.iter().copied().flatten()
    }

    /// Its columns as those of a Parquet file.
    #[must_use]
    pub fn schema(&self) -> Schema {
        Schema::new(self.columns().map(|column| field(column.name, column.kind)).collect::<Vec<_>>())
    }
}

/// A column of a table.
#[derive(Debug)]
pub struct ColumnForm {
    /// Its name; `*` for one column per metric.
    pub name: &'static str,
    /// Its type: `u32`, `u64`, `f64` or `text`, with `?` where values may be missing.
    pub kind: &'static str,
    /// What it means, with its unit.
    pub meaning: &'static str,
}

/// The column of a type as that of a Parquet file.
pub(crate) fn field(name: &str, kind: &str) -> Field {
    let data_type = match kind.trim_end_matches('?') {
        "u32" => DataType::UInt32,
        "u64" => DataType::UInt64,
        "f64" => DataType::Float64,
        _ => DataType::Utf8,
    };
    Field::new(name, data_type, kind.ends_with('?'))
}
