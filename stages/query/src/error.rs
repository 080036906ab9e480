//! What can be wrong with a question, or with what it is about.

use std::ops::Range;
use std::path::PathBuf;

use miette::Diagnostic;
use thiserror::Error;

/// Why there is no answer.
#[derive(Debug, Error, Diagnostic)]
pub enum QueryError {
    /// The SQL is wrong.
    #[error("{0}")]
    Sql(Complaint),
    /// A table cannot be read.
    #[error("{} is damaged: {reason}", path.display())]
    #[diagnostic(help(
        "everything in a store can be made again: remove the folder of the artifact and run its pipeline"
    ))]
    Damaged {
        /// File of the table.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A column of a table has a type that SQL does not know here.
    #[error("column `{column}` of {} is {found}, which has no counterpart in SQL here", path.display())]
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
    Write(String),
}

/// What is wrong with a text in SQL, and where.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct Complaint {
    /// What is wrong.
    pub message: String,
    /// Where, in bytes of the text.
    pub span: Range<usize>,
    /// What to say at that place.
    pub label: String,
    /// How to mend it.
    pub help: Option<String>,
}

impl Complaint {
    pub(crate) fn new(message: impl Into<String>, span: Range<usize>) -> Self {
        Self { message: message.into(), span, label: "here".into(), help: None }
    }

    pub(crate) fn help(self, help: impl Into<String>) -> Self {
        Self { help: Some(help.into()), ..self }
    }

    /// Suggests the name that was probably meant, and lists the others.
    pub(crate) fn suggest(self, wrong: &str, what: &str, known: &[&str]) -> Self {
        let label = closest(wrong, known).map(|meant| format!("did you mean `{meant}`?"));
        let help = match known {
            [] => format!("{what}: none"),
            known => format!("{what}: {}", known.join(", ")),
        };
        Self { label: label.unwrap_or_else(|| self.label.clone()), help: Some(help), ..self }
    }
}

impl From<Complaint> for QueryError {
    fn from(complaint: Complaint) -> Self {
        Self::Sql(complaint)
    }
}

/// The known name most like a wrong one, if any is like it at all.
fn closest<'a>(wrong: &str, known: &[&'a str]) -> Option<&'a str> {
    let wrong = wrong.to_lowercase();
    let likeness = |name: &str| strsim::jaro_winkler(&wrong, &name.to_lowercase());
    known
        .iter()
        .copied()
        .filter(|name| likeness(name) > 0.75)
        .max_by(|one, other| likeness(one).total_cmp(&likeness(other)))
}
