//! Lines that would be of a file without what launchers and loggers write before them, found without a reader of the file.

use std::collections::HashSet;

use crate::messages::{behind_time, is_foreign};
use crate::prefix::Prefix;

/// What a prefix is, and the text behind it.
type Kind = (&'static str, fn(&str) -> Option<&str>);

const KINDS: [Kind; 3] = [
    ("a time", behind_time),
    ("a label in brackets", |line| {
        let (label, rest) = line.strip_prefix('[')?.split_once(']')?;
        let of_tag = rest.strip_prefix("<std").and_then(|rest| rest.split_once('>'));
        is_label(label).then_some(of_tag.map_or(rest, |(_, rest)| rest).trim_start_matches([':', ' ']))
    }),
    ("a label with a colon", |line| {
        let (label, rest) = line.split_once(": ")?;
        is_label(label.trim_start()).then_some(rest)
    }),
];

fn is_label(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "._-@/,".contains(c))
}

/// What is before lines of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrefixedLine {
    /// Its kind, with an article.
    pub what: &'static str,
    /// The first line that has it, from one.
    pub line: usize,
    /// How to leave it out.
    pub help: String,
}

/// What is before every line of a text but those of other programs, and the text behind it.
#[must_use]
pub fn prefixed(text: &str) -> Option<(PrefixedLine, String)> {
    KINDS.iter().find_map(|&(what, behind)| {
        let lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
        let lines: Vec<(usize, &str)> =
            lines.filter(|(_, line)| behind(line).is_some() || !is_foreign(line)).collect();
        let all: Vec<&str> = lines.iter().map(|(_, line)| behind(line)).collect::<Option<_>>()?;
        let &(line, first) = lines.first().filter(|_| lines.len() > 1)?;
        let help = Prefix::of(&first[..first.len() - all[0].len()]).help();
        Some((PrefixedLine { what, line, help }, all.join("\n") + "\n"))
    })
}

/// The first line that would be as others of the text without what is before it, such as a time.
///
/// A line that is not of the text by itself may have any prefix, and some words of a log behind it; others only a label in brackets, or
/// with a colon if fewer than half of the lines have one.
#[must_use]
pub fn prefixed_line(text: &str) -> Option<PrefixedLine> {
    let is_own = |line: &&str| !line.trim().is_empty() && !is_foreign(line);
    let has_colon = |line: &str| KINDS[2].1(line).is_some_and(|rest| rest.contains(is_mark));
    let colons = text.lines().filter(|line| has_colon(line)).count();
    let has_few = 2 * colons < text.lines().count();
    let has_any = |line: &str| is_foreign(line) || in_brackets(line).is_some() || has_few && has_colon(line);
    if !text.lines().any(has_any) {
        return None;
    }
    let shapes: HashSet<String> =
        text.lines().filter(is_own).map(shape).filter(|shape| shape.contains(is_telling)).collect();
    (1..).zip(text.lines()).filter(|(_, line)| has_any(line)).find_map(|(number, line)| {
        let of_row = |rest: &str| !rest.is_empty() && shapes.contains(&shape(rest));
        let (what, rest) = rests(line).find(|(_, rest)| of_row(rest))?;
        let help = Prefix::of(&line[..line.len() - rest.len()]).help();
        Some(PrefixedLine { what, line: number, help })
    })
}

fn in_brackets(line: &str) -> Option<&str> {
    KINDS[1].1(line).filter(|rest| !rest.is_empty() && line.contains("] "))
}

/// What follows prefixes at the beginning of a line, and what follows further words of it, if that is more than a word.
fn rests(line: &str) -> impl Iterator<Item = (&'static str, &str)> {
    let mut known = Vec::new();
    let mut rest = line;
    while known.len() < MOST_PREFIXES
        && let Some((what, behind)) =
            KINDS.iter().find_map(|(what, behind)| Some((*what, behind(rest)?.trim_start())))
    {
        known.push((known.first().map_or(what, |(first, _)| *first), behind));
        rest = behind;
    }
    let what = known.first().map_or("other words", |(what, _)| *what);
    let mut words = rest;
    let further = std::iter::from_fn(move || {
        words = words.split_once(char::is_whitespace)?.1.trim_start();
        words.contains(is_mark).then_some((what, words))
    });
    known.into_iter().chain(further.take(MOST_PREFIXES))
}

/// Prefixes of a line, and words behind them, that are looked at.
const MOST_PREFIXES: usize = 4;

/// Whether a character separates or marks parts of a row.
fn is_mark(c: char) -> bool {
    ",;=\"[<\t".contains(c)
}

/// Whether a part of a shape tells a row from words of a message.
fn is_telling(c: char) -> bool {
    c == '9' || is_mark(c)
}

/// The shape of a line, with one blank for several: words are letters `a`, digits `9`, or both `a9`, but all alike between marks, which tell more.
fn shape(line: &str) -> String {
    let is_marked = line.contains(is_mark);
    let mut shape = String::new();
    let mut rest = line.trim();
    while let Some(first) = rest.chars().next() {
        let is_in = |c: char| match first {
            first if first.is_alphanumeric() => c.is_alphanumeric(),
            first if first.is_whitespace() => c.is_whitespace(),
            _ => false,
        };
        let length = rest.find(|c| !is_in(c)).unwrap_or(rest.len()).max(first.len_utf8());
        let (word, behind) = rest.split_at(length);
        match first {
            _ if first.is_whitespace() => shape.push(' '),
            _ if first.is_alphanumeric() => {
                let has = |kind: fn(char) -> bool| word.contains(kind);
                shape.push_str(if is_marked || has(char::is_alphabetic) { "a" } else { "" });
                shape.push_str(if !is_marked && has(char::is_numeric) { "9" } else { "" });
            }
            _ => shape.push(first),
        }
        rest = behind;
    }
    shape
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_behind_a_prefix_is_found() {
        let rows = "n1 slots=4\n%s\nn22 slots=16\n";
        for (line, what) in [
            ("12:00:01 n2 slots=4", Some("a time")),
            ("[2026-11-30 10:00:00,123] n2 slots=4", Some("a time")),
            ("2026-11-30T10:00:00 INFO n2 slots=4", Some("a time")),
            ("2026-11-30T10:00:00 [n2] n2 slots=4", Some("a time")),
            ("[n2] n2 slots=4", Some("a label in brackets")),
            ("srun: error: n2 slots=4", Some("a label with a colon")),
            ("12:00:01 reading hosts", None),
            ("12:00:01 slots=4", None),
            ("admin@login: n2 slots=4", Some("a label with a colon")),
            ("n2 slots=4", None),
        ] {
            let found = prefixed_line(&rows.replace("%s", line));
            assert_eq!(found.as_ref().map(|prefix| prefix.what), what, "{line}: {found:?}");
            assert!(found.is_none_or(|prefix| prefix.line == 2));
        }
        // A word is no row of words.
        assert_eq!(prefixed_line("alpha\n12:00:01 scanning\nbeta\n"), None);
    }
}
