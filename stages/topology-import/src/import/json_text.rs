//! JSON between lines of a shell or a program: `+ kubectl get …`, `WARNING: …`. No line of JSON begins as words do.

use std::borrow::Cow;

use hopmap_text::Foreign;

/// The lines that are no JSON: those before the first bracket, those behind the last one, and between them those that begin as no value does.
pub(super) fn others(text: &str) -> Vec<usize> {
    let lines = || (1..).zip(text.lines().map(str::trim)).filter(|(_, line)| !line.is_empty());
    let first = lines().find(|(_, line)| line.starts_with(['{', '[']));
    let last = lines().filter(|(_, line)| line.ends_with(['}', ']'])).last();
    let (Some((first, _)), Some((last, _))) = (first, last) else { return Vec::new() };
    let is_own = |(number, line): &(usize, &str)| {
        *number >= first && (*number <= last || first > last) && is_json(line)
    };
    lines().filter(|line| !is_own(line)).map(|(number, _)| number).collect()
}

fn is_json(line: &str) -> bool {
    let is_number = |line: &str| line.trim_start_matches('-').starts_with(|c: char| c.is_ascii_digit());
    line.starts_with(['{', '}', '[', ']', '"', ',', ':'])
        || is_number(line)
        || ["true", "false", "null"].iter().any(|word| line.starts_with(word))
}

/// The text with these lines empty.
pub(super) fn own(text: &str) -> Cow<'_, str> {
    Foreign::of_lines(text, &others(text)).0
}
