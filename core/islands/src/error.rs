//! What can be wrong with the parameters of a search, and with what other processes say.

use miette::Diagnostic;

use crate::budget::MAX_ISLANDS;

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

/// Processes that do not understand each other.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum DistributedError {
    /// A message that is none.
    #[error("process {process} sent something else than was expected: {problem}")]
    #[diagnostic(help("start the same version of hopmap-ranks everywhere"))]
    Message {
        /// Who sent it.
        process: u32,
        /// What is wrong with it.
        problem: String,
    },
    /// What is to be sent cannot be written down.
    #[error("the state of a search cannot be written down: {problem}")]
    Unwritable {
        /// Why.
        problem: String,
    },
}
