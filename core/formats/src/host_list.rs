//! Lists of host names in Slurm syntax: `node[001-128,200-210],login1`.
//!
//! Commas or white space separate names. A bracket expands to each of its numbers, with at least as many
//! digits as the first number of the range: `n[08-10]` is `n08 n09 n10`. A name may contain several
//! brackets; the numbers of the last one change fastest, then those of the first, the second and so on.
//! Duplicates are kept. All this matches `scontrol show hostnames` (Slurm 22.05). In addition, text may
//! follow the last bracket, `n[1-2]-ib`, and ranges may be longer than 65,536. Where `scontrol` guesses,
//! this reader reports an error: brackets that are not closed, open ranges (`n[1-]`), spaces inside
//! brackets.

use std::fmt::Write;
use std::net::Ipv6Addr;
use std::path::Path;

use hopmap_text::FileError;
use miette::{Diagnostic, SourceSpan};

/// Maximum number of names in a list.
pub const MAX_NAMES: usize = 1 << 22;
/// Maximum bytes of a name: that of a host name (RFC 1035).
pub const MAX_NAME_BYTES: usize = 255;

/// A host list is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Diagnostic)]
#[error("host list, {}: {what}", place(*line, *column))]
#[diagnostic(code(formats::host_list))]
pub struct HostListError {
    /// Problem.
    pub what: String,
    /// The line, counted from one.
    pub line: usize,
    /// The character of the line, counted from one.
    pub column: usize,
    /// Hint.
    #[help]
    pub hint: String,
    /// Text around the position.
    #[source_code]
    pub(crate) excerpt: String,
    /// Position in the excerpt.
    #[label("here")]
    pub(crate) span: SourceSpan,
}

fn place(line: usize, column: usize) -> String {
    match line {
        1 => format!("column {column}"),
        _ => format!("line {line}, column {column}"),
    }
}

impl HostListError {
    /// A fault at `start..end`, byte offsets at character boundaries, with the text around it: a list can be one line of a million names.
    pub(crate) fn new(text: &str, start: usize, end: usize, what: String, hint: impl Into<String>) -> Self {
        const MARGIN: usize = 48;
        let line_start = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
        let line_end = text[start..].find('\n').map_or(text.len(), |newline| start + newline);
        let end = end.clamp(start, line_end);
        let from = text.floor_char_boundary(start.saturating_sub(MARGIN)).max(line_start);
        let to = text.ceil_char_boundary((end.min(start + MARGIN) + MARGIN).min(line_end)).min(line_end);
        let cut = if from > line_start { "…" } else { "" };
        let rest = if to < line_end { "…" } else { "" };
        Self {
            what,
            line: text[..start].matches('\n').count() + 1,
            column: text[line_start..start].chars().count() + 1,
            hint: hint.into(),
            excerpt: format!("{cut}{}{rest}", &text[from..to]),
            span: (cut.len() + start - from, end.min(to) - start).into(),
        }
    }

    /// The same as an error of a file.
    #[must_use]
    pub fn in_file(self, path: &Path) -> FileError {
        FileError { column: Some(self.column), ..FileError::at(self.line, self.what, self.hint) }
            .in_file(path)
    }
}

/// Whether every launcher reads a host name as one word: no separator, comment, count or repetition character.
#[must_use]
pub fn is_host_name(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_alphanumeric())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
}

/// What a host name may be, as a hint.
pub const HOST_NAMES: &str =
    "a host name has letters, digits, `-`, `_` and `.`, and begins with a letter or a digit";

/// What to do with a name that is none.
#[must_use]
pub fn help_on_name(name: &str) -> &'static str {
    match is_ipv6(name.trim_matches(['[', ']'])) {
        true => {
            "launch files of MPICH and others take what follows a `:` for the number of slots: name the host by its name"
        }
        false => HOST_NAMES,
    }
}

/// Number of digits that always fit into 64 bits.
const MAX_DIGITS: usize = 18;

/// The names of a list in order, as `scontrol show hostnames` prints them.
///
/// Takes time and memory proportional to the names and the text. An empty list is valid.
pub fn expand(text: &str) -> Result<Vec<String>, HostListError> {
    expand_within(text, MAX_NAMES)
}

/// The same for at most `most` names.
pub(crate) fn expand_within(text: &str, most: usize) -> Result<Vec<String>, HostListError> {
    expand_from(text, 0, most)
}

