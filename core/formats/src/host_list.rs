//! Lists of host names as Slurm writes them: `node[001-128,200-210],login1`.
//!
//! Names are parted by commas or white space. A bracket stands for each of its numbers, written with as many digits as the first
//! number of the range has: `n[08-10]` is `n08 n09 n10`. A name may hold several brackets; the numbers of the last one
//! change fastest, then those of the first, the second and so on. Duplicates stay. All this is what `scontrol show hostnames`
//! (Slurm 22.05) does. Beyond it, text may follow the last bracket, `n[1-2]-ib`, and ranges may be longer than 65,536.
//! Where `scontrol` guesses, this reader refuses: brackets that are not closed, open ends (`n[1-]`), blanks inside brackets.

use std::fmt::Write;

use miette::{Diagnostic, SourceSpan};

/// Most names that a list may stand for.
pub const MAX_NAMES: usize = 1 << 22;
/// Most bytes of a name: those of a host name (RFC 1035).
pub const MAX_NAME_BYTES: usize = 255;

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

/// Digits of the largest number that surely fits 64 bits.
const MAX_DIGITS: usize = 18;

/// The names of a list in its order, as `scontrol show hostnames` gives them.
///
/// Takes time and memory in proportion to the names and the text. A list without names is no error.
pub fn expand(text: &str) -> Result<Vec<String>, HostListError> {
    expand_within(text, MAX_NAMES)
}

/// The same of at most `most` names.
pub(crate) fn expand_within(text: &str, most: usize) -> Result<Vec<String>, HostListError> {
    let mut names = Vec::new();
    let mut position = 0;
    while position < text.len() {
        let Some(start) = text[position..].find(|c| !is_separator(c)).map(|offset| position + offset) else {
            break;
        };
        let (pattern, end) = Pattern::read(text, start)?;
        let count = pattern.count();
        if count > most - names.len() {
            let what = format!("more than {MAX_NAMES} names in all");
            let hint = "is a range longer than meant? Such a list is longer than any machine has hosts";
            return Err(HostListError::new(text, start, end, what, hint));
        }
        pattern.check_length(text, start, end)?;
        pattern.write(count, &mut names);
        position = end;
    }
    Ok(names)
}

fn is_separator(c: char) -> bool {
    c == ',' || c.is_whitespace()
}

/// A range of numbers in a bracket.
#[derive(Debug, Clone, Copy)]
struct Range {
    low: u64,
    high: u64,
    /// Digits that each number has at least.
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
    /// What stands before each bracket.
    heads: Vec<&'a str>,
    /// The ranges of each bracket.
    brackets: Vec<Vec<Range>>,
    /// What stands behind the last bracket.
    tail: &'a str,
}

