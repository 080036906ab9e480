//! What launchers and loggers write before a line: `0: `, `[1,0]<stdout>:`, `2026-11-29T12:00:00Z `, `Nov 29 12:00:00 n1 app[7]: `.
//! No list has them all, so the shape of such a prefix comes from the lines themselves.

use std::collections::HashSet;
use std::net::Ipv6Addr;

use crate::counts::shown;
use crate::error::FileError;
use crate::messages::{is_foreign, is_launch_file, without_colours};

/// Whether a line is a command that a shell prints with `set -x`, or a rule, which rows of no format of numbers are.
#[must_use]
pub fn is_command_or_rule(line: &str) -> bool {
    let line = line.trim();
    let is_rule = |sign: char| line.len() > 2 && !sign.is_alphanumeric() && line.chars().all(|c| c == sign);
    let command = line.trim_start_matches('+');
    command.len() < line.len() && command.starts_with([' ', '\t']) || line.chars().next().is_some_and(is_rule)
}

/// Whether a line is a sentence, a command or a rule, and no damaged row of numbers: it has two words of letters, and begins with
/// none of digits.
#[must_use]
pub fn is_sentence(line: &str) -> bool {
    let is_word = |word: &str| {
        let word = word.trim_end_matches(['.', ',', ':', ';', '!', '?']);
        word.len() > 1 && word.chars().all(char::is_alphabetic)
    };
    let line = line.trim();
    let begins_with_number =
        line.trim_start_matches(['"', '-', '+', '.', '<']).starts_with(|c: char| c.is_ascii_digit());
    is_command_or_rule(line)
        || !begins_with_number
            && !line.starts_with(['#', '%'])
            && line.split([' ', '\t']).filter(|word| is_word(word)).nth(1).is_some()
}

/// Whether a line has neither a digit, as rows of numbers have, nor a comma, as headers have.
#[must_use]
pub fn has_no_number(line: &str) -> bool {
    !line.bytes().any(|byte| byte.is_ascii_digit() || byte == b',')
}

/// Bytes that a prefix may have.
const LONGEST: usize = 160;

/// Lines one of which is the first of the file rather than of another program.
const FIRST: usize = 4;

/// Bytes from which on a text may be the begin of a longer one.
const PART: usize = 1 << 16;

/// A part of a prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// Letters, digits, and what joins them in names, numbers and dates.
    Word,
    Blanks,
    Sign(u8),
}

impl Part {
    fn of(byte: u8) -> Self {
        match byte {
            b' ' | b'\t' => Self::Blanks,
            _ if byte.is_ascii_alphanumeric() || !byte.is_ascii() || b"._@+-".contains(&byte) => Self::Word,
            _ => Self::Sign(byte),
        }
    }
}

/// The shape of what is before a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prefix {
    parts: Vec<Part>,
    /// An example.
    text: String,
}

impl Prefix {
    pub(crate) fn of(text: &str) -> Self {
        Self { parts: parts(text).map(|(part, _)| part).collect(), text: text.to_owned() }
    }

