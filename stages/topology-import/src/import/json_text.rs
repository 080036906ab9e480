//! JSON between lines of a shell or a program: `+ kubectl get …`, `WARNING: …`. No line of JSON begins as words do.

use std::borrow::Cow;

use hopmap_text::{Foreign, shown, without_foreign};
use serde::de::IgnoredAny;

use super::Result;
use super::format::malformed;

/// The lines that are no JSON; an error for text behind the last bracket in its line. In `text`, messages are not left out yet.
pub(super) fn others(text: &str) -> Result<Vec<usize>> {
    let text = without_foreign(text);
    let others = lines_apart(&text);
    let (own, _) = Foreign::of_lines(&text, &others);
    let mut values = serde_json::Deserializer::from_str(&own).into_iter::<IgnoredAny>();
    if let Some(Ok(_)) = values.next()
        && let (before, behind) = own.split_at(values.byte_offset())
        && let Some(more) = behind.lines().next().map(str::trim).filter(|more| !more.is_empty())
    {
        let problem = format!("`{}` is behind the last bracket", shown(more));
        return Err(malformed(before.lines().count(), problem, "delete it, or begin a line before it"));
    }
    Ok(others)
}

/// The lines that are no JSON: those before the first bracket, those behind the last one, and between them those that begin as no value does.
fn lines_apart(text: &str) -> Vec<usize> {
    let lines = || (1..).zip(text.lines().map(str::trim)).filter(|(_, line)| !line.is_empty());
    let first = lines().find(|(_, line)| line.starts_with(['{', '[']));
    let last = lines().filter(|(_, line)| line.starts_with(['}', ']']) || line.ends_with(['}', ']'])).last();
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
    Foreign::of_lines(text, &lines_apart(text)).0
}
