//! SQL over artifacts and stores: what `hopmap-query` does, the program behind `hopmap query`.
//!
//! [`Tables`] are rows in memory or Parquet files under names; [`Tables::query`] asks them in SQL and gives an [`Answer`]
//! as Arrow. Polars does the work behind it: columns are copied in and out, and only those that a question needs are read,
//! row group by row group on all cores.
//!
//! The same question about the same tables has the same answer, byte for byte: groups come in the order of their columns
//! unless the question says otherwise. Sums of whole numbers that do not fit are errors.

mod answer;
mod asked;
mod columns;
mod error;
mod expressions;
mod records;
mod rewrite;
mod scan;
mod source;
mod statement;
mod stored;
mod sum;
mod tables;

pub use answer::Answer;
pub use asked::reply;
pub use columns::ColumnType;
pub use error::QueryError;
pub use records::{Record, Value, table_of};
pub use source::{Constant, Source, TableFile};
pub use stored::{add_artifact, tables};
pub use tables::{TableInfo, Tables, check, sql_name};
