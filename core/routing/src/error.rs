//! Errors of instances, inventories, parameters, tables and exports.

use miette::Diagnostic;

/// A problem and its remedy: tables that misroute or overload, tables that a format cannot represent, invalid parameters, a
/// failing solver.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Diagnostic)]
#[error("{problem}")]
#[diagnostic(code(route::invalid), help("{help}"))]
pub struct RouteError {
    /// What is wrong.
    pub problem: String,
    /// What to do.
    pub help: String,
}

impl RouteError {
    /// A problem and its help.
    #[must_use]
    pub fn new(problem: impl Into<String>, help: impl Into<String>) -> Self {
        Self { problem: problem.into(), help: help.into() }
    }

    /// A failure of the solver.
    #[must_use]
    pub fn of_solver(problem: impl Into<String>) -> Self {
        Self::new(
            problem,
            "this is a bug of the solver or of hopmap; write the program with route/model and try another solver",
        )
    }
}

/// A result that fails with a problem and a help text.
pub type Result<T, E = RouteError> = std::result::Result<T, E>;

/// Fails with a problem and a help text.
pub fn fail<T, E: From<RouteError>>(problem: impl Into<String>, help: impl Into<String>) -> Result<T, E> {
    Err(RouteError::new(problem, help).into())
}

/// Whether a number is finite and above zero.
#[must_use]
pub fn is_above_zero(value: f64) -> bool {
    value > 0.0 && value.is_finite()
}

/// Whether a number is finite and not negative.
#[must_use]
pub fn is_amount(value: f64) -> bool {
    value >= 0.0 && value.is_finite()
}
