//! Errors in the inputs and parameters of stages.

use miette::Diagnostic;

/// An error in the inputs or parameters of a stage, with a remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Diagnostic)]
#[error("{problem}")]
#[diagnostic(code(schedule::invalid_input))]
pub struct InvalidInput {
    /// What is wrong.
    pub problem: String,
    /// The expected value, or the remedy.
    #[help]
    pub help: Option<String>,
}

impl InvalidInput {
    #[cold]
    pub(crate) fn new(problem: impl Into<String>, help: impl Into<String>) -> Self {
        let help = Some(help.into()).filter(|help| !help.is_empty());
        Self { problem: problem.into(), help }
    }
}

/// The same as the result of what cannot go on.
#[cold]
pub(crate) fn invalid<T, E: From<InvalidInput>>(
    problem: impl Into<String>,
    help: impl Into<String>,
) -> Result<T, E> {
    Err(InvalidInput::new(problem, help).into())
}
