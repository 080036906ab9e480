//! Descriptions of kinds, tables and columns.

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
    /// Its columns, in the order in which they are written.
    pub columns: &'static [ColumnForm],
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

pub(super) const fn always(name: &'static str, columns: &'static [ColumnForm]) -> TableForm {
    TableForm { name, when: "", columns }
}

pub(super) const fn given(
    name: &'static str,
    when: &'static str,
    columns: &'static [ColumnForm],
) -> TableForm {
    TableForm { name, when, columns }
}

pub(super) const fn column(name: &'static str, kind: &'static str, meaning: &'static str) -> ColumnForm {
    ColumnForm { name, kind, meaning }
}

pub(super) const fn files(kind: &'static str, summary: &'static str) -> KindForm {
    KindForm { kind, summary, tables: &[], metrics: &[] }
}
