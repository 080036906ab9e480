//! What can be wrong with the parameters of a mapper.

mod exact;
mod external;
mod hierarchical;

use miette::Diagnostic;

pub use exact::ExactError;
pub use external::{AnswerError, ExternalError};
pub use hierarchical::HierarchicalError;
pub use hopmap_islands::SearchError;

/// A parameter of the annealing or genetic mappers that makes no search.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum ParameterError {
    /// Something is wrong with the budget.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Budget(#[from] SearchError),
    /// A value that is out of range.
    #[error("{name} is {value}")]
    #[diagnostic(help("{help}"))]
    Value {
        /// The parameter.
        name: &'static str,
        /// Its value.
        value: String,
        /// What it should be.
        help: String,
    },
    /// Nothing is left between the first and the last temperature.
    #[error("the final temperature {last} is not below the initial one, which is {first}")]
    #[diagnostic(help(
        "temperatures are in the unit of F; give a lower `final_temperature` or leave it out"
    ))]
    Temperatures {
        /// Where it begins.
        first: f64,
        /// Where it ends.
        last: f64,
    },
}

impl ParameterError {
    /// Refuses a value if it is not in order.
    pub(crate) fn unless(
        in_order: bool,
        name: &'static str,
        value: &impl ToString,
        help: &str,
    ) -> Result<(), Self> {
        match in_order {
            true => Ok(()),
            false => Err(Self::Value { name, value: value.to_string(), help: help.to_owned() }),
        }
    }
}
