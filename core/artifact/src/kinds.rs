//! The forms of all kinds of artifacts, related ones in one file.

/// Declares the form of rows whose columns are named as the fields of their type: a function that adds the columns to a table, and one that
/// reads them.
macro_rules! rows {
    ($encode:ident, $decode:ident: $row:ident { $($kind:ident $field:ident),+ $(,)? }) => {
        fn $encode<'a>(table: Table, rows: impl IntoIterator<Item = &'a $row, IntoIter: Clone>) -> Table {
            let rows = rows.into_iter();
            table$(.$kind(stringify!($field), rows.clone().map(|row| rows!(@give $kind row.$field))))+
        }

        fn $decode(table: &Columns) -> Result<Vec<$row>, ArtifactError> {
            $(let $field = table.$kind(stringify!($field))?;)+
            Ok((0..table.rows()).map(|row| $row { $($field: rows!(@take $kind $field[row])),+ }).collect())
        }
    };
    (@give text $($value:tt)+) => { $($value)+.as_str() };
    (@give optional_text $($value:tt)+) => { $($value)+.as_deref() };
    (@give $kind:ident $($value:tt)+) => { $($value)+ };
    (@take text $($value:tt)+) => { $($value)+.clone() };
    (@take optional_text $($value:tt)+) => { $($value)+.clone() };
    (@take $kind:ident $($value:tt)+) => { $($value)+ };
}

mod deltas;
mod files;
mod mapping;
mod measurements;
mod routes;
mod system_graph;
mod task_graph;
mod traits;
