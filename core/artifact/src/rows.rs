//! Rows of tables.

use std::borrow::Borrow;

use crate::error::ArtifactError;
use crate::form::{ColumnForm, TableForm};
use crate::table::{Columns, Table};

/// A type whose values are the rows of a table, or of some of its columns. The macro `table_rows!` of the kinds implements it.
pub(crate) trait Rows: Sized {
    /// The table.
    const TABLE: TableForm;
    /// The columns.
    const COLUMNS: &'static [ColumnForm];

    /// Adds the columns to a table.
    fn add<R: Borrow<Self>>(table: Table, rows: impl Iterator<Item = R> + Clone) -> Table;

    /// The rows of a table.
    fn read(table: &Columns) -> Result<impl Iterator<Item = Self>, ArtifactError>;

    /// The table of rows.
    fn table<R: Borrow<Self>>(rows: impl IntoIterator<Item = R, IntoIter: Clone>) -> Table {
        Self::add(Table::new(Self::TABLE.name), rows.into_iter())
    }
}
