//! Formats of task graphs, schedules, and what PARUS measured.

pub mod dot;
mod graph;
pub mod grf;
mod import;
pub mod ini;
pub mod procs;
pub mod sch;
pub mod stg;
pub mod wfformat;
mod words;

pub use import::{GraphFile, read_graph};
pub(crate) use import::{MOST_BYTES, check};

/// What is wrong with a file, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{problem}", line.map(|line| format!("line {line}: ")).unwrap_or_default())]
pub struct ReadError {
    /// Line, counted from one, if a line is to blame.
    pub line: Option<usize>,
    /// What is wrong.
    pub problem: String,
    /// What it should be, or what to do.
    pub help: String,
}

impl ReadError {
    /// An error in a line.
    pub fn at(line: usize, problem: impl Into<String>, help: impl Into<String>) -> Self {
        Self { line: Some(line), problem: problem.into(), help: help.into() }
    }

    /// An error of the whole file.
    pub fn whole(problem: impl Into<String>, help: impl Into<String>) -> Self {
        Self { line: None, problem: problem.into(), help: help.into() }
    }
}

/// The known name most like a wrong one, if any is like it at all.
fn closest<'a>(wrong: &str, known: &[&'a str]) -> Option<&'a str> {
    let likeness = |name: &str| strsim::jaro_winkler(wrong, name);
    let alike = known.iter().copied().filter(|name| likeness(name) > 0.75);
    alike.max_by(|a, b| likeness(a).total_cmp(&likeness(b)))
}

/// The beginning of a text, as a message shows it.
fn shown(text: &str) -> String {
    let mut shown: String = text.chars().take(40).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}

/// The text that bytes are.
fn text(bytes: &[u8]) -> Result<&str, ReadError> {
    std::str::from_utf8(bytes).map(|text| text.trim_start_matches('\u{feff}')).map_err(|error| {
        let line = bytes[..error.valid_up_to()].split(|&byte| byte == b'\n').count();
        ReadError::at(line, "this is no text in UTF-8", "is the file damaged, or in another encoding?")
    })
}
