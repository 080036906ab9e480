//! SQL over artifacts.

pub use polars::sql::SQLContext;