    /// What is behind such a prefix in a line. Labels are padded, and editors remove blanks at the end of lines.
    #[must_use]
    pub fn behind<'t>(&self, line: &'t str) -> Option<&'t str> {
        let mut rest = line.trim_start_matches([' ', '\t']);
        let mut wanted = self.parts.iter().skip_while(|part| **part == Part::Blanks).peekable();
        while let Some(part) = wanted.next() {
            let length = rest.bytes().take_while(|byte| Part::of(*byte) == *part).count();
            // Blanks part two words, or else are optional.
            let is_optional = *part == Part::Blanks
                && (wanted.peek().is_none_or(|next| **next != Part::Word) || rest.is_empty());
            let is_there = length > 0 || is_optional;
            let length = if matches!(part, Part::Sign(_)) { 1 } else { length };
            rest = is_there.then(|| &rest[length..])?;
        }
        Some(rest)
    }

    /// The command that deletes such prefixes.
    #[must_use]
    pub fn sed(&self) -> String {
        let parts = self.parts.iter().skip_while(|part| **part == Part::Blanks);
        let expression = |part: &Part| match *part {
            Part::Word => "[[:alnum:]._@+-]+".to_owned(),
            Part::Blanks => "[[:blank:]]*".to_owned(),
            Part::Sign(b'\\') => ".".to_owned(),
            Part::Sign(byte) if b",:;<>=#%!~".contains(&byte) => char::from(byte).to_string(),
            Part::Sign(byte) => format!("\\{}", char::from(byte)),
        };
        format!("sed -E 's/^[[:blank:]]*{}//'", parts.map(expression).collect::<String>())
    }

    /// Whether a line begins with it, but for digits.
    #[must_use]
    pub fn is_before(&self, line: &str) -> bool {
        let is_like = |(a, b): (u8, u8)| a == b || a.is_ascii_digit() && b.is_ascii_digit();
        let (line, text) = (line.trim_start(), self.text.trim());
        line.len() >= text.len() && line.bytes().zip(text.bytes()).all(is_like)
    }

    /// Whether it begins with a time, or another message of a log.
    #[must_use]
    pub fn has_time(&self) -> bool {
        is_foreign(&format!("{}x", self.text))
    }

    /// Whether it has only words, which may be the first column of a table.
    #[must_use]
    pub fn is_words(&self) -> bool {
        !self.parts.iter().any(|part| matches!(part, Part::Sign(_)))
    }

    /// Whether it may be before a row that no program wrote: one label, and no words, fields or part of a quote.
    fn is_one_label(&self) -> bool {
        let label = self.text.trim();
        let is_one =
            !label.contains([' ', '\t', '=', ';']) && (label.starts_with('[') || !label.contains(','));
        is_one && !label.starts_with('<') && label.ends_with([':', ']', '>', '|', ')'])
    }

    /// Whether a single value may be a row behind it: behind a time or a label, but not behind the words of a sentence.
    fn is_label(&self) -> bool {
        let parts: Vec<&Part> = self.parts.iter().rev().skip_while(|part| **part == Part::Blanks).collect();
        matches!(
            parts[..],
            [Part::Sign(b':' | b']' | b'>' | b'|' | b')'), ..] | [Part::Word, Part::Sign(b':' | b','), ..]
        )
    }

    /// The error of a line that has a row behind such a prefix.
    #[cold]
    #[must_use]
    pub fn error(&self, line: usize, row: &str) -> FileError {
        let problem = format!("the row `{}` is behind `{}`", shown(row.trim_end()), shown(&self.text));
        FileError::at(line, problem, self.help())
    }

    /// How to leave it out.
    #[must_use]
    pub fn help(&self) -> String {
        format!(
            "print without it (`mpirun` without `--tag-output`, `srun` without `--label`, logs without times), or delete it: `{}`; \
             delete the line if it is a message of another program",
            self.sed()
        )
    }

    /// The error of a text that has such a prefix before every line, and is of this format without, if that is known.
    #[cold]
    #[must_use]
    pub fn of_all(&self, text: &str, format: &str) -> FileError {
        let line = text.lines().position(|line| !line.trim().is_empty() && self.behind(line).is_some());
        let line = line.map(|line| line + 1);
        let is = if format.is_empty() { String::new() } else { format!("; without it, this is `{format}`") };
        let problem = format!("every line is behind `{}`{is}", self.shown());
        FileError { line, ..FileError::new(problem, self.help()) }
    }

    /// An example, for messages.
    #[must_use]
    pub fn shown(&self) -> String {
        shown(&self.text)
    }
}

/// The parts of a text, with their ends.
fn parts(text: &str) -> impl Iterator<Item = (Part, usize)> {
    let bytes = text.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        let part = Part::of(*bytes.get(at)?);
        let length = bytes[at..].iter().take_while(|byte| Part::of(**byte) == part).count();
        at += if matches!(part, Part::Sign(_)) { 1 } else { length };
        Some((part, at))
    })
}

/// Where a prefix of a line may end: behind blanks, brackets and bars, and behind a colon that is not within a time. Nothing is behind
/// the mark of a comment, a quote or a brace.
fn ends(line: &str) -> impl Iterator<Item = usize> {
    let mut before = None;
    let is_comment = line.trim_start().starts_with(['#', '%', ';', '/']);
    let is_within =
        |(part, end): &(Part, usize)| *end <= LONGEST && !matches!(part, Part::Sign(b'"' | b'\'' | b'{'));
    parts(if is_comment { "" } else { line }).take_while(is_within).filter_map(move |(part, end)| {
        // Blanks behind a sign belong to the prefix.
        let goes_on = line[end..].starts_with([' ', '\t']);
        let is_end = match part {
            // Rows may be indented.
            Part::Blanks => before.is_some() && end < line.len(),
            Part::Sign(b'>' | b']' | b'|') => !(goes_on || line[end..].starts_with(':')),
            Part::Sign(b':') => matches!(before, Some(Part::Sign(_))) && !goes_on,
            _ => false,
        };
        before = Some(part);
        is_end.then_some(end)
    })
}

