//! The error type of text files.

use std::fmt::{self, Display, Formatter};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use hopmap_model::InputError;
use miette::Diagnostic;

/// An error in a file and its position: `path:line:column: problem`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Diagnostic)]
#[diagnostic(code(text::file))]
pub struct FileError {
    /// The file; empty if the text has no known file.
    pub path: PathBuf,
    /// Line number from one, if known.
    pub line: Option<usize>,
    /// Byte column from one, if known.
    pub column: Option<usize>,
    /// What is wrong.
    pub problem: String,
    /// What is expected, or how to fix it.
    #[help]
    pub help: Option<String>,
}

impl FileError {
    /// An error of the entire text.
    #[cold]
    pub fn new(problem: impl Into<String>, help: impl Into<String>) -> Self {
        let help = Some(help.into()).filter(|help| !help.is_empty());
        Self { path: PathBuf::new(), line: None, column: None, problem: problem.into(), help }
    }

    /// An error in a line of a text.
    #[cold]
    pub fn at(line: usize, problem: impl Into<String>, help: impl Into<String>) -> Self {
        Self { line: Some(line), ..Self::new(problem, help) }
    }

    /// A file that cannot be opened or read.
    #[cold]
    #[must_use]
    pub fn unreadable(path: &Path, source: &io::Error) -> Self {
        let help = match (InputError::of(source), source.kind()) {
            (Some(reason), _) => reason.help(),
            (None, ErrorKind::NotFound) => "check the path; in a pipeline file it is relative to that file",
            (None, ErrorKind::PermissionDenied) => "you need read permission",
            (None, ErrorKind::UnexpectedEof) => {
                "the file was not written or copied completely: copy it again"
            }
            _ => "",
        };
        Self::new(format!("cannot be read: {source}"), help).in_file(path)
    }

    /// Sets the file.
    #[must_use]
    pub fn in_file(self, path: &Path) -> Self {
        Self { path: path.to_owned(), ..self }
    }

    /// Replaces the hint.
    #[must_use]
    pub fn with_help(self, help: impl Into<String>) -> Self {
        Self { help: Some(help.into()), ..self }
    }

    /// The hint; empty if there is none.
    #[must_use]
    pub fn help_text(&self) -> &str {
        self.help.as_deref().unwrap_or_default()
    }
}

impl Display for FileError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { path, line, column, problem, .. } = self;
        let is_named = !path.as_os_str().is_empty();
        match line {
            Some(line) if is_named => write!(f, "{}:{line}", path.display())?,
            Some(line) => write!(f, "line {line}")?,
            None if is_named => write!(f, "{}", path.display())?,
            None => return f.write_str(problem),
        }
        match column {
            Some(column) if is_named => write!(f, ":{column}")?,
            Some(column) => write!(f, ", column {column}")?,
            None => {}
        }
        write!(f, ": {problem}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_have_one_format() {
        let error = FileError { column: Some(5), ..FileError::at(3, "`x` is not a number", "") };
        assert_eq!(error.to_string(), "line 3, column 5: `x` is not a number");
        assert_eq!(error.in_file(Path::new("a/b")).to_string(), "a/b:3:5: `x` is not a number");
        assert_eq!(FileError::new("it is empty", "").to_string(), "it is empty");
        assert_eq!(FileError::new("it is empty", "").in_file(Path::new("a")).to_string(), "a: it is empty");
    }

    #[test]
    fn unreadable_files_are_explained() {
        let folder = tempfile::tempdir().unwrap();
        let error = crate::input::read(folder.path(), 9).unwrap_err();
        assert!(error.to_string().ends_with(": cannot be read: it is a folder, not a file"));
        assert_eq!(error.help_text(), "give the path of a file in it");
        let error = crate::input::read(&folder.path().join("none"), 9).unwrap_err();
        assert!(error.help_text().starts_with("check the path"));
    }
}
