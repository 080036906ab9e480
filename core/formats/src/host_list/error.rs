//! What can be wrong with a host list.

use miette::{Diagnostic, SourceSpan};

use crate::excerpt::Excerpt;

/// A host list that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Diagnostic)]
#[error("host list, {}: {what}", place(*line, *column))]
pub struct HostListError {
    /// What is wrong.
    pub what: String,
    /// The line, counted from one.
    pub line: usize,
    /// The character of the line, counted from one.
    pub column: usize,
    /// How to mend it.
    #[help]
    pub hint: String,
    /// What stands around the place.
    #[source_code]
    excerpt: String,
    /// The place in the excerpt.
    #[label("here")]
    span: SourceSpan,
}

fn place(line: usize, column: usize) -> String {
    match line {
        1 => format!("column {column}"),
        _ => format!("line {line}, column {column}"),
    }
}

impl HostListError {
    pub(crate) fn new(text: &str, start: usize, end: usize, what: String, hint: impl Into<String>) -> Self {
        let Excerpt { line, column, text, span } = Excerpt::new(text, start, end);
        Self { what, line, column, hint: hint.into(), excerpt: text, span }
    }
}