impl<'a> Pattern<'a> {
    /// Reads the name that begins at `start`, and says where it ends.
    fn read(text: &'a str, start: usize) -> Result<(Self, usize), HostListError> {
        let mut pattern = Self { heads: Vec::new(), brackets: Vec::new(), tail: "" };
        let mut head = start;
        loop {
            let rest = &text[head..];
            let stop = |c: char| is_separator(c) || c == '[' || c == ']' || c.is_control();
            let end = rest.find(stop).map_or(text.len(), |offset| head + offset);
            match text[end..].chars().next() {
                Some('[') => {
                    let close = closing(text, end)?;
                    pattern.heads.push(&text[head..end]);
                    pattern.brackets.push(ranges(text, end + 1, close)?);
                    head = close + 1;
                }
                Some(']') => {
                    let what = "a bracket is closed that was never opened".to_owned();
                    let hint = "write numbers between brackets: node[001-128,200-210]";
                    return Err(HostListError::new(text, end, end + 1, what, hint));
                }
                Some(c) if !is_separator(c) => {
                    let what = format!("the character {c:?} is no part of a name");
                    let hint = "a host list is plain text: names parted by commas or white space";
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
        Err(HostListError::new(text, start, end, what, "part names by commas or white space"))
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

/// Goes on to the next combination: the last bracket changes fastest, then the first, the second and so on.
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

/// Where the bracket that opens at `open` closes.
fn closing(text: &str, open: usize) -> Result<usize, HostListError> {
    let inside = &text[open + 1..];
    match inside.find(|c: char| !(c.is_ascii_digit() || c == ',' || c == '-')) {
        Some(offset) if inside[offset..].starts_with(']') => Ok(open + 1 + offset),
        None => {
            let what = "the bracket is never closed".to_owned();
            Err(HostListError::new(text, open, text.len(), what, "close it with `]`"))
        }
        Some(offset) => {
            let place = open + 1 + offset;
            let c = inside[offset..].chars().next().unwrap_or(' ');
            let what = match inside[offset..].contains(']') {
                true => format!("{c:?} inside a bracket"),
                false => format!("{c:?} inside a bracket that is never closed"),
            };
            let hint =
                "between `[` and `]` stand numbers and ranges only, parted by commas: [001-128,200-210]";
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

/// The range `item`, which stands at `start`.
fn range(text: &str, item: &str, start: usize) -> Result<Range, HostListError> {
    let end = start + item.len();
    let fault = |what: String, hint| {
        HostListError::new(text, start, end.max((start + 1).min(text.len())), what, hint)
    };
    let (low, high) = item.split_once('-').unwrap_or((item, item));
    if item.is_empty() {
        return Err(fault("a number is missing".to_owned(), "write one between the commas: [1,3,5-7]"));
    }
    if low.is_empty() || high.is_empty() || high.contains('-') {
        let what = format!("`{item}` is no range");
        return Err(fault(what, "a range has a first and a last number: [1-16]"));
    }
    let number = |digits: &str| digits.parse::<u64>().ok().filter(|_| digits.len() <= MAX_DIGITS);
    let (Some(first), Some(last)) = (number(low), number(high)) else {
        let what = format!("a number of more than {MAX_DIGITS} digits");
        return Err(fault(what, "write the name out, without a bracket"));
    };
    match first <= last {
        true => Ok(Range { low: first, high: last, width: low.len() }),
        false => {
            Err(fault(format!("the range falls from {low} to {high}"), "write the smaller number first"))
        }
    }
}

/// The shortest list that `scontrol show hostlist` makes of the names: in their order, with one bracket for names that follow
/// each other and differ in the digits at their end only.
///
/// [`expand`](expand) and `scontrol show hostnames` give back the names if they hold no brackets, commas, blanks or
/// control characters and are not empty.
pub fn compress<S: AsRef<str>>(names: impl IntoIterator<Item = S>) -> String {
    let mut list = List::default();
    for name in names {
        list.add(name.as_ref());
    }
    list.close();
    list.text
}

/// Numbers in a row.
struct NumberRange {
    low: u64,
    high: u64,
    width: usize,
}

/// A list as it grows.
#[derive(Default)]
struct List {
    text: String,
    /// What the names of the open bracket begin with.
    prefix: String,
    ranges: Vec<NumberRange>,
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
            _ => self.ranges.push(NumberRange { low: number, high: number, width: digits.len() }),
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
        if let [NumberRange { low, high, width }] = ranges[..]
            && low == high
        {
            self.text.push_str(&written(low, width));
            return;
        }
        for (index, NumberRange { low, high, width }) in ranges.into_iter().enumerate() {
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

/// A name as what comes before the digits at its end, the digits, and their value, if it has a few digits there.
fn parts(name: &str) -> Option<(&str, &str, u64)> {
    let (prefix, digits) = name.split_at(name.trim_end_matches(|c: char| c.is_ascii_digit()).len());
    // More digits than these are no number that a bracket may hold.
    let number = digits.parse().ok().filter(|_| digits.len() <= 18)?;
    Some((prefix, digits, number))
}

/// Bytes shown on each side of a place: a host list can be one line of a million names.
const MARGIN: usize = 48;

/// A place in a text and what stands around it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Excerpt {
    /// Line, counted from one.
    pub(crate) line: usize,
    /// Column in characters, counted from one.
    pub(crate) column: usize,
    pub(crate) text: String,
    /// The place in `text`, in bytes.
    pub(crate) span: SourceSpan,
}

impl Excerpt {
    /// What stands around `start..end`, which are bytes of `text` on the bounds of characters.
    pub(crate) fn new(text: &str, start: usize, end: usize) -> Self {
        let line_start = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
        let line_end = text[start..].find('\n').map_or(text.len(), |newline| start + newline);
        let end = end.clamp(start, line_end);
        let from = text.floor_char_boundary(start.saturating_sub(MARGIN)).max(line_start);
        let to = text.ceil_char_boundary((end.min(start + MARGIN) + MARGIN).min(line_end)).min(line_end);
        let cut = if from > line_start { "…" } else { "" };
        let rest = if to < line_end { "…" } else { "" };
        Self {
            line: text[..start].matches('\n').count() + 1,
            column: text[line_start..start].chars().count() + 1,
            text: format!("{cut}{}{rest}", &text[from..to]),
            span: (cut.len() + start - from, end.min(to) - start).into(),
        }
    }
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

    /// What `scontrol show hostnames` of Slurm 22.05 printed.
    #[test]
    fn names_come_in_the_order_of_scontrol() {
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
            ("", ""),
        ] {
            assert_eq!(names(text), expected, "{text}");
        }
    }

    #[test]
    fn text_may_follow_the_last_bracket() {
        assert_eq!(names("a[1-2]-ib,b[1]b[3]c"), "a1-ib a2-ib b1b3c");
    }

    #[test]
    fn faults_are_named_with_their_column() {
        for (text, column, what) in [
            ("a[1-2", 2, "the bracket is never closed"),
            ("ok,a]", 5, "a bracket is closed that was never opened"),
            ("a[2-1]", 3, "the range falls from 2 to 1"),
            ("a[]", 3, "a number is missing"),
            ("a[1,,2]", 5, "a number is missing"),
            ("a[1-]", 3, "`1-` is no range"),
            ("a[1,-2]", 5, "`-2` is no range"),
            ("a[1-2-3]", 3, "`1-2-3` is no range"),
            ("a[1-x]", 5, "'x' inside a bracket"),
            ("a[[1]]", 3, "'[' inside a bracket"),
            ("a[1 -2]", 4, "' ' inside a bracket"),
            ("é,a[1 b", 6, "' ' inside a bracket that is never closed"),
            ("a\0", 2, "the character '\\0' is no part of a name"),
            ("a[1234567890123456789]", 3, "a number of more than 18 digits"),
        ] {
            assert_eq!(fault(text), (column, what.to_owned()), "{text}");
        }
        assert_eq!(
            expand("a\nb[3-2]").unwrap_err().to_string(),
            "host list, line 2, column 3: the range falls from 3 to 2"
        );
    }

    #[test]
    fn lists_beyond_any_machine_are_refused_before_they_take_memory() {
        let most = format!("more than {MAX_NAMES} names in all");
        assert_eq!(fault("n1,n[0-99999999999]"), (4, most.clone()));
        assert_eq!(fault("n[0-999999]x[0-999999]y[0-999999]z[0-999999]"), (1, most.clone()));
        assert_eq!(fault("n[0-999999999999999999,0-999999999999999999]"), (1, most));
        assert_eq!(expand_within("n[1-4],m", 4).unwrap_err().column, 8);
        assert_eq!(expand_within("n[1-4],m", 5).unwrap().len(), 5);
        assert_eq!(fault(&"x".repeat(256)), (1, "a name of 256 bytes, more than 255".to_owned()));
        assert!(fault(&format!("{}[1-10]", "x".repeat(254))).1.contains("256 bytes"));
    }

    /// What `scontrol show hostlist` of Slurm 22.05 printed.
    #[test]
    fn lists_are_those_of_scontrol() {
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
            ("", ""),
        ] {
            assert_eq!(compress(names.split(',')), expected, "{names}");
        }
    }

    #[test]
    fn a_number_beyond_64_bits_is_part_of_a_name() {
        let name = "n99999999999999999999";
        assert_eq!(compress([name, "n1"]), format!("{name},n1"));
    }

    #[test]
    fn a_short_line_is_shown_whole() {
        let excerpt = Excerpt::new("a\nbcd\ne", 3, 4);
        assert_eq!((excerpt.line, excerpt.column, excerpt.text.as_str()), (2, 2, "bcd"));
        assert_eq!(excerpt.span, (1, 1).into());
    }

    #[test]
    fn a_long_line_is_cut_between_characters() {
        let text = "é".repeat(1000);
        let excerpt = Excerpt::new(&text, 1000, 2000);
        assert_eq!(excerpt.column, 501);
        assert!(excerpt.text.len() < 200 && excerpt.text.starts_with('…') && excerpt.text.ends_with('…'));
        assert_eq!(&excerpt.text[excerpt.span.offset()..][..2], "é");
    }
}
