//! Codecs of all artifact kinds; related kinds share a file.

/// Declares the codec of rows whose columns are named as the fields of their type: a function that adds the
/// columns to a table, and a function that reads them. `in NAMES` lists the values of a text column.
macro_rules! rows {
    ($encode:ident, $decode:ident: $row:ident { $($kind:ident $field:ident $(in $names:ident)?),+ $(,)? }) => {
        fn $encode<'a>(table: Table, rows: impl IntoIterator<Item = &'a $row, IntoIter: Clone>) -> Table {
            let rows = rows.into_iter();
            table$(.$kind(stringify!($field), rows.clone().map(|row| rows!(@give $kind $($names)?, row.$field))))+
        }

        fn $decode(table: &Columns) -> Result<Vec<$row>, ArtifactError> {
            $(let $field = table.$kind(stringify!($field))?;)+
            let row = |row: usize| -> Result<$row, ArtifactError> {
                Ok($row { $($field: rows!(@take $kind $($names)?, table $field, $field[row])),+ })
            };
            (0..table.rows()).map(row).collect()
        }
    };
    (@give text $names:ident, $value:expr) => { Table::name_of(&$names, $value) };
    (@give text, $value:expr) => { $value.as_str() };
    (@give optional_text, $value:expr) => { $value.as_deref() };
    (@give $kind:ident, $value:expr) => { $value };
    (@take text $names:ident, $table:ident $column:ident, $value:expr) => {
        $table.known(stringify!($column), &$names, &$value)?
    };
    (@take text, $table:ident $column:ident, $value:expr) => { $value.clone() };
    (@take optional_text, $table:ident $column:ident, $value:expr) => { $value.clone() };
    (@take $kind:ident, $table:ident $column:ident, $value:expr) => { $value };
}

mod deltas;
mod files;
mod mapping;
mod prediction;
mod program;
mod routes;
mod system_graph;
mod task_graph;
mod traits;
mod trials;
