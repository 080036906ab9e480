//! SQL over artifacts and stores: what `hopmap-query` does, the program behind `hopmap query`.
//!
//! [`Tables`] are rows in memory or Parquet files under names; [`Tables::query`] asks them in SQL and gives an [`Answer`]
//! as Arrow. Polars does the work behind it: columns are copied in and out, and only those that a question needs are read,
//! row group by row group on all cores.
//!
//! The same question about the same tables has the same answer, byte for byte: groups come in the order of their columns
//! unless the question says otherwise. Sums of integers that do not fit are errors.
//!
//! # How a query runs
//!
//! `apps/query` is a package and a program of its own, for the sake of Polars: `hopmap` builds and links without it. Like
//! `hopmap-ranks`, it belongs to the app layer and not to the stages, because it knows stores and pipelines: the library `hopmap` reads them
//! for it. `hopmap query` becomes that program, with the same arguments (`src/query.rs`); there `src/cli/query.rs` finds what is asked
//! about. The questions of a pipeline (`src/pipeline/file.rs`) go to it as JSON, all at once: one start when the file is checked, one
//! after the run, none without questions. Its first argument is the version of `hopmap`, which has to be its own.
//!
//! | `apps/query/src` | |
//! |---|---|
//! | `stored` | which tables a store has of a pipeline |
//! | `queries` | the questions of pipeline files |
//! | `statement` | parses, finds the tables, rejects what is not a query; every name keeps its place, for errors |
//! | `rewrite` | adds an order to what has none, and checks to sums; the result goes to Polars as text |
//! | `source`, `scan` | rows in memory or Parquet files with constants, as Polars asks for them: some columns, perhaps some rows |
//! | `columns` | columns copied from Arrow to Polars and back, no FFI |
//! | `sum` | `checked_sum` |
//! | `answer` | the forms of an answer |
//!
//! Tables are made when a question names them: what a store has of 10,000 cells is not opened for a question about one stage. Polars is
//! built without its Parquet reader, which brings an HTTP and TLS stack; row groups are read by `parquet` on all cores.
//! Polars adds integers modulo 2^64, and numbers of 32 bits modulo 2^32. Columns therefore come as 64 bits with a sign (without, only if
//! they hold numbers from 2^63 on), and `SUM(x)` is asked as `checked_sum(SUM(x), SUM(TRY_CAST(x AS DOUBLE)))`, which fails where the two
//! differ by half of what a wrapped sum is off by.

mod answer;
mod columns;
mod error;
mod expressions;
mod queries;
mod records;
mod rewrite;
mod scan;
mod source;
mod statement;
mod stored;
mod sum;
mod tables;

pub use answer::Answer;
pub use columns::ColumnType;
pub use error::QueryError;
pub use queries::reply;
pub use records::{Record, Value, table_of};
pub use source::{Constant, Source, TableFile};
pub use stored::{add_artifact, tables};
pub use tables::{TableInfo, Tables, check, sql_name};