/// The same for what follows a byte of a text, in which errors have their position.
pub(crate) fn expand_from(text: &str, start: usize, most: usize) -> Result<Vec<String>, HostListError> {
    let mut names = Vec::new();
    let mut position = start;
    while position < text.len() {
        let Some(start) = text[position..].find(|c| !is_separator(c)).map(|offset| position + offset) else {
            break;
        };
        let (pattern, end) = Pattern::read(text, start)?;
        let count = pattern.count();
        if count > most - names.len() {
            let what = format!("more than {MAX_NAMES} names");
            let hint = "check the ranges: no machine has that many hosts";
            return Err(HostListError::new(text, start, end, what, hint));
        }
        pattern.check_length(text, start, end)?;
        pattern.write(count, &mut names);
        position = end;
    }
    Ok(names)
}

pub(crate) fn is_separator(c: char) -> bool {
    c == ',' || c.is_whitespace()
}

/// Consecutive numbers.
#[derive(Debug, Clone, Copy)]
struct Range {
    low: u64,
    high: u64,
    /// Minimum digits of each number.
    width: usize,
}

impl Range {
    fn count(self) -> usize {
        usize::try_from(self.high - self.low).unwrap_or(usize::MAX).saturating_add(1)
    }

    /// The `index`-th number.
    fn number(self, index: usize) -> (u64, usize) {
        (self.low + index as u64, self.width)
    }
}

/// A name with brackets.
struct Pattern<'a> {
    /// Text before each bracket.
    heads: Vec<&'a str>,
    /// The ranges of each bracket.
    brackets: Vec<Vec<Range>>,
    /// Text after the last bracket.
    tail: &'a str,
}

impl<'a> Pattern<'a> {
    /// Parses the name that starts at `start`, and returns its end.
    fn read(text: &'a str, start: usize) -> Result<(Self, usize), HostListError> {
        let mut pattern = Self { heads: Vec::new(), brackets: Vec::new(), tail: "" };
        let mut head = start;
        loop {
            let rest = &text[head..];
            let stop = |c: char| is_separator(c) || c == '[' || c == ']' || c.is_control();
            let end = rest.find(stop).map_or(text.len(), |offset| head + offset);
            match text[end..].chars().next() {
                Some('[')
                    if end == start
                        && let Some(address) = bracketed_address(&text[end + 1..]) =>
                {
                    pattern.tail = address;
                    return Ok((pattern, end + 1 + address.len() + 1));
                }
                Some('[') => {
                    let close = closing(text, end)?;
                    pattern.heads.push(&text[head..end]);
                    pattern.brackets.push(ranges(text, end + 1, close)?);
                    head = close + 1;
                }
                Some(']') => {
                    let what = "unmatched closing bracket".to_owned();
                    let hint = "write numbers between brackets: node[001-128,200-210]";
                    return Err(HostListError::new(text, end, end + 1, what, hint));
                }
                Some(c) if !is_separator(c) => {
                    let what = format!("the character {c:?} is not allowed in a name");
                    let hint = "a host list is plain text: names separated by commas or white space";
                    return Err(HostListError::new(text, end, end + c.len_utf8(), what, hint));
                }
                _ => {
                    pattern.tail = &text[head..end];
                    return Ok((pattern, end));
                }
            }
        }
    }

    fn count(&self) -> usize {
        self.brackets.iter().map(|ranges| total(ranges)).fold(1, usize::saturating_mul)
    }

    fn check_length(&self, text: &str, start: usize, end: usize) -> Result<(), HostListError> {
        let digits = |range: &Range| range.width.max(range.high.checked_ilog10().unwrap_or(0) as usize + 1);
        let numbers = self.brackets.iter().map(|ranges| ranges.iter().map(digits).max().unwrap_or(0));
        let heads = self.heads.iter().map(|head| head.len());
        let length = heads.chain(numbers).sum::<usize>() + self.tail.len();
        if length <= MAX_NAME_BYTES {
            return Ok(());
        }
        let what = format!("a name of {length} bytes, more than {MAX_NAME_BYTES}");
        Err(HostListError::new(text, start, end, what, "separate names by commas or white space"))
    }