/// The row behind the first words of a line, and what these are like.
pub fn row_behind(line: &str, is_row: impl Fn(&str) -> bool) -> Option<(Prefix, &str)> {
    let word = line.trim_start().split([' ', '\t', ',', ';']).next().unwrap_or_default();
    if word.parse::<Ipv6Addr>().is_ok() {
        return None;
    }
    ends(line).find_map(|end| {
        let row = &line[end..];
        let prefix = Prefix::of(&line[..end]);
        let has_fields = row.trim().contains([' ', '\t', ',', ';', ':', '=']);
        (!row.trim().is_empty() && is_row(row) && (has_fields || prefix.is_label())).then_some((prefix, row))
    })
}

/// What is before every line of a text but those of other programs, if the text is known without it. `is_known` also gets
/// whether it says nothing about the line: it is a time, or the same everywhere.
#[must_use]
pub fn prefix_of_lines(text: &str, mut is_known: impl FnMut(&str, bool) -> bool) -> Option<Prefix> {
    let plain = without_colours(text);
    // A part of a text may end within a line.
    let whole = plain.rfind('\n').filter(|_| text.len() >= PART).map_or(&*plain, |end| &plain[..end]);
    let lines = whole.lines().filter(|line| !line.trim().is_empty());
    lines.clone().take(FIRST).find_map(|first| {
        let has_time = is_foreign(first);
        let mut prefixes = ends(first).map(|end| Prefix::of(&first[..end]));
        prefixes.find(|prefix| {
            let is_same = || lines.clone().all(|line| line.trim_start().starts_with(prefix.text.trim()));
            let is_said =
                || lines.clone().nth(1).is_some() && prefix.text.contains(char::is_alphabetic) && is_same();
            if prefix.is_words() && !is_said() {
                return false;
            }
            let mut behind = Vec::new();
            let is_alike = lines.clone().all(|line| match prefix.behind(line) {
                Some(rest) if has_time || !is_foreign(line) => {
                    behind.extend([rest, "\n"]);
                    true
                }
                _ => is_foreign(line),
            });
            is_alike && !behind.is_empty() && is_known(&behind.concat(), has_time || is_same())
        })
    })
}

/// Refuses a text of which a line would be as others are without what is before it.
///
/// A line of another program may have any words there; others only a label, and at most half of them.
pub fn refuse_prefixed(text: &str) -> Result<(), FileError> {
    let lines = || (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    let may_have = |line: &str| ends(line).any(|end| line[..end].contains(|c: char| ":])>|".contains(c)));
    let mut candidates = lines().filter(|(_, line)| may_have(line)).peekable();
    if candidates.peek().is_none() || is_launch_file(text) {
        return Ok(());
    }
    let is_own = |line: &&str| !line.trim().is_empty() && !is_foreign(line);
    let shapes = Shapes::of(text.lines().filter(is_own));
    // Those of many lines are parts of these.
    let mut common: Vec<Vec<Part>> = Vec::new();
    let found = candidates.find_map(|(number, line)| {
        let (prefix, row) = row_behind(line, |rest| shapes.have(rest))?;
        let has_it = |line: &str| prefix.behind(line).is_some_and(|rest| shapes.have(rest));
        let is_rare = || 2 * lines().filter(|(_, line)| has_it(line)).count() <= lines().count();
        // The end of a sentence may be like a row of words.
        let is_told = row.contains(is_mark) || prefix.text.trim().matches([' ', '\t']).count() < 3;
        let is_lost = is_foreign(line) && is_told
            || prefix.is_one_label() && !common.contains(&prefix.parts) && is_rare();
        if !is_lost && !common.contains(&prefix.parts) {
            common.push(prefix.parts.clone());
        }
        is_lost.then(|| prefix.error(number, row))
    });
    found.map_or(Ok(()), Err)
}

/// The error of a text that its reader refuses, or else that of the words before every line, if these are why.
#[must_use]
pub fn or_prefix(error: FileError, text: &[u8], is_known: impl FnMut(&str, bool) -> bool) -> FileError {
    let text = String::from_utf8_lossy(text);
    prefix_of_lines(&text, is_known).map_or(error, |prefix| prefix.of_all(&text, ""))
}

/// The error of a line that would be as others of the text without any words before it.
#[must_use]
pub fn prefixed_line(text: &str, number: usize) -> Option<FileError> {
    let line = text.lines().nth(number.checked_sub(1)?)?;
    let is_own = |(at, line): &(usize, &str)| *at != number && !line.trim().is_empty() && !is_foreign(line);
    let shapes = Shapes::of((1..).zip(text.lines()).filter(is_own).map(|(_, line)| line));
    let is_told = |rest: &str| rest.contains(is_mark) || !rest.contains(char::is_alphabetic);
    let (prefix, row) = row_behind(line, |rest| is_told(rest) && !shapes.have(line) && shapes.have(rest))?;
    (number > 1 && !prefix.text.contains(['=', ',', ';', '<'])).then(|| prefix.error(number, row))
}

/// What lines of a text, or cells of a column, are like.
#[derive(Debug, Default)]
pub struct Shapes(HashSet<String>);

impl Shapes {
    /// Those of texts that have a number or a mark: a word alone tells nothing.
    pub fn of<'t>(texts: impl IntoIterator<Item = &'t str>) -> Self {
        let shapes = texts.into_iter().map(shape);
        Self(shapes.filter(|shape| shape.contains(|c| c == '9' || is_mark(c))).collect())
    }

    /// Whether one of them is like this.
    #[must_use]
    pub fn have(&self, text: &str) -> bool {
        !text.is_empty() && self.0.contains(&shape(text))
    }
}

