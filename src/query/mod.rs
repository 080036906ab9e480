//! Questions in SQL: which tables a store has of a pipeline, and what pipeline files ask after a run.
//!
//! Every stage is a table of its cells, every table of its artifacts a table with the rows of all cells. Without the
//! feature `analytics` there is nobody to ask, which is said where somebody wants to.

#[cfg(not(feature = "analytics"))]
mod absent;
#[cfg(feature = "analytics")]
mod asked;
#[cfg(feature = "analytics")]
mod cells;
#[cfg(feature = "analytics")]
mod columns;
#[cfg(feature = "analytics")]
mod tables;

use std::path::{Path, PathBuf};

use serde::Serialize;

#[cfg(not(feature = "analytics"))]
pub use absent::{ask, check};
#[cfg(feature = "analytics")]
pub use asked::{ask, check, problem};
#[cfg(feature = "analytics")]
pub use tables::{add_artifact, tables};

/// What to do where SQL is missing.
pub const WITHOUT_ANALYTICS: &str = "build hopmap with it: cargo build --release --features analytics";

/// The answer to a question of a pipeline file.
#[derive(Debug, Clone, Serialize)]
pub struct AnsweredTable {
    /// Name of the table.
    pub name: String,
    /// Names of the columns.
    pub columns: Vec<String>,
    /// The first rows, as text.
    pub rows: Vec<Vec<String>>,
    /// Number of all rows.
    pub all_rows: usize,
    /// Where the whole answer was saved.
    pub saved: Option<PathBuf>,
}

/// Whether an answer can be saved in a file of that name.
#[must_use]
pub fn is_form(path: &Path) -> bool {
    const ENDINGS: [&str; 8] = ["txt", "csv", "json", "jsonl", "ndjson", "arrow", "feather", "parquet"];
    let ending = path.extension().map(|ending| ending.to_string_lossy().to_ascii_lowercase());
    ending.is_some_and(|ending| ENDINGS.contains(&ending.as_str()))
}