    fn write(&self, count: usize, names: &mut Vec<String>) {
        match &self.brackets[..] {
            [] => names.push(self.tail.to_owned()),
            [ranges] => names.extend(numbers(ranges).map(|number| self.name(&[number]))),
            brackets => {
                let numbers: Vec<Vec<_>> = brackets.iter().map(|ranges| numbers(ranges).collect()).collect();
                let mut digits = vec![0; brackets.len()];
                names.extend((0..count).map(|_| {
                    let chosen: Vec<_> = digits.iter().zip(&numbers).map(|(&digit, n)| n[digit]).collect();
                    step(&mut digits, &numbers);
                    self.name(&chosen)
                }));
            }
        }
    }

    fn name(&self, numbers: &[(u64, usize)]) -> String {
        let mut name = String::new();
        for (head, &(number, width)) in self.heads.iter().zip(numbers) {
            name.push_str(head);
            // Writing to a string cannot fail.
            let _ = write!(name, "{number:0width$}");
        }
        name.push_str(self.tail);
        name
    }
}

/// The IP address behind a bracket, if it is a name.
fn bracketed_address(text: &str) -> Option<&str> {
    let (address, after) = text.split_once(']')?;
    let is_whole = after.chars().next().is_none_or(is_separator);
    (is_whole && is_ipv6(address)).then_some(address)
}

pub(crate) fn is_ipv6(name: &str) -> bool {
    name.split('%').next().is_some_and(|address| address.parse::<Ipv6Addr>().is_ok())
}

/// Advances to the next combination: the last bracket changes fastest, then the first, the second and so on.
fn step<T>(digits: &mut [usize], numbers: &[Vec<T>]) {
    let last = digits.len() - 1;
    for index in std::iter::once(last).chain(0..last) {
        digits[index] += 1;
        if digits[index] < numbers[index].len() {
            return;
        }
        digits[index] = 0;
    }
}

fn total(ranges: &[Range]) -> usize {
    ranges.iter().map(|range| range.count()).fold(0, usize::saturating_add)
}

fn numbers(ranges: &[Range]) -> impl Iterator<Item = (u64, usize)> + '_ {
    ranges.iter().flat_map(|range| (0..range.count()).map(|index| range.number(index)))
}

/// Position of the bracket that closes the one at `open`.
fn closing(text: &str, open: usize) -> Result<usize, HostListError> {
    let inside = &text[open + 1..];
    match inside.find(|c: char| !(c.is_ascii_digit() || c == ',' || c == '-')) {
        Some(offset) if inside[offset..].starts_with(']') => Ok(open + 1 + offset),
        None => {
            let what = "unclosed bracket".to_owned();
            Err(HostListError::new(text, open, text.len(), what, "close it with `]`"))
        }
        Some(offset) => {
            let place = open + 1 + offset;
            let c = inside[offset..].chars().next().unwrap_or(' ');
            let what = match inside[offset..].contains(']') {
                true => format!("{c:?} inside a bracket"),
                false => format!("{c:?} inside an unclosed bracket"),
            };
            let hint = "brackets contain only numbers and ranges, separated by commas: [001-128,200-210]";
            Err(HostListError::new(text, place, place + c.len_utf8(), what, hint))
        }
    }
}

/// The ranges between `start` and `end`.
fn ranges(text: &str, start: usize, end: usize) -> Result<Vec<Range>, HostListError> {
    let mut position = start;
    text[start..end]
        .split(',')
        .map(|item| {
            let range = range(text, item, position);
            position += item.len() + 1;
            range
        })
        .collect()
}

/// The range `item`, which starts at `start`.
fn range(text: &str, item: &str, start: usize) -> Result<Range, HostListError> {
    let end = start + item.len();
    let fault = |what: String, hint| {
        HostListError::new(text, start, end.max((start + 1).min(text.len())), what, hint)
    };
    let (low, high) = item.split_once('-').unwrap_or((item, item));
    if item.is_empty() {
        return Err(fault("missing number".to_owned(), "write one between the commas: [1,3,5-7]"));
    }
    if low.is_empty() || high.is_empty() || high.contains('-') {
        let what = format!("`{item}` is not a range");
        return Err(fault(what, "a range has a first and a last number: [1-16]"));
    }
    let number = |digits: &str| digits.parse::<u64>().ok().filter(|_| digits.len() <= MAX_DIGITS);
    let (Some(first), Some(last)) = (number(low), number(high)) else {
        let what = format!("a number of more than {MAX_DIGITS} digits");
        return Err(fault(what, "write the name without brackets"));
    };
    match first <= last {
        true => Ok(Range { low: first, high: last, width: low.len() }),
        false => Err(fault(
            format!("the range is descending, from {low} to {high}"),
            "write the smaller number first",
        )),
    }
}

