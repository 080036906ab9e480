//! What can be wrong with instances, inventories, parameters, tables and what they are written as.

use std::fmt::Display;

use miette::Diagnostic;

/// What is wrong, and what to do: tables that do not bring every stream where it belongs or take more than there is, tables that a format
/// cannot hold, parameters that make no search, a solver that fails.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Diagnostic)]
#[error("{problem}")]
#[diagnostic(help("{help}"))]
pub struct RouteError {
    /// What is wrong.
    pub problem: String,
    /// What to do.
    pub help: String,
}

impl RouteError {
    pub(crate) fn new(problem: impl Into<String>, help: impl Into<String>) -> Self {
        Self { problem: problem.into(), help: help.into() }
    }

    /// A solver that does not solve.
    pub(crate) fn of_solver(problem: impl Into<String>) -> Self {
        Self::new(
            problem,
            "this is a fault of the solver or of hopmap; route/model writes the program, to look at it with another one",
        )
    }
}

/// What fails with a problem and a help.
pub(crate) type Result<T, E = RouteError> = std::result::Result<T, E>;

/// Fails with what is wrong and what to do.
pub(crate) fn fail<T, E: From<RouteError>>(
    problem: impl Into<String>,
    help: impl Into<String>,
) -> Result<T, E> {
    Err(RouteError::new(problem, help).into())
}

/// Refuses the value of a parameter unless it is as it has to be, which `help` says.
pub(crate) fn require(is_right: bool, name: &str, value: impl Display, help: &str) -> Result<()> {
    if is_right { Ok(()) } else { fail(format!("{name} is {value}"), help) }
}

/// Whether a number is above zero and has an end.
pub(crate) fn is_above_zero(value: f64) -> bool {
    value > 0.0 && value.is_finite()
}

/// Whether a number is zero or more and has an end.
pub(crate) fn is_amount(value: f64) -> bool {
    value >= 0.0 && value.is_finite()
}
