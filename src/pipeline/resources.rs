//! What a stage takes of a machine, and how a pipeline deals with batch systems: `memory`, `retries`, `[batch]`.

use std::time::Duration;

use super::Problem;
use super::node::{Table, sub_table, unknown_keys, wrong_form};

/// Retries of a stage that does not say how many.
pub(crate) const RETRIES: u32 = 2;

/// `[batch]`: how a pipeline deals with batch systems.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Batch {
    /// Jobs that are in the queue at once.
    pub jobs: usize,
    /// Time without an answer after which a batch system is given up.
    pub patience: Duration,
}

impl Default for Batch {
    fn default() -> Self {
        Self { jobs: 20, patience: Duration::from_mins(10) }
    }
}

const UNITS: [(&str, u64); 9] = [
    ("B", 1),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
];

/// Bytes of a size such as `4 GB` or `512MiB`.
pub fn bytes(text: &str) -> Result<u64, String> {
    let wrong = || format!("`{text}` is no size; write for example 4 GB or 512 MiB");
    let end = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(text.len());
    let (number, unit) = (&text[..end], text[end..].trim());
    let number: f64 = number.parse().map_err(|_| wrong())?;
    let (_, factor) = UNITS.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit)).ok_or_else(wrong)?;
    let bytes = (number * *factor as f64).round();
    match (1.0..=i64::MAX as f64).contains(&bytes) {
        true => Ok(bytes as u64),
        false => Err(wrong()),
    }
}

/// A number of bytes as people read it.
#[must_use]
pub fn show_bytes(bytes: u64) -> String {
    let (unit, factor) = UNITS[..5].iter().rev().find(|(_, factor)| bytes >= *factor).unwrap_or(&UNITS[0]);
    let rounded = format!("{:.1}", bytes as f64 / *factor as f64);
    format!("{} {unit}", rounded.trim_end_matches(".0"))
}

pub(crate) fn memory(table: &Table, problems: &mut Vec<Problem>) -> Option<u64> {
    let node = &table.get("memory")?.node;
    let Some(text) = node.text() else {
        problems.push(wrong_form("`memory`", "a size such as \"4 GB\"", node));
        return None;
    };
    bytes(text).map_err(|message| problems.push(Problem::new(message, &node.span))).ok()
}

pub(crate) fn retries(table: &Table, problems: &mut Vec<Problem>) -> Option<u32> {
    number(table, "retries", "a number such as 2; 0 for none", 0..=100, problems).map(|number| number as u32)
}

fn number(
    table: &Table,
    key: &str,
    wanted: &str,
    range: std::ops::RangeInclusive<u64>,
    problems: &mut Vec<Problem>,
) -> Option<u64> {
    let node = &table.get(key)?.node;
    let number = node.plain().as_u64().filter(|number| range.contains(number));
    if number.is_none() {
        problems.push(wrong_form(&format!("`{key}`"), wanted, node));
    }
    number
}

pub(crate) fn batch(table: &Table, problems: &mut Vec<Problem>) -> Batch {
    let table = sub_table(table, "batch", problems);
    unknown_keys(&table, &["jobs", "patience"], "keys of [batch]", problems);
    let mut batch = Batch::default();
    if let Some(jobs) = number(&table, "jobs", "a number of jobs, at least 1", 1..=100_000, problems) {
        batch.jobs = jobs as usize;
    }
    if let Some(node) = table.get("patience").map(|entry| &entry.node) {
        match node.text().and_then(|text| humantime::parse_duration(text).ok()) {
            Some(patience) => batch.patience = patience,
            None => problems.push(wrong_form("`patience`", "a time such as \"10 min\"", node)),
        }
    }
    batch
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_and_shown() {
        for (text, size) in [
            ("4 GB", 4_000_000_000),
            ("512MiB", 536_870_912),
            ("1.5 kB", 1_500),
            ("1 b", 1),
            ("2tb", 2_000_000_000_000),
        ] {
            assert_eq!(bytes(text), Ok(size), "{text}");
        }
        for text in ["", "4", "GB", "4 XB", "-1 GB", "0 GB", "1e9 B", "9999999999 TB", "1.2.3 GB"] {
            assert!(bytes(text).is_err(), "{text}");
        }
        let shown = [(1, "1 B"), (1_500, "1.5 kB"), (4_000_000_000, "4 GB"), (17_179_869_184, "17.2 GB")];
        for (size, text) in shown {
            assert_eq!(show_bytes(size), text);
        }
    }
}