/// The shortest list as printed by `scontrol show hostlist`: names keep their order, and consecutive names
/// that differ only in their trailing digits share a bracket.
///
/// [`expand`](expand) and `scontrol show hostnames` restore the names unless they are empty or contain
/// brackets, commas, white space or control characters.
pub fn compress<S: AsRef<str>>(names: impl IntoIterator<Item = S>) -> String {
    let mut list = List::default();
    for name in names {
        list.add(name.as_ref());
    }
    list.close();
    list.text
}

/// A list under construction.
#[derive(Default)]
struct List {
    text: String,
    /// Prefix of the names of the open bracket.
    prefix: String,
    ranges: Vec<Range>,
}

impl List {
    fn add(&mut self, name: &str) {
        let Some((prefix, digits, number)) = parts(name) else {
            self.close();
            self.part();
            self.text.push_str(name);
            return;
        };
        if self.ranges.is_empty() || prefix != self.prefix {
            self.close();
            prefix.clone_into(&mut self.prefix);
        }
        match self.ranges.last_mut() {
            Some(range) if range.high + 1 == number && written(number, range.width) == digits => {
                range.high = number;
            }
            _ => self.ranges.push(Range { low: number, high: number, width: digits.len() }),
        }
    }

    /// Writes the names of the open bracket.
    fn close(&mut self) {
        let ranges = std::mem::take(&mut self.ranges);
        if ranges.is_empty() {
            return;
        }
        self.part();
        self.text.push_str(&self.prefix);
        if let [Range { low, high, width }] = ranges[..]
            && low == high
        {
            self.text.push_str(&written(low, width));
            return;
        }
        for (index, Range { low, high, width }) in ranges.into_iter().enumerate() {
            self.text.push(if index == 0 { '[' } else { ',' });
            self.text.push_str(&written(low, width));
            if high > low {
                // Writing to a string cannot fail.
                let _ = write!(self.text, "-{high:0width$}");
            }
        }
        self.text.push(']');
    }

    fn part(&mut self) {
        if !self.text.is_empty() {
            self.text.push(',');
        }
    }
}

fn written(number: u64, width: usize) -> String {
    format!("{number:0width$}")
}

