//! The words of a target file, with their lines.

use std::path::Path;

use crate::import::ImportError;
use crate::import::reader::malformed;

/// Words between white space, one behind the other.
pub(in crate::import) struct Words<'a> {
    path: &'a Path,
    text: &'a str,
    place: usize,
    /// Line of the place, counted from one.
    line: usize,
}

impl<'a> Words<'a> {
    pub(in crate::import) fn new(path: &'a Path, text: &'a str) -> Self {
        Self { path, text, place: 0, line: 1 }
    }

    /// The next word, and the line it stands in.
    pub(super) fn next(&mut self) -> Option<(&'a str, usize)> {
        let rest = self.text.get(self.place..)?;
        let word = rest.trim_start();
        let blank = rest.len() - word.len();
        self.line += rest.bytes().take(blank).filter(|&byte| byte == b'\n').count();
        let length = word.find(char::is_whitespace).unwrap_or(word.len());
        self.place += blank + length;
        word.get(..length).filter(|word| !word.is_empty()).map(|word| (word, self.line))
    }

    /// The next word, which has to be a whole number in a range.
    pub(super) fn number(&mut self, what: &str, least: i64, most: i64) -> Result<i64, ImportError> {
        let help = || format!("{what} is a whole number from {least} to {most}");
        let Some((word, line)) = self.next() else {
            return Err(self.error(format!("the file ends where {what} should be"), help()));
        };
        match word.parse::<i64>() {
            Ok(number) if (least..=most).contains(&number) => Ok(number),
            _ => Err(malformed(self.path, line, format!("{what} is `{}`", shown(word)), help())),
        }
    }

    /// An error at the word that was read last.
    pub(super) fn error(&self, problem: impl Into<String>, help: impl Into<String>) -> ImportError {
        malformed(self.path, self.line, problem, help)
    }

    /// The line of the next word, if there is one.
    pub(super) fn line_of_rest(&mut self) -> Option<usize> {
        self.next().map(|(_, line)| line)
    }
}

/// The beginning of a word.
pub(super) fn shown(word: &str) -> String {
    const MOST: usize = 40;
    match word.char_indices().nth(MOST) {
        None => word.to_owned(),
        Some((end, _)) => word.get(..end).unwrap_or_default().to_owned() + "…",
    }
}
