//! Codecs of all artifact kinds; related kinds share a file.

use hopmap_model::{
    CheckpointSeries, CheckpointStore, Deltas, Diagnosis, Events, Failures, LaunchFile, Mapping,
    Measurements, Metrics, Prediction, Program, Routes, Schedule, SystemGraph, Tables, TaskDag, TaskGraph,
    TextFile, TraceArchive, TraceSummary, Trials,
};

use crate::codec::Codec;
use crate::form::KindForm;

/// Declares a table: its name, when it is written, the type of its rows, and the columns with their meanings.
/// The type is one of the model, or declared here (`struct`). In front of the columns may be one that numbers
/// the rows: `[rank = "MPI rank"]`. Columns after `given` are written only if a value is not the default, and
/// fields after `other` have no column.
macro_rules! table_rows {
    ($table:literal $(if $when:literal)?: $visibility:vis struct $row:ident $([$index:ident = $numbers:literal])? {
        $($field:ident: $type:ty = $meaning:literal),+ $(,)?
    }) => {
        $visibility struct $row { $($field: $type),+ }
        table_rows!($table $(if $when)?: $row $([$index = $numbers])? { $($field: $type = $meaning),+ });
    };
    ($table:literal $(if $when:literal)?: $row:ident $([$index:ident = $numbers:literal])? {
        $($field:ident $(as $name:ident)?: $type:ty = $meaning:literal),* $(,)?
    } $(given {
        $($given:ident: $given_type:ty = $given_meaning:literal),+ $(,)?
    })? $(other $($other:ident)+)?) => {
        impl $crate::rows::Rows for $row {
            const TABLE: $crate::form::TableForm =
                $crate::form::TableForm { name: $table, when: concat!($($when)?), columns: &[Self::COLUMNS] };
            const COLUMNS: &'static [$crate::form::ColumnForm] = &[
                $($crate::value::column::<u32>(stringify!($index), $numbers),)?
                $($crate::value::column::<$type>(table_rows!(@name $field $($name)?), $meaning),)*
                $($($crate::value::column::<$given_type>(stringify!($given), $given_meaning),)+)?
            ];

            fn add<R: std::borrow::Borrow<Self>>(
                table: $crate::table::Table,
                rows: impl Iterator<Item = R> + Clone,
            ) -> $crate::table::Table {
                $(let table = table.column(stringify!($index), (0u32..).zip(rows.clone()).map(|(row, _)| row));)?
                $(let table = table.column(
                    table_rows!(@name $field $($name)?),
                    rows.clone().map(|row| Clone::clone(&std::borrow::Borrow::<Self>::borrow(&row).$field)),
                );)*
                $($(let table = table.given_column(
                    stringify!($given),
                    rows.clone().map(|row| Clone::clone(&std::borrow::Borrow::<Self>::borrow(&row).$given)),
                );)+)?
                table
            }

            fn read(table: &$crate::table::Columns) -> Result<impl Iterator<Item = Self>, $crate::error::ArtifactError> {
                $(table.index(stringify!($index))?;)?
                $(let $field = table.column::<$type>(table_rows!(@name $field $($name)?))?;)*
                $($(let $given = table.given_column::<$given_type>(stringify!($given))?;)+)?
                Ok((0..table.rows()).map(move |row| Self {
                    $($field: Clone::clone(&$field[row]),)*
                    $($($given: Clone::clone(&$given[row]),)+)?
                    $($($other: Default::default(),)+)?
                }))
            }
        }
    };
    (@name $field:ident) => { stringify!($field) };
    (@name $field:ident $name:ident) => { stringify!($name) };
}

/// Names the values of a type in columns of text.
macro_rules! value_names {
    ($type:ty: $($value:expr => $name:expr),+ $(,)?) => { value_names!($type = &[$(($value, $name)),+]); };
    ($type:ty = $names:expr) => {
        impl $crate::value::Named for $type {
            const NAMES: &'static [(Self, &'static str)] = $names;
        }
    };
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

pub use mapping::saved_at_most;
pub use mapping::{COMPARED, compared};
pub use prediction::is_without_contention;

const fn form_of<C: Codec>() -> KindForm {
    KindForm { kind: C::KIND, summary: C::CONTENTS, tables: C::TABLES, metrics: C::METRICS }
}

/// All kinds, in the order of the registry.
pub static FORMS: &[KindForm] = &[
    form_of::<TaskGraph>(),
    form_of::<TaskDag>(),
    form_of::<Program>(),
    form_of::<SystemGraph>(),
    form_of::<Mapping>(),
    form_of::<Prediction>(),
    form_of::<Schedule>(),
    form_of::<Routes>(),
    form_of::<Tables>(),
    form_of::<Diagnosis>(),
    form_of::<Failures>(),
    form_of::<Deltas>(),
    form_of::<Measurements>(),
    form_of::<Metrics>(),
    form_of::<LaunchFile>(),
    form_of::<TextFile>(),
    form_of::<TraceArchive>(),
    form_of::<CheckpointSeries>(),
    form_of::<CheckpointStore>(),
    form_of::<TraceSummary>(),
    form_of::<Events>(),
    form_of::<Trials>(),
];

/// Contents of artifacts of a kind.
#[must_use]
pub fn form(kind: &str) -> Option<&'static KindForm> {
    FORMS.iter().find(|form| form.kind == kind)
}