/// A name split into a prefix and its trailing digits, with their value; `None` without digits or with too
/// many.
fn parts(name: &str) -> Option<(&str, &str, u64)> {
    let (prefix, digits) = name.split_at(name.trim_end_matches(|c: char| c.is_ascii_digit()).len());
    let number = digits.parse().ok().filter(|_| digits.len() <= MAX_DIGITS)?;
    Some((prefix, digits, number))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> String {
        expand(text).unwrap().join(" ")
    }

    fn fault(text: &str) -> (usize, String) {
        let error = expand(text).unwrap_err();
        assert!(!error.hint.is_empty());
        (error.column, error.what)
    }

    /// Output of `scontrol show hostnames` of Slurm 22.05.
    #[test]
    fn names_have_the_order_of_scontrol() {
        for (text, expected) in [
            ("n[1-3],x[01-03,10]", "n1 n2 n3 x01 x02 x03 x10"),
            ("a[3,1]", "a3 a1"),
            ("a[01-3]", "a01 a02 a03"),
            ("a[9-11],b[009-11]", "a9 a10 a11 b009 b010 b011"),
            ("a[8-0010]", "a8 a9 a10"),
            ("a[1-2]b[3-4]", "a1b3 a1b4 a2b3 a2b4"),
            ("a[1-2]3[4-5]", "a134 a135 a234 a235"),
            ("a[1-2]b[1-2]c[1-2]", "a1b1c1 a1b1c2 a2b1c1 a2b1c2 a1b2c1 a1b2c2 a2b2c1 a2b2c2"),
            ("[1-3]", "1 2 3"),
            ("n[1-2],n1", "n1 n2 n1"),
            ("a,,b", "a b"),
            (",a[1-2],", "a1 a2"),
            (" a\tb\nc, d ", "a b c d"),
            ("a{1}", "a{1}"),
            // Not of scontrol.
            ("a[1-2]-ib,b[1]b[3]c", "a1-ib a2-ib b1b3c"),
            ("[fe80::1%eth0],a [::1]", "fe80::1%eth0 a ::1"),
            ("", ""),
        ] {
            assert_eq!(names(text), expected, "{text}");
        }
    }

    #[test]
    fn errors_have_a_column() {
        for (text, column, what) in [
            ("a[1-2", 2, "unclosed bracket"),
            ("ok,a]", 5, "unmatched closing bracket"),
            ("a[2-1]", 3, "the range is descending, from 2 to 1"),
            ("a[]", 3, "missing number"),
            ("a[1,,2]", 5, "missing number"),
            ("a[1-]", 3, "`1-` is not a range"),
            ("a[1,-2]", 5, "`-2` is not a range"),
            ("a[1-2-3]", 3, "`1-2-3` is not a range"),
            ("a[1-x]", 5, "'x' inside a bracket"),
            ("[::1]:2", 2, "':' inside a bracket"),
            ("a[::1]", 3, "':' inside a bracket"),
            ("a[[1]]", 3, "'[' inside a bracket"),
            ("a[1 -2]", 4, "' ' inside a bracket"),
            ("é,a[1 b", 6, "' ' inside an unclosed bracket"),
            ("a\0", 2, "the character '\\0' is not allowed in a name"),
            ("a[1234567890123456789]", 3, "a number of more than 18 digits"),
        ] {
            assert_eq!(fault(text), (column, what.to_owned()), "{text}");
        }
        assert_eq!(
            expand("a\nb[3-2]").unwrap_err().to_string(),
            "host list, line 2, column 3: the range is descending, from 3 to 2"
        );
    }

    #[test]
    fn oversized_lists_are_rejected_before_they_take_memory() {
        let most = format!("more than {MAX_NAMES} names");
        assert_eq!(fault("n1,n[0-99999999999]"), (4, most.clone()));
        assert_eq!(fault("n[0-999999]x[0-999999]y[0-999999]z[0-999999]"), (1, most.clone()));
        assert_eq!(fault("n[0-999999999999999999,0-999999999999999999]"), (1, most));
        assert_eq!(expand_within("n[1-4],m", 4).unwrap_err().column, 8);
        assert_eq!(expand_within("n[1-4],m", 5).unwrap().len(), 5);
        assert_eq!(fault(&"x".repeat(256)), (1, "a name of 256 bytes, more than 255".to_owned()));
        assert!(fault(&format!("{}[1-10]", "x".repeat(254))).1.contains("256 bytes"));
    }

    /// Output of `scontrol show hostlist` of Slurm 22.05.
    #[test]
    fn lists_match_scontrol() {
        for (names, expected) in [
            ("n1,n2,n3", "n[1-3]"),
            ("n3,n1", "n[3,1]"),
            ("n01,n1,n2", "n[01,1-2]"),
            ("n08,n09,n10", "n[08-10]"),
            ("n9,n10", "n[9-10]"),
            ("n9,n010", "n[9,010]"),
            ("n1,n1", "n[1,1]"),
            ("n1,n2,n2,n3", "n[1-2,2-3]"),
            ("n099,n100", "n[099-100]"),
            ("r1n1,r1n2,r2n1", "r1n[1-2],r2n1"),
            ("a1x,a2x", "a1x,a2x"),
            ("n1,m1,n2", "n1,m1,n2"),
            ("1,2", "[1-2]"),
            ("a0,a00", "a[0,00]"),
            ("n1,n2,m,n3", "n[1-2],m,n3"),
            ("n007", "n007"),
            ("n99999999999999999999,n1", "n99999999999999999999,n1"),
            ("", ""),
        ] {
            assert_eq!(compress(names.split(',')), expected, "{names}");
        }
    }

    #[test]
    fn the_text_around_a_fault_is_shown_and_long_lines_are_cut_at_characters() {
        let short = HostListError::new("a\nbcd\ne", 3, 4, String::new(), "");
        assert_eq!(
            (short.line, short.column, short.excerpt.as_str(), short.span),
            (2, 2, "bcd", (1, 1).into())
        );
        let text = "é".repeat(1000);
        let HostListError { column, excerpt, span, .. } =
            HostListError::new(&text, 1000, 2000, String::new(), "");
        assert_eq!(column, 501);
        assert!(excerpt.len() < 200 && excerpt.starts_with('…') && excerpt.ends_with('…'));
        assert_eq!(&excerpt[span.offset()..][..2], "é");
    }
}