/// Whether a character separates or marks parts of a row.
fn is_mark(c: char) -> bool {
    ",;=\"[<\t".contains(c)
}

/// The shape of a text, with one blank for several: words are letters `a`, digits `9`, or both `a9`, but all alike between marks, which
/// tell more.
fn shape(text: &str) -> String {
    let is_marked = text.contains(is_mark);
    let mut shape = String::new();
    let mut rest = text.trim();
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
    fn a_row_behind_a_prefix_is_found_by_the_shape_of_others() {
        let rows = "n1 slots=4\n%s\nn22 slots=16\n";
        for (line, prefix) in [
            ("12:00:01 n2 slots=4", Some("12:00:01 ")),
            ("[2026-11-30 10:00:00,123] n2 slots=4", Some("[2026-11-30 10:00:00,123] ")),
            ("2026-11-30T10:00:00 INFO n2 slots=4", Some("2026-11-30T10:00:00 INFO ")),
            ("2026-11-30T10:00:00 [n2] n2 slots=4", Some("2026-11-30T10:00:00 [n2] ")),
            ("[n2] n2 slots=4", Some("[n2] ")),
            ("srun: error: n2 slots=4", Some("srun: error: ")),
            ("admin@login: n2 slots=4", Some("admin@login: ")),
            ("12:00:01 reading hosts", None),
            ("12:00:01 slots=4", None),
            ("n2 slots=4", None),
        ] {
            let found = refuse_prefixed(&rows.replace("%s", line));
            let error = |prefix| format!("line 2: the row `n2 slots=4` is behind `{prefix}`");
            assert_eq!(found.err().map(|error| error.to_string()), prefix.map(error), "{line}");
        }
        // A word is no row of words.
        assert_eq!(refuse_prefixed("alpha\n12:00:01 scanning\nbeta\n"), Ok(()));
    }

    const PREFIXES: [&str; 12] = [
        "0: ",
        " 12: ",
        "n1.local: ",
        "[1,0]<stdout>:",
        "[rank0]: ",
        "[0] ",
        "2026-11-29T12:00:00.123Z ",
        "2026-11-29 12:00:00,123 - root - INFO - ",
        "[ 12.000001] ",
        "Nov 29 12:00:00 n1 app[7]: ",
        "node01 | ",
        "I1129 12:00:00.000000   12345 a.go:265] ",
    ];

    fn is_csv(row: &str) -> bool {
        row.split(',').count() == 4 && row.split(',').all(|field| field.parse::<u32>().is_ok())
    }

    #[test]
    fn rows_are_found_behind_prefixes_of_any_shape() {
        for prefix in PREFIXES {
            let line = format!("{prefix}0,1,2,30");
            let (found, row) = row_behind(&line, is_csv).unwrap();
            assert_eq!((found.text.as_str(), row), (prefix, "0,1,2,30"));
            assert_eq!(found.behind(&line), Some(row));
            assert_eq!(found.behind(prefix.trim_end()), Some(""));
        }
        let is_number = |text: &str| text.split_whitespace().all(|word| word.parse::<u32>().is_ok());
        assert!(row_behind("12:00:00 5", is_number).is_some());
        for line in ["2026-11-29 12:00:00 INFO step 1", "0,1,2,3", "done", "srun: killed 1"] {
            assert!(row_behind(line, is_number).is_none(), "{line}");
        }
    }

    #[test]
    fn one_shape_fits_the_prefixes_of_all_lines() {
        let text = "srun: warning: a b\n 9: s,d\n10: 0,1,2,3\n\n11: 1,0,2,3\n10:\n";
        let known = |text: &str, _| text == "s,d\n0,1,2,3\n1,0,2,3\n\n";
        let prefix = prefix_of_lines(text, known).unwrap();
        assert_eq!(prefix.sed(), "sed -E 's/^[[:blank:]]*[[:alnum:]._@+-]+:[[:blank:]]*//'");
        assert_eq!(prefix_of_lines("a: b\nc\n", |_, _| true), None);
    }
}
