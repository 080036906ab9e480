//! What can be wrong with a question, or with what it is about.

use std::path::PathBuf;

use hopmap::source::Problem;
use miette::Diagnostic;
use thiserror::Error;

/// Why there is no answer.
#[derive(Debug, Error, Diagnostic)]
pub enum QueryError {
    /// The SQL is wrong.
    #[error("{}", .0.message)]
    #[diagnostic(code(query::sql))]
    Sql(Problem),
    /// A table cannot be read.
    #[error("{} is damaged: {reason}", path.display())]
    #[diagnostic(
        code(query::damaged),
        help(
            "everything in a store can be recomputed: remove the folder of the artifact and run its pipeline"
        )
    )]
    Damaged {
        /// File of the table.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A column of a table has a type that SQL does not know here.
    #[error("column `{column}` of {} is {found}, which has no counterpart in SQL here", path.display())]
    #[diagnostic(code(query::query_type))]
    Type {
        /// File of the table.
        path: PathBuf,
        /// The column.
        column: String,
        /// Its type.
        found: String,
    },
    /// The answer cannot be written.
    #[error("cannot write the answer: {0}")]
    #[diagnostic(code(query::write))]
    Write(String),
}

impl From<Problem> for QueryError {
    fn from(problem: Problem) -> Self {
        Self::Sql(problem)
    }
}
