//! What can be wrong with the parameters of a mapper.

use miette::Diagnostic;

use crate::islands::MAX_ISLANDS;

/// Parameters that make no search.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum SearchError {
    /// There are no islands, or far too many.
    #[error("islands is {islands}")]
    #[diagnostic(help("give a number of islands from 1 to {MAX_ISLANDS}"))]
    Islands {
        /// The parameter.
        islands: u32,
    },
    /// The budget is empty.
    #[error("evaluations is 0")]
    #[diagnostic(help("give every island at least one evaluation, or leave `evaluations` out"))]
    Evaluations,
    /// The budget is not a time.
    #[error("seconds is {seconds}")]
    #[diagnostic(help("give a time above zero, or leave `seconds` out"))]
    Seconds {
        /// The parameter.
        seconds: f64,
    },
}
