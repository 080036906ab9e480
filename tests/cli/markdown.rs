//! Reads the pages of the documentation: code blocks with the marks above them, headings and links.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::sandbox::project;

/// A code block.
#[derive(Debug, PartialEq)]
pub(crate) struct Block {
    /// The line on which it begins, from 1.
    pub(crate) line: usize,
    /// The word behind the fence, such as `sh`.
    pub(crate) kind: String,
    /// The comments directly above it: `<!-- NAME: VALUE -->`.
    pub(crate) marks: Vec<(String, String)>,
    /// Its lines.
    pub(crate) lines: Vec<String>,
}

impl Block {
    /// The values of the marks of a name.
    pub(crate) fn marks<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.marks.iter().filter(move |(other, _)| other == name).map(|(_, value)| value.as_str())
    }

    /// Whether it is for a shell and starts hopmap.
    pub(crate) fn starts_hopmap(&self) -> bool {
        self.kind == "sh" && self.lines.iter().any(|line| line.contains("hopmap "))
    }
}

/// All code blocks of a page.
pub(crate) fn blocks(text: &str) -> Vec<Block> {
    let (mut blocks, mut marks, mut open): (Vec<Block>, Vec<_>, Option<Block>) =
        (Vec::new(), Vec::new(), None);
    for (line, text) in (1..).zip(text.lines()) {
        if let Some(block) = &mut open {
            match text.trim() == "```" {
                true => blocks.extend(open.take()),
                false => block.lines.push(text.to_owned()),
            }
        } else if let Some(kind) = text.strip_prefix("```") {
            let marks = std::mem::take(&mut marks);
            open = Some(Block { line, kind: kind.to_owned(), marks, lines: Vec::new() });
        } else if let Some(mark) = mark(text) {
            marks.push(mark);
        } else {
            marks.clear();
        }
    }
    assert_eq!(open, None, "a block has no end");
    blocks
}

/// Name and value of a mark.
fn mark(line: &str) -> Option<(String, String)> {
    let (name, value) = line.strip_prefix("<!-- ")?.strip_suffix(" -->")?.split_once(": ")?;
    let known = ["setup", "file", "needs", "not run"];
    known.contains(&name).then(|| (name.to_owned(), value.to_owned()))
}

/// The lines of a page outside of code blocks, with their numbers, and without what is between backquotes.
fn prose(text: &str) -> impl Iterator<Item = (usize, String)> {
    let mut inside = false;
    (1..).zip(text.lines()).filter_map(move |(number, line)| {
        let is_fence = line.trim_start().starts_with("```");
        inside ^= is_fence;
        let plain = line.split('`').step_by(2).collect::<Vec<_>>().join("`");
        (!inside && !is_fence).then_some((number, plain))
    })
}

/// The anchors of the headings of a page, as `GitHub` and `mdBook` make them.
pub(crate) fn anchors(text: &str) -> Vec<String> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut inside = false;
    let headings = text.lines().filter(|line| {
        let is_fence = line.trim_start().starts_with("```");
        inside ^= is_fence;
        !inside && line.starts_with('#')
    });
    let anchor = |heading: &str| {
        let words = heading.trim_start_matches('#').trim().to_lowercase().replace(' ', "-");
        let anchor: String =
            words.chars().filter(|letter| letter.is_alphanumeric() || "-_".contains(*letter)).collect();
        let before = seen.entry(anchor.clone()).or_default();
        *before += 1;
        if *before == 1 { anchor } else { format!("{anchor}-{}", *before - 1) }
    };
    headings.map(anchor).collect()
}

/// The targets of the links of a page that lead to files, with their lines.
pub(crate) fn links(text: &str) -> Vec<(usize, String)> {
    let targets = |(number, line): (usize, String)| {
        let parts: Vec<String> = line.split("](").skip(1).map(str::to_owned).collect();
        let targets = parts.into_iter().filter_map(|part| Some(part.split_once(')')?.0.to_owned()));
        targets.map(move |target| (number, target)).collect::<Vec<_>>()
    };
    let is_file = |(_, target): &(usize, String)| !target.contains("://") && !target.starts_with("mailto:");
    prose(text).flat_map(targets).filter(is_file).collect()
}

/// Every Markdown file below a folder of the project.
pub(crate) fn pages_below(folder: &str) -> Vec<PathBuf> {
    fn collect(folder: &Path, found: &mut Vec<PathBuf>) {
        let mut entries: Vec<PathBuf> =
            std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        entries.sort();
        for path in entries {
            if path.is_dir() {
                collect(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    collect(&project().join(folder), &mut found);
    found
}

#[test]
fn pages_are_read_as_they_are_meant() {
    let text = "# A `b/c`: d\n\n<!-- setup: true -->\n<!-- file: x.sh -->\n```sh\nhopmap run x\n```\n\n\
                [x](y.md#z) and `[not](this)`, [w](https://w)\n\n```\nhopmap\n```\n# A b/c d\n";
    let found = blocks(text);
    assert_eq!(found.len(), 2);
    assert_eq!((found[0].line, found[0].kind.as_str(), found[0].starts_hopmap()), (5, "sh", true));
    assert_eq!(found[0].marks("file").collect::<Vec<_>>(), ["x.sh"]);
    assert!(found[1].marks.is_empty() && !found[1].starts_hopmap());
    assert_eq!(anchors(text), ["a-bc-d", "a-bc-d-1"]);
    assert_eq!(links(text), [(9, "y.md#z".to_owned())]);
}
