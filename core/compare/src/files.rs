//! Files of two artifacts: text line by line, everything else by its bytes.

use hopmap_artifact::{ArtifactError, Folder};
use serde::Serialize;
use similar::TextDiff;

use crate::merge::names;

/// Most lines of a file that are compared line by line: the time grows with their square where all are different.
const MOST_LINES: usize = 5000;
/// Most bytes of a file that is read.
const MOST_BYTES: u64 = 1 << 20;

/// A file that is new, gone or different.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileChange {
    /// Its name.
    pub file: String,
    /// BLAKE3 before; none if it is new.
    pub before: Option<String>,
    /// BLAKE3 after; none if it is gone.
    pub after: Option<String>,
    /// The lines that are different as a unified diff; none of what is no text, or too long.
    pub lines: Option<String>,
}

/// The files that are not the same.
pub(super) fn compare(before: &Folder, after: &Folder) -> Result<Vec<FileChange>, ArtifactError> {
    let (old, new) = (&before.description().files, &after.description().files);
    let mut found = Vec::new();
    for name in names(old, new).into_iter().filter(|name| old.get(*name) != new.get(*name)) {
        let lines = match (text(before, name)?, text(after, name)?) {
            (Some(before), Some(after)) => line_diff(&before, &after),
            _ => None,
        };
        let (before, after) = (old.get(name).cloned(), new.get(name).cloned());
        found.push(FileChange { file: name.clone(), before, after, lines });
    }
    Ok(found)
}

/// The text of a file; empty if there is no such file, nothing if it is no text or too long.
fn text(folder: &Folder, name: &str) -> Result<Option<String>, ArtifactError> {
    if !folder.description().files.contains_key(name) {
        return Ok(Some(String::new()));
    }
    let path = folder.file_path(name);
    let read = || {
        let is_short = std::fs::metadata(&path)?.len() <= MOST_BYTES;
        if is_short { std::fs::read(&path).map(Some) } else { Ok(None) }
    };
    let bytes = read().map_err(|source| ArtifactError::Io { action: "read", path: path.clone(), source })?;
    Ok(bytes.and_then(|bytes| String::from_utf8(bytes).ok()).filter(|text| !text.contains('\0')))
}

fn line_diff(before: &str, after: &str) -> Option<String> {
    let is_short = |text: &str| text.lines().count() <= MOST_LINES;
    (is_short(before) && is_short(after))
        .then(|| TextDiff::from_lines(before, after).unified_diff().context_radius(1).to_string())
}

impl FileChange {
    pub(super) fn words(&self) -> Vec<String> {
        let name = &self.file;
        let what = match (&self.before, &self.after) {
            (None, _) => "is new",
            (_, None) => "is gone",
            _ => "is different",
        };
        let mut lines = vec![format!("file {name} {what}")];
        match &self.lines {
            Some(text) => lines.extend(text.lines().map(|line| format!("  {line}"))),
            None => lines.push("  it is no text, or too long to compare line by line".to_owned()),
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lines_that_differ_are_told() {
        let found = line_diff("a\nb\nc\nd\n", "a\nb\nx\nd\n").unwrap();
        assert_eq!(found, "@@ -2,3 +2,3 @@\n b\n-c\n+x\n d\n");
        assert_eq!(line_diff(&"x\n".repeat(MOST_LINES + 1), ""), None);
        assert_eq!(line_diff("a\n", "a\n").as_deref(), Some(""));
    }
}
